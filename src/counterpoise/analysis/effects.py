"""Average effects of a treatment, adjusted for what goes with it, with intervals.

The augmented score (`formulas.effects`) is averaged with the weights, with regressions of the
treatment and of each arm's outcome that are fitted with the same weights; once more with every
replicate, so that the interval has the noise of all of it. It is an effect only if what is given
is all that treatment and outcome have in common, which no table can show. Overlap it can: rows
with next to no chance to be in one of the arms are counted, and what is said of them there is their
regression's, as of a rare treatment, or of a ward in which everybody is treated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.asked import effect_was_asked
from counterpoise.analysis.coefficients import steps_of, supports_of
from counterpoise.analysis.replication import Design
from counterpoise.analysis.result import Estimate, estimate, joined, of_kept_rows
from counterpoise.analysis.support import MEASURED, NEVER, Measured, worst
from counterpoise.analysis.weak_prior import Doubt, Fit, fit, hold, rank_of, said_of
from counterpoise.errors import AnalysisError
from counterpoise.formulas.effects import OVERLAP, augmented_score, beyond_overlap
from counterpoise.formulas.families import coded_targets
from counterpoise.formulas.likelihood import FAMILIES, Family, Numeric, maximise
from counterpoise.formulas.matrices import Matrices, read_formula
from counterpoise.formulas.questions import Question
from counterpoise.formulas.row_sums import triangle
from counterpoise.schema.expression_trees import Name, written

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# From this part of the rows on it is said that they lack overlap. A round number; not studied.
NOTABLE = 0.01
NOBODY_LOOKED = "no interval, because a relation that it depends on was never measured"


@of_kept_rows
def effect(release: Release, treatment: str, outcome: str, given: str) -> Estimate:
    """The average effect of a treatment on an outcome; see `Release.effect`.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"t": [0, 1, 0, 1], "y": [1.0, 3.0, 2.0, 4.0], "x": [0, 0, 1, 1]})
    >>> table = pd.concat([table] * 3).assign(weight=1.0, t=lambda rows: rows["t"] == 1)
    >>> columns = [cp.Column.boolean("t"), cp.Column.continuous("y", 0, 9)]
    >>> schema = cp.Schema([*columns, cp.Column.integer("x", 0, 1)])
    >>> round(effect(cp.Release(table, schema, card={}), "t", "y", "x").value, 6)
    2.0
    """
    design = Design.of(release)
    question = Question.effect(treatment, outcome, given)
    question.joined(release.schema)
    (treated, arm_family), (model, family) = question.models(release.schema)
    coded = [
        *coded_targets(release.schema, treated.targets, arm_family),
        *coded_targets(release.schema, model.targets, family),
    ]
    columns = [*question.columns, *treated.used]
    known = release.schema.plain.restore(release.table[list(release.schema.plain.names)])
    rows = np.flatnonzero(known[columns].notna().all(axis=1).to_numpy())
    table = release.table.iloc[rows]
    arms, outcomes = treated.matrices(table, coded), model.matrices(table, coded)
    weights = design.weights[rows]
    if not 0 < weights @ arms.target < weights.sum():
        raise AnalysisError(f"effect: all synthetic rows are in one arm of {treatment!r}")
    found = _Fits.of(arms, outcomes, FAMILIES[family], weights, design.part)
    results = np.array([found.value(each[rows], place) for place, each in enumerate(design.each())])
    part = found.beyond_overlap
    note = ""
    if part >= NOTABLE:
        note = (
            f"{part:.0%} of the rows have next to no chance to be in one of the arms, and what they"
            " would have there is what the regression of the others says"
        )
    note = joined(note, said_of(found.untold) if found.untold else "")
    found_effect = estimate(design.whole_way(results), note=note, beyond=found.doubt)
    support = _support(release, question, table, coded)
    if support == NEVER:
        # Nothing in the release knows of the effect, and the replicates know nothing of that.
        return replace(
            found_effect,
            standard_error=None,
            span=None,
            note=joined(note, NOBODY_LOOKED),
            support=support,
        )
    return replace(found_effect, support=support)


def _support(release: Release, question: Question, table: Any, coded: Sequence[str]) -> str:
    """That of the weakest coefficient of the outcome's model with the treatment in it."""
    asked = effect_was_asked(release, question)
    if asked == MEASURED:
        return MEASURED
    treatment, outcome = (written(Name(name)) for name in question.columns)
    read = read_formula(f"{outcome} ~ {treatment} + {question.formula}", release.schema)
    layout = read.matrices(table, coded).recipe.layout
    return worst(supports_of(Measured.of_release(release), read, layout, asked).supports)


