"""How close a synthetic table of integer codes is to the real one, and how useful.

Two measures: the total variation distance of k-way marginals, averaged over all sets of k
columns, and the ROC-AUC on held-out real rows of a classifier trained on synthetic rows. Both
look at the exact real rows: they are for public benchmark data and spend no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

MOST_CELLS = 4_000_000  # beyond this, only the cells that occur are counted


def total_variation(
    left: np.ndarray, right: np.ndarray, sizes: Sequence[int], columns: Sequence[int]
) -> float:
    """Total variation distance between two tables' marginals over `columns`.

    >>> left, right = np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 1]])
    >>> total_variation(left, right, [2, 2], [0, 1])
    0.5
    """
    shape = tuple(int(sizes[column]) for column in columns)
    cells = int(np.prod(shape, dtype=object))
    left_cells = _cell_numbers(left, shape, columns)
    right_cells = _cell_numbers(right, shape, columns)
    if cells > MOST_CELLS:
        both = np.concatenate([left_cells, right_cells])
        occurring, numbers = np.unique(both, return_inverse=True)
        cells = len(occurring)
        left_cells, right_cells = numbers[: len(left)], numbers[len(left) :]
    left_shares = np.bincount(left_cells, minlength=cells) / len(left)
    right_shares = np.bincount(right_cells, minlength=cells) / len(right)
    # TV(p, q) = (1/2) sum_x |p(x) - q(x)|
    return 0.5 * float(np.abs(left_shares - right_shares).sum())


def marginal_error(
    synthetic: np.ndarray, real: np.ndarray, sizes: Sequence[int], degree: int
) -> float:
    """Mean total variation distance over all marginals of `degree` columns.

    `synthetic` and `real` hold one row a record and one column a variable, with the codes
    0, ..., sizes[j] - 1 in column j; they need not have the same number of rows.

    >>> table = np.array([[0, 0], [1, 1]])
    >>> marginal_error(table, table, [2, 2], 2)
    0.0
    """
    synthetic, real = _checked(synthetic, sizes), _checked(real, sizes)
    distances = [
        total_variation(synthetic, real, sizes, columns)
        for columns in combinations(range(len(sizes)), degree)
    ]
    return float(np.mean(distances))


def held_out_auc(
    synthetic: np.ndarray, held_out: np.ndarray, sizes: Sequence[int], target: int = -1
) -> float:
    """ROC-AUC on the real rows `held_out` of a logistic regression fitted to `synthetic`.

    Every other column is a one-hot coded feature over its whole domain; the column `target` is
    binary. A synthetic table with one class only teaches nothing: its AUC is 0.5.
    """
    synthetic, held_out = _checked(synthetic, sizes), _checked(held_out, sizes)
    target %= len(sizes)
    if sizes[target] != 2:
        raise ValueError(f"the target must be binary, not of {sizes[target]} levels")
    if len(np.unique(synthetic[:, target])) < 2:
        return 0.5
    features = [column for column in range(len(sizes)) if column != target]
    classifier = make_pipeline(
        OneHotEncoder(categories=[np.arange(sizes[column]) for column in features]),
        LogisticRegression(max_iter=2000),
    )
    classifier.fit(synthetic[:, features], synthetic[:, target])
    scores = classifier.predict_proba(held_out[:, features])[:, 1]
    return float(roc_auc_score(held_out[:, target], scores))


def _cell_numbers(table: np.ndarray, shape: tuple[int, ...], columns: Sequence[int]) -> np.ndarray:
    numbers = np.zeros(len(table), dtype=np.int64)
    for size, column in zip(shape, columns, strict=True):
        numbers = numbers * size + table[:, column]
    return numbers


def _checked(table: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    table = np.asarray(table, dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != len(sizes):
        raise ValueError(f"expected {len(sizes)} columns, got a table of shape {table.shape}")
    if len(table) == 0:
        raise ValueError("expected at least one row")
    if table.min() < 0 or np.any(table.max(axis=0) >= np.asarray(sizes)):
        raise ValueError("the table holds codes outside its domain")
    return table
