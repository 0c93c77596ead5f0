"""Train on weighted synthetic rows, test on real ones: scores, and the error of coefficients.

A column is predicted from all others, which enter as `Coded.one_hot` features. A target of
categories is classified and scored by ROC-AUC, one class against the rest, averaged over the
classes; a numeric or ordinal target is regressed in the unit box and scored by R^2. Losses are
means over the weight, so that multiplying all weights, or writing every row twice, changes
nothing, and tables of different sizes are penalised alike.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from counterpoise.arguments import column_name, real_number, whole_number
from counterpoise.errors import MethodError
from counterpoise.evaluation.points import (
    check_schemas,
    checked_table,
    checked_weights,
    equal_points,
)
from counterpoise.schema import Coded, Schema

PENALTY = 1e-3
# Below it, and above its inverse, the fit is lost to rounding.
LEAST_PENALTY = 1e-12

# Epochs of a network, of batches of 200 points.
EPOCHS = 40


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model of one column: a row of coefficients a class, or a single one.

    Of two classes only the second has a row, and a regression has one row.
    """

    schema: Schema
    target: str
    coefficients: np.ndarray  # (1 or classes, features)
    intercepts: np.ndarray

    def score(self, test: Coded) -> float:
        """ROC-AUC or R^2 on real rows."""
        features, truth = split_target(checked_table("test", test), self.target)
        return score_of(features @ self.coefficients.T + self.intercepts, truth, test, self.target)


def fit_linear(
    train: Coded, target: str, weights: np.ndarray | None = None, penalty: float = PENALTY
) -> LinearModel:
    """Fit a logistic or linear regression of `target` to weighted rows.

    Minimises the weighted mean loss + (penalty / 2) |b|^2, the intercept not penalised.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1), Column.continuous("y", 0, 1)])
    >>> rows = schema.encode(pd.DataFrame({"x": [0.0, 0.5, 1.0], "y": [0.1, 0.2, 0.3]}))
    >>> fit_linear(rows, "y", penalty=1e-9).coefficients.round(3).tolist()
    [[0.2]]
    """
    checked_table("train", train)
    weights = checked_weights(train, weights)
    target, penalty = column_name("target", target), _checked_penalty(penalty)
    features, outcome = split_target(train, target)
    kept = (weights > 0) & is_stated(train, target)
    if not kept.any():
        raise MethodError(f"target: column {target!r} is null in every row of positive weight")
    features, outcome, weights = features[kept], outcome[kept], weights[kept]
    if is_regression(train.schema, target):
        # (1/W) sum w (y - x.b)^2 / 2 + (penalty/2) |b|^2, times 2 W
        ridge = Ridge(alpha=penalty * weights.sum()).fit(features, outcome, weights)
        return LinearModel(train.schema, target, ridge.coef_[None], np.array([ridge.intercept_]))
    size = train.schema[target].size
    return LinearModel(
        train.schema, target, *_fit_logistic(features, outcome, weights, size, penalty)
    )


def linear_score(
    train: Coded,
    test: Coded,
    target: str,
    weights: np.ndarray | None = None,
    penalty: float = PENALTY,
) -> float:
    """ROC-AUC or R^2 on the rows of `test` of a linear model fitted to weighted rows.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1), Column.boolean("y")])
    >>> rows = schema.encode(pd.DataFrame({"x": [0.1, 0.2, 0.9], "y": [False, False, True]}))
    >>> linear_score(rows, rows, "y")
    1.0
    """
    return fit_linear(train, target, weights, penalty).score(test)


def coefficient_error(
    train: Coded,
    test: Coded,
    target: str,
    weights: np.ndarray | None = None,
    penalty: float = PENALTY,
) -> float:
    """Mean squared difference of coefficients to those of the same model fitted to `test`.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1), Column.boolean("y")])
    >>> rows = schema.encode(pd.DataFrame({"x": [0.1, 0.2, 0.9], "y": [False, False, True]}))
    >>> coefficient_error(rows, rows, "y")
    0.0
    """
    checked_table("test", test)
    fitted = fit_linear(train, target, weights, penalty).coefficients
    wanted = fit_linear(test, target, None, penalty).coefficients
    return float(np.mean((fitted - wanted) ** 2))


