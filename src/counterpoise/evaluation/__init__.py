"""How close a weighted synthetic table is to real rows, and how useful, for the curator alone.

Everything here looks at exact real rows and spends no privacy: what it returns is confidential
wherever the rows are.
"""

from counterpoise.evaluation.certificates import exact_certificate, excess_risk, marginal_distance
from counterpoise.evaluation.distances import mmd, sliced_wasserstein, wasserstein
from counterpoise.evaluation.marginals import marginal_error, mean_error, total_variation
from counterpoise.evaluation.points import coordinates, equal_points
from counterpoise.evaluation.utility import (
    LinearModel,
    coefficient_error,
    fit_linear,
    linear_score,
    mlp_score,
)

__all__ = [
    "LinearModel",
    "coefficient_error",
    "coordinates",
    "equal_points",
    "exact_certificate",
    "excess_risk",
    "fit_linear",
    "linear_score",
    "marginal_distance",
    "marginal_error",
    "mean_error",
    "mlp_score",
    "mmd",
    "sliced_wasserstein",
    "total_variation",
    "wasserstein",
]
