"""Modifiers: known factors by which a target differs from the table behind a release.

A row's factor is the density of the target there over that of the table, up to a scale, since
weights are normalised: twice the factor, twice as many such people in the target. M. Diesendruck's
dissertation (2019, chapter 3) has a table that was thinned by T(x) on the way from its target; the
factor is then 1 / T. A factor is stated as an expression over the columns, which is kept with the
release and holds for new rows; or as a function of the frame or a number for each row, which hold
for these rows only. True counts as 1 and false as 0, so that "age >= 18" has the adults as target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from counterpoise.analysis.columns import one_column
from counterpoise.arguments import shown
from counterpoise.errors import AnalysisError
from counterpoise.schema.expressions import Expression, parse

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

MODIFIER = "modifier"
_EXPECTED = (
    "modifier: expected an expression over the columns, a function of the frame, or a number for "
    "each row"
)


@dataclass(frozen=True, eq=False)
class Modifier:
    """A factor for every row; `text` is the expression, or what was handed in instead of one."""

    text: str
    factors: Callable[[Release], np.ndarray]
    columns: tuple[str, ...] | None  # None where nothing says on which columns it depends
    kind: str = MODIFIER

    @property
    def problem(self) -> str | None:
        """Why it cannot be kept for new rows; None where it can."""
        return None if self.columns is not None else f"its weights follow {self.text}"

    def to_dict(self, release: Release) -> dict[str, Any]:
        """The step as the card has it."""
        sets = list(release.schema.plain.names) if self.columns is None else list(self.columns)
        made = {"kind": self.kind, "columns": [sets] if sets else []}
        return made | ({"given": self.text} if self.columns is None else {"expression": self.text})


def read_modifier(stated: Any, release: Release) -> Modifier:
    """A modifier as it was meant, or an AnalysisError."""
    if isinstance(stated, str):
        expression = parse(stated, AnalysisError)
        for name in expression.columns:
            one_column(release, name, MODIFIER)
        return Modifier(
            str(expression), lambda found: _of_expression(expression, found), expression.columns
        )
    if callable(stated):
        return Modifier(
            "a function that was handed in", lambda found: _of_function(stated, found), None
        )
    return Modifier("factors that were handed in", lambda found: _of_rows(stated, found), None)


def checked_factors(found: Any, rows: int, what: str) -> np.ndarray:
    """Factors as an array of floats: finite, from zero, and one for each row."""
    try:
        values = np.asarray(found)
        if isinstance(found, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
            values = found.to_numpy(dtype=float, na_value=np.nan)
        if values.dtype.kind not in "biufO":
            raise TypeError
        factors = values.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise AnalysisError(f"{what}: expected numbers, not {shown(found)}") from None
    if factors.shape != (rows,):
        raise AnalysisError(f"{what}: expected a number for each of the {rows:,} rows")
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise AnalysisError(f"{what}: expected finite numbers from 0 in all rows, and no nulls")
    return factors


def _of_expression(expression: Expression, release: Release) -> np.ndarray:
    names = list(expression.columns)
    if not names:
        raise AnalysisError(
            f"{MODIFIER}: {str(expression)!r} names no column, so it changes nothing"
        )
    found = expression.evaluate(release.table[names])
    if found.kind == "label":
        raise AnalysisError(f"{MODIFIER}: {str(expression)!r} is a category, and no number")
    if not found.known.all():
        raise AnalysisError(
            f"{MODIFIER}: {str(expression)!r} is null, or no finite number, in some rows; ask for "
            "them by is_null, or hand in a function of the frame"
        )
    return checked_factors(found.values, len(release.table), f"{MODIFIER}: {str(expression)!r}")


def _of_function(function: Callable[..., Any], release: Release) -> np.ndarray:
    frame = release.table[list(release.schema.names)].copy()
    return checked_factors(function(frame), len(frame), f"{MODIFIER}: what the function returns")


def _of_rows(stated: Any, release: Release) -> np.ndarray:
    is_column = isinstance(stated, list | tuple | np.ndarray | pd.Series | pd.Index)
    if not is_column and not isinstance(stated, pd.api.extensions.ExtensionArray):
        raise AnalysisError(f"{_EXPECTED}, not {shown(stated)}")
    return checked_factors(stated, len(release.table), MODIFIER)
