"""Perturbed objectives, audited without sampling: the law of a minimiser follows from its noise.

The noise that goes into the objective is told by the test, value after value, and the minimiser
that the vault computes is read off. With one feature that gives the map from noise to minimiser,
so the minimiser's density: that of the noise, for the scale that the vault asked for, times the
slope of the inverse map. The worst logarithm of the ratio of two neighbours' densities is what the
query reveals. Where a row is far on the wrong side it is the noise's part alone; where rows are in
doubt it is nearly the sum of both, so that neither part can be left out of the charge.
"""

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget
from counterpoise.vault.noise import Noise
from tests.audits.audit import audited_vault, claimed_epsilon

SCHEMA = Schema([Column.categorical("who", ["nobody", "person", "other"])])
POINTS = 81
STEP = 2.0**-24  # of the grid for rows of norm one


class Line:
    """A person's feature is one, the other's minus one, and nobody's none."""

    names = ("only",)

    def __init__(self, unit=1.0):
        self.unit = unit

    def __call__(self, rows):
        return np.array([0.0, self.unit, -self.unit])[rows.codes]


class Told(Noise):
    """Noise in the objective as it is told, and none on the answer; the scale is written down."""

    def __init__(self):
        super().__init__()
        self.pull, self.scales = 0.0, []  # both in units of what a row pulls with

    def l2_laplace(self, points, scale):
        self.scales.append(scale)
        is_first = len(self.scales) % 2
        return points + (round(self.pull / STEP) if is_first else 0)


def law(table, budget, penalty, centre, unit):
    """Minimisers, and the logarithm of their density there, up to a constant; and the claim."""
    pulls, points = np.linspace(3, -3, POINTS), []
    noise = Told()
    vault = audited_vault(table, SCHEMA, budget, noise)
    nobody = SCHEMA.encode(pd.DataFrame({"who": ["nobody"]}))
    options = {"rows": 10, "regularisation": penalty * unit**2 / 10}
    options["centre"] = np.array([centre / unit])
    for noise.pull in pulls:
        answer = vault.minimise_perturbed(Line(unit), unit, nobody, budget.whole, **options)
        points.append(answer.values[0] * unit)
    scale = noise.scales[0] * STEP
    density = -np.abs(pulls) / scale + np.log(-np.gradient(pulls, points))
    return np.array(points), density, claimed_epsilon(vault.ledger.event)


def revealed(budget, penalty, centre, size=1, unit=1.0):
    """The worst loss between a table and its neighbour, and the charge."""
    person, other = ["person"] * size, ["other"] * size
    replaced = budget.neighbours.name == "REPLACE_ONE"
    tables = (
        [["nobody"] * 3 + other, ["nobody"] * 3 + person]
        if replaced
        else [["nobody"] * 3, ["nobody"] * 3 + person]
    )
    (first, left, claim), (second, right, _) = (
        law(pd.DataFrame({"who": each}), budget, penalty, centre, unit) for each in tables
    )
    # Within what both have, and not at the ends, where slopes are one-sided.
    low, high = max(first[2], second[2]), min(first[-3], second[-3])
    places = np.linspace(low, high, 2000)
    losses = np.interp(places, first, left) - np.interp(places, second, right)
    return np.abs(losses).max(), claim


# A row far on the wrong side of the centre pulls with all its might and bends nothing. The penalty
# is such that the determinant takes a hundredth.
@pytest.mark.parametrize("size", [1, 2])
def test_a_row_that_is_far_on_the_wrong_side_reveals_what_is_charged(size):
    budget = Budget(1.0, 0.0, "add-remove", size)
    loss, claim = revealed(budget, 25.0 * size, -30.0, size)
    assert 0.94 * claim < loss <= claim * (1 + 1e-3)


def test_a_row_that_is_replaced_pulls_twice():
    # One on the wrong side and one in doubt on the other: together 1 + 1/2.
    budget = Budget(1.0, 0.0, "replace")
    loss, claim = revealed(budget, 25.0, 0.0)
    assert 0.4 * claim < loss <= claim


def test_rows_in_doubt_bend_the_objective_and_that_is_charged():
    # log(1 + 1 / (4 L)) = log 2 of the charge is for the determinant.
    loss, claim = revealed(Budget(0.8), 0.25, -2.0)
    assert claim == pytest.approx(0.8)
    assert 0.85 * claim < loss <= claim


@pytest.mark.parametrize("unit", [2.0**-332, 2.0**332])
def test_a_perturbed_objective_reveals_as_much_in_the_smallest_and_the_largest_unit(unit):
    loss, claim = revealed(Budget(0.8), 0.25, -2.0, unit=unit)
    assert claim == pytest.approx(0.8)
    assert 0.85 * claim < loss <= claim
