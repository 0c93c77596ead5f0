"""The rows that a certificate is about: every column as bounded features of its code, and a label.

What was measured of a release was measured of codes, so a certificate is about the table as coded.
A number is one feature, the middle of its cell, from -1 to 1 over the range that the column's own
rows are known to have (or over its bounds); so is the place of an ordinal category. A column with
two codes is -1 and 1, any other one has an indicator for each code but the first. A null number is
zero, with an indicator. There is an intercept, which counts in the norm like the rest. How far a
number may be from the middle of its cell is kept, so that what the cells hide can be bounded too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoise.arguments import column_name, shown
from counterpoise.errors import AnalysisError
from counterpoise.schema import Column, Schema
from counterpoise.schema.bins import unit_values
from counterpoise.schema.shape import spread_out


@dataclass(frozen=True, eq=False)
class CodedFeatures:
    """Features of some columns of a schema, and a label of two codes."""

    schema: Schema
    target: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, schema: Schema, target: str, columns: Sequence[str] | None) -> CodedFeatures:
        """The features of some columns, by default of all but the target.

        >>> schema = Schema([Column.integer("age", 0, 2), Column.boolean("ill")])
        >>> CodedFeatures.of(schema, "ill", None).names
        ('intercept', 'age')
        """
        target = _known(schema, column_name("target", target, AnalysisError))
        if schema[target].size != 2:
            raise AnalysisError(
                f"target: a certificate is about two classes, and column {target!r} has "
                f"{schema[target].size} codes"
            )
        if columns is None:
            columns = [name for name in schema.names if name != target]
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise AnalysisError("features: expected a list of columns, or None for all others")
        found = tuple(
            _known(schema, column_name("features", name, AnalysisError)) for name in columns
        )
        if not found or target in found or len(set(found)) < len(found):
            raise AnalysisError("features: expected columns beside the target, each of them once")
        return cls(schema, target, found)

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """For each column, the target last, a matrix of codes x features."""
        found = {name: _values(self.schema[name]) for name in self.columns}
        return found | {self.target: np.array([[-1.0], [1.0]])}

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where the features of each column are, the intercept being the first of all."""
        found, start = {}, 1
        for name, values in self.values.items():
            found[name] = slice(start, start + values.shape[1])
            start += values.shape[1]
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """One name a feature."""
        named = ["intercept"]
        for name in self.columns:
            column, count = self.schema[name], self.values[name].shape[1]
            labels = [f"{name}={label}" for label in column.code_labels()]
            if column.kind == "categorical" and column.size > 2:
                named += [*labels, f"{name} is null"][1 : count + 1]
            else:
                named += [name, f"{name} is null"][:count]
        return tuple(named)

    @cached_property
    def reach(self) -> float:
        """R, the largest norm that the features of a row can have."""
        longest = (np.square(self.values[name]).sum(axis=1).max() for name in self.columns)
        return float(np.sqrt(1 + sum(longest)))

    @cached_property
    def half_widths(self) -> np.ndarray:
        """How far the number of a column may be from the middle of its cell, as a feature."""
        return np.array([_half_width(self.schema[name]) for name in self.columns])

    def __call__(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features of rows, the intercept first, and their labels; codes as in the schema."""
        parts = [np.ones((len(codes), 1))]
        parts += [self.values[name][codes[:, self.schema.index(name)]] for name in self.columns]
        labels = self.values[self.target][codes[:, self.schema.index(self.target)], 0]
        return np.concatenate(parts, axis=1), labels


def _known(schema: Schema, name: str) -> str:
    if name not in schema.names:
        raise AnalysisError(
            f"{shown(name)} is no column that was modelled; those are {', '.join(schema.names)}"
        )
    return name


def _values(column: Column) -> np.ndarray:
    """The features of each code, null's last."""
    cells, size = column.cells, column.size
    if size == 2 and column.kind == "categorical":
        return np.array([[-1.0], [1.0]])
    if column.kind == "categorical":
        return np.eye(size)[:, 1:]
    low, high = _ends(column)
    found = np.zeros((size, 1 + column.nullable))
    found[:cells, 0] = (low + high) / 2
    if column.nullable:
        found[cells, 1] = 1.0
    return found


def _half_width(column: Column) -> float:
    if column.kind == "categorical":
        return 0.0
    low, high = _ends(column)
    return float(np.max(high - low) / 2)


def _ends(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest feature of a number, or of an ordinal category, in each cell."""
    if not column.is_numeric:
        assert column.categories is not None
        places = np.linspace(-1.0, 1.0, len(column.categories)) if column.cells > 1 else np.zeros(1)
        if column.grouping is None:
            return places, places
        codes = np.array(column.grouping.codes)
        each = [places[codes == code] for code in range(column.cells)]
        return np.array([part.min() for part in each]), np.array([part.max() for part in each])
    edges = column.edges
    # Whole units end one short of where the next cell begins.
    ends = edges[1:] if column.kind == "continuous" else edges[1:] - 1
    units = [spread_out(column, unit_values(column, each)) for each in (edges[:-1], ends)]
    return 2 * units[0] - 1, 2 * units[1] - 1
