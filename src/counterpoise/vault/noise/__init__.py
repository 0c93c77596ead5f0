"""The one source of privacy noise: exact true value in, noised value out.

`Noise` is what the vault's queries draw from. Its bits come from the operating system unless a
seed is given, and then nothing it makes is private. [PRIVACY: ground rule 5]
"""

import numpy as np

from counterpoise.vault.noise.cells import RepeatedGaussian
from counterpoise.vault.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from counterpoise.vault.noise.grid import Grid, add_l2_laplace
from counterpoise.vault.noise.integers import add_gaussian, add_laplace
from counterpoise.vault.noise.limits import check_scale
from counterpoise.vault.noise.sampling import poisson_sample
from counterpoise.vault.noise.selection import choose

__all__ = ["Grid", "Noise", "check_scale"]


class Noise:
    """Draws privacy noise; `private` is False when the bits come from a seed.

    >>> Noise(seed=1).gaussian(np.array([10, 20, 30]), scale=2.0)
    array([10, 23, 28])
    """

    def __init__(self, seed: int | None = None):
        self._entropy: Entropy = SystemEntropy() if seed is None else SeededEntropy(seed)
        self._repeated: dict[float, RepeatedGaussian] = {}

    @property
    def private(self) -> bool:
        """Whether the bits come from the operating system."""
        return self._entropy.private

    def gaussian(self, values: np.ndarray, scale: float) -> np.ndarray:
        """Integers plus discrete Gaussian noise."""
        return add_gaussian(values, scale, self._entropy)

    def repeated_gaussian(self, values: np.ndarray, scale: float) -> np.ndarray:
        """Integers plus discrete Gaussian noise of a scale from 2^12 to 2^23, quick when repeated.

        The first draw of a scale takes some hundredths of a second to prepare.
        """
        if scale not in self._repeated:
            self._repeated[scale] = RepeatedGaussian(scale, self._entropy)
        return values + self._repeated[scale].draw(len(values))

    def sample(self, rows: int, rate: float) -> np.ndarray:
        """The places of a Poisson sample of so many rows."""
        return poisson_sample(rows, rate, self._entropy)

    def uniforms(self, count: int) -> np.ndarray:
        """Numbers from 0 to below 1: for choices that are made behind the boundary, not noise."""
        return (self._entropy.words(count) >> np.uint64(11)) * 2.0**-53

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        """Integers plus discrete Laplace noise."""
        return add_laplace(values, scale, self._entropy)

    def l2_laplace(self, points: np.ndarray, scale: float) -> np.ndarray:
        """Integer grid points plus L2-Laplace noise, rounded to the grid."""
        return add_l2_laplace(points, scale, self._entropy)

    def choose(self, scores: np.ndarray, rate: float) -> int:
        """An index with probability proportional to exp(rate * score), of integer scores."""
        return choose(scores, rate, self._entropy)
