"""Which family a model of a target has, and which targets fit a family."""

from __future__ import annotations

from collections.abc import Sequence

from counterpoise.arguments import shown
from counterpoise.errors import AnalysisError
from counterpoise.formulas.likelihood import FAMILIES
from counterpoise.schema import Column, Schema

MULTINOMIAL = "multinomial"


def choose_family(schema: Schema, targets: Sequence[str], family: str) -> str:
    """The family itself, or for "auto" the one that the target suggests; it has to fit.

    >>> choose_family(Schema([Column.boolean("ill")]), ["ill"], "auto")
    'binomial'
    """
    known = (*FAMILIES, MULTINOMIAL)
    if not isinstance(family, str) or family not in ("auto", *known):
        raise AnalysisError(f"family: expected auto, {', '.join(known)}, not {shown(family)}")
    columns = [schema[name] for name in targets]
    chosen = family
    if family == "auto":
        chosen = "gaussian"
        if len(columns) == 1 and not columns[0].is_numeric:
            chosen = "binomial" if columns[0].ungrouped.cells == 2 else MULTINOMIAL
    for column in columns:
        fitting = [family for family in known if _fits(column, family)]
        if chosen not in fitting:
            raise AnalysisError(
                f"family: the target {column.name!r} is {column.kind}, and the {chosen} family is "
                f"not for it; take {' or '.join(fitting)}"
            )
    return chosen


def usual_family(schema: Schema, targets: Sequence[str]) -> str:
    """The family that "auto" takes for a target, or an empty text where it takes none."""
    try:
        return choose_family(schema, targets, "auto")
    except AnalysisError:
        return ""


def coded_targets(schema: Schema, targets: Sequence[str], family: str) -> list[str]:
    """The targets whose categories count as their numbers."""
    if family not in ("binomial", MULTINOMIAL):
        return []
    return [name for name in targets if not schema[name].is_numeric]


def _fits(column: Column, family: str) -> bool:
    """Whether a family is for a target such as this; numbers may still be out of its range."""
    if column.is_numeric:
        return family != MULTINOMIAL
    if column.category_type == "boolean":
        return True
    return family == MULTINOMIAL or (family == "binomial" and column.ungrouped.cells == 2)
