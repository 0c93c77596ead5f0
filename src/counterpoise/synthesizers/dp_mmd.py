"""DP-MMD: a network whose rows have the noisy mean embedding of the private ones.

Two looks, whatever the network does afterwards: the noisy counts of every column, and the noisy sum
of the features of all pairs of columns, whose kernel is in `embedding`. The maximum mean
discrepancy of two tables is the distance of their mean embeddings, so a network can be trained
against the noisy one as post-processing, for as many steps as one likes (Balog, Tolstikhin and
Schölkopf 2018; Harder, Adamczewski and Park 2021). Before that the spectrum of the embedding is
cleared of what the noise alone would show. The network makes chances of codes (`CodeMixture`); at
the end its columns are given the distributions of their noisy counts. It sees single columns and
relations of two, and no others.

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
from counterpoise.networks.optimisers import Optimiser
from counterpoise.schema import Schema
from counterpoise.synthesizers.embedding import Embedding, shrink
from counterpoise.synthesizers.independent import pooled_rows
from counterpoise.synthesizers.marginal_model import MarginalAnswer
from counterpoise.synthesizers.progress import report
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request, checked_draw
from counterpoise.synthesizers.redraw import Remeasurement, redraw_columns
from counterpoise.synthesizers.shares import nearest_chances
from counterpoise.vault import Share, Vault

START = 3.0
# Of what is drawn in a step, each half is held against what the other one shows.
HALVES = 2
# The last part of the steps over which the parameters are averaged.
AVERAGED_PART = 0.25
# Rows of noise by which columns are given their distributions, in so many rounds.
BALANCED_ROWS, BALANCED_ROUNDS = 8192, 20
# A chance below this is none; logits stay finite.
LEAST_CHANCE = 1e-7
DRAWN_AT_ONCE = 50_000
STEPS_A_REPORT = 50


@SYNTHESIZERS.register("dp-mmd")
@dataclass(frozen=True)
class DpMmd:
    """A network trained against a noisy kernel mean embedding.

    `counts_part` of the share goes to the counts of single columns. `steps`, `rows` a step, the
    learning `rate`, the size of the `noise` that the network gets and its `hidden` layers are those
    of the training, which is free; `seed` is that of the network's start and of its noise.
    """

    counts_part: float = 0.3
    steps: int = 400
    rows: int = 256
    rate: float = 0.01
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
        cliques = [(name,) for name in schema.names]
        if len(schema) == 1:
            counts, for_embedding = vault.counts(cliques, share), None
        else:
            for_counts, for_embedding = share.split(self.counts_part, 1 - self.counts_part)
            counts = vault.counts(cliques, for_counts)
        rows = pooled_rows(vault, counts)
        chances = tuple(nearest_chances(table.values / rows) for table in counts)
        embedding = Embedding.over(schema, chances)
        moments = np.zeros((len(embedding.owners),) * 2)
        if for_embedding is not None:
            one = for_embedding.gaussian_scale(vault.budget.row_sensitivity(1.0))
            bound = embedding.bound(one / (np.sqrt(2) * rows))
            found = vault.sums(embedding, bound, for_embedding)
            noisy = embedding.moments(found.values, rows)
            moments = shrink(noisy, found.scale / (np.sqrt(2) * rows))
        mixture = CodeMixture(schema.sizes, self.noise, (self.hidden, self.hidden))
        parameters = self._train(mixture, embedding, moments, chances)
        deviation = counts[0].deviation
        return DpMmdModel(schema, mixture, parameters, chances, deviation, rows, vault.private)

    def _train(
        self,
        mixture: CodeMixture,
        embedding: Embedding,
        moments: np.ndarray,
        chances: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Parameters under which rows have the moments and the chances."""
        generator = np.random.default_rng(self.seed)
        parameters = mixture.network.initial(generator).astype(np.float32)
        # Columns start with their distributions, and away from where they are independent of each
        # other: relations have no slope there, and a network that comes too near stays.
        last, offsets = mixture.network.layers(parameters)[-1]
        last *= START if moments.any() else 0.0
        wanted = np.concatenate(chances).astype(np.float32)
        offsets += np.log(np.maximum(wanted, LEAST_CHANCE))
        if not moments.any():  # nothing stands out of the noise: columns are independent
            return parameters
        state = Optimiser("adam", self.rate).start(len(parameters))
        average, averaged = np.zeros_like(parameters), 0
        # Single precision is twice as fast, and finer than the noise by far.
        matrix, across = (
            part.astype(np.float32) for part in (embedding.matrix, embedding.is_across)
        )
        loss = _Loss(matrix, across, moments.astype(np.float32), wanted, len(chances))
        for step in range(self.steps):
            noise = mixture.draw_noise(self.rows, generator)
            passed = mixture.network.forward(parameters, noise)
            made = mixture.softmax(passed.outputs)
            gradient = mixture.gradient(parameters, passed, made, loss.slopes(made))
            # Steps shorten to nothing, and their noise with them.
            rule = Optimiser("adam", self.rate * (1 - step / self.steps))
            parameters, state = rule.step(parameters, gradient, state)
            if step % STEPS_A_REPORT == 0:
                report(step / self.steps)
            if step >= (1 - AVERAGED_PART) * self.steps:
                average += parameters
                averaged += 1
        return balanced(mixture, average / averaged, wanted, generator)


