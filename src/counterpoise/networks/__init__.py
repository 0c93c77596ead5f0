"""Networks as values: dense layers described by sizes and names, with hand-written gradients.

Everything here is public arithmetic on arrays. The vault differentiates such a network over private
rows, synthesizers train generators with it, and weights classify rows with it.
"""

from counterpoise.networks.classifier import (
    Gradients,
    Training,
    standardised_start,
    typical_slope,
)
from counterpoise.networks.clipped import clipped_gradient
from counterpoise.networks.dense import ACTIVATIONS, Network, Pass
from counterpoise.networks.inputs import Head, Inputs
from counterpoise.networks.losses import LOSSES, loss_slopes, loss_values
from counterpoise.networks.optimisers import OPTIMISERS, Optimiser, OptimiserState
from counterpoise.networks.rehearsal import Rehearsal

__all__ = [
    "ACTIVATIONS",
    "LOSSES",
    "OPTIMISERS",
    "Gradients",
    "Head",
    "Inputs",
    "Network",
    "Optimiser",
    "OptimiserState",
    "Pass",
    "Rehearsal",
    "Training",
    "clipped_gradient",
    "loss_slopes",
    "loss_values",
    "standardised_start",
    "typical_slope",
]
