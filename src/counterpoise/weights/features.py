"""Features: public functions of a row that say in which ways two tables may differ.

A weight can only correct a difference that some feature shows. A feature map is chosen from the
public schema and the synthetic table alone, and the norm of its vectors is bounded whatever the
row, which is what gives sums and fits over private rows their sensitivity. Maps are built by
small recipes that add up: `OneHot() + Squares() + Products("ill")`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from counterpoise.arguments import (
    column_name,
    column_sets,
    instance_of,
    real_number,
    settle,
    whole_number,
)
from counterpoise.errors import MethodError
from counterpoise.schema import Coded, Schema
from counterpoise.weights.asked_blocks import ASKED_BLOCKS
from counterpoise.weights.feature_blocks import (
    BLOCKS,
    Block,
    CellsBlock,
    ColumnsBlock,
    ComponentsBlock,
    FourierBlock,
    InterceptBlock,
    ProductsBlock,
    SquaresBlock,
    TrendsBlock,
    position_of,
)

# Every cosine is a number for each row; more of them would not fit into memory.
MOST_COSINES = 100_000


@dataclass(frozen=True, eq=False)
class Features:
    """A feature map: blocks side by side.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column
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

    @cached_property
    def takes_values(self) -> bool:
        """Whether some feature needs the values as they are, and not as they are spread out."""
        return any(_takes_values(block) for block in self.blocks)

    def __call__(self, rows: Coded, precision: type[np.floating] = np.float64) -> np.ndarray:
        """The features of each row, one row a record."""
        spread = rows.spread()
        made, place = np.empty((len(rows), len(self.names)), precision, order="F"), 0
        for block in self.blocks:
            there = made[:, place : place + len(block.names)]
            if isinstance(block, ProductsBlock):
                block.fill(spread, there)  # the most of the features, without a copy
            else:
                there[:] = block(rows if _takes_values(block) else spread)
            place += len(block.names)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The map as JSON values."""
        return {"blocks": [block.to_dict() for block in self.blocks]}

    @classmethod
    def from_dict(cls, schema: Schema, values: Mapping[str, Any]) -> Features:
        """The inverse of `to_dict`."""
        blocks = BLOCKS | ASKED_BLOCKS
        return cls(tuple(blocks[block["kind"]](schema, block) for block in values["blocks"]))


def _takes_values(block: Block) -> bool:
    return bool(getattr(block, "takes_values", False))


@dataclass(frozen=True)
class Recipe(ABC):
    """A way to make a feature map; recipes add up."""

    @abstractmethod
    def over(self, synthetic: Coded) -> Features:
        """The map for this schema, with what has to be known of a table read off `synthetic`."""

    def __add__(self, other: Recipe) -> Sum:
        if not isinstance(other, Recipe):
            return NotImplemented
        return Sum((*_parts(self), *_parts(other)))


def checked_recipe(name: str, value: Any) -> Recipe:
    """`value`, which has to be a recipe."""
    expected = "a recipe of features, such as Linear() + Squares()"
    found: Recipe = instance_of(name, value, Recipe, expected)  # type: ignore[type-abstract]
    return found


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
        return Features((InterceptBlock(),))


@dataclass(frozen=True)
class Linear(Recipe):
    """Every column's place in the unit box, and an indicator of null."""

    def over(self, synthetic: Coded) -> Features:
        """One feature a column, two for a nullable one."""
        return Features((ColumnsBlock(synthetic.schema, one_hot=False),))


@dataclass(frozen=True)
class OneHot(Recipe):
    """As `Linear`, with an indicator for each category of an unordered column."""

    def over(self, synthetic: Coded) -> Features:
        """One feature a category or number."""
        return Features((ColumnsBlock(synthetic.schema, one_hot=True),))


@dataclass(frozen=True)
class Squares(Recipe):
    """The square of every number's and ordinal's place in the unit box."""

    def over(self, synthetic: Coded) -> Features:
        """One feature a column that has an order."""
        return Features((SquaresBlock(synthetic.schema),))


