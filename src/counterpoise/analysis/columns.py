"""The columns of a release as an analysis needs them: numbers on a scale, or codes with labels.

Numbers are true and false as 1 and 0, whole and real numbers as they are, dates as days and
moments as microseconds since 1970; a mean on that scale is shown as a date again. Categories have
no numbers. Null is never a value: it is masked, and what that means is each statistic's to say.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from counterpoise.arguments import shown
from counterpoise.errors import AnalysisError
from counterpoise.schema import Column

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

By = str | Sequence[str] | None

# More groups than this are a mistake, such as grouping by several columns of many bins.
MOST_GROUPS = 10_000

# A longer text is no name, and would only make an error long.
_LONGEST_NAME = 1000

_EPOCH = datetime(1970, 1, 1)
_UNITS = {"date": ("D", timedelta(days=1)), "datetime": ("us", timedelta(microseconds=1))}


@dataclass(frozen=True)
class Scale:
    """How a number on a column's scale is shown; `kind` is "number", "date" or "datetime".

    >>> Scale("date").value(18_262.3), Scale("date").width(1.5)
    (datetime.date(2020, 1, 1), datetime.timedelta(days=1, seconds=43200))
    """

    kind: str = "number"

    def value(self, number: float) -> Any:
        """A point of the scale: a float, a date or a moment; None for an undefined date."""
        if self.kind == "number":
            return float(number)
        if not np.isfinite(number):
            return None
        try:
            moment = _EPOCH + round(float(number)) * _UNITS[self.kind][1]
        except OverflowError:
            moment = datetime.max if number > 0 else datetime.min
        return date(moment.year, moment.month, moment.day) if self.kind == "date" else moment

    def width(self, number: float) -> Any:
        """A distance on the scale: a float or a timedelta."""
        if self.kind == "number" or not np.isfinite(number):
            return float(number)
        return float(number) * _UNITS[self.kind][1]


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column's values as float64, 0 where null; which are not null; and their scale."""

    values: np.ndarray
    present: np.ndarray
    scale: Scale


@dataclass(frozen=True, eq=False)
class Codes:
    """A column's codes, -1 for null, and what each code stands for."""

    codes: np.ndarray
    labels: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group every row belongs to (-1 for none), and the groups' labels, one a column."""

    columns: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    members: np.ndarray

    def categories(self, *more: tuple[str, Any]) -> list[list[tuple[str, Any]]]:
        """The columns and labels of each group, and more that all of them have."""
        return [[*zip(self.columns, label, strict=True), *more] for label in self.labels]

    def lines(self, values: np.ndarray) -> np.ndarray | sparse.csc_array:
        """Groups x rows, with a row's value in the line of its group: the sums of each group."""
        if not self.columns:
            return values[None, :]
        kept = (self.members >= 0) & (values != 0)
        # A column for each row, with one value or none.
        ends = np.concatenate([[0], np.cumsum(kept)])
        shape = (len(self.labels), len(self.members))
        return sparse.csc_array((values[kept], self.members[kept], ends), shape=shape)


def one_column(release: Release, name: Any, option: str = "column") -> Column:
    """The column of that name; what is no name of one is refused."""
    if not isinstance(name, str):
        raise AnalysisError(f"{option}: expected the name of a column, not {shown(name)}")
    if len(name) > _LONGEST_NAME:
        raise AnalysisError(f"{option}: there is no column {shown(name)}")
    column = release.schema.settled[str(name)]
    if column.kind == "identifier":
        raise AnalysisError(
            f"{option}: {name!r} is an identifier: its values are made up, and there is nothing to "
            "learn from them"
        )
    return column


def several_columns(release: Release, names: Any, option: str) -> tuple[str, ...]:
    """The names of columns, from one name or a list, tuple or array of names, each once."""
    if isinstance(names, str):
        names = (names,)
    is_list = isinstance(names, list | tuple | pd.Index | pd.Series) or (
        isinstance(names, np.ndarray) and names.ndim == 1
    )
    if not is_list:
        raise AnalysisError(f"{option}: expected names of columns, not {shown(names)}")
    found = tuple(one_column(release, name, option).name for name in names)
    if len(set(found)) < len(found):
        raise AnalysisError(f"{option}: expected every column once")
    return found


