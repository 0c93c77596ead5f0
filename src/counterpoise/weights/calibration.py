"""Weights that match given means, as close to the base weights as the match allows.

The weights minimise  KL(w, base) + 1/2 sum_j (mean_w z_j - target_j)^2 / softness_j,  the soft
version of survey calibration (Deville and Sarndal, 1992) with exponential weights
w = base exp(z.theta). The dual,

    log mean_base exp(z.theta) - theta.target + 1/2 sum_j softness_j theta_j^2,

is smooth and convex in as many variables as there are features, and with softness above zero it
has a solution whatever the target, also one that no weights reach. Solved by Newton's method. Many
rows are first solved for a part of them, those that can move a mean and some more, which gives a
start so close, and a Hessian so good, that a few gradients over all of them are enough.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from counterpoise.weights.chosen_rows import choose_part
from counterpoise.weights.row_blocks import HeldRows, RowBlocks

# About how many rows the solution is first looked for on, when there are twice as many; and where
# rows are made at every pass, so that a larger part of them spares some.
PART_ROWS, MORE_ROWS = 20_000, 50_000
MOST_STEPS = 60
STEPS_WITH_A_HESSIAN = 20  # before another is worked out
GAIN = 0.5  # the part of the Newton decrement that a step may leave before that


def calibrate(
    rows: np.ndarray | RowBlocks,
    target: np.ndarray,
    softness: np.ndarray,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """The theta of uniform base weights: row i has the weight exp(rows[i].theta).

    >>> rows = np.array([[-1.0], [0.0], [1.0]])
    >>> theta = calibrate(rows, np.array([0.5]), np.array([1e-9]))
    >>> weights = np.exp(rows @ theta)
    >>> (weights @ rows / weights.sum()).round(6)
    array([0.5])
    """
    theta = np.zeros(rows.shape[1]) if start is None else start
    if rows.shape[1] == 0 or rows.shape[0] == 0:
        return theta
    whole = _blocks(rows)
    about = MORE_ROWS if whole.is_made else PART_ROWS
    if rows.shape[0] < 2 * about:
        return _newton(whole, target, softness, theta)[0]
    part, mean = choose_part(whole, about)
    # The way from the part's own mean to the target is that of all rows from theirs.
    nearer = target - mean + tilted_mean(part, np.zeros_like(theta))
    if _dual(part, nearer, softness, theta)[0] > 0:  # where it is at zero
        theta = np.zeros_like(theta)
    theta, hessian = _newton(part, nearer, softness, theta)
    # Where the part misled all the same, the Hessian of all rows is worked out, once or twice.
    for _ in range(3):
        theta, converged = _descend(whole, target, softness, theta, hessian)
        if converged:
            return theta
        hessian = weighted_moments(whole, theta)[1] + np.diag(softness)
    return _newton(whole, target, softness, theta)[0]


def effective_fraction(rows: np.ndarray | RowBlocks, theta: np.ndarray) -> float:
    """Kish's effective sample size of the weights exp(rows.theta), as a part of the rows."""
    return mean_and_fraction(rows, theta)[1]


