"""A value is read by itself: no neighbour in its column changes its code or its text.

Each case is a column of one declared type in one kind of table. Its rows are read without and with
an odd neighbour, by the coding and by the storages of the vault. The neighbour stands before them,
where it is seen first.
"""

import enum
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from counterpoise.schema import Column, Schema, Spelling
from counterpoise.vault.budget import Budget
from counterpoise.vault.storage import open_storage
from counterpoise.vault.vault import Vault
from tests.odd import contrary

WORDS = ("", "?")
BIG = 1_210_086_703_870_283_013
NAMES = ("text", "whole", "real", "moment", "euro", "day", "clock", "truth", "pair")
NUMERIC = (
    Column.categorical("whole", [0, 1, 3, 2**53], nullable=True),
    Column.continuous("real", -1, 2, nullable=True),
    Column.datetime("moment", datetime(2020, 1, 1), datetime(2021, 1, 1), bins=97, nullable=True),
    Column.continuous("euro", -1, 2, nullable=True, spelling=Spelling(decimal=",", group=".")),
    Column.date(
        "day", "2020-01-01", "2021-01-01", bins=97, nullable=True, spelling=Spelling("%d/%m/%Y")
    ),
    Column.time("clock", nullable=True, format="%H%M"),
    Column.boolean("truth", nullable=True),
    Column.boolean(
        "pair", nullable=True, spelling=Spelling(true_values=["3", "b"], false_values=["1", "a"])
    ),
)


class Colour(str, enum.Enum):  # noqa: UP042 the older spelling is the one that prints otherwise
    RED = "red"


def frame(dtype):
    return lambda values: pd.DataFrame({name: pd.Series(values, dtype=dtype) for name in NAMES})


def categories(values):
    return pd.DataFrame({name: pd.Categorical(values) for name in NAMES})


def arrow(type_):
    return lambda values: pa.table({name: pa.array(values, type_) for name in NAMES})


def chunked(type_):
    def make(values):
        pieces = [pa.array([value], type_) for value in values]
        return pa.table({name: pa.chunked_array(pieces, type_) for name in NAMES})

    return make


def polars(dtype):
    return lambda values: pl.DataFrame({name: pl.Series(values, dtype=dtype) for name in NAMES})


DAY, NOON = date(2020, 6, 1), datetime(2020, 6, 1, 12)
ZONED = datetime(2020, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
DECIMAL = pa.decimal128(38, 2)
LABELS = pa.dictionary(pa.int8(), pa.string())
PROVIDERS = pa.dictionary(pa.int8(), pa.int64())

# rows, and the neighbours that may stand beside them
WHOLE = ([BIG, BIG + 1, 3, 0], [None, -(2**63), 2**63 - 1])
UNSIGNED = ([BIG, 2**64 - 1, 3], [None, 2**63])
FLOATS = ([0.0, 1.0, 1.5, 1e17], [None, float("nan"), float("inf"), 1e300, -0.0])
ZEROS = ([-0.0, 1.0], [0.0])
TRUTHS = ([True, False], [None])
TEXTS = (
    ["a", "?", "3", "1.0", "2020-06-01", "1,5", "01/06/2020", "930", "9:30", "Yes", "non", "2"],
    [None, "?", "", "a", "a\0b", "1e400"],
)
DAYS = ([DAY, date(2020, 1, 1)], [None, date(1, 1, 1), date(9999, 12, 31)])
MOMENTS = ([NOON, datetime(2020, 6, 1)], [None, datetime(2020, 1, 1, 0, 0, 0, 1)])
AGES = (MOMENTS[0], [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)])
EPOCHS = ([1_590_969_600, 1_591_012_800], [None, -(10**15), 10**15])
ZONES = ([ZONED], [None, datetime(2020, 1, 1, tzinfo=UTC)])
MONEY = ([Decimal("1.50"), Decimal("3.00"), Decimal(BIG)], [None, Decimal(10**30)])
LISTS = ([[1, 2], [BIG]], [None, [None], [], [1, None]])
TEXT_LISTS = ([["a"], ["b", "c"]], [None, [None]])
SPANS = ([timedelta(days=1), timedelta(seconds=1)], [None, timedelta(microseconds=1)])
TIMES = ([time(12), time(1, 2, 3)], [None, time(0, 0, 0, 1)])
BYTES = ([b"a", b"3"], [None, b"\xff\x00"])
NUMBERED = (
    [1, 1.0, 1.5, 3, True, Decimal("1.5"), Decimal("1.50"), BIG],
    [None, np.nan, pd.NA, -0.0, 0.0, 2**63, 10**400, "?", np.str_("?"), Decimal("sNaN")],
)
MIXED = (
    ["a", "?", "3", 3, 1.0, True, DAY, NOON, ZONED, pd.Timestamp(NOON), [1, 2], b"a", Colour.RED],
    [
        *(None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), -0.0, 1, 10**5000, Decimal("sNaN")),
        *(np.str_("?"), np.str_("a"), "\ud800", [None], 1 + 2j, np.float32(0.1), {"a": 1}, object),
    ],
)
WORDY = (
    ["a", "?", np.str_("?"), np.str_("b"), Colour.RED, "red", ""],
    [None, np.nan, pd.NaT, 1, Decimal("sNaN"), b"", "\ud800", date(1, 1, 1), np.str_("red")],
)


