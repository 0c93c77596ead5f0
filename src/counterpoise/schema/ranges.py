"""The range of an expression, from the ranges of its columns: arithmetic of intervals.

What comes out holds every value that the expression can have, and sometimes more: a column that
is named twice counts as two. The ends are computed by the operations that compute the values; these
round monotonously, so that no value lies outside. Functions that may round otherwise get a little
room. A result that is no finite number is null, so a range says too whether nulls are possible.
(R. E. Moore, Interval Analysis, 1966.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from counterpoise.schema.expression_trees import (
    COMPARE,
    RANKS,
    Call,
    Chain,
    Name,
    Node,
    Number,
    Prefixed,
    Truth,
    names,
)
from counterpoise.schema.expressions import DATE, FUNCTIONS, IS_NULL, Values, evaluate

# How far a function of the standard library may be off, as a part of its value; a generous bound.
_ROOM = 1e-12
_EXACT = ("abs", "ceil", "floor", "round", "sign")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


@dataclass(frozen=True)
class Range:
    """All values from `low` to `high`, and whether there may be none."""

    low: float
    high: float
    nullable: bool = False

    @property
    def is_finite(self) -> bool:
        """Whether both ends are numbers."""
        return math.isfinite(self.low) and math.isfinite(self.high)


_ANYTHING = Range(-math.inf, math.inf, True)


def range_of(node: Node, column: Callable[[str], Range]) -> Range:
    """The range of a tree; truths lie between 0 and 1, and the range of a text says nothing.

    >>> from counterpoise.schema.expressions import parse
    >>> range_of(parse("2 * a - b").tree, lambda name: Range(0, 10))
    Range(low=-10.0, high=20.0, nullable=False)
    """
    if isinstance(node, Name):
        return column(node.name)
    if isinstance(node, Number | Truth):
        return Range(float(node.value), float(node.value))
    if isinstance(node, Call):
        return _called(node, column)
    if isinstance(node, Prefixed):
        found = range_of(node.operand, column)
        if node.operator == "-":
            return Range(-found.high, -found.low, found.nullable)
        return Range(0.0, 1.0, found.nullable)
    if not isinstance(node, Chain):
        return Range(0.0, 1.0)
    parts = [range_of(part, column) for part in node.operands]
    if RANKS[node.operators[0]] <= COMPARE:
        return Range(0.0, 1.0, any(part.nullable for part in parts))
    total = parts[0]
    for operator, part in zip(node.operators, parts[1:], strict=True):
        nullable = total.nullable or part.nullable
        with np.errstate(all="ignore"):
            made = _combined(operator, total, part)
        total = replace(made, nullable=made.nullable or nullable or not made.is_finite)
    return total


def narrowed(found: Range, name: str, tree: Node, checks: Iterable[Node]) -> Range:
    """The range of a derived column whose rows obey checks, as far as they say it in so many words.

    >>> from counterpoise.schema.expressions import parse
    >>> stay, check = parse("end - start").tree, parse("end >= start").tree
    >>> narrowed(Range(-9, 9), "stay", stay, [check])
    Range(low=0.0, high=9, nullable=False)
    """
    for part in _conjuncts(checks):
        if _says_not_null(part, name):
            found = replace(found, nullable=False)
        for left, operator, right in _pairs(part):
            for one, sign, other in ((left, operator, right), (right, _MIRRORED[operator], left)):
                bound = _bound(name, tree, one, other)
                if bound is None:
                    continue
                if sign in (">", ">=", "=="):
                    found = replace(found, low=max(found.low, bound))
                if sign in ("<", "<=", "=="):
                    found = replace(found, high=min(found.high, bound))
    return found


def _bound(name: str, tree: Node, one: Node, other: Node) -> float | None:
    """The number that `one`, if it is the column, is compared with; 0 where it is a difference."""
    if one in (Name(name), tree) and next(names(other), None) is None:
        constant = range_of(other, lambda _: _ANYTHING)
        return constant.low if constant.low == constant.high else None
    return 0.0 if tree == Chain(("-",), (one, other)) else None


def _conjuncts(checks: Iterable[Node]) -> Iterator[Node]:
    for check in checks:
        if isinstance(check, Chain) and check.operators[0] == "and":
            yield from _conjuncts(check.operands)
        else:
            yield check


def _pairs(node: Node) -> Iterator[tuple[Node, str, Node]]:
    if isinstance(node, Chain) and RANKS[node.operators[0]] == COMPARE:
        for place, operator in enumerate(node.operators):
            if operator in _MIRRORED:
                yield node.operands[place], operator, node.operands[place + 1]


def _says_not_null(node: Node, name: str) -> bool:
    return node == Prefixed("not", Call(IS_NULL, (Name(name),)))


def _combined(operator: str, left: Range, right: Range) -> Range:
    if operator == "+":
        return Range(left.low + right.low, left.high + right.high)
    if operator == "-":
        return Range(left.low - right.high, left.high - right.low)
    if operator == "*":
        return _corners(np.multiply, left, right)
    if operator == "**":
        return _power(left, right)
    if right.low <= 0 <= right.high:
        # What is divided by zero is null; by hardly more than zero, it is very large.
        ends = (min(right.low, 0.0), max(right.high, 0.0)) if operator == "%" else None
        return _ANYTHING if ends is None else Range(*ends, nullable=True)
    if operator in ("/", "//"):
        if not (left.is_finite and right.is_finite):
            return _ANYTHING
        return _corners(np.divide if operator == "/" else np.floor_divide, left, right)
    if left.low >= 0 and left.high < right.low:
        return left
    # A remainder has the sign of what is divided by.
    return Range(min(right.low, 0.0), max(right.high, 0.0))


def _corners(operation: Callable[..., float], left: Range, right: Range) -> Range:
    found = [
        float(operation(one, other))
        for one in (left.low, left.high)
        for other in (right.low, right.high)
    ]
    # Nothing times infinity: the infinity stands for a large number.
    found = [0.0 if math.isnan(each) else each for each in found]
    return Range(min(found), max(found))


def _power(left: Range, right: Range) -> Range:
    exponent = right.low
    is_whole = exponent == right.high and exponent >= 0 and exponent % 1 == 0
    if not is_whole and (left.low < 0 or (left.low == 0 and exponent <= 0)):
        return _ANYTHING
    found = _corners(np.power, left, right)
    if is_whole and exponent % 2 == 0 and exponent > 0 and left.low < 0 < left.high:
        found = replace(found, low=0.0)
    return _with_room(found)


def _called(call: Call, column: Callable[[str], Range]) -> Range:
    name = call.function.removeprefix("np.")
    if name == DATE:
        day = float(evaluate(call, Values.of).values)
        return Range(day, day)
    if name == IS_NULL:
        return Range(0.0, 1.0)
    parts = [range_of(part, column) for part in call.arguments]
    nullable = any(part.nullable for part in parts)
    function = FUNCTIONS[name][1]
    with np.errstate(all="ignore"):
        if len(parts) > 1:
            ends = [(part.low, part.high) for part in parts]
            low, high = (float(function(*each)) for each in zip(*ends, strict=True))
            return Range(low, high, nullable)
        [part] = parts
        if name == "abs" and part.low < 0:
            return Range(max(0.0, -part.high), max(-part.low, part.high), nullable)
        least = {"sqrt": 0.0, "log1p": -1.0, "log": 0.0, "log2": 0.0, "log10": 0.0}.get(name)
        if least is not None and part.low < least:
            # There is no root, and no logarithm, of what lies below.
            part, nullable = Range(least, max(least, part.high)), True
        low, high = float(function(part.low)), float(function(part.high))
    found = Range(low, high) if name in _EXACT else _with_room(Range(low, high))
    return replace(found, nullable=nullable or not found.is_finite)


def _with_room(found: Range) -> Range:
    return replace(
        found,
        low=found.low - _ROOM * abs(found.low),
        high=found.high + _ROOM * abs(found.high),
    )
