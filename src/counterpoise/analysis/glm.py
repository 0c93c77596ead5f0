"""Generalised linear models by formula, with standard errors from the replicate weights.

A model is fitted by maximum likelihood, once with the weights and, from there, once with every
replicate; the spread of the coefficients is their covariance, as in R's `survey::svyglm` on a
replicate design (T. Lumley, Complex Surveys, 2010). Beside them stand the naive errors, which
take the synthetic rows for as many people and so know nothing of the privacy noise. Coefficients
that nothing measured are as wide as a stated prior: see `coefficients`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from counterpoise.analysis.asked import was_asked
from counterpoise.analysis.coefficients import (
    DEVIATION,
    OF_LOGIT,
    ignorance,
    steps_of,
    supports_of,
    widened,
)
from counterpoise.analysis.columns import Groups
from counterpoise.analysis.features import Feature, features_of
from counterpoise.analysis.replicate_fits import fit_replicates
from counterpoise.analysis.replication import FULL, REPLICATES, UNWEIGHTED, Design, covariance
from counterpoise.analysis.result import LEVEL, Estimate, Estimates, counting, estimate, joined
from counterpoise.analysis.support import Measured
from counterpoise.analysis.text import aligned, show
from counterpoise.analysis.weak_prior import LOOSE, Fit, fit, hold_back, listed, rank_of, said_of
from counterpoise.arguments import real_number
from counterpoise.errors import AnalysisError
from counterpoise.formulas.families import MULTINOMIAL, choose_family, coded_targets, usual_family
from counterpoise.formulas.likelihood import (
    FAMILIES,
    Family,
    Multinomial,
    Numeric,
    maximise,
    probabilities,
)
from counterpoise.formulas.matrices import Matrices, ReadFormula, Recipe, read_formula
from counterpoise.formulas.row_sums import alike, row_blocks, triangle
from counterpoise.formulas.terms import factor_columns
from counterpoise.schema import Schema

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# More coefficients of a multinomial model than this are a mistake, and fits of 80 replicates take
# minutes: each step of Newton's method costs their number cubed.
MOST_COEFFICIENTS = 500
# A leverage nearer to one than this is one, but for rounding.
EXACT = 1e-6
# Of rows with less leverage than this a replicate shows four fifths of what they say, and more; a
# round number, not studied.
LEAST_LEVERAGE = 0.1


@dataclass(frozen=True)
class Glm:
    """A fitted model: its coefficients with intervals, and their covariance.

    `naive_errors` are the standard errors that the synthetic rows would have as a sample;
    `left_out` is the number of rows in which a column of the model is null; `categories` are those
    of a multinomial model, or of a binomial one whose target has names for its two values: the
    first is the one that the others are compared with. It is indexed by term and iterated over the
    coefficients, with the terms in `keys()`, as `coefficients` is.
    """

    formula: str
    family: str
    coefficients: Estimates
    covariance: pd.DataFrame | None
    naive_errors: pd.Series
    rows: int
    left_out: int
    recipe: Recipe = field(repr=False, compare=False)
    categories: tuple[Any, ...] = ()

    def __getitem__(self, term: str) -> Estimate:
        return self.coefficients[term]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.coefficients)

    def __len__(self) -> int:
        return len(self.coefficients)

    def __contains__(self, term: object) -> bool:
        return term in self.coefficients

    def keys(self) -> list[str]:
        """The terms."""
        return self.coefficients.keys()

    def items(self) -> list[tuple[str, Estimate]]:
        """The terms with their coefficients."""
        return self.coefficients.items()

    def to_frame(self, level: float = LEVEL) -> pd.DataFrame:
        """The coefficients as a frame, with the naive standard errors."""
        return self.coefficients.to_frame(level).assign(naive_error=self.naive_errors)

    def predict(self, table: Any) -> np.ndarray:
        """The means that the model expects for the rows of a raw table; NaN where one is null.

        Of a multinomial model, the probability of each of `categories`: rows x categories.
        """
        matrix, known = self.recipe.features(table)
        beta = np.array([member.value for member in self.coefficients])
        if self.family == MULTINOMIAL:
            found = probabilities(matrix @ beta.reshape(len(self.categories) - 1, -1).T)
        else:
            found = FAMILIES[self.family].mean(matrix @ beta)
        means = np.full((len(known), *found.shape[1:]), np.nan)
        means[known] = found
        return means

    def simultaneous(self) -> Glm:
        """The model with intervals of all coefficients together; see `Estimates.simultaneous`."""
        return replace(self, coefficients=self.coefficients.simultaneous())

    def __str__(self) -> str:
        lines: list[tuple[str, ...]] = [
            ("term", "value", "standard error", "low", "high", "naive error", "unweighted", "")
        ]
        marks = self.coefficients.marks
        for term, member in self.coefficients.items():
            low, high = member.interval() or (None, None)
            error, naive = member.standard_error, self.naive_errors[term]
            parts = (member.value, error, low, high, naive, member.unweighted)
            # Two digits of a standard error, or three when it begins with 1 or 2.
            digits = (naive if error is None else error) / 10
            cells = (show(part, digits) for part in parts)
            lines.append((str(term), *cells, marks.get(member.support, "")))
        head = f"{self.formula}, {self.family}, {self.rows:,} rows"
        if self.categories:
            one = f"{self.categories[1]} " if self.family == "binomial" else ""
            head += f", {one}compared with {self.categories[0]}"
        if self.left_out:
            head += f" ({self.left_out:,} left out for nulls)"
        return "\n".join([head, aligned(lines, 1), *self.coefficients.notes()])

    __repr__ = __str__


def glm(
    release: Release, formula: str, family: str = "auto", prior_deviation: float = DEVIATION
) -> Glm:
    """Fit a generalised linear model given by a formula such as "ill ~ age + C(ward)".

    The families are "gaussian", "binomial", "poisson" and "multinomial", each with its canonical
    link. "auto" is binomial for true and false or two categories, whose second then counts as
    one, multinomial for more, and gaussian otherwise. A multinomial model compares each category
    with the first that has rows, and has a coefficient "category: term" for each of the others.
    Among the terms, categories are compared with their first, true and false are 1 and 0, dates
    count in days; rows in which a column of the formula is null are left out. A formula
    is read and not run: it knows columns, numbers, `+ - * : / **` and a fixed list of functions,
    which `counterpoise.formulas.matrices` names.

    Each coefficient says by its `support` whether its columns were measured together. One that
    was never measured, such as an interaction of columns that were only counted in pairs, has an
    interval that adds a prior of `prior_deviation` for a step of its term (from no to yes, or two
    standard deviations) in units of the link, or where the model is gaussian of what the target's
    standard deviation is to that of the logistic law. Zero insists on the interval that the
    replicates give.

    >>> import counterpoise as cp
    >>> table = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 9.0], "weight": [1.5, 1.5, 0]})
    >>> columns = [cp.Column.continuous(name, 0, 9) for name in "xy"]
    >>> model = glm(cp.Release(table, cp.Schema(columns), card={}), "y ~ x")
    >>> round(model["x"].value, 6), round(model["x"].unweighted, 6)
    (1.0, 4.0)
    """
    prior_deviation = real_number(
        "prior_deviation",
        prior_deviation,
        "a number from 0",
        AnalysisError,
        above=0,
        inclusive=True,
    )
    design = Design.of(release)
    read = read_formula(formula, release.schema)
    chosen = choose_family(release.schema, read.targets, family)
    needed = release.read(*sorted({*read.targets, *read.used}))
    made = read.matrices(needed, coded=coded_targets(release.schema, read.targets, chosen))
    x, rows = made.features, made.rows
    if not design.weights[rows].sum() > 0:
        raise AnalysisError("formula: no row with weight has a value in all of its columns")
    can_tell = _has_full_rank(made, design.weights[rows], release.schema)
    own_steps, varied = steps_of(x, design.weights[rows]), x.min(axis=0) < x.max(axis=0)
    # Terms of one size, so that Newton's equations are well conditioned; in place, as the matrix
    # of a large release is most of what is held.
    sizes = np.sqrt(np.einsum("ij,ij->j", x, x) / len(x))
    x /= np.where(sizes > 0, sizes, 1.0)
    likelihood, categories = _likelihood(read, made, chosen)
    terms, equations = list(made.terms), max(1, len(categories) - 1)
    if chosen == MULTINOMIAL:
        terms = [f"{label}: {term}" for label in categories[1:] for term in made.terms]
    sizes = np.tile(np.where(sizes > 0, sizes, 1.0), equations)
    steps, unit = np.tile(own_steps, equations) / sizes, 1.0
    if chosen == "gaussian":
        unit = float(steps_of(made.target[:, None], design.weights[rows])[0]) / 2
    # A prior is for what varies: the intercept is free.
    varies = np.tile(varied, equations)
    # Many small products: threads would wait for each other longer than they work.
    with threadpool_limits(1, "blas"):
        fitted = _fit_all(likelihood, design, rows, steps / unit, varies, can_tell)
    results = design.whole_way(fitted.results / sizes[:, None])
    asked = was_asked(release, read, chosen, usual_family(release.schema, read.targets))
    supports = supports_of(Measured.of_release(release), read, made.recipe.layout, asked)
    supports = supports.tiled(equations)
    # What no row or one alone tells, and what nobody measured, beside what the replicates vary.
    lent = np.hstack([fitted.whole.moves, fitted.alone]) / sizes[:, None]
    if chosen == "gaussian":
        unit *= OF_LOGIT
    moves = ignorance(supports, steps / unit, fitted.information, prior_deviation) / sizes[:, None]
    notes = _notes(
        fitted.whole.untold(steps / unit).tolist(), fitted.of_one_row, terms, made, fitted.note
    )
    members = tuple(
        widened(estimate(line, note=note, beyond=doubt), support, more, prior_deviation)
        for line, note, doubt, support, more in zip(
            results, notes, _lengths(lent), supports.supports, _lengths(moves), strict=True
        )
    )
    spread = None
    if design.count:
        spread = covariance(results) + moves @ moves.T + lent @ lent.T
    return Glm(
        formula=formula,
        family=chosen,
        coefficients=counting(
            release, Estimates(("term",), tuple((term,) for term in terms), members)
        ),
        covariance=None if spread is None else pd.DataFrame(spread, index=terms, columns=terms),
        naive_errors=pd.Series(fitted.naive_errors / sizes, index=pd.Index(terms, name="term")),
        rows=len(rows),
        left_out=release.rows - len(rows),
        recipe=made.recipe,
        categories=categories,
    )


def _likelihood(
    read: ReadFormula, made: Matrices, family: str
) -> tuple[Numeric | Multinomial, tuple[Any, ...]]:
    """The likelihood of a family, and the categories that its target has names for."""
    if family == MULTINOMIAL:
        codes, categories = _categories(read, made)
        count = (len(categories) - 1) * len(made.terms)
        if count > MOST_COEFFICIENTS:
            raise AnalysisError(
                f"formula: it has {count:,} coefficients, more than {MOST_COEFFICIENTS:,}; take a "
                "target of fewer categories or fewer terms, or ask for proportions"
            )
        return Multinomial(made.features, codes, len(categories)), categories
    y = _target(made, FAMILIES[family])
    return Numeric(made.features, y, FAMILIES[family]), _named_values(read, family)


def _lengths(moves: np.ndarray) -> list[float]:
    """The deviation of each coefficient by what may move it."""
    return [float(each) for each in np.linalg.norm(moves, axis=1)]


def _categories(read: ReadFormula, made: Matrices) -> tuple[np.ndarray, tuple[Any, ...]]:
    """The place of every row's category among those that have rows, and these."""
    name = read.target_column
    if name is None:
        raise AnalysisError("formula: a multinomial target is one column as it is, left of '~'")
    labels = read.schema[name].categories
    assert labels is not None
    present, places = np.unique(made.target, return_inverse=True)
    if len(present) < 2:
        raise AnalysisError(f"formula: the target {name!r} has one category in the synthetic rows")
    return places, tuple(labels[int(code)] for code in present)


