"""The linear model of bounded norm with the least weighted risk, and how far it is from the least.

    minimise  L(w) = sum_i v_i loss(y_i w.x_i)  subject to  |w| <= tau,  weights v that add up to 1.

With a multiplier, L(w) + (mu/2) |w|^2, the norm of the minimiser falls as mu grows, so bisection
finds the mu at which it is tau; Newton's method with halved steps does the rest. Whatever it
returns, convexity bounds what is left: L(w) - min L <= grad.w + tau |grad|, the gap of Frank and
Wolfe, which a certificate adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterpoise.analysis.margin_losses import MarginLoss

_NEWTON_STEPS, _BISECTIONS = 60, 60
_ENOUGH = 1e-14  # what a step may still take from the objective without being worth it
# A pull that is hardly seen, so that a risk which is flat or falls for ever has its minimum.
_LEAST_PULL = 1e-7


@dataclass(frozen=True, eq=False)
class ConstrainedFit:
    """Coefficients, their risk, and a bound on how much less the risk could be."""

    coefficients: np.ndarray
    risk: float
    gap: float


def constrained_fit(
    rows: np.ndarray, labels: np.ndarray, weights: np.ndarray, loss: MarginLoss, norm: float
) -> ConstrainedFit:
    """The model of least risk with a norm of at most `norm`; `weights` add up to one.

    >>> from counterpoise.analysis.margin_losses import LOSSES
    >>> rows, labels = np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([1.0, -1.0])
    >>> fitted = constrained_fit(rows, labels, np.full(2, 0.5), LOSSES["logistic"], 1.0)
    >>> fitted.coefficients.round(4) + 0.0, fitted.gap < 1e-6
    (array([0., 1.]), True)
    """
    signed = rows * labels[:, None]
    start = np.zeros(rows.shape[1])
    least = _newton(signed, weights, loss, _LEAST_PULL, start)
    if np.linalg.norm(least) > norm:
        low, high = _LEAST_PULL, 1.0
        while np.linalg.norm(_newton(signed, weights, loss, high, start)) > norm:
            low, high = high, 4 * high
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            least = _newton(signed, weights, loss, middle, least)
            low, high = (middle, high) if np.linalg.norm(least) > norm else (low, middle)
            if abs(np.linalg.norm(least) - norm) < 1e-8 * norm:
                break
    length = float(np.linalg.norm(least))
    found = least * min(1.0, norm / length) if length > 0 else least
    margins = signed @ found
    gradient = signed.T @ (weights * loss.slope(margins))
    gap = float(gradient @ found + norm * np.linalg.norm(gradient))
    return ConstrainedFit(found, float(weights @ loss.value(margins)), max(gap, 0.0))


def _newton(
    signed: np.ndarray, weights: np.ndarray, loss: MarginLoss, multiplier: float, start: np.ndarray
) -> np.ndarray:
    """The minimiser of L(w) + (mu/2) |w|^2, nearly."""

    def objective(point: np.ndarray) -> float:
        return float(weights @ loss.value(signed @ point) + multiplier / 2 * point @ point)

    point, value = start, objective(start)
    for _ in range(_NEWTON_STEPS):
        margins = signed @ point
        gradient = signed.T @ (weights * loss.slope(margins)) + multiplier * point
        bend = (signed * (weights * loss.bend(margins))[:, None]).T @ signed
        bend[np.diag_indices_from(bend)] += multiplier
        step = np.linalg.solve(bend, gradient)
        if float(gradient @ step) < _ENOUGH:
            break
        length = 1.0
        while length > 1e-12:
            tried = point - length * step
            reached = objective(tried)
            if reached <= value - 1e-4 * length * float(gradient @ step):
                break
            length /= 2
        else:
            break
        point, value = tried, reached
    return point
