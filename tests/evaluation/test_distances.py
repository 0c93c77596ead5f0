"""Distances have known answers, and weights are what repeated rows would be."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from counterpoise.errors import MethodError
from counterpoise.evaluation import coordinates, equal_points, mmd, sliced_wasserstein, wasserstein
from counterpoise.schema import Column, Schema
from tests.conftest import make_schema, make_table

DISTANCES = [partial(wasserstein, points=300), sliced_wasserstein, mmd]
each_distance = pytest.mark.parametrize(
    "distance", DISTANCES, ids=["wasserstein", "sliced_wasserstein", "mmd"]
)
LINE = Schema([Column.continuous("x", 0, 1)])


def on_line(values):
    return LINE.encode(pd.DataFrame({"x": values}))


def coded(rows, seed=0):
    return make_schema().encode(make_table(rows, seed))


@each_distance
def test_a_table_is_at_distance_zero_from_itself_whatever_its_weights(distance):
    table = coded(60)
    weights = np.random.default_rng(1).exponential(size=60)
    assert distance(table, table, weights, weights) == pytest.approx(0, abs=1e-7)
    assert distance(table, table, weights) > 0.01


@each_distance
def test_a_weight_of_three_is_a_row_that_appears_three_times(distance):
    table, other = coded(40), coded(30, seed=1)
    weights = np.random.default_rng(2).integers(0, 4, 40)
    repeated = table.take(np.repeat(np.arange(40), weights))
    expected = distance(repeated, other)
    assert distance(table, other, weights) == pytest.approx(expected)
    assert distance(table, other) != pytest.approx(expected)


@each_distance
def test_the_order_of_rows_and_the_scale_of_weights_do_not_matter(distance):
    table, other = coded(80), coded(50, seed=1)
    generator = np.random.default_rng(3)
    weights, order = generator.exponential(size=80), generator.permutation(80)
    shuffled = distance(table.take(order), other, 7 * weights[order])
    assert shuffled == pytest.approx(distance(table, other, weights))


@each_distance
def test_weights_that_undo_a_bias_bring_the_table_closer(distance):
    generator = np.random.default_rng(4)
    real = on_line(generator.beta(2, 4, 1500))
    biased = generator.random(3000)
    weights = 20 * biased * (1 - biased) ** 3  # the density of Beta(2, 4) over a uniform one
    assert distance(on_line(biased), real, weights) < 0.3 * distance(on_line(biased), real)


def test_moving_every_row_by_a_tenth_costs_a_tenth():
    values = np.linspace(0, 0.9, 50)
    for distance in DISTANCES[:2]:
        assert distance(on_line(values + 0.1), on_line(values)) == pytest.approx(0.1)


def test_sliced_distance_on_a_line_is_the_weighted_distance_of_scipy():
    generator = np.random.default_rng(5)
    x, y, weights = generator.random(200), generator.random(90), generator.exponential(size=200)
    expected = wasserstein_distance(x, y, weights)
    assert sliced_wasserstein(on_line(x), on_line(y), weights) == pytest.approx(expected)
    assert DISTANCES[0](on_line(x), on_line(y), weights) == pytest.approx(expected, abs=2e-3)


def test_transport_costs_what_the_linear_programme_says():
    left, right = coded(12), coded(12, seed=1)
    cost = np.linalg.norm(coordinates(left)[:, None] - coordinates(right)[None], axis=2)
    # Rows and columns of the plan have to add up to 1/12 each.
    rows, columns = np.kron(np.eye(12), np.ones(12)), np.kron(np.ones(12), np.eye(12))
    plan = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.full(24, 1 / 12))
    assert wasserstein(left, right, points=24) == pytest.approx(plan.fun)


def test_transport_between_far_clusters_and_between_equal_rows_is_found():
    # The first costs differ by many orders of magnitude, the second have no scale at all.
    left = on_line([0.0] * 5 + [1e-6] * 5 + [1.0] * 10)
    right = on_line([2e-6] * 10 + [1.0] * 10)
    assert wasserstein(left, right, points=20) == pytest.approx((10e-6 + 5e-6) / 20, rel=1e-6)
    assert wasserstein(on_line([0.5] * 4), on_line([0.5] * 3)) == 0


def test_mmd_is_the_weighted_v_statistic_with_the_median_bandwidth_of_the_right_table():
    left, right = on_line([0.1, 0.4]), on_line([0.0, 0.2, 0.8])

    def kernel(a, b):
        return np.exp(-((np.subtract.outer(a, b) / 0.6) ** 2) / 2)  # median of 0.2, 0.6, 0.8

    x, p = np.array([0.1, 0.4]), np.array([0.25, 0.75])
    y, q = np.array([0.0, 0.2, 0.8]), np.full(3, 1 / 3)
    squared = p @ kernel(x, x) @ p + q @ kernel(y, y) @ q - 2 * p @ kernel(x, y) @ q
    assert mmd(left, right, np.array([1, 3])) == pytest.approx(np.sqrt(squared))


def test_mmd_of_more_rows_than_points_is_close_to_that_of_all_rows():
    table, other = coded(3000), coded(400, seed=1)
    weights = np.random.default_rng(6).exponential(size=3000)
    everything = mmd(table, other, weights)
    assert mmd(table, other, weights, points=2000) == pytest.approx(everything, rel=0.1)


def test_ends_of_a_number_and_any_two_categories_are_one_apart():
    schema = Schema([Column.integer("k", 0, 100), Column.categorical("c", list("abc"))])
    table = schema.encode(pd.DataFrame({"k": [0, 100, 0, 0], "c": ["a", "a", "b", "c"]}))
    points = coordinates(table)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert apart[0] == pytest.approx([0, 1, 1, 1])
    assert apart[2, 3] == pytest.approx(1)


def test_a_row_appears_as_often_as_its_share_of_the_weight_says():
    table = on_line(np.linspace(0, 1, 37))
    weights = np.random.default_rng(7).exponential(size=37)
    drawn = equal_points(table, weights, 500)
    times = np.array([(drawn.units == unit).sum() for unit in table.units[:, 0]])
    assert np.abs(times - 500 * weights / weights.sum()).max() < 1
    assert times.sum() == 500


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, np.nan], [0.0, 0.0]])
def test_weights_that_weigh_nothing_are_refused(weights):
    with pytest.raises(MethodError, match="weights"):
        wasserstein(on_line([0.1, 0.2]), on_line([0.3]), np.array(weights))


def test_tables_of_different_schemas_and_without_rows_are_refused():
    with pytest.raises(MethodError, match="same schema"):
        mmd(coded(5), on_line([0.5]))
    with pytest.raises(MethodError, match="without rows"):
        sliced_wasserstein(on_line([]), on_line([0.5]))
