"""Refining weights: a little bias for much less variance, at no charge.

Weights that are estimated, or that stretch far, let a few rows decide an estimate. Three
remedies, each a public function of the weights alone: tempering (w^tau), truncation (Ionides,
"Truncated Importance Sampling", JCGS 2008) and Pareto smoothing (Vehtari, Simpson, Gelman, Yao
and Gabry, "Pareto Smoothed Importance Sampling", JMLR 2024). Each takes `Weights`, or an array of
log-weights whose columns are refined one by one, so that replicate weights can be treated as the
main ones were. What is trusted: they never reorder rows, and rows of equal weight stay equal.
They do not make a ratio right that was estimated wrong.
"""

import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.special import logsumexp

from counterpoise.arguments import number_array, real_number
from counterpoise.errors import MethodError
from counterpoise.weights.tail import find_tail, fit_tail
from counterpoise.weights.weights import Weights

Given = TypeVar("Given", Weights, np.ndarray)


def temper(weights: Given, power: float) -> Given:
    """Weights raised to a power between zero (all equal) and one (as they are).

    A row without weight stays without.

    >>> temper(Weights(np.log([1.0, 4.0])), power=0.5).normalised.round(3)
    array([0.667, 1.333])
    """
    expected = "a number from 0 (equal weights) to 1"
    power = real_number("power", power, expected, above=0, below=1, inclusive=True)
    log_weights = log_weights_of(weights)
    present = np.isfinite(log_weights)
    tempered = np.where(present, power * np.where(present, log_weights, 0.0), -np.inf)
    return alike(weights, tempered)


def truncate(weights: Given, most: float | None = None) -> Given:
    """Weights cut at `most` times their mean; None cuts at sqrt(N) times, which is Ionides' rule.

    At sqrt(N) the bias goes to zero as rows are added, and the variance is finite whenever the
    mean is. The cut lowers the mean, so that a weight of the result can be more than `most` times
    the new mean.

    >>> truncate(Weights(np.log([1.0, 1.0, 10.0])), most=1.5).normalised.round(3)
    array([0.375, 0.375, 2.25 ])
    """
    if most is not None:
        most = real_number("most", most, "a positive multiple of the mean weight", above=0)
    log_weights = log_weights_of(weights)
    rows = len(log_weights)
    if not rows:
        return weights
    # w_i <- min(w_i, c mean(w)), c = sqrt(N)   [Ionides 2008, section 2]
    limit = math.sqrt(rows) if most is None else most
    cut = logsumexp(log_weights, axis=0) - math.log(rows) + math.log(limit)
    return alike(weights, np.minimum(log_weights, cut))


@dataclass(frozen=True)
class Smoothed(Generic[Given]):
    """Smoothed weights, and the shape of the tail that was there before.

    `tail_shape` is k-hat: a number, or one a column; minus infinity for equal weights, and not a
    number where the tail is too short to have a shape.
    """

    weights: Given
    tail_shape: float | np.ndarray


def smooth(weights: Given) -> Smoothed[Given]:
    """Pareto smoothing: the largest weights replaced by what a fitted Pareto tail expects.

    No weight grows beyond the largest one. Equal weights share what their ranks would get.

    >>> generator = np.random.default_rng(0)
    >>> heavy = Weights(0.7 * generator.exponential(size=5000))
    >>> smoothed = smooth(heavy)
    >>> bool(0.6 < smoothed.tail_shape < 0.9)
    True
    >>> bool(smoothed.weights.largest_share < heavy.largest_share)
    True
    """
    log_weights = log_weights_of(weights)
    if log_weights.ndim == 1:
        smoothed, shape = _smooth_one(log_weights)
        return Smoothed(alike(weights, smoothed), shape)
    columns = [_smooth_one(column) for column in log_weights.T]
    smoothed = np.column_stack([column for column, _ in columns]) if columns else log_weights
    return Smoothed(alike(weights, smoothed), np.array([shape for _, shape in columns]))


def tail_shape(weights: Weights) -> float:
    """k-hat, the shape of the tail: above 0.7 a weighted mean is not to be trusted.

    Minus infinity for equal weights, not a number where the tail is too short to have a shape.

    >>> tail_shape(Weights(np.zeros(100)))
    -inf
    """
    return _smooth_one(log_weights_of(weights))[1]


def log_weights_of(weights: Weights | np.ndarray) -> np.ndarray:
    """The log-weights, as an array of floats that is fit to be refined.

    >>> log_weights_of(np.array([0.0, np.nan]))
    Traceback (most recent call last):
    counterpoise.errors.MethodError: weights: expected log-weights that are numbers or minus ...
    """
    given = weights.log_weights if isinstance(weights, Weights) else weights
    log_weights = number_array("weights", given, "Weights, or an array of log-weights")
    if log_weights.ndim not in (1, 2) or (isinstance(weights, Weights) and log_weights.ndim != 1):
        raise MethodError("weights: expected one log-weight a row, or an array rows x replicates")
    if np.isnan(log_weights).any() or np.isposinf(log_weights).any():
        raise MethodError(
            "weights: expected log-weights that are numbers or minus infinity; fit them again"
        )
    if len(log_weights) and not np.isfinite(log_weights).any(axis=0).all():
        raise MethodError("weights: expected a weight above zero in some row; fit them again")
    return log_weights


def alike(weights: Weights | np.ndarray, log_weights: np.ndarray) -> Any:
    """New log-weights in the form that the weights were given in: `Weights`, or an array.

    >>> alike(np.zeros(2), np.ones(2))
    array([1., 1.])
    """
    return Weights(log_weights) if isinstance(weights, Weights) else log_weights


def _smooth_one(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    if not len(log_weights) or np.ptp(log_weights) == 0:
        return log_weights, -math.inf
    tail = find_tail(log_weights)
    if tail is None:
        return log_weights, math.nan
    law = fit_tail(tail.exceedances)
    size = len(tail)
    # The z-th of M tail weights becomes u + F^-1((z - 1/2)/M), cut at the largest weight.
    expected = tail.threshold + law.quantiles((np.arange(size) + 0.5) / size)
    expected = np.minimum(expected, 1.0)
    _, group, members = np.unique(tail.exceedances, return_inverse=True, return_counts=True)
    shared = np.bincount(group, weights=expected) / members
    smoothed = log_weights.copy()
    smoothed[tail.rows] = np.log(shared[group]) + log_weights.max()
    return smoothed, law.shape
