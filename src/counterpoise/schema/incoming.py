"""Columns as they come in, with a mask beside their values: from Arrow, polars and DuckDB.

A column that has a null somewhere must not become another kind of column, or one person's null
would change how every other value is read: integers stay integers and truths stay truths, whatever
their neighbours are. So nothing here asks a library to choose a dtype for it; the type that the
column states decides, and what numpy has no type for (decimals, lists, wide integers) comes in as
one Python object a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

# Dates are told from moments by their resolution, wherever a frame is made or written.
DATE_DTYPE, DATETIME_DTYPE = np.dtype("datetime64[s]"), np.dtype("datetime64[us]")

_MILLISECONDS_A_DAY = 86_400_000
# Days beyond are clamped, as those of a file are; since 1970, as Arrow has them.
_FIRST_AND_LAST_DAY = np.array(["0001-01-01", "9999-12-31"], "datetime64[D]").astype(np.int64)


def plain(values: pd.Series) -> pd.Series:
    """A pandas column without the dtypes that only wrap another: Arrow-backed and sparse ones."""
    if isinstance(values.dtype, pd.ArrowDtype):
        array: Any = values.array
        return from_arrow(array.__arrow_array__())
    if isinstance(values.dtype, pd.SparseDtype):
        return pd.Series(np.asarray(values.array))
    return values


def from_arrow(array: Any) -> pd.Series:
    """An Arrow array, in one piece or in several."""
    import pyarrow
    from pyarrow import types

    type_ = array.type
    if types.is_dictionary(type_):
        chunks = array.chunks if isinstance(array, pyarrow.ChunkedArray) else [array]
        is_text = types.is_string(type_.value_type) or types.is_large_string(type_.value_type)
        if is_text and not any(chunk.dictionary.null_count for chunk in chunks):
            return array.to_pandas()
        return from_arrow(array.cast(type_.value_type))
    if types.is_string(type_) or types.is_large_string(type_):
        return array.to_pandas()
    if types.is_floating(type_):
        return pd.Series(array.to_numpy(zero_copy_only=False))
    if types.is_boolean(type_) or types.is_integer(type_):
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        # Any value of the type serves: the mask is what tells.
        filled = array.fill_null(False if types.is_boolean(type_) else 0)
        return _masked(filled.to_numpy(zero_copy_only=False), nulls)
    if types.is_date(type_):
        whole, nulls = _ticks(array.cast("int32" if types.is_date32(type_) else "int64"))
        days = whole if types.is_date32(type_) else whole // _MILLISECONDS_A_DAY
        days = np.clip(days, *_FIRST_AND_LAST_DAY)
        return _moments(days.astype("datetime64[D]").astype(DATE_DTYPE), nulls)
    if types.is_timestamp(type_):
        # Arrow keeps moments with a time zone in UTC.
        ticks, nulls = _ticks(array.cast("int64"))
        return _moments(ticks.view(f"datetime64[{type_.unit}]"), nulls)
    return _objects(len(array), array.to_pylist, lambda place: array[place].as_py())


def from_polars(series: Any) -> pd.Series:
    """A polars series."""
    import polars

    # A name of its own: polars would take one such as "*" for a pattern.
    series = series.alias("column")
    dtype = series.dtype
    wide = getattr(polars, "Int128", None), getattr(polars, "UInt128", None)
    if dtype == polars.Boolean or (dtype.is_integer() and dtype not in wide):
        nulls = series.is_null().to_numpy()
        filled = series.fill_null(False if dtype == polars.Boolean else 0)
        return _masked(filled.to_numpy(), nulls)
    if dtype.is_float():
        return pd.Series(series.to_numpy())
    if dtype == polars.Date:
        return pd.Series(series.to_numpy().astype(DATE_DTYPE))
    if dtype == polars.Datetime:
        # Polars keeps moments with a time zone in UTC, and hands them over so.
        return pd.Series(series.to_numpy())
    return _objects(len(series), series.to_list, lambda place: series.slice(place, 1).to_list()[0])


def from_database(array: np.ndarray, type_: str) -> pd.Series:
    """A column that DuckDB fetched, whose SQL type was `type_` before it was made fetchable."""
    values, nulls = np.ma.getdata(array), np.ma.getmaskarray(array)
    if is_exact(type_):
        exact: Callable[[str], Any] = Decimal if type_.startswith("DECIMAL") else int
        positions, texts = pd.factorize(_with_none(values, nulls))
        numbers = np.array([*map(exact, texts), None], dtype=object)
        return pd.Series(numbers[positions], dtype=np.dtype(object))
    if type_ == "DATE":
        values = values.astype(DATE_DTYPE)
    if values.dtype == object:
        return pd.Series(_with_none(values, nulls), dtype=np.dtype(object))
    if not nulls.any():
        return pd.Series(values, copy=False)
    if values.dtype.kind in "biu":
        return _masked(values, nulls)
    return pd.Series(values).mask(nulls)


def is_exact(type_: str) -> bool:
    """Whether numbers of a SQL type hold more digits than any of numpy's."""
    return type_.startswith("DECIMAL") or "HUGEINT" in type_ or type_ == "BIGNUM"


def _with_none(values: np.ndarray, nulls: np.ndarray) -> np.ndarray:
    objects = values.astype(object)
    objects[nulls] = None
    return objects


def _masked(values: np.ndarray, nulls: np.ndarray) -> pd.Series:
    if values.dtype.kind == "b":
        return pd.Series(pd.arrays.BooleanArray(values, nulls))
    return pd.Series(pd.arrays.IntegerArray(values, nulls))


def _ticks(array: Any) -> tuple[np.ndarray, np.ndarray]:
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    return array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), nulls


def _moments(moments: np.ndarray, nulls: np.ndarray) -> pd.Series:
    moments[nulls] = np.datetime64("NaT")
    return pd.Series(moments)


def _objects(rows: int, every: Callable[[], Iterable[Any]], at: Callable[[int], Any]) -> pd.Series:
    """One Python object a row; a value that Python has no object for means nothing."""
    # Filled one by one: numpy would take lists of one length for further dimensions.
    objects = np.empty(rows, dtype=object)
    try:
        for place, value in enumerate(every()):
            objects[place] = value
    except Exception:
        # A year beyond 9999, say. No value of a private row may raise, nor change another's.
        for place in range(rows):
            try:
                objects[place] = at(place)
            except Exception:
                objects[place] = ""
    return pd.Series(objects, dtype=np.dtype(object))