class Secretive:
    """A value that cannot be asked for its type."""

    @property
    def __class__(self):
        raise RuntimeError("not to be asked")


CONTRARY = (
    Secretive(),
    *(contrary(object), contrary(float, 0.5), contrary(float, "nan"), contrary(int, 3)),
    *(contrary(str, "a"), contrary(bytes, b"a"), contrary(Decimal, "1.5"), contrary(complex, 1)),
    *(contrary(date, 2020, 6, 1), contrary(datetime, 2020, 6, 1), contrary(np.float64, 1.5)),
)
DATED = (
    [DAY, NOON, datetime(2020, 6, 1), pd.Timestamp(NOON), np.datetime64("2020-06-01")],
    [None, pd.NaT, "2020-06-01", "soon", 5, ZONED, date(1, 1, 1), datetime.max],
)

IN_MEMORY = {
    **{f"pandas {dtype}": (frame(dtype), *WHOLE) for dtype in ("Int64", "int64[pyarrow]")},
    **{f"pandas {dtype}": (frame(dtype), *UNSIGNED) for dtype in ("UInt64", "uint64[pyarrow]")},
    **{f"pandas {dtype}": (frame(dtype), *FLOATS) for dtype in ("float64", "Float64")},
    "pandas double[pyarrow]": (frame("double[pyarrow]"), *FLOATS),
    "pandas float32": (frame("float32"), [0.1, 1.0], [None, float("inf"), -0.0]),
    "pandas zeros": (frame("float64"), *ZEROS),
    "pandas Float64 zeros": (frame("Float64"), *ZEROS),
    "pandas int64": (frame("int64"), WHOLE[0], [-(2**63), 2**63 - 1]),
    "pandas uint64": (frame("uint64"), UNSIGNED[0], [2**63]),
    **{f"pandas {dtype}": (frame(dtype), *TRUTHS) for dtype in ("boolean", "bool[pyarrow]")},
    **{
        f"pandas {dtype}": (frame(dtype), *TEXTS)
        for dtype in ("str", "string[python]", "string[pyarrow]", "object")
    },
    "pandas Arrow texts": (frame(pd.ArrowDtype(pa.string())), *TEXTS),
    **{f"pandas M8[{unit}]": (frame(f"M8[{unit}]"), *MOMENTS) for unit in ("s", "ms", "us", "ns")},
    "pandas M8[s] ages": (frame("M8[s]"), *AGES),
    "pandas zoned": (frame("datetime64[us, Europe/Berlin]"), *ZONES),
    "pandas date32[pyarrow]": (frame(pd.ArrowDtype(pa.date32())), *DAYS),
    "pandas timestamp[pyarrow]": (frame(pd.ArrowDtype(pa.timestamp("us"))), *MOMENTS),
    "pandas decimal[pyarrow]": (frame(pd.ArrowDtype(DECIMAL)), *MONEY),
    "pandas list[pyarrow]": (frame(pd.ArrowDtype(pa.list_(pa.int64()))), *LISTS),
    "pandas timedelta": (frame("m8[us]"), *SPANS),
    "pandas categories": (categories, ["b", "a", "3"], [None, "?", "2020-06-01"]),
    "pandas whole categories": (categories, [BIG, 3], [None, -5, 2**62]),
    "pandas mixed categories": (categories, [BIG, "a", "3"], [None, "?", 5, 0.5]),
    "pandas wordy objects": (frame(object), *WORDY),
    "pandas mixed objects": (frame(object), *MIXED),
    "pandas numbers as objects": (frame(object), *NUMBERED),
    "pandas dates as objects": (frame(object), *DATED),
    "pandas contrary objects": (frame(object), MIXED[0], CONTRARY),
    "arrow int64": (arrow(pa.int64()), *WHOLE),
    "arrow int64 in chunks": (chunked(pa.int64()), *WHOLE),
    "arrow uint64": (arrow(pa.uint64()), *UNSIGNED),
    "arrow double": (arrow(pa.float64()), *FLOATS),
    "arrow zeros": (arrow(pa.float64()), *ZEROS),
    "arrow bool": (arrow(pa.bool_()), *TRUTHS),
    "arrow string": (arrow(pa.string()), *TEXTS),
    "arrow large_string": (arrow(pa.large_string()), *TEXTS),
    "arrow date32": (arrow(pa.date32()), *DAYS),
    "arrow date64": (arrow(pa.date64()), *DAYS),
    "arrow timestamp": (arrow(pa.timestamp("us")), *MOMENTS),
    "arrow seconds": (arrow(pa.timestamp("s")), *EPOCHS),
    "arrow zoned": (arrow(pa.timestamp("us", "Europe/Berlin")), *ZONES),
    "arrow decimal": (arrow(DECIMAL), *MONEY),
    "arrow list": (arrow(pa.list_(pa.int64())), *LISTS),
    "arrow list of seconds": (arrow(pa.list_(pa.timestamp("s"))), [[0], [5]], [None, [10**15]]),
    "arrow struct": (arrow(pa.struct({"a": pa.int64()})), [{"a": BIG}], [None, {"a": None}]),
    "arrow duration": (arrow(pa.duration("us")), *SPANS),
    "arrow time": (arrow(pa.time64("us")), *TIMES),
    "arrow binary": (arrow(pa.binary()), *BYTES),
    "arrow dictionary": (arrow(LABELS), ["a", "?", "3"], [None, "b"]),
    "arrow whole dictionary": (arrow(PROVIDERS), [BIG, 3], [None, 5]),
    "polars int64": (polars(pl.Int64), *WHOLE),
    "polars uint64": (polars(pl.UInt64), *UNSIGNED),
    "polars int128": (polars(pl.Int128), *WHOLE),
    "polars float64": (polars(pl.Float64), *FLOATS),
    "polars zeros": (polars(pl.Float64), *ZEROS),
    "polars boolean": (polars(pl.Boolean), *TRUTHS),
    "polars string": (polars(pl.String), *TEXTS),
    "polars categorical": (polars(pl.Categorical), ["a", "?", "3"], [None, "b"]),
    "polars date": (polars(pl.Date), *DAYS),
    "polars datetime": (polars(pl.Datetime("us")), *MOMENTS),
    "polars zoned": (polars(pl.Datetime("us", "Europe/Berlin")), *ZONES),
    "polars decimal": (polars(pl.Decimal(38, 2)), *MONEY),
    "polars list": (polars(pl.List(pl.Int64)), *LISTS),
    "polars duration": (polars(pl.Duration("us")), *SPANS),
    "polars binary": (polars(pl.Binary), *BYTES),
}
# SQL values of a type, for relations and for Parquet, which stay where they are or are read
IN_DATABASE = {
    "BIGINT": ([f"{BIG}", f"{BIG + 1}", "3"], ["NULL", "-9223372036854775808"]),
    "UBIGINT": ([f"{2**64 - 1}", "3"], ["NULL", f"{2**63}"]),
    "HUGEINT": ([f"{BIG}", f"{10**30}", "3"], ["NULL", f"{2**126}"]),
    "DECIMAL(38, 2)": ([f"{BIG}", "1.5", "3"], ["NULL", f"{10**30}"]),
    "DOUBLE": (["'0.0'", "'1'", "'1.5'", "'1e17'"], ["NULL", "'nan'", "'inf'", "'-0.0'"]),
    "BOOLEAN": (["true", "false"], ["NULL"]),
    "VARCHAR": (["'a'", "'?'", "'3'", "'2020-06-01'"], ["NULL", "'?'", "''", "'5000-01-01'"]),
    "DATE": (["'2020-06-01'", "'2020-01-01'"], ["NULL", "'infinity'", "'5000000-01-01'"]),
    "TIMESTAMP": (["'2020-06-01 12:00:00'", "'2020-06-01'"], ["NULL", "'infinity'", "'9999-1-1'"]),
    "TIMESTAMPTZ": (["'2020-06-01 12:00:00+02'"], ["NULL", "'2020-01-01 00:00:00.000001+00'"]),
    "ENUM('a', '?', '3')": (["'a'", "'3'"], ["NULL", "'?'"]),
    "BIGINT[]": (["[1, 2]", f"[{BIG}]"], ["NULL", "[NULL]", "[]"]),
}


