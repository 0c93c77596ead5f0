"""Average effects of a treatment, adjusted for what goes with it, with intervals.

The augmented score (`formulas.effects`) is averaged with the weights, with regressions of the
treatment and of each arm's outcome that are fitted with the same weights; once more with every
replicate, so that the interval has the noise of all of it. It is an effect only if what is given
is all that treatment and outcome have in common, which no table can show. Overlap it can: rows
with next to no chance to be in one of the arms are counted, and too many are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.asked import effect_was_asked
from counterpoise.analysis.coefficients import supports_of
from counterpoise.analysis.replication import Design
from counterpoise.analysis.result import Estimate, estimate, joined, of_kept_rows
from counterpoise.analysis.support import MEASURED, NEVER, Measured, worst
from counterpoise.errors import AnalysisError
from counterpoise.formulas.effects import OVERLAP, augmented_score, beyond_overlap
from counterpoise.formulas.families import coded_targets
from counterpoise.formulas.likelihood import FAMILIES, Numeric, maximise
from counterpoise.formulas.matrices import read_formula
from counterpoise.formulas.questions import Question
from counterpoise.schema.expression_trees import Name, written

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# From this part of the rows on it is said that they lack overlap, and from that it is refused.
NOTABLE, TOO_MANY = 0.01, 0.5
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
    t = arms.target
    if not 0 < t.sum() < len(t):
        raise AnalysisError(f"effect: all synthetic rows are in one arm of {treatment!r}")
    y = outcomes.target
    found = _Fits(arms.features, t, outcomes.features, y, family)
    results = np.array([found.value(each[rows]) for each in design.each()])
    part = found.beyond(design.weights[rows])
    if part > TOO_MANY:
        raise AnalysisError(
            f"effect: {part:.0%} of the rows have a chance below {OVERLAP[0]:.0%} to be in one of "
            f"the arms of {treatment!r}: there is nobody to compare them with; ask about a part of "
            "the population in which both occur"
        )
    note = ""
    if part >= NOTABLE:
        note = f"{part:.0%} of the rows have next to no chance to be in one of the arms"
    found_effect = estimate(design.whole_way(results), note=note)
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
    if effect_was_asked(release, question):
        return MEASURED
    treatment, outcome = (written(Name(name)) for name in question.columns)
    read = read_formula(f"{outcome} ~ {treatment} + {question.formula}", release.schema)
    layout = read.matrices(table, coded).recipe.layout
    return worst(supports_of(Measured.of_release(release), read, layout).supports)


class _Fits:
    """The regressions of an effect, each fit the start of the next."""

    def __init__(self, z: np.ndarray, t: np.ndarray, x: np.ndarray, y: np.ndarray, family: str):
        self.z, self.t, self.x, self.y = (_scaled(z), t, _scaled(x), y)
        self.arm = Numeric(self.z, t, FAMILIES["binomial"])
        self.outcome = Numeric(self.x, y, FAMILIES[family])
        self.starts: dict[str, np.ndarray] = {}

    def value(self, weights: np.ndarray) -> float:
        """The effect with these weights; NaN where a regression has no maximum."""
        fitted = self._all(weights)
        if fitted is None:
            if not self.starts:
                raise AnalysisError(
                    "effect: a regression does not converge, because its terms separate the "
                    "arms or the outcomes; leave out a term"
                )
            return float("nan")
        score = augmented_score(self.t, self.y, *fitted)
        return float(weights @ score / weights.sum())

    def beyond(self, weights: np.ndarray) -> float:
        """The weighted part of the rows that lack overlap."""
        fitted = self._all(weights)
        assert fitted is not None
        return float(weights @ beyond_overlap(fitted[0]) / weights.sum())

    def _all(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        made: list[np.ndarray] = []
        fits = (
            ("arm", self.arm, weights),
            ("without", self.outcome, weights * (1 - self.t)),
            ("with", self.outcome, weights * self.t),
        )
        for name, likelihood, own in fits:
            start = self.starts.get(name)
            beta = maximise(likelihood, own, likelihood.start(own) if start is None else start)
            if beta is None:
                return None
            if start is None and name == "with":
                self.starts = {"arm": made[0], "without": made[1], "with": beta}
            made.append(beta)
        return (
            self.arm.family.mean(self.z @ made[0]),
            self.outcome.family.mean(self.x @ made[1]),
            self.outcome.family.mean(self.x @ made[2]),
        )


def _scaled(x: np.ndarray) -> np.ndarray:
    """Terms of one size, so that Newton's equations are well conditioned."""
    sizes = np.sqrt((x**2).mean(axis=0))
    return np.asarray(x / np.where(sizes > 0, sizes, 1))
