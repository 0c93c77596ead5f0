"""Posteriors from a release. Draws are compared within five or more of their standard errors, and
seeded."""

import sys
import warnings
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import counterpoise as cp
from counterpoise.analysis import posterior as module
from counterpoise.analysis.coefficients import DEVIATION
from counterpoise.analysis.posterior import Prior, spread
from counterpoise.analysis.posterior_density import (
    Task,
    expand,
    find_mode,
    log_density,
    row_gradients,
)
from counterpoise.analysis.posterior_sampler import check_convergence, sample
from counterpoise.analysis.posterior_surface import surface_of
from counterpoise.errors import AnalysisError, CounterpoiseWarning, SchemaError
from tests.analysis.releases import make_release, repeated

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("arviz_base", "arviz_stats"))),
    reason="the extra `bayes` is not installed",
)

FORMULA = "ill ~ age + children"
QUICK = {"draws": 500, "warmup": 200, "seed": 1}


@pytest.fixture(scope="module")
def release():
    return make_release(population=500)


@pytest.fixture(scope="module")
def logistic(release):
    return release.posterior(FORMULA, replicates=False, **QUICK)


def matrix(table, *names):
    return np.column_stack([np.ones(len(table)), *(table[name].to_numpy(float) for name in names)])


def linear_posterior(x, y, weights, deviation):
    """The exact means and deviations of beta and sigma, for priors N(0, d^2) and Exp(mean d).

    Given sigma, beta is normal; sigma is integrated out on a fine grid of its logarithm.
    """
    grid = np.linspace(np.log(y.std()) - 1, np.log(y.std()) + 1, 2001)
    means, seconds, heights = [], [], []
    for sigma in np.exp(grid):
        precision = (x * weights[:, None]).T @ x / sigma**2 + np.eye(x.shape[1]) / deviation**2
        covariance = np.linalg.inv(precision)
        mean = covariance @ (x.T @ (weights * y)) / sigma**2
        # log of the integral over beta, times the prior of log(sigma)
        height = -weights.sum() * np.log(sigma) - (weights * y**2).sum() / (2 * sigma**2)
        height += mean @ precision @ mean / 2 - np.linalg.slogdet(precision)[1] / 2
        heights.append(height + np.log(sigma) - sigma / deviation)
        means.append(np.append(mean, sigma))
        seconds.append(np.append(np.diag(covariance) + mean**2, sigma**2))
    chances = np.exp(np.array(heights) - max(heights))
    mean = np.average(means, axis=0, weights=chances)
    return mean, np.sqrt(np.average(seconds, axis=0, weights=chances) - mean**2)


def test_a_linear_posterior_is_the_one_in_closed_form(release):
    found = release.posterior(
        "age ~ children + ill", "linear", prior=20.0, size=80, replicates=False, **QUICK
    )
    x, y = matrix(release.table, "children", "ill"), release.table["age"].to_numpy(float)
    mean, deviation = linear_posterior(x, y, release.weights * 80 / 300, 20.0)
    frame = found.to_frame()
    assert list(frame.index) == ["Intercept", "children", "ill", "sigma"]
    assert ((frame["mean"] - mean).abs() < 0.12 * deviation).all()
    assert frame["deviation"].to_numpy() == pytest.approx(deviation, rel=0.1)
    # The prior counts: without it the intercept would be elsewhere.
    flat = np.linalg.lstsq(x * np.sqrt(release.weights)[:, None], y * np.sqrt(release.weights))[0]
    assert abs(flat[0] - mean[0]) > 0.5 * deviation[0]


