"""The numbers of a diagnosis, the test of a finite variance, and the verdicts they lead to."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, genpareto

from counterpoise.errors import MethodError
from counterpoise.weights import Weights
from counterpoise.weights.diagnostics import Diagnosis, diagnose, fitted_sample_size
from counterpoise.weights.finite_variance import exceedance_test, finite_variance_test
from counterpoise.weights.refine import temper, truncate
from counterpoise.weights.tail import GeneralisedPareto, find_tail, fit_tail


def lognormal(spread, rows, seed=0):
    return Weights(spread * np.random.default_rng(seed).normal(size=rows))


def test_the_effective_sample_size_of_known_weights():
    assert diagnose(Weights(np.zeros(50))).effective_sample_size == pytest.approx(50)
    half = Weights(np.where(np.arange(50) < 25, 0.0, -np.inf))
    assert diagnose(half).effective_sample_size == pytest.approx(25)
    # E[w]^2/E[w^2] = exp(-spread^2) of lognormal weights.
    fraction = diagnose(lognormal(0.5, 200_000)).effective_fraction
    assert fraction == pytest.approx(np.exp(-0.25), rel=0.01)


def exceedances(shape, size, seed):
    generator = np.random.default_rng(seed)
    return genpareto.rvs(shape, scale=3.0, size=size, random_state=generator)


P_VALUES = ["score_p_value", "likelihood_ratio_p_value", "wald_p_value"]


@pytest.fixture(scope="module")
def tests_at_the_limit():
    return [exceedance_test(exceedances(0.5, 300, seed)) for seed in range(400)]


@pytest.mark.parametrize("p_value", P_VALUES)
def test_a_variance_on_the_limit_is_called_infinite_as_rarely_as_stated(
    tests_at_the_limit, p_value
):
    """At the 5% level, within what a binomial gives with 99.9% (of a rate up to 7%)."""
    alarms = sum(getattr(test, p_value) < 0.05 for test in tests_at_the_limit)
    assert binom.ppf(0.0005, 400, 0.035) <= alarms <= binom.ppf(0.9995, 400, 0.07)


@pytest.mark.parametrize("p_value", P_VALUES)
def test_an_infinite_variance_is_found_and_a_finite_one_let_pass(p_value):
    heavy = [exceedance_test(exceedances(0.9, 300, seed)) for seed in range(60)]
    light = [exceedance_test(exceedances(0.2, 300, seed)) for seed in range(60)]
    assert sum(getattr(test, p_value) < 0.05 for test in heavy) >= 54
    assert sum(getattr(test, p_value) < 0.05 for test in light) == 0


@pytest.mark.parametrize("shape", [-0.2, 0.3, 0.9])
def test_the_likelihood_is_at_its_largest(shape):
    """The fit is that of scipy's generalised Pareto law, which maximises numerically."""
    values = exceedances(shape, 500, seed=1)
    expected, _, scale = genpareto.fit(values, floc=0)
    test = exceedance_test(values)
    assert test.shape == pytest.approx(expected, abs=2e-3)
    best = genpareto.logpdf(values, expected, scale=scale).sum()
    restricted = max(
        genpareto.logpdf(values, 0.5, scale=candidate).sum()
        for candidate in np.linspace(1, 6, 2001)
    )
    root = math.copysign(math.sqrt(2 * (best - restricted)), expected - 0.5)
    assert test.likelihood_ratio == pytest.approx(root, abs=0.01)


def test_the_score_is_the_slope_of_the_likelihood_at_one_half():
    values = exceedances(0.7, 200, seed=2)

    def best_of(shape):
        scales = np.linspace(2.0, 5.0, 6001)
        return max(genpareto.logpdf(values, shape, scale=scale).sum() for scale in scales[::20])

    slope = (best_of(0.51) - best_of(0.49)) / 0.02
    # The information about the shape is 4/9 an exceedance.
    expected = slope / math.sqrt(200 * 4 / 9)
    assert exceedance_test(values).score == pytest.approx(expected, abs=0.1)


def test_the_unit_of_the_exceedances_does_not_matter():
    values = exceedances(0.7, 200, seed=2)
    one, other = exceedance_test(values), exceedance_test(values * 1e-12)
    assert other.score == pytest.approx(one.score)
    assert other.likelihood_ratio == pytest.approx(one.likelihood_ratio, abs=1e-4)
    assert other.shape == pytest.approx(one.shape, abs=1e-4)


def test_equal_weights_and_few_rows_are_not_tested():
    assert finite_variance_test(Weights(np.zeros(1000))) is None
    assert finite_variance_test(lognormal(1.0, 15)) is None


def test_exceedances_that_are_all_equal_have_a_short_tail():
    test = exceedance_test(np.full(50, 2.0))
    assert test.shape < 0
    assert test.score_p_value > 0.99


