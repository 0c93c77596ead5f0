"""What a card and a table of a release have to be, field by field, and the refusal of all else.

A release comes from somewhere else, perhaps damaged, perhaps edited by hand. So that whatever is
loaded can be used, every field that we read is held against a rule here: its type, its range, and
that numbers are finite. Fields that we do not know are left alone. The same rules hold when a
release is saved, so that what is written can be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.bundle.card import BOUNDED, COVERS_WEIGHTS, PROMISED
from counterpoise.bundle.persons import PERSONS
from counterpoise.errors import BundleError, CounterpoiseError
from counterpoise.schema import Column, Schema
from counterpoise.schema.row_rules import restored_identifier
from counterpoise.vault import Ledger

LEVELS = ("fine", "caution", "do not use")
# More than any table has; whole numbers up to here are exact.
MOST_PEOPLE = 1e15
# Another version of the accountant may round otherwise; another ledger is further away.
_TOTAL_TOLERANCE = 0.01
# Of the mean of weights from one: single precision loses less; a round number, not studied.
MEAN_TOLERANCE = 0.01


@dataclass(frozen=True)
class Rule:
    """What a field has to be, in words and as a test; one that is not `needed` may be left out."""

    expected: str
    holds: Callable[[Any], bool]
    needed: bool = True

    def or_null(self) -> Rule:
        """The same, or null."""
        return replace(
            self,
            expected=f"{self.expected}, or null",
            holds=lambda value: value is None or self.holds(value),
        )

    def if_any(self) -> Rule:
        """The same, or nothing."""
        return replace(self, needed=False)


def number(low: float = -math.inf, high: float = math.inf) -> Rule:
    """A finite number from `low` to `high`.

    >>> number(0, 1).holds(0.5), number(0, 1).holds(True), number().holds(10**400)
    (True, False, False)
    """
    within = f" from {low:g}" * math.isfinite(low) + f" to {high:g}" * math.isfinite(high)
    return Rule(f"a number{within}", lambda value: _is_number(value) and low <= value <= high)


def numbers(low: float = -math.inf) -> Rule:
    """A list of finite numbers from `low`.

    >>> numbers(0).holds([1, 2.5]), numbers(0).holds([-1]), numbers(0).holds(1)
    (True, False, False)
    """
    each = number(low)
    return Rule(
        "a list of numbers" + f" from {low:g}" * math.isfinite(low),
        lambda value: isinstance(value, list) and all(map(each.holds, value)),
    )


def whole(low: int) -> Rule:
    """A whole number from `low`."""
    return Rule(
        f"a whole number from {low}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low,
    )


def one_of(*values: str) -> Rule:
    """One of some texts."""
    return Rule(f"one of {', '.join(map(repr, values))}", lambda value: value in values)


TEXT = Rule("a text", lambda value: isinstance(value, str))
TRUTH = Rule("true or false", lambda value: isinstance(value, bool))
OBJECT = Rule("an object", lambda value: isinstance(value, Mapping))
LIST = Rule("a list", lambda value: isinstance(value, list))
TEXTS = Rule(
    "an object of texts",
    lambda value: isinstance(value, Mapping) and all(isinstance(x, str) for x in value.values()),
)
FRACTION = number(0, 1)
NAMES = Rule(
    "a list of columns",
    lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
)
SETS = Rule(
    "a list of lists of columns",
    lambda value: isinstance(value, list) and all(map(NAMES.holds, value)),
)
PARTS = Rule(
    "a list of pairs of columns and a number from 0 to 1",
    lambda value: (
        isinstance(value, list)
        and all(isinstance(each, list) and len(each) == 2 for each in value)
        and all(NAMES.holds(names) and FRACTION.holds(part) for names, part in value)
    ),
)
NUMBER_OR_TEXT = Rule(
    "a number or a text", lambda value: TEXT.holds(value) or number().holds(value)
)
BEFORE = Rule(
    "a mean, or a list of shares",
    lambda value: NUMBER_OR_TEXT.holds(value) or numbers(0).holds(value),
)

# A dot leads into an object; what is in an object that is null or missing is not asked for.
CARD: Mapping[str, Rule] = {
    "counterpoise": TEXT,
    "versions": TEXTS,
    "ledger": OBJECT,
    "ledger.budget": OBJECT,
    "ledger.budget.epsilon": number(0),
    "ledger.budget.delta": FRACTION,
    "ledger.budget.neighbours": TEXT,
    "ledger.budget.max_rows_per_person": whole(1),
    "ledger.private": TRUTH,
    "ledger.epsilon_spent": number(0),
    "ledger.epsilon_by_privacy_loss_distribution": number(0).or_null().if_any(),
    "ledger.spends": LIST,
    "synthesizer": OBJECT,
    "synthesizer.method": TEXT,
    "synthesizer.parameters": OBJECT,
    "weights": OBJECT,
    "weights.method": TEXT,
    "weights.parameters": OBJECT,
    "weights.stated_by_caller": TRUTH.if_any(),
    "weights.reweighted": TRUTH.if_any(),
    "weights.effective_sample_size": number(0),
    "weights.largest_share": FRACTION,
    "weights.effective_fraction": number(0, 1 + 1e-9).if_any(),
    "weights.tail_shape": number().or_null().if_any(),
    "weights.tail_share": FRACTION.if_any(),
    "weights.infinite_variance_p_value": FRACTION.or_null().if_any(),
    "weights.reached": number().if_any(),
    "weights.verdict": OBJECT.or_null().if_any(),
    "weights.verdict.level": one_of(*LEVELS),
    "weights.verdict.reason": TEXT,
    "weights.verdict.way_out": TEXT,
    "split": FRACTION.or_null().if_any(),
    "split_reason": TEXT.if_any(),
    # How many rows were drawn, where those that left were chosen by weight.
    "chosen_from": whole(1).if_any(),
    "population": number(0, MOST_PEOPLE).or_null(),
    "population_is_public": TRUTH,
    # The deviation of the noise in it, where that is known.
    "population_deviation": number(0, MOST_PEOPLE).if_any(),
    "seeded": TRUTH,
    # Whether persons were bounded, or nobody is to have more rows; an earlier version did not say.
    "person": one_of(BOUNDED, PROMISED).if_any(),
    # How many persons have no more rows than were kept, and how many have more; their noise.
    "persons": OBJECT.if_any(),
    "persons.within": number(-MOST_PEOPLE, MOST_PEOPLE),
    "persons.beyond": number(-MOST_PEOPLE, MOST_PEOPLE),
    "persons.deviation": number(0, MOST_PEOPLE),
    # The account that was charged, where the curator keeps one.
    "account": OBJECT.if_any(),
    "account.id": TEXT,
    "account.name": TEXT,
    "account.release": TEXT,
    # What tells the request and the run from others, where there was a working folder.
    "made_by": OBJECT.if_any(),
    "made_by.request": TEXT,
    "made_by.run": TEXT,
    "covers": one_of(COVERS_WEIGHTS).if_any(),
    "caveat": TEXT.if_any(),
    "model": OBJECT,
    "model.saved": TRUTH,
    "model.reason": TEXT.or_null(),
    # What was counted and summed together; a release of an earlier version does not say.
    "measured": OBJECT.if_any(),
    "measured.counts": SETS.or_null(),
    "measured.cells": SETS,
    "measured.products": SETS,
    "measured.trends": SETS.if_any(),
    "measured.assumed": PARTS.if_any(),
    # Which population the weights were turned to since, and how.
    "retargeted": OBJECT.if_any(),
    "retargeted.population": number(0, MOST_PEOPLE).or_null(),
    "retargeted.effective_part": FRACTION,
    "retargeted.replicates_lent": whole(0),
    "retargeted.steps": LIST,
    # How many times wider intervals are than those of the private table, by kind of question.
    "price": OBJECT.or_null().if_any(),
    "price.columns": number(0).if_any(),
    "price.groups": number(0).if_any(),
    "price.relations": number(0).if_any(),
    "price.overall": number(0),
    "price.level": one_of("fine", "wide", "worth little"),
    "rows": whole(0),
    "replicates": OBJECT.or_null(),
    "replicates.count": whole(1),
    "replicates.scale": number(0),
    # How much of the way from the weight they go; all of it in a release of an earlier version.
    "replicates.part": number(0, 1).if_any(),
    "replicates.centred_on": TEXT,
    "replicates.variance": TEXT,
    # Kish's effective sample sizes of the replicates; a release of an earlier version has none.
    "replicates.effective_sample_sizes": numbers(0).if_any(),
    "replicates.worst_effective_sample_size": number(0).if_any(),
    "replicates.median_effective_sample_size": number(0).if_any(),
    "replicates.bounded": whole(0).if_any(),
    "replicates.worst_before_bounding": number(0).if_any(),
}
# What was done to weights: raked, multiplied by a known or a learned factor, or replaced.
STEPS = ("margins", "modifier", "labelled", "replaced")
STEP: Mapping[str, Rule] = {
    "kind": one_of(*STEPS),
    "columns": SETS,
    "margins": LIST.if_any(),
    "expression": TEXT.if_any(),
    "given": TEXT.if_any(),
    "link": TEXT.if_any(),
    "rows": whole(1).if_any(),
    "centre": numbers().if_any(),
    "scale": numbers(0).if_any(),
    "coefficients": numbers().if_any(),
    "root": LIST.if_any(),
}
NEEDED = {"margins": ("margins",), "labelled": ("link", "rows")}
MARGIN: Mapping[str, Rule] = {
    "columns": NAMES,
    "cells": LIST.if_any(),
    "shares": numbers(0).if_any(),
    "mean": NUMBER_OR_TEXT.if_any(),
    "before": BEFORE,
}
SPEND: Mapping[str, Rule] = {
    "stage": TEXT,
    "query": TEXT,
    "mechanism": OBJECT,
    "mechanism.event": TEXT,
    "delta": FRACTION,
}


def check_card(card: Any) -> None:
    """Raise a BundleError that names the first field of a card that is not what it should be."""
    check_fields(card, CARD, "the card")
    ledger = card["ledger"]
    for place, spend in enumerate(ledger["spends"]):
        check_fields(spend, SPEND, f"the card: ledger.spends.{place}")
    with refused("the card's ledger"):
        spent = Ledger.from_dict(ledger).epsilon_spent
    if not math.isclose(spent, ledger["epsilon_spent"], rel_tol=_TOTAL_TOLERANCE, abs_tol=1e-12):
        raise BundleError("the card: ledger.epsilon_spent is not what its spends add up to")
    if card["seeded"] and ledger["private"]:
        raise BundleError("the card: a seeded release cannot have a private ledger")
    if PERSONS in card and card.get("person") != BOUNDED:
        raise BundleError("the card: persons are counted where they are bounded, and nowhere else")
    if card["weights"]["effective_sample_size"] > card["rows"] * (1 + 1e-9):
        raise BundleError("the card: weights.effective_sample_size is more than the rows")
    for place, step in enumerate((card.get("retargeted") or {}).get("steps", ())):
        _check_step(step, f"the card: retargeted.steps.{place}")
    replicates = card["replicates"] or {}
    if replicates:
        squares = replicates["scale"] * replicates["count"] * replicates.get("part", 1.0) ** 2
        if not math.isclose(squares, 1.0, rel_tol=1e-6):
            raise BundleError("the card: replicates.scale is not that of their number and part")
    sizes = replicates.get("effective_sample_sizes")
    if sizes is not None and len(sizes) != replicates["count"]:
        raise BundleError("the card: replicates.effective_sample_sizes: expected one a replicate")


def _check_step(step: Any, what: str) -> None:
    check_fields(step, STEP, what)
    for key in NEEDED.get(step["kind"], ()):
        if key not in step:
            raise BundleError(f"{what}: {key} is missing")
    if step["kind"] == "modifier" and not ("expression" in step or "given" in step):
        raise BundleError(f"{what}: expression is missing")
    for place, margin in enumerate(step.get("margins", ())):
        check_fields(margin, MARGIN, f"{what}: margins.{place}")
        lists = [margin.get(key) for key in ("cells", "shares", "before")]
        are_lists = all(isinstance(each, list) for each in lists)
        if "mean" in margin:
            fits = not isinstance(margin["before"], list)
        else:
            fits = are_lists and len({len(each) for each in lists}) == 1
        if not fits:
            raise BundleError(f"{what}: margins.{place}: expected a mean, or a share for each cell")


def check_fields(values: Any, rules: Mapping[str, Rule], what: str) -> None:
    """Raise a BundleError unless `values` is an object whose fields keep the rules.

    >>> check_fields({"delta": -1}, {"delta": FRACTION}, "the spend")
    Traceback (most recent call last):
    counterpoise.errors.BundleError: the spend: delta: expected a number from 0 to 1
    """
    if not isinstance(values, Mapping):
        raise BundleError(f"{what}: expected an object")
    for field, rule in rules.items():
        *outer, name = field.split(".")
        inside: Any = values
        for part in outer:
            inside = inside.get(part) if isinstance(inside, Mapping) else None
        if inside is None:
            continue
        if name not in inside:
            if rule.needed:
                raise BundleError(f"{what}: {field} is missing")
        elif not rule.holds(inside[name]):
            raise BundleError(f"{what}: {field}: expected {rule.expected}")


def check_weights(weights: np.ndarray, rows: int, what: str) -> None:
    """Raise a BundleError unless there is a weight for each row, from zero, averaging to one."""
    if len(weights) != rows:
        raise BundleError(f"{what}: expected one for each of the {rows:,} rows of the card")
    if not rows:
        return
    # What is not a number is neither the least nor the most of anything, and comes out of both.
    least, most = weights.min(axis=0), weights.max(axis=0)
    if not (np.isfinite(most).all() and (least >= 0).all()):
        raise BundleError(f"{what}: expected finite numbers from zero")
    if not (most > 0).all():
        raise BundleError(f"{what}: expected some above zero")
    with np.errstate(over="ignore"):
        means = weights.mean(axis=0, dtype=float)
    if not (abs(means - 1) <= MEAN_TOLERANCE).all():
        raise BundleError(f"{what}: expected an average of one")


def check_rows(table: pd.DataFrame, schema: Schema) -> None:
    """Raise a BundleError unless every value of the table has its place in the schema."""
    for name in (*schema.rules.identifiers, *schema.plain.names):
        check_column(table[name], name, schema)


def check_column(values: pd.Series, name: str, schema: Schema) -> None:
    """Raise a BundleError unless every value of a column has its place in the schema."""
    with refused(f"column {name!r} of the table"):
        if name in schema.rules.identifiers:
            restored_identifier(schema[name], values)
            return
        fits = _fits(schema.plain[name], values.reset_index(drop=True), schema.missing_values)
    if not fits:
        raise BundleError(
            f"column {name!r} of the table holds values that its schema has no place for"
        )


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn whatever the block raises into a BundleError about `what`.

    What is read here was written elsewhere, and the ways in which it can be wrong have no end.
    """
    try:
        yield
    except (BundleError, OSError, MemoryError):
        raise
    except CounterpoiseError as error:
        raise BundleError(f"{what} is not valid: {error}") from None
    except Exception:
        raise BundleError(f"{what} is not valid; get the release again") from None


def _fits(column: Column, values: pd.Series, missing_values: tuple[str, ...]) -> bool:
    if isinstance(values.dtype, pd.CategoricalDtype):
        # Of categories, those that are there, each once.
        present = np.bincount(values.cat.codes.to_numpy() + 1, minlength=1) > 0
        has_nulls, there = present[0], pd.Series(values.cat.categories[: len(present) - 1])
        there = there[present[1:]].rename(column.name)
    else:
        nulls = values.isna().to_numpy()
        has_nulls = nulls.any()
        there = values[~nulls] if has_nulls else values
    if has_nulls and not column.nullable:
        return False
    if column.is_numeric:
        unit = {"date": "D", "datetime": "us"}.get(column.kind)
        if unit is not None:
            # Days or microseconds since 1970, as the bounds are.
            there = pd.Series(there.to_numpy(f"datetime64[{unit}]").astype(np.int64))
        return bool(there.between(column.low, column.high).all())
    # Coded as if it might be null and had no other category, a value without a place is null.
    strict = Schema((replace(column, nullable=True, other=None),), missing_values)
    return bool((strict.encode(there.to_frame(column.name)).codes[:, 0] < column.cells).all())


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
