"""Coding tables in memory: any pandas column to integer codes and unit values, vectorised.

The rules hold row by row and no value can raise, because an error would tell something about a
private row. Values outside the bounds, infinities too, are clamped; what is no number, date or
truth in a column of such is null; an unlisted category is `other`, else null, else the first code;
a null where none is allowed is `other`, else the first code. In one sentence: what the schema gives
no place to takes the first code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date as Date
from datetime import datetime as DateTime
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from counterpoise.schema.coded import Coded
from counterpoise.schema.column import Column
from counterpoise.schema.files import as_relation, connect, errors_of, is_path
from counterpoise.schema.incoming import DATE_DTYPE, plain
from counterpoise.schema.reading import (
    TEXT,
    TextReader,
    distinct_texts,
    is_moment_like,
    is_number_like,
    nulls_of,
    read_moments,
    read_numbers,
)
from counterpoise.schema.readings import coded, null_places, readings_of, readings_sql
from counterpoise.schema.schema import Schema
from counterpoise.schema.sql import place_expression, reading_expression, value_expression
from counterpoise.schema.tables import check_columns, read_table, table_columns

_NUMBER_KINDS = ("integer", "continuous")
_TICKS = {"date": "D", "datetime": "us"}


def encode(schema: Schema, table: Any) -> Coded:
    """Code the columns of a table that the schema names; see `Schema.encode`."""
    schema = schema.modelled
    schema.require_complete()
    check_columns(table_columns(table, schema.dialect), schema)
    if is_path(table) or isinstance(table, duckdb.DuckDBPyRelation):
        return _encode_by_sql(schema, table)
    frame = read_table(table, schema.names)
    with TextReader() as texts:
        readings = (_reading(schema, frame, column, texts) for column in schema)
        return coded(schema, len(frame), readings)


def _reading(
    schema: Schema, frame: pd.DataFrame, column: Column, texts: TextReader
) -> tuple[np.ndarray, np.ndarray]:
    """What a column of a frame is coded from, and its nulls."""
    values, words = plain(frame[column.name]), schema.words_for_null(column)
    if column.is_numeric:
        return _numbers(column, values, words, texts)
    places = _places(column.ungrouped, values, words, texts)
    return places, null_places(column, places)


def read_values(
    column: Column, values: pd.Series, missing_values: tuple[str, ...] = ("",)
) -> tuple[np.ndarray, np.ndarray]:
    """A column on the numeric scale, read as `encode` reads it but left as it is; and the nulls.

    What lies outside the bounds stays outside, and a fraction in a column of integers stays one.
    Null is whatever cannot be read, too; its place is held by a number without meaning.

    >>> numbers, nulls = read_values(Column.integer("k", 0, 9), pd.Series(["3.5", "nine"]))
    >>> float(numbers[0]), nulls.tolist()
    (3.5, [False, True])
    """
    own = column.spelling.missing_values
    words = missing_values if own is None else own
    with TextReader() as texts:
        return _numbers(_widened(column), plain(values), words, texts)


def read_texts(
    column: Column, values: pd.Series, missing_values: tuple[str, ...] = ("",)
) -> np.ndarray:
    """What each value of a column is read as, as `reading_expression` gives it; None for null.

    >>> read_texts(Column.integer("k", 0, 9), pd.Series(["3", "3.0", "three"])).tolist()
    ['3.0', '3.0', None]
    """
    own = column.spelling.missing_values
    words = missing_values if own is None else own
    is_text = not column.is_numeric and column.category_type == "string"
    positions, distinct = distinct_texts(values, words, truth=_truth_of(column, is_text))
    with TextReader() as texts:
        read = texts.read(distinct, reading_expression(_without_words(column), "text", ()))
    found = np.ma.getdata(read).astype(object)
    found[np.ma.getmaskarray(read)] = None
    return np.append(found, [None])[positions]


@dataclass(frozen=True)
class Unread:
    """How many rows of a column are not what it is stated to hold; as private as the rows."""

    rows: int
    unreadable: int  # there is a value, and the type of the column cannot read it
    unlisted: int  # it can be read, and is no category of the column
    nulls: int
    cut: int = 0  # it is a fraction, and the column is of whole numbers


def unread_rows(
    column: Column, values: pd.Series, missing_values: tuple[str, ...] = ("",)
) -> Unread:
    """How many rows a column does not hold as they are, bounds apart.

    >>> unread_rows(Column.boolean("ill"), pd.Series(["yes", "no", "maybe", None]))
    Unread(rows=4, unreadable=1, unlisted=0, nulls=1, cut=0)
    """
    values, spelling = plain(values), column.spelling
    words = missing_values if spelling.missing_values is None else spelling.missing_values
    is_number = column.kind in _NUMBER_KINDS and is_number_like(values) and spelling.clock is None
    if is_number or (column.kind in _TICKS and is_moment_like(values)):
        cut = _fractions(read_numbers(values)) if column.kind == "integer" else 0
        return Unread(len(values), 0, 0, int(nulls_of(values).sum()), cut)
    nulls = distinct_texts(values, words)[0] < 0
    read = pd.Series(read_texts(column, values, words), dtype=object)
    is_read = read.notna().to_numpy()
    unlisted = np.zeros(len(values), dtype=bool)
    cut = 0
    if column.kind == "integer" and spelling.clock is None:
        real = Column.continuous(column.name, spelling=spelling)
        cut = _fractions(pd.to_numeric(read_texts(real, values, words), errors="coerce"))
    if column.categories is not None:
        is_text = column.category_type == "string"
        members = [str(each if is_text else int(each)) for each in column.categories]
        unlisted = is_read & ~read.isin(members).to_numpy()
    unreadable = ~is_read & ~nulls
    return Unread(len(values), int(unreadable.sum()), int(unlisted.sum()), int(nulls.sum()), cut)


def _fractions(numbers: np.ndarray) -> int:
    """How many numbers are not whole; what is none is not counted."""
    found = np.asarray(numbers, dtype=float)
    found = found[np.isfinite(found)]
    return int((found != np.floor(found)).sum())


def _truth_of(column: Column, is_text: bool) -> tuple[str, str]:
    """The texts of false and true in a column that is read by its texts."""
    spelling = column.spelling
    if spelling.is_of_truths:
        [false, *_], [true, *_] = spelling.truths
        return false, true
    is_spelled = spelling.clock is not None or spelling.format is not None
    return ("false", "true") if is_text or is_spelled else ("0", "1")


def _encode_by_sql(schema: Schema, table: Any) -> Coded:
    """Code a file without ever holding its texts."""
    with errors_of(table), connect() as connection:
        relation = as_relation(table, connection, schema.dialect)
        found = relation.project(readings_sql(schema, schema.missing_values)).fetchnumpy()
    return coded(schema, len(found["r0"]), readings_of(schema, found))


def _without_words(column: Column) -> Column:
    """A column of texts of which words for null are gone: a number like one of them is none."""
    if not column.spelling.missing_values:
        return column
    return replace(column, spelling=replace(column.spelling, missing_values=()))


def _widened(column: Column) -> Column:
    """A column so wide that clamping to it hides nothing: what was outside is outside still."""
    if column.kind == "date":
        return replace(column, minimum=Date.min, maximum=Date.max, bins=None, shape=None)
    if column.kind == "datetime":
        return replace(column, minimum=DateTime.min, maximum=DateTime.max, bins=None, shape=None)
    low, high = math.nextafter(column.low, -math.inf), math.nextafter(column.high, math.inf)
    return Column.continuous(column.name, low, high, spelling=column.spelling)


def _numbers(
    column: Column, values: pd.Series, missing: tuple[str, ...], texts: TextReader
) -> tuple[np.ndarray, np.ndarray]:
    """Values on the numeric scale, clamped, with the minimum in the place of nulls; the nulls."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        inner = plain(pd.Series(values.cat.categories))
        numbers, nulls = _numbers(column, inner, missing, texts)
        places = values.cat.codes.to_numpy()
        return np.append(numbers, column.low)[places], np.append(nulls, True)[places]
    spelling = column.spelling
    if column.kind in _NUMBER_KINDS and is_number_like(values) and spelling.clock is None:
        numbers = read_numbers(values)
        nulls = np.isnan(numbers)
        numbers[nulls] = column.low
        if column.kind == "integer":
            np.floor(numbers, out=numbers)
        np.clip(numbers, column.low, column.high, out=numbers)
        return numbers if column.kind == "continuous" else numbers.astype(np.int64), nulls
    if column.kind in _TICKS and is_moment_like(values):
        return read_moments(values, _TICKS[column.kind], int(column.low), int(column.high))
    if values.dtype == object and (spelling.is_of_numbers or spelling.format is not None):
        return _of_mixed_objects(column, values.to_numpy(dtype=object), missing, texts)
    return _of_texts(column, values, missing, texts)