def test_the_sample_size_of_a_fit_is_kishs_when_losses_and_weights_are_unrelated():
    weights = lognormal(0.7, 200_000)
    gradients = np.random.default_rng(1).normal(size=(200_000, 3))
    found = fitted_sample_size(weights, gradients, np.diag([1.0, 2.0, 3.0]))
    assert found.overall == pytest.approx(weights.effective_sample_size, rel=0.05)
    assert found.by_parameter == pytest.approx(weights.effective_sample_size, rel=0.05)


def test_the_sample_size_of_equal_weights_is_the_number_of_rows():
    gradients = np.random.default_rng(1).normal(size=(100, 2))
    found = fitted_sample_size(Weights(np.full(100, 7.0)), gradients)
    assert found.overall == pytest.approx(100)
    assert found.by_parameter == pytest.approx([100, 100])


def test_the_sample_size_of_a_fit_predicts_its_variance():
    """A weighted mean of N rows varies as the mean of that many rows from the target.

    x ~ N(0, 1) weighed to N(0.5, 1). 4000 repetitions: the variance is known within 2.3%
    (one standard deviation), the bound is four of them and a little for N being finite.
    """
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(4000, 400))
    ratios = np.exp(0.5 * rows - 0.125)
    means = (ratios * rows).sum(axis=1) / ratios.sum(axis=1)
    sizes = []
    for values, ratio, mean in zip(rows[:200], ratios[:200], means[:200], strict=True):
        gradients = (mean - values)[:, None]
        sizes.append(fitted_sample_size(Weights(np.log(ratio)), gradients, np.eye(1)).overall)
    # A mean of n rows from the target N(0.5, 1) has variance 1/n.
    assert 1 / np.var(means) == pytest.approx(np.mean(sizes), rel=0.12)


def test_gradients_and_curvature_have_to_fit():
    weights = Weights(np.zeros(4))
    with pytest.raises(MethodError, match="gradients: expected"):
        fitted_sample_size(weights, np.zeros((3, 2)))
    with pytest.raises(MethodError, match="curvature: expected one row"):
        fitted_sample_size(weights, np.ones((4, 2)), np.eye(3))
    with pytest.raises(MethodError, match="curvature: expected a matrix that can be inverted"):
        fitted_sample_size(weights, np.ones((4, 2)), np.zeros((2, 2)))


# A diagnosis without a fault, of which each case changes what it is about.
GOOD = Diagnosis(
    rows=10_000,
    effective_sample_size=8_000.0,
    largest_share=0.001,
    tail_shape=0.2,
    tail_share=0.08,
    finite_variance=exceedance_test(exceedances(0.2, 300, 0)),
)


@pytest.mark.parametrize(
    ("changes", "level", "reason"),
    [
        ({}, "fine", "rest on enough rows"),
        ({"effective_sample_size": 2_000.0}, "fine", "rest on enough rows"),
        ({"effective_sample_size": 900.0}, "caution", "10,000 rows tell no more than 900"),
        ({"effective_sample_size": 25.0}, "do not use", "10,000 rows tell no more than 25"),
        (
            {"rows": 300, "effective_sample_size": 140.0},
            "caution",
            "300 rows tell no more than 140",
        ),
        (
            {"rows": 30, "effective_sample_size": 25.0, "tail_share": 0.0},
            "fine",
            "rest on enough rows",
        ),
        ({"largest_share": 0.007}, "caution", "a single row carries 0.7%"),
        ({"largest_share": 0.12}, "do not use", "a single row carries 12.0%"),
        ({"tail_shape": 0.6}, "caution", "k-hat 0.60"),
        ({"tail_shape": 0.75}, "do not use", "k-hat 0.75"),
        ({"tail_shape": 0.75, "tail_share": 0.04}, "fine", "rest on enough rows"),
        # Of so few rows nobody knows the shape to within 0.3.
        (
            {"rows": 110, "effective_sample_size": 90.0, "tail_share": 0.2, "tail_shape": 0.75},
            "caution",
            "k-hat 0.75",
        ),
        (
            {"rows": 110, "effective_sample_size": 90.0, "tail_share": 0.2, "tail_shape": 0.95},
            "do not use",
            "k-hat 0.95",
        ),
        (
            {"finite_variance": exceedance_test(exceedances(0.9, 300, 0))},
            "caution",
            "infinite variance",
        ),
        ({"tail_shape": math.nan, "effective_sample_size": 9_500.0}, "fine", "rest on enough rows"),
        ({"tail_shape": math.nan}, "caution", "too few weights differ"),
        ({"tail_shape": -math.inf}, "fine", "all weights are equal"),
        ({"reached": 0.7}, "fine", "rest on enough rows"),
        ({"reached": 0.4}, "caution", "make up for only 40% of the difference"),
    ],
)
def test_the_verdict_follows_its_rules(changes, level, reason):
    verdict = replace(GOOD, **changes).verdict
    assert verdict.level == level
    assert reason in verdict.reason
    assert bool(verdict.way_out) == (level != "fine")


