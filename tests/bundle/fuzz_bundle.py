"""Random edits of a saved release: each is found, or changes nothing, or is legal and works.

Edits of bytes are those of a bad disk or line: what was changed is refused, or loads equal to what
was saved. Edits of JSON values and of the model's arrays, with the digests made anew, are those of
somebody who means it: what is refused is refused in our own words, and what is not can be used, and
new rows drawn. `make fuzz-bundle` does 10,000 of them; a few hundred are in the tests.
"""

from __future__ import annotations

import argparse
import copy
import json
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.bundle import stored_rows
from counterpoise.bundle.descriptor import DESCRIPTOR, MODEL, digest_of
from counterpoise.disk import hash_of
from counterpoise.errors import BundleError, CounterpoiseError, CounterpoiseWarning

ODD = [
    None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e-300, 1e300, 10**400, "", "x", "F", "..",
    "/etc/passwd", "2020-02-30", "9999-12-31", "\ud800", "a\0b", [], {}, [None], [[]], {"": None},
    ["F", "F"],
]  # fmt: skip


def make_bundle(folder: Path, synthesizer: str = "independent") -> Path:
    """A small release with every kind of column, replicates, a CSV and a model."""
    schema = cp.Schema(
        [
            cp.Column.categorical("sex", ["F", "M"]),
            cp.Column.categorical("town", ["Oslo", "Rome", "other"], other="other", nullable=True),
            cp.Column.ordinal("grade", [3, 1, 2], nullable=True),
            cp.Column.boolean("ill"),
            cp.Column.integer("age", 0, 99, nullable=True),
            cp.Column.continuous("income", 0.0, 1000.0, bins=(0.0, 10.0, 1000.0)),
            cp.Column.date("seen", date(2020, 1, 1), date(2022, 12, 31), bins=5),
        ]
    )
    nothing = pd.DataFrame({name: [] for name in schema.names})
    made = cp.release(
        nothing, schema, 1.0, 1e-6, rows=40, replicates=3, synthesizer=synthesizer, seed=1
    )
    return made.save(folder / "release", csv=True)


def retarget_bundle(bundle: Path, folder: Path) -> Path:
    """The same release, retargeted in every way that is kept."""
    rows = pd.DataFrame({"age": [1, 20, 50, 90], "sex": list("FMFM"), "label": [0, 1, 0, 1]})
    release = cp.load(bundle)
    there = release.table["sex"].unique()
    shares = {str(sex): 1 / len(there) for sex in there}
    margins = {"sex": shares, "income": float(release.table["income"].mean())}
    made = release.retarget(
        margins, modifier="1 + (sex == 'F')", labelled=rows, label="label", seed=1
    )
    return made.save(folder / "retargeted", csv=True)


def edit_bytes(folder: Path, generator: np.random.Generator) -> str:
    """Change some bytes of some file."""
    file = generator.choice(sorted(folder.iterdir()))
    content = bytearray(file.read_bytes())
    place = int(generator.integers(len(content)))
    length = int(generator.integers(1, 20))
    some = generator.integers(0, 256, length).astype(np.uint8).tobytes()
    how = str(generator.choice(["byte", "digit", "cut", "insert", "overwrite", "truncate", "move"]))
    match how:
        case "byte":
            content[place] = some[0]
        case "digit":
            content[place] = ord("0") + some[0] % 10
        case "cut":
            del content[place : place + length]
        case "insert":
            content[place:place] = some
        case "overwrite":
            content[place : place + length] = some
        case "truncate":
            del content[place:]
        case "move":
            moved = content[place : place + length]
            del content[place : place + length]
            content += moved
    file.write_bytes(content)
    return f"{how} at {place} of {file.name}"


