"""Fits: exact without noise, optimal with it, and no worse than `mbi`'s."""

import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.synthesizers.graphical import (
    Domain,
    Measurement,
    estimate_total,
    fit,
    fit_report,
)
from counterpoise.synthesizers.graphical.measurements import combine
from tests.synthesizers.graphical.structures import (
    STRUCTURES,
    brute_force,
    mbi_in_double_precision,
    project,
    random_potentials,
    random_structure,
)


def measure(structure, rng, scale, total=1000.0, noise=True):
    """Measurements of a random model of the structure, and its true counts."""
    domain, cliques = structure
    joint = total * brute_force(domain, random_potentials(structure, rng))
    measurements = []
    for clique in cliques:
        exact = project(domain, joint, clique)
        values = exact + rng.normal(0.0, scale, exact.shape) if noise else exact
        measurements.append(Measurement(clique, values, scale))
    return measurements, joint


def loss(model, measurements):
    return sum(
        0.5 * np.sum((model.marginal(m.columns) - m.values) ** 2) / m.scale**2 for m in measurements
    )


@pytest.mark.parametrize("name", [name for name in STRUCTURES if name != "nothing measured"])
def test_fit_is_exact_without_noise(name):
    structure = domain, cliques = STRUCTURES[name]
    measurements, joint = measure(structure, np.random.default_rng(0), scale=1e-4, noise=False)
    model = fit(domain, measurements, tolerance=1e-6, iterations=2000)
    assert model.total == pytest.approx(1000.0)
    for clique in cliques:
        np.testing.assert_allclose(
            model.marginal(clique), project(domain, joint, clique), atol=1e-2
        )


@pytest.mark.parametrize("name", ["chain", "cycle", "all pairs", "triples", "grid", "star"])
def test_potentials_are_the_residuals_over_the_entropy_weight(name):
    """The first-order condition tau * s^2 * theta = y - M p, which makes the fit unique."""
    structure = domain, _ = STRUCTURES[name]
    scale, entropy = 20.0, 0.7
    measurements, _ = measure(structure, np.random.default_rng(1), scale)
    model = fit(domain, measurements, entropy=entropy, tolerance=1e-12, iterations=2000)
    answers = {frozenset(m.columns): m for m in measurements}
    for potential in model.potentials:
        measured = answers[frozenset(potential.columns)]
        residual = measured.values - model.marginal(measured.columns)
        theta = potential.transpose(measured.columns).values
        np.testing.assert_allclose(entropy * scale * theta, residual, atol=1e-4)


@pytest.mark.parametrize("name", ["chain", "cycle", "all pairs", "triples", "grid", "star"])
def test_the_reported_gap_bounds_the_distance_to_the_optimum(name):
    structure = domain, _ = STRUCTURES[name]
    measurements, _ = measure(structure, np.random.default_rng(2), scale=10.0)
    entropy = 0.5
    tau = entropy / 10.0

    def objective(model):
        # sum p log p of counts, up to what does not depend on the model
        return loss(model, measurements) - tau * model.total * model.entropy

    best = objective(fit(domain, measurements, entropy=entropy, tolerance=1e-12, iterations=2000))
    for tolerance in (1.0, 1e-1, 1e-2):
        report = fit_report(domain, measurements, entropy=entropy, tolerance=tolerance)
        assert report.loss == pytest.approx(loss(report.model, measurements))
        assert -1e-6 <= objective(report.model) - best <= report.gap + 1e-6


@pytest.mark.parametrize("name", ["chain", "cycle", "triples"])
def test_a_warm_start_ends_in_the_same_place_sooner(name):
    structure = domain, _ = STRUCTURES[name]
    measurements, _ = measure(structure, np.random.default_rng(3), scale=5.0)
    options = {"total": 1000.0, "entropy": 0.5, "tolerance": 1e-8}
    cold = fit_report(domain, measurements, **options)
    warm = fit_report(domain, measurements, warm_start=cold.model, **options)
    assert warm.passes <= 2 < cold.passes
    grown = fit_report(
        domain, measurements, warm_start=fit(domain, measurements[:-1], **options), **options
    )
    for m in measurements:
        expected = cold.model.marginal(m.columns)
        np.testing.assert_allclose(grown.model.marginal(m.columns), expected, atol=1e-2)


