"""What a weighter is: two protocols that every method in this room obeys.

A weighter asks a vault, within a share, how a synthetic table differs from the private one, and
returns a weight model that holds noised answers only. The model weighs that table or new rows
from the same synthesizer, without further charge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from counterpoise.arguments import instance_of
from counterpoise.errors import MethodError
from counterpoise.registry import Registry
from counterpoise.schema import Coded, Schema
from counterpoise.vault import REPLACE, NoisyTotal, Share, Vault
from counterpoise.weights.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws


class WeightModel(Protocol):
    """Noised answers from which any synthetic row can be weighed."""

    def weigh(self, synthetic: Any) -> Weights:
        """The weights of a synthetic table's rows."""
        ...

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """The weights again, with fresh noise: a column a replicate, each averaging to one.

        A model may say `replicate_part`, a number up to one: its replicates then go that part of
        the way from the weight, as in Fay's method.
        """
        ...

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The model as named arrays, for saving without pickle; `from_arrays` is the inverse."""
        ...


def replicate_part(model: Any) -> float:
    """The part of the way from the weight that a model's replicates go; all of it by default."""
    return float(getattr(model, "replicate_part", 1.0))


class Redrawable(Protocol):
    """A synthesizer's model that can say what another draw of its noise would have made."""

    @property
    def schema(self) -> Schema:
        """The schema of its rows."""
        ...

    @property
    def measured_columns(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns whose counts it measured."""
        ...

    @property
    def rows(self) -> int:
        """The (noisy, or public) number of private rows."""
        ...

    def redrawn_tables(
        self,
        codes: np.ndarray,
        resample: np.ndarray,
        weights: np.ndarray,
        generator: np.random.Generator,
    ) -> Redrawn:
        """What the model might have been, a column a replicate, as rows with these codes tell.

        `resample` has a fresh private sample a column, drawn from the rows with `weights`.
        """
        ...


class Redrawn(Protocol):
    """Models as they might have come out, a column a replicate."""

    def weights(self, codes: np.ndarray, base: np.ndarray) -> np.ndarray:
        """The base weights of rows with these codes, as rows of the redrawn models have them."""
        ...


def redrawable(model: Any) -> Redrawable | None:
    """A synthesizer's model, if it can be redrawn."""
    return model if hasattr(model, "redrawn_tables") else None


class Weighter(Protocol):
    """A way to make a weight model; `is_free` says that it asks nothing of the vault.

    One whose models weigh any row may say `is_pooled = True`, and the models too: a release then
    weighs more rows than leave, and chooses those by weight.
    """

    @property
    def is_free(self) -> bool:
        """Whether the method needs no share of the budget."""
        ...

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None,
        synthesizer: Redrawable | None = None,
    ) -> WeightModel:
        """Fit within a share of the vault's budget; a free method takes None.

        `synthesizer` is the model that the rows were drawn from, where it is at hand.
        """
        ...


def check_request(vault: Any, share: Any, synthesizer: Any) -> None:
    """Refuse what is no vault, no share and no synthesizer's model, before anything is asked."""
    instance_of("vault", vault, Vault, "a Vault of private rows")
    if share is not None:
        instance_of("share", share, Share, "a share of the budget, such as vault.budget.whole")
    if synthesizer is not None and redrawable(synthesizer) is None:
        raise MethodError("synthesizer: expected the model that the rows were drawn from, or None")


def coded_rows(schema: Schema, synthetic: Any) -> Coded:
    """A synthetic table as codes; one that is coded already stays as it is."""
    return synthetic if isinstance(synthetic, Coded) else schema.encode(synthetic)


def pay_for_total(vault: Vault, share: Share, fraction: float) -> tuple[NoisyTotal, Share]:
    """The number of private rows, and what is left of the share; it costs nothing where public."""
    if vault.budget.neighbours is REPLACE:
        return vault.total(), share
    for_total, rest = share.split(fraction, 1 - fraction)
    return vault.total(for_total), rest


WEIGHTERS: Registry[Weighter] = Registry("weighters", needs=("fit", "is_free"))
