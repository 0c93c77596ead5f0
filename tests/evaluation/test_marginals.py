"""Errors of means and marginals are weighted, and have known answers."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import MethodError
from counterpoise.evaluation import (
    k_marginal_score,
    marginal_error,
    marginals,
    mean_error,
    total_variation,
)
from counterpoise.evaluation.marginals import column_sets_of
from counterpoise.schema import Column, Schema
from tests.conftest import make_schema, make_table

ERRORS = [
    mean_error,
    lambda left, right, *weights: marginal_error(left, right, 1, *weights),
    lambda left, right, *weights: marginal_error(left, right, 2, *weights),
]


def coded(rows, seed=0):
    return make_schema().encode(make_table(rows, seed))


@pytest.mark.parametrize("error", ERRORS)
def test_a_table_has_no_error_against_itself(error):
    table = coded(50)
    weights = np.random.default_rng(0).exponential(size=50)
    assert error(table, table, weights, weights) == pytest.approx(0, abs=1e-12)
    assert error(table, table, weights) > 0.001


@pytest.mark.parametrize("error", ERRORS)
def test_a_weight_of_three_is_a_row_that_appears_three_times(error):
    table, other = coded(40), coded(30, seed=1)
    weights = np.random.default_rng(1).integers(0, 4, 40)
    repeated = table.take(np.repeat(np.arange(40), weights))
    assert error(table, other, weights) == pytest.approx(error(repeated, other))


@pytest.mark.parametrize("error", ERRORS)
def test_the_order_of_rows_does_not_matter(error):
    table, other = coded(40), coded(30, seed=1)
    generator = np.random.default_rng(2)
    weights, order = generator.exponential(size=40), generator.permutation(40)
    shuffled = error(table.take(order), other, weights[order])
    assert shuffled == pytest.approx(error(table, other, weights))


def test_mean_error_is_that_of_the_features_models_see():
    table, other = coded(40), coded(30, seed=1)
    weights = np.random.default_rng(4).exponential(size=40)
    means = np.average(table.one_hot()[0], axis=0, weights=weights), other.one_hot()[0].mean(axis=0)
    assert mean_error(table, other, weights) == pytest.approx(np.abs(means[0] - means[1]).mean())


def test_marginal_error_is_the_mean_over_all_pairs_of_half_the_absolute_differences():
    schema = Schema([Column.boolean(name) for name in "abc"])
    left = schema.encode(pd.DataFrame({"a": [True] * 4, "b": [True] * 4, "c": [True, False] * 2}))
    right = schema.encode(pd.DataFrame({"a": [True] * 2, "b": [False] * 2, "c": [True, False]}))
    assert marginal_error(left, right, 2) == pytest.approx((1 + 0 + 1) / 3)
    assert marginal_error(left, right, 3) == pytest.approx(1)
    # The weights leave one value of c: half of its mass is elsewhere.
    weights = np.array([1.0, 0.0, 1.0, 0.0])
    assert total_variation(left, right, ["a", "c"], weights) == pytest.approx(0.5)


def test_total_variation_is_that_of_the_weighted_cross_tables():
    left, right = make_table(300), make_table(200, seed=1)
    weights = np.random.default_rng(5).exponential(size=300)
    tables = [
        pd.crosstab(
            table["sex"],
            table["grade"].fillna("none"),
            values=values,
            aggfunc="sum",
            normalize=True,
        )
        for table, values in ((left, weights), (right, np.ones(200)))
    ]
    expected = (tables[0] - tables[1]).abs().to_numpy().sum() / 2
    coded_tables = (make_schema().encode(table) for table in (left, right))
    assert total_variation(*coded_tables, ["sex", "grade"], weights) == pytest.approx(expected)


def test_tables_of_many_cells_are_counted_alike(monkeypatch):
    table, other = coded(200), coded(100, seed=1)
    weights = np.random.default_rng(3).exponential(size=200)
    counted = marginal_error(table, other, 3, weights)
    monkeypatch.setattr(marginals, "MOST_CELLS", 1)
    assert marginal_error(table, other, 3, weights) == pytest.approx(counted)


def test_a_degree_beyond_the_columns_is_refused():
    with pytest.raises(MethodError, match="degree"):
        marginal_error(coded(5), coded(5), 5)


def test_the_k_marginal_score_of_a_small_table_is_the_one_worked_by_hand():
    schema = Schema([Column.categorical(name, ["x", "y"]) for name in "abcd"])
    left = schema.encode(
        pd.DataFrame({"a": list("xxyy"), "b": list("xyxy"), "c": list("xxxx"), "d": list("xyyx")})
    )
    right = schema.encode(
        pd.DataFrame({"a": list("xxyy"), "b": list("xyxy"), "c": list("xxxy"), "d": list("xyyx")})
    )
    # Only the last row differs, in c: every set of three with c has a quarter of its rows in
    # another cell, and the one without has none. SDNist: 1000 (1 - mean of sum|p - q| / 2).
    assert k_marginal_score(left, right) == pytest.approx(1000 * (1 - 3 / 4 * 1 / 4))
    assert k_marginal_score(left, right, degree=1) == pytest.approx(1000 * (1 - 1 / 16))
    # With the last row of the left table counted double its rows have 1/5, 1/5, 1/5 and 2/5 against
    # 1/4 each: without c half of (3/20 + 3/20); with it no row of the right stands where the last
    # one does, half of (3/20 + 2/5 + 1/4).
    weights = np.array([1.0, 1, 1, 2])
    expected = (0.15 + 3 * 0.4) / 4
    assert k_marginal_score(left, right, weights) == pytest.approx(1000 * (1 - expected))


def test_the_k_marginal_score_is_that_of_sdnist():
    # What `KMarginal` of SDNist 2.4 gave for these tables, without and with groups by PUMA.
    count = np.arange(60)
    real = pd.DataFrame(
        {
            "PUMA": count % 3,
            "AGEP": count**2 % 5,
            "SEX": count * 7 % 11 % 2,
            "MSP": (count**2 + count) // 3 % 4,
        }
    )[:48]
    made = pd.DataFrame(
        {
            "PUMA": (count + 1) // 2 % 3,
            "AGEP": (count**2 + count) % 5,
            "SEX": count * 5 % 7 % 2,
            "MSP": count**2 // 2 % 4,
        }
    )[:36]
    schema = Schema([Column.categorical(name, list(range(5))) for name in real.columns])
    left, right = schema.encode(made), schema.encode(real)
    features = ("AGEP", "SEX", "MSP")
    within = [schema.select(features).encode(each[list(features)]) for each in (made, real)]
    assert k_marginal_score(*within, degree=2) == pytest.approx(518.5185185185184)
    # There, three columns are the area and two others.
    distances = [
        total_variation(left, right, ("PUMA", *pair)) for pair in combinations(features, 2)
    ]
    assert 1000 * (1 - np.mean(distances)) == pytest.approx(506.9444444444444)


def test_sets_of_columns_are_drawn_without_repetition_and_the_same_again():
    names = [f"c{place}" for place in range(9)]
    drawn = column_sets_of(names, 3, most=20, seed=1)
    assert len(set(drawn)) == 20
    assert all(len(set(each)) == 3 for each in drawn)
    assert drawn == column_sets_of(names, 3, most=20, seed=1) != column_sets_of(names, 3, 20, 2)
    assert len(column_sets_of(names, 3, most=100)) == 84
