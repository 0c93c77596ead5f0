"""The plan of a private gradient descent: sampler, clipping, noise, steps and event in one value.

Each step takes every private row with probability q (`rate`), clips its gradient to norm C
(`clip`), sums, adds discrete Gaussian noise of deviation `noise` times the sensitivity, always, and
divides by the public number of rows that a lot stands for.

**Sensitivity.** A row more or less in the lot changes the sum by a vector of norm C (`gradients`).
The sum of each neighbour is rounded to the grid of the noise by itself, which moves each of P
coordinates by half a step h: D2 = C + sqrt(P) h, and k C + sqrt(P) h for a person of k rows.

**Charge.** T times a Gaussian on a Poisson sample. Fix the lot of all other rows. Without the row
the answer has the law P of the noise around a point of the grid; with it, (1 - q) P + q Q, where Q
is P moved along the grid by at most D2: what `divergence` accounts for, at whole orders, for noise
that is discrete. Averaging over the other rows' lot, which is the same for both, makes nothing
worse, because exp((a - 1) D_a) is jointly convex. A person of k rows is in the lot with probability
q' = 1 - (1 - q)^k, and then moves the answer by one of several vectors, none longer than k C: the
law is (1 - q') P + q' times a mixture of such Q, and for both directions the divergence is convex
in Q, so the worst single Q bounds it. The steps, each of which may depend on all earlier answers,
add up at the one order that the ledger has fixed. Replacing a row is no such mixture, so there is
no charge under replace-one. [PRIVACY: mechanisms; relaxed DP-SGD; ground rule 12]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.arguments import one_of, real_number, settle, whole_number
from counterpoise.errors import BudgetError, VaultError
from counterpoise.networks import LOSSES, Inputs, Network
from counterpoise.vault.asked import exactly, share_of
from counterpoise.vault.budget import ADD_REMOVE, Budget, Share, neighbours_name
from counterpoise.vault.divergence import renyi_divergence
from counterpoise.vault.events import (
    DpEvent,
    GaussianDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from counterpoise.vault.gradients import LONGEST, ClippedGradients

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# Noise multipliers beyond these drown everything, or hide nothing.
LEAST_NOISE, MOST_NOISE = 1e-3, 1e6

# The scale of the noise is from 2^21 to 2^22 steps of its grid, and less than twice that once
# rounding is paid for: as fine as the quick sampler has it.
_SCALE_PLACES = 21

# Multiplying and dividing public numbers may round down.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class StepNoise:
    """The noise of one step, all of it public."""

    step: float  # h, of the grid that sums are rounded to: a power of two
    scale: float  # standard deviation, in steps
    sensitivity: float  # D2 of a rounded sum

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on each coordinate of a sum."""
        return self.scale * self.step


