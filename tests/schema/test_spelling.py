"""Spellings: what a text means by the schema, in memory and in the database alike."""

from datetime import date, datetime, time
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from counterpoise.errors import SchemaError
from counterpoise.schema import Column, Schema, Spelling
from counterpoise.schema.encoding import read_values
from counterpoise.vault.storage import open_storage

EURO = Spelling(decimal=",", group=".", bare=False)
DOLLAR = Spelling(group=",", bare=False)
NUMBERS = {
    "decimal comma": (
        Spelling(decimal=","),
        {"1,5": 1.5, "-0,25": -0.25, "3": 3, ",5": 0.5, "1,5e2": 150, " 7,0 ": 7, "1.5": None},
    ),
    "points between thousands": (
        Spelling(decimal=",", group="."),
        {"1.234,5": 1234.5, "1.234.567": 1_234_567, "12": 12, "1,2,3": None, "x": None, "": None},
    ),
    "a mark that has not three digits behind it is of decimals": (
        Spelling(group=","),
        {"1,5": None, "1,23": None, "12,34,567": 1_234_567, "1,2345": None, ",123": None},
    ),
    "nothing stated": (
        Spelling(),
        (
            {"1e3": 1000, "-.5": -0.5, " 3 ": 3, "12abc": None, "1,234": None, "1,5": None}
            | {"12_34": None, "0x1F": None, "true": None, "1 234": None, "5%": None, "(5)": None}
        ),
    ),
    "spaces between thousands": (
        Spelling(decimal=",", group=" "),
        {"1 234,5": 1234.5, "12 345 678": 12_345_678, "-1 000": -1000},
    ),
    "dollars": (
        DOLLAR,
        {"$1,234.50": 1234.5, "-$5": -5, "$-5": -5, "-$-5": None, "US$ 7": 7, "($5)": None},
    ),
    "euros": (
        EURO,
        {
            "1.234,50 €": 1234.5,
            "12,5\u00a0€": 12.5,
            "€": None,
            "EUR 3": 3,
            "5,– €": 5,
            "−5 €": None,
        },
    ),
    "percent": (Spelling(bare=False), {"12 %": 12, "12.5%": 12.5, "%": None, "3 to 4": None}),
    "no sign is bare": (Spelling(group=","), {"1,234": 1234, "$5": None, "5 %": None}),
}
DAYS = {
    None: (
        {"2020-12-31": "2020-12-31", "2020/6/1": "2020-06-01", "31/12/2020": None}
        | {"01/02/03": None, "10-11-12": None, "99-12-31": None, "44197": None, "epoch": None}
    ),
    "%d/%m/%Y": (
        {"31/12/2020": "2020-12-31", "1/2/2020": "2020-02-01", "12/31/2020": None}
        | {"31/12/20": None, "31/12/202": None}
    ),
    "%d/%m/%y": {"31/12/20": "2020-12-31", "31/12/2020": None, "infinity": None, "epoch": None},
    "%m/%d/%Y": {"12/31/2020": "2020-12-31", "1/2/2020": "2020-01-02", "31/12/2020": None},
    "%d.%m.%Y": {"31.12.2020": "2020-12-31", "2020-12-31": None},
    "%Y%m%d": {"20201231": "2020-12-31", "20201331": None, "": None},
    "%d %b %Y": {"31 Dec 2020": "2020-12-31", "31 dec 2020": "2020-12-31"},
}
TIMES = {
    "%H:%M": (
        {"15:30": 930, "9:05": 545, "00:00": 0, "24:00": 1440, "25:00": None, "15:61": None}
        | {"930": None, "3:30 PM": None, "2020-06-01": None, "2020-06-01 10:00 PM": None}
        | {"infinity": None, "epoch": None, "2020-06-01 10:00": 600, "10:00:30Z": 600}
    ),
    "%H%M": {"1530": 930, "930": 570, "5": 5, "2400": 1440, "1375": None, "15300": None},
    "%H:%M:%S": {"15:30:01": 55_801, "15:30": 55_800},
    "%I:%M %p": {"3:30 PM": 930, "12:00 AM": 0, "12:00 PM": 720, "3:30": None},
}
USUAL = (
    {"true": 1, "FALSE": 0, "T": 1, "f": 0, "Yes": 1, "no": 0, "Y": 1, "N": 0, "1": 1, "0": 0}
    | {"Ja": 1, "nein": 0, "j": 1, "Oui": 1, "NON": 0, "o": 1, "si": 1, "SÍ": 1, "WAHR": 1}
    | {" True ": 1, "no\u00a0": 0, "1.0": 1, "0.00": 0, "+1": 1}
    | {"2": None, "-1": None, "0.5": None, "yes!": None, "": None, "1,0": None, "nan": None}
    | {"maybe": None, "10": None, "b'1'": None, "inf": None, "ye s": None, "1_": None}
)
TRUTHS = {
    "usual words": (Spelling(), USUAL),
    "1 and 2": (
        Spelling(true_values=("1",), false_values=("2",)),
        {"1": 1, "2": 0, "1.0": 1, "2.00": 0, "0": None, "true": None, "no": None, "": None},
    ),
    "words": (
        Spelling(true_values=("Smokes", "smokes a lot"), false_values=(" never ",)),
        {"smokes": 1, "SMOKES A LOT": 1, "Never": 0, "1": None, "yes": None, "0": None},
    ),
    "no as true": (
        Spelling(true_values=("no",)),
        {"no": 1, "NO": 1, "false": 0, "0": 0, "yes": None, "1": None},
    ),
    "a word for null": (
        Spelling(missing_values=("", "0")),
        {"0": None, "0.0": 0, "no": 0, "1": 1, "": None},
    ),
}
MARKS = [
    *((Column.continuous("x", -1e9, 1e9, spelling=s), texts) for s, texts in NUMBERS.values()),
    *(
        (
            Column.date("x", "1900-01-01", "2100-12-31", spelling=Spelling(format)),
            {
                text: day and date.fromisoformat(day).toordinal() - 719_163
                for text, day in d.items()
            },
        )
        for format, d in DAYS.items()
    ),
    *((Column.time("x", maximum="24:00", format=format), t) for format, t in TIMES.items()),
]
NAMES = [*NUMBERS, *map(str, DAYS), *TIMES]


