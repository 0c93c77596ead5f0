"""A release on disk: a Data Package of plain files that R, Stata, DuckDB and a browser open.

`datapackage.json` (schema, card, checksums), `synthetic.parquet` (the rows, their `weight`, and the
replicate weights `weight_1`, `weight_2` and so on), `report.html`, and `model.npz`, from which new
rows are drawn, where it can be saved. No pickle. The folder is written under a temporary name and
renamed, so an interrupted save leaves what was there before; a damaged file is found by its
checksum on load.
"""

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.bundle.models import SavedModels
from counterpoise.bundle.release import WEIGHT, Release
from counterpoise.errors import BundleError
from counterpoise.schema import Schema
from counterpoise.schema.tables import read_table, write_csv, write_parquet

DESCRIPTOR = "datapackage.json"
TABLE = "synthetic.parquet"
CSV = "synthetic.csv"
REPORT = "report.html"
MODEL = "model.npz"
_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_FORMAT = 1


def write_bundle(
    release: Release,
    path: Path,
    page: Callable[[Release], str],
    overwrite: bool = False,
    csv: bool = False,
) -> None:
    """Write `release` to the folder `path`; an existing release is replaced only if asked.

    `page` makes the report that goes with it.
    """
    check_target(path, overwrite)
    target = path.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        table = _with_replicates(release)
        write_parquet(table, draft / TABLE)
        if csv:
            write_csv(table, draft / CSV)
        if _has_model(release):
            assert release.models is not None
            release.models.write(draft / MODEL)
        (draft / REPORT).write_text(page(release), encoding="utf-8")
        descriptor = _descriptor(release, target.name, draft)
        text = json.dumps(descriptor, indent=2, ensure_ascii=False, allow_nan=False)
        (draft / DESCRIPTOR).write_text(text + "\n", encoding="utf-8")
        draft.chmod(0o755)
        for file in draft.iterdir():
            file.chmod(0o644)
        _put(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def check_target(path: Path, overwrite: bool) -> None:
    """Refuse a folder that is there, unless it is a release that may be overwritten."""
    if path.exists():
        if not overwrite:
            raise BundleError(f"{path} exists; save elsewhere, or overwrite it on purpose")
        if not (path / DESCRIPTOR).is_file():
            raise BundleError(f"{path} is not a release, so it is not overwritten")


def load(path: str | Path) -> Release:
    """Read a release from its folder, checking that every file is what was written."""
    folder = Path(path)
    descriptor = _read_descriptor(folder)
    try:
        card, resources = descriptor["counterpoise"], descriptor["resources"]
        written_as = card["format"]
        schema = Schema.from_dict(_without_weights(resources[0]["schema"]))
        digests = {str(resource["path"]): str(resource["hash"]) for resource in resources}
    except (KeyError, IndexError, TypeError):
        raise BundleError(f"{folder / DESCRIPTOR} does not describe a release") from None
    if written_as > _FORMAT:
        raise BundleError(f"{folder} was written by a newer version of counterpoise; upgrade it")
    for resource in resources:
        _check(folder, resource)
    written = read_table(folder / TABLE)
    columns = [name for name in written.columns if re.fullmatch(rf"{WEIGHT}_\d+", name)]
    table = schema.restore(written.drop(columns=columns))
    replicates = written[columns].to_numpy(dtype=np.float32) if columns else None
    models = SavedModels(folder / MODEL, digests[MODEL]) if MODEL in digests else None
    return Release(table, schema, card, replicates, models=models)


def _with_replicates(release: Release) -> pd.DataFrame:
    """The table as it is written, with a column a replicate."""
    if release.replicates is None:
        return release.table
    names = [f"{WEIGHT}_{place + 1}" for place in range(release.replicates.shape[1])]
    columns = pd.DataFrame(
        release.replicates.astype(np.float32), columns=names, index=release.table.index
    )
    return pd.concat([release.table, columns], axis=1)


def _has_model(release: Release) -> bool:
    return release.models is not None and bool(release.card["model"]["saved"])


def _put(draft: Path, target: Path) -> None:
    if not target.exists():
        draft.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    target.rename(old / "old")
    try:
        draft.rename(target)
    except BaseException:
        (old / "old").rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _descriptor(release: Release, name: str, draft: Path) -> dict[str, Any]:
    schema = release.schema.to_dict()
    weight = {"type": "number", "constraints": {"minimum": 0}}
    schema["fields"].append({"name": WEIGHT, **weight})
    if release.replicates is not None:
        count = release.replicates.shape[1]
        schema["fields"] += [{"name": f"{WEIGHT}_{i + 1}", **weight} for i in range(count)]
    described = {
        TABLE: ("synthetic", "parquet", "application/vnd.apache.parquet", schema),
        CSV: ("synthetic-csv", "csv", "text/csv", schema),
        REPORT: ("report", "html", "text/html", None),
        MODEL: ("model", "npz", "application/zip", None),
    }
    resources = [
        {
            "name": resource,
            "path": file,
            "format": format_,
            "mediatype": mediatype,
            **_checksum(draft / file),
            **({} if fields is None else {"schema": fields}),
        }
        for file, (resource, format_, mediatype, fields) in described.items()
        if (draft / file).exists()
    ]
    return {
        "$schema": _PROFILE,
        "name": name.lower().replace(" ", "-"),
        "title": "Synthetic table with importance weights",
        "resources": resources,
        "counterpoise": {"format": _FORMAT} | release.card,
    }


def _checksum(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    return {"bytes": len(content), "hash": f"sha256:{hashlib.sha256(content).hexdigest()}"}


def _read_descriptor(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise BundleError(f"there is no folder {folder}")
    try:
        return json.loads((folder / DESCRIPTOR).read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    except FileNotFoundError:
        raise BundleError(f"{folder} is not a release: it has no {DESCRIPTOR}") from None
    except (OSError, ValueError):
        raise BundleError(f"{folder / DESCRIPTOR} is damaged: it is not JSON") from None


def _check(folder: Path, resource: dict[str, Any]) -> None:
    file = folder / Path(str(resource.get("path"))).name
    if not file.is_file():
        raise BundleError(f"{folder} is incomplete: {file.name} is missing")
    if _checksum(file)["hash"] != resource.get("hash"):
        raise BundleError(
            f"{file} is damaged: its checksum is not the one in {DESCRIPTOR}; get the release again"
        )


def _without_weights(descriptor: dict[str, Any]) -> dict[str, Any]:
    weights = re.compile(rf"{WEIGHT}(_\d+)?")
    fields = [field for field in descriptor["fields"] if not weights.fullmatch(field["name"])]
    return {**descriptor, "fields": fields}
