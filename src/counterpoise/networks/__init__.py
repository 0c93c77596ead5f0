"""Networks as values: dense layers described by sizes and names, with hand-written gradients.

Everything here is public arithmetic on arrays. The vault differentiates such a network over private
rows, synthesizers train generators with it, and weights classify rows with it.
"""

from counterpoise.networks.clipped import clipped_gradient
from counterpoise.networks.dense import ACTIVATIONS, Network, Pass
from counterpoise.networks.inputs import Head, Inputs
from counterpoise.networks.losses import LOSSES, loss_slopes, loss_values
from counterpoise.networks.optimisers import OPTIMISERS, Optimiser, OptimiserState

__all__ = [
    "ACTIVATIONS",
    "LOSSES",
    "OPTIMISERS",
    "Head",
    "Inputs",
    "Network",
    "Optimiser",
    "OptimiserState",
    "Pass",
    "clipped_gradient",
    "loss_slopes",
    "loss_values",
]
