"""A private table with values that nothing may ever show, and a search for them everywhere.

The canaries are a text, a number and a date that occur once, and row counts so odd that their
exact value would be recognised. `search` walks an object and all it refers to.
"""

import base64
import contextlib
import functools
import gc
import re
import types
from collections import deque
from collections.abc import Iterator, Mapping
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


# Bytes written as letters and digits, in which five digits side by side are nothing but chance: in
# the six megabytes of a long course, one time in a hundred.
ENCODED = re.compile(rb"(?:[A-Za-z0-9+/]{4}){64,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def traces_in_files(folder: Path) -> list[str]:
    """The canaries that any file below a folder holds, as text or as raw numbers."""
    found = []
    for file in folder.rglob("*"):
        if not file.is_file():
            continue
        content = ENCODED.sub(lambda run: base64.b64decode(run[0]), file.read_bytes())
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
    return sorted({trace for part in reachable(value) for trace in _traces(part)})


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


def numbers(value: Any) -> list[Any]:
    """All numbers, texts and arrays that can be reached from an object, in a fixed order."""
    found: list[Any] = []
    for part in reachable(value, with_repr=False):
        if isinstance(part, np.ndarray) and part.dtype != object:
            found.append((part.dtype.str, part.shape, part.tobytes()))
        elif isinstance(part, str | bytes | int | float | np.generic):
            found.append(part if part == part else "not a number")
    return found


def reachable(
    value: Any, seen: dict[int, Any] | None = None, with_repr: bool = True
) -> Iterator[Any]:
    """An object and all that it refers to: attributes, slots, elements, closures and bound selves.

    Classes, modules and what a function finds in its module are not part of a value.
    """
    seen = {} if seen is None else seen
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, type | types.ModuleType):
            continue
        seen[id(part)] = part  # kept alive, or another object could come by its identity
        yield part
        inner = list(_parts(part))
        if with_repr and not isinstance(part, _PLAIN | np.ndarray | types.FunctionType):
            inner.append(repr(part))
        waiting.extend(reversed(inner))


_PLAIN = str | bytes | bytearray | int | float | complex | np.generic | type(None)


def _parts(value: Any) -> Iterator[Any]:
    """What an object refers to directly."""
    if isinstance(value, _PLAIN):
        return
    if isinstance(value, pd.DataFrame):
        yield from (value[name].to_numpy() for name in value.columns)
        yield value.index.to_numpy()
    elif isinstance(value, pd.Series | pd.Index):
        yield value.to_numpy()
    elif isinstance(value, np.ndarray):
        if value.dtype == object:
            yield from value.ravel().tolist()
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from (key, part)
    elif isinstance(value, set | frozenset):
        yield from sorted(value, key=repr)
    elif isinstance(value, list | tuple | deque):
        yield from value
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.CellType):
        with contextlib.suppress(ValueError):  # an empty cell
            yield value.cell_contents
    elif isinstance(value, types.FunctionType):
        yield from (value.__closure__, value.__defaults__, value.__kwdefaults__)
    elif isinstance(value, types.GeneratorType):
        yield value.gi_frame.f_locals if value.gi_frame is not None else None
    elif isinstance(value, Iterator):
        yield from gc.get_referents(value)
    if isinstance(value, BaseException):
        yield from (value.args, str(value), value.__cause__)
        if not value.__suppress_context__:
            yield value.__context__
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)
    if not isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        yield getattr(value, "__dict__", None)
