"""Refined weights: what each remedy does, and that it does no more."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from counterpoise.errors import MethodError
from counterpoise.weights import Weights
from counterpoise.weights.refine import smooth, tail_shape, temper, truncate
from counterpoise.weights.tail import GeneralisedPareto, find_tail, fit_tail


def pareto(shape, rows, seed=0):
    """Log-weights with P(w > x) = x^(-1/shape)."""
    return shape * np.random.default_rng(seed).exponential(size=rows)


REMEDIES = [
    lambda weights: temper(weights, 0.4),
    lambda weights: truncate(weights, 1.5),
    lambda weights: truncate(weights),
    lambda weights: smooth(weights).weights,
]


@pytest.mark.parametrize("remedy", REMEDIES)
def test_rows_are_not_reordered_and_equal_rows_stay_equal(remedy):
    raw = np.round(pareto(1.2, 2000), 1)
    refined = remedy(raw)
    order = np.argsort(raw, kind="stable")
    assert (np.diff(refined[order]) >= -1e-12).all()
    for value in np.unique(raw):
        assert np.ptp(refined[raw == value]) < 1e-12


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_constant_changes_nothing_and_the_sample_size_grows(remedy):
    weights = Weights(pareto(0.9, 2000))
    refined = remedy(weights)
    assert remedy(Weights(weights.log_weights + 700.0)).normalised == pytest.approx(
        refined.normalised
    )
    assert refined.effective_sample_size > weights.effective_sample_size


@pytest.mark.parametrize("remedy", REMEDIES)
def test_replicates_are_refined_column_by_column(remedy):
    columns = np.column_stack([pareto(0.9, 500, seed) for seed in range(3)])
    together = remedy(columns)
    for column in range(3):
        assert together[:, column] == pytest.approx(remedy(columns[:, column]))


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_row_without_weight_stays_without(remedy):
    raw = np.append(pareto(0.9, 200), [-np.inf, -np.inf])
    refined = remedy(raw)
    assert np.isneginf(refined[-2:]).all()
    assert np.isfinite(refined[:-2]).all()


@pytest.mark.parametrize("remedy", REMEDIES)
def test_no_rows_give_no_weights(remedy):
    assert len(remedy(Weights(np.empty(0)))) == 0


@pytest.mark.parametrize("remedy", REMEDIES)
@pytest.mark.parametrize(
    "broken", [[0.0, np.nan], [0.0, np.inf], [-np.inf, -np.inf]], ids=["nan", "infinite", "none"]
)
def test_weights_that_are_no_weights_are_refused(remedy, broken):
    with pytest.raises(MethodError, match="weights: expected"):
        remedy(Weights(np.array(broken)))


def test_tempering_goes_from_equal_weights_to_the_given_ones():
    raw = Weights(np.log([1.0, 3.0, 8.0]))
    assert temper(raw, 0.0).normalised == pytest.approx(np.ones(3))
    assert temper(raw, 1.0).normalised == pytest.approx(raw.normalised)
    squared = temper(raw, 0.5).normalised ** 2
    assert squared / squared[0] == pytest.approx([1.0, 3.0, 8.0])


@pytest.mark.parametrize("power", [-0.1, 1.1, np.nan])
def test_a_power_outside_zero_and_one_is_refused(power):
    with pytest.raises(MethodError, match="power: expected"):
        temper(Weights(np.zeros(3)), power)


def test_truncation_cuts_at_a_multiple_of_the_mean():
    raw = np.log([1.0, 2.0, 3.0, 10.0])
    assert np.exp(truncate(raw, most=0.75)) == pytest.approx([1.0, 2.0, 3.0, 3.0])
    # Ionides: sqrt(4) times the mean of 4 is 8.
    assert np.exp(truncate(raw)) == pytest.approx([1.0, 2.0, 3.0, 8.0])


@pytest.mark.parametrize("most", [0.0, -1.0, np.inf])
def test_a_multiple_that_is_not_positive_is_refused(most):
    with pytest.raises(MethodError, match="most: expected"):
        truncate(Weights(np.zeros(3)), most)


# Sizes whose tail is a whole number of rows: there is no doubt about rounding it.
@pytest.mark.parametrize("rows", [25, 100, 400, 10_000])
@pytest.mark.parametrize("kind", ["pareto", "lognormal", "bounded"])
def test_smoothing_agrees_with_arviz(rows, kind):
    generator = np.random.default_rng(rows)
    raw = {
        "pareto": 0.8 * generator.exponential(size=rows),
        "lognormal": 2 * generator.normal(size=rows),
        "bounded": -generator.exponential(size=rows),
    }[kind]
    # It negates what it is given.
    expected, shape = array_stats.psislw(-raw)
    smoothed = smooth(Weights(raw))
    assert smoothed.tail_shape == pytest.approx(float(shape))
    assert np.log(smoothed.weights.normalised / rows) == pytest.approx(expected)


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.7, 1.0])
def test_the_shape_of_a_pareto_tail_is_found(shape):
    """Five standard errors, (1 + k)/sqrt(M): about two false alarms in a million."""
    found = [tail_shape(Weights(pareto(shape, 10_000, seed))) for seed in range(20)]
    assert np.mean(found) == pytest.approx(shape, abs=5 * (1 + shape) / np.sqrt(300 * 20) + 0.02)


def test_a_uniform_tail_has_shape_minus_one():
    """Uniform exceedances follow the generalised Pareto law of shape -1."""
    values = np.sort(np.random.default_rng(0).random(2000))
    assert fit_tail(values).shape == pytest.approx(-1.0, abs=0.1)


def test_quantiles_invert_the_law():
    probabilities = np.array([0.1, 0.5, 0.99])
    for shape in (-0.5, 0.0, 1e-9, 0.8):
        law = GeneralisedPareto(shape, 2.0)
        values = law.quantiles(probabilities)
        if shape:
            below = 1 - (1 + shape * values / 2.0) ** (-1 / shape)
        else:
            below = 1 - np.exp(-values / 2.0)
        assert below == pytest.approx(probabilities, rel=1e-6)


def test_smoothing_leaves_the_body_and_the_largest_weight_as_bounds():
    raw = pareto(1.0, 5000)
    smoothed = smooth(raw).weights
    body = np.argsort(raw)[: 5000 - 213]  # the tail has ceil(3 sqrt(5000)) = 213 rows
    assert (smoothed[body] == raw[body]).all()
    assert smoothed.max() <= raw.max() + 1e-12
    assert (smoothed != raw).sum() >= 200


def test_smoothing_brings_estimates_of_a_heavy_tail_closer():
    """The mean of Pareto weights of shape 0.7 is 1/0.3; smoothing reduces the squared error."""
    errors = []
    for seed in range(200):
        raw = pareto(0.7, 1000, seed)
        errors.append((np.exp(raw).mean() - 1 / 0.3, np.exp(smooth(raw).weights).mean() - 1 / 0.3))
    raw_error, smoothed_error = np.sqrt(np.mean(np.square(errors), axis=0))
    assert smoothed_error < 0.7 * raw_error


def test_equal_weights_have_no_tail_and_stay_equal():
    smoothed = smooth(Weights(np.full(100, 3.0)))
    assert smoothed.tail_shape == -np.inf
    assert smoothed.weights.normalised == pytest.approx(np.ones(100))


def test_too_few_rows_have_no_shape_and_stay_as_they_are():
    raw = pareto(1.0, 20)
    smoothed = smooth(raw)
    assert np.isnan(smoothed.tail_shape)
    assert (smoothed.weights == raw).all()


def test_equal_weights_lie_on_one_side_of_the_threshold():
    """Two weights, the larger in every third row: a tail of whole groups, and a bounded one."""
    raw = np.log(np.where(np.arange(300) % 3 == 0, 2.0, 1.0))
    tail = find_tail(raw)
    assert len(tail) == 100
    assert tail.threshold == pytest.approx(0.5)
    assert tail_shape(Weights(raw)) < 0


def test_rows_without_weight_do_not_change_the_tail():
    raw = pareto(0.8, 1000)
    padded = np.append(raw, np.full(5000, -np.inf))
    assert tail_shape(Weights(padded)) == tail_shape(Weights(raw))
