"""The exponential mechanism, exact: one index, with probability proportional to exp(score).

A uniform number is looked up in the cumulative weights in floating point. Where the answer is
within rounding of a boundary, the same number is continued with more bits and looked up in
weights of that precision, so the law is the exact one. [McSherry and Talwar 2007]
"""

import math

import numpy as np
from mpmath import mp

from counterpoise.errors import BudgetError
from counterpoise.vault.noise.entropy import Entropy, longer

# Relative to the total weight. Rounding in 700 * 2^-52 (the exponent), numpy's exp and a sum of a
# million terms stays below a thousandth of it.
_ROUNDING = 1e-8


def choose(scores: np.ndarray, rate: float, entropy: Entropy) -> int:
    """An index of the integer `scores`, with probability proportional to exp(rate * score)."""
    if not (math.isfinite(rate) and rate > 0):
        raise BudgetError("the rate of a choice has to be a positive number")
    scores = np.asarray(scores, dtype=np.int64)
    below_best = scores - scores.max()
    weights = np.exp(rate * below_best)
    cumulative = np.cumsum(weights)
    total = float(cumulative[-1])
    uniform = longer(entropy, 64)
    target = uniform / 2**64 * total
    place = int(np.searchsorted(cumulative, target, side="right"))
    nearest = np.min(np.abs(cumulative[:-1] - target), initial=math.inf)
    edge = min(target, total - target)
    if min(nearest, edge) > _ROUNDING * total:
        return place
    return _choose_precisely(below_best, rate, uniform, entropy)


def _choose_precisely(below_best: np.ndarray, rate: float, uniform: int, entropy: Entropy) -> int:
    bits = 64
    while True:
        uniform, bits = uniform << 128 | longer(entropy, 128), bits + 128
        with mp.workprec(bits + 64):
            exponents = mp.mpf(rate)
            running, boundaries = mp.mpf(0), []
            for score in below_best.tolist():
                running += mp.exp(exponents * score)
                boundaries.append(running)
            places = [int(mp.floor(mp.ldexp(value / running, bits))) for value in boundaries[:-1]]
        if all(abs(uniform - place) > 1 for place in places):
            return sum(place < uniform for place in places)
