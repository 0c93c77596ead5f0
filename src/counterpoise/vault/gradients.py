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
number, or has no finite norm, adds nothing. All else is done element by element or along one row.
Sums beyond 64 bits come in again from the other end, as if the sum had been reduced afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from counterpoise.networks import Network, loss_slopes
from counterpoise.networks.dense import activation_functions

# The most that a row's part can have in norm, in clipping norms: c comes from sums of squares of at
# most 100,000 numbers in double precision, each good to a few parts in 10^11.
LONGEST = 1 + 1e-9

# V has this many places below the clipping norm.
_ERROR_PLACES = 20

# So many rows are summed by one exact product: entries of a row's part are below 2^40 (its norm
# is), and 2^12 of them below the 2^53 up to which double precision has all whole numbers.
_ROWS_AT_ONCE = 2**12


@dataclass(frozen=True)
class ClippedGradients:
    """Sums of gradients of a public network, each row's clipped to a norm; holds no rows."""

    network: Network
    loss: str
    clip: float

    @property
    def places(self) -> int:
        """p: the places of what a layer sees, and of the parameters."""
        # A product of p + p places, summed over all units of a layer and its offset, is exact.
        widest = max(self.network.units) + 1
        return min(20, (53 - math.ceil(math.log2(widest))) // 2)

    @property
    def unit(self) -> float:
        """What the whole numbers of a sum are multiples of: a power of two."""
        return math.ldexp(_power_above(self.clip), -self.places - _ERROR_PLACES)

    def prepare(self, inputs: np.ndarray) -> np.ndarray:
        """U of the first layer: rows of inputs between -1 and 1 with a one, on the grid."""
        found = np.empty((len(inputs), inputs.shape[1] + 1))
        np.rint(inputs * 2.0**self.places, out=found[:, :-1])
        found[:, -1] = 2.0**self.places
        return found

    def sums(self, parameters: np.ndarray, prepared: np.ndarray) -> np.ndarray:
        """The sum over prepared rows, all of label one, in whole units."""
        found = np.zeros(self.network.size, dtype=np.int64)
        layers = [_on_grid(joined, self.places) for joined in self._joined(parameters)]
        with np.errstate(all="ignore"):
            for start in range(0, len(prepared), _ROWS_AT_ONCE):
                self._add(found, layers, prepared[start : start + _ROWS_AT_ONCE])
        return found

    def _joined(self, parameters: np.ndarray) -> list[np.ndarray]:
        """The matrix of each layer with its offsets as a last column."""
        return [np.column_stack(layer) for layer in self.network.layers(parameters)]

    def _add(self, found: np.ndarray, layers: list[np.ndarray], prepared: np.ndarray) -> None:
        function, slope = activation_functions(self.network.activation)
        whole = 2.0**self.places
        # Forward: U of each layer, and the power of two that its whole numbers are multiples of.
        seen, units = [prepared], [np.full(len(prepared), 1 / whole)]
        made: list[np.ndarray] = []
        after: list[np.ndarray] = []
        for place, layer in enumerate(layers):
            made.append(seen[-1] @ layer.T)
            made[-1] *= units[-1][:, None]
            if place < len(layers) - 1:
                after.append(function(made[-1]))
                top = _powers_above(np.maximum(after[-1].max(axis=1), -after[-1].min(axis=1)), 1.0)
                rows = np.empty((len(prepared), after[-1].shape[1] + 1))
                np.multiply(after[-1], (whole / top)[:, None], out=rows[:, :-1])
                rows[:, -1] = whole / top
                seen.append(np.rint(rows, out=rows))
                units.append(top / whole)
        # Back: the error d of each layer.
        errors = [loss_slopes(self.loss, made[-1], 1.0)]
        for place in range(len(layers) - 1, 0, -1):
            through = self._back(errors[0], layers[place][:, :-1])
            through *= slope(made[place - 1], after[place - 1])
            errors.insert(0, through)
        # norm^2 = sum over layers of norm(d)^2 norm(U)^2
        squares = np.zeros(len(prepared))
        for rows, unit, error in zip(seen, units, errors, strict=True):
            squares += _squares(error) * (_squares(rows) * unit * unit)
        factors = np.minimum(1.0, self.clip / np.sqrt(squares))
        is_none = ~np.isfinite(squares)
        place = 0
        for rows, unit, error in zip(seen, units, errors, strict=True):
            error *= (factors * (unit / self.unit))[:, None]
            np.trunc(error, out=error)
            if is_none.any():
                error[is_none], rows = 0.0, np.where(is_none[:, None], 0.0, rows)
            exact = (error.T @ rows).astype(np.int64)
            size = exact.size - len(exact)
            found[place : place + size] += exact[:, :-1].ravel()
            place += size
            found[place : place + len(exact)] += exact[:, -1]
            place += len(exact)

    def _back(self, error: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """The errors d W; each an exact sum of products."""
        if error.shape[1] == 1:
            return error * matrix
        tops = _powers_above(np.abs(error).max(axis=1), 0.0)[:, None]
        whole = 2.0**self.places
        through: np.ndarray = np.rint(error * (whole / tops)) @ matrix
        through *= tops / whole
        return through


def _squares(rows: np.ndarray) -> np.ndarray:
    """The squared norm of each row, summed along the row."""
    found: np.ndarray = np.einsum("ij,ij->i", rows, rows)
    return found


def _on_grid(matrix: np.ndarray, places: int) -> np.ndarray:
    """A public matrix with so many places below its largest entry."""
    step = math.ldexp(_power_above(float(np.abs(matrix).max()) or 1.0), -places)
    found: np.ndarray = np.rint(matrix / step) * step
    return found


def _power_above(value: float) -> float:
    """A power of two that is no less than a number, and no more than twice as much."""
    return 2.0 ** math.frexp(value)[1]


def _powers_above(values: np.ndarray, least: float) -> np.ndarray:
    """Such powers of two, row by row; where there is none, whatever is no number either."""
    return np.ldexp(1.0, np.frexp(np.maximum(values, least))[1])
