"""Averages over pairs are those of the matrix of all pairs, weighted and not, and of known laws."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import energy_distance as energy_on_a_line

from counterpoise.errors import MethodError
from counterpoise.evaluation import coordinates, discrepancy, energy_distance, kernels, mmd
from counterpoise.importance import mean_discrepancy
from counterpoise.schema import Column, Schema
from tests.conftest import make_schema, make_table

LINE = Schema([Column.continuous("x", 0, 1)])


def on_line(values):
    return LINE.encode(pd.DataFrame({"x": values}))


def coded(rows, seed=0):
    return make_schema().encode(make_table(rows, seed))


@pytest.mark.parametrize("estimator", ["iw", "sniw", "id", "miw"])
def test_a_discrepancy_is_the_loss_of_the_importance_room_without_its_gradient(estimator):
    left, right = coded(90), coded(70, seed=1)
    weights = np.random.default_rng(0).exponential(size=90)
    expected = mean_discrepancy(
        coordinates(left), coordinates(right), weights, estimator, widths=0.7, seed=3
    )
    found = discrepancy(left, right, weights, estimator=estimator, bandwidth=0.7, seed=3)
    assert found == pytest.approx(expected.value, abs=1e-12)


def test_a_discrepancy_of_one_law_is_zero_on_average_and_not_above_it():
    generator = np.random.default_rng(1)
    found = [
        discrepancy(on_line(generator.random(40)), on_line(generator.random(40)), bandwidth=0.3)
        for _ in range(300)
    ]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found)) < 4 * error
    assert min(found) < 0


def test_weights_that_undo_a_bias_leave_no_discrepancy_on_average():
    # Rows of density 2x, weighted by 1/(2x), stand for uniform ones.
    generator, found = np.random.default_rng(2), []
    for _ in range(200):
        biased = np.sqrt(generator.uniform(0.04, 1, 60))
        weights, uniform = 1 / biased, on_line(generator.uniform(0.2, 1, 60))
        pair = on_line(biased), uniform
        found.append(
            (discrepancy(*pair, weights, bandwidth=0.3), discrepancy(*pair, bandwidth=0.3))
        )
    weighted, plain = np.mean(found, axis=0)
    assert abs(weighted) < 4 * np.std(found, axis=0)[0] / np.sqrt(200) < plain


def test_blocks_and_single_precision_change_nothing_that_matters(monkeypatch):
    left, right = coded(300), coded(200, seed=1)
    weights = np.random.default_rng(3).exponential(size=300)
    calls = [
        partial(discrepancy, left, right, weights),
        partial(mmd, left, right, weights),
        partial(energy_distance, left, right, weights),
    ]
    whole = [call() for call in calls]
    monkeypatch.setattr(kernels, "BLOCK_ROWS", 64)
    assert [call() for call in calls] == pytest.approx(whole, abs=1e-10)
    monkeypatch.setattr(kernels, "MANY_PAIRS", 1)
    assert [call() for call in calls] == pytest.approx(whole, abs=1e-5)


def test_energy_distance_on_a_line_is_the_weighted_one_of_scipy():
    generator = np.random.default_rng(4)
    x, y, weights = generator.random(80), generator.random(50), generator.exponential(size=80)
    found = energy_distance(on_line(x), on_line(y), weights)
    assert found == pytest.approx(energy_on_a_line(x, y, weights), abs=1e-9)


def test_energy_distance_in_several_columns_is_that_of_all_pairs():
    left, right = coded(50), coded(40, seed=1)
    x, y = coordinates(left), coordinates(right)
    squared = 2 * cdist(x, y).mean() - cdist(x, x).mean() - cdist(y, y).mean()
    assert energy_distance(left, right) == pytest.approx(np.sqrt(squared))
    assert energy_distance(left, left) == pytest.approx(0, abs=1e-6)


def test_more_rows_than_points_keep_their_weights():
    # The heavy half is where the other table is: without its weights the distance would be large.
    left = on_line(np.concatenate([np.full(500, 0.2), np.full(500, 0.8)]))
    weights = np.repeat([1e-6, 1.0], 500)
    right = on_line(np.full(100, 0.8))
    assert abs(discrepancy(left, right, weights, points=50, bandwidth=0.1)) < 1e-4
    assert discrepancy(left, right, points=50, bandwidth=0.1) > 0.4


@pytest.mark.parametrize("tables", [(1, 5), (5, 1)])
def test_a_single_row_makes_no_pair(tables):
    left, right = (on_line(np.full(rows, 0.5)) for rows in tables)
    with pytest.raises(MethodError, match="two rows"):
        discrepancy(left, right)
