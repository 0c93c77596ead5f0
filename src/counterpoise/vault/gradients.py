"""Sums of clipped gradients to which each row adds a vector of its own, exactly.

A row's gradient at a layer is the outer product d (a, 1)^T of the layer's error and what it saw
(`networks`). Matrix products over many rows are where rounding would let one row leave a trace in
another's part, because the order of summation depends on how many there are. So every factor of
such a product is first put on a binary grid that the row, or the public parameters, alone decide,
with so few places that the product is exact in double precision, whatever the order:

- what a layer sees becomes U, whole numbers up to 2^p, times a power of two of the row's own;
- the parameters become multiples of a power of two, and so does what goes back through them;
- the clipped error becomes V = trunc(c d / unit), where c = min(1, C / norm) and norm^2 is the sum
  over layers of norm(d)^2 norm(U)^2.

The row adds the whole numbers V U^T. Cutting towards zero only shortens V, so the row's part in the
sum has a norm of at most C, but for the last places of c, which `LONGEST` covers. What is not a
number, or has no finite norm, adds nothing. All else is done element by element, or adds up along
one row in an order that the network decides.
Sums beyond 64 bits come in again from the other end, as if the sum had been reduced afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoise.networks import Network, loss_slopes
from counterpoise.networks.dense import activation_functions
from counterpoise.vault.boundary import NeverCopied

# The most that a row's part can have in norm, in clipping norms: c comes from sums of squares of at
# most 100,000 numbers in double precision, each good to a few parts in 10^11.
LONGEST = 1 + 1e-9

# V has this many places below the clipping norm.
_ERROR_PLACES = 20

# So many rows are summed by one exact product: entries of a row's part are below 2^40 (its norm
# is), and 2^12 of them below the 2^53 up to which double precision has all whole numbers.
_ROWS_AT_ONCE = 2**12

# Lots are filled up to a multiple of this: a single row would be added up in another order.
_FILLED_TO = 8

_SIGN = 63  # the place of a double's sign


class Workspace(NeverCopied):
    """Arrays that are used again at every step: to ask for new ones takes longer than the sums.

    It holds what was computed of private rows last, so it lives and dies with an open course.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, name: str, *shape: int) -> np.ndarray:
        """An array of doubles of a shape; whatever it holds is left over from before."""
        size = math.prod(shape)
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size + size // 4)
        return self._arrays[name][:size].reshape(shape)


