"""The public rules of a schema on the rows of a table: what is derived, made up, and obeyed.

A table of the modelled columns gets its derived columns, each by its expression, with the dtype
that decoding gives to such a column, and fresh identifiers. Nothing of it is random, and nothing
is private: these are rows of a synthetic table.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from counterpoise.errors import TableError
from counterpoise.schema.column import Column
from counterpoise.schema.expressions import Values
from counterpoise.schema.incoming import DATE_DTYPE, DATETIME_DTYPE
from counterpoise.schema.public_rules import DAY, PLACES

if TYPE_CHECKING:
    from counterpoise.schema.schema import Schema


def complete(
    schema: Schema, table: pd.DataFrame, before: int = 0, total: int | None = None
) -> pd.DataFrame:
    """A table of the modelled columns with the derived ones and identifiers, in their order.

    A part of a larger one says how many rows are `before` it, and how many there are in `total`.
    """
    if not schema.rules:
        return table[list(schema.names)]
    made = {name: values for name, values, _ in _derived(schema.settled, table)}
    for name in schema.rules.identifiers:
        made[name] = surrogates(schema[name], len(table), table.index, before, total)
    return pd.DataFrame(
        {name: made.get(name, table.get(name)) for name in schema.names}, index=table.index
    )


def surrogates(
    column: Column,
    rows: int,
    index: pd.Index | None = None,
    before: int = 0,
    total: int | None = None,
) -> pd.Series:
    """Fresh identifiers of rows: 1, 2, 3 and so on, or texts of them; those `before` are taken.

    >>> surrogates(Column.identifier("patient", "string"), 2).tolist()
    ['id-000001', 'id-000002']
    """
    numbers = np.arange(before + 1, before + rows + 1, dtype=np.int64)
    if column.category_type == "integer":
        return pd.Series(numbers, index=index)
    width = max(6, len(str(rows if total is None else total)))
    return pd.Series([f"id-{number:0{width}d}" for number in numbers], index=index, dtype="str")


def obeyed(schema: Schema, table: pd.DataFrame) -> dict[str, np.ndarray]:
    """For each rule, by its text, which rows of a table of the modelled columns keep it.

    Checks come first; then that derived columns keep within the bounds that the schema has.
    """
    settled = schema.settled
    values: dict[str, Any] = {column.name: table[column.name] for column in schema.rules.modelled}
    bounds: dict[str, np.ndarray] = {}
    for name, series, ticks in _derived(settled, table, lenient=True):
        values[name] = series
        column, nulls = settled[name], series.isna().to_numpy()
        within = ~nulls if not column.nullable else np.ones(len(table), dtype=bool)
        if column.is_numeric:
            within &= nulls | ((ticks >= column.low) & (ticks <= column.high))
        bounds[f"the bounds of {name!r}"] = within
    found = {}
    for text, check in zip(schema.checks, schema.rules.checks, strict=True):
        answers = check.evaluate({name: values[name] for name in check.columns})
        found[f"check {text!r}"] = answers.values.astype(bool) | ~answers.known
    return found | bounds


def all_obeyed(schema: Schema, table: pd.DataFrame) -> np.ndarray:
    """Which rows of a table of the modelled columns keep every rule."""
    every = np.ones(len(table), dtype=bool)
    return reduce(np.logical_and, obeyed(schema, table).values(), every)


def _derived(
    settled: Schema, table: pd.DataFrame, lenient: bool = False
) -> Iterator[tuple[str, pd.Series, np.ndarray]]:
    """The derived columns one after the other, as series and on their numeric scale.

    What is `lenient` may be null wherever the expression is, whatever the column says.
    """
    known: dict[str, Any] = {column.name: table[column.name] for column in settled.rules.modelled}
    for column, expression in settled.rules.derived:
        found = expression.evaluate({name: known[name] for name in expression.columns})
        ticks, nulls = _ticks(column, found)
        if nulls.any() and not (lenient or column.nullable):
            raise TableError(
                f"column {column.name!r}: its expression is null in some rows, and it is required"
            )
        values = _as_column(column, ticks, nulls, lenient or column.nullable)
        known[column.name] = pd.Series(values, index=table.index)
        yield column.name, known[column.name], ticks


def _ticks(column: Column, found: Values) -> tuple[np.ndarray, np.ndarray]:
    """Values on the numeric scale of a column, and which of them are null.

    As where values are read, fractions are cut down: a whole number, a day.
    """
    nulls = ~found.known
    if not column.is_numeric:
        return found.values.astype(bool) & found.known, nulls
    numbers = np.where(nulls, 0.0, found.values.astype(float))
    if column.kind == "datetime":
        numbers = np.round(numbers * DAY)
    elif column.kind != "continuous":
        numbers = np.floor(numbers)
    low, high = PLACES[column.kind]
    # What no such column has a place for is null, as is what is no finite number.
    nulls = nulls | (numbers < low) | (numbers > high)
    numbers = np.where(nulls, 0.0, numbers)
    return numbers if column.kind == "continuous" else numbers.astype(np.int64), nulls


def _as_column(column: Column, ticks: np.ndarray, nulls: np.ndarray, nullable: bool) -> Any:
    """Values with the dtype that decoding gives to such a column."""
    if not column.is_numeric:
        return pd.arrays.BooleanArray(ticks, nulls) if nullable else ticks
    if column.kind == "integer":
        return pd.arrays.IntegerArray(ticks, nulls) if nullable else ticks
    if column.kind == "continuous":
        return np.where(nulls, np.nan, ticks)
    moments = ticks.astype("datetime64[D]" if column.kind == "date" else "datetime64[us]")
    moments[nulls] = np.datetime64("NaT")
    return moments.astype(DATE_DTYPE if column.kind == "date" else DATETIME_DTYPE)


def restored_identifier(column: Column, values: pd.Series) -> pd.Series:
    """Identifiers read back from a file, each of them once, with the dtype of `surrogates`."""
    try:
        found = values.astype("int64" if column.category_type == "integer" else "str")
    except (TypeError, ValueError, OverflowError):
        found = pd.Series([0, 0])
    if values.isna().any() or not found.is_unique:
        raise TableError(
            f"column {column.name!r}: expected identifiers of type {column.category_type}, each "
            "of them once"
        )
    return found
