"""Discrete Gaussian noise of a large scale, drawn many times from one law: exact, and quick.

The integers are cut into cells of m = 2^w neighbours, about a hundred cells a deviation. Within a
cell the law is nearly flat, so most of it is uniform: cell c has n_c of 65,536 tickets, as many as
its least probable integer allows, n_c <= 65,536 m min p. A ticket of 16 bits and an offset of 16
bits make a draw, and that is all for about 98 draws in 100. The remaining tickets stand for what
is left of the law,

    r(x) = p(x) - n_c / (65,536 m) >= 0,

which is drawn from by rejection: a cell by whole-numbered weights that exceed what is left in it,
an offset, and a uniform number to compare with the ratio. Where floating point does not decide the
comparison, the same number is continued with more bits, until it does. Beyond the last cell the
tail is drawn in arbitrary precision. So the law is exactly p(x) proportional to
exp(-x^2 / (2 s^2)), with nothing to charge for. [Canonne, Kamath and Steinke 2020 for the law]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from mpmath import mp

from counterpoise.errors import BudgetError
from counterpoise.vault.noise.entropy import Entropy, longer

# The scales that cells of at most 2^16 integers serve, with 64 to 128 cells a deviation.
LEAST_SCALE, LARGEST_SCALE = 2.0**12, 2.0**23

_TICKETS = 1 << 16

# How many deviations the cells reach: the tail beyond has a chance of 10^-17.
_REACH = 8.5

# What is left is weighed in units of 2^-60.
_WEIGHT_PLACES = 60

# Relative to p(x), by how much the ratio may be off in floating point, and more: the exponent is
# below 40, so that exp(x^2 / (2 s^2)) is good to 10^-14.
_ROUNDING = 1e-12

# The ticket of no cell: there are fewer than 2,200.
_LEFT_OVER = np.iinfo(np.int16).max

# What is left is drawn so many at a time, and kept until it is needed.
_AT_ONCE = 2000


@dataclass(frozen=True, eq=False)
class Cells:
    """The tickets, and the weights of what they leave; all of it follows from the scale."""

    scale: float
    offset_bits: int  # w: a cell has 2^w integers
    drawn: np.ndarray  # a ticket's cell, counted from zero; or `_LEFT_OVER`
    tickets: np.ndarray  # n_c of each cell, from the lowest cell up
    weights: np.ndarray  # a bound on what is left in each cell, and last on both tails

    @property
    def side(self) -> int:
        """How many cells there are below zero, and as many above."""
        return len(self.tickets) // 2


class RepeatedGaussian:
    """Draws of the discrete Gaussian of one scale, from 2^12 to 2^23, as many as one asks for.

    >>> from counterpoise.vault.noise.entropy import SeededEntropy
    >>> RepeatedGaussian(2.0**20, SeededEntropy(1)).draw(3)
    array([1351873,  -54759,  700500])
    """

    def __init__(self, scale: float, entropy: Entropy, reach: float = _REACH):
        if not LEAST_SCALE <= scale < LARGEST_SCALE:
            raise BudgetError("noise in cells is for scales from 2^12 to 2^23")
        self._cells, self._entropy = _cells(scale, reach), entropy
        self._kept = np.empty(0, dtype=np.int64)  # draws of what is left

    def draw(self, count: int) -> np.ndarray:
        """`count` integers."""
        offset_bits = self._cells.offset_bits
        halves = self._entropy.words((count + 1) // 2).view(np.uint16)
        tickets = self._cells.drawn.take(halves[:count])
        draws = tickets.astype(np.int64)
        draws <<= offset_bits
        draws += halves[count : 2 * count] >> np.uint16(16 - offset_bits)
        left_over = np.flatnonzero(tickets == _LEFT_OVER)
        if len(left_over) > len(self._kept):
            more = max(_AT_ONCE, len(left_over))
            drawn = _from_what_is_left(self._cells, more, self._entropy)
            self._kept = np.append(self._kept, drawn)
        draws[left_over] = self._kept[: len(left_over)]
        self._kept = self._kept[len(left_over) :]
        return draws


@lru_cache(maxsize=16)
def _cells(scale: float, reach: float) -> Cells:
    offset_bits = math.floor(math.log2(scale)) - 6
    width = 1 << offset_bits
    side = math.ceil(reach * scale / width)
    first = np.arange(-side, side) * width
    # m p(x) at both ends of a cell: the law falls from zero, so no other integer has less or more.
    ends = _dense(scale, offset_bits, np.array([first, first + width - 1]))
    tickets = np.floor(_TICKETS * ends.min(axis=0) * (1 - _ROUNDING)).astype(np.int64)
    # Rounded upwards by more than floating point can be off.
    most_left = ends.max(axis=0) * (1 + _ROUNDING) - tickets / _TICKETS
    weights = np.ceil(most_left * 2.0**_WEIGHT_PLACES * (1 + _ROUNDING)).astype(np.uint64)
    with mp.workprec(256):
        tails = _tail_weight(scale, side * width) * (1 + mp.ldexp(1, -128))
        weights = np.append(weights, np.uint64(int(mp.ceil(mp.ldexp(tails, _WEIGHT_PLACES)))))
    drawn = np.full(_TICKETS, _LEFT_OVER, dtype=np.int16)
    drawn[: tickets.sum()] = np.repeat(np.arange(-side, side), tickets)
    return Cells(scale, offset_bits, drawn, tickets, weights)


def _dense(scale: float, offset_bits: int, values: np.ndarray) -> np.ndarray:
    """m p(x), to a few parts in 10^14."""
    found: np.ndarray = np.exp(-0.5 * (values / scale) ** 2)
    found *= 2.0**offset_bits / (scale * math.sqrt(2 * math.pi))
    return found


def _probability(scale: float, value: int) -> mp.mpf:
    """p(x), in the precision at hand."""
    # The sum of exp(-x^2 / (2 s^2)) over all integers is s sqrt(2 pi) up to a factor of
    # 1 + 2 exp(-2 pi^2 s^2) (Poisson summation), which is one to a hundred million places.
    square = mp.mpf(scale) ** 2
    return mp.exp(-(mp.mpf(value) ** 2) / (2 * square)) / mp.sqrt(2 * mp.pi * square)


def _from_what_is_left(cells: Cells, count: int, entropy: Entropy) -> np.ndarray:
    """`count` draws of r, by rejection."""
    bounds = np.cumsum(cells.weights)
    total = int(bounds[-1])
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        # About half of the proposals are taken.
        proposals = 2 * (count - len(found)) + 16
        places = _below(total, proposals, entropy)
        chosen = np.searchsorted(bounds, places, side="right")
        offsets = entropy.words(proposals) >> np.uint64(64 - cells.offset_bits)
        values = ((chosen - cells.side) << cells.offset_bits) + offsets.astype(np.int64)
        found = np.append(found, _accepted(cells, chosen, values, entropy))
    return found[:count]


def _accepted(cells: Cells, chosen: np.ndarray, values: np.ndarray, entropy: Entropy) -> np.ndarray:
    """The proposals that are taken, in their order."""
    uniforms = entropy.words(len(values))
    in_tail = chosen == len(cells.tickets)
    chosen = np.where(in_tail, 0, chosen)
    # ratio = m r(x) 2^60 / weight, for m r(x) = m p(x) - n_c / 65,536
    dense = _dense(cells.scale, cells.offset_bits, values)
    per_weight = 2.0**_WEIGHT_PLACES / cells.weights[chosen]
    ratios = (dense - cells.tickets[chosen] / _TICKETS) * per_weight
    chances = uniforms * 2.0**-64
    is_taken = chances < ratios
    unsure = np.abs(chances - ratios) <= _ROUNDING * (1 + dense * per_weight)
    for place in np.flatnonzero(unsure | in_tail):
        uniform, value = int(uniforms[place]), int(values[place])
        if in_tail[place]:
            drawn = _tail_draw(cells, uniform, entropy)
            is_taken[place] = drawn is not None
            values[place] = 0 if drawn is None else drawn
        else:
            ratio = _precise_ratio(cells, int(chosen[place]), value)
            is_taken[place] = is_below(ratio, uniform, 64, entropy)
    return values[is_taken]


def _precise_ratio(cells: Cells, cell: int, value: int) -> Callable[[], mp.mpf]:
    def ratio() -> mp.mpf:
        flat = mp.mpf(int(cells.tickets[cell])) / _TICKETS
        left = mp.ldexp(_probability(cells.scale, value), cells.offset_bits) - flat
        return mp.ldexp(left, _WEIGHT_PLACES) / int(cells.weights[cell])

    return ratio


def _tail_weight(scale: float, start: int) -> mp.mpf:
    """A bound on both tails: p(start) g^j for j >= 0, twice, with g = exp(-start / s^2)."""
    decay = mp.mpf(start) / mp.mpf(scale) ** 2
    return 2 * _probability(scale, start) / -mp.expm1(-decay)


def _tail_draw(cells: Cells, uniform: int, entropy: Entropy) -> int | None:
    """A draw from beyond the last cells, or None where the proposal is not taken.

    With x = start + j, p(x) = p(start) g^j exp(-j^2 / (2 s^2)).
    """
    scale, start = cells.scale, cells.side << cells.offset_bits
    weight = int(cells.weights[-1])

    def rounded_up() -> mp.mpf:
        return mp.ldexp(_tail_weight(scale, start), _WEIGHT_PLACES) / weight

    if not is_below(rounded_up, uniform, 64, entropy):
        return None
    beyond = _geometric(lambda: mp.mpf(start) / mp.mpf(scale) ** 2, entropy)
    is_negative = longer(entropy, 64) & 1
    if is_negative and beyond == 0:
        return None  # the lowest cell begins at -start

    def falling() -> mp.mpf:
        return mp.exp(-(mp.mpf(beyond) ** 2) / (2 * mp.mpf(scale) ** 2))

    if not is_below(falling, longer(entropy, 64), 64, entropy):
        return None
    return -start - beyond if is_negative else start + beyond


def _geometric(decay: Callable[[], mp.mpf], entropy: Entropy) -> int:
    """j >= 0 with probability proportional to exp(-decay j): floor(-log(u) / decay)."""
    uniform, bits = longer(entropy, 128), 128
    while True:
        with mp.workprec(bits + 64):
            if uniform > 1:
                rate = decay()
                # One unit more than the uniform's own interval is for rounding.
                high = mp.floor(-mp.log(mp.ldexp(uniform - 1, -bits)) / rate)
                low = mp.floor(-mp.log(mp.ldexp(uniform + 2, -bits)) / rate)
                if low == high:
                    return int(low)
        uniform, bits = uniform << 64 | longer(entropy, 64), bits + 64


def is_below(ratio: Callable[[], mp.mpf], uniform: int, bits: int, entropy: Entropy) -> bool:
    """Whether a uniform number in [0, 1), known to `bits` bits, is below a ratio."""
    while True:
        with mp.workprec(bits + 128):
            boundary = int(mp.floor(mp.ldexp(ratio(), bits)))
        if abs(uniform - boundary) > 1:
            return uniform < boundary
        uniform, bits = uniform << 64 | longer(entropy, 64), bits + 64


def _below(total: int, count: int, entropy: Entropy) -> np.ndarray:
    """`count` uniform whole numbers below `total`."""
    spare = np.uint64(64 - total.bit_length())
    found = np.empty(0, dtype=np.uint64)
    while len(found) < count:
        # At least half of all numbers of that many bits are below it.
        tried = entropy.words(2 * (count - len(found)) + 8) >> spare
        found = np.append(found, tried[tried < total])
    return found[:count]