def test_integer_weights_are_repeated_rows(release):
    rows = repeated(release).reset_index(drop=True)
    copied = cp.Release(rows.assign(weight=1.0), release.schema, release.card)
    options = {"size": 150, "replicates": False, **QUICK}
    weighted = release.posterior("age ~ children + ill", **options)
    plain = copied.posterior("age ~ children + ill", **options)
    found, expected = weighted.to_frame(), plain.to_frame()
    assert ((found["mean"] - expected["mean"]).abs() < 0.12 * expected["deviation"]).all()
    assert found["deviation"].to_numpy() == pytest.approx(expected["deviation"], rel=0.1)


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_the_modes_of_integer_weights_and_of_repeated_rows_are_one(release, family):
    smallest = release.weights[release.weights > 0].min()

    def mode(table, weights):
        y = table["ill" if family == "logistic" else "age"].to_numpy(float)
        return find_mode(
            family, Task(matrix(table, "children"), y, weights, np.zeros(2), np.eye(2), 1.0)
        )

    rows = repeated(release)
    weighted, plain = (
        mode(release.table, release.weights / smallest),
        mode(rows, np.ones(len(rows))),
    )
    assert weighted.theta == pytest.approx(plain.theta, rel=1e-6)
    assert weighted.curvature == pytest.approx(plain.curvature, rel=1e-6)


def some_task(release, family):
    """A posterior, and points around the middle of it."""
    x, y = matrix(release.table, "children", "ill"), release.table["children"].to_numpy(float)
    y = (y > 0).astype(float) if family == "logistic" else y
    size = 3 * int(y.max()) if family == "multinomial" else 3
    task = Task(x, y, release.weights, np.full(size, 0.1), np.eye(size), 1.0)
    return task, np.random.default_rng(0).normal(size=(4, size + (family == "linear")))


