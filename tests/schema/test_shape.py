"""A shape: checked with its column, written with the schema, and obeyed in decoding."""

import math
from datetime import date

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import SchemaError
from counterpoise.schema import Column, Schema, Shape
from counterpoise.schema.shape import ends_short_of_bounds

EDGES, ZERO = (0.0, 10.0, 100.0), math.nextafter(0.0, 1.0)


def shaped(shape, bins=EDGES, kind=Column.continuous, **options):
    return kind("x", bins[0], bins[-1], bins=bins, shape=shape, **options)


def drawn(column, code, rows=20_000):
    codes = np.full((rows, 1), code)
    return Schema([column]).decode(codes, np.random.default_rng(1))["x"].to_numpy()


def test_values_lie_in_a_bin_as_its_fine_cells_say():
    column = shaped(Shape((0.0, 2.0, 10.0, 50.0, 100.0), (0.3, 0.1, 0.0, 0.6)))
    low, high = drawn(column, 0), drawn(column, 1)
    assert (low < 2).mean() == pytest.approx(0.75, abs=0.02)
    assert (high >= 50).all()
    assert high.mean() == pytest.approx(75, abs=0.5)


def test_relative_cells_are_drawn_from_over_the_logarithm():
    edges = (1.0, 16.0, 100.0)
    geometric = drawn(shaped(Shape(edges, (0.5, 0.5), relative_below=16.0), edges), 0)
    assert (geometric < 4).mean() == pytest.approx(0.5, abs=0.02)
    linear = drawn(shaped(Shape(edges, (0.5, 0.5)), edges), 0)
    assert (linear < 4).mean() == pytest.approx(0.2, abs=0.02)


def test_relative_integers_are_whole_on_both_sides_of_zero():
    edges = (-64, -4, 0, 4, 64)
    column = shaped(Shape(edges, (1, 1, 1, 1), relative_below=65.0), edges, Column.integer)
    above, below = drawn(column, 3), drawn(column, 0)
    assert (above.min(), above.max(), below.min(), below.max()) == (4, 64, -64, -5)
    assert np.median(above) == pytest.approx(16, abs=1)
    assert np.median(below) == pytest.approx(-17, abs=1)


def test_atoms_are_drawn_exactly():
    top = math.nextafter(100.0, 0.0)
    column = shaped(Shape((0.0, ZERO, top, 100.0), (0.5, 0.2, 0.3)), (0.0, 100.0))
    values = drawn(column, 0)
    assert (values == 0).mean() == pytest.approx(0.5, abs=0.02)
    assert (values == 100).mean() == pytest.approx(0.3, abs=0.02)


def test_a_bin_without_any_share_is_drawn_from_evenly():
    column = shaped(Shape((0.0, 10.0, 40.0, 100.0), (1.0, 0.0, 0.0)))
    assert drawn(column, 1).mean() == pytest.approx(55, abs=1)


def test_the_maximum_of_whole_units_may_have_a_bin_of_its_own():
    column = Column.integer("x", 0, 10, bins=(0, 5, 10, 10))
    assert column.code_labels() == ("0 to 4", "5 to 9", "10")
    assert Schema([column]).encode(pd.DataFrame({"x": [4, 9, 10]})).codes[:, 0].tolist() == [
        0,
        1,
        2,
    ]
    for edges in ((0, 5, 5, 10), (0, 0, 10)):
        with pytest.raises(SchemaError, match="strictly increasing"):
            Column.integer("x", edges[0], 10, bins=edges)
    with pytest.raises(SchemaError, match="strictly increasing"):
        Column.continuous("x", 0, 10, bins=(0, 5, 10, 10))


