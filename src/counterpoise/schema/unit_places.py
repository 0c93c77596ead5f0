"""Places in the unit box as rows: the codes that they have, and the values that stand there.

`decode` draws a number anywhere in its bin; a point that was chosen for where it is has to stay
there. What has an order is put at its place between the bounds, whole numbers and steps at the
nearest one that is allowed; a category is its code. All of it is public arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from counterpoise.schema.bins import bin_codes
from counterpoise.schema.coded import Coded
from counterpoise.schema.column import Column
from counterpoise.schema.decoding import decode_column, typed_categories, typed_numbers
from counterpoise.schema.schema import Schema
from counterpoise.schema.shape import spread_ends
from counterpoise.schema.stated_coding import on_step
from counterpoise.schema.tables import convert


def coded_at(schema: Schema, units: np.ndarray, codes: np.ndarray) -> Coded:
    """Rows at these units; `codes` tell categories and nulls, and are worked out for the rest.

    >>> schema = Schema([Column.integer("x", 0, 10, bins=2), Column.boolean("y")])
    >>> made = coded_at(schema, np.array([[0.81, 0.0]]), np.array([[0, 1]]))
    >>> made.codes.tolist(), made.units.tolist()
    ([[1, 1]], [[0.8, 1.0]])
    """
    found = np.array(codes, dtype=np.int32, order="F")
    places = np.empty(found.shape, order="F")
    for position, column in enumerate(schema):
        null = found[:, position] == column.cells
        places[:, position] = _settled_units(column, units[:, position], found[:, position])
        places[null, position] = 0.5
        if column.kind != "categorical":
            own = _codes_at(column, places[:, position])
            found[:, position] = np.where(null, column.cells, own)
    return Coded(schema, found, places)


def decode_at(coded: Coded, rng: np.random.Generator, format: str = "pandas") -> Any:
    """The table of rows at their units; only categories that share a code are drawn.

    >>> schema = Schema([Column.continuous("x", 0, 10), Column.boolean("y")])
    >>> rows = schema.encode(pd.DataFrame({"x": [2.5], "y": [True]}))
    >>> decode_at(rows, np.random.default_rng(0)).to_dict("records")
    [{'x': 2.5, 'y': True}]
    """
    columns = {
        column.name: _values_at(column, coded.codes[:, position], coded.units[:, position], rng)
        for position, column in enumerate(coded.schema)
    }
    return convert(pd.DataFrame(columns, columns=list(coded.schema.names)), format)


def unspread(column: Column, units: np.ndarray) -> np.ndarray:
    """The inverse of `spread_out`: places between the column's own ends as units.

    >>> unspread(Column.continuous("x", 0, 1), np.array([0.25])).tolist()
    [0.25]
    """
    low, high = spread_ends(column)
    return np.asarray(np.clip(low + units * (high - low), 0.0, 1.0))


def _settled_units(column: Column, units: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The nearest units at which the column has a value."""
    if column.kind == "categorical":
        return np.asarray(codes / max(column.cells - 1, 1))
    if column.kind == "ordinal":
        last = max(column.ungrouped.cells - 1, 1)
        return np.asarray(np.rint(units * last) / last)
    if column.low == column.high:
        return np.full(len(units), 0.5)
    return np.asarray((_numbers_at(column, units) - column.low) / float(column.high - column.low))


def _codes_at(column: Column, units: np.ndarray) -> np.ndarray:
    if column.kind != "ordinal":
        return bin_codes(column, _numbers_at(column, units))
    places = _places_at(column, units)
    return places if column.grouping is None else column.grouping.code_of_place[places]


def _values_at(
    column: Column, codes: np.ndarray, units: np.ndarray, rng: np.random.Generator
) -> Any:
    if column.kind == "categorical":
        return decode_column(column, codes, rng)
    nulls = codes == column.cells
    if column.kind == "ordinal":
        return typed_categories(column.ungrouped, _places_at(column, units), nulls)
    return typed_numbers(column, _numbers_at(column, units), nulls)


def _places_at(column: Column, units: np.ndarray) -> np.ndarray:
    """The place in an ordinal's list that is nearest."""
    last = column.ungrouped.cells - 1
    return np.rint(np.clip(units, 0.0, 1.0) * last).astype(np.int32)


def _numbers_at(column: Column, units: np.ndarray) -> np.ndarray:
    """Values of a numeric column, within its bounds."""
    low, high = column.low, column.high
    values = np.clip(low + np.clip(units, 0.0, 1.0) * float(high - low), low, high)
    if column.kind != "continuous":
        return np.rint(values).astype(np.int64)
    return values if column.step is None else on_step(column, values, bin_codes(column, values))