@pytest.mark.parametrize("family", ["linear", "logistic", "multinomial"])
def test_what_the_sampler_climbs_is_the_density_in_single_precision(release, family):
    task, points = some_task(release, family)
    surface = surface_of(family, task)
    for theta in points:
        height, slope = surface(theta)
        # Up to a constant, of which there is none.
        assert height == pytest.approx(log_density(family, theta, task), abs=1e-4)
        assert slope == pytest.approx(expand(family, theta, task).slope, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("family", ["linear", "logistic", "multinomial"])
def test_derivatives_are_those_of_the_density(release, family):
    task, points = some_task(release, family)
    step = 1e-5 * np.eye(points.shape[1])
    for theta in points:
        found = expand(family, theta, task)
        assert found.height == pytest.approx(log_density(family, theta, task), rel=1e-12)
        rises = [
            log_density(family, theta + each, task) - log_density(family, theta - each, task)
            for each in step
        ]
        assert np.array(rises) / 2e-5 == pytest.approx(found.slope, rel=1e-5, abs=1e-5)
        bends = [
            expand(family, theta - each, task).slope - expand(family, theta + each, task).slope
            for each in step
        ]
        assert np.array(bends) / 2e-5 == pytest.approx(found.curvature, rel=1e-5, abs=1e-4)
        # The gradients of the rows add up to that of all of them, but for the prior's.
        rows = -task.weights @ row_gradients(family, theta, task)
        prior = -task.precision @ (theta[: task.size] - task.centre)
        assert rows + prior == pytest.approx(found.slope[: task.size], rel=1e-9, abs=1e-9)


def test_rows_with_the_same_features_are_climbed_as_one(release):
    task, _ = some_task(release, "logistic")
    [block] = surface_of("logistic", task).blocks
    assert block.features.shape[1] == len(np.unique(task.features[task.weights > 0], axis=0))
    assert block.weights.sum() == pytest.approx(task.weights.sum())


def test_a_logistic_posterior_of_many_rows_is_nearly_normal_around_the_fit(release):
    found = release.posterior(FORMULA, prior=1000.0, size=60_000, replicates=False, **QUICK)
    model = release.glm(FORMULA)
    frame, fitted = found.to_frame(), model.to_frame()
    deviation = fitted["naive_error"].to_numpy() * np.sqrt(300 / 60_000)
    assert (np.abs(frame["mean"].to_numpy() - fitted["value"]) < 0.15 * deviation).all()
    assert frame["deviation"].to_numpy() == pytest.approx(deviation, rel=0.1)


def test_the_mode_of_a_multinomial_posterior_solves_its_equations(release):
    """With a weak prior, predicted and weighted shares agree, in all and along each feature."""
    found = release.posterior("pain ~ age", size=50_000, replicates=False, **QUICK)
    assert found.categories == ("none", "some", "much")
    assert found.parameters == ("some: Intercept", "some: age", "much: Intercept", "much: age")
    known = release.table["pain"].notna().to_numpy()
    assert found.left_out == (~known).sum()
    table, weights = release.table[known], release.weights[known]
    predicted = found.predict(table)
    assert predicted.sum(axis=1) == pytest.approx(np.ones(len(table)))
    for place, category in enumerate(found.categories):
        residual = (table["pain"] == category).to_numpy() - predicted[:, place]
        for feature in (np.ones(len(table)), table["age"].to_numpy() / 100):
            assert weights @ (residual * feature) / weights.sum() == pytest.approx(0, abs=2e-3)


def test_two_categories_are_a_logistic_model_in_either_family(release):
    x, y = matrix(release.table, "children", "ill"), release.table["ill"].to_numpy(float)
    task = Task(x[:, :2], y, release.weights, np.zeros(2), np.eye(2), 1.0)
    one, other = (find_mode(family, task) for family in ("logistic", "multinomial"))
    assert one.theta == pytest.approx(other.theta, abs=1e-5)
    assert one.curvature == pytest.approx(other.curvature, rel=1e-4)


def test_a_seed_repeats_the_draws(release, logistic):
    again = release.posterior(FORMULA, replicates=False, **QUICK)
    assert np.array_equal(again.draws, logistic.draws)
    other = release.posterior(FORMULA, replicates=False, **{**QUICK, "seed": 2})
    assert not np.array_equal(other.draws, logistic.draws)


def test_the_size_sets_the_width(release, logistic):
    sizes = logistic.sizes
    assert sizes.population == 500
    # Weights of 0, 1, 2 and 3 waste rows: what is left is less than there are.
    assert 0 < sizes.effective < 300
    assert sizes.used == pytest.approx(1 / (1 / 500 + 1 / sizes.effective))
    wide = logistic.to_frame()["deviation"]
    narrow = release.posterior(FORMULA, size=16 * sizes.used, replicates=False, **QUICK).to_frame()[
        "deviation"
    ]
    assert (wide / narrow).to_numpy() == pytest.approx(np.full(3, 4.0), rel=0.12)


@pytest.mark.parametrize("size", ["population", "effective", "rows"])
def test_sizes_by_name(release, logistic, size):
    used = release.posterior(FORMULA, size=size, replicates=False, **QUICK).sizes.used
    sizes = logistic.sizes
    named = {"population": 500, "effective": sizes.effective, "rows": 300}
    assert used == pytest.approx(named[size])


def test_equal_weights_are_worth_their_rows(release):
    found = release.unweighted().posterior(FORMULA, **QUICK)
    assert found.sizes.effective == pytest.approx(300)
    assert found.sizes.used == pytest.approx(1 / (1 / 500 + 1 / 300))


def test_rows_left_out_for_nulls_take_their_weight_with_them(release):
    found = release.posterior("age ~ dose + ill", replicates=False, size="rows", **QUICK)
    known = release.table["dose"].notna().to_numpy()
    assert found.left_out == (~known).sum()
    share = release.weights[known].sum() / 300
    alone = cp.Release(release.table[known], release.schema, release.card)
    same = alone.posterior("age ~ dose + ill", size=300 * share, **QUICK)
    assert found.sizes.rows == same.sizes.rows == known.sum()
    gaps = found.to_frame()["mean"] - same.to_frame()["mean"]
    assert (gaps.abs() < 0.12 * same.to_frame()["deviation"]).all()
    widths = found.to_frame()["deviation"] / same.to_frame()["deviation"]
    assert widths.to_numpy() == pytest.approx(np.ones(4), rel=0.04)


def test_the_scaled_prior_does_not_depend_on_units(release):
    table = release.table.assign(dose=release.table["dose"] * 1000)
    column = cp.Column.continuous("dose", 0.0, 10_000.0, bins=5, nullable=True)
    other = cp.Release(table, release.schema.replace(column), release.card)
    options = {"replicates": False, "size": 20, **QUICK}
    found = other.posterior("age ~ dose + ill", **options)
    expected = release.posterior("age ~ dose + ill", **options)
    # Rounding sets the draws apart in the end, so they agree as two runs do.
    assert 1000 * found["dose"].mean() == pytest.approx(
        expected["dose"].mean(), abs=0.12 * expected["dose"].std()
    )
    assert 1000 * found["dose"].std() == pytest.approx(expected["dose"].std(), rel=0.1)


def test_a_prior_may_be_stated_for_one_term(release, logistic):
    stated = Prior(terms={"age": (0.5, 0.0001)})
    found = release.posterior(FORMULA, prior=stated, replicates=False, **QUICK).to_frame()
    assert found.loc["age", "mean"] == pytest.approx(0.5, abs=0.001)
    assert logistic["age"].mean() < 0.1
    # Of two priors on everything, the narrow one wins over the rows.
    pulled = release.posterior(FORMULA, prior=0.001, replicates=False, **QUICK).to_frame()
    assert (pulled["mean"].abs() < 0.01).all()


def test_replicates_widen_a_posterior_to_their_own_spread(release, logistic):
    wild = release.weights[:, None] * np.random.default_rng(5).gamma(0.05, size=(300, 40))
    moved = replace(release, replicates=wild / wild.mean(axis=0))
    found = moved.posterior(FORMULA, **QUICK)
    assert found.replicates == 40
    assert np.array_equal(found.sampled.draws, logistic.sampled.draws)
    errors = moved.glm(FORMULA).to_frame()["standard_error"].to_numpy()
    deviations = found.to_frame()["deviation"].to_numpy()
    assert (errors > 1.5 * logistic.to_frame()["deviation"].to_numpy()).any()
    # The prior keeps the modes somewhat closer than the fits.
    assert deviations == pytest.approx(errors, rel=0.35)
    assert (deviations >= 0.98 * logistic.to_frame()["deviation"].to_numpy()).all()
    # Spread, not moved.
    assert found.draws.mean(axis=(0, 1)) == pytest.approx(
        logistic.draws.mean(axis=(0, 1)), abs=0.1 * deviations.max()
    )


def test_a_replicate_moves_the_posterior_as_far_as_its_mode(release, logistic):
    """What lets one run of the sampler stand for the posteriors of all replicates."""
    swapped = release.table.assign(weight=release.replicates[:, 0])
    other = cp.Release(swapped, release.schema, release.card)
    options = {**QUICK, "size": logistic.sizes.used}
    found = other.posterior(FORMULA, **options)
    single = replace(release, replicates=release.replicates[:, :1])
    modes = []

    def keep(draws, mode, found_modes, generator):
        modes.append((mode, found_modes[0]))
        return np.zeros_like(draws)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "spread", keep)
        single.posterior(FORMULA, **options)
    (mode, moved), sampled = modes[0], logistic.sampled.draws
    # In the coordinates of the sampler, which differ between the two releases, only the
    # coefficients as stated can be compared: age has one feature's scale.
    scale = np.sqrt(np.cov(release.table["age"], aweights=release.weights, ddof=0))
    expected = (moved[1] - mode[1]) / scale
    assert found["age"].mean() - logistic["age"].mean() == pytest.approx(
        expected, abs=0.15 * logistic["age"].std()
    )
    assert abs(expected) > 0.2 * sampled[:, :, 1].std() / scale


