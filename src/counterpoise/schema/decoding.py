"""From codes back to a table: categories as they are, numbers drawn within their bin.

A number is drawn as the shape of its column says, and uniformly where none is stated; a category
that shares its code with others by their shares.
Coding the decoded table gives the codes again, exactly, for every schema. Randomness is the
caller's generator, and it is not privacy noise: decoding is post-processing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from counterpoise.errors import SchemaError, TableError
from counterpoise.schema.bins import bin_codes
from counterpoise.schema.column import Column
from counterpoise.schema.encoding import read_values
from counterpoise.schema.grouping import draw_places
from counterpoise.schema.incoming import DATE_DTYPE, DATETIME_DTYPE, plain
from counterpoise.schema.reading import (
    TextReader,
    distinct_texts,
    is_number_like,
    nulls_of,
    read_numbers,
)
from counterpoise.schema.row_rules import complete, restored_identifier
from counterpoise.schema.rules import LARGEST_INTEGER
from counterpoise.schema.schema import Schema
from counterpoise.schema.shape import draw_within
from counterpoise.schema.stated_coding import on_step
from counterpoise.schema.tables import check_columns, read_table


def decode(schema: Schema, codes: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """A frame with these codes; see `Schema.decode`."""
    if schema.rules:
        return complete(schema, decode(schema.modelled, codes, rng))
    schema.require_complete()
    if not (hasattr(rng, "random") and hasattr(rng, "integers")):
        raise SchemaError("rng must be a generator of numpy: numpy.random.default_rng(seed)")
    try:
        codes = np.asarray(codes)
    except Exception:
        codes = np.empty(0)
    if codes.ndim != 2 or codes.shape[1] != len(schema) or codes.dtype.kind not in "iu":
        raise SchemaError(
            "codes must be an array of whole numbers, rows by the columns of the schema"
        )
    for position, column in enumerate(schema):
        if (
            len(codes)
            and not 0 <= codes[:, position].min() <= codes[:, position].max() < column.size
        ):
            raise SchemaError(f"column {column.name!r}: codes must be between 0 and size - 1")
    columns = {
        column.name: decode_column(column, codes[:, position], rng)
        for position, column in enumerate(schema)
    }
    return pd.DataFrame(columns, columns=list(schema.names))


def restore(schema: Schema, table: Any) -> pd.DataFrame:
    """A table with the dtypes that `decode` gives; see `Schema.restore`."""
    # What is read back was written by us, however the private table is spelled.
    schema = schema.as_released()
    frame = read_table(table)
    check_columns(frame.columns, schema)
    # Every column of the schema is put in anew; the others are shared until somebody writes.
    restored = frame.copy(deep=False)
    for name in schema.rules.identifiers:
        restored[name] = restored_identifier(schema[name], frame[name])
    for column in schema.plain:
        restored[column.name] = _restored(column, frame[column.name])
    return restored


def decode_column(column: Column, codes: np.ndarray, rng: np.random.Generator) -> Any:
    """The values of one column with these codes, of the type that it has in a table."""
    nulls = codes == column.cells
    if not column.is_numeric:
        if column.grouping is not None:
            codes = draw_places(column.grouping, np.where(nulls, 0, codes), rng)
        return typed_categories(column, codes, nulls)
    codes = np.where(nulls, 0, codes)
    if column.kind == "continuous":
        values = _draw_floats(column, codes, rng)
    elif column.shape is not None:
        values = draw_within(column, codes, rng)
    else:
        # Every integer of a bin is as likely as any other.
        edges = column.edges
        values = rng.integers(edges[codes], edges[codes + 1])
    return typed_numbers(column, values, nulls)


def typed_numbers(column: Column, values: np.ndarray, nulls: np.ndarray) -> Any:
    """Values on the numeric scale as a table has them: floats, integers, dates, moments."""
    if column.kind == "continuous":
        values[nulls] = np.nan
        return values
    if column.kind == "integer":
        return _integers(values, nulls, column.nullable)
    return _moments(column, values, nulls)


def _moments(column: Column, ticks: np.ndarray, nulls: np.ndarray) -> np.ndarray:
    unit = "D" if column.kind == "date" else "us"
    moments = ticks.astype(f"datetime64[{unit}]")
    moments[nulls] = np.datetime64("NaT")
    return moments.astype(DATE_DTYPE if column.kind == "date" else DATETIME_DTYPE)


def _draw_floats(column: Column, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    edges = column.edges
    left, width = edges[:-1][codes], np.diff(edges)[codes]
    if column.shape is not None:
        drawn = draw_within(column, codes, rng)
    else:
        drawn = left + rng.random(len(codes)) * width
    values = np.clip(drawn, column.low, column.high)
    # Rounding can carry a value over the edge of its bin: put it back inside.
    strayed = bin_codes(column, values) != codes
    if strayed.any():
        stated = column.stated_edges is not None
        values[strayed] = left[strayed] + (0.0 if stated else 0.5) * width[strayed]
    return values if column.step is None else on_step(column, values, codes)


def typed_categories(column: Column, places: np.ndarray, nulls: np.ndarray) -> Any:
    """The categories at places of the list, as a table has them."""
    assert column.categories is not None
    if column.kind == "ordinal" or column.category_type == "string":
        return pd.Categorical.from_codes(
            np.where(nulls, -1, places),
            categories=pd.Index(list(column.categories)),
            ordered=column.kind == "ordinal",
        )
    values = np.array(column.categories)[np.where(nulls, 0, places)]
    if column.category_type == "integer":
        return _integers(values.astype(np.int64), nulls, column.nullable)
    return pd.arrays.BooleanArray(values, nulls) if column.nullable else values


def _integers(values: np.ndarray, nulls: np.ndarray, nullable: bool) -> Any:
    return pd.arrays.IntegerArray(values, nulls) if nullable else values


def _restored(column: Column, values: pd.Series) -> Any:
    if not column.is_numeric:
        listed = column.ungrouped
        if isinstance(values.dtype, pd.CategoricalDtype):
            # Each category once, and null, which is the last by its code of -1.
            different = [*values.cat.categories, None]
            known = _places(listed, pd.Series(different, name=column.name, dtype=object))
            places = known[values.cat.codes.to_numpy()]
        else:
            places = _places(listed, values)
        return typed_categories(column, places, places == listed.cells)
    values = plain(values)
    nulls = nulls_of(values)
    if column.kind in ("date", "datetime"):
        ticks, unread = read_values(column, values)
        _refuse_unread(column, unread & ~nulls, "moments")
        return _moments(column, ticks, nulls)
    if column.kind == "integer" and pd.api.types.is_integer_dtype(values.dtype):
        return _whole(column, values, nulls)
    numbers = read_numbers(values) if is_number_like(values) else _numbers_of_texts(values)
    _refuse_unread(column, np.isnan(numbers) & ~nulls, "numbers")
    if column.kind == "continuous":
        return numbers
    nulls = np.isnan(numbers)
    # The remainder of an infinity is not a number, and so no zero.
    present = np.where(nulls, 0.0, numbers)
    with np.errstate(invalid="ignore"):
        if not (present % 1 == 0).all():
            raise TableError(
                f"column {column.name!r}: expected whole numbers; round them, or make the column "
                "continuous in the schema"
            )
    if (np.abs(present) > LARGEST_INTEGER).any():
        raise TableError(f"column {column.name!r}: expected whole numbers within 2^53")
    return _whole(column, pd.Series(present.astype(np.int64)), nulls)


def _places(column: Column, values: pd.Series) -> np.ndarray:
    """The places of values in a column's list of categories."""
    return Schema((column,)).encode(values.to_frame(column.name)).codes[:, 0]


def _numbers_of_texts(values: pd.Series) -> np.ndarray:
    positions, distinct = distinct_texts(values, ("",), truth=("0", "1"))
    with TextReader() as reader:
        read = reader.read(distinct, "TRY_CAST(text AS DOUBLE)")
    return np.append(read.filled(np.nan), np.nan)[positions]


def _refuse_unread(column: Column, unread: np.ndarray, expected: str) -> None:
    if unread.any():
        raise TableError(
            f"column {column.name!r}: expected {expected}, as it is {column.kind}; convert its "
            "values, or leave out what is none"
        )


def _whole(column: Column, numbers: pd.Series, nulls: np.ndarray) -> Any:
    if nulls.any() and not column.nullable:
        raise TableError(
            f"column {column.name!r}: a whole number cannot be null here; fill the nulls, drop "
            "their rows, or make the column nullable in the schema"
        )
    try:
        whole = numbers.astype("Int64").to_numpy(dtype=np.int64, na_value=0)
    except (OverflowError, TypeError, ValueError):
        raise TableError(f"column {column.name!r}: expected whole numbers within 2^53") from None
    return _integers(whole, nulls, column.nullable)
