"""Bounds on the excess risk from the distance of marginals alone: as published, and sharper.

Two tables whose marginals of up to d columns differ by at most nu rows in L1 give linear models of
norm tau nearly the same risk: replace the loss by a polynomial, P away on [-B, B] with
B = tau sqrt(m), whose mean is a sum over marginals, and let M bound how far those means differ.
Then L(w_s) - L(w_r) on the private table is at most 4 P + 2 M (Zhou et al. 2024, theorems 3.1 and
3.2, corollaries 3.5 and 3.6; stated there up to constants, which are written out here). The
sharper chain has the polynomial's own coefficients, the best polynomial instead of Bernstein's, and
no factor m^(d - 1): the sum over index tuples of |w_u1 ... w_uk| is the k-th power of the L1 norm
of w, which is at most B. Two more places are free: a_0 cancels, and y^k is one for even k, so that
an even power needs k columns and not k + 1. All of it holds for features in [-1, 1] and labels
-1 and 1, for any two tables, whatever their numbers of rows, if nu / n is the distance of their
shares. What the printed text has wrong is listed in the documentation of certificates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from counterpoise.analysis.margin_losses import MarginLoss
from counterpoise.analysis.polynomials import MOST_DEGREE, LossPolynomial, minimax
from counterpoise.arguments import real_number, whole_number


def published_bound(
    loss: MarginLoss, distance: float, *, features: int, order: int, norm: float
) -> float:
    """4 P + 2 M by theorem 3.1, or by theorem 3.2 for the logistic loss where that is less.

    `distance` is nu / n, `features` m and `norm` tau; `order` is d, at least 2.

    >>> from counterpoise.analysis.margin_losses import LOSSES
    >>> found = published_bound(LOSSES["logistic"], 0.01, features=8, order=3, norm=8**-0.5)
    >>> round(found, 2)
    21.01
    """
    degree = _checked(features, order, norm, distance) - 1
    # Theorem 2.3 is about intervals that hold [0, 1].
    reach = max(norm * math.sqrt(features), 1.0)
    lipschitz = loss.lipschitz(reach)
    # (5/4) omega(loss, 2 B / sqrt(d - 1))
    error = 1.25 * lipschitz * 2 * reach / math.sqrt(degree)
    if loss.name == "logistic":
        # (3/4) / sqrt(d - 1) omega(g', 1 / sqrt(d - 1)) with g(s) = loss(2 B s - B), g'' <= B^2
        error = min(error, 0.75 * reach**2 / degree)
    largest = lipschitz * reach + float(loss.value(np.zeros(1))[0])
    moments = largest * (3 * features * max(1.0, norm)) ** degree * distance
    return 4 * error + 2 * moments


def published_distance(
    *,
    features: int,
    largest_domain: int,
    order: int,
    epsilon: float,
    delta: float,
    rows: float,
    failure: float,
) -> float:
    """nu / n of the all-marginals mechanism by lemmas 3.3 and 3.4, but for a chance of `failure`.

    With it `published_bound` is corollary 3.5 or 3.6. The number of sets of up to d of m + 1
    columns is taken as it is, where the printed m^d is smaller.
    """
    _checked(features, order, 1.0, 0.0)
    sets = sum(math.comb(features + 1, size) for size in range(1, order + 1))
    # sigma = 2 sqrt(|Q| ln(1.25 / delta)) / epsilon, as one row moves two counts of each table
    sigma = 2 * math.sqrt(max(sets, features**order) * math.log(1.25 / delta)) / epsilon
    chance = math.log(2 / failure) + order * math.log((features + 1) * largest_domain)
    return 2 * largest_domain**order * math.sqrt(2 * chance) * sigma / rows


@dataclass(frozen=True, eq=False)
class Chain:
    """4 P + 2 M, and the polynomial that makes it least."""

    bound: float
    polynomial: LossPolynomial
    moments: float  # M


def sharper_bound(
    loss: MarginLoss, distance: float, *, features: int, order: int, norm: float
) -> Chain:
    """4 P + 2 M with M = (nu / n) sum_{k >= 1} |a_k| B^k, by the degree that makes it least.

    Marginals of `order` columns, the label among them, determine odd powers up to order - 1 and
    even ones up to order.

    >>> from counterpoise.analysis.margin_losses import LOSSES
    >>> found = sharper_bound(LOSSES["logistic"], 0.01, features=8, order=3, norm=8**-0.5)
    >>> round(found.bound, 3), found.polynomial.degree
    (0.015, 2)
    """
    order = _checked(features, order, norm, distance)
    reach = norm * math.sqrt(features)
    found = []
    for degree in range(1, min(order - order % 2, MOST_DEGREE) + 1):
        polynomial = minimax(loss, degree, reach)
        powers = np.arange(1, degree + 1)
        moments = distance * float(np.sum(np.abs(polynomial.coefficients[1:]) * reach**powers))
        found.append(Chain(4 * polynomial.error + 2 * moments, polynomial, moments))
    return min(found, key=lambda each: each.bound)


@dataclass(frozen=True)
class LowerBound:
    """The parameters of theorem 4.1 for tables of n rows, as definition B.1 sets them.

    No synthesizer that sees only marginals of up to `order` columns, within 1 / n, has an excess
    risk below `excess` on every distribution over `features` signs, for this loss. `order` leaves
    out the constant c' of a theorem of Dagan and Feldman (2020), which nobody has computed, so it
    is known up to that factor.
    """

    rows: float
    margin: float  # gamma = 1 / ln(n)^3
    features: float  # m = 2 gamma^(-2 - 2 r / 5) = 2 ln(n)^7
    order: float  # d / c' = ln(n) / -ln(gamma)
    norm: float  # tau = 1 / sqrt(m)
    excess: float  # gamma / 16
    is_reached: bool  # whether n / ln(n)^2 >= 800 / gamma^2, and gamma and eta are small enough


def lower_bound(rows: float) -> LowerBound:
    """What theorem 4.1 says of tables with so many rows.

    >>> found = lower_bound(1e6)
    >>> f"{found.excess:.1e}", f"{found.features:.0e}", found.is_reached
    ('2.4e-05', '2e+08', False)
    """
    rows = real_number("rows", rows, "a number above 2", above=2)
    ratio, logarithm = 5 / 6, math.log(rows)
    # n = exp(gamma^(-2 r / 5)) with r = 5/6
    margin = logarithm ** (-5 / (2 * ratio))
    # The least that theorem B.3 allows; the printed exponent of m / 2 would make it less.
    features = 2 * margin ** (-2 - 2 * ratio / 5)
    is_small = margin < 2 ** (-1 / (1 - ratio)) and margin ** (1 - ratio) <= 0.25
    return LowerBound(
        rows=rows,
        margin=margin,
        features=features,
        order=logarithm / -math.log(margin) if margin < 1 else 0.0,
        norm=features**-0.5,
        excess=margin / 16,
        is_reached=is_small and rows / logarithm**2 >= 800 / margin**2,
    )


def _checked(features: int, order: int, norm: float, distance: float) -> int:
    whole_number("features", features)
    real_number("norm", norm, "a positive number", above=0)
    real_number("distance", distance, "a number from 0", above=0, inclusive=True)
    return whole_number("order", order, 2)