def test_the_spread_reaches_the_covariance_of_the_replicates():
    generator = np.random.default_rng(0)
    root = np.array([[1.0, 0.0], [0.5, 0.3]])
    draws = generator.normal(size=(4, 5000, 2)) @ root.T
    apart = generator.normal(size=(200, 2)) @ np.array([[3.0, 1.0], [0.0, 2.0]])
    mode = np.array([1.0, -1.0])
    found = draws + spread(draws, mode, mode + apart, generator)
    assert np.cov(found.reshape(-1, 2), rowvar=False) == pytest.approx(
        apart.T @ apart / 200, rel=0.1
    )
    # Replicates closer together than the draws add nothing.
    assert not spread(draws, mode, mode + apart / 100, generator).any()


def test_draws_that_did_not_converge_are_told(release, monkeypatch):
    def stopped_early(*arguments):
        whole = sample(*arguments)
        return replace(whole, draws=whole.draws[:, :10], diverging=whole.diverging[:, :10])

    monkeypatch.setattr(module, "sample", stopped_early)
    with pytest.warns(CounterpoiseWarning, match=r"not to be trusted: .*take more draws") as told:
        found = release.posterior(FORMULA, replicates=False, **QUICK)
    assert "the draws count as" in str(told[0].message)
    assert found.convergence.complaint in str(found)