def _of_mixed_objects(
    column: Column, objects: np.ndarray, missing: tuple[str, ...], texts: TextReader
) -> tuple[np.ndarray, np.ndarray]:
    """Texts by the column's spelling, and what is a number or a date already as it is."""
    by_format = column.spelling.format is not None
    is_value = np.array(
        [
            issubclass(kind, Date | np.datetime64) if by_format else not issubclass(kind, TEXT)
            for kind in map(type, objects)
        ],
        dtype=bool,
    )
    as_it_is = replace(column, spelling=column.spelling.without_reading())
    readings = []
    for way, chosen in ((as_it_is, is_value), (column, ~is_value)):
        part = objects.copy()
        part[~chosen] = None
        readings.append(_of_texts(way, pd.Series(part, dtype=np.dtype(object)), missing, texts))
    (values, no_value), (spelled, unread) = readings
    return np.where(is_value, values, spelled), np.where(is_value, no_value, unread)


def _of_texts(
    column: Column, values: pd.Series, missing: tuple[str, ...], texts: TextReader
) -> tuple[np.ndarray, np.ndarray]:
    positions, distinct = distinct_texts(values, missing, truth=_truth_of(column, is_text=False))
    if column.spelling.clock and is_moment_like(values) and values.dtype != DATE_DTYPE:
        # The text of a moment at midnight is its day.
        whole = (text if ":" in text else f"{text} 00:00:00" for text in distinct)
        distinct = np.array([*whole], dtype=object)
    read = texts.read(distinct, value_expression(_without_words(column), "text", ()))
    dtype = np.float64 if column.kind == "continuous" else np.int64
    numbers = np.append(read.filled(column.low), column.low).astype(dtype)
    return numbers[positions], np.append(np.ma.getmaskarray(read), True)[positions]


