"""Which features to weigh by, when nobody says: as many as the noise leaves readable.

Three blocks. Margins (every column's values, and squares as long as there is room) and the products
of the target with every other column, but the widest, are always there. Products of other pairs,
the smallest first, come in as long as the noise on a standardised group stays below a part of its
deviation, the computation small, and the features fewer than half of the synthetic rows: a few
rows cannot follow more. All of it follows from the schema, the noise and the numbers of rows, of
which the private one is noisy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from itertools import combinations

from counterpoise.errors import MethodError
from counterpoise.schema import Column, Schema
from counterpoise.weights.features import Linear, OneHot, PairProducts, Recipe, Squares

MOST_FEATURES = 400
READABLE = 0.15


def choose_features(
    schema: Schema,
    target: str | None,
    noise: Callable[[float, int], float],
    asked: Collection[tuple[str, str]] = (),
    most: int = MOST_FEATURES,
) -> tuple[Recipe, Recipe, Recipe]:
    """The margins, the relations with the target and those `asked` for, and other relations.

    `noise` gives the standard deviation of a feature's noisy mean for a bound and a number of
    features; `most` is how many there may be, but that every column has one.

    >>> columns = [Column.boolean("ill"), Column.boolean("man"), Column.integer("age", 0, 99)]
    >>> for rows in (100, 10_000):
    ...     recipes = choose_features(Schema(columns), "ill", lambda r, p: r / rows * 10)
    ...     print(recipes[1].pairs, recipes[2].pairs)
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
    relations: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    wanted = {pair for pair in products if target in pair or pair in asked}
    for pair in sorted(products, key=lambda pair: (pair not in wanted, products[pair])):
        if features + products[pair] > most:
            continue  # a wide relation with the target leaves room for narrow ones
        # A target is what the release is for: its relations are asked for however noisy.
        wider = noise(math.sqrt(groups + 1), features + products[pair])
        if pair not in wanted and wider > READABLE:
            break
        features, groups = features + products[pair], groups + 1
        relations[pair in wanted].append(pair)
    return margins, PairProducts(tuple(relations[True])), PairProducts(tuple(relations[False]))


def _width(column: Column) -> int:
    """How many features a column has as a factor of products."""
    return column.cells - 1 if column.kind == "categorical" else 1
