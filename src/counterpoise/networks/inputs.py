"""What a network sees of a row: categories one-hot, numbers from -1 to 1, and whether it is null.

Described by the schema alone, so that a row's inputs depend on that row and on nothing else. A
number whose shape was paid for is spread over the range that the column's own rows have; a null
number is in the middle, with its indicator set. The same places, read the other way, are what a
generator makes: a softmax over the categories of a column, a bounded number, a chance of null.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from counterpoise.schema import Coded, Schema

Kind = Literal["categories", "number", "null"]


@dataclass(frozen=True)
class Head:
    """The places of a row's inputs that tell one thing of one column."""

    column: str
    kind: Kind
    start: int
    stop: int

    @property
    def places(self) -> slice:
        """Where they are."""
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class Inputs:
    """The inputs of a schema's rows.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column
    >>> columns = [Column.continuous("x", 0, 10, bins=5), Column.categorical("s", ["a", "b"])]
    >>> schema = Schema(columns)
    >>> inputs = Inputs(schema)
    >>> inputs(schema.encode(pd.DataFrame({"x": [2.5, 10.0], "s": ["b", "a"]})))
    array([[-0.5,  0. ,  1. ],
           [ 1. ,  1. ,  0. ]])
    """

    schema: Schema

    @cached_property
    def heads(self) -> tuple[Head, ...]:
        """What the places mean, in order."""
        found: list[Head] = []

        def add(column: str, kind: Kind, size: int) -> None:
            start = found[-1].stop if found else 0
            found.append(Head(column, kind, start, start + size))

        for column in self.schema:
            if column.kind == "categorical":
                # Null is one category more.
                add(column.name, "categories", column.size)
            else:
                add(column.name, "number", 1)
                if column.nullable:
                    add(column.name, "null", 1)
        return tuple(found)

    @property
    def size(self) -> int:
        """How many numbers a row is."""
        return self.heads[-1].stop

    def __call__(self, rows: Coded) -> np.ndarray:
        """The inputs of each row; every number is between -1 and 1."""
        rows = rows.spread()
        found = np.zeros((len(rows), self.size))
        for head in self.heads:
            position = self.schema.index(head.column)
            codes, null = rows.codes[:, position], self.schema[head.column].null_code
            if head.kind == "categories":
                found[np.arange(len(rows)), head.start + codes] = 1.0
            elif head.kind == "null":
                found[:, head.start] = codes == null
            else:
                centred = 2 * rows.units[:, position] - 1
                found[:, head.start] = (
                    centred if null is None else np.where(codes == null, 0, centred)
                )
        return found
