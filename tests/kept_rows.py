"""Coded rows that somebody kept: a watch over all that a storage gives away.

Rows leave storage as codes and unit values, where no canary of a text or a date is left. So what
is given away is followed in two ways. By reference: every batch, table and vector is remembered
weakly, and has to be gone when the query is done. By value: continuous columns of random numbers
make every unit value unlike any other, sixteen codes a column make ten codes in a row unlike any
other ten, and the features of private rows are as telling; a copy of any of them is recognised in
whatever is returned or written.
"""

import gc
import math
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from counterpoise.schema import Coded, Column, Schema
from counterpoise.vault import Vault
from counterpoise.vault.storage.memory import MemoryStorage
from counterpoise.vault.storage.out_of_core import DuckDBStorage
from tests import canary

CODES = [f"v{code:02d}" for code in range(16)]

# 16^8 cells: that a synthetic row has the codes of a private one is not to be expected.
WIDE = Schema(
    [
        Column.categorical("a", CODES),
        *(Column.continuous(name, -3.0, 11.0, bins=16) for name in "bcdefgh"),
    ]
)
NARROW = Schema([WIDE["a"], WIDE["e"]])

# How many codes of a column, one after the other, are recognised.
RUN = 10
# A column needs so many codes, and a table so many cells, for codes to be telling.
TELLING_CODES, TELLING_CELLS = 16, 2**30

GIVES = ("counts", "unit_counts", "provisional_counts", "distinct", "add_up", "batches")


