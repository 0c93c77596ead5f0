"""Rows of numbers a block at a time: held, or made again at every pass where they are too many.

What the weights ask of the rows are sums over them: means, values, products with a few vectors. A
million rows of hundreds of features need not be in memory together for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from counterpoise.schema import Coded

# Few enough that what is worked out of them stays near the processor; and no power of two, at which
# the values of a row would lie where they drive each other out of it.
BLOCK_ROWS = 1000
# Above this many numbers, rows are made again at every pass.
MOST_HELD = 150_000_000


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

    @property
    def is_made(self) -> bool:
        """Whether they are made again at every pass, so that a pass is dear."""
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

    def rows(self, raw: np.ndarray) -> np.ndarray:
        """Rows of raw ones, in single precision."""
        # Raw rows that are in single precision already lose nothing by staying in it.
        centred = raw - self.centre.astype(raw.dtype)
        directions = self.directions.astype(np.float32)
        found: np.ndarray = centred.astype(np.float32, copy=False) @ directions
        return found

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
    """Rows that are in memory; those of a part stand for others, as many as `stands_for` says."""

    values: np.ndarray
    stands_for: np.ndarray | None = None
    turn = None
    is_made = False

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
class TurnedRows:
    """Rows whose raw ones are in memory: products with few vectors need no turned rows."""

    values: np.ndarray
    turn: Turn
    is_made = False

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of numbers in each."""
        return len(self.values), self.turn.directions.shape[1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in order: where they are, and what they are."""
        for part, raw in self.raw_blocks():
            yield part, self.turn.rows(raw)

    def raw_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The same before they are turned."""
        for part in slices(len(self.values)):
            yield part, self.values[part]

    def take(self, places: np.ndarray) -> np.ndarray:
        """Some of the rows."""
        found = np.empty((len(places), self.shape[1]), dtype=np.float32)
        for part in slices(len(places)):
            found[part] = self.turn.rows(self.values[places[part]])
        return found


@dataclass(frozen=True, eq=False)
class MadeRows:
    """Rows in single precision that are made of a coded table whenever they are gone through."""

    table: Coded
    raw: Callable[[Coded], np.ndarray]
    turn: Turn
    is_made = True

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of numbers in each."""
        return len(self.table), self.turn.directions.shape[1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in order: where they are, and what they are."""
        for part in slices(len(self.table)):
            yield part, self.turn.rows(self.raw(_some(self.table, part)))

    def raw_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The same before they are turned."""
        for part in slices(len(self.table)):
            yield part, self.raw(_some(self.table, part)).astype(np.float32, copy=False)

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
            found[part] = self.turn.rows(self.raw(self.table.take(places[part])))
        return found


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The features of a coded table in single precision: held, or made at every pass."""

    table: Coded
    raw: Callable[[Coded], np.ndarray]
    size: int  # how many features `raw` makes of a row
    values: np.ndarray | None = None

    def held(self) -> FeatureRows:
        """The same in memory, unless they are too many."""
        if len(self) * self.size > MOST_HELD:
            return self
        values = np.empty((len(self), self.size), dtype=np.float32)
        for part, some in self.blocks():
            values[part] = some
        return replace(self, values=values)

    def __len__(self) -> int:
        return len(self.table)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in order: where they are, and their features."""
        for part in slices(len(self.table)):
            if self.values is not None:
                yield part, self.values[part]
            else:
                yield part, self.raw(_some(self.table, part)).astype(np.float32, copy=False)

    def take(self, places: np.ndarray) -> np.ndarray:
        """The features of some of the rows."""
        if self.values is not None:
            return self.values[places]
        found = np.empty((len(places), self.size), dtype=np.float32)
        for part in slices(len(places)):
            found[part] = self.raw(self.table.take(places[part]))
        return found

    def times(self, vector: np.ndarray) -> np.ndarray:
        """The product of every row and a vector."""
        single = vector.astype(np.float32)
        parts = [some @ single for _, some in self.blocks()]
        return np.concatenate([np.empty(0), *parts])

    def means(self, weights: np.ndarray | None = None) -> np.ndarray:
        """The means of the features, under weights that average to one if there are any."""
        sums = np.zeros(self.size)
        for part, some in self.blocks():
            given = np.ones(len(some)) if weights is None else weights[part]
            # In double precision: what is known of a difference is no better than its mean.
            sums += given @ some.astype(float)
        return sums / max(1, len(self))

    def means_and_variances(self) -> tuple[np.ndarray, np.ndarray]:
        """The means and variances of the features, in one pass."""
        sums, squares = np.zeros((2, self.size))
        for _, some in self.blocks():
            sums += some.sum(axis=0, dtype=float)
            squares += np.einsum("ij,ij->j", some, some)
        means = sums / max(1, len(self))
        return means, squares / max(1, len(self)) - means**2

    def turned(self, turn: Turn) -> RowBlocks:
        """The rows that the features are turned to."""
        if self.values is None:
            return MadeRows(self.table, self.raw, turn)
        return TurnedRows(self.values, turn)


def _some(table: Coded, part: slice) -> Coded:
    return Coded(table.schema, table.codes[part], table.units[part], table.is_spread)


def slices(rows: int, at_once: int | None = None) -> Iterator[slice]:
    """The blocks of so many rows."""
    step = at_once or BLOCK_ROWS
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
