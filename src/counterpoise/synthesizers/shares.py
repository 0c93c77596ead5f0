"""From noisy shares to a distribution: what every method does first with the counts of a column."""

from __future__ import annotations

import numpy as np


def nearest_chances(shares: np.ndarray) -> np.ndarray:
    """The distribution that is nearest to noisy shares: all lowered alike, and none below zero.

    >>> nearest_chances(np.array([0.9, 0.4, -0.2]))
    array([0.75, 0.25, 0.  ])
    """
    order = np.sort(shares)[::-1]
    lowered = (np.cumsum(order) - 1) / np.arange(1, len(order) + 1)
    level = lowered[np.flatnonzero(order > lowered)[-1]]
    found: np.ndarray = np.maximum(shares - level, 0.0)
    return found
