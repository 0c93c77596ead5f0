"""A first draft of a schema, read off a table, for a person to review.

What a draft says of a private table is private: the types, bounds, categories and nulls it found
are marked "data", and the schema stays confidential until each mark is accepted as public
knowledge, replaced by a value known without looking, or paid for.
"""

from __future__ import annotations

from datetime import datetime as DateTime
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.arguments import whole_number
from counterpoise.errors import SchemaError
from counterpoise.schema.bins import EPOCH
from counterpoise.schema.column import NARROWEST_RANGE, WIDEST_RANGE, Column
from counterpoise.schema.incoming import plain
from counterpoise.schema.reading import (
    TextReader,
    distinct_texts,
    is_moment_like,
    is_number_like,
    read_moments,
    read_numbers,
)
from counterpoise.schema.rules import LARGEST_INTEGER
from counterpoise.schema.schema import Schema
from counterpoise.schema.sql import value_expression
from counterpoise.schema.tables import read_table

# Integers that take few values close together are more likely codes than quantities.
FEW_INTEGERS, SMALL_RANGE = 10, 20
MISSING = ("",)
# Most columns show within this many values what they are not.
SAMPLE = 1000
_ANY_MOMENT = Column.datetime("text", DateTime.min, DateTime.max)
_IS_BOOLEAN = "lower(trim(text)) IN ('true', 'false')"
# A leading zero is a sign of a code (a postcode, say), which is not a quantity.
_IS_NUMBER = (
    "NOT regexp_matches(text, '^ *0[0-9]') AND TRY_CAST(text AS DOUBLE) IS NOT NULL "
    "AND NOT isnan(TRY_CAST(text AS DOUBLE))"
)
_IS_MOMENT = "regexp_matches(text, '^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$')"


def draft_schema(source: Any, max_categories: int = 200) -> Schema:
    """Propose a schema for a table; the draft is confidential while it has marks of "data".

    Text that reads as numbers, ISO dates or true/false throughout becomes such a column; integers
    of at most ten values in a small range become categories; text of more than `max_categories`
    values has its categories left open, to be stated or paid for.

    >>> draft = draft_schema(pd.DataFrame({"age": [31, 78]}))
    >>> draft["age"].kind, draft.unconfirmed
    ('integer', (('age', 'maximum'), ('age', 'minimum'), ('age', 'required'), ('age', 'type')))
    """
    most = whole_number("max_categories", max_categories, 0, error=SchemaError)
    frame = read_table(source)
    with TextReader() as texts:
        columns = [
            _draft_column(str(name), plain(frame[name]), most, texts) for name in frame.columns
        ]
    return Schema(tuple(columns))


def _draft_column(name: str, values: pd.Series, most: int, texts: TextReader) -> Column:
    if is_number_like(values):
        numbers = read_numbers(values)
        is_boolean = pd.api.types.is_bool_dtype(values.dtype)
        nullable = bool(np.isnan(numbers).any())
        if is_boolean:
            return _marked(Column.boolean(name, nullable), "type", "required")
        return _number_column(name, numbers[np.isfinite(numbers)], nullable)
    if is_moment_like(values):
        lowest, highest = _ANY_MOMENT.low, _ANY_MOMENT.high
        moments, nulls = read_moments(values, "us", int(lowest), int(highest))
        return _moment_column(name, moments[~nulls], bool(nulls.any()))
    positions, distinct = distinct_texts(values, MISSING)
    used = np.unique(positions[positions >= 0])
    return _text_column(name, values, distinct[used], bool((positions < 0).any()), most, texts)


def _text_column(
    name: str,
    values: pd.Series,
    distinct: np.ndarray,
    nullable: bool,
    most: int,
    texts: TextReader,
) -> Column:
    in_order = isinstance(values.dtype, pd.CategoricalDtype) and bool(values.cat.ordered)
    if len(distinct) and not in_order:
        if _all_read(texts, distinct, _IS_BOOLEAN, "1") is not None:
            return _marked(Column.boolean(name, nullable), "type", "required")
        numbers = _all_read(texts, distinct, _IS_NUMBER, "TRY_CAST(text AS DOUBLE)")
        if numbers is not None:
            return _number_column(name, numbers[np.isfinite(numbers)], nullable)
        moments = _all_read(texts, distinct, _IS_MOMENT, value_expression(_ANY_MOMENT, "text"))
        if moments is not None:
            return _moment_column(name, moments, nullable)
    if not 0 < len(distinct) <= most:
        return _marked(Column.categorical(name, nullable=nullable), "type", "required")
    if in_order:
        present = set(distinct)
        ordered = [str(level) for level in values.cat.categories if str(level) in present]
        return _marked(Column.ordinal(name, ordered, nullable=nullable), "type", "enum", "required")
    column = Column.categorical(name, sorted(distinct), nullable=nullable)
    return _marked(column, "type", "enum", "required")


def _all_read(
    texts: TextReader, distinct: np.ndarray, condition: str, expression: str
) -> np.ndarray | None:
    """The values of an expression, if all the texts meet a condition and have one."""
    for part in (distinct[:SAMPLE], distinct):
        values = texts.read(part, f"CASE WHEN {condition} THEN {expression} END")
        if np.ma.getmaskarray(values).any():
            return None
    return np.ma.getdata(values)


def _number_column(name: str, numbers: np.ndarray, nullable: bool) -> Column:
    whole = bool((np.floor(numbers) == numbers).all()) and len(numbers) > 0
    if not whole:
        column = Column.continuous(name, nullable=nullable)
        if len(numbers):
            low, high = float(numbers.min()), float(numbers.max())
            if NARROWEST_RANGE <= high - low <= WIDEST_RANGE:
                column = Column.continuous(name, low, high, nullable=nullable)
        return _marked_bounds(column)
    low, high = int(numbers.min()), int(numbers.max())
    if max(-low, high) > LARGEST_INTEGER:
        return _marked_bounds(Column.integer(name, nullable=nullable))
    distinct = np.unique(numbers)
    if len(distinct) <= FEW_INTEGERS and high - low <= SMALL_RANGE:
        column = Column.categorical(name, map(int, distinct), nullable=nullable)
        return _marked(column, "type", "enum", "required")
    return _marked_bounds(Column.integer(name, low, high, nullable=nullable))


def _moment_column(name: str, moments: np.ndarray, nullable: bool) -> Column:
    if not len(moments):
        return _marked_bounds(Column.datetime(name, nullable=nullable))
    day = timedelta(days=1) // timedelta(microseconds=1)
    low, high = (
        EPOCH + timedelta(microseconds=int(moment)) for moment in (moments.min(), moments.max())
    )
    if (moments % day == 0).all():
        return _marked_bounds(Column.date(name, low.date(), high.date(), nullable=nullable))
    return _marked_bounds(Column.datetime(name, low, high, nullable=nullable))


def _marked_bounds(column: Column) -> Column:
    keys = () if column.missing else ("minimum", "maximum")
    return _marked(column, "type", "required", *keys)


def _marked(column: Column, *keys: str) -> Column:
    return column.with_sources(dict.fromkeys(keys, "data"))
