"""Weighted log-likelihoods of generalised linear models, and Newton's method for their maximum.

Each is concave in its coefficients and has its canonical link, so that a step of Newton's method
is one of Fisher scoring (P. McCullagh and J. A. Nelder, Generalized Linear Models, 1989). A fit
is exact to rounding or it is none: where the terms separate the target's values there is no
maximum, and None says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import linalg
from scipy.special import logsumexp, softmax

from counterpoise.formulas.row_sums import BLOCK_ROWS, triangle, weighted_gram

# Newton's method is done when no coefficient moves by more than this, of its size: its error
# after a step is about the square of the step.
_TOLERANCE, MOST_STEPS = 1e-6, 50
# Where no two eta of a row move apart by more than 1, the curvature along the step grows by less
# than e, and the step is an ascent.
FARTHEST = 0.5


class Likelihood(Protocol):
    """A weighted log-likelihood of some rows; eta is the linear predictor of each of them."""

    def start(self, weights: np.ndarray) -> np.ndarray:
        """Coefficients to begin with."""
        ...

    def predictor(self, beta: np.ndarray) -> np.ndarray:
        """Eta with these coefficients, in which it is linear."""
        ...

    def height(self, eta: np.ndarray, weights: np.ndarray) -> float:
        """The log-likelihood, but for what does not depend on eta."""
        ...

    def slope(self, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Its gradient by the coefficients."""
        ...

    def information(self, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Its negative second derivatives by the coefficients."""
        ...

    def dispersion(self, eta: np.ndarray, weights: np.ndarray) -> float:
        """The number phi of which phi times the inverse information is the naive covariance."""
        ...


def logistic(eta: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-eta)), at a fraction of what scipy's takes on many rows.

    >>> logistic(np.array([-1000.0, 0.0, 40.0]))
    array([0. , 0.5, 1. ])
    """
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-eta)))


def softplus(eta: np.ndarray) -> np.ndarray:
    """log(1 + exp(eta)).

    >>> softplus(np.array([-1000.0, 0.0, 1000.0])).round(4)
    array([0.000e+00, 6.931e-01, 1.000e+03])
    """
    return np.asarray(np.maximum(eta, 0) + np.log1p(np.exp(-np.abs(eta))))


@dataclass(frozen=True)
class Family:
    """An exponential family with its canonical link.

    `cumulant` is b of the linear predictor eta: the log-likelihood is y eta - b(eta), its mean
    mu = b'(eta), its variance b''(eta), which is a function of mu.
    """

    name: str
    cumulant: Callable[[np.ndarray], np.ndarray]
    mean: Callable[[np.ndarray], np.ndarray]
    variance: Callable[[np.ndarray], np.ndarray]
    start: Callable[[np.ndarray], np.ndarray]  # a linear predictor to begin with
    lowest: float
    highest: float
    has_dispersion: bool = False


FAMILIES = {
    family.name: family
    for family in (
        Family(
            "gaussian",
            cumulant=lambda eta: eta**2 / 2,
            mean=lambda eta: eta,
            variance=np.ones_like,
            start=lambda y: y,
            lowest=-np.inf,
            highest=np.inf,
            has_dispersion=True,
        ),
        Family(
            "binomial",
            cumulant=softplus,
            mean=logistic,
            variance=lambda mu: mu * (1 - mu),
            start=lambda y: np.log((y + 0.5) / (1.5 - y)),
            lowest=0.0,
            highest=1.0,
        ),
        Family(
            "poisson",
            cumulant=np.exp,
            mean=np.exp,
            variance=lambda mu: mu,
            start=lambda y: np.log(y + 0.1),
            lowest=0.0,
            highest=np.inf,
        ),
    )
}


