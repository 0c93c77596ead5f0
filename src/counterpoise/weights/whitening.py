"""White coordinates: features turned so that the synthetic table has mean zero and covariance one.

A difference between two tables is then measured in units of the synthetic rows' own spread, and
means of different coordinates can be matched without disturbing each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from counterpoise.weights.row_blocks import FeatureRows, Turn, slices
from counterpoise.weights.standardise import PART_ROWS, spread

# A feature of which the ones before it leave less than this part of the variance is not matched:
# what its noise makes of the rest is many times as large. With a thousandth, replicates of one
# release of adult rested on 60 to 200 of its 5,000 rows, with a twentieth on 2,200 and more.
LEAST_VARIANCE = 0.05
# A coordinate that fewer rows than this carry is not matched.
LEAST_ROWS = 10
# Nor is a feature of which the part of the rows that tells of the covariance shows less than this
# part of the variance: what is rare may be missing there, and would be taken for hardly varying.
LEAST_SHOWN = 0.5


@dataclass(frozen=True, eq=False)
class Whitening:
    """Coordinates in which the synthetic rows have mean zero and covariance one.

    Coordinate j is a feature less its regression on the features before it, so that a difference
    in one relation stays in one coordinate.
    """

    centre: np.ndarray
    directions: np.ndarray  # features x coordinates
    blocks: np.ndarray  # the block of each coordinate
    features: np.ndarray  # the feature that each coordinate is what is left of
    loadings: np.ndarray  # features x coordinates: how far features move along each
    carried: np.ndarray  # by about how many rows of equal value, of each coordinate

    @classmethod
    def over(cls, rows: FeatureRows, blocks: np.ndarray, ranks: np.ndarray) -> Whitening:
        """The coordinates of features in these blocks; the lowest `ranks` stay themselves.

        The mean is that of all rows, and white is a part of them that is large enough to tell.
        """
        centre, variances = rows.means_and_variances()
        places = spread(len(rows), PART_ROWS)

        def some() -> Iterator[np.ndarray]:
            # A few at a time, twice: there is no need to have all of them together.
            return (rows.take(places[part]) for part in slices(len(places)))

        own, second = np.zeros(len(centre)), np.zeros((len(centre), len(centre)))
        for values in some():
            own += values.sum(axis=0, dtype=float) / len(places)
            second += values.T @ values
        covariance = second / max(1, len(places)) - np.outer(own, own)
        shown = np.diag(covariance) >= LEAST_SHOWN * variances
        order = np.argsort(ranks, kind="stable")
        kept, directions = _turned(covariance, order[shown[order]])
        fourth, turn = np.zeros(len(kept)), Turn(own, directions)
        for values in some():
            squares = turn.rows(values) ** 2
            fourth += np.einsum("ij,ij->j", squares, squares)
        # Rows that carry a coordinate: N / kurtosis = N (sum z^2)^2 / (n sum z^4) of n rows
        carried = len(rows) * len(places) / np.maximum(fourth, 1e-300)
        enough = carried >= LEAST_ROWS
        directions = directions[:, enough]
        # z = D'(f - c) is white, so that the regression of f on it has the coefficients C D; of
        # features that are not matched themselves as well.
        own = kept[enough]
        return cls(centre, directions, blocks[own], own, covariance @ directions, carried[enough])


def least_loadings(directions: np.ndarray) -> np.ndarray:
    """The loadings that directions tell by themselves: the smallest L with D' L = 1.

    They are those of the features that are kept, and 0 of all others.

    >>> least_loadings(np.array([[2.0, -1.0], [0.0, 1.0], [0.0, 0.0]])).round(2).tolist()
    [[0.5, 0.0], [0.5, 1.0], [0.0, 0.0]]
    """
    return np.asarray(np.linalg.pinv(directions).T)


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
