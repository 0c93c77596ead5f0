"""Dense networks: a description, a flat vector of parameters, and the two passes over rows.

A layer takes rows a to z = W a + b, and the next one sees phi(z). Going back, a row's error d at a
layer is what its loss changes by when z does, and the row's gradient there is the outer product
d (a, 1)^T. So the norm of a row's whole gradient is known without ever making it,

    norm^2 = sum over layers of norm(d)^2 (norm(a)^2 + 1)

(Goodfellow 2015, Efficient per-example gradient computations), and a sum of gradients that are each
multiplied by a number of their own is one matrix product a layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.arguments import one_of, settle, whole_number
from counterpoise.errors import MethodError

# More than this many units in a layer, or layers, is a mistake in a network for tables.
MOST_UNITS, MOST_LAYERS = 100_000, 50

_LEAK = 0.2


def _relu(before: np.ndarray) -> np.ndarray:
    return np.maximum(before, 0.0)


def _relu_slope(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return (before > 0).astype(float)


def _leaky(before: np.ndarray) -> np.ndarray:
    return np.maximum(before, _LEAK * before)


def _leaky_slope(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return np.where(before > 0, 1.0, _LEAK)


def _elu(before: np.ndarray) -> np.ndarray:
    return np.where(before > 0, before, np.expm1(np.minimum(before, 0.0)))


def _elu_slope(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return np.where(before > 0, 1.0, after + 1.0)


def _tanh_slope(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    found: np.ndarray = 1.0 - after * after
    return found


# The function, and its slope from what went in and what came out.
_FUNCTIONS: dict[
    str,
    tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray, np.ndarray], np.ndarray]],
] = {
    "relu": (_relu, _relu_slope),
    "leaky-relu": (_leaky, _leaky_slope),
    "elu": (_elu, _elu_slope),
    "tanh": (np.tanh, _tanh_slope),
}
ACTIVATIONS = tuple(_FUNCTIONS)

# Rows times a matrix.
Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


def activation_functions(
    name: str,
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """What lies between layers, and its slope from what went in and what came out."""
    return _FUNCTIONS[name]


@dataclass(frozen=True, eq=False)
class Pass:
    """What a network did with some rows on the way forward: what each layer saw and made."""

    seen: tuple[np.ndarray, ...]  # the rows as each layer gets them
    made: tuple[np.ndarray, ...]  # z of each layer; the last one is the output

    @property
    def outputs(self) -> np.ndarray:
        """The last layer's z, a row a row."""
        return self.made[-1]


@dataclass(frozen=True)
class Network:
    """A dense network: how many units each layer has, inputs first, and what lies between them.

    Its parameters are one flat vector, which is an argument and never held: for each layer the
    matrix, row by row, then the offsets.

    >>> network = Network((3, 8, 1))
    >>> network.size
    41
    >>> parameters = network.initial(np.random.default_rng(0))
    >>> network.outputs(parameters, np.zeros((2, 3))).shape
    (2, 1)
    """

    units: tuple[int, ...]
    activation: str = "relu"

    def __post_init__(self) -> None:
        expected = "the number of units of each layer, inputs and outputs included"
        if not isinstance(self.units, Sequence) or not 2 <= len(self.units) <= MOST_LAYERS:
            raise MethodError(f"units: expected {expected}")
        settle(
            self,
            units=tuple(whole_number("units", number, 1, MOST_UNITS) for number in self.units),
            activation=one_of("activation", self.activation, ACTIVATIONS),
        )

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum((before + 1) * after for before, after in self._shapes)

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        return list(zip(self.units[:-1], self.units[1:], strict=True))

    def initial(self, generator: np.random.Generator) -> np.ndarray:
        """Parameters to start from: each layer keeps the size of what goes through it."""
        parts = []
        for before, after in self._shapes:
            # Half of a rectified layer is zero, so its variance is doubled (He and others 2015).
            scale = math.sqrt((1.0 if self.activation == "tanh" else 2.0) / before)
            parts += [scale * generator.standard_normal(after * before), np.zeros(after)]
        # The last layer has nothing rectified after it, and starts small: no answer is sure yet.
        parts[-2] *= 0.5
        return np.concatenate(parts)

    def layers(self, parameters: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The matrix and the offsets of each layer, as views of the flat vector."""
        found, place = [], 0
        for before, after in self._shapes:
            matrix = parameters[place : place + before * after].reshape(after, before)
            place += before * after
            found.append((matrix, parameters[place : place + after]))
            place += after
        return found

    def forward(
        self, parameters: np.ndarray, rows: np.ndarray, product: Product = np.matmul
    ) -> Pass:
        """Take rows through the network, keeping what the way back needs."""
        function, _ = _FUNCTIONS[self.activation]
        seen, made = [rows], []
        layers = self.layers(parameters)
        for place, (matrix, offsets) in enumerate(layers):
            made.append(product(seen[-1], matrix.T) + offsets)
            if place < len(layers) - 1:
                seen.append(function(made[-1]))
        return Pass(tuple(seen), tuple(made))

    def outputs(self, parameters: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What the network says of rows."""
        return self.forward(parameters, rows).outputs

    def backward(
        self, parameters: np.ndarray, passed: Pass, slopes: np.ndarray
    ) -> list[np.ndarray]:
        """The error d of each layer, where `slopes` are those of the loss in the outputs."""
        _, slope = _FUNCTIONS[self.activation]
        layers = self.layers(parameters)
        errors = [slopes]
        for place in range(len(layers) - 1, 0, -1):
            matrix, _offsets = layers[place]
            through = errors[0] @ matrix
            through *= slope(passed.made[place - 1], passed.seen[place])
            errors.insert(0, through)
        return errors

    def input_slopes(self, parameters: np.ndarray, errors: list[np.ndarray]) -> np.ndarray:
        """The slopes of the loss in the rows themselves, for whoever made the rows."""
        matrix, _ = self.layers(parameters)[0]
        found: np.ndarray = errors[0] @ matrix
        return found

    def squared_norms(self, passed: Pass, errors: list[np.ndarray]) -> np.ndarray:
        """The squared norm of each row's gradient, without making any gradient."""
        # norm^2 = sum over layers of norm(d)^2 (norm(a)^2 + 1)
        found = np.zeros(len(errors[0]))
        for seen, error in zip(passed.seen, errors, strict=True):
            found += np.einsum("ij,ij->i", error, error) * (np.einsum("ij,ij->i", seen, seen) + 1)
        return found

    def gradient(
        self, passed: Pass, errors: list[np.ndarray], multiples: np.ndarray | None = None
    ) -> np.ndarray:
        """The sum of the rows' gradients, each multiplied by its own number."""
        parts: list[Any] = []
        for seen, error in zip(passed.seen, errors, strict=True):
            times = error if multiples is None else error * multiples[:, None]
            parts += [(times.T @ seen).ravel(), times.sum(axis=0)]
        return np.concatenate(parts)