@dataclass(frozen=True)
class ClippedGradients:
    """Sums of gradients of a public network with one output, each row's clipped to a norm."""

    network: Network
    loss: str
    clip: float

    @cached_property
    def places(self) -> int:
        """p: the places of what a layer sees, and of the parameters."""
        # A product of p + p places, summed over all units of a layer and its offset, is exact.
        widest = max(self.network.units) + 1
        return min(20, (53 - math.ceil(math.log2(widest))) // 2)

    @cached_property
    def unit(self) -> float:
        """What the whole numbers of a sum are multiples of: a power of two."""
        return math.ldexp(_power_above(self.clip), -self.places - _ERROR_PLACES)

    def prepare(self, inputs: np.ndarray) -> np.ndarray:
        """U of the first layer: rows of inputs between -1 and 1 with a one, on the grid."""
        found = np.empty((len(inputs), inputs.shape[1] + 1))
        np.rint(inputs * 2.0**self.places, out=found[:, :-1])
        found[:, -1] = 2.0**self.places
        return found

    def sums(
        self,
        parameters: np.ndarray,
        prepared: np.ndarray,
        lot: np.ndarray,
        room: Workspace | None = None,
    ) -> np.ndarray:
        """The sum over a lot of the prepared rows, all of label one, in whole units."""
        room = Workspace() if room is None else room
        found = np.zeros(self.network.size, dtype=np.int64)
        into = self.network.layers(found)
        layers = [_on_grid(*layer, self.places) for layer in self.network.layers(parameters)]
        if len(layers) > 1:
            layers[0] *= 0.5**self.places  # the unit of the first layer's U, once for all rows
        with np.errstate(all="ignore"):
            for start in range(0, len(lot), _ROWS_AT_ONCE):
                some = lot[start : start + _ROWS_AT_ONCE]
                parts = self._parts(layers, prepared, some, room)
                for (matrix, offsets), part in zip(into, parts, strict=True):
                    exact = part.astype(np.int64)
                    matrix += exact[:, :-1]
                    offsets += exact[:, -1]
        return found

    def _parts(
        self, layers: list[np.ndarray], prepared: np.ndarray, lot: np.ndarray, room: Workspace
    ) -> list[np.ndarray]:
        """The exact sum of V U^T over a lot, at each layer."""
        filled = len(lot) + -len(lot) % _FILLED_TO
        rows = room.array("rows", filled, prepared.shape[1])
        if prepared.dtype == rows.dtype:
            prepared.take(lot, axis=0, out=rows[: len(lot)], mode="clip")
        else:
            rows[: len(lot)] = prepared[lot]
        rows[len(lot) :] = 0
        seen, units, slopes, outputs = self._forward(layers, rows, room)
        # The slope of the loss multiplies all errors of a row: it comes in with the clipping.
        errors = [np.ones((1, filled))]
        # norm^2 = sum over layers of norm(d)^2 norm(U)^2
        squares = _squares(seen[-1]) * units[-1] ** 2
        for place in range(len(layers) - 1, 0, -1):
            error = self._back(errors[0], layers[place][:, :-1], slopes[place - 1])
            squares += _squares(error) * (_squares(seen[place - 1]) * units[place - 1] ** 2)
            errors.insert(0, error)
        slope = loss_slopes(self.loss, outputs[:, None], 1.0)[:, 0]
        norms = np.sqrt(squares) * np.abs(slope)
        factors = slope * np.minimum(1.0, self.clip / norms)
        factors[len(lot) :] = 0.0
        is_none = ~np.isfinite(norms)
        has_none = bool(is_none.any())
        parts = []
        for of_layer, unit, error in zip(seen, units, errors, strict=True):
            error *= factors * (unit / self.unit)
            np.trunc(error, out=error)
            if has_none:
                error[:, is_none] = of_layer[:, is_none] = 0.0
            parts.append(error @ of_layer.T)
        return parts

    def _forward(
        self, layers: list[np.ndarray], rows: np.ndarray, room: Workspace
    ) -> tuple[list[np.ndarray], list[np.ndarray | float], list[np.ndarray], np.ndarray]:
        """U of each layer, a row a column, in units of a power of two; slopes; outputs."""
        whole = 2.0**self.places
        seen = [rows.T]
        units: list[np.ndarray | float] = [1 / whole]
        slopes: list[np.ndarray] = []
        for place, layer in enumerate(layers[:-1]):
            made = room.array(f"made {place}", len(layer), len(rows))
            np.matmul(layer, seen[-1], out=made)
            if place:
                made *= units[-1]
            after, slope = self._activate(made, room.array(f"slope {place}", *made.shape))
            slopes.append(slope)
            # The power of two above the norm of (a, 1), which no entry exceeds.
            tops = _powers_above(np.sqrt(_squares(after) + 1))
            scaled = room.array(f"seen {place}", len(layer) + 1, len(rows))
            scaled[-1] = whole / tops
            np.multiply(after, scaled[-1], out=scaled[:-1])
            seen.append(np.rint(scaled, out=scaled))
            units.append(tops / whole)
        return seen, units, slopes, (layers[-1] @ seen[-1])[0] * units[-1]

    def _activate(self, made: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a layer hands on, and the slopes there; both may take the place of `made`."""
        if self.network.activation == "relu":
            # The sign as a mask of bits, all of them or none: several times quicker than choosing.
            kept = slope.view(np.int64)
            np.right_shift(made.view(np.int64), _SIGN, out=kept)
            np.invert(kept, out=kept)
            np.bitwise_and(made.view(np.int64), kept, out=made.view(np.int64))
            return made, kept
        function, slope_of = activation_functions(self.network.activation)
        after = function(made)
        return after, slope_of(made, after)

    def _back(self, error: np.ndarray, matrix: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The errors d W times the slopes; each an exact sum of products, but for one rounding."""
        if len(error) == 1:  # the output's, which is one
            if slope.dtype == np.int64:
                return np.bitwise_and(slope, matrix.T.view(np.int64)).view(float)
            return slope * matrix.T
        whole = 2.0**self.places
        tops = _powers_above(np.sqrt(_squares(error)))
        through: np.ndarray = matrix.T @ np.rint(error * (whole / tops))
        through *= tops / whole
        if slope.dtype == np.int64:
            np.bitwise_and(through.view(np.int64), slope, out=through.view(np.int64))
        else:
            through *= slope
        return through


def _squares(columns: np.ndarray) -> np.ndarray:
    """The squared norm of each column, added up one entry after the other."""
    found: np.ndarray = np.einsum("ji,ji->i", columns, columns)
    return found


def _on_grid(matrix: np.ndarray, offsets: np.ndarray, places: int) -> np.ndarray:
    """A layer's matrix with its offsets as a last column, with so many places below the largest."""
    found = np.empty((len(matrix), matrix.shape[1] + 1))
    found[:, :-1], found[:, -1] = matrix, offsets
    largest = max(float(found.max()), -float(found.min()))
    step = math.ldexp(_power_above(largest or 1.0), -places)
    found *= 1 / step
    np.rint(found, out=found)
    found *= step
    return found


def _power_above(value: float) -> float:
    """A power of two that is no less than a number, and no more than twice as much."""
    return 2.0 ** math.frexp(value)[1]


def _powers_above(values: np.ndarray) -> np.ndarray:
    """Such powers of two; where a number is nearly zero, or none, whatever is a number."""
    return np.ldexp(1.0, np.frexp(np.maximum(values, 2.0**-500))[1])
