"""Synthesizers: models of a private table, fitted on a vault's noised answers alone."""

from counterpoise.synthesize.aim import Aim, AimModel
from counterpoise.synthesize.checkpoint import kept_ledger
from counterpoise.synthesize.histogram import Histogram
from counterpoise.synthesize.independent import Independent, IndependentModel
from counterpoise.synthesize.marginal_model import MarginalAnswer, MarginalModel
from counterpoise.synthesize.marginals import Marginals
from counterpoise.synthesize.mst import Mst
from counterpoise.synthesize.privbayes import PrivBayes
from counterpoise.synthesize.protocol import SYNTHESIZERS, Model, Synthesizer

__all__ = [
    "SYNTHESIZERS",
    "Aim",
    "AimModel",
    "Histogram",
    "Independent",
    "IndependentModel",
    "MarginalAnswer",
    "MarginalModel",
    "Marginals",
    "Model",
    "Mst",
    "PrivBayes",
    "Synthesizer",
    "kept_ledger",
]
