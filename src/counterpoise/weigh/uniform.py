"""Uniform weights: every row counts the same; the synthetic table as it is. Free."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.vault import Share, Vault
from counterpoise.weigh.protocol import WEIGHTERS
from counterpoise.weigh.weights import Weights


@WEIGHTERS.register("uniform")
@dataclass(frozen=True)
class Uniform:
    """All weights one."""

    is_free = True

    def fit(self, vault: Vault, synthetic: Any, share: Share | None = None) -> "UniformModel":
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
        return Weights(np.zeros(len(synthetic)))
