"""Tables come in from everywhere, go out whole, and no error quotes a row."""

import gzip
import subprocess
import sys
from datetime import date, datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from counterpoise.errors import TableError
from counterpoise.schema import (
    Column,
    Schema,
    as_relation,
    check_columns,
    convert,
    private_errors,
    read_table,
    table_columns,
    write_csv,
    write_parquet,
)

SECRET = "Ada-Lovelace-1815"
FRAME = pd.DataFrame(
    {
        "name": pd.Categorical(["b", None, "a"], categories=["b", "a"]),
        "age": pd.array([41, None, 7], dtype="Int64"),
        "weight": [70.5, np.nan, 0.1],
        "member": pd.array([True, None, False], dtype="boolean"),
        "born": pd.Series(["0001-01-01", None, "9999-12-31"], dtype="datetime64[s]"),
        "seen": pd.Series(["2020-01-01T00:00:00.000001", None, None], dtype="datetime64[us]"),
        "note": ["plain", None, 'with "quotes", and\nlines'],
    }
)


def test_parquet_keeps_values_and_types(tmp_path):
    path = tmp_path / "t.parquet"
    write_parquet(FRAME, path)
    back = read_table(path)
    assert [str(dtype) for dtype in back.dtypes] == [
        *("object", "Int64", "float64", "boolean", "datetime64[s]", "datetime64[us]", "object")
    ]
    assert back["name"].tolist() == ["b", None, "a"]
    for name in ("age", "weight", "member", "born", "seen"):
        pd.testing.assert_series_equal(back[name], FRAME[name])
    assert str(duckdb.read_parquet(str(path)).types[4]) == "DATE"
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


def test_csv_keeps_texts_and_nulls(tmp_path):
    path = tmp_path / "t.csv"
    write_csv(FRAME, path)
    back = read_table(path)
    assert {str(dtype) for dtype in back.dtypes} == {"object"}
    assert back["age"].tolist() == ["41", None, "7"]
    assert back["member"].tolist() == ["TRUE", None, "FALSE"]
    assert back["born"].tolist() == ["0001-01-01", None, "9999-12-31"]
    assert (
        back["note"].tolist()
        == FRAME["note"].astype(object).where(FRAME["note"].notna(), None).tolist()
    )


def test_a_column_of_nulls_alone_keeps_its_rows(tmp_path):
    for write, name in ((write_csv, "t.csv"), (write_parquet, "t.parquet")):
        write(pd.DataFrame({"x": pd.Series([None, "a", None], dtype=object)}), tmp_path / name)
        assert read_table(tmp_path / name)["x"].tolist() == [None, "a", None]
        assert len(Schema([Column.categorical("x", ["a"])]).encode(tmp_path / name)) == 3


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_empty_tables_survive(tmp_path, name):
    (write_csv if name == "t.csv" else write_parquet)(FRAME[:0], tmp_path / name)
    assert table_columns(tmp_path / name) == tuple(FRAME)
    assert len(read_table(tmp_path / name)) == 0
    assert len(Schema([Column.integer("age", 0, 99)]).encode(tmp_path / name)) == 0


def test_restoring_gives_the_types_of_the_schema(tmp_path):
    schema = Schema(
        [
            Column.ordinal("grade", ["low", "high"], nullable=True),
            Column.categorical("code", [5, 6], nullable=True),
            Column.ordinal("level", [3, 1]),
            Column.boolean("b", nullable=True),
            Column.integer("k", 0, 3),
            Column.integer("gap", 0, 3, nullable=True),
            Column.continuous("x", 0, 1, nullable=True),
            Column.date("d", date(1, 1, 1), date(9999, 12, 31), nullable=True),
            Column.datetime("t", datetime(2020, 1, 1), datetime(2021, 1, 1)),
        ]
    )
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, size, 50) for size in schema.sizes])
    table = schema.decode(codes, rng).assign(weight=1.5)
    for write, name in ((write_parquet, "t.parquet"), (write_csv, "t.csv")):
        write(table, tmp_path / name)
        restored = schema.restore(tmp_path / name)
        pd.testing.assert_frame_equal(restored[list(schema.names)], table[list(schema.names)])
        assert list(restored) == list(table)


