"""The one form in which a column keeps what is stated of it, and the rules that this obeys.

Bounds and edges become plain numbers, days and moments; categories plain text, whole numbers or
truth values. What does not fit the column's kind, or fits no column, is a SchemaError that names
the column and the rule. The columns here are half made: their names, kinds and marks are checked
already, the rest is what somebody wrote.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from datetime import UTC
from datetime import date as Date
from datetime import datetime as DateTime
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.errors import SchemaError
from counterpoise.schema import bins as geometry
from counterpoise.schema.rules import (
    LARGEST_INTEGER,
    finite_number,
    from_iso,
    is_number,
    listed,
    plain_category,
)

if TYPE_CHECKING:
    from counterpoise.schema.column import Column

Bound = int | float | Date | DateTime

MAX_BINS = 1_000_000
# Outside these the width of a bin, or its reciprocal, is not a float64.
NARROWEST_RANGE, WIDEST_RANGE = 1e-300, 1e300

CODING = ("scale", "atoms", "step")
SCALES = ("linear", "log")
# Each atom costs a cell; a column of more such values is one of categories.
MOST_ATOMS = 100

_CATEGORY_TYPES: dict[type, str] = {bool: "boolean", int: "integer", str: "string"}


def of_identifier(column: Column) -> dict[str, Any]:
    """What an identifier keeps: its type, and nothing that is read."""
    for key in ("categories", "other", "grouping", "minimum", "maximum", "bins", "shape"):
        if getattr(column, key) is not None:
            raise refusal(column, f"{key} belongs to columns that are read, not to an identifier")
    refuse_coding(column, "this one is an identifier")
    if column.nullable:
        raise refusal(column, "an identifier is never null")
    stated = "integer" if column.category_type is None else column.category_type
    if not isinstance(stated, str) or stated not in ("integer", "string"):
        raise refusal(column, "the type of an identifier must be integer or string")
    return {"category_type": stated}


def of_categories(column: Column) -> dict[str, Any]:
    """The categories of a column, their type, and which of them is `other`."""
    for key in ("minimum", "maximum", "bins", "shape"):
        if getattr(column, key) is not None:
            raise refusal(column, f"{key} belongs to numeric columns, this one is {column.kind}")
    refuse_coding(column, f"this one is {column.kind}")
    categories, stated = column.categories, column.category_type
    if stated is not None and (
        not isinstance(stated, str) or stated not in _CATEGORY_TYPES.values()
    ):
        raise refusal(column, "category_type must be string, integer or boolean")
    if categories is None and stated == "boolean":
        categories = (False, True)
    found: dict[str, Any] = {"category_type": stated or "string"}
    if categories is not None:
        values = listed(categories, f"column {column.name!r}: the categories (enum) must be a list")
        categories = tuple(plain_category(column.name, value) for value in values)
        types = {type(category) for category in categories}
        if not categories:
            raise refusal(column, "the categories (enum) must not be empty")
        if len(types) > 1:
            raise refusal(column, "the categories (enum) must all be of one type")
        if len(set(categories)) < len(categories):
            raise refusal(column, "the categories (enum) must be unique")
        found = {"categories": categories, "category_type": _CATEGORY_TYPES[types.pop()]}
    if column.other is None:
        return found
    other = plain_category(column.name, column.other)
    if categories is not None and not any(
        type(other) is type(category) and other == category for category in categories
    ):
        raise refusal(column, "other must be one of the categories (enum)")
    return {**found, "other": other}


def of_bounds(column: Column) -> dict[str, Any]:
    """The bounds of a numeric column and its bins, each by itself: see `check_bounds`."""
    for key in ("categories", "other", "category_type", "grouping"):
        if getattr(column, key) is not None:
            raise refusal(column, f"{key} belongs to categories, this column is {column.kind}")
    found: dict[str, Any] = {
        "minimum": _bound(column, column.minimum),
        "maximum": _bound(column, column.maximum),
    }
    bins = column.bins
    rule = "bins must be a whole number or a list of edges"
    if is_number(bins) and isinstance(bins, int | np.integer):
        bins = operator.index(bins)
        if not 0 < bins <= MAX_BINS:
            raise refusal(column, f"bins must be between 1 and {MAX_BINS:,}")
        found["bins"] = bins
    elif bins is not None:
        stated = listed(None if is_number(bins) else bins, f"column {column.name!r}: {rule}")
        found["bins"] = edges(column, stated)
    return found


def checked_coding(column: Column) -> dict[str, Any]:
    """The scale, the atoms and the step of a numeric column, in the one form that columns keep."""
    return {
        "scale": _checked_scale(column),
        "atoms": _checked_atoms(column),
        "step": _checked_step(column),
    }


def refuse_coding(column: Column, of: str) -> None:
    """Raise a SchemaError if a column that has no numeric coding states one."""
    for key in CODING:
        if getattr(column, key) is not None:
            raise refusal(column, f"{key} belongs to numeric columns, {of}")


def check_bounds(column: Column) -> None:
    """Refuse bounds that do not fit each other, and edges that do not fit them."""
    if column.is_bounded:
        _check_range(column)
    if isinstance(column.bins, tuple):
        check_edges(column, column.bins)


def edges(column: Column, stated: Iterable[Any]) -> tuple[Bound, ...]:
    """Edges in the column's own type."""
    found = [_bound(column, edge) for edge in stated]
    known = tuple(edge for edge in found if edge is not None)
    if len(known) < len(found):
        raise refusal(column, "an edge must have a value")
    return known


