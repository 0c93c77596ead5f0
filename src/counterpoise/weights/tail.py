"""The upper tail of the weights: where it begins, and the generalised Pareto law that fits it.

Few rows with large weights decide how far a weighted estimate can be trusted. Above a high
threshold u almost any distribution has exceedances x = w - u near the generalised Pareto law

    P(X > x) = (1 + k x / sigma)^(-1/k),

whose shape k says which moments exist: k < 1/2 a finite variance, k < 1 a finite mean. The tail
is the one of Pareto smoothed importance sampling (Vehtari, Simpson, Gelman, Yao and Gabry,
"Pareto Smoothed Importance Sampling", JMLR 2024), fitted as Zhang and Stephens do ("A New and
Efficient Estimation Method for the Generalized Pareto Distribution", Technometrics 2009), with
the weak prior of the former. Rows of a table with few categories share weights, or have nearly the
same, as after raking; such weights are kept on one side of the threshold: many rows that exceed it
by next to nothing would make the few others look like a heavy tail.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

# A tail of fewer rows says nothing about its shape.
FEWEST_EXCEEDANCES = 5
# Log-weights that are nearer to each other than this are the same.
ROUNDING = 1e-9
# Where half of a tail exceeds the threshold by less than this part, of it and of what the largest
# does, those rows have nearly its weight, and it is put below them.
NEARLY = 1e-3


@dataclass(frozen=True, eq=False)
class Tail:
    """The rows above a high threshold, the largest weight being one."""

    threshold: float
    rows: np.ndarray  # the positions of the rows, lightest first
    exceedances: np.ndarray  # their weights minus the threshold, in that order
    share: float  # the exceedances' part of the total weight

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class GeneralisedPareto:
    """A generalised Pareto law of exceedances; a shape of 1/2 or more has no finite variance."""

    shape: float
    scale: float

    def quantiles(self, probabilities: np.ndarray) -> np.ndarray:
        """The exceedances that a given part of the law lies below.

        >>> GeneralisedPareto(shape=1.0, scale=2.0).quantiles(np.array([0.0, 0.5, 0.75]))
        array([0., 2., 6.])
        """
        outside = np.log1p(-np.asarray(probabilities))
        if self.shape == 0:
            return -self.scale * outside
        return self.scale * np.expm1(-self.shape * outside) / self.shape


def find_tail(log_weights: np.ndarray) -> Tail | None:
    """The tail of one set of weights, or None when too few rows lie apart from the rest.

    It holds M = min(N/5, 3 sqrt(N)) rows, and all rows whose weights equal those of one of them.
    Rows without weight are not counted in N.

    >>> tail = find_tail(np.log(np.arange(1.0, 101.0)))
    >>> len(tail), round(100 * tail.threshold)
    (20, 80)
    """
    if not len(log_weights):
        return None
    weights = np.exp(np.rint((log_weights - np.max(log_weights)) / ROUNDING) * ROUNDING)
    positive = weights[weights > 0]
    # M = ceil(min(N/5, 3 sqrt(N)))   [Vehtari et al., section 2]
    size = math.ceil(min(len(positive) / 5, 3 * math.sqrt(len(positive))))
    if size < FEWEST_EXCEEDANCES:
        return None
    lightest = np.partition(positive, -size)[-size]
    threshold = _below(positive, lightest)
    middle = float(np.median(positive[positive > threshold])) - threshold if threshold < 1 else 0.0
    if middle < NEARLY * min(threshold, 1 - threshold):
        threshold = _below(positive, (1 - NEARLY) * threshold)
    rows = np.flatnonzero(weights > threshold)
    if len(rows) < FEWEST_EXCEEDANCES:
        return None
    rows = rows[np.argsort(weights[rows], kind="stable")]
    exceedances = weights[rows] - threshold
    return Tail(threshold, rows, exceedances, float(exceedances.sum() / weights.sum()))


def _below(weights: np.ndarray, limit: float) -> float:
    """The largest weight below a limit; the limit where there is none."""
    below = weights[weights < limit]
    return float(below.max() if len(below) else limit)


def fit_tail(exceedances: np.ndarray) -> GeneralisedPareto:
    """Fit the law to exceedances in ascending order, by Zhang and Stephens' posterior mean.

    The prior counts as ten exceedances of shape 1/2, which steadies the shape of a short tail.

    >>> law = GeneralisedPareto(shape=0.7, scale=1.0)
    >>> evenly = law.quantiles((np.arange(1000) + 0.5) / 1000)
    >>> round(fit_tail(evenly).shape, 1)
    0.7
    """
    size = len(exceedances)
    points = 30 + math.isqrt(size)
    # Of theta = -k/sigma a grid: theta_j = 1/x_(n) + (1 - sqrt(m/(j - 1/2))) / (3 x_(n/4))
    quarter = exceedances[int(size / 4 + 0.5) - 1]
    grid = 1 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))
    theta = 1 / exceedances[-1] + grid / (3 * quarter)
    # The likelihood at its best k: k(theta) = mean log(1 - theta x), l = n (log(-theta/k) - k - 1)
    shapes = np.array([np.log1p(-value * exceedances).mean() for value in theta])
    likelihood = size * (_log_ratio(theta, shapes, exceedances) - shapes - 1)
    posterior = np.exp(likelihood - logsumexp(likelihood))
    mean = float(posterior @ theta)
    shape = float(np.log1p(-mean * exceedances).mean())
    scale = -shape / mean if mean else float(exceedances.mean())
    return GeneralisedPareto((size * shape + 10 * 0.5) / (size + 10), scale)


def _log_ratio(theta: np.ndarray, shapes: np.ndarray, exceedances: np.ndarray) -> np.ndarray:
    """log(-theta/k); as theta goes to zero the ratio goes to one over the mean exceedance."""
    ratio = np.full(len(theta), 1 / exceedances.mean())
    np.divide(-theta, shapes, out=ratio, where=shapes != 0)
    return np.log(ratio)