def is_same(left: Any, right: Any) -> bool:
    """Whether two values are equal; True and 1 are not, nor is an array equal to anything."""
    truths = bool, np.bool_
    try:
        return isinstance(left, truths) == isinstance(right, truths) and bool(left == right)
    except Exception:
        # Whatever cannot be compared is not the same.
        return False


def numbers(release: Release, name: str) -> Numbers:
    """A column's numbers; categories are refused, with what can be asked of them instead."""
    column = one_column(release, name)
    if not has_numbers(column):
        instead = "proportion or quantile" if column.kind == "ordinal" else "proportion"
        raise AnalysisError(
            f"column {name!r} is {column.kind} and has no numbers; ask for its {instead}"
        )
    series = release.read(name)[name]
    present = series.notna().to_numpy()
    if column.kind in _UNITS:
        unit, _ = _UNITS[column.kind]
        ticks = series.to_numpy(dtype=f"datetime64[{unit}]").astype(np.int64)
        return Numbers(np.where(present, ticks, 0).astype(float), present, Scale(column.kind))
    values = series.to_numpy(dtype=float, na_value=np.nan)
    return Numbers(np.where(present, values, 0.0), present, Scale())


def has_numbers(column: Column) -> bool:
    """Whether sums of the column mean something: it is numeric, or true and false."""
    return column.is_numeric or column.category_type == "boolean"


def ordered(release: Release, name: str) -> tuple[Numbers, Column]:
    """Numbers in the column's order, which an ordinal column has as well: its codes."""
    column = one_column(release, name)
    if column.kind != "ordinal":
        if not column.is_numeric:
            raise AnalysisError(
                f"column {name!r} is {column.kind}: it has no order; ask for its proportion"
            )
        return numbers(release, name), column
    found = codes(release, name).codes
    return Numbers(np.maximum(found, 0).astype(float), found >= 0, Scale()), column


def codes(release: Release, name: str) -> Codes:
    """A column's codes: its categories, whatever they share in the model, or the bins."""
    column = one_column(release, name).ungrouped
    name = column.name
    schema = release.schema.plain.select([name])
    found = schema.replace(schema[name].ungrouped).encode(release.read(name)).codes[:, 0]
    return Codes(np.where(found == column.cells, -1, found), _labels(column))


def groups(release: Release, by: By) -> Groups:
    """The groups of the rows by all combinations of some columns; one group for None.

    A numeric column is grouped by the bins of its schema. Null is a group of its own, labelled
    None, when a row is null.
    """
    names = () if by is None else several_columns(release, by, "by")
    members = np.zeros(release.rows, dtype=np.int64)
    labels: list[tuple[Any, ...]] = [()]
    for name in names:
        found = codes(release, name)
        column_labels, own = found.labels, found.codes
        if (own < 0).any():
            column_labels = (*column_labels, None)
            own = np.where(own < 0, len(column_labels) - 1, own)
        check_groups(len(labels) * len(column_labels), "by", names)
        members = members * len(column_labels) + own
        labels = [(*left, right) for left, right in itertools.product(labels, column_labels)]
    return Groups(names, tuple(labels), members)


def check_groups(count: int, option: str, names: Sequence[str]) -> None:
    """Refuse more groups than anybody reads."""
    if count > MOST_GROUPS:
        raise AnalysisError(
            f"{option}: {', '.join(map(repr, names))} make more than {MOST_GROUPS:,} groups; "
            "take fewer columns, or columns of fewer categories or bins"
        )


def _labels(column: Column) -> tuple[Any, ...]:
    if column.categories is not None:
        return column.categories
    if column.kind == "integer" and column.cells == column.high - column.low + 1:
        return tuple(range(int(column.low), int(column.high) + 1))
    return column.code_labels()
