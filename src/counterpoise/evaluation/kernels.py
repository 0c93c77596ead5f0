"""Distances that are averages over all pairs of points: MMD and the energy distance, in blocks.

The squared maximum mean discrepancy of a kernel k between weighted rows x and plain rows y is

    U_w k(x, x') + U k(y, y') - 2 average_w k(x, y),

equation 3.2 of the dissertation on importance weights, and 3.3 to 3.5 for the estimators "iw",
"miw" and "sniw" of `counterpoise.importance`; as a U-statistic it is right on average, and may be
below zero. The energy distance (Szekely and Rizzo, Energy statistics, 2013) has -|x - y| in the
place of the kernel and is a V-statistic. No matrix of all pairs is held: exponents come from one
product of matrices a block, in single precision where there are very many pairs, whose rounding
averages out over them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import pdist

from counterpoise.arguments import one_of, real_number, whole_number
from counterpoise.errors import MethodError
from counterpoise.evaluation.points import (
    check_schemas,
    checked_shares,
    coordinates,
    equal_points,
    spread_rows,
)
from counterpoise.importance import averages
from counterpoise.importance.averages import ESTIMATORS, GROUPS, IW, MIW, SNIW
from counterpoise.schema import Coded

# Points from which the bandwidth of a kernel is taken.
BANDWIDTH_POINTS = 1000

# Every point meets every other: so many make ten billion pairs.
MOST_PAIRED_POINTS = 100_000
# Rows and columns of a block, which stays in a processor's cache; and the pairs from which on
# single precision is good enough.
BLOCK_ROWS, MANY_PAIRS = 512, 4000**2

# Of points that are about one apart; beyond these all are the same, or none.
WIDTHS = (1e-9, 1e9)

Transform = Callable[[np.ndarray], None]  # of -|x - y|^2 / 2, in its place


def discrepancy(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    *,
    estimator: str = SNIW,
    points: int = 20_000,
    bandwidth: float | None = None,
    groups: int = GROUPS,
    seed: int = 0,
) -> float:
    """The squared MMD of weighted `left` and plain `right`, by an estimator right on average.

    The kernel is Gaussian, and its bandwidth the median distance between rows of `right`, unless
    it is stated. Of more than `points` rows, so many are taken, evenly spread, with their weights.
    `groups` and `seed` are those of the median of means, "miw".

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> left = schema.encode(pd.DataFrame({"x": [0.0, 0.0]}))
    >>> right = schema.encode(pd.DataFrame({"x": [0.0, 1.0]}))
    >>> round(discrepancy(left, right, bandwidth=1.0), 4) == 0.0  # 1 + e^-.5 - (1 + e^-.5)
    True
    """
    check_schemas(left, right)
    points = whole_number("points", points, 2, MOST_PAIRED_POINTS)
    width = median_distance(right, None) if bandwidth is None else _checked_width(bandwidth)
    seed = whole_number("seed", seed, 0)
    if min(len(left), len(right)) < 2:
        raise MethodError("a U-statistic needs two rows or more of each table")
    rows, weights = spread_rows(left, left_weights, points)
    others, _ = spread_rows(right, None, points)
    x, y = coordinates(rows) / width, coordinates(others) / width
    if one_of("estimator", estimator, ESTIMATORS) != MIW:
        return _discrepancy(x, y, weights, estimator)
    # Of both, group by group, as the estimator of averages has it.
    parts = [averages.random_groups(len(each), groups, seed) for each in (x, y)]
    found = [
        _discrepancy(x[one], y[two], weights[one], IW) for one, two in zip(*parts, strict=True)
    ]
    return float(np.median(found))


def mmd(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
    *,
    points: int = 4000,
) -> float:
    """Maximum mean discrepancy with a Gaussian kernel; the root of the V-statistic.

    The bandwidth is the median distance between rows of `right`, so that every table that is
    compared with it meets the same kernel. A table of more than `points` rows is represented by
    so many of equal weight; smaller ones keep their weights. The V-statistic counts every row
    with itself, which keeps it from being negative and biases it upwards, the more so the fewer
    rows carry the weight.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> left = schema.encode(pd.DataFrame({"x": [0.0, 0.0]}))
    >>> right = schema.encode(pd.DataFrame({"x": [0.0, 1.0]}))
    >>> round(mmd(left, right), 4) == round(float(np.sqrt((1 - np.exp(-0.5)) / 2)), 4)
    True
    """
    check_schemas(left, right)
    points = whole_number("points", points, most=MOST_PAIRED_POINTS)
    bandwidth = median_distance(right, right_weights)
    (x, p), (y, q) = (
        _weighted_points(*side, points) for side in ((left, left_weights), (right, right_weights))
    )
    return float(np.sqrt(max(_v_statistic(x / bandwidth, p, y / bandwidth, q, _gaussian), 0.0)))


def energy_distance(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
    *,
    points: int = 4000,
) -> float:
    """The energy distance: the root of 2 E|x - y| - E|x - x'| - E|y - y'|, weighted.

    Tables of more than `points` rows are represented by so many of equal weight.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> left = schema.encode(pd.DataFrame({"x": [0.0]}))
    >>> right = schema.encode(pd.DataFrame({"x": [0.0, 1.0]}))
    >>> round(energy_distance(left, right) ** 2, 6)  # 2 / 2 - 0 - 1 / 2
    0.5
    """
    check_schemas(left, right)
    points = whole_number("points", points, most=MOST_PAIRED_POINTS)
    (x, p), (y, q) = (
        _weighted_points(*side, points) for side in ((left, left_weights), (right, right_weights))
    )
    return float(np.sqrt(max(_v_statistic(x, p, y, q, _minus_distance), 0.0)))


def median_distance(table: Coded, weights: np.ndarray | None) -> float:
    """The median distance between different rows, of up to a thousand; one if all are the same."""
    points, _ = _weighted_points(table, weights, BANDWIDTH_POINTS)
    apart = pdist(points)
    # Rows that are all the same have no scale of their own.
    apart = apart[apart > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def sum_over_pairs(
    x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, transform: Transform
) -> float:
    """sum_ij a_i b_j t(x_i, y_j), where `transform` turns -|x_i - y_j|^2 / 2 into t in its place.

    With the same points and weights twice, every pair is computed once.

    >>> x, one = np.array([[0.0], [2.0]]), np.ones(2)
    >>> round(sum_over_pairs(x, one, x, one, _minus_distance), 6)
    -4.0
    """
    is_same = x is y and a is b
    precision = np.float32 if len(x) * len(y) > MANY_PAIRS else np.float64
    centre = y.mean(axis=0)
    x, y = x - centre, y - centre
    # -|x - y|^2 / 2 = (x, -|x|^2 / 2, 1) . (y, 1, -|y|^2 / 2)
    left = np.column_stack([x, -0.5 * np.einsum("ij,ij->i", x, x), np.ones(len(x))])
    right = np.column_stack([y, np.ones(len(y)), -0.5 * np.einsum("ij,ij->i", y, y)])
    left, right = left.astype(precision), np.ascontiguousarray(right.T, dtype=precision)
    heavy = b.astype(precision)
    total = 0.0
    for start in range(0, len(x), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        for first in range(start if is_same else 0, len(y), BLOCK_ROWS):
            columns = slice(first, first + BLOCK_ROWS)
            block = left[rows] @ right[:, columns]
            transform(block)
            found = float(a[rows] @ (block @ heavy[columns]).astype(np.float64))
            # What is to the right of the diagonal is below it as well.
            total += 2 * found if is_same and first > start else found
    return total


def _checked_width(bandwidth: float) -> float:
    low, high = WIDTHS
    expected = f"a number from {low:g} to {high:g}, or None"
    return real_number("bandwidth", bandwidth, expected, above=low, below=high, inclusive=True)


def _gaussian(block: np.ndarray) -> None:
    np.exp(block, out=block)


def _minus_distance(block: np.ndarray) -> None:
    block *= -2
    # Rounding may leave a distance of zero on the wrong side.
    np.maximum(block, 0, out=block)
    np.sqrt(block, out=block)
    np.negative(block, out=block)


def _v_statistic(
    x: np.ndarray, p: np.ndarray, y: np.ndarray, q: np.ndarray, transform: Transform
) -> float:
    # sum p_i p_j k(x_i, x_j) + sum q_i q_j k(y_i, y_j) - 2 sum p_i q_j k(x_i, y_j)
    within = sum_over_pairs(x, p, x, p, transform) + sum_over_pairs(y, q, y, q, transform)
    return within - 2 * sum_over_pairs(x, p, y, q, transform)


def _discrepancy(x: np.ndarray, y: np.ndarray, weights: np.ndarray, estimator: str) -> float:
    def within(points: np.ndarray, pairs: averages.PairCoefficients) -> float:
        own = pairs.factors
        all_pairs = sum_over_pairs(points, own, points, own, _gaussian)
        # A kernel of a point with itself is one, whatever the point.
        return pairs.scale * (all_pairs - float(own @ own)) + float(pairs.same.sum())

    ones = np.ones(len(y))
    own = averages.pair_coefficients(weights, estimator, with_itself=False)
    other = averages.pair_coefficients(ones, IW, with_itself=False)
    single = averages.single_coefficients(np.ones(len(x)), weights, estimator, GROUPS, None)
    across = sum_over_pairs(x, single, y, ones / len(y), _gaussian)
    return within(x, own) + within(y, other) - 2 * across


def _weighted_points(
    table: Coded, weights: np.ndarray | None, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most so many points, by their weight if they are fewer than the rows, and their shares."""
    if len(table) <= points:
        return coordinates(table), checked_shares(table, weights)
    return coordinates(equal_points(table, weights, points)), np.full(points, 1 / points)
