"""Beta calibration: weights that keep the promise their sizes make, checked on rows held out.

A weight w says that a row like this one is w times as frequent among real rows as among synthetic
ones; so of such rows, taken from both in equal numbers, the part s = w/(1 + w) should be real.
Held-out real rows show whether it is, and beta calibration fits the correction

    log w' = a log s - b log(1 - s) + c,   a, b >= 0

(Kull, Silva Filho and Flach, "Beta Calibration", AISTATS 2017). Far from one it tempers: small
weights are raised to the power a, large ones to b. It never reorders rows. On public rows it is
free; on private rows it is one more paid query, a perturbed minimiser. [PRIVACY: importance
weights] It corrects what depends on the weight alone, and no other error of a weight.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from counterpoise.arguments import instance_of, real_number, settle
from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Coded
from counterpoise.vault import Share, Vault
from counterpoise.weights.protocol import check_request, pay_for_total
from counterpoise.weights.refine import Given, alike, log_weights_of
from counterpoise.weights.weights import Weights

_NAMES = ("log of the odds' real part", "minus log of the synthetic part", "one")
_UNCHANGED = np.array([1.0, 1.0, 0.0])
# The part of the share that the number of private rows gets, where it is private.
TOTAL_FRACTION = 0.1


@dataclass(frozen=True)
class BetaCalibration:
    """A correction of weights; powers of one and no shift leave them as they are.

    `origin` is the log of the mean weight of the synthetic rows it was fitted with: weights are
    brought to a mean of one before they are corrected, so that their constant does not matter.
    `deviation` is that of the privacy noise on the powers and the shift, zero on public rows.

    >>> calibration = BetaCalibration(power_below=1.0, power_above=0.5, shift=0.0)
    >>> calibration(np.array([-20.0, 0.0, 20.0])).round(1)
    array([-20. ,  -0.3,  10. ])
    """

    power_below: float  # a: of weights far below one
    power_above: float  # b: of weights far above one
    shift: float  # c
    origin: float = 0.0
    deviation: float = 0.0

    def __post_init__(self) -> None:
        for name in ("power_below", "power_above", "deviation"):
            value, expected = getattr(self, name), "a number from 0"
            settle(self, **{name: real_number(name, value, expected, above=0, inclusive=True)})
        for name in ("shift", "origin"):
            settle(self, **{name: real_number(name, getattr(self, name), "a number")})

    def __call__(self, weights: Given) -> Given:
        """Calibrate weights, or an array of log-weights; rows without weight stay without."""
        log_weights = log_weights_of(weights)
        present = np.isfinite(log_weights)
        features = _features(np.where(present, log_weights, self.origin) - self.origin)
        calibrated = features @ np.array([self.power_below, self.power_above, self.shift])
        return alike(weights, np.where(present, calibrated, -np.inf))  # type: ignore[no-any-return]


def calibrate(
    held_out: Weights | np.ndarray, synthetic: Weights | np.ndarray, caution: float = 1.0
) -> BetaCalibration:
    """Calibrate on public rows of the real kind that the weights were not fitted to; free.

    `held_out` and `synthetic` are the weights that one model gives the two tables. `caution`
    pulls the correction towards none, with the force of so many rows; zero is the published fit.

    >>> generator = np.random.default_rng(0)
    >>> real, synthetic = generator.normal(0.5, 1, 2000), generator.normal(0, 1, 5000)
    >>> calibration = calibrate(2 * (0.5 * real), 2 * (0.5 * synthetic))  # twice too steep
    >>> bool(abs(calibration.power_above - 0.5) < 0.1)
    True
    """
    real, made = _one_set("held_out", held_out), _one_set("synthetic", synthetic)
    if not np.isfinite(real).all():
        raise MethodError(
            "held_out: expected a weight above zero in every row; weigh by a model that rules out "
            "no real row"
        )
    expected = "a number of rows, zero or more"
    caution = real_number("caution", caution, expected, above=0, inclusive=True)
    origin = _log_mean(made)
    ones, zeros = _features(real - origin), _features(made[np.isfinite(made)] - origin)

    # Both tables count alike, so that the fitted odds are the weight itself:
    # L = mean over real of log(1 + e^-m) + mean over synthetic of log(1 + e^m)
    #     + caution/(2 n) norm((a, b, c) - (1, 1, 0))^2,   m = a log s - b log(1 - s) + c
    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        of_ones, of_zeros = ones @ point, zeros @ point
        away = point - _UNCHANGED
        value = np.logaddexp(0, -of_ones).mean() + np.logaddexp(0, of_zeros).sum() / len(made)
        slope = zeros.T @ expit(of_zeros) / len(made) - ones.T @ expit(-of_ones) / len(ones)
        value += caution / (2 * len(ones)) * (away @ away)
        return float(value), slope + caution / len(ones) * away

    bounds = [(0, None), (0, None), (None, None)]
    options = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 1000}
    found = minimize(loss, _UNCHANGED, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    below, above, shift = (float(value) for value in found.x)
    return BetaCalibration(below, above, shift, origin)


def calibrate_privately(
    vault: Vault,
    log_weights: Callable[[Coded], np.ndarray],
    synthetic: Coded,
    share: Share,
    *,
    most: float = 4.0,
    deviation: float = 0.1,
) -> BetaCalibration:
    """Calibrate on a vault's private rows; charges one event, and one for the number of rows.

    `log_weights` gives the log-weight of each row from that row alone, as a fitted model does:
    that is what bounds one record's part. Log-weights beyond `most`, from a mean weight of one,
    count as that. The pull towards no correction is as strong as it takes for the privacy noise
    on the powers and the shift to have at most the standard deviation `deviation`. Under
    replace-one the number of rows is public, and free.
    """
    check_request(vault, share, None)
    if share is None:
        raise BudgetError("a calibration on private rows needs a share of the budget")
    if not callable(log_weights):
        raise MethodError("log_weights: expected a function of coded rows")
    instance_of("synthetic", synthetic, Coded, "coded rows, schema.encode(table)")
    most = real_number("most", most, "a positive number below 700", above=0, below=700)
    deviation = real_number("deviation", deviation, "a positive number", above=0)
    made = _one_set("synthetic", log_weights(synthetic))
    total, for_fit = pay_for_total(vault, share, TOTAL_FRACTION)
    counted = total.value
    features = _CalibrationFeatures(log_weights, _log_mean(made), most)
    rows = len(made) + max(counted, 1)
    bound = features.bound
    # The noise has the deviation u/lambda, as D2 = R/(m lambda).
    one_row = vault.budget.row_sensitivity(bound) / rows
    noise: Literal["gaussian", "l2-laplace"]
    if share.pure:
        # L2-Laplace noise of scale b has variance b^2 (q + 1) along each of q = 3 directions.
        noise, unit = "l2-laplace", 2 * for_fit.laplace_scale(one_row)
    else:
        noise, unit = "gaussian", for_fit.gaussian_scale(one_row)
    # The pull biases by about lambda/e times what there is to correct, e being the curvature. For
    # e = 1/50 and a correction of 1/2 that is 25 lambda, which equals u/lambda at sqrt(u)/5: with
    # much budget, noise below the stated deviation costs no more than it saves.
    regularisation = max(unit / deviation, math.sqrt(unit) / 5)
    if regularisation > bound**2 / 4:
        # No rows could curve the loss by more: the answer would be the pull and the noise alone.
        raise BudgetError(
            "share: too small to learn a calibration from so few rows; give it a larger share, "
            "allow a larger deviation, or leave the weights uncalibrated"
        )
    # log(n/N) is what the intercept is when nothing needs correcting.
    odds = math.log(max(counted, 1) / len(made))
    answer = vault.minimise(
        features,
        bound,
        synthetic,
        for_fit,
        rows=rows,
        regularisation=regularisation,
        noise=noise,
        centre=_UNCHANGED + np.array([0.0, 0.0, odds]),
    )
    below, above, shift = (float(value) for value in answer.values)
    spread = answer.scale * (2 if share.pure else 1)
    return BetaCalibration(
        max(below, 0.0), max(above, 0.0), shift - odds, features.origin, deviation=spread
    )


@dataclass(frozen=True)
class _CalibrationFeatures:
    """[log s, -log(1 - s), 1] of a row, its log-weight cut at `most` either way."""

    log_weights: Callable[[Coded], np.ndarray]
    origin: float
    most: float
    names = _NAMES

    @property
    def bound(self) -> float:
        # The norm is convex and even in the log-weight, so it is largest at the cut.
        return float(np.linalg.norm(_features(np.array([self.most]))))

    def __call__(self, rows: Coded) -> np.ndarray:
        found = np.asarray(self.log_weights(rows), dtype=float)
        return _features(np.clip(found - self.origin, -self.most, self.most))


def _features(log_ratio: np.ndarray) -> np.ndarray:
    """log s = -log(1 + 1/w), -log(1 - s) = log(1 + w), and one; along a new last axis."""
    parts = -np.logaddexp(0, -log_ratio), np.logaddexp(0, log_ratio), np.ones_like(log_ratio)
    return np.stack(parts, axis=-1)


def _log_mean(log_weights: np.ndarray) -> float:
    return float(logsumexp(log_weights)) - math.log(len(log_weights))


def _one_set(name: str, weights: Weights | np.ndarray) -> np.ndarray:
    if hasattr(weights, "columns"):
        raise MethodError(
            f"{name}: expected the weights of a table's rows, not the table; weigh it by a fitted "
            "model, model.weigh(table)"
        )
    found = log_weights_of(weights)
    if found.ndim != 1 or not len(found):
        raise MethodError(f"{name}: expected one log-weight a row, and at least one row")
    return found