@pytest.mark.parametrize(("column", "meanings"), MARKS, ids=NAMES)
def test_a_text_means_what_the_spelling_says(column, meanings):
    numbers, nulls = read_values(column, pd.Series([*meanings], dtype=object))
    read = [None if null else number for number, null in zip(numbers, nulls, strict=True)]
    assert read == [*meanings.values()]


def assert_read_alike_everywhere(folder, column, values, codes=None):
    """Texts are coded alike in every kind of table, and counted so in every storage."""
    table = pa.table({"x": pa.array(values, pa.string())})
    parquet.write_table(table, folder / "t.parquet")
    pd.DataFrame({"x": values}).to_csv(folder / "t.csv", index=False, quoting=1)
    schema = Schema([column])
    expected = schema.encode(table.to_pandas())
    if codes is not None:
        assert expected.codes[:, 0].tolist() == codes
    sources = {
        "objects": pd.DataFrame({"x": pd.Series(values, dtype=object)}),
        "categories": pd.DataFrame({"x": pd.Categorical(values)}),
        "arrow": table,
        "polars": pl.from_arrow(table),
        "relation": duckdb.from_arrow(table),
        "parquet": folder / "t.parquet",
    }
    for source in sources.values():
        coded = schema.encode(source)
        np.testing.assert_array_equal(coded.codes, expected.codes)
        np.testing.assert_array_equal(coded.units, expected.units)
    for path in (folder / "t.parquet", folder / "t.csv"):
        for kind in ("memory", "duckdb"):
            storage = open_storage(path, schema, kind)
            [counted] = storage.counts([("x",)])
            found = np.bincount(expected.codes[:, 0], minlength=column.size)
            assert counted.tolist() == found.tolist()
            storage.close()


