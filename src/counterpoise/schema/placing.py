"""From places between the ends of a column back to values: what a generator of numbers makes.

`decode` knows the bin of a number and draws the rest; here the number itself is known, by its place
from 0 to 1 between the ends of the column's own rows (`spread_out`, read the other way) or, where
no shape was paid for, between its bounds. It becomes a value that the column can have: whole,
a multiple of its step, and in a cell of its shape that has rows. Coding it gives the code of the
place again, or the nearest that has rows. Categories are codes, as in `decode`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.errors import SchemaError
from counterpoise.schema.bins import bin_codes, number
from counterpoise.schema.column import Column
from counterpoise.schema.decoding import decode_column, typed_categories, typed_numbers
from counterpoise.schema.row_rules import complete
from counterpoise.schema.schema import Schema
from counterpoise.schema.shape import spread_ends
from counterpoise.schema.stated_coding import on_step
from counterpoise.schema.tables import convert


def place(
    schema: Schema,
    codes: np.ndarray,
    places: np.ndarray,
    rng: np.random.Generator,
    format: str = "pandas",
) -> Any:
    """A table of rows whose categories have these codes, and the rest of which is at these places.

    Both arrays have a column for each modelled one. Numbers and ordered categories are at places,
    and of their codes one thing counts: that of null is null. Derived columns are computed and
    identifiers made, as by `Schema.decode`.

    >>> schema = Schema([Column.integer("age", 0, 50), Column.boolean("ill")])
    >>> codes, places = np.array([[0, 1], [0, 0]]), np.array([[0.5, 0.0], [1.0, 0.0]])
    >>> place(schema, codes, places, np.random.default_rng(0)).values.tolist()
    [[25, True], [50, False]]
    """
    modelled = schema.modelled
    modelled.require_complete()
    wanted = (len(codes), len(modelled))
    if np.shape(codes) != wanted or np.shape(places) != wanted:
        raise SchemaError("codes and places must be arrays of rows by the columns of the schema")
    made = {}
    for position, column in enumerate(modelled):
        if column.kind == "categorical":
            made[column.name] = decode_column(column, codes[:, position], rng)
            continue
        nulls = codes[:, position] == column.cells
        at = np.where(nulls, 0.5, places[:, position])
        if column.is_numeric:
            made[column.name] = typed_numbers(column, values_at(column, at), nulls)
        else:
            last = column.ungrouped.cells - 1
            listed = np.rint(np.clip(at, 0.0, 1.0) * last).astype(np.int64)
            made[column.name] = typed_categories(column, listed, nulls)
    frame = pd.DataFrame(made, columns=list(modelled.names))
    return convert(complete(schema, frame) if schema.rules else frame, format)


def values_at(column: Column, places: np.ndarray) -> np.ndarray:
    """Values on the numeric scale at places from 0 to 1; see `place`.

    >>> values_at(Column.continuous("pay", 0.0, 10.0, step=0.5), np.array([0.0, 0.33, 1.0]))
    array([ 0.,  3., 10.])
    """
    first, last = spread_ends(column)
    units = first + np.clip(places, 0.0, 1.0) * (last - first)
    values = np.clip(column.low + units * float(column.high - column.low), column.low, column.high)
    if column.kind != "continuous":
        values = np.clip(np.rint(values).astype(np.int64), int(column.low), int(column.high))
    if column.shape is not None:
        values = _where_rows_are(column, values)
    if column.kind == "continuous" and column.step is not None:
        values = on_step(column, values, bin_codes(column, values))
    return values


def _where_rows_are(column: Column, values: np.ndarray) -> np.ndarray:
    """Values moved to the nearest cell of the shape that has rows, where theirs has none."""
    shape = column.shape
    assert shape is not None
    end, whole = column.edges[-1], column.kind != "continuous"
    starts = np.array([number(edge) for edge in shape.edges[:-1]], dtype=column.edges.dtype)
    ends = np.append(starts[1:], end)
    # The last value of each cell; the last cell holds its end.
    lasts = ends - 1 if whole else np.nextafter(ends, -math.inf)
    if not whole:
        lasts[-1] = end
    there = np.flatnonzero(np.array(shape.shares) > 0)
    cells = np.searchsorted(starts, values, side="right") - 1
    after = np.minimum(np.searchsorted(there, cells), len(there) - 1)
    before = np.maximum(np.searchsorted(there, cells, side="right") - 1, 0)
    above = np.maximum(values, starts[there[after]])
    below = np.minimum(values, lasts[there[before]])
    # At an end there is only one side; the other has then moved the value the wrong way.
    up, down = there[after] >= cells, there[before] <= cells
    nearer = np.where(up & down, above - values <= values - below, up)
    found = np.where(nearer, above, below)
    # An atom is one value: that of the last cell is its end.
    single = np.nextafter(starts[-1], math.inf) == end if not whole else False
    return np.where(found >= starts[-1], end, found) if single else found
