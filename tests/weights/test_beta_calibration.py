"""Calibrated weights keep what they promise, on public rows for free and on private ones paid."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Column, Schema
from counterpoise.vault import REPLACE, Budget, Vault
from counterpoise.weights import Weights
from counterpoise.weights.beta_calibration import BetaCalibration, calibrate, calibrate_privately

SCHEMA = Schema([Column.continuous("x", minimum=-5, maximum=6, bins=8)])


def tables(rows, seed=0):
    """Real rows around one, synthetic rows around zero: the log ratio is x - 1/2."""
    generator = np.random.default_rng(seed)
    return generator.normal(1.0, 1.0, rows), generator.normal(0.0, 1.0, rows)


def twice_too_steep(rows):
    """Log-weights of a coded table, doubled."""
    return 2 * (11 * rows.units[:, 0] - 5 - 0.5)


def test_weights_that_are_right_are_left_alone():
    """Both powers are one within four standard errors, which are about 0.06 here."""
    real, synthetic = tables(20_000)
    found = calibrate(real - 0.5, synthetic - 0.5, caution=0.0)
    assert found.power_below == pytest.approx(1.0, abs=0.25)
    assert found.power_above == pytest.approx(1.0, abs=0.25)
    calibrated = found(Weights(synthetic - 0.5)).normalised
    assert np.average(synthetic, weights=calibrated) == pytest.approx(1.0, abs=0.06)


def test_weights_that_are_too_steep_are_put_right_whatever_their_constant():
    real, synthetic = tables(5000)
    for constant in (0.0, 3.0):
        found = calibrate(2 * real + constant, 2 * synthetic + constant)
        raw = Weights(2 * synthetic + constant)
        calibrated = found(raw)
        assert np.average(synthetic, weights=raw.normalised) > 1.5
        assert np.average(synthetic, weights=calibrated.normalised) == pytest.approx(1.0, abs=0.1)
        # Half the slope brings a fit of the log ratio: x - 1/2, up to noise.
        slope = np.polyfit(synthetic, calibrated.log_weights, 1)[0]
        assert slope == pytest.approx(1.0, abs=0.1)


def test_calibrated_weights_are_calibrated():
    """Of rows with a calibrated weight near w, from both tables alike, w/(1 + w) are real."""
    real, synthetic = tables(20_000)
    found = calibrate(2 * real, 2 * synthetic)
    new_real, new_synthetic = tables(20_000, seed=1)
    log_weights = found(np.append(2 * new_real, 2 * new_synthetic))
    is_real = np.arange(40_000) < 20_000
    for low, high in ((-3, -1), (-1, 0), (0, 1), (1, 3)):
        inside = (log_weights > low) & (log_weights <= high)
        promised = expit(log_weights[inside]).mean()
        assert is_real[inside].mean() == pytest.approx(promised, abs=0.03)


def test_the_fit_is_the_constrained_minimum():
    """No small step within the constraints lowers the published loss."""
    real, synthetic = tables(500)
    # Useless weights, in the wrong order: the powers stop at zero.
    for given_real, given_synthetic in ((2 * real, 2 * synthetic), (-real, -synthetic)):
        found = calibrate(given_real, given_synthetic, caution=0.0)
        point = np.array([found.power_below, found.power_above, found.shift])
        assert (point[:2] >= 0).all()

        def loss(point, found=found, given=(given_real, given_synthetic)):
            calibration = BetaCalibration(*point, origin=found.origin)
            of_real, of_synthetic = calibration(given[0]), calibration(given[1])
            return np.logaddexp(0, -of_real).mean() + np.logaddexp(0, of_synthetic).mean()

        for direction in np.vstack([np.eye(3), -np.eye(3)]):
            step = point + 0.01 * direction
            if (step[:2] >= 0).all():
                assert loss(step) > loss(point)


def test_weights_in_the_wrong_order_become_equal():
    real, synthetic = tables(2000)
    assert np.ptp(calibrate(-real, -synthetic)(-synthetic)) < 0.05


def test_caution_holds_the_correction_back():
    real, synthetic = tables(200)
    powers = [
        calibrate(2 * real, 2 * synthetic, caution=caution).power_above
        for caution in (0.0, 50.0, 1e7)
    ]
    assert powers == sorted(powers)
    assert powers[-1] == pytest.approx(1.0, abs=1e-3)


def test_tables_that_never_meet_are_calibrated_to_something_finite():
    found = calibrate(np.linspace(5, 9, 50), np.linspace(-9, -5, 50))
    assert np.isfinite(found(np.linspace(-9, 9, 100))).all()


def test_rows_are_not_reordered_and_rows_without_weight_stay_without():
    found = BetaCalibration(power_below=0.3, power_above=0.0, shift=2.0)
    calibrated = found(np.array([-np.inf, -3.0, 0.0, 500.0]))
    assert np.isneginf(calibrated[0])
    assert (np.diff(calibrated[1:]) >= 0).all()
    columns = found(np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert columns[:, 1] == pytest.approx(found(np.array([1.0, 3.0])))


def test_what_cannot_be_calibrated_on_is_refused():
    with pytest.raises(MethodError, match="held_out: expected a weight above zero"):
        calibrate(np.array([0.0, -np.inf]), np.zeros(3))
    with pytest.raises(MethodError, match="held_out: expected one log-weight"):
        calibrate(np.empty(0), np.zeros(3))
    with pytest.raises(MethodError, match="synthetic: expected one log-weight"):
        calibrate(np.zeros(3), np.zeros((3, 2)))
    with pytest.raises(MethodError, match="caution: expected"):
        calibrate(np.zeros(3), np.zeros(3), caution=-1.0)


def opened(budget, rows=20_000, seed=5):
    real, synthetic = tables(rows)
    vault = Vault(pd.DataFrame({"x": real}), SCHEMA, budget, seed=seed)
    return vault, SCHEMA.encode(pd.DataFrame({"x": synthetic})), synthetic


@pytest.mark.parametrize(
    "budget",
    [Budget(2.0, 1e-6), Budget(2.0), Budget(2.0, 1e-6, REPLACE)],
    ids=["add-remove", "pure", "replace"],
)
def test_private_rows_calibrate_within_the_budget(budget):
    vault, coded, synthetic = opened(budget)
    with vault:
        found = calibrate_privately(vault, twice_too_steep, coded, budget.whole)
    assert 1.9 <= vault.ledger.epsilon_spent <= 2.0
    assert len(vault.ledger.spends) == (1 if budget.neighbours is REPLACE else 2)
    raw = Weights(twice_too_steep(coded))
    assert np.average(synthetic, weights=raw.normalised) > 1.5
    calibrated = found(raw).normalised
    assert abs(np.average(synthetic, weights=calibrated) - 1.0) < 0.5
    # Four deviations of the noise, and a little for the pull towards one.
    assert found.power_below == pytest.approx(0.5, abs=4 * found.deviation + 0.1)
    assert found.power_above == pytest.approx(0.5, abs=4 * found.deviation + 0.1)
    assert 0 < found.deviation <= 0.101


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(1.0)], ids=["gaussian", "pure"])
def test_the_stated_deviation_is_that_of_the_noise(budget):
    """60 fits, so 120 powers: their spread is known within 6.5%; the bounds are four of those."""
    powers = []
    for seed in range(60):
        vault, coded, _ = opened(budget, rows=1000, seed=seed)
        with vault:
            found = calibrate_privately(vault, twice_too_steep, coded, budget.whole)
        powers.append([found.power_below, found.power_above])
    assert np.std(powers, axis=0).mean() == pytest.approx(found.deviation, rel=0.26)
    assert found.deviation <= 0.101


def test_calibrated_weights_average_to_one_however_many_synthetic_rows_there_are():
    """Without the prior odds they would average to four."""
    budget = Budget(4.0, 1e-6, REPLACE)
    vault, coded, _ = opened(budget)
    few = coded.take(np.arange(5000))
    with vault:
        found = calibrate_privately(vault, twice_too_steep, few, budget.whole)
    assert np.exp(found(twice_too_steep(few))).mean() == pytest.approx(1.0, abs=0.4)


def test_with_little_budget_the_weights_are_hardly_touched_and_with_less_it_is_refused():
    """Both powers stay within five deviations of one, and the pull is nearly all there is."""
    budget = Budget(0.1, 1e-6)
    vault, coded, _ = opened(budget, rows=1000)
    with vault:
        found = calibrate_privately(vault, twice_too_steep, coded, budget.whole, deviation=0.05)
    assert found.power_below == pytest.approx(1.0, abs=0.35)
    assert found.power_above == pytest.approx(1.0, abs=0.35)
    vault, coded, _ = opened(budget, rows=50)
    with vault, pytest.raises(BudgetError, match="share: too small to learn a calibration"):
        calibrate_privately(vault, twice_too_steep, coded, budget.whole, deviation=0.01)


def test_one_record_counts_no_more_than_the_cut_allows():
    """A log-weight beyond the cut, or none at all, gives a feature vector within the bound."""
    from counterpoise.weights.beta_calibration import _CalibrationFeatures

    values = np.array([-np.inf, -1e300, -4.0, -1.0, 0.0, 2.0, 4.0, 1e300, np.inf])
    features = _CalibrationFeatures(lambda rows: values, origin=0.3, most=4.0)
    norms = np.linalg.norm(features(None), axis=1)
    assert norms.max() == pytest.approx(features.bound)


@pytest.mark.parametrize("option", ["most", "deviation"])
def test_options_that_are_not_positive_are_refused_before_anything_is_spent(option):
    vault, coded, _ = opened(Budget(1.0, 1e-6), rows=50)
    with vault, pytest.raises(MethodError, match=f"{option}: expected a positive number"):
        calibrate_privately(vault, twice_too_steep, coded, vault.budget.whole, **{option: 0.0})
    assert vault.ledger.epsilon_spent == 0


def test_tables_in_the_place_of_their_weights_are_refused():
    table = pd.DataFrame({"x": [1.0, 2.0], "sex": ["F", "M"]})
    with pytest.raises(MethodError, match=r"held_out: expected the weights .*, not the table"):
        calibrate(table, table)
    with pytest.raises(MethodError, match=r"synthetic: expected the weights .*, not the table"):
        calibrate(np.zeros(2), table[["x"]])
    with pytest.raises(
        MethodError, match="expected Weights, or an array of log-weights, not a list"
    ):
        calibrate(["F", "M"], np.zeros(2))
