"""Rows of numbers a block at a time: held, or made again at every pass where they are too many.

What the weights ask of the rows are sums over them: means, values, products with a few vectors. A
million rows of hundreds of features need not be in memory together for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from counterpoise.schema import Coded

# Few enough that what is worked out of them stays near the processor.
BLOCK_ROWS = 4096


class RowBlocks(Protocol):
    """Rows of numbers that can be gone through, and of which some can be taken."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of numbers in each."""
        ...

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in order: where they are, and what they are."""
        ...

    def take(self, places: np.ndarray) -> np.ndarray:
        """Some of the rows."""
        ...


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows that are in memory."""

    values: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of numbers in each."""
        return self.values.shape[0], self.values.shape[1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in order: where they are, and what they are."""
        for part in _slices(len(self.values)):
            yield part, self.values[part]

    def take(self, places: np.ndarray) -> np.ndarray:
        """Some of the rows."""
        return self.values[places]


@dataclass(frozen=True, eq=False)
class MadeRows:
    """Rows that are made of a coded table whenever they are gone through."""

    table: Coded
    size: int
    make: Callable[[Coded], np.ndarray]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of numbers in each."""
        return len(self.table), self.size

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in order: where they are, and what they are."""
        for part in _slices(len(self.table)):
            coded = Coded(self.table.schema, self.table.codes[part], self.table.units[part])
            yield part, self.make(coded)

    def held(self) -> HeldRows:
        """The same rows in memory, in single precision."""
        values = np.empty(self.shape, dtype=np.float32)
        for part, rows in self.blocks():
            values[part] = rows
        return HeldRows(values)

    def take(self, places: np.ndarray) -> np.ndarray:
        """Some of the rows."""
        some = [self.make(self.table.take(places[part])) for part in _slices(len(places))]
        return np.concatenate(some) if some else np.empty((0, self.size), dtype=np.float32)


def _slices(rows: int) -> Iterator[slice]:
    for start in range(0, rows, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, rows))