@pytest.mark.parametrize(
    "column",
    [
        shaped(Shape((0.0, ZERO, 10.0, 100.0), (0.1, 0.4, 0.5), relative_below=30.0)),
        shaped(
            Shape((date(2020, 1, 1), date(2020, 2, 1), date(2020, 12, 31)), (0.25, 0.75)),
            (date(2020, 1, 1), date(2020, 12, 31)),
            Column.date,
        ),
        shaped(Shape((0, 3, 5, 5), (0.2, 0.3, 0.5)), (0, 5, 5), Column.integer, nullable=True),
        shaped(Shape(EDGES, (0.5, 0.5), 0.0, (0, 1), (0.01, 0.02), (0.1, 0.2), 0.003)),
    ],
)
def test_a_shape_is_written_with_its_schema(column):
    schema = Schema([column])
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.to_dict()["fields"][0]["shape"]["shares"] == list(column.shape.shares)


@pytest.mark.parametrize(
    "shape",
    [
        "log",
        Shape((0.0, 10.0, 100.0), (0.5,)),
        Shape((0.0, 10.0, 100.0), (0.5, -0.1)),
        Shape((0.0, 10.0, 100.0), (0.0, 0.0)),
        Shape((0.0, 10.0, 100.0), (0.5, math.nan)),
        Shape((0.0, 10.0, 100.0), (0.5, True)),
        Shape((0.0, 20.0, 100.0), (0.5, 0.5)),
        Shape((0.0, 10.0, 90.0), (0.5, 0.5)),
        Shape((0.0, 10.0, 5.0, 100.0), (0.5, 0.2, 0.3)),
        Shape((0.0, 10.0, 100.0), (0.5, 0.5), relative_below=-1.0),
        Shape((0.0, 10.0, 100.0), (0.5, 0.5), relative_below="all"),
        Shape((0.0, 10.0, 100.0), (0.5, 0.5), noise=-0.1),
        Shape((0.0, 10.0, 100.0), (0.5, 0.5), noise=math.nan),
        Shape(7, (0.5, 0.5)),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(shape):
    with pytest.raises(SchemaError, match="column 'x'"):
        shaped(shape)


@pytest.mark.parametrize("shape", [3, {}, {"edges": [0, 1]}, {"edges": 1, "shares": [1]}])
def test_a_shape_that_is_none_in_json_is_refused(shape):
    field = {"name": "x", "type": "number", "constraints": {"minimum": 0, "maximum": 1}}
    with pytest.raises(SchemaError, match="shape"):
        Schema.from_dict({"fields": [field | {"bins": [0, 1], "shape": shape}]})


def test_a_shape_needs_stated_edges_and_goes_with_them():
    with pytest.raises(SchemaError, match="shape"):
        Column.continuous("x", 0, 1, bins=4, shape=Shape((0.0, 1.0), (1.0,)))
    with pytest.raises(SchemaError, match="shape belongs to numeric"):
        Column.categorical("x", ["a"], shape=Shape((0.0, 1.0), (1.0,)))
    paid = Schema([shaped(Shape(EDGES, (0.5, 0.5)))]).pay("x", "maximum")
    assert paid["x"].shape is None


@pytest.mark.parametrize(
    ("pieces", "slopes", "ends"),
    [
        ((-1, 0, 1, -1), (0.1, 0.1), [(10.0, 0.0), (40.0, 100.0)]),
        ((0, 0, 1, 1), (0.1, 0.1), []),
        ((0, 1, 2, -1), (0.1, 0.1, 1.0), [(20.0, 100.0)]),
        ((-1, 0, 1, 2), (1.0, 0.1, 0.1), [(20.0, 0.0)]),
        ((0, 1, -1, -1), (0.1, 0.1), [(20.0, 100.0)]),
        ((), (), []),
    ],
)
def test_rows_stop_standing_clear_where_a_tail_begins_or_short_of_a_bound(pieces, slopes, ends):
    edges = (0.0, 10.0, 20.0, 40.0, 100.0)
    shares = tuple(float(piece >= 0) for piece in pieces) or (1.0,) * 4
    shape = Shape(edges, shares, 0.0, pieces, (0.01,) * len(slopes), slopes)
    assert ends_short_of_bounds(shaped(shape, (0.0, 100.0))) == ends
