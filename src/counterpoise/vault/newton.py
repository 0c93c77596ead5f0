"""Newton's method for smooth convex functions, with a step length that never fails.

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
and the point is returned like any other. There is no error, no warning and no other answer on
either way out, so how the search ended tells nobody anything about the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_NEAR = 0.25
_STEPS_WHEN_NEAR = 40

Derivatives = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def newton(
    derivatives: Derivatives, start: np.ndarray, steepening: float, gradient_norm: float
) -> np.ndarray:
    """A point where the gradient is no longer than `gradient_norm`, or as short as rounding allows.

    `derivatives` gives the gradient and the Hessian; `steepening` is M.

    >>> def softplus_and_square(b):
    ...     s = 1 / (1 + np.exp(-b))
    ...     return s + b, np.diag(s * (1 - s) + 1)
    >>> newton(softplus_and_square, np.array([50.0]), 1.0, 1e-12).round(6)
    array([-0.401058])
    """
    point = np.array(start, dtype=float)
    steps_when_near = 0
    while True:
        gradient, hessian = derivatives(point)
        if float(np.linalg.norm(gradient)) <= gradient_norm or steps_when_near >= _STEPS_WHEN_NEAR:
            return point
        direction = np.linalg.solve(hessian, gradient)
        # t = log(1 + d) / d with d = M norm(n)
        reach = steepening * float(np.linalg.norm(direction))
        steps_when_near = steps_when_near + 1 if reach < _NEAR else 0
        point = point - (math.log1p(reach) / reach if reach > 0 else 1.0) * direction
