"""Features: public functions of a row that say in which ways two tables may differ.

A weight can only correct a difference that some feature shows. A feature map is chosen from the
public schema and the synthetic table alone, and the norm of its vectors is bounded whatever the
row, which is what gives sums and fits over private rows their sensitivity. Maps are built by
small recipes that add up: `OneHot() + Squares() + Products("ill")`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Protocol

import numpy as np

from counterpoise.errors import MethodError
from counterpoise.schema import Coded, Column, Schema
from counterpoise.schema.coded import feature_names


class Block(Protocol):
    """A few features that belong together, fixed for a schema."""

    @property
    def names(self) -> tuple[str, ...]:
        """One name a feature."""
        ...

    @property
    def groups(self) -> tuple[str, ...]:
        """For each feature, what it belongs to: the features of a group are scaled alike."""
        ...

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """For each feature, the columns that it is a function of."""
        ...

    @property
    def bound(self) -> float:
        """The largest norm of a row's vector."""
        ...

    def __call__(self, rows: Coded) -> np.ndarray:
        """The features of each row."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The block as JSON values."""
        ...


@dataclass(frozen=True, eq=False)
class Features:
    """A feature map: blocks side by side.

    >>> import pandas as pd
    >>> schema = Schema([Column.boolean("ill"), Column.integer("age", 0, 50)])
    >>> rows = schema.encode(pd.DataFrame({"ill": [True, False], "age": [25, 50]}))
    >>> features = (Linear() + Squares()).over(rows)
    >>> features.names, round(features.bound, 3)
    (('ill', 'age', 'age^2'), 1.732)
    >>> features(rows).round(2).tolist()
    [[1.0, 0.5, 0.25], [0.0, 1.0, 1.0]]
    """

    blocks: tuple[Block, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name a feature."""
        return tuple(name for block in self.blocks for name in block.names)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """For each feature, the group it is scaled with."""
        return tuple(group for block in self.blocks for group in block.groups)

    @cached_property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """For each feature, the columns that it is a function of."""
        return tuple(columns for block in self.blocks for columns in block.columns)

    @cached_property
    def bound(self) -> float:
        """The largest norm of a row's vector."""
        return math.sqrt(sum(block.bound**2 for block in self.blocks))

    def __call__(self, rows: Coded) -> np.ndarray:
        """The features of each row, one row a record."""
        if not self.blocks:
            return np.zeros((len(rows), 0))
        return np.concatenate([block(rows) for block in self.blocks], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """The map as JSON values."""
        return {"blocks": [block.to_dict() for block in self.blocks]}

    @classmethod
    def from_dict(cls, schema: Schema, values: Mapping[str, Any]) -> Features:
        """The inverse of `to_dict`."""
        return cls(tuple(_BLOCKS[block["kind"]](schema, block) for block in values["blocks"]))


@dataclass(frozen=True)
class Recipe:
    """A way to make a feature map; recipes add up."""

    def over(self, synthetic: Coded) -> Features:
        """The map for this schema, with what has to be known of a table read off `synthetic`."""
        raise NotImplementedError

    def __add__(self, other: Recipe) -> Sum:
        return Sum((*_parts(self), *_parts(other)))


@dataclass(frozen=True)
class Sum(Recipe):
    """Several recipes, one after the other."""

    recipes: tuple[Recipe, ...]

    def over(self, synthetic: Coded) -> Features:
        """All of their features."""
        maps = [recipe.over(synthetic) for recipe in self.recipes]
        return Features(tuple(block for made in maps for block in made.blocks))


def _parts(recipe: Recipe) -> tuple[Recipe, ...]:
    return recipe.recipes if isinstance(recipe, Sum) else (recipe,)


@dataclass(frozen=True)
class Intercept(Recipe):
    """The constant one."""

    def over(self, synthetic: Coded) -> Features:
        """One feature."""
        return Features((_Intercept(),))


@dataclass(frozen=True)
class Linear(Recipe):
    """Every column's place in the unit box, and an indicator of null."""

    def over(self, synthetic: Coded) -> Features:
        """One feature a column, two for a nullable one."""
        return Features((_Columns(synthetic.schema, one_hot=False),))


@dataclass(frozen=True)
class OneHot(Recipe):
    """As `Linear`, with an indicator for each category of an unordered column."""

    def over(self, synthetic: Coded) -> Features:
        """One feature a category or number."""
        return Features((_Columns(synthetic.schema, one_hot=True),))


@dataclass(frozen=True)
class Squares(Recipe):
    """The square of every number's and ordinal's place in the unit box."""

    def over(self, synthetic: Coded) -> Features:
        """One feature a column that has an order."""
        return Features((_Squares(synthetic.schema),))


@dataclass(frozen=True)
class Products(Recipe):
    """Products of a target column with every other: what a model of the target is made of.

    Each factor is first centred by its mean over the synthetic table, so that a product shows
    the relation and not the columns.
    """

    target: str

    def over(self, synthetic: Coded) -> Features:
        """A feature for each of the others' features and each of the target's."""
        others = [name for name in synthetic.schema.names if name != self.target]
        pairs = tuple((name, self.target) for name in others)
        return Features((_Products.over(synthetic, pairs),)) if pairs else Features(())


@dataclass(frozen=True)
class PairProducts(Recipe):
    """Products of all pairs of columns, or of those given; centred as in `Products`."""

    pairs: tuple[tuple[str, str], ...] | None = None

    def over(self, synthetic: Coded) -> Features:
        """A feature for each pair of the two columns' features."""
        pairs = tuple(combinations(synthetic.schema.names, 2) if self.pairs is None else self.pairs)
        return Features((_Products.over(synthetic, pairs),)) if pairs else Features(())


@dataclass(frozen=True)
class Cells(Recipe):
    """Indicators of the cells of two-way tables: of all pairs of columns, or of those given.

    A column of more than `most` codes is cut into that many groups of neighbouring codes.
    """

    pairs: tuple[tuple[str, str], ...] | None = None
    most: int = 8

    def __post_init__(self) -> None:
        _check_count("most", self.most)

    def over(self, synthetic: Coded) -> Features:
        """A feature for each cell."""
        pairs = tuple(combinations(synthetic.schema.names, 2) if self.pairs is None else self.pairs)
        for name in {name for pair in pairs for name in pair}:
            _position(synthetic.schema, name)
        return Features((_Cells(synthetic.schema, pairs, self.most),)) if pairs else Features(())


@dataclass(frozen=True)
class PrincipalComponents(Recipe):
    """The directions in which the synthetic table varies most, of its one-hot features."""

    count: int

    def __post_init__(self) -> None:
        _check_count("count", self.count)

    def over(self, synthetic: Coded) -> Features:
        """One feature a component."""
        values, _ = synthetic.one_hot()
        centre = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
        covariance = (values - centre).T @ (values - centre) / max(1, len(values))
        _, directions = np.linalg.eigh(covariance)
        count = min(self.count, values.shape[1])
        return Features((_Components(synthetic.schema, centre, directions[:, ::-1][:, :count]),))


@dataclass(frozen=True)
class RandomFourier(Recipe):
    """Random cosines of the unit box: they show any smooth difference, a little of each.

    cos(a.x + b) with a ~ N(0, 1/width^2) and b uniform approximates a Gaussian kernel of that
    width (Rahimi and Recht, 2007). The draw is public and fixed by `seed`.
    """

    count: int
    width: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        _check_count("count", self.count)
        if not (math.isfinite(self.width) and self.width > 0):
            raise MethodError(f"width: expected a positive number, not {self.width!r}")

    def over(self, synthetic: Coded) -> Features:
        """`count` features."""
        generator = np.random.default_rng(self.seed)
        size = len(_Columns(synthetic.schema, one_hot=True).names)
        frequencies = generator.normal(size=(size, self.count)) / self.width
        phases = generator.uniform(0, 2 * np.pi, self.count)
        return Features((_Fourier(synthetic.schema, frequencies, phases),))


@dataclass(frozen=True, eq=False)
class _Intercept:
    names = ("1",)
    groups = ("1",)
    columns: ClassVar[tuple[tuple[str, ...], ...]] = ((),)
    bound = 1.0

    def __call__(self, rows: Coded) -> np.ndarray:
        return np.ones((len(rows), 1))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "intercept"}


@dataclass(frozen=True, eq=False)
class _Columns:
    schema: Schema
    one_hot: bool

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for column in self.schema for name in feature_names(column, self.one_hot))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(
            column.name for column in self.schema for _ in feature_names(column, self.one_hot)
        )

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return tuple((name,) for name in self.groups)

    @property
    def bound(self) -> float:
        return math.sqrt(sum(_largest_norm(column, self.one_hot) ** 2 for column in self.schema))

    def __call__(self, rows: Coded) -> np.ndarray:
        return (rows.one_hot() if self.one_hot else rows.unit_box())[0]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "columns", "one_hot": self.one_hot}


