"""A classifier tells apart what differs, and nothing else; weights count."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from counterpoise.evaluation import tell_apart
from counterpoise.schema import Column, Schema

SCHEMA = Schema([Column.continuous("x", -8, 8), Column.boolean("y")])


def coded(rows, seed, shift=0.0):
    generator = np.random.default_rng(seed)
    x = generator.normal(shift, 1, rows)
    return SCHEMA.encode(pd.DataFrame({"x": x, "y": generator.random(rows) < 0.5})), x


def test_rows_of_one_law_are_not_told_apart():
    found = tell_apart(coded(2000, 0)[0], coded(2000, 1)[0])
    assert found.auc == pytest.approx(0.5, abs=0.03)
    assert found.pmse < 0.002


def test_pmse_is_that_of_a_logistic_regression_of_scikit_learn():
    left, right = coded(300, 0, shift=0.5)[0], coded(300, 1)[0]
    features = np.concatenate([table.one_hot()[0] for table in (left, right)])
    features = StandardScaler().fit_transform(features)
    labels = np.repeat([1, 0], 300)
    fitted = LogisticRegression(tol=1e-8).fit(features, labels).predict_proba(features)[:, 1]
    assert tell_apart(left, right).pmse == pytest.approx(np.mean((fitted - 0.5) ** 2), rel=1e-3)


def test_two_normal_laws_are_told_apart_as_well_as_they_can_be():
    found = tell_apart(coded(1500, 0, shift=2.0)[0], coded(1500, 1)[0])
    # The best score is x itself, with AUC Phi(2 / sqrt(2)) = 0.921.
    assert found.auc == pytest.approx(0.921, abs=0.02)
    assert 0.1 < found.pmse < 0.25


def test_weights_that_undo_the_difference_hide_it():
    left, x = coded(2000, 0, shift=0.7)
    right, _ = coded(1500, 1)
    weights = np.exp(-0.7 * x)
    plain, weighted = tell_apart(left, right), tell_apart(left, right, weights)
    assert weighted.auc == pytest.approx(0.5, abs=0.05)
    assert weighted.pmse < 0.1 * plain.pmse
    assert plain.auc > 0.65


def test_a_weight_of_two_is_a_row_that_is_there_twice():
    left, right = coded(300, 0, shift=0.4)[0], coded(300, 1)[0]
    weights = np.random.default_rng(2).integers(0, 3, 300)
    repeated = left.take(np.repeat(np.arange(300), weights))
    expected = tell_apart(repeated, right).pmse
    assert tell_apart(left, right, weights).pmse == pytest.approx(expected, rel=0.02)
