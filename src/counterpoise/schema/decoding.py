"""From codes back to a table: categories as they are, numbers drawn uniformly within their bin.

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
from counterpoise.schema.incoming import DATE_DTYPE, DATETIME_DTYPE
from counterpoise.schema.schema import Schema
from counterpoise.schema.tables import check_columns, read_table


def decode(schema: Schema, codes: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """A frame with these codes; see `Schema.decode`."""
    schema.require_complete()
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(schema):
        raise SchemaError("codes must be an array of rows by the columns of the schema")
    for position, column in enumerate(schema):
        if (
            len(codes)
            and not 0 <= codes[:, position].min() <= codes[:, position].max() < column.size
        ):
            raise SchemaError(f"column {column.name!r}: codes must be between 0 and size - 1")
    columns = {
        column.name: _decode_column(column, codes[:, position], rng)
        for position, column in enumerate(schema)
    }
    return pd.DataFrame(columns, columns=list(schema.names))


def restore(schema: Schema, table: Any) -> pd.DataFrame:
    """A table with the dtypes that `decode` gives; see `Schema.restore`."""
    frame = read_table(table)
    check_columns(frame.columns, schema)
    return frame.assign(**{column.name: _restored(column, frame[column.name]) for column in schema})


def _decode_column(column: Column, codes: np.ndarray, rng: np.random.Generator) -> Any:
    nulls = codes == column.cells
    if not column.is_numeric:
        return _categories(column, codes, nulls)
    codes = np.where(nulls, 0, codes)
    if column.kind == "continuous":
        values = _draw_floats(column, codes, rng)
        values[nulls] = np.nan
        return values
    # Every integer of a bin is as likely as any other.
    edges = column.edges
    values = rng.integers(edges[codes], edges[codes + 1])
    if column.kind == "integer":
        return _integers(values, nulls, column.nullable)
    unit = "D" if column.kind == "date" else "us"
    moments = values.astype(f"datetime64[{unit}]")
    moments[nulls] = np.datetime64("NaT")
    return moments.astype(DATE_DTYPE if column.kind == "date" else DATETIME_DTYPE)


def _draw_floats(column: Column, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    edges = column.edges
    left, width = edges[:-1][codes], np.diff(edges)[codes]
    values = np.clip(left + rng.random(len(codes)) * width, column.low, column.high)
    # Rounding can carry a value over the edge of its bin: put it back inside.
    strayed = bin_codes(column, values) != codes
    if strayed.any():
        stated = isinstance(column.bins, tuple)
        values[strayed] = left[strayed] + (0.0 if stated else 0.5) * width[strayed]
    return values


def _categories(column: Column, codes: np.ndarray, nulls: np.ndarray) -> Any:
    assert column.categories is not None
    if column.kind == "ordinal" or column.category_type == "string":
        return pd.Categorical.from_codes(
            np.where(nulls, -1, codes),
            categories=pd.Index(list(column.categories)),
            ordered=column.kind == "ordinal",
        )
    values = np.array(column.categories)[np.where(nulls, 0, codes)]
    if column.category_type == "integer":
        return _integers(values.astype(np.int64), nulls, column.nullable)
    return pd.arrays.BooleanArray(values, nulls) if column.nullable else values


def _integers(values: np.ndarray, nulls: np.ndarray, nullable: bool) -> Any:
    return pd.arrays.IntegerArray(values, nulls) if nullable else values


def _restored(column: Column, values: pd.Series) -> Any:
    if not column.is_numeric:
        codes = Schema((column,)).encode(values.to_frame(column.name)).codes[:, 0]
        return _categories(column, codes, codes == column.cells)
    is_moment = column.kind in ("date", "datetime")
    try:
        found = pd.to_datetime(values) if is_moment else pd.to_numeric(values)
    except (ValueError, TypeError):
        raise TableError(
            f"column {column.name!r}: expected {'moments' if is_moment else 'numbers'}, as it is "
            f"{column.kind}; convert its values, or leave out what is none"
        ) from None
    if is_moment:
        return found.astype(DATE_DTYPE if column.kind == "date" else DATETIME_DTYPE)
    if column.kind == "continuous":
        return found.astype(np.float64)
    return _whole(column, found)


def _whole(column: Column, numbers: pd.Series) -> pd.Series:
    nulls = numbers.isna()
    if nulls.any() and not column.nullable:
        raise TableError(
            f"column {column.name!r}: a whole number cannot be null here; fill the nulls, drop "
            "their rows, or make the column nullable in the schema"
        )
    if (numbers[~nulls] % 1 != 0).any():
        raise TableError(
            f"column {column.name!r}: expected whole numbers; round them, or make the column "
            "continuous in the schema"
        )
    return numbers.astype("Int64" if column.nullable else np.int64)
