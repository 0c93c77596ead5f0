"""Expressions over the columns of a table, as data: read once, evaluated without running code.

    departure % 100 < 60          total == a + b          not (pregnant and sex == "male")

The language is arithmetic, comparison and logic over columns, numbers, texts and a fixed list of
functions (`expression_trees` has its grammar). It reaches nothing else, so that a text from
anybody can be read and evaluated; numbers are floats, so that no power exhausts memory. Nulls
propagate: what is made of a null is null, as is what is no finite number (1 / 0), and logic has
three values (`False and null` is False). Each row is read by itself.

True and False count as 1 and 0 among numbers, dates as days since 1970, and categories are only
equal or not. Values of 2^53 and more are as exact as floats are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.errors import CounterpoiseError, SchemaError
from counterpoise.schema.expression_trees import (
    COMPARE,
    RANKS,
    Call,
    Chain,
    Listed,
    Name,
    Node,
    Number,
    Prefixed,
    Reader,
    Text,
    Truth,
    names,
    written,
)

# The functions of numbers, with the number of their arguments.
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, getattr(np, name)) for name in ("abs", "ceil", "floor", "round", "sign", "sqrt")},
    **{name: (1, getattr(np, name)) for name in ("exp", "exp2", "expm1")},
    **{name: (1, getattr(np, name)) for name in ("log", "log10", "log1p", "log2")},
    "max": (2, np.maximum),
    "min": (2, np.minimum),
}
# They look at more than numbers: at nulls, and at a text.
IS_NULL, DATE = "is_null", "date"

_LOGIC = {"and": False, "or": True}  # which value decides whatever the others are
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, eq=False)
class Values:
    """Values of the kind "number", "truth" or "label", and which of them are not null."""

    kind: str
    values: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, column: Any) -> Values:
        """A column by its dtype; what is no number, truth or date is a label."""
        series = pd.Series(column)
        known = series.notna().to_numpy()
        if not isinstance(series.dtype, pd.CategoricalDtype):
            if pd.api.types.is_bool_dtype(series.dtype):
                return cls("truth", series.to_numpy(dtype=bool, na_value=False), known)
            if pd.api.types.is_numeric_dtype(series.dtype):
                return numbers(series.to_numpy(dtype=float, na_value=np.nan), known)
            if pd.api.types.is_datetime64_any_dtype(series.dtype):
                if series.dt.tz is not None:
                    series = series.dt.tz_convert("UTC").dt.tz_localize(None)
                ticks = series.to_numpy(dtype="datetime64[us]").astype(np.int64)
                return numbers(ticks / 86_400e6, known)
        labels = series.to_numpy(dtype=object, copy=True)
        labels[~known] = None
        return cls("label", labels, known)


@dataclass(frozen=True)
class Expression:
    """An expression that was read: a tree, the columns it needs, and its values in a table."""

    tree: Node
    error: type[CounterpoiseError] = field(default=SchemaError, repr=False, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs, in the order in which they are named."""
        return tuple(dict.fromkeys(names(self.tree)))

    def evaluate(self, table: Any) -> Values:
        """Its value in every row of a frame, or of a mapping from names to arrays."""
        missing = [name for name in self.columns if name not in table]
        if missing:
            raise self.error(f"expression: the table has no column {missing[0]!r}")
        first = table if isinstance(table, pd.DataFrame) else next(iter(table.values()), ())
        try:
            found = evaluate(self.tree, lambda name: Values.of(table[name]))
        except NotComputed as reason:
            raise self.error(f"expression: {str(self)!r} cannot be computed: {reason}") from None
        shape = (len(first),)
        return Values(
            found.kind, np.broadcast_to(found.values, shape), np.broadcast_to(found.known, shape)
        )

    def __str__(self) -> str:
        return written(self.tree)


def parse(text: str, error: type[CounterpoiseError] = SchemaError) -> Expression:
    """Read an expression, or say where it cannot be read.

    >>> rule = parse("not (pregnant and sex == 'male')")
    >>> rule.columns
    ('pregnant', 'sex')
    >>> table = pd.DataFrame({"pregnant": [True, True], "sex": ["male", "female"]})
    >>> rule.evaluate(table).values
    array([False,  True])
    """
    reader = Reader(text, "expression", error, (*FUNCTIONS, IS_NULL, DATE))
    tree = reader.expression()
    reader.expect_end()
    return Expression(tree, error)


class NotComputed(Exception):
    """What an expression asks for has no meaning: the root of text, the order of categories."""


def numbers(values: Any, known: Any) -> Values:
    """Numbers; those that are not finite are null."""
    found = np.asarray(values, dtype=float)
    known = np.isfinite(found) & known
    return Values("number", np.where(known, found, np.nan), known)


