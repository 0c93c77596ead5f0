"""The plan of a release: its methods and shares, fixed and checked before anything is read.

The domain stage pays for bounds and categories that the schema leaves open, and for the number of
rows by which bins are chosen where none are stated. The weights get their part unless their method
is free; the synthesizer gets the rest. Whatever can be wrong with a request is found here, so that
a mistake costs no budget.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Column, Schema
from counterpoise.synthesize import SYNTHESIZERS, Histogram, Synthesizer
from counterpoise.vault import MOST_BINS, REPLACE, Budget, Share, threshold_delta
from counterpoise.weigh import WEIGHTERS, Weighter

# The part of the budget that the domain gets when any of it is paid for.
DOMAIN_FRACTION = 0.1

# The part that the number of rows gets, when bins are to be chosen by it.
BINS_FRACTION = 0.01

# The part of what is then left that the weights get, when their method needs any.
WEIGHTS_FRACTION = 0.2

# Up to this many cells the full table is counted, and nothing has to be chosen.
FEW_CELLS = 64


@dataclass(frozen=True)
class Plan:
    """What will be asked of the vault; a share is None for a stage that asks nothing."""

    schema: Schema
    budget: Budget
    synthesizer: Synthesizer
    weighter: Weighter
    domain_share: Share | None
    chooses_bins: bool
    bins_share: Share | None
    synthesizer_share: Share
    weights_share: Share | None
    threshold_delta: float  # the part of delta set aside for private lists of categories


def plan_release(
    schema: Any,
    budget: Budget,
    synthesizer: str | Synthesizer = "auto",
    weights: str | Weighter = "uniform",
    rows: int | None = None,
) -> Plan:
    """Check a request and share the budget; the shares add up to no more than all of it.

    >>> schema = Schema([Column.boolean("ill"), Column.integer("children", 0, 12)])
    >>> plan = plan_release(schema, Budget(1.0, 1e-6))
    >>> plan.synthesizer, plan.weights_share
    (Histogram(most_cells=2000000), None)
    """
    public = Schema.read(schema)
    public.require_public()
    _check_names(public)
    _check_open_parts(public, budget)
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise MethodError(f"rows: expected a whole number from 1, not {rows!r}")
    chosen = best_synthesizer(public, budget) if synthesizer == "auto" else synthesizer
    method = SYNTHESIZERS.make(chosen)
    if budget.is_pure and getattr(method, "needs_delta", False):
        raise BudgetError(
            f"synthesizer {SYNTHESIZERS.name_of(method)!r} needs delta > 0: state a delta, such as "
            "1e-9, or choose 'privbayes'"
        )
    if isinstance(method, Histogram) and public.is_complete:
        method.check(public)
    weighter = WEIGHTERS.make(weights)
    set_aside = threshold_delta(public, budget.delta)
    whole = budget.whole_beside(set_aside)
    domain_part = 0.0 if public.is_complete else DOMAIN_FRACTION
    # The number of rows is public when records are replaced, and bins then cost nothing.
    chooses_bins = any(column.has_open_bins for column in public)
    bins_part = BINS_FRACTION if chooses_bins and budget.neighbours is not REPLACE else 0.0
    rest = 1 - domain_part - bins_part
    weights_part = 0.0 if weighter.is_free else WEIGHTS_FRACTION * rest
    return Plan(
        schema=public,
        budget=budget,
        synthesizer=method,
        weighter=weighter,
        domain_share=whole.part(domain_part) if domain_part else None,
        chooses_bins=chooses_bins,
        bins_share=whole.part(bins_part) if bins_part else None,
        synthesizer_share=whole.part(rest - weights_part),
        weights_share=whole.part(weights_part) if weights_part else None,
        threshold_delta=set_aside,
    )


def best_synthesizer(schema: Schema, budget: Budget) -> str:
    """The method that `auto` stands for, from public knowledge alone."""
    if schema.is_complete and math.prod(_most_codes(column) for column in schema) <= FEW_CELLS:
        return "histogram"
    return "privbayes" if budget.is_pure else "aim"


def _most_codes(column: Column) -> int:
    return MOST_BINS + column.nullable if column.has_open_bins else column.size


def _check_names(schema: Schema) -> None:
    """The release adds the columns `weight`, `weight_1`, `weight_2` and so on."""
    for name in schema.names:
        if re.fullmatch(r"weight(_\d+)?", name.casefold()):
            raise MethodError(
                f"column {name!r}: the release needs this name for weights; rename it"
            )


def _check_open_parts(schema: Schema, budget: Budget) -> None:
    """What is missing has to be marked as paid for: an oversight must not spend budget."""
    paid = set(schema.paid)
    for column in schema:
        if any((column.name, key) not in paid for key in column.missing):
            column.require_complete()
        if budget.is_pure and "enum" in column.missing:
            raise BudgetError(
                f"the categories of {column.name!r} can only be paid for with delta > 0: state "
                "them in the schema, or state a delta, such as 1e-9"
            )
