"""Estimates with their support, and what stands for the interval of those that nothing measured.

Columns that nothing connects are unrelated in a release because nobody looked, and the replicates
know nothing of that: their interval would be narrow around an assumption. In its place stand the
bounds of `allowed`, for the groups that a result is of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.allowed import Allowed, Range, joint_share
from counterpoise.analysis.columns import Groups
from counterpoise.analysis.result import Estimate
from counterpoise.analysis.support import NEVER, Measured

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

ALL_THERE_IS = "low and high are all that the columns' own distributions allow"

# The least and the largest value of every estimate, worked out where they are needed.
Bounds = Callable[[], Sequence[tuple[Any, ...]]]


def with_support(
    members: Sequence[Estimate], support: str, bounds: Bounds | None = None
) -> list[Estimate]:
    """Estimates of one support; what nothing measured has bounds and no narrow interval.

    >>> [found] = with_support([Estimate(0.3, 0.1, 0.3)], NEVER, lambda: [(0.0, 0.9)])
    >>> found
    0.30 (0.00 to 0.90; never measured; low and high are all that the columns' own ... allow)
    """
    if support != NEVER or bounds is None:
        return [replace(member, support=support) for member in members]
    return [_bounded(member, *ends) for member, ends in zip(members, bounds(), strict=True)]


def _bounded(member: Estimate, low: Any, high: Any) -> Estimate:
    if member.value is None or member.value != member.value:
        return replace(member, support=NEVER)
    span = Allowed(low, high)
    return Estimate(member.value, None, member.unweighted, ALL_THERE_IS, span, NEVER)


def group_shares(release: Release, grouped: Groups) -> list[Range]:
    """The least and the largest share that every group may have.

    It is the estimated one, unless nothing connects the columns by which rows are grouped.
    """
    weights = release.weights / release.weights.sum()
    kept = grouped.members >= 0
    own = np.bincount(grouped.members[kept], weights[kept], minlength=len(grouped.labels))
    if Measured.of_release(release).of(grouped.columns) != NEVER:
        return [(float(each), float(each)) for each in own]
    margins: dict[tuple[int, str], float] = {}
    for label, each in zip(grouped.labels, own, strict=True):
        for key in enumerate(map(repr, label)):
            margins[key] = margins.get(key, 0.0) + float(each)
    return [
        joint_share([margins[key] for key in enumerate(map(repr, label))])
        for label in grouped.labels
    ]
