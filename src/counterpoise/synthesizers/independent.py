"""Independent columns: the smallest synthesizer, and the yardstick of the others.

One noisy one-way marginal a column, all measured in one query; columns are drawn independently
of each other. It keeps every column's distribution and nothing else. Charge: one Gaussian event
over d marginals, D2 = sqrt(d) (discrete Laplace, D1 = d, for a pure budget).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from counterpoise.arguments import column_sets
from counterpoise.schema import Schema
from counterpoise.synthesizers.graphical.sampling import rounded_counts
from counterpoise.synthesizers.marginal_model import MarginalAnswer
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request, checked_draw
from counterpoise.synthesizers.redraw import (
    RedrawnTables,
    Remeasurement,
    redraw_columns,
)
from counterpoise.vault import REPLACE, NoisyCounts, Share, Vault


@SYNTHESIZERS.register("independent")
@dataclass(frozen=True)
class Independent:
    """Draw every column from its own noisy marginal."""

    def fit(self, vault: Vault, share: Share) -> "IndependentModel":
        """Measure every one-way marginal; charges the whole share."""
        check_request(vault, share)
        measured = vault.counts([(name,) for name in vault.schema.names], share)
        return IndependentModel(
            vault.schema,
            tuple(table.values for table in measured),
            deviation=measured[0].deviation,
            rows=pooled_rows(vault, measured),
            private=vault.private,
        )


@dataclass(frozen=True)
class IndependentModel:
    """The noisy counts of every column."""

    schema: Schema
    counts: tuple[np.ndarray, ...]
    deviation: float  # of the noise on each count
    rows: int
    private: bool = True

    @property
    def probabilities(self) -> tuple[np.ndarray, ...]:
        """One probability vector a column."""
        return tuple(_probabilities(counts) for counts in self.counts)

    @property
    def rows_deviation(self) -> float:
        """The deviation of the noise in `rows`, where they are not public; see `pooled_rows`."""
        return self.deviation / math.sqrt(sum(1 / len(counts) for counts in self.counts))

    @property
    def measured_columns(self) -> tuple[tuple[str, ...], ...]:
        """Every column by itself."""
        return tuple((name,) for name in self.schema.names)

    def sample(self, rows: int, seed: int | None = None, format: str = "pandas") -> Any:
        """Draw `rows` rows, each column by itself, with counts rounded at random."""
        rows, seed, format = checked_draw(rows, seed, format)
        generator = np.random.default_rng(seed)
        codes = np.empty((rows, len(self.schema)), dtype=np.int32, order="F")
        for column, chances in enumerate(self.probabilities):
            [counts] = rounded_counts(chances[None], np.array([rows]), generator)
            codes[:, column] = generator.permutation(np.repeat(np.arange(len(chances)), counts))
        return self.schema.decode(codes, generator, format=format)

    def marginal(self, columns: Sequence[str]) -> MarginalAnswer:
        """The expected counts of the combinations of `columns`: products of their shares."""
        [names] = column_sets("columns", (columns,))
        chances = [self.probabilities[self.schema.index(name)] for name in names]
        values = self.rows * reduce(np.multiply.outer, chances)
        return MarginalAnswer(names, values, self.deviation if len(names) == 1 else None)

    def redrawn_tables(
        self,
        codes: np.ndarray,
        resample: np.ndarray,
        weights: np.ndarray,
        generator: np.random.Generator,
    ) -> RedrawnTables:
        """The redrawn tables of single columns, a column a replicate."""
        again = Remeasurement(codes, resample, weights, float(self.rows), generator)
        return redraw_columns(again, self.probabilities, self.deviation, _probabilities)

    def to_arrays(self) -> Mapping[str, np.ndarray]:
        """The noisy counts, by column number, and their noise."""
        arrays = {f"counts_{i}": counts for i, counts in enumerate(self.counts)}
        return arrays | {"deviation": np.array(self.deviation), "rows": np.array(self.rows)}

    @classmethod
    def from_arrays(
        cls, schema: Schema, arrays: Mapping[str, np.ndarray], private: bool = True
    ) -> "IndependentModel":
        """The inverse of `to_arrays`."""
        counts = tuple(arrays[f"counts_{i}"] for i in range(len(schema)))
        return cls(schema, counts, float(arrays["deviation"]), int(arrays["rows"]), private)


def _probabilities(noisy: np.ndarray) -> np.ndarray:
    """The nearest distribution to noisy counts: below zero is zero; nothing left is uniform."""
    positive = np.maximum(noisy, 0).astype(float)
    total = positive.sum()
    return positive / total if total > 0 else np.full(noisy.size, 1 / noisy.size)


def pooled_rows(vault: Vault, measured: Sequence[NoisyCounts]) -> int:
    """The number of rows: public, or pooled from the tables' sums, of variance ~ their cells."""
    if vault.budget.neighbours is REPLACE:
        return max(1, vault.total().value)
    precision = np.array([1 / table.values.size for table in measured])
    sums = np.array([table.values.sum() for table in measured])
    return max(1, round(float((sums * precision).sum() / precision.sum())))
