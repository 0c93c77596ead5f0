"""Formulas as terms: which products of which factors a model has.

The notation is that of G. N. Wilkinson and C. E. Rogers ("Symbolic description of factorial
models for analysis of variance", 1973), as R and formulaic have it: `a + b`, `a:b` (the product),
`a * b` for `a + b + a:b`, `a / b` for `a + a:b`, `(a + b) ** 2` for products of up to two, `- a`
to take out, and an intercept that `0` or `- 1` takes out. A factor is a column, or a function of
columns that is read as an expression, so that nothing in a formula is run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

from counterpoise.arguments import shown
from counterpoise.errors import AnalysisError
from counterpoise.schema.expression_trees import Call, Name, Node, Reader, parts, written
from counterpoise.schema.expressions import FUNCTIONS

# A formula of more terms than this is a slip, such as a power of many columns.
MOST_TERMS = 2000
MOST_FACTORS = 20
MOST_PRODUCTS = 20_000  # that are made on the way

# Functions that look at a whole column: they stand alone, and around expressions.
BASES = ("bs", "cc", "cr", "cs", "poly")
SCALES = ("center", "scale", "standardize")
CONTRASTS = {
    **{name: name.lower() for name in ("Treatment", "Sum", "Helmert", "Diff", "Poly")},
    **{f"contr.{name}": name.lower() for name in ("treatment", "sum", "helmert", "diff", "poly")},
    "contr.SAS": "sas",
}
_CALLED = (
    *FUNCTIONS,
    *(f"np.{name}" for name in FUNCTIONS),
    *BASES,
    *SCALES,
    *CONTRASTS,
    *("C", "I"),
)
_RANKS = {"+": 1, "-": 1, "*": 2, "/": 2, ":": 3, "**": 5, "^": 5}
_REFUSED = {
    "|": "formulas of several parts, by '|', are not for these models",
    "%": "write 'b / a' or 'a:b' in the place of %in%",
    "[": "there are no subscripts in a formula",
    ".": "'.' stands alone, for all columns that are not the target",
}


@dataclass(frozen=True)
class Factor:
    """A part of a product: its tree, and its name."""

    tree: Node = field(compare=False)
    name: str

    @classmethod
    def of(cls, tree: Node) -> Factor:
        """A factor with the name that its terms will have."""
        return cls(tree, tree.name if isinstance(tree, Name) else written(tree))


@dataclass(frozen=True)
class Term:
    """A product of different factors; none is the intercept. `scale` multiplies it."""

    factors: tuple[Factor, ...]
    scale: float = 1.0

    @property
    def key(self) -> frozenset[str]:
        """What tells it from others: its factors in any order, and its scale."""
        return frozenset(factor.name for factor in self.factors) | (
            {f"{self.scale!r}:"} if self.scale != 1 else set()
        )

    def times(self, other: Term) -> Term:
        """The product, in which a factor stands once."""
        return Term(tuple(dict.fromkeys(self.factors + other.factors)), self.scale * other.scale)


INTERCEPT = Term(())


def read_terms(formula: str, columns: tuple[str, ...]) -> tuple[list[Term], list[Term]]:
    """The terms left and right of "~", in the order of their degrees.

    >>> left, right = read_terms("y ~ a * b - 1", ("y", "a", "b"))
    >>> [[factor.name for factor in term.factors] for term in right]
    [['a'], ['b'], ['a', 'b']]
    """
    reader = _FormulaReader(formula, columns)
    target: dict[frozenset[str], Term] = {}
    if not reader.skip("~"):
        target = reader.sum()
        if reader.next.kind == "end":
            target = {}
        else:
            reader.expect("~")
    if not target:
        raise AnalysisError(
            f"formula: expected a target and features, 'y ~ x', not {shown(formula)}"
        )
    reader.used = {name for term in target.values() for name in columns_of([term])}
    features = reader.sum(_keyed([INTERCEPT]))
    reader.expect_end()
    return reader.checked(target), reader.checked(features)


def columns_of(terms: Iterable[Term]) -> set[str]:
    """The columns that terms need."""
    return {
        name for term in terms for factor in term.factors for name in factor_columns(factor.tree)
    }


def factor_columns(tree: Node) -> set[str]:
    """The columns that a factor needs; the options of a function name none."""
    if isinstance(tree, Name):
        return {tree.name}
    if isinstance(tree, Call):
        takes_options = tree.function in (*BASES, *SCALES, "C")
        inner = tree.arguments[:1] if takes_options else tree.arguments
        return {name for part in inner for name in factor_columns(part)}
    return {name for part in parts(tree) for name in factor_columns(part)}


class _FormulaReader(Reader):
    """Reads sums and products of factors; arguments of functions are read as expressions."""

    def __init__(self, formula: str, columns: tuple[str, ...]):
        super().__init__(formula, "formula", AnalysisError, _CALLED)
        self.columns = columns
        self.used: set[str] = set()
        self.products = 0

    def sum(self, begun: dict[frozenset[str], Term] | None = None) -> dict[frozenset[str], Term]:
        """Read terms with "+" and "-" between them, and add them to those begun with."""
        self.deeper()
        terms = dict(begun or {})
        while True:
            adds = True
            while self.next.text in ("+", "-") and self.next.kind == "operator":
                adds ^= self.advance().text == "-"
            is_zero = self.next.kind == "number" and self.next.text == "0"
            if is_zero:
                # `+ 0` takes the intercept out, as `- 1` does.
                self.advance()
                found, adds = _keyed([INTERCEPT]), not adds
            else:
                found = self.product(1)
            for key, term in found.items():
                if adds:
                    terms.setdefault(key, term)
                else:
                    terms.pop(key, None)
            if len(terms) > MOST_TERMS:
                self.refuse(f"the formula has more than {MOST_TERMS:,} terms")
            if not (self.next.kind == "operator" and self.next.text in ("+", "-")):
                break
        self.depth -= 1
        return terms

    def product(self, above: int) -> dict[frozenset[str], Term]:
        """Read terms joined by operators whose rank is above this."""
        self.deeper()
        left = self._atom()
        while self.next.kind == "operator" and _RANKS.get(self.next.text, 0) > above:
            operator = self.advance().text
            if operator in ("**", "^"):
                left = self._power(left)
                continue
            right = self.product(_RANKS[operator])
            crossed = self._crossed(left, right) if operator != "/" else []
            if operator == ":":
                left = _keyed(crossed)
            elif operator == "*":
                left = _keyed([*left.values(), *right.values(), *crossed])
            else:
                common = _keyed([reduce(Term.times, left.values(), INTERCEPT)])
                left = _keyed([*left.values(), *self._crossed(common, right)])
        self.depth -= 1
        return left

    def checked(self, terms: dict[frozenset[str], Term]) -> list[Term]:
        """The terms by degree; a number may only multiply other factors, and in one way."""
        seen = set()
        for term in terms.values():
            names = frozenset(factor.name for factor in term.factors)
            if (not names and term.scale != 1) or names in seen:
                raise AnalysisError(
                    "formula: a number other than 0 and 1 can only multiply a term, by ':'; write "
                    "arithmetic within I(...)"
                )
            seen.add(names)
        return sorted(terms.values(), key=lambda term: len(term.factors))

    def _power(self, base: dict[frozenset[str], Term]) -> dict[frozenset[str], Term]:
        token = self.advance()
        if token.kind != "number" or not token.text.isdigit() or not int(token.text[:9]) >= 1:
            self.refuse("expected a whole number after the power", token)
        # No product has more factors than the terms have, so a higher power adds none.
        made = base
        for _ in range(min(int(token.text[:9]), len(base)) - 1):
            made = _keyed(self._crossed(made, base))
        return made

    def _atom(self) -> dict[frozenset[str], Term]:
        token = self.next
        if token.kind == "operator":
            if token.text == ".":
                self.advance()
                others = [name for name in self.columns if name not in self.used]
                return _keyed(Term((Factor.of(Name(name)),)) for name in others)
            if self.skip("("):
                inner = self.sum()
                self.expect(")")
                return inner
            if token.text in _REFUSED:
                self.refuse(_REFUSED[token.text])
            self.refuse("expected a column or a function")
        if token.kind == "number":
            self.advance()
            number = float(token.text)
            if not 0 < number < 1e300:
                self.refuse("expected a positive number", token)
            return _keyed([Term((), number)])
        if token.kind in ("end", "text"):
            self.refuse("expected a column or a function")
        tree = self._operand(0)
        assert isinstance(tree, Name | Call)
        return _keyed([Term((Factor.of(tree),))])

    def expect_end(self) -> None:
        """Make sure that all was read, and say what is meant to be written otherwise."""
        if self.next.kind == "operator" and self.next.text in _REFUSED:
            self.refuse(_REFUSED[self.next.text])
        super().expect_end()

    def _crossed(
        self, left: dict[frozenset[str], Term], right: dict[frozenset[str], Term]
    ) -> list[Term]:
        self.products += len(left) * len(right)
        if self.products > MOST_PRODUCTS:
            self.refuse(f"the formula has more than {MOST_TERMS:,} terms")
        made = [one.times(two) for one in left.values() for two in right.values()]
        if any(len(term.factors) > MOST_FACTORS for term in made):
            self.refuse(f"a product has more than {MOST_FACTORS} factors")
        return made


def _keyed(terms: Iterable[Term]) -> dict[frozenset[str], Term]:
    found: dict[frozenset[str], Term] = {}
    for term in terms:
        found.setdefault(term.key, term)
    return found
