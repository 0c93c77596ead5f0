"""Network weights: the log-ratio and its constant, truthfully charged, repeatable, and steady."""

import math

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import BudgetError, MethodError
from counterpoise.networks import Inputs
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, DescentPlan, Vault
from counterpoise.weights import DpMlp, Mlp, NetworkModel
from counterpoise.weights.network_ratio import MOST_NOISE, PACE, pace_within_noise
from counterpoise.weights.replicates import replicate_weights

SCHEMA = Schema([Column.continuous("x", 0, 1), Column.categorical("group", ["a", "b"])])
BUDGET = Budget(1.0, 1e-6)


def made(rows: int, tilt: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """x has a density proportional to exp(tilt x); the groups are even."""
    generator = np.random.default_rng(seed)
    uniform = generator.uniform(size=rows)
    x = uniform if tilt == 0 else np.log1p(uniform * math.expm1(tilt)) / tilt
    return pd.DataFrame({"x": x, "group": generator.choice(["a", "b"], rows)})


def fitted(private, synthetic, method=None, budget=BUDGET, seed: int | None = 1) -> NetworkModel:
    with Vault(private, SCHEMA, budget, seed=seed) as vault:
        return (method or DpMlp()).fit(vault, synthetic, vault.budget.whole)


PRIVATE, SYNTHETIC = made(500, tilt=1.5, seed=1), made(500, seed=2)


@pytest.mark.parametrize(("rows", "others"), [(1000, 3000), (3000, 1000)])
@pytest.mark.parametrize("method", [Mlp(), DpMlp()])
def test_the_weights_are_the_ratio_of_the_densities_with_its_constant(method, rows, others):
    """Before they are normalised: log(N/n) = 1.1 added either way would be seen."""
    private, synthetic = made(rows, tilt=1.0, seed=3), made(others, seed=4)
    model = fitted(private, synthetic, method, Budget(50.0, 1e-6))
    log_ratio = synthetic["x"] - math.log(math.expm1(1.0))
    found = model.weigh(synthetic).log_weights
    assert abs(float(np.mean(found - log_ratio))) < 0.15
    assert float(np.sqrt(np.mean((found - log_ratio) ** 2))) < 0.25


@pytest.mark.parametrize("copies", [1, 4])
def test_equal_tables_have_weights_near_one(copies):
    model = fitted(PRIVATE, pd.concat([PRIVATE] * copies), Mlp())
    assert np.exp(model.weigh(PRIVATE).log_weights) == pytest.approx(1, abs=0.1)


def test_five_hundred_rows_at_epsilon_one_train_with_every_seed():
    """Of the distance between the means, some is left by every seed, and little on average."""
    truth, before = PRIVATE["x"].mean(), SYNTHETIC["x"].mean()
    left = []
    for seed in range(6):
        weights = fitted(PRIVATE, SYNTHETIC, seed=seed).weigh(SYNTHETIC).normalised
        after = np.average(SYNTHETIC["x"], weights=weights)
        left.append(abs(truth - after) / abs(truth - before))
        assert weights.sum() ** 2 / (weights**2).sum() > 0.5 * len(SYNTHETIC)
    assert max(left) < 1
    assert np.mean(left) < 0.6


def test_without_a_difference_the_noise_keeps_below_its_limit():
    """The noise on a log-weight is that of `MOST_NOISE` or less, seed for seed."""
    private, synthetic = made(500, seed=1), made(2000, seed=2)
    found = [fitted(private, synthetic, seed=seed).weigh(synthetic) for seed in range(8)]
    deviations = np.std([weights.log_weights for weights in found], axis=0)
    assert float(np.median(deviations)) < MOST_NOISE


def test_the_charge_is_the_plan_s_event_and_the_number_of_rows():
    with Vault(PRIVATE, SCHEMA, BUDGET, seed=1) as vault:
        model = DpMlp(steps=7).fit(vault, SYNTHETIC, vault.budget.whole)
        total, descent = vault.ledger.spends
    assert total.query == "number of rows"
    assert descent.query == f"descent of 7 steps over {model.network.size} parameters"
    event = descent.event
    assert event.count == 7
    assert event.event.sampling_probability == model.rate
    # The noise of the rehearsals is the noise that was paid for.
    deviation = event.event.event.noise_multiplier * model.training.clip
    assert model.deviation == pytest.approx(deviation, rel=1e-3)


def test_a_probe_without_noise_is_only_for_a_vault_with_a_seed():
    with Vault(PRIVATE, SCHEMA, BUDGET) as vault:
        with pytest.raises(MethodError, match="'dp-mlp'"):
            Mlp().fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.spends == ()
    with Vault(PRIVATE, SCHEMA, BUDGET, seed=1) as vault:
        model = Mlp(steps=3).fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.spends[-1].query.endswith("WITHOUT NOISE")
    assert not model.private


def test_a_release_without_a_seed_is_refused_before_anything_is_paid_for(tmp_path):
    options = {"synthesizer": "independent", "weights": "mlp", "work": tmp_path / "work"}
    with pytest.raises(MethodError, match="seed"):
        cp.release(PRIVATE, SCHEMA, 1.0, 1e-6, **options)
    with pytest.raises(MethodError, match="seed"):
        cp.weigh(PRIVATE, SYNTHETIC, SCHEMA, 1.0, 1e-6, method="mlp")
    assert not (tmp_path / "work").exists()


def test_replaced_rows_and_pure_budgets_are_refused_unasked():
    for budget, error in ((Budget(1.0, 1e-6, "replace"), MethodError), (Budget(1.0), BudgetError)):
        with Vault(PRIVATE, SCHEMA, budget, seed=1) as vault:
            with pytest.raises(error):
                DpMlp().fit(vault, SYNTHETIC, vault.budget.whole)
            assert vault.ledger.spends == ()


def test_a_log_weight_is_cut_at_the_limit():
    private = made(2000, tilt=30.0, seed=1)
    model = fitted(private, SYNTHETIC, DpMlp(limit=1.5), Budget(20.0, 1e-6))
    found = model.weigh(SYNTHETIC).log_weights
    assert found.max() == 1.5
    assert found.min() == -1.5
    columns = replicate_weights(model, SYNTHETIC, 3, population=2000, seed=1)
    base = [np.unique(np.round(column[column > 0], 4)) for column in columns.T]
    assert all(len(values) > 1 for values in base)


def test_a_person_of_several_rows_slows_the_training_down():
    noises = []
    for rows in (1, 4):
        budget = Budget(1.0, 1e-6, max_rows_per_person=rows)
        model = fitted(PRIVATE, SYNTHETIC, DpMlp(hidden=(4,)), budget)
        noises.append(model.deviation / model.training.clip * model.training.pace)
        assert model.training.pace * model.training.clip**2 <= PACE
    assert noises[1] == pytest.approx(noises[0], rel=1.0)


def test_the_pace_keeps_the_noise_of_all_steps_below_its_limit():
    with Vault(PRIVATE, SCHEMA, BUDGET, seed=1) as vault:
        model = DpMlp().fit(vault, SYNTHETIC, vault.budget.whole.part(0.01))
    plan = DescentPlan(
        inputs=Inputs(SCHEMA),
        network=model.network,
        loss="logistic",
        rate=model.rate,
        lot=model.rate * model.population,
        clip=model.training.clip,
        noise=model.deviation / model.training.clip,
        steps=model.training.steps,
    )
    pace = pace_within_noise(plan, 1)
    assert pace < PACE
    assert pace == pytest.approx(model.training.pace * model.training.clip**2, rel=1e-3)
    assert pace * plan.noise * math.sqrt(plan.steps) / plan.lot == pytest.approx(MOST_NOISE)


def test_seeds_repeat_and_saved_models_are_the_same():
    first, second = (fitted(PRIVATE, SYNTHETIC, DpMlp(steps=4)) for _ in range(2))
    assert (first.parameters == second.parameters).all()
    again = NetworkModel.from_arrays(SCHEMA, first.to_arrays())
    assert (again.weigh(SYNTHETIC).log_weights == first.weigh(SYNTHETIC).log_weights).all()
    columns = [
        replicate_weights(model, SYNTHETIC, 2, population=500, seed=1) for model in (first, again)
    ]
    assert (columns[0] == columns[1]).all()


def test_replicates_spread_as_repeated_fits_do():
    """The mean of x over 20 private tables and seeds, against the replicates of three of them."""
    estimates, claimed = [], []
    for seed in range(20):
        private, synthetic = made(400, 1.0, seed), made(400, 0.0, 1000 + seed)
        model = fitted(private, synthetic, seed=seed)
        x = synthetic["x"].to_numpy()
        estimates.append(np.average(x, weights=model.weigh(synthetic).normalised))
        if seed < 3:
            columns = replicate_weights(model, synthetic, 24, population=400, seed=seed)
            replicated = x @ columns / columns.sum(axis=0)
            claimed.append(np.mean((replicated - estimates[-1]) ** 2))
    # 20 tables know a deviation to within a sixth.
    assert math.sqrt(np.mean(claimed)) == pytest.approx(np.std(estimates), rel=0.4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"hidden": 64},
        {"hidden": (0,)},
        {"hidden": ("many",)},
        {"activation": "sigmoid"},
        {"steps": 0},
        {"steps": 2.5},
        {"limit": 0},
        {"limit": float("nan")},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [DpMlp, Mlp])
def test_odd_arguments_are_refused(kind, wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        kind(**wrong)
