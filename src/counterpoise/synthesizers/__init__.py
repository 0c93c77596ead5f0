"""Synthesizers: models of a private table, fitted on a vault's noised answers alone."""

from counterpoise.synthesizers.aim import Aim, AimModel
from counterpoise.synthesizers.dp_mmd import DpMmd, DpMmdModel
from counterpoise.synthesizers.gan import Cgan, DpCgan, DpGan, Gan
from counterpoise.synthesizers.gan_model import GanModel
from counterpoise.synthesizers.histogram import Histogram
from counterpoise.synthesizers.independent import Independent, IndependentModel
from counterpoise.synthesizers.marginal_model import MarginalAnswer, MarginalModel
from counterpoise.synthesizers.marginals import Marginals
from counterpoise.synthesizers.mmdgan import MmdGan
from counterpoise.synthesizers.mst import Mst
from counterpoise.synthesizers.pategan import PateGan
from counterpoise.synthesizers.privbayes import PrivBayes
from counterpoise.synthesizers.protocol import SYNTHESIZERS, Model, Synthesizer
from counterpoise.synthesizers.support_points import SupportPoints, SupportPointsModel

__all__ = [
    "SYNTHESIZERS",
    "Aim",
    "AimModel",
    "Cgan",
    "DpCgan",
    "DpGan",
    "DpMmd",
    "DpMmdModel",
    "Gan",
    "GanModel",
    "Histogram",
    "Independent",
    "IndependentModel",
    "MarginalAnswer",
    "MarginalModel",
    "Marginals",
    "MmdGan",
    "Model",
    "Mst",
    "PateGan",
    "PrivBayes",
    "SupportPoints",
    "SupportPointsModel",
    "Synthesizer",
]
