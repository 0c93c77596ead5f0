"""The blocks that feature maps are made of: a few features each, with the bound that is proved.

A block is fixed for a schema and works on coded rows. Its bound holds for every row that the
schema allows, not only for those seen; a query's sensitivity rests on it. The methods of all
blocks are those of `Block`. [PRIVACY: importance weights]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from counterpoise.errors import MethodError
from counterpoise.formulas.row_by_row import row_products
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
class InterceptBlock:
    """The constant one."""

    names = ("1",)
    groups = ("1",)
    columns: ClassVar[tuple[tuple[str, ...], ...]] = ((),)
    bound = 1.0

    def __call__(self, rows: Coded) -> np.ndarray:
        return np.ones((len(rows), 1))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "intercept"}


@dataclass(frozen=True, eq=False)
class ColumnsBlock:
    """Every column's features, side by side."""

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
        return rows.features(self.one_hot)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "columns", "one_hot": self.one_hot}


@dataclass(frozen=True, eq=False)
class SquaresBlock:
    """The squares of what has an order."""

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
class ProductsBlock:
    """(x - mean x)(y - mean y) for the features x, y of each pair of columns; 0 where one is null.

    A null has no place on a column's scale: a product that gave it one would show who has nulls,
    and not how the values go together.
    """

    schema: Schema
    pairs: tuple[tuple[str, str], ...]
    centres: Mapping[str, np.ndarray]  # for each column, the mean of its features

    @classmethod
    def over(cls, synthetic: Coded, pairs: Sequence[tuple[str, str]]) -> ProductsBlock:
        centres = {}
        for name in sorted({name for pair in pairs for name in pair}):
            position = position_of(synthetic.schema, name)
            values = _factor(synthetic, position)[~_is_null(synthetic, position)]
            centres[name] = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
        return cls(synthetic.schema, tuple(pairs), centres)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position_of(self.schema, name) for name in self.centres}

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
        # The norm of an outer product is the product of norms.
        reach = {name: _reach(self.schema[name], centre) for name, centre in self.centres.items()}
        return math.sqrt(sum((reach[x] * reach[y]) ** 2 for x, y in self.pairs))

    def __call__(self, rows: Coded) -> np.ndarray:
        products = np.empty((len(rows), len(self.groups)), order="F")
        self.fill(rows, products)
        return products

    @cached_property
    def _centred_codes(self) -> dict[str, np.ndarray]:
        """For each categorical column, its factor less its mean: a line a feature, a column a code.

        A null is 0.
        """
        found = {}
        for name, centre in self.centres.items():
            column = self.schema[name]
            if column.kind == "categorical":
                table = np.eye(column.cells)[1:] - centre[:, None]
                found[name] = np.hstack([table, np.zeros((len(table), column.size - column.cells))])
        return found

    def fill(self, rows: Coded, products: np.ndarray) -> None:
        """The features, in the precision of the place that there is for them."""
        centred = {name: self._centred(rows, name).astype(products.dtype) for name in self.centres}
        places, place = products.T, 0
        for x, y in self.pairs:
            left, right = centred[x], centred[y]
            if len(right) == 1:
                np.multiply(left, right, out=places[place : place + len(left)])
                place += len(left)
                continue
            for line in left:
                np.multiply(line, right, out=places[place : place + len(right)])
                place += len(right)

    def _centred(self, rows: Coded, name: str) -> np.ndarray:
        """A factor less its mean, and 0 where it is null; a line a feature."""
        position, by_code = self._positions[name], self._centred_codes.get(name)
        if by_code is not None:
            return np.take(by_code, rows.codes[:, position], axis=1)
        values = rows.units[:, position] - self.centres[name]
        if self.schema[name].null_code is not None:
            values[_is_null(rows, position)] = 0.0
        return values[None]

    def to_dict(self) -> dict[str, Any]:
        centres = {name: centre.tolist() for name, centre in self.centres.items()}
        return {
            "kind": "products",
            "pairs": [list(pair) for pair in self.pairs],
            "centres": centres,
        }


@dataclass(frozen=True, eq=False)
class TrendsBlock:
    """(x - mean x)(y - mean y) for each pair of columns by one number each; 0 where one is null.

    A category is its place in its list, from 0 to 1: one contrast of a wide relation, and the best
    one of a list that is in order.
    """

    schema: Schema
    pairs: tuple[tuple[str, str], ...]
    centres: Mapping[str, float]  # for each column, the mean of its number

    @classmethod
    def over(cls, synthetic: Coded, pairs: Sequence[tuple[str, str]]) -> TrendsBlock:
        centres = {}
        for name in sorted({name for pair in pairs for name in pair}):
            position = position_of(synthetic.schema, name)
            there = ~_is_null(synthetic, position)
            values = _place(synthetic, position)[there]
            centres[name] = float(values.mean()) if len(values) else 0.0
        return cls(synthetic.schema, tuple(pairs), centres)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{x} ~ {y}" for x, y in self.pairs)

    @property
    def groups(self) -> tuple[str, ...]:
        return self.names

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return self.pairs

    @property
    def bound(self) -> float:
        # Both factors are numbers from 0 to 1 less one of these.
        reach = {name: max(centre, 1 - centre) for name, centre in self.centres.items()}
        return math.sqrt(sum((reach[x] * reach[y]) ** 2 for x, y in self.pairs))

    def __call__(self, rows: Coded) -> np.ndarray:
        centred = {}
        for name, centre in self.centres.items():
            position = position_of(self.schema, name)
            values = _place(rows, position) - centre
            values[_is_null(rows, position)] = 0.0
            centred[name] = values
        made = [centred[x] * centred[y] for x, y in self.pairs]
        return np.array(made).reshape(len(made), len(rows)).T

    def to_dict(self) -> dict[str, Any]:
        pairs = [list(pair) for pair in self.pairs]
        return {"kind": "trends", "pairs": pairs, "centres": dict(self.centres)}