@dataclass(frozen=True, eq=False)
class _Squares:
    schema: Schema

    @cached_property
    def _positions(self) -> list[int]:
        return [i for i, column in enumerate(self.schema) if column.kind != "categorical"]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.schema.names[i]}^2" for i in self._positions)

    @property
    def groups(self) -> tuple[str, ...]:
        return self.names

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return tuple((self.schema.names[i],) for i in self._positions)

    @property
    def bound(self) -> float:
        return math.sqrt(len(self._positions))

    def __call__(self, rows: Coded) -> np.ndarray:
        return rows.units[:, self._positions] ** 2

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "squares"}


@dataclass(frozen=True, eq=False)
class _Products:
    """(x - mean x)(y - mean y) for the features x, y of each pair of columns."""

    schema: Schema
    pairs: tuple[tuple[str, str], ...]
    centres: Mapping[str, np.ndarray]  # for each column, the mean of its features

    @classmethod
    def over(cls, synthetic: Coded, pairs: Sequence[tuple[str, str]]) -> _Products:
        centres = {}
        for name in sorted({name for pair in pairs for name in pair}):
            values = _factor(synthetic, _position(synthetic.schema, name))
            centres[name] = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
        return cls(synthetic.schema, tuple(pairs), centres)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: _position(self.schema, name) for name in self.centres}

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(
            f"{left} * {right}"
            for x, y in self.pairs
            for left in _factor_names(self.schema[x])
            for right in _factor_names(self.schema[y])
        )

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(
            f"{x} * {y}"
            for x, y in self.pairs
            for _ in range(len(self.centres[x]) * len(self.centres[y]))
        )

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return tuple(
            pair
            for pair in self.pairs
            for _ in range(len(self.centres[pair[0]]) * len(self.centres[pair[1]]))
        )

    @property
    def bound(self) -> float:
        # |x - c| is at most |x| + |c|, and the norm of an outer product is the product of norms.
        reach = {
            name: _largest_norm(self.schema[name], one_hot=True) + float(np.linalg.norm(centre))
            for name, centre in self.centres.items()
        }
        return math.sqrt(sum((reach[x] * reach[y]) ** 2 for x, y in self.pairs))

    def __call__(self, rows: Coded) -> np.ndarray:
        centred = {
            name: np.asfortranarray(_factor(rows, self._positions[name]) - centre)
            for name, centre in self.centres.items()
        }
        products = np.empty((len(rows), len(self.groups)), order="F")
        place = 0
        for x, y in self.pairs:
            for left in centred[x].T:
                width = centred[y].shape[1]
                np.multiply(left[:, None], centred[y], out=products[:, place : place + width])
                place += width
        return products

    def to_dict(self) -> dict[str, Any]:
        centres = {name: centre.tolist() for name, centre in self.centres.items()}
        return {
            "kind": "products",
            "pairs": [list(pair) for pair in self.pairs],
            "centres": centres,
        }


