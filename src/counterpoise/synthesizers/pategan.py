"""PATE-GAN: a generator whose critic is a student of teachers that never leave the vault.

Teachers, each with its own private rows, are trained behind the boundary to tell these from made
rows, and vote on made rows; the votes come out with noise (Jordon, Yoon and van der Schaar 2019,
accounted for without looking at how the teachers agree). The student sees made rows and noisy
votes alone, and the generator learns from the student. A vote is used as it is, not rounded to a
label: the slope of the student's loss is linear in it, so noise averages out of the student as the
rows become many. Rounds follow each other: made rows, teachers, votes, student, generator. By
default most of the share buys a start, which the votes refine (`beginning`).

Charge: two Gaussian events for the start, or, without one, the number of rows where it is private;
then one Gaussian event a row voted on, all of them in advance; with `snapshots` one more. Under
either neighbouring relation; delta > 0. The student is part of the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from counterpoise.arguments import real_number, settle, whole_number
from counterpoise.networks import Inputs, Network, Optimiser
from counterpoise.synthesizers.adversarial import (
    MEMORY,
    SQUARE_MEMORY,
    Player,
    Trained,
    snapshot_steps,
)
from counterpoise.synthesizers.beginning import begin, checked_beginning
from counterpoise.synthesizers.gan import CRITIC_ACTIVATION, check_noised
from counterpoise.synthesizers.gan_model import GanModel
from counterpoise.synthesizers.matching import MATCHING_STEPS
from counterpoise.synthesizers.progress import report
from counterpoise.synthesizers.protocol import SYNTHESIZERS
from counterpoise.vault import Share, TeacherPlan, Vault

# Rows that the generator makes in each of its steps.
STEP_ROWS = 128
# The fewer rows, the fewer rounds; these are the fewest.
ROWS_A_ROUND, FEWEST_ROUNDS = 10, 10
# Votes of so many rounds ago count half.
HALF_LIFE = 3
# The student is pulled to zero by this much in each step: noise alone is not to grow.
PULL = 0.01


@SYNTHESIZERS.register("pategan")
@dataclass(frozen=True)
class PateGan:
    """A generator trained against the student of private teachers.

    `start`, `start_steps`, `hold` and `snapshots` are those of `DpGan`. A teacher has
    `rows_a_teacher` private rows on average. In each of `rounds`, of which there are fewer where
    private rows are less than ten for each, the teachers are trained for `teacher_steps`, vote on
    `votes` rows, and student and generator take `steps` each. `noise` is how many random numbers a
    row is made of; `hidden` and `critic_hidden` are the units of the generator's two hidden layers
    and of the one that teachers and the student have.
    """

    start: float = 0.8
    start_steps: int = MATCHING_STEPS
    hold: float = 10.0
    snapshots: int = 0
    rounds: int = 100
    votes: int = 16
    rows_a_teacher: int = 5
    teacher_steps: int = 4
    steps: int = 4
    critic_rate: float = 0.03
    generator_rate: float = 0.002
    noise: int = 16
    hidden: int = 64
    critic_hidden: int = 16
    seed: int = 0

    needs_delta = True
    needs_rows = True

    def __post_init__(self) -> None:
        wholes = {
            name: whole_number(name, getattr(self, name), most=100_000)
            for name in ("rounds", "votes", "rows_a_teacher", "teacher_steps", "steps")
        }
        settle(
            self,
            **wholes,
            **checked_beginning(self),
            critic_rate=real_number("critic_rate", self.critic_rate, "a positive number", above=0),
            generator_rate=real_number(
                "generator_rate", self.generator_rate, "a positive number", above=0
            ),
            critic_hidden=whole_number("critic_hidden", self.critic_hidden, most=10_000),
        )

    def fit(self, vault: Vault, share: Share) -> GanModel:
        """Measure what the generator starts from, vote and train; charges the whole share."""
        check_noised(vault, share, "pategan")
        inputs = Inputs(vault.schema)
        begun = begin(vault, share, inputs, self)
        rows, rest = begun.rows, begun.rest
        student = Network((inputs.size, self.critic_hidden, 1), CRITIC_ACTIVATION)
        rounds = min(self.rounds, max(FEWEST_ROUNDS, rows // ROWS_A_ROUND))
        plan = TeacherPlan.within(
            vault,
            rest,
            queries=rounds * self.votes,
            inputs=inputs,
            network=student,
            teachers=max(2, min(rows // self.rows_a_teacher, 1000)),
            batch=max(self.rows_a_teacher, 4),
            optimiser=Optimiser("adam", self.critic_rate),
            seed=self.seed,
        )
        player = begun.player(max(self.votes, STEP_ROWS))
        trained = self._train(vault, plan, player, student)
        return begun.end(vault, trained, student, "logistic", player, self.seed)

    def _train(self, vault: Vault, plan: TeacherPlan, player: Player, student: Network) -> Trained:
        generator = np.random.default_rng(self.seed)
        parameters, critic = player.initial(generator), student.initial(generator)
        rule = Optimiser("adam", self.generator_rate, MEMORY, SQUARE_MEMORY)
        memory = rule.start(len(parameters))
        seen: list[np.ndarray] = []
        shares: list[np.ndarray] = []
        average = np.zeros_like(parameters)
        rounds = plan.queries // self.votes
        late = range(rounds // 2, rounds)
        averaged = 0
        kept = snapshot_steps(rounds, min(self.snapshots, rounds))
        generators, critics = [], []
        with vault.teachers(plan) as teachers:
            # After an interruption the rounds that are left are taken, with a fresh student.
            for place in range(rounds - teachers.left // self.votes, rounds):
                made = player.inputs(parameters, generator)
                teachers.train(made, self.teacher_steps)
                seen.append(made[: self.votes])
                shares.append(teachers.votes(seen[-1]) / plan.teachers)
                critic = self._taught(student, critic, seen, shares)
                for _ in range(self.steps):
                    gradient = player.gradient(parameters, student, critic, "logistic", generator)
                    parameters, memory = rule.step(parameters, gradient, memory)
                if place in late:
                    average += parameters
                    averaged += 1
                if place in kept:
                    generators.append(parameters)
                    critics.append(critic)
                report((place + 1) / rounds)
        if not generators:  # nothing was left to take after an interruption
            generators, critics = [parameters], [critic]
        found = average / averaged if averaged else parameters
        return Trained(found, critic, np.array(generators), np.array(critics))

    def _taught(
        self,
        student: Network,
        parameters: np.ndarray,
        seen: list[np.ndarray],
        shares: list[np.ndarray],
    ) -> np.ndarray:
        """The student after some steps on the rows and the noisy votes of all rounds."""
        rows, targets = np.concatenate(seen), np.concatenate(shares)
        # Teachers have met later generators: their votes on late rows tell more of them.
        ages = np.repeat(np.arange(len(seen)), [len(part) for part in seen])
        weights = 0.5 ** ((len(seen) - 1 - ages) / HALF_LIFE)
        weights /= weights.sum()
        rule = Optimiser("adam", self.critic_rate)
        state = rule.start(len(parameters))
        for _ in range(self.steps):
            passed = student.forward(parameters, rows)
            # The slope of the cross-entropy, also of a share beyond 0 and 1.
            slopes = weights[:, None] * (expit(passed.outputs) - targets[:, None])
            errors = student.backward(parameters, passed, slopes)
            gradient = student.gradient(passed, errors) + PULL * parameters
            parameters, state = rule.step(parameters, gradient, state)
        return parameters
