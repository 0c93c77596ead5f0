"""Support points: the few points whose energy distance to many weighted rows is least.

S. Mak and V. R. Joseph, "Support points", Annals of Statistics 46(6A), 2018. Of rows x with weights
w that sum to one, k support points y make

    2/k sum_ij w_i |x_i - y_j| - 1/k^2 sum_jl |y_j - y_l|

least. Two ways down: `ccp`, their convex-concave procedure, whose steps need no rate and never lead
up; and `adam`, on the gradient, as in chapter 5 of M. Diesendruck's dissertation (2019). Both find
a set that no small step betters, within the ranges of the rows. A distance is sqrt(|x - y|^2 + h^2)
with a small h, so that a point may meet a row and go on. Distances are taken in blocks; no matrix
of all rows and points is held. Nothing of this is private: points lie near rows, and rows that are
somebody's secret have no place here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from counterpoise.arguments import one_of, real_number, seed_or_none, whole_number
from counterpoise.errors import MethodError
from counterpoise.importance.averages import checked_weights
from counterpoise.importance.losses import checked_points
from counterpoise.networks import Optimiser

CCP, ADAM = ROUTES = ("ccp", "adam")

# Distances that are held at a time: 32 MB of them.
BLOCK_PAIRS = 2**22
# In parts of the widest column: h, what points are moved by at the start, and Adam's rate.
SMOOTHING, JITTER, RATE = 1e-3, 1e-3, 0.01

Step = Callable[[np.ndarray], np.ndarray]


def support_points(
    points: Any,
    count: int,
    weights: Any = None,
    *,
    route: str = CCP,
    steps: int = 500,
    tolerance: float = 1e-4,
    seed: int | None = None,
) -> np.ndarray:
    """`count` support points of rows with weights, as many columns wide.

    The start is a systematic sample of the rows, with an offset by `seed`. The route ends after
    `steps`, or when no point moves by more than `tolerance` of the widest column. Distances are
    Euclidean: columns of different units are to be scaled first.

    >>> points = np.linspace(0, 1, 301)[:, None]
    >>> found = support_points(points, 3, seed=1)[:, 0]
    >>> np.sort(found).round(2).tolist()  # of one column, the quantiles at 1/6, 3/6 and 5/6
    [0.17, 0.5, 0.83]
    """
    rows = checked_points("points", points)
    shares = checked_weights(weights, len(rows))
    shares = shares / shares.sum()
    count = whole_number("count", count, 1, len(rows))
    route = one_of("route", route, ROUTES)
    steps = whole_number("steps", steps)
    tolerance = real_number("tolerance", tolerance, "a number above 0", above=0)
    random = np.random.default_rng(seed_or_none(seed))
    centre = rows.mean(axis=0)
    span = float(np.ptp(rows, axis=0).max()) or 1.0
    scaled = (rows - centre) / span
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    found = scaled[_systematic(scaled, shares, count, random)]
    # On a row, a point would be drawn to nothing but that row.
    found = found + JITTER * random.standard_normal(found.shape)
    step = _adam(scaled, shares, steps) if route == ADAM else _convex_concave(scaled, shares)
    for _ in range(steps):
        # What the convex-concave step minimises curves alike in every column, so that its least
        # value within the ranges is at the nearest point there.
        before, found = found, np.clip(step(found), low, high)
        if np.abs(found - before).max() <= tolerance:
            break
    return found * span + centre


def energy(points: Any, others: Any, weights: Any = None, other_weights: Any = None) -> float:
    """The squared energy distance of two weighted sets: 2 E|x - y| - E|x - x'| - E|y - y'|.

    >>> energy([[0.0]], [[0.0], [1.0]])  # 2 / 2 - 0 - 1 / 2
    0.5
    """
    x, y = checked_points("points", points), checked_points("others", others)
    if x.shape[1] != y.shape[1]:
        raise MethodError("others: expected as many columns as the points have")
    p, q = checked_weights(weights, len(x)), checked_weights(other_weights, len(y))
    p, q = p / p.sum(), q / q.sum()

    def mean(left: np.ndarray, own: np.ndarray, right: np.ndarray, theirs: np.ndarray) -> float:
        size = max(1, BLOCK_PAIRS // len(right))
        starts = range(0, len(left), size)
        return sum(
            float(own[start : start + size] @ (cdist(left[start : start + size], right) @ theirs))
            for start in starts
        )

    return 2 * mean(x, p, y, q) - mean(x, p, x, p) - mean(y, q, y, q)


def _systematic(
    rows: np.ndarray, shares: np.ndarray, count: int, random: np.random.Generator
) -> np.ndarray:
    """Rows at equal steps of weight along the direction in which rows vary most.

    Points hardly move from one cluster to another: each has to start with those that it is due.
    """
    centred = rows - shares @ rows
    _, directions = np.linalg.eigh((centred.T * shares) @ centred)
    order = np.argsort(centred @ directions[:, -1], kind="stable")
    reached = np.cumsum(shares[order])
    places = (np.arange(count) + random.random()) / count * reached[-1]
    drawn = np.searchsorted(reached, places, side="right")
    return np.asarray(order[np.minimum(drawn, len(order) - 1)])


def _convex_concave(rows: np.ndarray, shares: np.ndarray) -> Step:
    """The convex-concave step of all points at once, equation 22 of Mak and Joseph."""

    def step(found: np.ndarray) -> np.ndarray:
        # y_j' = (sum_i w_i x_i / |x_i - y_j| + 1/k sum_l (y_j - y_l) / |y_j - y_l|)
        #        / sum_i w_i / |x_i - y_j|
        near, pulled = _inverse_sums(found, rows, shares)
        return (pulled + _repulsion(found)) / near[:, None]

    return step


def _adam(rows: np.ndarray, shares: np.ndarray, steps: int) -> Step:
    """Steps of Adam, whose rate falls to zero over all of them."""
    state = None
    taken = 0

    def step(found: np.ndarray) -> np.ndarray:
        nonlocal state, taken
        rule = Optimiser("adam", RATE * (1 - taken / steps))
        state, taken = state or rule.start(found.size), taken + 1
        near, pulled = _inverse_sums(found, rows, shares)
        # d energy / d y_j = 2/k (sum_i w_i (y_j - x_i) / |x_i - y_j|
        #                         - 1/k sum_l (y_j - y_l) / |y_j - y_l|)
        gradient = 2 / len(found) * (near[:, None] * found - pulled - _repulsion(found))
        moved, state = rule.step(found.ravel(), gradient.ravel(), state)
        return moved.reshape(found.shape)

    return step


def _repulsion(found: np.ndarray) -> np.ndarray:
    """1/k sum_l (y_j - y_l) / |y_j - y_l|: where the other points drive each one."""
    even = np.full(len(found), 1 / len(found))
    near, pulled = _inverse_sums(found, found, even)
    away: np.ndarray = near[:, None] * found - pulled
    return away


def _inverse_sums(
    found: np.ndarray, rows: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each point, sum_i w_i / |x_i - y_j| and sum_i w_i x_i / |x_i - y_j|."""
    near, pulled = np.zeros(len(found)), np.zeros_like(found)
    size = max(1, BLOCK_PAIRS // len(found))
    for start in range(0, len(rows), size):
        some, own = rows[start : start + size], shares[start : start + size]
        block = cdist(found, some, "sqeuclidean")
        block += SMOOTHING**2
        np.sqrt(block, out=block)
        np.divide(own, block, out=block)
        near += block.sum(axis=1)
        pulled += block @ some
    return near, pulled
