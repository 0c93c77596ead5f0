"""The support of a regression's coefficients, and how wide those are that nothing measured.

The score of a main effect is sum x (y - mu): it needs the product of its column with the target,
and with the other terms as far as they share the work. So a coefficient is measured when its
columns and the target were measured together, so was every other term with the target, and each
of its columns with those of the others. An interaction of a and b needs the target, a and b in one
table. A main effect beside its own interaction is the effect where the other is zero, and has the
interaction's support; the intercept has the weakest of all.

A coefficient that was never measured is zero by the model's class, not by the data. What is known
of it is then a prior: N(0, s^2) for a step of the term from one of two values to the other, or of
two standard deviations (A. Gelman, "Scaling regression inputs by dividing by two standard
deviations", 2008), in units of the link. A linear model's outcome is brought to the scale of the
latent one of a logistic model, which has a standard deviation of pi / sqrt(3).
Whatever it is, the other scores stay where they were measured, so that the others would follow:

    d beta_o / d beta_n = -I_oo^-1 I_on        (I the information, o the others, n the unmeasured)

and the same prior widens them as far as they depend on it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from counterpoise.analysis.features import features_of
from counterpoise.analysis.result import Estimate, Symmetric, joined
from counterpoise.analysis.support import (
    IMPLIED,
    MEASURED,
    NEVER,
    UNKNOWN,
    Columns,
    Measured,
    worst,
)
from counterpoise.formulas.layout import Layout
from counterpoise.formulas.matrices import ReadFormula
from counterpoise.formulas.row_sums import row_blocks
from counterpoise.formulas.terms import SCALES, Factor, columns_of, factor_columns
from counterpoise.schema import Schema
from counterpoise.schema.expression_trees import Call, Name, Node

# A step of a coefficient that nothing measured has this deviation, when nobody says: the root mean
# square of the interactions in the regressions of `benchmarks/truth.py` is .74 in logistic models
# (114 of them), and on their scale .49 in linear ones (61).
DEVIATION = 0.75
# A standard deviation of a linear model's outcome, in units of the link of a logistic one.
OF_LOGIT = math.sqrt(3) / math.pi
PRIOR = (
    "what was never measured is allowed a deviation of {:g} a step, and the others what follows "
    "from it"
)


@dataclass(frozen=True)
class Supports:
    """The support of every feature's coefficient, and whether its own columns never were."""

    supports: tuple[str, ...]
    is_assumed: tuple[bool, ...]

    def tiled(self, times: int) -> Supports:
        """The same for so many equations, one after the other."""
        return Supports(self.supports * times, self.is_assumed * times)

    @property
    def at_least_implied(self) -> Supports:
        """The same where something tells of every coefficient."""
        found = tuple(IMPLIED if each == NEVER else each for each in self.supports)
        return Supports(found, (False,) * len(found))


@dataclass(frozen=True)
class _Term:
    """Columns of a term, those used by their values, and the names of its factors."""

    columns: Columns
    linear: Columns
    factors: Columns


def supports_of(measured: Measured, read: ReadFormula, layout: Layout, asked: str = "") -> Supports:
    """The support of the coefficients of a formula, a feature each.

    Where the model was `asked` about in advance, the scores of all of them were summed, which is
    what they depend on: they are measured, or implied where these do not carry them.
    """
    if asked == MEASURED:
        count = len(layout.names)
        return Supports((MEASURED,) * count, (False,) * count)
    target = _Term(frozenset(columns_of(read.left)), _linear_target(read), frozenset())
    features = features_of(layout)
    each = [_term(feature.factors, read.schema) for feature in features]
    terms = list(dict.fromkeys(term for term in each if term.factors))
    among = measured.sources(target.columns.union(*(term.columns for term in terms)))
    own = {term: _own(target, term, measured, among) for term in terms}
    with_target = all(support == MEASURED for support in own.values())
    found = {term: _support(term, own, with_target, measured) for term in terms}
    weakest = worst([measured.of(target.columns, target.linear), *found.values()])
    made = Supports(
        tuple(
            measured.of_category(found.get(term, weakest), feature.categories)
            for term, feature in zip(each, features, strict=True)
        ),
        tuple(own.get(term) == NEVER for term in each),
    )
    return made.at_least_implied if asked else made


def _own(target: _Term, term: _Term, measured: Measured, among: Columns) -> str:
    """The support of a term's relation with the target, whatever the other terms have."""
    both, by_values = target.columns | term.columns, _by_values(target, term)
    if measured.is_measured(both, by_values):
        # In another population what it was turned to by counts as well, unless it is held still.
        apart = measured.sources(measured.turned_by) - among
        return MEASURED if measured.is_measured(both | apart, by_values) else IMPLIED
    if measured.counts is None:
        return UNKNOWN
    if len(term.columns) > 1:
        # Columns outside the formula may bring some interaction along, as a by-product of
        # relations of their own; that of these columns is zero in the model all the same.
        summed = any(measured.sources(both) <= each for each in measured.assumed)
        return IMPLIED if summed else NEVER
    left, right = measured.sources(target.columns), measured.sources(term.columns)
    # What one column is derived from is not held still against itself.
    others = among - left - right
    found = worst(
        measured.holding(others | {one, two}).of({one, two})
        for one, two in itertools.product(left, right)
    )
    return IMPLIED if found == MEASURED else found


