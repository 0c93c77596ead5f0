"""Rates with honest intervals: Wilson's for how often an attack is right, Clopper and Pearson's.

Wilson's interval (1927) holds its level on average; Clopper and Pearson's (1934) never falls below
it, which a bound on epsilon needs. Guesses about several columns of one person are not independent:
there the rows are what is counted, and Wilson's interval takes as many trials as would have the
variance that the rows show between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """A share, between the two ends of its interval; all are nan where there was no trial.

    >>> Rate.of(5, 100)
    Rate(value=0.05, low=0.0215..., high=0.1117...)
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, hits: float, trials: float, confidence: float = CONFIDENCE) -> Rate:
        """So many hits in so many independent trials, with Wilson's interval."""
        if not trials > 0:
            return UNKNOWN
        hits, trials = float(hits), float(trials)
        value = min(max(hits / trials, 0.0), 1.0)
        z = float(stats.norm.ppf(0.5 + confidence / 2))
        # (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)
        centre = value + z**2 / (2 * trials)
        half = z * math.sqrt(value * (1 - value) / trials + z**2 / (4 * trials**2))
        low, high = (centre - half) / (1 + z**2 / trials), (centre + half) / (1 + z**2 / trials)
        return cls(value, max(0.0, min(low, value)), min(1.0, max(high, value)))

    @classmethod
    def of_rows(cls, hits: np.ndarray, trials: np.ndarray, confidence: float = CONFIDENCE) -> Rate:
        """The hits in the trials of each row: rows are independent, the trials of one need not be.

        >>> Rate.of_rows(np.array([3.0, 0.0] * 50), np.full(100, 3.0)) == Rate.of(50, 100)
        True
        """
        total = float(trials.sum())
        if total == 0:
            return UNKNOWN
        value = float(hits.sum()) / total
        # The variance of a ratio of sums, sum (h_i - p t_i)^2 / (sum t_i)^2, is p (1 - p) / n for
        # n independent trials.
        variance = float(((hits - value * trials) ** 2).sum()) / total**2
        rows = int((trials > 0).sum())
        effective = value * (1 - value) / variance if variance > 0 else rows
        return cls.of(value * effective, effective, confidence)


UNKNOWN = Rate(math.nan, math.nan, math.nan)


def exactly(value: float) -> Rate:
    """What is known without any trial.

    >>> exactly(0.5)
    Rate(value=0.5, low=0.5, high=0.5)
    """
    return Rate(value, value, value)


def clopper_pearson(hits: np.ndarray, trials: int, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a rate, each of which is wrong with a probability of at most `tail`.

    >>> low, high = clopper_pearson(np.array([0, 10]), 10, 0.025)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.692], [0.308, 1.0])
    """
    hits = np.asarray(hits, dtype=float)
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, stats.beta.ppf(tail, hits, trials - hits + 1), 0.0)
        high = np.where(hits < trials, stats.beta.ppf(1 - tail, hits + 1, trials - hits), 1.0)
    return low, high
