"""Numbers far from one: bounds, operators, shares and budgets at which squares are none."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import BudgetError, CounterpoiseError, VaultError
from counterpoise.vault import Budget, Share, Vault, operator_norm, perturbation_for
from counterpoise.vault.counting import CountNoise, count_noise
from counterpoise.vault.noise import Grid, Noise
from counterpoise.vault.sums import clip

SIZES = [1e-300, 1e-200, 1e-154, 1e-100, 1.0, 1e100, 1e154, 1e200, 1e300]


@pytest.mark.parametrize("bound", SIZES)
def test_rows_are_clipped_whatever_the_bound(bound):
    rows = np.array([[3.0, 4.0], [-0.3, 0.4], [0.0, 0.0], [1e-30, 0.0], [0.6, -0.8]]) * bound
    clipped = clip(rows, bound)
    # In units of the bound, where norms can be taken.
    assert np.linalg.norm(clipped / bound, axis=1).max() <= 1 + 1e-12
    assert clipped[1:4] == pytest.approx(rows[1:4], rel=1e-12, abs=0)
    # Cut to the bound in each coordinate first, then scaled down.
    assert clipped[0] / bound == pytest.approx([math.sqrt(0.5)] * 2)


@pytest.mark.parametrize("bound", [1e-300, 1e-160, 1e160])
def test_no_row_moves_a_sum_by_more_than_its_bound(bound):
    class Far:
        names = ("a", "b")

        def __call__(self, rows):
            return np.full((len(rows), 2), 1000 * bound)

    table, schema = pd.DataFrame({"ill": [True]}), cp.Schema([cp.Column.boolean("ill")])
    with Vault(table, schema, Budget(1e4, 1e-6)) as vault:
        answer = vault.sums(Far(), bound, vault.budget.whole)
    # The noise is of about a hundredth of the bound.
    assert np.linalg.norm(answer.values / bound) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("bound", [1e-301, 5e-324, 1.7976931348623157e308])
def test_bounds_beyond_all_measure_are_refused_before_the_look(bound):
    class One:
        names = ("a", "b")

        def __call__(self, rows):
            raise AssertionError

    table, schema = pd.DataFrame({"ill": [True]}), cp.Schema([cp.Column.boolean("ill")])
    with Vault(table, schema, Budget(1.0, 1e-6)) as vault:
        with pytest.raises(VaultError, match="bound"):
            vault.sums(One(), bound, vault.budget.whole)
        assert vault.ledger.spends == ()


@pytest.mark.parametrize("size", SIZES)
def test_operator_norms_scale_with_their_matrix(size):
    matrix = np.random.default_rng(1).normal(size=(7, 3))
    expected = np.linalg.norm(matrix, 2)
    assert operator_norm(matrix * size) / size == pytest.approx(expected, rel=1e-12)
    assert operator_norm(matrix.T * size) / size == pytest.approx(expected, rel=1e-12)


def test_operator_norms_of_nothing_and_of_no_number():
    assert operator_norm(np.zeros((3, 2))) == 0
    assert operator_norm(np.full((2, 2), math.inf)) == math.inf
    assert math.isnan(operator_norm(np.array([[math.nan, 1.0]])))


@pytest.mark.parametrize("value", [*SIZES, 5e-324, 1e308, math.nan, math.inf, None, "x", 0])
@pytest.mark.parametrize("name", ["bound", "rows", "regularisation", "reach", "slope", "scale"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "l2-laplace", "none"])
def test_a_perturbation_is_sound_or_refused(name, value, noise):
    arguments = {"bound": 2.0, "rows": 100, "regularisation": 0.1, name: value}
    try:
        found = perturbation_for(
            Budget(1.0, 1e-6), Share(0.5, pure=False), size=3, noise=noise, **arguments
        )
    except CounterpoiseError:
        return
    assert 0 < found.sensitivity < math.inf
    assert 0 < found.step < found.sensitivity
    assert found.scale == 0 if noise == "none" else 0 < found.scale < math.inf


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_deviation_of_hardly_any_noise_can_be_divided_by(law):
    for scale in (1e-4, 1e-3, 1e-2):
        deviation = CountNoise(law, scale, None).deviation
        assert 1 / deviation**2 <= 1e8 * (1 + 1e-9)


@pytest.mark.parametrize("scale", [0.5, 3.0, 1e6, 1e15])
def test_the_deviation_of_laplace_noise_is_that_of_its_law(scale):
    # 2 q / (1 - q)^2 = 1 / (2 sinh^2(1 / (2 b)))
    deviation = CountNoise("laplace", scale, None).deviation
    assert deviation == pytest.approx(1 / (math.sqrt(2) * math.sinh(0.5 / scale)), rel=1e-9)


@pytest.mark.parametrize("amount", [1e-40, 1e-300, 5e-324])
@pytest.mark.parametrize("pure", [True, False])
def test_a_share_too_small_for_a_count_is_refused_before_the_look(amount, pure):
    budget = Budget(1.0, 0.0 if pure else 1e-6)
    with pytest.raises(BudgetError, match=r"too small|positive"):
        count_noise(budget, Share(amount, pure))
    with pytest.raises(BudgetError, match=r"too small|positive"):
        perturbation_for(
            budget,
            Share(amount, pure),
            size=3,
            bound=1.0,
            rows=100,
            regularisation=0.1,
            noise="l2-laplace",
        )


@pytest.mark.parametrize("weight", [1e300, 1e308, math.inf])
def test_a_share_is_split_by_weights_that_add_up_to_a_number_or_not_at_all(weight):
    with pytest.raises(BudgetError, match="a weight"):
        Budget(1.0).whole.split(weight, weight)
    first, second = Budget(1.0).whole.split(9e299, 9e299)
    assert first.amount == second.amount == pytest.approx(Budget(1.0).whole.amount / 2)


@pytest.mark.parametrize("seed", [None, 1])
def test_noise_beyond_64_bits_is_refused(seed):
    noise, zeros = Noise(seed), np.zeros(3, dtype=np.int64)
    for draw in (noise.gaussian, noise.laplace, noise.l2_laplace):
        for scale in (1e17, 1e19, 1e300):
            with pytest.raises(BudgetError, match="too small"):
                draw(zeros, scale)
        assert np.abs(draw(zeros, 1e15)).max() > 1e12
    for rate in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(BudgetError, match="rate"):
            noise.choose(zeros, rate)


def test_a_grid_has_a_step_of_full_precision():
    assert Grid.below(1e-300).step > 1e-308
    with pytest.raises(VaultError, match="unit"):
        Grid.below(1e-301)


TABLE = pd.DataFrame(
    {"ill": [True, False] * 100, "age": np.arange(200) % 90, "city": ["a", "b", "c", "c"] * 50}
)
SCHEMA = cp.Schema(
    [
        cp.Column.boolean("ill"),
        cp.Column.integer("age", 0, 99),
        cp.Column.categorical("city", ["a", "b", "c"]),
    ]
)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1e-12, 0.0),
        (1e-9, 0.0),
        (1e-9, 1e-12),
        (1e-6, 1e-12),
        (100, 0.0),
        (1000, 0.0),
        (1e4, 0.0),
        (1e4, 0.5),
        (1e300, 1e-6),
        (math.inf, 0.0),
        (np.float32(1), np.float64(1e-9)),
        (np.int64(2), 0),
        (True, 0.0),
        (None, 0.0),
        ("x", 0.0),
        (1.0, -1),
        (1.0, math.nan),
    ],
)
def test_any_budget_makes_a_release_or_an_error_of_ours(epsilon, delta, neighbours, tmp_path):
    asked = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours}
    try:
        release = cp.release(TABLE, schema=SCHEMA, rows=50, replicates=4, **asked)
    except BudgetError:
        return
    release.save(tmp_path / "out")
    assert json.loads(json.dumps(release.ledger.to_dict())) == release.card["ledger"]
    assert release.ledger.epsilon_spent <= float(epsilon)