def texts_of(table, storage="memory"):
    opened = open_storage(table, Schema([Column.categorical("text")], WORDS), storage)
    found = opened.distinct("text")
    opened.close()
    assert len(found[0]) == len(set(found[0]))
    return Counter(dict(zip(found[0], found[1].tolist(), strict=True)))


def readings(alone, storage="memory"):
    """The texts of a table's rows, and its coding by a schema that lists them all."""
    texts = texts_of(alone, storage)
    text = Column.categorical("text", [*texts, "no text of a row"], nullable=True)
    return texts, Schema([text, *NUMERIC], WORDS).encode(alone)


def assert_read_alike(expected, table, storages=("memory",)):
    """The rows were read as `expected`; in `table` neighbours stand before them."""
    texts, alone = expected
    coded = alone.schema.encode(table)
    np.testing.assert_array_equal(coded.codes[-len(alone) :], alone.codes)
    np.testing.assert_array_equal(coded.units[-len(alone) :], alone.units)
    for storage in storages:
        found = texts_of(table, storage)
        assert not texts - found
        assert sum((found - texts).values()) <= len(coded) - len(alone)


@cache
def rows_alone(case):
    make, rows, _ = IN_MEMORY[case]
    return readings(make(rows))


@pytest.mark.parametrize(
    ("case", "place"),
    [(case, place) for case in IN_MEMORY for place in range(len(IN_MEMORY[case][2]))],
    ids=lambda part: str(part).replace(" ", "-"),
)
def test_no_neighbour_changes_how_a_value_is_read(case, place):
    make, rows, neighbours = IN_MEMORY[case]
    assert_read_alike(rows_alone(case), make([neighbours[place], *rows]))


