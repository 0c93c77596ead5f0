"""Train on synthetic rows, test on real ones, by five kinds of models with their usual settings.

A logistic or linear regression, a support vector machine, a random forest, gradient boosting and a
network of one hidden layer, all with the defaults of scikit-learn, as the papers on importance
weights and on excess risk train them. A column is predicted from all others, by the features of
`Coded.one_hot`. A model that takes weights gets them, and the network points of equal weight.
Accuracy and log score are those of the class; ROC-AUC is of one class against the rest, averaged;
R^2 is that of a numeric or ordered target in the unit box. A model of real rows, tested on the
same real rows that it did not see, says what could be had.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, SVR

from counterpoise.arguments import column_name, one_of, whole_number
from counterpoise.evaluation.points import (
    check_schemas,
    checked_weights,
    equal_points,
    spread_rows,
)
from counterpoise.evaluation.utility import is_regression, is_stated, score_of, split_target
from counterpoise.schema import Coded

LINEAR, SVM, FOREST, BOOSTING, NETWORK = MODELS = (
    "linear",
    "support vectors",
    "random forest",
    "gradient boosting",
    "network",
)
# A classifier and a regressor for each.
_KINDS: Mapping[str, tuple[Any, Any]] = {
    LINEAR: (LogisticRegression, LinearRegression),
    SVM: (SVC, SVR),
    FOREST: (RandomForestClassifier, RandomForestRegressor),
    BOOSTING: (GradientBoostingClassifier, GradientBoostingRegressor),
    NETWORK: (MLPClassifier, MLPRegressor),
}
_SEEDED = (FOREST, BOOSTING, NETWORK)
# Training rows of the model that is quick, and of the others, whose time grows faster than these.
LINEAR_ROWS, ROWS = 10_000, 5000
MOST_ROWS = 10_000_000
# A class to which a model gives less than this chance is given this much, for the log score.
LEAST_CHANCE = 1e-3


def train_and_test(
    train: Coded,
    test: Coded,
    target: str,
    model: str = LINEAR,
    weights: np.ndarray | None = None,
    *,
    rows: int | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """The measures of a model of weighted rows on the rows of `test`.

    "accuracy", "ROC-AUC" and "log score" of a target of categories, the last not of support
    vectors, which have no probabilities; "R²" of another. Up to `rows` rows are taken of each
    table, evenly spread: 10,000 for the linear model, 5,000 for others. The seed is that of models
    that draw. A model of one class alone has an accuracy and no more than chance.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1), Column.boolean("y")])
    >>> table = schema.encode(pd.DataFrame({"x": [0.1, 0.2, 0.8, 0.9], "y": [0, 0, 1, 1]}))
    >>> train_and_test(table, table, "y")["ROC-AUC"]
    1.0
    """
    check_schemas(train, test)
    target, model = column_name("target", target), one_of("model", model, MODELS)
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    usual = LINEAR_ROWS if model == LINEAR else ROWS
    rows = usual if rows is None else whole_number("rows", rows, 2, MOST_ROWS)
    own = checked_weights(train, weights) * is_stated(train, target)
    test, _ = spread_rows(test.take(is_stated(test, target)), None, rows)
    unseen, truth = split_target(test, target)
    if not own.sum() > 0:
        return _unlearned(test, target)
    if model == NETWORK and weights is not None:
        seen: Coded = equal_points(train, own, min(rows, len(train)))
        own = np.ones(len(seen))
    else:
        seen, own = spread_rows(train.take(own > 0), own[own > 0], rows)
    features, outcome = split_target(seen, target)
    regresses = is_regression(train.schema, target)
    if not regresses and len(np.unique(outcome)) < 2:
        return {"accuracy": float(np.mean(truth == outcome[0]))} | {
            key: value for key, value in _unlearned(test, target).items() if key != "accuracy"
        }
    fitted = _fit(model, regresses, features, outcome, own / own.mean(), seed)
    if regresses:
        return {"R²": score_of(fitted.predict(unseen)[:, None], truth, test, target)}
    return _judged(fitted, unseen, truth, test, target)


def measures_of(schema: Any, target: str) -> tuple[str, ...]:
    """The measures that a target has; the first is the one that models are ranked by."""
    return ("R²",) if is_regression(schema, target) else ("ROC-AUC", "accuracy", "log score")


def _fit(
    model: str,
    regresses: bool,
    features: np.ndarray,
    outcome: np.ndarray,
    weights: np.ndarray,
    seed: int,
) -> Any:
    made = _KINDS[model][regresses](**({"random_state": seed} if model in _SEEDED else {}))
    with warnings.catch_warnings():
        # That steps are limited is one of the usual settings.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return (
            made.fit(features, outcome)
            if model == NETWORK
            else made.fit(features, outcome, sample_weight=weights)
        )


def _judged(
    fitted: Any, unseen: np.ndarray, truth: np.ndarray, test: Coded, target: str
) -> dict[str, float]:
    size = test.schema[target].size
    found = {"accuracy": float(np.mean(fitted.predict(unseen) == truth))}
    scores = np.full((len(test), size), -np.inf)
    if hasattr(fitted, "predict_proba"):
        scores = np.zeros((len(test), size))
        scores[:, fitted.classes_] = fitted.predict_proba(unseen)
        chances = np.maximum(scores[np.arange(len(test)), truth], LEAST_CHANCE)
        found["log score"] = float(np.log(chances).mean())
    else:
        decided = fitted.decision_function(unseen)
        if decided.ndim == 1:
            decided = np.column_stack([-decided, decided])
        # A class that was never seen is less likely than all others.
        scores = np.full((len(test), size), decided.min() - 1)
        scores[:, fitted.classes_] = decided
    if len(np.unique(truth)) > 1:
        found["ROC-AUC"] = score_of(scores, truth, test, target)
    return found


def _unlearned(test: Coded, target: str) -> dict[str, float]:
    """What a model is worth that has nothing to learn from."""
    if is_regression(test.schema, target):
        return {"R²": 0.0}
    size = test.schema[target].size
    return {"accuracy": 1 / size, "ROC-AUC": 0.5, "log score": -float(np.log(size))}