def _newton(
    rows: RowBlocks, target: np.ndarray, softness: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method, its Hessian mended by what steps show, and worked out anew where that fails.

    The solution, and the Hessian at the end. One takes as long as a dozen gradients.
    """
    value, mean = _dual(rows, target, softness, theta)
    enough, rounding = _precision(rows)
    hessian, decrement = weighted_moments(rows, theta)[1] + np.diag(softness), math.inf
    for _ in range(MOST_STEPS):
        gradient, before = mean - target + softness * theta, decrement
        step, decrement = _step(hessian, gradient)
        if decrement > GAIN * before:
            hessian = weighted_moments(rows, theta)[1] + np.diag(softness)
            step, decrement = _step(hessian, gradient)
        if decrement < enough:
            break
        length = 1.0
        while length > 1e-8:
            tried, tried_mean = _dual(rows, target, softness, theta + length * step)
            if tried <= value - 0.1 * length * decrement + rounding:
                break
            length /= 2
        else:
            break
        taken, change = length * step, tried_mean - mean + length * softness * step
        theta, value, mean = theta + taken, tried, tried_mean
        hessian = _mended(hessian, taken, change)
    return theta, hessian


def _descend(
    rows: RowBlocks,
    target: np.ndarray,
    softness: np.ndarray,
    theta: np.ndarray,
    hessian: np.ndarray,
) -> tuple[np.ndarray, bool]:
    """The same with one Hessian, mended by what the steps show; and whether that was enough.

    Near the solution a step leaves about the relative error of the Hessian. The gradient at its end
    tells what the Hessian should have made of it (Broyden, Fletcher, Goldfarb, Shanno), so that
    every step leaves less than the one before.
    """
    value, mean = _dual(rows, target, softness, theta)
    enough, rounding = _precision(rows)
    length = 1.0
    for _ in range(STEPS_WITH_A_HESSIAN):
        gradient = mean - target + softness * theta
        step, decrement = _step(hessian, gradient)
        if decrement < enough:
            return theta, True
        tried, tried_mean = _dual(rows, target, softness, theta + length * step)
        if tried <= value + rounding:
            taken, change = length * step, tried_mean - mean + length * softness * step
            theta, value, mean = theta + taken, tried, tried_mean
            hessian = _mended(hessian, taken, change)
            length = min(1.0, 2 * length)
        else:
            length /= 4
    return theta, False


def _mended(hessian: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The Hessian nearest to this one that takes the step to the change of the gradient."""
    along, curvature = hessian @ step, float(step @ change)
    # H + y y' / y's - H s s' H / s' H s
    if curvature <= 0:
        return hessian
    mended: np.ndarray = hessian + np.outer(change, change) / curvature
    return mended - np.outer(along, along) / float(step @ along)


def _precision(rows: RowBlocks) -> tuple[float, float]:
    """The Newton decrement (double of what is left to gain) to stop at, and the dual's rounding."""
    double = isinstance(rows, HeldRows) and rows.values.dtype == np.float64
    # Rows in single precision are many: what is left is far below their sampling, and little above
    # what rounding makes of gradients that are turned to rare coordinates.
    return (1e-12, 1e-13) if double else (1e-7, 1e-7)


def _step(hessian: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, float]:
    """A step of Newton's method, and its decrement."""
    step = -solve(hessian, gradient)
    return step, float(-gradient @ step)


def solve(hessian: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution, or the smallest of the best where there is none."""
    try:
        return np.linalg.solve(hessian, right)
    except np.linalg.LinAlgError:
        # Without softness, features that say the same leave directions without curvature.
        return np.asarray(np.linalg.lstsq(hessian, right)[0])


class _Tilted(NamedTuple):
    """The weights exp(rows.theta - top), as what they add up to."""

    top: float
    size: float
    square: float
    sums: np.ndarray  # of the rows
    second: np.ndarray | None  # of their products


def _blocks(rows: np.ndarray | RowBlocks) -> RowBlocks:
    return HeldRows(rows) if isinstance(rows, np.ndarray) else rows


def _tilted(rows: RowBlocks, theta: np.ndarray, products: bool = False) -> _Tilted:
    """In one pass: what is added up so far is scaled down when a larger exponent is found."""
    vector, offset = (theta, 0.0) if rows.turn is None else rows.turn.vectors(theta)
    top, size, square = -math.inf, 0.0, 0.0
    sums = np.zeros(len(vector))
    second = np.zeros((len(vector), len(vector))) if products else None
    stands_for = rows.stands_for if isinstance(rows, HeldRows) else None
    for place, some in rows.raw_blocks():
        exponents = (some @ vector.astype(some.dtype)).astype(float)
        larger = max(top, float(exponents.max()))
        scale, top = math.exp(top - larger), larger
        weights = np.exp(exponents - top)
        if stands_for is not None:
            weights *= stands_for[place]
        size, square = size * scale + float(weights.sum()), square * scale**2 + weights @ weights
        sums = sums * scale + weights.astype(some.dtype) @ some
        if second is not None:
            scaled = some * np.sqrt(weights).astype(some.dtype)[:, None]
            # numpy sees the symmetry and does half the work
            second = second * scale + scaled.T @ scaled
    if rows.turn is not None:
        centre, directions = rows.turn.centre, rows.turn.directions
        if second is not None:
            crossed = np.outer(sums, centre)
            second = second - crossed - crossed.T + size * np.outer(centre, centre)
            second = directions.T @ second @ directions
        sums = rows.turn.sums(sums[:, None], np.array([size]))[:, 0]
    return _Tilted(top - float(offset), size, float(square), sums, second)


def _dual(
    rows: RowBlocks, target: np.ndarray, softness: np.ndarray, theta: np.ndarray
) -> tuple[float, np.ndarray]:
    """The dual, and the weighted mean that its gradient is made of."""
    found = _tilted(rows, theta)
    value = found.top + math.log(found.size / rows.shape[0]) - float(theta @ target)
    return value + 0.5 * float(softness @ theta**2), found.sums / found.size


def tilted_mean(rows: np.ndarray | RowBlocks, theta: np.ndarray) -> np.ndarray:
    """The mean of the rows under the weights exp(rows.theta); zero for no rows."""
    return mean_and_fraction(rows, theta)[0]


def mean_and_fraction(rows: np.ndarray | RowBlocks, theta: np.ndarray) -> tuple[np.ndarray, float]:
    """The tilted mean and the effective fraction, in one pass."""
    if rows.shape[0] == 0:
        return np.zeros(rows.shape[1]), 1.0
    found = _tilted(_blocks(rows), theta)
    return found.sums / found.size, found.size**2 / (rows.shape[0] * found.square)


def weighted_moments(
    rows: np.ndarray | RowBlocks, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the rows under the weights exp(rows.theta)."""
    found = _tilted(_blocks(rows), theta, products=True)
    assert found.second is not None
    mean = found.sums / found.size
    return mean, found.second / found.size - np.outer(mean, mean)