@pytest.mark.parametrize(("column", "meanings"), MARKS, ids=NAMES)
def test_memory_and_database_read_alike(tmp_path, column, meanings):
    nullable = Column(**{**vars(column), "nullable": True, "bins": 211})
    assert_read_alike_everywhere(tmp_path, nullable, [*meanings, None])


@pytest.mark.parametrize("case", TRUTHS)
def test_a_truth_is_read_alike_everywhere_and_what_is_none_is_null(tmp_path, case):
    spelling, meanings = TRUTHS[case]
    column = Column.boolean("x", nullable=True, spelling=spelling)
    null = column.null_code
    codes = [null if truth is None else truth for truth in meanings.values()]
    assert_read_alike_everywhere(tmp_path, column, [*meanings, None], [*codes, null])


def test_what_is_no_truth_is_as_null_in_a_column_without_nulls():
    """As a number that cannot be read is: the first code."""
    table = pd.DataFrame({"x": ["yes", "maybe", "2", None]})
    assert Schema([Column.boolean("x")]).encode(table).codes[:, 0].tolist() == [1, 0, 0, 0]
    ordered = Column.ordinal("x", [True, False])
    assert Schema([ordered]).encode(table).codes[:, 0].tolist() == [0, 0, 0, 0]


ONE_TWO = Spelling(true_values=("1",), false_values=("2",))


TYPED_TRUTHS = (
    (Spelling(), pa.array([1, 0, 2, -1, None]), [1, 0, 2, 2, 2]),
    (Spelling(), pa.array([1.0, 0.0, 0.5, float("nan"), None]), [1, 0, 2, 2, 2]),
    (Spelling(), pa.array([Decimal("1.000"), Decimal("0.000"), Decimal("2.000")]), [1, 0, 2]),
    (Spelling(), pa.array([True, False, None]), [1, 0, 2]),
    (Spelling(), pa.array([b"yes", b"no", b"\xff"]), [1, 0, 2]),
    (Spelling(), pa.array(["yes", "no", "?"]).dictionary_encode(), [1, 0, 2]),
    (ONE_TWO, pa.array([1, 2, 0, None]), [1, 0, 2, 2]),
    (ONE_TWO, pa.array([1.0, 2.0, 0.0, None]), [1, 0, 2, 2]),
    (ONE_TWO, pa.array([True, False, None]), [1, 0, 2]),
    (Spelling(missing_values=("", "1")), pa.array([1, 0]), [1, 0]),
    (Spelling(), pa.array([date(2020, 1, 1)]), [2]),
)


@pytest.mark.parametrize(("spelling", "values", "codes"), TYPED_TRUTHS, ids=range(11))
def test_values_of_other_types_are_read_as_truths_alike(tmp_path, spelling, values, codes):
    schema = Schema([Column.boolean("x", nullable=True, spelling=spelling)])
    table = pa.table({"x": values})
    parquet.write_table(table, tmp_path / "t.parquet")
    objects = pd.DataFrame({"x": pd.Series(values.to_pylist(), dtype=object)})
    sources = [table, duckdb.from_arrow(table), table.to_pandas(), objects]
    for source in [*sources, pl.from_arrow(table), tmp_path / "t.parquet"]:
        assert schema.encode(source).codes[:, 0].tolist() == codes
    storage = open_storage(tmp_path / "t.parquet", schema, "duckdb")
    assert storage.counts([("x",)])[0].tolist() == np.bincount(codes, minlength=3).tolist()
    storage.close()


