"""A column states what is public, refuses what makes no sense, and knows its codes."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from counterpoise.errors import SchemaError
from counterpoise.schema import Column


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Column.integer("", 0, 1), "name"),
        (lambda: Column.boolean("two\nlines"), "one line"),
        (lambda: Column("x", "complex"), "kind"),
        (lambda: Column.integer("x", 2, 1), "below"),
        (lambda: Column.continuous("x", 1, 1), "below"),
        (lambda: Column.continuous("x", 0, float("inf")), "finite"),
        (lambda: Column.continuous("x", float("nan"), 1), "finite"),
        (lambda: Column.continuous("x", -1.7e308, 1.7e308), "1e300"),
        (lambda: Column.integer("x", 0.5, 2), "integers"),
        (lambda: Column.integer("x", 0, 2**60), "2\\^53"),
        (lambda: Column.integer("x", True, 2), "integers"),
        (lambda: Column.date("x", datetime(2020, 1, 1), date(2021, 1, 1)), "dates"),
        (lambda: Column.datetime("x", date(2020, 1, 1), None), "datetimes"),
        (lambda: Column.categorical("x", []), "empty"),
        (lambda: Column.categorical("x", ["a", "a"]), "unique"),
        (lambda: Column.categorical("x", ["a", 1]), "one type"),
        (lambda: Column.categorical("x", [True, 1]), "one type"),
        (lambda: Column.categorical("x", [1.5]), "whole numbers"),
        (lambda: Column.categorical("x", ["a"], other="b"), "other"),
        (lambda: Column.categorical("x", [0, 1], other=True), "other"),
        (lambda: Column.categorical("x", ["a\0"]), "NUL"),
        (lambda: Column.categorical("x", ["\ud800"]), "UTF-8"),
        (lambda: Column("x", "categorical", ("a",), minimum=0), "minimum"),
        (lambda: Column("x", "integer", ("a",)), "categories"),
        (lambda: Column.integer("x", 0, 9, bins=0), "bins"),
        (lambda: Column.integer("x", 0, 9, bins=(0, 5)), "last edge"),
        (lambda: Column.integer("x", 0, 9, bins=(0, 5, 5, 9)), "increasing"),
        (lambda: Column.integer("x", bins=(0, 5)), "edges need"),
        (lambda: Column.integer("x", 0, 9, bins=True), "bins"),
        (lambda: Column.integer("x", 0, 9, sources={"minimum": "rumour"}), "source"),
        (lambda: Column.integer("x", 0, 9, sources={"name": "data"}), "source"),
    ],
)
def test_a_column_that_makes_no_sense_is_refused_by_name_and_rule(make, rule):
    with pytest.raises(SchemaError, match=rule):
        make()


def test_integers_of_few_values_have_one_code_each():
    assert Column.integer("rooms", 1, 64).cells == 64
    assert Column.integer("rooms", 1, 65).cells == 20
    assert Column.integer("rooms", 3, 3).cells == 1


def test_a_range_never_has_more_bins_than_values():
    assert Column.date("day", date(2020, 1, 1), date(2020, 1, 5)).cells == 5
    assert Column.integer("k", 0, 4, bins=9).cells == 5
    start = datetime(2020, 1, 1)
    assert Column.datetime("t", start, start + timedelta(microseconds=2)).cells == 3
    assert Column.continuous("x", 1.0, np.nextafter(1.0, 2.0)).cells == 1


def test_bins_of_integers_are_as_equal_as_possible():
    widths = np.diff(Column.integer("age", 0, 99, bins=7).edges)
    assert sorted(set(widths.tolist())) == [14, 15]
    assert widths.sum() == 100


def test_edges_cover_the_range():
    edges = Column.continuous("x", -1, 1, bins=4).edges
    assert edges.tolist() == [-1, -0.5, 0, 0.5, 1]
    days = Column.date("d", date(1970, 1, 1), date(1970, 1, 10), bins=2).edges
    assert days.tolist() == [0, 5, 10]
    moments = Column.datetime("t", datetime(1, 1, 1), datetime(9999, 12, 31), bins=3).edges
    assert (np.diff(moments) > 0).all()
    with pytest.raises(SchemaError, match="no edges"):
        _ = Column.boolean("b").edges


def test_the_null_code_is_the_last():
    column = Column.categorical("c", ["a", "b"], nullable=True)
    assert (column.cells, column.size, column.null_code) == (2, 3, 2)
    assert Column.categorical("c", ["a", "b"]).null_code is None


def test_an_incomplete_column_says_what_is_missing_and_codes_nothing():
    column = Column.integer("age", minimum=0)
    assert column.missing == ("maximum",)
    assert not column.is_complete
    for attribute in ("size", "cells", "edges", "high"):
        with pytest.raises(SchemaError, match=r'age.*maximum.*schema.*"source": "paid"'):
            getattr(column, attribute)
    assert Column.categorical("c").missing == ("enum",)
    assert Column.continuous("x").missing == ("minimum", "maximum")


def test_a_bound_with_a_time_zone_becomes_utc():
    berlin = timezone(timedelta(hours=2))
    column = Column.datetime("t", datetime(2020, 1, 1, 2, tzinfo=berlin), datetime(2021, 1, 1))
    assert column.minimum == datetime(2020, 1, 1)
    with pytest.raises(SchemaError, match="years"):
        Column.datetime("t", datetime(1, 1, 1, tzinfo=berlin), datetime(2, 1, 1, tzinfo=UTC))


def test_values_of_numpy_are_kept_as_plain_python():
    column = Column.integer("k", np.int64(1), np.int32(5))
    assert (type(column.minimum), type(column.maximum)) == (int, int)
    assert type(Column.categorical("c", np.array([1, 2])).categories[0]) is int
    assert type(Column.continuous("x", np.float32(0), 1).minimum) is float


def test_true_and_one_are_different_categories():
    assert Column.categorical("c", [0, 1]) != Column.boolean("c")


def test_labels_name_every_code_but_null():
    assert Column.boolean("b", nullable=True).code_labels() == ("False", "True")
    assert Column.integer("k", 1, 3).code_labels() == ("1", "2", "3")
    assert Column.continuous("x", 0, 1, bins=2).code_labels() == ("0 to 0.5", "0.5 to 1")
    days = Column.date("d", date(2020, 1, 1), date(2020, 1, 31), bins=2).code_labels()
    assert days == ("2020-01-01 to 2020-01-16", "2020-01-17 to 2020-01-31")
