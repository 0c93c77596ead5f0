"""Expressions as trees: read from a text by a small grammar, written back, and nothing run.

The grammar has operators, calls of functions that are on a list, lists in brackets, and operands:
numbers, texts, True, False and the names of columns. It has no attributes and no subscripts; a
name may hold dots (`a.b`), and any other is quoted (`` `first name` ``), with a backslash before a
backtick in it. Length and depth are limited, and operators of one rank make one flat node, so
that no text can exhaust the stack. What a tree means is for `expressions` to say, and for
formulas, which read theirs by the same reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from counterpoise.errors import CounterpoiseError

LONGEST = 20_000
DEEPEST = 30
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

_NOT, COMPARE, _MINUS, _RAISE = 3, 4, 7, 8
RANKS = {
    "or": 1,
    "and": 2,
    "in": COMPARE,
    "not in": COMPARE,
    **dict.fromkeys(COMPARISONS, COMPARE),
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "//": 6,
    "%": 6,
    "**": _RAISE,
}
_WORDS = ("and", "or", "not", "in", "True", "False")
_NAME = r"[^\W\d][\w.]*"
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    rf"|(?P<name>{_NAME})"
    r"|`(?P<quoted>(?:[^`\\]|\\[`\\])+)`"
    r"|(?P<text>'(?:[^'\\]|\\['\\])*'|\"(?:[^\"\\]|\\[\"\\])*\")"
    r"|(?P<operator>\*\*|//|==|!=|<=|>=|[-+*/%<>()\[\],=:~^|.])"
)


@dataclass(frozen=True)
class Number:
    """A number as it was written."""

    value: int | float


@dataclass(frozen=True)
class Text:
    """A text in quotes."""

    value: str


@dataclass(frozen=True)
class Truth:
    """True or False."""

    value: bool


@dataclass(frozen=True)
class Name:
    """A column."""

    name: str


@dataclass(frozen=True)
class Listed:
    """Values in brackets: right of `in`, or in an option of a function."""

    members: tuple[Node, ...]


@dataclass(frozen=True)
class Prefixed:
    """An operator before its operand: "-" or "not"."""

    operator: str
    operand: Node


@dataclass(frozen=True)
class Chain:
    """Operands with operators of one rank between them, read from left to right."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]


@dataclass(frozen=True)
class Call:
    """A function of arguments, and options by name."""

    function: str
    arguments: tuple[Node, ...]
    options: tuple[tuple[str, Node], ...] = ()


Node = Number | Text | Truth | Name | Listed | Prefixed | Chain | Call


def names(node: Node) -> Iterator[str]:
    """The columns that a tree names, from left to right."""
    if isinstance(node, Name):
        yield node.name
    for part in parts(node):
        yield from names(part)


def parts(node: Node) -> tuple[Node, ...]:
    """What a node is made of."""
    if isinstance(node, Chain):
        return node.operands
    if isinstance(node, Listed):
        return node.members
    if isinstance(node, Prefixed):
        return (node.operand,)
    if isinstance(node, Call):
        return (*node.arguments, *(value for _, value in node.options))
    return ()


def written(node: Node) -> str:
    """A tree as text, with the spaces and brackets that it needs.

    >>> written(Reader("-(a+1)*2**k<`b c`", "expression", CounterpoiseError, ()).expression())
    '-(a + 1) * 2 ** k < `b c`'
    """
    if isinstance(node, Number | Text | Truth):
        return repr(node.value)
    if isinstance(node, Name):
        if re.fullmatch(_NAME, node.name) and node.name not in _WORDS:
            return node.name
        return "`" + node.name.replace("\\", "\\\\").replace("`", "\\`") + "`"
    if isinstance(node, Listed):
        return f"[{', '.join(map(written, node.members))}]"
    if isinstance(node, Call):
        options = (f"{name}={written(value)}" for name, value in node.options)
        return f"{node.function}({', '.join([*map(written, node.arguments), *options])})"
    if isinstance(node, Prefixed):
        space = " " if node.operator == "not" else ""
        return f"{node.operator}{space}{_bracketed(node.operand, _rank(node))}"
    rank = _rank(node)
    is_power, is_compared = rank == _RAISE, rank == COMPARE
    text = _bracketed(node.operands[0], rank + (is_power or is_compared))
    for operator, operand in zip(node.operators, node.operands[1:], strict=True):
        text += f" {operator} {_bracketed(operand, _MINUS if is_power else rank + 1)}"
    return text


def _rank(node: Node) -> int:
    if isinstance(node, Chain):
        return RANKS[node.operators[0]]
    if isinstance(node, Prefixed):
        return _NOT if node.operator == "not" else _MINUS
    return _RAISE + 1


def _bracketed(node: Node, least: int) -> str:
    return written(node) if _rank(node) >= least else f"({written(node)})"


@dataclass(frozen=True)
class Token:
    """A piece of a text: its kind, what it says, and where it begins."""

    kind: str
    text: str
    start: int


