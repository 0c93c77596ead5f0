"""Which features to weigh by, when nobody says: as many as the noise leaves readable.

Three blocks. Margins (every column's values, and squares as long as there is room) and the products
of the target with every other column, but the widest, are always there. Of other pairs there is one
product each (`Trends`), as long as the noise on a standardised group stays below a part of its
deviation, the computation small, and the features fewer than half of the synthetic rows: a few
rows cannot follow more. What room is left then goes to all products of the narrowest pairs. All of
it follows from the schema, the noise and the numbers of rows, of which the private one is noisy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from itertools import combinations

from counterpoise.errors import MethodError
from counterpoise.schema import Column, Schema
from counterpoise.weights.features import Linear, OneHot, PairProducts, Recipe, Squares, Trends

MOST_FEATURES = 400
READABLE = 0.15


def choose_features(
    schema: Schema,
    target: str | None,
    noise: Callable[[float, int], float],
    asked: Collection[tuple[str, str]] = (),
    most: int = MOST_FEATURES,
) -> tuple[Recipe, PairProducts, Recipe]:
    """The margins, the relations with the target and those `asked` for, and other relations.

    `noise` gives the standard deviation of a feature's noisy mean for a bound and a number of
    features; `most` is how many there may be, but that every column has one.

    >>> columns = [Column.boolean("ill"), Column.boolean("man"), Column.integer("age", 0, 99)]
    >>> for rows in (100, 10_000):
    ...     recipes = choose_features(Schema(columns), "ill", lambda r, p: r / rows * 10)
    ...     print(recipes[1].pairs, recipes[2].recipes[0].pairs)
    (('ill', 'man'), ('ill', 'age')) ()
    (('ill', 'man'), ('ill', 'age')) (('man', 'age'),)
    """
    if target is not None and target not in schema.names:
        raise MethodError(f"target: the schema has no column {target!r}")
    widths = {column.name: _width(column) for column in schema}
    products = {pair: widths[pair[0]] * widths[pair[1]] for pair in combinations(schema.names, 2)}
    one_hot = sum(widths.values()) + 2 * len(schema) <= most
    margins: Recipe = OneHot() + Squares() if one_hot else Linear()
    groups = 2 * len(schema)
    features = groups + (sum(widths.values()) if one_hot else 0)
    if not one_hot and 3 * len(schema) <= most:
        margins, features = margins + Squares(), 3 * len(schema)
    wanted = {pair for pair in products if target in pair or pair in asked}
    order = sorted(products, key=lambda pair: (pair not in wanted, products[pair]))
    taken: list[tuple[str, str]] = []
    full: list[tuple[str, str]] = []
    for pair in order:
        # A target is what the release is for: its relations are asked for however noisy, and in
        # full if there is room. Of any other pair there is one product, so that none goes unseen.
        size = products[pair] if pair in wanted and features + products[pair] <= most else 1
        wider = noise(math.sqrt(groups + 1), features + size)
        if features + size > most or (pair not in wanted and wider > READABLE):
            break
        features, groups = features + size, groups + 1
        taken.append(pair)
        if size == products[pair]:
            full.append(pair)
    for pair in taken:
        # What room is left goes to the narrowest.
        more = products[pair] - 1
        if pair not in full and features + more <= most:
            features += more
            full.append(pair)
    others = [pair for pair in full if pair not in wanted]
    trends = Trends(tuple(pair for pair in taken if pair not in full))
    related = PairProducts(tuple(pair for pair in full if pair in wanted))
    return margins, related, PairProducts(tuple(others)) + trends


def _width(column: Column) -> int:
    """How many features a column has as a factor of products."""
    return column.cells - 1 if column.kind == "categorical" else 1
