"""From terms to the columns of a matrix, the same for new rows as for those learnt from.

A factor of categories holds the intercept, so that `1 + ward` would say the same thing twice.
Each term is therefore split into the parts that its factors span, those spanned before are left
out, and the rest is put together again with as few reduced factors as possible: the method of
patsy and formulaic (N. J. Smith, "From design matrices to linear models", patsy's documentation).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from counterpoise.errors import AnalysisError
from counterpoise.formulas.bases import Basis, BSplines, Scaling, learn_basis
from counterpoise.formulas.contrasts import Coding, learn_coding
from counterpoise.formulas.row_sums import row_blocks
from counterpoise.formulas.terms import BASES, SCALES, Factor, Term
from counterpoise.schema.expression_trees import Call, Name, Node, written
from counterpoise.schema.expressions import NotComputed, Values, evaluate, numbers

INTERCEPT = "Intercept"
MOST_FEATURES = 5000
MOST_CELLS = 100_000_000
# More factors of categories in one product than this are a slip.
MOST_CROSSED = 8

# A factor by its name, and whether it is reduced; a part of the space that a term spans.
Scoped = tuple[str, bool]
Part = tuple[Scoped, ...]


@dataclass(frozen=True, eq=False)
class Learnt:
    """A factor with all that it learnt from rows: scales, and a coding or a basis."""

    factor: Factor
    coding: Coding | None
    basis: Basis | None
    scales: dict[str, Scaling] = field(repr=False)

    @property
    def spans_intercept(self) -> bool:
        """Whether its features can be added up to one."""
        if isinstance(self.basis, BSplines):
            return self.basis.include_intercept
        return self.coding is not None

    def held(self) -> Learnt:
        """The factor with a spline that holds values at its bounds, not one that refuses them."""
        if getattr(self.basis, "beyond", "") != "raise":
            return self
        return replace(self, basis=replace(self.basis, beyond="clip"))  # type: ignore[type-var]

    def names(self, reduced: bool) -> list[str]:
        """The names of its features."""
        labels: tuple[str, ...]
        if self.coding is not None:
            labels = self.coding.labels(reduced)
        elif self.basis is not None:
            labels = self.basis.labels[int(reduced) :]
        else:
            return [self.factor.name]
        return [f"{self.factor.name}[{label}]" for label in labels]

    def features(self, frame: pd.DataFrame, reduced: bool) -> np.ndarray:
        """Rows x features; NaN where there is no value."""
        found = _values(_argument(self.factor.tree), frame, self.scales)
        if self.coding is not None:
            return self.coding.features(found.values, reduced)
        x = np.asarray(found.values, dtype=float)
        if self.basis is None:
            return x[:, None]
        return self.basis.features(x)[:, int(reduced) :]


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns of a matrix: parts of terms, each a product of the features of its factors."""

    factors: dict[str, Learnt]
    parts: tuple[tuple[Part, float], ...]  # with the scale of their terms

    @classmethod
    def learn(cls, terms: Sequence[Term], frame: pd.DataFrame) -> Layout:
        """The layout of terms, from rows without nulls."""
        factors: dict[str, Learnt] = {}
        for term in terms:
            for factor in term.factors:
                if factor.name not in factors:
                    factors[factor.name] = _learn(factor, frame)
        spanned: set[frozenset[Scoped]] = set()
        parts: list[tuple[Part, float]] = []
        for term in terms:
            span = [each for each in _span(term, factors) if frozenset(each) not in spanned]
            spanned.update(map(frozenset, span))
            parts += [(part, term.scale) for part in _simplified(span)]
        return cls(factors, tuple(parts))

    def held(self) -> Layout:
        """The layout whose splines hold values at their bounds where they would refuse others.

        For rows that nothing may be said of, an error the least.
        """
        return Layout({name: learnt.held() for name, learnt in self.factors.items()}, self.parts)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name for part, _ in self.parts for name in self._names(part)]

    def check(self, rows: int) -> None:
        """Refuse a matrix that is too large, or whose columns cannot be told apart by name."""
        count = sum(self._count(part) for part, _ in self.parts)
        if count > MOST_FEATURES or count * rows > MOST_CELLS:
            raise AnalysisError(
                f"formula: it makes {count:,} features of {rows:,} rows; take columns of fewer "
                "categories or fewer products of them, or a part of the rows (release.part)"
            )
        names = self.names
        twice = [name for name in names if names.count(name) > 1] if count < 500 else []
        if len(set(names)) < count:
            raise AnalysisError(
                f"formula: two features are called {(twice or ['the same'])[0]!r}; rename a column"
            )

    def matrix(self, frame: pd.DataFrame) -> np.ndarray:
        """Rows x columns; NaN where a factor has no value."""
        made = np.empty((len(frame), sum(self._count(part) for part, _ in self.parts)))
        for some in row_blocks(len(frame)):
            self._fill(made[some], frame.iloc[some])
        return made

    def _fill(self, made: np.ndarray, frame: pd.DataFrame) -> None:
        """The columns of some rows; a row's depend on nothing but itself and what was learnt."""
        features = {
            scoped: self.factors[scoped[0]].features(frame, scoped[1])
            for scoped in {scoped for part, _ in self.parts for scoped in part}
        }
        start = 0
        for part, scale in self.parts:
            whole = np.full((len(frame), 1), scale)
            for scoped in part:
                # The first factor's features change fastest.
                own = features[scoped]
                shape = (len(frame), own.shape[1] * whole.shape[1])
                whole = (own[:, :, None] * whole[:, None, :]).reshape(shape)
            made[:, start : start + whole.shape[1]] = whole
            start += whole.shape[1]

    def _names(self, part: Part) -> list[str]:
        if not part:
            return [INTERCEPT]
        own = [self.factors[name].names(reduced) for name, reduced in part]
        return [":".join(reversed(each)) for each in itertools.product(*reversed(own))]

    def _count(self, part: Part) -> int:
        count = 1
        for name, reduced in part:
            count *= len(self.factors[name].names(reduced))
        return count


