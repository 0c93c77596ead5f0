"""Regressions for a posterior: a formula's matrices in coordinates of one size, and the prior.

Features are centred and divided by their deviations, so that a prior can be weakly informative
whatever the units (A. Gelman, A. Jakulin, M. G. Pittau and Y.-S. Su, "A weakly informative default
prior distribution for logistic and other regression models", 2008), and so that the sampler finds
parameters of one size. All of it is read off the released rows, so it is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.posterior_density import FAMILIES, Task
from counterpoise.analysis.replication import Design, truth
from counterpoise.arguments import real_number, shown
from counterpoise.errors import AnalysisError
from counterpoise.formulas.matrices import Matrices, ReadFormula
from counterpoise.schema import Schema

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

_INTERCEPT = "Intercept"


@dataclass(frozen=True)
class Prior:
    """Independent normal priors of the coefficients, and an exponential one of a linear noise.

    A `scaled` prior, the default, is weakly informative whatever the units: a coefficient has
    mean zero and `deviation` after features, and a linear model's target, are divided by their
    weighted deviations, the intercept the same at the mean of the features, and a linear model's
    noise the target's deviation as its mean. Otherwise all of them have mean zero and `deviation`
    as they stand, and the noise has it as its mean. `terms` states the mean and the deviation of
    single coefficients, as they stand.

    >>> Prior(terms={"age": (0.05, 0.01)}).terms["age"]
    (0.05, 0.01)
    """

    deviation: float = 2.5
    scaled: bool = True
    terms: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_positive("prior", self.deviation)
        truth("scaled", self.scaled)
        if not isinstance(self.terms, Mapping):
            raise AnalysisError("prior: expected the terms as {'age': (mean, deviation)}")
        for name, stated in self.terms.items():
            if not isinstance(stated, tuple) or len(stated) != 2:
                raise AnalysisError(f"prior: expected (mean, deviation) for {shown(name)}")
            real_number(f"prior of {shown(name)}", stated[0], "a number as its mean", AnalysisError)
            check_positive(f"prior of {shown(name)}", stated[1])


@dataclass(frozen=True, eq=False)
class Regression:
    """A formula's matrices in coordinates of one size: features (x - mean) / deviation.

    Coefficients as they are stated are `basis` times those in these coordinates.
    """

    family: str
    made: Matrices
    features: np.ndarray
    target: np.ndarray
    basis: np.ndarray
    weights: np.ndarray
    categories: tuple[Any, ...]

    @classmethod
    def of(cls, release: Release, read: ReadFormula, family: str, design: Design) -> Regression:
        """The regression of a release by a formula; "auto" is the family that fits its target."""
        chosen = _family(release.schema, read, family)
        labels = _labels(release.schema, read, chosen)
        made = read.matrices(release.table, coded=read.targets if labels else ())
        weights = design.weights[made.rows]
        if not weights.sum() > 0:
            raise AnalysisError("formula: no row with a value in all of its columns has a weight")
        target, categories = made.target, ()
        if chosen == "multinomial":
            present = np.unique(target[weights > 0])
            if len(present) < 2:
                raise AnalysisError("formula: the target has one category in the synthetic rows")
            # A category without rows has no coefficients.
            categories = tuple(labels[int(code)] for code in present)
            target = np.searchsorted(present, np.minimum(target, present[-1])).astype(float)
        elif chosen == "logistic" and (target.min() < 0 or target.max() > 1):
            raise AnalysisError(
                "family: the logistic family needs a target between 0 and 1; take family='linear' "
                "for a number"
            )
        basis = _basis(made, weights)
        return cls(chosen, made, made.features @ basis, target, basis, weights, categories)

    @property
    def blocks(self) -> int:
        """How many times the features have coefficients: once for each category but the first."""
        return max(1, len(self.categories) - 1)

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        if self.family != "multinomial":
            return self.made.terms
        return tuple(
            f"{label}: {term}" for label in self.categories[1:] for term in self.made.terms
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters, of which a linear model's last is its noise."""
        if self.family != "linear":
            return self.coefficients
        return (*self.coefficients, "sigma" if "sigma" not in self.coefficients else "noise_sigma")

    def task(self, prior: Prior | float | None) -> Task:
        """The posterior with the weights as they are."""
        stated = prior if isinstance(prior, Prior) else Prior()
        if prior is not None and not isinstance(prior, Prior):
            check_positive("prior", prior)
            stated = Prior(float(prior), scaled=False)
        unknown = [name for name in stated.terms if name not in self.coefficients]
        if unknown:
            raise AnalysisError(
                f"prior: there is no coefficient {unknown[0]!r}; they are "
                f"{', '.join(map(repr, self.coefficients[:8]))}"
            )
        middle, unit = 0.0, 1.0
        if self.family == "linear":
            middle = float(np.average(self.target, weights=self.weights))
            unit = math.sqrt(np.average((self.target - middle) ** 2, weights=self.weights)) or 1.0
        size = self.made.features.shape[1]
        whole = np.kron(np.eye(self.blocks), self.basis)
        # M phi ~ N(m, diag(d^2)): the rows of M are coordinates, or coefficients as stated.
        rows = np.eye(len(whole)) if stated.scaled else whole.copy()
        means = np.zeros(len(whole))
        deviations = np.full(len(whole), stated.deviation * (unit if stated.scaled else 1.0))
        if stated.scaled and self.made.terms[0] == _INTERCEPT:
            means[::size] = middle
        for name, (mean, deviation) in stated.terms.items():
            place = self.coefficients.index(name)
            rows[place], means[place], deviations[place] = whole[place], mean, deviation
        return Task(
            features=self.features,
            target=self.target,
            weights=self.weights,
            centre=np.linalg.solve(rows, means),
            precision=(rows / deviations[:, None] ** 2).T @ rows,
            noise=np.float64(unit if stated.scaled else stated.deviation),
        )

    def as_stated(self, draws: np.ndarray) -> np.ndarray:
        """Draws of the coefficients as they are stated, and of the noise's deviation."""
        size = len(self.basis)
        parts = [
            draws[:, :, place * size : (place + 1) * size] @ self.basis.T
            for place in range(self.blocks)
        ]
        if self.family == "linear":
            parts.append(np.exp(draws[:, :, -1:]))
        return np.concatenate(parts, axis=2)


