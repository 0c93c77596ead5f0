"""What the GANs make: a generator, with the critic that it was trained against.

It holds parameters that noisy answers led to, and no answer by itself. The critic is as private as
the generator, and weights may ask it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.networks import Inputs, Network
from counterpoise.networks.code_generator import CodeGenerator
from counterpoise.networks.generator import RowGenerator
from counterpoise.schema import Schema
from counterpoise.synthesizers.adversarial import Maker
from counterpoise.synthesizers.protocol import checked_draw

DRAWN_AT_ONCE = 50_000
# Those who make rows, by the number that they have in a saved model.
MAKERS: tuple[type[RowGenerator] | type[CodeGenerator], ...] = (RowGenerator, CodeGenerator)


@dataclass(frozen=True, eq=False)
class GanModel:
    """A generator, or several that each make a part of the rows, and the critic of the last one.

    `critic` with its `critic_parameters` tells private rows from made ones by its one output: the
    larger, the more a row looked private. With the loss "logistic" it is a logit, with
    "wasserstein" a score on a scale of its own (`critic_loss`). It sees what `inputs` says.
    """

    schema: Schema
    maker: Maker
    parameters: np.ndarray  # a row a generator
    shares: np.ndarray  # the part of the rows that each makes
    chances: np.ndarray | None  # of the categories of the given column
    critic: Network
    critic_parameters: np.ndarray
    critic_loss: str
    rows: int
    private: bool = True

    @property
    def inputs(self) -> Inputs:
        """What the critic sees of a row."""
        return self.maker.inputs

    def sample(self, rows: int, seed: int | None = None, format: str = "pandas") -> Any:
        """Draw `rows` rows, each of noise of its own."""
        rows, seed, format = checked_draw(rows, seed, format)
        generator = np.random.default_rng(seed)
        parts = []
        counts = [rows] if len(self.shares) == 1 else generator.multinomial(rows, self.shares)
        for parameters, wanted in zip(self.parameters, counts, strict=True):
            for start in range(0, max(wanted, 1), DRAWN_AT_ONCE):
                count = min(wanted - start, DRAWN_AT_ONCE)
                given = draw_given(self.chances, count, generator)
                parts.append(self.maker.draw(parameters, count, generator, given))
        # Rows of several generators are mixed, so that any of them are a sample.
        order = np.arange(rows) if len(counts) == 1 else generator.permutation(rows)
        codes = np.asfortranarray(np.concatenate([codes for codes, _ in parts])[order])
        found = [places for _, places in parts if places is not None]
        places = np.asfortranarray(np.concatenate(found)[order]) if found else None
        return self.maker.table(codes, places, generator, format)

    def to_arrays(self) -> Mapping[str, np.ndarray]:
        """Both networks' layers and parameters, and what is given."""
        return {
            "parameters": self.parameters,
            "shares": self.shares,
            "makes": np.array(MAKERS.index(type(self.maker))),
            "noise": np.array(self.maker.noise),
            "hidden": np.array(self.maker.hidden),
            "given": np.array(self.maker.given or "", dtype=np.str_),
            "chances": np.zeros(0) if self.chances is None else self.chances,
            "critic_units": np.array(self.critic.units),
            "critic_activation": np.array(self.critic.activation, dtype=np.str_),
            "critic_parameters": self.critic_parameters,
            "critic_loss": np.array(self.critic_loss, dtype=np.str_),
            "rows": np.array(self.rows),
        }

    @classmethod
    def from_arrays(
        cls, schema: Schema, arrays: Mapping[str, np.ndarray], private: bool = True
    ) -> GanModel:
        """The inverse of `to_arrays`."""
        hidden = tuple(int(units) for units in arrays["hidden"])
        given = str(arrays["given"]) or None
        maker = MAKERS[int(arrays["makes"])](Inputs(schema), int(arrays["noise"]), hidden, given)
        units = tuple(int(number) for number in arrays["critic_units"])
        return cls(
            schema,
            maker,
            arrays["parameters"],
            arrays["shares"],
            None if given is None else arrays["chances"],
            Network(units, str(arrays["critic_activation"])),
            arrays["critic_parameters"],
            str(arrays["critic_loss"]),
            int(arrays["rows"]),
            private,
        )


def draw_given(
    chances: np.ndarray | None, rows: int, generator: np.random.Generator
) -> np.ndarray | None:
    """Codes of the given column by its chances, if there is one."""
    return None if chances is None else generator.choice(len(chances), rows, p=chances)
