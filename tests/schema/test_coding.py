"""Coding follows its rules row by row, raises on no value, and is undone by decoding."""

import decimal
import re
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.errors import SchemaError, TableError
from counterpoise.schema import Column, Schema
from counterpoise.schema.encoding import read_values
from tests.schema.schema_strategies import HARD_COLUMNS, schemas

MISSING = [None, np.nan, pd.NA, pd.NaT]


def codes(column, values, **schema):
    return (
        Schema([column], **schema).encode(pd.DataFrame({column.name: values})).codes[:, 0].tolist()
    )


def units(column, values):
    return Schema([column]).encode(pd.DataFrame({column.name: values})).units[:, 0].tolist()


@settings(max_examples=50)
@given(schemas(), st.integers(0, 2**32))
def test_decoding_undoes_coding_for_every_schema(schema, seed):
    rng = np.random.default_rng(seed)
    drawn = np.column_stack([rng.integers(0, size, 40) for size in schema.sizes])
    table = schema.decode(drawn, rng)
    coded = schema.encode(table)
    np.testing.assert_array_equal(coded.codes, drawn)
    assert ((coded.units >= 0) & (coded.units <= 1)).all()


class Fixed:
    """A generator that draws the same place in every bin."""

    def __init__(self, place):
        self.place = place

    def random(self, size):
        return np.full(size, self.place)

    def integers(self, low, high):
        return np.where(self.place < 0.5, low, high - 1)


@pytest.mark.parametrize("place", [0.0, 0.3, np.nextafter(1, 0)])
@pytest.mark.parametrize(
    "column", HARD_COLUMNS, ids=lambda column: f"{column.name}-{column.nullable}"
)
def test_every_code_decodes_to_its_own_bin_even_at_the_ends_of_it(column, place):
    every = np.arange(column.size)[:, None]
    table = Schema([column]).decode(every, Fixed(place))
    np.testing.assert_array_equal(Schema([column]).encode(table).codes, every)
    assert table[column.name].isna().sum() == column.nullable
    if column.is_numeric:
        present = table[column.name].dropna()
        bounds = pd.Series([column.minimum, column.maximum]).astype(present.dtype)
        assert bounds[0] <= present.min() and present.max() <= bounds[1]


def test_years_beyond_the_calendar_do_not_wrap_around():
    values = pd.Series(np.array(["300000-01-01", "-300000-01-01"], dtype="datetime64[s]"))
    column = Column.datetime("t", datetime(2020, 1, 1), datetime(2020, 1, 2))
    assert codes(column, values) == [19, 0]


@pytest.mark.parametrize("format", ["polars", "arrow"])
@settings(max_examples=20)
@given(schema=schemas(), seed=st.integers(0, 2**32))
def test_other_formats_code_as_pandas_does(format, schema, seed):
    rng = np.random.default_rng(seed)
    drawn = np.column_stack([rng.integers(0, size, 9) for size in schema.sizes])
    np.testing.assert_array_equal(schema.encode(schema.decode(drawn, rng, format)).codes, drawn)


def test_decoding_draws_uniformly_within_a_bin():
    schema = Schema([Column.continuous("x", 0, 10, bins=2), Column.integer("k", 0, 9, bins=2)])
    table = schema.decode(np.ones((4000, 2), dtype=int), np.random.default_rng(0))
    assert table["x"].mean() == pytest.approx(7.5, abs=0.1)
    assert table["k"].value_counts(normalize=True).to_dict() == {
        value: pytest.approx(0.2, abs=0.03) for value in range(5, 10)
    }


