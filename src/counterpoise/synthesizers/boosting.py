"""Post-GAN boosting: rows from several states of a generator, mixed so that its critics are fooled.

A generator does not get better with every step, and no one critic sees all that is wrong. So states
of both are kept on the way, and afterwards the generators are mixed (Neunhoeffer, Wu and Dwork
2021): a mixture is looked for that no critic tells from private rows. The paper looks at private
rows in every round, by a private selection of the critic. What a critic says of private rows on
average does not change from round to round, so here there is one look, for all critics at once; the
rounds of multiplicative weights, which are a game of two, are post-processing.

**Sensitivity.** What a critic says of a row goes through a logistic function less one half, so it
is between -1/2 and 1/2, and what K critics say has a norm of at most sqrt(K)/2: that is D2 of the
sum under add/remove, and twice that under replace.

Charge: one Gaussian event, `BOOST_PART` of what is left after the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from counterpoise.formulas.row_by_row import row_products
from counterpoise.networks import Inputs, Network
from counterpoise.schema import Coded
from counterpoise.synthesizers.adversarial import Player
from counterpoise.vault import Share, Vault

# The part of the share of a game that the one look has.
BOOST_PART = 0.1
# Rows by which it is known what critics say of a generator; a game's rounds.
SCORED_ROWS, ROUNDS = 4096, 300


@dataclass(frozen=True, eq=False)
class CriticScores:
    """What several critics say of a row, each from -1/2 to 1/2.

    >>> from counterpoise.schema import Column, Schema
    >>> inputs = Inputs(Schema([Column.boolean("ill")]))
    >>> scores = CriticScores(inputs, Network((2, 1)), np.zeros((4, 3)))
    >>> scores.names, scores.bound
    (('critic 1', 'critic 2', 'critic 3', 'critic 4'), 1.0)
    """

    inputs: Inputs
    network: Network
    critics: np.ndarray  # a row of parameters a critic

    @property
    def names(self) -> tuple[str, ...]:
        """One name a critic."""
        return tuple(f"critic {place}" for place in range(1, len(self.critics) + 1))

    @property
    def bound(self) -> float:
        """The most that the scores of a row can have in norm."""
        return math.sqrt(len(self.critics)) / 2

    def __call__(self, rows: Coded) -> np.ndarray:
        """The scores of each row."""
        return self.of(self.inputs(rows))

    def of(self, seen: np.ndarray) -> np.ndarray:
        """The scores of rows as critics see them."""
        passed = [self.network.forward(critic, seen, row_products) for critic in self.critics]
        outputs = [each.outputs[:, 0] for each in passed]
        found: np.ndarray = expit(np.column_stack(outputs)) - 0.5
        return found


def boosted(
    vault: Vault,
    share: Share,
    scores: CriticScores,
    player: Player,
    generators: np.ndarray,
    rows: int,
    seed: int,
) -> np.ndarray:
    """The shares of rows that each generator is to make; charges one event."""
    answer = vault.sums(scores, scores.bound, share)
    wanted = np.clip(answer.values / rows, -0.5, 0.5)
    made = []
    for generator in generators:
        stream = np.random.default_rng([seed, 2])
        parts = [player.inputs(generator, stream) for _ in range(SCORED_ROWS // player.rows + 1)]
        made.append(scores.of(np.concatenate(parts)).mean(axis=0))
    return mixed(np.stack(made), wanted, answer.scale / rows)


def mixed(made: np.ndarray, wanted: np.ndarray, deviation: float) -> np.ndarray:
    """The mixture of generators whose mean scores are nearest to the wanted ones.

    `made` has a row a generator and a column a critic; `deviation` is that of the noise on what is
    wanted. In each round the critic that tells most, either way, is answered by generators that it
    likes more or less (Freund and Schapire 1999), and the mixtures of all rounds are averaged. A
    difference that noise alone would show is not answered.

    >>> made = np.array([[0.4, 0.0], [-0.4, 0.0]])
    >>> mixed(made, np.array([0.2, 0.0]), 0.0).round(1)
    array([0.8, 0.2])
    >>> mixed(made, np.array([0.2, 0.0]), 1.0)
    array([0.5, 0.5])
    """
    generators, critics = made.shape
    shares = np.full(generators, 1 / generators)
    # The largest of so many draws of noise, about.
    shown = deviation * math.sqrt(2 * math.log(2 * critics))
    pace = math.sqrt(8 * math.log(max(generators, 2)) / ROUNDS)
    total = np.zeros(generators)
    for _ in range(ROUNDS):
        missed = wanted - shares @ made
        most = int(np.abs(missed).argmax())
        if abs(missed[most]) > shown:
            shares = shares * np.exp(pace * np.sign(missed[most]) * made[:, most])
            shares /= shares.sum()
        total += shares
    found: np.ndarray = total / ROUNDS
    return found
