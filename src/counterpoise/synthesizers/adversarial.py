"""Training two networks against each other: rows from noise, and a critic of rows.

The critic alone learns from private rows, through a descent of the vault; the generator learns from
the critic, which is post-processing (Xie and others 2018). Each step, the critic moves up the
difference of its means over private and made rows, and the generator moves its rows up the critic.
A Wasserstein critic is held by the spectral norm of its layers, which are put back to at most one
after every step: no slope of a slope is needed, and none of private rows could be had. Of the
generator the last steps are averaged; nothing is chosen by looking at private rows.

A generator that starts from a noisy embedding (`matching`) is held to it: its loss is what the
critic says and, times a number, how far it has gone from what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from counterpoise.networks import Network, Optimiser, clipped_gradient, loss_slopes
from counterpoise.networks.code_generator import CodeGenerator
from counterpoise.networks.generator import RowGenerator
from counterpoise.networks.optimisers import OptimiserState
from counterpoise.synthesizers.matching import EmbeddingLoss
from counterpoise.synthesizers.progress import report
from counterpoise.vault import Descent

# The last part of the steps, over which the generator is averaged.
AVERAGED_PART = 0.3
# States are kept, and progress is told, this often in a course.
KEPT_STATES = 50

Codes = Callable[[int, np.random.Generator], np.ndarray | None]
Maker = RowGenerator | CodeGenerator
# Networks against each other go in circles when they remember where they went.
MEMORY, SQUARE_MEMORY = 0.5, 0.99


@dataclass(frozen=True)
class Pace:
    """How far each of the two moves, and how often."""

    critic_rate: float
    generator_rate: float
    generator_steps: int  # for each of the critic's
    seed: int
    snapshots: int = 0  # states of both that are kept on the way


@dataclass(frozen=True, eq=False)
class Start:
    """The generator's parameters to start from, and the embedding that it is held to, so much."""

    parameters: np.ndarray
    embedding: EmbeddingLoss
    hold: float


