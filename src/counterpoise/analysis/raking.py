"""Raking: weights with given weighted means, as close to the ones before as the means allow.

W. E. Deming and F. F. Stephan, "On a Least Squares Adjustment of a Sampled Frequency Table When the
Expected Marginal Totals are Known", 1940. The weights w_i = b_i exp(f_i.theta) with sum_i w_i f_i =
t are what their iteration comes to, and the nearest ones in Kullback-Leibler distance; J.-C.
Deville and C.-E. Sarndal, "Calibration Estimators in Survey Sampling", JASA 1992, has them as the
exponential case. Here theta is found by Newton's method on the convex dual

    log sum_i b_i exp(f_i.theta) - theta.t,

which takes a few steps where the iteration takes hundreds. Rows with equal features share a factor,
so that only the distinct rows of features are worked on. Where no weights have these means the dual
has no minimum; a linear programme then tells which mean is off, and by how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog

MOST_STEPS = 200
# Weighted means that differ by less are equal; one that cannot come closer by rounding is let be.
CLOSE, CLOSE_ENOUGH = 1e-13, 1e-10
# Features that others determine leave directions without curvature.
RIDGE = 1e-11


@dataclass(frozen=True, eq=False)
class Patterns:
    """The distinct rows of features (patterns x features), and which of them every row has."""

    features: sparse.csr_array
    of_row: np.ndarray

    @classmethod
    def of(cls, columns: list[sparse.csr_array], keys: list[np.ndarray]) -> Patterns:
        """Features side by side; rows whose `keys` (integers from zero) are equal have equal ones.

        >>> a, b = np.array([0, 1, 0]), np.array([0, 0, 0])
        >>> Patterns.of([indicators(a, 2), indicators(b, 1)], [a, b]).of_row.tolist()
        [0, 1, 0]
        """
        combined = np.zeros(len(keys[0]), dtype=np.int64)
        for key in keys:
            # Numbered anew each time, so that the product of their numbers cannot overflow.
            _, combined = np.unique(
                combined * (int(key.max(initial=0)) + 1) + key, return_inverse=True
            )
        _, first, of_row = np.unique(combined, return_index=True, return_inverse=True)
        features = sparse.csr_array(sparse.hstack(columns, format="csr")[first])
        return cls(features, of_row)

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """The weight of every pattern, in all one."""
        found = np.bincount(self.of_row, weights, minlength=self.features.shape[0])
        return np.asarray(found / found.sum())


def indicators(codes: np.ndarray, count: int) -> sparse.csr_array:
    """One where a row has a code, a column for each of them; none of a code below zero.

    >>> indicators(np.array([1, 0, -1]), 2).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    """
    rows = np.flatnonzero(codes >= 0)
    shape = (len(codes), count)
    return sparse.csr_array((np.ones(len(rows)), (rows, codes[rows])), shape=shape)


def rake(
    features: sparse.csr_array, base: np.ndarray, target: np.ndarray, start: np.ndarray
) -> np.ndarray | None:
    """The theta at which weights base * exp(features @ theta) have the target as their means.

    None where there are no such weights. Where there are some only in the limit in which rows lose
    all weight, these have next to none.

    >>> rows = indicators(np.array([0, 1]), 2)
    >>> theta = rake(rows, np.array([0.5, 0.5]), np.array([0.2, 0.8]), np.zeros(2))
    >>> factors(rows, np.array([0.5, 0.5]), theta).round(6).tolist()
    [0.4, 1.6]
    """
    theta = start.astype(float)
    # Minus the dual is at most KL(w, base), for any w that has the means, and so -log(least base).
    lowest = math.log(float(base[base > 0].min())) - 1e-6
    found = _at(features, base, theta)
    # What no row has, and none should have, is not a condition.
    asked = (np.asarray(abs(features).T @ (base > 0)) > 0) | (np.abs(target) > CLOSE)
    for _ in range(MOST_STEPS):
        gradient = np.where(asked, found.means - target, 0.0)
        error = float(np.abs(gradient).max(initial=0.0))
        if error <= CLOSE:
            return theta
        step = _step(features, found, gradient)
        decrement = float(-gradient @ step)
        ahead = _search(features, base, target, theta, found, step, decrement)
        if ahead is None or ahead[1].log_size - float(ahead[0] @ target) < lowest:
            return theta if error <= CLOSE_ENOUGH else None
        closer = float(np.abs(np.where(asked, ahead[1].means - target, 0.0)).max(initial=0.0))
        if closer >= error and error <= CLOSE_ENOUGH:
            return theta
        theta, found = ahead
    return None


def factors(features: sparse.csr_array, base: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """What every pattern's weight is multiplied by; the weights still add up to one."""
    exponents = features @ theta
    exponents = exponents - exponents[base > 0].max()
    # A pattern without weight has none to multiply, however large its exponent.
    found = np.exp(np.minimum(exponents, 0.0))
    return np.asarray(found / float(base @ found))