def _span(term: Term, factors: dict[str, Learnt]) -> Iterable[Part]:
    """The parts that a term spans: a factor that holds the intercept is one reduced, or none."""
    choices: list[tuple[Part, ...]] = []
    for factor in term.factors:
        if factors[factor.name].spans_intercept:
            choices.append((((factor.name, True),), ()))
        else:
            choices.append((((factor.name, False),),))
    if sum(len(each) == 2 for each in choices) > MOST_CROSSED:
        raise AnalysisError(
            f"formula: a product has more than {MOST_CROSSED} factors of categories"
        )
    for chosen in itertools.product(*choices):
        yield tuple(itertools.chain(*chosen))


def _simplified(parts: Iterable[Part]) -> list[Part]:
    """The fewest parts that span the same: anything:reduced + anything is anything:full."""
    kept: list[Part] = []
    for part in sorted(parts, key=len):
        for existing in kept:
            extra = set(part) - set(existing)
            if len(part) - 1 != len(existing) or len(extra) != 1:
                continue
            (new,) = extra
            if new[1]:
                merged = tuple((new[0], False) if each == new else each for each in part)
                kept = _simplified([*(each for each in kept if each is not existing), merged])
                break
        else:
            kept.append(part)
    return kept


def _learn(factor: Factor, frame: pd.DataFrame) -> Learnt:
    tree, scales = factor.tree, dict[str, Scaling]()
    argument = _argument(tree)
    found = _values(argument, frame, scales)
    if not found.known.all():
        raise NotComputed(f"{written(argument)} has no value in some of the rows")
    is_column = isinstance(argument, Name)
    if isinstance(tree, Call) and tree.function == "C":
        coding = learn_coding(tree, _levels(argument, found, frame))
        return Learnt(factor, coding, None, scales)
    if found.kind == "label":
        if not isinstance(tree, Name):
            name = tree.function if isinstance(tree, Call) else written(tree)
            raise NotComputed(f"{name} is of numbers, and {written(argument)} has categories")
        return Learnt(factor, Coding(_levels(tree, found, frame)), None, scales)
    if isinstance(tree, Call) and tree.function in BASES:
        values = np.asarray(found.values, dtype=float)
        return Learnt(factor, None, learn_basis(tree, values), scales)
    assert is_column or isinstance(tree, Call)
    return Learnt(factor, None, None, scales)


def _argument(tree: Node) -> Node:
    """What a function that makes several features is of; another tree is its own argument."""
    if isinstance(tree, Call) and tree.function in (*BASES, "C", "I"):
        if not tree.arguments or (tree.function == "I" and len(tree.arguments) > 1):
            raise NotComputed(f"{tree.function} is of one argument")
        if tree.function == "I" and tree.options:
            raise NotComputed("I takes no options")
        return tree.arguments[0]
    return tree


def _values(tree: Node, frame: pd.DataFrame, scales: dict[str, Scaling]) -> Values:
    """The values of an expression, in which scales are those that were learnt, or learn now."""

    def own(call: Call) -> Values | None:
        if call.function == "I" and len(call.arguments) == 1 and not call.options:
            return _values(call.arguments[0], frame, scales)
        if call.function not in SCALES:
            return None
        if not call.arguments:
            raise NotComputed(f"{call.function} is of a column")
        inner = _values(call.arguments[0], frame, scales)
        if inner.kind == "label":
            raise NotComputed(f"{call.function} is of numbers, and this has categories")
        x = np.broadcast_to(np.asarray(inner.values, dtype=float), (len(frame),))
        key = written(call)
        if key not in scales:
            if not np.all(inner.known):
                raise NotComputed(f"{written(call.arguments[0])} has no value in some of the rows")
            scales[key] = Scaling.learn(call, x)
        return numbers(scales[key].apply(x), inner.known)

    found = evaluate(tree, lambda name: Values.of(frame[name]), own)
    shape = (len(frame),)
    return Values(
        found.kind, np.broadcast_to(found.values, shape), np.broadcast_to(found.known, shape)
    )


def _levels(tree: Node, found: Values, frame: pd.DataFrame) -> tuple[object, ...]:
    """The categories of a column in their order, or the different values of an expression."""
    if isinstance(tree, Name) and isinstance(frame[tree.name].dtype, pd.CategoricalDtype):
        return tuple(frame[tree.name].cat.categories)
    if found.kind == "label":
        raise NotComputed(f"{written(tree)} is no column")
    return tuple(np.unique(found.values).tolist())
