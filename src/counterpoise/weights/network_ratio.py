"""Weights from a trained network: its logit, what it was trained by, and its training rehearsed.

`mlp` and `dp-mlp` differ in their noise alone. Both pay for the number of private rows where that
is private, train a classifier of private and public rows by the vault's descent (`classifier`), and
take its logit for the log-ratio of the densities: the two sides count the same in the training, so
that Bayes' rule adds no constant. A logit is cut at a public limit, so that no row weighs more or
less than its e-th power.

Replicates run the whole training again on public rows, step by step: rows are drawn from the
weighted synthetic table in the place of the private ones, lots are sampled and noise is added as
the vault does it, and the logits move as such a training moves them. That covers the sampling of
the private rows and of the synthetic ones, the lots and the noise. It does not cover what the
network cannot tell, nor what it had no time to learn. [PRIVACY: importance weights]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.errors import BudgetError, MethodError
from counterpoise.networks import (
    Inputs,
    Network,
    Rehearsal,
    Training,
    standardised_start,
    typical_slope,
)
from counterpoise.schema import Coded, Schema
from counterpoise.vault import DescentPlan, Share, Vault
from counterpoise.weights.classification import TOTAL_FRACTION
from counterpoise.weights.debias import average_to_one
from counterpoise.weights.protocol import coded_rows, pay_for_total
from counterpoise.weights.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws

# In units of 1/G^2. The curvature of the loss is at most G^2/4 for each side, so that a step of 4
# would just not diverge.
PACE = 3.0

# Rows a step, on either side; what a noised descent learns hardly depends on it.
LOT = 500

# The standard deviation that the noise may give to a logit which nothing else holds.
MOST_NOISE = 0.6

LEAST_STEPS, MOST_STEPS = 5, 150

# The first parameters and the lots of public rows are no secret, and the same in every fit.
_SEED = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two tables to be told apart by a network; all of it public."""

    inputs: Inputs
    public: np.ndarray  # the inputs of the synthetic rows
    network: Network
    start: np.ndarray
    slope: float  # G
    population: float  # n: public, or noisy and paid for
    share: Share  # what is left of the share

    @classmethod
    def of(
        cls,
        vault: Vault,
        synthetic: Any,
        share: Share | None,
        hidden: tuple[int, ...],
        activation: str,
    ) -> Comparison:
        """Check what can be checked for free, then pay for the number of rows."""
        if share is None:
            raise BudgetError("a network's weights look at private rows: give them a share")
        if share.pure:
            raise BudgetError("a network's weights need delta > 0: state a delta, such as 1e-9")
        coded = checked_public_rows(vault.schema, synthetic)
        inputs = Inputs(vault.schema)
        network = Network((inputs.size, *hidden, 1), activation)
        public = inputs(coded)
        start = standardised_start(network, public, np.random.default_rng(_SEED))
        total, rest = pay_for_total(vault, share, TOTAL_FRACTION)
        population = max(1.0, float(total.value))
        slope = typical_slope(network, start, public)
        return cls(inputs, public, network, start, slope, population, rest)

    @property
    def rate(self) -> float:
        """q: the chance of a private row to be in a lot."""
        return min(1.0, LOT / self.population)

    @property
    def sampling(self) -> dict[str, Any]:
        """What a descent over the private rows is planned with, but for steps and noise."""
        # Divided by q n, a sum is a mean, and both sides count the same.
        return {
            "inputs": self.inputs,
            "network": self.network,
            "loss": "logistic",
            "rate": self.rate,
            "lot": self.rate * self.population,
            "clip": self.slope,
        }

    def train(self, vault: Vault, plan: DescentPlan, pace: float, limit: float) -> NetworkModel:
        """Take all steps of a plan; `pace` is in units of 1/G^2."""
        training = Training(
            self.network, self.start, plan.steps, plan.clip, pace / self.slope**2, LOT
        )
        with vault.descent(plan) as descent:
            parameters = training.train(descent, self.public, _SEED)
        noise = plan.step_noise(vault.budget).deviation if plan.noise else 0.0
        return NetworkModel(
            vault.schema,
            self.network,
            parameters,
            training,
            plan.rate,
            noise,
            self.population,
            limit,
            vault.private,
        )


def checked_public_rows(schema: Schema, synthetic: Any) -> Coded:
    """The synthetic rows as codes; a table without rows is refused."""
    coded = coded_rows(schema, synthetic)
    if len(coded) == 0:
        raise MethodError("a network's weights need at least one synthetic row to compare with")
    return coded


def steps_within_noise(population: float, share: Share, rows_per_person: int) -> int:
    """How many steps at the full pace keep the noise on a logit below `MOST_NOISE`.

    T steps of a Gaussian cost T / (2 s^2) = rho, so the noise of a step is s = sqrt(T / (2 rho))
    sensitivities, and moves a logit by pace s / n. Over T steps that comes to
    pace T / (n sqrt(2 rho)).
    """
    most = MOST_NOISE * population * math.sqrt(2 * share.amount) / (rows_per_person * PACE)
    return int(min(MOST_STEPS, max(LEAST_STEPS, round(min(most, MOST_STEPS)))))


