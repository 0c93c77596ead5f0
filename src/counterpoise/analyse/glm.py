"""Generalised linear models by formula, with standard errors from the replicate weights.

A model is fitted by Newton's method on the weighted log-likelihood with its canonical link, once
with the weights and, from there, once with every replicate; the spread of the coefficients is
their covariance, as in R's `survey::svyglm` on a replicate design (T. Lumley, Complex Surveys,
2010). Beside them stand the naive errors, which take the synthetic rows for as many people and
so know nothing of the privacy noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import linalg
from scipy.special import expit
from threadpoolctl import threadpool_limits

from counterpoise.analyse.formulas import Matrices, Recipe, read_formula
from counterpoise.analyse.replication import FULL, UNWEIGHTED, Design, covariance
from counterpoise.analyse.result import LEVEL, Estimate, Estimates, aligned, estimate, show
from counterpoise.errors import AnalysisError
from counterpoise.schema import Column, Schema

if TYPE_CHECKING:
    from counterpoise.release.result import Release

# Newton's method is done when no coefficient moves by more than this, of its size: its error
# after a step is about the square of the step.
_TOLERANCE, _MOST_STEPS = 1e-6, 50


@dataclass(frozen=True)
class Family:
    """An exponential family with its canonical link.

    `cumulant` is b of the linear predictor eta: the log-likelihood is y eta - b(eta), its mean
    mu = b'(eta), its variance b''(eta), which is a function of mu.
    """

    name: str
    cumulant: Callable[[np.ndarray], np.ndarray]
    mean: Callable[[np.ndarray], np.ndarray]
    variance: Callable[[np.ndarray], np.ndarray]
    start: Callable[[np.ndarray], np.ndarray]  # a linear predictor to begin with
    lowest: float
    highest: float
    has_dispersion: bool = False


FAMILIES = {
    family.name: family
    for family in (
        Family(
            "gaussian",
            cumulant=lambda eta: eta**2 / 2,
            mean=lambda eta: eta,
            variance=np.ones_like,
            start=lambda y: y,
            lowest=-np.inf,
            highest=np.inf,
            has_dispersion=True,
        ),
        Family(
            "binomial",
            cumulant=lambda eta: np.logaddexp(0, eta),
            mean=expit,
            variance=lambda mu: mu * (1 - mu),
            start=lambda y: np.log((y + 0.5) / (1.5 - y)),
            lowest=0.0,
            highest=1.0,
        ),
        Family(
            "poisson",
            cumulant=np.exp,
            mean=np.exp,
            variance=lambda mu: mu,
            start=lambda y: np.log(y + 0.1),
            lowest=0.0,
            highest=np.inf,
        ),
    )
}


@dataclass(frozen=True)
class Glm:
    """A fitted model: its coefficients with intervals, and their covariance.

    `naive_errors` are the standard errors that the synthetic rows would have as a sample;
    `left_out` is the number of rows in which a column of the model is null.
    """

    formula: str
    family: str
    coefficients: Estimates
    covariance: pd.DataFrame | None
    naive_errors: pd.Series
    rows: int
    left_out: int
    recipe: Recipe = field(repr=False, compare=False)

    def __getitem__(self, term: str) -> Estimate:
        return self.coefficients[term]

    def to_frame(self, level: float = LEVEL) -> pd.DataFrame:
        """The coefficients as a frame, with the naive standard errors."""
        return self.coefficients.to_frame(level).assign(naive_error=self.naive_errors)

    def predict(self, table: Any) -> np.ndarray:
        """The means that the model expects for the rows of a raw table; NaN where one is null."""
        matrix, known = self.recipe.features(table)
        means = np.full(len(known), np.nan)
        beta = np.array([member.value for member in self.coefficients])
        means[known] = FAMILIES[self.family].mean(matrix @ beta)
        return means

    def __str__(self) -> str:
        lines: list[tuple[str, ...]] = [
            ("term", "value", "standard error", "low", "high", "naive error", "unweighted")
        ]
        for term, member in self.coefficients.items():
            low, high = member.interval() or (None, None)
            error, naive = member.standard_error, self.naive_errors[term]
            parts = (member.value, error, low, high, naive, member.unweighted)
            # Two digits of a standard error, or three when it begins with 1 or 2.
            digits = (naive if error is None else error) / 10
            lines.append((str(term), *(show(part, digits) for part in parts)))
        head = f"{self.formula}, {self.family}, {self.rows:,} rows"
        if self.left_out:
            head += f" ({self.left_out:,} left out for nulls)"
        return "\n".join([head, aligned(lines, 1), *self.coefficients._notes()])

    __repr__ = __str__


def glm(release: Release, formula: str, family: str = "auto") -> Glm:
    """Fit a generalised linear model given by a formula such as "ill ~ age + C(ward)".

    The families are "gaussian", "binomial" and "poisson", each with its canonical link; "auto" is
    binomial for true and false or two categories, whose second then counts as one, and gaussian
    otherwise. Categories are compared with their first, true and false are 1 and 0, dates count
    in days; rows in which a column of the formula is null are left out.

    >>> import counterpoise as cp
    >>> table = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 9.0], "weight": [1.5, 1.5, 0]})
    >>> columns = [cp.Column.continuous(name, 0, 9) for name in "xy"]
    >>> model = glm(cp.Release(table, cp.Schema(columns), card={}), "y ~ x")
    >>> round(model["x"].value, 6), round(model["x"].unweighted, 6)
    (1.0, 4.0)
    """
    design = Design.of(release)
    read = read_formula(formula, release.schema)
    chosen = _family(release.schema, read.targets, family)
    two = [
        name
        for name in read.targets
        if chosen.name == "binomial" and _has_two(release.schema[name])
    ]
    made = read.matrices(release.table, coded=two)
    x, rows, terms = made.features, made.rows, list(made.terms)
    y = _target(made, chosen)
    _check_rank(x, design.weights[rows], terms)
    # Many small products: threads would wait for each other longer than they work.
    with threadpool_limits(1, "blas"):
        results, naive, note = _fit_all(x, y, [each[rows] for each in design.each()], chosen)
    return Glm(
        formula=formula,
        family=chosen.name,
        coefficients=Estimates(
            ("term",),
            tuple((term,) for term in terms),
            tuple(estimate(line, note=note) for line in results),
        ),
        covariance=(
            pd.DataFrame(covariance(results), index=terms, columns=terms) if design.count else None
        ),
        naive_errors=pd.Series(naive, index=pd.Index(terms, name="term")),
        rows=len(rows),
        left_out=len(release.table) - len(rows),
        recipe=made.recipe,
    )


def _family(schema: Schema, targets: Sequence[str], family: str) -> Family:
    if family != "auto" and family not in FAMILIES:
        raise AnalysisError(f"family: expected auto, {', '.join(FAMILIES)}, not {family!r}")
    columns = [schema[name] for name in targets]
    for column in columns:
        if _has_many(column) or (_has_two(column) and family not in ("auto", "binomial")):
            raise AnalysisError(
                f"formula: the target {column.name!r} is {column.kind}, not a number; take "
                "family='binomial' for two categories, or release.fit with a classifier for more"
            )
    if family != "auto":
        return FAMILIES[family]
    is_binary = len(columns) == 1 and (_has_two(columns[0]) or _is_boolean(columns[0]))
    return FAMILIES["binomial" if is_binary else "gaussian"]


def _is_boolean(column: Column) -> bool:
    return column.category_type == "boolean"


def _has_two(column: Column) -> bool:
    return not column.is_numeric and not _is_boolean(column) and column.cells == 2


def _has_many(column: Column) -> bool:
    return not column.is_numeric and not _is_boolean(column) and column.cells != 2


def _target(made: Matrices, family: Family) -> np.ndarray:
    y = made.target
    if y.min() < family.lowest or y.max() > family.highest:
        raise AnalysisError(
            f"family: the {family.name} family needs a target between {family.lowest:g} and "
            f"{family.highest:g}"
        )
    return y


def _check_rank(x: np.ndarray, weights: np.ndarray, terms: list[str]) -> None:
    scaled = x * np.sqrt(weights)[:, None]
    norms = np.linalg.norm(scaled, axis=0)
    triangle, order = linalg.qr(scaled / np.where(norms > 0, norms, 1), mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    # Pivoting puts the terms that add nothing to those before them last.
    rank = int((diagonal > 1e-9).sum())
    if rank < len(terms):
        extra = ", ".join(repr(terms[place]) for place in order[rank:])
        raise AnalysisError(
            f"formula: {extra} cannot be told apart from the other terms; leave them out"
        )


def _fit_all(
    x: np.ndarray, y: np.ndarray, weightings: list[np.ndarray], family: Family
) -> tuple[np.ndarray, np.ndarray, str]:
    """Coefficients with each weighting (terms x (2 + R)), the naive errors, and a note."""
    # Terms of one size, so that Newton's equations are well conditioned.
    sizes = np.sqrt((x**2).mean(axis=0))
    scaled = x / sizes
    weights = weightings[FULL]
    beta = _maximise(scaled, y, weights, family, _start(scaled, y, weights, family))
    if beta is None:
        raise AnalysisError(
            "formula: the fit does not converge, because the terms separate the target's values, "
            "or nearly so; leave out a term, or use release.fit with a penalised model"
        )
    found = [beta, *(_maximise(scaled, y, each, family, beta) for each in weightings[1:])]
    undefined = np.full(len(beta), np.nan)
    results = np.array([undefined if each is None else each for each in found]).T
    failed = sum(each is None for each in found[UNWEIGHTED + 1 :])
    note = f"{failed} of {len(found) - 2} replicates did not converge" if failed else ""
    # Var(beta) = phi (X' W V X)^-1, with phi = sum w (y - mu)^2 / (sum w - p) or 1
    mu = family.mean(scaled @ beta)
    information = (scaled * (weights * family.variance(mu))[:, None]).T @ scaled
    phi = 1.0
    if family.has_dispersion:
        phi = float((weights * (y - mu) ** 2).sum() / max(weights.sum() - len(beta), 1e-300))
    naive = np.sqrt(phi * np.diag(np.linalg.inv(information)))
    return results / sizes[:, None], naive / sizes, note


def _start(x: np.ndarray, y: np.ndarray, weights: np.ndarray, family: Family) -> np.ndarray:
    """One weighted least squares fit to the working response."""
    eta = family.start(y)
    mu = family.mean(eta)
    curvature = family.variance(mu)
    working = eta + (y - mu) / curvature
    root = np.sqrt(weights * curvature)
    return np.asarray(np.linalg.lstsq(x * root[:, None], root * working)[0])


def _maximise(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray, family: Family, start: np.ndarray
) -> np.ndarray | None:
    """The coefficients that maximise sum_i w_i (y_i eta_i - b(eta_i)), or None if none do."""

    def likelihood(eta: np.ndarray) -> float:
        with np.errstate(over="ignore"):
            return float(weights @ (y * eta - family.cumulant(eta)))

    beta, eta = start, x @ start
    for _ in range(_MOST_STEPS):
        # beta += (X' W V X)^-1 X' W (y - mu)
        with np.errstate(over="ignore"):
            mu = family.mean(eta)
        slope = x.T @ (weights * (y - mu))
        information = (x * (weights * family.variance(mu))[:, None]).T @ x
        try:
            step = linalg.cho_solve(linalg.cho_factor(information), slope)
        except (linalg.LinAlgError, ValueError):  # singular, or no longer finite
            return None
        if np.abs(step).max() <= _TOLERANCE * (1 + np.abs(beta).max()):
            return np.asarray(beta + step)
        change = x @ step
        # Where no eta moves by more than 1, b'' grows by less than e and the step is an ascent.
        if np.abs(change).max() > 1:
            height = likelihood(eta)
            for _ in range(30):
                if likelihood(eta + change) >= height:
                    break
                step, change = step / 2, change / 2
        beta, eta = beta + step, eta + change
    return None