def test_decoded_columns_have_the_types_of_the_schema():
    schema = Schema(
        [
            Column.categorical("city", ["b", "a"]),
            Column.ordinal("grade", [3, 1, 2], nullable=True),
            Column.boolean("member"),
            Column.boolean("maybe", nullable=True),
            Column.categorical("code", [7, 8]),
            Column.categorical("gap", [7, 8], nullable=True),
            Column.integer("k", 0, 3, nullable=True),
            Column.continuous("x", 0, 1),
            Column.date("day", date(2020, 1, 1), date(2020, 1, 9)),
            Column.datetime("t", datetime(2020, 1, 1), datetime(2020, 1, 9), nullable=True),
        ]
    )
    table = schema.decode(np.zeros((2, 10), dtype=int), np.random.default_rng(0))
    assert table["city"].cat.categories.tolist() == ["b", "a"]
    assert not table["city"].cat.ordered
    assert table["grade"].cat.ordered and table["grade"].cat.categories.tolist() == [3, 1, 2]
    assert [str(dtype) for dtype in table.dtypes][2:] == [
        "bool",
        "boolean",
        "int64",
        "Int64",
        "Int64",
        "float64",
        "datetime64[s]",
        "datetime64[us]",
    ]
    nulls = schema.decode(np.array([[size - 1 for size in schema.sizes]]), np.random.default_rng(0))
    assert nulls.isna().iloc[0].tolist() == [column.nullable for column in schema]
    assert len(schema.decode(np.zeros((0, 10), dtype=int), np.random.default_rng(0))) == 0


@pytest.mark.parametrize(
    "bad", [np.zeros((2, 3), int), np.zeros(3, int), np.array([[5]]), np.array([[-1]])]
)
def test_codes_that_do_not_fit_the_schema_are_refused(bad):
    with pytest.raises(SchemaError, match="codes"):
        Schema([Column.boolean("b")]).decode(bad, np.random.default_rng(0))


def test_values_outside_the_bounds_are_clamped():
    column = Column.continuous("x", 0, 10, bins=5, nullable=True)
    assert codes(column, [-np.inf, -1, 0, 9.99, 10, 11, np.inf, np.nan]) == [0, 0, 0, 4, 4, 4, 4, 5]
    assert units(column, [-np.inf, 5, np.inf, np.nan]) == [0, 0.5, 1, 0.5]
    whole = Column.integer("k", 0, 9)
    assert codes(whole, [-np.inf, -0.5, 3.99, 1e300, np.inf]) == [0, 0, 3, 9, 9]
    assert codes(whole, np.array([2**64 - 1, 4], dtype=np.uint64)) == [9, 4]
    day = Column.date("d", date(2020, 1, 1), date(2020, 1, 5))
    assert codes(day, [date(1, 1, 1), date(2020, 1, 3), date(9999, 12, 31)]) == [0, 2, 4]
    assert codes(day, ["infinity", "-infinity", "2020-01-03 23:59:59.999999"]) == [4, 0, 2]


def test_what_the_schema_gives_no_place_to_takes_the_first_code():
    assert codes(Column.categorical("c", ["a", "b"]), ["b", "z", None]) == [1, 0, 0]
    assert codes(Column.categorical("c", ["a", "b"], nullable=True), ["b", "z", None]) == [1, 2, 2]
    assert codes(Column.categorical("c", ["a", "b"], other="b"), ["a", "z", None]) == [0, 1, 1]
    both = Column.categorical("c", ["a", "b"], other="b", nullable=True)
    assert codes(both, ["a", "z", None]) == [0, 1, 2]
    assert codes(Column.integer("k", 5, 9), [7, None, "x"]) == [2, 0, 0]
    assert units(Column.integer("k", 5, 9), [7, None]) == [0.5, 0.0]
    assert codes(Column.integer("k", 5, 9, nullable=True), [7, None, "x"]) == [2, 5, 5]