def evaluate(
    node: Node,
    column: Callable[[str], Values],
    own: Callable[[Call], Values | None] = lambda call: None,
) -> Values:
    """The values of a tree; `own` may answer a call in a way of its own. Raises NotComputed."""

    def go(part: Node) -> Values:
        return evaluate(part, column, own)

    if isinstance(node, Name):
        return column(node.name)
    if isinstance(node, Number):
        return numbers(node.value, True)
    if isinstance(node, Truth):
        return Values("truth", np.asarray(node.value), np.asarray(True))
    if isinstance(node, Text):
        return Values("label", np.asarray(node.value, dtype=object), np.asarray(True))
    if isinstance(node, Listed):
        raise NotComputed("values in brackets stand after 'in' or in an option")
    if isinstance(node, Call):
        found = own(node)
        return _called(node, go) if found is None else found
    with np.errstate(all="ignore"):
        if isinstance(node, Prefixed):
            operand = go(node.operand)
            if node.operator == "-":
                return numbers(-_as_numbers(operand), operand.known)
            return Values("truth", ~_as_truths(operand), operand.known)
        if node.operators[0] in _LOGIC:
            return _decided([go(part) for part in node.operands], _LOGIC[node.operators[0]])
        if RANKS[node.operators[0]] == COMPARE:
            return _compared(node, go)
        total = go(node.operands[0])
        for operator, part in zip(node.operators, node.operands[1:], strict=True):
            right = go(part)
            made = _ARITHMETIC[operator](_as_numbers(total), _as_numbers(right))
            total = numbers(made, total.known & right.known)
        return total


def _called(call: Call, go: Callable[[Node], Values]) -> Values:
    name = call.function.removeprefix("np.")
    count, function = FUNCTIONS.get(name, (1, None))
    if len(call.arguments) != count or call.options:
        raise NotComputed(f"{call.function} takes {count} argument{'s' * (count > 1)}, no options")
    if name == DATE:
        return _date(call.arguments[0])
    found = [go(part) for part in call.arguments]
    if name == IS_NULL:
        return Values("truth", ~found[0].known, np.ones_like(found[0].known))
    if function is None:
        raise NotComputed(f"{call.function} cannot stand within an expression")
    with np.errstate(all="ignore"):
        made = function(*(_as_numbers(each) for each in found))
    return numbers(made, reduce(np.logical_and, (each.known for each in found)))


def _date(node: Node) -> Values:
    try:
        moment = datetime.fromisoformat(node.value if isinstance(node, Text) else "")
    except ValueError:
        raise NotComputed("date expects a text such as '2020-12-31'") from None
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return numbers((moment - datetime(1970, 1, 1)).total_seconds() / 86_400, True)


def _compared(node: Chain, go: Callable[[Node], Values]) -> Values:
    """Each pair of neighbours compared, and all of them true: `0 <= a < b`."""
    found = []
    left = go(node.operands[0])
    for operator, part in zip(node.operators, node.operands[1:], strict=True):
        if isinstance(part, Listed):
            same = [_pair("==", left, go(member)) for member in part.members]
            nothing = Values("truth", np.zeros_like(left.known), left.known)
            within = _decided([nothing, *same], decisive=True)
            is_in = operator == "in"
            found.append(within if is_in else Values("truth", ~within.values, within.known))
            continue
        right = go(part)
        found.append(_pair(operator, left, right))
        left = right
    return found[0] if len(found) == 1 else _decided(found, decisive=False)


def _pair(operator: str, left: Values, right: Values) -> Values:
    known = left.known & right.known
    if "label" not in (left.kind, right.kind):
        made = _COMPARISONS[operator](_as_numbers(left), _as_numbers(right))
        return Values("truth", np.asarray(made, dtype=bool), known)
    if operator not in ("==", "!="):
        raise NotComputed("categories and texts have no order; compare them by == or !=")
    sides = (np.asarray(each.values, dtype=object) for each in (left, right))
    made = np.asarray(np.equal(*sides, dtype=object), dtype=bool)
    return Values("truth", made if operator == "==" else ~made, known)


def _decided(found: list[Values], decisive: bool) -> Values:
    """Logic of three values: one that decides makes up for nulls (S. C. Kleene, 1952)."""
    pairs = [(_as_truths(each), each.known) for each in found]
    decided = reduce(np.logical_or, ((truths == decisive) & known for truths, known in pairs))
    known = decided | reduce(np.logical_and, (known for _, known in pairs))
    return Values("truth", np.where(decided, decisive, not decisive), known)


def _as_numbers(found: Values) -> np.ndarray:
    if found.kind == "label":
        raise NotComputed("a category or a text is no number")
    return np.asarray(found.values, dtype=float)


def _as_truths(found: Values) -> np.ndarray:
    if found.kind == "label":
        raise NotComputed("a category or a text is neither true nor false")
    return np.asarray(found.values).astype(bool) & found.known
