"""Optimisers: from a gradient to the next parameters, as plain values that can be saved.

`sgd` goes down the gradient; `rmsprop` divides each coordinate by a running root mean square
(Tieleman and Hinton 2012); `adam` averages the gradient too, and corrects for its start (Kingma and
Ba 2015). A noised gradient makes all of them post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from counterpoise.arguments import one_of, real_number, settle

OPTIMISERS = ("sgd", "rmsprop", "adam")

_AWAY_FROM_ZERO = 1e-8


@dataclass(frozen=True, eq=False)
class OptimiserState:
    """How many steps were made, and the running averages of the gradient and of its square."""

    steps: int
    average: np.ndarray
    square: np.ndarray


@dataclass(frozen=True)
class Optimiser:
    """A rule of steps.

    >>> rule = Optimiser("sgd", rate=0.5)
    >>> point, state = np.array([2.0]), rule.start(1)
    >>> for _ in range(3):
    ...     point, state = rule.step(point, point, state)
    >>> point
    array([0.25])
    """

    name: str = "adam"
    rate: float = 0.001
    memory: float = 0.9  # of the running average of the gradient
    square_memory: float = 0.999  # of that of its square

    def __post_init__(self) -> None:
        settle(
            self,
            name=one_of("name", self.name, OPTIMISERS),
            rate=real_number("rate", self.rate, "a positive number", above=0),
            memory=_memory("memory", self.memory),
            square_memory=_memory("square_memory", self.square_memory),
        )

    def start(self, size: int) -> OptimiserState:
        """The state before the first step."""
        return OptimiserState(0, np.zeros(size), np.zeros(size))

    def step(
        self, parameters: np.ndarray, gradient: np.ndarray, state: OptimiserState
    ) -> tuple[np.ndarray, OptimiserState]:
        """The next parameters and the next state."""
        steps = state.steps + 1
        if self.name == "sgd":
            return parameters - self.rate * gradient, OptimiserState(
                steps, state.average, state.square
            )
        square = self.square_memory * state.square + (1 - self.square_memory) * gradient**2
        if self.name == "rmsprop":
            move = gradient / (np.sqrt(square) + _AWAY_FROM_ZERO)
            return parameters - self.rate * move, OptimiserState(steps, state.average, square)
        average = self.memory * state.average + (1 - self.memory) * gradient
        # The averages begin at zero: divide by the weight that the gradients have in them.
        size = np.sqrt(square / (1 - self.square_memory**steps)) + _AWAY_FROM_ZERO
        move = average / (1 - self.memory**steps) / size
        return parameters - self.rate * move, OptimiserState(steps, average, square)


def _memory(name: str, value: float) -> float:
    most = math.nextafter(1.0, 0.0)
    return real_number(
        name, value, "a number from 0 to below 1", above=0, below=most, inclusive=True
    )