@dataclass(frozen=True)
class DescentPlan:
    """What a descent does at each of its steps; public, and charged as a whole in advance.

    `inputs` says what the network sees of a row, `loss` is one of `networks.LOSSES`, `rate` the
    probability with which each private row is in a step's lot, `lot` the public number by which the
    noisy sum is divided, `noise` the deviation of the noise in sensitivities. Without noise
    (`noise=0`) only a vault with a seed goes along.

    >>> from counterpoise.schema import Column, Schema
    >>> inputs = Inputs(Schema([Column.continuous("x", 0, 1)]))
    >>> plan = DescentPlan(inputs, Network((1, 8, 1)), "logistic", 0.1, 50, 1.0, 2.0, 100)
    >>> plan.event.count, plan.event.event.sampling_probability
    (100, 0.1)
    """

    inputs: Inputs
    network: Network
    loss: str
    rate: float
    lot: float
    clip: float
    noise: float
    steps: int

    def __post_init__(self) -> None:
        settle(
            self,
            network=checked_network(self.network, checked_inputs(self.inputs)),
            loss=one_of("loss", self.loss, LOSSES, VaultError),
            rate=_between("rate", self.rate, 1e-12, 1.0),
            lot=_between("lot", self.lot, 1e-12, 1e12),
            clip=_between("clip", self.clip, 1e-12, 1e12),
            noise=checked_noise(self.noise),
            steps=whole_number("steps", self.steps, most=10**9, error=VaultError),
        )

    @classmethod
    def within(
        cls,
        vault: Vault,
        share: Share,
        *,
        inputs: Inputs,
        network: Network,
        loss: str,
        rate: float,
        lot: float,
        clip: float,
        steps: int,
    ) -> DescentPlan:
        """The plan with the least noise that a share pays for, at the vault's Renyi order."""
        share = share_of(share)
        if share.pure or vault.budget.is_pure:
            raise BudgetError("Gaussian noise needs delta > 0: state a delta, such as 1e-9")
        order = np.array([vault.budget.renyi_limit(vault.ledger.delta_set_aside).order])
        most = renyi_divergence(ZCDpEvent(share.amount), order)[0]

        def with_noise(noise: float) -> DescentPlan:
            return cls(inputs, network, loss, rate, lot, clip, noise, steps)

        def fits(noise: float) -> bool:
            event = with_noise(noise).event_under(vault.budget)
            return bool(renyi_divergence(event, order)[0] <= most)

        low, high = LEAST_NOISE, MOST_NOISE
        if not fits(high):
            raise BudgetError(
                f"descent: {steps:,} steps are too many for this share; give it a larger one, or "
                "take fewer steps"
            )
        while high / low > 1 + 1e-6:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(middle) else (middle, high)
        return with_noise(high)

    @property
    def event(self) -> DpEvent:
        """What all steps cost where one row is one person."""
        return self._event(1)

    def event_under(self, budget: Budget) -> DpEvent:
        """What all steps cost under a budget, or a refusal where that is not known."""
        if self.noise > 0 and budget.neighbours is not ADD_REMOVE:
            raise BudgetError(
                f"descent: rows that are sampled cannot be accounted under "
                f"{neighbours_name(budget.neighbours)!r} neighbours; open the vault with "
                f"neighbours={neighbours_name(ADD_REMOVE)!r}"
            )
        return self._event(budget.max_rows_per_person)

    def _event(self, rows: int) -> DpEvent:
        if self.noise == 0:
            return NoOpDpEvent()
        rate = self.rate
        if rows > 1 and rate < 1:
            # q' = 1 - (1 - q)^k, rounded upwards
            rate = min(1.0, -math.expm1(rows * math.log1p(-rate)) * (1 + _ROUNDING))
        sampled = PoissonSampledDpEvent(rate, GaussianDpEvent(self.noise))
        return SelfComposedDpEvent(sampled, self.steps)

    @property
    def gradients(self) -> ClippedGradients:
        """The sums that are noised."""
        return ClippedGradients(self.network, self.loss, self.clip)

    def step_noise(self, budget: Budget) -> StepNoise:
        """The noise of each step under a budget with add/remove neighbours."""
        moved = self.clip * LONGEST * budget.max_rows_per_person
        step = 2.0 ** (math.floor(math.log2(self.noise * moved)) - _SCALE_PLACES)
        rounding = math.sqrt(self.network.size) * step
        if rounding > moved:
            raise VaultError(
                f"descent: so much noise on {self.network.size:,} parameters would drown them; "
                "take fewer steps, or a smaller network"
            )
        sensitivity = moved + rounding
        return StepNoise(step, self.noise * sensitivity * (1 + _ROUNDING) / step, sensitivity)

    def describe(self) -> dict[str, Any]:
        """The plan as JSON values; what tells one descent from another."""
        return {
            "columns": list(self.inputs.schema.names),
            "units": list(self.network.units),
            "activation": self.network.activation,
            "loss": self.loss,
            "rate": self.rate,
            "lot": self.lot,
            "clip": self.clip,
            "noise": self.noise,
            "steps": self.steps,
        }


def checked_inputs(value: Any) -> Inputs:
    """Inputs, and nothing that only looks like it."""
    return exactly("inputs", value, Inputs, "the Inputs of a schema")


def checked_network(value: Any, inputs: Inputs) -> Network:
    """A network from these inputs to one output."""
    network = exactly("network", value, Network, "a Network")
    if network.units[0] != inputs.size or network.units[-1] != 1:
        raise VaultError(
            f"network: expected {inputs.size} inputs, as the schema has it, and one output"
        )
    return network


def checked_noise(value: Any) -> float:
    """A noise multiplier that can be drawn, or zero."""
    expected = f"from {LEAST_NOISE:g} to {MOST_NOISE:g} sensitivities, or 0 on a vault with a seed"
    noise = real_number("noise", value, expected, VaultError)
    if noise != 0 and not LEAST_NOISE <= noise <= MOST_NOISE:
        raise VaultError(f"noise: expected {expected}, not {noise:g}")
    return abs(noise)


def _between(name: str, value: Any, least: float, most: float) -> float:
    expected = f"a number from {least:g} to {most:g}"
    return real_number(name, value, expected, VaultError, above=least, below=most, inclusive=True)
