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

CHUNK_ROWS = 32_768
FIRST_ROWS = 10_000  # where the solution starts, when there are several times as many rows
SHARED_ROWS = 100_000  # for a Hessian that many solutions share
MOST_STEPS = 60
STEPS_WITH_A_HESSIAN = 20  # before another is worked out


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
    """Some of the rows, evenly spread, when there are very many; else all."""
    every = max(1, len(rows) // (about or FIRST_ROWS))
    return rows if every == 1 else np.ascontiguousarray(rows[::every])


def effective_fraction(rows: np.ndarray, theta: np.ndarray) -> float:
    """Kish's effective sample size of the weights exp(rows.theta), as a part of the rows."""
    exponents = rows @ theta
    weights = np.exp(exponents - exponents.max(initial=-np.inf))
    return float(weights.mean() ** 2 / (weights**2).mean()) if len(rows) else 1.0


def _newton(
    rows: np.ndarray, target: np.ndarray, softness: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Newton's method with a Hessian a step."""
    value, _ = _dual(rows, target, softness, theta)
    enough, rounding = _precision(rows)
    for _ in range(MOST_STEPS):
        mean, covariance = weighted_moments(rows, theta)
        gradient = mean - target + softness * theta
        step = -_solve(covariance + np.diag(softness), gradient)
        decrement = float(-gradient @ step)
        if decrement < enough:
            break
        length = 1.0
        while length > 1e-8:
            tried, _ = _dual(rows, target, softness, theta + length * step)
            if tried <= value - 0.1 * length * decrement + rounding:
                break
            length /= 2
        else:
            break
        theta, value = theta + length * step, tried
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
        step = -_solve(hessian, gradient)
        if float(-gradient @ step) < enough:
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


def _solve(hessian: np.ndarray, right: np.ndarray) -> np.ndarray:
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
    weights, _ = _tilt(rows, theta)
    mean = weighted_mean(rows, weights)
    second = np.zeros((len(mean), len(mean)))
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        scaled = rows[part] * np.sqrt(weights[part]).astype(rows.dtype)[:, None]
        second += scaled.T @ scaled  # numpy sees the symmetry and does half the work
    return mean, second - np.outer(mean, mean)


def calibrate_many(
    rows: np.ndarray,
    base: np.ndarray,
    targets: np.ndarray,
    softness: np.ndarray,
    theta: np.ndarray,
    steps: int = 12,
) -> np.ndarray:
    """The weights for many base weights and targets at once, one a column, averaging to one.

    All start at `theta`, the solution of uniform base weights, and share its Hessian, so a step
    is two matrix products for all of them together; a step that goes up is halved.
    """
    count = base.shape[1]
    if rows.shape[1] == 0 or len(rows) == 0:
        return base / base.mean(axis=0, dtype=float) if len(rows) else base
    _, covariance = weighted_moments(thinned(rows, SHARED_ROWS), theta)
    hessian = covariance + np.diag(softness)
    thetas = np.repeat(theta[:, None], count, axis=1)
    lengths = np.ones(count)
    weights, values = _many(rows, base, targets, softness, thetas)
    for _ in range(steps):
        means = (rows.T @ weights).astype(float) / len(rows)
        gradients = means - targets + softness[:, None] * thetas
        moves = -_solve(hessian, gradients)
        decrements = -(gradients * moves).sum(axis=0)
        # What is left to gain is far below the noise that the replicates are to show.
        if decrements.max() < 1e-6:
            break
        tried = thetas + lengths * moves
        tried_weights, tried_values = _many(rows, base, targets, softness, tried)
        better = tried_values <= values + 1e-7
        thetas[:, better], values[better] = tried[:, better], tried_values[better]
        weights[:, better] = tried_weights[:, better]
        lengths = np.where(better, np.minimum(1.0, 2 * lengths), lengths / 4)
    return weights


def _many(
    rows: np.ndarray,
    base: np.ndarray,
    targets: np.ndarray,
    softness: np.ndarray,
    thetas: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    weights = rows @ thetas.astype(rows.dtype)
    # The largest among the rows that there are in a replicate: they cannot all vanish.
    top = weights.max(axis=0, where=base > 0, initial=-np.inf)
    weights -= top
    np.minimum(weights, 0, out=weights)
    np.exp(weights, out=weights)
    weights *= base
    sizes = weights.mean(axis=0, dtype=float)
    values = top.astype(float) + np.log(sizes / base.mean(axis=0, dtype=float))
    values = values - (thetas * targets).sum(axis=0) + 0.5 * (softness[:, None] * thetas**2).sum(0)
    weights /= sizes.astype(rows.dtype)
    return weights, values