def test_truths_among_objects_are_read_one_by_one():
    values = [True, np.True_, np.False_, "Yes", 1, 0.0, np.int8(2), Decimal("1"), "nein", 5 + 0j]
    table = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    usual = Schema([Column.boolean("x", nullable=True)])
    assert usual.encode(table).codes[:, 0].tolist() == [1, 1, 0, 1, 1, 0, 2, 1, 0, 2]
    stated = Schema([Column.boolean("x", nullable=True, spelling=ONE_TWO)])
    assert stated.encode(table).codes[:, 0].tolist() == [1, 1, 0, 2, 1, 2, 0, 1, 2, 2]
    listed = pd.DataFrame({"x": pd.Categorical([True, False, None])})
    assert stated.encode(listed).codes[:, 0].tolist() == [1, 0, 2]


def test_text_that_is_no_number_is_null_among_whole_categories():
    column = Column.categorical("x", [1, 2, 9], other=9, nullable=True)
    table = pd.DataFrame({"x": ["1", "2.0", "7", "1.5", "abc", "1_2"]})
    for source in (table, duckdb.from_arrow(pa.Table.from_pandas(table))):
        assert Schema([column]).encode(source).codes[:, 0].tolist() == [0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("column", "values", "numbers"),
    [
        (Column.continuous("x", 0, 9999, spelling=EURO), pa.array([1.5, 2.25]), [1.5, 2.25]),
        (
            Column.continuous("x", 0, 9999, spelling=EURO),
            pa.array([Decimal("1.500")], pa.decimal128(9, 3)),
            [1.5],
        ),
        (
            Column.date("x", "2000-01-01", "2030-01-01", spelling=Spelling("%d/%m/%Y")),
            pa.array([date(2020, 3, 4)]),
            [date(2020, 3, 4).toordinal() - 719_163],
        ),
        (
            Column.date("x", "2000-01-01", "2030-01-01", spelling=Spelling("%Y%m%d")),
            pa.array([20200304, None]),
            [date(2020, 3, 4).toordinal() - 719_163, None],
        ),
        (Column.time("x", format="%H%M"), pa.array([1530, 5, None]), [930, 5, None]),
        (Column.time("x", format="%H%M"), pa.array([1530.0, None]), [930, None]),
        (Column.time("x"), pa.array([time(15, 30)]), [930]),
        (Column.time("x"), pa.array([datetime(2020, 1, 1, 15, 30)]), [930]),
        (Column.time("x"), pa.array([date(2020, 1, 1)]), [None]),
    ],
    ids=str,
)
def test_a_spelling_is_of_texts_and_leaves_values_alone(column, values, numbers):
    nullable = Column(**{**vars(column), "nullable": True, "bins": 2113})
    schema = Schema([nullable])
    low = nullable.low
    plain = schema.as_released()
    stand_ins = [low if number is None else number for number in numbers]
    if column.kind == "date":
        stand_ins = pd.to_datetime(np.array(stand_ins, dtype="M8[D]"))
    expected = plain.encode(pd.DataFrame({"x": stand_ins})).codes[:, 0]
    expected = np.where([number is None for number in numbers], nullable.null_code, expected)
    table = pa.table({"x": values})
    objects = pd.DataFrame({"x": pd.Series(values.to_pylist(), dtype=object)})
    for source in (table, duckdb.from_arrow(table), objects, table.to_pandas()):
        assert schema.encode(source).codes[:, 0].tolist() == expected.tolist()


def test_midnight_is_the_time_of_a_moment_and_no_time_of_a_day():
    schema = Schema([Column.time("x", nullable=True)])
    for type_, code in ((pa.timestamp("us"), 0), (pa.date32(), schema["x"].null_code)):
        table = pa.table({"x": pa.array([0], pa.int32() if code else pa.int64()).cast(type_)})
        for source in (table, duckdb.from_arrow(table)):
            assert schema.encode(source).codes.tolist() == [[code]]


