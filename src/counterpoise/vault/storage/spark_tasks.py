"""What Spark's executors do with private rows: code them, count them, add them up.

A task is a public value that is sent to the executors and runs there over the Arrow batches of a
partition (`mapInArrow`). The coding is `Schema.encode`, the same as in memory. What comes back is
pairs of a key and a whole number, which Spark adds up by key: cells of tables, places in a sum,
texts. Nothing that goes wrong leaves an executor as an exception, whose message and traceback Spark
would write to its logs: of a failure only its kind is told, as a number. [PRIVACY: ground rule 6]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import counterpoise
from counterpoise.errors import CounterpoiseError, VaultError
from counterpoise.schema import Coded, Column, Schema
from counterpoise.schema.incoming import from_arrow
from counterpoise.schema.reading import distinct_texts
from counterpoise.vault.storage.adding import PrivateRows, Summand, added_up, unit_counts
from counterpoise.vault.storage.tabulating import ROWS_A_BLOCK, cells_of, code_kinds

# A table of more cells than this is counted by the cells that occur, not by all that there are.
DENSE_CELLS = 2**20

# Pairs are sent in Arrow batches of so many.
_PAIRS_A_BATCH = 100_000


class WrongVersion(ImportError):
    """An executor has another version of this package than the driver."""


# What a failure is told as: one more than its place here. The first that fits counts.
FAILURES: tuple[type[Exception], ...] = (
    MemoryError,
    WrongVersion,
    ImportError,
    VaultError,
    CounterpoiseError,
    LookupError,
    ArithmeticError,
    UnicodeError,
    ValueError,
    TypeError,
    OSError,
    Exception,
)


def failure_number(error: Exception) -> int:
    """The number that a failure is told as.

    >>> failure_number(ValueError("a private value")) == 1 + FAILURES.index(ValueError)
    True
    """
    return next(number for number, kind in enumerate(FAILURES, start=1) if isinstance(error, kind))


def what_failed(number: int) -> str:
    """What is told of a failure: its kind."""
    kind = FAILURES[number - 1]
    if kind is MemoryError:
        return (
            "memory ran out in an executor; give it more, or spread the rows over more partitions"
        )
    if kind is WrongVersion:
        return (
            "Spark's executors have another version of counterpoise than the driver; install the "
            "same one on all machines"
        )
    return (
        f"{kind.__name__} in an executor; its message is not shown, because it may quote private "
        "rows"
    )


Pairs = Iterator[tuple[Any, np.ndarray]]  # keys, and a whole number for each


class Task(ABC):
    """Work on the batches of one partition; a public value."""

    @abstractmethod
    def pairs(self, batches: Iterator[Any]) -> Pairs:
        """Keys and numbers, which are added up by key over all partitions."""


@dataclass(frozen=True)
class Reading:
    """How the columns of a frame, `c0` and so on, are read: as these columns of a schema."""

    schema: Schema  # as the private table is spelled

    def tables(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Blocks of rows as Arrow tables, with the schema's names."""
        import pyarrow

        def joined(parts: list[Any]) -> Any:
            return pyarrow.Table.from_batches(parts).rename_columns(list(self.schema.names))

        parts: list[Any] = []
        rows = 0
        for batch in batches:
            parts.append(batch)
            rows += batch.num_rows
            if rows >= ROWS_A_BLOCK:
                yield joined(parts)
                parts, rows = [], 0
        if rows:
            yield joined(parts)


@dataclass(frozen=True)
class Packing:
    """Codes as bytes: column by column, each in as few bytes a code as its size needs."""

    sizes: tuple[int, ...]

    def pack(self, codes: np.ndarray) -> bytes:
        """All columns, one after the other."""
        return b"".join(
            codes[:, place].astype(kind).tobytes() for place, kind in enumerate(self._kinds())
        )

    def unpack(self, content: bytes, rows: int) -> list[np.ndarray]:
        """The codes of each column.

        >>> packing = Packing((3, 300))
        >>> [part.tolist() for part in packing.unpack(packing.pack(np.array([[2, 299]])), 1)]
        [[2], [299]]
        """
        found, start = [], 0
        for kind in self._kinds():
            found.append(np.frombuffer(content, kind, rows, start))
            start += rows * kind.itemsize
        return found

    def _kinds(self) -> list[np.dtype]:
        return code_kinds(self.sizes)


@dataclass(frozen=True)
class PackCodes:
    """Codes the rows; a block of them is one row of what comes out: how many, and their bytes.

    These are what is kept in the executors' memory. A failure is kept too, and told when the codes
    are counted.
    """

    reading: Reading
    packing: Packing
    version: str = counterpoise.__version__

    OUTPUT = "failure int, size int, codes binary"

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The blocks of a partition, as Arrow batches."""
        import pyarrow

        def row(failure: int, size: int, codes: bytes) -> Any:
            columns = [pyarrow.array([failure], "int32"), pyarrow.array([size], "int32")]
            columns.append(pyarrow.array([codes], "binary"))
            return pyarrow.RecordBatch.from_arrays(columns, ["failure", "size", "codes"])

        try:
            require_version(self.version)
            for table in self.reading.tables(batches):
                codes = self.reading.schema.encode(table).codes
                yield row(0, len(codes), self.packing.pack(codes))
            return
        except Exception as error:
            failure = failure_number(error)
        yield row(failure, 0, b"")


class KeptFailure(Exception):
    """Codes could not be made when they were to be kept."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number


