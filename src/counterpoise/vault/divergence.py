"""What an event costs at a Renyi order: a bound on the divergence between neighbours' answers.

The noise here is discrete, and each bound holds for it. The discrete Gaussian has the zCDP of the
continuous one (Canonne, Kamath and Steinke 2020, theorem 4), a pure epsilon is worth epsilon^2/2
(Bun and Steinke 2016, proposition 1.4) and never more than itself, a bounded range of epsilon is
worth epsilon^2/8 (Cesar and Rogers 2021, lemma 3.2). A sampled Gaussian is charged at whole orders
alone, for the reason that `_sampled_gaussian` gives. [PRIVACY: mechanisms]
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp, xlog1py

from counterpoise.vault.events import (
    ComposedDpEvent,
    DpEvent,
    ExponentialDpEvent,
    GaussianDpEvent,
    MetropolisDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
    count_as_float,
    pure_epsilon,
)

# Above this order a sampled Gaussian is charged as if it were not sampled: the sum below gets long,
# and sampling no longer hides much.
_MOST_SUMMED = 2048

# What rounding may take off the sum below, in parts of it, and more.
_ROUNDING = 1e-10


def renyi_divergence(event: DpEvent, orders: np.ndarray) -> np.ndarray:
    """The most that the answers of neighbours diverge at each of `orders`; inf when it overflows.

    >>> renyi_divergence(GaussianDpEvent(2.0), np.array([2.0, 8.0]))
    array([0.25, 1.  ])
    """
    with np.errstate(all="ignore"):
        return _divergence(event, np.asarray(orders, dtype=float))


def _divergence(event: DpEvent, orders: np.ndarray) -> np.ndarray:
    match event:
        case NoOpDpEvent():
            return np.zeros_like(orders)
        case GaussianDpEvent():
            # D(a) = a (D2/s)^2 / 2
            return _gaussian(event.noise_multiplier, orders)
        case ZCDpEvent():
            return np.asarray(event.xi + event.rho * orders)
        case ExponentialDpEvent() | MetropolisDpEvent():
            epsilon = np.float64(event.epsilon)
            return np.minimum(epsilon, orders * (epsilon * epsilon / 8))
        case PoissonSampledDpEvent():
            return _sampled_gaussian(
                event.sampling_probability, event.event.noise_multiplier, orders
            )
        case SelfComposedDpEvent():
            return count_as_float(event.count) * _divergence(event.event, orders)
        case ComposedDpEvent():
            return np.sum([_divergence(part, orders) for part in event.events], axis=0)
        case _:
            # Pure events, Laplace noise among them: the Renyi divergence of the discrete Laplace
            # exceeds the continuous one's, so that the latter's curve is no bound for it.
            pure = pure_epsilon(event)
            epsilon = np.float64(math.inf if pure is None else pure)
            return np.minimum(epsilon, orders * (epsilon * epsilon / 2))


def _gaussian(noise_multiplier: float, orders: np.ndarray) -> np.ndarray:
    inverse = 1 / np.float64(noise_multiplier)
    return np.asarray(orders * (inverse * inverse / 2))


def _sampled_gaussian(rate: float, noise_multiplier: float, orders: np.ndarray) -> np.ndarray:
    """A Gaussian on a Poisson sample, at the next whole order above each of `orders`.

    Let P be the noise, Q its shift by a vector of the grid that is no longer than the sensitivity,
    and M = (1 - q) P + q Q. At a whole order a the power is a finite sum,
        E_P[(M/P)^a] = sum_k C(a, k) (1 - q)^(a - k) q^k E_P[(Q/P)^k],
    which needs of the noise only E_P[(Q/P)^k] <= exp(k (k - 1) / (2 s^2)): that is the zCDP of the
    discrete Gaussian as much as of the continuous one. At other orders the sum is infinite, with
    terms of either sign, and bounds on the moments bound nothing.
    The other direction is no larger. The reflection x -> shift - x maps the grid to itself and
    swaps P and Q, and with it D_a(P | M) <= D_a(M | P) (Mironov, Talwar and Zhang 2019, theorem 5;
    their proof compares the two integrands at x and its reflection, so it is one of sums as well).
    The divergence does not fall with the order, so the next whole order bounds the order itself.
    Nor does sampling ever harm (the divergence is quasi-convex), so that the Gaussian's own
    divergence is a bound too.
    """
    found = _gaussian(noise_multiplier, orders)
    for place, order in enumerate(np.ceil(orders)):
        if order <= _MOST_SUMMED:
            found[place] = np.minimum(found[place], _summed(rate, noise_multiplier, int(order)))
    return found


@lru_cache(maxsize=4096)
def _summed(rate: float, noise_multiplier: float, order: int) -> float:
    # The binomial weights add up to one, so E_P[(M/P)^a] - 1 is a sum of positive terms,
    # sum over k >= 2 of C(a, k) (1 - q)^(a - k) q^k (exp(k (k - 1) / (2 s^2)) - 1).
    k = np.arange(2, order + 1)
    exponents = _gaussian(noise_multiplier, k * (k - 1.0))
    terms = (
        gammaln(order + 1)
        - gammaln(k + 1)
        - gammaln(order - k + 1)
        + xlog1py(order - k, -rate)
        + k * np.log(rate)
        + exponents
        + np.log(-np.expm1(-exponents))
    )
    divergence = np.logaddexp(0.0, logsumexp(terms)) / (order - 1)
    return float(divergence) * (1 + _ROUNDING)
