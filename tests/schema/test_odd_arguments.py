"""Whatever is passed to the schema room, it works or it is refused by an error of ours."""

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from counterpoise.errors import CounterpoiseError, SchemaError, TableError
from counterpoise.schema import (
    Column,
    Schema,
    as_relation,
    check_columns,
    convert,
    draft_schema,
    read_table,
    table_columns,
    value_expression,
)
from tests.odd import contrary

EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
LATE = datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=12)))
ODD = [
    *(None, True, False, 0, 1, -1, 5, 10**30, -(10**30), 2**53 + 1, 2**63, 10**400, 100_000, 10**7),
    *(contrary(float, 0.5), contrary(int, 3), contrary(str, "x"), contrary(object)),
    *(0.5, -0.0, float("nan"), float("inf"), 1e308, 5e-324, Decimal("1.5"), Decimal("sNaN"), 1j),
    *(np.int64(5), np.uint64(2**64 - 1), np.int8(-1), np.float32(0.5), np.float64("nan")),
    *(np.bool_(True), np.str_("x"), np.longdouble(1), np.ma.masked, np.array(5), np.array([])),
    *(np.array([0, 9]), np.array([[1, 2]]), np.array(["a", "b"]), np.array([None, {}])),
    *("", "x", "\0", "x\0.csv", "a\nb", "\ud800", "\ud800.csv", "x" * 9999 + ".csv", b"x", "/"),
    *([], [None], [1, 2], [2, 1], ["a", "a"], ["a", None], [True, 1], [[1]], [float("nan")]),
    *([10**400, 1], (), {}, {"a": 1}, {1}, range(3), object(), object, print, Ellipsis, slice(1)),
    *(date(1, 1, 1), date(9999, 12, 31), datetime.min, datetime.max, EARLY, LATE, time(1)),
    *(timedelta(1), np.datetime64("2020-01-01"), np.datetime64("NaT"), np.timedelta64(1, "D")),
    *(pd.NaT, pd.NA, pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01", tz="Asia/Tokyo")),
    *(pd.Series([1, 2]), pd.DataFrame({"a": [1]}), pd.Index(["a"]), duckdb.sql),
]
BOUNDS = {
    "integer": (0, 9),
    "continuous": (0.0, 1.0),
    "date": (date(2020, 1, 1), date(2020, 2, 1)),
    "datetime": (datetime(2020, 1, 1), datetime(2020, 2, 1)),
}
A = Column.integer("a", 0, 9)
SCHEMA = Schema(
    [A, Column.categorical("c", ["x", "y"], nullable=True), Column.continuous("r", 0, 1)]
)
TABLE = pd.DataFrame({"a": [1], "c": ["x"], "r": [0.5]})
RNG = np.random.default_rng(0)
FIELD_KEYS = (
    *("name", "type", "constraints", "bins", "unit", "other", "source", "categories"),
    *("categoriesOrdered", "categorical"),
)


def field(type_, **more):
    return Schema.from_dict({"fields": [{"name": "a", "type": type_, **more}]})


def numeric(kind):
    make, (low, high) = getattr(Column, kind), BOUNDS[kind]
    return {
        f"{kind} name": lambda odd: make(odd, low, high),
        f"{kind} minimum": lambda odd: make("a", odd, high),
        f"{kind} maximum": lambda odd: make("a", low, odd),
        f"{kind} bounds": lambda odd: make("a", odd, odd),
        f"{kind} bins": lambda odd: make("a", low, high, odd),
        f"{kind} open bins": lambda odd: make("a", bins=odd),
        f"{kind} edge": lambda odd: make("a", low, high, [low, odd, high]),
        f"{kind} nullable": lambda odd: make("a", low, high, None, odd),
        f"{kind} other": lambda odd: make("a", low, high, other=odd),
    }


def categories(kind):
    make = getattr(Column, kind)
    return {
        f"{kind} name": lambda odd: make(odd, ["a"]),
        f"{kind} list": lambda odd: make("a", odd),
        f"{kind} category": lambda odd: make("a", [odd]),
        f"{kind} second category": lambda odd: make("a", ["a", odd]),
        f"{kind} other": lambda odd: make("a", ["a", "b"], odd),
        f"{kind} nullable": lambda odd: make("a", ["a"], None, odd),
        f"{kind} bins": lambda odd: make("a", ["a"], bins=odd),
        f"{kind} type": lambda odd: make("a", category_type=odd),
    }


COLUMNS = {
    **{name: call for kind in BOUNDS for name, call in numeric(kind).items()},
    **{
        name: call for kind in ("categorical", "ordinal") for name, call in categories(kind).items()
    },
    "boolean": lambda odd: Column.boolean(odd, odd),
    "kind": lambda odd: Column("a", odd),
    "plain categories": lambda odd: Column("a", "categorical", odd),
    "unit": lambda odd: Column.boolean("a", unit=odd),
    "sources": lambda odd: Column.boolean("a", sources=odd),
    "source": lambda odd: Column.boolean("a", sources={"enum": odd}),
    "key of a source": lambda odd: Column.boolean("a", sources=[(odd, "data")]),
    "with_sources": lambda odd: A.with_sources(odd),
}
CALLS = {
    "Schema": Schema,
    "Schema of one": lambda odd: Schema([odd]),
    "missing_values": lambda odd: Schema([A], odd),
    "missing value": lambda odd: Schema([A], (odd,)),
    "[]": lambda odd: SCHEMA[odd],
    "in": lambda odd: odd in SCHEMA,
    "index": SCHEMA.index,
    "shape": SCHEMA.shape,
    "select": SCHEMA.select,
    "select one": lambda odd: SCHEMA.select([odd]),
    "replace": SCHEMA.replace,
    "with_bins": SCHEMA.with_bins,
    "accept": SCHEMA.accept,
    "accept key": lambda odd: SCHEMA.accept("a", odd),
    "pay": SCHEMA.pay,
    "pay key": lambda odd: SCHEMA.pay("a", odd),
    "read": Schema.read,
    "from_dict": Schema.from_dict,
    "fields": lambda odd: Schema.from_dict({"fields": odd}),
    "field": lambda odd: Schema.from_dict({"fields": [odd]}),
    "missingValues": lambda odd: Schema.from_dict({"fields": [], "missingValues": odd}),
    **{
        f"{type_} {key}": lambda odd, type_=type_, key=key: field(type_, **{key: odd})
        for type_ in ("integer", "string", "number", "datetime")
        for key in FIELD_KEYS
        if key not in ("name", "type")
    },
    **{
        f"{type_} {key}": lambda odd, type_=type_, key=key: field(type_, constraints={key: odd})
        for type_ in ("integer", "string", "boolean", "number", "date", "datetime")
        for key in ("minimum", "maximum", "enum", "required")
    },
    "type": field,
    "encode": SCHEMA.encode,
    "decode": lambda odd: SCHEMA.decode(odd, RNG),
    "decode rng": lambda odd: SCHEMA.decode(np.zeros((1, 3), int), odd),
    "decode format": lambda odd: SCHEMA.decode(np.zeros((1, 3), int), RNG, odd),
    "restore": SCHEMA.restore,
    "draft": draft_schema,
    "max_categories": lambda odd: draft_schema(TABLE, odd),
    "separator": lambda odd: draft_schema(TABLE, separator=odd),
    "read_table": read_table,
    "read_table columns": lambda odd: read_table(TABLE, odd),
    "table_columns": table_columns,
    "check_columns": lambda odd: check_columns(odd, SCHEMA),
    "check_columns one": lambda odd: check_columns([odd], SCHEMA),
    "convert": lambda odd: convert(TABLE, odd),
    "as_relation": lambda odd: as_relation(odd, duckdb.default_connection()),
    "source of an expression": lambda odd: value_expression(A, odd),
    "words of an expression": lambda odd: value_expression(A, missing_values=odd),
}


def or_refused(call, *arguments):
    try:
        return call(*arguments)
    except CounterpoiseError as refusal:
        assert str(refusal) and "\n" not in str(refusal)
        return None


def assert_works(column):
    """A column that was accepted is written and read without loss, and codes what it decodes."""
    schema = Schema([column], missing_values=())
    written = json.dumps(schema.to_dict(), ensure_ascii=False).encode("utf-8")
    assert Schema.from_dict(json.loads(written)) == schema
    if column.is_complete and column.cells <= 200:
        codes = np.arange(column.size)[:, None]
        assert len(column.code_labels()) == column.cells
        np.testing.assert_array_equal(schema.encode(schema.decode(codes, RNG)).codes, codes)


@pytest.mark.parametrize("call", COLUMNS)
def test_an_odd_column_works_or_is_refused(call):
    for odd in ODD:
        column = or_refused(COLUMNS[call], odd)
        if column is not None:
            assert_works(column)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_works_or_is_refused(call):
    for odd in ODD:
        or_refused(CALLS[call], odd)


RESTORABLE = (
    Column.integer("a", 0, 9),
    Column.integer("a", 0, 9, nullable=True),
    Column.continuous("a", 0, 1),
    Column.date("a", date(2020, 1, 1), date(2021, 1, 1)),
    Column.datetime("a", datetime(2020, 1, 1), datetime(2021, 1, 1), nullable=True),
    Column.categorical("a", ["x"]),
    Column.categorical("a", [1, 2]),
)


@pytest.mark.parametrize("column", RESTORABLE, ids=lambda column: column.kind)
def test_odd_values_are_coded_always_and_restored_or_refused(column):
    schema = Schema([column])
    values = np.empty(len(ODD), dtype=object)
    for place, odd in enumerate(ODD):
        values[place] = odd
        or_refused(schema.restore, pd.DataFrame({"a": pd.Series(values[[place]], dtype=object)}))
    assert len(schema.encode(pd.DataFrame({"a": pd.Series(values, dtype=object)}))) == len(ODD)


@pytest.mark.parametrize("name", ["\0", "a\0b", "\ud800", "a\nb", ""])
def test_a_name_that_cannot_be_written_is_refused(tmp_path, name):
    with pytest.raises(CounterpoiseError, match="name"):
        draft_schema(pd.DataFrame([[1]], columns=pd.Index([name], dtype=object)))
    if "\ud800" not in name:
        with pytest.raises(CounterpoiseError):
            draft_schema(pa.table({name: [1]}))
        quoted = f'"{name}",b\n1,2\n'
        (tmp_path / "t.csv").write_text(quoted, encoding="utf-8")
        with pytest.raises(CounterpoiseError):
            draft_schema(tmp_path / "t.csv")


def test_a_bound_that_no_column_holds_is_refused_in_words():
    with pytest.raises(SchemaError, match=r"column 'a': .*within 2\^53"):
        Column.integer("a", 0, 10**30)
    with pytest.raises(SchemaError, match="finite"):
        Column.continuous("a", 0, 10**400)
    with pytest.raises(SchemaError, match="missing one"):
        Column.datetime("a", pd.NaT)
    with pytest.raises(SchemaError, match="must be a list"):
        Column.categorical("a", "yes")
    with pytest.raises(SchemaError, match="between 1 and"):
        Column.continuous("a", 0, 1, bins=-5)


def test_a_table_in_the_place_of_a_number_is_not_quoted():
    with pytest.raises(SchemaError, match="not a DataFrame") as refused:
        draft_schema(TABLE, pd.DataFrame({"name": ["Ada-Lovelace-1815"]}))
    assert "Ada" not in str(refused.value)
    with pytest.raises(SchemaError, match="not a int"):
        draft_schema(TABLE, -(10**5000))


def test_many_bins_and_many_edges_are_coded_in_memory_and_in_the_database():
    edges = np.sort(RNG.random(9_999)).tolist()
    values = pd.DataFrame({"x": [0.0, 1.0, *RNG.random(500), *edges[::50]]})
    for bins in (100_000, [0, *edges, 1], [0, *edges[::100], 1]):
        schema = Schema([Column.continuous("x", 0, 1, bins=bins)])
        with duckdb.connect() as connection:
            found = schema.encode(connection.from_df(values)).codes
        np.testing.assert_array_equal(found, schema.encode(values).codes)
    days = Column.date("x", date(1, 1, 1), date(9999, 12, 31), bins=sorted(_days(300)))
    moments = pd.DataFrame({"x": pd.Series(["0001-01-01", "1500-06-01", "9999-12-31", None])})
    with duckdb.connect() as connection:
        connection.register("moments", moments)
        found = Schema([days]).encode(connection.sql("SELECT x::DATE AS x FROM moments")).codes
    np.testing.assert_array_equal(found, Schema([days]).encode(moments).codes)


def _days(count):
    drawn = {date.fromordinal(int(day)) for day in RNG.integers(2, date.max.toordinal(), count)}
    return drawn | {date.min, date.max}


ZONED = datetime(2020, 6, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([ZONED, None]),
        pd.Series([ZONED, None], dtype=object),
        pd.Series([ZONED, None]).dt.tz_convert("Asia/Tokyo"),
        pd.Series([ZONED, None], dtype=pd.ArrowDtype(pa.timestamp("us", "Europe/Berlin"))),
        pd.Series(["2020-06-01T01:30:00+02:00", ""]),
        pd.Series([ZONED.astimezone(UTC).replace(tzinfo=None), pd.NaT]),
    ],
    ids=["inferred", "objects", "Tokyo", "Arrow", "texts", "naive"],
)
def test_moments_with_a_time_zone_are_restored_in_utc(values):
    columns = [
        Column.datetime("a", datetime(2020, 1, 1), datetime(2021, 1, 1), nullable=True),
        Column.date("a", date(2020, 1, 1), date(2021, 1, 1), nullable=True),
    ]
    restored = [Schema([column]).restore(pd.DataFrame({"a": values}))["a"] for column in columns]
    assert [str(series.dtype) for series in restored] == ["datetime64[us]", "datetime64[s]"]
    assert restored[0][0] == pd.Timestamp("2020-05-31 23:30")
    assert restored[1][0] == pd.Timestamp("2020-05-31")
    assert restored[0].isna().tolist() == restored[1].isna().tolist() == [False, True]


