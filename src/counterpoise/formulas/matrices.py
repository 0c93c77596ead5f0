"""Formulas: which columns of a release a model needs, and the matrices that it makes of them.

Formulas are those of R and formulaic, such as "ill ~ age + C(ward)", and are data: they are read
into terms (`terms`) of expressions (`schema.expressions`), and nothing in them is run. Columns
become numbers as an analysis takes them: true and false are 1 and 0, dates count in days,
categories are compared with the first that has rows. Rows in which a column of the formula is
null are left out.

Functions are `log`, `log2`, `log10`, `log1p`, `exp`, `exp2`, `expm1`, `sqrt`, `abs`, `floor`,
`ceil`, `round`, `sign`, `min`, `max` (with or without `np.`), `I(...)` around arithmetic and
comparisons, `C(column, contrasts, levels=[...])`, `center`, `scale`, `standardize`, `poly`, `bs`,
`cr` and `cc`. A column whose name is not plain stands in backticks: `` `first name` ``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.arguments import shown
from counterpoise.errors import AnalysisError
from counterpoise.formulas.layout import Layout
from counterpoise.formulas.terms import Term, columns_of, read_terms
from counterpoise.schema import Schema
from counterpoise.schema.expression_trees import Name
from counterpoise.schema.expressions import NotComputed


@dataclass(frozen=True)
class Recipe:
    """How the features of a model are made from a raw table, as they were when it was fitted.

    `schema` has the columns that the features need, or is None for an intercept alone; `levels`
    are the categories that had rows.
    """

    schema: Schema | None
    levels: dict[str, list[Any]]
    layout: Layout = field(repr=False)

    def features(self, table: Any) -> tuple[np.ndarray, np.ndarray]:
        """The features of the rows that have them all, and which rows those are."""
        if isinstance(table, str | bytes) or not hasattr(table, "__len__"):
            raise AnalysisError(f"table: expected a table of rows, not {shown(table)}")
        if self.schema is None:
            made = pd.DataFrame(index=pd.RangeIndex(len(table)))
        else:
            made = as_numbers(self.schema, table)
            for name, levels in self.levels.items():
                if name in made:
                    made[name] = made[name].cat.set_categories(levels)
            made = made.reset_index(drop=True)
        known = made.notna().all(axis=1).to_numpy(copy=True)
        matrix = self.layout.matrix(made[known])
        # A row may have all columns, and a category or a logarithm that the model knows nothing of.
        has_all = np.isfinite(matrix).all(axis=1)
        known[np.flatnonzero(known)[~has_all]] = False
        return matrix[has_all], known


@dataclass(frozen=True, eq=False)
class Matrices:
    """A target and features in numbers, on the rows of a table that have them all."""

    target: np.ndarray
    features: np.ndarray
    terms: tuple[str, ...]  # the names of the features
    rows: np.ndarray  # positions in the table
    recipe: Recipe


@dataclass(frozen=True)
class ReadFormula:
    """A formula that was read: the columns left and right of its "~", and its terms."""

    formula: str
    schema: Schema
    targets: tuple[str, ...]
    used: tuple[str, ...]
    left: tuple[Term, ...] = field(repr=False)
    right: tuple[Term, ...] = field(repr=False)

    @property
    def target_column(self) -> str | None:
        """The column that is the target as it is, or None where it is transformed."""
        factors = self.left[0].factors
        is_plain = len(self.left) == 1 and len(factors) == 1 and self.left[0].scale == 1
        tree = factors[0].tree if is_plain else None
        return tree.name if isinstance(tree, Name) else None

    def matrices(self, table: Any, coded: Collection[str] = ()) -> Matrices:
        """The matrices of a table; columns in `coded` are the numbers of their categories."""
        names = [name for name in self.schema.names if name in {*self.targets, *self.used}]
        made = as_numbers(self.schema.select(names), table, coded)
        rows = np.flatnonzero(made.notna().all(axis=1).to_numpy())
        if not len(rows):
            raise AnalysisError("formula: no synthetic row has a value in all of its columns")
        made = made.iloc[rows].reset_index(drop=True)
        # A category without rows has no coefficient.
        categorical = [str(name) for name in made.select_dtypes("category")]
        for name in categorical:
            made[name] = made[name].cat.remove_unused_categories()
        try:
            target, features = (Layout.learn(side, made) for side in (self.left, self.right))
        except NotComputed as reason:
            raise AnalysisError(f"formula: it cannot be computed: {reason}") from None
        if len(target.names) != 1:
            raise AnalysisError("formula: expected one target, left of '~'")
        if not features.names:
            raise AnalysisError("formula: expected at least one term, right of '~'")
        order = [name for name in names if name in self.used]
        return Matrices(
            target=_matrix(target, made)[:, 0],
            features=_matrix(features, made),
            terms=tuple(features.names),
            rows=rows,
            recipe=Recipe(
                schema=self.schema.select(order) if order else None,
                levels={name: list(made[name].cat.categories) for name in categorical},
                layout=features,
            ),
        )


def read_formula(formula: str, schema: Schema) -> ReadFormula:
    """Read a formula over the columns of a schema; "." stands for all that are not its target.

    >>> from counterpoise.schema import Column
    >>> schema = Schema([Column.boolean("ill"), Column.integer("age", 0, 99)])
    >>> read = read_formula("ill ~ bs(age, df=4)", schema)
    >>> read.targets, read.used
    (('ill',), ('age',))
    """
    # "." leaves out what is derived: it adds nothing to the columns that it is made of.
    left, right = read_terms(formula, schema.modelled.names)
    schema = schema.plain
    targets, used = (tuple(sorted(columns_of(side))) for side in (left, right))
    for name in (*targets, *used):
        schema[name]
    if not targets:
        raise AnalysisError("formula: expected a target and features, 'y ~ x'; there is no target")
    return ReadFormula(formula, schema, targets, used, tuple(left), tuple(right))


def as_numbers(schema: Schema, table: Any, coded: Collection[str] = ()) -> pd.DataFrame:
    """Columns as a formula takes them: floats, and categories without order.

    Categories of the columns in `coded` are their numbers: 0 for the schema's first.
    """
    # A null is one here even where the schema allows none: its row is left out, or has no answer.
    lenient = Schema(
        tuple(replace(column, nullable=True) for column in schema), schema.missing_values
    )
    restored = lenient.restore(table)
    made = {}
    for column in schema:
        values = restored[column.name]
        if column.kind in ("date", "datetime"):
            # In microseconds, because nanoseconds reach from 1677 to 2262 alone.
            ticks = values.to_numpy(dtype="datetime64[us]").astype(np.int64)
            days = np.where(values.isna(), np.nan, ticks / 86_400e6)
            made[column.name] = pd.Series(days, index=values.index)
        elif column.is_numeric or column.category_type == "boolean":
            made[column.name] = pd.Series(
                values.to_numpy(dtype=float, na_value=np.nan), index=values.index
            )
        else:
            assert column.categories is not None
            categories = pd.Categorical(values, categories=list(column.categories), ordered=False)
            if column.name in coded:
                codes = np.where(categories.isna(), np.nan, categories.codes).astype(float)
                made[column.name] = pd.Series(codes, index=values.index)
            else:
                made[column.name] = pd.Series(categories, index=values.index)
    return pd.DataFrame(made, index=restored.index)


def _matrix(layout: Layout, frame: pd.DataFrame) -> np.ndarray:
    layout.check(len(frame))
    made = layout.matrix(frame)
    if not np.isfinite(made).all():
        name = layout.names[int(np.flatnonzero(~np.isfinite(made).all(axis=0))[0])]
        raise AnalysisError(
            f"formula: {name!r} cannot be computed: it is no finite number in some of the rows"
        )
    return made
