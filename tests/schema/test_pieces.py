"""What a noisy histogram shows: pieces, what is empty, coarse cells, and the shape within them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoise.schema import Column, NoisyCells, Schema, denoised, fine_grid, settled
from counterpoise.schema.coarse import coarse_starts
from counterpoise.schema.grids import Grid
from counterpoise.schema.pieces import fewest_pieces
from tests.schema.schema_strategies import numeric_columns

ROWS, DEVIATION = 20_000, 60.0


def counted(column, values, seed=0, deviation=DEVIATION, cells=400):
    """A grid, and noisy counts of values on it and on its groups."""
    grid = fine_grid(column, cells)
    clipped = np.clip(values, column.low, column.high)
    places = np.searchsorted(grid.edges[1:-1], clipped, side="right")
    exact = np.bincount(places, minlength=len(grid.atoms))
    return grid, noised(grid, exact, np.random.default_rng(seed), deviation)


def noised(grid, exact, generator, deviation):
    grouped = np.bincount(grid.groups, exact)
    counts, held = (
        np.rint(each + generator.normal(0, deviation, len(each))) for each in (exact, grouped)
    )
    return NoisyCells.of(counts, held, grid.groups, deviation)


def released(column, values, coarse=17, seed=0, **options):
    """The column that is settled on, and values decoded in it with the true coarse counts."""
    grid, noisy = counted(column, values, seed, **options)
    chosen = settled(column, grid, denoised(grid, noisy, len(values)), coarse)
    schema = Schema([chosen])
    codes = schema.encode(pd.DataFrame({column.name: values})).codes
    made = schema.decode(codes, np.random.default_rng(seed + 1))
    np.testing.assert_array_equal(schema.encode(made).codes, codes)
    return chosen, made[column.name].to_numpy()


def worst_quantile(made, values):
    truth = np.quantile(values, [0.1, 0.5, 0.9])
    return np.abs(np.quantile(made, [0.1, 0.5, 0.9]) - truth).max() / (truth[2] - truth[0])


def test_the_fewest_pieces_are_those_of_an_exhaustive_search():
    generator = np.random.default_rng(0)
    counts = np.rint(generator.normal([5, 5, 5, 40, 40, 0, 0, 0], 3))
    measures = generator.uniform(0.5, 2, 8)

    def cost(cuts):
        ends = [0, *cuts, 8]
        total = 30.0 * (len(ends) - 1)
        for start, end in itertools.pairwise(ends):
            m, y = measures[start:end], counts[start:end]
            total += ((y - m * (m @ y) / (m @ m)) ** 2).sum()
        return total

    sets = [[place + 1 for place in range(7) if mask >> place & 1] for mask in range(2**7)]
    best = min(sets, key=cost)
    answer = NoisyCells.alone(counts, 1.0)
    assert [start for start, _ in fewest_pieces(answer, measures, 0, 8, 30.0)] == [0, *best]


@pytest.mark.parametrize("wide", [1, 10, 100])
def test_quantiles_of_skewed_money_survive_generous_bounds(wide):
    values = np.random.default_rng(1).lognormal(9.5, 1, ROWS)
    column = Column.continuous("pay", 0, 500_000 * wide)
    chosen, made = released(column, values, seed=1)
    assert worst_quantile(made, values) < 0.03
    assert made.mean() == pytest.approx(values.mean(), rel=0.15)
    assert chosen.cells <= 20
    # Bins of equal width see one bin, and less.
    equal = Schema([Column.continuous("pay", 0, 500_000 * wide, bins=32)])
    spread = equal.decode(
        equal.encode(pd.DataFrame({"pay": values})).codes, np.random.default_rng(2)
    )["pay"]
    assert worst_quantile(spread.to_numpy(), values) > (0.02 if wide == 1 else 1)


def test_a_column_that_is_mostly_zero_keeps_its_zeros_exactly():
    generator = np.random.default_rng(3)
    values = np.where(generator.random(ROWS) < 0.7, 0.0, generator.lognormal(6, 1, ROWS))
    chosen, made = released(Column.continuous("benefit", 0, 1e6), values)
    assert chosen.code_labels()[0] == "0"
    assert (made == 0).mean() == pytest.approx(0.7, abs=0.01)
    assert np.median(made[made > 0]) == pytest.approx(np.median(values[values > 0]), rel=0.1)


def test_heaped_integers_stay_heaped():
    generator = np.random.default_rng(4)
    hours = (np.round(generator.gamma(3, 10, ROWS) / 5) * 5).astype(int)
    _, made = released(Column.integer("hours", 0, 168), hours)
    assert (made % 5 == 0).mean() > 0.9


def test_spikes_are_bins_of_their_own():
    generator = np.random.default_rng(5)
    weeks = generator.choice([0, 52, 20, 30], ROWS, p=[0.3, 0.5, 0.1, 0.1])
    chosen, _ = released(Column.integer("weeks", 0, 52), weeks)
    spikes = Schema([chosen]).encode(pd.DataFrame({"weeks": [0, 20, 30, 52]})).codes[:, 0]
    assert len(set(spikes.tolist())) == 4
    assert chosen.cells < 15


def test_an_empty_gap_stays_empty():
    generator = np.random.default_rng(6)
    values = np.where(
        generator.random(ROWS) < 0.4, generator.normal(20, 2, ROWS), generator.normal(80, 3, ROWS)
    )
    _, made = released(Column.continuous("score", 0, 100), values)
    assert ((made > 30) & (made < 65)).mean() < 0.01


def test_noise_alone_is_spread_over_all_orders_of_magnitude():
    column = Column.continuous("x", 0, 1000)
    grid, noisy = counted(column, np.array([500.0]))
    shown = denoised(grid, noisy, 1)
    assert (shown.rows > 0).mean() > 0.95
    assert 0.05 < shown.rows[grid.edges[:-1] > 100].sum() / shown.rows.sum() < 0.6


def test_noise_alone_is_spread_over_a_range_far_from_zero():
    column = Column.continuous("x", 1000, 2000)
    grid, noisy = counted(column, np.array([1500.0]))
    np.testing.assert_allclose(denoised(grid, noisy, 1).rows, np.diff(grid.edges))


def test_few_pieces_describe_noise_around_a_flat_density():
    values = np.random.default_rng(7).uniform(30, 45, ROWS)
    chosen, _ = released(Column.continuous("latitude", 30, 45), values, coarse=16)
    assert chosen.cells == 16
    # Next to the edges of the bins hardly any more are needed.
    assert len(chosen.shape.shares) <= 20
    np.testing.assert_allclose(np.diff(chosen.edges), 15 / 16, rtol=0.1)


def test_a_stretch_without_rows_goes_with_its_neighbour():
    column = Column.continuous("x", 0, 100)
    grid = fine_grid(column, 100)
    middle = (grid.edges[:-1] + grid.edges[1:]) / 2
    rows = np.where((middle > 40) & (middle < 60), 100.0, 0.0)
    starts = coarse_starts(grid, rows, 10)
    held = np.add.reduceat(rows, starts) / rows.sum()
    assert (held > 1 / 40).all()
    assert 8 <= len(starts) <= 11


def test_an_empty_stretch_before_a_spike_is_no_bin_of_its_own():
    delays = np.random.default_rng(8).choice([-3, 0, 7, 30], ROWS, p=[0.4, 0.3, 0.2, 0.1])
    chosen, _ = released(Column.integer("delay", -70_000, 70_000), delays)
    held = np.add.reduceat(
        np.array(chosen.shape.shares), np.searchsorted(chosen.shape.edges, chosen.bins[:-1])
    )
    assert (held > 0.001).all()


def within_cells(grid, rows, starts):
    """The part of the variance that is left within coarse cells."""
    middles = (grid.edges[:-1] + grid.edges[1:]) / 2
    cells = np.searchsorted(starts, np.arange(len(rows)), side="right") - 1
    held = np.bincount(cells, rows)
    means = np.bincount(cells, rows * middles) / np.maximum(held, 1e-9)
    mean = rows @ middles / rows.sum()
    return rows @ (middles - means[cells]) ** 2 / (rows @ (middles - mean) ** 2)


def waiting_times(noise):
    """Rows of an exponential law between bounds 30 times too wide, on the grid."""
    values = np.random.default_rng(3).exponential(30, 20_000)
    grid, noisy = counted(Column.continuous("wait", 0, 5000), values, deviation=noise)
    places = np.searchsorted(grid.edges[1:-1], values, side="right")
    exact = np.bincount(places, minlength=len(grid.atoms))
    return grid, exact, denoised(grid, noisy, len(values)).rows


def test_coarse_cells_leave_little_variance_within_them():
    grid, exact, rows = waiting_times(noise=40.0)
    starts = coarse_starts(grid, rows, 12, deviation=40.0)
    assert within_cells(grid, exact, starts) < 0.05
    # Of as many cells with as many rows each, one has all of the tail, and more than twice that.
    ranks = np.cumsum(rows) / rows.sum()
    even = np.append(0, np.searchsorted(ranks, np.arange(1, 12) / 12))
    assert within_cells(grid, exact, even) > 0.08


def test_rows_that_are_all_at_one_value_are_a_coarse_cell():
    grid = fine_grid(Column.continuous("gain", 0, 100_000), 400)
    rows = np.where(grid.edges[:-1] == 0, 5000.0, 0.0)
    starts = coarse_starts(grid, rows, 10, deviation=40.0)
    assert np.add.reduceat(rows, starts).max() == 5000


@pytest.mark.parametrize("noise", [40.0, 400.0, 1500.0])
def test_a_coarse_cell_stands_clear_of_the_noise(noise):
    grid, _, rows = waiting_times(noise=40.0)
    starts = coarse_starts(grid, rows, 12, deviation=noise)
    held = np.add.reduceat(rows, starts)
    assert held.min() >= 2 * noise
    # As many as the noise allows, and no more than were asked for
    assert len(starts) >= min(10, 20_000 / (2 * noise) / 3)
    assert len(starts) <= 13


@settings(max_examples=25)
@example(Column.continuous("x", -5e11, 4.6e-255, nullable=True), 3655866, 0.5)
@given(numeric_columns("x"), st.integers(0, 2**32), st.sampled_from([0.5, 5.0, 500.0]))
def test_whatever_the_counts_are_the_coding_can_be_written_and_undone(column, seed, deviation):
    if column.bins is not None or column.low == column.high:
        return
    generator = np.random.default_rng(seed)
    grid = fine_grid(column, int(generator.integers(24, 200)))
    exact = np.zeros(len(grid.atoms))
    exact[generator.integers(0, len(exact), 3)] += 1000
    noisy = noised(grid, exact, generator, deviation)
    chosen = settled(column, grid, denoised(grid, noisy, 3000), 12)
    schema = Schema([chosen])
    assert Schema.from_dict(schema.to_dict()) == schema
    codes = generator.integers(0, chosen.size, 200)[:, None]
    np.testing.assert_array_equal(schema.encode(schema.decode(codes, generator)).codes, codes)


def true_lean(grid, found, piece, values):
    """How far values lean within a piece, by the ranks that it gives them: t of 1 + t (2u - 1)."""
    cells = np.flatnonzero(found.pieces == piece)
    place = np.searchsorted(grid.edges[1:-1], values, side="right")
    inside = np.isin(place, cells)
    before = np.append(0.0, np.cumsum(np.where(found.pieces == piece, found.rows, 0.0)))
    middles = (before[1:] + before[:-1]) / 2 / before[-1]
    return 6 * (middles[place[inside]].mean() - 0.5)


def test_a_piece_of_several_values_leans_though_each_of_them_is_known():
    values = np.random.default_rng(0).geometric(0.5, ROWS) - 1
    grid, answer = counted(Column.integer("x", 0, 60), values, deviation=250.0, cells=61)
    found = denoised(grid, answer, ROWS)
    several = [p for p in range(len(found.errors)) if (found.pieces == p).sum() > 1]
    assert several
    assert all(found.slopes[piece] > 0 for piece in several)
    ones = [p for p in range(len(found.errors)) if (found.pieces == p).sum() == 1]
    assert ones and all(found.slopes[piece] == 0 for piece in ones)
    # The density falls by half from value to value: so do the rows of a piece.
    for piece in several:
        rows = found.rows[found.pieces == piece]
        assert rows[0] > rows[-1]


def test_the_last_piece_falls_across_a_change_of_scale():
    """Above 30 cells are equal, below relative: what is known there is known beyond."""
    edges = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 52.0, 72.0, 92.0, 112.0])
    grid = Grid(edges, 32.0, np.zeros(9, dtype=bool))
    rows = np.array([0.0, 0.0, 0.0, 3000.0, 6000.0, 300.0, 300.0, 300.0, 300.0])
    found = denoised(grid, NoisyCells.alone(rows, 150.0), rows.sum())
    last = found.rows[5:]
    assert (np.diff(last) < 0).all()
    assert last[0] > 1.2 * last[-1]


def test_where_rows_end_is_less_known_than_what_lies_between():
    ends, between, leans = [], [], []
    for seed in range(30):
        values = np.random.default_rng(seed).normal(50, 14, 1000)
        grid, answer = counted(Column.continuous("x", 0, 200), values, seed, 35.0, 45)
        found = denoised(grid, answer, 1000)
        stands = np.flatnonzero((found.slopes < 1) & (found.slopes > 0))
        many = np.random.default_rng(99).normal(50, 14, 100_000)
        for piece in stands:
            if (found.pieces == piece).sum() < 2:
                continue
            is_end = piece in (stands[0], stands[-1])
            (ends if is_end else between).append(found.slopes[piece])
            leans.append(true_lean(grid, found, piece, many) / found.slopes[piece])
    assert np.mean(ends) > 1.3 * np.mean(between)
    # How far pieces lean in truth is what their slopes say.
    assert np.sqrt(np.mean(np.square(leans))) < 1.8
