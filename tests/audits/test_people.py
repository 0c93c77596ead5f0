"""Bounded persons, audited: all rows of one person are added or replaced, however many they are.

The person has fifty rows, of which the vault may use a few. What the answers then tell is never
more than the charge for those few, and close to it, so that one row too many would be noticed.
"""

import numpy as np
import pandas as pd
import pytest

from counterpoise.vault import Budget, Share
from tests.audits.audit import audited_vault, claimed_mu, collect, mu_lower_bound
from tests.audits.test_queries import GAUSSIAN, SCHEMA, THREE, Place, assert_tight

RUNS = 3000
OTHERS = pd.DataFrame(
    {"a": ["x", "y", "z", "x", "x"], "b": ["u", "v", "u", "v", "v"], "who": [1, 2, 3, 4, 4]}
)
BUDGETS = [
    Budget(1.0, 1e-6),
    Budget(1.0, 1e-6, max_rows_per_person=3),
    Budget(1.0, 1e-6, "replace", max_rows_per_person=2),
]


def person(a: str, b: str, rows: int = 50) -> pd.DataFrame:
    return pd.DataFrame({"a": [a] * rows, "b": [b] * rows, "who": 9})


def vaults(budget: Budget):
    """Neighbours: one person with all their rows is added, or replaced by another."""
    having = pd.concat([person("y", "u", 20), OTHERS, person("y", "u", 30)], ignore_index=True)
    without = OTHERS
    if budget.neighbours.name == "REPLACE_ONE":
        without = pd.concat([OTHERS, person("z", "v", 40)], ignore_index=True)
    return [audited_vault(table, SCHEMA, budget, person="who") for table in (without, having)]


def bound_of_counts(pair, share: Share) -> float:
    """The lower bound on mu of three tables that are asked for together."""
    exact = [np.concatenate([t.ravel() for t in v._storage.counts(THREE)]) for v in pair]
    direction = exact[1] - exact[0]

    def statistic(vault):
        answers = vault.counts(THREE, share)
        return float(np.concatenate([answer.values.ravel() for answer in answers]) @ direction)

    without, having = (collect(lambda v=v: statistic(v), RUNS) for v in pair)
    return mu_lower_bound(without, having)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_counts_tell_of_a_person_what_is_charged(budget):
    pair = vaults(budget)
    bound = bound_of_counts(pair, GAUSSIAN)
    assert_tight(bound, claimed_mu(pair[0].ledger.event))


@pytest.mark.parametrize("budget", BUDGETS[:2], ids=str)
def test_sums_tell_of_a_person_what_is_charged(budget):
    pair = vaults(budget)
    direction = np.array([0.6, 0.8])
    without, having = (
        collect(lambda v=v: float(v.sums(Place(), 5.0, GAUSSIAN).values @ direction), RUNS)
        for v in pair
    )
    assert_tight(mu_lower_bound(without, having), claimed_mu(pair[0].ledger.event))


def test_the_audit_finds_a_person_of_twice_the_rows():
    """A vault that keeps six rows, and charges for three."""
    pair = [v for rows in (6,) for v in vaults(Budget(1.0, 1e-6, max_rows_per_person=rows))]
    for vault in pair:
        vault.budget = Budget(1.0, 1e-6, max_rows_per_person=3)
    assert bound_of_counts(pair, GAUSSIAN) > 1.5 * claimed_mu(pair[0].ledger.event)
