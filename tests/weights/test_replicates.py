"""Replicate weights: their spread is the spread over fresh private samples, noise and rows."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Independent, Marginals
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Moments, Uniform, UniformModel
from counterpoise.weights.features import OneHot, Products
from counterpoise.weights.protocol import replicate_part
from counterpoise.weights.replicates import replicate_weights

SCHEMA = Schema([Column.continuous("x", 0, 1, bins=8), Column.categorical("group", ["a", "b"])])
BUDGET = Budget(1.0, 1e-6)
ROWS = 1500


def population_sample(seed: int, rows: int = ROWS) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    x = generator.beta(2, 3, rows)
    return pd.DataFrame({"x": x, "group": np.where(generator.uniform(size=rows) < x, "a", "b")})


def means(table: pd.DataFrame, columns: np.ndarray) -> np.ndarray:
    """The mean of x, the part of the group, and their product's mean, a column of weights each."""
    values = np.column_stack(
        [table["x"], table["group"] == "a", table["x"] * (table["group"] == "a")]
    )
    return values.T.astype(float) @ columns / columns.sum(axis=0)


def spread_of_replicates(table, columns) -> np.ndarray:
    """The convention: the mean square around the full estimate, here the uniform one."""
    found = means(table, columns)
    return np.sqrt(((found - found.mean(axis=1, keepdims=True)) ** 2).mean(axis=1))


@pytest.fixture
def model():
    with Vault(population_sample(1), SCHEMA, BUDGET, seed=1) as vault:
        return Independent().fit(vault, vault.budget.whole)


def test_every_replicate_averages_to_one_and_is_new(model):
    table = model.sample(600, seed=1)
    columns = replicate_weights(
        UniformModel(), table, 20, population=ROWS, synthesizer=model, seed=3
    )
    assert columns.shape == (600, 20)
    assert columns.dtype == np.float32
    assert (columns >= 0).all()
    assert columns.mean(axis=0) == pytest.approx(np.ones(20), rel=1e-5)
    assert len(np.unique(columns, axis=1).T) == 20


def test_a_seed_fixes_the_replicates(model):
    table = model.sample(100, seed=1)
    columns = [
        replicate_weights(UniformModel(), table, 3, population=50, seed=s) for s in (1, 1, 2)
    ]
    assert (columns[0] == columns[1]).all()
    assert (columns[0] != columns[2]).any()


def test_a_table_and_its_replicates_may_have_the_same_seed(model):
    table = model.sample(2000, seed=7)
    columns = replicate_weights(UniformModel(), table, 60, population=ROWS, seed=7)
    assert spread_of_replicates(table, columns)[0] < 1.5 * table["x"].std() / np.sqrt(2000)


def test_no_rows_have_no_replicates(model):
    table = model.sample(10, seed=1)[:0]
    assert replicate_weights(UniformModel(), table, 7, population=5).shape == (0, 7)


def test_without_a_synthesizer_replicates_show_the_drawing_of_rows_alone(model):
    """The standard error of a mean of N rows; 400 replicates know it to 15% (four deviations)."""
    table = model.sample(900, seed=1)
    columns = replicate_weights(UniformModel(), table, 400, population=ROWS, seed=3)
    expected = table["x"].std() / np.sqrt(900)
    assert spread_of_replicates(table, columns)[0] == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    "synthesizer", [Independent(), Marginals()], ids=["independent", "marginals"]
)
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_redrawn_weights_average_to_one_and_show_the_noise_of_a_count(synthesizer, epsilon):
    """The part of a category: multinomial variance of the sample, and known noise on its count."""
    budget = Budget(epsilon, 1e-6)
    with Vault(population_sample(1), SCHEMA, budget, seed=1) as vault:
        model = synthesizer.fit(vault, vault.budget.whole)
    table = model.sample(6000, seed=2)
    generator = np.random.default_rng(5)
    resample = generator.multinomial(ROWS, np.full(6000, 1 / 6000), size=200).T * (6000 / ROWS)
    codes, ones = SCHEMA.encode(table).codes, np.ones((6000, 200))
    tables = model.redrawn_tables(codes, resample, ones[:, 0], generator)
    redrawn = tables.weights(codes, ones)
    assert redrawn.shape == (6000, 200)
    assert redrawn.mean(axis=0) == pytest.approx(1.0, abs=1e-4)
    part = (table["group"] == "a").to_numpy()
    parts = (redrawn * part[:, None]).mean(axis=0)
    share = part.mean()
    if isinstance(synthesizer, Independent):
        deviation = model.deviation
    else:
        # The pair of columns was measured: a category is a sum over the other's codes.
        [pair] = model.measured
        deviation = pair.scale * np.sqrt(pair.values.size / 2)
    # A count's share of two: noise of the two counts together, each of this deviation
    noise = deviation**2 * ((1 - share) ** 2 + share**2) / ROWS**2
    expected = np.sqrt(share * (1 - share) / ROWS + noise)
    # 200 replicates know a deviation to 5%; four of those, and the fit's rounding of noise below 0
    assert parts.std() == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize(
    "weighter",
    [Uniform(), Moments(blocks=(OneHot(), Products("group")))],
    ids=["uniform", "moments"],
)
def test_the_spread_of_replicates_is_that_of_fresh_runs(weighter):
    """60 runs of everything, from a fresh private sample on, beside the replicates of ten.

    60 runs know a deviation to 9%, so 0.7 to 1.5 is beyond three deviations on either side; what
    leaves out the noise, the sample or the rows is below half.
    """

    def run(seed):
        with Vault(population_sample(seed + 1000), SCHEMA, BUDGET, seed=seed) as vault:
            for_model, for_weights = vault.budget.whole.split(0.5, 0.5)
            model = Independent().fit(vault, for_model)
            table = model.sample(3000, seed=seed)
            weights = weighter.fit(vault, table, None if weighter.is_free else for_weights)
        return model, table, weights

    estimates, spreads = [], []
    for seed in range(60):
        model, table, weights = run(seed)
        estimates.append(means(table, weights.weigh(table).normalised[:, None])[:, 0])
        if seed < 10:
            columns = replicate_weights(
                weights, table, 60, population=model.rows, synthesizer=model, seed=seed
            )
            spreads.append(spread_of_replicates(table, columns) / replicate_part(weights))
    simulated = np.std(estimates, axis=0)
    replicated = np.sqrt(np.mean(np.square(spreads), axis=0))
    ratio = replicated / simulated
    assert ((ratio > 0.7) & (ratio < 1.5)).all(), ratio