def test_days_of_the_whole_calendar_are_restored():
    days = [date(1, 1, 1), date(1500, 6, 1), date(9999, 12, 31)]
    schema = Schema([Column.date("a", date.min, date.max)])
    for values in (days, [str(day) for day in days], pd.Series(days, dtype=object)):
        restored = schema.restore(pd.DataFrame({"a": values}))["a"]
        assert restored.astype(str).tolist() == [str(day) for day in days]


def test_what_is_no_number_and_no_moment_is_not_restored():
    for column, values in (
        (RESTORABLE[0], [1.5]),
        (RESTORABLE[0], [None]),
        (RESTORABLE[0], [float("inf")]),
        (RESTORABLE[0], [1e300]),
        (RESTORABLE[0], np.array([2**64 - 1], dtype=np.uint64)),
        (RESTORABLE[2], ["many"]),
        (RESTORABLE[2], [1j]),
        (RESTORABLE[3], [5]),
        (RESTORABLE[4], ["soon"]),
    ):
        with pytest.raises(TableError, match="column 'a': "):
            Schema([column]).restore(pd.DataFrame({"a": values}))


def test_a_column_named_like_an_argument_is_restored():
    schema = Schema([Column.integer("self", 0, 9)])
    assert schema.restore(pd.DataFrame({"self": ["3"]}))["self"].tolist() == [3]