def test_every_kind_of_table_is_read(tmp_path):
    write_parquet(FRAME, tmp_path / "t.parquet")
    expected = Schema([Column.integer("age", 0, 50, nullable=True)]).encode(FRAME).codes
    with duckdb.connect() as connection:
        relation = as_relation(tmp_path / "t.parquet", connection)
        assert as_relation(relation, connection) is relation
        for source in (
            FRAME,
            str(tmp_path / "t.parquet"),
            relation,
            convert(FRAME, "polars"),
            convert(FRAME, "polars").lazy(),
            convert(FRAME, "arrow"),
            convert(FRAME, "arrow").to_batches()[0],
        ):
            assert table_columns(source) == tuple(FRAME)
            assert tuple(read_table(source)) == tuple(FRAME)
            schema = Schema([Column.integer("age", 0, 50, nullable=True)])
            np.testing.assert_array_equal(schema.encode(source).codes, expected)


def test_the_types_of_polars_and_arrow():
    polars, arrow = convert(FRAME, "polars"), convert(FRAME, "arrow")
    assert polars.schema["born"] == pl.Date and polars.schema["seen"] == pl.Datetime("us")
    assert polars.schema["name"] == pl.Enum(["b", "a"]) and polars.schema["age"] == pl.Int64
    assert polars.null_count().row(0) == (1, 1, 1, 1, 1, 2, 1)
    assert arrow.schema.field("born").type == pa.date32()
    assert arrow.column("weight").null_count == 1


def test_moments_with_a_time_zone_come_in_as_utc():
    moments = pd.Series(pd.to_datetime(["2020-01-01T02:00+02:00"])).dt.tz_convert("Asia/Tokyo")
    schema = Schema([Column.datetime("t", datetime(2020, 1, 1), datetime(2020, 1, 2), bins=24)])
    for source in (
        pd.DataFrame({"t": moments}),
        pl.DataFrame({"t": [datetime(2020, 1, 1)]}).select(
            pl.col("t").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
        ),
        pa.table({"t": pa.array(moments)}),
    ):
        assert schema.encode(source).codes.tolist() == [[0]]


def test_csv_is_text_in_every_variant(tmp_path):
    (tmp_path / "t.tsv").write_text("a\tb\n007\tx,y\n")
    assert read_table(tmp_path / "t.tsv").to_dict("records") == [{"a": "007", "b": "x,y"}]
    with gzip.open(tmp_path / "T.CSV.GZ", "wt") as file:
        file.write("a\n007\n")
    assert read_table(tmp_path / "T.CSV.GZ")["a"].tolist() == ["007"]
    (tmp_path / "bom.csv").write_bytes("\ufeffé,b\r\n1,2\r\n".encode())
    assert read_table(tmp_path / "bom.csv").to_dict("records") == [{"é": "1", "b": "2"}]
    (tmp_path / "odd [1]*?.csv").write_text("a;b\n1;2\n")
    assert table_columns(tmp_path / "odd [1]*?.csv") == ("a;b",)
    assert read_table(tmp_path / "odd [1]*?.csv")["a;b"].tolist() == ["1;2"]
    (tmp_path / "no newline.csv").write_text("a,b\n1,2")
    assert len(read_table(tmp_path / "no newline.csv")) == 1


def refusal(source):
    with pytest.raises(TableError) as refused:
        read_table(source)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert SECRET not in str(refused.value)
    return str(refused.value)


