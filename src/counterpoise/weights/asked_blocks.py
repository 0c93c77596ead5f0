"""The features that a question stated in advance is answered by: estimating functions, clipped.

An estimate is where the mean of some function of the rows is zero: x (y - mu(x.b)) for the
coefficients b of a model, 1[group] (y - m) for a group's mean m, the augmented inverse-probability
score for an average effect. At the estimate of the synthetic table, which is public, the mean of
that function over the private rows says how far the private estimate lies, to first order. So a
block evaluates it there, in coordinates in which the synthetic rows have covariance one, and cuts
each row's vector at a length that is public too: its bound is that length, for whatever row.
Weights that match the block's mean move the weighted estimate by that one step.
[PRIVACY: moment weights]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterpoise.errors import AnalysisError
from counterpoise.formulas.effects import augmented_score
from counterpoise.formulas.fitted import Fitted
from counterpoise.formulas.questions import Question
from counterpoise.formulas.row_by_row import row_products, row_squares
from counterpoise.formulas.rows import values_of
from counterpoise.schema import Coded, Schema

# This part of the synthetic rows has vectors that are not cut.
UNCUT = 0.9
# A question of more numbers than this would leave each of them to the noise.
MOST_ASKED = 200
# Directions with less than this part of the largest variance are left out.
LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False)
class AskedBlock(ABC):
    """Clipped linear functions of what a question asks of a row."""

    schema: Schema
    question: str
    matrix: np.ndarray  # raw numbers x features
    cut: float

    # These blocks take rows as they were coded: a model is of values, not of places.
    takes_values = True

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """One label a raw number."""

    @abstractmethod
    def raw(self, rows: Coded) -> np.ndarray:
        """The estimating function of each row, before scaling; 0 where it has no value."""

    @property
    def names(self) -> tuple[str, ...]:
        """One name a feature: that of the raw number that it is mostly made of."""
        labels, largest = self.labels, np.abs(self.matrix).argmax(axis=0)
        if len(set(largest.tolist())) < len(largest):
            return tuple(f"{self.question} [{place + 1}]" for place in range(len(largest)))
        return tuple(f"{self.question} [{labels[place]}]" for place in largest)

    @property
    def groups(self) -> tuple[str, ...]:
        """Each feature by itself: their covariance is one already."""
        return self.names

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """All that the question joins."""
        joined = Question.read(self.question).joined(self.schema)
        return (joined,) * self.matrix.shape[1]

    @property
    def bound(self) -> float:
        """The length at which vectors are cut."""
        return self.cut

    def __call__(self, rows: Coded) -> np.ndarray:
        """The features of each row, no longer than the bound."""
        values = row_products(self.raw(rows), self.matrix)
        return _cut(values, self.cut) if math.isfinite(self.cut) else values

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The block as JSON values."""

    def _values(self, kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "question": self.question,
            "matrix": self.matrix.tolist(),
            "cut": self.cut,
        }

    def _fitting(self, rows: Coded) -> Any:
        """The block scaled to covariance one over these rows, and cut."""
        raw = self.raw(rows)
        whole = replace(self, matrix=_whitening(raw))
        lengths = np.linalg.norm(whole(rows), axis=1)
        # A row that has no value in some column says nothing of how long the others are.
        present = lengths[np.abs(raw).max(axis=1) > 0]
        return replace(whole, cut=max(float(np.quantile(present, UNCUT)), 1e-3))


