"""Every query at the smallest and the largest values that it takes of each public parameter.

On a worst pair of neighbours: no more is revealed than is charged (by the exact law, see `exact`),
nothing overflows, and the answer is a number. Just outside of the range it is refused, with nothing
charged.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import CounterpoiseError, CounterpoiseWarning, MethodError
from counterpoise.networks import Inputs, Network, Optimiser
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers.support_points import SupportPoints
from counterpoise.vault import (
    Budget,
    DescentPlan,
    LogisticLoss,
    MarginalError,
    PointDistance,
    Share,
    TeacherPlan,
    Vault,
)
from counterpoise.vault.noise.entropy import SeededEntropy
from tests.audits.audit import audited_vault
from tests.audits.exact import GAUSSIAN, ROUNDING, Listening, claim, listen, loss, pair

ADD = Budget(50.0, 1e-6)
REPLACE = Budget(50.0, 1e-6, "replace", 3)

LINE = Schema([Column.continuous("x", 0, 1), Column.categorical("c", ["u", "v"])])
PERSON, OTHER = {"x": 0.0, "c": "u"}, {"x": 1.0, "c": "v"}
REST = pd.DataFrame({"x": [0.3, 0.3, 0.8, 1.0], "c": ["u", "v", "v", "u"]})
POOL = LINE.encode(pd.DataFrame({"x": [0.0, 0.3, 1.0], "c": ["u", "v", "v"]}))


@dataclass(frozen=True)
class Edge:
    """A parameter of a query, what is asked with its values, and where its range ends."""

    ask: Callable[[Vault, Share, Any], Any]
    taken: tuple[Any, ...]
    refused: tuple[Any, ...]


def beyond(least: float, most: float) -> tuple[float, ...]:
    """The next numbers outside of a range, and those that are none."""
    return math.nextafter(least, -math.inf), math.nextafter(most, math.inf), math.nan, math.inf


def points_of(vault, share, width):
    distance = PointDistance(width=width)
    return vault.select_points(1, share, candidates=POOL, rows=7.0, distance=distance)


def bandwidth_of(law):
    return lambda vault, share, widths: vault.select_bandwidth(POOL, widths, share, law)


def errors_of(vault, share, asked):
    """Two candidates: what the person does to the first is asked with, and cancels where it may."""
    estimate, weight, allowance = asked
    score = MarginalError(
        [np.full(2, estimate), np.zeros(2)], np.full(2, weight), np.array([allowance, 0.0])
    )
    return vault.select([("c",), ("c",)], score, share)


class Opposite:
    """Features that are far too long, and opposite for the person and another."""

    names = ("first", "second")

    def __init__(self, bound):
        self.bound = bound

    def __call__(self, rows):
        side = 1.0 - 2 * rows.codes[:, 1]
        return np.column_stack([side, side / 4]) * (3 * self.bound)


def minimised(query="minimise", **defaults):
    """A query of minimisers, with m lambda the square of the bound unless another is asked for."""

    def ask(vault, share, changes):
        asked = {"bound": 1.0, "rows": 8.0} | defaults | changes
        asked.setdefault("regularisation", asked["bound"] ** 2 / asked["rows"])
        bound = asked.pop("bound")
        return getattr(vault, query)(Opposite(bound), bound, POOL, share, **asked)

    return ask


class Loss(LogisticLoss):
    """The logistic loss in another unit, with whatever bounds it states."""

    def __init__(self, slope=1.0, steepening=1.0):
        self.slope, self.steepening = slope, steepening

    def derivatives(self, margins):
        return tuple(part * self.slope for part in super().derivatives(margins))


def each(name, values, **others):
    return tuple({name: value, **others} for value in values)


BOUNDS, ROWS, PENALTIES = (1e-100, 1e100), (1.0, 2.0**60), (1e-250, 1e250)
OF_MINIMISERS = {
    "bound": (each("bound", BOUNDS), each("bound", beyond(*BOUNDS), regularisation=1.0)),
    "rows": (each("rows", ROWS), each("rows", (1e-308, *beyond(*ROWS)), regularisation=1.0)),
    "regularisation": (
        (
            {"regularisation": 1e-203, "bound": 1e-100, "rows": 2.0},
            {"regularisation": 1e250, "bound": 1e100, "rows": 1.0},
            # The most that a row may move its own margin by
            {"regularisation": 1.01e-3, "rows": 1.0},
        ),
        (
            *each("regularisation", beyond(*PENALTIES), bound=1e100),
            {"regularisation": 0.99e-3, "rows": 1.0},
            {"regularisation": 1e200, "bound": 1e-100},
        ),
    ),
    "centre": (
        each("centre", ([1000.0, 0], [0, -1000.0], [1e-300, 0])),
        each("centre", ([1001.0, 0], [1e300, 0], [math.nan, 0], [math.inf, 0], [1.0])),
    ),
}


def rows_of(vault, share, rows):
    return vault.select_points(1, share, candidates=POOL, rows=rows)


def sums_of(vault, share, bound):
    return vault.sums(Opposite(min(bound, 1e290)), bound, share)


def quantiles_of(vault, share, probabilities):
    return vault.quantiles("x", probabilities, share)


WIDTHS = (1e-12, 1e12)
EDGES = {
    "select_points width": Edge(points_of, (*WIDTHS, 1e-8, 1e8), beyond(*WIDTHS)),
    **{
        f"select_bandwidth widths, {law}": Edge(
            bandwidth_of(law),
            (WIDTHS, (1e-12, 2e-12), (5e11, 1e12)),
            tuple((0.5, width) if width > 0.5 else (width, 0.5) for width in beyond(*WIDTHS)),
        )
        for law in ("exponential", "laplace")
    },
}
FAR = (-1e100, 1e100)
NEAR = (1e-100, 1e100)
EDGES |= {
    "MarginalError estimates": Edge(
        errors_of,
        tuple((far, 1.0, 2 * abs(far)) for far in (2.0**30, 2.0**54, 2.0**60, -(2.0**60))),
        tuple((far, 1.0, 0.0) for far in beyond(*FAR)),
    ),
    "MarginalError weights": Edge(
        errors_of,
        tuple((1.0, sign * weight, 1.0) for weight in NEAR for sign in (1, -1)),
        tuple((1.0, weight, 1.0) for weight in (0.0, *beyond(*NEAR))),
    ),
    "MarginalError allowances": Edge(
        errors_of,
        tuple((1.0, 1.0, far) for far in FAR),
        tuple((1.0, 1.0, far) for far in beyond(*FAR)),
    ),
}
EDGES |= {
    f"minimise {name}, {law}": Edge(minimised(noise=law), *both)
    for name, both in OF_MINIMISERS.items()
    for law in ("gaussian", "laplace", "l2-laplace")
}
EDGES |= {
    "minimise outputs": Edge(
        minimised(),
        each("outputs", (np.full((3, 2), 5e-101), np.eye(2) * 0.9e100)),
        each("outputs", (np.eye(2) * 0.9e-100, np.eye(2) * 1.1e100, np.full((1, 2), math.nan))),
    ),
    "minimise scale": Edge(
        minimised(regularisation=1.0),
        each("scale", (1.0, 2.0**28)),
        each("scale", (0.1, 2.0**32, 0.0, 1e308, math.nan)),
    ),
    "minimise loss": Edge(
        minimised(regularisation=1e4),
        each("loss", (Loss(1e-6), Loss(1e6), Loss(1.0, 0.0), Loss(1.0, 1e3))),
        each("loss", (*map(Loss, beyond(1e-6, 1e6)), *(Loss(1, s) for s in beyond(0.0, 1e3)))),
    ),
}
EDGES |= {
    "select_points rows": Edge(rows_of, (1.0, 2.0**30), beyond(1.0, 2.0**30)),
    "sums bound": Edge(
        sums_of,
        (1e-300, 1e290),
        (0.0, *beyond(1e-300, 1e290), 1.79e308),
    ),
    "quantiles probabilities": Edge(
        quantiles_of,
        ([1e-9], [1 - 1e-9]),
        (
            *([q] for q in (0.0, 5e-324, 0.9e-9, 1 - 0.9e-9, math.nextafter(1, 0), 1.0, math.nan)),
            [0.5, 0.5 + 0.9e-9],
            [],
        ),
    ),
}
TAKEN = [
    pytest.param(edge.ask, value, id=f"{name} {value}")
    for name, edge in EDGES.items()
    for value in edge.taken
]
REFUSED = [
    pytest.param(edge.ask, value, id=f"{name} {value}")
    for name, edge in EDGES.items()
    for value in edge.refused
]


@pytest.mark.parametrize("budget", [ADD, REPLACE], ids=["add-remove", "replace"])
@pytest.mark.parametrize(("ask", "value"), TAKEN)
def test_no_more_is_revealed_at_an_edge_than_is_charged(ask, value, budget):
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        before, after = (
            listen(lambda vault: ask(vault, GAUSSIAN, value), table, LINE, budget)
            for table in pair(REST, PERSON, OTHER, budget)
        )
    assert before.spends == after.spends
    assert len(before.draws) == len(after.draws) == len(before.spends)
    for first, second, spend in zip(before.draws, after.draws, before.spends, strict=True):
        assert np.isfinite(first.exact).all()
        assert loss(first, second) <= claim(first.law, spend) * (1 + ROUNDING)


@pytest.mark.parametrize(("ask", "value"), REFUSED)
def test_beyond_an_edge_nothing_is_charged(ask, value):
    with Vault(REST, LINE, ADD, seed=1) as vault:
        with pytest.raises(CounterpoiseError):
            ask(vault, GAUSSIAN, value)
        assert vault.ledger.spends == ()


QUERIES: dict[str, Callable[[Vault, Share], Any]] = {
    "counts": lambda vault, share: vault.counts([("c",), ("x", "c")], share),
    "total": lambda vault, share: vault.total(share),
    "bounds": lambda vault, share: vault.bounds("x", share),
    "choose_bins": lambda vault, share: vault.choose_bins(share),
    "choose_cells": lambda vault, share: vault.choose_cells(share.part(0.9), share.part(0.1)),
    "quantiles": lambda vault, share: quantiles_of(vault, share, [0.2, 0.5, 0.9]),
    "categories": lambda vault, share: vault.categories("c", share, 1e-9),
    "sums": lambda vault, share: sums_of(vault, share, 1.0),
    "select": lambda vault, share: errors_of(vault, share, (0.0, 1.0, 0.0)),
    "select_points": lambda vault, share: rows_of(vault, share, 4.0),
    "metropolis": lambda vault, share: vault.select_points(
        2, share, sampler="metropolis", rows=4.0, moves=10
    ),
    **{
        f"select_bandwidth, {law}": lambda vault, share, law=law: bandwidth_of(law)(
            vault, share, (0.1, 0.2)
        )
        for law in ("exponential", "laplace")
    },
    **{
        f"minimise, {law}": lambda vault, share, law=law: minimised(noise=law)(vault, share, {})
        for law in ("gaussian", "laplace", "l2-laplace")
    },
    "minimise_perturbed": lambda vault, share: minimised("minimise_perturbed")(vault, share, {}),
}


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "zcdp"])
@pytest.mark.parametrize("part", [1.0, 1e-9, 1e-16, 1e-30, 1e-95, 5e-324])
@pytest.mark.parametrize("name", QUERIES)
def test_a_share_of_any_size_is_charged_and_answered_or_refused(name, part, delta):
    for epsilon in (1.0, 10_000.0):
        budget = Budget(epsilon, delta)
        with Vault(REST, LINE, budget, seed=1) as vault, warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CounterpoiseWarning)
            try:
                QUERIES[name](vault, budget.whole.part(part))
            except CounterpoiseError as error:
                # What was found in the noise may be nothing; that is an answer.
                assert "clear of the noise" in str(error) or not vault.ledger.spends
            else:
                assert vault.ledger.spends
                assert vault.ledger.epsilon_spent <= epsilon


DESCENT = {"rate": 1.0, "lot": 4.0, "clip": 1.0, "noise": 2.0, "steps": 1}
OF_DESCENTS = {
    "rate": (1e-12, 1.0),
    "lot": (1e-12, 1e12),
    "clip": (1e-12, 1e12),
    "noise": (1e-3, 1e6),
    "steps": (1, 10**9),
}
INPUTS = Inputs(LINE)
NETWORK = Network((INPUTS.size, 3, 1))


def plan_of(name, value):
    return DescentPlan(INPUTS, NETWORK, "logistic", **(DESCENT | {name: value}))


@pytest.mark.parametrize("size", [0.0, 1.0, 1e100])
@pytest.mark.parametrize(
    ("name", "value"), [(name, end) for name, ends in OF_DESCENTS.items() for end in ends]
)
def test_no_more_is_revealed_at_an_edge_of_a_descent_than_is_charged(name, value, size):
    """Given the lot, a step reveals what its noise multiplier says; sampling makes it less."""
    parameters = np.random.default_rng(0).choice([-size, size], NETWORK.size)
    plan = plan_of(name, value)
    draws = []
    for table in pair(REST, PERSON, OTHER, ADD):
        noise = Listening()
        with audited_vault(table, LINE, ADD, noise) as vault, np.errstate(all="raise"):
            answer = vault.descent(plan).gradient(parameters)
        assert np.isfinite(answer).all()
        draws += noise.draws
    assert loss(*draws) <= (1 + ROUNDING) / plan.noise


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, end) for name, ends in OF_DESCENTS.items() for end in beyond(*ends)],
)
def test_a_plan_beyond_an_edge_is_refused(name, value):
    with pytest.raises(CounterpoiseError, match=name):
        plan_of(name, value)


@pytest.mark.parametrize("rate", [1e-300, 1e300])
@pytest.mark.parametrize("noise", [1e-3, 1e6])
def test_one_vote_in_each_count_is_charged_whatever_teachers_learn(noise, rate):
    """With teachers that overflow too: who has no number for an output does not say private."""
    optimiser = Optimiser(rate=rate)
    plan = TeacherPlan(INPUTS, NETWORK, teachers=3, queries=2, noise=noise, optimiser=optimiser)
    rows = np.random.default_rng(0).uniform(-1, 1, (2, INPUTS.size))
    draws = []
    for table in pair(REST, PERSON, OTHER, REPLACE):
        noise_of = Listening()
        noise_of._entropy = SeededEntropy(1)  # the same teachers for both
        with audited_vault(table, LINE, REPLACE, noise_of) as vault:
            opened = vault.teachers(plan)
            opened.train(rows, 3)
            opened.votes(rows)
        draws += noise_of.draws
    first, second = draws
    assert np.abs(second.exact - first.exact).max() <= REPLACE.max_rows_per_person
    assert first.scale == second.scale == noise * REPLACE.max_rows_per_person


PERTURBED = {
    name: Edge(minimised("minimise_perturbed"), *both) for name, both in OF_MINIMISERS.items()
}


@pytest.mark.parametrize("name", PERTURBED)
def test_a_perturbed_objective_has_a_minimiser_at_an_edge_and_is_refused_beyond(name):
    """What it reveals is that of the unit between: see `test_objective`."""
    edge = PERTURBED[name]
    for changes in edge.taken:
        with Vault(REST, LINE, ADD, seed=1) as vault:
            found = edge.ask(vault, Share(25.0, pure=False), changes)
            assert np.isfinite(found.values).all()
            assert len(vault.ledger.spends) == 1
    for changes in edge.refused:
        with Vault(REST, LINE, ADD, seed=1) as vault:
            with pytest.raises(CounterpoiseError):
                edge.ask(vault, Share(25.0, pure=False), changes)
            assert vault.ledger.spends == ()


@pytest.mark.parametrize("width", [1e-165, 1e-13, 1e13, 1e200])
def test_support_points_of_such_a_width_are_refused_before_a_vault_is_opened(width):
    with pytest.raises(MethodError, match="width"):
        SupportPoints(points=2, width=width)