def test_unmeasured_columns_are_uniform_and_independent():
    domain = Domain(("a", "b"), (2, 4))
    model = fit(domain, [Measurement(("a",), np.array([30.0, 10.0]), 0.01)])
    expected = np.outer([30.0, 10.0], np.full(4, 0.25))
    np.testing.assert_allclose(model.marginal(("a", "b")), expected, atol=0.1)
    nothing = fit(domain, [], total=8.0)
    np.testing.assert_allclose(nothing.marginal(("a", "b")), np.ones((2, 4)))


def test_repeated_measurements_combine_by_inverse_variance():
    domain = Domain(("a", "b"), (2, 2))
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    (combined,) = combine(
        domain, [Measurement(("a", "b"), table, 1.0), Measurement(("b", "a"), table.T + 5.0, 0.5)]
    )
    np.testing.assert_allclose(combined.values, table + 4.0)
    assert combined.scale == pytest.approx(1 / np.sqrt(5.0))


def test_the_total_is_weighted_by_inverse_variance():
    precise = Measurement(("a",), np.array([60.0, 40.0]), 1.0)  # variance 2
    rough = Measurement(("b",), np.full(4, 30.0), 2.0)  # variance 16
    assert estimate_total([precise, rough]) == pytest.approx(
        (100 / 2 + 120 / 16) / (1 / 2 + 1 / 16)
    )
    assert estimate_total([Measurement(("a",), np.array([-9.0, 0.0]), 1.0)]) == 1.0


def test_negative_answers_and_a_large_scale_are_survived():
    domain = Domain(("a", "b", "c"), (30, 20, 2))
    rng = np.random.default_rng(4)
    measurements = [
        Measurement(("a", "b"), rng.normal(0.0, 1e4, (30, 20)), 1e4),
        Measurement(("b", "c"), rng.normal(0.0, 1e-3, (20, 2)) - 5.0, 1e-3),
    ]
    model = fit(domain, measurements, total=100.0)
    assert np.isfinite(model.marginal(("a", "c"))).all()
    assert model.marginal(("a",)).sum() == pytest.approx(100.0)


def test_a_large_clique_is_fitted():
    domain = Domain(("a", "b", "c"), (100, 100, 100))
    rng = np.random.default_rng(5)
    values = rng.gamma(0.5, 2.0, domain.sizes) + rng.normal(0.0, 5.0, domain.sizes)
    report = fit_report(domain, [Measurement(("a", "b", "c"), values, 5.0)], tolerance=1e-2)
    assert report.gap <= 1e-2 * report.loss
    assert report.model.marginal(("a",)).sum() == pytest.approx(report.model.total)


@pytest.mark.parametrize(
    ("measurement", "message"),
    [
        (Measurement(("a", "z"), np.zeros((2, 2)), 1.0), "'z'"),
        (Measurement(("a",), np.zeros(3), 1.0), "shape"),
        (Measurement(("a",), np.zeros(2), 0.0), "scale"),
        (Measurement(("a",), np.array([np.nan, 0.0]), 1.0), "no number"),
        (Measurement(("a", "a"), np.zeros((2, 2)), 1.0), "twice"),
    ],
)
def test_bad_measurements_are_refused(measurement, message):
    with pytest.raises(MethodError, match=message):
        fit(Domain(("a",), (2,)), [measurement])


def test_bad_options_are_refused():
    good = [Measurement(("a",), np.ones(2), 1.0)]
    for options in ({"entropy": 0.0}, {"tolerance": -1.0}, {"iterations": 0}, {"total": 0.0}):
        with pytest.raises(MethodError):
            fit(Domain(("a",), (2,)), good, **options)


@pytest.mark.parametrize("seed", range(2))
def test_least_squares_is_no_worse_than_that_of_mbi(seed):
    rng = np.random.default_rng(seed)
    structure = domain, _ = random_structure(rng, 6, 3, loopy=seed > 0)
    measurements, _ = measure(structure, rng, scale=10.0)
    with mbi_in_double_precision() as (mbi, _):
        other = mbi.Domain(domain.columns, domain.sizes)
        linear = [
            mbi.LinearMeasurement(m.values.reshape(-1), m.columns, stddev=m.scale)
            for m in measurements
        ]
        theirs = mbi.estimation.MirrorDescent().estimate(
            other, linear, known_total=1000.0, iters=2000
        )
        their_loss = sum(
            0.5
            * np.sum(
                (np.asarray(theirs.project(m.columns).datavector(flatten=False)) - m.values) ** 2
            )
            / m.scale**2
            for m in measurements
        )
    model = fit(domain, measurements, total=1000.0, entropy=1e-3, tolerance=1e-6, iterations=5000)
    assert loss(model, measurements) <= their_loss + 1e-3 * max(1.0, their_loss)
