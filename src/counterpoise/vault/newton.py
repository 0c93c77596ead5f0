"""Newton's method for smooth convex functions, which ends near the minimum whatever the data.

A function whose third derivative is bounded by its second,
|D3 J(b)[u, u, v]| <= M norm(v) D2 J(b)[u, u], decreases along the Newton direction n by at least
(n' H n) ((1 + d) log(1 + d) - d) / d^2 when the step length is log(1 + d) / d with d = M norm(n)
(Sun and Tran-Dinh 2019, generalised self-concordance of order two). There is nothing to search
for and nothing to tune. If J is also lambda-strongly convex, n' H n >= lambda (d / M)^2, so a
step decreases J by at least (lambda / M^2) ((1 + d) log(1 + d) - d). J is bounded below: d goes
to zero, the steps become Newton's own and the gradient vanishes quadratically. The method
therefore reaches any gradient norm above rounding in finitely many steps, whatever the data.

A gradient norm below rounding is never reached, and a search for it would not end. While d is
below 1/4 a step shrinks the gradient, in the norm of the inverse Hessian, to at most
2 sqrt(1 + d) (1 - log(1 + d) / d) <= d of itself (from exp(-M r) H <= H' <= exp(M r) H at a
distance r). After forty such steps in a row it is 4^-40 of what it was: what is left is rounding,
and the point is returned like any other.

Finitely many steps can be many: two rows that are nearly alike and have different labels, times a
thousand million, take tens of thousands. After `_MOST_STEPS` the ellipsoid method goes on, whose
steps are counted in advance (Groetschel, Lovasz and Schrijver 1988, 3.2). The minimum is within
D = norm(gradient) / lambda of the start. Where the gradient is L-Lipschitz, every point with at
most e = g^2 / (2 L) left to gain has a gradient of norm at most g, and all points within g / L of
the minimum are such points. A cut through the centre of an ellipsoid in p dimensions leaves a
smaller one, by exp(-1 / (5 p)) in volume, with room for rounding, and keeps all points that are
no worse than the centre. So after 5 p^2 log(D L / g) cuts, some centre had at most e left to gain.
Minimisers as in `minimise` and `objective` have, for n rows, private and public, of norm R,
D <= slope R n / (m lambda), and L <= lambda + slope steepening R^2 n / m, because a loss bends by
no more than slope times steepening. With slope R^2 <= 1000 m lambda, steepening <= 1000 and
g >= 5e-7 slope R / m, as they are held to there, and n = 2^31, log(D L / g) is below 72.

There is no error, no warning and no other answer on any way out, so how the search ended tells
nobody anything about the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_NEAR = 0.25
_STEPS_WHEN_NEAR = 40

# Ordinary tables take three to twenty steps. The hardest of a million rows that we found, with
# slope R^2 / (m lambda) = 1, took two hundred.
_MOST_STEPS = 1000
# log(D L / g), at most
_LARGEST_RATIO = 72

Derivatives = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def newton(
    derivatives: Derivatives,
    start: np.ndarray,
    steepening: float,
    gradient_norm: float,
    convexity: float,
) -> np.ndarray:
    """A point where the gradient is no longer than `gradient_norm`, or as short as rounding allows.

    `derivatives` gives the gradient and the Hessian; `steepening` is M and `convexity` lambda.

    >>> def softplus_and_square(b):
    ...     s = 1 / (1 + np.exp(-b))
    ...     return s + b, np.diag(s * (1 - s) + 1)
    >>> newton(softplus_and_square, np.array([50.0]), 1.0, 1e-12, 1.0).round(6)
    array([-0.401058])
    """
    point = np.array(start, dtype=float)
    steps_when_near = 0
    for _ in range(_MOST_STEPS):
        gradient, hessian = derivatives(point)
        if float(np.linalg.norm(gradient)) <= gradient_norm or steps_when_near >= _STEPS_WHEN_NEAR:
            return point
        direction = np.linalg.solve(hessian, gradient)
        # t = log(1 + d) / d with d = M norm(n)
        reach = steepening * float(np.linalg.norm(direction))
        steps_when_near = steps_when_near + 1 if reach < _NEAR else 0
        point = point - (math.log1p(reach) / reach if reach > 0 else 1.0) * direction
    return _by_ellipsoids(derivatives, start, gradient_norm, convexity)


def _by_ellipsoids(
    derivatives: Derivatives, start: np.ndarray, gradient_norm: float, convexity: float
) -> np.ndarray:
    """Such a point again, after a number of steps that depends on the dimension alone."""
    size, centre = len(start), np.array(start, dtype=float)
    # The ellipsoid is centre + axes times the unit ball.
    axes = np.eye(size) * float(np.linalg.norm(derivatives(centre)[0])) / convexity
    # exp(-1 / (2 (p + 1))) is shrunk by, and exp(1 / (20 p)) of it given back for rounding.
    room = 1 + 0.05 / size**2
    across, along = size / math.sqrt(max(size**2 - 1, 1)), size / (size + 1)
    for _ in range(5 * size**2 * _LARGEST_RATIO):
        gradient = derivatives(centre)[0]
        if float(np.linalg.norm(gradient)) <= gradient_norm:
            break
        pull = axes.T @ gradient
        pull /= np.linalg.norm(pull)
        cut = axes @ pull
        centre = centre - cut / (size + 1)
        axes = room * (across * (axes - np.outer(cut, pull)) + along * np.outer(cut, pull))
    return centre
