"""Quantiles of a release, of numbers, dates and ordinal categories, with Woodruff's intervals.

A quantile jumps from row to row, so its replicates say little; the share of the rows up to it does
not. So the interval is that of the share at the quantile, turned back into values (R. S. Woodruff,
Confidence intervals for medians and other position measures, JASA 47, 1952).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.allowed import quantile_places
from counterpoise.analysis.columns import By, Groups, Numbers, Scale, groups, ordered
from counterpoise.analysis.estimates import ratio
from counterpoise.analysis.replication import NO_REPLICATES, Design, multiplier, standard_errors
from counterpoise.analysis.result import (
    ALL_ALIKE,
    EMPTY,
    LEVEL,
    SAME,
    Estimate,
    Estimates,
    estimates,
    of_kept_rows,
)
from counterpoise.analysis.support import Measured
from counterpoise.analysis.unmeasured import group_shares, with_support
from counterpoise.arguments import real_number
from counterpoise.errors import AnalysisError
from counterpoise.schema import Column

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release


@of_kept_rows
def quantile(release: Release, column: str, q: float = 0.5, by: By = None) -> Estimate | Estimates:
    """The smallest value that a share of at least `q` of the rows does not exceed.

    Of numbers, dates and ordinal categories. The interval is Woodruff's: that of the share at
    the quantile, turned back into values. The standard error is half of the 95% interval over
    its multiplier; an ordinal column has none.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"age": [20, 40, 60], "weight": [0.5, 0.5, 2.0]})
    >>> release = cp.Release(table, cp.Schema([cp.Column.integer("age", 0, 99)]), card={})
    >>> quantile(release, "age").value, quantile(release, "age").unweighted
    (60, 40)
    """
    q = real_number("q", q, "a number from 0 to 1", AnalysisError, above=0, below=1, inclusive=True)
    design, (found, public), grouped = (
        Design.of(release),
        ordered(release, column),
        groups(release, by),
    )
    members = _quantiles(design, found, grouped, q, public)

    def bounds() -> list[tuple[Any, ...]]:
        there = np.flatnonzero(found.present)
        ranked = there[np.argsort(found.values[there], kind="stable")]
        values, cumulative = found.values[ranked], _cumulative(design.weights[ranked])
        return [
            tuple(
                _value(public, _inverse(values, cumulative, place))
                for place in quantile_places(q, least)
            )
            for least, _ in group_shares(release, grouped)
        ]

    measured, needed = Measured.of_release(release), {column, *grouped.columns}
    made = with_support(members, measured, needed, bounds, categories=grouped.categories())
    return estimates(grouped.columns, grouped.labels, made)


@dataclass(frozen=True, eq=False)
class Woodruff:
    """The interval of a quantile: R. S. Woodruff, JASA 47, 1952.

    `values` are sorted, `shares` their cumulative weight.
    """

    values: np.ndarray
    shares: np.ndarray
    q: float
    standard_error: float
    degrees: int
    column: Column

    def ends(self, level: float) -> tuple[float, float]:
        """The quantiles at q plus and minus so many standard errors of the share."""
        half = multiplier(level, self.degrees) * self.standard_error
        low, high = (_inverse(self.values, self.shares, self.q + side * half) for side in (-1, 1))
        return low, high

    def __call__(self, level: float) -> tuple[Any, Any]:
        """The ends, as values of the column."""
        low, high = self.ends(level)
        return _value(self.column, low), _value(self.column, high)


def _quantiles(
    design: Design, found: Numbers, grouped: Groups, q: float, column: Column
) -> list[Estimate]:
    """The quantile of every group; the replicates are gone through once for all of them."""
    own = [
        _own_quantile(design.weights, found.values, _ranked(found, grouped, place), q)
        for place in range(len(grouped.labels))
    ]
    # F(theta) = sum_i w_i 1[x_i <= theta] / sum_i w_i, with every replicate, and F just below it:
    # at the largest value F is one whatever the weights are.
    at = np.array([np.nan if each is None else each.value for each in own])
    upto = np.append(at, np.nan)[grouped.members]
    lines = [
        grouped.lines((found.present & chosen).astype(float))
        for chosen in (found.values <= upto, found.values < upto, found.present)
    ]
    errors = np.full((len(own), 2), np.nan)
    if design.count:
        *parts, whole = design.several_sums(*lines)
        shares = [design.whole_way(ratio(part, whole)) for part in parts]
        errors = np.stack([standard_errors(each) for each in shares], axis=-1)
    members = []
    for place, each in enumerate(own):
        if each is None:
            members.append(Estimate(None, None, None, EMPTY))
            continue
        plain = _value(column, each.plain)
        if each.cumulative is None:
            members.append(Estimate(None, None, plain, EMPTY))
            continue
        value = _value(column, each.value)
        error, below = errors[place].tolist()
        error = error if error > SAME else below
        if not design.count:
            members.append(Estimate(value, None, plain, NO_REPLICATES))
        elif not error > SAME:
            members.append(Estimate(value, None, plain, ALL_ALIKE))
        else:
            span = Woodruff(each.ranked, each.cumulative, q, error, design.count, column)
            members.append(_with_span(value, plain, span))
    return members


@dataclass(frozen=True, eq=False)
class _OwnQuantile:
    """The quantile of some rows with their weights and without, and what it was found by."""

    value: float
    plain: float
    ranked: np.ndarray
    cumulative: np.ndarray | None  # None where no row has weight


def _ranked(found: Numbers, grouped: Groups, place: int) -> np.ndarray:
    """The rows of a group that have a value, by their values."""
    rows = np.flatnonzero((grouped.members == place) & found.present)
    return rows[np.argsort(found.values[rows], kind="stable")]


def _own_quantile(
    weights: np.ndarray, values: np.ndarray, rows: np.ndarray, q: float
) -> _OwnQuantile | None:
    if not len(rows):
        return None
    ranked = values[rows]
    plain = _inverse(ranked, _cumulative(np.ones(len(rows))), q)
    if not weights[rows].sum() > 0:
        return _OwnQuantile(math.nan, plain, ranked, None)
    cumulative = _cumulative(weights[rows])
    return _OwnQuantile(_inverse(ranked, cumulative, q), plain, ranked, cumulative)


def _with_span(value: Any, plain: Any, span: Woodruff) -> Estimate:
    low, high = span.ends(LEVEL)
    column = span.column
    scale = Scale(column.kind if column.kind in ("date", "datetime") else "number")
    width = (high - low) / (2 * multiplier(LEVEL, span.degrees))
    return Estimate(value, scale.width(width) if column.is_numeric else None, plain, "", span)


def _cumulative(weights: np.ndarray) -> np.ndarray:
    sums = np.cumsum(weights)
    return np.asarray(sums / sums[-1])


def _inverse(values: np.ndarray, shares: np.ndarray, q: float) -> float:
    # Rounding must not carry the search past a share that equals q; and rows without weight, which
    # may come first, are no part of any share.
    sought = max(q - 1e-12 * max(1.0, q), np.nextafter(0.0, 1.0))
    place = np.searchsorted(shares, sought, side="left")
    return float(values[min(int(place), len(values) - 1)])


def _value(column: Column, number: float) -> Any:
    if column.categories is not None:
        return column.categories[int(number)]
    if column.kind == "integer":
        return int(number)
    return Scale(column.kind if column.kind in ("date", "datetime") else "number").value(number)