@dataclass(frozen=True)
class OutOfReach:
    """The mean that stays furthest from its target, and what it comes to at best.

    `feature` is None where all targets can be met, but only by rows that lose all weight.
    """

    feature: int | None
    best: float = math.nan


def out_of_reach(features: sparse.csr_array, base: np.ndarray, target: np.ndarray) -> OutOfReach:
    """Why targets cannot be met: the weights that miss them by the least in all, and where.

    >>> ages = sparse.csr_array([[20.0], [60.0]])
    >>> out_of_reach(ages, np.array([0.5, 0.5]), np.array([70.0]))
    OutOfReach(feature=0, best=60.0)
    """
    there = features[np.flatnonzero(base > 0)]
    rows, count = there.shape
    # min sum (over + under)  with  features' p + under - over = target, sum p = 1, all from zero
    cost = np.concatenate([np.zeros(rows), np.ones(2 * count)])
    eye = sparse.eye_array(count)
    equal = sparse.vstack(
        [
            sparse.hstack([there.T, eye, -eye]),
            sparse.csr_array(np.concatenate([np.ones(rows), np.zeros(2 * count)])[None]),
        ]
    )
    found = linprog(cost, A_eq=equal.tocsr(), b_eq=np.append(target, 1.0), method="highs")
    if found.x is None or found.fun <= CLOSE_ENOUGH:
        return OutOfReach(None)
    best = there.T @ found.x[:rows]
    worst = int(np.abs(best - target).argmax())
    return OutOfReach(worst, float(best[worst]))


@dataclass(frozen=True, eq=False)
class _Point:
    """The dual at a theta, but for theta.t: the weights there, in all one, and their means."""

    log_size: float
    weights: np.ndarray
    means: np.ndarray


def _at(features: sparse.csr_array, base: np.ndarray, theta: np.ndarray) -> _Point:
    exponents = features @ theta
    top = float(exponents[base > 0].max())
    weights = base * np.exp(np.minimum(exponents - top, 0.0))
    size = float(weights.sum())
    weights = weights / size
    return _Point(math.log(size) + top, weights, np.asarray(features.T @ weights))


def _step(features: sparse.csr_array, found: _Point, gradient: np.ndarray) -> np.ndarray:
    """Newton's step: the Hessian is the covariance of the features under the weights."""
    weighted = features.multiply(found.weights[:, None])
    second = (features.T @ weighted).toarray()
    hessian = second - np.outer(found.means, found.means)
    # A feature that does not vary is no direction: what rounding leaves of its variance is none.
    varies = np.flatnonzero(np.diag(hessian) > CLOSE * np.diag(second))
    # On a scale on which every feature has a variance of one, so that rare cells count as well.
    scale = np.sqrt(np.diag(hessian)[varies])
    scaled = hessian[np.ix_(varies, varies)] / np.outer(scale, scale)
    scaled[np.diag_indices_from(scaled)] = 1.0 + RIDGE
    right, step = -gradient[varies] / scale, np.zeros(len(gradient))
    try:
        step[varies] = cho_solve(cho_factor(scaled), right) / scale
    except np.linalg.LinAlgError:
        step[varies] = np.linalg.lstsq(scaled, right)[0] / scale
    return step


def _search(
    features: sparse.csr_array,
    base: np.ndarray,
    target: np.ndarray,
    theta: np.ndarray,
    found: _Point,
    step: np.ndarray,
    decrement: float,
) -> tuple[np.ndarray, _Point] | None:
    """A point along the step at which the dual is lower; None where there is none."""
    if not math.isfinite(decrement) or decrement <= 0:
        return None
    value, length = found.log_size - float(theta @ target), 1.0
    while length > 1e-10:
        tried = theta + length * step
        point = _at(features, base, tried)
        lower = point.log_size - float(tried @ target)
        # So close to the solution rounding hides the descent, and the full step is right.
        if decrement < 1e-9 or lower <= value - 0.1 * length * decrement:
            return tried, point
        length /= 2
    return None
