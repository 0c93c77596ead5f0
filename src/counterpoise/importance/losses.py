"""Losses of a generator by weighted rows: maximum mean discrepancy and cross-entropy.

The squared discrepancy between the law P that weighted rows x stand for and that of generated rows
y is, with a kernel k,

    U_w k(x, x') + U k(y, y') - 2 average_w k(x, y),

equation 3.2 of the dissertation, and by the estimators of `averages` equations 3.3 ("iw"), 3.4
("miw") and 3.5 ("sniw"). The kernel is Gaussian, or the mean of several of different widths (Y. Li,
K. Swersky and R. Zemel, "Generative Moment Matching Networks", 2015). Both losses come with their
gradients, which is what a generator, or an encoder in front of the kernel, is trained by. No matrix
of all pairs is held: rows are taken a block at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import expit

from counterpoise.arguments import number_array, one_of, real_number, truth_value
from counterpoise.errors import MethodError
from counterpoise.importance.averages import (
    ESTIMATORS,
    GROUPS,
    ID,
    IW,
    MIW,
    SNIW,
    PairCoefficients,
    checked_weights,
    copies,
    middle_groups,
    pair_coefficients,
    random_groups,
    single_coefficients,
)

BLOCK_ROWS = 512
# Their squares, and one over these, are numbers.
WIDTHS = (1e-100, 1e100)


@dataclass(frozen=True, eq=False)
class Discrepancy:
    """The squared discrepancy, and its gradients with respect to both sets of points."""

    value: float
    of_real: np.ndarray
    of_generated: np.ndarray


@dataclass(frozen=True, eq=False)
class CrossEntropy:
    """The loss of a critic, and its gradients with respect to both sets of logits."""

    value: float
    of_real: np.ndarray
    of_generated: np.ndarray


def mean_discrepancy(
    real: Any,
    generated: Any,
    weights: Any = None,
    estimator: str = SNIW,
    widths: float | Sequence[float] = 1.0,
    with_itself: bool = False,
    groups: int = GROUPS,
    seed: int | None = None,
) -> Discrepancy:
    """The squared maximum mean discrepancy between weighted real and generated points.

    `weights` are those of the real points; `widths` of the Gaussian kernels, whose mean is taken.
    A U-statistic may be below zero; `with_itself` makes it a V-statistic, which is not.

    >>> points = np.array([[0.0], [1.0], [2.0]])
    >>> round(mean_discrepancy(points, points, with_itself=True).value, 12)
    0.0
    >>> shifted = mean_discrepancy(points, points + 1)
    >>> bool((shifted.of_generated.sum(axis=0) > 0).all())  # to the left the loss falls
    True
    """
    x, y = checked_points("real", real), checked_points("generated", generated)
    if x.shape[1] != y.shape[1]:
        raise MethodError("generated: expected as many columns as the real points have")
    own = checked_weights(weights, len(x))
    kernels = _widths(widths)
    with_itself = truth_value("with_itself", with_itself)
    if one_of("estimator", estimator, ESTIMATORS) != MIW:
        return _discrepancy(x, y, own, estimator, kernels, with_itself)
    # Of both, group by group; the median's gradient is that of the group it is taken from.
    parts = [random_groups(len(each), groups, seed) for each in (x, y)]
    found = [
        _discrepancy(x[one], y[two], own[one], IW, kernels, with_itself)
        for one, two in zip(*parts, strict=True)
    ]
    value, of_real, of_generated = 0.0, np.zeros_like(x), np.zeros_like(y)
    for place, part in middle_groups([each.value for each in found]):
        value += part * found[place].value
        of_real[parts[0][place]] += part * found[place].of_real
        of_generated[parts[1][place]] += part * found[place].of_generated
    return Discrepancy(value, of_real, of_generated)


def discrepancy_slopes(
    real: np.ndarray,
    generated: np.ndarray,
    weights: np.ndarray,
    estimator: str,
    widths: Sequence[float],
    groups: int,
    seed: int,
) -> np.ndarray:
    """`of_generated` of the squared discrepancy of arrays that were checked, without all else."""
    if estimator == MIW:  # which group is in the middle takes the values of all
        return mean_discrepancy(
            real, generated, weights, estimator, widths, groups=groups, seed=seed
        ).of_generated
    ones, kernels = np.ones(len(generated)), np.array(widths)
    _, of_pairs = _within(generated, pair_coefficients(ones, IW, False), kernels)
    single = _single(weights, estimator)
    return of_pairs - 2 * _between(generated, ones / len(ones), real, single, kernels)[1]


def cross_entropy(
    real: Any,
    generated: Any,
    weights: Any = None,
    estimator: str = SNIW,
    groups: int = GROUPS,
    seed: int | None = None,
) -> CrossEntropy:
    """The cross-entropy of a critic's logits: average_w log(1 + e^-r) + average log(1 + e^g).

    >>> round(cross_entropy([0.0, 0.0], [0.0], weights=[1.0, 3.0]).value, 4)
    1.3863
    """
    logits, others = _logits("real", real), _logits("generated", generated)
    losses = np.logaddexp(0, -logits)
    single = single_coefficients(losses, weights, estimator, groups, seed)
    value = float(single @ losses + np.logaddexp(0, others).mean())
    return CrossEntropy(value, -single * expit(-logits), expit(others) / len(others))


def _discrepancy(
    x: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    estimator: str,
    widths: np.ndarray,
    with_itself: bool,
) -> Discrepancy:
    ones = np.ones(len(y))
    own, of_x = _within(x, pair_coefficients(weights, estimator, with_itself), widths)
    other, of_y = _within(y, pair_coefficients(ones, IW, with_itself), widths)
    single = _single(weights, estimator)
    value, across_x, across_y = _between(x, single, y, ones / len(y), widths)
    return Discrepancy(own + other - 2 * value, of_x - 2 * across_x, of_y - 2 * across_y)


def _single(weights: np.ndarray, estimator: str) -> np.ndarray:
    """The coefficients of an average over single rows."""
    factors = copies(weights).astype(float) if estimator == ID else weights
    return np.asarray(factors / (len(factors) if estimator == IW else factors.sum()))


def _within(
    points: np.ndarray, pairs: PairCoefficients, widths: np.ndarray
) -> tuple[float, np.ndarray]:
    """A statistic of the kernel over pairs of points, and its gradient."""
    factors = pairs.factors
    value, gradient, _ = _between(points, factors, points, factors, widths)
    # A kernel of a point with itself is one, whatever the point.
    value = pairs.scale * (value - float(factors @ factors)) + float(pairs.same.sum())
    # Each pair is there twice, and each point on both sides.
    return value, 2 * pairs.scale * gradient


def _between(
    x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, widths: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """sum_ij a_i b_j k(x_i, y_j), and its gradients with respect to x and y."""
    value, of_x, of_y = 0.0, np.zeros_like(x), np.zeros_like(y)
    lengths = np.einsum("ij,ij->i", y, y)
    for start in range(0, len(x), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        some = x[rows]
        squares = np.einsum("ij,ij->i", some, some)[:, None] + lengths - 2 * some @ y.T
        squares = np.maximum(squares, 0.0)
        kernel, slope = np.zeros_like(squares), np.zeros_like(squares)
        for width in widths:
            # k = exp(-|x - y|^2 / (2 s^2)),  dk/dx = -k (x - y) / s^2
            each = np.exp(squares / (-2 * width**2)) / len(widths)
            kernel += each
            slope -= each / width**2
        value += float(a[rows] @ (kernel @ b))
        weighted = slope * a[rows][:, None] * b
        of_x[rows] = weighted.sum(axis=1)[:, None] * some - weighted @ y
        of_y += weighted.sum(axis=0)[:, None] * y - weighted.T @ some
    return value, of_x, of_y


def checked_points(name: str, value: Any) -> np.ndarray:
    """Finite points, rows x columns."""
    found = number_array(name, value)
    if found.ndim != 2 or not len(found) or not np.isfinite(found).all():
        raise MethodError(f"{name}: expected finite points, rows x columns")
    return found


def _logits(name: str, value: Any) -> np.ndarray:
    found = number_array(name, value)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise MethodError(f"{name}: expected a list of finite logits, one a row")
    return found


def _widths(value: Any) -> np.ndarray:
    stated = [value] if isinstance(value, Real) or np.ndim(value) == 0 else list(value)
    low, high = WIDTHS
    expected = f"widths from {low:g} to {high:g}"
    found = [
        real_number("widths", each, expected, above=low, below=high, inclusive=True)
        for each in stated
    ]
    if not found:
        raise MethodError("widths: expected at least one")
    return np.array(found)