def _named_values(read: ReadFormula, family: str) -> tuple[Any, ...]:
    """The two categories of a binomial model's target, unless they are no and yes."""
    if family != "binomial" or read.target_column is None:
        return ()
    column = read.schema[read.target_column]
    has_names = not column.is_numeric and column.category_type != "boolean"
    return tuple(column.categories or ()) if has_names else ()


def _target(made: Matrices, family: Family) -> np.ndarray:
    y = made.target
    if y.min() < family.lowest or y.max() > family.highest:
        raise AnalysisError(
            f"family: the {family.name} family needs a target between {family.lowest:g} and "
            f"{family.highest:g}"
        )
    return y


def _has_full_rank(made: Matrices, weights: np.ndarray, schema: Schema) -> bool:
    """Whether the rows tell all terms apart; numbers that they do not are refused.

    Categories and truths that they do not may be too rare for that, and are held by a prior.
    """
    # The triangle has the norms and the products of the rows' columns, and is as good as they are.
    found = triangle(made.features, np.sqrt(weights))
    of_numbers = [
        place
        for place, feature in enumerate(features_of(made.recipe.layout))
        if not feature.categories
        and not _has_truth(feature, schema)
        and not _is_binary(made.features[:, place])
    ]
    rank, order = rank_of(found[:, of_numbers])
    if rank < len(of_numbers):
        extra = ", ".join(repr(made.terms[of_numbers[place]]) for place in order[rank:])
        raise AnalysisError(
            f"formula: {extra} cannot be told apart from the other terms; leave them out"
        )
    return rank_of(found)[0] == len(made.terms)


