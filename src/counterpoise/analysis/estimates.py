"""Means, totals and proportions of a release, each with an interval.

All are ratios of weighted sums, so one product of a matrix with the replicate weights gives every
replicate at once. Null is missing, not a value: a mean, a proportion or a quantile is that of the
rows which have one, as surveys do; a total adds nothing for a null. Estimates are of the private
table's population as far as the weights put the synthesizer right. Quantiles are in `quantiles`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.allowed import (
    means_within,
    share_within,
    sums_within,
)
from counterpoise.analysis.columns import (
    By,
    Groups,
    Numbers,
    check_groups,
    codes,
    groups,
    is_same,
    numbers,
    one_column,
)
from counterpoise.analysis.replication import FULL, Design
from counterpoise.analysis.result import (
    Estimate,
    Estimates,
    Symmetric,
    estimate,
    estimates,
    joined,
    of_kept_rows,
)
from counterpoise.analysis.support import MEASURED, Measured
from counterpoise.analysis.unmeasured import group_shares, with_support
from counterpoise.arguments import shown
from counterpoise.bundle.card import RETARGETED
from counterpoise.errors import AnalysisError
from counterpoise.schema import Column
from counterpoise.schema.shape import ends_short_of_bounds, known_range

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

POPULATION = "population"
# A part of a sum that is worth a word where nobody could count it.
LARGE_PART = 0.05
BY_ROWS = "scaled to the number of synthetic rows, because the card states no population"
BY_PRIVATE_ROWS = (
    "scaled to the number of private rows, because nobody stated how many people the target has"
)
TARGET_STATED = "no standard error, because it is the number that was stated of the target"
AS_STATED = "no standard error, because it is the number that the card states"
# Degrees of freedom of a standard error that is known, and not estimated.
KNOWN_LAW = 10**9
KNOWN = "no standard error, because the number of private rows is public"
RARE = "too rare to stand out of the noise of its own count"
NOISY = "no standard error, because replicate weights do not redraw the noise of the population"


@of_kept_rows
def mean(release: Release, column: str, by: By = None) -> Estimate | Estimates:
    """The weighted mean of a column over the rows where it is not null.

    Of true and false it is the share of true; of dates it is a date.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"age": [20, 40], "weight": [0.5, 1.5]})
    >>> release = cp.Release(table, cp.Schema([cp.Column.integer("age", 0, 99)]), card={})
    >>> mean(release, "age").value, mean(release, "age").unweighted
    (35.0, 30.0)
    """
    design, found, grouped = Design.of(release), numbers(release, column), groups(release, by)
    # theta = sum_i w_i x_i / sum_i w_i
    results = design.whole_way(
        ratio(
            *design.several_sums(
                grouped.lines(found.values * found.present),
                grouped.lines(found.present.astype(float)),
            )
        )
    )
    measured = Measured.of_release(release)
    note, beyond = _hidden(release, column, found, design), _unseen(release, column, found, design)
    if by is None and column in measured.stated_means:
        note, beyond = "", 0.0
    ends = _ends(release, column)
    members = [estimate(line, found.scale, *ends, note=note, beyond=beyond) for line in results]
    there, weights = found.values[found.present], design.weights[found.present]
    made = with_support(
        members,
        measured,
        {column, *grouped.columns},
        lambda: [
            tuple(map(found.scale.value, ends))
            for ends in means_within(there, weights, group_shares(release, grouped))
        ],
        linear={column},
        categories=grouped.categories(),
        mean_of=column,
    )
    return estimates(grouped.columns, grouped.labels, made)


@of_kept_rows
def total(
    release: Release, column: str | None = None, category: Any = None, by: By = None
) -> Estimate | Estimates:
    """The sum of a column over the population, or the number of its rows.

    Without a column, or with one of its categories, it counts rows. The scale is the population
    that the card states; its own noise, if it has any, is not in the interval.
    """
    design, grouped = Design.of(release), groups(release, by)
    population, note = _population(release)
    linear, beyond, ends = set[str](), 0.0, (0.0, math.inf)
    if column is None:
        values = np.ones(release.rows)
    elif category is not None:
        values, place = _is_category(release, column, category)
        known = Measured.of_release(release).is_stated({column, *grouped.columns})
        unseen, shared = _rare(one_column(release, column), place, known)
        beyond, note = population * unseen, joined(note, shared)
    else:
        found = numbers(release, column)
        if found.scale.kind != "number":
            raise AnalysisError(f"column {column!r}: dates have no total; ask for their mean")
        values, linear = found.values * found.present, {column}
        note = joined(note, _hidden(release, column, found, design))
        beyond = population * _unseen(release, column, found, design)
        low, high = _ends(release, column)
        ends = 0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf
    # T = N sum_i w_i x_i / sum_i w_i
    everyone = np.ones((1, release.rows))
    sums = design.several_sums(grouped.lines(values), everyone)
    results = population * design.whole_way(ratio(*sums))
    if column is None and by is None:
        return _number_of_rows(release, population, note)

    def bounds() -> list[tuple[Any, Any]]:
        sums = sums_within(values, design.weights, group_shares(release, grouped))
        return [(population * low, population * high) for low, high in sums]

    # Var T = N^2 Var(T / N) + (T / N)^2 Var N
    noise = _population_noise(release) / population if population else 0.0
    members = [
        estimate(line, None, *ends, note, math.hypot(beyond, noise * float(line[FULL])))
        for line in results
    ]
    needed = {*grouped.columns, *([] if column is None else [column])}
    chosen = grouped.categories(*([] if category is None else [(str(column), category)]))
    made = with_support(
        members,
        Measured.of_release(release),
        needed,
        bounds,
        linear,
        chosen,
        mean_of=column if linear else None,
    )
    return estimates(grouped.columns, grouped.labels, made)


@of_kept_rows
def proportion(
    release: Release, column: str, category: Any = None, by: By = None
) -> Estimate | Estimates:
    """The share of a category among the rows that are not null; of each category by default.

    Of true and false it is the share of true. Intervals are kept within 0 and 1.
    """
    public = one_column(release, column)
    _require_categories(public)
    design, grouped = Design.of(release), groups(release, by)
    if category is None and public.category_type == "boolean":
        category = True
    found = codes(release, column)
    if category is None:
        return shares(release, design, grouped, public, found.codes, found.labels)
    present = grouped.lines((found.codes >= 0).astype(float))
    chosen, place = _is_category(release, column, category)
    results = design.whole_way(ratio(*design.several_sums(grouped.lines(chosen), present)))
    measured, needed = Measured.of_release(release), {column, *grouped.columns}
    beyond, note = _rare(public, place, measured.is_stated(needed))

    def bounds() -> list[tuple[Any, ...]]:
        whole = float(design.weights @ chosen / design.weights[found.codes >= 0].sum())
        return [share_within(whole, least) for least, _ in group_shares(release, grouped)]

    made = with_support(
        [share(line, beyond, note) for line in results],
        measured,
        needed,
        bounds,
        categories=grouped.categories((column, category)),
    )
    return estimates(grouped.columns, grouped.labels, made)


def shares(
    release: Release,
    design: Design,
    grouped: Groups,
    column: Column,
    found: np.ndarray,
    labels: tuple[Any, ...],
) -> Estimates:
    """The share of every code within every group, among the rows whose code is not -1."""
    if grouped.columns:
        check_groups(len(grouped.labels) * len(labels), "by", (*grouped.columns, column.name))
    cells = Groups(
        (*grouped.columns, column.name),
        tuple((*left, right) for left in grouped.labels for right in labels),
        np.where((found >= 0) & (grouped.members >= 0), grouped.members * len(labels) + found, -1),
    )
    counts, wholes = design.several_sums(
        cells.lines(np.ones(len(found))), grouped.lines((found >= 0).astype(float))
    )
    results = design.whole_way(ratio(counts, np.repeat(wholes, len(labels), axis=0)))
    measured = Measured.of_release(release)
    is_stated = measured.is_stated(cells.columns)
    rare = [_rare(column, place, is_stated) for place in range(len(labels))] * len(grouped.labels)
    members = [share(line, *known) for line, known in zip(results, rare, strict=True)]

    def bounds() -> list[tuple[Any, Any]]:
        weights = np.bincount(found[found >= 0], design.weights[found >= 0], len(labels))
        parts = weights / weights.sum()
        return [
            share_within(float(part), least)
            for least, _ in group_shares(release, grouped)
            for part in parts
        ]

    made = with_support(members, measured, cells.columns, bounds, categories=cells.categories())
    return Estimates(cells.columns, cells.labels, tuple(made))


def share(results: np.ndarray, beyond: float = 0.0, note: str = "") -> Estimate:
    """An estimate of a share, which is not below 0 or above 1; see `estimate`."""
    return estimate(results, lowest=0.0, highest=1.0, note=note, beyond=beyond)


def ratio(over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """A ratio that is NaN where there is nothing to divide by."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(under > 0, over / under, np.nan))


