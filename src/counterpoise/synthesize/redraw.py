"""What a synthesizer's measurements would have been with another private sample and other noise.

Replicate weights run a release again without the private table. A fresh sample of private rows,
given as weights on the synthetic rows, shifts each measured table by the difference of its counts
from those of the weighted synthetic table; fresh noise of the known deviation comes on top. The
model refitted to that, relative to the released one, says how a synthetic row's weight changes.
All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


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

    def tables(
        self, positions: Sequence[int], measured: np.ndarray, deviation: float
    ) -> Iterator[np.ndarray]:
        """For each replicate, the measured table with another sample and other noise."""
        cells = np.ravel_multi_index(
            tuple(self.codes[:, position] for position in positions), measured.shape
        )
        scale = self.population / max(1, len(self.codes))
        expected = np.bincount(cells, self.weights, minlength=measured.size)
        for fresh in self.resample.T:
            shift = scale * (np.bincount(cells, fresh, minlength=measured.size) - expected)
            noise = self.generator.normal(scale=deviation, size=measured.size)
            yield measured + (shift + noise).reshape(measured.shape)
