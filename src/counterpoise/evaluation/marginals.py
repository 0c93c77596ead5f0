"""Errors of weighted means and of weighted marginals, over all columns of a coded table.

Means are of the features that models see: numbers as parts of their range, categories as shares.
Marginals are compared by total variation distance, which is half the sum over cells of the
absolute difference of shares: the part of the rows that would have to be another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from counterpoise.arguments import column_sets, whole_number
from counterpoise.evaluation.points import check_schemas, checked_shares
from counterpoise.schema import Coded

# Beyond this, only the cells that occur are counted.
MOST_CELLS = 4_000_000


def mean_error(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
) -> float:
    """Mean absolute error of weighted means, over numeric columns and categories alike.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 10)])
    >>> left = schema.encode(pd.DataFrame({"x": [0.0, 10.0]}))
    >>> right = schema.encode(pd.DataFrame({"x": [7.5]}))
    >>> mean_error(left, right), mean_error(left, right, np.array([1.0, 3.0]))
    (0.25, 0.0)
    """
    check_schemas(left, right)
    difference = _means(left, left_weights) - _means(right, right_weights)
    return float(np.abs(difference).mean())


def total_variation(
    left: Coded,
    right: Coded,
    columns: Sequence[str],
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
) -> float:
    """Total variation distance between the weighted marginals over `columns`.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.boolean("a"), Column.boolean("b")])
    >>> left = schema.encode(pd.DataFrame({"a": [False, True], "b": [False, True]}))
    >>> right = schema.encode(pd.DataFrame({"a": [False, False], "b": [False, True]}))
    >>> total_variation(left, right, ["a", "b"]), total_variation(left, right, ["b"])
    (0.5, 0.0)
    """
    check_schemas(left, right)
    [columns] = column_sets("columns", (columns,))
    shape = left.schema.shape(columns)
    positions = [left.schema.index(name) for name in columns]
    left_cells = _cell_numbers(left.codes, shape, positions)
    right_cells = _cell_numbers(right.codes, shape, positions)
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        both = np.concatenate([left_cells, right_cells])
        occurring, numbers = np.unique(both, return_inverse=True)
        cells = len(occurring)
        left_cells, right_cells = numbers[: len(left)], numbers[len(left) :]
    left_shares = np.bincount(left_cells, checked_shares(left, left_weights), cells)
    right_shares = np.bincount(right_cells, checked_shares(right, right_weights), cells)
    # TV(p, q) = (1/2) sum_x |p(x) - q(x)|
    return 0.5 * float(np.abs(left_shares - right_shares).sum())


def marginal_error(
    left: Coded,
    right: Coded,
    degree: int = 2,
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
) -> float:
    """Mean total variation distance over all marginals of `degree` columns.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.boolean("a"), Column.boolean("b")])
    >>> left = schema.encode(pd.DataFrame({"a": [False, True], "b": [False, True]}))
    >>> right = schema.encode(pd.DataFrame({"a": [False, False], "b": [False, True]}))
    >>> marginal_error(left, right, 1)
    0.25
    """
    check_schemas(left, right)
    degree = whole_number("degree", degree, most=len(left.schema))
    distances = [
        total_variation(left, right, columns, left_weights, right_weights)
        for columns in combinations(left.schema.names, degree)
    ]
    return float(np.mean(distances))


def column_sets_of(
    names: Sequence[str], degree: int, most: int | None = None, seed: int = 0
) -> list[tuple[str, ...]]:
    """All sets of `degree` columns, or `most` of them, drawn at random, in the columns' order.

    >>> column_sets_of("abc", 2)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> len(column_sets_of("abcdefgh", 3, most=10))
    10
    """
    degree = whole_number("degree", degree, most=len(names))
    seed = whole_number("seed", seed, 0)
    if most is None or math.comb(len(names), degree) <= whole_number("most", most):
        return list(combinations(names, degree))
    generator, found = np.random.default_rng(seed), set[tuple[int, ...]]()
    while len(found) < most:
        found.add(tuple(sorted(generator.choice(len(names), degree, replace=False).tolist())))
    return [tuple(names[place] for place in places) for places in sorted(found)]


def k_marginal_score(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
    *,
    degree: int = 3,
    most: int | None = 100,
    seed: int = 0,
) -> float:
    """The k-marginal score of the NIST challenges: 1000 (1 - mean total variation), k = `degree`.

    A thousand is a table whose marginals are all right, zero one that shares no cell. Of more than
    `most` sets of columns so many are drawn. Reference: Task and others, SDNist: synthetic data
    report tool (NIST, 2022). The score of a set is the same as there; which sets are asked differs.
    Version 2.4 takes the area with all pairs of other columns but the industry, and its own bins.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.boolean("a"), Column.boolean("b")])
    >>> left = schema.encode(pd.DataFrame({"a": [False, True], "b": [False, True]}))
    >>> right = schema.encode(pd.DataFrame({"a": [False, False], "b": [False, True]}))
    >>> k_marginal_score(left, right, degree=2)
    500.0
    """
    check_schemas(left, right)
    distances = [
        total_variation(left, right, columns, left_weights, right_weights)
        for columns in column_sets_of(left.schema.names, degree, most, seed)
    ]
    return 1000 * (1 - float(np.mean(distances)))


def _means(table: Coded, weights: np.ndarray | None) -> np.ndarray:
    """The weighted means of `Coded.one_hot`, without making it."""
    shares = checked_shares(table, weights)
    means: list[np.ndarray | list[float]] = []
    for position, column in enumerate(table.schema):
        codes = table.codes[:, position]
        if column.kind == "categorical":
            means.append(np.bincount(codes, shares, column.size))
        else:
            means.append([shares @ table.units[:, position]])
            if column.nullable:
                means.append([shares @ (codes == column.null_code)])
    return np.concatenate(means)


def _cell_numbers(codes: np.ndarray, shape: Sequence[int], positions: Sequence[int]) -> np.ndarray:
    numbers = np.zeros(len(codes), dtype=np.int64)
    for size, position in zip(shape, positions, strict=True):
        numbers = numbers * size + codes[:, position]
    return numbers