def edit_values(folder: Path, generator: np.random.Generator) -> str:
    """Change a value somewhere in `datapackage.json`, and make its digest anew."""
    file = folder / DESCRIPTOR
    descriptor = json.loads(file.read_text(encoding="utf-8"))
    places = list(_places(descriptor))
    holder, key = places[int(generator.integers(len(places)))]
    how = str(generator.choice(["odd", "odd", "near", "remove", "add", "borrow"]))
    old = holder[key]
    match how:
        case "odd":
            holder[key] = copy.deepcopy(ODD[int(generator.integers(len(ODD)))])
        case "near":
            holder[key] = _near(old, generator)
        case "remove":
            del holder[key]
        case "add" if isinstance(holder, list):
            holder.append(copy.deepcopy(old))
        case "add":
            holder[f"{key}_"] = copy.deepcopy(old)
        case "borrow":
            other, name = places[int(generator.integers(len(places)))]
            if other is not holder:
                holder[key] = copy.deepcopy(other[name])
    if isinstance(descriptor.get("counterpoise"), dict):
        descriptor["counterpoise"]["digest"] = digest_of(descriptor)
    file.write_text(json.dumps(descriptor), encoding="utf-8")
    return f"{how} at {key!r}, which was {str(old)[:60]}"


def edit_model(folder: Path, generator: np.random.Generator) -> str:
    """Change an array of the model, or bytes of its file, and make the digests anew."""
    file = folder / MODEL
    if generator.random() < 0.2:
        content = bytearray(file.read_bytes())
        place = int(generator.integers(len(content)))
        content[place] ^= 1 << int(generator.integers(8))
        file.write_bytes(content)
        done = f"a bit at {place} of {MODEL}"
    else:
        with np.load(file) as found:
            arrays = {name: found[name] for name in found.files}
        name = str(generator.choice(sorted(arrays)))
        how = str(generator.choice([*ARRAY_EDITS, "remove", "borrow"]))
        old = arrays[name]
        if how == "remove":
            del arrays[name]
        elif how == "borrow":
            arrays[name] = arrays[str(generator.choice(sorted(arrays)))]
        else:
            arrays[name] = ARRAY_EDITS[how](old.copy(), generator)
        np.savez_compressed(file, **arrays)
        done = f"{how} of {name!r}, which was {str(old)[:60]}"
    restate(folder, MODEL)
    return done


def restate(folder: Path, name: str) -> None:
    """Make the digests anew for a file that was changed."""
    file = folder / DESCRIPTOR
    descriptor = json.loads(file.read_text(encoding="utf-8"))
    for resource in descriptor["resources"]:
        if resource["path"] == name:
            resource["bytes"] = (folder / name).stat().st_size
            resource["hash"] = hash_of(folder / name)
    descriptor["counterpoise"]["digest"] = digest_of(descriptor)
    file.write_text(json.dumps(descriptor), encoding="utf-8")


def _one_changed(array: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """An array of which one entry is another."""
    if not array.size:
        return array
    flat = array.reshape(-1)
    place = int(generator.integers(flat.size))
    if array.dtype.kind == "U":
        text = str(flat[place])
        cut = int(generator.integers(len(text) + 1))
        flat[place] = text[:cut] + str(generator.choice(["", "9", "x", "-", "]"])) + text[cut + 1 :]
    elif array.dtype.kind in "iuf":
        old = flat[place]
        odd = [0, 1, -1, 2, 10**6, 2**31, -(2**62), old * 2, -old, old + 1]
        odd += [] if array.dtype.kind in "iu" else [1e-300, 1e308, -1e308, np.nan, np.inf, 0.5]
        with np.errstate(all="ignore"):
            flat[place] = np.array(odd[int(generator.integers(len(odd)))]).astype(array.dtype)
    return flat.reshape(array.shape)


# What is done to a whole array.
ARRAY_EDITS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "one": _one_changed,
    "another": _one_changed,
    "cut": lambda array, _: array[:-1] if array.ndim else np.zeros(0),
    "longer": lambda array, _: np.concatenate([np.atleast_1d(array)] * 2),
    "empty": lambda array, _: np.zeros((0, *array.shape[1:]), array.dtype),
    "flat": lambda array, _: array.reshape(-1),
    "deep": lambda array, _: array[None],
    "turned": lambda array, _: array.T[::-1] if array.ndim else array,
    "text": lambda array, _: array.astype(str),
    "whole": lambda array, _: np.zeros(array.shape, np.int8),
    "large": lambda array, _: np.full(array.shape, 1e308),
    "complex": lambda array, _: np.full(array.shape, 1j),
}


