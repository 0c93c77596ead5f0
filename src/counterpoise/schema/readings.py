"""What columns are coded from, and the coding itself: one for frames, files and databases.

A column is read first, as a number within its bounds on the numeric scale or as a place in its list
of categories, each value by itself; text and files are read by SQL (`sql`). What was read is coded
by numpy alone, here. So there are several readings, which tests hold to each other, and one coding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from counterpoise.schema.bins import bin_codes, unit_values
from counterpoise.schema.coded import Coded
from counterpoise.schema.column import Column
from counterpoise.schema.schema import Schema
from counterpoise.schema.sql import filled_expression, place_expression, value_expression


def codes_of(column: Column, read: np.ndarray, nulls: np.ndarray | None) -> np.ndarray:
    """The codes of numbers within the bounds of a column, or of places in its list.

    `nulls` are the rows that are null, wherever the column may be.

    >>> codes_of(Column.continuous("x", 0, 10, bins=5), np.array([2.5, 9.0]), None).tolist()
    [1, 4]
    """
    if column.is_numeric:
        codes = bin_codes(column, read)
    elif column.grouping is not None:
        codes = column.grouping.code_of_place[read]
    else:
        codes = read
    if column.null_code is not None:
        assert nulls is not None
        codes = np.where(nulls, column.null_code, codes)
    return codes.astype(np.int32, copy=False)


def units_of(column: Column, read: np.ndarray, nulls: np.ndarray | None) -> np.ndarray:
    """The places in the unit interval of what was read; that of null is in the middle."""
    if column.is_numeric:
        units = unit_values(column, read)
    else:
        # A place in the list has a meaning in ordered categories, grouped or not.
        units = read / max(column.ungrouped.cells - 1, 1)
    if column.null_code is not None:
        assert nulls is not None
        units = np.where(nulls, 0.5, units)
    return units


def readings_sql(columns: Iterable[Column], missing_values: Iterable[str] = ("",)) -> str:
    """What to select of a relation, for `readings_of`: none of it is ever NULL."""
    words = tuple(missing_values)
    found = []
    for place, column in enumerate(columns):
        # Libraries hand on whole numbers with a NULL among them as floats, which hold fewer.
        read = filled_expression if column.is_numeric else place_expression
        found.append(f"{read(column, missing_values=words)} AS r{place}")
        if column.is_numeric and column.null_code is not None:
            found.append(f"{value_expression(column, missing_values=words)} IS NULL AS n{place}")
    return ", ".join(found)


def readings_of(
    columns: Iterable[Column], found: Mapping[str, np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """What was read of each column, and its nulls, from the arrays of `readings_sql`."""
    for place, column in enumerate(columns):
        read = np.asarray(found[f"r{place}"])
        if column.null_code is None:
            yield read, None
        elif column.is_numeric:
            yield read, np.asarray(found[f"n{place}"])
        else:
            yield read, null_places(column, read)


def null_places(column: Column, places: np.ndarray) -> np.ndarray:
    """Which places in the list of a column of categories are that of null."""
    return np.asarray(places == column.ungrouped.cells)


def coded(
    schema: Schema, rows: int, readings: Iterable[tuple[np.ndarray, np.ndarray | None]]
) -> Coded:
    """So many rows, of whose columns these are the readings."""
    codes = np.empty((rows, len(schema)), dtype=np.int32, order="F")
    units = np.empty((rows, len(schema)), dtype=np.float64, order="F")
    for position, (column, (read, nulls)) in enumerate(zip(schema, readings, strict=True)):
        codes[:, position] = codes_of(column, read, nulls)
        units[:, position] = units_of(column, read, nulls)
    return Coded(schema, codes, units)