def _population(release: Release) -> tuple[float, str]:
    target = release.card.get(RETARGETED) or {}
    if target.get(POPULATION) is not None:
        return float(target[POPULATION]), ""
    stated = release.card.get(POPULATION)
    if stated is None:
        return float(release.card.get("rows", release.rows)), BY_ROWS
    return float(stated), BY_PRIVATE_ROWS if target else ""


def _population_noise(release: Release) -> float:
    """The deviation of the noise in the number of rows, as far as the card states one."""
    if (release.card.get(RETARGETED) or {}).get(POPULATION) is not None:
        return 0.0
    return float(release.card.get("population_deviation", 0.0))


def _number_of_rows(release: Release, population: float, note: str) -> Estimate:
    """How many rows there are, with the noise of their own count."""
    noise = _population_noise(release)
    if not noise:
        note = note or _no_error(release)
        return Estimate(population, None, population, note, support=MEASURED)
    span = Symmetric(population, noise, KNOWN_LAW, lowest=0.0)
    return Estimate(population, noise, population, note, span, MEASURED)


def _ends(release: Release, name: str) -> tuple[float, float]:
    """Between which numbers the values of a column lie, as its schema states; of truths 0 and 1."""
    column = one_column(release, name)
    if not column.is_numeric:
        return 0.0, 1.0
    return float(column.low), float(column.high)