def _has_truth(feature: Feature, schema: Schema) -> bool:
    """Whether a feature has a factor of true and false, of which all rows may have the same."""
    used = {name for factor in feature.factors for name in factor_columns(factor.tree)}
    return any(schema[name].category_type == "boolean" for name in used)


def _is_binary(x: np.ndarray) -> bool:
    """Whether a feature has two values, as categories and true and false have."""
    low, high = x.min(), x.max()
    return bool(low < high and ((x == low) | (x == high)).all())


@dataclass(frozen=True, eq=False)
class _Fitted:
    """All fits of a model: `results` are coefficients x (2 + R)."""

    whole: Fit
    results: np.ndarray
    information: np.ndarray
    dispersion: float  # so that Var(beta) = phi information^-1
    alone: np.ndarray  # coefficients x rows that replicates cannot vary; see `_alone`
    note: str

    @property
    def naive_errors(self) -> np.ndarray:
        """Standard errors if the synthetic rows were people."""
        return np.asarray(np.sqrt(self.dispersion * np.diag(np.linalg.inv(self.information))))

    @property
    def of_one_row(self) -> list[int]:
        """The coefficients that such rows move by more than a tenth of their naive error."""
        moved = np.linalg.norm(self.alone, axis=1)
        return [int(each) for each in np.flatnonzero(moved > self.naive_errors / 10)]


