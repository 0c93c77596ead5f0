"""What a synthesizer would have made of another private sample and other noise.

Replicate weights run a release again without the private table. The synthesizer's own model stands
in for it: a fresh sample of private rows, given as weights on the synthetic rows, shifts each
measured table by the difference of its counts from those of the weighted synthetic table, fresh
noise of the known deviation comes on top, and the model is fitted to that. The synthetic rows are
then given the weights that rows of the refitted model would have: the ratio of the two densities,
raked to the refitted model's own tables, because the rows were drawn with the counts of the
released model. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

# Tables of few columns agree after a sweep or two; the densities' ratio is close to begin with.
SWEEPS = 2


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

    def cells(self, positions: Sequence[int], shape: Sequence[int]) -> np.ndarray:
        """For each row, its cell in the table of these columns."""
        codes = tuple(self.codes[:, position] for position in positions)
        return np.ravel_multi_index(codes, tuple(shape))

    def tables(
        self, positions: Sequence[int], expected: np.ndarray, deviation: float
    ) -> Iterator[np.ndarray]:
        """For each replicate, the table that is expected with another sample and other noise."""
        cells = self.cells(positions, expected.shape)
        scale = self.population / max(1, len(self.codes))
        before = np.bincount(cells, self.weights, minlength=expected.size)
        for fresh in self.resample.T:
            shift = scale * (np.bincount(cells, fresh, minlength=expected.size) - before)
            noise = self.generator.normal(scale=deviation, size=expected.size)
            yield expected + (shift + noise).reshape(expected.shape)


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
            factors = np.divide(table.reshape(-1), totals, out=totals, where=totals > 0)
            weights = weights * factors[cell]
    total = weights.sum()
    return weights * (len(weights) / total) if total > 0 else np.ones(len(weights))
