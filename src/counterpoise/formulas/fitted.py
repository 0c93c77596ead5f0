"""A regression fitted to public rows, whose means and scores can be had on any coded rows.

The score of a row is the gradient of its log-likelihood, x (y - mu(x.beta)) for the canonical
links here, so a mean of scores over other rows says which way, and how far, their own coefficients
lie: beta + J^-1 mean score is one step of Newton's method from beta, with J the information (A. W.
van der Vaart, Asymptotic Statistics, 1998, section 5.7). Everything is fixed when the model is
fitted. On other rows nothing is refused: where a column is null, a category unknown, or a term no
number, a row has score 0, and a linear predictor is held within those of the rows fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import linalg

from counterpoise.errors import AnalysisError
from counterpoise.formulas.families import MULTINOMIAL, coded_targets
from counterpoise.formulas.keeping import layout_of, layout_values
from counterpoise.formulas.layout import Layout
from counterpoise.formulas.likelihood import (
    FAMILIES,
    Drawn,
    Likelihood,
    Multinomial,
    Numeric,
    maximise,
    probabilities,
)
from counterpoise.formulas.matrices import ReadFormula, read_formula
from counterpoise.formulas.row_by_row import row_products
from counterpoise.formulas.rows import values_of
from counterpoise.schema import Coded, Schema
from counterpoise.schema.expressions import NotComputed

# Where terms separate the target there is no maximum: coefficients of terms of size one are then
# drawn to zero by so many rows' worth of information.
RIDGE = 1.0
# A term of which others leave less than this part is left out.
LEAST_LEFT = 1e-6


@dataclass(frozen=True, eq=False)
class Fitted:
    """A regression: its terms as they were learnt, and its coefficients."""

    read: ReadFormula
    family: str
    target: Layout
    features: Layout
    levels: dict[str, list[Any]]  # the categories that had rows
    kept: np.ndarray  # the places of the terms that can be told apart
    beta: np.ndarray  # coefficients of those; for a multinomial model of every category in turn
    categories: int  # of a multinomial target; 2 otherwise
    reach: np.ndarray  # the least and the largest linear predictor of the rows fitted to

    @classmethod
    def learn(
        cls, read: ReadFormula, family: str, rows: Coded, where: np.ndarray | None = None
    ) -> Fitted:
        """Fit to coded rows that are public, or to those of them in `where`."""
        made = _frame(read, family, rows)
        known = made.notna().all(axis=1).to_numpy() & (True if where is None else where)
        made = made[known].reset_index(drop=True)
        if not len(made):
            raise AnalysisError("no synthetic row has a value in all of its columns")
        levels = {}
        for name in map(str, made.select_dtypes("category")):
            made[name] = made[name].cat.remove_unused_categories()
            levels[name] = list(made[name].cat.categories)
        try:
            target, features = (Layout.learn(side, made) for side in (read.left, read.right))
        except NotComputed as reason:
            raise AnalysisError(f"it cannot be computed: {reason}") from None
        features.check(len(made))
        if len(target.names) != 1 or not features.names:
            raise AnalysisError("expected one target and at least one term")
        x, y = features.matrix(made), target.matrix(made)[:, 0]
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise AnalysisError("a term is no finite number in some of the synthetic rows")
        _check_range(y, family)
        kept = _independent(x)
        count = int(y.max()) + 1 if family == MULTINOMIAL else 2
        beta = _fit(x[:, kept], y, family, count)
        model = cls(
            read,
            family,
            target.held(),
            features.held(),
            levels,
            kept,
            beta,
            count,
            np.array([-np.inf, np.inf]),
        )
        eta = model._eta(x[:, kept])
        return replace(model, reach=np.array([eta.min(), eta.max()]))

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of its coefficients."""
        names = self.features.names
        own = [names[place] for place in self.kept]
        if self.family != MULTINOMIAL:
            return tuple(own)
        return tuple(f"{place}: {name}" for place in range(1, self.categories) for name in own)

    def matrices(self, rows: Coded) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The terms, the targets, and which rows have them; 0 in the rows that have not."""
        made = _frame(self.read, self.family, rows)
        for name, levels in self.levels.items():
            made[name] = made[name].cat.set_categories(levels)
        known = made.notna().all(axis=1).to_numpy()
        x, y = np.zeros((len(rows), len(self.kept))), np.zeros(len(rows))
        with np.errstate(all="ignore"):
            x[known] = self.features.matrix(made[known])[:, self.kept]
            y[known] = self.target.matrix(made[known])[:, 0]
        known = known & np.isfinite(x).all(axis=1) & np.isfinite(y)
        x[~known], y[~known] = 0.0, 0.0
        return x, y, known

    def means(self, x: np.ndarray) -> np.ndarray:
        """The expected target of rows with these terms; a column a category but the first."""
        if self.family == MULTINOMIAL:
            return probabilities(self._eta(x))[:, 1:]
        return np.asarray(FAMILIES[self.family].mean(self._eta(x)))

    def scores(self, rows: Coded) -> np.ndarray:
        """The gradient of each row's log-likelihood by the coefficients."""
        x, y, known = self.matrices(rows)
        if self.family == MULTINOMIAL:
            misses = (y[:, None] == np.arange(1, self.categories)) - self.means(x)
        else:
            misses = (y - self.means(x))[:, None]
        misses = np.where(known[:, None], misses, 0.0)
        shape = (len(rows), misses.shape[1] * x.shape[1])
        return np.asarray((misses[:, :, None] * x[:, None, :]).reshape(shape))

    def to_dict(self) -> dict[str, Any]:
        """The model as JSON values."""
        return {
            "formula": self.read.formula,
            "family": self.family,
            "target": layout_values(self.target),
            "features": layout_values(self.features),
            "levels": self.levels,
            "kept": self.kept.tolist(),
            "beta": self.beta.tolist(),
            "categories": self.categories,
            "reach": self.reach.tolist(),
        }

    @classmethod
    def from_dict(cls, schema: Schema, values: Mapping[str, Any]) -> Fitted:
        """The inverse of `to_dict`."""
        read = read_formula(values["formula"], schema)
        return cls(
            read,
            values["family"],
            layout_of(read.left, values["target"]),
            layout_of(read.right, values["features"]),
            dict(values["levels"]),
            np.array(values["kept"], dtype=int),
            np.array(values["beta"], dtype=float),
            int(values["categories"]),
            np.array(values["reach"], dtype=float),
        )

    def _eta(self, x: np.ndarray) -> np.ndarray:
        # A column a category but the first; otherwise there is one.
        made = row_products(x, self.beta.reshape(-1, x.shape[1]).T)
        return np.clip(made if self.family == MULTINOMIAL else made[:, 0], *self.reach)