def test_chains_that_disagree_have_a_large_r_hat(logistic):
    apart = replace(logistic.sampled, draws=logistic.sampled.draws + np.arange(4)[:, None, None])
    assert check_convergence(logistic.sampled).complaint == ""
    assert "R-hat is" in check_convergence(apart).complaint
    diverged = replace(logistic.sampled, diverging=np.eye(4, 500, dtype=bool))
    assert check_convergence(diverged).complaint == "4 transitions diverged"


def test_predictions_average_over_the_draws(release, logistic):
    raw = pd.DataFrame({"age": [30, 60], "children": [0, 2]})
    found = logistic.predict(raw)
    flat = logistic.draws.reshape(-1, 3)
    for place, (age, children) in enumerate([(30, 0), (60, 2)]):
        by_hand = expit(flat @ np.array([1.0, age, children])).mean()
        assert found[place] == pytest.approx(by_hand)
    model = release.posterior("age ~ dose + ill", replicates=False, **QUICK)
    raw = pd.DataFrame({"dose": [4.0, None], "ill": [True, False]})
    beta = model.draws.mean(axis=(0, 1))
    assert model.predict(raw)[0] == pytest.approx(beta[:3] @ [1.0, 4.0, 1.0])
    assert np.isnan(model.predict(raw)[1])


def test_arviz_takes_the_result(logistic):
    tree = logistic.to_datatree()
    assert dict(tree["posterior"].sizes) == {"chain": 4, "draw": 500}
    assert np.array_equal(tree["posterior"]["age"].to_numpy(), logistic["age"])
    assert not tree["sample_stats"]["diverging"].any()


def test_a_posterior_is_indexed_by_parameter_and_iterated_over_draws(logistic):
    assert logistic.keys() == ["Intercept", "age", "children"]
    assert len(logistic) == 3
    for (name, draws), each in zip(logistic.items(), logistic, strict=True):
        assert np.array_equal(draws, each)
        assert np.array_equal(draws, logistic[name])
    assert "age" in logistic
    assert 0 not in logistic
    with pytest.raises(AnalysisError, match="no parameter 0"):
        logistic[0]


def test_a_posterior_prints_what_it_rests_on(logistic):
    text = str(logistic).splitlines()
    assert text[0] == "ill ~ age + children, logistic, 300 rows"
    assert text[1].startswith("counted as ") and "private table: 500" in text[1]
    assert text[3].startswith("Intercept")
    assert "their privacy noise is not included" in text[-1]