@dataclass(frozen=True)
class CountCliques(Task):
    """The cells of several contingency tables, one table after the other, from packed codes."""

    packing: Packing
    cliques: tuple[tuple[int, ...], ...]  # the places of their columns

    def pairs(self, batches: Iterator[Any]) -> Pairs:
        """The cells that occur, and the rows in them."""
        shapes = [tuple(self.packing.sizes[place] for place in clique) for clique in self.cliques]
        cells = [math.prod(shape) for shape in shapes]
        starts = np.cumsum([0, *cells])
        dense = [np.zeros(size if size <= DENSE_CELLS else 0, dtype=np.int64) for size in cells]
        for codes in self._blocks(batches):
            for place, clique in enumerate(self.cliques):
                cell = cells_of(codes, clique, self.packing.sizes)
                if cells[place] <= DENSE_CELLS:
                    dense[place] += np.bincount(cell, minlength=cells[place])
                else:
                    found, counts = np.unique(cell, return_counts=True)
                    yield starts[place] + found, counts
        for place, counts in enumerate(dense):
            found = np.flatnonzero(counts)
            yield starts[place] + found, counts[found]

    def _blocks(self, batches: Iterator[Any]) -> Iterator[list[np.ndarray]]:
        for batch in batches:
            columns = (batch.column(place).to_pylist() for place in range(3))
            for failure, size, content in zip(*columns, strict=True):
                if failure:
                    raise KeptFailure(failure)
                yield self.packing.unpack(content, size)


@dataclass(frozen=True)
class CountColumns(Task):
    """The cells of several columns by themselves, one column after the other, each coded anew."""

    reading: Reading
    columns: tuple[Column, ...]  # as the private table is spelled

    def pairs(self, batches: Iterator[Any]) -> Pairs:
        """Every cell, and the rows in it."""
        words = self.reading.schema.missing_values
        schemas = [Schema((column,), words) for column in self.columns]
        counts = [np.zeros(column.size, dtype=np.int64) for column in self.columns]
        for table in self.reading.tables(batches):
            for schema, found in zip(schemas, counts, strict=True):
                codes = schema.encode(table.select(list(schema.names))).codes[:, 0]
                found += np.bincount(codes, minlength=len(found))
        yield from _places(np.concatenate(counts))


@dataclass(frozen=True)
class CountUnits(Task):
    """The rows in each of `cells` equal parts of the range of one column, without the nulls."""

    reading: Reading  # of this column alone
    cells: int

    def pairs(self, batches: Iterator[Any]) -> Pairs:
        """Every cell, and the rows in it."""
        counts = np.zeros(self.cells, dtype=np.int64)
        for table in self.reading.tables(batches):
            counts += unit_counts(self.reading.schema.encode(table), 0, self.cells)
        yield from _places(counts)


@dataclass(frozen=True)
class CountTexts(Task):
    """The different texts of one column, without the nulls."""

    reading: Reading  # of this column alone

    def pairs(self, batches: Iterator[Any]) -> Pairs:
        """The texts that occur, and the rows that have them."""
        [column] = self.reading.schema
        words = self.reading.schema.words_for_null(column)
        for table in self.reading.tables(batches):
            positions, texts = distinct_texts(from_arrow(table.column(0)), words)
            counts = np.bincount(positions[positions >= 0], minlength=len(texts))
            found = np.flatnonzero(counts)
            yield [str(texts[place]) for place in found], counts[found]


@dataclass(frozen=True)
class AddUp(Task):
    """A sum of whole numbers over coded rows."""

    reading: Reading
    released: Schema  # what the rows are coded as
    summand: Summand

    def pairs(self, batches: Iterator[Any]) -> Pairs:
        """Every place of the sum, and what is in it; in one place more, how many rows."""
        rows = 0

        def coded() -> Iterator[Coded]:
            nonlocal rows
            for table in self.reading.tables(batches):
                read = self.reading.schema.encode(table)
                rows += len(read)
                yield PrivateRows(self.released, read.codes, read.units)

        yield from _places(np.append(added_up(coded(), self.summand), rows))


@dataclass(frozen=True)
class Ready(Task):
    """Nothing but a sign that tasks run where the rows are."""

    def pairs(self, batches: Iterator[Any]) -> Pairs:
        """One pair."""
        for _ in batches:
            pass
        yield from _places(np.ones(1, dtype=np.int64))


def require_version(version: str) -> None:
    """Refuse work that another version has planned."""
    if version != counterpoise.__version__:
        raise WrongVersion


@dataclass(frozen=True)
class Gather:
    """A task as Spark runs it: pairs as Arrow batches, and failures as numbers."""

    task: Task
    key: str  # "bigint" or "string"
    version: str = counterpoise.__version__

    @property
    def output(self) -> str:
        """The columns that come out, for Spark."""
        return f"failure int, key {self.key}, n bigint"

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The pairs of a partition."""
        try:
            require_version(self.version)
            for keys, numbers in self.task.pairs(batches):
                for start in range(0, len(numbers), _PAIRS_A_BATCH):
                    part = slice(start, start + _PAIRS_A_BATCH)
                    yield self._batch(0, keys[part], numbers[part])
            return
        except KeptFailure as kept:
            failure = kept.number
        except Exception as error:
            failure = failure_number(error)
        yield self._batch(failure, [None], [0])

    def _batch(self, failure: int, keys: Any, numbers: Any) -> Any:
        import pyarrow

        columns = [
            pyarrow.array(np.full(len(numbers), failure, dtype=np.int32)),
            pyarrow.array(keys, "int64" if self.key == "bigint" else "string"),
            pyarrow.array(numbers, "int64"),
        ]
        return pyarrow.RecordBatch.from_arrays(columns, ["failure", "key", "n"])


def _places(numbers: np.ndarray) -> Pairs:
    """Every place that is not zero, and what is in it."""
    found = np.flatnonzero(numbers)
    yield found, numbers[found]