@dataclass(frozen=True, eq=False)
class _Loss:
    """Half the squared distance of embeddings, with that of single columns."""

    matrix: np.ndarray  # codes x functions
    across: np.ndarray  # 1 where two functions are of different columns
    moments: np.ndarray
    chances: np.ndarray
    columns: int

    def slopes(self, made: np.ndarray) -> np.ndarray:
        """The slopes of the loss in the chances of each row.

        Each half of the rows is held against the difference that the other half shows: the slope is
        then that of the distance itself, not of one that has the noise of a few rows in it.
        """
        rows = len(made) // HALVES
        halves = made[:rows], made[rows : HALVES * rows]
        values = [half @ self.matrix for half in halves]
        found = np.zeros_like(made)
        for place, other in ((0, 1), (1, 0)):
            missed = values[other].T @ values[other] / rows - self.moments
            missed *= self.across
            # d/dz of |Z'Z/N - M|^2 / 2 is 2 Z (Z'Z/N - M) / N
            slope = (2 * values[place] @ missed) @ self.matrix.T
            slope += self.columns * (halves[other].mean(axis=0) - self.chances)
            found[place * rows : (place + 1) * rows] = slope / (HALVES * rows)
        return found


def balanced(
    mixture: CodeMixture,
    parameters: np.ndarray,
    wanted: np.ndarray,
    generator: np.random.Generator,
) -> np.ndarray:
    """Parameters whose columns have the wanted chances: only the last offsets are moved."""
    parameters = parameters.copy()
    offsets = mixture.network.layers(parameters)[-1][1]
    noise = mixture.draw_noise(BALANCED_ROWS, generator)
    logits = mixture.network.outputs(parameters, noise)
    for _ in range(BALANCED_ROUNDS):
        means = mixture.softmax(logits).mean(axis=0)
        move = np.log(np.maximum(wanted, LEAST_CHANCE) / np.maximum(means, LEAST_CHANCE))
        offsets += move
        logits += move
    return parameters


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

    def redraw(
        self,
        codes: np.ndarray,
        base: np.ndarray,
        resample: np.ndarray,
        weights: np.ndarray,
        generator: np.random.Generator,
    ) -> np.ndarray:
        """The base weights of rows, a column a replicate, as those of redrawn counts.

        The counts of single columns are redrawn, and nothing else is: what the network made of the
        noise on relations is no part of it.
        """
        again = Remeasurement(codes, resample, weights, float(self.rows), generator)
        return redraw_columns(again, self.chances, self.deviation, nearest_chances, base)

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