def _fit_all(
    likelihood: Numeric | Multinomial,
    design: Design,
    rows: np.ndarray,
    steps: np.ndarray,
    varies: np.ndarray,
    can_tell: bool,
) -> _Fitted:
    """The coefficients with each weighting, held by a weak prior where the rows do not tell."""
    own, design, rows, equal = _added_up(likelihood, design, rows)
    weights = design.weights[rows]
    whole = fit(own, weights, steps, varies, can_tell)
    if whole is None:
        raise AnalysisError(
            "formula: the fit does not converge; leave out a term, or use release.fit with a "
            "penalised model"
        )
    beta, held_likelihood = whole.beta, whole.likelihood
    unweighted = maximise(held_likelihood, equal, beta)
    eta = held_likelihood.predictor(beta)
    dispersion = float(held_likelihood.dispersion(eta, weights))
    replicates, held = hold_back(
        fit_replicates(held_likelihood, design, rows, beta),
        *(whole, design, rows, steps, varies, dispersion),
    )
    undefined = np.full(len(beta), np.nan)
    found = [beta, unweighted, *replicates]
    results = np.array([undefined if each is None else each for each in found]).T
    failed = sum(each is None for each in replicates)
    note = _said_of_replicates(failed, held, len(replicates))
    information = held_likelihood.information(eta, weights)
    alone = _alone(own, beta, weights, equal, information, dispersion)
    return _Fitted(whole, results, information, dispersion, alone, note)


