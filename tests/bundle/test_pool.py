"""A release keeps a balanced part of a pool: its rows carry the correction, its weights little."""

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.bundle.pool import balanced_part, pool_rows
from counterpoise.weights import Moments, UniformModel

SCHEMA = cp.Schema([cp.Column.continuous("x", 0, 1), cp.Column.boolean("y")])


@pytest.fixture(scope="module")
def made():
    generator = np.random.default_rng(0)
    x = generator.random(3000)
    private = pd.DataFrame({"x": x, "y": generator.random(3000) < x})
    return cp.release(
        private, SCHEMA, 2.0, 1e-6, synthesizer="independent", target="y", replicates=20, seed=1
    )


def relation(table, weights=None):
    return float(np.cov(table["x"], table["y"], aweights=weights)[0, 1])


def test_an_analyst_who_forgets_the_weights_is_not_far_off(made):
    assert relation(made.table, made.weights) > 0.05
    assert relation(made.table) == pytest.approx(relation(made.table, made.weights), abs=0.01)
    assert made.card["weights"]["effective_fraction"] > 0.95
    drawn = made.models.synthesizer.sample(3000, seed=2)
    weights = made.models.weights.weigh(drawn)
    assert weights.effective_sample_size / 3000 < 0.85


def test_replicates_are_about_the_weights(made):
    """Their mean is the estimate, within what twenty of them know of it."""
    values = [relation(made.table, column) for column in made.replicates.T]
    error = np.std(values)
    assert np.mean(values) == pytest.approx(relation(made.table, made.weights), abs=error)
    assert 0 < error < 0.02


def test_new_rows_are_a_balanced_part_too(made):
    again = made.sample(500, seed=3)
    assert len(again.table) == 500
    assert relation(again.table) == pytest.approx(relation(made.table), abs=0.02)
    assert again.weights.max() < 2


def test_no_more_rows_are_drawn_than_are_wanted_where_weights_are_equal_or_rows_many():
    assert pool_rows(cp.weights.Uniform(), 1000) == 1000
    assert pool_rows(Moments(), 10**6) == 10**6
    table = pd.DataFrame({"x": [0.5, 0.6], "y": [True, False]})
    same, kept = balanced_part(table, SCHEMA, UniformModel(), 2, seed=1)
    assert same is table
    assert kept is None


def test_kept_rows_obey_the_rules_of_the_schema():
    columns = [cp.Column.integer(name, 0, 20) for name in ("low", "high")]
    schema = cp.Schema(columns, checks=["low <= high"])
    generator = np.random.default_rng(0)
    low = generator.integers(0, 15, 2000)
    private = pd.DataFrame({"low": low, "high": low + generator.integers(0, 6, 2000)})
    release = cp.release(private, schema, 2.0, 1e-6, rows=500, replicates=2, seed=1)
    assert len(release.table) == 500
    assert (release.table["low"] <= release.table["high"]).all()


@pytest.mark.parametrize(
    ("synthesizer", "weights", "is_said"),
    [("dpgan", "uniform", True), ("dpgan", "moments", False), ("aim", "uniform", False)],
)
def test_error_bars_that_know_nothing_of_the_synthesizer_are_said_to(synthesizer, weights, is_said):
    generator = np.random.default_rng(0)
    private = pd.DataFrame({"x": generator.random(800), "y": generator.random(800) < 0.5})
    made = cp.release(
        private, SCHEMA, 4.0, 1e-6, synthesizer=synthesizer, weights=weights, replicates=20, seed=1
    )
    verdict = made.card["weights"]["verdict"]
    assert ("the synthesizer got wrong" in verdict["reason"]) == is_said
    assert verdict["level"] == "caution" or not is_said