@pytest.mark.parametrize("null", MISSING, ids=repr)
@pytest.mark.parametrize(
    "column",
    [
        Column.categorical("c", ["a"], nullable=True),
        Column.categorical("c", [1], nullable=True),
        Column.boolean("c", nullable=True),
        Column.integer("c", 0, 1, nullable=True),
        Column.continuous("c", 0, 1, nullable=True),
        Column.date("c", date(2020, 1, 1), date(2020, 1, 2), nullable=True),
        Column.datetime("c", datetime(2020, 1, 1), datetime(2020, 1, 2), nullable=True),
    ],
    ids=lambda column: f"{column.kind}-{column.category_type}",
)
def test_every_kind_of_null_is_null(column, null):
    assert codes(column, pd.Series([null, null], dtype=object)) == [column.null_code] * 2
    assert units(column, pd.Series([null], dtype=object)) == [0.5]
    assert codes(column, [""]) == [column.null_code]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (Column.categorical("c", ["1", "2"]), [2, 1], [1, 0]),
        (Column.categorical("c", ["1", "2"]), [2.0, np.nan], [1, 0]),
        (Column.categorical("c", ["x", "true"]), [True], [1]),
        (Column.categorical("c", ["x", "2020-01-01"]), [date(2020, 1, 1)], [1]),
        (Column.categorical("c", ["x", "y"]), pd.Categorical(["y", "x", None]), [1, 0, 0]),
        (Column.categorical("c", ["x", "y"]), pd.Series(["y", None], dtype="string"), [1, 0]),
        (Column.categorical("c", [3, 1, 2]), [1, 2, 3], [1, 2, 0]),
        (Column.categorical("c", [3, 1, 2]), [1.0, 2.5, np.inf], [1, 0, 0]),
        (Column.categorical("c", [3, 1, 2]), ["1", " 2 ", "1.0", "x"], [1, 2, 1, 0]),
        (Column.categorical("c", [3, 1], nullable=True), ["nan", "x"], [2, 2]),
        (Column.categorical("c", [3, 1], other=1), ["9", 9, "x"], [1, 1, 1]),
        (Column.categorical("c", [3, 1]), pd.Series([1, None], dtype="Int64"), [1, 0]),
        (Column.categorical("c", [3, 1]), pd.Categorical([1, 3]), [1, 0]),
        (Column.boolean("c"), [True, False], [1, 0]),
        (Column.boolean("c", nullable=True), [True, None, "no", "so"], [1, 2, 0, 2]),
        (Column.boolean("c"), ["TRUE", "false", "1", "0", " True "], [1, 0, 1, 0, 1]),
        (Column.boolean("c"), [1.0, 0.0], [1, 0]),
        (Column.boolean("c", nullable=True), pd.Series([True, None], dtype="boolean"), [1, 2]),
        (Column.integer("c", 0, 9), ["3", " 4 ", "5.9", "1e400", "-1"], [3, 4, 5, 9, 0]),
        (Column.integer("c", 0, 9), [True, False], [1, 0]),
        (Column.integer("c", 0, 9), [decimal.Decimal("3.5"), True, "2", 4.0], [3, 1, 2, 4]),
        (Column.integer("c", 0, 9), pd.Categorical([7, 8]), [7, 8]),
        (Column.integer("c", 0, 9, nullable=True), [1 + 2j, 10**5000], [10, 10]),
        (Column.integer("c", 0, 9, nullable=True), [[1], {"a": 1}, b"x", "\ud800"], [10] * 4),
        (Column.integer("c", 0, 9), [b"3", bytearray(b"4")], [3, 4]),
        (Column.integer("c", 0, 9), pd.Series([5, None], dtype="int64[pyarrow]"), [5, 0]),
        (Column.integer("c", 0, 9, nullable=True), pd.to_datetime(["2020-01-01"]), [10]),
    ],
)
def test_values_are_read_whatever_their_type(column, values, expected):
    assert codes(column, values) == expected


DAYS = Column.date("d", date(2020, 1, 1), date(2020, 1, 5), nullable=True)


@pytest.mark.parametrize(
    "values",
    [
        ["2020-01-03", "2020-01-09", None, "soon"],
        [date(2020, 1, 3), date(2024, 1, 1), None, "x"],
        [datetime(2020, 1, 3, 23, 59), datetime(2024, 1, 1), pd.NaT, None],
        pd.Series(["2020-01-03", "2024-01-01", None, None], dtype="datetime64[ns]"),
        pd.Series(["2020-01-03", "2024-01-01", None, None], dtype="datetime64[us]"),
        pd.Series(["2020-01-03", "2024-01-01", None, None], dtype="datetime64[ms]"),
        pd.Series(["2020-01-03", "9999-01-01", None, None], dtype="datetime64[s]"),
        pd.Series(np.array(["2020-01-03", "200000-01-01", "NaT", "NaT"], dtype="datetime64[s]")),
        pd.Series(["2020-01-02T23:00Z", "2024-01-01T00:00Z", None, None])
        .astype("datetime64[us, UTC]")
        .dt.tz_convert("Europe/Berlin")
        + pd.Timedelta(hours=1),
        pd.Categorical(["2020-01-03", "2024-01-01", None, None]),
        pd.Series([date(2020, 1, 3), date(2024, 1, 1), None, None], dtype="date32[pyarrow]"),
        ["2020-01-02T23:30:00-05:00", "9999-12-31", "", "nan"],
    ],
)
def test_dates_are_read_whatever_their_type(values):
    assert codes(DAYS, values) == [2, 4, 5, 5]


