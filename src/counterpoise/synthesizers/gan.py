"""Private GANs: a generator whose critic saw the private rows through noisy gradients alone.

`dpgan` (Xie, Lin, Wang, Wang and Zhou 2018); `dpcgan` (Torkzadehmahani, Kairouz and Paten 2019)
draws a column of categories, whose noisy counts are paid for, and tells the generator its value. By
default most of the share buys a start, from which the critic refines (`beginning`); the game of the
two is in `adversarial`, and mixing its states afterwards in `boosting`. `gan` and `cgan` are the
same without noise and without a start, for study: only a vault with a seed goes along, and what
comes out is stamped as not private.

Charge: two Gaussian events for the start, or, without one, the number of rows or the counts of the
given column; all steps of one descent, Gaussian noise on Poisson samples, before the first of them;
with `snapshots` one Gaussian event more. Delta > 0, and add/remove neighbours. The critic is part
of the model: it is as private as the generator, and weights may ask it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterpoise.arguments import (
    column_name,
    one_of,
    real_number,
    settle,
    whole_number,
)
from counterpoise.errors import BudgetError, MethodError
from counterpoise.networks import LOSSES, Inputs, Network
from counterpoise.schema import Schema
from counterpoise.synthesizers.adversarial import Pace, train
from counterpoise.synthesizers.beginning import begin, checked_beginning
from counterpoise.synthesizers.gan_model import GanModel
from counterpoise.synthesizers.matching import MATCHING_STEPS
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request
from counterpoise.vault import REPLACE, Budget, DescentPlan, Share, Vault

# The fewer rows, the fewer steps; these are the fewest.
ROWS_A_STEP, FEWEST_STEPS = 2, 50
CRITIC_ACTIVATION = "leaky-relu"


@dataclass(frozen=True)
class AdversarialMethod:
    """What all of these methods have in common.

    `start` is the part of the share for what the generator starts from, zero for a start from
    nothing, `start_steps` how long it is trained for that, which is free, and `hold` how much it is
    held to it later; `snapshots` is how many states of both networks are mixed at the end, none for
    the last one alone. `steps` are those of the critic at most, one for every two rows (few rows
    pay for few), each with `generator_steps` of the generator; `lot` is how many private rows a
    step sees on average, and as many are made; `clip` is the norm of a row's gradient. `noise` is
    how many random numbers a row is made of, `hidden` the units of the two hidden layers of the
    generator, `critic_hidden` those of the critic's. `loss` is "logistic" or "wasserstein", which
    learned less on the tables that these numbers were found on; `seed` is that of the networks'
    start and of the rows that are made on the way.
    """

    start: float = 0.8
    start_steps: int = MATCHING_STEPS
    hold: float = 10.0
    snapshots: int = 0
    steps: int = 300
    generator_steps: int = 1
    lot: int = 128
    clip: float = 1.0
    critic_rate: float = 0.03
    generator_rate: float = 0.002
    noise: int = 16
    hidden: int = 64
    critic_hidden: int = 32
    loss: str = "logistic"
    seed: int = 0

    needs_delta = True
    needs_rows = True
    is_noised = True
    is_given = False

    def __post_init__(self) -> None:
        most = 1_000_000
        settle(
            self,
            **checked_beginning(self),
            steps=whole_number("steps", self.steps, most=most),
            generator_steps=whole_number("generator_steps", self.generator_steps, most=1000),
            lot=whole_number("lot", self.lot, most=most),
            clip=real_number("clip", self.clip, "a positive number", above=0),
            critic_rate=real_number("critic_rate", self.critic_rate, "a positive number", above=0),
            generator_rate=real_number(
                "generator_rate", self.generator_rate, "a positive number", above=0
            ),
            critic_hidden=whole_number("critic_hidden", self.critic_hidden, most=10_000),
            loss=one_of("loss", self.loss, LOSSES),
        )

    def check_plan(self, schema: Schema, budget: Budget) -> None:
        """Refuse a schema or a budget that the method cannot be fitted with; nothing is asked."""
        self._target(schema)
        if self.is_noised and budget.neighbours is REPLACE:
            raise MethodError(
                f"{SYNTHESIZERS.name_of(self)!r} samples rows at random, which cannot be accounted "
                "under 'replace' neighbours; state neighbours='add-remove', or choose 'dp-mmd' or "
                "'aim'"
            )

    def _target(self, schema: Schema) -> str | None:
        """The column that is given, if the method has one."""
        return _given(schema, getattr(self, "target", None)) if self.is_given else None

    def fit(self, vault: Vault, share: Share) -> GanModel:
        """Measure what the generator starts from, or count the rows, then train.

        Charges the whole share, but for the steps of a method without noise.
        """
        name = SYNTHESIZERS.name_of(self)
        if self.is_noised:
            check_noised(vault, share, name)
        else:
            check_noiseless(vault, share, name, f"dp{name}")
        self.check_plan(vault.schema, vault.budget)
        target = self._target(vault.schema)
        inputs = Inputs(vault.schema)
        begun = begin(vault, share, inputs, self, target)
        rows, rest = begun.rows, begun.rest
        critic = Network((inputs.size, self.critic_hidden, 1), CRITIC_ACTIVATION)
        rate = min(1.0, self.lot / rows)
        described: dict[str, Any] = {
            "inputs": inputs,
            "network": critic,
            "loss": self.loss,
            "rate": rate,
            "lot": rate * rows,
            "clip": self.clip,
            "steps": min(self.steps, max(FEWEST_STEPS, rows // ROWS_A_STEP)),
        }
        if self.is_noised:
            plan = DescentPlan.within(vault, rest, **described)
        else:
            plan = DescentPlan(noise=0.0, **described)
        pace = Pace(
            self.critic_rate,
            self.generator_rate,
            self.generator_steps,
            self.seed,
            min(self.snapshots, plan.steps),
        )
        player = begun.player(self.lot)
        with vault.descent(plan) as descent:
            trained = train(descent, player, pace)
        return begun.end(vault, trained, critic, self.loss, player, self.seed)


@SYNTHESIZERS.register("dpgan")
@dataclass(frozen=True)
class DpGan(AdversarialMethod):
    """A generator trained against a critic under a private descent."""


@SYNTHESIZERS.register("dpcgan")
@dataclass(frozen=True)
class DpCgan(AdversarialMethod):
    """The same, given a column of categories whose counts are paid for: `target`.

    Unless it is stated, it is the last column of categories without an order.
    """

    target: str | None = None

    is_given = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _settle_target(self)


@SYNTHESIZERS.register("gan")
@dataclass(frozen=True)
class Gan(AdversarialMethod):
    """`dpgan` without noise: never private, and stamped so. Only for vaults with a seed."""

    start: float = 0.0
    generator_rate: float = 0.005

    needs_seed = True
    is_noised = False


@SYNTHESIZERS.register("cgan")
@dataclass(frozen=True)
class Cgan(AdversarialMethod):
    """`dpcgan` without noise: never private, and stamped so. Only for vaults with a seed."""

    start: float = 0.0
    generator_rate: float = 0.005
    target: str | None = None

    needs_seed = True
    is_noised = False
    is_given = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _settle_target(self)


def check_noised(vault: Any, share: Any, name: str) -> None:
    """Refuse what can be refused before anything is asked."""
    check_request(vault, share)
    if share.pure:
        raise BudgetError(f"{name}: Gaussian noise needs delta > 0: state a delta, such as 1e-9")


def check_noiseless(vault: Any, share: Any, name: str, instead: str) -> None:
    """The same for a method that looks without noise, and refuse a vault that is private."""
    check_noised(vault, share, name)
    if vault.private:
        raise MethodError(
            f"{name!r} looks at private rows without noise; open the vault with a seed, which "
            f"stamps what comes out as not private, or choose {instead!r}"
        )


def _given(schema: Schema, stated: str | None) -> str:
    """The column that is given."""
    nominal = [column.name for column in schema if column.kind == "categorical"]
    if stated is not None:
        schema.index(stated)
        if stated not in nominal:
            raise MethodError(f"target: column {stated!r} is not one of categories without order")
        return stated
    if not nominal:
        raise MethodError("target: the schema has no column of categories; choose 'dpgan'")
    return nominal[-1]


def _settle_target(method: Any) -> None:
    if method.target is not None:
        settle(method, target=column_name("target", method.target))
