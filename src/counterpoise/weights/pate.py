"""PATE weights: the ratio from teachers' noisy votes on public rows, learnt by a student.

Every private row goes to one of m teachers, each of which learns, behind the vault's boundary, to
tell its few rows from synthetic ones. On some synthetic rows the vault counts, with noise, how many
teachers say "private" (Papernot and others 2017; suggested for ratios by Ghalebikesabi and others
2021, section 3.4). A student sees synthetic rows and noisy shares of votes, and nothing else; its
logit smooths the votes over the rows. It takes no more steps than keep the noise on a logit below
0.6, the same from however many rows the votes are.

A share of votes is not a probability: it says how many teachers are on one side, not how sure they
are. So the student's logit is put on its scale by a rehearsal. Rows are drawn from the synthetic
table with the weights exp(s t), other teachers are trained on them and another student on their
votes, all of it public; s is moved until that student's logits are as steep as t, within a factor
of two.

Charge: the number of rows, 5% of the share under add/remove, and one Gaussian on each count, the
rest. The counts of Q rows with noise s cost Q / (2 s^2), and their sum over rows says as much
whatever Q is: what counts is the number of teachers, where `dp-mlp` counts rows. [PRIVACY: PATE]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from counterpoise.arguments import real_number, settle, whole_number
from counterpoise.errors import BudgetError
from counterpoise.networks import Inputs, Network, Optimiser, standardised_start, typical_slope
from counterpoise.networks.team import initial_team, team_gradient, team_outputs
from counterpoise.schema import Schema
from counterpoise.vault import Share, TeacherPlan, Vault
from counterpoise.weights.classification import TOTAL_FRACTION
from counterpoise.weights.debias import average_to_one
from counterpoise.weights.network_ratio import (
    LEAST_STEPS,
    MOST_NOISE,
    MOST_STEPS,
    checked_public_rows,
    spread_places,
)
from counterpoise.weights.protocol import (
    WEIGHTERS,
    Redrawable,
    check_request,
    coded_rows,
    pay_for_total,
)
from counterpoise.weights.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws

# A teacher has few rows, so that there are many; a linear one can still be taught.
ROWS_A_TEACHER, MOST_TEACHERS = 5, 2000
TEACHER_STEPS, TEACHER_BATCH = 40, 16
TEACHER_OPTIMISER = Optimiser("adam", rate=0.05)

QUERIES = 500

# In units of 1/G^2; the curvature of the student's loss is at most G^2/4.
STUDENT_PACE = 4.0
STUDENT_HIDDEN = 64

REHEARSALS, MOST_STRETCH = 2, 2.0

# What is public may be the same in every fit.
_SEED = 0


@WEIGHTERS.register("pate")
@dataclass(frozen=True)
class Pate:
    """Weights from teachers' noisy votes.

    `teachers` is m; None takes one for every five private rows, up to 2000. `queries` is the number
    of synthetic rows that are voted on. Log-weights are cut at plus and minus `limit`.
    """

    teachers: int | None = None
    queries: int = QUERIES
    limit: float = 4.0

    is_free = False
    needs_delta = True
    needs_rows = True

    def __post_init__(self) -> None:
        teachers = self.teachers
        settle(
            self,
            teachers=None if teachers is None else whole_number("teachers", teachers, 1, 100_000),
            queries=whole_number("queries", self.queries, 1, 1_000_000),
            limit=real_number("limit", self.limit, "a positive number", above=0),
        )

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None,
        synthesizer: Redrawable | None = None,
    ) -> PateModel:
        """Pay for the number of rows, where it is private, and for all votes in advance."""
        check_request(vault, share, synthesizer)
        if share is None:
            raise BudgetError("a network's weights look at private rows: give them a share")
        if share.pure:
            raise BudgetError("noisy votes need delta > 0: state a delta, such as 1e-9")
        inputs = Inputs(vault.schema)
        public = inputs(checked_public_rows(vault.schema, synthetic))
        total, rest = pay_for_total(vault, share, TOTAL_FRACTION)
        population = max(1.0, float(total.value))
        teachers = self.teachers
        if teachers is None:
            teachers = int(min(MOST_TEACHERS, max(1, population // ROWS_A_TEACHER)))
        plan = TeacherPlan.within(
            vault,
            rest,
            inputs=inputs,
            network=Network((inputs.size, 1)),
            teachers=teachers,
            queries=min(self.queries, len(public)),
            batch=TEACHER_BATCH,
            optimiser=TEACHER_OPTIMISER,
            seed=_SEED,
        )
        school = School.of(public, plan, plan.scale(vault.budget), population)
        asked = asked_rows(public, plan.queries)
        with vault.teachers(plan) as course:
            course.train(public, TEACHER_STEPS)
            votes = course.votes(asked)
        parameters = school.student(asked, votes)
        model = PateModel(vault.schema, school, parameters, 1.0, self.limit, vault.private)
        return model.stretched(public)


@dataclass(frozen=True, eq=False)
class School:
    """How votes are counted and learnt from; all of it public, so that it can be rehearsed."""

    teacher: Network
    teachers: int  # m
    queries: int
    deviation: float  # of the noise on a count
    population: float  # n: public, or noisy
    network: Network  # the student's
    start: np.ndarray
    pace: float
    steps: int

    @classmethod
    def of(
        cls, public: np.ndarray, plan: TeacherPlan, deviation: float, population: float
    ) -> School:
        """The student's course, as long as the noise of the votes allows."""
        network = Network((public.shape[1], STUDENT_HIDDEN, 1))
        start = standardised_start(network, public, np.random.default_rng(_SEED))
        slope = typical_slope(network, start, public)
        # The same noise at every step: T steps move a logit by pace T s / (m sqrt(Q)).
        moved = deviation / (plan.teachers * math.sqrt(plan.queries))
        steps = MOST_NOISE / (moved * STUDENT_PACE)
        steps = int(min(MOST_STEPS, max(LEAST_STEPS, round(min(steps, MOST_STEPS)))))
        pace = min(STUDENT_PACE, MOST_NOISE / (moved * steps))
        return cls(
            plan.network,
            plan.teachers,
            plan.queries,
            deviation,
            population,
            network,
            start,
            pace / slope**2,
            steps,
        )

    def student(self, rows: np.ndarray, votes: np.ndarray) -> np.ndarray:
        """The parameters after gradient steps on the cross-entropy of noisy shares of votes."""
        shares = votes / self.teachers
        parameters = self.start
        for _ in range(self.steps):
            passed = self.network.forward(parameters, rows)
            # p - v: unbiased for any noise on v, which need not be between zero and one
            slopes = (expit(passed.outputs[:, 0]) - shares) / len(rows)
            errors = self.network.backward(parameters, passed, slopes[:, None])
            parameters = parameters - self.pace * self.network.gradient(passed, errors)
        return parameters

    def rehearse(
        self,
        private: np.ndarray,
        public: np.ndarray,
        deviation: float,
        generator: np.random.Generator,
    ) -> np.ndarray:
        """The student that rows in the place of the private ones would have led to."""
        team = initial_team(self.teacher, self.teachers, _SEED)
        state = TEACHER_OPTIMISER.start(self.teacher.size)
        classes = generator.integers(self.teachers, size=len(private))
        order, sizes = np.argsort(classes), np.bincount(classes, minlength=self.teachers)
        starts = np.cumsum(sizes) - sizes
        labels = np.repeat([1.0, -1.0], TEACHER_BATCH)
        multiples = np.full((self.teachers, 2 * TEACHER_BATCH), 1 / (2 * TEACHER_BATCH))
        multiples[sizes == 0, :TEACHER_BATCH] = 0.0
        shape = (self.teachers, TEACHER_BATCH)
        for _ in range(TEACHER_STEPS):
            within = (generator.random(shape) * sizes[:, None]).astype(np.int64)
            own = order[np.minimum(starts[:, None] + within, len(private) - 1)]
            others = generator.integers(len(public), size=shape)
            shown = np.concatenate([private[own], public[others]], axis=1)
            gradient = team_gradient(self.teacher, team, shown, "logistic", labels, multiples)
            team, state = TEACHER_OPTIMISER.step(team, gradient, state)
        asked = asked_rows(public, self.queries)
        votes = (team_outputs(self.teacher, team, asked) > 0).sum(axis=0).astype(float)
        if deviation:
            votes += generator.normal(scale=deviation, size=len(votes))
        return self.student(asked, votes)


