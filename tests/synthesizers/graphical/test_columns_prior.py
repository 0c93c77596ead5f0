"""The columns as a prior: likely counts are closer than noisy ones, and fits are pulled to them."""

import numpy as np
import pytest

from counterpoise.synthesizers.graphical import Domain, Measurement, fit, fit_report
from counterpoise.synthesizers.graphical.columns_prior import likely_counts, towards_columns

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
        counts = likely_counts(noisy, SCALE, TOTAL)
        assert counts.min() > 0
        assert counts.sum() == pytest.approx(TOTAL)
        likely += np.abs(counts - exact).sum()
        alone = fit(domain, [Measurement(("a",), noisy, SCALE)], total=TOTAL).marginal(("a",))
        fitted += np.abs(alone - exact).sum()
    assert likely < 0.8 * fitted


def test_counts_far_above_the_noise_stay_where_they_are():
    exact = np.array([3000.0, 1500.0, 500.0])
    assert likely_counts(exact, 5.0, TOTAL) == pytest.approx(exact, abs=1.0)


def test_equal_answers_have_equal_counts_and_larger_ones_larger_counts():
    noisy = np.array([60.0, -30.0, 60.0, 250.0, 0.0, -30.0])
    counts = likely_counts(noisy, SCALE, 300.0)
    assert counts[0] == counts[2]
    assert counts[1] == counts[5]
    order = counts[[1, 4, 0, 3]]
    assert (np.diff(order) > 0).all()


def test_a_column_of_one_value_has_all_rows():
    assert likely_counts(np.array([-20.0]), SCALE, TOTAL) == pytest.approx([TOTAL])


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
    answers, base = towards_columns(measured, TOTAL)
    cells = np.array([6, 4, 24])
    tau = entropy / np.sqrt(cells @ np.array([30.0**2, 30.0**2, 50.0**2]) / cells.sum())
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
