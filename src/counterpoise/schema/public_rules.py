"""Public rules of a table: derived columns, identifiers, and checks that every row obeys.

Rules are statements about any such table (`total` is `a + b`, nobody leaves before arriving), made
without a look at this one, so they cost nothing. What is derived is left out of all that is asked
of a vault and computed afterwards, exactly; identifiers are made up; rows that break a check are
drawn again. A check that is null in a row counts as obeyed, as in SQL. Private rows are not held
against the rules: whether they keep them is a fact about the data.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date as Date
from datetime import datetime as DateTime
from typing import TYPE_CHECKING, Any

import pandas as pd

from counterpoise.errors import SchemaError
from counterpoise.schema.bins import EPOCH, EPOCH_DAY, MICROSECOND, number
from counterpoise.schema.column import IDENTIFIER, Column
from counterpoise.schema.expression_trees import Chain, Listed, Name, Node, Text, parts
from counterpoise.schema.expressions import Expression, Values, parse
from counterpoise.schema.normal_form import Bound
from counterpoise.schema.ranges import Range, narrowed, range_of
from counterpoise.schema.rules import LARGEST_INTEGER

if TYPE_CHECKING:
    from counterpoise.schema.schema import Schema

# Bounds that are still to be paid for are taken to lie within these.
_OPEN = Range(-1e15, 1e15, True)
DAY = 86_400_000_000  # in microseconds
# On the numeric scale of each kind, the values that it has a place for.
PLACES: dict[str, tuple[float, float]] = {
    "integer": (-LARGEST_INTEGER, LARGEST_INTEGER),
    "continuous": (-1e299, 1e299),
    "date": (number(Date.min), number(Date.max)),
    "datetime": (number(DateTime.min), number(DateTime.max)),
}


@dataclass(frozen=True)
class PublicRules:
    """The rules of a schema, read: derived columns come after those that they are made of."""

    modelled: tuple[Column, ...]
    derived: tuple[tuple[Column, Expression], ...] = ()
    identifiers: tuple[str, ...] = ()
    checks: tuple[Expression, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.derived or self.identifiers or self.checks)

    def needs(self, expression: Expression) -> set[str]:
        """The modelled columns that an expression is made of, through derived ones too."""
        found: dict[str, set[str]] = {}

        def made_of(each: Expression) -> set[str]:
            return set().union(*(found.get(name, {name}) for name in each.columns))

        for column, each in self.derived:
            found[column.name] = made_of(each)
        return made_of(expression)

    def ranges(self) -> Iterator[tuple[Column, Range]]:
        """The derived columns, and the ranges of their expressions where the checks are obeyed."""
        known = {column.name: _range(column) for column in self.modelled}
        for column, expression in self.derived:
            found = range_of(expression.tree, known.__getitem__)
            checks = (check.tree for check in self.checks)
            found = narrowed(found, column.name, expression.tree, checks)
            yield column, found
            known[column.name] = _as_seen(column, found)

    def settled(self) -> Iterator[Column]:
        """The derived columns with their bounds, and whether they may be null."""
        for column, found in self.ranges():
            made = _bounded(column, found) if column.is_numeric else column
            yield replace(made, nullable=column.nullable and found.nullable)

    def selected(self, schema: Schema, chosen: Sequence[str]) -> Schema:
        """A schema of some of the columns, with the rules whose columns are all among them."""
        kept = set(chosen)
        freed = set()
        for column, expression in self.derived:
            # In order, so that what is made of a freed column is made of a column like others.
            if not kept.issuperset(expression.columns):
                freed.add(column.name)
        checks = [
            text
            for text, check in zip(schema.checks, self.checks, strict=True)
            if kept.issuperset(check.columns)
        ]
        # Bounds that follow from what is still to be paid for are to be paid for themselves.
        source = schema.settled if schema.is_complete else schema
        columns = [
            replace(source[name], expression=None) if name in freed else schema[name]
            for name in chosen
        ]
        return replace(schema, columns=tuple(columns), checks=tuple(checks))


def read_rules(columns: Sequence[Column], checks: Sequence[str]) -> PublicRules:
    """The rules that columns and checks state; a SchemaError for those that cannot be kept."""
    modelled = tuple(column for column in columns if column.is_modelled)
    if len(modelled) == len(columns) and not checks:
        return PublicRules(modelled)
    if not modelled:
        raise SchemaError("a schema needs a column that is neither derived nor an identifier")
    known = {column.name: column for column in columns}
    expressions = {
        column.name: _read(f"column {column.name!r}", column.expression, known)
        for column in columns
        if column.expression is not None
    }
    derived = tuple((known[name], expressions[name]) for name in _ordered(expressions))
    identifiers = tuple(column.name for column in columns if column.kind == IDENTIFIER)
    read = tuple(_read(f"check {text!r}", text, known) for text in checks)
    rules = PublicRules(modelled, derived, identifiers, read)
    _check_kinds(rules, checks)
    _check_bounds(rules)
    return rules


def _read(what: str, text: str, known: Mapping[str, Column]) -> Expression:
    try:
        expression = parse(text)
    except SchemaError as error:
        raise SchemaError(f"{what}: {error}") from None
    if not expression.columns:
        raise SchemaError(f"{what}: it names no column, and would be the same in every row")
    for name in expression.columns:
        if name not in known:
            near = difflib.get_close_matches(name, known)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise SchemaError(f"{what}: the schema has no column {name!r}{hint}")
        if known[name].kind == IDENTIFIER:
            raise SchemaError(f"{what}: {name!r} is an identifier, and its values say nothing")
    for name, category in _compared(expression.tree):
        listed = known[name].categories or ()
        is_stated = listed and dict(known[name].sources).get("enum") != "paid"
        if is_stated and known[name].category_type == "string" and category not in listed:
            raise SchemaError(
                f"{what}: {name!r} is never {category!r}; its categories are "
                f"{', '.join(map(repr, listed[:8]))}{', ...' * (len(listed) > 8)}"
            )
    return expression


def _compared(node: Node) -> Iterator[tuple[str, str]]:
    """The columns that are compared with texts, and the texts."""
    if isinstance(node, Chain):
        for left, right in zip(node.operands, node.operands[1:], strict=False):
            for one, other in ((left, right), (right, left)):
                members = other.members if isinstance(other, Listed) else (other,)
                if isinstance(one, Name):
                    yield from (
                        (one.name, each.value) for each in members if isinstance(each, Text)
                    )
    for part in parts(node):
        yield from _compared(part)


def _ordered(expressions: Mapping[str, Expression]) -> list[str]:
    """Derived columns, each after those that it is made of."""
    done: list[str] = []
    left = dict(expressions)
    while left:
        ready = [name for name in left if not any(each in left for each in left[name].columns)]
        if not ready:
            circle = ", ".join(map(repr, left))
            raise SchemaError(
                f"the columns {circle} are derived from each other; one of them has to be read "
                "from the table, or derived from other columns"
            )
        for name in ready:
            done.append(name)
            del left[name]
    return done


def _check_kinds(rules: PublicRules, checks: Sequence[str]) -> None:
    """Evaluate everything on no rows: what has no meaning for such columns is found."""
    empty: dict[str, Any] = {column.name: _no_values(column) for column in rules.modelled}
    for column, expression in rules.derived:
        found = _tried(f"column {column.name!r}", expression, empty)
        if found.kind == "label" or (found.kind == "number" and not column.is_numeric):
            made = {"label": "a category", "number": "a number"}[found.kind]
            kind = column.kind if column.is_numeric else "true or false"
            raise SchemaError(
                f"column {column.name!r} is {kind}, and {column.expression!r} is {made}; state "
                "another type, or compare with something"
            )
        empty[column.name] = _no_values(column)
    for text, check in zip(checks, rules.checks, strict=True):
        if _tried(f"check {text!r}", check, empty).kind != "truth":
            raise SchemaError(f"check {text!r}: it is neither true nor false; compare something")


def _tried(what: str, expression: Expression, empty: Mapping[str, Any]) -> Values:
    try:
        return expression.evaluate({name: empty[name] for name in expression.columns})
    except SchemaError as error:
        raise SchemaError(f"{what}: {error}") from None


def _no_values(column: Column) -> pd.Series:
    dtype: str = "object"
    if column.is_numeric:
        dtype = "datetime64[us]" if column.kind in ("date", "datetime") else "float64"
    elif column.kind == "categorical" and column.category_type in ("integer", "boolean"):
        dtype = "int64" if column.category_type == "integer" else "bool"
    return pd.Series([], dtype=dtype)


def _check_bounds(rules: PublicRules) -> None:
    """Refuse stated bounds that a derived column may leave, and columns that have none."""
    for column, found in rules.ranges():
        if found.low > found.high:
            raise SchemaError(
                f"column {column.name!r}: the checks leave no value that {column.expression!r} "
                "can have; correct them, or the bounds of its columns"
            )
        if found.nullable and not column.nullable:
            raise SchemaError(
                f"column {column.name!r} is required, and {column.expression!r} may be null; let "
                f"it be null, or add the check 'not is_null({Expression(Name(column.name))})'"
            )
        if column.is_numeric:
            _check_stated(column, found)


def _check_stated(column: Column, found: Range) -> None:
    shown = str(Expression(Name(column.name)))
    low, high = _on_scale(column, found)
    for key, end, far, sign in (
        ("minimum", low, found.low, ">="),
        ("maximum", high, found.high, "<="),
    ):
        stated = getattr(column, key)
        if stated is None:
            if not math.isfinite(far):
                raise SchemaError(
                    f"column {column.name!r}: {column.expression!r} may be any number, however "
                    f"large; add a check that bounds it, such as '{shown} {sign} 100'"
                )
            continue
        bound = number(stated)
        if (end < bound) if key == "minimum" else (end > bound):
            limit = f"date('{stated}')" if isinstance(stated, Date) else stated
            raise SchemaError(
                f"column {column.name!r}: {column.expression!r} may leave the {key} {stated}; "
                f"leave it out, so that it follows, or add the check '{shown} {sign} {limit}'"
            )


def _range(column: Column) -> Range:
    """The range of a column as expressions see it: numbers, truths, and days since 1970."""
    if not column.is_numeric:
        if column.category_type != "integer":
            return Range(0.0, 1.0, column.nullable)
        if column.categories is not None:
            numbers = [float(each) for each in column.categories]
            return Range(min(numbers), max(numbers), column.nullable)
    if column.minimum is None or column.maximum is None:
        return replace(_OPEN, nullable=column.nullable)
    scale = DAY if column.kind == "datetime" else 1
    return Range(column.low / scale, column.high / scale, column.nullable)


def _as_seen(column: Column, found: Range) -> Range:
    """The range of a derived column as expressions see it: whole where the column is."""
    if not column.is_numeric:
        return Range(0.0, 1.0, found.nullable)
    if not found.is_finite or column.kind == "continuous":
        return found
    scale = DAY if column.kind == "datetime" else 1
    low, high = _on_scale(column, found)
    return Range(low / scale, high / scale, found.nullable)


def _on_scale(column: Column, found: Range) -> tuple[float, float]:
    """The part of a range that such a column has a place for, on its numeric scale."""
    least, most = PLACES[column.kind]
    low, high = found.low, found.high
    if column.kind == "datetime":
        low, high = low * DAY, high * DAY
    # Clipped first, because nothing infinite can be rounded.
    low, high = (min(max(end, least), most) for end in (low, high))
    if column.kind == "continuous":
        return low, high
    return (round(low), round(high)) if column.kind == "datetime" else (low // 1, high // 1)


def _bounded(column: Column, found: Range) -> Column:
    """A derived column with the bounds that follow, where none are stated."""
    low, high = _on_scale(column, found)
    if column.kind == "continuous" and low >= high:
        high = low + max(1.0, abs(low) * 1e-9)
    minimum = _moment(column, low) if column.minimum is None else column.minimum
    maximum = _moment(column, high) if column.maximum is None else column.maximum
    return replace(column, minimum=minimum, maximum=maximum)


def _moment(column: Column, tick: float) -> Bound:
    if column.kind == "date":
        return Date.fromordinal(EPOCH_DAY + int(tick))
    if column.kind == "datetime":
        return EPOCH + int(tick) * MICROSECOND
    return float(tick) if column.kind == "continuous" else int(tick)
