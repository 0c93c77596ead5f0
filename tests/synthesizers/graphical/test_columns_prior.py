"""The columns as a prior: likely counts are closer than noisy ones, and fits are pulled to them."""

import numpy as np
import pytest
from scipy import stats

from counterpoise.synthesizers.graphical import Domain, Measurement, fit, fit_report
from counterpoise.synthesizers.graphical.columns_prior import (
    ENOUGH_CELLS,
    LONGEST_WALK,
    _walks,
    fitted_counts,
    likely_answers,
    likely_counts,
    towards_columns,
)

TOTAL, SCALE = 5000.0, 40.0
SPREADS = {
    "alike": np.full(50, TOTAL / 50),
    "one large": np.array([0.95 * TOTAL, *[0.05 * TOTAL / 29] * 29]),
    "geometric": TOTAL * 0.8 ** np.arange(60) / (0.8 ** np.arange(60)).sum(),
}


def noisy_tables(exact, number=40):
    generator = np.random.default_rng(0)
    return exact + generator.normal(0, SCALE, (number, len(exact)))


@pytest.mark.parametrize("name", SPREADS)
def test_likely_counts_are_closer_than_a_fit_without_them(name):
    """Seeded: 40 tables. A fit to the noisy counts alone has positive counts of the right total."""
    exact, domain = SPREADS[name], Domain(("a",), (len(SPREADS[name]),))
    likely, fitted = 0.0, 0.0
    for noisy in noisy_tables(exact):
        counts = likely_counts(noisy, SCALE, TOTAL)[0]
        assert counts.min() > 0
        assert counts.sum() == pytest.approx(TOTAL)
        likely += np.abs(counts - exact).sum()
        alone = fit(domain, [Measurement(("a",), noisy, SCALE)], total=TOTAL).marginal(("a",))
        fitted += np.abs(alone - exact).sum()
    assert likely < 0.8 * fitted


def test_counts_far_above_the_noise_stay_where_they_are():
    exact = np.array([3000.0, 1500.0, 500.0])
    assert likely_counts(exact, 5.0, TOTAL)[0] == pytest.approx(exact, abs=1.0)


def test_equal_answers_have_equal_counts_and_larger_ones_larger_counts():
    noisy = np.array([60.0, -30.0, 60.0, 250.0, 0.0, -30.0])
    counts = likely_counts(noisy, SCALE, 300.0)[0]
    assert counts[0] == pytest.approx(counts[2])
    assert counts[1] == pytest.approx(counts[5])
    order = counts[[1, 4, 0, 3]]
    assert (np.diff(order) > 0).all()


def test_neighbours_that_are_alike_tell_of_each_other():
    """Seeded: 40 tables. The same answers in another order, as of names, tell less."""
    exact = TOTAL * stats.norm.pdf(np.linspace(-2, 3, 60))
    exact *= TOTAL / exact.sum()
    shuffle = np.random.default_rng(1).permutation(60)
    noisy = noisy_tables(exact)
    ordered = likely_answers(noisy, SCALE, TOTAL).counts - exact
    shuffled = likely_answers(noisy[:, shuffle], SCALE, TOTAL).counts - exact[shuffle]
    assert np.abs(ordered).sum() < 0.7 * np.abs(shuffled).sum()


def test_values_in_no_order_may_be_in_any():
    generator = np.random.default_rng(2)
    noisy = generator.choice([0.0, 100.0, 400.0], 40) + generator.normal(0, SCALE, 40)
    likely = likely_answers(noisy, SCALE, noisy.sum())
    for _ in range(10):
        shuffle = generator.permutation(40)
        again = likely_answers(noisy[shuffle], SCALE, noisy.sum())
        assert again.counts == pytest.approx(likely.counts[shuffle], abs=0.05 * SCALE)
        assert again.answers == pytest.approx(likely.answers[shuffle], abs=0.05 * SCALE)


def test_the_counts_of_a_walk_replace_the_answers():
    exact = TOTAL * np.arange(1, 81) / np.arange(1, 81).sum()
    [noisy] = noisy_tables(exact, 1)
    likely = likely_answers(noisy, SCALE, TOTAL)
    assert likely.answers == pytest.approx(likely.counts, abs=1.0)
    assert np.abs(likely.answers - exact).mean() < 0.5 * np.abs(noisy - exact).mean()


def test_walks_are_those_of_dense_algebra():
    """The differences of the answers are N(0, DD' + v); the likelihood is of their span."""
    generator = np.random.default_rng(3)
    answers, steps = generator.normal(5, 2, (2, 12)), generator.uniform(0.01, 9, (2, 4, 11))
    means, log_likelihoods = _walks(answers, steps)
    difference = np.diff(np.eye(12), axis=0)
    span = difference @ difference.T
    for i, j in np.ndindex(2, 4):
        precision = np.eye(12) + difference.T @ np.diag(1 / steps[i, j]) @ difference
        assert means[i, j] == pytest.approx(np.linalg.solve(precision, answers[i]))
        law = stats.multivariate_normal(np.zeros(11), span + np.diag(steps[i, j]))
        dense = law.logpdf(difference @ answers[i]) + np.linalg.slogdet(span)[1] / 2
        assert log_likelihoods[i, j] == pytest.approx(dense + 11 / 2 * np.log(2 * np.pi))


