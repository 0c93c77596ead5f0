"""Sums and fits with all replicates at once, against the same with one after the other."""

import numpy as np
import pytest
from scipy import sparse

from counterpoise.analysis import replicate_fits, replication
from counterpoise.analysis.columns import Groups
from counterpoise.analysis.replicate_fits import fit_replicates
from counterpoise.analysis.replication import Design
from counterpoise.formulas.likelihood import FAMILIES, Multinomial, Numeric, maximise

ROWS, REPLICATES = 2000, 7


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of which the rows are no multiple."""
    monkeypatch.setattr(replication, "_NUMBERS_AT_ONCE", 301 * REPLICATES)


def made_design(order="F", spread=4.0, dtype=np.float32):
    generator = np.random.default_rng(1)
    replicates = generator.gamma(spread, 1 / spread, size=(ROWS, REPLICATES)).astype(dtype)
    return Design(generator.gamma(4.0, 0.25, size=ROWS), np.asarray(replicates, order=order))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("groups", [1, 3, 40])
def test_sums_are_those_of_one_weighting_after_the_other(order, groups):
    design, generator = made_design(order), np.random.default_rng(2)
    values = np.where(generator.random(ROWS) < 0.2, 0.0, generator.normal(size=ROWS))
    members = generator.integers(-1, groups, ROWS)
    lines = np.stack([np.where(members == place, values, 0.0) for place in range(groups)])
    expected = np.array([lines @ each.astype(float) for each in design.each()]).T
    grouped = Groups(("a",), tuple((place,) for place in range(groups)), members)
    assert sparse.issparse(grouped.lines(values))
    for form in (lines, sparse.csr_array(lines), grouped.lines(values)):
        assert design.sums(form) == pytest.approx(expected, rel=1e-12, abs=1e-10)
    both = design.several_sums(lines, lines[:1] ** 2)
    assert np.array_equal(both[0], design.sums(lines))
    assert np.array_equal(both[1], design.sums(lines[:1] ** 2))


def test_without_groups_there_is_one_line():
    values = np.arange(5.0)
    lines = Groups((), ((),), np.zeros(5, dtype=int)).lines(values)
    assert np.asarray(lines).tolist() == [values.tolist()]


def made_likelihood(family, rows):
    generator = np.random.default_rng(3)
    x = np.column_stack([np.ones(ROWS), generator.normal(size=(ROWS, 2))])[rows]
    eta = x @ [-0.3, 0.8, -0.5]
    if family == "multinomial":
        return Multinomial(x, generator.integers(0, 3, len(x)), 3)
    y = {
        "gaussian": lambda: eta + generator.normal(size=len(x)),
        "binomial": lambda: (generator.random(len(x)) < 1 / (1 + np.exp(-eta))).astype(float),
        "poisson": lambda: generator.poisson(np.exp(eta)).astype(float),
    }[family]()
    return Numeric(x, y, FAMILIES[family])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("left_out", [0, 150])
@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "multinomial"])
def test_fits_are_those_of_one_replicate_after_the_other(family, left_out, order):
    design, rows = made_design(order), np.arange(left_out, ROWS)
    likelihood = made_likelihood(family, rows)
    weights = design.weights[rows]
    start = maximise(likelihood, weights, likelihood.start(weights))
    found = fit_replicates(likelihood, design, rows, start)
    for replicate, beta in enumerate(found):
        alone = maximise(likelihood, design.replicates[rows, replicate].astype(float), start)
        assert beta == pytest.approx(alone, rel=1e-9)
        assert np.abs(beta - start).max() > 1e-3


def test_replicates_that_move_far_are_fitted_by_themselves(monkeypatch):
    # Nearly all of the weight on a few rows of a model that is steep there.
    design, rows = made_design(spread=0.003, dtype=float), np.arange(ROWS)
    likelihood = made_likelihood("poisson", rows)
    start = maximise(likelihood, design.weights, likelihood.start(design.weights))
    alone = []

    def seen(likelihood, weights, start):
        alone.append(len(weights))
        return maximise(likelihood, weights, start)

    monkeypatch.setattr(replicate_fits, "maximise", seen)
    found = fit_replicates(likelihood, design, rows, start)
    assert alone
    for replicate, beta in enumerate(found):
        one = maximise(likelihood, design.replicates[:, replicate], start)
        assert beta == pytest.approx(one, rel=1e-9)


def test_a_replicate_that_has_no_fit_has_none():
    design, rows = made_design(), np.arange(ROWS)
    likelihood = made_likelihood("binomial", rows)
    start = maximise(likelihood, design.weights, likelihood.start(design.weights))
    # All rows of one answer, and none at all.
    design.replicates[:, 2] = np.where(likelihood.y > 0, 1.0, 0.0)
    design.replicates[:, 4] = 0.0
    found = fit_replicates(likelihood, design, rows, start)
    assert [place for place, beta in enumerate(found) if beta is None] == [2, 4]