def _alone(
    likelihood: Numeric | Multinomial,
    beta: np.ndarray,
    weights: np.ndarray,
    alike: np.ndarray,
    information: np.ndarray,
    dispersion: float,
) -> np.ndarray:
    """How coefficients move with rows that are nearly fitted exactly: coefficients x such rows.

    A row's part of the naive covariance is m m', and it is fitted as far as its leverage h goes:

        phi I^-1 = sum_i m_i m_i',   m_i = sqrt(phi w_i v_i) I^-1 x_i,   h_i = w_i v_i x_i' I^-1 x_i

    What replicates make of it comes from its residual, which is (1 - h) of what it would be without
    the row, so that (1 - h)^2 of its part is theirs, and the rest is missing (J. G. MacKinnon and
    H. White, 1985: HC3). Of the only row of a category that is all of it; and of rows that are all
    `alike`, so many each, if these are the only ones. Categories of a target that a row tells alone
    are separated, and held by a prior.
    """
    if isinstance(likelihood, Multinomial):
        return np.zeros((len(beta), 0))
    inverse, family = np.linalg.inv(information), likelihood.family
    curvature = weights * family.variance(family.mean(likelihood.predictor(beta)))
    found = [np.zeros((0, len(beta)))]
    for some in row_blocks(len(weights)):
        x = likelihood.x[some]
        moved = x @ inverse
        leverage = curvature[some] * (x * moved).sum(axis=1)
        own = np.where(leverage > 1 - EXACT, 1.0, leverage / np.maximum(alike[some], 1.0))
        missing = 1 - (1 - np.clip(own, 0.0, 1.0)) ** 2
        few = own > LEAST_LEVERAGE
        sizes = np.sqrt(dispersion * curvature[some][few] * missing[few])
        found.append(moved[few] * sizes[:, None])
    return np.concatenate(found).T


def _added_up(
    likelihood: Numeric | Multinomial, design: Design, rows: np.ndarray
) -> tuple[Numeric | Multinomial, Design, np.ndarray, np.ndarray]:
    """A likelihood with one row for all that are alike, their weights, and how many they are.

    Models of categories and of few numbers have few different rows; the maximum is the same.
    """
    found = alike(likelihood.y, likelihood.x)
    if found is None:
        return likelihood, design, rows, np.ones(len(rows))
    first, of_row = found
    members = np.full(len(design.weights), -1)
    members[rows] = of_row
    labels = tuple((each,) for each in range(len(first)))
    sums = design.sums(Groups(("row",), labels, members).lines(np.ones(len(members))))
    replicates = sums[:, REPLICATES] if design.count else None
    fewer = Design(sums[:, FULL], replicates, design.part)
    likelihood = replace(likelihood, x=likelihood.x[first], y=likelihood.y[first])
    return likelihood, fewer, np.arange(len(first)), sums[:, UNWEIGHTED]


def _notes(
    untold: list[int], of_one: list[int], terms: Sequence[str], made: Matrices, others: str
) -> list[str]:
    """A note for every coefficient: of all, and of those that no row or one alone tells."""
    single = f"one row, or rows all alike, tell {listed([terms[each] for each in of_one])}"
    notes = [joined(others, single if place in of_one else "") for place in range(len(terms))]
    if not untold:
        return notes
    features = features_of(made.recipe.layout)
    own = [features[place % len(features)] for place in untold]
    named = [terms[place] for place, each in zip(untold, own, strict=True) if each.factors]
    said = said_of(named)
    # Where the intercept is not told either, it is the categories that others are compared with.
    bases = {
        f"{category!r} of {column!r}"
        for each in own
        for column, category in each.categories[1:2]
        if len(named) < len(untold)
    }
    if bases:
        said += f": compare with others than {', '.join(sorted(bases))}"
    return [joined(note, said if place in untold else "") for place, note in enumerate(notes)]


def _said_of_replicates(failed: int, held: int, count: int) -> str:
    parts = [
        f"{failed} of {count} replicates did not converge" if failed else "",
        (
            f"{held} of {count} replicates nearly separate the target's values, and are held by a "
            f"prior of deviation {LOOSE:g} a step"
            if held
            else ""
        ),
    ]
    return joined(*parts)