@pytest.mark.parametrize("cells", [ENOUGH_CELLS, 520, LONGEST_WALK + 1])
def test_counts_of_any_size_have_likely_ones(cells):
    """Hardly any rows, and far more rows than noise, next to empty cells."""
    few = np.random.default_rng(4).normal(0, 1e3, cells)
    many = np.where(np.arange(cells) % 3, 1e9, 0.0)
    for noisy, scale, total in ((few, 1e3, 1.0), (many, 1.0, many.sum())):
        likely = likely_answers(noisy, scale, total)
        assert likely.counts.min() > 0
        assert likely.counts.sum() == pytest.approx(total)
        assert np.isfinite(likely.answers).all()


def test_a_column_of_one_value_has_all_rows():
    assert likely_counts(np.array([-20.0]), SCALE, TOTAL)[0] == pytest.approx([TOTAL])


def test_a_column_of_few_cells_is_what_a_fit_to_it_alone_makes_of_it():
    noisy = np.array([700.0, -60.0, 350.0])
    domain, measured = Domain(("a",), (3,)), [Measurement(("a",), noisy, 90.0)]
    alone, both = (
        fit(domain, measured, total=1000.0, prior=prior, tolerance=1e-9)
        for prior in ("uniform", "columns")
    )
    assert both.marginal(("a",)) == pytest.approx(alone.marginal(("a",)), abs=0.1)


@pytest.mark.parametrize("scale", [0.01, 5.0, 400.0, 1e5])
def test_fitted_counts_solve_the_equation_of_the_fit(scale):
    generator = np.random.default_rng(3)
    exact = np.array([990.0, 10.0, 0.0])
    noisy = exact + generator.normal(0, scale, (50, 3))
    entropy = min(max(3 * scale / 1000, 0.1), 1.0)
    counts = fitted_counts(noisy, scale, 1000.0)
    theta = np.log(counts)
    theta -= theta.mean(axis=1, keepdims=True)
    values = noisy + (1000 - noisy.sum(axis=1, keepdims=True)) / 3
    left = counts - values + entropy * scale * theta
    assert counts.sum(axis=1) == pytest.approx(np.full(50, 1000.0))
    assert left == pytest.approx(np.zeros((50, 3)), abs=1e-6 * max(scale, 1.0))


@pytest.mark.parametrize("cells", [1, 2, ENOUGH_CELLS - 1, ENOUGH_CELLS, 40])
def test_several_answers_at_once_are_as_one_after_the_other(cells):
    noisy = np.random.default_rng(4).normal(TOTAL / cells, 20 * SCALE, (6, cells))
    together = likely_answers(noisy, SCALE, TOTAL)
    for place, one in enumerate(noisy):
        alone = likely_answers(one, SCALE, TOTAL)
        assert together.answers[place] == pytest.approx(alone.answers)
        assert together.counts[place] == pytest.approx(alone.counts)


def test_the_pull_is_towards_the_product_of_the_likely_counts():
    """tau * s^2 * theta = answer - M p, with theta what is added to the prior's potentials."""
    generator = np.random.default_rng(1)
    domain = Domain(("a", "b"), (6, 4))
    measured = [
        Measurement(("a",), generator.normal(TOTAL / 6, 400, 6), 30.0),
        Measurement(("b",), generator.normal(TOTAL / 4, 400, 4), 30.0),
        Measurement(("a", "b"), generator.normal(TOTAL / 24, 150, (6, 4)), 50.0),
    ]
    entropy = 0.7
    report = fit_report(
        domain, measured, total=TOTAL, entropy=entropy, prior="columns", tolerance=1e-8
    )
    cells = np.array([6, 4, 24])
    tau = entropy / np.sqrt(cells @ np.array([30.0**2, 30.0**2, 50.0**2]) / cells.sum())
    answers, base = towards_columns(measured, TOTAL)
    potentials = {frozenset(potential.columns): potential for potential in report.model.potentials}
    for part in answers:
        theta = potentials[frozenset(part.columns)].transpose(part.columns).values
        theta = theta - base.get(part.columns, 0.0)
        residual = part.values - report.model.marginal(part.columns)
        assert tau * part.scale**2 * theta == pytest.approx(residual, abs=0.1)


def test_what_is_measured_with_hardly_any_noise_is_kept():
    domain = Domain(("a", "b"), (3, 2))
    exact = np.array([[300.0, 200.0], [100.0, 250.0], [100.0, 50.0]])
    measured = [
        Measurement(("a",), exact.sum(axis=1), 0.01),
        Measurement(("b",), exact.sum(axis=0), 0.01),
        Measurement(("a", "b"), exact, 0.01),
    ]
    model = fit(domain, measured, prior="columns")
    assert model.marginal(("a", "b")) == pytest.approx(exact, abs=0.1)
