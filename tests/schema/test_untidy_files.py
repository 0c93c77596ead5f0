"""Files as people have them: a draft finds out how they are written, and readings follow it."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import CounterpoiseWarning, SchemaError, TableError
from counterpoise.schema import Column, Dialect, Schema, Spelling, draft_schema, read_table
from counterpoise.vault.storage import open_storage

ROWS = [("Ann", "1,5"), ("José", "2,25"), ("Åse", ""), ("O'Neil", "10,75")]
NAMES = ("Ann", "José", "Åse", "O'Neil")


def write(path, header, rows, separator=",", encoding="utf-8"):
    lines = [separator.join(header), *(separator.join(row) for row in rows)]
    content = ("\n".join(lines) + "\n").encode(encoding)
    with gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb") as file:
        file.write(content)
    return path


def column_of(values, **options):
    """The column that is drafted from texts."""
    return draft_schema(pd.DataFrame({"x": pd.Series(values, dtype=object)}), **options)["x"]


def public(schema):
    for name in schema.names:
        schema = schema.accept(name)
    return schema


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_separators_are_found_and_obeyed(tmp_path, separator, suffix):
    rows = [("1", '"a;b"'), ("2", '"c,d|e"'), ("30", '"say ""hi"""')]
    path = write(tmp_path / f"t{suffix}", ("k", "text"), rows, separator)
    draft = draft_schema(path)
    assert draft.names == ("k", "text")
    usual = "\t" if suffix == ".tsv" else ","
    assert draft.dialect == Dialect(None if separator == usual else separator)
    assert draft["text"].categories == ("a;b", "c,d|e", 'say "hi"')
    assert Schema.from_dict(draft.to_dict()) == draft
    assert draft.encode(path).codes[:, 1].tolist() == [0, 1, 2]


def test_a_semicolon_is_found_where_decimal_commas_look_like_separators(tmp_path):
    rows = [("1,5", "2,5"), ("3,5", "4,5"), ("10,0", "0,25")]
    draft = draft_schema(write(tmp_path / "t.csv", ("a", "b"), rows, ";"))
    assert draft.dialect == Dialect(";")
    assert [(column.minimum, column.maximum) for column in draft] == [(1.5, 10.0), (0.25, 4.5)]
    assert all(column.spelling == Spelling(decimal=",") for column in draft)


def test_single_quotes_are_found(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n'x,y',2\n'z',3\n'w,v',4\n")
    draft = draft_schema(path)
    assert draft.dialect == Dialect(quote="'")
    assert draft["a"].categories == ("w,v", "x,y", "z")
    assert draft.to_dict()["dialect"] == {"quoteChar": "'"}


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16-be", "utf-16-be"),
        ("utf-16-le", "utf-16-le"),
        ("latin-1", "windows-1252"),
        ("windows-1252", "windows-1252"),
    ],
)
def test_encodings_are_found_and_obeyed(tmp_path, encoding, found):
    suffix = ".csv.gz" if encoding in ("utf-16", "latin-1") else ".csv"
    path = write(tmp_path / f"t{suffix}", ("näme", "x"), ROWS, ";", encoding)
    draft = draft_schema(path)
    assert draft.dialect == Dialect(";", encoding=found)
    assert draft["näme"].categories == tuple(sorted(NAMES))
    schema = public(draft)
    tidy = pd.DataFrame({"näme": NAMES, "x": [1.5, 2.25, None, 10.75]})
    np.testing.assert_array_equal(schema.encode(path).codes, schema.encode(tidy).codes)
    for kind in ("memory", "duckdb"):
        storage = open_storage(path, schema, kind)
        assert storage.counts([("näme",)])[0].tolist() == [1, 1, 1, 1]
        storage.close()


def test_letters_of_windows_are_told_from_those_of_latin_1(tmp_path):
    path = write(tmp_path / "t.csv", ("a", "b"), [("5 €", "x"), ("6 €", "œ")], ";", "windows-1252")
    assert draft_schema(path)["a"].unit == "€"
    (tmp_path / "odd.csv").write_bytes(b"a;b\n\x81;1\n\xe9;2\n")
    assert draft_schema(tmp_path / "odd.csv").dialect.encoding == "latin-1"


def test_emoji_in_utf_16_are_read(tmp_path):
    path = write(tmp_path / "t.csv", ("a", "b"), [("😀", "x"), ("é", "y")], ";", "utf-16")
    assert set(read_table(path, dialect=Dialect(";", encoding="utf-16"))["a"]) == {"😀", "é"}