@dataclass(frozen=True, eq=False)
class CellsBlock:
    """Indicators of the cells of two-way tables."""

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
class _WholeRowBlock(ABC):
    """Features that are functions of all columns, each in a group of its own."""

    schema: Schema

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]: ...

    @property
    def groups(self) -> tuple[str, ...]:
        return self.names

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (self.schema.names,) * len(self.names)


@dataclass(frozen=True, eq=False)
class ComponentsBlock(_WholeRowBlock):
    """Projections of the one-hot features."""

    centre: np.ndarray
    directions: np.ndarray  # orthonormal columns

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"component {i + 1}" for i in range(self.directions.shape[1]))

    @property
    def bound(self) -> float:
        # A projection is no longer than what is projected; the directions are orthonormal up to
        # rounding.
        columns = ColumnsBlock(self.schema, one_hot=True)
        return (columns.bound + float(np.linalg.norm(self.centre))) * (1 + 1e-9)

    def __call__(self, rows: Coded) -> np.ndarray:
        return row_products(rows.features(one_hot=True) - self.centre, self.directions)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "components",
            "centre": self.centre.tolist(),
            "directions": self.directions.tolist(),
        }


@dataclass(frozen=True, eq=False)
class FourierBlock(_WholeRowBlock):
    """Cosines of the one-hot features."""

    # Kept as numbers, not as a seed: another version of numpy may draw others.
    frequencies: np.ndarray
    phases: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"cosine {i + 1}" for i in range(len(self.phases)))

    @property
    def bound(self) -> float:
        return math.sqrt(len(self.phases))

    def __call__(self, rows: Coded) -> np.ndarray:
        made = row_products(rows.features(one_hot=True), self.frequencies)
        return np.cos(made + self.phases)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "fourier",
            "frequencies": self.frequencies.tolist(),
            "phases": self.phases.tolist(),
        }


BLOCKS: dict[str, Callable[[Schema, Mapping[str, Any]], Block]] = {
    "intercept": lambda schema, values: InterceptBlock(),
    "columns": lambda schema, values: ColumnsBlock(schema, values["one_hot"]),
    "squares": lambda schema, values: SquaresBlock(schema),
    "products": lambda schema, values: ProductsBlock(
        schema,
        tuple((x, y) for x, y in values["pairs"]),
        {name: np.array(centre) for name, centre in values["centres"].items()},
    ),
    "trends": lambda schema, values: TrendsBlock(
        schema, tuple((x, y) for x, y in values["pairs"]), values["centres"]
    ),
    "cells": lambda schema, values: CellsBlock(
        schema, tuple((x, y) for x, y in values["pairs"]), values["most"]
    ),
    "components": lambda schema, values: ComponentsBlock(
        schema, np.array(values["centre"]), np.array(values["directions"])
    ),
    "fourier": lambda schema, values: FourierBlock(
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


def _reach(column: Column, centre: np.ndarray) -> float:
    """The largest norm of a column's factor less its centre; a null is zero."""
    if column.kind != "categorical":
        return max(float(centre[0]), 1 - float(centre[0]))
    square = float(centre @ centre)
    # |e_k - c|^2 = 1 - 2 c_k + |c|^2, and |c|^2 for the first category
    return math.sqrt(max(square, float((1 - 2 * centre + square).max(initial=0.0))))


def _factor(rows: Coded, position: int) -> np.ndarray:
    """A column's features as a factor of products: categories but the first, or the unit value."""
    column = rows.schema.columns[position]
    if column.kind != "categorical":
        return rows.units[:, position : position + 1]
    return (rows.codes[:, position : position + 1] == np.arange(1, column.cells)).astype(float)


def _place(rows: Coded, position: int) -> np.ndarray:
    """A column as one number from 0 to 1: its unit value, or a category's place in its list."""
    column = rows.schema.columns[position]
    if column.kind != "categorical":
        return rows.units[:, position].copy()
    return np.minimum(rows.codes[:, position] / max(1, column.cells - 1), 1.0)


def _is_null(rows: Coded, position: int) -> np.ndarray:
    nulls: np.ndarray = rows.codes[:, position] == rows.schema.columns[position].cells
    return nulls


def _factor_names(column: Column) -> list[str]:
    if column.kind != "categorical":
        return [column.name]
    return [f"{column.name}={label}" for label in column.code_labels()[1:]]


def position_of(schema: Schema, name: str) -> int:
    """The place of a column, which has to be there."""
    if name not in schema.names:
        raise MethodError(f"features: the schema has no column {name!r}")
    return schema.names.index(name)
