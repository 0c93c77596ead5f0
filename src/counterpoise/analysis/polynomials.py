"""Polynomials close to a loss on an interval: Bernstein's, iterated, and the best there is.

What marginals of a few columns say of a loss they say of a polynomial: the mean of (y w.x)^k is a
sum over k columns. How far a polynomial is from the loss on [-reach, reach] is then a part of the
error. Bernstein's polynomial has a proven rate and is far from the best; adding the Bernstein
polynomial of what is left (Guan 2009) brings it closer; the best one, of least largest error, is
the solution of a linear program on a fine grid. Whatever the way, the error that is stated is that
of the very coefficients, from a grid and a bound on how far it may rise between two points of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial as Powers
from numpy.polynomial import chebyshev
from scipy.optimize import linprog

from counterpoise.analysis.margin_losses import MarginLoss
from counterpoise.arguments import real_number, whole_number

# Powers of more than this lose their places to rounding.
MOST_DEGREE = 16
# Points of the linear program, crowded at the ends as the extremes are; and of the error's grid.
_SOLVED_AT, _JUDGED_AT = 801, 20_001


@dataclass(frozen=True, eq=False)
class LossPolynomial:
    """sum_k a_k t^k on [-reach, reach], with how far it and its slope are from the loss there."""

    coefficients: np.ndarray  # a_0, ..., a_d
    reach: float
    error: float
    slope_error: float

    @property
    def degree(self) -> int:
        """The largest power."""
        return len(self.coefficients) - 1

    def __call__(self, margins: np.ndarray) -> np.ndarray:
        """Its value at each margin."""
        return np.asarray(Powers(self.coefficients)(margins))


def minimax(loss: MarginLoss, degree: int, reach: float) -> LossPolynomial:
    """The polynomial of this degree whose largest error on [-reach, reach] is the least.

    The linear program knows it to about a millionth of the loss's range, so that degrees which
    would do better than that are no use; the stated error is that of what it found.

    >>> from counterpoise.analysis.margin_losses import LOSSES
    >>> round(minimax(LOSSES["logistic"], 4, 5.0).error, 4)
    0.0202
    """
    degree, reach = _checked(degree, reach)
    places = np.cos(np.linspace(0, np.pi, _SOLVED_AT))
    basis, values = chebyshev.chebvander(places, degree), loss.value(reach * places)
    # minimise e with |basis c - values| <= e, in units of the loss's own range
    unit = max(float(np.ptp(values)), 1e-300)
    ones = np.ones((_SOLVED_AT, 1))
    solved = linprog(
        np.append(np.zeros(degree + 1), 1.0),
        A_ub=np.block([[basis, -ones], [-basis, -ones]]),
        b_ub=np.concatenate([values, -values]) / unit,
        bounds=[(None, None)] * (degree + 2),
        method="highs",
    )
    # Whatever the solver returns is a polynomial, and judged as one.
    powers = chebyshev.cheb2poly(unit * solved.x[:-1])
    coefficients = np.zeros(degree + 1)
    coefficients[: len(powers)] = powers / reach ** np.arange(len(powers))
    return _judged(loss, coefficients, reach)


def bernstein(loss: MarginLoss, degree: int, reach: float, iterations: int = 1) -> LossPolynomial:
    """Bernstein's polynomial on [-reach, reach], and those of what is left, so many in all.

    >>> from counterpoise.analysis.margin_losses import LOSSES
    >>> [round(bernstein(LOSSES["logistic"], 4, 5.0, times).error, 3) for times in (1, 4, 9)]
    [0.545, 0.1, 0.057]
    """
    degree, reach = _checked(degree, reach, least=1)
    iterations = whole_number("iterations", iterations)
    knots = np.arange(degree + 1) / degree
    values = loss.value(reach * (2 * knots - 1))
    rises = [math.comb(degree, place) for place in range(degree + 1)]
    basis = rises * knots[:, None] ** np.arange(degree + 1)
    basis *= (1 - knots[:, None]) ** np.arange(degree, -1, -1)
    # The next polynomial is that of the values at the knots less what there is already.
    taken, left = np.zeros(degree + 1), values
    for _ in range(iterations):
        taken = taken + left
        left = values - basis @ taken
    # sum_i v_i C(d, i) s^i (1 - s)^(d - i) with s = (t / reach + 1) / 2
    rising, falling = Powers([0.5, 0.5 / reach]), Powers([0.5, -0.5 / reach])
    coefficients = np.zeros(degree + 1)
    for place, (value, rise) in enumerate(zip(taken, rises, strict=True)):
        made = value * rise * rising**place * falling ** (degree - place)
        coefficients[: len(made.coef)] += np.asarray(made.coef, dtype=float)
    return _judged(loss, coefficients, reach)


def _judged(loss: MarginLoss, coefficients: np.ndarray, reach: float) -> LossPolynomial:
    """A polynomial with its errors, which hold between the points of the grid too."""
    margins = np.linspace(-reach, reach, _JUDGED_AT)
    made = Powers(coefficients)
    errors = np.abs(made(margins) - loss.value(margins))
    slopes = np.abs(made.deriv()(margins) - loss.slope(margins))
    # |e''| <= |loss''| + sum_k k (k - 1) |a_k| reach^(k - 2); where |e| is largest within the
    # interval its slope is zero, so it is at most |e''| h^2 / 8 above the nearest point.
    powers = np.arange(len(coefficients))
    terms = powers * (powers - 1) * np.abs(coefficients) * reach ** np.maximum(powers - 2, 0)
    bend, step = loss.most_bend + float(terms.sum()), 2 * reach / (_JUDGED_AT - 1)
    rounding = 1e-13 * float(np.sum(np.abs(coefficients) * reach**powers))
    return LossPolynomial(
        coefficients,
        reach,
        float(errors.max()) + bend * step**2 / 8 + rounding,
        float(slopes.max()) + bend * step / 2 + rounding,
    )


def _checked(degree: int, reach: float, least: int = 0) -> tuple[int, float]:
    degree = whole_number("degree", degree, least, MOST_DEGREE)
    return degree, real_number("reach", reach, "a positive number", above=0)