def test_a_column_has_its_own_words_for_null():
    own = Column.integer("a", 0, 9, nullable=True, spelling=Spelling(missing_values=["-", "?"]))
    schema = Schema([own, Column.integer("b", 0, 9, nullable=True)], ("", "NA"))
    coded = schema.encode(pd.DataFrame({"a": ["-", "?", "NA", "3"], "b": ["-", "?", "NA", "3"]}))
    assert coded.codes[:, 0].tolist() == [10, 10, 10, 3]
    assert schema.words_for_null(own) == ("-", "?")
    assert schema.words_for_null(schema["b"]) == ("", "NA")
    grade = Column.categorical("g", ["A", "-"])
    with pytest.raises(SchemaError, match="missing value"):
        Schema([grade], ("", "-"))
    words = Column.categorical("g", ["A", "-"], spelling=Spelling(missing_values=[""]))
    assert Schema([words], ("", "-")).encode(pd.DataFrame({"g": ["-"]})).codes.tolist() == [[1]]


@pytest.mark.parametrize(
    "field",
    [
        {"name": "x", "type": "number", "decimalChar": ",", "groupChar": ".", "bareNumber": False},
        {"name": "x", "type": "integer", "groupChar": " ", "missingValues": ["", "?"]},
        {"name": "x", "type": "date", "format": "%d/%m/%Y"},
        {"name": "x", "type": "datetime", "format": "%d/%m/%Y %H:%M"},
        {"name": "x", "type": "string", "missingValues": ["", "NA"]},
        {"name": "x", "type": "boolean", "trueValues": ["1", "ja"], "falseValues": ["2"]},
        {
            "name": "x",
            "type": "time",
            "format": "%H%M",
            "constraints": {"minimum": "06:00", "maximum": "22:00"},
            "bins": ["06:00", "12:00", "22:00"],
            "unit": "minutes since midnight",
        },
    ],
    ids=lambda field: field["type"],
)
def test_a_spelling_survives_json(field):
    schema = Schema.from_dict({"fields": [field]})
    assert schema.to_dict()["fields"] == [field]
    assert Schema.from_dict(schema.to_dict()) == schema


def test_formats_of_other_readers_are_ignored_where_they_say_nothing():
    fields = [
        {"name": "mail", "type": "string", "format": "email"},
        {"name": "day", "type": "date", "format": "default"},
        {"name": "any", "type": "datetime", "format": "any"},
    ]
    schema = Schema.from_dict({"fields": fields})
    assert all(column.spelling == Spelling() for column in schema)


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ({"type": "date", "format": "%Q"}, "strptime"),
        ({"type": "date", "format": "fine"}, "strptime"),
        ({"type": "date", "format": 5}, "strptime"),
        ({"type": "time", "format": "%d/%m"}, "times of day"),
        ({"type": "number", "decimalChar": "ab"}, "decimalChar"),
        ({"type": "number", "decimalChar": "1"}, "decimalChar"),
        ({"type": "number", "groupChar": "."}, "another character"),
        ({"type": "number", "bareNumber": "no"}, "bareNumber"),
        ({"type": "boolean", "trueValues": "yes"}, "trueValues"),
        ({"type": "boolean", "trueValues": []}, "trueValues"),
        ({"type": "boolean", "falseValues": [" "]}, "falseValues"),
        ({"type": "boolean", "trueValues": ["Y"], "falseValues": ["y "]}, "other words"),
        ({"type": "integer", "missingValues": "NA"}, "missingValues"),
        ({"type": "integer", "missingValues": [3]}, "missingValues"),
        ({"type": "time", "constraints": {"minimum": "noon"}}, "times of day"),
        ({"type": "time", "constraints": {"minimum": "23:00", "maximum": "01:00"}}, "below"),
    ],
    ids=str,
)
def test_a_spelling_that_cannot_be_obeyed_is_refused_by_its_column(field, rule):
    with pytest.raises(SchemaError, match=rule) as caught:
        Schema.from_dict({"fields": [{"name": "the column", **field}]})
    assert "the column" in str(caught.value)


