"""Coded rows as the numbers and categories that formulas take.

A row that the schema has coded still knows its values: the place between the bounds is that of the
number, and that of a category in its list. So a model can be computed on coded rows, wherever they
are kept, by the same function as on a table; null is NaN, or no category.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.schema import Coded, Column

_DAY = 86_400e6  # microseconds


def values_of(rows: Coded, names: Iterable[str], coded: Collection[str] = ()) -> pd.DataFrame:
    """The values of some columns, as `as_numbers` has them for a table.

    The rows are as they were coded, not spread; categories of the columns in `coded` are their
    numbers.

    >>> from counterpoise.schema import Schema
    >>> schema = Schema([Column.integer("age", 0, 99), Column.categorical("ward", ["a", "b"])])
    >>> rows = schema.encode(pd.DataFrame({"age": [30, 41], "ward": ["b", "a"]}))
    >>> values_of(rows, ["age", "ward"]).values.tolist()
    [[30.0, 'b'], [41.0, 'a']]
    """
    made = {name: _values(rows, rows.schema.index(name), name in coded) for name in names}
    return pd.DataFrame(made, index=pd.RangeIndex(len(rows)))


def places_of(rows: Coded, name: str) -> np.ndarray:
    """The place of each row's category in the list of its column; the length of it for null."""
    position = rows.schema.index(name)
    column = rows.schema.columns[position].ungrouped
    places = np.rint(rows.units[:, position] * max(column.cells - 1, 1)).astype(np.int64)
    return np.where(_is_null(rows, position), column.cells, places)


def _values(rows: Coded, position: int, is_coded: bool) -> pd.Series:
    column = rows.schema.columns[position]
    if column.is_numeric:
        return pd.Series(_numbers(column, rows.units[:, position], _is_null(rows, position)))
    places = places_of(rows, column.name)
    listed = column.ungrouped
    nulls = places == listed.cells
    if column.category_type == "boolean" or is_coded:
        assert listed.categories is not None
        known = np.arange(listed.cells) if is_coded else np.array(listed.categories)
        return pd.Series(np.where(nulls, np.nan, np.append(known.astype(float), 0.0)[places]))
    categories: pd.Index[Any] = pd.Index(list(listed.categories or ()))
    return pd.Series(pd.Categorical.from_codes(np.where(nulls, -1, places), categories))


def _numbers(column: Column, units: np.ndarray, nulls: np.ndarray) -> np.ndarray:
    low, high = float(column.low), float(column.high)
    values = low + units * (high - low)
    if column.kind != "continuous":
        values = np.rint(values)
    if column.kind == "datetime":
        values = values / _DAY
    return np.where(nulls, np.nan, values)


def _is_null(rows: Coded, position: int) -> np.ndarray:
    found: np.ndarray = rows.codes[:, position] == rows.schema.columns[position].cells
    return found
