"""Losses of a linear classifier, as functions of the margin t = y (w.x): logistic, squared, hinge.

A certificate needs of a loss what bounds it between two tables: how steep it is, how far it bends
at most (so that errors on a grid are errors everywhere), and how far at least (so that a model far
from the best one is known to be worse). The hinge has a corner, which no polynomial follows; here
it is rounded by a parabola within half a unit of the corner, which moves it by at most 1/8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

# Half the width of the parabola that rounds the corner of the hinge.
ROUNDED = 0.5


@dataclass(frozen=True)
class MarginLoss:
    """log(1 + exp(-t)): the logistic loss, and what the other two share with it.

    >>> LOSSES["logistic"].value(np.zeros(1)).round(4), LOSSES["logistic"].lipschitz(1.0)
    (array([0.6931]), 1.0)
    """

    name: str = "logistic"
    most_bend: float = 0.25  # a bound on the second derivative

    def value(self, margins: np.ndarray) -> np.ndarray:
        """The loss at each margin."""
        return np.logaddexp(0.0, -margins)

    def slope(self, margins: np.ndarray) -> np.ndarray:
        """Its first derivative."""
        found: np.ndarray = -expit(-margins)
        return found

    def bend(self, margins: np.ndarray) -> np.ndarray:
        """Its second derivative."""
        found: np.ndarray = expit(margins) * expit(-margins)
        return found

    def lipschitz(self, reach: float) -> float:
        """How steep it is at most for margins within [-reach, reach]."""
        return 1.0

    def least_bend(self, reach: np.ndarray) -> np.ndarray:
        """The least second derivative for margins within [-reach, reach]."""
        return self.bend(reach)


@dataclass(frozen=True)
class SquaredLoss(MarginLoss):
    """(1 - t)^2, a polynomial already."""

    name: str = "squared"
    most_bend: float = 2.0

    def value(self, margins: np.ndarray) -> np.ndarray:
        """The loss at each margin."""
        found: np.ndarray = (1 - margins) ** 2
        return found

    def slope(self, margins: np.ndarray) -> np.ndarray:
        """Its first derivative."""
        found: np.ndarray = -2 * (1 - margins)
        return found

    def bend(self, margins: np.ndarray) -> np.ndarray:
        """Its second derivative."""
        return np.full_like(margins, 2.0)

    def lipschitz(self, reach: float) -> float:
        """How steep it is at most for margins within [-reach, reach]."""
        return 2 * (1 + reach)


@dataclass(frozen=True)
class HingeLoss(MarginLoss):
    """max(0, 1 - t), its corner rounded."""

    name: str = "hinge"
    most_bend: float = 0.5 / ROUNDED

    def value(self, margins: np.ndarray) -> np.ndarray:
        """The loss at each margin."""
        short = 1 - margins
        rounded = (short + ROUNDED) ** 2 / (4 * ROUNDED)
        return np.where(np.abs(short) < ROUNDED, rounded, np.maximum(short, 0.0))

    def slope(self, margins: np.ndarray) -> np.ndarray:
        """Its first derivative."""
        found: np.ndarray = -np.clip((1 - margins + ROUNDED) / (2 * ROUNDED), 0.0, 1.0)
        return found

    def bend(self, margins: np.ndarray) -> np.ndarray:
        """Its second derivative."""
        return np.where(np.abs(1 - margins) < ROUNDED, self.most_bend, 0.0)

    def least_bend(self, reach: np.ndarray) -> np.ndarray:
        """None: margins that are large enough have no loss to bend."""
        return np.zeros_like(reach)


LOSSES: dict[str, MarginLoss] = {
    loss.name: loss for loss in (MarginLoss(), SquaredLoss(), HingeLoss())
}
