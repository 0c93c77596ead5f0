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

# Tables of few columns agree after a sweep or two.
SWEEPS = 2


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
        for replicate, fresh in enumerate(self.resample.T):
            counted = np.bincount(table.cells, fresh, minlength=table.size)
            found[:, replicate] += scale * (counted - before)
        return found


def rake(
    weights: np.ndarray, cells: Sequence[np.ndarray], tables: Sequence[np.ndarray]
) -> np.ndarray:
    """The weights, changed by cell until their totals are in proportion to these tables.

    What a table has in cells without rows is spread over the others.

    >>> cells = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]
    >>> rake(np.ones(4), cells, [np.array([3.0, 1.0]), np.array([1.0, 1.0])])
    array([1.5, 1.5, 0.5, 0.5])
    """
    for _ in range(SWEEPS):
        for cell, table in zip(cells, tables, strict=True):
            totals = np.bincount(cell, weights, minlength=table.size)
            factors = np.divide(table, totals, out=totals, where=totals > 0)
            weights = weights * factors[cell]
    total = weights.sum()
    return weights * (len(weights) / total) if total > 0 else np.ones(len(weights))