@dataclass(frozen=True, eq=False)
class _Cells:
    schema: Schema
    pairs: tuple[tuple[str, str], ...]
    most: int

    def _size(self, name: str) -> int:
        return min(self.schema[name].size, self.most)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(
            f"{x} = {i}, {y} = {j}"
            for x, y in self.pairs
            for i in range(self._size(x))
            for j in range(self._size(y))
        )

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(
            f"{x}, {y}" for x, y in self.pairs for _ in range(self._size(x) * self._size(y))
        )

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return tuple(
            pair for pair in self.pairs for _ in range(self._size(pair[0]) * self._size(pair[1]))
        )

    @property
    def bound(self) -> float:
        return math.sqrt(len(self.pairs))

    def __call__(self, rows: Coded) -> np.ndarray:
        features = np.zeros((len(rows), len(self.groups)), order="F")
        every, place = np.arange(len(rows)), 0
        for x, y in self.pairs:
            cell = self._grouped(rows, x) * self._size(y) + self._grouped(rows, y)
            features[every, place + cell] = 1.0
            place += self._size(x) * self._size(y)
        return features

    def _grouped(self, rows: Coded, name: str) -> np.ndarray:
        codes = rows.codes[:, rows.schema.names.index(name)].astype(np.int64)
        return codes * self._size(name) // self.schema[name].size

    def to_dict(self) -> dict[str, Any]:
        pairs = [list(pair) for pair in self.pairs]
        return {"kind": "cells", "pairs": pairs, "most": self.most}