def asked_rows(public: np.ndarray, queries: int) -> np.ndarray:
    """The rows that are voted on: evenly spread over the table."""
    return public[np.linspace(0, len(public) - 1, queries).round().astype(int)]


@dataclass(frozen=True, eq=False)
class PateModel:
    """A student of noisy votes, and how it came to be."""

    schema: Schema
    school: School
    parameters: np.ndarray
    stretch: float  # s: what the student's logits are multiplied by
    limit: float
    private: bool = True

    @property
    def population(self) -> float:
        """n: public, or noisy."""
        return self.school.population

    def weigh(self, synthetic: Any) -> Weights:
        """The student's logits on their scale, as log-weights."""
        return Weights(self._log_weights(self._inputs(synthetic), self.parameters))

    def stretched(self, public: np.ndarray) -> PateModel:
        """The model with the s at which a rehearsed student is as steep as this one."""
        logits = self.school.network.outputs(self.parameters, public)[:, 0]
        centred = logits - logits.mean()
        generator = np.random.default_rng(_SEED)
        size, stretch = self._size, 1.0
        if not centred.any():
            return self
        for _ in range(REHEARSALS):
            weights = Weights(np.clip(stretch * logits, -self.limit, self.limit)).normalised
            private = public[spread_places(weights, size)]
            student = self.school.rehearse(private, public, 0.0, generator)
            rehearsed = self.school.network.outputs(student, public)[:, 0]
            steepness = float(centred @ rehearsed / (centred @ centred))
            low, high = 1 / MOST_STRETCH, MOST_STRETCH
            stretch = min(high, max(low, stretch / max(steepness, 1e-3)))
        return replace(self, stretch=stretch)

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """The weights as other teachers and other noise would have made them, one a column.

        A replicate is the weight, moved by how far a rehearsal with fresh rows and fresh noise is
        from one with neither.
        """
        rows = self._inputs(synthetic)
        if len(rows) == 0:
            return np.empty(redraws.base.shape)
        found = np.empty(redraws.base.shape)
        released = self._log_weights(rows, self.parameters)
        still = self._rehearsed(rows, rows, redraws.weights, 0.0, redraws.generator)
        for column in range(redraws.base.shape[1]):
            public = rows[spread_places(redraws.base[:, column], len(rows))]
            resample = redraws.resample[:, column]
            moved = self._rehearsed(
                rows, public, resample, self.school.deviation, redraws.generator
            )
            found[:, column] = np.clip(released + moved - still, -self.limit, self.limit)
        return average_to_one(found, redraws.base)

    def _rehearsed(
        self,
        rows: np.ndarray,
        public: np.ndarray,
        weights: np.ndarray,
        deviation: float,
        generator: np.random.Generator,
    ) -> np.ndarray:
        private = rows[spread_places(weights, self._size)]
        student = self.school.rehearse(private, public, deviation, generator)
        return self._log_weights(rows, student)

    @property
    def _size(self) -> int:
        # Rows beyond what all teachers are shown would change nothing.
        shown = 2 * self.school.teachers * TEACHER_STEPS * TEACHER_BATCH
        return max(1, min(round(self.population), shown))

    def _inputs(self, synthetic: Any) -> np.ndarray:
        return Inputs(self.schema)(coded_rows(self.schema, synthetic))

    def _log_weights(self, rows: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        logits = self.stretch * self.school.network.outputs(parameters, rows)[:, 0]
        return np.clip(logits, -self.limit, self.limit)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays that `from_arrays` reads back; fit for `numpy.savez`, free of pickles."""
        school = self.school
        return {
            "inputs": np.array(school.network.units[0]),
            "teachers": np.array(school.teachers),
            "queries": np.array(school.queries),
            "deviation": np.array(school.deviation),
            "population": np.array(school.population),
            "start": school.start,
            "pace": np.array(school.pace),
            "steps": np.array(school.steps),
            "parameters": self.parameters,
            "stretch": np.array(self.stretch),
            "limit": np.array(self.limit),
            "private": np.array(self.private),
        }

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> PateModel:
        """The inverse of `to_arrays`."""
        inputs = int(arrays["inputs"])
        school = School(
            Network((inputs, 1)),
            int(arrays["teachers"]),
            int(arrays["queries"]),
            float(arrays["deviation"]),
            float(arrays["population"]),
            Network((inputs, STUDENT_HIDDEN, 1)),
            np.asarray(arrays["start"]),
            float(arrays["pace"]),
            int(arrays["steps"]),
        )
        return cls(
            schema,
            school,
            np.asarray(arrays["parameters"]),
            float(arrays["stretch"]),
            float(arrays["limit"]),
            bool(arrays["private"]),
        )
