"""Debiasing: what noise on the coefficients of a log-linear ratio does to the weights, undone.

With noise z on the coefficients, a weight exp(f.(b + z)) is on average E[exp(z.f)] times what it
should be. The law of z is public, so that factor is known and is divided out: the weights are
then unbiased over the draw of the noise, for the *fitted* ratio (Ghalebikesabi and others 2022,
propositions 1 and 2). It does not repair a ratio that is not log-linear. The factor need not
exist: Laplace tails are as heavy as the exponential function's growth. [PRIVACY: debiasing]
"""

from __future__ import annotations

import math

import numpy as np

from counterpoise.errors import MethodError
from counterpoise.vault import NoiseLaw


def has_moment(features: np.ndarray, law: NoiseLaw, scale: float) -> bool:
    """Whether E[exp(z.f)] exists for every row of `features`.

    >>> rows = np.array([[1.0, 2.0]])
    >>> has_moment(rows, "laplace", 0.4), has_moment(rows, "laplace", 0.6)
    (True, False)
    """
    if len(features) == 0:
        return True
    match law:
        case "laplace":
            return bool(scale * np.abs(features).max() < 1)
        case "l2-laplace":
            return bool(scale * np.linalg.norm(features, axis=1).max() < 1)
        case _:
            return True


def log_moment(
    features: np.ndarray,
    law: NoiseLaw,
    scale: float,
    way_out: str = "a larger regularisation, or debias=False",
) -> np.ndarray:
    """log E[exp(z.f)] for each row f of `features` and noise z of a law and scale.

    `way_out` is what to choose, other than Gaussian noise, where there is no such average.

    >>> log_moment(np.array([[3.0, 4.0]]), "gaussian", 0.2).round(6)
    array([0.5])
    """
    if not has_moment(features, law, scale):
        raise MethodError(
            f"noise: {law} noise of scale {scale:.4g} is too heavy-tailed for weights to have a "
            f"mean; choose noise='gaussian', {way_out}"
        )
    size = features.shape[1]
    match law:
        case "gaussian":
            # exp(s^2 norm(f)^2 / 2)
            return scale**2 * (features**2).sum(axis=1) / 2
        case "laplace":
            # prod_j 1 / (1 - b^2 f_j^2)
            return -np.log1p(-((scale * features) ** 2)).sum(axis=1)
        case "l2-laplace":
            # (1 - b^2 norm(f)^2)^(-(p + 1)/2): the Fourier transform of exp(-norm/b), continued
            return -(size + 1) / 2 * np.log1p(-(scale**2) * (features**2).sum(axis=1))
        case _:
            return np.zeros(len(features))


def redraw(
    law: NoiseLaw, scale: float, size: int, count: int, generator: np.random.Generator
) -> np.ndarray:
    """`count` further draws of the noise on `size` numbers, one a column.

    They show what the noise could have been; what has been released already is not noised
    again, so ordinary randomness will do.
    """
    match law:
        case "gaussian":
            return generator.normal(scale=scale, size=(size, count))
        case "laplace":
            return generator.laplace(scale=scale, size=(size, count))
        case "l2-laplace":
            # norm ~ Gamma(p, b), direction uniform
            direction = generator.normal(size=(size, count))
            direction /= np.linalg.norm(direction, axis=0)
            return direction * generator.gamma(size, scale, size=count)
        case _:
            return np.zeros((size, count))


def average_to_one(log_weights: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Replicate weights from log-weights, one replicate a column, times base weights.

    >>> average_to_one(np.log([[1.0], [3.0]]), np.ones((2, 1))).ravel()
    array([0.5, 1.5])
    """
    if len(log_weights) == 0:
        return np.empty(base.shape)
    top = log_weights.max(axis=0)
    weights = np.exp(log_weights - np.where(np.isfinite(top), top, 0.0)) * base
    totals = weights.sum(axis=0)
    if not (totals > 0).all():
        # A replicate that resamples none of the weighted rows says nothing by itself: base alone.
        empty = ~(totals > 0)
        weights[:, empty] = base[:, empty]
        totals = weights.sum(axis=0)
    return weights * (len(weights) / totals)


def unbiased_shift(law: NoiseLaw, scale: float) -> float:
    """What to add to a log-weight with noise of its own, so that the weight is unbiased.

    >>> unbiased_shift("gaussian", 0.4)
    -0.08...
    """
    if law == "none":
        return 0.0
    way_out = "fewer rows, or a larger regularisation"
    return -math.fsum(log_moment(np.ones((1, 1)), law, scale, way_out))
