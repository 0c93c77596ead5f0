"""Weights that match given means, as close to the base weights as the match allows.

The weights minimise  KL(w, base) + 1/2 sum_j (mean_w z_j - target_j)^2 / softness_j,  the soft
version of survey calibration (Deville and Sarndal, 1992) with exponential weights
w = base exp(z.theta). The dual,

    log mean_base exp(z.theta) - theta.target + 1/2 sum_j softness_j theta_j^2,

is smooth and convex in as many variables as there are features, and with softness above zero it
has a solution whatever the target, also one that no weights reach. Solved by Newton's method in
chunks of rows; many rows are first solved for a part of them, which gives a start so close that
two or three passes over all of them are enough.
"""

from __future__ import annotations

import math

import numpy as np

CHUNK_ROWS = 32_768
FIRST_ROWS = 20_000  # where the solution starts, when there are several times as many rows
MOST_STEPS = 60
_ENOUGH = 1e-12  # of the Newton decrement, the double of what is left to gain


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
    if start is None:
        theta = _newton(thinned(rows), target, softness, theta)
    return _newton(rows, target, softness, theta)


def thinned(rows: np.ndarray) -> np.ndarray:
    """Some of the rows, evenly spread, when there are very many; else all."""
    return rows[:: max(1, len(rows) // FIRST_ROWS)]


def effective_fraction(rows: np.ndarray, theta: np.ndarray) -> float:
    """Kish's effective sample size of the weights exp(rows.theta), as a part of the rows."""
    exponents = rows @ theta
    weights = np.exp(exponents - exponents.max(initial=-np.inf))
    return float(weights.mean() ** 2 / (weights**2).mean()) if len(rows) else 1.0


def _newton(
    rows: np.ndarray, target: np.ndarray, softness: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    value = _value(rows, target, softness, theta)
    # Single precision cannot tell smaller steps from rounding.
    enough = _ENOUGH if rows.dtype == np.float64 else 1e-8
    for _ in range(MOST_STEPS):
        mean, covariance = weighted_moments(rows, theta)
        gradient = mean - target + softness * theta
        step = np.linalg.solve(covariance + np.diag(softness), -gradient)
        decrement = float(-gradient @ step)
        if decrement < enough:
            break
        length = 1.0
        while length > 1e-8:
            tried = _value(rows, target, softness, theta + length * step)
            if tried <= value - 0.1 * length * decrement:
                break
            length /= 2
        else:
            break
        theta, value = theta + length * step, tried
    return theta


def _value(rows: np.ndarray, target: np.ndarray, softness: np.ndarray, theta: np.ndarray) -> float:
    exponents = (rows @ theta.astype(rows.dtype)).astype(float)
    top = float(exponents.max())
    log_mean = top + math.log(float(np.exp(exponents - top).mean()))
    return log_mean - float(theta @ target) + 0.5 * float(softness @ theta**2)


def weighted_moments(rows: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the rows under the weights exp(rows.theta)."""
    exponents = (rows @ theta.astype(rows.dtype)).astype(float)
    weights = np.exp(exponents - exponents.max())
    weights /= weights.sum()
    size = rows.shape[1]
    mean, second = np.zeros(size), np.zeros((size, size))
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        root = np.sqrt(weights[start : start + CHUNK_ROWS]).astype(rows.dtype)
        scaled = chunk * root[:, None]
        mean += root @ scaled
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
    if rows.shape[1] == 0:
        return base / base.mean(axis=0)
    _, covariance = weighted_moments(rows, theta)
    hessian = covariance + np.diag(softness)
    thetas = np.repeat(theta[:, None], count, axis=1)
    lengths = np.ones(count)
    weights, values = _many(rows, base, targets, softness, thetas)
    for _ in range(steps):
        means = (rows.T @ weights).astype(float) / len(rows)
        gradients = means - targets + softness[:, None] * thetas
        moves = np.linalg.solve(hessian, -gradients)
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
    top = weights.max(axis=0)
    np.exp(weights - top, out=weights)
    weights *= base
    sizes = weights.mean(axis=0)
    values = top.astype(float) + np.log(sizes / base.mean(axis=0))
    values = values - (thetas * targets).sum(axis=0) + 0.5 * (softness[:, None] * thetas**2).sum(0)
    return weights / sizes, values