def pace_within_noise(plan: DescentPlan, rows_per_person: int) -> float:
    """The pace at which the noise of a plan's steps is below `MOST_NOISE`; the full one at most."""
    # pace s k sqrt(T) / (q n)
    moved = plan.noise * rows_per_person * math.sqrt(plan.steps) / plan.lot
    return min(PACE, MOST_NOISE / moved)


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network that was trained on noisy gradients, and the public facts of its training."""

    schema: Schema
    network: Network
    parameters: np.ndarray
    training: Training
    rate: float  # q
    deviation: float  # of the noise on a coordinate of a sum of gradients
    population: float  # n: public, or noisy
    limit: float  # logits are cut here
    private: bool = True

    def weigh(self, synthetic: Any) -> Weights:
        """The logits, as log-weights."""
        return Weights(self._log_weights(self._inputs(synthetic), self.parameters))

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """The weights as other trainings would have made them, one replicate a column.

        A replicate is the weight, moved by how far a rehearsal with fresh rows and fresh noise is
        from the others; a single one, from a rehearsal with neither. What all of them have in
        common is what the training makes of any rows, and no spread.
        """
        rows = self._inputs(synthetic)
        count = redraws.base.shape[1]
        if len(rows) == 0:
            return np.empty(redraws.base.shape)
        size = max(1, round(self.population))
        found = np.empty((len(rows), count))
        released = self._log_weights(rows, self.parameters)
        for column in range(count):
            # Base weights as rows: the table that the synthesizer would have made.
            public = rows[spread_places(redraws.base[:, column], len(rows))]
            found[:, column] = self._rehearsed(
                rows, public, redraws.resample[:, column], size, self.deviation, redraws.generator
            )
        if count == 1:
            middle = self._rehearsed(rows, rows, redraws.weights, size, 0.0, redraws.generator)
            found -= middle[:, None]
        else:
            # About their own mean, deviations are too small by this much.
            found = (found - found.mean(axis=1, keepdims=True)) * math.sqrt(count / (count - 1))
        found = np.clip(found + released[:, None], -self.limit, self.limit)
        return average_to_one(found, redraws.base)

    def _rehearsed(
        self,
        rows: np.ndarray,
        public: np.ndarray,
        weights: np.ndarray,
        size: int,
        deviation: float,
        generator: np.random.Generator,
    ) -> np.ndarray:
        """The logits of `rows` after a training on weighted rows, in the place of private ones."""
        counts = np.bincount(spread_places(weights, size), minlength=len(rows))
        private = Rehearsal(
            self.network,
            rows,
            counts,
            self.rate,
            self.rate * self.population,
            self.training.clip,
            deviation,
            self.training.steps,
            generator,
        )
        return self._log_weights(rows, self.training.train(private, public, _SEED))

    def _inputs(self, synthetic: Any) -> np.ndarray:
        return Inputs(self.schema)(coded_rows(self.schema, synthetic))

    def _log_weights(self, rows: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        # log w = logit: the prior odds of the training were one.
        return np.clip(self.network.outputs(parameters, rows)[:, 0], -self.limit, self.limit)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays that `from_arrays` reads back; fit for `numpy.savez`, free of pickles."""
        return {
            "units": np.array(self.network.units),
            "activation": np.array(self.network.activation),
            "parameters": self.parameters,
            "start": self.training.start,
            "steps": np.array(self.training.steps),
            "clip": np.array(self.training.clip),
            "pace": np.array(self.training.pace),
            "lot": np.array(self.training.lot),
            "rate": np.array(self.rate),
            "deviation": np.array(self.deviation),
            "population": np.array(self.population),
            "limit": np.array(self.limit),
            "private": np.array(self.private),
        }

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> NetworkModel:
        """The inverse of `to_arrays`."""
        units = tuple(int(number) for number in arrays["units"])
        network = Network(units, str(arrays["activation"]))
        training = Training(
            network,
            np.asarray(arrays["start"]),
            int(arrays["steps"]),
            float(arrays["clip"]),
            float(arrays["pace"]),
            int(arrays["lot"]),
        )
        return cls(
            schema,
            network,
            np.asarray(arrays["parameters"]),
            training,
            float(arrays["rate"]),
            float(arrays["deviation"]),
            float(arrays["population"]),
            float(arrays["limit"]),
            bool(arrays["private"]),
        )


def spread_places(weights: np.ndarray, size: int) -> np.ndarray:
    """Places of rows, `size` of them, each as often as its weight says to the next whole number."""
    ends = np.cumsum(weights, dtype=float)
    # Systematic: equally spaced points along the weights, so that whole shares stay exact.
    points = (np.arange(size) + 0.5) * (ends[-1] / size)
    return np.minimum(np.searchsorted(ends, points), len(weights) - 1)
