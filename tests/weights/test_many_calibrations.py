"""Many calibrations at once are as good as one by one, also where each needs its own Hessian."""

import numpy as np
import pytest

from counterpoise.weights.calibration import calibrate
from counterpoise.weights.many_calibrations import LEAST_SEEN, calibrate_many


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
    theta = calibrate(rows, target, softness)
    targets = target[:, None] + 0.1 * generator.normal(size=(3, 6))
    base = generator.poisson(1.0, size=(400, 6)).astype(float)
    found = calibrate_many(rows, base, targets, softness, theta)
    assert found.mean(axis=0) == pytest.approx(np.ones(6))
    for column in range(6):
        expected = solved_alone(rows, base[:, column], targets[:, column], softness)
        assert found[:, column] == pytest.approx(expected, rel=0.01, abs=1e-3)


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
    theta = calibrate(rows, target, softness)
    base = generator.poisson(1.0, size=(3000, 8)).astype(float)
    base[:168:7] *= 40
    targets = target[:, None] + 0.1 * generator.normal(size=(20, 8))
    found = calibrate_many(rows, base, targets, softness, theta)
    for column in range(8):
        expected = solved_alone(rows, base[:, column], targets[:, column], softness)
        # The part of the weight that is in the wrong place.
        assert 0.5 * np.abs(found[:, column] - expected).mean() < 1e-3


def test_what_a_column_has_no_rows_of_is_not_asked_of_it():
    """The target of the second coordinate would be reached by the rows of a tail alone."""
    generator = np.random.default_rng(2)
    rows = generator.normal(size=(1000, 2))
    rows[:, 1] = np.where(np.arange(1000) < 50, np.sqrt(19.0), -1 / np.sqrt(19.0))
    base = np.ones((1000, 2))
    base[:49, 1] = 0.0
    targets = np.array([[0.0, 0.0], [0.3, 0.3]])
    found = calibrate_many(rows, base, targets, np.full(2, 1e-4), np.zeros(2))
    assert rows[:, 1] @ found[:, 0] / 1000 == pytest.approx(0.3, abs=0.01)
    # One row of that group is left: it would have to weigh as much as 120 others.
    assert found[49, 1] < 20


def test_rows_of_no_weight_and_huge_exponents_are_survived():
    rows = np.array([[200.0], [0.0], [1.0]], dtype=np.float32)
    base = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    found = calibrate_many(rows, base, np.zeros((1, 2)), np.ones(1), np.ones(1))
    assert np.isfinite(found).all()
    assert found.mean(axis=0) == pytest.approx(np.ones(2), rel=1e-5)
    assert found[0, 0] == 0.0


def test_without_features_the_base_weights_are_it():
    base = np.array([[1.0], [3.0]])
    found = calibrate_many(np.empty((2, 0)), base, np.empty((0, 1)), np.empty(0), np.empty(0))
    assert found.tolist() == [[0.5], [1.5]]