def test_moments_with_a_time_zone_are_read_in_utc():
    column = Column.datetime("t", datetime(2020, 1, 1), datetime(2020, 1, 2), bins=24)
    plus_two = timezone(timedelta(hours=2))
    values = [datetime(2020, 1, 1, 5, 30, tzinfo=plus_two), "2020-01-01T05:30:00+02:00"]
    assert codes(column, pd.Series(values, dtype=object)) == [3, 3]
    assert codes(column, pd.Series(values[:1])) == [3]
    assert codes(column, ["2020-01-01 04:30:00 Europe/Berlin", "2020-01-01T03:30:00Z"]) == [3, 3]


def test_extreme_dates_fit_and_are_clamped():
    column = Column.date("d", date(1, 1, 1), date(9999, 12, 31), bins=2)
    assert codes(column, [date(1, 1, 1), date(9999, 12, 31), pd.NaT]) == [0, 1, 0]
    moments = Column.datetime("t", datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))
    assert codes(moments, [datetime.min, datetime.max]) == [0, 19]
    assert units(moments, [datetime.min, datetime.max]) == [0.0, 1.0]


def test_missing_values_apply_to_text_alone():
    column = Column.integer("k", -9, 9, nullable=True)
    assert codes(column, ["-9", "?", "3"], missing_values=("", "-9", "?")) == [19, 19, 12]
    assert codes(column, [-9, 3], missing_values=("", "-9")) == [0, 12]
    text = Column.categorical("c", ["a", "b"], other="b", nullable=True)
    for dtype in ("str", object, "category"):
        values = pd.Series(["a", "?", "z"], dtype=dtype)
        assert codes(text, values, missing_values=("?",)) == [0, 2, 1]


@settings(max_examples=10)
@given(st.lists(st.sampled_from([1, 1.0, True, "1", "1.0", "true", None, 0.5, 2**60]), max_size=5))
def test_the_code_of_a_row_does_not_depend_on_the_others(values):
    for column in (
        Column.categorical("c", ["1", "true", "0.5", "x"], nullable=True),
        Column.categorical("c", [0, 1], nullable=True),
        Column.boolean("c", nullable=True),
        Column.integer("c", 0, 9, nullable=True),
        Column.continuous("c", 0, 9, nullable=True),
    ):
        together = codes(column, pd.Series(values, dtype=object))
        assert together == [codes(column, pd.Series([value], dtype=object))[0] for value in values]
        inferred = [codes(column, pd.Series([value]))[0] for value in values]
        assert together == inferred


def test_bins_of_stated_edges_count_the_inner_edges_below():
    column = Column.continuous("x", 0, 10, bins=(0, 1, 5, 10))
    assert codes(column, [0, 0.99, 1, 4.99, 5, 10]) == [0, 0, 1, 1, 2, 2]


def test_categories_have_units_in_their_order():
    assert units(Column.ordinal("g", ["a", "b", "c"], nullable=True), ["a", "b", "c", None]) == [
        0,
        0.5,
        1,
        0.5,
    ]
    assert units(Column.categorical("g", ["a"]), ["a", "z"]) == [0, 0]
    assert units(Column.integer("k", 4, 4), [4, 9, None]) == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_no_row_and_of_one(rows, schema, table):
    coded = schema.encode(table[:rows])
    assert coded.codes.shape == coded.units.shape == (rows, 4)
    assert len(coded) == rows
    assert coded.one_hot()[0].shape[0] == rows


def test_constant_and_all_null_columns_are_coded():
    table = pd.DataFrame({"k": [7] * 5, "n": [None] * 5, "f": [np.nan] * 5})
    schema = Schema(
        [
            Column.integer("k", 7, 7),
            Column.categorical("n", ["a"], nullable=True),
            Column.continuous("f", 0, 1),
        ]
    )
    assert schema.encode(table).codes.tolist() == [[0, 1, 0]] * 5


def test_two_hundred_categories_and_three_hundred_columns():
    many = [f"category {number}" for number in range(200)]
    rng = np.random.default_rng(0)
    wide = {f"c{number}": rng.choice(many, 50) for number in range(300)}
    schema = Schema([Column.categorical(name, many) for name in wide])
    coded = schema.encode(pd.DataFrame(wide))
    assert many[coded.codes[3, 77]] == wide["c77"][3]


