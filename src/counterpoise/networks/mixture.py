"""A network that makes codes: of some noise, the chances of every code of every column.

The noise tells what columns have in common; given it, each draws its code by itself. So the mean of
a product of functions of different columns is that of the products of their means,

    E f(x_i) g(x_j) = mean over the noise of (sum_c p_i(c) f(c)) (sum_c p_j(c) g(c)),

which is smooth in the parameters: nothing has to be drawn while the network is trained. It is a
mixture of products with as many components as there is noise (Liu, Vietri and Wu 2021). A column
may be given: its code is told to the network beside the noise, and is what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoise.networks.dense import Network, Pass


@dataclass(frozen=True)
class CodeMixture:
    """The chances of codes: how many each column has, how much noise, and the hidden layers.

    `given` is the place of the column that is given, if one is.

    >>> mixture = CodeMixture((2, 3), noise=4, hidden=(8,))
    >>> parameters = mixture.network.initial(np.random.default_rng(0))
    >>> made = mixture.chances(parameters, np.zeros((5, 4)))
    >>> made.shape, round(float(made[0, :2].sum()), 6), round(float(made[0, 2:].sum()), 6)
    ((5, 5), 1.0, 1.0)
    """

    sizes: tuple[int, ...]
    noise: int
    hidden: tuple[int, ...]
    given: int | None = None

    @cached_property
    def network(self) -> Network:
        """From noise, and what is given, to a logit a code."""
        told = 0 if self.given is None else self.sizes[self.given]
        return Network((self.noise + told, *self.hidden, sum(self.sizes)))

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the codes of each column begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    def draw_noise(
        self, rows: int, generator: np.random.Generator, codes: np.ndarray | None = None
    ) -> np.ndarray:
        """Noise for so many rows, and beside it `codes`, those of the column that is given."""
        noise = generator.standard_normal((rows, self.noise), dtype=np.float32)
        if self.given is None:
            return noise
        assert codes is not None
        told = np.eye(self.sizes[self.given], dtype=np.float32)[codes]
        return np.concatenate([noise, told], axis=1)

    def chances(self, parameters: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """For each row of noise the chances of all codes, column after column."""
        return self.softmax(self.network.outputs(parameters, noise), noise)

    def softmax(self, logits: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Chances of logits, a column at a time; what is given is certain."""
        found = softmax(logits, self.starts, self.sizes)
        if self.given is not None:
            start = self.starts[self.given]
            found[:, start : start + self.sizes[self.given]] = noise[:, self.noise :]
        return found

    def gradient(
        self, parameters: np.ndarray, passed: Pass, chances: np.ndarray, slopes: np.ndarray
    ) -> np.ndarray:
        """The gradient of a loss in the parameters, of its slopes in the chances."""
        # What is certain has no slope: p_c (s_c - s_c).
        errors = softmax_slopes(chances, slopes, self.starts, self.sizes)
        return self.network.gradient(passed, self.network.backward(parameters, passed, errors))

    def draw(
        self,
        parameters: np.ndarray,
        rows: int,
        generator: np.random.Generator,
        codes: np.ndarray | None = None,
    ) -> np.ndarray:
        """The codes of so many rows, each of noise of its own."""
        chances = self.chances(parameters, self.draw_noise(rows, generator, codes))
        return self.draw_codes(chances, generator)

    def draw_codes(self, chances: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """A code of each column for each row of chances."""
        rows = len(chances)
        codes = np.empty((rows, len(self.sizes)), dtype=np.int32, order="F")
        for column, (start, size) in enumerate(zip(self.starts, self.sizes, strict=True)):
            reached = np.cumsum(chances[:, start : start + size], axis=1)
            # Rounding may leave the last sum below one.
            target = generator.random(rows) * reached[:, -1]
            codes[:, column] = np.minimum((reached <= target[:, None]).sum(axis=1), size - 1)
        return codes


def softmax(logits: np.ndarray, starts: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Chances of logits by groups of neighbouring places.

    >>> softmax(np.zeros((1, 3)), np.array([0, 1]), (1, 2))
    array([[1. , 0.5, 0.5]])
    """
    highest = np.maximum.reduceat(logits, starts, axis=1)
    made = np.exp(logits - np.repeat(highest, sizes, axis=1))
    made /= np.repeat(np.add.reduceat(made, starts, axis=1), sizes, axis=1)
    return made


def softmax_slopes(
    chances: np.ndarray, slopes: np.ndarray, starts: np.ndarray, sizes: Sequence[int]
) -> np.ndarray:
    """The slopes of a loss in the logits, of those in the chances."""
    # d loss / d logit_c = p_c (s_c - sum_b p_b s_b)
    times = chances * slopes
    whole = np.repeat(np.add.reduceat(times, starts, axis=1), sizes, axis=1)
    found: np.ndarray = times - chances * whole
    return found
