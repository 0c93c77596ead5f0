"""A method on trial: how it is fitted, what comes of it, and how that is read back.

The two kinds of methods differ in this alone, so most rules are written once for both. A fit is
tried on a vault that notices who reaches past its public queries.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from counterpoise.bundle.models import model_type
from counterpoise.errors import BudgetError, MethodError
from counterpoise.networks import Inputs, Network
from counterpoise.schema import Schema
from counterpoise.synthesizers import SYNTHESIZERS, Model, Synthesizer
from counterpoise.testing.rules import broken, require
from counterpoise.testing.tables import SCHEMA, rows_of, usual_rows
from counterpoise.vault import Budget, Ledger, Share, Vault
from counterpoise.weights import WEIGHTERS, Weighter, WeightModel, Weights

OUTCOME_ROWS = 40

# Rules are repeatable: unless a rule is about privacy itself, the noise comes from this seed.
SEED = 1


class WatchedVault(Vault):
    """A vault that keeps the names of what was reached for behind its public queries."""

    def __init__(self, *arguments: Any, **options: Any):
        self.reached: list[str] = []
        super().__init__(*arguments, **options)

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__" or (name.startswith("_") and not name.startswith("__")):
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller != __name__ and not caller.startswith("counterpoise.vault"):
                self.reached.append(name)
        return super().__getattribute__(name)


class Trial(Protocol):
    """What the rules need to know of a method, of whichever kind."""

    @property
    def method(self) -> Any:
        """The method itself."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether the method asks nothing of the vault."""
        ...

    def fit(self, vault: Vault, share: Share) -> Any:
        """The method's model; a free method gets no share."""
        ...

    def outcome(self, model: Any, schema: Schema = SCHEMA) -> pd.DataFrame:
        """What a model of the schema gives, by a fixed seed, in a form that can be compared."""
        ...

    def flaw(self, outcome: pd.DataFrame, schema: Schema) -> str:
        """What is wrong with the form of an outcome; empty when nothing is."""
        ...

    def read_back(self, schema: Schema, arrays: dict[str, np.ndarray], model: Any) -> Any:
        """A model from the arrays of another."""
        ...

    def release_options(self) -> dict[str, Any]:
        """The options of `counterpoise.release` that try this method."""
        ...


@dataclass(frozen=True)
class SynthesizerTrial:
    """A synthesizer on trial."""

    method: Synthesizer
    is_free = False

    @classmethod
    def of(cls, method: str | Synthesizer) -> SynthesizerTrial:
        """The trial of a method or of a name."""
        return cls(SYNTHESIZERS.make(method))

    def fit(self, vault: Vault, share: Share) -> Model:
        """Fit with the share."""
        return self.method.fit(vault, share)

    def outcome(self, model: Model, schema: Schema = SCHEMA) -> pd.DataFrame:
        """A few rows."""
        made: pd.DataFrame = model.sample(OUTCOME_ROWS, seed=1)
        return made

    def flaw(self, outcome: pd.DataFrame, schema: Schema) -> str:
        """Other columns, types or numbers of rows than the schema and the call asked for."""
        if list(outcome.columns) != list(schema.names):
            return f"the columns {list(outcome.columns)}"
        if len(outcome) != OUTCOME_ROWS:
            return f"{len(outcome)} rows where {OUTCOME_ROWS} were asked for"
        usual = rows_of(schema, 3).dtypes
        others = [name for name in schema.names if outcome.dtypes[name] != usual[name]]
        return f"the type {outcome.dtypes[others[0]]} of {others[0]!r}" if others else ""

    def read_back(self, schema: Schema, arrays: dict[str, np.ndarray], model: Model) -> Model:
        """By the class that the method names; the mark is handed over beside the arrays."""
        found: Model = _kind(self.method).from_arrays(schema, arrays, private=model.private)
        return found

    def release_options(self) -> dict[str, Any]:
        """This synthesizer, without weights."""
        return {"synthesizer": self.method, "weights": "uniform"}