def test_files_that_are_not_tables_are_refused(tmp_path):
    assert "no file" in refusal(tmp_path / "absent.csv")
    assert "suffix" in refusal(tmp_path / "t.xlsx")
    (tmp_path / "folder.parquet").mkdir()
    assert "directory" in refusal(tmp_path / "folder.parquet")
    (tmp_path / "empty.csv").write_text("")
    assert "empty" in refusal(tmp_path / "empty.csv")
    assert "not int" in refusal(5)
    assert "not list" in refusal([{"a": 1}])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"a,b\n1,2\n{SECRET},2,3\n", "as many fields"),
        (f"a,b\n1,2\n{SECRET}\n", "as many fields"),
        (f'a,b\n1,"{SECRET}\n', "quote"),
    ],
)
def test_a_malformed_csv_is_refused_without_quoting_it(tmp_path, content, message):
    (tmp_path / "t.csv").write_text(content)
    assert message in refusal(tmp_path / "t.csv")


@pytest.mark.parametrize("content", [f"a,b\n{SECRET},\xe9\n", f"a,\xe9\n{SECRET},2\n"])
def test_a_csv_in_another_encoding_is_told_how_to_convert(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content.encode("latin-1"))
    message = refusal(tmp_path / "t.csv")
    assert "not UTF-8" in message and "iconv" in message


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_a_truncated_parquet_file_is_refused(tmp_path, kept):
    write_parquet(pd.DataFrame({"a": [SECRET] * 50}), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(content[:kept])
    assert "damaged" in refusal(tmp_path / "t.parquet")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n1\n")[:12])
    assert "cannot be read" in refusal(tmp_path / "t.csv.gz")


def test_duplicate_names_are_refused_everywhere(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,a\n1,2,3\n")
    assert "'a'" in refusal(tmp_path / "t.csv")
    assert "'a'" in refusal(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert "'a'" in refusal(pa.table([[1], [2]], names=["a", "a"]))
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t.parquet")
    assert "'a'" in refusal(tmp_path / "t.parquet")


def test_nested_columns_do_not_hide_the_others(tmp_path):
    duckdb.sql("SELECT {'x': 1, 'y': {'z': 2}} AS s, [1] AS l, 3 AS k").write_parquet(
        str(tmp_path / "t.parquet")
    )
    assert table_columns(tmp_path / "t.parquet") == ("s", "l", "k")
    assert Schema([Column.integer("k", 0, 9)]).encode(tmp_path / "t.parquet").codes[0, 0] == 3
    assert len(read_table(tmp_path / "t.parquet")) == 1


def test_a_name_is_no_pattern():
    frame = pl.DataFrame({"*": [1], "^a.*$": [2], "ab": [3]})
    assert read_table(frame, ["^a.*$", "*"]).to_dict("list") == {"^a.*$": [2], "*": [1]}


def test_columns_are_checked_by_name():
    schema = Schema([Column.boolean("age"), Column.boolean("sex")])
    check_columns(["sex", "more", "age"], schema)
    with pytest.raises(TableError, match=r"'sex'.*does have 'sx'"):
        check_columns(["age", "sx"], schema)
    with pytest.raises(TableError, match=r"^the synthetic table lacks columns"):
        check_columns(["age"], schema, "the synthetic table")
    with pytest.raises(TableError, match="several columns"):
        check_columns(["age", "sex", "age"], schema)


def test_errors_of_the_database_are_replaced():
    connection = duckdb.connect()
    with pytest.raises(TableError) as refused, private_errors("the private table"):
        connection.execute(f"SELECT CAST('{SECRET}' AS INTEGER)").fetchall()
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__context__ is None


def test_an_unknown_format_or_a_missing_library_is_named(monkeypatch):
    with pytest.raises(TableError, match="pandas, polars, arrow"):
        convert(FRAME, "excel")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(TableError, match="needs polars"):
        convert(FRAME, "polars")


def test_a_frame_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(TableError):
        write_parquet(pd.DataFrame([[1, 2]], columns=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(TableError):
        write_csv(pd.DataFrame(), tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_names_that_differ_in_case_can_be_written(tmp_path):
    frame = pd.DataFrame({"a": [1], "b": [2]}, index=[7])
    write_csv(frame, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").to_dict("records") == [{"a": "1", "b": "2"}]


def test_files_need_neither_polars_nor_pyarrow(tmp_path):
    script = f"""
import sys
sys.modules["pyarrow"] = sys.modules["polars"] = None
import numpy as np, pandas as pd
from datetime import date
from counterpoise.schema import *
schema = Schema([
    Column.categorical("c", ["a", "b"], nullable=True), Column.integer("k", 0, 9, nullable=True),
    Column.date("d", date(2020, 1, 1), date(2020, 1, 9), nullable=True), Column.boolean("b"),
])
rng = np.random.default_rng(0)
codes = np.column_stack([rng.integers(0, size, 30) for size in schema.sizes])
table = schema.decode(codes, rng)
for write, name in ((write_csv, "t.csv"), (write_parquet, "t.parquet")):
    path = {str(tmp_path)!r} + "/" + name
    write(table, path)
    assert (schema.encode(path).codes == codes).all()
    assert (schema.encode(read_table(path)).codes == codes).all()
    assert (schema.encode(schema.restore(path)).codes == codes).all()
    draft_schema(path)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_texts_of_a_file_read_as_categories_are_the_same_texts(tmp_path):
    frame = pd.DataFrame(
        {"text": ["b", None, "a'", "", "b", "ä"], "number": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0]}
    )
    write_parquet(frame, tmp_path / "table.parquet")
    plain = read_table(tmp_path / "table.parquet")
    folded = read_table(tmp_path / "table.parquet", as_categories=True)
    assert isinstance(folded["text"].dtype, pd.CategoricalDtype)
    assert sorted(folded["text"].cat.categories) == ["", "a'", "b", "ä"]
    assert folded["text"].isna().tolist() == plain["text"].isna().tolist()
    assert folded["text"].dropna().tolist() == plain["text"].dropna().tolist()
    pd.testing.assert_series_equal(folded["number"], plain["number"])


@pytest.mark.parametrize("count", [3, 200])
def test_few_and_many_categories_are_read_alike(tmp_path, count):
    texts = [None, *(f"it's {place % count}" for place in range(1000))]
    write_parquet(pd.DataFrame({"text": texts}), tmp_path / "table.parquet")
    found = read_table(tmp_path / "table.parquet", as_categories=True)["text"]
    assert len(found.cat.categories) == count
    assert found.isna().tolist() == [True] + [False] * 1000
    assert found.tolist()[1:] == texts[1:]


@pytest.mark.parametrize(
    ("expected", "categories"),
    [
        (["b", "a", "c"], ["b", "a", "c"]),  # as they are stated, there or not
        (["b"], ["a", "b"]),  # there is another one, so all are looked for
        ([], ["a", "b"]),
        ([f"t{place}" for place in range(100)], ["a", "b"]),
    ],
)
def test_expected_texts_are_the_categories_unless_there_are_others(tmp_path, expected, categories):
    texts = ["b", None, "a", "b"]
    write_parquet(pd.DataFrame({"text": texts, "x": [1, 2, 3, 4]}), tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet", as_categories={"text": expected, "x": ["1"]})
    assert found["text"].cat.categories.tolist() == categories
    assert found["text"].astype(object).where(found["text"].notna(), None).tolist() == texts
    assert found["x"].tolist() == [1, 2, 3, 4]


def test_a_column_of_too_many_texts_stays_one_of_texts(tmp_path):
    write_parquet(pd.DataFrame({"text": [f"t{i}" for i in range(30_000)]}), tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet", as_categories=True)
    assert found["text"].tolist() == [f"t{i}" for i in range(30_000)]
    assert not isinstance(found["text"].dtype, pd.CategoricalDtype)


def test_a_column_of_nulls_alone_is_read_as_categories_or_not(tmp_path):
    frame = pd.DataFrame({"text": pd.Series([None, None], dtype=object), "other": ["a", "b"]})
    write_parquet(frame, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", as_categories=True)["text"].isna().all()
