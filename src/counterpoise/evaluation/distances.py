"""Transport between two weighted tables: Wasserstein-1, and sliced Wasserstein-1.

Both are between the weighted empirical distributions of the rows, as points of `coordinates`.
Exact transport costs the cube of the number of points, so that larger tables are first represented
by a stated number of points of equal weight; between those it is exact. Samples of one
distribution are not at distance zero: compare distances to the same rows, at the same number of
points. Reference: Peyre and Cuturi, Computational Optimal Transport (2019), chapters 2 and 8.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from counterpoise.arguments import whole_number
from counterpoise.evaluation.points import check_schemas, checked_shares, coordinates, equal_points
from counterpoise.schema import Coded

# Of the entropic transport: its temperature, as a part of the mean cost, and its iterations.
SMOOTHING, SINKHORN_STEPS, TINY = 0.01, 30, 1e-300

# Every point meets every other: the distances of so many take 80 GB.
MOST_PAIRED_POINTS = 100_000
MOST_DIRECTIONS = 1_000_000


def wasserstein(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
    *,
    points: int = 2000,
) -> float:
    """Wasserstein-1 distance: the least mean distance over which rows have to be moved.

    Both tables are represented by up to `points` points of equal weight, which rounds weights to
    multiples of 1 / `points`; the transport between those is exact. 2,000 take about a second.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> left = schema.encode(pd.DataFrame({"x": [0.0, 0.5]}))
    >>> right = schema.encode(pd.DataFrame({"x": [0.0, 1.0]}))
    >>> wasserstein(left, right), wasserstein(left, right, np.array([1.0, 3.0]))
    (0.25, 0.375)
    """
    check_schemas(left, right)
    count = points = whole_number("points", points, most=MOST_PAIRED_POINTS)
    if right_weights is None and 0 < len(right) <= points:
        # A multiple of the rows to compare with, so that none of these counts more than another.
        count -= points % len(right)
    moved = cdist(
        coordinates(equal_points(left, left_weights, count)),
        coordinates(equal_points(right, right_weights, count)),
    )
    # W1 = min over permutations s of (1/k) sum_i |x_i - y_s(i)|
    return float(moved[linear_sum_assignment(_reduced(moved))].mean())


def _reduced(costs: np.ndarray) -> np.ndarray:
    """Costs with the same best assignment, which is found several times as fast.

    c_ij - f_i - g_j ranks assignments as c_ij does, whatever f and g are. Those of an entropic
    transport (Sinkhorn's iteration) come close to the dual solution, and leave little to search.
    """
    scale = SMOOTHING * costs.mean()
    if scale == 0:
        return costs
    kernel = np.exp(-costs / scale)
    v = np.ones(len(costs))
    for _ in range(SINKHORN_STEPS):
        u = 1 / (kernel @ v + TINY)
        v = 1 / (u @ kernel + TINY)
    f = scale * np.log(u)
    # The largest g, then f, that leave no cost below zero.
    g = (costs - f[:, None]).min(axis=0)
    f = (costs - g).min(axis=1)
    return np.asarray(costs - f[:, None] - g)


def sliced_wasserstein(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    right_weights: np.ndarray | None = None,
    *,
    directions: int = 200,
    seed: int = 0,
) -> float:
    """The Wasserstein-1 distance of projections to a line, averaged over random directions.

    Exact for the weights, whatever the number of rows; the seed fixes the directions.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> left = schema.encode(pd.DataFrame({"x": [0.0, 0.5]}))
    >>> right = schema.encode(pd.DataFrame({"x": [0.0, 1.0]}))
    >>> sliced_wasserstein(left, right)
    0.25
    """
    check_schemas(left, right)
    directions = whole_number("directions", directions, most=MOST_DIRECTIONS)
    seed = whole_number("seed", seed, 0)
    signed = np.concatenate(
        [checked_shares(left, left_weights), -checked_shares(right, right_weights)]
    )
    places = np.concatenate([coordinates(left), coordinates(right)])
    drawn = np.random.default_rng(seed).normal(size=(directions, places.shape[1]))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return float(np.mean([_line_distance(places @ direction, signed) for direction in drawn]))


def _line_distance(values: np.ndarray, signed: np.ndarray) -> float:
    """W1 on a line: the integral of |F(x) - G(x)|, F and G being the distribution functions."""
    order = np.argsort(values)
    difference = np.cumsum(signed[order])[:-1]
    return float(np.abs(difference) @ np.diff(values[order]))