def test_a_number_that_cannot_be_compared_is_null():
    schema = Schema([Column.categorical("text", ["0.5"], nullable=True), *NUMERIC])
    coded = schema.encode(frame(object)([contrary(float, 0.5), 0.5]))
    nulls = [column.null_code for column in schema]
    assert coded.codes[0].tolist() == nulls
    assert coded.codes[1, :3].tolist() != nulls[:3]


@pytest.mark.parametrize("type_", IN_DATABASE)
def test_no_neighbour_changes_how_the_database_reads_a_value(tmp_path, type_):
    rows, neighbours = IN_DATABASE[type_]
    with duckdb.connect() as connection:

        def relation(values):
            listed = ", ".join(f"({value})" for value in values)
            every = ", ".join(f"CAST(v AS {type_}) AS {name}" for name in NAMES)
            return connection.sql(f"SELECT {every} FROM (VALUES {listed}) AS t(v)")

        alone, beside = relation(rows), relation([*neighbours, *rows])
        expected = readings(alone, "duckdb")
        assert_read_alike(expected, beside, storages=("duckdb",))
        beside.write_parquet(str(tmp_path / "beside.parquet"))
    if type_ != "HUGEINT":  # which a Parquet file holds as doubles
        assert_read_alike(expected, tmp_path / "beside.parquet", storages=("memory", "duckdb"))