@pytest.mark.parametrize(
    ("weights", "level"),
    [
        (Weights(np.zeros(10_000)), "fine"),
        (Weights(np.zeros(3)), "fine"),
        (Weights(np.zeros(1)), "fine"),
        (Weights(np.empty(0)), "fine"),
        (lognormal(0.5, 10_000), "fine"),
        (lognormal(0.1, 30), "fine"),
        (lognormal(1.8, 20_000), "caution"),
        (lognormal(5.0, 10_000), "do not use"),
        (Weights(np.append(np.zeros(999), np.log(500.0))), "do not use"),
        (Weights(1.2 * np.random.default_rng(0).exponential(size=10_000)), "do not use"),
        (Weights(np.log(np.where(np.arange(1000) % 2, 1.0, 2.0))), "fine"),
    ],
    ids=[
        "equal", "three equal", "one row", "no rows", "mild", "mild and few", "strong",
        "hopeless", "one heavy row", "infinite mean", "two groups",
    ],
)  # fmt: skip
def test_the_verdict_on_weights(weights, level):
    assert diagnose(weights).verdict.level == level


def test_a_heavy_tail_of_next_to_no_weight_is_let_pass():
    tail = np.random.default_rng(0).pareto(1.2, size=10_000)
    found = diagnose(Weights(np.log1p(1e-4 * tail)))
    assert found.tail_shape > 0.7
    assert found.verdict.level == "fine"


def test_the_way_out_leads_out():
    hopeless = Weights(1.2 * np.random.default_rng(0).exponential(size=10_000))
    assert diagnose(truncate(hopeless, most=5.0)).verdict.level == "fine"
    assert diagnose(temper(hopeless, 0.3)).verdict.level == "fine"


@pytest.mark.parametrize(
    "weights",
    [Weights(np.zeros(5)), Weights(np.empty(0)), lognormal(1.0, 10), lognormal(3.0, 1000)],
    ids=["equal", "none", "few", "strong"],
)
def test_a_diagnosis_is_json_and_text(weights):
    found = diagnose(weights)
    card = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert card == weights.diagnostics()
    assert card["effective_sample_size"] == weights.effective_sample_size
    assert card["largest_share"] == weights.largest_share
    lines = str(found).splitlines()
    assert lines[-1].startswith("verdict")
    assert found.verdict.level in lines[-1]
    # The values stand under each other.
    assert len({len(line) - len(line[23:]) for line in lines}) == 1
    assert all(line[21:23] == "  " and line[23] != " " for line in lines)


def test_a_heavy_tail_that_holds_little_of_the_weight_is_fine():
    """Some thousand weights near one and a few far out: they decide nothing."""
    generator = np.random.default_rng(3)
    weights = generator.uniform(0.8, 1.2, 20_000)
    weights[:200] = 1.2 + 0.1 * generator.pareto(1.2, 200)
    found = diagnose(Weights(np.log(weights)))
    assert found.tail_shape > 0.5
    assert found.tail_share < 0.05
    assert found.verdict.level == "fine"


def test_weights_that_are_equal_but_for_rounding_have_one_place_in_the_tail():
    """Rows of four cells, raked: what is left of rounding must not be taken for a heavy tail."""
    generator = np.random.default_rng(0)
    levels = np.repeat([0.2, 0.9, 1.1, 1.8], 500)
    raked = levels * (1 + 1e-13 * generator.standard_normal(2000))
    exact = diagnose(Weights(np.log(levels)))
    assert diagnose(Weights(np.log(raked))).tail_shape == pytest.approx(exact.tail_shape, abs=0.01)
    assert exact.tail_shape < 0.5


def test_many_weights_that_are_nearly_the_same_are_no_heavy_tail():
    # As after raking to margins that independent columns nearly have: a few rows weigh more.
    few = np.linspace(2.0, 5.0, 20)
    weights = np.concatenate([np.full(1400, 0.3), np.full(300, 1.0), np.full(300, 1.00004), few])
    assert fit_tail(find_tail(np.log(weights)).exceedances).shape < 0.7
    # And a heavy tail of rows that are nearly the same below is one still.
    law = GeneralisedPareto(shape=1.2, scale=1.0)
    heavy = 1 + law.quantiles((np.arange(2000) + 0.5) / 2000)
    assert fit_tail(find_tail(np.log(heavy)).exceedances).shape > 0.9
