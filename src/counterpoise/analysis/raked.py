"""Margins on the rows of a release: its weight and every replicate raked, or why they cannot be.

A replicate may lack rows of a small category that the weight has, because another sample would have
had none. Then the weight's rows stand in for them, with a hundredth of their weight before raking,
and it is counted how often that was needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.margins import Condition, Known, Mean
from counterpoise.analysis.raking import Patterns, factors, out_of_reach, rake
from counterpoise.bundle.saved_replicates import MANY
from counterpoise.errors import AnalysisError

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

MARGINS = "margins"
# What a replicate that lacks rows of a margin borrows of the weight, so that it has some.
LENT = 0.01


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weights and their replicates (rows x R); `lent` of these lacked rows that were needed."""

    weights: np.ndarray
    replicates: np.ndarray
    lent: int = 0


@dataclass(frozen=True, eq=False)
class Raking:
    """Margins that all hold at once."""

    margins: tuple[Known, ...]
    kind: str = MARGINS
    problem: None = None

    def to_dict(self, release: Release) -> dict[str, Any]:
        """The step as the card has it."""
        return {
            "kind": self.kind,
            "columns": [list(each.columns) for each in self.margins],
            "margins": [each.to_dict(release) for each in self.margins],
        }


def raked(release: Release, step: Raking, found: Weighed) -> tuple[Weighed, list[Any]]:
    """All weights raked to the margins; and the shares, or the mean, that the weight had before."""
    used = (found.weights > 0) | (found.replicates > 0).any(axis=1)
    task = _Task.of([each.condition(release, found.weights, used) for each in step.margins])
    before = [
        margin.written(release, float(own[0])) if isinstance(margin, Mean) else own.tolist()
        for margin, own in (
            (margin, condition.found(found.weights))
            for margin, condition in zip(step.margins, task.conditions, strict=True)
        )
    ]
    solved = task.solve(found.weights, np.zeros(task.patterns.features.shape[1]))
    if solved is None:
        raise _refusal(release, step, task, found.weights)
    weights, theta = solved
    made, lent = empty_like(found.replicates), found.lent
    for place in range(made.shape[1]):
        column = found.replicates[:, place].astype(float)
        here = task.solve(column, theta)
        if here is None:
            lent += 1
            here = task.solve((1 - LENT) * column + LENT * found.weights, theta) or solved
        made[:, place] = here[0]
    return Weighed(weights, made, lent), before


def empty_like(replicates: np.ndarray) -> np.ndarray:
    """Room for other replicates.

    In double precision margins hold to all digits; of very many numbers single does as well.
    """
    exact = replicates.size <= MANY
    return np.empty(replicates.shape, dtype=np.float64 if exact else np.float32)


@dataclass(frozen=True, eq=False)
class _Task:
    """The conditions that margins make, on the patterns of their features."""

    conditions: list[Condition]
    patterns: Patterns
    left_out: np.ndarray

    @classmethod
    def of(cls, conditions: list[Condition]) -> _Task:
        features, keys = [each.features for each in conditions], [each.keys for each in conditions]
        left_out = np.logical_or.reduce([each.zero for each in conditions])
        return cls(conditions, Patterns.of(features, keys), left_out)

    def targets(self, weights: np.ndarray) -> np.ndarray:
        """The means that all features are to have."""
        return np.concatenate([each.targets_of(weights) for each in self.conditions])

    def base(self, weights: np.ndarray) -> np.ndarray | None:
        """The weight of every pattern without what is left out; None where nothing remains."""
        kept = np.where(self.left_out, 0.0, weights)
        return self.patterns.sums(kept) if kept.sum() > 0 else None

    def solve(self, weights: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Raked weights that average to one, and their theta; None where there are none."""
        base = self.base(weights)
        if base is None:
            return None
        theta = rake(self.patterns.features, base, self.targets(weights), start)
        if theta is None:
            return None
        factor = factors(self.patterns.features, base, theta)[self.patterns.of_row]
        made = np.where(self.left_out, 0.0, weights) * factor
        return made / made.mean(), theta

    def features(self) -> Iterator[tuple[int, int]]:
        """For each feature the place of its condition, and its own place there."""
        for place, condition in enumerate(self.conditions):
            for own in range(len(condition.targets) + 1):
                yield place, own


def _refusal(release: Release, step: Raking, task: _Task, weights: np.ndarray) -> AnalysisError:
    """Which margin is off, and by how much."""
    base = task.base(weights)
    if base is None:
        return AnalysisError("margins: they leave no row any weight; the target is empty")
    targets, features = task.targets(weights), list(task.features())
    there = np.asarray(abs(task.patterns.features).T @ base)
    for (place, own), mass, target in zip(features, there, targets, strict=True):
        condition = task.conditions[place]
        if mass <= 0 < target and own < len(condition.targets):
            return AnalysisError(
                f"margins: {condition.name}: no row has {condition.labels[own]}, so its share "
                f"cannot be {condition.targets[own]:.3g}; merge it with another, or state 0"
            )
    found = out_of_reach(task.patterns.features, base, targets)
    if found.feature is None:
        return AnalysisError(
            "margins: hardly any weights have them all; state fewer margins, or coarser ones"
        )
    place, own = features[found.feature]
    condition, margin = task.conditions[place], step.margins[place]
    others = "" if len(step.margins) == 1 else " together with the others"
    if own == len(condition.targets):
        off = "not while as many rows stay null as are; state the share of null (None) as well"
    else:
        # A share among the rows that count, of which there stay as many as are.
        kept = 1 - float(condition.targets_of(weights)[-1])
        best = condition.centre + condition.unit * found.best / kept
        stated = condition.centre + condition.unit * float(condition.targets[own])
        said: list[Any] = [best, stated]
        if isinstance(margin, Mean):
            said = [margin.written(release, value) for value in said]
        best_said, stated_said = (
            value if isinstance(value, str) else f"{value:,.4g}" for value in said
        )
        off = f"{condition.labels[own]} comes to {best_said} at best, not {stated_said}"
    return AnalysisError(f"margins: {condition.name} cannot be reached{others}: {off}")
