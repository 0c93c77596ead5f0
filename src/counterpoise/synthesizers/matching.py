"""Matching a noisy mean embedding: measured by two looks, then a network trained to have it, free.

The noisy counts of every column, and the noisy sum of the features of all pairs of columns, whose
kernel is in `embedding`. The maximum mean discrepancy of two tables is the distance of their mean
embeddings, so a network that makes chances of codes (`CodeMixture`) can be trained against the
noisy one as post-processing, for as many steps as one likes (Balog, Tolstikhin and Schölkopf 2018;
Harder, Adamczewski and Park 2021). Before that the spectrum of the embedding is cleared of what the
noise alone would show; at the end the network's columns are given the distributions of their noisy
counts. `dp-mmd` is this and nothing more; the private GANs start from it.

Charge: one Gaussian event over d marginals and one over the sum of features; delta > 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoise.networks.mixture import CodeMixture
from counterpoise.networks.optimisers import Optimiser
from counterpoise.synthesizers.embedding import Embedding, shrink
from counterpoise.synthesizers.independent import pooled_rows
from counterpoise.synthesizers.progress import report
from counterpoise.synthesizers.shares import nearest_chances
from counterpoise.vault import Share, Vault

# The part of the share for the counts of single columns.
COUNTS_PART = 0.3
# The training: steps, rows in each, and the learning rate.
MATCHING_STEPS, MATCHED_ROWS, MATCHING_RATE = 400, 256, 0.01
START = 3.0
# Single columns count as much as this many of them at most: a lot of rows shows their chances with
# an error that grows with their number, and relations would drown in it.
MOST_COUNTED = 32
# Of what is drawn in a step, each half is held against what the other one shows.
HALVES = 2
# The last part of the steps over which the parameters are averaged.
AVERAGED_PART = 0.25
# Rows of noise by which columns are given their distributions, in so many rounds.
BALANCED_ROWS, BALANCED_ROUNDS = 8192, 20
# Or until all chances are as near as this.
BALANCED_TO = 1e-5
# A chance below this is none; logits stay finite.
LEAST_CHANCE = 1e-7
STEPS_A_REPORT = 50


@dataclass(frozen=True, eq=False)
class MeasuredEmbedding:
    """What was measured: the distributions of single columns, and the means of products of two."""

    rows: int
    chances: tuple[np.ndarray, ...]
    deviation: float  # of the noise on each count of a column
    embedding: Embedding
    moments: np.ndarray  # cleared of noise
    given: int | None = None  # the place of the column that a network is told, if it is told one

    @cached_property
    def wanted(self) -> np.ndarray:
        """The chances of all codes, column after column."""
        return np.concatenate(self.chances).astype(np.float32)

    @cached_property
    def loss(self) -> EmbeddingLoss:
        """How far the chances that a network makes are from all of it."""
        # Single precision is twice as fast, and finer than the noise by far.
        matrix, importance, moments = (
            part.astype(np.float32)
            for part in (self.embedding.matrix, self._importance, self.moments)
        )
        counted = min(len(self.chances), MOST_COUNTED)
        return EmbeddingLoss(matrix, importance, moments, self.wanted, counted)

    @cached_property
    def _importance(self) -> np.ndarray:
        """How much each product of two functions counts: none within a column.

        The relations of a column that is given count together as much as all others. There are
        d - 1 of them, and (d - 1) (d - 2) / 2 others: of many columns a network would learn those
        that the other columns have among themselves, and ignore what it is told.
        """
        found = self.embedding.is_across.astype(float)
        if self.given is not None:
            is_given = self.embedding.owners == self.given
            of_given = is_given[:, None] | is_given[None, :]
            found[of_given] *= max(1.0, (len(self.chances) - 2) / 2)
        return found


def measure(
    vault: Vault, share: Share, counts_part: float = COUNTS_PART, given: str | None = None
) -> MeasuredEmbedding:
    """Measure single columns, then the embedding; charges the whole share."""
    schema = vault.schema
    cliques = [(name,) for name in schema.names]
    if len(schema) == 1:
        counts, for_embedding = vault.counts(cliques, share), None
    else:
        for_counts, for_embedding = share.split(counts_part, 1 - counts_part)
        counts = vault.counts(cliques, for_counts)
    rows = pooled_rows(vault, counts)
    chances = tuple(nearest_chances(table.values / rows) for table in counts)
    embedding = Embedding.over(schema, chances, given)
    moments = np.zeros((len(embedding.owners),) * 2)
    if for_embedding is not None:
        one = for_embedding.gaussian_scale(vault.budget.row_sensitivity(1.0))
        bound = embedding.bound(one / (np.sqrt(2) * rows))
        found = vault.sums(embedding, bound, for_embedding)
        noisy = embedding.moments(found.values, rows)
        moments = shrink(noisy, found.scale / (np.sqrt(2) * rows))
    place = None if given is None else schema.index(given)
    return MeasuredEmbedding(rows, chances, counts[0].deviation, embedding, moments, place)


def match(
    measured: MeasuredEmbedding,
    mixture: CodeMixture,
    *,
    steps: int,
    rows: int,
    rate: float,
    generator: np.random.Generator,
    is_reported: bool = False,
) -> np.ndarray:
    """Parameters under which rows have the embedding and the chances."""
    parameters = mixture.network.initial(generator).astype(np.float32)
    # Columns start with their distributions, and away from where they are independent of each
    # other: relations have no slope there, and a network that comes too near stays.
    last, offsets = mixture.network.layers(parameters)[-1]
    last *= START if measured.moments.any() else 0.0
    offsets += np.log(np.maximum(measured.wanted, LEAST_CHANCE))
    if not measured.moments.any():  # nothing stands out of the noise: columns are independent
        return parameters
    state = Optimiser("adam", rate).start(len(parameters))
    average, averaged = np.zeros_like(parameters), 0
    for step in range(steps):
        noise = draw_noise(mixture, measured.chances, rows, generator)
        passed = mixture.network.forward(parameters, noise)
        made = mixture.softmax(passed.outputs, noise)
        gradient = mixture.gradient(parameters, passed, made, measured.loss.slopes(made))
        # Steps shorten to nothing, and their noise with them.
        rule = Optimiser("adam", rate * (1 - step / steps))
        parameters, state = rule.step(parameters, gradient, state)
        if is_reported and step % STEPS_A_REPORT == 0:
            report(step / steps)
        if step >= (1 - AVERAGED_PART) * steps:
            average += parameters
            averaged += 1
    return balanced(mixture, average / averaged, measured.chances, generator)


@dataclass(frozen=True, eq=False)
class EmbeddingLoss:
    """Half the squared distance of embeddings, with that of single columns."""

    matrix: np.ndarray  # codes x functions
    importance: np.ndarray  # of each product of two functions
    moments: np.ndarray
    chances: np.ndarray
    counted: int  # how much single columns count

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
            missed *= self.importance
            # d/dz of |Z'Z/N - M|^2 / 2 is 2 Z (Z'Z/N - M) / N
            slope = (2 * values[place] @ missed) @ self.matrix.T
            slope += self.counted * (halves[other].mean(axis=0) - self.chances)
            found[place * rows : (place + 1) * rows] = slope / (HALVES * rows)
        return found


def draw_noise(
    mixture: CodeMixture,
    chances: Sequence[np.ndarray],
    rows: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Noise for so many rows, with codes of the given column by its chances."""
    codes = None
    if mixture.given is not None:
        given = chances[mixture.given]
        codes = generator.choice(len(given), rows, p=given)
    return mixture.draw_noise(rows, generator, codes)


def balanced(
    mixture: CodeMixture,
    parameters: np.ndarray,
    chances: Sequence[np.ndarray],
    generator: np.random.Generator,
) -> np.ndarray:
    """Parameters whose columns have the wanted chances: only the last offsets are moved."""
    parameters = parameters.copy()
    wanted = np.concatenate(chances)
    offsets = mixture.network.layers(parameters)[-1][1]
    noise = draw_noise(mixture, chances, BALANCED_ROWS, generator)
    logits = mixture.network.outputs(parameters, noise)
    for _ in range(BALANCED_ROUNDS):
        means = mixture.softmax(logits, noise).mean(axis=0)
        move = np.log(np.maximum(wanted, LEAST_CHANCE) / np.maximum(means, LEAST_CHANCE))
        offsets += move
        logits += move
        if np.abs(means - wanted).max() < BALANCED_TO:
            break
    return parameters
