"""Importance weights for synthetic rows, fitted on a vault's noised answers alone."""

from counterpoise.weights.beta_calibration import BetaCalibration, calibrate, calibrate_privately
from counterpoise.weights.diagnostics import Diagnosis, Verdict, diagnose, fitted_sample_size
from counterpoise.weights.discriminator import Discriminator, DiscriminatorModel
from counterpoise.weights.dp_mlp import DpMlp
from counterpoise.weights.finite_variance import FiniteVarianceTest, finite_variance_test
from counterpoise.weights.logistic import Logistic, LogisticModel
from counterpoise.weights.logistic_outputs import LogisticOutputs, LogisticOutputsModel
from counterpoise.weights.mlp import Mlp
from counterpoise.weights.moment_model import MomentModel
from counterpoise.weights.moments import Moments
from counterpoise.weights.network_ratio import NetworkModel
from counterpoise.weights.oracle import Oracle, OracleModel
from counterpoise.weights.pate import Pate, PateModel
from counterpoise.weights.protocol import WEIGHTERS, Weighter, WeightModel
from counterpoise.weights.refine import Smoothed, smooth, tail_shape, temper, truncate
from counterpoise.weights.uniform import Uniform, UniformModel
from counterpoise.weights.weights import Weights

__all__ = [
    "WEIGHTERS",
    "BetaCalibration",
    "Diagnosis",
    "Discriminator",
    "DiscriminatorModel",
    "DpMlp",
    "FiniteVarianceTest",
    "Logistic",
    "LogisticModel",
    "LogisticOutputs",
    "LogisticOutputsModel",
    "Mlp",
    "MomentModel",
    "Moments",
    "NetworkModel",
    "Oracle",
    "OracleModel",
    "Pate",
    "PateModel",
    "Smoothed",
    "Uniform",
    "UniformModel",
    "Verdict",
    "WeightModel",
    "Weighter",
    "Weights",
    "calibrate",
    "calibrate_privately",
    "diagnose",
    "finite_variance_test",
    "fitted_sample_size",
    "smooth",
    "tail_shape",
    "temper",
    "truncate",
]