def _no_error(release: Release) -> str:
    """Why the population, by itself, has no standard error."""
    if (release.card.get(RETARGETED) or {}).get(POPULATION) is not None:
        return TARGET_STATED
    is_public = release.card.get("population_is_public")
    return AS_STATED if is_public is None else KNOWN if is_public else NOISY


def _hidden(release: Release, name: str, found: Numbers, design: Design) -> str:
    """What part of a sum lies where the noise hides how many rows there are, if it is not small."""
    low, high = known_range(one_column(release, name))
    amounts = np.abs(found.values) * found.present * design.weights
    whole = float(amounts.sum())
    said = []
    for side, end, beyond in (
        ("below", low, found.values < low),
        ("above", high, found.values >= high),
    ):
        part = float(amounts[beyond].sum()) / whole if whole > 0 else 0.0
        if part >= LARGE_PART and found.scale.kind == "number":
            # Just above an atom of zero is above zero.
            said.append(f"about {part:.0%} of it lies {side} {round(end, 12):,.6g}")
    return f"{' and '.join(said)}, where noise hides how many rows there are" if said else ""


def _unseen(release: Release, name: str, found: Numbers, design: Design) -> float:
    """The standard error of a mean by rows that lie beyond those which stood out of the noise.

    Of M rows further out, of which a count says N(0, noise^2), none is as likely as any number up
    to h noises, h = 4.5, what would stand out (see `schema.tails`). With c = sqrt(2 pi) / (2 h),

        E M^2 = noise^2 c / (1 + c) = 0.22 noise^2, or about (noise / 2)^2.

    They may lie as far out as any x, the less plausibly by (end / x)^2, so that by their square
    they count as if they lay where the others end, |end - mean| away; but no further off than the
    bound leaves room for: what lies just beyond is as good as counted.
    """
    column = one_column(release, name)
    ends = ends_short_of_bounds(column)
    whole = float(design.weights[found.present].sum())
    if not ends or not whole > 0:
        return 0.0
    assert column.shape is not None
    mean = float(found.values[found.present] @ design.weights[found.present]) / whole
    further = math.hypot(*(min(abs(end - mean), abs(bound - end)) for end, bound in ends))
    return column.shape.noise / 2 * further


def _rare(column: Column, place: int, is_stated: bool) -> tuple[float, str]:
    """The noise of a category's own count, and a note, where its code stands for others as well.

    Replicates vary such a category as all that share its code vary on average. One that somebody
    asks for is not any of them: what is known of it is its own count, and the noise of that. A
    share that was stated of a target has no noise.
    """
    grouping = column.grouping
    if is_stated or grouping is None or not grouping.noise:
        return 0.0, ""
    return (grouping.noise, RARE) if grouping.is_shared[place] else (0.0, "")


def _is_category(release: Release, name: str, category: Any) -> tuple[np.ndarray, int]:
    """One where a row has the category, zero elsewhere; and the category's place in the list."""
    _require_categories(one_column(release, name))
    found = codes(release, name)
    places = [code for code, label in enumerate(found.labels) if is_same(label, category)]
    if not places:
        listed = ", ".join(map(repr, found.labels[:8])) + (", ..." if len(found.labels) > 8 else "")
        raise AnalysisError(
            f"column {name!r} has no category {shown(category)}; its categories are {listed}"
        )
    return np.asarray(found.codes == places[0], dtype=float), places[0]


def _require_categories(column: Column) -> None:
    if column.is_numeric:
        raise AnalysisError(
            f"column {column.name!r} is {column.kind} and has no categories; "
            "ask for its histogram, mean or quantile"
        )
