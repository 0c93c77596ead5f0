"""The noise on counts: which law, how much, and what it is charged, from a share and a D.

Discrete Gaussian of scale D2 / sqrt(2 rho) where the budget has a delta, discrete Laplace of scale
D1 / epsilon where it is pure. [PRIVACY: mechanisms]
"""

import math
from dataclasses import dataclass

import numpy as np

from counterpoise.vault.budget import Budget, Share
from counterpoise.vault.events import DiscreteLaplaceDpEvent, DpEvent, GaussianDpEvent
from counterpoise.vault.noise import Noise, check_scale

# The deviation of noise that hardly ever moves a count is given as this: its square is still a
# number to divide by, and no count is known better than to a ten-thousandth.
LEAST_DEVIATION = 1e-4


@dataclass(frozen=True)
class CountNoise:
    """A law of integer noise; all of it public."""

    law: str  # "gaussian" or "laplace"
    scale: float
    event: DpEvent

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        if self.law == "gaussian":
            return max(self.scale, LEAST_DEVIATION)
        # P(z) proportional to q^|z| has variance 2 q / (1 - q)^2.
        ratio = math.exp(-1 / self.scale)
        return max(math.sqrt(2 * ratio) / -math.expm1(-1 / self.scale), LEAST_DEVIATION)

    def exceeded_by_chance(self, draws: int, chance: float, terms: int = 1) -> float:
        """A height that none of `draws` sums of `terms` exceeds, but for about `chance`."""
        tail = math.log(draws / chance)
        if self.law == "gaussian":
            return self.scale * math.sqrt(2 * terms * tail)
        if terms == 1:
            return self.scale * tail
        # Chernoff: P(sum > t) <= exp(-u t / b) (1 - u^2)^-terms for 0 < u < 1, as the moments of
        # the discrete law are at most those of the continuous one, 1 / (1 - u^2).
        tilts = np.linspace(0.01, 0.99, 99)
        heights = (tail - terms * np.log1p(-(tilts**2))) / tilts
        return self.scale * float(heights.min())

    def add(self, noise: Noise, values: np.ndarray) -> np.ndarray:
        """Exact integers in, noised integers out."""
        draw = noise.gaussian if self.law == "gaussian" else noise.laplace
        return draw(values, self.scale)


def count_noise(budget: Budget, share: Share, tables: int = 1) -> CountNoise:
    """The noise for `tables` contingency tables asked for together."""
    l2_sensitivity, l1_sensitivity = budget.count_sensitivity(tables)
    if share.pure:
        scale = share.laplace_scale(l1_sensitivity)
        check_scale(scale)
        return CountNoise("laplace", scale, DiscreteLaplaceDpEvent(1 / scale, l1_sensitivity))
    scale = share.gaussian_scale(l2_sensitivity)
    check_scale(scale)
    return CountNoise("gaussian", scale, GaussianDpEvent(scale / l2_sensitivity))
