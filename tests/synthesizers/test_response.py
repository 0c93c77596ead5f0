"""A model's linear response: what a refit to changed measurements would have made, without it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Aim, Marginals
from counterpoise.synthesizers.graphical import Measurement, fit
from counterpoise.synthesizers.graphical.measurements import combine
from counterpoise.synthesizers.redraw import Remeasurement, Table, cell_totals, rake
from counterpoise.synthesizers.response import Response, _centred_values
from counterpoise.vault import Budget, Vault

SCHEMA = Schema(
    [
        Column.continuous("x", 0, 1, bins=10),
        Column.categorical("group", ["a", "b", "c"]),
        Column.boolean("ill"),
        Column.boolean("old"),
    ]
)


def fitted(synthesizer, rows: int = 5000, seed: int = 0, epsilon: float = 1.0):
    generator = np.random.default_rng(seed)
    x = generator.beta(2, 3, rows)
    old = generator.random(rows) < x
    group = np.where(old, "a", generator.choice(["a", "b", "c"], rows))
    table = pd.DataFrame({"x": x, "group": group, "ill": generator.random(rows) < x, "old": old})
    with Vault(table, SCHEMA, Budget(epsilon, 1e-6), seed=seed) as vault:
        return synthesizer.fit(vault, vault.budget.whole)


@pytest.mark.parametrize(
    "synthesizer",
    [Aim(), Marginals(workload=(("x", "ill"), ("group", "old"), ("x", "old"), ("x",)))],
    ids=["aim", "chain"],
)
def test_tables_move_as_those_of_a_refit(synthesizer):
    """Seeded. What lies between the two is a part of how far either moves, table by table."""
    model = fitted(synthesizer)
    graph, generator = model.graph, np.random.default_rng(1)
    codes = SCHEMA.encode(model.sample(20_000, seed=2)).codes
    response = Response.of(graph, model.measured, codes, model.prior)
    merged = combine(graph.domain, model.measured)
    noise = [generator.normal(scale=part.scale, size=part.values.shape) for part in merged]
    changes = np.concatenate([part.reshape(-1) for part in noise])[:, None]
    weights = response.redrawn(changes).weights(codes, np.ones((len(codes), 1)))[:, 0]
    assert weights.mean() == pytest.approx(1.0, abs=1e-4)
    refitted = fit(
        graph.domain,
        [
            Measurement(part.columns, graph.marginal(part.columns) + more, part.scale)
            for part, more in zip(merged, noise, strict=True)
        ],
        total=graph.total,
        prior=model.prior,
        tolerance=1e-6,
        iterations=2000,
    )
    moved, apart = 0.0, 0.0
    for part, table in zip(merged, response.tables, strict=True):
        before, after = (g.marginal(part.columns).reshape(-1) / g.total for g in (graph, refitted))
        answered = np.bincount(table.cells, weights, minlength=table.size) / len(codes)
        moved += np.abs(after - before).sum()
        apart += np.abs(after - answered).sum()
    assert apart < 0.5 * moved


def test_without_a_change_only_the_pull_moves_a_table():
    """Towards the uniform, and by no more than the noise."""
    model = fitted(Marginals(workload=(("x",),)))
    codes = SCHEMA.encode(model.sample(20_000, seed=2)).codes
    response = Response.of(model.graph, model.measured, codes)
    still = response.redrawn(np.zeros((len(response.expected), 1)))
    weights = still.weights(codes, np.ones((len(codes), 1)))
    [place] = [i for i, table in enumerate(response.tables) if table.size == 10]
    table = response.tables[place]
    before = model.graph.marginal(("x",)) / model.graph.total
    after = np.bincount(table.cells, weights[:, 0], minlength=10) / len(codes)
    entropies = [-(part[part > 0] * np.log(part[part > 0])).sum() for part in (before, after)]
    assert entropies[1] > entropies[0]
    assert np.abs(after - before).max() < 3 * table.deviation / model.graph.total


def test_without_a_change_a_model_near_its_prior_hardly_moves():
    """Towards likely counts, not towards the uniform."""
    model = fitted(Aim(degree=1))
    codes = SCHEMA.encode(model.sample(20_000, seed=2)).codes
    moved = []
    for prior in (model.prior, "uniform"):
        response = Response.of(model.graph, model.measured, codes, prior)
        still = response.redrawn(np.zeros((len(response.expected), 1)))
        weights = still.weights(codes, np.ones((len(codes), 1)))
        moved.append(np.abs(weights - 1).mean())
    assert moved[0] < 0.3 * moved[1]


def test_columns_of_much_noise_move_as_in_refits():
    """Seeded: 40 draws of the noise. A prior that the answers make moves with them."""
    model = fitted(Aim(degree=1), rows=1000, epsilon=0.1)
    graph, generator = model.graph, np.random.default_rng(3)
    merged = combine(graph.domain, model.measured)
    codes = SCHEMA.encode(model.sample(20_000, seed=2)).codes
    response = Response.of(graph, model.measured, codes, model.prior)
    noise = [generator.normal(0, part.scale, (40, *part.values.shape)) for part in merged]
    found = response.redrawn(np.concatenate([part.T for part in noise]))
    refits = []
    for draw in range(40):
        changed = [
            replace(part, values=part.values + more[draw])
            for part, more in zip(merged, noise, strict=True)
        ]
        refitted = fit(graph.domain, changed, total=graph.total, prior=model.prior)
        refits.append(refitted.marginals([part.columns for part in merged]))
    for moved, part in zip(found.counts, zip(*refits, strict=True), strict=True):
        assert np.corrcoef(moved.T.ravel(), np.ravel(part))[0, 1] > 0.92
        assert 0.8 < moved.std(axis=1).sum() / np.std(part, axis=0).sum() < 1.25


def test_fresh_samples_and_noise_shift_the_counts():
    """Seeded: multinomial variance and the noise's, known to a tenth from 2,000 replicates."""
    generator = np.random.default_rng(0)
    cells = np.repeat([0, 1], [300, 700])
    resample = generator.multinomial(500, np.full(1000, 1e-3), size=2000).T * 2.0
    again = Remeasurement(cells[:, None], resample, np.ones(1000), 500.0, generator)
    found = again.shifts([Table(cells, 2, 5.0)])
    assert found.shape == (2, 2000)
    assert found.mean(axis=1) == pytest.approx([0, 0], abs=1.5)
    assert found.var(axis=1) == pytest.approx([500 * 0.21 + 25] * 2, rel=0.15)
    assert np.corrcoef(found)[0, 1] < -0.5  # a fixed number of rows: one's gain, another's loss


