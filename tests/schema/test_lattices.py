"""Lattices: rows of cells go to the multiples in them, where nothing lies between."""

from fractions import Fraction

import numpy as np
import pytest

from counterpoise.schema import Column, described, with_candidates
from counterpoise.schema.grids import Grid
from counterpoise.schema.heaps import _step_between as step_between
from counterpoise.schema.lattices import onto
from counterpoise.schema.pieces import Denoised

HOURS = Column.integer("hours", 0, 1680)


def seen(values, deviation, seed, column=HOURS, cells=90):
    """What a noisy histogram of a few cells shows of values."""
    candidates = with_candidates(column, cells, (0.0, 40.0))
    generator = np.random.default_rng(seed)
    places = np.searchsorted(candidates.grid.edges[1:-1], values, side="right")
    exact = np.bincount(places, minlength=len(candidates.grid.atoms))
    both = exact, np.bincount(candidates.groups, exact)
    counts = [np.rint(each + generator.normal(0, deviation, len(each))) for each in both]
    return described(candidates, *counts, deviation, len(values))


def share_from(grid, found, threshold):
    return found.rows[grid.edges[:-1] >= threshold].sum() / found.rows.sum()


def gamma_hours(rows, seed):
    return np.round(np.random.default_rng(seed).gamma(3, 9.5, rows) / 5).astype(int) * 5


def test_rows_go_to_the_multiples_of_their_piece():
    edges = np.array([0, 10, 11, 16, 21, 24, 40])
    grid = Grid(edges, 0.0, np.zeros(6, dtype=bool))
    rows = np.array([0.0, 60.0, 20.0, 20.0, 6.0, 32.0])
    found = Denoised(rows, np.array([-1, 0, 1, 1, 2, 3]), np.arange(4.0), np.zeros(4))
    finer, moved = onto(grid, found, Fraction(10))
    held = dict(zip(finer.edges[:-1].tolist(), moved.rows.tolist(), strict=True))
    # 11 to 20 is one piece, with 20 in it; 21 to 23 has no multiple of ten, and goes to all.
    assert {value: rows for value, rows in held.items() if rows} == pytest.approx(
        {10: 60 * 138 / 132, 20: 40 * 138 / 132, 30: 32 * 138 / 132}
    )
    assert moved.errors.tolist() == [0.0, 1.0, 3.0]
    assert sorted(set(moved.pieces.tolist())) == [-1, 0, 1, 2]


def test_a_cell_of_very_many_multiples_stays_as_it_is():
    grid = Grid(np.array([0, 1, 1000]), 0.0, np.zeros(2, dtype=bool))
    found = Denoised(np.array([1.0, 9.0]), np.array([0, 1]), np.zeros(2), np.zeros(2))
    finer, moved = onto(grid, found, Fraction(5))
    assert finer.edges.tolist() == [0, 1, 1000]
    assert moved.rows.tolist() == [1.0, 9.0]


def test_lesser_heaps_lie_on_the_lattice_of_the_larger():
    errors = []
    for seed in range(12):
        hours = gamma_hours(5000, seed)
        grid, found = seen(hours, 60.0, seed)
        errors.append(share_from(grid, found, 50) - (hours >= 50).mean())
        assert found.rows.sum() == pytest.approx(5000, rel=0.001)
    assert abs(np.mean(errors)) < 0.01
    assert np.std(errors) < 0.02


def test_rows_between_multiples_are_no_lattice():
    generator = np.random.default_rng(5)
    hours = gamma_hours(5000, 5)
    hours = np.where(generator.random(5000) < 0.4, generator.integers(0, 60, 5000), hours)
    grid, found = seen(hours, 20.0, 5)
    held = found.rows > 0
    off = found.rows[held & (grid.edges[:-1] % 5 != 0)].sum() / found.rows.sum()
    assert off > 0.2


def test_noise_that_could_hide_a_quarter_of_the_rows_shows_no_lattice():
    candidates = with_candidates(HOURS, 90, (0.0, 40.0))
    values, edges = np.array([10, 15, 20, 25, 30]), candidates.grid.edges[:-1]
    counts = np.where(np.isin(edges, values), 400.0, 0.0)
    assert step_between(candidates, counts, 20.0, 2000.0) == 5
    assert step_between(candidates, counts, 80.0, 2000.0) is None
    # Rows between the multiples, none of which stands out by itself.
    between = (edges % 5 != 0) & (edges > 10) & (edges < 30)
    assert step_between(candidates, counts + 3.0 * between, 20.0, 2050.0) == 5
    assert step_between(candidates, counts + 40.0 * between, 20.0, 2640.0) is None


def test_zero_is_a_value_of_its_own_on_a_lattice_of_floats():
    zero = np.nextafter(0.0, 1.0)
    edges = np.array([0.0, zero, 4.0, 6.0, 100.0])
    grid = Grid(edges, 0.0, np.array([True, False, False, False]))
    found = Denoised(np.array([5.0, 0.0, 3.0, 0.0]), np.array([0, -1, 1, -1]), *np.ones((2, 2)))
    finer, moved = onto(grid, found, Fraction(5))
    assert dict(zip(finer.edges[:-1].tolist(), moved.rows.tolist(), strict=True))[0.0] == 5.0
    assert moved.rows[finer.edges[:-1] == 5.0] == [3.0]
