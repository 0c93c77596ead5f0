"""Many calibrations at once are as good as one by one, also where few rows decide."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.weights import many_calibrations
from counterpoise.weights.calibration import calibrate
from counterpoise.weights.many_calibrations import (
    LEAST_SEEN,
    MOST_ENOUGH,
    calibrate_many,
    calibrate_tilts,
    describe,
    tilt_many,
)
from counterpoise.weights.quasi_newton import MANY_TIMES
from counterpoise.weights.row_blocks import HeldRows, MadeRows, Turn


def solved_alone(rows, base, target, softness) -> np.ndarray:
    """The weights of one column; integer base weights are copies of rows."""
    copies = np.repeat(rows, base.astype(int), axis=0)
    softness = softness + (copies.var(axis=0) < LEAST_SEEN)
    found = base * np.exp(rows @ calibrate(copies, target, softness))
    return found / found.mean()


def test_many_calibrations_are_as_good_as_one_by_one():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(400, 3))
    target, softness = np.array([0.4, -0.2, 0.1]), np.full(3, 1e-4)
    targets = target[:, None] + 0.1 * generator.normal(size=(3, 6))
    base = generator.poisson(1.0, size=(400, 6)).astype(float)
    found = calibrate_many(rows, base, targets, softness)
    assert found.mean(axis=0, dtype=float) == pytest.approx(np.ones(6), rel=1e-5)
    for column in range(6):
        expected = solved_alone(rows, base[:, column], targets[:, column], softness)
        assert found[:, column] == pytest.approx(expected, rel=0.01, abs=1e-3)


def test_columns_may_have_a_softness_each():
    generator = np.random.default_rng(2)
    rows, targets = generator.normal(size=(300, 2)), np.full((2, 2), 0.4)
    soft = np.array([[1e-4, 1.0], [1.0, 1e-4]])
    found = calibrate_many(rows, np.ones((300, 2)), targets, soft)
    for column in range(2):
        alone = solved_alone(rows, np.ones(300), targets[:, column], soft[:, column])
        assert found[:, column] == pytest.approx(alone, rel=0.02, abs=2e-3)


def test_the_rows_that_carry_a_coordinate_are_counted_as_a_column_has_them():
    """Ten of a thousand rows are one, the others hardly anything; the second column has two."""
    values = np.full((1000, 1), 1e-3, dtype=np.float32)
    values[:10] = 1.0
    base = np.ones((1000, 2), dtype=np.float32)
    base[2:10, 1] = 0.0
    found = describe(HeldRows(values), base)
    assert found.carried[0] == pytest.approx([10, 2], rel=0.01)


def test_rare_rows_of_very_different_base_weights_are_solved():
    """Seeded: fourteen groups of 12 rows in 3,000, and base weights of 0, 1 and 40 among them."""
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(3000, 20))
    for group in range(14):
        rows[:, group] = 0.0
        rows[12 * group : 12 * group + 12, group] = np.sqrt(250.0)
    rows -= rows.mean(axis=0)
    softness = np.full(20, 0.01)
    target = 0.05 * generator.normal(size=20)
    base = generator.poisson(1.0, size=(3000, 8)).astype(float)
    base[:168:7] *= 40
    targets = target[:, None] + 0.1 * generator.normal(size=(20, 8))
    found = calibrate_many(rows, base, targets, softness)
    for column in range(8):
        expected = solved_alone(rows, base[:, column], targets[:, column], softness)
        # The part of the weight that is in the wrong place, which is sqrt(KL / 2) at most (Pinsker)
        # for the divergence that a column may have left.
        left = MANY_TIMES * MOST_ENOUGH / 2
        assert 0.5 * np.abs(found[:, column] - expected).mean() < np.sqrt(left / 2)


def test_what_a_column_has_no_rows_of_is_not_asked_of_it():
    """The target of the second coordinate would be reached by the rows of a tail alone."""
    generator = np.random.default_rng(2)
    rows = generator.normal(size=(1000, 2))
    rows[:, 1] = np.where(np.arange(1000) < 50, np.sqrt(19.0), -1 / np.sqrt(19.0))
    base = np.ones((1000, 2))
    base[:49, 1] = 0.0
    targets = np.array([[0.0, 0.0], [0.3, 0.3]])
    found = calibrate_many(rows, base, targets, np.full(2, 1e-4))
    assert rows[:, 1] @ found[:, 0] / 1000 == pytest.approx(0.3, abs=0.01)
    # One row of that group is left: it would have to weigh as much as 120 others.
    assert found[49, 1] < 20


def test_rows_of_no_weight_and_huge_exponents_are_survived():
    rows = np.array([[200.0], [0.0], [1.0]], dtype=np.float32)
    base = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    found = calibrate_many(rows, base, np.zeros((1, 2)), np.ones(1))
    assert np.isfinite(found).all()
    assert found.mean(axis=0) == pytest.approx(np.ones(2), rel=1e-5)
    assert found[0, 0] == 0.0


def test_without_features_the_base_weights_are_it():
    base = np.array([[1.0], [3.0]])
    found = calibrate_many(np.empty((2, 0)), base, np.empty((0, 1)), np.empty(0))
    assert found.tolist() == [[0.5], [1.5]]


def hard_columns(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows with ten rare groups, bootstrapped, and targets that differ."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(6000, 30))
    for group in range(10):
        rows[:, group] = 0.0
        rows[20 * group : 20 * group + 20, group] = np.sqrt(300.0)
    rows -= rows.mean(axis=0)
    base = generator.poisson(1.0, size=(6000, 12)).astype(float)
    targets = base.T @ rows / base.sum(axis=0)[:, None] + 0.05 * generator.normal(size=(12, 30))
    return rows, base, targets.T, np.full(30, 0.01)


@pytest.mark.parametrize("part", [400, 1500])
def test_a_part_of_the_rows_leads_to_the_solution_of_all(monkeypatch, part):
    """Also a part that is too small to know the solution by itself."""
    rows, base, targets, softness = hard_columns(3)
    alone = calibrate_many(rows, base, targets, softness)
    monkeypatch.setattr(many_calibrations, "PART_ROWS", part)
    found = calibrate_many(rows, base, targets, softness)
    means = [weights.T @ rows / len(rows) for weights in (found, alone)]
    # Far below the noise that the targets differ by, which is 0.05 in each coordinate
    assert np.sqrt(((means[0] - means[1]) ** 2).sum(axis=1)).max() < 0.02
    sizes = [weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0) for weights in (found, alone)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.02)


def test_rows_that_are_made_again_are_as_good_as_rows_in_memory():
    rows, base, targets, softness = hard_columns(4)
    schema = Schema([Column.integer("place", 0, len(rows) - 1, bins=len(rows))])
    places = schema.encode(pd.DataFrame({"place": np.arange(len(rows))}))
    single = rows.astype(np.float32)
    turn = Turn(np.full(30, 0.1), np.linalg.qr(np.random.default_rng(0).normal(size=(30, 30)))[0])
    made = MadeRows(places, lambda some: single[some.codes[:, 0]], turn)
    turned = (rows - 0.1) @ turn.directions
    targets = turn.directions.T @ (targets - 0.1)
    assert made.held().values == pytest.approx(turned, abs=1e-4)
    found = calibrate_many(made, base, targets, softness)
    expected = calibrate_many(turned, base, targets, softness)
    assert np.abs(found - expected).mean() < 1e-3


def test_the_weights_go_where_they_are_told():
    rows, base, targets, softness = hard_columns(5)
    single = base.astype(np.float32)
    expected = calibrate_many(rows, base, targets, softness)
    place = np.empty_like(single)
    found = calibrate_many(rows, single, targets, softness, out=place)
    assert found is place
    assert found.tolist() == expected.tolist()


def test_the_means_of_all_rows_are_matched_far_below_their_noise():
    """Seeded; most steps are taken on less than half of the rows."""
    generator = np.random.default_rng(6)
    rows = generator.normal(size=(45_000, 12))
    rows[:, 0] = np.where(np.arange(45_000) < 300, np.sqrt(149.0), -1 / np.sqrt(149.0))
    assert len(rows) > 2 * many_calibrations.PART_ROWS
    base = generator.poisson(1.0, size=(45_000, 10)).astype(np.float32)
    targets = base.T @ rows / base.sum(axis=0)[:, None] + 0.05 * generator.normal(size=(10, 12))
    found = calibrate_many(rows, base, targets.T, np.full(12, 1e-6))
    missed = ((found.T @ rows / len(rows) - targets) ** 2).sum(axis=1)
    apart = targets.var(axis=0).sum()
    assert missed.mean() < 2e-3 * apart
    assert missed.max() < 0.02 * apart


def test_tilts_are_of_any_rows_and_a_block_of_them_has_the_weights_of_the_whole():
    """But for a constant a column, as the weights of every block average to one."""
    rows, base, targets, softness = hard_columns(7)
    found, thetas = calibrate_tilts(rows, base, targets, softness)
    assert found.tolist() == calibrate_many(rows, base, targets, softness).tolist()
    some = slice(1000, 5500)
    single = rows.astype(np.float32), base.astype(np.float32)
    again = tilt_many(HeldRows(single[0][some]), single[1][some], thetas)
    assert again.mean(axis=0) == pytest.approx(np.ones(12), rel=1e-4)
    expected = found[some] / found[some].mean(axis=0)
    assert again == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_rows_that_are_made_are_described_by_means_of_all_and_a_part(monkeypatch):
    generator = np.random.default_rng(3)
    schema = Schema([Column.continuous("x", 0, 1), Column.continuous("y", 0, 1)])
    table = schema.encode(pd.DataFrame(generator.uniform(size=(4000, 2)), columns=["x", "y"]))
    turn = Turn(np.full(2, 0.5), np.array([[3.0, 1.0], [0.0, 3.0]]))
    made = MadeRows(table, lambda rows: rows.units.copy(), turn)
    base = generator.poisson(1.0, size=(4000, 5)).astype(np.float32)
    others, given = generator.poisson(1.0, size=(4000, 5)).astype(np.float32), np.ones(4000)
    whole = describe(made, base, others, given)
    monkeypatch.setattr(many_calibrations, "DESCRIBED_ROWS", 1000)
    found = describe(made, base, others, given)
    assert found.means == pytest.approx(whole.means, abs=1e-5)
    assert found.shifts == pytest.approx(whole.shifts, abs=1e-5)
    assert found.variances == pytest.approx(whole.variances, rel=0.2)
    assert found.carried == pytest.approx(whole.carried, rel=0.2)
