"""Where a GAN begins: from nothing, or from a noisy mean embedding that a part of its share buys.

From nothing, the number of rows is paid for (or the counts of a column that is given), and the
generator makes numbers. With a start, that part of the share measures the counts of all columns and
the mean embedding of their pairs (`matching`); a network that makes codes is trained to have them,
which is free, and the critic refines it. The game holds the generator to the embedding, and at
its end the columns have the distributions of their noisy counts again.

Charge: a Gaussian event for the rows, or the given column; or the two of `matching`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from counterpoise.arguments import real_number, whole_number
from counterpoise.networks import Inputs, Network
from counterpoise.networks.code_generator import CodeGenerator
from counterpoise.networks.generator import RowGenerator
from counterpoise.synthesizers.adversarial import Maker, Player, Start, Trained
from counterpoise.synthesizers.boosting import BOOST_PART, CriticScores, boosted
from counterpoise.synthesizers.gan_model import GanModel, draw_given
from counterpoise.synthesizers.matching import (
    MATCHED_ROWS,
    MATCHING_RATE,
    MeasuredEmbedding,
    balanced,
    match,
    measure,
)
from counterpoise.synthesizers.shares import nearest_chances
from counterpoise.vault import REPLACE, Share, Vault

# The part of the share for the number of rows, or for the counts of the given column.
ROWS_PART, TARGET_PART = 0.05, 0.1


class Method(Protocol):
    """What a beginning has to know of a GAN."""

    @property
    def start(self) -> float:
        """The part of the share that the start has; none for a start from nothing."""
        ...

    @property
    def start_steps(self) -> int:
        """How long a generator is trained before the game."""
        ...

    @property
    def hold(self) -> float:
        """How much the generator is held to what it started from."""
        ...

    @property
    def snapshots(self) -> int:
        """States that are kept for boosting; none without it."""
        ...

    @property
    def noise(self) -> int:
        """Random numbers of a row."""
        ...

    @property
    def hidden(self) -> int:
        """Units of the generator's two hidden layers."""
        ...

    @property
    def seed(self) -> int:
        """That of the networks' start."""
        ...


@dataclass(frozen=True, eq=False)
class Begun:
    """A generator before its game, and the share that is left for it."""

    rows: int
    maker: Maker
    chances: np.ndarray | None  # of the categories of the given column
    rest: Share
    for_boosting: Share | None = None
    measured: MeasuredEmbedding | None = None
    start: Start | None = None

    def player(self, rows: int) -> Player:
        """The generator's side of a game, with so many rows at a time."""
        return Player(
            self.maker, lambda count, by: draw_given(self.chances, count, by), rows, self.start
        )

    def finished(self, parameters: np.ndarray) -> np.ndarray:
        """Parameters after the game; columns that were measured are as they were measured."""
        if self.measured is None or not isinstance(self.maker, CodeGenerator):
            return parameters
        generator = np.random.default_rng(0)
        return balanced(self.maker.mixture, parameters, self.measured.chances, generator)

    def end(
        self, vault: Vault, trained: Trained, network: Network, loss: str, player: Player, seed: int
    ) -> GanModel:
        """The model after the game; charges what is kept for boosting, if something is."""
        if self.for_boosting is None:
            parameters, shares = self.finished(trained.generator)[None], np.ones(1)
        else:
            parameters = np.stack([self.finished(each) for each in trained.generators])
            scores = CriticScores(self.maker.inputs, network, trained.critics)
            shares = boosted(vault, self.for_boosting, scores, player, parameters, self.rows, seed)
        return GanModel(
            vault.schema,
            self.maker,
            parameters,
            shares,
            self.chances,
            network,
            trained.critic,
            loss,
            self.rows,
            vault.private,
        )


def begin(
    vault: Vault, share: Share, inputs: Inputs, method: Method, target: str | None = None
) -> Begun:
    """Pay for what a game begins with; charges the start's part of the share, or a little of it."""
    hidden = (method.hidden, method.hidden)
    if not method.start:
        rows, chances, rest = pay_for_rows(vault, share, target)
        maker = RowGenerator(inputs, method.noise, hidden, target)
        return Begun(rows, maker, chances, *_kept_back(rest, method))
    paid, rest = share.split(method.start, 1 - method.start)
    measured = measure(vault, paid, given=target)
    coder = CodeGenerator(inputs, method.noise, hidden, target)
    parameters = match(
        measured,
        coder.mixture,
        steps=method.start_steps,
        rows=MATCHED_ROWS,
        rate=MATCHING_RATE,
        generator=np.random.default_rng(method.seed),
    )
    chances = None if target is None else measured.chances[vault.schema.index(target)]
    start = Start(parameters, measured.loss, method.hold)
    kept = _kept_back(rest, method)
    return Begun(measured.rows, coder, chances, *kept, measured, start)


def _kept_back(rest: Share, method: Method) -> tuple[Share, Share | None]:
    """What a game has of what is left, and what boosting has afterwards."""
    if not method.snapshots:
        return rest, None
    for_game, for_boosting = rest.split(1 - BOOST_PART, BOOST_PART)
    return for_game, for_boosting


def checked_beginning(method: Method) -> dict[str, Any]:
    """The parameters of a beginning, or a refusal."""
    part = "a part from 0 to 0.99"
    return {
        "start": real_number("start", method.start, part, above=0, below=0.99, inclusive=True),
        "start_steps": whole_number("start_steps", method.start_steps, most=1_000_000),
        "hold": real_number("hold", method.hold, "a number from 0", above=0, inclusive=True),
        "snapshots": whole_number("snapshots", method.snapshots, 0, 1000),
        "noise": whole_number("noise", method.noise, most=10_000),
        "hidden": whole_number("hidden", method.hidden, most=10_000),
        "seed": whole_number("seed", method.seed, 0),
    }


def pay_for_rows(
    vault: Vault, share: Share, target: str | None
) -> tuple[int, np.ndarray | None, Share]:
    """The noisy number of rows, the chances of the given column, and what is left of the share."""
    if target is not None:
        paid, rest = share.split(TARGET_PART, 1 - TARGET_PART)
        [counts] = vault.counts([(target,)], paid)
        is_public = vault.budget.neighbours is REPLACE
        rows = max(1, vault.total().value if is_public else int(counts.values.sum()))
        return rows, nearest_chances(counts.values / rows), rest
    if vault.budget.neighbours is REPLACE:
        return max(1, vault.total().value), None, share
    paid, rest = share.split(ROWS_PART, 1 - ROWS_PART)
    return max(1, vault.total(paid).value), None, rest
