"""A draft proposes a schema and marks everything it read off the data."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import SchemaError
from counterpoise.schema import Column, Schema, draft_schema, write_csv

TABLE = pd.DataFrame(
    {
        "city": ["Oslo", "Rome", None, "Oslo"],
        "age": [31, 78, 45, 60],
        "grade": [1, 2, 3, 1],
        "income": [10.5, 0.0, 99.25, np.nan],
        "member": [True, False, True, True],
        "born": pd.to_datetime(["1990-01-01", "1999-12-31", "2001-05-05", "1990-01-01"]),
        "seen": pd.to_datetime(["2020-01-01T10:00", "2020-01-02T00:00", "2020-01-03T00:00", None]),
        "postcode": ["0123", "4567", "0123", "8901"],
    }
)
EXPECTED = [
    Column.categorical("city", ["Oslo", "Rome"], nullable=True),
    Column.integer("age", 31, 78),
    Column.categorical("grade", [1, 2, 3]),
    Column.continuous("income", 0, 99.25, nullable=True),
    Column.boolean("member"),
    Column.date("born", date(1990, 1, 1), date(2001, 5, 5)),
    Column.datetime("seen", datetime(2020, 1, 1, 10), datetime(2020, 1, 3), nullable=True),
    Column.categorical("postcode", ["0123", "4567", "8901"]),
]


@pytest.mark.parametrize("source", ["pandas", "csv"])
def test_types_bounds_and_categories_are_proposed(tmp_path, source):
    table = TABLE
    if source == "csv":
        write_csv(TABLE, tmp_path / "t.csv")
        table = tmp_path / "t.csv"
    draft = draft_schema(table)
    for column, expected in zip(draft, EXPECTED, strict=True):
        marks = dict(column.sources)
        assert set(marks.values()) == {"data"}
        assert column == expected.with_sources(marks)


def test_everything_read_off_the_data_is_marked():
    draft = draft_schema(TABLE)
    assert {key for name, key in draft.unconfirmed if name == "city"} == {
        "type",
        "enum",
        "required",
    }
    assert {key for name, key in draft.unconfirmed if name == "age"} == {
        "type",
        "minimum",
        "maximum",
        "required",
    }
    with pytest.raises(SchemaError, match="not public"):
        draft.require_public()
    for name in draft.names:
        draft = draft.accept(name)
    draft.require_public()
    assert draft.is_complete


def test_a_draft_survives_json():
    draft = draft_schema(TABLE)
    assert Schema.from_dict(draft.to_dict()) == draft


def test_text_of_many_values_is_left_open():
    draft = draft_schema(pd.DataFrame({"id": [f"person {i}" for i in range(201)]}))
    assert draft["id"].missing == ("enum",)
    assert "enum" not in dict(draft["id"].sources)
    few = draft_schema(pd.DataFrame({"id": ["a", "b", "c"]}), max_categories=2)
    assert few["id"].missing == ("enum",)


@pytest.mark.parametrize(
    ("values", "kind", "missing"),
    [
        ([None, None], "categorical", ("enum",)),
        ([np.nan, np.nan], "continuous", ("minimum", "maximum")),
        ([1.5, 1.5], "continuous", ("minimum", "maximum")),
        ([np.inf, 0.5, 1.5], "continuous", ()),
        ([2**60, 0], "integer", ("minimum", "maximum")),
        ([5, 5], "categorical", ()),
        (["1.5", "x"], "categorical", ()),
        (["2020-01-01", "2020-01-01T10:00:00"], "datetime", ()),
        (["2020-13-45", "2020-01-01"], "categorical", ()),
        (["TRUE", "false", ""], "categorical", ()),
        (pd.Series([], dtype=object), "categorical", ("enum",)),
        (pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True), "ordinal", ()),
        (pd.Categorical([1, 2]), "categorical", ()),
        ([["a list"], {"a": "dict"}], "categorical", ()),
    ],
)
def test_awkward_columns_are_drafted(values, kind, missing):
    column = draft_schema(pd.DataFrame({"x": values}))["x"]
    assert (column.kind, column.missing) == (kind, missing)


def test_the_order_of_ordered_categories_is_kept():
    levels = pd.Categorical(["low", "high"], categories=["low", "middle", "high"], ordered=True)
    assert draft_schema(pd.DataFrame({"x": levels}))["x"].categories == ("low", "high")


def test_a_table_without_columns_is_refused():
    with pytest.raises(SchemaError, match="at least one"):
        draft_schema(pd.DataFrame())
