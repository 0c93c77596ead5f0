"""Importance-weighted statistics and losses, for samples whose law is not the one that is wanted.

M. Diesendruck, "Distribution Distance Measures in Generative and Privacy Models", dissertation,
University of Texas at Austin, 2019, chapters 3 and 5. Rows were drawn from M P, and something is to
be learned about P: a known modifier M gives weights 1 / M; a thinning function T that is
proportional to it gives weights up to a scale; and few rows with labels give a function that is
learned. Losses weighted so train a generator of P, and few support points stand for many rows.
Arrays in and out; nothing here knows of tables or privacy.
"""

from counterpoise.importance.averages import ESTIMATORS, average, copies, u_statistic, v_statistic
from counterpoise.importance.generator import GeneratorModel, WeightedGenerator
from counterpoise.importance.learned import WeightFunction, learn_weights
from counterpoise.importance.losses import (
    CrossEntropy,
    Discrepancy,
    cross_entropy,
    mean_discrepancy,
)
from counterpoise.importance.points import energy, support_points

__all__ = [
    "ESTIMATORS",
    "CrossEntropy",
    "Discrepancy",
    "GeneratorModel",
    "WeightFunction",
    "WeightedGenerator",
    "average",
    "copies",
    "cross_entropy",
    "energy",
    "learn_weights",
    "mean_discrepancy",
    "support_points",
    "u_statistic",
    "v_statistic",
]
