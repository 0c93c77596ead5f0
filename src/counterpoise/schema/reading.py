"""Reading a column of a pandas frame as numbers, moments or texts, row by row.

The reading of a value never depends on the other rows of its column, or one person's row could
change how another's is coded; so no type is inferred from values. Numeric and datetime dtypes are
read by numpy; everything else is read as text, by the SQL expressions that also read files.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from datetime import UTC
from datetime import datetime as DateTime
from decimal import Decimal
from functools import lru_cache
from types import TracebackType
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from counterpoise.arguments import plain_text
from counterpoise.schema.bins import EPOCH, MICROSECOND
from counterpoise.schema.files import connect, private_errors
from counterpoise.schema.incoming import plain

_COARSE_UNITS = ("s", "ms")
# What is read as text: some files hold it as bytes, without saying that it is text.
TEXT = (str, bytes, bytearray)
_BYTES_AS_TEXT = {*range(32, 127)} - {*b"\"'\\"}
# What the calendar of Python and of the database's texts holds, in microseconds since 1970.
FIRST_MOMENT = (DateTime.min - EPOCH) // MICROSECOND
LAST_MOMENT = (DateTime.max - EPOCH) // MICROSECOND


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:
    # Opening a database takes longer than most questions to it, so an empty one is kept; not
    # across a fork, which it would not survive.
    return connect()


# Let go of it while the interpreter is still whole.
atexit.register(_database.cache_clear)


class TextReader:
    """Evaluates SQL expressions over texts, on one connection that is opened when first needed."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None

    def __enter__(self) -> TextReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._connection is not None:
            self._connection.close()

    def read(self, texts: np.ndarray, expression: str) -> np.ma.MaskedArray:
        """The value of an expression over the column "text", masked where it is NULL."""
        if not len(texts):
            return np.ma.masked_array(np.zeros(0), mask=np.zeros(0, dtype=bool))
        if self._connection is None:
            self._connection = _database(os.getpid()).cursor()
        try:
            return self._evaluate(self._connection, texts, expression)
        except (duckdb.Error, UnicodeError):
            pass
        # A lone surrogate is not UTF-8; replaced, such a text still means nothing.
        clean = np.empty(len(texts), dtype=object)
        clean[:] = [None if text is None else _utf8(text) for text in texts]
        with private_errors("a column"):
            return self._evaluate(self._connection, clean, expression)

    @staticmethod
    def _evaluate(
        connection: duckdb.DuckDBPyConnection, texts: np.ndarray, expression: str
    ) -> np.ma.MaskedArray:
        connection.register("texts", pd.DataFrame({"text": pd.Series(texts, dtype=object)}))
        try:
            typed = "SELECT CAST(text AS VARCHAR) AS text FROM texts"
            answer = connection.execute(f"SELECT {expression} AS value FROM ({typed})")
            return np.ma.asarray(answer.fetchnumpy()["value"])
        finally:
            connection.unregister("texts")


def is_number_like(values: pd.Series) -> bool:
    """Whether the dtype, nullable or not, is one of integers, floats or booleans."""
    dtype = values.dtype
    return pd.api.types.is_bool_dtype(dtype) or (
        pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
    )


def is_moment_like(values: pd.Series) -> bool:
    """Whether the dtype is one of numpy's or pandas' datetimes."""
    return isinstance(values.dtype, pd.DatetimeTZDtype) or (
        isinstance(values.dtype, np.dtype) and values.dtype.kind == "M"
    )


def read_numbers(values: pd.Series) -> np.ndarray:
    """A number-like column as float64, NaN for null; an array of its own, to be worked on."""
    if isinstance(values.dtype, np.dtype):
        return values.to_numpy().astype(np.float64)
    # A copy always: pandas may hand out the caller's own memory.
    return values.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)


def read_moments(
    values: pd.Series, unit: str, low: int, high: int
) -> tuple[np.ndarray, np.ndarray]:
    """A moment-like column as int64 days ("D") or microseconds ("us"), clamped; and the nulls."""
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    moments = values.to_numpy()
    nulls = np.isnat(moments)
    resolution = np.datetime_data(moments.dtype)[0]
    if resolution in _COARSE_UNITS:
        # Their range is wider than that of microseconds, and a cast would wrap around.
        year_one, last = np.datetime64("0001-01-01"), np.datetime64("9999-12-31T23:59:59")
        moments = np.clip(moments, year_one.astype(moments.dtype), last.astype(moments.dtype))
    ticks = moments.astype(f"datetime64[{unit}]").view(np.int64)
    return np.clip(np.where(nulls, low, ticks), low, high), nulls