def check_edges(column: Column, edges: tuple[Bound, ...]) -> None:
    """Refuse edges that do not rise from the minimum to the maximum."""
    if not column.is_bounded or len(edges) < 2:
        raise refusal(column, "edges need a minimum, a maximum, and at least these two")
    if (edges[0], edges[-1]) != (column.minimum, column.maximum):
        raise refusal(column, "the first and the last edge must be the minimum and the maximum")
    scaled = [geometry.number(edge) for edge in edges]
    # Whole units: a last edge that is there twice leaves the maximum a cell of its own.
    twice = column.kind != "continuous" and scaled[-2] == scaled[-1]
    distinct = scaled[:-1] if twice else scaled
    if any(left >= right for left, right in itertools.pairwise(distinct)):
        raise refusal(column, "the edges must be strictly increasing")
    if len(edges) - 1 > MAX_BINS:
        raise refusal(column, f"there may be at most {MAX_BINS:,} bins")


def check_unmodelled(column: Column) -> None:
    """Refuse what a column cannot have that is never looked up in a private table."""
    if any(source == "paid" for _, source in column.sources):
        raise refusal(column, "it is not read from the data, so there is nothing to pay for")
    if column.expression is None:
        return
    if column.kind == "identifier":
        raise refusal(column, "an identifier is made up, and cannot be derived as well")
    if not isinstance(column.expression, str):
        raise refusal(column, "the expression (derived) must be text")
    if not column.is_numeric and (column.kind, column.categories) != ("categorical", (False, True)):
        raise refusal(
            column,
            "what is derived is a number, a date or true/false: state the type number, "
            "integer, date, datetime or boolean",
        )
    refuse_coding(column, "this one is derived")
    if column.other is not None:
        raise refusal(column, "other belongs to columns that are read, this one is derived")


def refusal(column: Column, rule: str) -> SchemaError:
    """The error that names a column and the rule that it breaks."""
    return SchemaError(f"column {column.name!r}: {rule}")


def _check_range(column: Column) -> None:
    low, high = column.low, column.high
    if low > high or (low == high and column.kind == "continuous"):
        raise refusal(column, "minimum must be below maximum")
    if column.kind == "continuous" and not NARROWEST_RANGE <= high - low <= WIDEST_RANGE:
        raise refusal(column, "maximum - minimum must be between 1e-300 and 1e300")
    is_time = column.kind == "integer" and column.spelling.clock is not None
    if is_time and not 0 <= low <= high <= column.spelling.last_time:
        raise refusal(column, "minimum and maximum must be times of one day")
    if column.kind == "integer" and (high - low + 1) * column.cells >= 2**63:
        raise refusal(column, "the range is too wide for so many bins")


