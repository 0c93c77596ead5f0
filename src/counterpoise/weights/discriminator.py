"""Discriminator weights: the critic that a private GAN was trained against, asked once more. Free.

The critic of `dpgan` and `dpcgan` saw private rows through noisy gradients alone, and the student
of `pategan` through noisy votes, so both are as private as the generator, and what they say of a
row costs nothing (Ghalebikesabi and others 2022, section 3.5).

A critic with a logistic loss gives a logit, and private and made rows count the same in its
training, so that the prior odds are one and log w would be that logit. A Wasserstein critic gives
none: its outputs say which rows look more private, on a scale that nothing public tells and that
may not be learnt from private rows for free. Either was trained against a generator that moved, by
clipped and noisy steps, and is surer than it should be. So the weights are w(x) = exp(s f(x)), with
s the largest for which the synthetic rows keep a stated part of their number as effective sample
size and log-weights stay within a limit, and no more than one for a logit. Of all weights that
raise the critic's mean as much, these are the nearest to equal ones (in Kullback-Leibler
divergence). For a Wasserstein critic how far to go is a choice, and not an estimate.
[PRIVACY: discriminator weights]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.arguments import instance_of, real_number, settle
from counterpoise.errors import MethodError
from counterpoise.networks import Inputs, Network
from counterpoise.schema import Schema
from counterpoise.vault import Share, Vault
from counterpoise.weights.debias import average_to_one
from counterpoise.weights.protocol import WEIGHTERS, coded_rows
from counterpoise.weights.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws

_HALVINGS = 60


@WEIGHTERS.register("discriminator")
@dataclass(frozen=True)
class Discriminator:
    """Weights from the critic of the GAN that made the rows.

    `effective` is the part of the rows that the weights have to leave as effective sample size;
    log-weights differ by `limit` at most from their middle, or from zero for a logit.
    """

    effective: float = 0.9
    limit: float = 4.0

    is_free = True
    needs_critic = True

    def __post_init__(self) -> None:
        expected = "a number above 0 and up to 1"
        settle(
            self,
            effective=real_number(
                "effective", self.effective, expected, above=1e-6, below=1.0, inclusive=True
            ),
            limit=real_number("limit", self.limit, "a positive number", above=0),
        )

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None = None,
        synthesizer: Any = None,
    ) -> DiscriminatorModel:
        """Ask nothing of the vault; `synthesizer` is the GAN's model."""
        instance_of("vault", vault, Vault, "a Vault of private rows")
        if not has_critic(synthesizer):
            raise MethodError(
                "'discriminator' asks the critic of the GAN that made the rows, and these were "
                "made without one; choose the synthesizer 'dpgan', 'dpcgan' or 'pategan', or the "
                "weights 'moments'"
            )
        if synthesizer.schema != vault.schema:
            raise MethodError("synthesizer: expected the model that the rows were drawn from")
        rows = Inputs(vault.schema)(coded_rows(vault.schema, synthetic))
        outputs = synthesizer.critic.outputs(synthesizer.critic_parameters, rows)[:, 0]
        power, middle = largest_power(outputs, self.effective, self.limit), 0.0
        if synthesizer.critic_loss == "logistic":
            # A logit is never made surer than it is.
            power = min(1.0, power)
        elif len(outputs):
            middle = power * float(outputs.min() + outputs.max()) / 2
        return DiscriminatorModel(
            vault.schema,
            synthesizer.critic,
            np.asarray(synthesizer.critic_parameters),
            power,
            middle,
            self.limit,
            bool(synthesizer.private),
        )


def has_critic(model: Any) -> bool:
    """Whether a synthesizer's model, or the class of its models, has a critic to be asked.

    >>> has_critic(None)
    False
    """
    named = {"critic", "critic_parameters", "critic_loss"}
    known = set(getattr(model, "__dataclass_fields__", ())) | set(dir(model))
    return named <= known


def largest_power(outputs: np.ndarray, effective: float, limit: float) -> float:
    """The largest s for which exp(s f) keeps a part of the rows, and s f stays within the limit.

    >>> power = largest_power(np.random.default_rng(0).normal(size=5000), 0.5, limit=10)
    >>> Weights(power * np.random.default_rng(0).normal(size=5000)).effective_sample_size / 5000
    0.5...
    >>> largest_power(np.zeros(3), 0.5, limit=4)
    0.0
    """
    spread = float(np.ptp(outputs)) if len(outputs) else 0.0
    if not spread > 0:
        return 0.0
    low, high = 0.0, 2 * limit / spread
    # The effective sample size falls as s grows.
    if Weights(high * outputs).effective_sample_size >= effective * len(outputs):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        keeps = Weights(middle * outputs).effective_sample_size >= effective * len(outputs)
        low, high = (middle, high) if keeps else (low, middle)
    return low


@dataclass(frozen=True, eq=False)
class DiscriminatorModel:
    """A critic, and the public scale on which its outputs are log-weights."""

    schema: Schema
    network: Network
    parameters: np.ndarray
    power: float  # s
    middle: float  # log-weights are cut at so much on either side of it
    limit: float
    private: bool = True

    def weigh(self, synthetic: Any) -> Weights:
        """log w = s f(x), within the limit."""
        rows = Inputs(self.schema)(coded_rows(self.schema, synthetic))
        found = self.power * self.network.outputs(self.parameters, rows)[:, 0]
        return Weights(np.clip(found - self.middle, -self.limit, self.limit))

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """The same weights in every replicate but for the base weights.

        The critic was trained once, against a generator that moved with it, and its training is not
        rehearsed: replicates show the sampling of the synthetic rows, and nothing of the noise.
        """
        log_weights = self.weigh(synthetic).log_weights[:, None]
        return average_to_one(np.broadcast_to(log_weights, redraws.base.shape), redraws.base)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays that `from_arrays` reads back; fit for `numpy.savez`, free of pickles."""
        return {
            "units": np.array(self.network.units),
            "activation": np.array(self.network.activation),
            "parameters": self.parameters,
            "power": np.array(self.power),
            "middle": np.array(self.middle),
            "limit": np.array(self.limit),
            "private": np.array(self.private),
        }

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> DiscriminatorModel:
        """The inverse of `to_arrays`."""
        units = tuple(int(number) for number in arrays["units"])
        return cls(
            schema,
            Network(units, str(arrays["activation"])),
            np.asarray(arrays["parameters"]),
            float(arrays["power"]),
            float(arrays["middle"]),
            float(arrays["limit"]),
            bool(arrays["private"]),
        )
