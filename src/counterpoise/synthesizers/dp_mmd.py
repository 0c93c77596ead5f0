"""DP-MMD: a network whose rows have the noisy mean embedding of the private ones.

Two looks, whatever the network does afterwards, and a training that is post-processing (Balog,
Tolstikhin and Schölkopf 2018; Harder, Adamczewski and Park 2021); both are in `matching`. It sees
single columns and relations of two, and no others.

Charge: one Gaussian event over d marginals and one over the sum of features; delta > 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from counterpoise.arguments import column_sets, real_number, settle, whole_number
from counterpoise.errors import BudgetError
from counterpoise.networks.mixture import CodeMixture
from counterpoise.schema import Schema
from counterpoise.synthesizers.marginal_model import MarginalAnswer
from counterpoise.synthesizers.matching import (
    BALANCED_ROWS,
    COUNTS_PART,
    MATCHED_ROWS,
    MATCHING_RATE,
    MATCHING_STEPS,
    match,
    measure,
)
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request, checked_draw
from counterpoise.synthesizers.redraw import (
    RedrawnTables,
    Remeasurement,
    redraw_columns,
)
from counterpoise.synthesizers.shares import nearest_chances
from counterpoise.vault import Share, Vault

DRAWN_AT_ONCE = 50_000


@SYNTHESIZERS.register("dp-mmd")
@dataclass(frozen=True)
class DpMmd:
    """A network trained against a noisy kernel mean embedding.

    `counts_part` of the share goes to the counts of single columns. `steps`, `rows` a step, the
    learning `rate`, the size of the `noise` that the network gets and its `hidden` layers are those
    of the training, which is free; `seed` is that of the network's start and of its noise.
    """

    counts_part: float = COUNTS_PART
    steps: int = MATCHING_STEPS
    rows: int = MATCHED_ROWS
    rate: float = MATCHING_RATE
    noise: int = 16
    hidden: int = 64
    seed: int = 0

    needs_delta = True

    def __post_init__(self) -> None:
        settle(
            self,
            counts_part=real_number(
                "counts_part", self.counts_part, "a part between 0 and 1", above=0, below=0.99
            ),
            steps=whole_number("steps", self.steps, most=1_000_000),
            rows=whole_number("rows", self.rows, 2, 1_000_000),
            rate=real_number("rate", self.rate, "a positive number", above=0),
            noise=whole_number("noise", self.noise, most=10_000),
            hidden=whole_number("hidden", self.hidden, most=10_000),
            seed=whole_number("seed", self.seed, 0),
        )

    def fit(self, vault: Vault, share: Share) -> DpMmdModel:
        """Measure single columns, then the embedding, and train; charges the whole share."""
        check_request(vault, share)
        if share.pure:
            raise BudgetError("dp-mmd: Gaussian noise needs delta > 0: state a delta, such as 1e-9")
        schema = vault.schema
        measured = measure(vault, share, self.counts_part)
        mixture = CodeMixture(schema.sizes, self.noise, (self.hidden, self.hidden))
        parameters = match(
            measured,
            mixture,
            steps=self.steps,
            rows=self.rows,
            rate=self.rate,
            generator=np.random.default_rng(self.seed),
            is_reported=True,
        )
        return DpMmdModel(
            schema,
            mixture,
            parameters,
            measured.chances,
            measured.deviation,
            measured.rows,
            vault.private,
        )


@dataclass(frozen=True, eq=False)
class DpMmdModel:
    """A network's parameters, and the noisy distributions of single columns."""

    schema: Schema
    mixture: CodeMixture
    parameters: np.ndarray
    chances: tuple[np.ndarray, ...]
    deviation: float  # of the noise on each count of a column
    rows: int
    private: bool = True

    @property
    def measured_columns(self) -> tuple[tuple[str, ...], ...]:
        """Every column by itself; of pairs, a few noisy products were seen, and no counts."""
        return tuple((name,) for name in self.schema.names)

    def sample(self, rows: int, seed: int | None = None, format: str = "pandas") -> Any:
        """Draw `rows` rows, each of noise of its own."""
        rows, seed, format = checked_draw(rows, seed, format)
        generator = np.random.default_rng(seed)
        codes = np.empty((rows, len(self.schema)), dtype=np.int32, order="F")
        for start in range(0, rows, DRAWN_AT_ONCE):
            stop = min(rows, start + DRAWN_AT_ONCE)
            codes[start:stop] = self.mixture.draw(self.parameters, stop - start, generator)
        return self.schema.decode(codes, generator, format=format)

    def marginal(self, columns: Sequence[str]) -> MarginalAnswer:
        """The expected counts of the combinations of `columns`, over a fixed sample of noise."""
        [names] = column_sets("columns", (columns,))
        noise = self.mixture.draw_noise(BALANCED_ROWS, np.random.default_rng(0))
        made = self.mixture.chances(self.parameters, noise)
        places = [self.schema.index(name) for name in names]
        parts = [
            made[:, self.mixture.starts[place] :][:, : self.mixture.sizes[place]]
            for place in places
        ]
        joined = reduce(lambda left, right: left[..., None] * _aligned(right, left), parts)
        return MarginalAnswer(names, self.rows * joined.mean(axis=0), None)

    def redrawn_tables(
        self,
        codes: np.ndarray,
        resample: np.ndarray,
        weights: np.ndarray,
        generator: np.random.Generator,
    ) -> RedrawnTables:
        """The redrawn tables of single columns, a column a replicate.

        Nothing else is redrawn: what the network made of the noise on relations is no part of it.
        """
        again = Remeasurement(codes, resample, weights, float(self.rows), generator)
        return redraw_columns(again, self.chances, self.deviation, nearest_chances)

    def to_arrays(self) -> Mapping[str, np.ndarray]:
        """The parameters, the layers, and the noisy distributions."""
        arrays = {f"chances_{i}": chances for i, chances in enumerate(self.chances)}
        return arrays | {
            "deviation": np.array(self.deviation),
            "parameters": self.parameters,
            "noise": np.array(self.mixture.noise),
            "hidden": np.array(self.mixture.hidden),
            "rows": np.array(self.rows),
        }

    @classmethod
    def from_arrays(
        cls, schema: Schema, arrays: Mapping[str, np.ndarray], private: bool = True
    ) -> DpMmdModel:
        """The inverse of `to_arrays`."""
        hidden = tuple(int(units) for units in arrays["hidden"])
        mixture = CodeMixture(schema.sizes, int(arrays["noise"]), hidden)
        chances = tuple(arrays[f"chances_{i}"] for i in range(len(schema)))
        return cls(
            schema,
            mixture,
            arrays["parameters"],
            chances,
            float(arrays["deviation"]),
            int(arrays["rows"]),
            private,
        )


def _aligned(right: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The chances of one column more, beside those of combinations."""
    return right.reshape(len(right), *(1,) * (left.ndim - 1), -1)
