"""Models of synthetic rows are those of scikit-learn, judged on real rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.svm import SVC

from counterpoise.evaluation.coefficients import Fitted, compare_coefficients, overlap
from counterpoise.evaluation.compared import compare
from counterpoise.evaluation.models import MODELS, train_and_test
from counterpoise.evaluation.utility import split_target
from counterpoise.schema import Column, Schema
from tests.evaluation.evaluations import made, people

SCHEMA = Schema(
    [
        Column.continuous("x", -4, 4),
        Column.categorical("colour", ["red", "green", "blue"]),
        Column.boolean("ill"),
        Column.continuous("dose", -6, 6, nullable=True),
    ]
)


def coded(rows, seed):
    generator = np.random.default_rng(seed)
    x, colour = generator.normal(size=rows), generator.choice(["red", "green", "blue"], rows)
    dose = x + 0.5 * generator.normal(size=rows)
    return SCHEMA.encode(
        pd.DataFrame(
            {
                "x": x,
                "colour": colour,
                "ill": 2 * x + (colour == "red") + generator.logistic(size=rows) > 0,
                "dose": np.where(generator.random(rows) < 0.1, np.nan, dose),
            }
        )
    )


def test_a_logistic_regression_is_judged_as_scikit_learn_does():
    train, test = coded(200, 0), coded(150, 1)
    weights = np.random.default_rng(2).exponential(size=200)
    (features, outcome), (unseen, truth) = split_target(train, "ill"), split_target(test, "ill")
    fitted = LogisticRegression().fit(features, outcome, weights / weights.mean())
    chances = fitted.predict_proba(unseen)[:, 1]
    found = train_and_test(train, test, "ill", "linear", weights)
    assert found["ROC-AUC"] == pytest.approx(roc_auc_score(truth, chances))
    assert found["accuracy"] == pytest.approx(accuracy_score(truth, chances > 0.5))
    assert found["log score"] == pytest.approx(-log_loss(truth, chances), abs=0.01)


def test_support_vectors_have_no_log_score_and_are_those_of_scikit_learn():
    train, test = coded(200, 0), coded(150, 1)
    found = train_and_test(train, test, "colour", "support vectors")
    fitted = SVC().fit(*split_target(train, "colour"))
    unseen, truth = split_target(test, "colour")
    assert set(found) == {"accuracy", "ROC-AUC"}
    assert found["accuracy"] == np.mean(fitted.predict(unseen) == truth)


def test_a_number_is_regressed_where_it_is_known():
    train, test = coded(300, 0), coded(200, 1)
    for model in MODELS[:4]:
        assert 0.5 < train_and_test(train, test, "dose", model)["R²"] < 0.95
    known = test.codes[:, 3] != SCHEMA["dose"].cells
    unseen, truth = split_target(test.take(known), "dose")
    features, outcome = split_target(train.take(train.codes[:, 3] < 20), "dose")
    design = [np.column_stack([np.ones(len(each)), each]) for each in (features, unseen)]
    fitted = design[1] @ np.linalg.lstsq(design[0], outcome)[0]
    assert train_and_test(train, test, "dose")["R²"] == pytest.approx(r2_score(truth, fitted))


@pytest.mark.parametrize("model", ["linear", "random forest", "network"])
def test_weights_count(model):
    train, test = coded(300, 0), coded(150, 1)
    # The other half has its outcome turned round, and no weight.
    codes = train.codes.copy()
    codes[:150, 2] = 1 - codes[:150, 2]
    spoiled = type(train)(SCHEMA, codes, train.units)
    weights = np.repeat([0.0, 1.0], 150)
    plain = train_and_test(spoiled, test, "ill", model)["ROC-AUC"]
    weighted = train_and_test(spoiled, test, "ill", model, weights)["ROC-AUC"]
    assert weighted > 0.75 > plain + 0.1


def test_a_table_of_one_class_teaches_nothing():
    test = coded(150, 1)
    only = coded(200, 0)
    only = only.take(only.codes[:, 2] == 1)
    found = train_and_test(only, test, "ill", "gradient boosting")
    assert found["ROC-AUC"] == 0.5
    assert found["accuracy"] == np.mean(test.codes[:, 2] == 1)


def test_intervals_overlap_by_the_parts_of_each_that_both_have():
    one = Fitted(np.array([0.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0]), 1.0)
    other = Fitted(np.array([0.0, 0.0, 5.0]), np.array([1.0, 0.5, 1.0]), 1.0)
    assert overlap(one, other).tolist() == [1.0, 0.75, -1.5]


def test_coefficients_of_many_rows_are_the_ones_they_were_drawn_with():
    found = compare_coefficients(compare(made(), people(4000, 5)), "ill").set_index("term")
    # ill with chance age/100: about a straight line, and nothing of the others
    line = found.loc["dose"]
    assert line["private_low"] < 0 < line["private_high"]
    assert found.loc["age", "private_low"] > 2
    assert (found["private_low"] < found["private"]).all()
    assert found["overlap_weighted"].max() <= 1


def test_a_sandwich_is_the_spread_of_coefficients_over_samples():
    drawn, errors = [], []
    for seed in range(40):
        found = compare_coefficients(compare(made(), people(250, seed)), "ill").set_index("term")
        line = found.loc["age"]
        drawn.append(line["private"])
        errors.append((line["private_high"] - line["private_low"]) / (2 * 1.96))
    assert np.std(drawn) == pytest.approx(np.mean(errors), rel=0.35)
