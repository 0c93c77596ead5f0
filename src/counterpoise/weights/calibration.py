"""Weights that match given means, as close to the base weights as the match allows.

The weights minimise  KL(w, base) + 1/2 sum_j (mean_w z_j - target_j)^2 / softness_j,  the soft
version of survey calibration (Deville and Sarndal, 1992) with exponential weights
w = base exp(z.theta). The dual,

    log mean_base exp(z.theta) - theta.target + 1/2 sum_j softness_j theta_j^2,

is smooth and convex in as many variables as there are features, and with softness above zero it
has a solution whatever the target, also one that no weights reach. Solved by Newton's method. Many
rows are first solved for a part of them, which gives a start so close, and a Hessian so good, that
a few gradients over all of them are enough.
"""

from __future__ import annotations

import math

import numpy as np

from counterpoise.weights.standardise import spread

CHUNK_ROWS = 32_768
FIRST_ROWS = 10_000  # where the solution starts, when there are several times as many rows
MOST_STEPS = 60
STEPS_WITH_A_HESSIAN = 20  # before another is worked out
GAIN = 0.1  # the part of the Newton decrement that a step may leave before that


def calibrate(
    rows: np.ndarray, target: np.ndarray, softness: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """The theta of uniform base weights: row i has the weight exp(rows[i].theta).

    >>> rows = np.array([[-1.0], [0.0], [1.0]])
    >>> theta = calibrate(rows, np.array([0.5]), np.array([1e-9]))
    >>> weights = np.exp(rows @ theta)
    >>> (weights @ rows / weights.sum()).round(6)
    array([0.5])
    """
    theta = np.zeros(rows.shape[1]) if start is None else start
    if rows.shape[1] == 0 or len(rows) == 0:
        return theta
    part = thinned(rows)
    if start is None or len(part) == len(rows):
        theta = _newton(part, target, softness, theta)
    if len(part) == len(rows):
        return theta
    # A part of the rows may know little of what is rare, and its Hessian as little. Then that of
    # all rows is worked out, once or twice.
    at_zero = np.zeros_like(theta)
    if _dual(rows, target, softness, theta)[0] > _dual(rows, target, softness, at_zero)[0]:
        theta, part = at_zero, rows
    for some in (part, rows, rows):
        _, covariance = weighted_moments(some, theta)
        theta, converged = _descend(rows, target, softness, theta, covariance)
        if converged:
            return theta
    return _newton(rows, target, softness, theta)


def thinned(rows: np.ndarray, about: int | None = None) -> np.ndarray:
    """Some of the rows when there are very many; else all."""
    chosen = spread(len(rows), about or FIRST_ROWS)
    return rows if len(chosen) == len(rows) else rows[chosen]


def effective_fraction(rows: np.ndarray, theta: np.ndarray) -> float:
    """Kish's effective sample size of the weights exp(rows.theta), as a part of the rows."""
    if len(rows) == 0:
        return 1.0
    shares, _ = _tilt(rows, theta)
    return float(1 / (len(rows) * (shares**2).sum()))


def _newton(
    rows: np.ndarray, target: np.ndarray, softness: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Newton's method, with another Hessian whenever the last one brought too little."""
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
        theta, value, mean = theta + length * step, tried, tried_mean
    return theta


def _descend(
    rows: np.ndarray,
    target: np.ndarray,
    softness: np.ndarray,
    theta: np.ndarray,
    covariance: np.ndarray,
) -> tuple[np.ndarray, bool]:
    """The same with one Hessian; and whether that was enough.

    Near the solution a step leaves about the relative error of the Hessian.
    """
    hessian = covariance + np.diag(softness)
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
            theta, value, mean = theta + length * step, tried, tried_mean
            length = min(1.0, 2 * length)
        else:
            length /= 4
    return theta, False


def _precision(rows: np.ndarray) -> tuple[float, float]:
    """The Newton decrement (double of what is left to gain) to stop at, and the dual's rounding."""
    return (1e-12, 1e-13) if rows.dtype == np.float64 else (1e-9, 1e-7)


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


def _tilt(rows: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, float]:
    """The weights exp(rows.theta), adding up to one, and the logarithm of what they added up to."""
    exponents = (rows @ theta.astype(rows.dtype)).astype(float)
    top = float(exponents.max(initial=-np.inf))
    weights = np.exp(exponents - top)
    total = float(weights.sum())
    return weights / total, top + math.log(total)


def _dual(
    rows: np.ndarray, target: np.ndarray, softness: np.ndarray, theta: np.ndarray
) -> tuple[float, np.ndarray]:
    """The dual, and the weighted mean that its gradient is made of."""
    weights, log_total = _tilt(rows, theta)
    value = log_total - math.log(len(rows)) - float(theta @ target)
    return value + 0.5 * float(softness @ theta**2), weighted_mean(rows, weights)


def weighted_mean(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean under weights that add up to one; in double precision from chunk to chunk."""
    mean = np.zeros(rows.shape[1])
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        mean += weights[part].astype(rows.dtype) @ rows[part]
    return mean


def tilted_mean(rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The mean of the rows under the weights exp(rows.theta); zero for no rows."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1])
    return weighted_mean(rows, _tilt(rows, theta)[0])


def weighted_moments(rows: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the rows under the weights exp(rows.theta)."""
    return moments_under(rows, _tilt(rows, theta)[0])


def moments_under(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the rows under weights that add up to one."""
    mean = weighted_mean(rows, weights)
    second = np.zeros((len(mean), len(mean)))
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        scaled = rows[part] * np.sqrt(weights[part]).astype(rows.dtype)[:, None]
        second += scaled.T @ scaled  # numpy sees the symmetry and does half the work
    return mean, second - np.outer(mean, mean)
