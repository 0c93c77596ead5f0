"""Tails beyond what stands clear of the noise: where they are, how long, and how sure."""

import numpy as np
import pytest

from counterpoise.schema import Column, NoisyCells, denoised, fine_grid
from counterpoise.schema.tails import _masses, tail, unlocated

DEVIATION = 45.0


def described(column, values, seed=0, cells=160, deviation=DEVIATION):
    """A grid, and what a noisy answer says of values on it."""
    generator = np.random.default_rng(seed)
    grid = fine_grid(column, cells)
    exact = np.bincount(
        np.searchsorted(grid.edges[1:-1], values, side="right"), minlength=len(grid.atoms)
    )
    held = np.bincount(grid.groups, exact)
    noisy = [each + generator.normal(0, deviation, len(each)) for each in (exact, held)]
    answer = NoisyCells.of(*noisy, grid.groups, deviation)
    return grid, answer, denoised(grid, answer, len(values))


def mean_of(grid, found):
    middles = (grid.edges[:-1] + grid.edges[1:]) / 2
    return found.rows @ middles / found.rows.sum()


@pytest.mark.parametrize("wide", [1, 100])
def test_the_mean_of_skewed_money_is_not_cut(wide):
    column = Column.continuous("pay", 0, 500_000 * wide)
    errors = []
    for seed in range(12):
        values = np.random.default_rng(seed).lognormal(9.5, 1, 5000)
        grid, _, found = described(column, values, seed)
        errors.append(mean_of(grid, found) / values.mean() - 1)
    assert abs(np.mean(errors)) < 0.08
    assert np.sqrt(np.mean(np.square(errors))) < 0.2


def test_a_column_that_ends_abruptly_has_hardly_a_tail():
    values = np.random.default_rng(1).uniform(20, 60, 20_000)
    grid, _, found = described(Column.continuous("x", 0, 200), values)
    beyond = grid.edges[:-1] > 65
    assert found.rows[beyond].sum() < 0.01 * found.rows.sum()