@dataclass(frozen=True)
class WeighterTrial:
    """A weighter on trial, with synthetic rows that differ from the private ones."""

    method: Weighter

    @classmethod
    def of(cls, method: str | Weighter) -> WeighterTrial:
        """The trial of a method or of a name."""
        return cls(WEIGHTERS.make(method))

    @property
    def is_free(self) -> bool:
        """As the method says."""
        return self.method.is_free

    def fit(self, vault: Vault, share: Share) -> WeightModel:
        """Fit with the share, which a free method does not get."""
        return self.fit_on(vault, self.synthetic(vault.schema), share)

    def fit_on(self, vault: Vault, synthetic: Any, share: Share) -> WeightModel:
        """Fit on other synthetic rows than the usual ones."""
        made_by: dict[str, Any] = {}
        if self.needs_critic:
            made_by = {"synthesizer": _Critic(vault.schema, vault.private)}
        return self.method.fit(vault, synthetic, None if self.is_free else share, **made_by)

    def outcome(self, model: WeightModel, schema: Schema = SCHEMA) -> pd.DataFrame:
        """The log-weights of the synthetic rows that the model was fitted on."""
        return pd.DataFrame({"log_weights": model.weigh(self.synthetic(schema)).log_weights})

    def flaw(self, outcome: pd.DataFrame, schema: Schema) -> str:
        """Another number of weights than rows, or weights that are no numbers."""
        if len(outcome) != len(self.synthetic(schema)):
            return f"{len(outcome)} weights of {len(self.synthetic(schema))} rows"
        finite = np.isfinite(Weights(outcome["log_weights"].to_numpy()).normalised).all()
        return "" if finite else "weights that are not finite"

    def synthetic(self, schema: Schema) -> pd.DataFrame:
        """The rows to weigh, always the same for a schema."""
        return usual_rows(500, seed=9) if schema == SCHEMA else rows_of(schema, 100, seed=9)

    @property
    def weighs_new_rows(self) -> bool:
        """Whether the method's models weigh other rows than they were fitted on."""
        return bool(getattr(self.method, "weighs_new_rows", True))

    @property
    def needs_critic(self) -> bool:
        """Whether the method asks the critic of the synthesizer's model."""
        return bool(getattr(self.method, "needs_critic", False))

    def read_back(
        self, schema: Schema, arrays: dict[str, np.ndarray], model: WeightModel
    ) -> WeightModel:
        """By the class that the method names; the mark is among the arrays."""
        found: WeightModel = _kind(self.method).from_arrays(schema, arrays)
        return found

    def release_options(self) -> dict[str, Any]:
        """These weights, on the plainest synthesizer that has what they ask for."""
        made_by = "dpgan" if self.needs_critic else "independent"
        return {"synthesizer": made_by, "weights": self.method}


@dataclass(frozen=True)
class _Critic:
    """A synthesizer's model for a critic's sake, which has learnt nothing from anybody."""

    schema: Schema
    private: bool
    critic_loss = "wasserstein"

    @property
    def critic(self) -> Network:
        return Network((Inputs(self.schema).size, 8, 1))

    @property
    def critic_parameters(self) -> np.ndarray:
        return self.critic.initial(np.random.default_rng(0))


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is left when the vault is closed."""

    model: Any
    ledger: Ledger
    vault: WatchedVault


@contextmanager
def opened(
    table: pd.DataFrame, schema: Schema, budget: Budget, seed: int | None = SEED
) -> Iterator[WatchedVault]:
    """A watched vault over a table."""
    vault = WatchedVault(table, schema, budget, seed=seed)
    with vault:
        yield vault


def fitted(
    trial: Trial, table: pd.DataFrame, schema: Schema, budget: Budget, seed: int | None = SEED
) -> Fitted:
    """A fit with the whole budget; the vault is closed again."""
    with opened(table, schema, budget, seed) as vault:
        ledger = vault.ledger
        model = trial.fit(vault, budget.whole)
        require(vault.ledger is ledger, "a fit put another ledger into the vault")
    return Fitted(model, ledger, vault)


def saved_and_read(trial: Trial, model: Any, schema: Schema = SCHEMA) -> Any:
    """A model after a file of arrays; None where the model says that it cannot be saved."""
    try:
        arrays = dict(model.to_arrays())
    except MethodError:
        return None
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as read:
        return trial.read_back(schema, {name: read[name] for name in read.files}, model)


def refused_unasked(trial: Trial, vault: Vault, share: Share) -> bool:
    """Whether a fit is refused for want of budget; False when it succeeds."""
    before = vault.ledger.spends
    try:
        trial.fit(vault, share)
    except BudgetError:
        require(vault.ledger.spends == before, "it was charged for looks before it refused")
        return True
    return False


def needs_delta(method: Any) -> bool:
    """Whether a method says that it needs delta > 0, by its mark or by its choice of noise."""
    noise = getattr(method, "noise", None)
    return bool(getattr(method, "needs_delta", False)) or noise == "gaussian"


def needs_seed(method: Any) -> bool:
    """Whether a method says that it looks without noise, and so only into a vault with a seed."""
    return bool(getattr(method, "needs_seed", False))


def seeds_of(trial: Trial, seed: int) -> tuple[int | None, ...]:
    """The system's randomness and a seed; the seed alone for a method that needs one."""
    return (seed,) if needs_seed(trial.method) else (None, seed)


def _kind(method: Any) -> Any:
    kind = model_type(type(method))
    if kind is None or not hasattr(kind, "from_arrays"):
        broken("its models have arrays, but `fit` names no class with `from_arrays` to read them")
    return kind
