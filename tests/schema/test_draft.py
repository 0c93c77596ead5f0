"""A draft proposes a schema and marks everything it read off the data."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import CounterpoiseWarning, SchemaError
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


@pytest.mark.parametrize(
    ("texts", "true", "false"),
    [
        (["yes", "no"], ["yes"], ["no"]),
        (["No", "YES", "Yes", " no"], ["YES", "Yes"], ["No", "no"]),
        (["y", "n"], ["y"], ["n"]),
        (["T", "F"], ["T"], ["F"]),
        (["Ja", "Nein"], ["Ja"], ["Nein"]),
        (["J", "N", "-"], ["J"], ["N"]),
        (["oui", "non"], ["oui"], ["non"]),
        (["O", "N"], ["O"], ["N"]),
        (["sí", "no", "NA"], ["sí"], ["no"]),
    ],
)
def test_a_column_of_yes_and_no_is_drafted_as_boolean_with_its_pair(tmp_path, texts, true, false):
    table = pd.DataFrame({"y": texts * 3})
    write_csv(table, tmp_path / "t.csv")
    for source in (table, tmp_path / "t.csv"):
        draft = draft_schema(source)
        column = draft["y"]
        assert column.category_type == "boolean" and dict(column.sources)["type"] == "data"
        field = draft.to_dict()["fields"][0]
        assert (field["trueValues"], field["falseValues"]) == (true, false)
        assert column.nullable == bool({*texts} & {"-", "NA"})
        read = draft.encode(source).codes[:, 0].tolist()
        folded = [text.strip().casefold() for text in texts]
        codes = [2 if text in ("-", "na") else text[0] in "yjost" for text in folded]
        assert read == codes * 3


@pytest.mark.parametrize(
    "texts",
    [["1", "2"], ["1", "0"], ["yes", "non"], ["yes", "no", "maybe"], ["y", "yes", "no"], ["yes"]],
)
def test_what_is_no_pair_of_truths_is_not_drafted_as_boolean(texts):
    column = draft_schema(pd.DataFrame({"y": texts * 3}))["y"]
    assert column.category_type != "boolean" and len(column.categories) == len(texts)


def test_a_draft_says_how_many_values_are_no_truths():
    texts = ["yes"] * 3 + ["no"] * 6 + ["maybe", "2", None]
    with pytest.warns(CounterpoiseWarning, match="9 of its 11 values are 'yes' or 'no'") as said:
        draft = draft_schema(pd.DataFrame({"y": texts}))
    assert "the other 2 are null (confidential" in str(said[0].message)
    assert draft["y"].category_type == "string"


def test_a_code_with_a_stroke_is_no_number():
    assert draft_schema(pd.DataFrame({"x": ["12_34", "5_6"] * 3}))["x"].category_type == "string"