def table(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Independent columns, every number of its own."""
    generator = np.random.default_rng(seed)
    numbers = {name: generator.uniform(-3.0, 11.0, rows) for name in "bcdefgh"}
    return pd.DataFrame({"a": generator.choice(CODES, rows)} | numbers)


class Watch:
    """What was given away, and what it would be recognised by."""

    def __init__(self) -> None:
        self._given: list[tuple[str, weakref.ref]] = []
        self._floats = np.array([])
        self._rows = np.array([], dtype=np.uint64)
        self._runs = np.array([], dtype=np.uint64)
        self._tables: list[np.ndarray] = []
        self._columns = 0

    def note(self, origin: str, value: Any) -> None:
        """Remember what was given away: weakly itself, and by value what is telling of it."""
        if isinstance(value, list | tuple):
            for part in value:
                self.note(origin, part)
        elif isinstance(value, Coded):
            self._given += [
                (origin, weakref.ref(part)) for part in (value, value.codes, value.units)
            ]
            self.recognise(value)
        elif isinstance(value, np.ndarray):
            self._given.append((origin, weakref.ref(value)))
            if value.dtype.kind == "f":
                self._floats = np.union1d(self._floats, _telling(value))
            elif value.size >= 4 and np.count_nonzero(value) >= 2:
                self._tables.append(value.ravel().astype(float))

    def recognise(self, rows: Coded) -> None:
        """Know copies of these private rows."""
        kinds = [column.kind for column in rows.schema]
        continuous = [place for place, kind in enumerate(kinds) if kind == "continuous"]
        self._floats = np.union1d(self._floats, _telling(rows.units[:, continuous]))
        sizes = rows.schema.shape(rows.schema.names)
        if math.prod(sizes) >= TELLING_CELLS:
            self._columns = len(sizes)
            self._rows = np.union1d(self._rows, _hashes(rows.codes))
        codes = rows.codes[:, np.array(sizes) >= TELLING_CODES]
        self._runs = np.union1d(self._runs, _run_hashes(codes))

    def alive(self) -> list[str]:
        """Where what is still alive was given away."""
        gc.collect()
        return sorted({origin for origin, reference in self._given if reference() is not None})

    def search(self, value: Any) -> list[str]:
        """What an object, or anything it refers to, has of the private rows."""
        return sorted({trace for part in canary.reachable(value) for trace in self._traces(part)})

    def search_files(self, folder: Path) -> list[str]:
        """What the files below a folder have of them, as arrays, columns or raw bytes."""
        found = []
        for file in sorted(folder.rglob("*")):
            if not file.is_file():
                continue
            content: list[Any] = [file.read_bytes()]
            if file.suffix == ".npz":
                with np.load(file, allow_pickle=False) as arrays:
                    content += [arrays[name] for name in arrays.files]
            if file.suffix == ".parquet":
                content.append(pd.read_parquet(file))
            found += [f"{file.name}: {trace}" for trace in self.search(content)]
        return found

    def _traces(self, part: Any) -> list[str]:
        if isinstance(part, bool | np.bool_):
            return []
        if isinstance(part, float | np.floating):
            part = np.array([part])
        elif isinstance(part, list | tuple) and part and all(type(one) is int for one in part):
            part = np.array(part)
        elif isinstance(part, bytes | bytearray | memoryview):
            known = any(np.isin(raw, self._floats).any() for raw in _views(bytes(part)))
            return ["a private number, as bytes"] if known else []
        if not isinstance(part, np.ndarray) or part.size == 0:
            return []
        found = []
        if part.dtype == np.float64 and np.isin(part, self._floats).any():
            found.append("a private number")
        if part.dtype == np.float32:
            known = np.isin(part, self._floats.astype(np.float32))
            # A single one may be chance, at 24 bits.
            found += (
                ["private numbers, rounded"] if known.sum() >= max(RUN, part.size // 10) else []
            )
        if _is_whole(part):
            found += self._codes_in(part.astype(np.int64, copy=False))
        if part.dtype.kind in "iuf" and any(
            len(table) == part.size and np.array_equal(table, part.ravel())
            for table in self._tables
        ):
            found.append("exact counts")
        return found

    def _codes_in(self, part: np.ndarray) -> list[str]:
        found = []
        sides = [np.atleast_2d(part), np.atleast_2d(part).T] if part.ndim <= 2 else []
        for side in sides:
            if side.shape[1] == self._columns and np.isin(_hashes(side), self._rows).any():
                found.append("the codes of a private row")
            if np.isin(_run_hashes(side), self._runs).any():
                found.append("the codes of private rows")
        return found


@contextmanager
def watch(*private: Coded) -> Iterator[Watch]:
    """Watch every storage and every feature map that a vault applies to what is in it."""
    seen = Watch()
    for rows in private:
        seen.recognise(rows)
    patches = [
        mock.patch.object(kind, name, _noting(seen, name, getattr(kind, name)))
        for kind in (MemoryStorage, DuckDBStorage)
        for name in GIVES
    ]
    patches += [
        mock.patch.object(Vault, name, _noting_features(seen, getattr(Vault, name)))
        for name in ("sums", "minimise", "minimise_perturbed")
    ]
    for patch in patches:
        patch.start()
    try:
        yield seen
    finally:
        for patch in patches:
            patch.stop()


def _noting(seen: Watch, name: str, method: Any) -> Any:
    def stream(self, *arguments, **options):
        for batch in method(self, *arguments, **options):
            seen.note(name, batch)
            yield batch
            del batch  # or the stream itself would hold it

    def once(self, *arguments, **options):
        given = method(self, *arguments, **options)
        seen.note(name, given)
        return given

    return stream if name == "batches" else once


class _NotedFeatures:
    """A feature map whose vectors of private rows are watched."""

    def __init__(self, features: Any, seen: Watch):
        self._features, self._seen = features, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._features, name)

    def __call__(self, rows: Coded) -> np.ndarray:
        values = self._features(rows)
        self._seen.note("features", values)
        return values


def _noting_features(seen: Watch, method: Any) -> Any:
    def ask(self, features, *arguments, **options):
        return method(self, _NotedFeatures(features, seen), *arguments, **options)

    return ask


def _telling(values: np.ndarray) -> np.ndarray:
    """Numbers that occur once and have a long binary expansion: nobody comes by them by chance."""
    found, times = np.unique(values[np.isfinite(values)], return_counts=True)
    once = found[times == 1]
    return once[once * 2.0**30 != np.rint(once * 2.0**30)]


def _is_whole(part: np.ndarray) -> bool:
    if part.dtype.kind != "f":
        return part.dtype.kind in "iu"
    return bool(np.all(np.abs(part) < 2**31) and np.all(part == np.rint(part)))


def _factors(count: int) -> np.ndarray:
    """Odd numbers for a hash; each count has its own."""
    return np.random.default_rng(count).integers(1, 2**63, count, dtype=np.uint64) * 2 + 1


def _hashes(rows: np.ndarray) -> np.ndarray:
    """One number a row, that no other row has."""
    return (rows.astype(np.uint64) * _factors(rows.shape[1])).sum(axis=1, dtype=np.uint64)


def _run_hashes(columns: np.ndarray) -> np.ndarray:
    """One number for every `RUN` codes that follow each other in a column."""
    starts = len(columns) - RUN + 1
    if starts < 1:
        return np.array([], dtype=np.uint64)
    found = np.zeros((starts, columns.shape[1]), dtype=np.uint64)
    for place, factor in enumerate(_factors(RUN)):
        found += columns[place : place + starts].astype(np.uint64) * factor
    return found


def _views(content: bytes) -> Iterator[np.ndarray]:
    for start in range(8):
        whole = content[start : start + (len(content) - start) // 8 * 8]
        if whole:
            yield np.frombuffer(whole, dtype=np.float64)