def mlp_score(
    train: Coded,
    test: Coded,
    target: str,
    weights: np.ndarray | None = None,
    *,
    points: int = 10_000,
    seed: int = 0,
) -> float:
    """ROC-AUC or R^2 on the rows of `test` of a network of one hidden layer of 100 units.

    The network sees `points` points of equal weight, so that weights need no support from the
    optimiser and tables of every size get the same number of steps.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1), Column.boolean("y")])
    >>> rows = schema.encode(pd.DataFrame({"x": [0.1, 0.2, 0.9], "y": [False, False, True]}))
    >>> mlp_score(rows, rows, "y", points=60)
    1.0
    """
    checked_table("train", train)
    check_schemas(train, test)
    target, points = column_name("target", target), whole_number("points", points)
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    kept = is_stated(train, target)
    weights = checked_weights(train, weights) * kept
    rows = equal_points(train, weights, points)
    features, outcome = split_target(rows, target)
    unseen, truth = split_target(test, target)
    options: dict[str, Any] = {"max_iter": EPOCHS, "random_state": seed}
    if is_regression(train.schema, target):
        predicted = _fit_quietly(MLPRegressor(**options), features, outcome).predict(unseen)
        return score_of(predicted[:, None], truth, test, target)
    scores = np.zeros((len(test), train.schema[target].size))
    seen = np.unique(outcome)
    if len(seen) > 1:
        model = _fit_quietly(MLPClassifier(**options), features, outcome)
        scores[:, seen] = model.predict_proba(unseen)
    return score_of(scores, truth, test, target)


def _checked_penalty(penalty: Any) -> float:
    expected = f"a number from {LEAST_PENALTY:g} to {1 / LEAST_PENALTY:g}"
    low, high = LEAST_PENALTY, 1 / LEAST_PENALTY
    return real_number("penalty", penalty, expected, above=low, below=high, inclusive=True)


def is_regression(schema: Schema, target: str) -> bool:
    """Whether a target is a number or an order, and not one of categories."""
    return schema[target].kind != "categorical"


def is_stated(table: Coded, target: str) -> np.ndarray:
    """Where the target is known: a null category is a class, a null number is not a number."""
    if not is_regression(table.schema, target):
        return np.ones(len(table), dtype=bool)
    codes = table.codes[:, table.schema.index(target)]
    return codes != table.schema[target].cells


def split_target(table: Coded, target: str) -> tuple[np.ndarray, np.ndarray]:
    """The features of all other columns, and the target: its codes, or its units."""
    place = table.schema.index(target)
    others = [i for i in range(len(table.schema)) if i != place]
    if not others:
        raise MethodError(f"target: column {target!r} is the only one, and nothing predicts it")
    schema = table.schema.select(table.schema.names[i] for i in others)
    features, _ = Coded(schema, table.codes[:, others], table.units[:, others]).one_hot()
    outcome = table.units if is_regression(table.schema, target) else table.codes
    return features, outcome[:, place]


def _fit_logistic(
    features: np.ndarray, classes: np.ndarray, weights: np.ndarray, size: int, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    seen = np.unique(classes)
    coefficients = np.zeros((size, features.shape[1]))
    intercepts = np.zeros(size)
    # One class teaches nothing: the penalty takes every coefficient to zero.
    if len(seen) > 1:
        # C sum w loss + |b|^2 / 2 with C = 1 / (penalty W)
        model = LogisticRegression(
            C=1 / (penalty * weights.sum()), solver="newton-cholesky", tol=1e-6, max_iter=200
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(features, classes, weights)
        if len(seen) == 2:
            # sigmoid(z) is the softmax of (-z/2, z/2).
            halves = np.array([[-0.5], [0.5]])
            coefficients[seen] = halves * model.coef_
            intercepts[seen] = halves[:, 0] * model.intercept_
        else:
            coefficients[seen], intercepts[seen] = model.coef_, model.intercept_
    if size == 2:
        return np.diff(coefficients, axis=0), np.diff(intercepts)
    return coefficients, intercepts


def score_of(scores: np.ndarray, truth: np.ndarray, test: Coded, target: str) -> float:
    """R^2, or the mean ROC-AUC of the classes that some rows have and others do not."""
    if is_regression(test.schema, target):
        kept = is_stated(test, target)
        return float(r2_score(truth[kept], scores[kept, 0]))
    size = test.schema[target].size
    if scores.shape[1] == 1:
        scores = np.column_stack([-scores[:, 0], scores[:, 0]])
    areas = [
        roc_auc_score(truth == code, scores[:, code])
        for code in range(size)
        if 0 < (truth == code).sum() < len(truth)
    ]
    if not areas:
        raise MethodError(f"target: column {target!r} has one class only in the rows to test on")
    return float(np.mean(areas))


def _fit_quietly(model: Any, features: np.ndarray, outcome: np.ndarray) -> Any:
    """Fit on standardised features; that the steps are limited is meant, and no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(StandardScaler(), model).fit(features, outcome)