def _places(value: Any) -> Any:
    """Every place in a tree of JSON values: what holds it, and its name there."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _near(value: Any, generator: np.random.Generator) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * float(generator.choice([-1, 0.5, 1.001, 2, 1000])) + int(value)
    if isinstance(value, str):
        return value[:-1] + "q"
    if isinstance(value, list):
        return value[::-1]
    return None


def outcome(folder: Path, original: cp.Release, foreign: bool) -> str:
    """What came of an edit: "refused", "equal", "works", or "draws no rows", which a model refuses.

    Anything else is raised. `foreign` edits may be legal.
    """
    try:
        loaded = cp.load(folder)
    except BundleError:
        return "refused"
    equal = is_equal(loaded, original)
    if not foreign:
        assert equal, "loaded as something else"
        return "equal"
    if not equal:
        use(loaded)
    try:
        drawn = loaded.sample(5, seed=0)
    except CounterpoiseError:
        return "draws no rows"
    assert np.isfinite(drawn.weights).all() and np.isfinite(replicates_of(drawn)).all()
    return "works"


def is_equal(one: cp.Release, other: cp.Release) -> bool:
    """Whether two releases have the same table, schema, card and replicates."""
    return (
        one.schema == other.schema
        and json.dumps(one.card, sort_keys=True) == json.dumps(other.card, sort_keys=True)
        and one.read().equals(other.read())
        and np.array_equal(replicates_of(one), replicates_of(other))
    )


def replicates_of(release: cp.Release) -> np.ndarray:
    """The replicate weights, in memory or in the file."""
    if release.stored is not None:
        return release.stored.all_replicates()
    assert release.replicates is not None
    return release.replicates


def use(release: cp.Release) -> None:
    """Ask a release for what it has; it may refuse, in our own words."""
    said = f"{release!r} {release.guarantee} {release.private} {release.ledger}"
    said.encode("utf-8")
    for column in release.schema:
        with suppress(CounterpoiseError):
            (release.mean if column.is_numeric else release.proportion)(column.name)
    with suppress(CounterpoiseError):
        release.total()
    json.dumps(release.card, allow_nan=False)


Edit = Callable[[Path, np.random.Generator], str]


def run(bundle: Path, edits: int, seed: int, edit: Edit) -> Counter[str]:
    """Make edits one by one, each to a fresh copy, and count what came of them."""
    generator = np.random.default_rng(seed)
    original = cp.load(bundle)
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CounterpoiseWarning)
        for number in range(edits):
            folder = Path(temporary) / "copy"
            shutil.copytree(bundle, folder)
            done = edit(folder, generator)
            try:
                counted[outcome(folder, original, foreign=edit is not edit_bytes)] += 1
            except Exception as error:
                raise AssertionError(f"edit {number} of seed {seed}: {done}") from error
            shutil.rmtree(folder)
    return counted


def main() -> None:
    """Run the edits that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stored", action="store_true", help="as if releases were very large")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        bundles = {
            name: make_bundle(Path(temporary) / name, name) for name in ("independent", "mst")
        }
        if options.stored:
            stored_rows.MOST_NUMBERS = 0
        fifth = options.edits // 5
        for what, edits, edit, name in (
            ("bytes", options.edits - 3 * fifth, edit_bytes, "independent"),
            ("values, digest made anew", fifth, edit_values, "independent"),
            ("a model, digests made anew", fifth, edit_model, "independent"),
            ("another model, digests made anew", fifth, edit_model, "mst"),
        ):
            counted = run(bundles[name], edits, options.seed, edit)
            print(f"{edits:,} edits of {what}: {dict(sorted(counted.items()))}")


if __name__ == "__main__":
    main()
