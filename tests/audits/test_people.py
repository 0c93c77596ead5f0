"""Bounded persons, audited: all rows of one person are added or replaced, however many they are.

No sampling: see `exact`. The person has fifty rows, of which the vault may use a few. What answers
reveal is all of the charge for those few and no more, so that one row too many, or one of somebody
else that makes room or takes it, would be noticed.
"""

import duckdb
import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget
from tests.audits.exact import (
    GAUSSIAN,
    PURE,
    ROUNDING,
    Saying,
    assert_charged,
    audit,
    budgets,
    is_replace,
    listen,
    named,
)
from tests.audits.test_exact import ALL, SCHEMA, Vectors

# Some of the others have more rows than are used, too.
OTHERS = pd.DataFrame(
    {
        "who": [1, 2, 3, 4, 4, 4, 4, 5],
        "a": ["x", "y", "z", "x", "y", "x", "z", "z"],
        "b": ["u", "v", "u", "v", "u", "v", "u", "u"],
    }
)
PLENTY = 50


def rows_of(person: int, a: str, b: str, rows: int = PLENTY) -> pd.DataFrame:
    return pd.DataFrame({"who": [person] * rows, "a": [a] * rows, "b": [b] * rows})


def neighbours(budget: Budget) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One person with all their rows is added, or replaced by another with as many that count."""
    mine = rows_of(9, "y", "u")
    having = pd.concat([mine[:20], OTHERS, mine[20:]], ignore_index=True)
    if is_replace(budget):
        return pd.concat([OTHERS, rows_of(8, "z", "v", 40)], ignore_index=True), having
    return OTHERS, having


def asked(share):
    return lambda vault: vault.counts([("a",), ("b",), ("a", "b")], share)


@pytest.mark.parametrize("budget", budgets(), ids=named)
def test_counts_reveal_of_a_person_all_that_they_are_charged(budget):
    assert_charged(audit(asked(GAUSSIAN), neighbours(budget), SCHEMA, budget, "who"), ALL)


@pytest.mark.parametrize("budget", budgets(pure=True)[:3], ids=named)
def test_pure_counts_reveal_of_a_person_all_that_they_are_charged(budget):
    assert_charged(audit(asked(PURE), neighbours(budget), SCHEMA, budget, "who"), ALL)


@pytest.mark.parametrize("budget", budgets(), ids=named)
def test_sums_reveal_of_a_person_all_that_they_are_charged_but_rounding(budget):
    features = Vectors([1, 1], [6, 8], [-6, -8])
    part = audit(
        lambda vault: vault.sums(features, 5.0, GAUSSIAN),
        neighbours(budget),
        SCHEMA,
        budget,
        "who",
    )
    assert_charged(part, 1 - 1e-6)


EVERY = [(GAUSSIAN, budget) for budget in budgets()] + [(PURE, b) for b in budgets(pure=True)]


@pytest.mark.parametrize("more", [-1, 0, 1, PLENTY])
@pytest.mark.parametrize(("share", "budget"), EVERY, ids=named)
def test_how_many_persons_have_more_reveals_of_a_person_all_that_it_is_charged(share, budget, more):
    """Of one with few rows as of one with many; replaced, by one on the other side of the bound."""
    rows = max(1, budget.max_rows_per_person + more)
    without, having = OTHERS, pd.concat([rows_of(9, "y", "u", rows), OTHERS], ignore_index=True)
    if is_replace(budget):
        others = 1 if rows > budget.max_rows_per_person else PLENTY
        without = pd.concat([OTHERS, rows_of(8, "z", "v", others)], ignore_index=True)
    tables = without, having
    assert_charged(audit(lambda vault: vault.persons(share), tables, SCHEMA, budget, "who"), ALL)


def test_how_many_persons_have_more_follows_from_the_noised_numbers():
    budget = Budget(50.0, 1e-6, max_rows_per_person=3)
    said = Saying(lambda size: np.array([7, -2]))
    heard = listen(lambda vault: vault.persons(GAUSSIAN), OTHERS, SCHEMA, budget, said, "who")
    [draw] = heard.draws
    assert draw.exact.tolist() == [4, 1]
    assert (heard.answer.within, heard.answer.beyond) == (7, -2)


def test_a_relation_reveals_as_much():
    budget = Budget(50.0, 1e-6, max_rows_per_person=3)
    relations = [duckdb.connect().from_df(table) for table in neighbours(budget)]
    assert_charged(audit(asked(GAUSSIAN), tuple(relations), SCHEMA, budget, "who"), ALL)


def test_categories_of_one_person_reveal_all_that_they_are_charged():
    """A threshold is asked of a domain that is not known, and it counts bounded rows as well."""
    budget = Budget(50.0, 1e-6, max_rows_per_person=3)
    schema = Schema([Column.categorical("a")]).pay("a")
    only = pd.DataFrame({"who": [1] * 4 + [2] * 4, "a": ["x"] * 8})
    tables = only, pd.concat([only, rows_of(9, "x", "u")[["who", "a"]]], ignore_index=True)
    part = audit(lambda v: v.categories("a", GAUSSIAN, 1e-7), tables, schema, budget, "who")
    assert_charged(part, ALL)


def test_without_bounds_the_same_person_reveals_far_more_than_is_charged():
    budget = Budget(50.0, 1e-6, max_rows_per_person=3)
    part = audit(asked(GAUSSIAN), neighbours(budget), SCHEMA, budget)
    assert part == pytest.approx(PLENTY / 3, rel=ROUNDING)