def test_a_tail_is_one_piece_with_an_error_of_its_own():
    values = np.random.default_rng(2).lognormal(8, 1.2, 5000)
    grid, _, found = described(Column.continuous("x", 0, 1e6), values)
    last = found.pieces.max()
    cells = np.flatnonzero(found.pieces == last)
    falling = found.rows[cells] / grid.measures[cells]
    assert (np.diff(falling[: len(cells) // 2]) < 0).all()
    assert found.errors[last] > 0 and found.slopes[last] == 1
    assert len(found.errors) == len(found.slopes) == last + 1


def test_counts_beyond_what_stands_make_a_tail_longer():
    grid = fine_grid(Column.continuous("x", 0, 1e6), 160)
    rows, pieces = np.zeros(len(grid.atoms)), np.full(len(grid.atoms), -1)
    cells = slice(60, 80)
    rows[cells], pieces[cells] = 50.0, 60
    held = []
    for more in (0.0, 40.0):
        counts = rows.copy()
        counts[80:96] += more
        answer = NoisyCells.alone(counts, DEVIATION)
        found = tail(grid, answer, rows, pieces, 1)
        held.append(found.rows.sum())
        assert (found.rows[:80] == 0).all()
    assert held[1] > 1.5 * held[0]


ZEROS = Column.integer("grant", 0, 99_999)


def mostly_zero(seed, share=0.04, rows=5000):
    generator = np.random.default_rng(seed)
    amounts = np.clip(generator.lognormal(8.6, 0.9, rows), 1, 99_999).astype(int)
    return np.where(generator.random(rows) < share, amounts, 0)


def test_amounts_that_hardly_anybody_has_are_neither_lost_nor_spread_over_their_bounds():
    """No cell above zero stands out; how many rows are there is known, and roughly where."""
    means, errors = [], []
    for seed in range(20):
        values = mostly_zero(seed)
        grid, _, found = described(ZEROS, values, seed)
        above = grid.edges[:-1] > 0
        assert (found.slopes[np.unique(found.pieces[above & (found.rows > 0)])] == 1).any()
        means.append(mean_of(grid, found) / values.mean() - 1)
        middles = (grid.edges[:-1] + grid.edges[1:]) / 2
        by_piece = np.bincount(np.maximum(found.pieces, 0), found.rows * middles)
        parts = np.bincount(np.maximum(found.pieces, 0), found.rows)
        centres = by_piece / np.maximum(parts, 1e-9)
        errors.append(np.hypot(*[0, np.linalg.norm(found.errors * centres)]) / len(values))
    # Spread evenly over the bounds they would be five times too large.
    assert np.sqrt(np.mean(np.square(means))) < 1.5
    # What is not known of where they are is in the errors of their pieces.
    off = np.abs(np.array(means) * 325) / np.array(errors)
    assert 0.2 < np.sqrt(np.mean(off**2)) < 1.5


def test_where_nothing_but_zeros_stands_a_mean_is_never_certain():
    values = np.zeros(5000, dtype=int)
    found = [described(ZEROS, values, seed)[2] for seed in range(5)]
    assert all(each.errors[1:].any() for each in found)
    assert all(each.rows[0] > 4800 for each in found)


@pytest.mark.parametrize("missing", [-150.0, 0.0, 40.0, 400.0])
def test_the_mass_of_a_bump_has_the_law_that_integration_gives(missing):
    precision, along = np.array([0.002, 0.0005, 0.01]), np.array([0.3, -0.05, 0.6])
    chances, first, second = _masses(precision, along, missing, 60.0, 4.0)
    expected = []
    for p, a in zip(precision, along, strict=True):
        highest = max(4.0 / np.sqrt(p), missing + 240.0)
        masses = np.linspace(0, highest, 200_001)
        # exp(-(M^2 q'Pq - 2 M q'Py) / 2) N(M; M0, e0^2), over that of no mass at all
        logs = a * masses - p * masses**2 / 2 + (2 * missing * masses - masses**2) / (2 * 60.0**2)
        law = np.exp(logs)
        whole = np.trapezoid(law, masses)
        means = [np.trapezoid(law * masses**power, masses) / whole for power in (1, 2)]
        expected.append((whole / highest, *means))
    evidence, means, squares = np.transpose(expected)
    assert chances == pytest.approx(evidence / (evidence.sum() + 3), rel=1e-4)
    assert first == pytest.approx(means, rel=1e-4)
    assert second == pytest.approx(squares, rel=1e-4)


def test_rows_that_nothing_located_are_put_where_the_counts_have_more():
    grid = fine_grid(Column.continuous("x", 0, 4096), 60)
    generator = np.random.default_rng(5)
    free = ~grid.atoms & (grid.edges[:-1] > 1e-9)
    near = (grid.edges[:-1] > 20) & (grid.edges[:-1] < 80) & free
    counts = generator.normal(0, 10, len(free)) + 30.0 * near
    answer = NoisyCells.alone(counts, 10.0)
    found = unlocated(grid, answer, np.zeros(len(free)), free, (180.0, 60.0), 4.0)
    assert found.rows[near].sum() > 0.5 * found.rows.sum()
    assert 80 < found.rows.sum() < 250
    assert (found.rows[~free] == 0).all() and (found.pieces[~free] == -1).all()
    more = unlocated(grid, answer, np.zeros(len(free)), free, (240.0, 30.0), 4.0)
    assert more.rows.sum() > found.rows.sum() + 10


def test_rows_add_up_to_the_number_that_is_known():
    values = np.random.default_rng(3).gamma(3, 20, 5000)
    _, _, found = described(Column.continuous("x", 0, 1000), values)
    assert found.rows.sum() == pytest.approx(5000, rel=0.02)
    assert (found.rows >= 0).all() and ((found.rows > 0) == (found.pieces >= 0)).all()
