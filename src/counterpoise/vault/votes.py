"""Teacher votes: how many of many networks, each trained on its own rows, take a row for private.

Every private row goes to one of m teachers, chosen at random, each row by itself. A teacher is
trained behind the boundary to tell its rows from public ones, and never leaves it. What is given is
the number of teachers that say "private" of a public row, with discrete Gaussian noise: that is
PATE (Papernot and others 2017, 2018), accounted for without looking at how the teachers agree.

**Sensitivity.** Draw for each row its teacher, and for each teacher and step the uniform numbers by
which it picks from its rows. None of that depends on the rows, so draw the same for two neighbours.
A row more or less, or one that is another row, changes the rows of one teacher; what the others
become depends on their own rows and on public ones, and they vote as before. So one vote in each
count changes, by one: D2 = 1 a count under either relation, and k for a person of k rows, who may
be with k teachers. For each of those draws the two answers are noised counts that far apart; the
law of an answer is the average over the same draws, which is no worse, because exp((a - 1) D_a) is
jointly convex.

**Charge.** One Gaussian event a row voted on, for Q rows in all, before the first; the row may be
chosen in the light of all earlier votes. A run that goes on after an interruption has new teachers,
and that changes nothing: a count is as sensitive whoever votes. [PRIVACY: PATE-GAN]
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.arguments import number_array, one_of, settle, whole_number
from counterpoise.errors import VaultError
from counterpoise.networks import LOSSES, Inputs, Network, Optimiser, OptimiserState
from counterpoise.networks.team import initial_team, team_gradient, team_outputs
from counterpoise.vault.asked import exactly, share_of
from counterpoise.vault.boundary import NeverCopied
from counterpoise.vault.budget import Budget, Share
from counterpoise.vault.course import Course
from counterpoise.vault.descent_plan import (
    LEAST_NOISE,
    checked_inputs,
    checked_network,
    checked_noise,
)
from counterpoise.vault.events import DpEvent, GaussianDpEvent, NoOpDpEvent, SelfComposedDpEvent
from counterpoise.vault.noise import Noise, check_scale
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

_BATCH_CELLS = 4_000_000
_MOST_TEACHERS = 100_000
_MOST_STEPS = 10_000_000

# So many outputs of teachers are worked out at once.
_OUTPUTS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class TeacherPlan:
    """Who votes on how many rows, and with how much noise; public, and charged in advance.

    Each step of training shows every teacher `batch` of its private rows, label 1, and as many
    public ones, label -1. `queries` is the number of rows that will be voted on in all; `noise` is
    the deviation of the noise on a count, in votes that a person can change. Without noise only a
    vault with a seed goes along. `seed` decides where the teachers start, which is public.

    >>> from counterpoise.schema import Column, Schema
    >>> inputs = Inputs(Schema([Column.continuous("x", 0, 1)]))
    >>> TeacherPlan(inputs, Network((1, 4, 1)), teachers=20, queries=500, noise=9.0).event
    SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=9.0), count=500)
    """

    inputs: Inputs
    network: Network
    teachers: int
    queries: int
    noise: float
    loss: str = "logistic"
    batch: int = 32
    optimiser: Optimiser = field(default_factory=Optimiser)
    seed: int = 0

    def __post_init__(self) -> None:
        inputs = checked_inputs(self.inputs)
        settle(
            self,
            network=checked_network(self.network, inputs),
            teachers=whole_number("teachers", self.teachers, 1, _MOST_TEACHERS, VaultError),
            queries=whole_number("queries", self.queries, most=10**9, error=VaultError),
            noise=checked_noise(self.noise),
            loss=one_of("loss", self.loss, LOSSES, VaultError),
            batch=whole_number("batch", self.batch, 1, 100_000, VaultError),
            optimiser=exactly("optimiser", self.optimiser, Optimiser, "an Optimiser"),
            seed=whole_number("seed", self.seed, 0, error=VaultError),
        )

    @classmethod
    def within(cls, vault: Vault, share: Share, *, queries: int, **options: Any) -> TeacherPlan:
        """The plan with the noise that a share pays for; the other fields as they are named."""
        queries = whole_number("queries", queries, most=10**9, error=VaultError)
        # rho = Q / (2 s^2), in units of what one person changes
        noise = share_of(share).gaussian_scale(math.sqrt(queries))
        return cls(queries=queries, noise=max(noise, LEAST_NOISE), **options)

    @property
    def event(self) -> DpEvent:
        """What all votes cost."""
        if self.noise == 0:
            return NoOpDpEvent()
        return SelfComposedDpEvent(GaussianDpEvent(self.noise), self.queries)

    def scale(self, budget: Budget) -> float:
        """The deviation of the noise on a count of votes."""
        return self.noise * budget.max_rows_per_person

    def describe(self) -> dict[str, Any]:
        """The plan as JSON values; what tells one course of votes from another."""
        return {
            "columns": list(self.inputs.schema.names),
            "units": list(self.network.units),
            "activation": self.network.activation,
            "loss": self.loss,
            "teachers": self.teachers,
            "queries": self.queries,
            "noise": self.noise,
            "batch": self.batch,
            "optimiser": asdict(self.optimiser),
            "seed": self.seed,
        }


def teachers(vault: Vault, plan: TeacherPlan) -> Teachers:
    """Charge all votes of a plan, and open the course that gives them."""
    plan = exactly("plan", plan, TeacherPlan, "a TeacherPlan")
    if plan.inputs.schema != vault.schema:
        raise VaultError("plan: expected the inputs of the vault's own schema")
    vault.require_rows("votes of teachers")
    query = f"votes of {plan.teachers:,} teachers on {plan.queries:,} rows"
    if plan.noise > 0:
        check_scale(plan.scale(vault.budget))
    elif vault.private:
        raise VaultError(
            "noise: none is for studies on a vault with a seed, whose answers are stamped as not "
            "private; state a noise, or use TeacherPlan.within"
        )
    else:
        query += ", WITHOUT NOISE"
    number = vault._pay(query, plan.event, plan.describe())
    return Teachers(vault, plan, query, number)


class Teachers(Course):
    """The open course of teacher votes: `left` rows can still be voted on."""

    def __init__(self, vault: Vault, plan: TeacherPlan, query: str, number: int | None):
        super().__init__(vault, query, plan.queries, "votes", number)
        self.plan = plan
        self._classes: _Classes | None = None
        self._parameters = initial_team(plan.network, plan.teachers, plan.seed)
        self._state: OptimiserState = plan.optimiser.start(plan.network.size)

    def train(self, rows: np.ndarray, steps: int) -> None:
        """Train every teacher against public rows; nothing comes out, and nothing is charged.

        `rows` are what the network sees of public rows, numbers a row.
        """
        against = self._checked(rows)
        steps = whole_number("steps", steps, 1, _MOST_STEPS, VaultError)

        def look(storage: Storage, source: Noise) -> None:
            if self._classes is None:
                self._classes = _assigned(storage, self.plan, source)
            for _ in range(steps):
                self._step(self._classes, against, source)

        with self._vault._lock:
            self._require_open()
            self._vault._look(self._query, look)

    def votes(self, rows: np.ndarray) -> np.ndarray:
        """The noisy number of teachers that take each row for private, one number a row."""
        voted_on = self._checked(rows)

        def look(storage: Storage, source: Noise) -> np.ndarray:
            exact = self._counts(voted_on)
            if self.plan.noise == 0:
                return exact
            return source.gaussian(exact, self.plan.scale(self._vault.budget))

        with self._vault._lock:
            self._take(len(voted_on))
            return self._vault._look(self._query, look)

    def _let_go(self) -> None:
        self._classes = None
        self._parameters = np.empty((0, self.plan.network.size))
        self._state = self.plan.optimiser.start(self.plan.network.size)

    def _checked(self, rows: Any) -> np.ndarray:
        found = number_array("rows", rows, error=VaultError)
        size = self.plan.inputs.size
        if found.ndim != 2 or found.shape[1] != size or not len(found):
            raise VaultError(f"rows: expected at least one public row of {size} numbers")
        if not np.isfinite(found).all():
            raise VaultError("rows: expected finite numbers")
        return found

    def _step(self, classes: _Classes, against: np.ndarray, source: Noise) -> None:
        plan = self.plan
        # The same shape for every teacher, however many rows it has: none is seen in another's.
        uniforms = source.uniforms(2 * plan.teachers * plan.batch)
        own, others = uniforms.reshape(2, plan.teachers, plan.batch)
        private = classes.pick(own)
        public = against[(others * len(against)).astype(np.int64)]
        labels = np.repeat([1.0, -1.0], plan.batch)
        # A teacher without rows learns from public ones alone.
        multiples = np.full((plan.teachers, 2 * plan.batch), 1 / (2 * plan.batch))
        multiples[classes.sizes == 0, : plan.batch] = 0.0
        shown = np.concatenate([private, public], axis=1)
        with np.errstate(all="ignore"):
            gradient = team_gradient(
                plan.network, self._parameters, shown, plan.loss, labels, multiples
            )
            self._parameters, self._state = plan.optimiser.step(
                self._parameters, gradient, self._state
            )

    def _counts(self, rows: np.ndarray) -> np.ndarray:
        found = np.empty(len(rows), dtype=np.int64)
        at_once = max(1, _OUTPUTS_AT_ONCE // (self.plan.teachers * max(self.plan.network.units)))
        for start in range(0, len(rows), at_once):
            some = slice(start, start + at_once)
            with np.errstate(all="ignore"):
                outputs = team_outputs(self.plan.network, self._parameters, rows[some])
            # Who has learnt nothing that is a number does not say "private".
            found[some] = (outputs > 0).sum(axis=0)
        return found


class _Classes(NeverCopied):
    """The private rows, sorted by teacher; within a class in the order of the storage."""

    def __init__(self, rows: np.ndarray, teacher: np.ndarray, teachers: int):
        self._rows = rows[np.argsort(teacher, kind="stable")]
        self.sizes = np.bincount(teacher, minlength=teachers)
        self._starts = np.cumsum(self.sizes) - self.sizes

    def pick(self, uniforms: np.ndarray) -> np.ndarray:
        """A row of its own for each of a teacher's uniform numbers; zeros where it has none."""
        found = np.zeros((*uniforms.shape, self._rows.shape[1]))
        some = self.sizes > 0
        places = (uniforms[some] * self.sizes[some, None]).astype(np.int64)
        found[some] = self._rows[self._starts[some, None] + places]
        return found


def _assigned(storage: Storage, plan: TeacherPlan, source: Noise) -> _Classes:
    size = plan.inputs.size
    parts = [plan.inputs(rows) for rows in storage.batches(max(1, _BATCH_CELLS // size))]
    rows = np.concatenate(parts) if parts else np.empty((0, size))
    # Each row by itself: which teacher it goes to depends on no other row, nor on how many.
    teacher = (source.uniforms(len(rows)) * plan.teachers).astype(np.int64)
    return _Classes(rows, teacher, plan.teachers)
