"""The Kullback-Leibler divergence of real rows from weighted synthetic ones, by neighbours.

Around every real row lies the smallest ball that holds k other real rows and k synthetic ones. With
l_i real rows in it (without its own) and a share q_i of the synthetic weight, the divergence is

    mean_i [psi(l_i) - log(n - 1) - log q_i - psi(e_i) + log e_i],

e_i being the effective number of the synthetic rows in the ball; with equal weights that is the
estimator (25) of Wang, Kulkarni and Verdu, Divergence estimation for multidimensional densities
via k-nearest-neighbor distances (2009). Balls include their border, so that rows which are alike,
as those of categories are, do no harm. In many columns neighbours are far away, and the estimate
is too small: compare it with that of other real rows.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import digamma

from counterpoise.arguments import whole_number
from counterpoise.errors import MethodError
from counterpoise.evaluation.points import check_schemas, checked_weights, coordinates, spread_rows
from counterpoise.schema import Coded

NEIGHBOURS = 5
MOST_POINTS = 100_000
_BLOCK_ROWS = 256
# Distances that differ by rounding are the same.
_ROUNDING = 1e-9


def neighbour_divergence(
    left: Coded,
    right: Coded,
    left_weights: np.ndarray | None = None,
    *,
    neighbours: int = NEIGHBOURS,
    points: int = 4000,
) -> float:
    """KL(right || left) in nats: what is lost by taking the weighted `left` for the law of `right`.

    Of more than `points` rows of a table so many are taken, evenly spread.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.boolean("x")])
    >>> left = schema.encode(pd.DataFrame({"x": [False, True] * 500}))
    >>> right = schema.encode(pd.DataFrame({"x": [True] * 500}))
    >>> round(neighbour_divergence(left, right), 2) == round(float(np.log(2)), 2)
    True
    """
    check_schemas(left, right)
    neighbours = whole_number("neighbours", neighbours)
    points = whole_number("points", points, 2, MOST_POINTS)
    checked_weights(right, None)
    rows, weights = spread_rows(left, left_weights, points)
    rows, weights = rows.take(weights > 0), weights[weights > 0]
    others, _ = spread_rows(right, None, points)
    if len(others) <= neighbours or len(rows) < neighbours:
        raise MethodError(
            f"neighbours: {neighbours} need as many rows with some weight, and one more real row"
        )
    x, y = coordinates(rows), coordinates(others)
    total, whole = 0.0, float(weights.sum())
    for start in range(0, len(y), _BLOCK_ROWS):
        some = y[start : start + _BLOCK_ROWS]
        real, synthetic = cdist(some, y), cdist(some, x)
        # The row itself is among the real ones, at no distance.
        radius = np.maximum(
            np.partition(real, neighbours, axis=1)[:, neighbours],
            np.partition(synthetic, neighbours - 1, axis=1)[:, neighbours - 1],
        )[:, None]
        radius = radius * (1 + _ROUNDING) + _ROUNDING
        inside = synthetic <= radius
        count = (real <= radius).sum(axis=1) - 1
        weight = inside @ weights
        effective = weight**2 / (inside @ weights**2)
        total += float(
            np.sum(
                digamma(count)
                - np.log(len(y) - 1)
                - np.log(weight / whole)
                - digamma(effective)
                + np.log(effective)
            )
        )
    return total / len(y)
