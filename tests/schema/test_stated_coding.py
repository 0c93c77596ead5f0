"""What a curator states of a coding holds: scales, atoms and steps, checked, written and obeyed."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.errors import SchemaError
from counterpoise.schema import (
    Column,
    NoisyCells,
    Schema,
    denoised,
    fine_grid,
    settled,
)
from counterpoise.schema.files import connect

STATED = [
    Column.continuous("dose", 0.5, 800, scale="log"),
    Column.continuous("dose", -20, 800, scale="log", bins=9, nullable=True),
    Column.continuous("pay", 0, 1e6, scale="log", atoms=(0, 12_345.67, 99_999), step=0.01),
    Column.integer("count", 0, 10**6, scale="log", bins=12, atoms=(777,)),
    Column.integer("balance", -5000, 90_000, scale="log"),
    Column.integer("debt", -5000, -3, scale="log", bins=7),
    Column.continuous("height", 50, 250, scale="linear", atoms=[180]),
    Column.date("seen", "2000-01-01", "2020-12-31", atoms=["2001-01-01"], scale="linear"),
]
by_name = pytest.mark.parametrize("column", STATED, ids=lambda column: column.name)


@by_name
def test_a_stated_coding_is_written_with_its_schema(column):
    schema = Schema([column])
    assert Schema.from_dict(schema.to_dict()) == schema
    field = schema.to_dict()["fields"][0]
    assert [field.get(key) is not None for key in ("scale", "atoms", "step")] == [
        stated is not None for stated in (column.scale, column.atoms, column.step)
    ]


@by_name
def test_every_bin_of_a_stated_scale_holds_what_is_decoded_from_it(column):
    schema = Schema([column])
    assert (np.diff(column.edges) > 0).all()
    codes = np.repeat(np.arange(column.size), 50)[:, None]
    table = schema.decode(codes, np.random.default_rng(0))
    np.testing.assert_array_equal(schema.encode(table).codes, codes)
    with connect() as connection:
        found = schema.encode(connection.from_df(table))
    np.testing.assert_array_equal(found.codes, codes)


@settings(max_examples=50)
@given(
    st.sampled_from(["integer", "continuous"]),
    st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=2, unique=True).map(sorted),
    st.integers(1, 60),
    st.integers(24, 400),
)
def test_a_log_scale_codes_any_range_in_bins_and_in_fine_cells(kind, bounds, bins, cells):
    column = Column("x", kind, minimum=bounds[0], maximum=bounds[1], bins=bins, scale="log")
    assert column.cells <= bins + 2
    values = np.random.default_rng(0).uniform(*bounds, 200)
    values = np.append(values.astype(int) if kind == "integer" else values, bounds)
    codes = Schema([column]).encode(pd.DataFrame({"x": values})).codes[:, 0]
    edges = column.edges
    assert (edges[codes] <= values).all()
    assert (values[:-1] < edges[codes + 1][:-1]).all()
    grid = fine_grid(Column("x", kind, minimum=bounds[0], maximum=bounds[1], scale="log"), cells)
    assert (np.diff(grid.edges) > 0).all()
    assert (grid.measures >= 1e-6).all()
    assert len(grid.edges) <= cells + 8 or kind == "integer"


def test_bins_of_a_log_scale_have_one_ratio_and_zero_its_own():
    edges = Column.continuous("dose", 0.5, 800, bins=10, scale="log").edges
    np.testing.assert_allclose(edges[1:] / edges[:-1], 1600**0.1, rtol=1e-9)
    assert Column.integer("count", 0, 10**6, bins=7, scale="log").code_labels()[:3] == (
        "0",
        "1 to 9",
        "10 to 99",
    )
    assert Schema([Column.continuous("dose", 0.5, 800, scale="log")]).with_bins(8).sizes == (8,)
    # A few integers keep a code each, whatever their scale.
    assert Column.integer("rooms", 1, 9, scale="log").cells == 9


def test_fine_cells_follow_the_scale():
    ratios, widths = (
        fine_grid(Column.continuous("x", 1, 1e6, scale=scale), 300) for scale in ("log", "linear")
    )
    inner = slice(2, -2)
    np.testing.assert_allclose((ratios.edges[1:] / ratios.edges[:-1])[inner], 1.047, rtol=0.01)
    np.testing.assert_allclose(np.diff(widths.edges)[inner], 1e6 / 300, rtol=1e-3)
    assert (ratios.relative_below, widths.relative_below) == (1e6, 0)
    both_sides = fine_grid(Column.continuous("x", -1e3, 1e6, scale="log"), 300)
    assert np.diff(both_sides.edges).max() < 0.1 * 1e6


@pytest.mark.parametrize("cells", [30, 400])
def test_stated_atoms_have_fine_cells_and_bins_of_their_own(cells):
    generator = np.random.default_rng(1)
    values = generator.lognormal(9.5, 1, 20_000)
    values[:4000] = 12_345.67
    column = Column.continuous("pay", 0, 1e6, atoms=(12_345.67, 77.0))
    grid = fine_grid(column, cells)
    assert {77.0, 12_345.67} <= set(grid.edges[:-1][grid.atoms].tolist())
    places = np.searchsorted(grid.edges[1:-1], values, side="right")
    exact = np.bincount(places, minlength=len(grid.atoms))
    noisy = [
        counts + generator.normal(0, 20, len(counts))
        for counts in (exact, np.bincount(grid.groups, exact))
    ]
    found = denoised(grid, NoisyCells.of(*noisy, grid.groups, 20.0), 20_000)
    chosen = settled(column, grid, found, 16)
    assert "12345.7" in chosen.code_labels()
    assert "77" not in chosen.code_labels()
    schema = Schema([chosen])
    codes = schema.encode(pd.DataFrame({"pay": values})).codes
    made = schema.decode(codes, generator)["pay"]
    assert (made == 12_345.67).mean() == pytest.approx(0.2, abs=0.01)


def test_released_values_are_multiples_of_the_step_and_keep_their_codes():
    # Edges that are no multiples, bins whose one multiple is seldom the nearest to a value, and an
    # atom and a narrow bin without any.
    atom = 50.123
    edges = (0, 0.0101, 0.0199, 0.0299, 0.0301, 0.0401, atom, np.nextafter(atom, 99), 100)
    column = Column.continuous("price", 0, 100, bins=edges, step=0.01)
    codes = np.repeat(np.arange(8), 500)[:, None]
    schema = Schema([column])
    made = schema.decode(codes, np.random.default_rng(0))
    np.testing.assert_array_equal(schema.encode(made).codes, codes)
    values = made["price"].to_numpy()
    # Exactly the floats that two decimals are read as.
    has_multiple = ~np.isin(codes[:, 0], (1, 6))
    assert all(value == float(f"{value:.2f}") for value in values[has_multiple])
    assert (values[codes[:, 0] == 6] == atom).all()


@pytest.mark.parametrize(("step", "texts"), [(0.25, 2), (5, 0), (0.1, 1), (1e-3, 3)])
def test_a_step_may_be_any_decimal(step, texts):
    column = Column.continuous("x", -1000, 1000, bins=7, step=step, nullable=True)
    made = Schema([column]).decode(np.arange(8)[:, None], np.random.default_rng(0))["x"]
    assert made.isna().tolist() == [False] * 7 + [True]
    for value in made[:7]:
        assert value == float(f"{value:.{texts}f}")
        assert round(value / step) * step == pytest.approx(value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": "logarithmic"}, "'linear' or 'log'"),
        ({"scale": 3}, "'linear' or 'log'"),
        ({"atoms": 7}, "list"),
        ({"atoms": []}, "up to 100"),
        ({"atoms": [1, 1.0]}, "each there once"),
        ({"atoms": range(101)}, "up to 100"),
        ({"atoms": ["a"]}, "numbers"),
        ({"atoms": [float("nan")]}, "finite"),
        ({"atoms": [1001]}, "beyond the maximum"),
        ({"atoms": [-1]}, "beyond the minimum"),
        ({"step": 0}, "above zero"),
        ({"step": "0.01"}, "above zero"),
        ({"step": True}, "above zero"),
        ({"step": float("inf")}, "above zero"),
        ({"step": 2000}, "wider"),
    ],
)
def test_nonsense_is_refused(options, words):
    with pytest.raises(SchemaError, match=f"column 'x'.*{words}"):
        Column.continuous("x", 0, 1000, **options)


@pytest.mark.parametrize("options", [{"scale": "log"}, {"atoms": (1,)}, {"step": 1}])
def test_what_is_no_number_has_no_such_coding(options):
    [key] = options
    for make in (
        lambda: Column.categorical("x", ["a"], **options),
        lambda: Column.identifier("x", **options),
        lambda: Column.derived("x", "a + b", **options),
    ):
        with pytest.raises(SchemaError, match=f"{key} belongs to numeric columns"):
            make()
    field = {
        "name": "x",
        "type": "string",
        **{k: list(v) if k == "atoms" else v for k, v in options.items()},
    }
    with pytest.raises(SchemaError, match=f"{key} belongs to numeric columns"):
        Schema.from_dict({"fields": [field]})


def test_days_have_no_ratio_and_only_numbers_a_step():
    with pytest.raises(SchemaError, match="no zero"):
        Column.date("x", date(2020, 1, 1), date(2021, 1, 1), scale="log")
    with pytest.raises(SchemaError, match="type number"):
        Column.integer("x", 0, 9, step=1)


def test_atoms_beyond_bounds_that_were_paid_for_are_left_out():
    column = Column.continuous("x", 0, atoms=(5.0, 99_999.0), sources={"maximum": "paid"})
    found = Column.continuous(
        "x", 0, 1000, atoms=column.atoms, sources=column.sources, scale="log", bins=None
    )
    grid = fine_grid(found, 200)
    assert 5.0 in grid.edges[:-1][grid.atoms]
    assert grid.edges[-1] == 1000