@dataclass(frozen=True)
class Products(Recipe):
    """Products of a target column with every other: what a model of the target is made of.

    Each factor is first centred by its mean over the synthetic table, so that a product shows
    the relation and not the columns.
    """

    target: str

    def __post_init__(self) -> None:
        settle(self, target=column_name("target", self.target))

    def over(self, synthetic: Coded) -> Features:
        """A feature for each of the others' features and each of the target's."""
        others = [name for name in synthetic.schema.names if name != self.target]
        pairs = tuple((name, self.target) for name in others)
        return Features((ProductsBlock.over(synthetic.spread(), pairs),)) if pairs else Features(())


@dataclass(frozen=True)
class PairProducts(Recipe):
    """Products of all pairs of columns, or of those given; centred as in `Products`."""

    pairs: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        settle(self, pairs=_checked_pairs(self.pairs))

    def over(self, synthetic: Coded) -> Features:
        """A feature for each pair of the two columns' features."""
        pairs = tuple(combinations(synthetic.schema.names, 2) if self.pairs is None else self.pairs)
        return Features((ProductsBlock.over(synthetic.spread(), pairs),)) if pairs else Features(())


@dataclass(frozen=True)
class Trends(Recipe):
    """One product of all pairs of columns, or of those given: a category is its place in its list.

    Centred as in `Products`.
    """

    pairs: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        settle(self, pairs=_checked_pairs(self.pairs))

    def over(self, synthetic: Coded) -> Features:
        """A feature for each pair."""
        pairs = tuple(combinations(synthetic.schema.names, 2) if self.pairs is None else self.pairs)
        return Features((TrendsBlock.over(synthetic.spread(), pairs),)) if pairs else Features(())


@dataclass(frozen=True)
class Cells(Recipe):
    """Indicators of the cells of two-way tables: of all pairs of columns, or of those given.

    A column of more than `most` codes is cut into that many groups of neighbouring codes.
    """

    pairs: tuple[tuple[str, str], ...] | None = None
    most: int = 8

    def __post_init__(self) -> None:
        settle(self, pairs=_checked_pairs(self.pairs), most=whole_number("most", self.most))

    def over(self, synthetic: Coded) -> Features:
        """A feature for each cell."""
        pairs = tuple(combinations(synthetic.schema.names, 2) if self.pairs is None else self.pairs)
        for name in {name for pair in pairs for name in pair}:
            position_of(synthetic.schema, name)
        return (
            Features((CellsBlock(synthetic.schema, pairs, self.most),)) if pairs else Features(())
        )


@dataclass(frozen=True)
class PrincipalComponents(Recipe):
    """The directions in which the synthetic table varies most, of its one-hot features."""

    count: int

    def __post_init__(self) -> None:
        settle(self, count=whole_number("count", self.count))

    def over(self, synthetic: Coded) -> Features:
        """One feature a component."""
        values, _ = synthetic.spread().one_hot()
        centre = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
        covariance = (values - centre).T @ (values - centre) / max(1, len(values))
        _, directions = np.linalg.eigh(covariance)
        count = min(self.count, values.shape[1])
        return Features(
            (ComponentsBlock(synthetic.schema, centre, directions[:, ::-1][:, :count]),)
        )


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
        settle(
            self,
            count=whole_number("count", self.count, most=MOST_COSINES),
            width=real_number("width", self.width, "a positive number", above=0),
            seed=whole_number("seed", self.seed, least=0),
        )

    def over(self, synthetic: Coded) -> Features:
        """`count` features."""
        generator = np.random.default_rng(self.seed)
        size = len(ColumnsBlock(synthetic.schema, one_hot=True).names)
        frequencies = generator.normal(size=(size, self.count)) / self.width
        phases = generator.uniform(0, 2 * np.pi, self.count)
        return Features((FourierBlock(synthetic.schema, frequencies, phases),))


def _checked_pairs(pairs: Any) -> tuple[tuple[str, str], ...] | None:
    """Pairs of two columns each; None stands for all of them."""
    if pairs is None:
        return None
    found = column_sets("pairs", pairs)
    if any(len(pair) != 2 for pair in found):
        raise MethodError("pairs: expected two columns in each")
    return tuple((left, right) for left, right in found)
