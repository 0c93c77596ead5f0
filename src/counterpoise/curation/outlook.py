"""What a plan will ask, how noisy the answers will be, and what it takes in time and memory.

All of it follows from the schema, the budget and a guess at the number of rows, so nothing is read.
The noise on counts is what will be added. That on a mean is close to it: the length to which rows
are cut is read off the synthetic table later. Seconds are those of one processor, and bytes the
most that the process holds in a stage; both are rough, from the formulas in `costs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from counterpoise.arguments import whole_number
from counterpoise.bundle.parts import MADE_TOGETHER, block_sizes, goes_in_parts
from counterpoise.bundle.pool import pool_rows
from counterpoise.curation.costs import (
    Cost,
    held_bytes,
    moments_cost,
    replicates_cost,
    synthesizer_cost,
)
from counterpoise.curation.weights_share import asked_features, mean_noise, share_by_rows, why_split
from counterpoise.errors import BudgetError
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import (
    SYNTHESIZERS,
    Aim,
    DpMmd,
    Histogram,
    Independent,
    Marginals,
    MmdGan,
    Mst,
    PateGan,
    PrivBayes,
    SupportPoints,
)
from counterpoise.synthesizers.beginning import ROWS_PART, TARGET_PART
from counterpoise.synthesizers.gan import AdversarialMethod
from counterpoise.synthesizers.histogram import PARTS_FRACTION
from counterpoise.synthesizers.matching import COUNTS_PART
from counterpoise.synthesizers.protocol import MOST_ROWS
from counterpoise.synthesizers.support_points import POINTS
from counterpoise.vault import MOST_BINS, REPLACE, Share, count_noise, most_codes
from counterpoise.vault.cells import WHERE_PART
from counterpoise.weights import WEIGHTERS, Moments, Uniform

if TYPE_CHECKING:
    from counterpoise.curation.plan import Plan

# Noise, time and memory are worked out for so many private rows when nobody states a guess.
GUESSED_ROWS = 10_000

# How many categories a list may have that is still to be paid for.
GUESSED_CATEGORIES = 20


@dataclass(frozen=True)
class Stage:
    """One stage of a release before it happens; `share` is None when it asks nothing."""

    name: str
    method: str | None
    share: Share | None
    part: float  # of the whole budget
    asks: str
    noise: str
    seconds: float | None
    bytes: int | None


@dataclass(frozen=True)
class RowsGuessed:
    """How many private rows there may be, and how many of these the vault would keep."""

    all: int
    kept: int


def rows_guessed(
    plan: Plan, private_rows: int | None = None, private_persons: int | None = None
) -> RowsGuessed:
    """What guesses of rows and of persons come to; without one of persons, every row is kept.

    >>> from counterpoise.curation.plan import plan_release
    >>> from counterpoise.vault import Budget
    >>> schema = Schema([Column.boolean("late")])
    >>> plan = plan_release(schema, Budget(1.0, max_rows_per_person=20), person="aircraft")
    >>> rows_guessed(plan, 336_776, 4_044), rows_guessed(plan, private_persons=4_044)
    (RowsGuessed(all=336776, kept=80880), RowsGuessed(all=80880, kept=80880))
    """
    if private_rows is not None:
        private_rows = whole_number("private_rows", private_rows, most=MOST_ROWS)
    if private_persons is None:
        rows = GUESSED_ROWS if private_rows is None else private_rows
        return RowsGuessed(rows, rows)
    persons = whole_number("private_persons", private_persons, most=MOST_ROWS)
    if plan.person is None:
        raise BudgetError(
            "private_persons: rows are only left out where person says whose they are; state "
            "that, or leave the guess out"
        )
    # n' <= k times the number of persons
    kept = min(persons * plan.budget.max_rows_per_person, private_rows or MOST_ROWS)
    return RowsGuessed(private_rows or kept, kept)


def stages_of(plan: Plan, guessed: RowsGuessed, replicates: int = 80) -> tuple[Stage, ...]:
    """The stages of a plan, in order.

    >>> from counterpoise.curation.plan import plan_release
    >>> from counterpoise.schema import Column
    >>> from counterpoise.vault import Budget
    >>> schema = Schema([Column.boolean("ill"), Column.integer("age", 0, 99)])
    >>> for stage in plan_release(schema, Budget(1.0, 1e-6)).describe():
    ...     print(f"{stage.name}: {stage.part:.0%} {stage.noise}")
    cells: 16% the number of rows: ± 45; a count of one fine cell: ± 18
    synthesizer: 70% a count of all columns: ± 5.4
    weights: 14% a standardised mean of 10,000 rows: ± 0.0025; 16% of what is left, so that ...
    replicates: 0%
    """
    private_rows = guessed.kept
    rows = min(private_rows, MADE_TOGETHER) if plan.rows is None else plan.rows
    # Of rows that are made in parts, the first block is what is drawn and held.
    held = block_sizes(rows)[0] if goes_in_parts(rows, plan.weighter) else rows
    schema = _guessed(plan, private_rows)
    plan = share_by_rows(plan, schema, private_rows)
    stages = [
        _persons(plan),
        _domain(plan),
        _bins(plan) if plan.cells_share is None else _cells(plan),
    ]
    if plan.synthesizer is not None:
        stages.append(_synthesizer(plan, schema, guessed, held))
    stages.append(_weights(plan, schema, private_rows, held))
    if replicates:
        found = _replicates(plan, schema, private_rows, rows, replicates)
        stages.append(
            replace(found, bytes=_replicates(plan, schema, private_rows, held, replicates).bytes)
        )
    return tuple(stage for stage in stages if stage is not None)


def _guessed(plan: Plan, private_rows: int) -> Schema:
    """The schema with as many codes as there may be, and something where it is left open."""
    columns = []
    most = most_codes(plan.budget, len(plan.schema), private_rows)
    for column in plan.schema.with_bins(MOST_BINS):
        if not column.is_complete and column.is_numeric:
            columns.append(Column.continuous(column.name, 0, 1, bins=MOST_BINS))
        elif not column.is_complete:
            guessed = [f"category {place}" for place in range(GUESSED_CATEGORIES)]
            columns.append(Column.categorical(column.name, guessed))
        elif plan.cells_share is not None and column.categories and column.has_open_cells:
            columns.append(replace(column, categories=column.categories[:most], other=None))
        else:
            columns.append(column)
    return Schema(columns)


def _persons(plan: Plan) -> Stage | None:
    share = plan.persons_share
    if share is None:
        return None
    # A person is one record of it, however many rows they have.
    one_each = replace(plan.budget, max_rows_per_person=1)
    most = plan.budget.max_rows_per_person
    return Stage(
        name="persons",
        method=None,
        share=share,
        part=_part(plan, share),
        asks=f"{_law(share)} counts of persons with at most {most:,} row{'s' * (most > 1)}, and "
        "with more",
        noise=f"a count of persons: ± {count_noise(one_each, share).deviation:.2g}",
        seconds=None,
        bytes=None,
    )


def _domain(plan: Plan) -> Stage | None:
    share = plan.domain_share
    if share is None:
        return None
    unknown = [column for column in plan.schema if not column.is_complete]
    deviation = count_noise(plan.budget, share.part(1 / len(unknown))).deviation
    return Stage(
        name="domain",
        method=None,
        share=share,
        part=_part(plan, share),
        asks=f"a {_law(share)} histogram for each column that is left open ({len(unknown)})",
        noise=f"a count of one range or category: ± {deviation:.2g}",
        seconds=None,
        bytes=None,
    )


def _bins(plan: Plan) -> Stage | None:
    if not plan.chooses_bins:
        return None
    share = plan.rows_share
    noise = ""
    if share is not None:
        noise = f"the number of rows: ± {count_noise(plan.budget, share).deviation:.2g}"
    return Stage(
        name="number of bins",
        method=None,
        share=share,
        part=_part(plan, share),
        asks="nothing" if share is None else f"a {_law(share)} count of the rows",
        noise=noise,
        seconds=None,
        bytes=None,
    )


def _cells(plan: Plan) -> Stage:
    share = plan.cells_share
    assert share is not None
    columns = sum(column.has_open_cells for column in plan.schema)
    # A number is looked for, then counted twice, in fine cells and in groups of them.
    tables = columns + sum(c.has_open_cells and c.is_numeric for c in plan.schema)
    deviation = count_noise(plan.budget, share.part(1 - WHERE_PART), tables).deviation
    noise = f"a count of one fine cell: ± {deviation:.2g}"
    asks = f"{_law(share)} rough, then fine histograms of the open columns ({columns})"
    if plan.rows_share is not None:
        asks = f"a {_law(plan.rows_share)} count of the rows, then {asks}"
        deviation = count_noise(plan.budget, plan.rows_share).deviation
        noise = f"the number of rows: ± {deviation:.2g}; {noise}"
        share = Share(share.amount + plan.rows_share.amount, share.pure)
    return Stage(
        name="cells",
        method=None,
        share=share,
        part=_part(plan, share),
        asks=asks,
        noise=noise,
        seconds=None,
        bytes=None,
    )


def _synthesizer(plan: Plan, schema: Schema, guessed: RowsGuessed, rows: int) -> Stage:
    method, share = plan.synthesizer, plan.synthesizer_share
    assert share is not None
    first = _first_counts(method, schema, share)
    noise = ""
    if first is not None:
        deviation = count_noise(plan.budget, first[0], first[1]).deviation
        cell = (
            "a count of all columns" if isinstance(method, Histogram) else "a count of one column"
        )
        if isinstance(method, Marginals):
            cell = "a count of one table"
        noise = f"{cell}: ± {deviation:.2g}"
    one_count = count_noise(plan.budget, share).deviation
    cost = synthesizer_cost(method, schema, guessed.kept, rows, one_count, guessed.all)
    return Stage(
        name="synthesizer",
        method=SYNTHESIZERS.name_of(method),  # type: ignore[arg-type]
        share=share,
        part=_part(plan, share),
        asks=_asked_by_synthesizer(method, schema, share),
        noise=noise,
        seconds=None if cost is None else cost.seconds,
        bytes=None if cost is None else cost.bytes,
    )


def _asked_by_synthesizer(method: Any, schema: Schema, share: Share) -> str:
    law = _law(share)
    if isinstance(method, Aim):
        return f"{law} counts of every column, then rounds: choose a table, {law} counts of it"
    if isinstance(method, Mst):
        return f"{law} counts of every column, a choice of pairs, {law} counts of those"
    if isinstance(method, PrivBayes):
        return f"the number of rows, a choice of parents a column, {law} counts of those tables"
    if isinstance(method, Histogram):
        parts = method.parts_of(schema, is_pure=share.pure)
        more = f", and of {len(parts)} tables of three" if parts else ""
        return f"{law} counts of every combination of all columns{more}"
    if isinstance(method, Independent | Marginals):
        return f"{law} counts, all in one query"
    if isinstance(method, DpMmd):
        return f"{law} counts of every column, then one {law} sum of products of pairs"
    if isinstance(method, MmdGan):
        return f"the number of rows, then gradients WITHOUT NOISE, {method.steps:,} steps"
    if isinstance(method, PateGan | AdversarialMethod):
        return _asked_by_gan(method, law)
    if isinstance(method, SupportPoints):
        return _asked_by_points(method, law)
    return "what the method asks within its share"


def _asked_by_gan(method: PateGan | AdversarialMethod, law: str) -> str:
    if isinstance(method, PateGan):
        first = "the number of rows"
        course = f"{law} votes of teachers on up to {method.rounds * method.votes:,} rows"
    else:
        first = f"{law} counts of the target" if method.is_given else "the number of rows"
        noise = f"{law} gradients" if method.is_noised else "gradients WITHOUT NOISE"
        course = f"{noise}, up to {method.steps:,} steps"
    if method.start:
        first = f"{law} counts of every column and one {law} sum of products of pairs"
    last = ""
    if method.snapshots:
        last = f", then one {law} sum of the scores of {method.snapshots:,} critics"
    return f"{first}, then {course}{last}"


def _asked_by_points(method: SupportPoints, law: str) -> str:
    chosen = (method.points or POINTS) * method.repeats
    if method.sampler == "exact":
        first = f"{law} counts of every column"
        asks = f"{chosen:,} choices among {method.candidates:,} public points"
    else:
        first = "the number of rows"
        asks = f"{chosen:,} points by a chain, with a guarantee in its limit only"
    last = "" if isinstance(method.bandwidth, float) else ", then a bandwidth"
    return f"{first}, then {asks}{last}"


def _first_counts(method: Any, schema: Schema, share: Share) -> tuple[Share, int] | None:
    """The share and the number of tables of the counts that a method is sure to ask for."""
    columns = len(schema)
    match method:
        case Aim():
            return share.part(method.first_part), columns
        case Mst():
            return (share if columns == 1 else share.split(*method.parts)[0]), columns
        case PrivBayes():
            return share.part(0.7), columns
        case Independent():
            return share, columns
        case DpMmd():
            return (share if columns == 1 else share.part(method.counts_part)), columns
        case PateGan() | AdversarialMethod() if method.start:
            counted = method.start * (1.0 if columns == 1 else COUNTS_PART)
            return share.part(counted), columns
        case PateGan() | MmdGan():
            return share.part(ROWS_PART), 1
        case AdversarialMethod():
            return share.part(TARGET_PART if method.is_given else ROWS_PART), 1
        case SupportPoints():
            return share.part(method.counts_part), columns if method.sampler == "exact" else 1
        case Histogram():
            has_parts = method.parts_of(schema, is_pure=share.pure)
            return share.part(1 - PARTS_FRACTION) if has_parts else share, 1
        case Marginals():
            degree = min(method.degree, columns)
            return share, len(method.workload or ()) or math.comb(columns, degree)
    return None


def _weights(plan: Plan, schema: Schema, private_rows: int, rows: int) -> Stage:
    share, method = plan.weights_share, plan.weighter
    noise = ""
    cost: Cost | None = None
    asks = "nothing" if share is None else "what the method asks within its share"
    if isinstance(method, Moments) and share is not None:
        asks = f"one {_law(share)} sum of features"
        if method.questions:
            count = len(method.questions)
            asks += f", first of those of {count} question{'s' if count > 1 else ''}"
        if plan.budget.neighbours is not REPLACE:
            asks += f", and a {_law(share)} count of the rows"
        features = asked_features(method, plan.budget, schema, share, private_rows)
        deviation = mean_noise(plan.budget, share, features, private_rows)
        noise = f"a standardised mean of {private_rows:,} rows: ± {deviation:.2g}"
        if features.asked:
            deviation = mean_noise(plan.budget, share, features, private_rows, asked=True)
            noise += f"; one that was asked for: ± {deviation:.2g}"
        if reason := why_split(plan):
            noise += f"; {plan.split:.0%} of what is left, {reason}"
        cost = moments_cost(schema, private_rows, pool_rows(method, rows), features.size)
    elif share is None:
        cost = Cost(0.0, held_bytes(schema, private_rows, rows))
    return Stage(
        name="weights",
        method=WEIGHTERS.name_of(method),
        share=share,
        part=_part(plan, share),
        asks=asks,
        noise=noise,
        seconds=None if cost is None else cost.seconds,
        bytes=None if cost is None else cost.bytes,
    )


def _replicates(plan: Plan, schema: Schema, private_rows: int, rows: int, replicates: int) -> Stage:
    cost: Cost | None = None
    share = plan.weights_share
    if isinstance(plan.weighter, Moments) and share is not None:
        features = asked_features(plan.weighter, plan.budget, schema, share, private_rows)
        cost = replicates_cost(schema, private_rows, rows, replicates, features.size)
    elif isinstance(plan.weighter, Uniform):
        cost = replicates_cost(schema, private_rows, rows, replicates, features=0)
    seconds, held = (None, None) if cost is None else (cost.seconds, cost.bytes)
    return Stage("replicates", None, None, 0.0, "nothing", "", seconds, held)


def _part(plan: Plan, share: Share | None) -> float:
    return 0.0 if share is None else share.amount / plan.budget.whole.amount


def _law(share: Share) -> str:
    return "Laplace-noised" if share.pure else "Gaussian-noised"
