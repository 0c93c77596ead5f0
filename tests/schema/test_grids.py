"""Fine grids: they tile every range, get finer towards zero, and give atoms to likely values."""

from datetime import date, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.schema import Column, Schema, fine_grid, provisional
from tests.schema.schema_strategies import HARD_COLUMNS, numeric_columns

WIDE = [column for column in HARD_COLUMNS if column.is_numeric]


def widths_near(grid, value):
    place = int(np.searchsorted(grid.edges, value, side="right")) - 1
    return grid.edges[place + 1] - grid.edges[place]


@pytest.mark.parametrize("cells", [24, 60, 400])
@pytest.mark.parametrize("column", WIDE, ids=lambda column: f"{column.name}-{column.nullable}")
def test_a_grid_tiles_the_range_and_can_be_stated(column, cells):
    grid = fine_grid(column, cells)
    assert (np.diff(grid.edges) > 0).all()
    assert grid.edges[0] == column.low
    assert grid.edges[-1] == column.high + (column.kind != "continuous")
    assert len(grid.measures) == len(grid.zones) == len(grid.atoms) == len(grid.edges) - 1
    assert (grid.measures > 0).all()
    assert np.isfinite(grid.measures).all()
    coded = provisional(column, grid)
    assert coded.cells == len(grid.atoms)
    np.testing.assert_array_equal(coded.edges, grid.edges)


@settings(max_examples=50)
@given(numeric_columns("x"), st.integers(24, 400))
def test_every_cell_of_any_grid_holds_what_is_decoded_from_it(column, cells):
    coded = provisional(column, fine_grid(column, cells))
    every = np.arange(coded.size)[:, None]
    schema = Schema([coded])
    table = schema.decode(every, np.random.default_rng(0))
    np.testing.assert_array_equal(schema.encode(table).codes, every)


def test_wider_bounds_cost_little_of_the_resolution_near_zero():
    fine, wide = (fine_grid(Column.continuous("pay", 0, top), 400) for top in (5e5, 5e7))
    assert widths_near(wide, 20_000) <= 1.5 * widths_near(fine, 20_000)
    # With cells of equal width it would be a hundred times.
    assert len(wide.edges) < 1.2 * len(fine.edges)


def test_cells_of_a_range_far_from_zero_are_equal():
    grid = fine_grid(Column.continuous("latitude", 30, 45), 100)
    inner = np.diff(grid.edges[~np.append(grid.atoms, True)])[1:-1]
    assert grid.relative_below == 0
    np.testing.assert_allclose(inner, 0.15, rtol=1e-6)


def test_both_signs_have_relative_cells():
    grid = fine_grid(Column.continuous("balance", -1e6, 1e6), 400)
    assert widths_near(grid, 10.0) < 2
    assert widths_near(grid, -10.0) < 2


@pytest.mark.parametrize("value", [0.0, 1e5])
def test_zero_and_the_bounds_are_atoms(value):
    column = Column.continuous("amount", 0, 1e5)
    grid = fine_grid(column, 400)
    coded = provisional(column, grid)
    frame = Schema([coded]).decode(np.arange(coded.cells)[:, None], np.random.default_rng(0))
    assert value in frame["amount"][grid.atoms].tolist()
    assert grid.atoms.sum() == 2


def test_a_few_integers_have_a_cell_each():
    grid = fine_grid(Column.integer("weeks", 0, 52), 100)
    assert grid.edges.tolist() == list(range(54))
    labels = provisional(Column.integer("weeks", 0, 52), grid).code_labels()
    assert (labels[0], labels[-1]) == ("0", "52")


@pytest.mark.parametrize(
    "column",
    [
        Column.date("day", date(1990, 1, 1), date(2030, 1, 1)),
        Column.datetime("moment", datetime(1990, 1, 1), datetime(2030, 1, 1)),
    ],
)
def test_dates_have_equal_cells_whatever_1970_is(column):
    grid = fine_grid(column, 100)
    inner = np.diff(grid.edges)[~grid.atoms]
    assert grid.relative_below == 0
    assert inner.max() - inner.min() <= 2 * max(1, inner.max() // 100)


def test_an_atom_is_labelled_by_its_value():
    column = Column.continuous("x", -1, 1, bins=(-1, 0, np.nextafter(0, 1), np.nextafter(1, 0), 1))
    assert column.code_labels() == ("-1 to 0", "0", "0 to 1", "1")


@pytest.mark.parametrize("within", [(1900.0, 2020.0), (-50.0, 3.0), (0.0, 1e6)])
def test_cells_are_finer_where_rows_are_known_to_be(within):
    column = Column.continuous("x", -1e6, 1e6)
    grid = fine_grid(column, 200, within)
    assert (np.diff(grid.edges) > 0).all()
    assert (grid.edges[0], grid.edges[-1]) == (-1e6, 1e6)
    middles = (grid.edges[:-1] + grid.edges[1:]) / 2
    inside = (middles > within[0]) & (middles < within[1])
    assert np.diff(grid.edges)[inside].max() <= 1.5 * (within[1] - within[0]) / 100
    assert len(grid.atoms) < 320
