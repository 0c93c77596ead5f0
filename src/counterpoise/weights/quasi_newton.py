"""Many convex functions minimised at once, one a column: a quasi-Newton method with long memory.

Every pass works out the values and gradients of all columns that are still on their way, in one go,
which for tilts is two products of matrices. What a step did to the gradient tells of the curvature
along it (Broyden, Fletcher, Goldfarb, Shanno, with the two loops of Nocedal and Wright 2006,
chapter 7), so that no column needs a Hessian of its own: one that is about that of all of them is a
good start. A column whose step went up tries a shorter one in the next pass, while the others go
on. What was learned of the curvatures can be kept, for functions that are nearly the same: those of
more rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

# Steps that are remembered; the oldest are forgotten. Rare rows make dozens of directions stiff,
# each of which takes one.
MEMORY = 100
MOST_PASSES = 150
SHORTER = 0.25  # a step that went up, the next time
TRIES = 12
# The part of what a step promises to first order that it has to gain, but for rounding.
LEAST_GAIN, ROUNDING = 1e-3, 1e-7
# No column may have several times the gain left that is enough in the mean, and one with half of it
# is not worked on.
MANY_TIMES, HALF = 4.0, 0.5


class Valued(NamedTuple):
    """The values of functions, one a column, and their gradients."""

    values: np.ndarray
    gradients: np.ndarray


@dataclass(eq=False)
class Curvatures:
    """What is known of the Hessians of all columns: diagonals, one for all, and what steps showed.

    In single precision, as a step is no better than the passes that it is made of.
    """

    diagonals: np.ndarray
    common: np.ndarray | None = None  # about the Hessian of every column, but for its diagonal
    steps: list[np.ndarray] = field(default_factory=list)
    changes: list[np.ndarray] = field(default_factory=list)  # of the gradients
    inverses: list[np.ndarray] = field(default_factory=list)  # of step.change; 0 for no step

    @cached_property
    def _scales(self) -> np.ndarray:
        """What makes the diagonals of the columns' Hessians of those of the common inverse."""
        own = np.ones(len(self.diagonals)) if self.common is None else np.diag(self.common)
        found: np.ndarray = np.sqrt(own[:, None] / self.diagonals).astype(np.float32)
        return found

    @cached_property
    def _inverse(self) -> np.ndarray | None:
        return None if self.common is None else np.linalg.inv(self.common).astype(np.float32)

    def learn(self, which: np.ndarray, steps: np.ndarray, changes: np.ndarray) -> None:
        """Remember what steps of some columns did to their gradients; zero is no step."""
        along = (steps * changes).sum(axis=0)
        size = np.sqrt((steps**2).sum(axis=0) * (changes**2).sum(axis=0))
        # A convex function curves upwards; what rounding made of a tiny step may not.
        inverses = np.divide(1.0, along, out=np.zeros_like(along), where=along > 1e-8 * size)
        if len(self.steps) == MEMORY:
            for kept in (self.steps, self.changes, self.inverses):
                del kept[0]
        for kept, found in (
            (self.steps, steps),
            (self.changes, changes),
            (self.inverses, inverses),
        ):
            whole = np.zeros((*found.shape[:-1], self.diagonals.shape[1]), dtype=np.float32)
            whole[..., which] = found
            kept.append(whole)

    def solved(self, which: np.ndarray, right: np.ndarray) -> np.ndarray:
        """About what the Hessians of some columns take there."""
        every = len(which) == self.diagonals.shape[1]

        def some(values: np.ndarray) -> np.ndarray:
            return values if every else values[..., which]

        known = [
            (some(step), some(change), some(inverse))
            for step, change, inverse in zip(self.steps, self.changes, self.inverses, strict=True)
        ]
        found, factors = right.astype(np.float32), list[np.ndarray]()
        for step, change, inverse in reversed(known):
            factors.append(inverse * np.einsum("ij,ij->j", step, found))
            found -= factors[-1] * change
        # S C^-1 S: the common inverse, with the diagonal of each column
        scales = some(self._scales)
        found *= scales
        found = found if self._inverse is None else self._inverse @ found
        found *= scales
        for (step, change, inverse), factor in zip(known, reversed(factors), strict=True):
            found += (factor - inverse * np.einsum("ij,ij->j", change, found)) * step
        return found.astype(float)


def minimise_many(
    valued: Callable[[np.ndarray, np.ndarray], Valued],
    start: np.ndarray,
    curvatures: Curvatures,
    enough: float,
) -> np.ndarray:
    """Where the functions of all columns are least, up to about half of `enough` in the mean.

    A column that gets no further stays where it is. `valued` takes the places of some columns, and
    which they are. What is found out about the curvatures is added to them.

    >>> centres = np.array([[1.0, 2.0]])
    >>> def square(places, which):
    ...     left = places - centres[:, which]
    ...     return Valued((left**2).sum(axis=0) / 2, left)
    >>> minimise_many(square, np.zeros((1, 2)), Curvatures(np.full((1, 2), 5.0)), 1e-12).round(4)
    array([[1., 2.]])
    """
    places, left = start.copy(), np.arange(start.shape[1])
    values, gradients = valued(places, left)
    lengths, gains = np.ones(len(left)), np.zeros(len(left))
    for _ in range(MOST_PASSES):
        moves = -curvatures.solved(left, gradients)
        # Newton's decrement: twice what is left to gain
        promised = -np.einsum("ij,ij->j", gradients, moves)
        gains[left] = promised
        if gains.mean() < enough and gains.max() < MANY_TIMES * enough:
            break
        going = (promised > HALF * enough) & (lengths > SHORTER**TRIES)
        # Where not even the shortest step goes down, nothing more can be had.
        gains[left[lengths <= SHORTER**TRIES]] = 0.0
        left, values, gradients = left[going], values[going], gradients[:, going]
        lengths, promised, moves = lengths[going], promised[going], moves[:, going]
        if len(left) == 0:
            break
        steps = lengths * moves
        tried = valued(places[:, left] + steps, left)
        good = tried.values <= values - LEAST_GAIN * lengths * promised + ROUNDING
        changes = np.where(good, tried.gradients, gradients) - gradients
        curvatures.learn(left, np.where(good, steps, 0.0), changes)
        places[:, left[good]] += steps[:, good]
        values = np.where(good, tried.values, values)
        gradients = np.where(good, tried.gradients, gradients)
        lengths = np.where(good, 1.0, lengths * SHORTER)
    return places
