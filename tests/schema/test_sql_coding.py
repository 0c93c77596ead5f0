"""SQL codes a file as numpy codes a frame: the same codes and the same units, to the bit."""

import json
import math
from datetime import date, datetime

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.schema import (
    Column,
    Grouping,
    Schema,
    Spelling,
    as_relation,
    read_table,
    text_expression,
    value_expression,
    write_csv,
    write_parquet,
)
from counterpoise.schema.sql import quote_name
from tests.schema.schema_strategies import schemas

HARD_TEXTS = [
    *("", " ", "?", "nan", "inf", "-inf", "1e400", "-1e400", "1e-400", "0x1F", "1_000", "1,5"),
    *(
        "0",
        "1",
        "2",
        "3.0",
        " 3 ",
        "+4",
        "-5",
        "6.5",
        "99999999999999999999",
        "0.1",
        "0.30000000001",
    ),
    *(
        "true",
        "FALSE",
        " True ",
        "yes",
        "it's",
        'say "hi"',
        "a,b",
        "a\nb",
        "élan",
        "Ω",
        "日本",
        "\\",
    ),
    *("2020-02-29", "2020-02-30", "0001-01-01", "9999-12-31", "10000-01-01", "0044-03-15 (BC)"),
    *("2020-06-01 12:34:56.789012", "2020-06-01T12:34:56Z", "2020-06-01T00:30:00+02:00"),
    *("infinity", "-infinity", "epoch", "2020/06/01", "20200601", "2020-06-01 10:00:00 Asia/Tokyo"),
    *("Yes", "nein", "SÍ", "o", "j\u00a0", "1.0", "2", "on", "1_0", "01/02/03", "12:30", "12_34"),
    *("1999-12-31T23:59:59.9999999", "'; DROP TABLE t; --", "$1", "NULL", "None", "<NA>"),
]

COLUMNS = [
    Column.categorical("text", ["it's", 'say "hi"', "a,b", "a\nb", "élan", "日本", "3.0", "nan"]),
    Column.categorical("texts", ["1", "true", "'; DROP TABLE t; --"], other="true", nullable=True),
    Column.categorical("numbers", [3, -5, 0, 2**53], nullable=True),
    Column.categorical("others", [3, 1], other=1),
    Column.ordinal("truth", [True, False], nullable=True),
    Column.boolean("required"),
    Column.boolean(
        "pair", nullable=True, spelling=Spelling(true_values=("3", "on"), false_values=("NEIN",))
    ),
    Column.categorical(
        "grouped",
        ["it's", "1", "a,b", "日本", "3.0"],
        other="1",
        grouping=Grouping((2, 0, 1, 0, 2), (0.2,) * 5, (0.0,) * 5),
    ),
    Column.ordinal(
        "runs",
        [4, 3, 0, 1],
        nullable=True,
        grouping=Grouping((0, 0, 1, 1), (0.25,) * 4, (0.0,) * 4),
    ),
    Column.integer("few", -5, 6, nullable=True),
    Column.integer("many", -(2**53), 2**53, bins=17),
    Column.integer("edged", -10, 100, bins=(-10, 0, 3, 100)),
    Column.continuous("real", -0.1, 0.3, bins=30, nullable=True),
    Column.continuous("edges", 0, 10, bins=(0, 0.1, 0.30000000001, 6.5, 10)),
    Column.date("day", date(1, 1, 1), date(9999, 12, 31), nullable=True),
    Column.date(
        "near",
        date(2020, 1, 1),
        date(2020, 12, 31),
        bins=(date(2020, 1, 1), date(2020, 6, 1), date(2020, 12, 31)),
    ),
    Column.datetime("moment", datetime(1, 1, 1), datetime.max, bins=97, nullable=True),
    Column.datetime("hour", datetime(2020, 5, 31), datetime(2020, 6, 2), bins=48),
    Column.datetime("point", datetime(2020, 6, 1), datetime(2020, 6, 1)),
    Column.integer('odd "name', 0, 3, nullable=True),
]


def by_sql(schema, relation):
    found = schema.encode(relation)
    return found.codes, found.units


def assert_alike(schema, path):
    with duckdb.connect() as connection:
        codes, units = by_sql(schema, as_relation(path, connection))
    frame = schema.encode(read_table(path))
    np.testing.assert_array_equal(codes, frame.codes)
    np.testing.assert_array_equal(units, frame.units)
    file = schema.encode(path)
    np.testing.assert_array_equal(file.codes, frame.codes)
    np.testing.assert_array_equal(file.units, frame.units)


@pytest.mark.parametrize("missing_values", [("",), (), ("", "?", "nan", "it's", "99")])
@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_hard_texts_are_coded_alike(tmp_path, write, missing_values):
    columns = [
        column
        for column in COLUMNS
        if not {str(category) for category in column.categories or ()} & set(missing_values)
    ]
    schema = Schema(columns, missing_values)
    texts = [*HARD_TEXTS, None]
    frame = pd.DataFrame({name: pd.Series(texts, dtype=object) for name in schema.names})
    path = tmp_path / ("t.csv" if write is write_csv else "t.parquet")
    write(frame, path)
    assert len(read_table(path)) == len(texts)
    assert_alike(schema, path)


