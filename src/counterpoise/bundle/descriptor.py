"""`datapackage.json`: what is in a release's folder, and how one knows that nothing was changed.

The file lists every other file with its length and its SHA-256, has the schema and the card, and
states a digest of itself: the SHA-256 of its canonical text, which is the JSON of all of it but
the digest, in ASCII, keys sorted, without white space, numbers as Python writes them. A change of
one byte is either found or changes nothing that is read. This finds damage, not forgery: whoever
edits a file can make the digests anew. Such a file is read with care, by the rules of `rules`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from counterpoise.bundle.card import guarantee
from counterpoise.bundle.rules import LIST, OBJECT, TEXT, check_card, check_fields, refused, whole
from counterpoise.bundle.weight_columns import WEIGHT, weight_names
from counterpoise.disk import hash_of
from counterpoise.errors import BundleError
from counterpoise.schema import Schema

DESCRIPTOR = "datapackage.json"
TABLE = "synthetic.parquet"
CSV = "synthetic.csv"
REPORT = "report.html"
MODEL = "model.npz"
FORMAT = 2
# Walking through values must not exhaust the stack, here or wherever a card is printed.
_DEEPEST = 60
_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
# The files of a release: the name of the resource, its format and its media type.
_FILES = {
    TABLE: ("synthetic", "parquet", "application/vnd.apache.parquet"),
    CSV: ("synthetic-csv", "csv", "text/csv"),
    REPORT: ("report", "html", "text/html"),
    MODEL: ("model", "npz", "application/zip"),
}
_WITH_SCHEMA = (TABLE, CSV)
# What the file says of itself, beside the card.
_OWN = _FORMAT, _GUARANTEE, _DIGEST = "format", "guarantee", "digest"
_OUTSIDE = {"$schema": TEXT, "name": TEXT, "title": TEXT, "resources": LIST, "counterpoise": OBJECT}
_RESOURCE = {
    "name": TEXT,
    "path": TEXT,
    "format": TEXT,
    "mediatype": TEXT,
    "bytes": whole(0),
    "hash": TEXT,
    "schema": OBJECT.if_any(),
}


@dataclass(frozen=True)
class Descriptor:
    """What `datapackage.json` says: the schema, the card, and the SHA-256 of every file."""

    schema: Schema
    card: dict[str, Any]
    hashes: Mapping[str, str]

    @property
    def replicates(self) -> int:
        """The number of replicate weights."""
        stated = self.card["replicates"]
        return 0 if stated is None else int(stated["count"])


def describe_folder(
    folder: Path, name: str, schema: Schema, card: Mapping[str, Any], replicates: int
) -> str:
    """The text of `datapackage.json` for the files that are in a folder."""
    fields = _table_schema(schema, replicates)
    resources = [
        _resource(folder, file) | ({"schema": fields} if file in _WITH_SCHEMA else {})
        for file in _FILES
        if (folder / file).exists()
    ]
    descriptor = {
        "$schema": _PROFILE,
        "name": re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-") or "release",
        "title": "Synthetic table with importance weights",
        "resources": resources,
        "counterpoise": {_FORMAT: FORMAT, _GUARANTEE: guarantee(card)}
        | card_of({"counterpoise": card}),
    }
    return _as_text(descriptor)


def describe_page(folder: Path, descriptor: Mapping[str, Any], is_there: bool) -> str:
    """The text of `datapackage.json` with the page in the folder as it is now, or without one."""
    listed = {each["path"]: each for each in descriptor["resources"] if each["path"] != REPORT}
    if is_there:
        listed[REPORT] = _resource(folder, REPORT)
    return _as_text({**descriptor, "resources": sorted(listed.values(), key=_place)})


def _place(resource: Mapping[str, Any]) -> int:
    return [*_FILES].index(resource["path"])


def _resource(folder: Path, file: str) -> dict[str, Any]:
    resource, format_, mediatype = _FILES[file]
    return {
        "name": resource,
        "path": file,
        "format": format_,
        "mediatype": mediatype,
        "bytes": (folder / file).stat().st_size,
        "hash": hash_of(folder / file),
    }


def _as_text(descriptor: Mapping[str, Any]) -> str:
    """A descriptor as it is written, with its digest."""
    try:
        own = {**descriptor["counterpoise"], _DIGEST: digest_of(descriptor)}
        stamped = {**descriptor, "counterpoise": own}
        return json.dumps(stamped, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError):
        raise BundleError("the card holds values that JSON has no place for") from None


def digest_of(descriptor: Mapping[str, Any]) -> str:
    """The digest of a descriptor, whatever digest it states.

    >>> one = {"name": "a", "counterpoise": {"rows": 3, "digest": "sha256:0"}}
    >>> digest_of(one) == digest_of({"counterpoise": {"rows": 3}, "name": "a"})
    True
    """
    inner = {key: value for key, value in descriptor["counterpoise"].items() if key != _DIGEST}
    canonical = json.dumps(
        {**descriptor, "counterpoise": inner},
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    return f"sha256:{hashlib.sha256(canonical.encode('ascii')).hexdigest()}"


def read_descriptor(folder: Path) -> Descriptor:
    """What `datapackage.json` of a folder says, after checking it and every file it lists."""
    file = folder / DESCRIPTOR
    if not file.is_file():
        raise BundleError(f"{folder} is not a release: it has no {DESCRIPTOR}")
    descriptor = read_json(file)
    if not isinstance(descriptor, Mapping) or not isinstance(
        descriptor.get("counterpoise"), Mapping
    ):
        raise BundleError(f"{file} does not describe a release")
    _check_format(folder, descriptor["counterpoise"].get(_FORMAT))
    if descriptor["counterpoise"].get(_DIGEST) != digest_of(descriptor):
        raise BundleError(
            f"{file} is damaged: its text does not have the digest that it states; get the "
            "release again"
        )
    try:
        return _understood(folder, descriptor)
    except BundleError as error:
        raise BundleError(f"{file}: {error}") from None


def read_json(file: Path) -> Any:
    """The values of a JSON file: every name once, every number finite, every text in Unicode."""
    damaged = f"{file} is damaged: "
    content = file.read_bytes()
    try:
        found = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_float=_finite,
        )
        _check_depth(found)
        # Half of a surrogate pair is no text, and JSON can spell it.
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise BundleError(f"{damaged}it is not text in UTF-8") from None
    except RecursionError:
        raise BundleError(f"{damaged}it is nested too deeply") from None
    except ValueError:
        raise BundleError(f"{damaged}it is not JSON, or says something twice") from None
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError


def _check_depth(found: Any) -> None:
    """Raise a RecursionError where values are nested deeper than ours ever are."""
    inside = [found]
    for _ in range(_DEEPEST):
        inside = [
            part
            for each in inside
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
    if inside:
        raise RecursionError


def _finite(text: str) -> float:
    found = float(text)
    if found in (float("inf"), float("-inf")):
        raise ValueError
    return found


def _check_format(folder: Path, written_as: Any) -> None:
    if isinstance(written_as, bool) or not isinstance(written_as, int) or written_as < 1:
        raise BundleError(f"{folder / DESCRIPTOR} does not describe a release")
    if written_as > FORMAT:
        raise BundleError(f"{folder} was written by a newer version of counterpoise; upgrade it")
    if written_as < FORMAT:
        raise BundleError(
            f"{folder} was written by an older version of counterpoise (format {written_as}), and "
            "nothing in it says whether it is whole; read it with that version, or make it anew"
        )


def _understood(folder: Path, descriptor: Mapping[str, Any]) -> Descriptor:
    check_fields(descriptor, _OUTSIDE, "the package")
    resources = _checked_resources(folder, descriptor["resources"])
    stated = descriptor["counterpoise"]
    card = card_of(descriptor)
    check_card(card)
    if stated.get(_GUARANTEE) != guarantee(card):
        raise BundleError("the card: guarantee: it is not the one that follows from the card")
    if card["model"]["saved"] != (MODEL in resources):
        raise BundleError(f"the card and the list of files disagree on whether there is a {MODEL}")
    fields = resources[TABLE].get("schema")
    hashes = {file: str(resource["hash"]) for file, resource in resources.items()}
    found = Descriptor(_schema(fields), card, hashes)
    expected = _table_schema(found.schema, found.replicates)
    if any(resources[file].get("schema") != expected for file in _WITH_SCHEMA if file in resources):
        raise BundleError("its schema is not one that counterpoise writes")
    return found


def card_of(descriptor: Mapping[str, Any]) -> dict[str, Any]:
    """The card in a descriptor, without what the file says of itself."""
    return {key: value for key, value in descriptor["counterpoise"].items() if key not in _OWN}


def _checked_resources(folder: Path, listed: list[Any]) -> dict[str, Mapping[str, Any]]:
    """The resources by the names of their files, each of which is there and as it was written."""
    found: dict[str, Mapping[str, Any]] = {}
    for place, resource in enumerate(listed):
        check_fields(resource, _RESOURCE, f"resources.{place}")
        file = resource["path"]
        kind = tuple(resource[key] for key in ("name", "format", "mediatype"))
        if file not in _FILES or kind != _FILES[file]:
            raise BundleError(f"resources.{place}: {file!r} is not a file of a release")
        if file in found:
            raise BundleError(f"resources.{place}: {file!r} is listed twice")
        found[file] = resource
    for file in _FILES:
        path = folder / file
        if file == REPORT and not (file in found and path.is_file()):
            continue  # nothing rests on the page, and `write_page` may have been stopped
        if file not in found:
            if file == TABLE or path.exists():
                raise BundleError(f"resources: {file!r} is not listed")
        elif not path.is_file():
            raise BundleError(f"{folder} is incomplete: {file} is missing")
        elif (path.stat().st_size, hash_of(path)) != (found[file]["bytes"], found[file]["hash"]):
            raise BundleError(
                f"{path} is damaged: its length or its checksum is not the one in {DESCRIPTOR}; "
                "get the release again"
            )
    return found


def _table_schema(schema: Schema, replicates: int) -> dict[str, Any]:
    """The Table Schema of the rows as they are written: the schema's columns, then the weights."""
    weight = {"type": "number", "constraints": {"minimum": 0}}
    described = schema.to_dict()
    described["fields"] += [{"name": name, **weight} for name in weight_names(replicates)]
    return described


def _schema(described: Any) -> Schema:
    """The schema in a Table Schema of the rows, without the weights."""
    with refused("its schema"):
        is_weight = re.compile(rf"{WEIGHT}(_\d+)?")
        fields = [each for each in described["fields"] if not is_weight.fullmatch(each["name"])]
        found = Schema.from_dict({**described, "fields": fields})
        found.require_complete()
        return found
