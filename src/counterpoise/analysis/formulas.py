"""Formulas: which columns of a release a model needs, and the matrices that it makes of them.

Formulas are those of R and formulaic, such as "ill ~ age + C(ward)". Columns become numbers as an
analysis takes them: true and false are 1 and 0, dates count in days, categories are compared with
the first that has rows. Rows in which a column of the formula is null are left out.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.errors import AnalysisError
from counterpoise.schema import Schema


@dataclass(frozen=True)
class Recipe:
    """How the features of a model are made from a raw table, as they were when it was fitted.

    `schema` has the columns that the features need, or is None for an intercept alone; `levels`
    are the categories that had rows.
    """

    schema: Schema | None
    levels: dict[str, list[Any]]
    matrix: Any = field(repr=False)  # how formulaic made the features

    def features(self, table: Any) -> tuple[np.ndarray, np.ndarray]:
        """The features of the rows that have them all, and which rows those are."""
        made = pd.DataFrame(index=pd.RangeIndex(len(table)))
        if self.schema is not None:
            made = as_numbers(self.schema, table)
            for name, levels in self.levels.items():
                if name in made:
                    made[name] = made[name].cat.set_categories(levels)
            made = made.reset_index(drop=True)
        known = made.notna().all(axis=1).to_numpy()
        if not known.any():
            return np.empty((0, len(self.matrix.column_names))), known
        matrix = self.matrix.get_model_matrix(made[known])
        return matrix.to_numpy(dtype=float), known


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
    """A formula that was read: the columns left and right of its "~"."""

    formula: str
    schema: Schema
    targets: tuple[str, ...]
    used: tuple[str, ...]
    parsed: Any = field(repr=False)

    def matrices(self, table: Any, coded: Collection[str] = ()) -> Matrices:
        """The matrices of a table; columns in `coded` are the numbers of their categories."""
        from formulaic.errors import FormulaicError

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
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                matrices = self.parsed.get_model_matrix(made, na_action="raise")
        except (FormulaicError, RuntimeWarning, ValueError) as error:
            raise AnalysisError(f"formula: {self.formula!r} cannot be computed: {error}") from None
        if matrices.lhs.shape[1] != 1:
            raise AnalysisError("formula: expected one target, left of '~'")
        order = [name for name in names if name in self.used]
        return Matrices(
            target=matrices.lhs.to_numpy(dtype=float)[:, 0],
            features=matrices.rhs.to_numpy(dtype=float),
            terms=tuple(str(term) for term in matrices.rhs.columns),
            rows=rows,
            recipe=Recipe(
                schema=self.schema.select(order) if order else None,
                levels={name: list(made[name].cat.categories) for name in categorical},
                matrix=matrices.rhs.model_spec,
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
    import formulaic
    from formulaic.errors import FormulaicError

    try:
        parsed = formulaic.Formula(
            formula, _context={"__formulaic_variables_available__": list(schema.names)}
        )
    except FormulaicError:
        raise AnalysisError(f"formula: {formula!r} cannot be read; write 'y ~ x + C(z)'") from None
    if not hasattr(parsed, "lhs") or not hasattr(parsed, "rhs"):
        raise AnalysisError(f"formula: expected a target and features, 'y ~ x', not {formula!r}")
    targets, used = (_columns_of(part, schema) for part in (parsed.lhs, parsed.rhs))
    for name in (*targets, *used):
        schema[name]
    return ReadFormula(formula, schema, targets, used, parsed)


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
            days = (values - pd.Timestamp(0)) / pd.Timedelta(days=1)
            made[column.name] = days.astype(float)
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


def _columns_of(part: Any, schema: Schema) -> tuple[str, ...]:
    """The columns that one side of a formula needs."""
    # Formulaic does not count what transforms with a state use, such as bs(x) and center(x).
    named = {str(name) for name in part.required_variables}
    for factor in {factor for term in part for factor in term.factors}:
        try:
            nodes = list(ast.walk(ast.parse(factor.expr, mode="eval")))
        except SyntaxError:  # a name in backticks, which is counted
            continue
        named |= {node.id for node in nodes if isinstance(node, ast.Name) and node.id in schema}
    return tuple(sorted(named))