TYPED = {
    "DOUBLE": "'nan'::DOUBLE, 'inf'::DOUBLE, '-inf'::DOUBLE, 0, 1, 0.1, 3, 6.5, 1e300, 1e16",
    "FLOAT": "'nan'::FLOAT, 0.1, 3, 1e30, 1, 0.2",
    "BIGINT": "0, 1, 3, -5, 9223372036854775807, -9223372036854775808, 2020",
    "UBIGINT": "0, 18446744073709551615",
    "HUGEINT": "0, 3, 170141183460469231731687303715884105727",
    "TINYINT": "0, 1, 3, -5",
    "DECIMAL(18, 3)": "0, 0.1, 6.5, 3",
    "BOOLEAN": "true, false",
    "DATE": "'0001-01-01', '2020-06-01', '9999-12-31', 'infinity', '-infinity', '5000000-01-01'",
    "TIMESTAMP": "'0001-01-01', '2020-06-01 10:00:00.000001', 'infinity', '290000-01-01'",
    "TIMESTAMP_S": "'1969-12-31 23:59:59', '2020-06-01 10:00:00'",
    "TIMESTAMP_MS": "'1969-12-31 23:59:59.999', '2020-06-01 10:00:00'",
    "TIMESTAMP_NS": "'1969-12-31 23:59:59.999999999', '2020-06-01 10:00:00.123456789'",
    "TIMESTAMPTZ": "'2020-06-01 01:00:00+02', '2020-06-01 10:00:00 Asia/Tokyo'",
    "ENUM('a,b', 'élan')": "'a,b', 'élan'",
}


# A zone can only matter to what has to do with time.
ZONED = [
    (type_, zone)
    for type_ in TYPED
    for zone in ("UTC", "Asia/Tokyo")
    if zone == "UTC" or type_.startswith(("DATE", "TIME"))
]


@pytest.mark.parametrize(("type_", "zone"), ZONED)
def test_every_type_of_a_parquet_file_is_coded_alike(tmp_path, type_, zone):
    values = ", ".join(f"({value})" for value in (*TYPED[type_].split(", "), "NULL"))
    path = tmp_path / "typed.parquet"
    every = ", ".join(f"CAST(v AS {type_}) AS {quote_name(column.name)}" for column in COLUMNS)
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        connection.execute(f"COPY (SELECT {every} FROM (VALUES {values}) AS t(v)) TO '{path}'")
        schema = Schema(COLUMNS)
        if type_ == "TIMESTAMPTZ":
            # Its text depends on the zone of the connection; only its moment does not.
            schema = schema.select([column.name for column in schema if column.is_numeric])
        codes, units = by_sql(schema, as_relation(path, connection))
    frame = schema.encode(read_table(path))
    np.testing.assert_array_equal(codes, frame.codes)
    np.testing.assert_array_equal(units, frame.units)


def test_days_beyond_the_calendar_are_those_of_the_file_in_an_arrow_table(tmp_path):
    path = tmp_path / "days.parquet"
    days = "[DATE 'infinity', DATE '-infinity', DATE '5000000-01-01', NULL]"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT unnest({days}) AS moment) TO '{path}'")
        arrow = connection.read_parquet(str(path)).to_arrow_table()
    schema = Schema([Column.datetime("moment", datetime(1, 1, 1), datetime.max, nullable=True)])
    expected = schema.encode(path)
    np.testing.assert_array_equal(schema.encode(arrow).units, expected.units)
    np.testing.assert_array_equal(schema.encode(arrow).codes, expected.codes)


@settings(max_examples=8)
@given(schema=schemas(), seed=st.integers(0, 2**32))
def test_every_schema_is_coded_alike(tmp_path_factory, schema, seed):
    rng = np.random.default_rng(seed)
    drawn = np.column_stack([rng.integers(0, size, 20) for size in schema.sizes])
    folder = tmp_path_factory.mktemp("alike")
    table = schema.decode(drawn, rng)
    for write, name in ((write_csv, "t.csv"), (write_parquet, "t.parquet")):
        write(table, folder / name)
        np.testing.assert_array_equal(schema.encode(folder / name).codes, drawn)
        assert_alike(schema, folder / name)


def test_random_reals_fall_into_the_same_bins():
    column = Column.continuous("x", 0.1, 0.7, bins=1000)
    edges = column.edges
    values = np.concatenate([edges, np.nextafter(edges, 1), np.nextafter(edges, 0)])
    frame = pd.DataFrame({"x": np.concatenate([values, np.random.default_rng(0).random(10_000)])})
    with duckdb.connect() as connection:
        codes, units = by_sql(Schema([column]), connection.from_df(frame))
    coded = Schema([column]).encode(frame)
    np.testing.assert_array_equal(codes, coded.codes)
    np.testing.assert_array_equal(units, coded.units)


def test_the_source_may_have_another_name():
    column = Column.integer("age", 0, 9)
    with duckdb.connect() as connection:
        relation = connection.sql('SELECT \'7\' AS "AGE ""raw"""')
        assert relation.project(value_expression(column, 'AGE "raw"')).fetchall() == [(7,)]


def test_text_is_what_categories_are_compared_with():
    column = Column.categorical("c")
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT unnest([1.0::DOUBLE, 'nan'::DOUBLE, 0.5]) AS c")
        assert relation.project(text_expression(column)).fetchall() == [("1",), (None,), ("0.5",)]
        relation = connection.sql("SELECT unnest(['', 'x']) AS c")
        assert relation.project(text_expression(column)).fetchall() == [(None,), ("x",)]


def test_a_relation_is_coded_in_the_order_of_its_rows():
    schema = Schema([Column.integer("k", 0, 99_999, bins=1000)])
    with duckdb.connect() as connection:
        coded = schema.encode(connection.sql("SELECT range AS k FROM range(100000)"))
    assert (np.diff(coded.codes[:, 0]) >= 0).all()
    assert json.dumps(math.fsum(coded.units[:, 0])) == "50000.0"
