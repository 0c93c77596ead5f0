"""What single columns allow: how far off an estimate may be that nothing measured.

Where nothing connects two columns, a release has their distributions and no more. Any joint
distribution with these is possible, so the honest interval of what depends on both is everything
that some such distribution gives, at every level: W. Hoeffding (1940) and M. Frechet (1951). The
bounds are reached, by putting the rows of the two columns together in their order or against it;
no narrower interval follows from what was measured. The distributions themselves are taken as they
are estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Range = tuple[float, float]
Ranges = Sequence[Range]


@dataclass(frozen=True)
class Allowed:
    """An interval of all that is possible, whatever the level.

    >>> Allowed(-0.5, 0.5)(0.95)
    (-0.5, 0.5)
    """

    low: Any
    high: Any

    def __call__(self, level: float) -> tuple[Any, Any]:
        """The ends."""
        return self.low, self.high


def joint_share(shares: Sequence[float]) -> Range:
    """The least and the largest share of rows in all of some groups, of these shares each.

    >>> joint_share([0.5, 0.75])
    (0.25, 0.5)
    """
    # max(0, p_1 + ... + p_m - (m - 1)) <= p <= min(p_1, ..., p_m)
    most = float(min(shares))
    return min(max(0.0, float(sum(shares)) - (len(shares) - 1)), most), most


def share_within(share: float, group: float) -> Range:
    """The least and the largest part of a group that a category of so large a share may be.

    >>> share_within(0.75, 0.5), share_within(0.75, 0.0)
    ((0.5, 1.0), (0.0, 1.0))
    """
    if not group > 0:
        return 0.0, 1.0
    low, high = joint_share([share, group])
    return low / group, high / group


def means_within(values: np.ndarray, weights: np.ndarray, shares: Ranges) -> list[Range]:
    """The least and the largest mean of groups whose shares of the rows lie in these ranges.

    Their rows may be those with the lowest values, or with the highest; of a group that may be as
    small as one likes, they are the lowest and the highest value.

    >>> means_within(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), [(0.5, 0.5), (0.0, 0.5)])
    [(1.5, 3.5), (1.0, 4.0)]
    """
    kept = values[weights > 0]
    # The smaller a group, the more it may differ.
    smallest = [least for least, _ in shares]
    sums = sums_within(values, weights, [(least, least) for least in smallest])
    return [
        (low / share, high / share) if share > 0 else (float(kept.min()), float(kept.max()))
        for share, (low, high) in zip(smallest, sums, strict=True)
    ]


def sums_within(values: np.ndarray, weights: np.ndarray, shares: Ranges) -> list[Range]:
    """The same of sums over the groups, as parts of the number of all rows.

    >>> sums_within(np.array([-1.0, 2.0, 3.0, 4.0]), np.ones(4), [(0.5, 0.5), (0.0, 0.5)])
    [(0.25, 1.75), (-0.25, 1.75)]
    """
    order = np.argsort(values, kind="stable")
    each = weights[order] / weights.sum()
    # H(s), the integral of the quantiles up to s; the highest values sum to H(1) - H(1 - s)
    at, height = (np.concatenate([[0.0], np.cumsum(part)]) for part in (each, each * values[order]))
    negative = float(each[values[order] < 0].sum())
    found = []
    for least, most in shares:
        # H falls as long as values are negative, and rises after that.
        lows = np.interp([least, most, np.clip(negative, least, most)], at, height)
        highs = np.interp([1 - least, 1 - most, 1 - np.clip(1 - negative, least, most)], at, height)
        found.append((float(lows.min()), float(height[-1] - highs.min())))
    return found


def quantile_places(q: float, group: float) -> Range:
    """The quantiles of all rows between which that of a group of this share lies.

    >>> quantile_places(0.5, 0.25)
    (0.125, 0.875)
    """
    return q * group, 1 - (1 - q) * group


def product(x: np.ndarray, y: np.ndarray, weights: np.ndarray, correlation: bool) -> Range:
    """The least and the largest covariance, or correlation, of columns with these values.

    >>> product(np.array([0.0, 1.0]), np.array([3.0, 1.0]), np.ones(2), correlation=False)
    (-0.5, 0.5)
    """
    low, high = -_comonotone(x, -y, weights), _comonotone(x, y, weights)
    if not correlation:
        return low, high
    size = _deviation(x, weights) * _deviation(y, weights)
    return (max(low / size, -1.0), min(high / size, 1.0)) if size > 0 else (-1.0, 1.0)


def _comonotone(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """The covariance when the ranks of x and y are the same: integral of F^-1(u) G^-1(u) du."""
    weights = weights / weights.sum()
    ends, sorted_values = [], []
    for values in (x, y):
        order = np.argsort(values, kind="stable")
        ends.append(np.cumsum(weights[order]))
        sorted_values.append(values[order] - float(values @ weights))
    cuts = np.union1d(*ends)
    cuts = cuts[cuts < min(ends[0][-1], ends[1][-1])]
    steps = np.diff(np.concatenate([[0.0], cuts, [1.0]]))
    middles = np.concatenate([[0.0], cuts]) + steps / 2
    one, two = (
        values[np.minimum(np.searchsorted(end, middles), len(values) - 1)]
        for end, values in zip(ends, sorted_values, strict=True)
    )
    return float(np.sum(steps * one * two))


def _deviation(values: np.ndarray, weights: np.ndarray) -> float:
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))
