"""How close a weighted synthetic table is to real rows, and how useful, for the curator alone.

Everything here looks at exact real rows and spends no privacy: what it returns is confidential
wherever the rows are.
"""

from counterpoise.evaluation.certificates import exact_certificate, excess_risk, marginal_distance
from counterpoise.evaluation.distances import sliced_wasserstein, wasserstein
from counterpoise.evaluation.divergence import neighbour_divergence
from counterpoise.evaluation.kernels import discrepancy, energy_distance, mmd
from counterpoise.evaluation.marginals import (
    k_marginal_score,
    marginal_error,
    mean_error,
    total_variation,
)
from counterpoise.evaluation.models import train_and_test
from counterpoise.evaluation.point_chains import ChainDiagnostics, chain_diagnostics
from counterpoise.evaluation.points import coordinates, equal_points
from counterpoise.evaluation.two_sample import Propensity, tell_apart
from counterpoise.evaluation.utility import (
    LinearModel,
    coefficient_error,
    fit_linear,
    linear_score,
    mlp_score,
)

__all__ = [
    "ChainDiagnostics",
    "LinearModel",
    "Propensity",
    "chain_diagnostics",
    "coefficient_error",
    "coordinates",
    "discrepancy",
    "energy_distance",
    "equal_points",
    "exact_certificate",
    "excess_risk",
    "fit_linear",
    "k_marginal_score",
    "linear_score",
    "marginal_distance",
    "marginal_error",
    "mean_error",
    "mlp_score",
    "mmd",
    "neighbour_divergence",
    "sliced_wasserstein",
    "tell_apart",
    "total_variation",
    "train_and_test",
    "wasserstein",
]