def _frame(read: ReadFormula, family: str, rows: Coded) -> pd.DataFrame:
    needed = {*read.targets, *read.used}
    names = [name for name in rows.schema.names if name in needed]
    return values_of(rows, names, coded_targets(rows.schema, read.targets, family))


def _check_range(y: np.ndarray, family: str) -> None:
    known = FAMILIES.get(family)
    if known is not None and (y.min() < known.lowest or y.max() > known.highest):
        raise AnalysisError(
            f"the {family} family needs a target between {known.lowest:g} and {known.highest:g}"
        )
    if y.min() == y.max():
        raise AnalysisError("its target has one value in the synthetic rows")


def _independent(x: np.ndarray) -> np.ndarray:
    """The places of the terms that can be told apart, in their order."""
    sizes = np.sqrt((x**2).mean(axis=0))
    present = np.flatnonzero(sizes > 0)
    if not len(present):
        raise AnalysisError("its terms are zero in all synthetic rows")
    triangle, order = linalg.qr(x[:, present] / sizes[present], mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > LEAST_LEFT * diagonal[0]).sum())
    return np.sort(present[order[:rank]])


def _fit(x: np.ndarray, y: np.ndarray, family: str, categories: int) -> np.ndarray:
    # Terms of one size, so that Newton's equations are well conditioned.
    sizes = np.sqrt((x**2).mean(axis=0))
    likelihood: Likelihood
    if family == MULTINOMIAL:
        likelihood = Multinomial(x / sizes, y.astype(np.int64), categories)
        sizes = np.tile(sizes, categories - 1)
    else:
        likelihood = Numeric(x / sizes, y, FAMILIES[family])
    weights = np.ones(len(x))
    beta = maximise(likelihood, weights, likelihood.start(weights))
    if beta is None:
        zero = np.zeros(len(sizes))
        beta = maximise(Drawn(likelihood, zero, np.full(len(sizes), RIDGE)), weights, zero)
    if beta is None:
        raise AnalysisError("the fit to the synthetic rows does not converge")
    return np.asarray(beta / sizes)
