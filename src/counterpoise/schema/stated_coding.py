"""What a curator may state of the coding of numbers: a scale, values that many rows have, a step.

None of it changes what a value means, and all of it is public. `scale` says where cells are to be
narrow: "log" has cells of equal ratio throughout, "linear" of equal width; unstated, fine cells are
of both sorts, and bins of equal width. `atoms` are values of the column that get fine cells of
their own whatever a noisy count says. `step` is what all values of a continuous column are
multiples of, such as a cent, so that what is released are multiples too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.schema.bins import bin_codes

if TYPE_CHECKING:
    from counterpoise.schema.column import Column

# Cells of equal ratio reach down to this part of the farther bound, where zero is between them.
NEAREST_TO_ZERO = 1e-6
# A bound that is nearer to zero than this part of the other is next to nothing, and not so exact.
NEXT_TO_NOTHING = 1e-30


def nearest_to_zero(low: float, high: float, whole: bool) -> float:
    """The smallest distance from zero of cells of equal ratio between two bounds."""
    farthest = max(abs(low), abs(high))
    if low > 0 or high < 0:
        return max(min(abs(low), abs(high)), farthest * NEXT_TO_NOTHING)
    return 1.0 if whole else farthest * NEAREST_TO_ZERO


@lru_cache(maxsize=4096)
def ratio_edges(kind: str, low: Any, high: Any, count: int) -> tuple[Any, ...]:
    """Edges of about `count` bins of equal ratio, from the minimum to the maximum.

    Where zero lies between the bounds it is in a bin of what is next to nothing; of integers, that
    is zero alone.

    >>> ratio_edges("continuous", 1.0, 1000.0, 3)
    (1.0, 10.0, 100.0, 1000.0)
    >>> ratio_edges("integer", 0, 1000, 4)
    (0, 1, 10, 100, 1000)
    """
    whole = kind != "continuous"
    nearest = nearest_to_zero(low, high, whole)
    has_zero = low <= 0 <= high
    # One side, or both with one ratio: as many octaves as each has, of all that there are.
    reach = {-1: -low, 1: high}
    octaves = {
        sign: math.log2(far / nearest) for sign, far in reach.items() if far > nearest and far > 0
    }
    bins = max(1, count - has_zero)
    found: set[float] = set()
    for sign, length in octaves.items():
        own = max(1, round(bins * length / sum(octaves.values())))
        # Without zero, the nearest is a bound.
        steps = range(0 if has_zero else 1, own)
        places = [nearest * 2 ** (length * step / own) for step in steps]
        # Rounded as people write numbers, where that is what was meant.
        near = [float(f"{place:.12g}") for place in places]
        if whole:
            found |= {sign * math.ceil(place) + (sign < 0) for place in near}
        else:
            found |= {sign * place for place in near}
    inner = sorted(edge for edge in found if low < edge < high)
    return (low, *inner, high)


def on_step(column: Column, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Values as multiples of the column's step, of the same codes where a code has a multiple."""
    assert column.step is not None
    step = Fraction(str(column.step))
    places = values / column.step
    found = values.copy()
    open_still = np.ones(len(values), dtype=bool)
    for way in (np.rint, np.floor, np.ceil):
        # Whole numbers over a whole number: the float that is nearest to the decimal.
        multiples = way(places) * step.numerator / step.denominator
        within = (multiples >= column.low) & (multiples <= column.high)
        fits = open_still & within
        fits[fits] = bin_codes(column, multiples[fits]) == codes[fits]
        found[fits] = multiples[fits]
        open_still &= ~fits
    return found
