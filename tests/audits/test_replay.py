"""Nothing but the noised answers: with the same noised answers, another table leaves no trace.

The noise of one run is written down and given out again over a neighbouring table, and over one
with nothing in common. If a query, a synthesizer or a weighter looked at the rows in any other way
(an exact count, a row that was kept, a choice by the data), what it makes would differ. It may not,
in any number that can be reached from it.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from counterpoise.networks import Inputs, Network
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.testing.trials import WeighterTrial
from counterpoise.vault import Budget, Dependence, DescentPlan, MarginalError, TeacherPlan
from counterpoise.weights import WEIGHTERS
from tests import canary
from tests.audits.exact import Listening, Replaying, listen

SCHEMA = Schema(
    [
        Column.categorical("a", ["x", "y", "z"]),
        Column.boolean("b"),
        Column.continuous("c", 0, 1, nullable=True, bins=6),
    ]
)
OPEN = Schema([Column.categorical("a"), Column.boolean("b"), Column.continuous("c")])
OPEN = OPEN.pay("a").pay("c")
BUDGET = Budget(2.0, 1e-6)


def table(rows: int, seed: int, tilt: float) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": generator.choice(["x", "y", "z"], rows, p=[0.5 - tilt, 0.2, 0.3 + tilt]),
            "b": generator.random(rows) < 0.4 + tilt,
            "c": generator.beta(1 + 3 * tilt, 1, rows),
        }
    )


ROWS = table(400, 0, 0.0)
OTHERS = {
    "a row less": ROWS[1:],
    "other rows, and more of them": table(900, 1, 0.3),
    "other rows": table(400, 2, 0.3),
}
SYNTHETIC = table(300, 3, 0.1)


class Features:
    names = ("c", "b")

    def __call__(self, rows):
        return rows.units[:, [2, 1]]


def minimise(vault, law):
    return vault.minimise(
        Features(),
        1.5,
        SCHEMA.encode(SYNTHETIC),
        whole(vault),
        rows=400,
        regularisation=0.1,
        noise=law,
    )


def whole(vault):
    return vault.budget.whole


def descend(vault):
    """Parameters that go where the noisy gradients lead."""
    inputs = Inputs(vault.schema)
    network = Network((inputs.size, 4, 1))
    plan = DescentPlan.within(
        vault,
        whole(vault),
        inputs=inputs,
        network=network,
        loss="logistic",
        rate=0.3,
        lot=120.0,
        clip=1.0,
        steps=5,
    )
    parameters = network.initial(np.random.default_rng(0))
    with vault.descent(plan) as descent:
        while descent.left:
            parameters = parameters - descent.gradient(parameters)
    return parameters


def vote(vault):
    inputs = Inputs(vault.schema)
    network = Network((inputs.size, 4, 1))
    plan = TeacherPlan.within(
        vault, whole(vault), queries=20, inputs=inputs, network=network, teachers=5
    )
    public = np.random.default_rng(0).uniform(-1, 1, (10, inputs.size))
    with vault.teachers(plan) as teachers:
        teachers.train(public, 5)
        first = teachers.votes(public)
        teachers.train(public[first > 2] if (first > 2).any() else public, 5)
        return first, teachers.votes(public)


def bandwidth(vault, law):
    points = SCHEMA.encode(SYNTHETIC[:20])
    return vault.select_bandwidth(points, (0.02, 0.05, 0.1), whole(vault), law)


CANDIDATES = [("a", "b"), ("a", "c"), ("b", "c")]
ERROR = MarginalError([np.ones(6), np.ones(21), np.ones(14)], np.arange(1.0, 4.0), np.zeros(3))

QUERIES = {
    "counts": lambda vault: vault.counts([("a",), ("b", "c")], whole(vault)),
    "total": lambda vault: vault.total(whole(vault)),
    "sums": lambda vault: vault.sums(Features(), 1.5, whole(vault)),
    "gaussian minimiser": lambda vault: minimise(vault, "gaussian"),
    "laplace minimiser": lambda vault: minimise(vault, "laplace"),
    "l2-laplace minimiser": lambda vault: minimise(vault, "l2-laplace"),
    "descent": descend,
    "teachers": vote,
    "errors": lambda vault: vault.select(CANDIDATES, ERROR, whole(vault)),
    "dependence": lambda vault: vault.select(CANDIDATES, Dependence(), whole(vault)),
    "points": lambda vault: vault.select_points(
        6, whole(vault), candidates=SCHEMA.encode(SYNTHETIC), rows=400, repeats=2
    ),
    "selected bandwidth": lambda vault: bandwidth(vault, "exponential"),
    "likeliest bandwidth": lambda vault: bandwidth(vault, "laplace"),
    "quantiles": lambda vault: vault.quantiles("c", [0.1, 0.2, 0.5, 0.9], whole(vault)),
    "bounds": lambda vault: vault.bounds("c", whole(vault).part(0.9)),
    "categories": lambda vault: vault.categories("a", whole(vault).part(0.9), 1e-7),
    "domain": lambda vault: vault.learn_domain(whole(vault).part(0.9), 1e-7),
    "bins": lambda vault: vault.choose_bins(whole(vault)),
    "cells": lambda vault: vault.choose_cells(whole(vault).part(0.9), whole(vault).part(0.1)),
}


def schema_for(name: str) -> Schema:
    if name in ("bounds", "categories", "domain"):
        return OPEN
    if name == "cells":
        # Bins that are left open, and long lists of categories, are what cells are chosen for.
        many = Column.categorical("a", ["x", "y", "z", *map(str, range(200))], nullable=True)
        return SCHEMA.replace(replace(SCHEMA["c"], bins=None)).replace(many)
    return SCHEMA


def assert_nothing_else_is_looked_at(ask, rows, schema=SCHEMA) -> None:
    first = Listening(seed=5)
    made = listen(ask, ROWS, schema, BUDGET, first)
    assert bool(first.draws) == bool(made.spends), "what was paid for was not noised"
    again = Replaying(first.draws)
    other = listen(ask, rows, schema, BUDGET, again)
    assert again.script == []
    assert made.spends == other.spends
    assert canary.numbers(made.answer) == canary.numbers(other.answer)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("rows", OTHERS.values(), ids=OTHERS)
def test_an_answer_follows_from_its_noised_numbers(name, rows):
    assert_nothing_else_is_looked_at(QUERIES[name], rows, schema_for(name))


# What looks without noise, on a vault with a seed, follows from no noised number.
NOISED = [
    name
    for name in sorted(SYNTHESIZERS)
    if not getattr(SYNTHESIZERS.get(name), "needs_seed", False)
]


@pytest.mark.parametrize("name", NOISED)
@pytest.mark.parametrize("rows", OTHERS.values(), ids=OTHERS)
def test_a_model_follows_from_its_noised_numbers(name, rows):
    def fit(vault):
        model = SYNTHESIZERS.make(name).fit(vault, whole(vault))
        return model, model.sample(50, seed=1)

    assert_nothing_else_is_looked_at(fit, rows)


# Those that look without noise say so, and are never private.
NOISED = sorted(name for name in WEIGHTERS if not getattr(WEIGHTERS.get(name), "needs_seed", False))


@pytest.mark.parametrize("name", NOISED)
@pytest.mark.parametrize("rows", OTHERS.values(), ids=OTHERS)
def test_a_weight_model_follows_from_its_noised_numbers(name, rows):
    method = WEIGHTERS.make(name)

    def fit(vault):
        model = WeighterTrial(method).fit_on(vault, SYNTHETIC, whole(vault))
        return model, model.weigh(SYNTHETIC)

    assert_nothing_else_is_looked_at(fit, rows)
