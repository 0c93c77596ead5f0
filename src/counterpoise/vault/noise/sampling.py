"""Poisson samples: each row by itself, with one probability, by the gaps between those taken.

The number G of rows passed over before the next one taken is geometric, P(G >= g) = (1 - q)^g. A
uniform number of 64 bits is looked up among these boundaries; where it is within rounding of one,
the *same* number is extended by fresh bits and looked up again, as `integers` does. Gaps beyond the
table are cut into stretches: after `longest` rows without one, the next row is as likely as ever.
So every row is taken with probability exactly q, independently of all others, and which ones were
taken is known to nobody, because the bits are the operating system's: that is what amplification
by sampling rests on. [PRIVACY: mechanisms]
"""

import bisect
import math
from functools import lru_cache

import numpy as np
from mpmath import mp

from counterpoise.vault.noise.entropy import Entropy, longer

_MOST_BOUNDARIES = 2**14
_GUARD_BITS = 128


def poisson_sample(rows: int, rate: float, entropy: Entropy) -> np.ndarray:
    """The places of the rows taken out of `rows`, each with probability `rate`, in order."""
    if rate == 1:
        return np.arange(rows)
    taken, start = [], 0
    while start < rows:
        left = (rows - start) * rate
        # Enough at once, as a rule; a gap more or less changes nothing.
        draws = math.ceil(left + 4 * math.sqrt(left)) + (rows - start) // _longest(rate) + 4
        gaps = geometric_gaps(rate, draws, entropy)
        is_taken = gaps < _longest(rate)
        ends = start + np.cumsum(gaps + is_taken)
        taken.append((ends - 1)[is_taken])
        start = int(ends[-1])
    found = np.concatenate(taken) if taken else np.empty(0, dtype=np.int64)
    return found[: np.searchsorted(found, rows)]


def geometric_gaps(rate: float, count: int, entropy: Entropy) -> np.ndarray:
    """`count` gaps, cut at the longest that the table has."""
    table = _table64(rate)
    uniforms = entropy.words(count)
    # The gap is the number of boundaries above the uniform. It is certain unless a boundary, known
    # to one unit of 2^-64, touches the uniform's own interval of one unit.
    places = np.searchsorted(table, uniforms, side="right")
    one = np.uint64(1)
    unsure = (places > 0) & (uniforms - table[np.maximum(places - 1, 0)] <= one)
    unsure |= (places < len(table)) & (table[np.minimum(places, len(table) - 1)] - uniforms <= one)
    gaps = len(table) - places
    for index in np.flatnonzero(unsure):
        gaps[index] = _refine(rate, int(uniforms[index]), entropy)
    return gaps


def _refine(rate: float, uniform: int, entropy: Entropy) -> int:
    """The gap that belongs to a 64-bit uniform number, with as many more bits as it takes."""
    bits = 64
    while True:
        uniform, bits = uniform << 64 | longer(entropy, 64), bits + 64
        boundaries = _boundaries(rate, bits)
        place = bisect.bisect_right(boundaries, uniform)
        after = place > 0 and uniform - boundaries[place - 1] <= 1
        before = place < len(boundaries) and boundaries[place] - uniform <= 1
        if not (after or before):
            return len(boundaries) - place


def _longest(rate: float) -> int:
    """Where gaps are cut: hardly ever one reaches it, and the table stays small."""
    return min(_MOST_BOUNDARIES, math.ceil(40 / rate))


@lru_cache(maxsize=16)
def _table64(rate: float) -> np.ndarray:
    return np.array(_boundaries(rate, 64), dtype=np.uint64)


def _boundaries(rate: float, bits: int) -> list[int]:
    """(1 - q)^g for g = longest .. 1, in units of 2^-bits, each to within one unit."""
    places = bits + _GUARD_BITS
    with mp.workprec(places + 64):
        passed = int(mp.floor(mp.ldexp(1 - mp.mpf(rate), places)))
    # Truncation takes at most a unit of 2^-places off a product: the guard bits take it.
    powers = [passed]
    for _ in range(_longest(rate) - 1):
        powers.append(powers[-1] * passed >> places)
    return [power >> _GUARD_BITS for power in reversed(powers)]