def test_spellings_belong_to_kinds():
    with pytest.raises(SchemaError, match="format of dates"):
        Column.integer("x", 0, 9, spelling=Spelling("%Y"))
    with pytest.raises(SchemaError, match="spelling of numbers"):
        Column.date("x", spelling=EURO)
    with pytest.raises(SchemaError, match="format of times"):
        Column.boolean("x", spelling=Spelling(clock="%H:%M"))
    with pytest.raises(SchemaError, match="is integer, and takes no words for true and false"):
        Column.integer("x", 0, 9, spelling=ONE_TWO)
    with pytest.raises(SchemaError, match="takes no words for true and false"):
        Column.categorical("x", ["a", "b"], spelling=ONE_TWO)
    with pytest.raises(SchemaError, match="must be a Spelling"):
        Column.integer("x", 0, 9, spelling="%Y")


def test_bounds_of_dates_may_be_iso_text():
    column = Column.date("d", "2020-01-01", "2020-12-31", bins=["2020-01-01", "2020-12-31"])
    assert column == Column.date("d", date(2020, 1, 1), date(2020, 12, 31), bins=column.bins)
    moments = Column.datetime("m", "2020-01-01T10:00", "2021-01-01 00:00:00+01:00")
    assert moments.minimum == datetime(2020, 1, 1, 10)
    assert moments.maximum == datetime(2020, 12, 31, 23)
    for text in ("31/12/2020", "soon", ""):
        with pytest.raises(SchemaError, match="ISO 8601"):
            Column.date("d", text)
    with pytest.raises(SchemaError, match="must be integers"):
        Column.integer("k", "1", 5)


def test_times_of_day_are_minutes_with_labels_and_a_day_of_bounds():
    column = Column.time("departure", bins=4)
    assert (column.minimum, column.maximum, column.unit) == (0, 1439, "minutes since midnight")
    assert column.code_labels()[1] == "06:00 to 11:59"
    assert Column.time("t", format="%H:%M:%S").maximum == 86_399
    assert Schema.from_dict({"fields": [{"name": "t", "type": "time"}]})["t"].maximum == 86_399


def test_what_is_released_has_no_spelling_left():
    schema = Schema(
        [
            Column.time("t", format="%H%M"),
            Column.continuous("x", 0, 9, spelling=Spelling(decimal=",", missing_values=("?",))),
            Column.boolean("y", spelling=ONE_TWO),
        ]
    )
    plain = schema.as_released()
    assert plain["t"] == Column.integer("t", 0, 1439, unit="minutes since midnight")
    assert plain["x"].spelling == Spelling(missing_values=("?",))
    assert plain.read_as(schema) == schema
    assert plain["y"] == Column.boolean("y")
    codes = np.array([[3, 2, 1], [0, 7, 0]])
    made = plain.decode(codes, np.random.default_rng(0))
    assert plain.encode(made).codes.tolist() == codes.tolist()
    assert schema.restore(made)["t"].tolist() == made["t"].tolist()


def test_a_column_that_is_replaced_keeps_its_spelling_unless_another_is_stated():
    spelling = Spelling(decimal=",", missing_values=("", "?"))
    schema = Schema([Column.continuous("x", 0, 9, spelling=spelling), Column.boolean("y")])
    assert schema.replace(Column.continuous("x", 0, 99))["x"].spelling == spelling
    stated = Spelling(decimal=",", group=".")
    assert schema.replace(Column.continuous("x", 0, 99, spelling=stated))["x"].spelling == stated
    words = Spelling(missing_values=("", "?"))
    assert schema.replace(Column.categorical("x", ["a"]))["x"].spelling == words
    assert schema.replace(Column.categorical("x", ["?"]))["x"].spelling == Spelling()
