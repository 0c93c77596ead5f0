"""White coordinates: features turned so that the synthetic table has mean zero and covariance one.

A difference between two tables is then measured in units of the synthetic rows' own spread, and
means of different coordinates can be matched without disturbing each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from counterpoise.schema import Coded
from counterpoise.weights.standardise import Standardised, chunks

# A feature of which the ones before it leave less than this part of the variance is not matched.
LEAST_VARIANCE = 1e-3
# A coordinate that fewer rows than this carry is not matched.
LEAST_ROWS = 10
# Above this many numbers, products of features are in single precision; their sums never are.
SINGLE_PRECISION = 4_000_000


@dataclass(frozen=True, eq=False)
class Whitening:
    """Coordinates in which the synthetic rows have mean zero and covariance one.

    Coordinate j is a feature less its regression on the features before it, so that a difference
    in one relation stays in one coordinate.
    """

    centre: np.ndarray
    directions: np.ndarray  # features x coordinates
    blocks: np.ndarray  # the block of each coordinate

    @classmethod
    def over(
        cls, features: Standardised, rows: Coded, blocks: np.ndarray, ranks: np.ndarray
    ) -> Whitening:
        """The coordinates of features in these blocks; the lowest `ranks` stay themselves."""
        size = len(features.names)
        number: Any = np.float32 if len(rows) * size > SINGLE_PRECISION else np.float64
        total, second = np.zeros(size), np.zeros((size, size))
        for chunk in chunks(rows):
            values = features(chunk)
            total += values.sum(axis=0)
            values = values.astype(number, copy=False)
            second += values.T @ values
        centre = total / max(1, len(rows))
        covariance = second / max(1, len(rows)) - np.outer(centre, centre)
        kept, directions = _turned(covariance, np.argsort(ranks, kind="stable"))
        fourth, turned = np.zeros(len(kept)), directions.astype(number)
        for chunk in chunks(rows):
            squares = ((features(chunk) - centre).astype(number, copy=False) @ turned) ** 2
            fourth += np.einsum("ij,ij->j", squares, squares)
        # Rows that carry a coordinate: N / kurtosis = (sum z^2)^2 / sum z^4
        carried = len(rows) ** 2 >= LEAST_ROWS * fourth
        return cls(centre, directions[:, carried], blocks[kept][carried])


def _turned(covariance: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gram and Schmidt in the metric of the covariance: the features kept, and the directions."""
    left, kept = covariance.copy(), list[int]()
    for feature in order:
        variance = left[feature, feature]
        if variance > max(LEAST_VARIANCE * covariance[feature, feature], 1e-9):
            explained = left[feature] / np.sqrt(variance)
            left -= explained[:, None] * explained
            kept.append(int(feature))
    # With C = L L' of those that are kept, D = L'^-1 has D' C D = 1 and is triangular.
    lower = np.linalg.cholesky(covariance[np.ix_(kept, kept)])
    directions = np.zeros((len(covariance), len(kept)))
    directions[kept] = linalg.solve_triangular(lower, np.eye(len(kept)), lower=True).T
    return np.array(kept, dtype=int), directions
