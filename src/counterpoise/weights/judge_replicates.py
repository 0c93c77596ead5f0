"""Judging replicate weights: how many rows each of them rests on, and a bound for the worst.

A standard error is the spread of the replicates, so it is worth as much as they are. A replicate
that rests on a handful of rows says what those rows are like, and one such column can decide a
variance. Each is judged by Kish's effective sample size, as the weight itself is. One below a
public bound is mixed with the weight until it reaches the bound: post-processing of released
numbers, free. What is trusted: no column that leaves here is below the bound, and the verdict
says when any was. A replicate that really strayed that far is shortened with the others, so that
its intervals are too narrow; that is why the verdict has to say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.weights.diagnostics import LEVELS, Verdict

# No replicate rests on a smaller part of the weight's effective rows without a word.
CAUTIOUS_PART = 0.1
# A replicate is bounded below this part of the weight's effective rows, or below so many rows.
LEAST_PART, LEAST_ROWS = 0.01, 10.0

_WAY_OUT = (
    "take the intervals as rough; for better ones draw more rows, weigh by fewer features, or "
    "state bounds and bins that fit the columns"
)


@dataclass(frozen=True, eq=False)
class JudgedReplicates:
    """Replicate weights fit to be used, and what was found of them.

    `found` are the effective sample sizes before the bound, `sizes` those of `columns`, and
    `weight` is the effective sample size of the weight that the replicates belong to. `parts` are
    the parts that each is of itself, the rest being the weight. Those of many rows may have gone
    to their file. `part` is how much of the way from the weight all of them go.
    """

    columns: np.ndarray | None
    sizes: np.ndarray
    found: np.ndarray
    weight: float
    parts: np.ndarray
    part: float = 1.0

    @property
    def bounded(self) -> int:
        """How many replicates were mixed with the weight."""
        return int((self.sizes > self.found).sum())

    @property
    def verdict(self) -> Verdict:
        """The verdict, by these rules; the first that holds gives the reason.

        - not to be used: half of the replicates were below the bound, so that intervals would be
          of the bound's making;
        - with caution: one was below the bound, or below a tenth of the weight's effective rows.
        """
        count, least = len(self.found), least_size(self.weight)
        if not count:
            return Verdict("fine", "there are no replicate weights", "")
        low, worst = int((self.found < least).sum()), float(self.found.min())
        against = f"where the weights themselves count as {self.weight:,.0f}"
        if float(np.median(self.found)) < least:
            reason = (
                f"the error bars cannot be trusted: {low} of the {count} replicate weights counted "
                f"as fewer than {_rows(least)}, {against}"
            )
            return Verdict("do not use", reason, _WAY_OUT)
        if low:
            pulled = (
                ", and were pulled towards the weights, which can make intervals too narrow"
                if self.bounded
                else ""
            )
            reason = (
                f"the error bars rest on few rows: {low} of the {count} replicate weights counted "
                f"as fewer than {_rows(least)} (the worst as {_rows(worst)}), {against}{pulled}"
            )
            return Verdict("caution", reason, _WAY_OUT)
        if worst < CAUTIOUS_PART * self.weight:
            reason = (
                f"the error bars rest on few rows: the worst of the {count} replicate weights "
                f"counts as {_rows(worst)}, {against}"
            )
            return Verdict("caution", reason, _WAY_OUT)
        return Verdict("fine", "the replicate weights rest on enough rows", "")

    def to_dict(self) -> dict[str, Any]:
        """What the card says of the replicates' sizes, as JSON values; nothing without any."""
        if not len(self.found):
            return {}
        return {
            "part": self.part,
            "effective_sample_sizes": self.sizes.tolist(),
            "worst_effective_sample_size": float(self.sizes.min()),
            "median_effective_sample_size": float(np.median(self.sizes)),
            "bounded": self.bounded,
            "worst_before_bounding": float(self.found.min()),
        }


def least_size(weight: float) -> float:
    """The bound: a hundredth of the weight's effective rows, or 10, but at most a tenth of them.

    At a hundredth a replicate may still stray ten times as far as the weight's own sampling error.

    >>> [least_size(weight) for weight in (40_000.0, 500.0, 30.0)]
    [400.0, 10.0, 3.0]
    """
    return min(max(LEAST_PART * weight, LEAST_ROWS), CAUTIOUS_PART * weight)


