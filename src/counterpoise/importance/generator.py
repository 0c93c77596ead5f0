"""Generator networks trained by weighted rows, so that they make rows of the target.

Rows were drawn from M P; the network takes noise to rows of P, because each of its losses is
weighted by an estimator of `averages` (M. Diesendruck 2019, section 3.3). With the squared
discrepancy of `losses` the network comes nearer to the weighted rows under a fixed kernel (Li,
Swersky and Zemel 2015); with cross-entropy a critic learns to tell weighted rows from made ones,
and the network to mislead it (Goodfellow and others 2014). Told of some columns beside the noise it
is conditional (Mirza and Osindero 2014). The parameters are averaged over the later half of the
steps. Nothing of this is private: rows that are somebody's secret have no place here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import expit

from counterpoise.arguments import (
    number_array,
    one_of,
    real_number,
    seed_or_none,
    settle,
    whole_number,
)
from counterpoise.errors import MethodError
from counterpoise.importance.averages import ESTIMATORS, GROUPS, ID, IW, SNIW, checked_weights
from counterpoise.importance.averages import copies as copies_of
from counterpoise.importance.losses import cross_entropy, discrepancy_slopes
from counterpoise.networks import Network, Optimiser

MMD, CROSS_ENTROPY = LOSSES = ("mmd", "cross-entropy")

# Rows from which the typical distance is taken, and the widths of the kernels in its multiples.
_TYPICAL_ROWS = 500
_WIDTHS = (0.25, 0.5, 1.0)

# A column that is constant is not spread.
_LEAST_SPREAD = 1e-9

# What Adam remembers of the gradient: little, because the other network moves on. A critic that is
# to be followed goes ahead (Heusel and others 2017).
_MEMORY, _CRITIC_AHEAD = 0.5, 3.0

Gradient = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class WeightedGenerator:
    """How a generator is trained; `fit` makes one.

    `loss` is "mmd" or "cross-entropy", `estimator` one of `ESTIMATORS`, with `groups` of a lot for
    "miw" and ceil(`copies` w) copies of a row for "id". `rate`, of a critic where there is one,
    falls to zero over the steps.

    >>> generator = np.random.default_rng(0)
    >>> x = np.sqrt(generator.random((2000, 1)))             # of density 2x; uniform is wanted
    >>> weights = 1 / (2 * np.maximum(x[:, 0], 0.05))
    >>> made = WeightedGenerator(steps=300).fit(x, weights, seed=1).sample(2000, seed=2)
    >>> bool(x.mean() > 0.65 and abs(made.mean() - 0.5) < 0.08)
    True
    """

    loss: str = MMD
    estimator: str = SNIW
    hidden: tuple[int, ...] = (64, 64)
    noise: int = 10  # numbers of noise that a row is made of
    steps: int = 1000
    lot: int = 128  # rows a step, real ones and made ones
    rate: float = 0.003
    groups: int = GROUPS
    copies: float = 1.0

    def __post_init__(self) -> None:
        above = "a number above 0"
        settle(
            self,
            loss=one_of("loss", self.loss, LOSSES),
            estimator=one_of("estimator", self.estimator, ESTIMATORS),
            hidden=Network((1, *self.hidden, 1)).units[1:-1],
            noise=whole_number("noise", self.noise),
            steps=whole_number("steps", self.steps),
            lot=whole_number("lot", self.lot, 2),
            rate=real_number("rate", self.rate, above, above=0),
            copies=real_number("copies", self.copies, above, above=0),
        )
        settle(self, groups=whole_number("groups", self.groups, 1, self.lot // 2))

    def fit(
        self, points: Any, weights: Any = None, given: Any = None, seed: int | None = None
    ) -> GeneratorModel:
        """Train on points, rows x columns, drawn from M P with weights 1 / M.

        `given` are columns that the network is told of, and that `sample` has to be told of too.
        """
        real = _rows("points", points)
        own = checked_weights(weights, len(real))
        told = np.empty((len(real), 0)) if given is None else _rows("given", given)
        if len(real) < 2 or len(told) != len(real):
            raise MethodError("points: expected two rows or more, and as many of what is given")
        random = np.random.default_rng(seed_or_none(seed))
        scale = _Scale.of(real, own), _Scale.of(told, own)
        training = _Training(self, scale[0].to(real), scale[1].to(told), own, random)
        made, critic = training.start()
        state, critic_state = (Optimiser().start(len(each)) for each in (made, critic))
        total, count = np.zeros(len(made)), 0
        for step in range(self.steps):
            pace = self.rate * (1 - step / self.steps)
            if self.loss == CROSS_ENTROPY:
                slope = training.critic_gradient(made, critic)
                rule = Optimiser("adam", pace, memory=_MEMORY)
                critic, critic_state = rule.step(critic, slope, critic_state)
                pace /= _CRITIC_AHEAD
            rule = Optimiser("adam", pace, memory=_MEMORY)
            made, state = rule.step(made, training.gradient(made, critic), state)
            if 2 * (step + 1) > self.steps:
                total, count = total + made, count + 1
        return GeneratorModel(training.network, total / count, self.noise, *scale)


@dataclass(frozen=True, eq=False)
class GeneratorModel:
    """A trained generator; it makes rows within the ranges of those that it was trained on."""

    network: Network
    parameters: np.ndarray
    noise: int
    scale: _Scale
    given: _Scale

    def sample(self, rows: int, seed: int | None = None, given: Any = None) -> np.ndarray:
        """So many rows; `given` has a row for each, where the generator was trained with it."""
        rows = whole_number("rows", rows, 0)
        told = np.empty((rows, 0)) if given is None else _rows("given", given)
        if told.shape != (rows, len(self.given.centre)):
            raise MethodError(
                f"given: expected {rows:,} rows of the {len(self.given.centre)} columns that the "
                "generator was trained with"
            )
        random = np.random.default_rng(seed_or_none(seed))
        seen = np.hstack([random.standard_normal((rows, self.noise)), self.given.to(told)])
        return self.scale.back(self.network.outputs(self.parameters, seen))


@dataclass(frozen=True, eq=False)
class _Scale:
    """Columns centred and scaled by weighted rows, and their ranges."""

    centre: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray) -> _Scale:
        shares = weights / weights.sum()
        centre = shares @ rows
        spread = np.sqrt(shares @ (rows - centre) ** 2)
        spread = np.where(spread > _LEAST_SPREAD, spread, 1.0)
        return cls(centre, spread, rows.min(axis=0), rows.max(axis=0))

    def to(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = (rows - self.centre) / self.spread
        return found

    def back(self, rows: np.ndarray) -> np.ndarray:
        return np.clip(rows * self.spread + self.centre, self.low, self.high)


class _Training:
    """The lots of a training, and the two networks' gradients over them."""

    def __init__(
        self,
        asked: WeightedGenerator,
        real: np.ndarray,
        told: np.ndarray,
        weights: np.ndarray,
        random: np.random.Generator,
    ):
        self._asked, self._random = asked, random
        self._real, self._weights, self._told = np.hstack([real, told]), weights, told
        self._estimator = asked.estimator
        if asked.estimator == ID:
            # The copies are the table that is trained on, each row as likely as its number of them.
            times = copies_of(weights, asked.copies)
            self._places = np.repeat(np.arange(len(real)), times)
            self._weights, self._estimator = np.ones(len(real)), IW
        else:
            self._places = np.arange(len(real))
        columns = real.shape[1]
        self.network = Network((asked.noise + told.shape[1], *asked.hidden, columns))
        self._critic = Network((columns + told.shape[1], *asked.hidden, 1), "leaky-relu")
        typical = self._real[random.choice(len(real), min(len(real), _TYPICAL_ROWS), replace=False)]
        distance = float(np.median(pdist(typical))) or 1.0
        self._widths = [part * distance for part in _WIDTHS]

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """The parameters of the generator and of the critic to start from."""
        return self.network.initial(self._random), self._critic.initial(self._random)

    def critic_gradient(self, parameters: np.ndarray, critic: np.ndarray) -> np.ndarray:
        """The gradient of the cross-entropy of a fresh lot in the critic's parameters."""
        lot = self._lot()
        rows = np.vstack([self._real[lot], self._make(parameters)[1]])
        passed = self._critic.forward(critic, rows)
        logits = passed.outputs[:, 0]
        half = len(lot)
        loss = cross_entropy(
            logits[:half],
            logits[half:],
            self._weights[lot],
            self._estimator,
            self._asked.groups,
            seed=int(self._random.integers(2**31)),
        )
        slopes = np.concatenate([loss.of_real, loss.of_generated])[:, None]
        return self._critic.gradient(passed, self._critic.backward(critic, passed, slopes))

    def gradient(self, parameters: np.ndarray, critic: np.ndarray) -> np.ndarray:
        """The gradient of the loss of a fresh lot in the generator's parameters."""
        passed, rows = self._make(parameters)
        columns = self.network.units[-1]
        if self._asked.loss == CROSS_ENTROPY:
            seen = self._critic.forward(critic, rows)
            # The mean of log(1 + e^-g): minus the loss of a critic that is sure has no slopes
            slopes = -expit(-seen.outputs) / len(rows)
            errors = self._critic.backward(critic, seen, slopes)
            of_rows = self._critic.input_slopes(critic, errors)[:, :columns]
        else:
            lot = self._lot()
            of_rows = discrepancy_slopes(
                self._real[lot],
                rows,
                self._weights[lot],
                self._estimator,
                self._widths,
                self._asked.groups,
                seed=int(self._random.integers(2**31)),
            )[:, :columns]
        return self.network.gradient(passed, self.network.backward(parameters, passed, of_rows))

    def _make(self, parameters: np.ndarray) -> tuple[Any, np.ndarray]:
        """A lot of made rows beside what they were told, and the pass that made them."""
        told = self._told[self._lot()]
        noise = self._random.standard_normal((len(told), self._asked.noise))
        passed = self.network.forward(parameters, np.hstack([noise, told]))
        return passed, np.hstack([passed.outputs, told])

    def _lot(self) -> np.ndarray:
        return self._places[self._random.integers(len(self._places), size=self._asked.lot)]


def _rows(name: str, value: Any) -> np.ndarray:
    found = number_array(name, value)
    if found.ndim != 2 or not np.isfinite(found).all():
        raise MethodError(f"{name}: expected finite numbers, rows x columns")
    return found