class Reader:
    """Reads a text from left to right: a parser by the ranks of operators (V. R. Pratt, 1973).

    `what` and `error` are what is said to be wrong with a text that cannot be read; `functions`
    are those that may be called.
    """

    def __init__(
        self, text: Any, what: str, error: type[CounterpoiseError], functions: Collection[str]
    ):
        if not isinstance(text, str):
            raise error(f"{what}: expected a text, not a {type(text).__name__}")
        if len(text) > LONGEST:
            raise error(f"{what}: it is longer than {LONGEST:,} characters")
        self.text, self.what, self.error, self.functions = text, what, error, functions
        self.depth = 0
        self.place = 0
        self.tokens = list(self._tokens())

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.place]

    def advance(self) -> Token:
        """Take the next token."""
        token = self.next
        self.place += 1
        return token

    def skip(self, *operators: str) -> bool:
        """Take the next token if it is one of these operators."""
        found = self.next.kind == "operator" and self.next.text in operators
        self.place += found
        return found

    def expect(self, operator: str) -> None:
        """Take an operator that must be there."""
        if not self.skip(operator):
            self.refuse(f"expected {operator!r}")

    def expect_end(self) -> None:
        """Make sure that all was read."""
        if self.next.kind != "end":
            self.refuse("expected an operator")

    def refuse(self, reason: str, token: Token | None = None) -> NoReturn:
        """Say what is wrong, and where."""
        place = (token or self.next).start
        shown = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        raise self.error(
            f"{self.what}: {shown!r} cannot be read at character {place + 1}: {reason}"
        )

    def deeper(self) -> None:
        """Count a step into brackets, operands or arguments; `depth` is set back by the caller."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"it is nested more than {DEEPEST} deep")

    def expression(self, above: int = 0) -> Node:
        """Read an expression of operators whose rank is above this."""
        self.deeper()
        left, rank = self._operand(above), 0
        while (operator := self._operator()) is not None and RANKS[operator] > above:
            self.place += 2 if operator == "not in" else 1
            # A power is read from the right, and its exponent may have a sign.
            right = self.expression(_MINUS if operator == "**" else RANKS[operator])
            if operator.endswith("in") and not isinstance(right, Listed):
                self.refuse("expected values in brackets after 'in'")
            if rank == RANKS[operator] and isinstance(left, Chain):
                left = Chain((*left.operators, operator), (*left.operands, right))
            else:
                left, rank = Chain((operator,), (left, right)), RANKS[operator]
        self.depth -= 1
        return left

    def call(self, name: str) -> Call:
        """Read the arguments of a function whose name and opening bracket were taken."""
        arguments: list[Node] = []
        options: dict[str, Node] = {}
        while not self.skip(")"):
            if (arguments or options) and not self.skip(","):
                self.refuse("expected ',' or ')'")
            named = self.next.kind == "name" and self.tokens[self.place + 1].text == "="
            if named and self.tokens[self.place + 1].kind == "operator":
                option = self.advance()
                self.expect("=")
                if option.text in options:
                    self.refuse(f"the option {option.text!r} is there twice", option)
                options[option.text] = self.expression()
            elif options:
                self.refuse("expected the options after the arguments")
            else:
                arguments.append(self.expression())
        return Call(name, tuple(arguments), tuple(options.items()))

    def _tokens(self) -> Iterator[Token]:
        place = 0
        while place < len(self.text):
            found = _TOKEN.match(self.text, place)
            if found is None:
                self.refuse("this cannot stand here", Token("", "", place))
            kind = found.lastgroup or ""
            if kind != "space":
                said = found[kind]
                if kind in ("quoted", "text"):
                    said = re.sub(r"\\(.)", r"\1", said[1:-1] if kind == "text" else said)
                if kind == "name" and said in _WORDS:
                    kind = "operator"
                yield Token(kind, said, place)
            place = found.end()
        yield Token("end", "", place)

    def _operator(self) -> str | None:
        """The operator between two operands that comes next, if one does."""
        if self.next.kind != "operator":
            return None
        if self.next.text == "not" and self.tokens[self.place + 1].text == "in":
            return "not in"
        return self.next.text if self.next.text in RANKS else None

    def _operand(self, above: int) -> Node:
        token = self.advance()
        if token.kind == "number":
            value = float(token.text)
            if not math.isfinite(value):
                self.refuse("the number is too large", token)
            is_whole = token.text.isdigit() and value < 1e15
            return Number(int(token.text) if is_whole else value)
        if token.kind == "text":
            return Text(token.text)
        if token.kind == "quoted":
            return Name(token.text)
        if token.kind == "name":
            if not self.skip("("):
                return Name(token.text)
            if token.text not in self.functions:
                self.refuse(f"there is no function {token.text[:40]!r}", token)
            return self.call(token.text)
        if token.kind == "operator":
            if token.text in ("True", "False"):
                return Truth(token.text == "True")
            if token.text in ("-", "+"):
                operand = self.expression(_MINUS)
                return operand if token.text == "+" else Prefixed("-", operand)
            if token.text == "not" and above < _NOT + 1:
                return Prefixed("not", self.expression(_NOT))
            if token.text == "(":
                inner = self.expression()
                self.expect(")")
                return inner
            if token.text == "[":
                members: list[Node] = []
                while not self.skip("]"):
                    if members:
                        self.expect(",")
                    members.append(self.expression())
                return Listed(tuple(members))
        self.refuse("expected a column, a number, a text or a function", token)