def test_another_encoding_is_read_by_the_rules_of_utf_8(tmp_path):
    text = 'a;b\n1;"x\ny"\n\n2;""\n"3";z\n'
    read = []
    for encoding in ("utf-8", "utf-16", "windows-1252"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(text.encode(encoding))
        read.append(read_table(path, dialect=Dialect(";", encoding=encoding)))
    pd.testing.assert_frame_equal(read[0], read[1])
    pd.testing.assert_frame_equal(read[0], read[2])


@pytest.mark.parametrize("broken", ["a;b\n1;2;3\n", "a;b\n1\n", 'a;b\n1;"open\n'])
def test_a_broken_file_in_another_encoding_is_refused_without_a_word_of_it(tmp_path, broken):
    path = tmp_path / "t.csv"
    path.write_bytes(broken.encode("utf-16"))
    with pytest.raises(TableError, match="not a well-formed CSV") as caught:
        read_table(path, dialect=Dialect(";", encoding="utf-16"))
    assert caught.value.__context__ is None


def test_an_encoding_that_a_file_is_not_in_is_refused_with_a_way_out(tmp_path):
    path = write(tmp_path / "t.csv", ("a", "b"), ROWS, ";", "latin-1")
    with pytest.raises(TableError, match="windows-1252"):
        read_table(path, dialect=Dialect(";"))
    with pytest.raises(TableError, match="another"):
        read_table(path, dialect=Dialect(";", encoding="utf-16"))


def test_what_is_stated_stands(tmp_path):
    path = write(tmp_path / "t.csv", ("a;b", "c"), [("1;2", "1.500"), ("3;4", "2.500")], ",")
    assert draft_schema(path, separator=",").names == ("a;b", "c")
    assert draft_schema(path, separator=";").names == ("a", "b,c")
    latin = draft_schema(path, separator=",", encoding="Latin-1")
    assert latin.dialect == Dialect(",", encoding="latin-1")
    assert draft_schema(path, separator=",")["c"].maximum == 2.5
    assert draft_schema(path, separator=",", decimal=",")["c"].maximum == 2500


@pytest.mark.parametrize(
    "options",
    [
        {"separator": "ab"},
        {"separator": '"'},
        {"separator": 5},
        {"decimal": ";"},
        {"encoding": "klingon"},
        {"encoding": "base64"},
        {"encoding": 5},
        {"missing": "NA"},
        {"missing": [5]},
        {"keep": ["no such column"]},
    ],
    ids=str,
)
def test_odd_options_are_refused_by_name(tmp_path, options):
    path = write(tmp_path / "t.csv", ("a", "b"), [("1", "2")])
    with pytest.raises(SchemaError, match=next(iter(options))):
        draft_schema(path, **options)


@pytest.mark.parametrize(
    "dialect", [5, {"delimiter": "ab"}, {"commentChar": "#"}, {"header": False}]
)
def test_a_dialect_that_cannot_be_obeyed_is_refused(dialect):
    with pytest.raises(SchemaError):
        Schema.from_dict({"fields": [{"name": "a", "type": "boolean"}], "dialect": dialect})


def test_a_file_in_another_dialect_than_the_schemas_is_told_which_it_has(tmp_path):
    path = write(tmp_path / "t.csv", ("age", '"sex"'), [("31", "F"), ("78", "M")], ";")
    schema = Schema([Column.integer("age", 0, 99), Column.categorical("sex", ["F", "M"])])
    for read in (schema.encode, lambda table: open_storage(table, schema)):
        with pytest.raises(TableError, match="a semicolon stands between its fields") as caught:
            read(path)
        assert '"dialect"' in str(caught.value)
    stated = Schema(schema.columns, dialect=Dialect(";"))
    assert stated.encode(path).codes[:, 1].tolist() == [0, 1]
    comma = write(tmp_path / "comma.csv", ("age", "sex"), [("31", "F")])
    with pytest.raises(TableError, match="a comma stands between its fields"):
        stated.encode(comma)


WORDS = ["NA", "N/A", "n/a", "?", "NULL", "null", "None", "nan", "-", "--", ".", " ", "#N/A", "N"]


@pytest.mark.parametrize("word", WORDS)
def test_words_for_null_are_found_among_numbers(word):
    column = column_of(["1.5", word, "2.25"])
    assert (column.kind, column.nullable) == ("continuous", True)
    assert column.spelling.missing_values == ("", word)
    assert "required" in dict(column.sources)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["17", "99", "?"], "integer"),
        (["?", "31.12.2020", "01.01.2021"], "date"),
        (["2020-12-31", "?"], "date"),
        (["9:30", "?"], "integer"),
        (["true", "?", "false"], "categorical"),
    ],
    ids=str,
)
def test_words_for_null_are_found_among_whatever_is_no_text(values, kind):
    column = column_of(values)
    assert (column.kind, column.nullable) == (kind, True)
    assert column.spelling.missing_values == ("", "?")


