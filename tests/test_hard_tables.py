"""Tables that break tools: each gives the documented result, or a clear error, end to end."""

import datetime

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import SchemaError, TableError

AGE = cp.Column.integer("age", 0, 99, nullable=True)
CITY = cp.Column.categorical("city", ["Oslo", "Rome", "other"], other="other")


def released(table, *columns, rows=50, **options):
    """A release of the table, and its rows without the weights."""
    release = cp.release(table, cp.Schema(columns), 1.0, 1e-6, rows=rows, **options)
    return release.table.drop(columns="weight")


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_no_row_or_one_row_is_released_as_noise(rows, delta):
    table = pd.DataFrame({"age": [33] * rows, "city": ["Oslo"] * rows})
    release = cp.release(table, cp.Schema([AGE, CITY]), 1.0, delta, rows=20)
    assert release.table.shape == (20, 3)


def test_without_a_number_of_rows_an_empty_table_still_makes_a_release():
    release = cp.release(pd.DataFrame({"age": []}), cp.Schema([AGE]), 1.0, 1e-6)
    assert len(release.table) >= 1


def test_one_column():
    assert released(pd.DataFrame({"city": ["Oslo"] * 9}), CITY).columns.tolist() == ["city"]


def test_a_constant_column():
    constant = cp.Column.integer("k", 3, 3)
    assert set(released(pd.DataFrame({"k": [3] * 50}), constant)["k"]) == {3}
    one = cp.Column.categorical("c", ["only"])
    assert set(released(pd.DataFrame({"c": ["only"] * 50}), one)["c"]) == {"only"}


def test_an_all_null_column():
    made = released(pd.DataFrame({"age": [None] * 5000, "city": ["Oslo"] * 5000}), AGE, CITY)
    assert made["age"].isna().mean() > 0.8
    # A column that may not be null takes its first code.
    required = cp.Column.integer("age", 10, 19)
    made = released(pd.DataFrame({"age": [None] * 5000}), required)
    assert (made["age"] == 10).mean() > 0.8


def test_two_hundred_categories():
    names = [f"category {i}" for i in range(200)]
    table = pd.DataFrame({"c": np.random.default_rng(0).choice(names, 20_000)})
    made = released(table, cp.Column.categorical("c", names), rows=5000)
    assert made["c"].nunique() > 150


def test_unseen_categories_go_to_other():
    made = released(pd.DataFrame({"city": ["Atlantis"] * 5000}), CITY)
    assert (made["city"] == "other").mean() > 0.9


def test_extreme_dates_are_clamped():
    column = cp.Column.date(
        "d", datetime.date(2000, 1, 1), datetime.date(2020, 12, 31), nullable=True
    )
    days = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), pd.NaT] * 2000
    made = released(pd.DataFrame({"d": days}), column, rows=3000)
    present = made["d"].dropna()
    assert present.min() >= pd.Timestamp("2000-01-01")
    assert present.max() <= pd.Timestamp("2020-12-31")
    assert 0.2 < made["d"].isna().mean() < 0.45


def test_infinities_are_clamped_and_not_a_number_is_null():
    column = cp.Column.continuous("x", -1.0, 1.0, bins=4, nullable=True)
    values = [np.inf, -np.inf, np.nan, 1e308] * 1500
    made = released(pd.DataFrame({"x": values}), column, rows=4000)
    assert made["x"].dropna().between(-1, 1).all()
    assert (made["x"] > 0.5).mean() == pytest.approx(0.5, abs=0.1)
    assert made["x"].isna().mean() == pytest.approx(0.25, abs=0.1)


def test_three_hundred_columns():
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.random((200, 300)), columns=[f"x{i}" for i in range(300)])
    made = released(table, *(cp.Column.continuous(f"x{i}", 0, 1, bins=5) for i in range(300)))
    assert made.shape == (50, 300)


def test_duplicate_names_are_refused():
    table = pd.DataFrame([[1, 2]], columns=["age", "age"])
    with pytest.raises(TableError, match="age"):
        released(table, AGE)
    with pytest.raises(SchemaError, match="unique"):
        cp.Schema([AGE, AGE])


def test_a_missing_column_is_named():
    with pytest.raises(TableError, match="city"):
        released(pd.DataFrame({"age": [1], "town": ["Oslo"]}), AGE, CITY)


def test_a_csv_that_is_not_utf8_says_how_to_convert_it(tmp_path):
    file = tmp_path / "latin.csv"
    file.write_bytes("age,city\n3,Tromsø\n".encode("latin-1"))
    with pytest.raises(TableError, match="iconv"):
        released(file, AGE, CITY)


def test_a_truncated_parquet_file_is_refused(tmp_path):
    file = tmp_path / "table.parquet"
    pd.DataFrame({"age": range(5000)}).to_parquet(file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(TableError, match="damaged"):
        released(file, AGE)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TableError, match=r"nowhere\.csv"):
        released(tmp_path / "nowhere.csv", AGE)


def test_something_that_is_no_table_is_refused():
    with pytest.raises(TableError, match="pandas"):
        released([1, 2, 3], AGE)


@pytest.mark.parametrize("kind", ["polars", "arrow", "pandas"])
def test_tables_of_other_libraries(kind):
    frame = pd.DataFrame({"age": [20, 40, None] * 500, "city": ["Oslo", "Rome", "Bari"] * 500})
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "arrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    made = released(frame, AGE, CITY, rows=2000)
    assert made["city"].value_counts(normalize=True)["Oslo"] == pytest.approx(1 / 3, abs=0.1)
