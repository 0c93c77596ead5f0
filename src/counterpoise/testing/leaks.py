"""A private table made to be recognised, and a search for it in all that a method returns.

The table's numbers are drawn with all digits, so that one of them in an object, a text or a file
is no accident; its rows are so rare among all rows of the schema that several of their codes side
by side are none either; and its number of rows and its exact counts are known here. The search
walks attributes, slots, closures, containers, arrays and errors, and looks for the rows as they
were and as the vault codes them. It finds what is kept as it was. What a method disguises, it
cannot find: the wall is that a method never gets hold of a row.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.schema import Column, Schema
from counterpoise.vault import Vault

ROWS = 1_999
TEXT = "Canary-Nightingale-5147"

PRIVATE_SCHEMA = Schema(
    [
        Column.categorical("name", ["Ann", "Bob", "other"], other="other"),
        Column.categorical("ward", [f"ward {i}" for i in range(16)]),
        Column.ordinal("hour", list(range(16))),
        Column.continuous("wealth", 0.0, 100_000.0, bins=64),
    ]
)

# So many codes of a column in a row are no accident, nor is so large a part of whole coded rows:
# one row in 25 would be there by chance.
_RUN = 10
_FEWEST_ROWS, _PART_OF_ROWS = 5, 0.5

# A number of single precision is shared by chance about once in four thousand.
_FEWEST_SINGLES, _PART_OF_SINGLES = 3, 0.02


@cache
def private_rows() -> pd.DataFrame:
    """The table; one name in it is no category of the schema."""
    generator = np.random.default_rng(2718)
    rows = pd.DataFrame(
        {
            "name": generator.choice(["Ann", "Bob"], ROWS),
            "ward": generator.choice([f"ward {i}" for i in range(16)], ROWS),
            "hour": generator.integers(0, 16, ROWS),
            "wealth": generator.uniform(1.0, 99_999.0, ROWS),
        }
    )
    rows.loc[7, "name"] = TEXT
    return rows


@dataclass(frozen=True, eq=False)
class _Secrets:
    numbers: np.ndarray  # as they were, and as the vault codes them
    codes: np.ndarray  # a row each
    counts: tuple[np.ndarray, ...]  # of every column with many codes


@cache
def _secrets() -> _Secrets:
    coded = PRIVATE_SCHEMA.encode(private_rows())
    raw, unit = private_rows()["wealth"].to_numpy(), coded.units[:, 3]
    codes = np.asarray(coded.codes, dtype=np.int64)
    counts = tuple(np.bincount(column) for column in codes[:, 1:].T)
    return _Secrets(np.concatenate([raw, unit]), codes, counts)


def traces(value: Any) -> list[str]:
    """What an object shows of the private table, and where; the exact number of rows left out."""
    found = [
        f"{what} in {place}" for part, place in _reachable(value, "") for what in _found_in(part)
    ]
    return list(dict.fromkeys(found))


def holds_the_exact_rows(value: Any) -> bool:
    """Whether the exact number of rows is anywhere in an object.

    Noise may come to nothing, so a single find is no proof; the same in several fits is one.
    """
    for part, _ in _reachable(value, ""):
        if isinstance(part, str) and re.search(rf"(?<![\d.]){ROWS}(?![\d.])", part):
            return True
        array = _numbers(part)
        if array is not None and (array == ROWS).any():
            return True
    return False


def _found_in(part: Any) -> Iterator[str]:
    if isinstance(part, Vault):
        yield "the vault"
    elif isinstance(part, str):
        yield from _found_in_text(part)
    elif isinstance(part, bytes):
        yield from _found_in_text(part.decode("latin-1"))
        for start in range(8):
            numbers = np.frombuffer(part[start : start + (len(part) - start) // 8 * 8])
            if np.isin(numbers, _secrets().numbers).any():
                yield "a private number"
    elif (array := _numbers(part)) is not None:
        yield from _found_in_numbers(array)


def _found_in_text(text: str) -> Iterator[str]:
    if TEXT in text:
        yield "a private text"
    written = [float(number) for number in re.findall(r"\d+\.\d{6,}", text)]
    if np.isin(written, _secrets().numbers).any():
        yield "a private number"


def _found_in_numbers(array: np.ndarray) -> Iterator[str]:
    secrets = _secrets()
    if array.dtype.kind == "f":
        if array.dtype == np.float32:
            known = np.isin(array, secrets.numbers.astype(np.float32))
            if known.sum() >= _FEWEST_SINGLES and known.mean() >= _PART_OF_SINGLES:
                yield "private numbers"
        elif np.isin(array, secrets.numbers).any():
            yield "a private number"
    for whole in _whole_numbers(array):
        if any(_has_run(whole.ravel(), counts, len(counts)) for counts in secrets.counts):
            yield "exact counts"
        if any(_has_run(whole.ravel("F"), column, _RUN) for column in secrets.codes[:, 1:].T):
            yield "coded private rows"
        if whole.ndim == 2 and len(PRIVATE_SCHEMA) in whole.shape:
            rows = whole if whole.shape[1] == len(PRIVATE_SCHEMA) else whole.T
            known = np.isin(_row_keys(rows), _row_keys(secrets.codes))
            if known.sum() >= _FEWEST_ROWS and known.mean() >= _PART_OF_ROWS:
                yield "coded private rows"


def _numbers(part: Any) -> np.ndarray | None:
    """A number, or an array of numbers, as an array."""
    if isinstance(part, bool | np.bool_):
        return None
    if isinstance(part, int | float | np.integer | np.floating):
        return np.array([part]) if abs(float(part)) < 2**62 else None
    return part if isinstance(part, np.ndarray) and part.dtype.kind in "iuf" else None


def _whole_numbers(array: np.ndarray) -> Iterator[np.ndarray]:
    """An array as whole numbers, where it holds some: as it is, or as parts of all rows."""
    if array.dtype.kind in "iu":
        yield array.astype(np.int64)
        return
    if array.size == 0 or not abs(array).max() < 2**40:
        return
    for scaled in (array, array * ROWS):
        near = np.rint(scaled)
        if (abs(scaled - near) < 1e-6).all():
            yield near.astype(np.int64)


def _has_run(flat: np.ndarray, sequence: np.ndarray, width: int) -> bool:
    """Whether `width` neighbours of a sequence stand side by side among the values."""
    if len(flat) < width:
        return False
    # Windows are compared by a hash: sums modulo 2^64 with odd multipliers.
    odd = np.random.default_rng(width).integers(0, 2**62, width) * 2 + 1
    ours, theirs = (
        np.lib.stride_tricks.sliding_window_view(values.astype(np.int64), width) @ odd
        for values in (flat, sequence)
    )
    return bool(np.isin(ours, theirs).any())


def _row_keys(codes: np.ndarray) -> np.ndarray:
    """A number for every row of codes; -1 for a row that is none."""
    sizes = np.array(PRIVATE_SCHEMA.sizes)
    valid = ((codes >= 0) & (codes < sizes)).all(axis=1)
    keys = np.full(len(codes), -1)
    keys[valid] = np.ravel_multi_index(tuple(codes[valid].T), tuple(sizes))
    return keys


def _reachable(value: Any, place: str) -> Iterator[tuple[Any, str]]:
    """An object and all it refers to, each with the way to it."""
    seen: dict[int, Any] = {}
    waiting = [(value, place)]
    while waiting:
        part, where = waiting.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part  # kept alive, or another object could come by its identity
        yield part, where.lstrip(".") or "it"
        waiting += [(inner, where + step) for inner, step in _inner(part)]


def _inner(part: Any) -> list[tuple[Any, str]]:
    """What an object refers to directly."""
    if part is None or isinstance(part, str | bytes | int | float | type | types.ModuleType):
        return []
    if isinstance(part, Mapping):
        return [(key, f"[{key!r}]") for key in part] + [(part[k], f"[{k!r}]") for k in part]
    if isinstance(part, list | tuple | set | frozenset):
        return [(inner, f"[{index}]") for index, inner in enumerate(part)]
    if isinstance(part, pd.DataFrame):
        return [(part[name].to_numpy(), f"[{name!r}]") for name in part.columns]
    if isinstance(part, np.ndarray):
        return [(list(part.ravel()), "")] if part.dtype.hasobject else []
    if isinstance(part, types.FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or () if _is_filled(cell)]
        return [(cells, ".__closure__"), (part.__defaults__, ".__defaults__")]
    if isinstance(part, types.MethodType):
        return [(part.__self__, ".__self__"), (part.__func__, ".__func__")]
    if isinstance(part, partial):
        return [(part.func, ".func"), (part.args, ".args"), (part.keywords, ".keywords")]
    inner = [(getattr(part, slot), f".{slot}") for slot in _slots(part) if hasattr(part, slot)]
    inner += [(held, f".{name}") for name, held in getattr(part, "__dict__", {}).items()]
    if isinstance(part, BaseException):
        inner += [(part.args, ".args"), (str(part), ""), (part.__cause__, ".__cause__")]
        if not part.__suppress_context__:
            inner.append((part.__context__, ".__context__"))
    elif hasattr(part, "__array__"):
        inner.append((np.asarray(part), ""))
    else:
        inner.append((repr(part), ""))
    return inner


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False


def _slots(part: Any) -> list[str]:
    found: list[str] = []
    for kind in type(part).__mro__:
        slots = vars(kind).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [slot for slot in found if not slot.startswith("__")]
