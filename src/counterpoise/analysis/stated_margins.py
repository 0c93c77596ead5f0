"""Margins as they are stated: read, checked, and refused in words that name the margin.

    {"sex": {"F": 0.51, "M": 0.49}, "age": {(0, 18): 0.2, (18, 65): 0.6, (65, None): 0.2},
     ("sex", "region"): {("F", "north"): 0.3, ...}, "income": 41_300, "smoker": 0.18}

A table has a share for every category, interval or combination that rows have; 0 leaves rows out,
and a category that next to no rows have and that is not named has 0.
A number is a column's mean, and of true and false the share of true. Shares add up to one. Whole
numbers that add up to more are numbers of people, and say how large the target is. A key of None
states the share of null. A list has the same in the form of the card.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from counterpoise.analysis.columns import has_numbers, is_same, one_column
from counterpoise.analysis.intervals import Interval, closed_above, read_interval
from counterpoise.analysis.margins import ROUNDING, Known, Margin, Mean, Part
from counterpoise.arguments import shown
from counterpoise.errors import AnalysisError
from counterpoise.schema import Column

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# Every cell is a line and a column of a matrix.
MOST_CELLS = 2000


class _Cells(NamedTuple):
    """Cells in the form of the card, each with its share."""

    pairs: tuple[tuple[tuple[Any, ...], Any], ...]


def read_margins(stated: Any, release: Release) -> tuple[Known, ...]:
    """Margins as they were meant, or an AnalysisError that says what is wrong with which."""
    if isinstance(stated, Mapping):
        pairs = [(_names(key), value) for key, value in stated.items()]
    elif isinstance(stated, list | tuple):
        pairs = [_from_card(each) for each in stated]
    else:
        raise AnalysisError(
            'margins: expected a dictionary such as {"sex": {"F": 0.51, "M": 0.49}}, not '
            f"{shown(stated)}"
        )
    if not pairs:
        raise AnalysisError("margins: expected some")
    found: list[Known] = []
    for names, value in pairs:
        columns = [one_column(release, name, "margins") for name in names]
        if len(set(names)) < len(names) or any(each.columns == names for each in found):
            raise AnalysisError(f"margins: expected {' x '.join(map(repr, names))} once")
        found.append(_read_one(release, columns, value))
    if sum(len(each.cells) for each in found if isinstance(each, Margin)) > MOST_CELLS:
        raise AnalysisError(
            f"margins: expected at most {MOST_CELLS:,} cells in all; merge some of them"
        )
    return tuple(found)


def _names(key: Any) -> tuple[str, ...]:
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, tuple) or not names or not all(isinstance(n, str) for n in names):
        raise AnalysisError(
            f"margins: expected the name of a column, or several in a tuple, not {shown(key)}"
        )
    return tuple(map(str, names))


def _from_card(each: Any) -> tuple[tuple[str, ...], Any]:
    """A margin in the form of the card, as the names of columns and what is stated of them."""
    expected = 'margins: expected in a list {"columns": [...], "cells": [...], "shares": [...]}'
    if not isinstance(each, Mapping) or not isinstance(each.get("columns"), list | tuple):
        raise AnalysisError(expected)
    names = _names(tuple(each["columns"]))
    if "mean" in each:
        return names, each["mean"]
    cells, shares = each.get("cells"), each.get("shares")
    if not isinstance(cells, list | tuple) or not isinstance(shares, list | tuple):
        raise AnalysisError(expected)
    if len(cells) != len(shares):
        raise AnalysisError(f"{expected}, with a share for each cell")
    if not all(isinstance(cell, list | tuple) and len(cell) == len(names) for cell in cells):
        raise AnalysisError(f"{expected}, with a value for each column in each cell")
    return names, _Cells(tuple(zip(map(tuple, cells), shares, strict=True)))


def _read_one(release: Release, columns: list[Column], stated: Any) -> Known:
    names = tuple(column.name for column in columns)
    listed = " x ".join(map(repr, names))
    if isinstance(stated, pd.Series):
        stated = stated.to_dict()
    if isinstance(stated, Mapping):
        # A single column's interval is a tuple itself.
        single = len(names) == 1
        cells = [((key,) if single else key, value) for key, value in stated.items()]
    elif isinstance(stated, _Cells):
        cells = list(stated.pairs)
    else:
        return _read_number(release, columns, stated, listed)
    if not cells:
        raise AnalysisError(f"margins: {listed}: expected shares")
    values = [_amount(value, listed) for _, value in cells]
    parts = _read_parts(release, columns, [key for key, _ in cells], listed)
    if len(set(parts)) < len(parts):
        raise AnalysisError(f"margins: {listed}: expected every cell once")
    whole = math.fsum(values)
    if not whole > 0 or not math.isfinite(whole):
        raise AnalysisError(f"margins: {listed}: expected a share above 0")
    is_shares = abs(whole - 1) <= ROUNDING
    if not is_shares and (whole < 1 or any(value != int(value) for value in values)):
        percent = abs(whole - 100) < 1
        hint = "write percentages as shares" if percent else "mend them, or state counts of people"
        raise AnalysisError(
            f"margins: {listed}: expected shares that add up to 1, not {whole:,.6g}; {hint}"
        )
    if not is_shares and whole == 100:
        raise AnalysisError(
            f"margins: {listed} adds up to 100: percentages or people? Write percentages as "
            "shares, 0.51 for 51; state 100 people as shares and population=100"
        )
    shares = tuple(value / whole for value in values)
    return Margin(names, tuple(parts), shares, None if is_shares else whole)


def _read_number(release: Release, columns: list[Column], stated: Any, listed: str) -> Known:
    """A mean, or the share of true."""
    column = columns[0]
    if len(columns) > 1 or not has_numbers(column):
        raise AnalysisError(
            f"margins: {listed}: expected a dictionary of shares, not {shown(stated)}"
        )
    if column.category_type == "boolean":
        share = _amount(stated, listed)
        if share > 1:
            raise AnalysisError(f"margins: {listed}: expected the share of true, not {share:g}")
        return Margin((column.name,), ((True,), (False,)), (share, 1 - share))
    found = read_interval(column, stated)
    if found.low != found.high:
        raise AnalysisError(f"margins: {listed}: expected a mean, or a dictionary of shares")
    if not column.low <= found.low <= column.high:
        raise AnalysisError(
            f"margins: {listed}: expected a mean within the bounds of the column, "
            f"{column.minimum} to {column.maximum}"
        )
    return Mean((column.name,), found.low)


def _amount(value: Any, listed: str) -> float:
    if isinstance(value, np.generic):
        value = value.item()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        found = float(value) if is_number else math.nan
    except OverflowError:
        found = math.nan
    if not math.isfinite(found) or found < 0:
        raise AnalysisError(f"margins: {listed}: expected shares from 0, not {shown(value)}")
    return found


def _read_parts(
    release: Release, columns: list[Column], keys: list[Any], listed: str
) -> list[tuple[Part, ...]]:
    """The cells of a table, each part as a category, an Interval or None."""
    several = f"margins: {listed}: expected a value of each column in every key, as a tuple"
    if not all(isinstance(key, tuple) and len(key) == len(columns) for key in keys):
        raise AnalysisError(several)
    found: list[list[Part]] = []
    for place, column in enumerate(columns):
        stated = [key[place] for key in keys]
        nulls = [_is_null(release, column, value) for value in stated]
        if any(nulls) and not column.nullable:
            raise AnalysisError(f"margins: column {column.name!r} is never null")
        if column.is_numeric:
            given = [value for value, null in zip(stated, nulls, strict=True) if not null]
            read = [read_interval(column, value) for value in given]
            read = closed_above(read, given) if read else read
            _check_apart(column, read)
            ahead = iter(read)
            found.append([None if null else next(ahead) for null in nulls])
        else:
            pairs = zip(stated, nulls, strict=True)
            found.append([None if null else _category(column, value) for value, null in pairs])
    return list(zip(*found, strict=True))


def _is_null(release: Release, column: Column, value: Any) -> bool:
    """None, a missing value of pandas, or a text that stands for null in the schema."""
    if isinstance(value, str):
        return value in release.schema.words_for_null(column)
    is_number = isinstance(value, float | np.floating)
    return value is None or value is pd.NA or value is pd.NaT or bool(is_number and value != value)


def _category(column: Column, value: Any) -> Any:
    for category in column.categories or ():
        if is_same(category, value):
            return category
    # In a file every category is text.
    for category in column.categories or ():
        is_text = isinstance(category, str) or not isinstance(value, str)
        if not is_text and str(category).casefold() == value.casefold():
            return category
    listed = ", ".join(map(repr, (column.categories or ())[:8]))
    more = ", ..." if len(column.categories or ()) > 8 else ""
    raise AnalysisError(
        f"margins: column {column.name!r} has no category {shown(value)}; its categories are "
        f"{listed}{more}"
    )


def _check_apart(column: Column, intervals: list[Interval]) -> None:
    ranked = sorted(dict.fromkeys(intervals), key=lambda each: (each.low, each.high))
    for left, right in itertools.pairwise(ranked):
        if left.overlaps(right):
            raise AnalysisError(
                f"margins: column {column.name!r}: {left.written(column)} and "
                f"{right.written(column)} overlap; a value belongs to one interval"
            )
