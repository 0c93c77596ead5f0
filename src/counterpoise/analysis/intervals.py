"""Intervals of a column's values, as the cells of a margin: how they are stated and written.

(18, 65) holds the values from 18 up to, and without, 65; an end that is None is open. As text,
which files and cards have, "[18, 65)" says of each end whether it is held, as R and pandas write
it; "[65, )" has no upper end, and "3" is a single value. Ends of dates are dates or ISO texts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np

from counterpoise.analysis.columns import Scale
from counterpoise.arguments import shown
from counterpoise.errors import AnalysisError, SchemaError
from counterpoise.schema import Column
from counterpoise.schema.bins import number
from counterpoise.schema.normal_form import edges

_WRITTEN = re.compile(r"\s*([\[(])\s*([^,]*?)\s*,\s*([^,]*?)\s*([\])])\s*")
_SIDES = {"left": (True, False), "right": (False, True), "both": (True, True)}


@dataclass(frozen=True)
class Interval:
    """From `low` to `high` on a column's numeric scale, and whether it holds its ends."""

    low: float
    high: float
    holds_low: bool = True
    holds_high: bool = False

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Which values lie within.

        >>> Interval(0, 18).holds(np.array([-1, 0, 18])).tolist()
        [False, True, False]
        """
        above = values >= self.low if self.holds_low else values > self.low
        below = values <= self.high if self.holds_high else values < self.high
        return np.asarray(above & below)

    def overlaps(self, other: Interval) -> bool:
        """Whether some number lies in both."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low != high:
            return low < high
        return bool(all(each.holds(np.array([low]))[0] for each in (self, other)))

    def written(self, column: Column) -> str:
        """The interval as text, from which it is read again.

        >>> Interval(0, 18).written(Column.integer("age", 0, 99))
        '[0, 18)'
        """
        if self.low == self.high:
            return _end(column, self.low)
        left, right = "[" if self.holds_low else "(", "]" if self.holds_high else ")"
        return f"{left}{_end(column, self.low)}, {_end(column, self.high)}{right}"


def read_interval(column: Column, stated: Any) -> Interval:
    """An interval of a column's values, from whatever form it is stated in.

    >>> read_interval(Column.integer("age", 0, 99), (18, 65))
    Interval(low=18.0, high=65.0, holds_low=True, holds_high=False)
    >>> read_interval(Column.date("seen", "2020-01-01", "2020-12-31"), "[2020-07-01, )").low
    18444.0
    """
    sides = True, False
    if isinstance(stated, str):
        found = _WRITTEN.fullmatch(stated)
        if found is None:
            value = _number(column, _value(column, stated, stated), stated)
            return Interval(value, value, True, True)
        ends: tuple[Any, ...] = tuple(
            _value(column, end, stated) if end else None for end in found.group(2, 3)
        )
        sides = found[1] == "[", found[4] == "]"
    elif isinstance(stated, tuple | list) and len(stated) == 2:
        ends = tuple(stated)
    elif type(stated).__name__ == "Interval" and hasattr(stated, "closed"):
        ends, sides = (stated.left, stated.right), _SIDES.get(stated.closed, (False, False))
    else:
        value = _number(column, stated, stated)
        return Interval(value, value, True, True)
    low, high = (None if _is_open(end) else _number(column, end, stated) for end in ends)
    made = Interval(-math.inf if low is None else low, math.inf if high is None else high, *sides)
    if not made.low <= made.high or (made.low == made.high and not all(sides)):
        raise _refusal(column, stated)
    return made


def closed_above(intervals: list[Interval], stated: list[Any]) -> list[Interval]:
    """The same, where the highest holds its upper end, unless its text says that it does not.

    The bound of a column is a value that rows have: (65, 99) is meant to hold those of 99.
    """
    last = max(intervals, key=lambda each: each.high)
    return [
        replace(each, holds_high=True)
        if each is last and isinstance(given, tuple | list) and math.isfinite(each.high)
        else each
        for each, given in zip(intervals, stated, strict=True)
    ]


def _is_open(end: Any) -> bool:
    return end is None or (isinstance(end, float) and math.isinf(end))


def _value(column: Column, text: str, stated: str) -> Any:
    """A text as a value of a column: dates are read where bounds are."""
    if column.kind in ("date", "datetime"):
        return text
    try:
        return float(text)
    except ValueError:
        raise _refusal(column, stated) from None


def _number(column: Column, value: Any, stated: Any) -> float:
    if isinstance(value, np.generic):
        value = value.item()
    if column.kind == "date" and isinstance(value, datetime):
        value = value.date()
    elif column.kind == "datetime" and isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    # Between whole numbers an end may lie anywhere.
    as_stated = Column.continuous(column.name) if column.kind == "integer" else column
    try:
        [found] = edges(as_stated, [value])
    except (SchemaError, ValueError, TypeError, OverflowError):
        raise _refusal(column, stated) from None
    if found is None:
        raise _refusal(column, stated)
    return float(number(found))


def _end(column: Column, value: float) -> str:
    if math.isinf(value):
        return ""
    if column.kind in ("date", "datetime"):
        return str(Scale(column.kind).value(value).isoformat())
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _refusal(column: Column, stated: Any) -> AnalysisError:
    example = '("2020-01-01", "2021-01-01")' if column.kind in ("date", "datetime") else "(18, 65)"
    what = stated if isinstance(stated, tuple | list) and len(stated) == 2 else None
    try:
        said = shown(stated) if what is None else shown(f"({what[0]}, {what[1]})")
    except Exception:
        # A value that cannot be shown is not shown.
        said = shown(object())
    return AnalysisError(
        f"margins: column {column.name!r} is {column.kind}: expected an interval of its values, "
        f"such as {example}, or one of them, not {said}"
    )
