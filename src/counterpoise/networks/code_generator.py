"""A network that makes rows by their codes, and lets a critic of rows teach it.

The network makes the chances of codes (`CodeMixture`); codes are drawn by them, and a number within
its cell, so that a critic sees rows as they will be released. Codes that are drawn have no slopes.
But a critic that is nearly linear in what it sees of a column changes, when that column's code
becomes c, by its slope g times what it sees of c, so

    d E critic / d p(c) = g . seen(c)

stands for the slope in the chances (the straight-through estimator of Bengio, Léonard and Courville
2013, without the noise of a relaxation). It is exact for critics that are linear in each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from counterpoise.networks.dense import Network, Pass
from counterpoise.networks.inputs import Head, Inputs
from counterpoise.networks.mixture import CodeMixture

# A number is at one of so many places of its cell, which are drawn once.
PLACES = 32
PLACES_SEED = 0


@dataclass(frozen=True, eq=False)
class MadeCodes:
    """Rows as `Inputs`, and what the way back to the parameters needs."""

    inputs: np.ndarray
    passed: Pass
    chances: np.ndarray  # of all codes, column after column


@dataclass(frozen=True)
class CodeGenerator:
    """From noise, and the codes of a given column if there is one, to codes of rows.

    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1, bins=4), Column.boolean("s")])
    >>> maker = CodeGenerator(Inputs(schema), noise=4, hidden=(8,))
    >>> generator = np.random.default_rng(0)
    >>> made = maker.make(maker.network.initial(generator), 5, generator)
    >>> made.inputs.shape, made.chances.shape
    ((5, 3), (5, 6))
    """

    inputs: Inputs
    noise: int
    hidden: tuple[int, ...]
    given: str | None = None

    @cached_property
    def mixture(self) -> CodeMixture:
        """The chances of codes."""
        schema = self.inputs.schema
        given = None if self.given is None else schema.index(self.given)
        return CodeMixture(schema.sizes, self.noise, self.hidden, given)

    @property
    def network(self) -> Network:
        """From noise, and what is given, to a logit a code."""
        return self.mixture.network

    def make(
        self,
        parameters: np.ndarray,
        rows: int,
        generator: np.random.Generator,
        codes: np.ndarray | None = None,
    ) -> MadeCodes:
        """So many rows; `codes` are those of the column that is given."""
        noise = self.mixture.draw_noise(rows, generator, codes)
        passed = self.network.forward(parameters, noise)
        chances = self.mixture.softmax(passed.outputs, noise)
        drawn = self.mixture.draw_codes(chances, generator)
        places = generator.integers(PLACES, size=rows)
        made = np.zeros((rows, self.inputs.size))
        for head, column, seen in self._heads:
            if seen is None:
                made[np.arange(rows), head.start + drawn[:, column]] = 1.0
            else:
                made[:, head.start] = seen[places, drawn[:, column]]
        return MadeCodes(made, passed, chances)

    def gradient(
        self,
        parameters: np.ndarray,
        made: MadeCodes,
        slopes: np.ndarray,
        chance_slopes: np.ndarray | float = 0.0,
    ) -> np.ndarray:
        """The gradient of a loss in the parameters, of its slopes in the rows and in chances."""
        found = np.zeros_like(made.chances)
        for head, column, seen in self._heads:
            start = self.mixture.starts[column]
            into = found[:, start : start + self.mixture.sizes[column]]
            # g . seen(c), where a number is in the middle of its cell
            middles = 1.0 if seen is None else seen.mean(axis=0)
            into += slopes[:, head.places] * middles
        found += chance_slopes
        return self.mixture.gradient(parameters, made.passed, made.chances, found)

    def draw(
        self,
        parameters: np.ndarray,
        rows: int,
        generator: np.random.Generator,
        codes: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The codes of so many rows; of numbers they are all that is known."""
        return self.mixture.draw(parameters, rows, generator, codes), None

    def table(
        self,
        codes: np.ndarray,
        places: np.ndarray | None,
        generator: np.random.Generator,
        format: str,
    ) -> Any:
        """A table of rows that were drawn."""
        return self.inputs.schema.decode(codes, generator, format=format)

    @cached_property
    def _heads(self) -> tuple[tuple[Head, int, np.ndarray | None], ...]:
        """Each head, its column, and what is seen of its codes: places of the cell x codes.

        Of categories a code is seen as itself, and nothing is listed.
        """
        schema, generator = self.inputs.schema.modelled, np.random.default_rng(PLACES_SEED)
        listed = [head for head in self.inputs.heads if head.kind != "categories"]
        sizes = [schema[head.column].size for head in listed]
        # All places of all codes as one table.
        rows = PLACES * max(sizes, default=0)
        codes = np.zeros((rows, len(schema)), dtype=np.int32)
        for head, size in zip(listed, sizes, strict=True):
            codes[: PLACES * size, schema.index(head.column)] = np.tile(np.arange(size), PLACES)
        drawn = self.inputs(schema.encode(schema.decode(codes, generator)))
        found: dict[Head, np.ndarray] = {
            head: drawn[: PLACES * size, head.start].reshape(PLACES, size)
            for head, size in zip(listed, sizes, strict=True)
        }
        return tuple(
            (head, schema.index(head.column), found.get(head)) for head in self.inputs.heads
        )