@dataclass(frozen=True, eq=False)
class _Components:
    schema: Schema
    centre: np.ndarray
    directions: np.ndarray  # orthonormal columns

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"component {i + 1}" for i in range(self.directions.shape[1]))

    @property
    def groups(self) -> tuple[str, ...]:
        return self.names

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (self.schema.names,) * len(self.names)

    @property
    def bound(self) -> float:
        # A projection is no longer than what is projected; the directions are orthonormal up to
        # rounding.
        columns = _Columns(self.schema, one_hot=True)
        return (columns.bound + float(np.linalg.norm(self.centre))) * (1 + 1e-9)

    def __call__(self, rows: Coded) -> np.ndarray:
        return (rows.one_hot()[0] - self.centre) @ self.directions

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "components",
            "centre": self.centre.tolist(),
            "directions": self.directions.tolist(),
        }


@dataclass(frozen=True, eq=False)
class _Fourier:
    schema: Schema
    # Kept as numbers, not as a seed: another version of numpy may draw others.
    frequencies: np.ndarray
    phases: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"cosine {i + 1}" for i in range(len(self.phases)))

    @property
    def groups(self) -> tuple[str, ...]:
        return self.names

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (self.schema.names,) * len(self.names)

    @property
    def bound(self) -> float:
        return math.sqrt(len(self.phases))

    def __call__(self, rows: Coded) -> np.ndarray:
        return np.cos(rows.one_hot()[0] @ self.frequencies + self.phases)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "fourier",
            "frequencies": self.frequencies.tolist(),
            "phases": self.phases.tolist(),
        }


_BLOCKS: dict[str, Callable[[Schema, Mapping[str, Any]], Block]] = {
    "intercept": lambda schema, values: _Intercept(),
    "columns": lambda schema, values: _Columns(schema, values["one_hot"]),
    "squares": lambda schema, values: _Squares(schema),
    "products": lambda schema, values: _Products(
        schema,
        tuple((x, y) for x, y in values["pairs"]),
        {name: np.array(centre) for name, centre in values["centres"].items()},
    ),
    "cells": lambda schema, values: _Cells(
        schema, tuple((x, y) for x, y in values["pairs"]), values["most"]
    ),
    "components": lambda schema, values: _Components(
        schema, np.array(values["centre"]), np.array(values["directions"])
    ),
    "fourier": lambda schema, values: _Fourier(
        schema,
        np.array(values["frequencies"]).reshape(-1, len(values["phases"])),
        np.array(values["phases"]),
    ),
}


def _largest_norm(column: Column, one_hot: bool) -> float:
    """The largest norm of a column's features: its unit value or one indicator, or null."""
    if one_hot and column.kind == "categorical":
        return 1.0
    # A null is 1/2 in the unit box, beside its indicator.
    return math.sqrt(1.25) if column.nullable else 1.0


def _factor(rows: Coded, position: int) -> np.ndarray:
    """A column's features as a factor of products: categories but the first, or the unit value."""
    column = rows.schema.columns[position]
    if column.kind != "categorical":
        return rows.units[:, position : position + 1]
    return (rows.codes[:, position : position + 1] == np.arange(1, column.cells)).astype(float)


def _factor_names(column: Column) -> list[str]:
    if column.kind != "categorical":
        return [column.name]
    return [f"{column.name}={category}" for category in (column.categories or ())[1:]]


def _position(schema: Schema, name: str) -> int:
    if name not in schema.names:
        raise MethodError(f"features: the schema has no column {name!r}")
    return schema.names.index(name)


def _check_count(option: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise MethodError(f"{option}: expected a whole number from 1, not {value!r}")
