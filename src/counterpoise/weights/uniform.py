"""Uniform weights: every row counts the same; the synthetic table as it is. Free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.errors import MethodError
from counterpoise.schema import Schema
from counterpoise.vault import Share, Vault
from counterpoise.weights.debias import average_to_one
from counterpoise.weights.protocol import WEIGHTERS, Redrawable
from counterpoise.weights.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws


@WEIGHTERS.register("uniform")
@dataclass(frozen=True)
class Uniform:
    """All weights one."""

    is_free = True

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None = None,
        synthesizer: Redrawable | None = None,
    ) -> UniformModel:
        """Ask nothing."""
        return UniformModel()


@dataclass(frozen=True)
class UniformModel:
    """The model that knows nothing."""

    def weigh(self, synthetic: Any) -> Weights:
        """Equal weights for every row.

        >>> UniformModel().weigh([1, 2]).normalised
        array([1., 1.])
        """
        try:
            return Weights(np.zeros(len(synthetic)))
        except Exception:
            raise MethodError("synthetic: expected a table of rows to weigh") from None

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """The base weights: there is no noise but the synthesizer's."""
        return average_to_one(np.zeros(redraws.base.shape), redraws.base)

    def replicating(self, synthetic: Any, redraws: Redraws) -> tuple[np.ndarray, UniformModel]:
        """The replicate weights of these rows, and what makes those of others: the same."""
        return self.replicate(synthetic, redraws), self

    def weights(self, synthetic: Any, base: np.ndarray) -> np.ndarray:
        """The base weights, each averaging to one, in their own precision."""
        totals = np.maximum(base.sum(axis=0, dtype=float), 1e-300)
        return np.asarray(base * (len(base) / totals).astype(base.dtype))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Nothing to keep."""
        return {}

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> UniformModel:
        """The inverse of `to_arrays`."""
        return cls()
