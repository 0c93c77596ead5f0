"""Importance weights for synthetic rows, fitted on a vault's noised answers alone."""

from counterpoise.weigh.protocol import WEIGHTERS, Weighter, WeightModel
from counterpoise.weigh.uniform import Uniform, UniformModel
from counterpoise.weigh.weights import Weights

__all__ = ["WEIGHTERS", "Uniform", "UniformModel", "WeightModel", "Weighter", "Weights"]