def _support(term: _Term, own: dict[_Term, str], with_target: bool, measured: Measured) -> str:
    """The support of one term among others."""
    holding = [other for other in own if other.factors >= term.factors]
    support = worst(own[other] for other in holding)
    if support != MEASURED:
        return support
    together = with_target and all(
        measured.is_measured(pair, _by_values(term, other))
        for other in own
        for pair in itertools.product(term.columns, other.columns)
    )
    if together:
        return MEASURED
    return UNKNOWN if measured.counts is None else IMPLIED


def _by_values(one: _Term, other: _Term) -> Columns:
    """The columns of two terms that are used by their values wherever they are."""
    curved = (one.columns - one.linear) | (other.columns - other.linear)
    return (one.linear | other.linear) - curved


def _linear_target(read: ReadFormula) -> Columns:
    name = read.target_column
    return (
        frozenset() if name is None or not _has_one_value(read.schema, name) else frozenset({name})
    )


def _term(factors: Sequence[Factor], schema: Schema) -> _Term:
    columns, linear = set[str](), set[str]()
    curved = set[str]()
    for factor in factors:
        used = factor_columns(factor.tree)
        columns |= used
        (linear if _is_linear(factor.tree, schema) else curved).update(used)
    return _Term(
        frozenset(columns),
        frozenset(linear - curved),
        frozenset(factor.name for factor in factors),
    )


def _is_linear(tree: Node, schema: Schema) -> bool:
    """Whether a factor is a column by its values, perhaps moved and scaled."""
    if isinstance(tree, Call) and tree.function in SCALES and tree.arguments:
        return _is_linear(tree.arguments[0], schema)
    return isinstance(tree, Name) and _has_one_value(schema, tree.name)


def _has_one_value(schema: Schema, name: str) -> bool:
    """Whether a column is one number in a formula: not so one of three categories or more."""
    return schema[name].is_numeric or schema[name].ungrouped.cells <= 2


def ignorance(
    supports: Supports, steps: np.ndarray, information: np.ndarray, deviation: float
) -> np.ndarray:
    """How coefficients may move together because some were never measured: one column for each.

    Times its transpose it is their covariance. `steps` are those of the terms, in units of the
    outcome's; `deviation` is the prior's.

    >>> supports = Supports((MEASURED, NEVER), (False, True))
    >>> ignorance(supports, np.ones(2), np.array([[2.0, 1.0], [1.0, 2.0]]), 1.0)
    array([[-0.5],
           [ 1. ]])
    """
    assumed = np.array(supports.is_assumed, dtype=bool)
    moves = np.zeros((len(assumed), int(assumed.sum())))
    moves[assumed] = np.eye(int(assumed.sum()))
    if (~assumed).any() and assumed.any():
        # d beta_o / d beta_n = -I_oo^-1 I_on
        among, between = information[~assumed][:, ~assumed], information[~assumed][:, assumed]
        moves[~assumed] = -np.linalg.solve(among, between)
    return np.asarray(moves * (deviation / steps[assumed]))


def ignorant_draws(
    draws: np.ndarray,
    supports: Supports,
    steps: np.ndarray,
    deviation: float,
    generator: np.random.Generator,
) -> np.ndarray:
    """What to add to a posterior's draws because some coefficients were never measured.

    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> supports = Supports((MEASURED, NEVER), (False, True))
    >>> more = ignorant_draws(draws, supports, np.ones(2), 3.0, np.random.default_rng(0))
    >>> (draws + more).std(axis=(0, 1)).round().tolist()
    [1.0, 3.0]
    """
    if not any(supports.is_assumed):
        return np.zeros(draws.shape)
    size = len(supports.is_assumed)
    precision = np.linalg.inv(np.atleast_2d(np.cov(draws[..., :size].reshape(-1, size).T)))
    moves = ignorance(supports, steps, precision, deviation)
    more = np.zeros(draws.shape)
    more[..., :size] = generator.normal(size=(*draws.shape[:2], moves.shape[1])) @ moves.T
    return more


def steps_of(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The step of every feature: between its two values, or two standard deviations.

    >>> steps_of(np.array([[0.0, 0.0], [1.0, 2.0], [1.0, 4.0]]), np.ones(3)).round(2).tolist()
    [1.0, 3.27]
    """
    low, high = x.min(axis=0), x.max(axis=0)
    is_binary, square = np.ones(x.shape[1], dtype=bool), np.zeros(x.shape[1])
    mean = weights @ x / weights.sum()
    for some in row_blocks(len(x)):
        is_binary &= ((x[some] == low) | (x[some] == high)).all(axis=0)
        square += weights[some] @ (x[some] - mean) ** 2
    deviation = np.sqrt(square / weights.sum())
    found = np.where(is_binary, high - low, 2 * deviation)
    # The intercept is one everywhere; a step of it is one.
    return np.where(found > 0, found, 1.0)


def widened(member: Estimate, support: str, extra: float, deviation: float) -> Estimate:
    """A coefficient with its support, and its interval wider by what is not known of it."""
    note = member.note
    if support == NEVER and deviation > 0:
        note = joined(note, PRIOR.format(deviation))
    made = replace(member, support=support, note=note)
    if not (extra > 0 and isinstance(member.span, Symmetric)):
        return made
    error = float(np.hypot(member.standard_error, extra))
    return replace(made, standard_error=error, span=replace(member.span, standard_error=error))
