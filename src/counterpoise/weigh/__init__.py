"""Importance weights for synthetic rows, fitted on a vault's noised answers alone."""

from counterpoise.weigh.beta_calibration import BetaCalibration, calibrate, calibrate_privately
from counterpoise.weigh.diagnostics import Diagnosis, Verdict, diagnose, fitted_sample_size
from counterpoise.weigh.finite_variance import FiniteVarianceTest, finite_variance_test
from counterpoise.weigh.logistic import Logistic, LogisticModel
from counterpoise.weigh.logistic_outputs import LogisticOutputs, LogisticOutputsModel
from counterpoise.weigh.moments import MomentModel, Moments
from counterpoise.weigh.oracle import Oracle, OracleModel
from counterpoise.weigh.protocol import WEIGHTERS, Weighter, WeightModel
from counterpoise.weigh.refine import Smoothed, smooth, tail_shape, temper, truncate
from counterpoise.weigh.uniform import Uniform, UniformModel
from counterpoise.weigh.weights import Weights

__all__ = [
    "WEIGHTERS",
    "BetaCalibration",
    "Diagnosis",
    "FiniteVarianceTest",
    "Logistic",
    "LogisticModel",
    "LogisticOutputs",
    "LogisticOutputsModel",
    "MomentModel",
    "Moments",
    "Oracle",
    "OracleModel",
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