def effective_sizes(columns: np.ndarray) -> np.ndarray:
    """Kish's effective sample size, (sum w)^2 / sum w^2, of every column.

    >>> effective_sizes(np.array([[1.0, 2.0], [1.0, 0.0]]))
    array([2., 1.])
    """
    if not len(columns):
        return np.zeros(columns.shape[1])
    # A column at a time: a release's replicates in double precision could be too large.
    doubled = (column.astype(np.float64) for column in columns.T)
    return np.array([each.sum() ** 2 / (each @ each) for each in doubled])


def judge_replicates(
    weights: np.ndarray, columns: np.ndarray, part: float = 1.0, bound: bool = True
) -> JudgedReplicates:
    """Replicates of these weights, each averaging to one, judged and (unless told not to) bounded.

    They go this `part` of the way from the weights.

    >>> weights = np.ones(1000)
    >>> steady, wild = np.ones(1000), np.zeros(1000)
    >>> wild[0] = 1000.0
    >>> judged = judge_replicates(weights, np.column_stack([steady, steady, wild]))
    >>> judged.found.tolist(), judged.sizes.round(3).tolist(), judged.verdict.level
    ([1000.0, 1000.0, 1.0], [1000.0, 1000.0, 10.0], 'caution')
    """
    found = effective_sizes(columns)
    whole = float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0
    least = least_size(whole)
    low = np.flatnonzero(found < least) if bound and len(weights) else np.empty(0, dtype=int)
    parts = np.ones(columns.shape[1])
    if not len(low):
        return JudgedReplicates(columns, found, found, whole, parts, part)
    bounded, sizes = columns.copy(), found.copy()
    for place in low:
        parts[place] = _part(weights, columns[:, place].astype(np.float64), least)
    mix(weights, bounded, parts)
    sizes[low] = effective_sizes(bounded[:, low])
    return JudgedReplicates(bounded, sizes, found, whole, parts, part)


def mix(weights: np.ndarray, columns: np.ndarray, parts: np.ndarray) -> None:
    """(1 - t) w + t w_r for the part t of each column, in place; all average to one.

    >>> columns = np.array([[2.0, 2.0], [0.0, 0.0]])
    >>> mix(np.ones(2), columns, np.array([1.0, 0.5]))
    >>> columns.tolist()
    [[2.0, 1.5], [0.0, 0.5]]
    """
    main = weights / weights.sum()
    for place in np.flatnonzero(parts < 1):
        replicate = columns[:, place].astype(np.float64)
        other = replicate / replicate.sum()
        columns[:, place] = (main + parts[place] * (other - main)) * len(weights)


def worse(first: Verdict, second: Verdict) -> Verdict:
    """The worse of two verdicts; two that are equally bad are said together.

    >>> worse(Verdict("fine", "good", ""), Verdict("caution", "bad", "draw rows")).reason
    'bad'
    """
    if first.level != second.level or first.level == "fine":
        return max(first, second, key=lambda each: LEVELS.index(each.level))
    return Verdict(first.level, f"{first.reason}; {second.reason}", first.way_out)


def _part(weights: np.ndarray, replicate: np.ndarray, least: float) -> float:
    """The largest t at which (1 - t) w + t w_r has the effective sample size `least`.

    Every weighted mean then moves from its full value by t times as much as before.
    """
    main, other = weights / weights.sum(), replicate / replicate.sum()
    change = other - main
    # sum (main + t change)^2 = 1/least, a quadratic in t with one root between 0 and 1
    square, cross = float(change @ change), float(main @ change)
    rest = float(main @ main) - 1 / least
    part = (-cross + np.sqrt(cross**2 - square * rest)) / square
    # A hair less, so that rounding to single precision does not fall below the bound.
    return float(part * (1 - 1e-6))


def _rows(size: float) -> str:
    return f"{size:,.0f} rows" if size >= 10 else f"{size:.1f} rows"
