"""What a synthesizer would have measured of another private sample, with other noise.

Replicate weights run a release again without the private table. The synthesizer's own model stands
in for it: a fresh sample of private rows, given as weights on the synthetic rows, shifts each
measured table by the difference of its counts from those of the weighted synthetic table, and
fresh noise of the known deviation comes on top. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Tables of few columns agree after a sweep or two.
SWEEPS = 2
# Few enough that what is worked out of them stays near the processor.
BLOCK_ROWS = 4096


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
        return np.concatenate([self._shifts(table) for table in tables])

    def _shifts(self, table: Table) -> np.ndarray:
        scale = self.population / max(1, len(self.codes))
        before = np.bincount(table.cells, self.weights, minlength=table.size)
        found = self.generator.normal(
            scale=table.deviation, size=(table.size, self.resample.shape[1])
        )
        counted = cell_totals(table.cells, table.size, self.resample)
        found += scale * (counted - before[:, None])
        return found


def cell_totals(cells: np.ndarray, size: int, weights: np.ndarray) -> np.ndarray:
    """The totals of weights, a column each, in every cell: all columns in one pass.

    >>> cell_totals(np.array([0, 1, 0]), 3, np.array([[1.0, 2.0], [1.0, 0.0], [3.0, 4.0]]))
    array([[4., 6.],
           [1., 0.],
           [0., 0.]])
    """
    found = np.zeros((size, weights.shape[1]))
    for start in range(0, len(cells), BLOCK_ROWS):
        some = cells[start : start + BLOCK_ROWS]
        ones, ends = np.ones(len(some)), np.arange(len(some) + 1)
        indicators = sparse.csc_array((ones, some, ends), shape=(size, len(some)))
        found += indicators @ weights[start : start + BLOCK_ROWS].astype(float)
    return found


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
    for _ in range(SWEEPS):
        for cell, table in zip(cells, tables, strict=True):
            totals = cell_totals(cell, len(table), weights)
            factors = np.divide(table, totals, out=totals, where=totals > 0)
            multiply_by_cell(weights, cell, factors)
    total = weights.sum(axis=0, dtype=float)
    scale = np.divide(len(weights), total, out=np.zeros_like(total), where=total > 0)
    weights *= scale.astype(weights.dtype)
    weights[:, total <= 0] = 1
    return weights


def multiply_by_cell(weights: np.ndarray, cells: np.ndarray, factors: np.ndarray) -> None:
    """Multiply every row of weights by the factors of its cell, in place."""
    factors = factors.astype(weights.dtype, copy=False)
    for start in range(0, len(cells), BLOCK_ROWS):
        weights[start : start + BLOCK_ROWS] *= factors[cells[start : start + BLOCK_ROWS]]