@dataclass(frozen=True, eq=False)
class ScoreBlock(AskedBlock):
    """The scores of a regression, x (y - mu(x.b))."""

    fitted: Fitted

    @classmethod
    def over(cls, question: Question, rows: Coded) -> ScoreBlock:
        """At the coefficients that these rows give."""
        [(read, family)] = question.models(rows.schema)
        fitted = Fitted.learn(read, family, rows)
        nothing = np.eye(len(_within(fitted.terms)))
        made: ScoreBlock = cls(rows.schema, str(question), nothing, math.inf, fitted)._fitting(rows)
        return made

    @property
    def labels(self) -> tuple[str, ...]:
        """The terms."""
        return self.fitted.terms

    def raw(self, rows: Coded) -> np.ndarray:
        """The scores."""
        return self.fitted.scores(rows)

    def to_dict(self) -> dict[str, Any]:
        """The block as JSON values."""
        return self._values("score") | {"fitted": self.fitted.to_dict()}

    @classmethod
    def from_dict(cls, schema: Schema, values: Mapping[str, Any]) -> ScoreBlock:
        """The inverse of `to_dict`."""
        return cls(*_shared(schema, values), Fitted.from_dict(schema, values["fitted"]))


@dataclass(frozen=True, eq=False)
class MeanBlock(AskedBlock):
    """1[group] (y - mean of the group), in deviations of y within groups."""

    means: np.ndarray  # of each group of codes
    deviation: float

    @classmethod
    def over(cls, question: Question, rows: Coded) -> MeanBlock:
        """At the means that these rows give."""
        groups = math.prod(rows.schema.shape(question.by))
        _within(range(groups))
        empty = cls(
            rows.schema, str(question), np.eye(groups), math.inf, np.zeros(groups), deviation=1.0
        )
        group, y, known = empty._read(rows)
        if not known.any():
            raise AnalysisError("no synthetic row has a value in all of its columns")
        counts = np.bincount(group[known], minlength=groups)
        whole = float(y[known].mean())
        # A group without rows has the mean of all.
        means = np.bincount(group[known], y[known], minlength=groups)
        means = np.divide(means, counts, out=np.full(groups, whole), where=counts > 0)
        deviation = float(np.sqrt(((y - means[group])[known] ** 2).mean()))
        if deviation == 0:
            raise AnalysisError("its column has one value in the synthetic rows")
        made = replace(empty, means=means, deviation=deviation)
        lengths = np.linalg.norm(made(rows), axis=1)[known]
        return replace(made, cut=max(float(np.quantile(lengths, UNCUT)), 1e-3))

    @property
    def measures(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The values' product with the groups, which is what their means depend on."""
        question = Question.read(self.question)
        return (("products", (*question.columns, *question.by)),)

    @property
    def labels(self) -> tuple[str, ...]:
        """The groups, by number."""
        return tuple(str(place) for place in range(len(self.means)))

    @property
    def groups(self) -> tuple[str, ...]:
        """All alike: a row is in one group."""
        return (self.question,) * len(self.means)

    def raw(self, rows: Coded) -> np.ndarray:
        """One number that is not 0, that of the row's group."""
        group, y, known = self._read(rows)
        found = np.zeros((len(rows), len(self.means)))
        misses = np.where(known, y - self.means[group], 0.0) / self.deviation
        found[np.arange(len(rows)), group] = misses
        return found

    def to_dict(self) -> dict[str, Any]:
        """The block as JSON values."""
        own = {"means": self.means.tolist(), "deviation": self.deviation}
        return self._values("mean") | own

    @classmethod
    def from_dict(cls, schema: Schema, values: Mapping[str, Any]) -> MeanBlock:
        """The inverse of `to_dict`."""
        return cls(*_shared(schema, values), np.array(values["means"]), values["deviation"])

    def _read(self, rows: Coded) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The group of each row by its codes, its number, and whether it has one."""
        question = Question.read(self.question)
        group = np.zeros(len(rows), dtype=np.int64)
        for name, size in zip(question.by, self.schema.shape(question.by), strict=True):
            group = group * size + rows.codes[:, self.schema.index(name)]
        y = values_of(rows, question.columns)[question.columns[0]].to_numpy()
        return group, np.nan_to_num(y, nan=0.0), ~np.isnan(y)


@dataclass(frozen=True, eq=False)
class EffectBlock(AskedBlock):
    """The augmented inverse-probability score of an average effect (Robins and others, 1994).

    Less its mean, with the outcomes of each arm and the propensity as the synthetic rows have
    them. Its mean does not change with those, to first order: that they are fitted again under the
    weights hardly matters.
    """

    treatment: Fitted
    outcomes: tuple[Fitted, Fitted]  # of those without and with the treatment
    centre: float

    @classmethod
    def over(cls, question: Question, rows: Coded) -> EffectBlock:
        """At the regressions that these rows give."""
        (treated, binomial), (outcome, family) = question.models(rows.schema)
        treatment = Fitted.learn(treated, binomial, rows)
        _, t, known = treatment.matrices(rows)
        arms = [Fitted.learn(outcome, family, rows, known & (t == arm)) for arm in (0, 1)]
        one = np.eye(1)
        made = cls(
            rows.schema, str(question), one, math.inf, treatment, (arms[0], arms[1]), centre=0.0
        )
        scores, known = made.scores(rows)
        made = replace(made, centre=float(scores[known].mean()))
        found: EffectBlock = made._fitting(rows)
        return found

    @property
    def labels(self) -> tuple[str, ...]:
        """The one effect."""
        return ("effect",)

    def raw(self, rows: Coded) -> np.ndarray:
        """The score less its mean."""
        scores, known = self.scores(rows)
        return np.where(known, scores - self.centre, 0.0)[:, None]

    def scores(self, rows: Coded) -> tuple[np.ndarray, np.ndarray]:
        """The score, and which rows have one."""
        x, t, known = self.treatment.matrices(rows)
        propensity, means = self.treatment.means(x), []
        for arm in self.outcomes:
            z, y, has_outcome = arm.matrices(rows)
            known = known & has_outcome
            means.append(arm.means(z))
        return augmented_score(t, y, propensity, *means), known

    def to_dict(self) -> dict[str, Any]:
        """The block as JSON values."""
        return self._values("effect") | {
            "treatment": self.treatment.to_dict(),
            "outcomes": [arm.to_dict() for arm in self.outcomes],
            "centre": self.centre,
        }

    @classmethod
    def from_dict(cls, schema: Schema, values: Mapping[str, Any]) -> EffectBlock:
        """The inverse of `to_dict`."""
        without, with_ = (Fitted.from_dict(schema, arm) for arm in values["outcomes"])
        treatment = Fitted.from_dict(schema, values["treatment"])
        return cls(*_shared(schema, values), treatment, (without, with_), values["centre"])


ASKED_BLOCKS: dict[str, Callable[[Schema, Mapping[str, Any]], AskedBlock]] = {
    "score": ScoreBlock.from_dict,
    "mean": MeanBlock.from_dict,
    "effect": EffectBlock.from_dict,
}


def _shared(schema: Schema, values: Mapping[str, Any]) -> tuple[Schema, str, np.ndarray, float]:
    return schema, values["question"], np.array(values["matrix"]), float(values["cut"])


def _within(numbers: Any) -> Any:
    if len(numbers) > MOST_ASKED:
        raise AnalysisError(f"it asks for {len(numbers):,} numbers, and at most {MOST_ASKED} fit")
    return numbers


def _cut(values: np.ndarray, length: float) -> np.ndarray:
    """Rows shortened to a length as the vault does it: no number beyond it, then the norm."""
    values = np.clip(np.nan_to_num(values, nan=0.0), -length, length)
    norms = np.sqrt(row_squares(values / length))
    return np.asarray(values / np.maximum(norms, 1.0)[:, None])


def _whitening(raw: np.ndarray) -> np.ndarray:
    """The matrix after which these rows have covariance one, each feature near its own number."""
    covariance = np.atleast_2d(np.cov(raw, rowvar=False))
    deviations = np.sqrt(np.diag(covariance))
    deviations = np.where(deviations > 0, deviations, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(deviations, deviations))
    seen = values > LEAST_VARIANCE * values[-1]
    if not seen.any():
        raise AnalysisError("the synthetic rows leave nothing of it open")
    inverse = (vectors[:, seen] / np.sqrt(values[seen])) @ vectors[:, seen].T
    return np.asarray(inverse / deviations[:, None])
