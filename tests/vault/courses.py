"""A small table, and plans of descents and votes on it, for the tests of courses."""

import numpy as np
import pandas as pd

from counterpoise.networks import Inputs, Network
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, DescentPlan, TeacherPlan

SCHEMA = Schema(
    [Column.categorical("a", ["x", "y", "z"]), Column.continuous("b", 0.0, 1.0, nullable=True)]
)
BUDGET = Budget(2.0, 1e-6)
INPUTS = Inputs(SCHEMA)
NETWORK = Network((INPUTS.size, 6, 1))
PARAMETERS = NETWORK.initial(np.random.default_rng(0))
PUBLIC = np.random.default_rng(1).uniform(-1, 1, (50, INPUTS.size))


def table(rows=80, seed=0):
    generator = np.random.default_rng(seed)
    return pd.DataFrame({"a": generator.choice(["x", "y", "z"], rows), "b": generator.random(rows)})


def descent_plan(**changes):
    plan = {
        "inputs": INPUTS,
        "network": NETWORK,
        "loss": "logistic",
        "rate": 0.2,
        "lot": 16.0,
        "clip": 1.0,
        "noise": 20.0,
        "steps": 10,
    }
    return DescentPlan(**(plan | changes))


def teacher_plan(**changes):
    plan = {
        "inputs": INPUTS,
        "network": NETWORK,
        "teachers": 5,
        "queries": 40,
        "noise": 60.0,
        "batch": 8,
    }
    return TeacherPlan(**(plan | changes))
