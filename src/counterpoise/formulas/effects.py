"""The augmented score of an average effect, from means and propensities of rows.

    mu_1 - mu_0 + t (y - mu_1) / e - (1 - t) (y - mu_0) / (1 - e)

has the average effect as its mean where either the outcomes mu of the two arms or the propensity e
are right (J. M. Robins, A. Rotnitzky and L. P. Zhao, 1994), and does not change with them to first
order where both are. Where next to all rows like one are in one arm, the data say nothing of the
other: a propensity is held where no row counts more than twenty times, and how many rows are
concerned is for the analyst to know.
"""

from __future__ import annotations

import numpy as np

# A propensity beyond these is held there.
OVERLAP = (0.05, 0.95)


def augmented_score(
    treated: np.ndarray,
    outcome: np.ndarray,
    propensity: np.ndarray,
    without: np.ndarray,
    with_: np.ndarray,
) -> np.ndarray:
    """The score of each row, from its arm, its outcome, its propensity and its two means.

    >>> half = np.full(2, 0.5)
    >>> augmented_score(np.array([1.0, 0.0]), np.array([3.0, 1.0]), half, half, half).tolist()
    [5.0, -1.0]
    """
    chance = np.clip(propensity, *OVERLAP)
    score = with_ - without + treated * (outcome - with_) / chance
    return np.asarray(score - (1 - treated) * (outcome - without) / (1 - chance))


def beyond_overlap(propensity: np.ndarray) -> np.ndarray:
    """Which rows have next to no chance to be in one of the arms.

    >>> beyond_overlap(np.array([0.01, 0.5, 0.99])).tolist()
    [True, False, True]
    """
    return np.asarray((propensity < OVERLAP[0]) | (propensity > OVERLAP[1]))
