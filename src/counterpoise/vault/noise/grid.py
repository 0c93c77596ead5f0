"""Real vectors on a binary grid, so that noise on them is noise on integers.

A real number is rounded to a multiple of a step, which is a power of two, before it is summed:
sums of grid points are exact, so the order of the rows leaves no trace in the last bits.
Rounding moves each coordinate by at most half a step, and that is added to the sensitivity.
L2-Laplace noise, density proportional to exp(-norm(z)/b), is drawn as radius times direction in
interval arithmetic and rounded to the grid; where an interval straddles two grid points, the
same draw is continued with more bits, so the law is that of the exact noise, rounded.
[PRIVACY: mechanisms]
"""

import math
from dataclasses import dataclass

import numpy as np
from mpmath import iv, mp

from counterpoise.errors import VaultError
from counterpoise.vault.noise.entropy import Entropy, longer
from counterpoise.vault.noise.limits import check_scale

# The step is this many binary places below the bound of a row: 2^-24 of it, so that 2^38 rows
# still add up in 64 bits, and the rounding costs about a ten-millionth of the sensitivity.
GRID_PLACES = 24

# Below these a step would not be a number of full precision any more; beyond them a sum over all
# rows there may be, or noise of the largest scale, would be infinite.
LEAST_BOUND, MOST_BOUND = 1e-300, 1e290

# So many steps from zero points are cut off: what noise adds to them stays within 64 bits.
_FARTHEST = 2.0**62


@dataclass(frozen=True)
class Grid:
    """Multiples of `step`, a power of two.

    >>> Grid.below(1.0).step == 2.0**-24
    True
    """

    step: float

    @classmethod
    def below(cls, bound: float) -> "Grid":
        """The grid for rows of norm at most `bound`."""
        if not LEAST_BOUND <= bound <= MOST_BOUND:
            raise VaultError(
                f"bound: expected a number from {LEAST_BOUND:g} to {MOST_BOUND:g}, not {bound:g}; "
                "state the features in another unit"
            )
        return cls(2.0 ** (math.floor(math.log2(bound)) - GRID_PLACES))

    def round(self, values: np.ndarray) -> np.ndarray:
        """The nearest grid points, as integer multiples of the step."""
        steps = np.clip(np.nan_to_num(np.asarray(values) / self.step), -_FARTHEST, _FARTHEST)
        return np.rint(steps).astype(np.int64)

    def rounding(self, columns: int) -> float:
        """The most by which rounding changes the L2 norm of a vector of that length."""
        return self.step / 2 * math.sqrt(columns)

    def values(self, points: np.ndarray) -> np.ndarray:
        """The real numbers that integer multiples of the step stand for."""
        return points * self.step


def add_l2_laplace(points: np.ndarray, scale: float, entropy: Entropy) -> np.ndarray:
    """Integer `points` plus L2-Laplace noise of `scale` (in steps), rounded to integers."""
    size = len(points)
    check_scale(scale, size)  # the radius is about `size` scales
    uniforms = [longer(entropy, 128) for _ in range(3 * size)]
    bits = 128
    while True:
        noise = _rounded_noise(uniforms, bits, size, scale)
        if noise is not None:
            return points + noise
        uniforms = [uniform << 64 | longer(entropy, 64) for uniform in uniforms]
        bits += 64


def _rounded_noise(uniforms: list[int], bits: int, size: int, scale: float) -> np.ndarray | None:
    """The noise that belongs to the uniforms, or None when their bits do not decide it."""
    saved = iv.prec
    iv.prec = bits + 32
    try:
        unit = mp.ldexp(1, -bits)
        known = [iv.mpf([value * unit, (value + 1) * unit]) for value in uniforms]
        if any(value.a <= 0 for value in known):
            return None
        # radius ~ Gamma(size, scale), the sum of `size` exponentials
        radius = -scale * sum((iv.log(value) for value in known[:size]), iv.mpf(0))
        # direction: a standard normal vector (Box and Muller) over its norm
        normals = [
            iv.sqrt(-2 * iv.log(first)) * iv.cos(2 * iv.pi * second)
            for first, second in zip(known[size : 2 * size], known[2 * size :], strict=True)
        ]
        length = iv.sqrt(sum((value * value for value in normals), iv.mpf(0)))
        if length.a <= 0:
            return None
        noise = []
        for value in normals:
            point = radius * value / length + iv.mpf(0.5)
            low, high = int(mp.floor(mp.mpf(point.a))), int(mp.floor(mp.mpf(point.b)))
            if low != high:
                return None
            noise.append(low)
        return np.array(noise, dtype=np.int64)
    finally:
        iv.prec = saved