def test_raked_weights_have_the_totals_of_the_tables():
    generator = np.random.default_rng(0)
    cells = [generator.integers(0, 4, 5000), generator.integers(0, 3, 5000)]
    tables = [np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 1.0, 4.0]]).T]
    tables.append(np.array([[5.0, 3.0, 2.0], [2.0, 2.0, 6.0]]).T)
    found = rake(generator.uniform(0.5, 2, (5000, 2)), cells, tables)
    assert found.mean(axis=0) == pytest.approx([1.0, 1.0])
    for cell, table in zip(cells, tables, strict=True):
        assert cell_totals(cell, len(table), found) / 5000 == pytest.approx(table / 10, rel=0.02)
        # Single precision is enough where the tables are in proportion to the rows.
        single = rake(found.astype(np.float32), cells, [500 * each for each in tables])
        assert single == pytest.approx(found, rel=0.01)


def test_totals_of_cells_are_those_of_one_column_after_the_other():
    generator = np.random.default_rng(1)
    cells, weights = generator.integers(0, 7, 10_000), generator.uniform(size=(10_000, 3))
    found = cell_totals(cells, 9, weights.astype(np.float32))
    expected = np.stack([np.bincount(cells, column, minlength=9) for column in weights.T], axis=1)
    # Sums of thousands of rows in single precision, far below what so many rows can tell.
    assert found == pytest.approx(expected, rel=5e-6)


def test_nothing_to_rake_to_leaves_rows_alike():
    weights, table = (
        np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]),
        np.array([[1.0, 2.0], [1.0, 2.0]]),
    )
    found = rake(weights, [np.array([0, 0, 1])], [table])
    assert found.T.tolist() == [[1, 1, 1], [1.5, 0, 1.5]]


@pytest.mark.parametrize(("rows", "cells"), [(40, 90), (90, 40)])
def test_few_rows_and_few_cells_are_solved_alike(rows, cells):
    generator = np.random.default_rng(0)
    indicators = (generator.random((rows, cells)) < 0.2).astype(float)
    penalty, right = 0.1 + generator.random(cells), generator.normal(size=(cells, 3))
    centred = indicators - indicators.mean(axis=0)
    expected = centred @ np.linalg.solve(7 * centred.T @ centred + np.diag(penalty), right)
    found = _centred_values(sparse.csr_array(indicators), 7.0, penalty, right)
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("penalty", [1e-1, 1e-5, 1e-9])
def test_single_precision_leads_to_the_solution_in_double_precision(penalty):
    """Counts of a million rows, whose factor by itself would lose the small penalty."""
    generator = np.random.default_rng(0)
    indicators = (generator.random((300, 60)) < 0.3).astype(float)
    right = generator.normal(size=(60, 3))
    centred = indicators - indicators.mean(axis=0)
    matrix = 3000 * centred.T @ centred + penalty * np.eye(60)
    expected = centred @ np.linalg.solve(matrix, right)
    scale = np.abs(expected).max()
    found = _centred_values(sparse.csr_array(indicators), 3000.0, np.full(60, penalty), right)
    assert found / scale == pytest.approx(expected / scale, abs=1e-6)
    # Twice the same columns: only the penalty tells them apart.
    twice = _centred_values(
        sparse.csr_array(np.hstack([indicators, indicators])),
        3000.0,
        np.full(120, penalty),
        np.vstack([right, right]),
    )
    halved = 3000 * centred.T @ centred + penalty / 2 * np.eye(60)
    expected = centred @ np.linalg.solve(halved, right)
    assert twice / scale == pytest.approx(expected / scale, abs=1e-3)


def test_a_penalty_lost_in_rounding_leaves_the_rows_where_the_counts_put_them():
    # Two columns of two values, twelve rows: with hardly any noise the system is singular in
    # floating point, and its answer the limit of those with a little more.
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3)
    each = np.concatenate([np.eye(2)[codes[:, 0]], np.eye(2)[codes[:, 1]]], axis=1)
    rows, right = sparse.csr_array(each), np.array([[1.0], [-1.0], [0.5], [-0.5]])
    for part in (rows, rows[:3]):
        expected = _centred_values(part, 5.0, np.full(4, 1e-6), right)
        for penalty in (1e-18, 1e-40, 1e-200):
            found = _centred_values(part, 5.0, np.full(4, penalty), right)
            assert found == pytest.approx(expected, abs=1e-3)
