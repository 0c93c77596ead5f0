"""A weighted table as points in space, and as a given number of points of equal weight.

The two ends of a numeric column are at distance one, and so are any two categories: distances
then do not depend on units or on the order of categories. Equal points are a systematic sample:
a row with a share w of the weight appears floor(w k) or ceil(w k) times among k points. The
sample is not random, and neither the order of rows nor writing a row twice instead of giving it
weight two changes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from counterpoise.arguments import instance_of, number_array, whole_number
from counterpoise.errors import MethodError
from counterpoise.schema import Coded

# Points take the square of their number in memory, or more, wherever they are used.
MOST_POINTS = 10_000_000


def coordinates(table: Coded) -> np.ndarray:
    """Every row as a point; see the scale above.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 10), Column.categorical("y", ["a", "b"])])
    >>> coordinates(schema.encode(pd.DataFrame({"x": [5.0], "y": ["b"]}))).round(3).tolist()
    [[0.5, 0.0, 0.707]]
    """
    points, _ = checked_table("table", table).one_hot()
    scales = []
    for column in table.schema:
        # Two one-hot vectors are sqrt(2) apart.
        is_one_hot = column.kind == "categorical"
        scales += [np.sqrt(0.5) if is_one_hot else 1.0] * (column.cells if is_one_hot else 1)
        scales += [1.0] * column.nullable
    points *= np.array(scales)
    return points


def equal_points(table: Coded, weights: np.ndarray | None, count: int) -> Coded:
    """`count` rows of equal weight in place of the weighted ones.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> table = Schema([Column.boolean("x")]).encode(pd.DataFrame({"x": [False, True]}))
    >>> sorted(equal_points(table, np.array([1.0, 3.0]), 4).codes[:, 0].tolist())
    [0, 1, 1, 1]
    """
    return checked_table("table", table).take(equal_rows(table, weights, count))


def equal_rows(table: Coded, weights: np.ndarray | None, count: int) -> np.ndarray:
    """The places of the rows that `equal_points` takes.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> table = Schema([Column.boolean("x")]).encode(pd.DataFrame({"x": [False, True]}))
    >>> sorted(equal_rows(table, np.array([1.0, 3.0]), 4).tolist())
    [0, 1, 1, 1]
    """
    count = whole_number("count", count, most=MOST_POINTS)
    weights = checked_weights(table, weights)
    order = np.argsort(_places(table))
    reached = np.cumsum(weights[order])
    # Row i is drawn for every j with W_(i-1) <= (j + 1/2) W / k < W_i.
    places = (np.arange(count) + 0.5) * (reached[-1] / count)
    drawn = np.searchsorted(reached, places, side="right")
    return np.asarray(order[np.minimum(drawn, len(order) - 1)])


def spread_rows(table: Coded, weights: np.ndarray | None, most: int) -> tuple[Coded, np.ndarray]:
    """At most so many of the rows, spread evenly over the table, with the weights that they have.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> table = Schema([Column.boolean("x")]).encode(pd.DataFrame({"x": [False, True] * 4}))
    >>> rows, weights = spread_rows(table, np.arange(1.0, 9.0), 4)
    >>> len(rows), len(weights)
    (4, 4)
    """
    weights = checked_weights(table, weights)
    if len(table) <= most:
        return table, weights
    chosen = equal_rows(table, None, most)
    return table.take(chosen), weights[chosen]


def _places(table: Coded) -> np.ndarray:
    """A number a row, along a fixed direction of the unit box and of the categories.

    Only rows that are the same share a place, so that the order they came in is forgotten; and a
    sample at equal steps is spread evenly over the table.
    """
    generator, places = np.random.default_rng(0), np.zeros(len(table))
    for position, column in enumerate(table.schema):
        codes, slope = table.codes[:, position], generator.normal()
        if column.kind == "categorical":
            places += generator.normal(size=column.size)[codes]
            if column.grouping is not None:
                # Categories that share a code are told apart by their units.
                places += slope * table.units[:, position]
        else:
            # Null is in the middle of the unit box, where a number may be as well.
            places += slope * table.units[:, position] + (codes == column.cells)
    return places


def checked_table(name: str, table: Any) -> Coded:
    """A table, which has to be coded already."""
    return instance_of(name, table, Coded, "a coded table; write schema.encode(table)")


def checked_weights(table: Coded, weights: np.ndarray | None) -> np.ndarray:
    """The weights as given, or ones; refuses what cannot weigh the rows of the table."""
    if len(checked_table("table", table)) == 0:
        raise MethodError("a table without rows cannot be compared; give one that has rows")
    if weights is None:
        return np.ones(len(table))
    weights = number_array("weights", weights)
    if weights.shape != (len(table),):
        raise MethodError("weights: expected one number a row of the table")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise MethodError("weights: expected finite numbers from 0 that are not all 0")
    return weights


def checked_shares(table: Coded, weights: np.ndarray | None) -> np.ndarray:
    """The weights as parts of their sum."""
    weights = checked_weights(table, weights)
    return weights / weights.sum()


def check_schemas(left: Coded, right: Coded) -> None:
    """Refuse to compare tables that are coded differently."""
    # How a private table is spelled makes no difference to its codes.
    schemas = (checked_table(*side).schema for side in (("left", left), ("right", right)))
    if len({schema.as_released() for schema in schemas}) > 1:
        raise MethodError("the two tables have to be coded by the same schema")
