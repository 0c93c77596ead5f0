"""A private table with values that nothing may ever show, and a search for them everywhere.

The canaries are a text, a number and a date that occur once, and row counts so odd that their
exact value would be recognised. `search` walks an object and all it refers to.
"""

import dataclasses
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.schema import Column, Schema

TEXT = "Canary-Zebrafinch-8231"
NUMBER = 48213.678125
DATE = "1931-07-19"
ROWS = 90_001  # the exact number of rows, which is private under add/remove
ILL = 31_337  # the exact number of rows with ill = yes

SCHEMA = Schema(
    [
        Column.categorical("name", ["Ann", "Bob", "other"], other="other"),
        Column.categorical("ill", ["no", "yes"]),
        Column.continuous("wealth", 0.0, 100_000.0, nullable=True),
    ]
)


def table() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "name": generator.choice(["Ann", "Bob"], ROWS),
            "ill": np.where(np.arange(ROWS) < ILL, "yes", "no"),
            "wealth": generator.uniform(0, 1000, ROWS).round(2),
            "born": "1980-01-01",
        }
    )
    rows.loc[7, ["name", "wealth", "born"]] = [TEXT, NUMBER, DATE]
    return rows


def traces_in_text(text: str) -> list[str]:
    """The canaries that a text shows."""
    plain = text.replace(",", "").replace("_", "")
    patterns = {
        "text": re.escape(TEXT),
        "number": re.escape("48213.67"),
        "date": re.escape(DATE),
        "rows": rf"(?<![\d.]){ROWS}(?![\d.])",
        "ill": rf"(?<![\d.]){ILL}(?![\d.])",
        "not ill": rf"(?<![\d.]){ROWS - ILL}(?![\d.])",
    }
    return [
        label
        for label, pattern in patterns.items()
        if re.search(pattern, text) or re.search(pattern, plain)
    ]


def traces_in_files(folder: Path) -> list[str]:
    """The canaries that any file below a folder holds, as text or as raw numbers."""
    found = []
    for file in folder.rglob("*"):
        if not file.is_file():
            continue
        content = file.read_bytes()
        found += [f"{file.name}: {trace}" for trace in traces_in_text(content.decode("latin-1"))]
        if np.float64(NUMBER).tobytes() in content:
            found.append(f"{file.name}: number, in binary")
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                kept = {name: arrays[name] for name in arrays.files}
            texts = [str(array) for array in kept.values() if array.dtype.kind == "U"]
            found += [f"{file.name}: {trace}" for trace in search([kept, texts])]
        if file.suffix == ".parquet":
            found += [f"{file.name}: {trace}" for trace in search(pd.read_parquet(file))]
    return found


def search(value: Any) -> list[str]:
    """The canaries in an object or anything that it refers to."""
    return sorted({trace for part in _reachable(value, {}) for trace in _traces(part)})


def _traces(part: Any) -> list[str]:
    if isinstance(part, str):
        return traces_in_text(part)
    if isinstance(part, bool | np.bool_):
        return []
    if isinstance(part, int | float | np.integer | np.floating):
        exact = {ROWS: "rows", ILL: "ill", ROWS - ILL: "not ill", NUMBER: "number"}
        return [exact[part]] if part in exact else []
    if isinstance(part, np.ndarray) and part.dtype.kind in "iuf":
        return [
            label
            for label, number in (
                ("rows", ROWS),
                ("ill", ILL),
                ("not ill", ROWS - ILL),
                ("number", NUMBER),
            )
            if (part == number).any()
        ]
    return []


def _reachable(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    if id(value) in seen or isinstance(value, type | types.ModuleType | types.FunctionType):
        return
    seen[id(value)] = value  # kept alive, or another object could come by its identity
    yield value
    if isinstance(value, str | bytes | int | float):
        return
    if isinstance(value, pd.DataFrame):
        for name in value.columns:
            yield from _reachable(value[name].to_numpy(), seen)
        return
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            for part in value.ravel():
                yield from _reachable(part, seen)
        return
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _reachable(key, seen)
            yield from _reachable(part, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _reachable(part, seen)
    if isinstance(value, BaseException):
        yield from _reachable([*value.args, str(value), value.__cause__], seen)
        if not value.__suppress_context__:
            yield from _reachable(value.__context__, seen)
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        yield from _reachable(vars(value) if hasattr(value, "__dict__") else {}, seen)
    yield repr(value)
