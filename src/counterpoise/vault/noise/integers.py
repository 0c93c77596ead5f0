"""Discrete Gaussian and discrete Laplace noise on integers, exact.

Small vectors go through OpenDP's samplers. For large ones a draw of those (11 microseconds)
is replaced by inversion of a table: a uniform number is looked up in the cumulative
distribution, both to 64 bits. Where 64 bits do not decide between two integers, because the
number is within rounding of a boundary or in a tail beyond the table, the *same* number is
extended by fresh bits and looked up in a finer, wider table, until it does. The law sampled is
therefore the exact one, with no statistical distance to charge. [Canonne, Kamath and Steinke
2020 for the laws and their privacy]
"""

import bisect
import math
from functools import lru_cache
from typing import Literal

import numpy as np
from mpmath import mp

from counterpoise.vault.noise.entropy import Entropy, longer
from counterpoise.vault.noise.limits import check_scale

Law = Literal["gaussian", "laplace"]

# Building a table takes about a third of a microsecond an entry, and it has about 20 (Gaussian)
# or 100 (Laplace) entries a unit of scale.
_LARGEST_TABLE_SCALE = {"gaussian": 2.0**16, "laplace": 2.0**13}
_FEWEST_FOR_A_TABLE = 500

_GUARD_BITS = 128


def add_gaussian(values: np.ndarray, scale: float, entropy: Entropy) -> np.ndarray:
    """`values` plus discrete Gaussian noise: P(z) proportional to exp(-z^2 / (2 scale^2))."""
    return _add_noise("gaussian", values, scale, entropy)


def add_laplace(values: np.ndarray, scale: float, entropy: Entropy) -> np.ndarray:
    """`values` plus discrete Laplace noise: P(z) proportional to exp(-|z| / scale)."""
    return _add_noise("laplace", values, scale, entropy)


def _add_noise(law: Law, values: np.ndarray, scale: float, entropy: Entropy) -> np.ndarray:
    values = np.asarray(values, dtype=np.int64)
    check_scale(scale)
    has_table = scale <= _LARGEST_TABLE_SCALE[law]
    worth_a_table = values.size >= max(_FEWEST_FOR_A_TABLE, scale)
    if has_table and (worth_a_table or not entropy.private):
        noise = sample_by_table(law, scale, values.size, entropy)
        return values + noise.reshape(values.shape)
    if entropy.private:
        return _through_opendp(law, values.ravel(), scale).reshape(values.shape)
    return values + _rounded_floats(law, values.shape, scale, entropy)


def sample_by_table(law: Law, scale: float, count: int, entropy: Entropy) -> np.ndarray:
    """`count` draws of the law by table inversion; exact for any scale, fast for small ones."""
    table, largest = _table64(law, scale)
    uniforms = entropy.words(count)
    # The outcome is the number of boundaries at or below the uniform. It is certain unless a
    # boundary, known to one unit of 2^-64, touches the uniform's own interval of one unit.
    places = np.searchsorted(table, uniforms, side="right")
    below = table[np.maximum(places - 1, 0)]
    above = table[np.minimum(places, len(table) - 1)]
    one = np.uint64(1)
    unsure = (places == 0) | (uniforms - below <= one)
    unsure |= (places == len(table)) | (above - uniforms <= one)
    draws = places - largest
    for index in np.flatnonzero(unsure):
        draws[index] = _refine(law, scale, int(uniforms[index]), entropy)
    return draws


def _refine(law: Law, scale: float, uniform: int, entropy: Entropy) -> int:
    """The draw that belongs to a 64-bit uniform number, with as many more bits as it takes."""
    bits = 64
    while True:
        uniform, bits = uniform << 64 | longer(entropy, 64), bits + 64
        boundaries, largest = _boundaries(law, scale, bits)
        place = bisect.bisect_right(boundaries, uniform)
        after = place == 0 or uniform - boundaries[place - 1] <= 1
        before = place == len(boundaries) or boundaries[place] - uniform <= 1
        if not (after or before):
            return place - largest


@lru_cache(maxsize=16)
def _table64(law: Law, scale: float) -> tuple[np.ndarray, int]:
    boundaries, largest = _boundaries(law, scale, 64)
    return np.array([min(value, 2**64 - 1) for value in boundaries], dtype=np.uint64), largest


def _boundaries(law: Law, scale: float, bits: int) -> tuple[list[int], int]:
    """P(Z <= k) for k = -largest .. largest-1 in units of 2^-bits, each to within one unit."""
    # The tail left out is below 2^-(bits + 8) of the mass, so it moves a boundary by less than
    # a hundredth of a unit. P(|Z| > t) <= 2 exp(-t^2/(2 s^2)) and <= 2 exp(-t/b) up to the
    # rounding of t, which the last term covers.
    tail = (bits + 10) * math.log(2)
    reach = scale * math.sqrt(2 * tail) if law == "gaussian" else scale * tail
    largest = math.ceil(reach) + 2
    # Fixed point: weight(0) = 1, weight(k+1) = weight(k) * ratio(k), ratio(k+1) = ratio(k) * step.
    # Truncation adds at most (k + 1)^2 units of 2^-places to weight(k): the guard bits take it.
    places = bits + _GUARD_BITS
    with mp.workprec(places + 64):
        if law == "gaussian":
            exponent = 1 / (2 * mp.mpf(scale) ** 2)
            first, step = mp.exp(-exponent), mp.exp(-2 * exponent)
        else:
            first, step = mp.exp(-1 / mp.mpf(scale)), mp.mpf(1)
        ratio = int(mp.floor(mp.ldexp(first, places)))
        step_fixed = int(mp.floor(mp.ldexp(step, places)))
    weights = [1 << places]
    for _ in range(largest):
        weights.append(weights[-1] * ratio >> places)
        ratio = ratio * step_fixed >> places
    total = 2 * sum(weights) - weights[0]
    boundaries, running = [], 0
    for k in range(-largest, largest):
        running += weights[abs(k)]
        boundaries.append((running << bits) // total)
    return boundaries, largest


def _through_opendp(law: Law, values: np.ndarray, scale: float) -> np.ndarray:
    if values.size == 0:
        return values
    return np.array(_opendp_measurement(law, scale)(values.tolist()), dtype=np.int64)


@lru_cache(maxsize=64)
def _opendp_measurement(law: Law, scale: float):  # type: ignore[no-untyped-def]
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    # OpenDP gates what it has not finished vetting; the integer samplers are "contrib".
    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if law == "gaussian":
        return make_gaussian(domain, l2_distance(T="f64"), scale=scale)
    return make_laplace(domain, l1_distance(T="i64"), scale=scale)


def _rounded_floats(law: Law, shape: tuple[int, ...], scale: float, entropy: Entropy) -> np.ndarray:
    """Seeded noise of a large scale: rounding is invisible, and privacy is forfeited anyway."""
    generator = np.random.default_rng(entropy.words(4))
    draw = generator.normal if law == "gaussian" else generator.laplace
    return np.rint(draw(scale=scale, size=shape)).astype(np.int64)