def test_a_schema_that_is_incomplete_codes_nothing():
    schema = Schema([Column.integer("age")])
    for use in (
        lambda: schema.encode(pd.DataFrame({"age": [1]})),
        lambda: schema.decode(None, None),
    ):
        with pytest.raises(SchemaError, match=r"'age'.*state it.*paid"):
            use()


def test_a_table_without_the_columns_is_refused(schema, table):
    with pytest.raises(TableError, match=r"'income'.*does have 'incme'"):
        schema.encode(table.rename(columns={"income": "incme"}))


def test_coded_arrays_are_contiguous_by_column_and_can_be_taken(schema, table):
    coded = schema.encode(table)
    assert coded.codes.dtype == np.int32 and coded.codes.flags.f_contiguous
    assert coded.units.dtype == np.float64 and coded.units.flags.f_contiguous
    part = coded.take(np.array([5, 1]))
    assert part.codes.flags.f_contiguous
    np.testing.assert_array_equal(part.codes, coded.codes[[5, 1]])
    assert len(coded.take(coded.codes[:, 0] == 0)) == (table["sex"] == "F").sum()


def test_a_coded_table_does_not_show_its_rows(schema, table):
    assert repr(schema.encode(table)) == "Coded(columns=('sex', 'grade', 'age', 'income'))"


def test_features_are_named_and_mark_nulls():
    schema = Schema([Column.categorical("c", ["a", "b"], nullable=True), Column.integer("k", 0, 4)])
    coded = schema.encode(pd.DataFrame({"c": ["b", None], "k": [1, 4]}))
    features, names = coded.one_hot()
    assert names == ("c=a", "c=b", "c is null", "k")
    assert features.tolist() == [[0, 1, 0, 0.25], [0, 0, 1, 1]]
    box, names = coded.unit_box()
    assert names == ("c", "c is null", "k")
    assert box.tolist() == [[1, 0, 0.25], [0.5, 1, 1]]


def test_the_table_is_left_as_it_was(schema, table):
    before = table.copy(deep=True)
    schema.encode(table)
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        (Column.integer("n", 0, 9), [7, None], "'n': a whole number cannot be null.*nullable"),
        (Column.integer("n", 0, 9), ["7", "6.5"], "'n': expected whole numbers.*continuous"),
        (Column.integer("n", 0, 9, nullable=True), [6.5, None], "'n': expected whole numbers"),
        (Column.integer("n", 0, 9), ["7", "seven"], "'n': expected numbers, as it is integer"),
        (Column.continuous("n", 0, 9), ["7", "seven"], "'n': expected numbers"),
        (Column.date("n", date(2020, 1, 1), date(2021, 1, 1)), ["7 o'clock"], "expected moments"),
    ],
)
def test_a_table_that_cannot_have_its_dtypes_is_refused_without_its_values(column, values, words):
    with pytest.raises(TableError, match=words) as refused:
        Schema([column]).restore(pd.DataFrame({"n": values}))
    assert not {"7", "6.5", "seven"} & set(re.findall(r"[\w.]+", str(refused.value)))


def test_a_nullable_whole_number_is_restored_with_its_nulls():
    schema = Schema([Column.integer("n", 0, 9, nullable=True)])
    restored = schema.restore(pd.DataFrame({"n": [7.0, None]}))["n"]
    assert restored.tolist() == [7, pd.NA]


def test_values_are_read_as_they_are_coded_but_not_clamped():
    values = pd.Series(["-1", "3.5", "9", "10", "many", "NA"])
    numbers, nulls = read_values(Column.integer("k", 0, 9), values, ("NA",))
    assert nulls.tolist() == [False, False, False, False, True, True]
    assert numbers[1:3].tolist() == [3.5, 9.0]
    assert numbers[0] < 0 and numbers[3] > 9
    day = Column.date("day", date(2023, 1, 1), date(2023, 12, 31), bins=4)
    moments = pd.Series(["2022-12-31T23:59", "2023-12-31 12:00+13:00", "31/12/2023"])
    numbers, nulls = read_values(day, moments)
    read = numbers[:2].astype("datetime64[D]").astype(str).tolist()
    assert (read, nulls.tolist()) == (["2022-12-31", "2023-12-30"], [False, False, True])
