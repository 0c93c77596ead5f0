"""Do the weights have a finite variance? Koopman, Shephard and Creal's tests.

A weighted mean has a standard error only if the weights have a variance, that is, if the shape of
their generalised Pareto tail is below 1/2. The tests take 1/2 as the hypothesis and ask whether
the tail is heavier (Koopman, Shephard and Creal, "Testing the Assumptions Behind Importance
Sampling", Journal of Econometrics 2009). The score test needs the fit at 1/2 alone; the
likelihood-ratio test and Wald's also need the best fit. A small p-value is evidence that the
variance is infinite; a large one is no evidence that it is finite when the tail is short.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from counterpoise.weights.refine import log_weights_of
from counterpoise.weights.tail import find_tail
from counterpoise.weights.weights import Weights

# At the shape 1/2 the information of one exceedance about the shape, the scale being estimated:
# I_kk - I_ks^2 / I_ss = 2/3 - (1/3)^2 / (1/2) = 4/9 = 1/(1 + k)^2.
_INFORMATION = 4 / 9


@dataclass(frozen=True)
class FiniteVarianceTest:
    """Standard normal statistics for "the variance is finite" against "it is infinite".

    All are large when the tail is too heavy; the p-values are one-sided.
    """

    exceedances: int
    shape: float  # the most likely shape of the tail, from -1/2 up
    score: float
    likelihood_ratio: float  # the signed root
    wald: float

    @property
    def score_p_value(self) -> float:
        """How often a tail of shape 1/2 has a score this large."""
        return float(norm.sf(self.score))

    @property
    def likelihood_ratio_p_value(self) -> float:
        """How often a tail of shape 1/2 has a likelihood ratio this large."""
        return float(norm.sf(self.likelihood_ratio))

    @property
    def wald_p_value(self) -> float:
        """How often a tail of shape 1/2 has a fitted shape this large."""
        return float(norm.sf(self.wald))


def finite_variance_test(weights: Weights) -> FiniteVarianceTest | None:
    """Test the tail of the weights; None when they are equal, or the tail is too short.

    >>> generator = np.random.default_rng(0)
    >>> finite_variance_test(Weights(0.9 * generator.exponential(size=5000))).score_p_value < 0.01
    True
    >>> finite_variance_test(Weights(0.1 * generator.exponential(size=5000))).score_p_value > 0.9
    True
    """
    log_weights = log_weights_of(weights)
    if not len(log_weights) or np.ptp(log_weights) == 0:
        return None
    tail = find_tail(log_weights)
    return None if tail is None else exceedance_test(tail.exceedances)


def exceedance_test(exceedances: np.ndarray) -> FiniteVarianceTest:
    """The same tests, of positive exceedances over a threshold.

    >>> evenly = 2 * ((1 - (np.arange(500) + 0.5) / 500) ** -0.5 - 1)  # of shape 1/2
    >>> round(exceedance_test(evenly).shape, 1)
    0.5
    """
    values = np.asarray(exceedances, dtype=float)
    size = len(values)
    scale = _scale_at_half(values)
    ratio = values / scale
    # l(k, sigma) = sum of -log sigma - (1 + 1/k) log(1 + k x/sigma), at k = 1/2
    null = -size * math.log(scale) - 3 * float(np.log1p(ratio / 2).sum())
    # dl/dk at k = 1/2 = sum of 4 log(1 + r/2) - 3 r/(1 + r/2), r = x/sigma
    slope = float((4 * np.log1p(ratio / 2) - 3 * ratio / (1 + ratio / 2)).sum())
    shape, best = _most_likely(values)
    root = math.sqrt(max(0.0, 2 * (best - null)))
    return FiniteVarianceTest(
        exceedances=size,
        shape=shape,
        score=slope / math.sqrt(size * _INFORMATION),
        likelihood_ratio=math.copysign(root, shape - 0.5),
        wald=(shape - 0.5) * math.sqrt(size * _INFORMATION),
    )


def _scale_at_half(values: np.ndarray) -> float:
    """The most likely scale when the shape is 1/2, where the mean of x/(2 sigma + x) is 1/3."""

    def excess(log_scale: float) -> float:
        return float((values / (2 * math.exp(log_scale) + values)).mean() - 1 / 3)

    # Every term is above 1/3 below the smallest x, and below 1/3 above the largest.
    low, high = math.log(values.min()) - 1, math.log(values.max()) + 1
    return math.exp(brentq(excess, low, high, xtol=1e-10))


def _most_likely(values: np.ndarray) -> tuple[float, float]:
    """The most likely shape from -1/2 up, and its log-likelihood.

    Below -1/2 the likelihood has no regular maximum, and no question is left about the variance.
    """
    largest = float(values.max())

    # With theta = k/sigma = (e^t - 1)/x_(n), the best shape is k = mean log(1 + theta x),
    # where l = n (log(theta/k) - k - 1).   [Grimshaw 1993]
    def shape_at(place: float) -> float:
        return float(np.log1p(math.expm1(place) / largest * values).mean())

    def loss(place: float) -> float:
        shape, theta = shape_at(place), math.expm1(place) / largest
        ratio = theta / shape if shape != 0 else 1 / values.mean()
        return -len(values) * (math.log(ratio) - shape - 1)

    low, high = -30.0, math.log(largest / values.min()) + 10
    if shape_at(low) < -0.5:
        low = brentq(lambda place: shape_at(place) + 0.5, low, 0.0)
    places = np.linspace(low, high, 100)
    losses = [loss(float(place)) for place in places]
    near = int(np.argmin(losses))
    around = places[max(near - 1, 0)], places[min(near + 1, len(places) - 1)]
    found = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-8})
    place = float(found.x if found.fun < losses[near] else places[near])
    return shape_at(place), -loss(place)