def test_weights_that_should_not_be_used_are_refused(release):
    verdict = {"level": "do not use", "reason": "one row has all of the weight"}
    bad = replace(release, card={"weights": {"verdict": verdict}})
    with pytest.raises(AnalysisError, match="should not be used"):
        bad.posterior(FORMULA)


def test_without_the_extra_the_way_to_it_is_told(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_stats", None)
    with pytest.raises(AnalysisError, match=r"pip install 'counterpoise\[bayes\]'"):
        release.posterior(FORMULA)


@pytest.mark.parametrize(
    ("formula", "options", "error", "words"),
    [
        ("ill ~ agee", {}, SchemaError, "did you mean 'age'"),
        ("age", {}, AnalysisError, "a target and features"),
        (FORMULA, {"family": "binomial"}, AnalysisError, "auto, linear, logistic, multinomial"),
        ("ward ~ age", {"family": "logistic"}, AnalysisError, "'ward', which is categorical"),
        ("age ~ ill", {"family": "multinomial"}, AnalysisError, "'age', which is integer"),
        ("age ~ ill", {"family": "logistic"}, AnalysisError, "between 0 and 1"),
        (FORMULA, {"size": "all"}, AnalysisError, "combined, population, effective, rows"),
        (FORMULA, {"size": -1.0}, AnalysisError, "size: expected a positive number"),
        (FORMULA, {"prior": 0.0}, AnalysisError, "prior: expected a positive number"),
        (FORMULA, {"prior": Prior(terms={"dose": (0.0, 1.0)})}, AnalysisError, "no coefficient"),
        (FORMULA, {"chains": 1}, AnalysisError, "chains: expected a whole number from 2"),
    ],
)
def test_what_cannot_be_done_is_refused(release, formula, options, error, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=words):
            release.posterior(formula, **options)


def test_what_a_release_does_not_have_cannot_be_asked_for():
    bare = make_release(replicates=0)
    with pytest.raises(AnalysisError, match="no replicate weights"):
        bare.posterior(FORMULA, replicates=True)
    with pytest.raises(AnalysisError, match="states no population"):
        bare.posterior(FORMULA, size="population")


def test_a_prior_is_checked_when_it_is_made():
    with pytest.raises(AnalysisError, match="prior: expected a positive number"):
        Prior(deviation=float("inf"))
    with pytest.raises(AnalysisError, match=r"\(mean, deviation\) for 'age'"):
        Prior(terms={"age": 1.0})


def test_a_parameter_that_nothing_measured_is_as_wide_as_its_prior(release):
    counts = [["ill", "age"], ["ward"], ["children"]]
    card = release.card | {"measured": {"counts": counts, "cells": [], "products": []}}
    made = cp.Release(release.table, release.schema, card, release.replicates)
    formula = "ill ~ age + ward"
    found = made.posterior(formula, replicates=False, **QUICK).to_frame()
    known = release.posterior(formula, replicates=False, **QUICK).to_frame()
    assert found["support"].to_dict() == {
        "Intercept": "never",
        "age": "implied",
        "ward[T.medicine]": "never",
    }
    assert set(known["support"]) == {"measured"}
    wide = np.hypot(known["deviation"]["ward[T.medicine]"], DEVIATION)
    assert found["deviation"]["ward[T.medicine]"] == pytest.approx(wide, rel=0.1)
    assert found["mean"]["age"] == pytest.approx(known["mean"]["age"], abs=0.01)
    assert "! never measured" in str(made.posterior(formula, replicates=False, **QUICK))
    linear = made.posterior("age ~ children", replicates=False, **QUICK)
    assert linear.supports == ("never", "never", "never")


def test_a_truth_that_no_row_has_is_as_wide_as_its_prior(release):
    made = cp.Release(
        release.table.assign(ill=False), release.schema, dict(release.card), release.replicates
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = made.posterior("ward ~ ill", prior=Prior(2.5), **QUICK)
    assert found["medicine: ill"].std() == pytest.approx(2.5, rel=0.15)
