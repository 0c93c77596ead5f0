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

from counterpoise.errors import CounterpoiseError, MethodError
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers.support_points import SupportPoints
from counterpoise.vault import Budget, LogisticLoss, MarginalError, PointDistance, Share, Vault
from tests.audits.exact import GAUSSIAN, ROUNDING, claim, listen, loss, pair

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
