"""Estimates with their support, and what stands for the interval of those that nothing measured.

Columns that nothing connects are unrelated in a release because nobody looked, and the replicates
know nothing of that: their interval would be narrow around an assumption. In its place stand the
bounds of `allowed`, for the groups that a result is of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.allowed import Allowed, Range, joint_share
from counterpoise.analysis.columns import Groups
from counterpoise.analysis.result import Estimate
from counterpoise.analysis.support import IMPLIED, NEVER, Measured

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

ALL_THERE_IS = "low and high are all that the columns' own distributions allow"

NOTHING_KNOWN = "no interval, because not even the distribution of a column by itself was measured"

# The least and the largest value of every estimate, worked out where they are needed.
Bounds = Callable[[], Sequence[tuple[Any, ...]]]


def with_support(
    members: Sequence[Estimate],
    measured: Measured,
    columns: Collection[str],
    bounds: Bounds,
    linear: Collection[str] = (),
    categories: Sequence[Sequence[tuple[str, Any]]] = (),
    mean_of: str | None = None,
) -> list[Estimate]:
    """Estimates that depend on some columns, with their support.

    `categories` are those that each of the estimates is of, by column; `mean_of` is the column
    that they are means or totals of. What nothing measured has bounds and no narrow interval;
    where the distribution of a column by itself is not known, it has none.

    >>> apart = Measured((frozenset("a"), frozenset("b")))
    >>> with_support([Estimate(0.3, 0.1, 0.3)], apart, "ab", lambda: [(0.0, 0.9)])
    [0.30 (0.00 to 0.90; never measured; low and high are all that the columns' own ... allow)]
    """
    support = measured.of(columns, linear)
    if mean_of is not None:
        support = measured.of_mean(mean_of, [name for name in columns if name != mean_of])
    if support != NEVER:
        # A category by itself is counted apart from others, whatever it shares in relations.
        own = categories if len(columns) > 1 and categories else [()] * len(members)
        assumed = measured.assumed_part(columns) if support == IMPLIED else None
        return [
            replace(member, support=measured.of_category(support, each), assumed=assumed)
            for member, each in zip(members, own, strict=True)
        ]
    # Where no estimate is defined, no row has a value that bounds could be made of.
    nothing = all(_is_undefined(member) for member in members)
    if nothing or any(measured.of({name}, linear) == NEVER for name in columns):
        return [_bounded(member, None) for member in members]
    return [
        _bounded(member, Allowed(*ends)) for member, ends in zip(members, bounds(), strict=True)
    ]


def _bounded(member: Estimate, span: Allowed | None) -> Estimate:
    if _is_undefined(member):
        return replace(member, support=NEVER)
    note = NOTHING_KNOWN if span is None else ALL_THERE_IS
    return Estimate(member.value, None, member.unweighted, note, span, NEVER)


def _is_undefined(member: Estimate) -> bool:
    return bool(member.value is None or member.value != member.value)


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
