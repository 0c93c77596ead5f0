"""PATE weights: the direction of the ratio from noisy votes, charged in advance, repeatable."""

import math

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, MethodError
from counterpoise.networks import Inputs, Network
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, TeacherPlan, Vault
from counterpoise.weights import Pate, PateModel
from counterpoise.weights.network_ratio import MOST_NOISE
from counterpoise.weights.pate import School, asked_rows
from counterpoise.weights.replicates import replicate_weights

SCHEMA = Schema([Column.continuous("x", 0, 1), Column.categorical("group", ["a", "b"])])
BUDGET = Budget(1.0, 1e-6)


def made(rows: int, tilt: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """x has a density proportional to exp(tilt x); the groups are even."""
    generator = np.random.default_rng(seed)
    uniform = generator.uniform(size=rows)
    x = uniform if tilt == 0 else np.log1p(uniform * math.expm1(tilt)) / tilt
    return pd.DataFrame({"x": x, "group": generator.choice(["a", "b"], rows)})


def fitted(private, synthetic, method=None, budget=BUDGET, seed: int | None = 1) -> PateModel:
    with Vault(private, SCHEMA, budget, seed=seed) as vault:
        return (method or Pate()).fit(vault, synthetic, vault.budget.whole)


PRIVATE, SYNTHETIC = made(3000, tilt=1.5, seed=1), made(1000, seed=2)


@pytest.mark.parametrize("rows", [500, 2000])
def test_votes_take_the_mean_towards_the_private_one(rows):
    """With fewer and with more synthetic rows than private ones, and with every seed."""
    private, synthetic = made(1000, tilt=2.0, seed=1), made(rows, seed=2)
    truth, before = private["x"].mean(), synthetic["x"].mean()
    for seed in range(3):
        model = fitted(private, synthetic, budget=Budget(4.0, 1e-6), seed=seed)
        weights = model.weigh(synthetic)
        after = np.average(synthetic["x"], weights=weights.normalised)
        assert abs(truth - after) < 0.6 * abs(truth - before)
        # Before they are normalised: log(N/n) either way would be seen.
        assert abs(math.log(np.exp(weights.log_weights).mean())) < 0.4


def test_equal_tables_have_weights_near_one():
    model = fitted(made(3000, seed=1), made(3000, seed=2), budget=Budget(4.0, 1e-6))
    assert np.abs(model.weigh(SYNTHETIC).log_weights).mean() < 0.25


def test_the_charge_is_the_plan_s_event_and_the_number_of_rows():
    with Vault(PRIVATE, SCHEMA, BUDGET, seed=1) as vault:
        model = Pate(teachers=40, queries=60).fit(vault, SYNTHETIC, vault.budget.whole)
        total, votes = vault.ledger.spends
    assert total.query == "number of rows"
    assert votes.query == "votes of 40 teachers on 60 rows"
    assert votes.event.count == 60
    assert votes.event.event.noise_multiplier == pytest.approx(model.school.deviation)


def test_the_student_sees_public_rows_alone():
    """Its parameters are a function of the votes and of public rows."""
    inputs = Inputs(SCHEMA)
    public = inputs(SCHEMA.encode(SYNTHETIC))
    plan = TeacherPlan(inputs, Network((inputs.size, 1)), teachers=50, queries=100, noise=2.0)
    school = School.of(public, plan, 2.0, 500.0)
    asked = asked_rows(public, 100)
    assert (school.student(asked, np.full(100, 25.0)) == school.start).all() or np.abs(
        school.network.outputs(school.student(asked, np.full(100, 25.0)), asked)
    ).max() < 1e-9
    votes = np.where(asked[:, 0] > 0, 40.0, 10.0)
    logits = school.network.outputs(school.student(asked, votes), asked)[:, 0]
    assert logits[asked[:, 0] > 0.3].min() > 0 > logits[asked[:, 0] < -0.3].max()


def test_the_noise_of_the_votes_moves_a_logit_by_no_more_than_its_limit():
    inputs = Inputs(SCHEMA)
    public = inputs(SCHEMA.encode(SYNTHETIC))
    plan = TeacherPlan(inputs, Network((inputs.size, 1)), teachers=100, queries=200, noise=60.0)
    school = School.of(public, plan, 60.0, 500.0)
    asked, generator = asked_rows(public, 200), np.random.default_rng(0)
    found = [
        school.network.outputs(school.student(asked, 50 + 60 * generator.normal(size=200)), public)
        for _ in range(30)
    ]
    deviations = np.std(found, axis=0)
    assert MOST_NOISE / 10 < float(np.median(deviations)) < MOST_NOISE


def test_seeds_repeat_and_saved_models_are_the_same():
    method = Pate(teachers=30, queries=50)
    first, second = (fitted(PRIVATE, SYNTHETIC, method) for _ in range(2))
    assert (first.parameters == second.parameters).all()
    assert first.stretch == second.stretch
    again = PateModel.from_arrays(SCHEMA, first.to_arrays())
    columns = [
        replicate_weights(model, SYNTHETIC, 2, population=3000, seed=1) for model in (first, again)
    ]
    assert (columns[0] == columns[1]).all()


def test_a_pure_budget_is_refused_unasked_and_replaced_rows_are_not():
    with Vault(PRIVATE, SCHEMA, Budget(1.0), seed=1) as vault:
        with pytest.raises(BudgetError):
            Pate().fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.spends == ()
    model = fitted(PRIVATE, SYNTHETIC, Pate(teachers=20), Budget(1.0, 1e-6, "replace"))
    assert model.population == 3000


@pytest.mark.parametrize(
    "wrong", [{"teachers": 0}, {"teachers": 2.5}, {"queries": 0}, {"limit": -1}], ids=str
)
def test_odd_arguments_are_refused(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        Pate(**wrong)