def _basis(made: Matrices, weights: np.ndarray) -> np.ndarray:
    """Coefficients as stated, in terms of those of features with mean 0 and deviation 1."""
    x = made.features
    has_intercept = made.terms[:1] == (_INTERCEPT,)
    means = np.average(x, axis=0, weights=weights) if has_intercept else np.zeros(x.shape[1])
    scales = np.sqrt(np.average((x - means) ** 2, axis=0, weights=weights))
    # A feature that is the same in all rows is left as it is.
    scales = np.where(scales > 1e-12 * np.abs(x).max(axis=0, initial=0.0), scales, 1.0)
    if not has_intercept:
        return np.diag(1 / scales)
    # b_0 + sum b_j x_j = a_0 + sum a_j (x_j - mean_j) / s_j
    basis = np.diag(np.append(1.0, 1 / scales[1:]))
    basis[0, 1:] = -means[1:] / scales[1:]
    return basis


def _family(schema: Schema, read: ReadFormula, family: str) -> str:
    if not isinstance(family, str) or family not in ("auto", *FAMILIES):
        raise AnalysisError(f"family: expected auto, {', '.join(FAMILIES)}, not {shown(family)}")
    columns = [schema[name] for name in read.targets]
    cells = [column.ungrouped.cells for column in columns if not column.is_numeric]
    chosen = family
    if family == "auto":
        chosen = "linear"
        if len(columns) == 1 and cells:
            chosen = "logistic" if cells[0] == 2 else "multinomial"
    for column in columns:
        is_boolean = column.category_type == "boolean"
        fits = {
            "linear": column.is_numeric or is_boolean,
            "logistic": column.is_numeric or column.ungrouped.cells == 2,
            "multinomial": not column.is_numeric,
        }[chosen]
        if not fits:
            raise AnalysisError(
                f"family: the {chosen} family does not fit the target {column.name!r}, which is "
                f"{column.kind}; leave the option out to take the one that does"
            )
    return chosen


def _labels(schema: Schema, read: ReadFormula, family: str) -> tuple[Any, ...]:
    """The categories of a target that the model counts; none for a number."""
    if family == "linear" or len(read.targets) != 1:
        return ()
    column = schema[read.targets[0]]
    return () if column.categories is None else tuple(column.categories)


def check_positive(option: str, value: Any) -> None:
    """Refuse what is not a positive, finite number."""
    # Beyond these its square, or the inverse of it, is no finite number.
    real_number(option, value, "a positive number", AnalysisError, above=1e-100, below=1e100)
