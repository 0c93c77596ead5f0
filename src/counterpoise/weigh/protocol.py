"""What a weighter is: two protocols that every method in this room obeys.

A weighter asks a vault, within a share, how a synthetic table differs from the private one, and
returns a weight model that holds noised answers only. The model weighs that table or new rows
from the same synthesizer, without further charge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from counterpoise.registry import Registry
from counterpoise.vault import Share, Vault
from counterpoise.weigh.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weigh.replicates import Redraws


class WeightModel(Protocol):
    """Noised answers from which any synthetic row can be weighed."""

    def weigh(self, synthetic: Any) -> Weights:
        """The weights of a synthetic table's rows."""
        ...

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """The weights again, with fresh noise: a column a replicate, each averaging to one."""
        ...

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The model as named arrays, for saving without pickle; `from_arrays` is the inverse."""
        ...


class Weighter(Protocol):
    """A way to make a weight model; `is_free` says that it asks nothing of the vault."""

    @property
    def is_free(self) -> bool:
        """Whether the method needs no share of the budget."""
        ...

    def fit(self, vault: Vault, synthetic: Any, share: Share | None) -> WeightModel:
        """Fit within a share of the vault's budget; a free method takes None."""
        ...


WEIGHTERS: Registry[Weighter] = Registry("weighters")
