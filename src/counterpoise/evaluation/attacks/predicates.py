"""Predicates: conditions on a few columns that an attacker hopes to be true of one person alone.

A condition on a category is that it is the same, on a number that it is the same, at least or at
most so much, and on either that it is null. A predicate is a conjunction of conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterpoise.schema import Coded

SAME, AT_LEAST, AT_MOST, SAME_CODE = "same", "at least", "at most", "same code"


@dataclass(frozen=True)
class Condition:
    """What a column has to be: a unit of a number, or a code of a category or of null."""

    position: int
    relation: str
    value: float

    def holds(self, table: Coded) -> np.ndarray:
        """Where it is true."""
        codes = table.codes[:, self.position]
        if self.relation == SAME_CODE:
            return np.asarray(codes == self.value)
        units = table.units[:, self.position]
        is_stated = codes != table.schema.columns[self.position].cells
        if self.relation == SAME:
            return np.asarray(is_stated & (units == self.value))
        if self.relation == AT_LEAST:
            return np.asarray(is_stated & (units >= self.value))
        return np.asarray(is_stated & (units <= self.value))


Predicate = tuple[Condition, ...]


def matches(predicate: Predicate, table: Coded) -> np.ndarray:
    """The rows for which all conditions hold.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> table = Schema([Column.integer("age", 0, 10)]).encode(pd.DataFrame({"age": [1, 5, 9]}))
    >>> matches((Condition(0, AT_LEAST, 0.5),), table).tolist()
    [1, 2]
    """
    is_true = predicate[0].holds(table)
    for condition in predicate[1:]:
        is_true = is_true & condition.holds(table)
    return np.flatnonzero(is_true)


def rare_values(table: Coded, most: int) -> list[Predicate]:
    """For every column its values that at most so many rows have, and the two ends of numbers."""
    found: list[Predicate] = []
    for position, column in enumerate(table.schema):
        codes = table.codes[:, position]
        if column.is_numeric:
            stated = table.units[codes != column.cells, position]
            values, counts = np.unique(stated, return_counts=True)
            found += [(Condition(position, SAME, float(v)),) for v in values[counts <= most]]
            if len(values):
                found.append((Condition(position, AT_MOST, float(values[0])),))
                found.append((Condition(position, AT_LEAST, float(values[-1])),))
        else:
            values, counts = np.unique(codes, return_counts=True)
            found += [(Condition(position, SAME_CODE, int(v)),) for v in values[counts <= most]]
    return found


def describing(
    table: Coded, rows: np.ndarray, columns: np.ndarray, middles: np.ndarray
) -> Predicate:
    """What is true of the values in some rows and columns: at least, or at most, of numbers.

    A number above the middle of its column is taken as at least so much, others as at most.
    """
    made = []
    for row, position in zip(rows.tolist(), columns.tolist(), strict=True):
        column = table.schema.columns[position]
        code, unit = int(table.codes[row, position]), float(table.units[row, position])
        if not column.is_numeric or code == column.cells:
            made.append(Condition(position, SAME_CODE, code))
        else:
            relation = AT_LEAST if unit > middles[position] else AT_MOST
            made.append(Condition(position, relation, unit))
    return tuple(made)
