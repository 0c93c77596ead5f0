"""PATE-GAN: votes charged in advance, a student that is kept, rows where the private ones are."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import PateGan
from counterpoise.vault import Budget, Vault

SCHEMA = Schema([Column.continuous("x", 0, 10, bins=8), Column.categorical("s", ["a", "b"])])


def table(rows):
    generator = np.random.default_rng(0)
    x = np.clip(generator.normal(7, 0.7, rows), 0, 10)
    return pd.DataFrame({"x": x, "s": generator.choice(["a", "b"], rows, p=[0.8, 0.2])})


def fitted(budget, rows=3000, **options):
    with Vault(table(rows), SCHEMA, budget, seed=1) as vault:
        return PateGan(**options).fit(vault, budget.whole), vault.ledger


def test_from_nothing_all_votes_are_one_charge():
    _, ledger = fitted(Budget(1.0, 1e-6), 300, rounds=2, votes=5, start=0)
    queries = [spend.query for spend in ledger.spends]
    assert queries == ["number of rows", queries[1]]
    assert queries[1].startswith("votes of") and queries[1].endswith("on 10 rows")
    assert 0.99 < ledger.epsilon_spent <= 1


def test_under_replace_one_the_number_of_rows_is_free():
    model, ledger = fitted(Budget(1.0, 1e-6, "replace"), 300, rounds=2, votes=5, start=0)
    assert len(ledger.spends) == 1 and model.rows == 300


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_start_and_boosting_are_charges_of_their_own(neighbours):
    budget = Budget(1.0, 1e-6, neighbours)
    model, ledger = fitted(budget, 300, rounds=4, votes=5, snapshots=2, start_steps=20)
    kinds = [spend.query.split(" of ")[0] for spend in ledger.spends]
    assert kinds == ["counts", "sums", "votes", "sums"]
    assert 0.99 < ledger.epsilon_spent <= 1
    assert model.shares.shape == (2,)


def test_with_a_start_rows_are_where_the_private_ones_are():
    model, _ = fitted(Budget(1.0, 1e-6), 1000, rounds=5)
    made = model.sample(3000, seed=1)
    assert abs(made["x"].mean() - 7) < 0.3
    assert abs((made["s"] == "a").mean() - 0.8) < 0.05


def test_from_nothing_with_a_large_budget_rows_go_where_the_private_ones_are():
    model, _ = fitted(Budget(50.0, 1e-6), start=0, generator_rate=0.005)
    made = model.sample(3000, seed=1)
    assert abs(made["x"].mean() - 7) < 1.5


def test_the_student_knows_what_teachers_take_for_private():
    # A generator that hardly moves leaves the student time to learn of its rows.
    model, _ = fitted(
        Budget(50.0, 1e-6), 1000, rounds=10, votes=100, steps=20, generator_rate=1e-6, start=0
    )
    seen = model.inputs(SCHEMA.encode(pd.DataFrame({"x": [7.0, 4.0], "s": ["a", "a"]})))
    [near, far] = model.critic.outputs(model.critic_parameters, seen)[:, 0]
    assert model.critic_loss == "logistic"
    assert near > far


def test_odd_requests_are_refused():
    with pytest.raises(BudgetError, match="delta"):
        fitted(Budget(1.0), 50)
    with pytest.raises(MethodError, match="rounds"):
        PateGan(rounds=0)
