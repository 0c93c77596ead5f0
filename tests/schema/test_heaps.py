"""Heaps: round numbers are counted by themselves, and kept where many rows share them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoise.schema import (
    Column,
    NoisyCells,
    Schema,
    denoised,
    described,
    fine_grid,
    provisional,
    settled,
    with_candidates,
)
from counterpoise.schema.files import connect
from counterpoise.schema.heaps import _without as without_heaps
from counterpoise.schema.pieces import standing
from tests.schema.schema_strategies import HARD_COLUMNS, numeric_columns

ROWS = 20_000
PAY = Column.continuous("pay", 0, 500_000)


def counted(grid, groups, values, deviation, seed):
    """Noisy counts of values in the cells of a grid, and in groups of them."""
    clipped = np.clip(values, grid.edges[0], grid.edges[-1])
    places = np.searchsorted(grid.edges[1:-1], clipped, side="right")
    exact = np.bincount(places, minlength=len(grid.atoms))
    return noised(exact, groups, deviation, np.random.default_rng(seed))


def noised(exact, groups, deviation, generator):
    both = exact, np.bincount(groups, exact)
    return [np.rint(each + generator.normal(0, deviation, len(each))) for each in both]


def shown(column, values, deviation=30.0, seed=0, cells=400):
    """The grid with the heaps that a noisy histogram of values shows, and the rows in its cells."""
    candidates = with_candidates(column, cells)
    counts = counted(candidates.grid, candidates.groups, values, deviation, seed)
    return described(candidates, *counts, deviation, len(values))


def released(column, values, coarse=17, seed=0, **options):
    chosen = settled(column, *shown(column, values, seed=seed, **options), coarse)
    schema = Schema([chosen])
    codes = schema.encode(pd.DataFrame({column.name: values})).codes
    made = schema.decode(codes, np.random.default_rng(seed + 1))
    np.testing.assert_array_equal(schema.encode(made).codes, codes)
    return chosen, made[column.name].to_numpy()


def heaps_of(column, grid, found):
    return set(grid.edges[:-1][grid.atoms & (found.rows > 0)].tolist()) - {column.low, column.high}


def pay(rows=ROWS, rounded=0.3, seed=1):
    """Lognormal pay, some of it rounded to thousands and as much to hundreds."""
    generator = np.random.default_rng(seed)
    exact, way = generator.lognormal(9.5, 1, rows), generator.random(rows)
    to_hundreds = np.where(way < 2 * rounded, exact.round(-2), exact)
    return np.where(way < rounded, exact.round(-3), to_hundreds)


@pytest.mark.parametrize("cells", [24, 120, 400])
@pytest.mark.parametrize(
    "column", [column for column in HARD_COLUMNS if column.is_numeric], ids=lambda each: each.name
)
def test_candidates_are_cut_out_of_cells_that_tile_the_range(column, cells):
    candidates = with_candidates(column, cells)
    base, grid = candidates.base, candidates.grid
    assert (np.diff(base.edges) > 0).all()
    assert (np.diff(grid.edges) > 0).all()
    assert len(base.edges) == len(fine_grid(column, cells).edges)
    assert set(base.edges.tolist()) <= set(grid.edges.tolist())
    left, right = grid.edges[:-1], grid.edges[1:]
    assert (base.edges[candidates.parents] <= left).all()
    assert (right <= base.edges[candidates.parents + 1]).all()
    assert (np.diff(candidates.parents) >= 0).all()
    assert candidates.chosen.sum() < cells
    assert (grid.atoms == (base.atoms[candidates.parents] | candidates.chosen)).all()
    np.testing.assert_array_equal(provisional(column, grid).edges, grid.edges)


@settings(max_examples=25)
@example(Column.continuous("x", -5e11, -5e-324, scale="log"), 200)
@given(numeric_columns("x"), st.integers(100, 400))
def test_numpy_and_sql_agree_on_every_cell_with_candidates(column, cells):
    candidates = with_candidates(column, cells)
    coded = provisional(column, candidates.grid)
    schema = Schema([coded])
    every = np.arange(coded.size)[:, None]
    table = schema.decode(every, np.random.default_rng(0))
    np.testing.assert_array_equal(schema.encode(table).codes, every)
    with connect() as connection:
        found = schema.encode(connection.from_df(table))
    np.testing.assert_array_equal(found.codes, every)
    if column.kind == "continuous":
        singles = candidates.grid.edges[:-1][candidates.chosen]
        np.testing.assert_array_equal(table["x"][: coded.cells][candidates.chosen], singles)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (PAY, {1000.0, 1200.0, 1500.0, 2500.0, 12_000.0, 35_000.0, 99_999.0, 9999.0, 200_000.0}),
        (Column.continuous("balance", -1e6, 1e6), {-500.0, 500.0, -1.0, -99.0, 20_000.0}),
        (Column.continuous("rate", 0, 1), {0.1, 0.3, 0.7, 0.05, 0.25, 0.002}),
        (Column.integer("age", 0, 1000), {60, 65, 70, 99, 100, 200, 999}),
        (Column.continuous("minutes", 0, 1440), {5.0, 15.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0}),
        (Column.continuous("latitude", 30, 45), {31.0, 35.0, 40.5}),
    ],
)
def test_round_numbers_and_words_for_unknown_are_candidates(column, expected):
    candidates = with_candidates(column, 400)
    assert expected <= set(candidates.grid.edges[:-1][candidates.chosen].tolist())


def test_dates_few_integers_and_few_cells_have_no_candidates():
    for column, cells in (
        (Column.date("day", "1990-01-01", "2030-01-01"), 400),
        (Column.integer("weeks", 0, 52), 400),
        (PAY, 60),
    ):
        candidates = with_candidates(column, cells)
        assert not candidates.chosen.any()
        np.testing.assert_array_equal(candidates.grid.edges, candidates.base.edges)


def test_heaped_pay_keeps_its_heaps_exactly():
    values = pay()
    heaps = heaps_of(PAY, *shown(PAY, values))
    assert {3000.0, 5000.0, 8000.0, 10_000.0, 12_000.0, 15_000.0} <= heaps
    _, made = released(PAY, values)
    for heap in (5000.0, 10_000.0, 15_000.0):
        assert (made == heap).mean() == pytest.approx((values == heap).mean(), abs=0.004)
    truth = np.quantile(values, [0.1, 0.5, 0.9])
    errors = np.abs(np.quantile(made, [0.1, 0.5, 0.9]) - truth) / (truth[2] - truth[0])
    assert errors.max() < 0.04


@pytest.mark.parametrize("deviation", [10.0, 70.0])
@pytest.mark.parametrize("whole", [False, True])
def test_a_smooth_column_has_no_heaps_and_as_little_noise_as_without_candidates(whole, deviation):
    values = np.random.default_rng(2).lognormal(9.5, 1, ROWS)
    column, values = (
        (Column.integer("pay", 0, 500_000), values.astype(int)) if whole else (PAY, values)
    )
    grid, found = shown(column, values, deviation)
    assert heaps_of(column, grid, found) == set()
    assert len(grid.edges) == len(fine_grid(column, 400).edges)
    plain = fine_grid(column, 400)
    noisy = counted(plain, plain.groups, values, deviation, 0)
    without = denoised(plain, NoisyCells.of(*noisy, plain.groups, deviation), ROWS)
    middle = np.quantile(values, 0.5)
    for cells, held in ((grid, found.rows), (plain, without.rows)):
        below = held[cells.edges[1:] <= middle].sum() / held.sum()
        assert below == pytest.approx(0.5, abs=0.05)


def test_an_integer_is_a_heap_only_above_its_neighbours():
    generator = np.random.default_rng(3)
    column = Column.integer("age", 0, 1000)
    even = generator.integers(40, 100, ROWS)
    assert heaps_of(column, *shown(column, even)) == set()
    heaped = np.where(generator.random(ROWS) < 0.2, even.round(-1), even)
    assert {50, 60, 70, 80, 90} <= heaps_of(column, *shown(column, heaped))


def test_all_rows_of_a_lattice_lie_on_it():
    hours = np.round(np.random.default_rng(4).gamma(3, 10, ROWS) / 5) * 5
    column = Column.continuous("hours", 0, 168)
    _, found = shown(column, hours)
    assert found.rows.sum() == pytest.approx(ROWS, rel=0.001)
    chosen, made = released(column, hours)
    assert (made % 5 == 0).all()
    assert made.mean() == pytest.approx(hours.mean(), rel=0.03)
    # Between the heaps there is nothing: no bins are spent on it.
    assert chosen.cells <= 20


def test_rows_beside_heaps_are_no_lattice():
    generator = np.random.default_rng(5)
    hours = np.round(generator.gamma(3, 10, ROWS) / 5) * 5
    hours = np.where(generator.random(ROWS) < 0.3, generator.gamma(3, 10, ROWS), hours)
    _, made = released(Column.continuous("hours", 0, 168), hours)
    assert (made % 5 != 0).mean() == pytest.approx(0.3, abs=0.05)


def test_lesser_heaps_are_kept_in_the_cells_that_they_were_cut_from():
    generator = np.random.default_rng(6)
    candidates = with_candidates(Column.continuous("x", 0, 20_000), 400)
    round_numbers = candidates.grid.edges[:-1][candidates.chosen]
    round_numbers = round_numbers[(round_numbers >= 1000) & (round_numbers < 5000)]
    # Heaps of two deviations each, none of which stands out by itself.
    heaps = np.repeat(round_numbers, 60)
    values = np.append(generator.uniform(1000, 5000, 5000), heaps)
    totals = []
    for seed in range(20):
        counts = counted(candidates.grid, candidates.groups, values, 30.0, seed)
        grid, found = described(candidates, *counts, 30.0, len(values))
        inside = (grid.edges[:-1] >= 1000) & (grid.edges[1:] <= 5010)
        totals.append(found.rows[inside].sum())
    assert np.mean(totals) == pytest.approx(len(values), rel=0.08)


def test_a_count_of_more_noise_has_less_to_say():
    grid = fine_grid(Column.continuous("latitude", 30, 45), 100)
    groups = grid.groups
    size, count = len(grid.atoms), groups[-1] + 1
    counts = np.zeros(size)
    counts[50] = 100.0
    variances, of_groups = np.full(size, 100.0), np.full(count, 1e9)

    def rows():
        noisy = NoisyCells.joined(counts, np.bincount(groups, counts), groups, variances, of_groups)
        return standing(grid, noisy, 0.0)

    assert rows().rows[50] > 0
    variances[50] = 900.0
    assert rows() is None
    of_groups[:] = 100.0
    assert rows() is not None


def test_every_heap_is_a_piece_that_is_known_to_its_noise():
    grid, found = shown(PAY, pay())
    heaps = np.isin(grid.edges[:-1], [5000.0, 10_000.0, 15_000.0]) & grid.atoms
    assert heaps.sum() == 3
    assert (np.bincount(found.pieces[found.pieces >= 0])[found.pieces[heaps]] == 1).all()
    np.testing.assert_allclose(found.errors[found.pieces[heaps]], 30.0, rtol=0.01)
    assert (found.slopes[found.pieces[heaps]] == 0).all()
    # What lies on both sides of a heap in one cell is one piece, and pieces are in order.
    assert ((found.rows > 0) == (found.pieces >= 0)).all()
    _, firsts = np.unique(found.pieces[found.pieces >= 0], return_index=True)
    assert (np.diff(firsts) > 0).all()
    assert len(found.errors) == len(found.slopes) == len(firsts)
    assert found.rows.sum() == pytest.approx(ROWS, rel=1e-6)


def test_a_group_without_its_heaps_is_known_the_worse():
    candidates = with_candidates(PAY, 400)
    counts, in_groups = counted(candidates.grid, candidates.groups, pay(), 30.0, 0)
    heaps = np.isin(candidates.grid.edges[:-1], [10_000.0, 12_000.0]) & candidates.chosen
    excess = np.where(heaps, counts, 0.0)
    rest = without_heaps(candidates, heaps, 0 * counts, counts, excess, in_groups, 30.0)
    lifted = np.bincount(candidates.groups, heaps)
    assert lifted.sum() == 2
    np.testing.assert_allclose(1 / rest.known, 900.0 * (1 + lifted))


def test_noise_alone_shows_no_heap():
    grid, found = shown(Column.continuous("x", 1000, 2000), np.array([1500.0]))
    np.testing.assert_allclose(found.rows, np.diff(grid.edges))


@settings(max_examples=25)
@given(numeric_columns("x"), st.integers(0, 2**32), st.sampled_from([0.5, 5.0, 500.0]))
def test_whatever_the_counts_are_the_coding_can_be_written_and_undone(column, seed, deviation):
    if column.bins is not None or column.low == column.high:
        return
    generator = np.random.default_rng(seed)
    candidates = with_candidates(column, int(generator.integers(24, 400)))
    exact = np.zeros(len(candidates.chosen))
    exact[generator.integers(0, len(exact), 3)] += 1000
    if candidates.chosen.any():
        exact[generator.choice(np.flatnonzero(candidates.chosen), 5)] += 1000
    noisy = noised(exact, candidates.groups, deviation, generator)
    chosen = settled(column, *described(candidates, *noisy, deviation, 3000), 12)
    schema = Schema([chosen])
    assert Schema.from_dict(schema.to_dict()) == schema
    codes = generator.integers(0, chosen.size, 200)[:, None]
    np.testing.assert_array_equal(schema.encode(schema.decode(codes, generator)).codes, codes)
