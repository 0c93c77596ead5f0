"""Models trained on weighted rows are those of repeated rows, and are scored on real ones."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

from counterpoise.errors import MethodError
from counterpoise.evaluation import coefficient_error, fit_linear, linear_score, mlp_score
from counterpoise.schema import Column, Schema

SCHEMA = Schema(
    [
        Column.continuous("x", -3, 3),
        Column.categorical("colour", ["red", "green", "blue"]),
        Column.boolean("ill"),
        Column.continuous("dose", -4, 4, nullable=True),
        Column.categorical("stage", [0, 1, 2]),
    ]
)
TARGETS = ["ill", "stage", "dose"]


def frame(rows, seed=0, slope=2.0):
    generator = np.random.default_rng(seed)
    x = np.clip(generator.normal(size=rows), -3, 3)
    colour = generator.choice(["red", "green", "blue"], rows)
    latent = slope * x + (colour == "red") + generator.logistic(size=rows)
    return pd.DataFrame(
        {
            "x": x,
            "colour": colour,
            "ill": latent > 0,
            "dose": 0.5 * x + 0.3 * generator.normal(size=rows),
            "stage": np.digitize(latent, [-1, 1]),
        }
    )


def coded(rows, seed=0, slope=2.0):
    return SCHEMA.encode(frame(rows, seed, slope))


@pytest.mark.parametrize("target", TARGETS)
def test_a_weight_of_three_is_a_row_that_appears_three_times(target):
    table, test = coded(120), coded(100, seed=1)
    weights = np.random.default_rng(1).integers(0, 4, 120)
    repeated = table.take(np.repeat(np.arange(120), weights))
    assert coefficient_error(table, test, target, weights) == pytest.approx(
        coefficient_error(repeated, test, target), rel=1e-4
    )
    assert linear_score(table, test, target, weights) == pytest.approx(
        linear_score(repeated, test, target), abs=1e-4
    )
    assert mlp_score(table, test, target, weights, points=400) == pytest.approx(
        mlp_score(repeated, test, target, points=400)
    )


@pytest.mark.parametrize("target", TARGETS)
def test_the_penalty_is_the_same_however_much_the_rows_weigh(target):
    table = coded(120)
    weights = np.random.default_rng(5).exponential(size=120)
    model = fit_linear(table, target, weights, penalty=0.1)
    heavier = fit_linear(table, target, 50 * weights, penalty=0.1)
    assert heavier.coefficients == pytest.approx(model.coefficients, abs=1e-5)
    lighter = fit_linear(table, target, weights, penalty=0.01)
    assert np.abs(lighter.coefficients).max() > 1.2 * np.abs(model.coefficients).max()


def test_the_logistic_model_is_that_of_scikit_learn():
    table, test = coded(300), coded(200, seed=1)
    weights = np.random.default_rng(2).exponential(size=300)
    model = fit_linear(table, "ill", weights, penalty=1 / weights.sum())
    schema = SCHEMA.select([name for name in SCHEMA.names if name != "ill"])
    features, unseen = (schema.encode(frame(n, s)).one_hot()[0] for n, s in ((300, 0), (200, 1)))
    theirs = LogisticRegression(tol=1e-8, max_iter=10_000)
    theirs.fit(features, frame(300)["ill"], weights)
    assert model.coefficients == pytest.approx(theirs.coef_, abs=1e-4)
    assert model.intercepts == pytest.approx(theirs.intercept_, abs=1e-4)
    area = roc_auc_score(frame(200, 1)["ill"], theirs.decision_function(unseen))
    assert model.score(test) == pytest.approx(area, abs=1e-3)


def test_the_linear_model_is_weighted_least_squares_when_nothing_is_penalised():
    rows = frame(200)[["x", "dose"]]
    schema = SCHEMA.select(["x", "dose"])
    weights = np.random.default_rng(3).exponential(size=200)
    table = schema.encode(rows)
    theirs = LinearRegression().fit(table.units[:, :1], table.units[:, 1], weights)
    model = fit_linear(table, "dose", weights, penalty=1e-12)
    assert model.coefficients[0] == pytest.approx(theirs.coef_)


def test_a_single_class_teaches_nothing():
    table, test = coded(200), coded(100, seed=1)
    healthy = table.take(table.codes[:, SCHEMA.index("ill")] == 0)
    assert linear_score(healthy, test, "ill") == 0.5
    assert mlp_score(healthy, test, "ill", points=100) == 0.5
    wanted = fit_linear(test, "ill").coefficients
    assert coefficient_error(healthy, test, "ill") == pytest.approx((wanted**2).mean())


def test_a_class_that_training_rows_lack_counts_as_a_guess():
    table, test = coded(400), coded(300, seed=1)
    stage = table.codes[:, SCHEMA.index("stage")]
    known, all_classes = table.take(stage != 2), linear_score(table, test, "stage")
    assert linear_score(known, test, "stage") < all_classes
    assert fit_linear(known, "stage").coefficients[2] == pytest.approx(0)


def test_weights_that_undo_a_bias_mend_the_coefficients_and_the_scores():
    # The synthetic rows have the label at random; weights say how likely it is given x.
    rows, test = frame(4000, slope=4.0), coded(1500, seed=1, slope=4.0)
    chance = 1 / (1 + np.exp(-4 * rows["x"].to_numpy() - (rows["colour"] == "red")))
    rows["ill"] = np.random.default_rng(4).random(4000) < 0.5
    weights = np.where(rows["ill"], chance, 1 - chance)
    schema = SCHEMA.select(["x", "colour", "ill"])
    table = schema.encode(rows)
    test = schema.encode(frame(1500, seed=1, slope=4.0))
    unweighted = coefficient_error(table, test, "ill")
    assert coefficient_error(table, test, "ill", weights) < 0.1 * unweighted
    for score in (linear_score, partial(mlp_score, points=4000)):
        assert score(table, test, "ill") < 0.75
        assert score(table, test, "ill", weights) > 0.9


def test_rows_whose_number_is_null_are_left_out():
    holes = frame(200)
    holes.loc[:99, "dose"] = None
    model = fit_linear(SCHEMA.encode(holes), "dose")
    assert model.coefficients == pytest.approx(
        fit_linear(SCHEMA.encode(holes.iloc[100:]), "dose").coefficients
    )
    test = coded(100, seed=1)
    filled = mlp_score(SCHEMA.encode(holes.iloc[100:]), test, "dose", points=200)
    assert mlp_score(SCHEMA.encode(holes), test, "dose", points=200) == pytest.approx(filled)


def test_targets_that_cannot_be_predicted_or_scored_are_refused():
    table = coded(30)
    with pytest.raises(MethodError, match="one class only"):
        linear_score(table, table.take(table.codes[:, 2] == 1), "ill")
    alone = SCHEMA.select(["ill"])
    with pytest.raises(MethodError, match="only one"):
        fit_linear(alone.encode(frame(5)[["ill"]]), "ill")
