"""Private GANs: a generator whose critic saw the private rows through noisy gradients alone.

`dpgan` (Xie, Lin, Wang, Wang and Zhou 2018); `dpcgan` (Torkzadehmahani,
Kairouz and Paten 2019) draws a column of categories, whose noisy counts are paid for, and tells the
generator its value. `gan` and `cgan` are the same without noise, for study: only a vault with a
seed goes along, and what comes out is stamped as not private. The training is in `adversarial`.

Charge: the number of rows, or the counts of the given column; then all steps of one descent,
Gaussian noise on Poisson samples, before the first of them. Delta > 0, and add/remove neighbours.
The critic is part of the model: it is as private as the generator, and weights may ask it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.arguments import (
    column_name,
    one_of,
    real_number,
    settle,
    whole_number,
)
from counterpoise.errors import BudgetError, MethodError
from counterpoise.networks import LOSSES, Inputs, Network
from counterpoise.networks.generator import RowGenerator
from counterpoise.schema import Schema
from counterpoise.schema.placing import place
from counterpoise.synthesizers.adversarial import Pace, train
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request, checked_draw
from counterpoise.synthesizers.shares import nearest_chances
from counterpoise.vault import REPLACE, Budget, DescentPlan, Share, Vault

# The part of the share for the number of rows, or for the counts of the given column.
ROWS_PART, TARGET_PART = 0.05, 0.1
# The fewer rows, the fewer steps; these are the fewest.
ROWS_A_STEP, FEWEST_STEPS = 2, 50
CRITIC_ACTIVATION = "leaky-relu"
DRAWN_AT_ONCE = 50_000


@dataclass(frozen=True)
class AdversarialMethod:
    """What all of these methods have in common.

    `steps` are those of the critic at most, one for every two rows (few rows pay for few), each
    with `generator_steps` of the generator; `lot` is how many
    private rows a step sees on average, and as many are made; `clip` is the norm of a row's
    gradient. `noise` is how many random numbers a row is made of, `hidden` the units of the two
    hidden layers of the generator, `critic_hidden` those of the critic's. `loss` is "logistic" or
    "wasserstein", which learned less on the tables that these numbers were found on; `seed` is that
    of the networks' start and of the rows that are made on the way.
    """

    steps: int = 300
    generator_steps: int = 1
    lot: int = 128
    clip: float = 1.0
    critic_rate: float = 0.03
    generator_rate: float = 0.005
    noise: int = 16
    hidden: int = 64
    critic_hidden: int = 32
    loss: str = "logistic"
    seed: int = 0

    needs_delta = True
    is_noised = True
    is_given = False

    def __post_init__(self) -> None:
        most = 1_000_000
        settle(
            self,
            steps=whole_number("steps", self.steps, most=most),
            generator_steps=whole_number("generator_steps", self.generator_steps, most=1000),
            lot=whole_number("lot", self.lot, most=most),
            clip=real_number("clip", self.clip, "a positive number", above=0),
            critic_rate=real_number("critic_rate", self.critic_rate, "a positive number", above=0),
            generator_rate=real_number(
                "generator_rate", self.generator_rate, "a positive number", above=0
            ),
            noise=whole_number("noise", self.noise, most=10_000),
            hidden=whole_number("hidden", self.hidden, most=10_000),
            critic_hidden=whole_number("critic_hidden", self.critic_hidden, most=10_000),
            loss=one_of("loss", self.loss, LOSSES),
            seed=whole_number("seed", self.seed, 0),
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
        """Count the rows, or the categories of the given column, then train.

        Charges the whole share, but for the steps of a method without noise.
        """
        _check(vault, share, SYNTHESIZERS.name_of(self), self.is_noised)
        self.check_plan(vault.schema, vault.budget)
        target = self._target(vault.schema)
        rows, chances, rest = pay_for_rows(vault, share, target)
        inputs = Inputs(vault.schema)
        maker = RowGenerator(inputs, self.noise, (self.hidden, self.hidden), target)
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
            self.lot, self.critic_rate, self.generator_rate, self.generator_steps, self.seed
        )
        with vault.descent(plan) as descent:
            trained = train(descent, maker, lambda count, by: _draw(chances, count, by), pace)
        return GanModel(
            vault.schema,
            maker,
            trained.generator,
            chances,
            critic,
            trained.critic,
            self.loss,
            rows,
            vault.private,
        )


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

    needs_seed = True
    is_noised = False


@SYNTHESIZERS.register("cgan")
@dataclass(frozen=True)
class Cgan(AdversarialMethod):
    """`dpcgan` without noise: never private, and stamped so. Only for vaults with a seed."""

    target: str | None = None

    needs_seed = True
    is_noised = False
    is_given = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _settle_target(self)


@dataclass(frozen=True, eq=False)
class GanModel:
    """A generator, and the critic that it was trained against.

    `critic` with its `critic_parameters` tells private rows from made ones by its one output: the
    larger, the more a row looked private. With the loss "logistic" it is a logit, with
    "wasserstein" a score on a scale of its own (`critic_loss`). It sees what `inputs` says.
    """

    schema: Schema
    maker: RowGenerator
    parameters: np.ndarray
    chances: np.ndarray | None  # of the categories of the given column
    critic: Network
    critic_parameters: np.ndarray
    critic_loss: str
    rows: int
    private: bool = True

    @property
    def inputs(self) -> Inputs:
        """What the critic sees of a row."""
        return self.maker.inputs

    def sample(self, rows: int, seed: int | None = None, format: str = "pandas") -> Any:
        """Draw `rows` rows, each of noise of its own."""
        rows, seed, format = checked_draw(rows, seed, format)
        generator = np.random.default_rng(seed)
        codes = np.zeros((rows, len(self.schema)), dtype=np.int32, order="F")
        places = np.full((rows, len(self.schema)), 0.5, order="F")
        for start in range(0, rows, DRAWN_AT_ONCE):
            stop = min(rows, start + DRAWN_AT_ONCE)
            given = _draw(self.chances, stop - start, generator)
            made = self.maker.make(self.parameters, stop - start, generator, given)
            codes[start:stop], places[start:stop] = self.maker.read(made.inputs)
        return place(self.schema, codes, places, generator, format)

    def to_arrays(self) -> Mapping[str, np.ndarray]:
        """Both networks' layers and parameters, and what is given."""
        return {
            "parameters": self.parameters,
            "noise": np.array(self.maker.noise),
            "hidden": np.array(self.maker.hidden),
            "given": np.array(self.maker.given or "", dtype=np.str_),
            "chances": np.zeros(0) if self.chances is None else self.chances,
            "critic_units": np.array(self.critic.units),
            "critic_activation": np.array(self.critic.activation, dtype=np.str_),
            "critic_parameters": self.critic_parameters,
            "critic_loss": np.array(self.critic_loss, dtype=np.str_),
            "rows": np.array(self.rows),
        }

    @classmethod
    def from_arrays(
        cls, schema: Schema, arrays: Mapping[str, np.ndarray], private: bool = True
    ) -> GanModel:
        """The inverse of `to_arrays`."""
        hidden = tuple(int(units) for units in arrays["hidden"])
        given = str(arrays["given"]) or None
        maker = RowGenerator(Inputs(schema), int(arrays["noise"]), hidden, given)
        units = tuple(int(number) for number in arrays["critic_units"])
        return cls(
            schema,
            maker,
            arrays["parameters"],
            None if given is None else arrays["chances"],
            Network(units, str(arrays["critic_activation"])),
            arrays["critic_parameters"],
            str(arrays["critic_loss"]),
            int(arrays["rows"]),
            private,
        )


def _check(vault: Any, share: Any, name: str, is_noised: bool) -> None:
    """Refuse what can be refused before anything is asked."""
    check_request(vault, share)
    if share.pure:
        raise BudgetError(f"{name}: Gaussian noise needs delta > 0: state a delta, such as 1e-9")
    if not is_noised and vault.private:
        raise MethodError(
            f"{name!r} looks at private rows without noise; open the vault with a seed, which "
            f"stamps what comes out as not private, or choose 'dp{name}'"
        )


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


def _draw(
    chances: np.ndarray | None, rows: int, generator: np.random.Generator
) -> np.ndarray | None:
    return None if chances is None else generator.choice(len(chances), rows, p=chances)


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