def test_among_texts_only_words_that_cannot_mean_anything_else_are_null():
    column = column_of(["Oslo", "?", "N/A", "NULL", "Rome"])
    assert column.categories == ("Oslo", "Rome")
    assert column.spelling.missing_values == ("", "?", "N/A", "NULL")
    for ordinary in (["+", "-"], ["none", "some"], ["unknown", "known"], ["A", "."]):
        assert column_of(ordinary).categories == tuple(sorted(ordinary))


def test_stated_words_for_null_are_the_only_ones():
    table = pd.DataFrame({"x": ["1.5", "99.9", "-9"], "y": ["a", "NA", "-9"]})
    draft = draft_schema(table, missing=["-9"])
    assert draft.missing_values == ("", "-9")
    assert (draft["x"].minimum, draft["x"].nullable) == (1.5, True)
    assert draft["y"].categories == ("NA", "a")
    assert draft_schema(table, missing=[])["x"].minimum == -9


@pytest.mark.parametrize(
    ("values", "spelling", "unit", "bounds"),
    [
        (["1,5", "22,75"], Spelling(decimal=","), None, (1.5, 22.75)),
        (["1.234,5", "7,25"], Spelling(decimal=",", group="."), None, (7.25, 1234.5)),
        (["1,234.5", "7.25"], Spelling(group=","), None, (7.25, 1234.5)),
        (["1,234,567", "12"], Spelling(group=","), None, (12, 1_234_567)),
        (["1 234,5", "7"], Spelling(decimal=",", group=" "), None, (7, 1234.5)),
        (["1'234.5", "7"], Spelling(group="'"), None, (7, 1234.5)),
        (["$1,234.50", "$7"], Spelling(group=",", bare=False), "$", (7, 1234.5)),
        (["-$5", "$7", "$0"], Spelling(bare=False), "$", (-5, 7)),
        (
            ["1.234,50 €", "7,00 €"],
            Spelling(decimal=",", group=".", bare=False),
            "€",
            (7, 1234.5),
        ),
        (["12 %", "99 %", "0 %"], Spelling(bare=False), "%", (0, 99)),
        (["12.5%", "99%"], Spelling(bare=False), "%", (12.5, 99)),
        (["1.5", "22.75"], Spelling(), None, (1.5, 22.75)),
    ],
    ids=str,
)
def test_numbers_are_read_where_all_are_spelled_alike(values, spelling, unit, bounds):
    column = column_of(values)
    assert (column.kind in ("integer", "continuous")) and column.unit == unit
    assert (column.spelling, (column.minimum, column.maximum)) == (spelling, bounds)
    codes = Schema([column]).encode(pd.DataFrame({"x": values})).codes[:, 0]
    assert {0, column.cells - 1} <= {*codes.tolist()}


@pytest.mark.parametrize(
    "values",
    [
        ["1,5", "2.5"],
        ["1,23,4", "5"],
        ["$5", "5 €"],
        ["$5", "5"],
        ["(5)", "7"],
        ["007", "1,5"],
        ["5 apples", "7 apples"],
        ["31/12/2020", "12/31/2020"],
        ["31/12/2020", "2020-12-31"],
        ["9:30", "25:00"],
        ["9:30", "nine"],
    ],
    ids=str,
)
def test_a_column_in_several_spellings_stays_text(values):
    column = column_of(values)
    assert (column.kind, column.spelling) == ("categorical", Spelling())


def test_a_column_that_is_nearly_something_stays_text_with_a_hint():
    for values, what in (
        ([*(f"{number},5" for number in range(30)), "many"], "numbers"),
        ([*(f"{day}/10/2020" for day in range(1, 31)), "never"], "dates"),
    ):
        with pytest.warns(CounterpoiseWarning, match=f"looks like {what}") as caught:
            column = column_of(values * 2)
        assert column.kind == "categorical"
        assert not [each for each in caught if values[-1] in str(each.message)]


