"""Minimisers of a perturbed objective: what they are, what they are charged, what is refused."""

import math

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault
from counterpoise.vault.noise import Noise
from counterpoise.vault.objective import INEXACTNESS, SOLVER_PART, objective_noise

SCHEMA = Schema([Column.continuous("x", -1, 1), Column.continuous("y", -1, 1)])
NONE = SCHEMA.encode(pd.DataFrame({"x": [], "y": []}, dtype=float))
WITH_DELTA = Budget(1.0, 1e-6)


class Rows:
    names = ("x", "y")

    def __call__(self, rows):
        return 2 * rows.units - 1


def table(rows=4000):
    generator = np.random.default_rng(0)
    return pd.DataFrame(generator.uniform(-0.5, 1, (rows, 2)), columns=["x", "y"])


def answer(private, budget, share=None, against=NONE, seed=1, **options):
    options = {"rows": 4000.0, "regularisation": 0.01} | options
    with Vault(private, SCHEMA, budget, seed=seed) as vault:
        found = vault.minimise_perturbed(
            Rows(), math.sqrt(2), against, share or budget.whole, **options
        )
    return found, vault.ledger


def without_noise(private, against=NONE, centre=(0.0, 0.0), penalty=40.0):
    """The minimiser of the objective as it is, by gradient steps that leave nothing to chance."""
    point = np.zeros(2)
    theirs, ours = Rows()(SCHEMA.encode(private)), -Rows()(against)
    rows = np.vstack([theirs, ours])
    for _ in range(200):
        wrong = 1 / (1 + np.exp(rows @ point))
        gradient = penalty * (point - centre) - rows.T @ wrong
        hessian = penalty * np.eye(2) + (rows * (wrong * (1 - wrong))[:, None]).T @ rows
        point = point - np.linalg.solve(hessian, gradient)
    return point


def test_with_a_large_budget_it_is_the_minimiser():
    budget = Budget(9_000.0)
    against = SCHEMA.encode(table(500).iloc[::-1] * [1, -0.5])
    for centre in ([0.0, 0.0], [3.0, -2.0]):
        found, _ = answer(table(), budget, against=against, centre=np.array(centre))
        expected = without_noise(table(), against, centre)
        assert found.values == pytest.approx(expected, abs=1e-5)


def test_the_noise_is_in_the_objective_and_hardly_on_the_answer():
    # b = s e for a noise of our own: what comes out minimises the objective with that b.
    scales = []

    class Fixed(Noise):
        private = False

        def l2_laplace(self, points, scale):
            scales.append(scale)
            noise = np.zeros(2) if points.any() else scale * np.array([3.0, -4.0])
            return points + np.rint(noise).astype(np.int64)

    with Vault(table(), SCHEMA, Budget(1.0), seed=1) as vault:
        vault._noise = Fixed(seed=1)
        found = vault.minimise_perturbed(
            Rows(), math.sqrt(2), NONE, Budget(1.0).whole, rows=4000, regularisation=0.01
        )
    # b.w moves the centre of the penalty by -b / L.
    moved = -found.scale * np.array([3.0, -4.0]) / 40
    assert found.values == pytest.approx(without_noise(table(), centre=moved), abs=1e-6)
    assert found.outer_scale < 1e-3 * found.scale / 40
    noise = objective_noise(Budget(1.0), Budget(1.0).whole, size=2, bound=2**0.5, penalty=40.0)
    assert scales == [noise.scale / noise.grid.step, noise.outer_scale / noise.answer_grid.step]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
def test_noise_and_charge_are_those_of_the_proof(relation, rows):
    budget = Budget(4.0, 0.0, relation, rows)
    found = objective_noise(budget, budget.whole, size=5, bound=2.0, penalty=50.0)
    moved = 2.0 * rows * (2 if relation == "replace" else 1)
    bend = rows * math.log(1 + 4.0 / (4 * 50.0))
    rest = budget.whole.epsilon - bend
    assert found.scale == pytest.approx(moved / ((1 - SOLVER_PART) * rest), rel=1e-6)
    # The point is within (g + r) / L of the minimiser, for both tables, and rounded for both.
    near = (INEXACTNESS * 2.0 + found.grid.rounding(5)) / 50.0
    hidden = 2 * near + 2 * found.answer_grid.rounding(5)
    assert found.outer_scale == pytest.approx(hidden / (SOLVER_PART * rest), rel=1e-6)
    assert found.gradient_norm <= INEXACTNESS * 2.0 * (1 + 1e-6) / 2
    assert found.epsilon == pytest.approx(budget.whole.epsilon, rel=1e-9)


def test_it_is_charged_as_a_pure_event_whatever_the_budget():
    for budget in (Budget(1.0), WITH_DELTA):
        share = budget.whole.part(0.5)
        found, ledger = answer(table(), budget, share)
        [spend] = ledger.spends
        assert spend.event.epsilon == found.epsilon
        assert found.epsilon == pytest.approx(share.epsilon, rel=1e-9)
        assert found.epsilon <= share.epsilon * (1 + 1e-12)


def test_more_than_is_left_is_refused_before_the_look():
    with Vault(table(), SCHEMA, Budget(1.0), seed=1) as vault:
        ask = {"rows": 4000, "regularisation": 0.01}
        vault.minimise_perturbed(Rows(), 2.0, NONE, vault.budget.whole.part(0.7), **ask)
        with pytest.raises(BudgetError):
            vault.minimise_perturbed(Rows(), 2.0, NONE, vault.budget.whole.part(0.7), **ask)
        assert len(vault.ledger.spends) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"regularisation": 1e-5}, "regularisation"),  # the determinant costs 2.6
        ({"regularisation": 1e-9}, "regularisation"),
        ({"regularisation": 1e245}, "regularisation"),
        ({"regularisation": 5e-324}, "regularisation"),
        ({"regularisation": 1e308, "rows": 1e-308}, "rows"),
        ({"centre": np.zeros(3)}, "centre"),
        ({"share": Budget(1.0).whole.part(1e-6), "regularisation": 1e4}, "larger share"),
    ],
)
def test_what_cannot_work_is_refused_before_it_is_charged(options, said):
    with Vault(table(10), SCHEMA, Budget(1.0), seed=1) as vault:
        given = {"share": vault.budget.whole, "rows": 4000, "regularisation": 1.0} | options
        with pytest.raises(VaultError, match=said):
            vault.minimise_perturbed(Rows(), math.sqrt(2), NONE, **given)
        assert not vault.ledger.spends
