"""Whatever a budget, a ledger or a vault is given, it answers, or refuses in our words."""

import numpy as np
import pytest

from counterpoise.networks import Inputs, Network, Optimiser
from counterpoise.vault import (
    Budget,
    Dependence,
    DescentPlan,
    Ledger,
    Share,
    TeacherPlan,
    Vault,
)
from tests.odd import foreign_errors
from tests.test_odd_arguments import BUDGET, CODED, SCHEMA, TABLE, first


class Ones:
    """A feature map of one feature."""

    names = ("one",)
    bound = 1.0

    def __call__(self, rows):
        return first(rows)[:, None] + 1


def of_vault(query):
    """A query of a vault that is open."""

    def call(**arguments):
        with Vault(TABLE, SCHEMA, BUDGET, seed=1) as vault:
            return getattr(vault, query)(**arguments)

    return call


def within(kind):
    """A plan that a share of a vault pays for."""

    def call(**arguments):
        with Vault(TABLE, SCHEMA, BUDGET, seed=1) as vault:
            return kind.within(vault, **arguments)

    return call


def of_descent(name):
    """A call of a descent that is open."""

    def call(**arguments):
        with Vault(TABLE, SCHEMA, BUDGET, seed=1) as vault:
            plan = DescentPlan(**DESCENT, noise=60.0)
            return getattr(vault.descent(plan), name)(**arguments)

    return call


def of_teachers(name):
    """A call of teachers that are there."""

    def call(**arguments):
        with Vault(TABLE, SCHEMA, BUDGET, seed=1) as vault:
            plan = TeacherPlan(**TEACHERS, noise=60.0)
            return getattr(vault.teachers(plan), name)(**arguments)

    return call


INPUTS = Inputs(SCHEMA)
NETWORK = Network((INPUTS.size, 1))
DESCENT = {
    "inputs": INPUTS,
    "network": NETWORK,
    "loss": "logistic",
    "rate": 0.5,
    "lot": 10.0,
    "clip": 1.0,
    "steps": 2,
}
TEACHERS = {
    "inputs": INPUTS,
    "network": NETWORK,
    "loss": "logistic",
    "teachers": 2,
    "queries": 4,
    "batch": 2,
    "optimiser": Optimiser(),
    "seed": 0,
}
SHARE = {"share": BUDGET.whole}
QUERIES = {
    "counts": {"cliques": [["a"]], **SHARE},
    "total": SHARE,
    "sums": {"features": Ones(), "bound": 1.0, **SHARE},
    "minimise": {
        "features": Ones(),
        "bound": 1.0,
        "synthetic": CODED,
        **SHARE,
        "rows": 20.0,
        "regularisation": 1.0,
        "noise": "gaussian",
        "scale": None,
        "centre": None,
        "outputs": None,
        "loss": None,
    },
    "minimise_perturbed": {
        "features": Ones(),
        "bound": 1.0,
        "synthetic": CODED,
        **SHARE,
        "rows": 20.0,
        "regularisation": 1.0,
        "centre": None,
    },
    "select": {"candidates": [["a", "n"], ["n", "a"]], "score": Dependence(), **SHARE},
    "quantiles": {"column": "n", "probabilities": [0.5], **SHARE},
    "bounds": {"column": "n", **SHARE},
    "categories": {"column": "a", "share": BUDGET.whole.part(0.5), "delta": 1e-9},
    "descent": {"plan": DescentPlan(**DESCENT, noise=60.0)},
    "teachers": {"plan": TeacherPlan(**TEACHERS, noise=60.0)},
    "learn_domain": {**SHARE, "delta": 0.0},
    "choose_bins": SHARE,
    "choose_cells": {
        "share": BUDGET.whole.part(0.9),
        "rows_share": BUDGET.whole.part(0.1),
    },
}
CALLS = {
    "Budget": (
        Budget,
        {"epsilon": 1.0, "delta": 1e-6, "neighbours": "replace", "max_rows_per_person": 1},
    ),
    "whole_beside": (BUDGET.whole_beside, {"set_aside": 1e-9}),
    "count_sensitivity": (BUDGET.count_sensitivity, {"tables": 2}),
    "row_sensitivity": (BUDGET.row_sensitivity, {"bound": 1.0}),
    "Share": (Share, {"amount": 1.0, "pure": True}),
    "gaussian_scale": (BUDGET.whole.gaussian_scale, {"sensitivity": 1.0}),
    "laplace_scale": (BUDGET.whole.laplace_scale, {"sensitivity": 1.0}),
    "part": (BUDGET.whole.part, {"fraction": 0.5}),
    "split": (lambda weight: BUDGET.whole.split(weight, 1.0), {"weight": 1.0}),
    "Ledger": (Ledger, {"budget": BUDGET, "private": True}),
    "Ledger.from_dict": (Ledger.from_dict, {"values": Ledger(BUDGET).to_dict()}),
    "Vault": (
        lambda **given: Vault(**given).close(),
        {
            "table": TABLE,
            "schema": SCHEMA,
            "budget": BUDGET,
            "storage": "memory",
            "seed": 1,
            "ledger": None,
        },
    ),
    **{name: (of_vault(name), arguments) for name, arguments in QUERIES.items()},
    "DescentPlan": (DescentPlan, DESCENT | {"noise": 9.0}),
    "DescentPlan.within": (within(DescentPlan), DESCENT | SHARE),
    "TeacherPlan": (TeacherPlan, TEACHERS | {"noise": 9.0}),
    "TeacherPlan.within": (within(TeacherPlan), TEACHERS | SHARE),
    "gradient": (of_descent("gradient"), {"parameters": np.zeros(NETWORK.size)}),
    "keep": (of_descent("keep"), {"state": {"parameters": np.zeros(3)}}),
    "train": (of_teachers("train"), {"rows": np.zeros((2, INPUTS.size)), "steps": 1}),
    "votes": (of_teachers("votes"), {"rows": np.zeros((2, INPUTS.size))}),
}

EVERY = [(name, argument) for name, (_, sound) in CALLS.items() for argument in sound]


@pytest.mark.parametrize(("name", "argument"), EVERY)
def test_an_odd_argument_is_taken_or_refused_in_our_words(name, argument):
    call, sound = CALLS[name]
    assert not foreign_errors(call, sound, argument)