@dataclass(frozen=True, eq=False)
class Player:
    """The generator's side of the game: `rows` at a time, with codes of a given column."""

    maker: Maker
    codes: Codes
    rows: int
    start: Start | None = None

    def initial(self, generator: np.random.Generator) -> np.ndarray:
        """The generator's parameters before the first step."""
        if self.start is not None:
            return self.start.parameters.astype(float)
        return self.maker.network.initial(generator)

    def inputs(self, parameters: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Made rows, as a critic sees them."""
        codes = self.codes(self.rows, generator)
        return self.maker.make(parameters, self.rows, generator, codes).inputs

    def gradient(
        self,
        parameters: np.ndarray,
        network: Network,
        critic: np.ndarray,
        loss: str,
        generator: np.random.Generator,
    ) -> np.ndarray:
        """The gradient of what a critic says of fresh rows, and of what they are held to."""
        codes = self.codes(self.rows, generator)
        if isinstance(self.maker, RowGenerator):
            rows = self.maker.make(parameters, self.rows, generator, codes)
            slopes = toward(network, critic, loss, rows.inputs)
            return self.maker.gradient(parameters, rows, slopes)
        made = self.maker.make(parameters, self.rows, generator, codes)
        slopes = toward(network, critic, loss, made.inputs)
        held: np.ndarray | float = 0.0
        if self.start is not None:
            held = self.start.hold * self.start.embedding.slopes(made.chances)
        return self.maker.gradient(parameters, made, slopes, held)


@dataclass(frozen=True, eq=False)
class Trained:
    """The averaged generator and the last critic; and states of both on the way."""

    generator: np.ndarray
    critic: np.ndarray
    generators: np.ndarray
    critics: np.ndarray


def train(descent: Descent, player: Player, pace: Pace) -> Trained:
    """Take all steps that are left of a descent."""
    plan = descent.plan
    game = _Game(plan.network, plan.loss, plan.clip, player, pace)
    state = game.start() if descent.kept is None else _State.from_arrays(descent.kept.arrays)
    every = max(1, plan.steps // KEPT_STATES)
    while descent.left:
        done = descent.taken
        # Each step has numbers of its own, so that a run that goes on draws no number twice.
        generator = np.random.default_rng([pace.seed, 1, done])
        private = descent.gradient(state.critic)
        state = game.step(state, private, generator, is_late=done >= game.late(plan.steps))
        if done in snapshot_steps(plan.steps, pace.snapshots):
            state = state.with_snapshot()
        if descent.taken % every == 0 or not descent.left:
            descent.keep(state.to_arrays())
            report(descent.taken / plan.steps)
    averaged = state.generator if not state.averaged else state.average / state.averaged
    return Trained(averaged, state.critic, state.generators, state.critics)


def snapshot_steps(steps: int, snapshots: int) -> set[int]:
    """The steps after which states are kept: in the second half, the last among them.

    >>> sorted(snapshot_steps(10, 3))
    [5, 7, 9]
    """
    return {int(step) for step in np.linspace(steps // 2, steps - 1, snapshots)}


@dataclass(frozen=True, eq=False)
class _State:
    """Where both networks are, and what their optimisers remember."""

    critic: np.ndarray
    critic_memory: OptimiserState
    generator: np.ndarray
    generator_memory: OptimiserState
    average: np.ndarray
    averaged: int
    generators: np.ndarray  # the states that were kept
    critics: np.ndarray

    def with_snapshot(self) -> _State:
        return replace(
            self,
            generators=np.vstack([self.generators, self.generator]),
            critics=np.vstack([self.critics, self.critic]),
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        arrays = {
            "critic": self.critic,
            "generator": self.generator,
            "average": self.average,
            "averaged": np.array(self.averaged),
            "generators": self.generators,
            "critics": self.critics,
        }
        memories = {"critic": self.critic_memory, "generator": self.generator_memory}
        for name, memory in memories.items():
            arrays[f"{name}_steps"] = np.array(memory.steps)
            arrays[f"{name}_average"], arrays[f"{name}_square"] = memory.average, memory.square
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> _State:
        memories = (
            OptimiserState(
                int(arrays[f"{name}_steps"]), arrays[f"{name}_average"], arrays[f"{name}_square"]
            )
            for name in ("critic", "generator")
        )
        critic_memory, generator_memory = memories
        return cls(
            arrays["critic"],
            critic_memory,
            arrays["generator"],
            generator_memory,
            arrays["average"],
            int(arrays["averaged"]),
            arrays["generators"],
            arrays["critics"],
        )


@dataclass(frozen=True, eq=False)
class _Game:
    critic: Network
    loss: str
    clip: float
    player: Player
    pace: Pace

    def start(self) -> _State:
        generator = np.random.default_rng([self.pace.seed, 0])
        critic = bounded(self.critic, self.critic.initial(generator), self.loss)
        made = self.player.initial(generator)
        return _State(
            critic,
            self._rule(self.pace.critic_rate).start(len(critic)),
            made,
            self._rule(self.pace.generator_rate).start(len(made)),
            np.zeros_like(made),
            0,
            np.empty((0, len(made))),
            np.empty((0, len(critic))),
        )

    def late(self, steps: int) -> float:
        """From which step on the generator is averaged."""
        return (1 - AVERAGED_PART) * steps

    def step(
        self, state: _State, private: np.ndarray, generator: np.random.Generator, is_late: bool
    ) -> _State:
        """Move the critic by its noisy gradient over private rows, then the generator."""
        pace, rule = self.pace, self._rule(self.pace.critic_rate)
        rows = self.player.inputs(state.generator, generator)
        public = clipped_gradient(
            self.critic, state.critic, rows, self.loss, labels=-1.0, clip=self.clip
        )
        critic, critic_memory = rule.step(state.critic, private + public, state.critic_memory)
        critic = bounded(self.critic, critic, self.loss)
        maker, memory = state.generator, state.generator_memory
        for _ in range(pace.generator_steps):
            gradient = self.player.gradient(maker, self.critic, critic, self.loss, generator)
            maker, memory = self._rule(pace.generator_rate).step(maker, gradient, memory)
        return replace(
            state,
            critic=critic,
            critic_memory=critic_memory,
            generator=maker,
            generator_memory=memory,
            average=state.average + maker if is_late else state.average,
            averaged=state.averaged + int(is_late),
        )

    def _rule(self, rate: float) -> Optimiser:
        return Optimiser("adam", rate, MEMORY, SQUARE_MEMORY)


def toward(network: Network, parameters: np.ndarray, loss: str, rows: np.ndarray) -> np.ndarray:
    """The slopes, in made rows, of what it costs them not to be taken for private ones."""
    passed = network.forward(parameters, rows)
    slopes = loss_slopes(loss, passed.outputs, 1.0) / len(rows)
    return network.input_slopes(parameters, network.backward(parameters, passed, slopes))


def bounded(network: Network, parameters: np.ndarray, loss: str) -> np.ndarray:
    """Parameters of a Wasserstein critic of slope at most one; those of other losses as they are.

    >>> network = Network((2, 1))
    >>> bounded(network, np.array([3.0, 4.0, 1.0]), "wasserstein")
    array([0.6, 0.8, 1. ])
    """
    if loss != "wasserstein":
        return parameters
    found = parameters.copy()
    for matrix, _ in network.layers(found):
        matrix /= max(float(np.linalg.norm(matrix, 2)), 1.0)
    return found
