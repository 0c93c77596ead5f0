"""Numbers at known places: values that the column can have, coded as the place is."""

import math
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.errors import SchemaError
from counterpoise.schema import Column, Schema, Shape
from counterpoise.schema.placing import place, values_at
from tests.schema.schema_strategies import HARD_COLUMNS

ZERO = math.nextafter(0.0, 1.0)


def placed(column, places, codes=None):
    places = np.array(places, dtype=float)[:, None]
    codes = np.zeros(places.shape, dtype=int) if codes is None else np.array(codes)[:, None]
    return place(Schema([column]), codes, places, np.random.default_rng(0))[column.name]


def test_numbers_lie_between_the_bounds_by_their_places():
    assert placed(Column.continuous("x", -10, 10), [0, 0.25, 1]).tolist() == [-10, -5, 10]
    assert placed(Column.integer("x", 0, 10), [0, 0.24, 0.26, 1]).tolist() == [0, 2, 3, 10]


def test_dates_and_moments_are_whole():
    days = placed(Column.date("x", date(2020, 1, 1), date(2020, 1, 11)), [0, 0.52, 1])
    assert days.tolist() == [pd.Timestamp(2020, 1, day) for day in (1, 6, 11)]
    column = Column.datetime("x", datetime(2020, 1, 1), datetime(2020, 1, 2))
    assert placed(column, [0.5]).tolist() == [pd.Timestamp(2020, 1, 1, 12)]


def test_ordered_categories_are_the_nearest_of_their_list():
    column = Column.ordinal("x", ["low", "middle", "high"], nullable=True)
    made = placed(column, [0.2, 0.3, 1.0, 0.5], [0, 0, 0, column.null_code])
    assert made.tolist()[:3] == ["low", "middle", "high"]
    assert pd.isna(made[3])


def test_places_are_between_the_ends_of_the_rows_where_a_shape_tells_them():
    shape = Shape((0.0, 10.0, 20.0, 1000.0), (0.0, 1.0, 0.0))
    column = Column.continuous("x", 0, 1000, bins=(0.0, 10.0, 20.0, 1000.0), shape=shape)
    schema = Schema([column])
    places = np.linspace(0, 1, 11)
    made = placed(column, places)
    assert 10 <= made.min() < 10.1 and 19.9 < made.max() <= 20
    np.testing.assert_allclose(schema.encode(made.to_frame()).spread().units[:, 0], places)


def test_nothing_is_placed_where_no_rows_are():
    edges = (0.0, ZERO, 40.0, math.nextafter(40.0, 50.0), 60.0, 100.0)
    column = Column.continuous(
        "x", 0, 100, bins=(0.0, 100.0), shape=Shape(edges, (0.3, 0.0, 0.3, 0.0, 0.4))
    )
    values = values_at(column, np.array([0.0, 0.1, 0.3, 0.41, 0.58, 0.8]))
    assert values[:3].tolist() == [0.0, 0.0, 40.0]
    assert values[3] == 40.0
    assert values[4] == 60.0
    assert values[5] == pytest.approx(80, abs=0.2)


def test_whole_numbers_are_moved_to_cells_with_rows():
    edges = (0, 5, 6, 95, 100)
    column = Column.integer("x", 0, 100, bins=(0, 100), shape=Shape(edges, (0.0, 0.5, 0.0, 0.5)))
    found = values_at(column, np.linspace(0, 1, 200))
    assert set(found.tolist()) <= {5, *range(95, 101)}
    assert 5 in found


@given(
    st.sampled_from([column for column in HARD_COLUMNS if column.is_numeric]),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
def test_whatever_is_placed_is_a_value_of_its_column(column, places):
    made = placed(column, places)
    coded = Schema([column]).encode(made.to_frame())
    again = Schema([column]).decode(coded.codes, np.random.default_rng(0))[column.name]
    assert made.dtype == again.dtype
    values = values_at(column, np.array(places))
    assert ((values >= column.low) & (values <= column.high)).all()
    assert (np.diff(values[np.argsort(places)]) >= 0).all()


def test_other_shapes_are_refused():
    schema = Schema([Column.boolean("a")])
    with pytest.raises(SchemaError, match="codes and places"):
        place(schema, np.zeros((2, 1), int), np.zeros((3, 1)), np.random.default_rng(0))
