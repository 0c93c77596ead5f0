"""The exact law of an answer, and the privacy loss that follows from it without any sampling.

All that a query lets out went through its noise, so the law of an answer is known from what went
in: the exact vector and the scale, or the scores of a choice and the rate. `Listening` noise writes
that down. For two neighbouring tables the worst loss of each draw then has a closed form:

    Gaussian        norm2(v - v') / s             the mu of Gaussian DP
    Laplace         norm1(v - v') / b             pure epsilon
    L2-Laplace      norm2(v - v') / b             pure epsilon
    choice          rate (max - min) of u - u'    bounded range, which pure epsilon is at most

and is held against what the ledger was charged. Scales, shapes and charges are public, so they
have to be the same for both tables.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from counterpoise.schema import Schema
from counterpoise.vault import Budget, Share, Spend, Vault
from counterpoise.vault.events import (
    DiscreteLaplaceDpEvent,
    ExponentialDpEvent,
    GaussianDpEvent,
    PureDpEvent,
    SelfComposedDpEvent,
    pure_epsilon,
)
from counterpoise.vault.noise import Noise

# Where mu, or epsilon, is one.
GAUSSIAN = Share(0.5, pure=False)
PURE = Share(1.0, pure=True)

# What a claim may be exceeded by: rounding of the figures, not of the mechanism.
ROUNDING = 1e-9

EVENTS = {
    "gaussian": GaussianDpEvent,
    "laplace": DiscreteLaplaceDpEvent | PureDpEvent,
    "l2-laplace": PureDpEvent,
    "choice": ExponentialDpEvent,
}


@dataclass(frozen=True)
class Draw:
    """One call of the noise: the law, what went in, its scale (or rate), and what came out."""

    law: str
    exact: np.ndarray
    scale: float
    noised: Any


class Listening(Noise):
    """Noise that writes down what it is given; without a seed it adds nothing.

    `choices` are the answers to the choices to come, in order; after them, the best score wins.
    """

    def __init__(self, choices: Sequence[int] = (), seed: int | None = None):
        super().__init__(seed)
        self.draws: list[Draw] = []
        self._adds_noise = seed is not None
        self._choices = list(choices)

    @property
    def private(self) -> bool:
        return True  # so that the vault answers as it would for a curator

    def gaussian(self, values, scale):
        return self._heard("gaussian", super().gaussian, values, scale)

    def repeated_gaussian(self, values, scale):
        return self._heard("gaussian", super().repeated_gaussian, values, scale)

    def laplace(self, values, scale):
        return self._heard("laplace", super().laplace, values, scale)

    def l2_laplace(self, points, scale):
        return self._heard("l2-laplace", super().l2_laplace, points, scale)

    def choose(self, scores, rate):
        if self._choices:
            chosen = self._choices.pop(0)
        elif self._adds_noise:
            chosen = super().choose(scores, rate)
        else:
            chosen = int(np.argmax(scores))
        self.draws.append(Draw("choice", np.array(scores), rate, chosen))
        return chosen

    def _heard(self, law, draw, values, scale):
        noised = draw(values, scale) if self._adds_noise else np.array(values)
        self.draws.append(Draw(law, np.array(values), scale, noised))
        return noised.copy()


class Saying(Listening):
    """Noise that gives what somebody says, a function of no more than the size of a vector."""

    def __init__(self, says: Callable[[int], np.ndarray]):
        super().__init__()
        self._says = says

    def _heard(self, law, draw, values, scale):
        super()._heard(law, draw, values, scale)
        return self._says(values.size)


class Replaying(Listening):
    """Noise that gives the answers of earlier draws, whatever it is given now."""

    def __init__(self, script: Sequence[Draw]):
        super().__init__()
        self.script = list(script)

    def choose(self, scores, rate):
        return self._next("choice", np.asarray(scores), rate)

    def _heard(self, law, draw, values, scale):
        return self._next(law, np.asarray(values), scale).copy()

    def _next(self, law, exact, scale):
        earlier = self.script.pop(0)
        assert (earlier.law, earlier.exact.shape) == (law, exact.shape)
        assert earlier.scale == scale, "the scale of the noise depends on the rows"
        return earlier.noised


@dataclass(frozen=True)
class Heard:
    """What a query drew and was charged, and its answer."""

    draws: list[Draw]
    spends: list[Spend]  # those of several mechanisms one by one
    answer: Any


Ask = Callable[[Vault], Any]


def listen(
    ask: Ask,
    table: Any,
    schema: Schema,
    budget: Budget,
    noise: Listening | None = None,
    person: str | None = None,
) -> Heard:
    """Ask a vault over `table`, and hear all that its noise was given."""
    noise = noise or Listening()
    with Vault(table, schema, budget, person=person) as vault:
        vault._noise = noise
        answer = ask(vault)
        spends = [single for spend in vault.ledger.spends for single in _singles(spend)]
        return Heard(noise.draws, spends, answer)


def _singles(spend: Spend) -> list[Spend]:
    if isinstance(spend.event, SelfComposedDpEvent):
        return [replace(spend, event=spend.event.event)] * spend.event.count
    return [spend]


def loss(before: Draw, after: Draw) -> float:
    """The worst privacy loss of one draw, between two neighbouring tables."""
    assert (before.law, before.exact.shape) == (after.law, after.exact.shape)
    assert before.scale == after.scale, "the scale of the noise depends on the rows"
    moved = (after.exact - before.exact).astype(float)
    match before.law:
        case "laplace":
            return float(np.abs(moved).sum() / before.scale)
        case "choice":
            return float(moved.max() - moved.min()) * before.scale
        case _:
            return float(np.linalg.norm(moved) / before.scale)


def log_probabilities(draw: Draw) -> np.ndarray:
    """The law of a choice: the log-probability of each index."""
    weights = draw.scale * (draw.exact - draw.exact.max())
    return weights - logsumexp(weights)


def claim(law: str, spend: Spend) -> float:
    """The loss that was charged, in the terms of `loss`."""
    assert isinstance(spend.event, EVENTS[law]), f"{law} noise charged as {spend.event}"
    if isinstance(spend.event, GaussianDpEvent):
        return 1 / spend.event.noise_multiplier
    epsilon = pure_epsilon(spend.event)
    assert epsilon is not None
    return epsilon


def audit(
    ask: Ask,
    tables: tuple[Any, Any],
    schema: Schema,
    budget: Budget,
    person: str | None = None,
) -> float:
    """The part of its one charge that a query of one draw reveals of two neighbouring tables."""
    before, after = (listen(ask, table, schema, budget, person=person) for table in tables)
    assert before.spends == after.spends, "the charge depends on the rows"
    [spend], [first], [second] = before.spends, before.draws, after.draws
    claimed = claim(first.law, spend)
    if first.law == "choice":
        # The ratios of probabilities themselves, which the range of the scores bounds.
        ratios = log_probabilities(second) - log_probabilities(first)
        assert np.abs(ratios).max() <= loss(first, second) + ROUNDING
    return loss(first, second) / claimed


def budgets(pure: bool = False) -> list[Budget]:
    """Both relations, with one to three rows a person; large enough for any one query."""
    delta = 0.0 if pure else 1e-6
    return [
        Budget(50.0, delta, neighbours, rows)
        for neighbours in ("add-remove", "replace")
        for rows in (1, 2, 3)
    ]


def named(value: object) -> str:
    """A short name for a budget or a share, to call a test by."""
    if isinstance(value, Budget):
        relation = "replace" if is_replace(value) else "add-remove"
        return f"{relation} {value.max_rows_per_person}"
    return ("pure" if value.pure else "zcdp") if isinstance(value, Share) else str(value)


def is_replace(budget: Budget) -> bool:
    """Whether one person's rows are replaced, not added."""
    return budget.neighbours.name == "REPLACE_ONE"


BOTH = [
    *((GAUSSIAN, budget) for budget in budgets()),
    *((PURE, budget) for budget in budgets(pure=True)),
]
EVERY = pytest.mark.parametrize(("share", "budget"), BOTH, ids=named)
EVERY_BUDGET = pytest.mark.parametrize("budget", budgets(), ids=named)


def pair(
    rest: pd.DataFrame, person: dict[str, Any], other: dict[str, Any], budget: Budget
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Neighbours: `rest` and a person's rows, added to it or put for as many of another's."""
    rows = budget.max_rows_per_person
    having = pd.concat([rest, pd.DataFrame([person] * rows)], ignore_index=True)
    if is_replace(budget):
        return pd.concat([rest, pd.DataFrame([other] * rows)], ignore_index=True), having
    return rest, having


def assert_charged(part: float, least: float) -> None:
    """Never more than what was charged, and no less than `least` of it."""
    assert part <= 1 + ROUNDING, f"{part:.6f} of what was charged is revealed"
    assert part >= least, f"only {part:.6f} of what was charged could be shown"
    assert math.isfinite(part)
