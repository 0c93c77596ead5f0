"""What a synthesizer would have measured of another private sample, with other noise.

Replicate weights run a release again without the private table. The synthesizer's own model stands
in for it: a fresh sample of private rows, given as weights on the synthetic rows, shifts each
measured table by the difference of its counts from those of the weighted synthetic table, and
fresh noise of the known deviation comes on top. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Tables of few columns agree after a sweep or two.
SWEEPS = 2
# So many that what has to be done for every block, and every cell of it, hardly counts.
BLOCK_ROWS = 16_384


@dataclass(frozen=True, eq=False)
class Table:
    """A measured table of counts: for each row its cell, and the deviation of the noise."""

    cells: np.ndarray
    size: int
    deviation: float


@dataclass(frozen=True, eq=False)
class Remeasurement:
    """Fresh private samples on the rows of a synthetic table, for any tables of counts.

    `resample` has a column a replicate, `weights` are those that it was drawn from; all average
    to one. `population` is the number of private rows.
    """

    codes: np.ndarray
    resample: np.ndarray
    weights: np.ndarray
    population: float
    generator: np.random.Generator

    def shifts(self, tables: Iterable[Table]) -> np.ndarray:
        """How the counts of all tables' cells, one after the other, move; a column a replicate."""
        tables = list(tables)
        counted = _totals([(table.cells, table.size) for table in tables], self.resample)
        return np.concatenate([self._shifts(*pair) for pair in zip(tables, counted, strict=True)])

    def _shifts(self, table: Table, counted: np.ndarray) -> np.ndarray:
        scale = self.population / max(1, len(self.codes))
        before = np.bincount(table.cells, self.weights, minlength=table.size)
        found = self.generator.normal(
            scale=table.deviation, size=(table.size, self.resample.shape[1])
        )
        found += scale * (counted - before[:, None])
        return found


@dataclass(frozen=True, eq=False)
class RedrawnTables:
    """Tables of counts as other runs would have had them: for any rows of the same model.

    Each has a column a replicate; `whole` is the number of rows that they are counts of.
    """

    columns: tuple[tuple[int, ...], ...]  # the places of each table's columns
    shapes: tuple[tuple[int, ...], ...]
    counts: tuple[np.ndarray, ...]
    whole: float

    def weights(self, codes: np.ndarray, base: np.ndarray) -> np.ndarray:
        """The base weights of rows with these codes, as rows of the redrawn models have them."""
        cells = [
            np.ravel_multi_index(tuple(codes[:, place] for place in places), shape).astype(np.int32)
            for places, shape in zip(self.columns, self.shapes, strict=True)
        ]
        # The tables in proportion to the rows, so that single precision is enough.
        scale = len(base) / max(self.whole, 1.0)
        return rake(base.astype(np.float32), cells, [scale * counts for counts in self.counts])


def redraw_columns(
    again: Remeasurement,
    chances: Sequence[np.ndarray],
    deviation: float,
    to_chances: Callable[[np.ndarray], np.ndarray],
) -> RedrawnTables:
    """The tables of single columns, redrawn.

    `to_chances` makes the distribution of a column of its noisy shares.
    """
    tables = [
        Table(cells, len(part), deviation)
        for cells, part in zip(again.codes.T, chances, strict=True)
    ]
    shares = np.concatenate(chances)[:, None] + again.shifts(tables) / again.population
    ends = np.cumsum([table.size for table in tables])[:-1]
    return RedrawnTables(
        tuple((place,) for place in range(len(tables))),
        tuple((table.size,) for table in tables),
        tuple(
            np.stack([to_chances(column) for column in part.T], axis=1)
            for part in np.split(shares, ends)
        ),
        whole=1.0,
    )


def cell_totals(cells: np.ndarray, size: int, weights: np.ndarray) -> np.ndarray:
    """The totals of weights, a column each, in every cell: all columns in one pass.

    >>> cell_totals(np.array([0, 1, 0]), 3, np.array([[1.0, 2.0], [1.0, 0.0], [3.0, 4.0]]))
    array([[4., 6.],
           [1., 0.],
           [0., 0.]])
    """
    return _totals([(cells, size)], weights)[0]


def _totals(tables: Sequence[tuple[np.ndarray, int]], weights: np.ndarray) -> list[np.ndarray]:
    """The totals in the cells of several tables of these sizes, in one pass over the weights."""
    found = [np.zeros((size, weights.shape[1])) for _, size in tables]
    for part in _blocks(len(weights)):
        for totals, (cells, _) in zip(found, tables, strict=True):
            add_totals(totals, cells[part], weights[part])
    return found


def add_totals(totals: np.ndarray, cells: np.ndarray, weights: np.ndarray) -> None:
    """Add the weights of a block of rows to the totals of their cells.

    The sums of one block are good enough in the precision of the weights.
    """
    ones, ends = np.ones(len(cells), dtype=weights.dtype), np.arange(len(cells) + 1)
    indicators = sparse.csc_array((ones, cells, ends), shape=(len(totals), len(cells)))
    totals += indicators @ weights


def rake(
    weights: np.ndarray, cells: Sequence[np.ndarray], tables: Sequence[np.ndarray]
) -> np.ndarray:
    """The weights, changed by cell until their totals are in proportion to these tables.

    Weights and tables have a column a replicate, and the weights are changed in place. What a table
    has in cells without rows is spread over the others.

    >>> cells = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]
    >>> tables = [np.array([[3.0], [1.0]]), np.array([[1.0], [1.0]])]
    >>> rake(np.ones((4, 1)), cells, tables)[:, 0]
    array([1.5, 1.5, 0.5, 0.5])
    """
    steps = list(zip(cells, tables, strict=True)) * SWEEPS
    if steps:
        totals = cell_totals(cells[0], len(tables[0]), weights)
    for place, (cell, table) in enumerate(steps):
        factors = np.divide(table, totals, out=totals, where=totals > 0).astype(weights.dtype)
        following, its_table = steps[(place + 1) % len(steps)]
        # What the next table has to know is added up while the weights are at hand.
        totals = np.zeros(its_table.shape)
        for part in _blocks(len(weights)):
            multiply_by_cell(weights[part], cell[part], factors)
            add_totals(totals, following[part], weights[part])
    total = weights.sum(axis=0, dtype=float)
    scale = np.divide(len(weights), total, out=np.zeros_like(total), where=total > 0)
    weights *= scale.astype(weights.dtype)
    weights[:, total <= 0] = 1
    return weights


def multiply_by_cell(weights: np.ndarray, cells: np.ndarray, factors: np.ndarray) -> None:
    """Multiply every row of weights by the factors of its cell, in place."""
    factors = factors.astype(weights.dtype, copy=False)
    for part in _blocks(len(cells)):
        weights[part] *= factors[cells[part]]


def _blocks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, BLOCK_ROWS):
        yield slice(start, start + BLOCK_ROWS)
