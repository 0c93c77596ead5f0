"""Calibration: the stated optimum, by one way or another, for one target or many."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from counterpoise.schema import Column, Schema
from counterpoise.weights import calibration, row_blocks
from counterpoise.weights.calibration import (
    calibrate,
    effective_fraction,
    tilted_mean,
    weighted_moments,
)
from counterpoise.weights.row_blocks import MadeRows, Turn

TINY = np.full(3, 1e-10)


def made(rows: int = 300, size: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, size))


def weights_of(rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
    exponents = rows @ theta
    return np.exp(exponents - logsumexp(exponents))


def test_the_weighted_means_are_the_target():
    rows, target = made(), np.array([0.5, -0.3, 0.1])
    theta = calibrate(rows, target, TINY)
    assert weights_of(rows, theta) @ rows == pytest.approx(target, abs=1e-6)
    assert tilted_mean(rows, theta) == pytest.approx(target, abs=1e-6)


def test_a_mean_that_is_there_already_moves_nothing():
    rows = made()
    assert calibrate(rows, rows.mean(axis=0), TINY) == pytest.approx(np.zeros(3), abs=1e-9)


def test_the_weights_are_the_stated_optimum():
    """KL(w, uniform) + 1/2 sum (mean_w z - target)^2 / softness, minimised over weights."""
    rows, target = made(25, 2), np.array([0.8, -0.5])
    softness = np.array([0.3, 0.02])

    def primal(logits):
        log_weights = logits - logsumexp(logits)
        weights = np.exp(log_weights)
        missed = weights @ rows - target
        return weights @ (log_weights + np.log(25)) + 0.5 * (missed**2 / softness).sum()

    other = minimize(primal, np.zeros(25), options={"gtol": 1e-7, "maxiter": 2000}).x
    expected = np.exp(other - logsumexp(other))
    found = weights_of(rows, calibrate(rows, target, softness))
    assert found == pytest.approx(expected, abs=1e-5)
    # The optimum misses the target by softness times theta.
    theta = calibrate(rows, target, softness)
    assert found @ rows - target == pytest.approx(-softness * theta, abs=1e-6)


def test_a_target_out_of_reach_is_approached():
    rows = np.abs(made())
    theta = calibrate(rows, np.full(3, -5.0), np.full(3, 0.01))
    assert np.isfinite(theta).all()
    means = weights_of(rows, theta) @ rows
    assert (means < rows.mean(axis=0)).all()
    gradient = means + 5.0 + 0.01 * theta
    assert gradient == pytest.approx(np.zeros(3), abs=1e-4)


def test_features_that_say_the_same_need_no_softness():
    column = made(size=1)
    rows = np.hstack([column, column, np.zeros_like(column)])
    theta = calibrate(rows, np.array([0.4, 0.4, 0.0]), np.zeros(3))
    assert weights_of(rows, theta) @ rows == pytest.approx([0.4, 0.4, 0.0], abs=1e-6)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_rows_of_any_scale_are_solved(scale):
    rows, target = scale * made(), scale * np.array([0.5, -0.3, 0.1])
    theta = calibrate(rows, target, np.full(3, 1e-10) * scale**2)
    assert weights_of(rows, theta) @ rows == pytest.approx(target, abs=1e-5 * scale)


def test_no_rows_and_no_features_have_a_solution():
    assert calibrate(np.empty((0, 2)), np.zeros(2), np.ones(2)).tolist() == [0.0, 0.0]
    assert calibrate(np.empty((5, 0)), np.zeros(0), np.zeros(0)).shape == (0,)
    assert effective_fraction(np.empty((0, 2)), np.zeros(2)) == 1.0
    assert tilted_mean(np.empty((0, 2)), np.zeros(2)).tolist() == [0.0, 0.0]


def test_one_row_keeps_its_weight():
    assert np.isfinite(calibrate(np.ones((1, 2)), np.array([3.0, -3.0]), np.full(2, 0.1))).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_start_at_a_part_of_the_rows_gives_the_same(monkeypatch, dtype):
    rows, target = made(4000).astype(dtype), np.array([0.5, -0.3, 0.1])
    softness = np.full(3, 1e-3)
    whole = calibrate(rows, target, softness)
    monkeypatch.setattr(calibration, "PART_ROWS", 100)
    tolerance = 1e-6 if dtype == np.float64 else 1e-3
    assert calibrate(rows, target, softness) == pytest.approx(whole, abs=tolerance)


def test_a_part_that_misleads_gives_the_same_too(monkeypatch):
    """Every row of the part has one value of a feature, so its Hessian knows nothing of it."""
    rows = made(4000)
    rows[::40, 0] = 0.0
    target, softness = np.array([0.9, -0.3, 0.1]), np.full(3, 1e-3)
    whole = calibrate(rows, target, softness)
    monkeypatch.setattr(calibration, "PART_ROWS", 100)
    assert calibrate(rows, target, softness) == pytest.approx(whole, abs=1e-5)


def test_moments_are_those_of_the_tilted_rows(monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_ROWS", 64)
    rows, theta = made(), np.array([0.3, -0.2, 0.5])
    weights = weights_of(rows, theta)
    mean, covariance = weighted_moments(rows, theta)
    assert mean == pytest.approx(weights @ rows)
    assert covariance == pytest.approx(np.cov(rows.T, aweights=weights, ddof=0))


def test_the_effective_fraction_is_kishs():
    rows, theta = made(size=1), np.array([0.7])
    weights = weights_of(rows, theta)
    expected = weights.sum() ** 2 / (weights**2).sum() / len(rows)
    assert effective_fraction(rows, theta) == pytest.approx(expected)
    assert effective_fraction(rows, np.array([1e5])) == pytest.approx(1 / 300)


def test_a_start_that_a_part_made_too_far_is_not_followed(monkeypatch):
    """A rare feature that the part has one value of, matched nearly exactly: theta runs away."""
    rows = made(4000)
    rows[:, 0] = 0.1
    rows[7::400, 0] = 9.0
    target, softness = np.array([0.2, -0.3, 0.1]), np.full(3, 1e-6)
    monkeypatch.setattr(calibration, "PART_ROWS", 100)
    start = calibrate(rows[::40], target, softness)
    assert abs(start[0]) > 1e3
    weights = weights_of(rows, calibrate(rows, target, softness, start))
    assert weights @ rows == pytest.approx(target, abs=1e-3)


def test_rows_that_are_made_at_every_pass_have_the_same_solution(monkeypatch):
    """Raw rows are not centred, and are turned; the solution is that of the turned ones."""
    monkeypatch.setattr(calibration, "MORE_ROWS", 200)
    generator = np.random.default_rng(0)
    raw = made(5000) @ generator.normal(size=(3, 3)) + [1.0, -2.0, 0.5]
    turn = Turn(raw.mean(axis=0), np.linalg.inv(np.linalg.cholesky(np.cov(raw.T))).T)
    schema = Schema([Column.integer("place", 0, 4999, bins=5000)])
    coded = schema.encode(pd.DataFrame({"place": np.arange(5000)}))
    rows = MadeRows(coded, lambda some: raw[some.codes[:, 0]], turn)
    white, target = (raw - turn.centre) @ turn.directions, np.array([0.3, 0.1, -0.2])
    theta = calibrate(rows, target, TINY)
    # A decrement of 1e-7 leaves about its root.
    assert theta == pytest.approx(calibrate(white, target, TINY), abs=5e-4)
    assert tilted_mean(white, theta) == pytest.approx(target, abs=5e-4)
    assert effective_fraction(rows, theta) == pytest.approx(effective_fraction(white, theta))
    for found, expected in zip(
        weighted_moments(rows, theta), weighted_moments(white, theta), strict=True
    ):
        assert found == pytest.approx(expected, abs=1e-4)
