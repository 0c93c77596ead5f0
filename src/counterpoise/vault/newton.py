"""Newton's method for smooth convex functions, with a step length that never fails.

A function whose third derivative is bounded by its second,
|D3 J(b)[u, u, v]| <= M norm(v) D2 J(b)[u, u], decreases along the Newton direction n by at least
(n' H n) ((1 + d) log(1 + d) - d) / d^2 when the step length is log(1 + d) / d with d = M norm(n)
(Sun and Tran-Dinh 2019, generalised self-concordance of order two). There is nothing to search
for and nothing to tune. If J is also lambda-strongly convex, n' H n >= lambda (d / M)^2, so a
step decreases J by at least (lambda / M^2) ((1 + d) log(1 + d) - d). J is bounded below: d goes
to zero, the steps become Newton's own and the gradient vanishes quadratically. The method
therefore reaches any gradient norm above rounding in finitely many steps, whatever the data, and
has no way of failing that could tell anybody something about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Derivatives = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def newton(
    derivatives: Derivatives, start: np.ndarray, steepening: float, gradient_norm: float
) -> np.ndarray:
    """A point where the gradient is no longer than `gradient_norm`.

    `derivatives` gives the gradient and the Hessian; `steepening` is M.

    >>> def softplus_and_square(b):
    ...     s = 1 / (1 + np.exp(-b))
    ...     return s + b, np.diag(s * (1 - s) + 1)
    >>> newton(softplus_and_square, np.array([50.0]), 1.0, 1e-12).round(6)
    array([-0.401058])
    """
    point = np.array(start, dtype=float)
    while True:
        gradient, hessian = derivatives(point)
        if float(np.linalg.norm(gradient)) <= gradient_norm:
            return point
        direction = np.linalg.solve(hessian, gradient)
        # t = log(1 + d) / d with d = M norm(n)
        reach = steepening * float(np.linalg.norm(direction))
        point = point - math.log1p(reach) / reach * direction
