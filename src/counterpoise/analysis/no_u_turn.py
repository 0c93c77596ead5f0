"""The No-U-Turn sampler: draws from a density that is given by its height and gradient.

M. D. Hoffman and A. Gelman, JMLR 15, 2014, with the changes of M. Betancourt, "A Conceptual
Introduction to Hamiltonian Monte Carlo", 2017: a point of the trajectory is chosen by its
density, with a preference for the later half, and the trajectory ends when its two ends no longer
move apart. Written for densities that are about standard normal in their coordinates, so that the
masses are one and a few steps of the leapfrog take it across. The length of the steps is learnt
in the warmup by dual averaging.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# The height and the gradient at a point.
Surface = Callable[[np.ndarray], tuple[float, np.ndarray]]

# A trajectory is doubled at most so often, and has diverged when it loses so much energy.
_MOST_DOUBLINGS, _DIVERGED = 10, 1000.0
# The acceptance that the warmup aims at, and the constants of Hoffman and Gelman's section 3.2.
_TARGET, _FIRST_STEP, _SHRINKAGE, _DELAY, _DECAY = 0.8, 0.5, 0.05, 10.0, 0.75


@dataclass(frozen=True, eq=False)
class Chain:
    """The draws of a chain, and of each: if it diverged, its acceptance, and its steps."""

    draws: np.ndarray
    diverging: np.ndarray
    acceptance_rate: np.ndarray
    steps: np.ndarray
    step_size: np.ndarray


def run_chain(
    surface: Surface, start: np.ndarray, draws: int, warmup: int, generator: np.random.Generator
) -> Chain:
    """Draw from a density, after a warmup that is thrown away.

    >>> generator = np.random.default_rng(0)
    >>> chain = run_chain(lambda z: (-z @ z / 2, -z), np.ones(2), 2000, 200, generator)
    >>> [round(float(part), 1) for part in chain.draws.std(axis=0)]
    [1.0, 1.0]
    """
    place = _Place(start, *surface(start))
    learnt = _StepSize()
    for _ in range(warmup):
        moved = _transition(surface, place, math.exp(learnt.log_trial), generator)
        place, learnt = moved.place, learnt.after(moved.acceptance_rate)
    step_size, found = math.exp(learnt.log_settled), []
    for _ in range(draws):
        moved = _transition(surface, place, step_size, generator)
        place = moved.place
        found.append((place.at, moved.diverging, moved.acceptance_rate, moved.steps, step_size))
    return Chain(*map(np.array, zip(*found, strict=True)))


class _Place(NamedTuple):
    """A point with the height and the gradient there."""

    at: np.ndarray
    height: float
    slope: np.ndarray


class _End(NamedTuple):
    """An end of a trajectory: where it is, and how it moves."""

    place: _Place
    momentum: np.ndarray


class _Trajectory(NamedTuple):
    """A piece of a trajectory, from its end back in time to its end ahead.

    `chosen` is a point of it, drawn by density; `log_weight` the logarithm of the densities'
    sum, `momenta` the sum of the momenta, `acceptance` that of the chances of acceptance.
    """

    back: _End
    ahead: _End
    chosen: _Place
    log_weight: float
    momenta: np.ndarray
    acceptance: float
    steps: int
    turns: bool
    diverging: bool

    @property
    def ends(self) -> bool:
        """Whether there is no going on from it."""
        return self.turns or self.diverging


class _Moved(NamedTuple):
    """The next point, and how the trajectory to it went."""

    place: _Place
    diverging: bool
    acceptance_rate: float
    steps: int


def _transition(
    surface: Surface, place: _Place, step_size: float, generator: np.random.Generator
) -> _Moved:
    """One draw given the one before."""
    momentum = generator.standard_normal(len(place.at))
    level = place.height - float(momentum @ momentum) / 2
    end = _End(place, momentum)
    whole = _Trajectory(end, end, place, 0.0, momentum, 0.0, 0, turns=False, diverging=False)
    chosen, diverging = place, False
    for depth in range(_MOST_DOUBLINGS):
        sign = 1 if generator.random() < 0.5 else -1
        new = _grow(
            surface,
            whole.ahead if sign > 0 else whole.back,
            sign * step_size,
            depth,
            level,
            generator,
        )
        joined = _join(whole, new, sign, chosen)
        if not new.ends and math.log(1 - generator.random()) < new.log_weight - whole.log_weight:
            chosen = new.chosen
        whole, diverging = joined, new.diverging
        if new.ends or joined.turns:
            break
    return _Moved(chosen, diverging, whole.acceptance / whole.steps, whole.steps)


def _grow(
    surface: Surface,
    end: _End,
    step: float,
    depth: int,
    level: float,
    generator: np.random.Generator,
) -> _Trajectory:
    """Go on from an end for 2^depth steps, or until the trajectory turns or diverges."""
    if depth == 0:
        return _leapfrog(surface, end, step, level)
    first = _grow(surface, end, step, depth - 1, level, generator)
    if first.ends:
        return first
    outer = first.ahead if step > 0 else first.back
    second = _grow(surface, outer, step, depth - 1, level, generator)
    share = second.log_weight - np.logaddexp(first.log_weight, second.log_weight)
    takes_second = math.log(1 - generator.random()) < share
    chosen = second.chosen if takes_second else first.chosen
    return _join(first, second, 1 if step > 0 else -1, chosen)


def _leapfrog(surface: Surface, end: _End, step: float, level: float) -> _Trajectory:
    """One step; the density of its end is counted from that of the start, whose log is `level`."""
    # p += e/2 grad; z += e p; p += e/2 grad
    half = end.momentum + step / 2 * end.place.slope
    at = end.place.at + step * half
    place = _Place(at, *surface(at))
    momentum = half + step / 2 * place.slope
    gain = place.height - float(momentum @ momentum) / 2 - level
    gain = gain if math.isfinite(gain) else -math.inf
    reached = _End(place, momentum)
    return _Trajectory(
        back=reached,
        ahead=reached,
        chosen=place,
        log_weight=gain,
        momenta=momentum,
        acceptance=math.exp(min(0.0, gain)),
        steps=1,
        turns=False,
        diverging=gain < -_DIVERGED,
    )


def _join(first: _Trajectory, second: _Trajectory, sign: int, chosen: _Place) -> _Trajectory:
    """Two pieces in the order of time; the second is ahead of the first if `sign` is positive."""
    early, late = (first, second) if sign > 0 else (second, first)
    momenta = first.momenta + second.momenta
    turns = second.turns or _turns(momenta, early.back.momentum, late.ahead.momentum)
    # Where the pieces meet is looked at as well: two halves may turn as one that neither does.
    for part, near, far in (
        (early.momenta + late.back.momentum, early.back, late.back),
        (late.momenta + early.ahead.momentum, early.ahead, late.ahead),
    ):
        turns = turns or _turns(part, near.momentum, far.momentum)
    return _Trajectory(
        back=early.back,
        ahead=late.ahead,
        chosen=chosen,
        log_weight=float(np.logaddexp(first.log_weight, second.log_weight)),
        momenta=momenta,
        acceptance=first.acceptance + second.acceptance,
        steps=first.steps + second.steps,
        turns=turns,
        diverging=second.diverging,
    )


def _turns(momenta: np.ndarray, back: np.ndarray, ahead: np.ndarray) -> bool:
    """Whether the ends of a trajectory no longer move apart."""
    return bool(momenta @ back <= 0 or momenta @ ahead <= 0)


@dataclass(frozen=True)
class _StepSize:
    """Dual averaging: steps of the length at which the acceptance is the one aimed at.

    `trial` is the step to take next, `settled` the one to stay with.
    """

    turns: int = 0
    shortfall: float = 0.0
    log_trial: float = math.log(_FIRST_STEP)
    log_settled: float = math.log(_FIRST_STEP)

    def after(self, acceptance: float) -> _StepSize:
        """Towards shorter steps if the acceptance is less than aimed at, else to longer ones."""
        turns = self.turns + 1
        share = 1 / (turns + _DELAY)
        shortfall = (1 - share) * self.shortfall + share * (_TARGET - acceptance)
        log_trial = math.log(10 * _FIRST_STEP) - math.sqrt(turns) / _SHRINKAGE * shortfall
        weight = turns**-_DECAY
        log_settled = weight * log_trial + (1 - weight) * self.log_settled
        return _StepSize(turns, shortfall, log_trial, log_settled)
