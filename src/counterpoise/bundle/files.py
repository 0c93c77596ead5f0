"""A release on disk: a Data Package of plain files that R, Stata, DuckDB and a browser open.

`datapackage.json` (schema, card, checksums), `synthetic.parquet` (the rows, their `weight`, and the
replicate weights `weight_1`, `weight_2` and so on), and `model.npz`, from which new rows are drawn,
where it can be saved. No pickle. The folder is written under a temporary name, flushed to the disk,
and put in its place in one step, so that an interrupted or killed save leaves what was there
before, whole; a damaged file is found by its checksum on load. `report.html` comes after it: what
was paid for is on the disk by then, whatever becomes of its page.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from counterpoise.bundle.card import RETARGETED, describe_replicates
from counterpoise.bundle.descriptor import (
    CSV,
    DESCRIPTOR,
    MODEL,
    REPORT,
    TABLE,
    Descriptor,
    card_of,
    describe_folder,
    describe_page,
    read_descriptor,
    read_json,
)
from counterpoise.bundle.models import SavedModels
from counterpoise.bundle.release import Release
from counterpoise.bundle.rules import check_card, check_rows, check_weights, refused
from counterpoise.bundle.saved_replicates import MANY, SavedReplicates
from counterpoise.bundle.stored_rows import StoredRows, check_sizes, expected_texts
from counterpoise.bundle.weight_columns import WEIGHT, weight_names
from counterpoise.disk import (
    as_path,
    only_writer,
    plainly,
    require_names_beside,
    standing,
    whole_folder,
    write_whole,
)
from counterpoise.errors import BundleError, CounterpoiseError
from counterpoise.schema import Schema
from counterpoise.schema.tables import read_table, table_columns, write_csv, write_parquet


def write_bundle(
    release: Release,
    path: Path,
    overwrite: bool = False,
    csv: bool | Literal["verbatim"] = False,
) -> None:
    """Write `release` to the folder `path`, without its page; one that is there only if asked."""
    check_target(path, overwrite)
    card = _card_as_written(release)
    _check(release, card)
    with plainly(path):
        # A symbolic link stays one: what it leads to is written.
        target = Path(os.path.realpath(path))
        with whole_folder(target) as draft:
            check_target(target, overwrite)
            _fill(draft, release.changed(card=card), csv, target)


def write_page(release: Release, path: Path, page: Callable[[Release], str]) -> None:
    """Write the page that `page` makes into the folder of `release`, and list it there.

    It is off the list before it changes and on it after, each by one rename: at every moment the
    folder is a whole release, with its page or without.
    """
    text, card = page(release), _card_as_written(release)
    with plainly(path):
        folder = Path(os.path.realpath(path))
        with only_writer(folder):
            if not (folder / DESCRIPTOR).is_file():
                raise BundleError(f"{path} is not a release, and has no page")
            descriptor = read_json(folder / DESCRIPTOR)
            with refused(str(folder / DESCRIPTOR)):
                if card_of(descriptor) != json.loads(json.dumps(card)):
                    raise BundleError(f"{path} is another release, and this is not its page")
                _write_text(folder / DESCRIPTOR, describe_page(folder, descriptor, is_there=False))
                _write_text(folder / REPORT, text)
                _write_text(folder / DESCRIPTOR, describe_page(folder, descriptor, is_there=True))


def has_page(folder: Path) -> bool:
    """Whether a release has its page, and lists it."""
    listed = read_json(folder / DESCRIPTOR)["resources"]
    return (folder / REPORT).is_file() and any(each["path"] == REPORT for each in listed)


def check_target(path: Path, overwrite: bool) -> None:
    """Refuse a folder that is there, unless it is a release that may be overwritten.

    And a name so long that none is left for what is written beside it.
    """
    with plainly(path):
        require_names_beside(Path(os.path.realpath(path)))
        found = standing(path)
        if found.exists():
            if not overwrite:
                raise BundleError(f"{path} exists; save elsewhere, or overwrite it on purpose")
            if not (found / DESCRIPTOR).is_file():
                raise BundleError(f"{path} is not a release, so it is not overwritten")


def load(path: str | Path) -> Release:
    """Read a release from its folder, checking that every file is what was written."""
    stated = as_path("path", path)
    with plainly(stated, "read"):
        folder = standing(stated)
        if not folder.is_dir():
            raise BundleError(f"there is no folder {stated}")
        found = read_descriptor(folder)
        with refused(str(folder / TABLE)):
            file, names = folder / TABLE, weight_names(found.replicates)
            if list(table_columns(file)) != [*found.schema.names, *names]:
                raise BundleError("the table does not have the columns of its schema, and weights")
            rows, count = found.card["rows"], found.replicates
            check_sizes(file, found.schema, rows, count)
            if StoredRows(file, found.schema, rows, count).is_large:
                stored = StoredRows.checked(file, found.schema, rows, count, found.hashes[TABLE])
                table: Any = stored
                replicates: Any = stored if count else None
            else:
                table, replicates = _read(file, found)
    models = SavedModels(folder / MODEL, found.hashes[MODEL]) if MODEL in found.hashes else None
    return Release(table, found.schema, found.card, replicates, models=models)


def _read(file: Path, found: Descriptor) -> tuple[pd.DataFrame, Any]:
    """The rows, and the replicates or where they are, if these are many."""
    rows, replicates, names = found.card["rows"], None, weight_names(found.replicates)
    are_many = rows * found.replicates > MANY
    chosen = [*found.schema.names, WEIGHT] if are_many else None
    written = read_table(file, chosen, as_categories=expected_texts(found.schema))
    table = _understood(written, found.schema)
    if found.replicates and not are_many:
        replicates = written[names[1:]].to_numpy(dtype=_precision(found.card))
    _check_weights(table, replicates, rows)
    if are_many:
        return table, SavedReplicates.checked(file, names[1:], rows, found.hashes[TABLE])
    return table, replicates


def _card_as_written(release: Release) -> dict[str, Any]:
    """The card, true of what is there: a release can be put together from parts of others."""
    card = dict(release.card)
    count = release.replicate_count
    found = card.get("replicates")
    # What was found of other replicates says nothing of these.
    same = isinstance(found, Mapping) and found.get("count") == count
    described = describe_replicates(count, found if same else None)
    card |= {"rows": release.rows, "replicates": described}
    if release.models is None and _says_saved(card):
        card["model"] = {"saved": False, "reason": "it was left out"}
    return card


def _says_saved(card: Mapping[str, Any]) -> bool:
    stated = card.get("model")
    return isinstance(stated, Mapping) and bool(stated.get("saved"))


def _check(release: Release, card: dict[str, Any]) -> None:
    """Refuse to write what could not be read again."""
    check_card(card)
    if release.stored is not None:
        return  # they were looked at when they were read, or are as we wrote them
    if list(release.table.columns) != [*release.schema.names, WEIGHT]:
        raise BundleError("the table has to have the columns of the schema, and the weight")
    _check_weights(release.table, release.replicates, card["rows"])
    check_rows(release.table, release.schema)


def _fill(draft: Path, release: Release, csv: bool | Literal["verbatim"], target: Path) -> None:
    """Write the files of a release to its draft; messages name the place where it will be."""
    try:
        if release.stored is not None:
            release.stored.write(draft / TABLE)
            if csv:
                release.stored.write(draft / CSV, csv=csv)
        else:
            table = _with_replicates(release)
            write_parquet(table, draft / TABLE)
            if csv:
                write_csv(table, draft / CSV, guarded=csv is True)
        if release.models is not None and _says_saved(release.card):
            release.models.write(draft / MODEL)
        count = release.replicate_count
        text = describe_folder(draft, target.name, release.schema, release.card, count)
        _write_text(draft / DESCRIPTOR, text)
        draft.chmod(0o755)
        for file in draft.iterdir():
            file.chmod(0o644)
    except CounterpoiseError as error:
        raise BundleError(str(error).replace(str(draft), str(target))) from None


def _write_text(file: Path, text: str) -> None:
    """Write a text to its place in a release, whole, for all to read."""
    try:
        content = text.encode("utf-8")
    except UnicodeError:
        raise BundleError(
            f"{file} cannot be written: a text in the release is not Unicode; rename it"
        ) from None

    def write(part: Any) -> None:
        part.write(content)
        Path(part.name).chmod(0o644)

    write_whole(file, write, lasting=True)


def _understood(written: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The rows with their weight as the schema has them."""
    check_rows(written, schema)
    return schema.restore(written[[*schema.names, WEIGHT]])


def _check_weights(table: pd.DataFrame, replicates: np.ndarray | None, rows: int) -> None:
    check_weights(table[WEIGHT].to_numpy(dtype=float), rows, "the weights of the table")
    if replicates is not None:
        check_weights(replicates, rows, "the replicate weights of the table")


def _with_replicates(release: Release) -> pd.DataFrame:
    """The table as it is written, with a column a replicate."""
    if release.replicates is None:
        return release.table
    names = weight_names(release.replicates.shape[1])[1:]
    replicates = release.replicates
    if replicates.size > MANY or _precision(release.card) is np.float32:
        replicates = replicates.astype(np.float32)
    columns = pd.DataFrame(replicates, columns=names, index=release.table.index)
    return pd.concat([release.table, columns], axis=1)


def _precision(card: Mapping[str, Any]) -> type[np.floating[Any]]:
    """In double precision margins that were raked to hold to all digits; noise needs no more."""
    return np.float64 if card.get(RETARGETED) else np.float32
