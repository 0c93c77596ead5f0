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

    def raw_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The same before they are turned, for products with few vectors; see `turn`."""
        ...

    @property
    def turn(self) -> Turn | None:
        """What makes rows of raw ones."""
        ...

    def take(self, places: np.ndarray) -> np.ndarray:
        """Some of the rows."""
        ...


@dataclass(frozen=True, eq=False)
class Turn:
    """Rows z = (f - centre) D of raw rows f.

    Products with few vectors are cheaper with the raw rows: z.theta = f.t - centre.t for
    t = D theta, and sums of z are those of f turned.
    """

    centre: np.ndarray
    directions: np.ndarray

    def vectors(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The vectors for raw rows, and what to take from their products."""
        turned = self.directions @ thetas
        return turned, self.centre @ turned

    def sums(self, raw: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """The weighted sums of rows, of those of raw ones and the totals of the weights."""
        found: np.ndarray = self.directions.T @ (raw - self.centre[:, None] * totals)
        return found


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows that are in memory."""

    values: np.ndarray
    turn = None

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of numbers in each."""
        return self.values.shape[0], self.values.shape[1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in order: where they are, and what they are."""
        for part in slices(len(self.values)):
            yield part, self.values[part]

    raw_blocks = blocks

    def take(self, places: np.ndarray) -> np.ndarray:
        """Some of the rows."""
        return self.values[places]


@dataclass(frozen=True, eq=False)
class MadeRows:
    """Rows in single precision that are made of a coded table whenever they are gone through."""

    table: Coded
    raw: Callable[[Coded], np.ndarray]
    turn: Turn

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of numbers in each."""
        return len(self.table), self.turn.directions.shape[1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in order: where they are, and what they are."""
        for part in slices(len(self.table)):
            yield part, self._turned(self._some(part))

    def raw_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The same before they are turned."""
        for part in slices(len(self.table)):
            yield part, self.raw(self._some(part)).astype(np.float32, copy=False)

    def held(self) -> HeldRows:
        """The same rows in memory."""
        values = np.empty(self.shape, dtype=np.float32)
        for part, rows in self.blocks():
            values[part] = rows
        return HeldRows(values)

    def take(self, places: np.ndarray) -> np.ndarray:
        """Some of the rows."""
        found = np.empty((len(places), self.shape[1]), dtype=np.float32)
        for part in slices(len(places)):
            found[part] = self._turned(self.table.take(places[part]))
        return found

    def _some(self, part: slice) -> Coded:
        return Coded(self.table.schema, self.table.codes[part], self.table.units[part])

    def _turned(self, some: Coded) -> np.ndarray:
        centred = (self.raw(some) - self.turn.centre).astype(np.float32)
        found: np.ndarray = centred @ self.turn.directions.astype(np.float32)
        return found


def slices(rows: int) -> Iterator[slice]:
    """The blocks of so many rows."""
    for start in range(0, rows, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, rows))