def distinct_texts(
    values: pd.Series, missing: tuple[str, ...], truth: tuple[str, str] = ("false", "true")
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct texts of a column and the position of each row's among them, -1 for null."""
    values = plain(values)
    if isinstance(values.dtype, pd.CategoricalDtype):
        inner, texts = distinct_texts(pd.Series(values.cat.categories), missing, truth)
        return np.append(inner, -1)[values.cat.codes.to_numpy()], texts
    if isinstance(values.dtype, pd.StringDtype):
        return _without_missing(*_factorized(values), missing)
    if is_moment_like(values):
        ticks, nulls = read_moments(values, "us", FIRST_MOMENT, LAST_MOMENT)
        positions, uniques = pd.factorize(ticks)
        return np.where(nulls, -1, positions), _column(moment_text(tick) for tick in uniques)
    if is_number_like(values):
        # As numpy's floats, because pandas tells its own NaN from null.
        numbers = read_numbers(values) if _is_float(values) else values
        positions, uniques = _factorized(numbers)
        return positions, _column(text_of(value, truth) for value in uniques)
    objects = values.to_numpy(dtype=object)
    if _is_text_or_null(objects):
        # The same texts, found more quickly.
        return _without_missing(*_factorized(objects), missing)
    # Texts first, distinct ones after: among objects True, 1 and 1.0 count as the same.
    absent = frozenset(missing)
    return _factorized(_column(_text_or_none(value, truth, absent) for value in objects))


def nulls_of(values: pd.Series) -> np.ndarray:
    """Which rows of a column are null, an empty text among them; of numbers, NaN too."""
    if is_number_like(values):
        return np.isnan(read_numbers(values)) if _is_float(values) else values.isna().to_numpy()
    if is_moment_like(values):
        return values.isna().to_numpy()
    return distinct_texts(values, ("",))[0] < 0


def text_of(value: Any, truth: tuple[str, str] = ("false", "true")) -> str:
    """A value as text, the way the database writes it; whole floats without their ".0".

    A moment at midnight is written as a date, for the same reason: whether a column holds dates
    or moments, or to which resolution, may hang on its other rows.

    >>> text_of(3.0), text_of(True), text_of("as it is"), text_of(DateTime(2020, 1, 31))
    ('3', 'true', 'as it is', '2020-01-31')
    """
    try:
        if isinstance(value, str):
            # A subclass (numpy's, an enumeration) may print itself as something else.
            return plain_text(value)
        if isinstance(value, bytes | bytearray):
            return "".join(chr(b) if b in _BYTES_AS_TEXT else f"\\x{b:02X}" for b in value)
        if isinstance(value, bool | np.bool_):
            return truth[bool(value)]
        if isinstance(value, float | np.floating):
            # One zero: the two are equal, so whichever is seen first would name them both.
            return repr(float(value) + 0.0).removesuffix(".0")
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        if isinstance(value, DateTime):
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            tick = (moment.replace(tzinfo=None) - EPOCH) // MICROSECOND
            return moment_text(min(max(tick, FIRST_MOMENT), LAST_MOMENT))
        return plain_text(str(value))
    except Exception:
        # No value of a private row may raise; one that has no text means nothing.
        return ""


def moment_text(tick: int) -> str:
    """Microseconds since 1970 as text, the way the database writes them; a date at midnight.

    >>> moment_text(0), moment_text(1_500_000)
    ('1970-01-01', '1970-01-01 00:00:01.5')
    """
    text = (EPOCH + int(tick) * MICROSECOND).isoformat(sep=" ").removesuffix(" 00:00:00")
    return text.rstrip("0") if "." in text else text


def _text_or_none(value: Any, truth: tuple[str, str], absent: frozenset[str]) -> str | None:
    """The text of an object, None for null; from the object alone."""
    try:
        if _is_null(value):
            return None
        text = text_of(value, truth)
        return None if isinstance(value, TEXT) and text in absent else text
    except Exception:
        # What raises when it is compared, or asked for its type, is as good as nothing.
        return None


def _is_text_or_null(objects: np.ndarray) -> bool:
    kinds = {*map(type, objects)}
    if not kinds <= {str, float, type(None)}:
        return False
    return float not in kinds or not any(
        type(value) is float and value == value for value in objects
    )


def _is_null(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, float | complex | np.inexact):
        return bool(value != value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    # Comparing a signalling NaN, which is how pandas looks for nulls, raises.
    return isinstance(value, Decimal) and value.is_nan()


def _is_float(values: pd.Series) -> bool:
    return pd.api.types.is_float_dtype(values.dtype)


def _column(texts: Iterable[str | None]) -> np.ndarray:
    return np.array([*texts], dtype=object)


def _factorized(values: Any) -> tuple[np.ndarray, np.ndarray]:
    positions, uniques = pd.factorize(values)
    return positions, np.asarray(uniques, dtype=object)


def _without_missing(
    positions: np.ndarray, texts: np.ndarray, missing: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    absent = [position for position, text in enumerate(texts) if text in missing]
    if not absent:
        return positions, texts
    places = np.arange(len(texts) + 1)
    places[absent] = -1
    places[-1] = -1
    return places[positions], texts


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
