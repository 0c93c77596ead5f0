"""What private support points are held against: the baselines of section 5.7.2 of the dissertation.

M. Diesendruck 2019, chapter 5. They are of use to a comparison alone, and so they are here and not
among the methods: who wants a histogram has `histogram`, whose bins a release chooses better, and
who wants a noisy kernel mean embedding has `dp-mmd`. Both ask a vault, and are charged truly.

- A histogram with Laplace noise of the extended uniform grid (Su, Cao, Li, Bertino and Jin 2016):
  (N eps / 10)^(2d / (2 + d)) cells in all, as many bins in each of the d columns.
- The kernel mean embedding with random cosines (Balog, Tolstikhin and Schölkopf 2018, algorithm 2):
  one noisy sum, and then points whose own embedding is near it, with weights of any sign or with
  equal ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from counterpoise import Budget, Schema, Vault
from counterpoise.networks import Optimiser
from counterpoise.schema import Coded
from counterpoise.synthesizers import Histogram
from counterpoise.weights.features import Features, RandomFourier

# A histogram of more does not fit into memory beside other work, and is left out.
MOST_CELLS = 2_000_000
COSINES = 200
# Of the typical distance sqrt(d / 6) of two uniform points. It was settled on generated tables.
WIDTH_PART = 1.0
STEPS, RATE, STEPS_A_SOLUTION = 200, 0.02, 10
LEAST_PENALTY = 1e-6


@dataclass(frozen=True, eq=False)
class WeightedPoints:
    """Points of the unit box, with weights that sum to one and may have any sign."""

    units: np.ndarray
    weights: np.ndarray

    @classmethod
    def even(cls, units: np.ndarray) -> WeightedPoints:
        return cls(units, np.full(len(units), 1 / len(units)))


def bins_of_the_rule(rows: int, columns: int, epsilon: float) -> int:
    """The bins of each column, so that there are about (N eps / 10)^(2d / (2 + d)) cells in all.

    >>> bins_of_the_rule(400, 14, 100), bins_of_the_rule(400, 2, 100)
    (3, 63)
    """
    return max(1, round((rows * epsilon / 10) ** (2 / (2 + columns))))


def laplace_histogram(
    table: pd.DataFrame, schema: Schema, epsilon: float, seed: int
) -> WeightedPoints | None:
    """As many rows as the table has, of the histogram with bins by the rule; None beyond memory."""
    bins = bins_of_the_rule(len(table), len(schema), epsilon)
    if bins ** len(schema) > MOST_CELLS:
        return None
    coarse = Schema([replace(column, bins=bins) for column in schema])
    budget = Budget(epsilon, neighbours="replace")
    with Vault(table, coarse, budget, seed=seed) as vault:
        model = Histogram(most_cells=MOST_CELLS).fit(vault, budget.whole)
    return WeightedPoints.even(schema.encode(model.sample(len(table), seed=seed)).units)


@dataclass(frozen=True, eq=False)
class MeanEmbedding:
    """The mean of random cosines over rows, and the deviation of its noise."""

    features: Features
    values: np.ndarray
    deviation: float = 0.0


def cosines(schema: Schema) -> Features:
    """The random features, the same for every method."""
    nothing = schema.encode(pd.DataFrame({name: [] for name in schema.names}, dtype=float))
    width = WIDTH_PART * math.sqrt(len(schema) / 6)
    return RandomFourier(COSINES, width).over(nothing)


def exact_embedding(rows: Coded) -> MeanEmbedding:
    """The mean embedding as it is; not private."""
    features = cosines(rows.schema)
    return MeanEmbedding(features, features(rows).mean(axis=0))


def noisy_embedding(
    table: pd.DataFrame, schema: Schema, epsilon: float, delta: float, seed: int
) -> MeanEmbedding:
    """The mean embedding by one Gaussian query; the number of rows is public."""
    features = cosines(schema)
    budget = Budget(epsilon, delta, "replace")
    with Vault(table, schema, budget, seed=seed) as vault:
        found = vault.sums(features, features.bound, budget.whole)
    rows = len(table)
    return MeanEmbedding(features, found.values / rows, found.scale / rows)


def match_embedding(
    wanted: MeanEmbedding, count: int, columns: int, is_weighted: bool, seed: int
) -> WeightedPoints:
    """`count` points whose weighted embedding is near the wanted one; free.

    Points start anywhere in the box and go by Adam; weights are those of a ridge regression, whose
    penalty is that of weights that vary by 1/k about 1/k, given the noise.
    """
    block = wanted.features.blocks[0]
    frequencies, phases = block.frequencies, block.phases
    generator = np.random.default_rng(seed)
    points = generator.random((count, columns))
    weights = np.full(count, 1 / count)
    state = Optimiser().start(points.size)
    for step in range(STEPS):
        angles = points @ frequencies + phases
        if is_weighted and step % STEPS_A_SOLUTION == 0:
            weights = _ridge(np.cos(angles), wanted)
        apart = weights @ np.cos(angles) - wanted.values
        # d |F' w - mu|^2 / d y_j = -2 w_j A (sin(A' y_j + b) (F' w - mu))
        slopes = -2 * weights[:, None] * ((np.sin(angles) * apart) @ frequencies.T)
        rule = Optimiser("adam", RATE * (1 - step / STEPS))
        moved, state = rule.step(points.ravel(), slopes.ravel(), state)
        points = np.clip(moved.reshape(points.shape), 0.0, 1.0)
    if is_weighted:
        weights = _ridge(np.cos(points @ frequencies + phases), wanted)
    return WeightedPoints(points, weights)


def _ridge(cosines: np.ndarray, wanted: MeanEmbedding) -> np.ndarray:
    """Weights that sum to one and make the embedding, as near to equal ones as its noise asks."""
    count = len(cosines)
    even = np.full(count, 1 / count)
    penalty = max(LEAST_PENALTY * COSINES, (count * wanted.deviation) ** 2)
    gram = cosines @ cosines.T + penalty * np.eye(count)
    weights = even + np.linalg.solve(gram, cosines @ (wanted.values - even @ cosines))
    total = weights.sum()
    return weights / total if total > 0 else even