def _bound(column: Column, value: Any) -> Bound | None:
    if value is None:
        return None
    kind = column.kind
    if isinstance(value, str) and kind in ("date", "datetime"):
        value = from_iso(column.name, kind, value)
    if isinstance(value, DateTime) and value != value:
        raise refusal(column, "minimum, maximum and edges must be moments, not a missing one")
    if kind == "datetime" and isinstance(value, DateTime):
        return _naive(column, value)
    if kind == "date" and isinstance(value, Date) and not isinstance(value, DateTime):
        return Date(value.year, value.month, value.day)
    if kind in ("integer", "continuous") and is_number(value):
        finite = finite_number(value)
        if finite is None:
            raise refusal(column, "minimum, maximum and edges must be finite")
        if kind == "continuous":
            return finite
        whole = operator.index(value) if isinstance(value, int | np.integer) else finite
        if int(whole) == whole and abs(int(whole)) <= LARGEST_INTEGER:
            return int(whole)
        raise refusal(column, "minimum, maximum and edges must be integers within 2^53")
    expected = {"integer": "integers", "continuous": "numbers", "date": "dates"}
    raise refusal(column, f"minimum, maximum and edges must be {expected.get(kind, 'datetimes')}")


def _naive(column: Column, value: DateTime) -> DateTime:
    try:
        naive = value.astimezone(UTC) if value.tzinfo is not None else value
    except OverflowError:
        raise refusal(column, "a bound lies outside the years 1 to 9999 in UTC") from None
    return DateTime(*naive.timetuple()[:6], naive.microsecond)


def _checked_scale(column: Column) -> str | None:
    scale = column.scale
    if scale is None:
        return None
    if not isinstance(scale, str) or scale not in SCALES:
        raise refusal(column, f"a scale is {' or '.join(map(repr, SCALES))}")
    if scale == "log" and column.kind not in ("integer", "continuous"):
        raise refusal(
            column,
            "days and moments have no zero, so no ratio either; leave the scale out",
        )
    return scale


def _checked_atoms(column: Column) -> tuple[Any, ...] | None:
    if column.atoms is None:
        return None
    rule = f"column {column.name!r}: atoms must be a list of values"
    found = edges(column, listed(column.atoms, rule))
    if not found or len(set(found)) < len(found) or len(found) > MOST_ATOMS:
        raise refusal(column, f"atoms must be up to {MOST_ATOMS} values, each there once")
    paid = {key for key, source in column.sources if source == "paid"}
    # Bounds that are paid for may come to lie anywhere, and stated edges leave atoms no say.
    for key, sign in (("minimum", 1), ("maximum", -1)):
        bound: Any = getattr(column, key)
        if bound is None or key in paid or isinstance(column.bins, tuple):
            continue
        least = sign * geometry.number(bound)
        beyond = [atom for atom in found if sign * geometry.number(atom) < least]
        if beyond:
            raise refusal(column, f"the atom {beyond[0]} lies beyond the {key}, {bound}")
    return tuple(sorted(found))


def _checked_step(column: Column) -> float | None:
    if column.step is None:
        return None
    if column.kind != "continuous":
        raise refusal(column, f"a step belongs to type number, this column is {column.kind}")
    step = finite_number(column.step) if is_number(column.step) else None
    if step is None or step <= 0:
        raise refusal(column, "a step is a number above zero, such as 0.01")
    fits_often = column.minimum is None or column.maximum is None or isinstance(column.bins, tuple)
    if not fits_often and column.high - column.low < step:
        raise refusal(column, "the step is wider than maximum - minimum")
    return step