@pytest.mark.parametrize(
    "neighbour", ["", "?", "x", "5.5", "2020-01-01", "true", '"a,b"', "1e400", '"two\nlines"']
)
def test_no_neighbour_changes_how_a_csv_is_read(tmp_path, neighbour):
    rows = [f"{BIG}", "3", "1.0", "a", "?", "2020-06-01", "true", "007", "01/06/2020", "930"]
    alone, beside = tmp_path / "alone.csv", tmp_path / "beside.csv"
    for path, values in ((alone, rows), (beside, [neighbour, *rows])):
        lines = [",".join(NAMES), *(",".join([value] * len(NAMES)) for value in values)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert_read_alike(readings(alone), beside, storages=("memory", "duckdb"))


def providers(null):
    rng = np.random.default_rng(0)
    rows = [BIG + int(place) for place in rng.integers(0, 4, 400)]
    return [*rows, None] if null else rows


@pytest.mark.parametrize("kind", ["arrow", "polars", "pandas", "parquet", "relation"])
def test_paid_categories_are_the_same_with_a_null_among_the_rows(tmp_path, kind):
    listed = []
    for null in (False, True):
        table = pa.table({"text": pa.array(providers(null), pa.int64())})
        source = {
            "arrow": table,
            "polars": pl.from_arrow(table),
            "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
            "parquet": tmp_path / "t.parquet",
            "relation": duckdb.from_arrow(table),
        }[kind]
        parquet.write_table(table, tmp_path / "t.parquet")
        schema = Schema([Column.categorical("text", nullable=True).with_sources({"enum": "paid"})])
        with Vault(source, schema, Budget(epsilon=50.0, delta=1e-6), seed=1) as vault:
            share = vault.budget.whole
            listed.append(vault.categories("text", share.part(0.5), delta=1e-7).values)
    assert listed[0] == listed[1] == tuple(str(BIG + place) for place in range(4))


@pytest.mark.parametrize("text", ["a\0b", "\ud800", 10**5000], ids=["NUL", "half", "huge"])
def test_a_frequent_value_that_no_schema_can_list_is_not_listed(text):
    table = pd.DataFrame({"text": pd.Series([text] * 500 + ["x"] * 500, dtype=object)})
    schema = Schema([Column.categorical("text").with_sources({"enum": "paid"})])
    with Vault(table, schema, Budget(epsilon=10.0, delta=1e-6), seed=1) as vault:
        share = vault.budget.whole
        assert vault.categories("text", share.part(0.5), delta=1e-7).values == ("x",)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("DATE '2020-06-01'", "2020-06-01"),
        ("TIMESTAMP '2020-06-01'", "2020-06-01"),
        ("TIMESTAMP_NS '2020-06-01 00:00:00.5'", "2020-06-01 00:00:00.5"),
        ("TIMESTAMPTZ '2020-06-01 02:30:00+02'", "2020-06-01 00:30:00"),
        ("TIMESTAMPTZ '2020-06-01 02:00:00+02'", "2020-06-01"),
        ("1.50::DECIMAL(9, 2)", "1.50"),
        (f"{10**30}::HUGEINT", str(10**30)),
        ("'-0.0'::DOUBLE", "0"),
        ("1e16::DOUBLE", "1e+16"),
        ("'a'::ENUM('a')", "a"),
    ],
)
def test_a_value_has_one_text_in_every_storage(sql, text):
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        relation = connection.sql(f"SELECT {sql} AS text")
        assert set(texts_of(relation, "duckdb")) == {text}
        assert set(texts_of(relation, "memory")) == {text}
        assert set(texts_of(relation.to_arrow_table())) == {text}


def test_a_folder_named_like_a_column_says_nothing_of_it(tmp_path):
    folder = tmp_path / "text=5"
    folder.mkdir()
    frame = pa.table({"text": ["a", "b"]})
    parquet.write_table(frame, folder / "t.parquet")
    (folder / "t.csv").write_text("text\na\nb\n", encoding="utf-8")
    for path in (folder / "t.parquet", folder / "t.csv"):
        schema = Schema([Column.categorical("text", ["a", "b", "5"])])
        assert schema.encode(path).codes[:, 0].tolist() == [0, 1]
        assert set(texts_of(path)) == set(texts_of(path, "duckdb")) == {"a", "b"}


@pytest.mark.parametrize(
    "values",
    [
        pd.array([5.0, 7.0, 99.5], dtype="Float64"),
        pd.array([5.0, None, 99.5], dtype="Float64"),
        pd.array([5, None, 99], dtype="Int64"),
        pd.array([True, None], dtype="boolean"),
        pd.array([5.0, None, 99.5], dtype="double[pyarrow]"),
        np.array([5.0, np.nan, -3.0]),
        pd.array(["1", None, "x"], dtype="str"),
        pd.Categorical([5.5, 99.5, None]),
        np.array(["2020-01-01", "NaT"], dtype="M8[us]"),
        np.array(["x", np.str_(""), None, -0.0], dtype=object),
    ],
    ids=lambda values: str(values.dtype),
)
def test_the_table_of_the_caller_is_left_as_it_is(values):
    table = pd.DataFrame({name: pd.Series(values) for name in NAMES})
    before = table.copy(deep=True)
    text = Column.categorical("text", ["1"], nullable=True)
    Schema([text, Column.integer("whole", 0, 9), Column.continuous("real", 0, 9)]).encode(table)
    texts_of(table)
    Schema(NUMERIC).encode(table)
    pd.testing.assert_frame_equal(table, before)
