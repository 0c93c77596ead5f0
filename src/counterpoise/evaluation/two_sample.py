"""A classifier's two-sample test: can real rows be told from synthetic ones?

Both tables count alike, whatever their sizes. pMSE is the mean of (p - 1/2)^2 over the rows, where
p is the fitted probability of a logistic regression that a row is synthetic: 0 when nothing tells
them apart, 1/4 when all does (Woo et al., Global measures of data utility for microdata masked for
disclosure limitation, 2009). The ROC-AUC is of gradient boosting, on rows it was not fitted to:
1/2 when nothing tells them apart, 1 when all does. Both are weighted throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from counterpoise.arguments import whole_number
from counterpoise.evaluation.points import check_schemas, checked_shares, spread_rows
from counterpoise.schema import Coded

FOLDS = 2
MOST_POINTS = 10_000_000


@dataclass(frozen=True)
class Propensity:
    """How well a classifier tells synthetic rows from real ones."""

    pmse: float
    auc: float


def tell_apart(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
    *,
    points: int = 10_000,
    seed: int = 0,
) -> Propensity:
    """pMSE and ROC-AUC of telling the rows of `left` from those of `right`.

    Of more than `points` rows of a table so many are taken, evenly spread; the seed is that of the
    folds.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> low = schema.encode(pd.DataFrame({"x": np.linspace(0, 0.4, 200)}))
    >>> high = schema.encode(pd.DataFrame({"x": np.linspace(0.6, 1, 200)}))
    >>> tell_apart(low, high).auc
    1.0
    """
    check_schemas(left, right)
    points = whole_number("points", points, 4, MOST_POINTS)
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    tables, shares = [], []
    for table, weights in ((left, left_weights), (right, right_weights)):
        rows, own = spread_rows(table, weights, points)
        tables.append(rows)
        shares.append(checked_shares(rows, own))
    features = np.concatenate([rows.one_hot()[0] for rows in tables])
    # For trees: numbers as they are, categories by their place, and what is null.
    units = np.concatenate([rows.unit_box()[0] for rows in tables])
    is_left = np.repeat([1, 0], [len(rows) for rows in tables])
    weights = np.concatenate(shares)
    weights = weights * len(weights) / weights.sum()
    features -= np.average(features, axis=0, weights=weights)
    spread = np.sqrt(np.average(features**2, axis=0, weights=weights))
    features /= np.where(spread > 0, spread, 1.0)
    model = LogisticRegression(solver="newton-cholesky", max_iter=200, tol=1e-6)
    fitted = model.fit(features, is_left, weights).predict_proba(features)[:, 1]
    # pMSE = (1/N) sum_i (p_i - c)^2 with c = 1/2
    pmse = float(np.average((fitted - 0.5) ** 2, weights=weights))
    return Propensity(pmse, _unseen_auc(units, is_left, weights, seed))


def _unseen_auc(units: np.ndarray, is_left: np.ndarray, weights: np.ndarray, seed: int) -> float:
    scores = np.zeros(len(units))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    # Threads of its own wait for each other longer than they work, where others work as well.
    with threadpool_limits(1):
        for seen, unseen in folds.split(units, is_left):
            model = HistGradientBoostingClassifier(random_state=seed, early_stopping=False)
            model.fit(units[seen], is_left[seen], weights[seen])
            scores[unseen] = model.decision_function(units[unseen])
    return float(roc_auc_score(is_left, scores, sample_weight=weights))