@pytest.mark.parametrize(
    ("values", "format", "kind", "first"),
    [
        (["31/12/2020", "1/2/2020"], "%d/%m/%Y", "date", "2020-02-01"),
        (["12/31/2020", "1/2/2020"], "%m/%d/%Y", "date", "2020-01-02"),
        (["31.12.2020", "01.02.2020"], "%d.%m.%Y", "date", "2020-02-01"),
        (["20201231", "20200201"], "%Y%m%d", "date", "2020-02-01"),
        (["31 Dec 2020", "1 May 2020"], "%d %b %Y", "date", "2020-05-01"),
        (["2020/12/31", "2020/02/01"], "%Y/%m/%d", "date", "2020-02-01"),
        (["31/12/20", "01/02/20"], "%d/%m/%y", "date", "2020-02-01"),
        (["31/12/2020 23:59", "1/2/2020 7:30"], "%d/%m/%Y %H:%M", "datetime", "2020-02-01T07:30"),
        (["2020-12-31T23:59", "2020-02-01T07:30"], None, "datetime", "2020-02-01T07:30"),
        (["2020-12-31", "2020-02-01"], None, "date", "2020-02-01"),
    ],
    ids=str,
)
def test_dates_are_read_in_the_order_that_all_share(values, format, kind, first):
    column = column_of(values)
    assert (column.kind, column.spelling.format) == (kind, format)
    bounds = getattr(Column, kind)("x", first)
    assert column.minimum == bounds.minimum
    codes = Schema([column]).encode(pd.DataFrame({"x": values})).codes[:, 0]
    assert codes.tolist() == [column.cells - 1, 0]


def test_dates_that_do_not_show_their_order_follow_the_other_columns_or_are_told_of():
    unclear = ["01/02/2020", "03/04/2020"]
    with pytest.warns(CounterpoiseWarning, match="the day or the month comes first"):
        assert column_of(unclear).spelling.format == "%d/%m/%Y"
    table = pd.DataFrame({"x": unclear, "y": ["12/31/2020", "01/05/2020"]})
    assert draft_schema(table)["x"].spelling.format == "%m/%d/%Y"


def test_a_mark_that_may_be_of_thousands_or_decimals_follows_the_others_or_is_told_of():
    unclear = ["1,234", "12,500"]
    with pytest.warns(CounterpoiseWarning, match="the mark of thousands"):
        assert column_of(unclear).maximum == 12_500
    assert column_of(unclear, decimal=",").maximum == 12.5
    assert column_of(unclear, decimal=".").maximum == 12_500
    table = pd.DataFrame({"x": unclear, "y": ["1,5", "2,75"]})
    with pytest.warns(CounterpoiseWarning, match="the mark of decimals"):
        assert draft_schema(table)["x"].maximum == 12.5


@pytest.mark.parametrize(
    ("values", "clock", "last"),
    [
        (["9:30", "23:05"], "%H:%M", 1439),
        (["09:30:15", "23:05:00"], "%H:%M:%S", 86_399),
        (["9:30 AM", "11:05 PM"], "%I:%M %p", 1439),
    ],
)
def test_times_of_day_are_read_with_the_bounds_of_a_day(values, clock, last):
    column = column_of(values)
    assert (column.kind, column.spelling.clock, column.maximum) == ("integer", clock, last)
    assert {key for key, mark in column.sources if mark == "data"} == {"type", "required"}


def test_whole_numbers_of_eight_digits_are_dates_if_all_are():
    dates = draft_schema(pd.DataFrame({"x": [20201231, 20200229, 19991231]}))["x"]
    assert (dates.kind, dates.spelling) == ("date", Spelling("%Y%m%d"))
    assert dates.minimum.isoformat() == "1999-12-31"
    assert draft_schema(pd.DataFrame({"x": [20201231, 20200230]}))["x"].kind == "integer"


ROW_NUMBERS = range(1, 101)
IDENTIFIERS = {
    "serial": list(ROW_NUMBERS),
    "patient_id": [7919 * row % 100_003 for row in ROW_NUMBERS],
    "text": [f"P{row:05}" for row in ROW_NUMBERS],
    "text of numbers": [f"{row}" for row in ROW_NUMBERS],
    "provider": [1_210_086_703 + 7919 * row for row in ROW_NUMBERS],
    "nearly": [f"P{max(row, 3):05}" for row in ROW_NUMBERS],
}
QUANTITIES = {
    "pay": [31 * row**2 for row in ROW_NUMBERS],
    "height": [row / 7 for row in ROW_NUMBERS],
    "born": [f"19{row % 90 + 10}-01-0{row % 9 + 1}" for row in ROW_NUMBERS],
    "ward": [f"{row // 10}" for row in ROW_NUMBERS],
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_identifiers_are_left_out_of_a_draft_with_a_word_of_it(name):
    table = pd.DataFrame({name: IDENTIFIERS[name], "sex": ["F", "M"] * 50})
    with pytest.warns(CounterpoiseWarning, match=f"{name!r} is left out of the draft") as caught:
        assert draft_schema(table).names == ("sex",)
    assert "keep" in str(caught[0].message)
    assert draft_schema(table, keep=[name]).names == (name, "sex")


@pytest.mark.parametrize("name", QUANTITIES)
def test_quantities_are_no_identifiers(name):
    table = pd.DataFrame({name: QUANTITIES[name], "sex": ["F", "M"] * 50})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert name in draft_schema(table)