@dataclass(frozen=True, eq=False)
class Numeric:
    """The likelihood of a target of numbers: sum_i w_i (y_i eta_i - b(eta_i)), eta = X beta."""

    x: np.ndarray
    y: np.ndarray
    family: Family

    def start(self, weights: np.ndarray) -> np.ndarray:
        """One weighted least squares fit to the working response."""
        eta = self.family.start(self.y)
        mu = self.family.mean(eta)
        curvature = self.family.variance(mu)
        working = eta + (self.y - mu) / curvature
        # Least squares on the triangle of all rows, which has as many as there are columns.
        found = triangle(self.x, np.sqrt(weights * curvature), beside=working)
        return np.asarray(np.linalg.lstsq(found[:, :-1], found[:, -1])[0])

    def predictor(self, beta: np.ndarray) -> np.ndarray:
        """X beta."""
        return np.asarray(self.x @ beta)

    def misses(self, eta: np.ndarray) -> np.ndarray:
        """y - mu."""
        return np.asarray(self.y - self.family.mean(eta))

    def height(self, eta: np.ndarray, weights: np.ndarray) -> float:
        """Sum_i w_i (y_i eta_i - b(eta_i))."""
        return float(weights @ (self.y * eta - self.family.cumulant(eta)))

    def slope(self, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """X' W (y - mu)."""
        return np.asarray(self.x.T @ (weights * self.misses(eta)))

    def information(self, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """X' W V X."""
        variance = self.family.variance(self.family.mean(eta))
        return weighted_gram(self.x, weights * variance)

    def dispersion(self, eta: np.ndarray, weights: np.ndarray) -> float:
        """Phi = sum w (y - mu)^2 / (sum w - p), or 1."""
        if not self.family.has_dispersion:
            return 1.0
        squares = (weights * (self.y - self.family.mean(eta)) ** 2).sum()
        return float(squares / max(weights.sum() - self.x.shape[1], 1e-300))


@dataclass(frozen=True, eq=False)
class Multinomial:
    """The likelihood of categories 0..K-1, the first of which the others are compared with.

    Category k > 0 has coefficients of its own, and eta_k = X beta_k; eta_0 = 0. The log-likelihood
    is sum_i w_i (eta_i,y_i - log sum_k exp(eta_ik)). The coefficients are one vector, category by
    category; eta has a column for each but the first.
    """

    x: np.ndarray
    y: np.ndarray  # whole numbers
    categories: int

    def start(self, weights: np.ndarray) -> np.ndarray:
        """All categories alike."""
        return np.zeros((self.categories - 1) * self.x.shape[1])

    def predictor(self, beta: np.ndarray) -> np.ndarray:
        """X beta_k, a column each."""
        return np.asarray(self.x @ beta.reshape(self.categories - 1, -1).T)

    def misses(self, eta: np.ndarray) -> np.ndarray:
        """1[y = k] - p_k, a column each."""
        return (self.y[:, None] == np.arange(1, self.categories)) - probabilities(eta)[:, 1:]

    def height(self, eta: np.ndarray, weights: np.ndarray) -> float:
        """Sum_i w_i (eta_i,y_i - log sum_k exp(eta_ik))."""
        whole = _with_first(eta)
        chosen = np.take_along_axis(whole, self.y[:, None], axis=1)[:, 0]
        return float(weights @ (chosen - logsumexp(whole, axis=1)))

    def slope(self, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """X' W (1[y = k] - p_k) for each k."""
        return np.asarray((self.x.T @ (weights[:, None] * self.misses(eta))).T.ravel())

    def information(self, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """X' W diag(p_k (1[k = l] - p_l)) X for each k and l."""
        p, size = probabilities(eta)[:, 1:], self.x.shape[1]
        found = np.zeros((p.shape[1] * size, p.shape[1] * size))
        # So many rows at once that their products stay as small as those of a block of x.
        step = max(BLOCK_ROWS // p.shape[1], 1)
        for start in range(0, len(p), step):
            own, x = p[start : start + step], self.x[start : start + step]
            products = (own[:, :, None] * x[:, None, :]).reshape(len(x), -1)
            found -= (products * weights[start : start + step, None]).T @ products
        for k in range(p.shape[1]):
            block = slice(k * size, (k + 1) * size)
            found[block, block] += weighted_gram(self.x, weights * p[:, k])
        return found

    def dispersion(self, eta: np.ndarray, weights: np.ndarray) -> float:
        """1: the variance of a category follows from its probability."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """A likelihood whose coefficients are drawn to a centre, so that it has a maximum.

    Each by a precision of its own: it is the likelihood times a normal prior.
    """

    inner: Likelihood
    centre: np.ndarray
    precisions: np.ndarray

    def start(self, weights: np.ndarray) -> np.ndarray:
        """The centre."""
        return self.centre

    def predictor(self, beta: np.ndarray) -> np.ndarray:
        """That of the rows, and the coefficients beside it: both are linear in them."""
        return np.append(np.ravel(self.inner.predictor(beta)), beta)

    def height(self, eta: np.ndarray, weights: np.ndarray) -> float:
        """The log-likelihood less half of the precise squared distance from the centre."""
        own, away = self._split(eta)
        return self.inner.height(own, weights) - float(self.precisions @ away**2) / 2

    def slope(self, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The rows' own, and back to the centre."""
        own, away = self._split(eta)
        return self.inner.slope(own, weights) - self.precisions * away

    def information(self, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The rows' own, and the precisions."""
        return self.inner.information(self._split(eta)[0], weights) + np.diag(self.precisions)

    def dispersion(self, eta: np.ndarray, weights: np.ndarray) -> float:
        """That of the rows."""
        return self.inner.dispersion(self._split(eta)[0], weights)

    def _split(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = len(self.centre)
        shape = self.inner.predictor(self.centre).shape
        return eta[:-size].reshape(shape), eta[-size:] - self.centre


def probabilities(eta: np.ndarray) -> np.ndarray:
    """The probability of every category, from the predictors of all but the first.

    >>> probabilities(np.log([[1.0, 2.0]]))
    array([[0.25, 0.25, 0.5 ]])
    """
    return np.asarray(softmax(_with_first(eta), axis=1))


def maximise(likelihood: Likelihood, weights: np.ndarray, start: np.ndarray) -> np.ndarray | None:
    """The coefficients with the largest likelihood, or None if none have."""
    beta, eta = start, likelihood.predictor(start)
    for _ in range(MOST_STEPS):
        # beta += information^-1 slope
        with np.errstate(over="ignore"):
            slope = likelihood.slope(eta, weights)
            information = likelihood.information(eta, weights)
        try:
            step = linalg.cho_solve(linalg.cho_factor(information), slope)
        except (linalg.LinAlgError, ValueError):  # singular, or no longer finite
            return None
        if is_close(step, beta):
            return np.asarray(beta + step)
        change = likelihood.predictor(step)
        if np.abs(change).max() > FARTHEST:
            with np.errstate(over="ignore"):
                height = likelihood.height(eta, weights)
                for _ in range(30):
                    if likelihood.height(eta + change, weights) >= height:
                        break
                    step, change = step / 2, change / 2
        beta, eta = beta + step, eta + change
    return None


def is_close(step: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Whether a step of Newton's method from `beta`, or each of several, is the last."""
    most = np.abs(step).max(axis=-1)
    return np.asarray(most <= _TOLERANCE * (1 + np.abs(beta).max(axis=-1)))


def _with_first(eta: np.ndarray) -> np.ndarray:
    return np.hstack([np.zeros((len(eta), 1)), eta])
