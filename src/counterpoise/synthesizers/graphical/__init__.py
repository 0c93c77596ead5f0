"""Graphical models of discrete tables: structure, exact inference, fitting and sampling.

A model of all columns is made from noisy counts of a few column sets at a time, as in Private-PGM
(McKenna, Sheldon and Miklau 2019). It runs on numpy alone and is built for small tables whose
structure changes from fit to fit, where a compiled engine spends its time compiling.
"""

from counterpoise.synthesizers.graphical.cost import Cost, predict_cost
from counterpoise.synthesizers.graphical.domain import Columns, Domain
from counterpoise.synthesizers.graphical.factor import Factor
from counterpoise.synthesizers.graphical.fit import Fit, Prior, fit, fit_report
from counterpoise.synthesizers.graphical.junction_tree import (
    JunctionTree,
    junction_tree,
    model_size,
)
from counterpoise.synthesizers.graphical.measurements import Measurement, estimate_total
from counterpoise.synthesizers.graphical.model import GraphicalModel
from counterpoise.synthesizers.graphical.sizes import model_sizes

__all__ = [
    "Columns",
    "Cost",
    "Domain",
    "Factor",
    "Fit",
    "GraphicalModel",
    "JunctionTree",
    "Measurement",
    "Prior",
    "estimate_total",
    "fit",
    "fit_report",
    "junction_tree",
    "model_size",
    "model_sizes",
    "predict_cost",
]