@dataclass(frozen=True, eq=False)
class _Regression:
    """A regression of one arm's rows, or of all, as it was fitted with the weights."""

    likelihood: Numeric
    arm: np.ndarray  # one where a row counts
    made: Fit
    doubt: Doubt
    untold: tuple[str, ...]

    @classmethod
    def of(
        cls, made: Matrices, family: Family, arm: np.ndarray, weights: np.ndarray, part: float
    ) -> _Regression:
        """The regression on the rows of an arm; replicates go a part of the way."""
        x, own = _scaled(made.features), weights * arm
        steps, varies = steps_of(x, weights), x.min(axis=0) < x.max(axis=0)
        if family.has_dispersion:
            # In standard deviations of the outcome.
            steps = steps / (float(steps_of(made.target[:, None], weights)[0]) / 2)
        likelihood = Numeric(x, made.target, family)
        can_tell = rank_of(triangle(x, np.sqrt(own)))[0] == x.shape[1]
        found = fit(likelihood, own, steps, varies, can_tell)
        if found is None:
            raise AnalysisError("effect: a regression does not converge; leave out a term")
        dispersion = likelihood.dispersion(likelihood.predictor(found.beta), own)
        untold = tuple(made.terms[place] for place in found.untold(steps))
        doubt = Doubt(steps, varies, dispersion, part)
        return cls(likelihood, arm, found, doubt, untold)

    def means(self, weights: np.ndarray | None = None, replicate: int = 0) -> np.ndarray:
        """The means of all rows with the weights, or with others; NaN where there are none."""
        beta: np.ndarray | None = self.made.beta
        if weights is not None:
            own = weights * self.arm
            beta = maximise(self.made.likelihood, own, self.made.beta)
            if beta is None:
                beta = hold(self.made, own, replace(self.doubt, replicate=replicate))
        if beta is None:
            return np.full(len(self.arm), np.nan)
        return self.likelihood.family.mean(self.likelihood.predictor(beta))

    def moved(self, slopes: np.ndarray) -> np.ndarray:
        """How much a sum moves for each prior, of so much for each row's mean."""
        # d mu / d eta = V(mu) for a canonical link
        slopes = slopes * self.likelihood.family.variance(self.means())
        return np.asarray((slopes @ self.likelihood.x) @ self.made.moves)


@dataclass(frozen=True, eq=False)
class _Fits:
    """The regressions of an effect: of the treatment, and of the outcome in each arm."""

    treated: _Regression
    without: _Regression
    with_: _Regression
    t: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, arms: Matrices, outcomes: Matrices, family: Family, weights: np.ndarray, part: float
    ) -> _Fits:
        """All three, fitted with the weights."""
        t = arms.target
        return cls(
            _Regression.of(arms, FAMILIES["binomial"], np.ones(len(t)), weights, part),
            _Regression.of(outcomes, family, 1 - t, weights, part),
            _Regression.of(outcomes, family, t, weights, part),
            t,
            outcomes.target,
            weights,
        )

    def value(self, weights: np.ndarray, replicate: int) -> float:
        """The effect with other weights; NaN where there is none."""
        if not weights.sum() > 0:
            return float("nan")
        regressions = self.treated, self.without, self.with_
        means = (each.means(weights, replicate) for each in regressions)
        return float(weights @ augmented_score(self.t, self.y, *means) / weights.sum())

    @property
    def beyond_overlap(self) -> float:
        """The weighted part of the rows that lack overlap."""
        return float(self.weights @ beyond_overlap(self.treated.means()) / self.weights.sum())

    @property
    def doubt(self) -> float:
        """The standard error of the effect by what priors hold in the outcome's regressions.

        An error of the treatment's regression has no part in it to first order.
        """
        each, chance = self.weights / self.weights.sum(), np.clip(self.treated.means(), *OVERLAP)
        moved = (
            self.with_.moved(each * (1 - self.t / chance)),
            self.without.moved(each * (1 - (1 - self.t) / (1 - chance))),
        )
        return float(np.linalg.norm(np.concatenate(moved)))

    @property
    def untold(self) -> list[str]:
        """The terms that a prior holds in any of the regressions."""
        regressions = self.treated, self.without, self.with_
        return list(dict.fromkeys(name for each in regressions for name in each.untold))


def _scaled(x: np.ndarray) -> np.ndarray:
    """Terms of one size, so that Newton's equations are well conditioned."""
    sizes = np.sqrt((x**2).mean(axis=0))
    return np.asarray(x / np.where(sizes > 0, sizes, 1))