def _places(
    column: Column, values: pd.Series, missing: tuple[str, ...], texts: TextReader
) -> np.ndarray:
    assert column.categories is not None
    codes = {category: code for code, category in enumerate(column.categories)}
    other = codes[column.other] if column.other is not None else None
    unlisted = next(code for code in (other, column.null_code, 0) if code is not None)
    null = next(code for code in (column.null_code, other, 0) if code is not None)
    if column.category_type == "string":
        positions, distinct = distinct_texts(values, missing)
        found = [codes.get(text, unlisted) for text in distinct]
        return np.array([*found, null], dtype=np.int32)[positions]
    # In a column of truths other numbers than two are none that can be read.
    is_boolean = column.category_type == "boolean"
    if pd.api.types.is_bool_dtype(values.dtype) or (is_number_like(values) and not is_boolean):
        return _match_numbers(column, read_numbers(values), unlisted, null)
    truth = _truth_of(column, is_text=False)
    positions, distinct = distinct_texts(values, missing, truth)
    read = texts.read(distinct, place_expression(_without_words(column), "text", ()))
    return np.append(read.filled(null), null).astype(np.int32)[positions]


def _match_numbers(column: Column, numbers: np.ndarray, unlisted: int, null: int) -> np.ndarray:
    listed = np.array(column.categories, dtype=np.float64)
    order = np.argsort(listed)
    places = np.minimum(np.searchsorted(listed, numbers, sorter=order), len(listed) - 1)
    codes = order[places].astype(np.int32)
    codes[listed[codes] != numbers] = unlisted
    codes[np.isnan(numbers)] = null
    return codes
