"""A network that makes rows: of some noise, what another network sees of a row (`Inputs`).

A number is a hyperbolic tangent, from -1 to 1; a category a softmax of logits with Gumbel noise
(Jang, Gu and Poole 2017), whose largest place is a draw by their chances and which has slopes;
a null the same of two places, and a number that is null is in the middle. A column may be given:
it is then no longer made, and the network is told of it beside the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from counterpoise.networks.dense import Network, Pass
from counterpoise.networks.inputs import Inputs
from counterpoise.networks.mixture import softmax, softmax_slopes
from counterpoise.schema.placing import place

# The softer, the more of its slope a category has; the harder, the more it looks like a category.
TEMPERATURE = 0.5


@dataclass(frozen=True, eq=False)
class MadeRows:
    """Rows as `Inputs`, and what the way back to the parameters needs."""

    inputs: np.ndarray
    passed: Pass
    chances: np.ndarray  # of categories, with their noise
    numbers: np.ndarray
    nulls: np.ndarray


@dataclass(frozen=True)
class RowGenerator:
    """From noise, and the codes of a given column of categories if there is one, to rows.

    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1), Column.categorical("s", ["a", "b"])])
    >>> maker = RowGenerator(Inputs(schema), noise=4, hidden=(8,))
    >>> generator = np.random.default_rng(0)
    >>> maker.make(maker.network.initial(generator), 5, generator).inputs.shape
    (5, 3)
    """

    inputs: Inputs
    noise: int
    hidden: tuple[int, ...]
    given: str | None = None

    @cached_property
    def network(self) -> Network:
        """From noise and what is given to a number for each place of a row."""
        told = 0 if self.given is None else self._given_places.stop - self._given_places.start
        return Network((self.noise + told, *self.hidden, self.inputs.size))

    def make(
        self,
        parameters: np.ndarray,
        rows: int,
        generator: np.random.Generator,
        codes: np.ndarray | None = None,
    ) -> MadeRows:
        """So many rows; `codes` are those of the column that is given."""
        seen = generator.standard_normal((rows, self.noise))
        if self.given is not None:
            assert codes is not None
            places = self._given_places
            seen = np.concatenate([seen, np.eye(places.stop - places.start)[codes]], axis=1)
        passed = self.network.forward(parameters, seen)
        logits, made = passed.outputs, np.empty((rows, self.inputs.size))
        categories, starts, sizes = self._categories
        gumbel = generator.gumbel(size=(rows, len(categories)))
        chances = np.empty((rows, 0))
        if len(categories):
            chances = softmax((logits[:, categories] + gumbel) / TEMPERATURE, starts, sizes)
            made[:, categories] = chances
        # The difference of two Gumbel draws is logistic.
        logistic = generator.logistic(size=(rows, len(self._nulls)))
        nulls = expit((logits[:, self._nulls] + logistic) / TEMPERATURE)
        made[:, self._nulls] = nulls
        numbers = np.tanh(logits[:, self._numbers])
        made[:, self._numbers] = numbers
        made[:, self._nullable] *= 1 - nulls
        if self.given is not None:
            made[:, self._given_places] = seen[:, self.noise :]
        return MadeRows(made, passed, chances, numbers, nulls)

    def gradient(self, parameters: np.ndarray, made: MadeRows, slopes: np.ndarray) -> np.ndarray:
        """The gradient of a loss in the parameters, of its slopes in the rows."""
        slopes = slopes.copy()
        if self.given is not None:
            slopes[:, self._given_places] = 0.0
        errors = np.zeros_like(slopes)
        categories, starts, sizes = self._categories
        if len(categories):
            errors[:, categories] = (
                softmax_slopes(made.chances, slopes[:, categories], starts, sizes) / TEMPERATURE
            )
        # A number is t (1 - b), where b says that it is null.
        is_nullable = self._is_nullable
        present = np.ones_like(made.numbers)
        present[:, is_nullable] = 1 - made.nulls
        null_slopes = (
            slopes[:, self._nulls] - slopes[:, self._nullable] * made.numbers[:, is_nullable]
        )
        errors[:, self._nulls] = null_slopes * made.nulls * (1 - made.nulls) / TEMPERATURE
        errors[:, self._numbers] = slopes[:, self._numbers] * present * (1 - made.numbers**2)
        return self.network.gradient(
            made.passed, self.network.backward(parameters, made.passed, errors)
        )

    def draw(
        self,
        parameters: np.ndarray,
        rows: int,
        generator: np.random.Generator,
        codes: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The codes of so many rows, and the places of their numbers."""
        return self.read(self.make(parameters, rows, generator, codes).inputs)

    def table(
        self,
        codes: np.ndarray,
        places: np.ndarray | None,
        generator: np.random.Generator,
        format: str,
    ) -> Any:
        """A table of rows that were drawn."""
        assert places is not None
        return place(self.inputs.schema, codes, places, generator, format)

    def read(self, made: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes of categories and nulls, and the places of numbers, of rows that were made."""
        schema = self.inputs.schema
        codes = np.zeros((len(made), len(schema)), dtype=np.int32, order="F")
        places = np.full((len(made), len(schema)), 0.5, order="F")
        for head in self.inputs.heads:
            position = schema.index(head.column)
            if head.kind == "categories":
                codes[:, position] = made[:, head.places].argmax(axis=1)
            elif head.kind == "number":
                places[:, position] = (made[:, head.start] + 1) / 2
            else:
                codes[made[:, head.start] > 0.5, position] = schema[head.column].cells
        return codes, places

    @cached_property
    def _given_places(self) -> slice:
        [places] = [head.places for head in self.inputs.heads if head.column == self.given]
        return places

    @cached_property
    def _categories(self) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
        """The places of categories, and where among them each column's begin, and how many."""
        heads = [head for head in self.inputs.heads if head.kind == "categories"]
        sizes = tuple(head.stop - head.start for head in heads)
        places = [np.arange(head.start, head.stop) for head in heads]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        return np.concatenate([*places, np.empty(0, np.int64)]).astype(np.int64), starts, sizes

    @cached_property
    def _numbers(self) -> np.ndarray:
        return np.array(
            [head.start for head in self.inputs.heads if head.kind == "number"], dtype=np.int64
        )

    @cached_property
    def _nulls(self) -> np.ndarray:
        return np.array(
            [head.start for head in self.inputs.heads if head.kind == "null"], dtype=np.int64
        )

    @property
    def _nullable(self) -> np.ndarray:
        """The numbers that may be null, in the order of their indicators."""
        # The indicator stands after its number.
        found: np.ndarray = self._nulls - 1
        return found

    @cached_property
    def _is_nullable(self) -> np.ndarray:
        """For each number, whether it may be null."""
        return np.isin(self._numbers, self._nullable)
