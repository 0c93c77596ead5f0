"""Generalised linear models by formula, with standard errors from the replicate weights.

A model is fitted by maximum likelihood, once with the weights and, from there, once with every
replicate; the spread of the coefficients is their covariance, as in R's `survey::svyglm` on a
replicate design (T. Lumley, Complex Surveys, 2010). Beside them stand the naive errors, which
take the synthetic rows for as many people and so know nothing of the privacy noise. Coefficients
that nothing measured are as wide as a stated prior: see `coefficients`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import linalg
from threadpoolctl import threadpool_limits

from counterpoise.analysis.asked import was_asked
from counterpoise.analysis.coefficients import (
    DEVIATION,
    ignorance,
    steps_of,
    supports_of,
    widened,
)
from counterpoise.analysis.replicate_fits import LOOSE, RUN_AWAY, fit_replicates, hold_back
from counterpoise.analysis.replication import Design, covariance
from counterpoise.analysis.result import LEVEL, Estimate, Estimates, counting, estimate, joined
from counterpoise.analysis.support import Measured
from counterpoise.analysis.text import aligned, show
from counterpoise.arguments import real_number
from counterpoise.errors import AnalysisError
from counterpoise.formulas.families import MULTINOMIAL, choose_family, coded_targets, usual_family
from counterpoise.formulas.likelihood import (
    FAMILIES,
    Drawn,
    Family,
    Likelihood,
    Multinomial,
    Numeric,
    maximise,
    probabilities,
)
from counterpoise.formulas.matrices import Matrices, ReadFormula, Recipe, read_formula
from counterpoise.formulas.row_sums import triangle

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# So many terms are named that have no finite coefficient.
NAMED = 3


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
    standard deviations) in units of the link, or of the target's standard deviation where the
    model is gaussian. Zero insists on the interval that the replicates give.

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
    _check_rank(x, design.weights[rows], list(made.terms))
    own_steps, varied = steps_of(x, design.weights[rows]), x.min(axis=0) < x.max(axis=0)
    # Terms of one size, so that Newton's equations are well conditioned; in place, as the matrix
    # of a large release is most of what is held.
    sizes = np.sqrt(np.einsum("ij,ij->j", x, x) / len(x))
    x /= sizes
    likelihood: Likelihood
    terms = list(made.terms)
    categories: tuple[Any, ...] = ()
    if chosen == MULTINOMIAL:
        codes, categories = _categories(read, made)
        likelihood = Multinomial(x, codes, len(categories))
        terms = [f"{label}: {term}" for label in categories[1:] for term in made.terms]
        sizes = np.tile(sizes, len(categories) - 1)
    else:
        likelihood = Numeric(x, _target(made, FAMILIES[chosen]), FAMILIES[chosen])
        categories = _named_values(read, chosen)
    equations = max(1, len(categories) - 1)
    steps, unit = np.tile(own_steps, equations) / sizes, 1.0
    if chosen == "gaussian":
        unit = float(steps_of(made.target[:, None], design.weights[rows])[0]) / 2
    # A prior is for what varies: the intercept is free.
    varies = np.tile(varied, equations)
    # Many small products: threads would wait for each other longer than they work.
    with threadpool_limits(1, "blas"):
        results, information, dispersion, note = _fit_all(
            likelihood, design, rows, np.where(varies, steps / unit, 0.0), terms
        )
    naive = np.sqrt(dispersion * np.diag(np.linalg.inv(information)))
    asked = was_asked(release, read, chosen, usual_family(release.schema, read.targets))
    supports = supports_of(Measured.of_release(release), read, made.recipe.layout, asked)
    supports = supports.tiled(equations)
    moves = ignorance(supports, steps / unit, information, prior_deviation)
    results = design.whole_way(results / sizes[:, None])
    naive, moves = naive / sizes, moves / sizes[:, None]
    extra = moves @ moves.T
    return Glm(
        formula=formula,
        family=chosen,
        coefficients=counting(
            release,
            Estimates(
                ("term",),
                tuple((term,) for term in terms),
                tuple(
                    widened(estimate(line, note=note), support, float(more), prior_deviation)
                    for line, support, more in zip(
                        results, supports.supports, np.sqrt(np.diag(extra)), strict=True
                    )
                ),
            ),
        ),
        covariance=(
            pd.DataFrame(covariance(results) + extra, index=terms, columns=terms)
            if design.count
            else None
        ),
        naive_errors=pd.Series(naive, index=pd.Index(terms, name="term")),
        rows=len(rows),
        left_out=release.rows - len(rows),
        recipe=made.recipe,
        categories=categories,
    )


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


def _check_rank(x: np.ndarray, weights: np.ndarray, terms: list[str]) -> None:
    # The triangle has the norms and the products of the rows' columns, and is as good as they are.
    scaled = triangle(x, np.sqrt(weights))
    norms = np.linalg.norm(scaled, axis=0)
    found, order = linalg.qr(scaled / np.where(norms > 0, norms, 1), mode="r", pivoting=True)
    diagonal = np.abs(np.diag(found))
    # Pivoting puts the terms that add nothing to those before them last.
    rank = int((diagonal > 1e-9).sum())
    if rank < len(terms):
        extra = ", ".join(repr(terms[place]) for place in order[rank:])
        raise AnalysisError(
            f"formula: {extra} cannot be told apart from the other terms; leave them out"
        )


def _fit_all(
    likelihood: Likelihood,
    design: Design,
    rows: np.ndarray,
    steps: np.ndarray,
    terms: Sequence[str],
) -> tuple[np.ndarray, np.ndarray, float, str]:
    """Coefficients with each weighting (coefficients x (2 + R)), and at the full one the rest.

    That is the information, the dispersion, so that Var(beta) = phi information^-1, and a note.
    """
    weights = design.weights[rows]
    beta = maximise(likelihood, weights, likelihood.start(weights))
    if beta is None:
        which = _separating(likelihood, weights, steps, terms)
        raise AnalysisError(
            f"formula: the fit does not converge, because {which} the target's "
            "values, or nearly so; leave out a term, join a rare category with another, or "
            "use release.fit with a penalised model"
        )
    unweighted = maximise(likelihood, np.ones(len(rows)), beta)
    eta = likelihood.predictor(beta)
    dispersion = float(likelihood.dispersion(eta, weights))
    fitted = fit_replicates(likelihood, design, rows, beta)
    replicates, held = hold_back(fitted, likelihood, design, rows, beta, steps, dispersion)
    undefined = np.full(len(beta), np.nan)
    found = [beta, unweighted, *replicates]
    results = np.array([undefined if each is None else each for each in found]).T
    note = _said_of_replicates(sum(each is None for each in replicates), held, len(replicates))
    return results, likelihood.information(eta, weights), dispersion, note


def _separating(
    likelihood: Likelihood, weights: np.ndarray, steps: np.ndarray, terms: Sequence[str]
) -> str:
    """Which terms have no finite coefficient, as the beginning of a clause."""
    zero = np.zeros(len(terms))
    # So weak a prior leaves in place what has a maximum, and stops the rest far out.
    found = maximise(Drawn(likelihood, zero, (steps / (4 * LOOSE)) ** 2), weights, zero)
    far = [] if found is None else np.flatnonzero(np.abs(found) * steps > RUN_AWAY).tolist()
    if not far:
        return "the terms separate"
    names = ", ".join(repr(terms[place]) for place in far[:NAMED])
    more = f" and {len(far) - NAMED} more" if len(far) > NAMED else ""
    return f"{names}{more} {'separates' if len(far) == 1 else 'separate'}"


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
