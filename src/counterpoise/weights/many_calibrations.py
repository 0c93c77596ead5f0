"""Many calibrations of the same rows at once: other base weights and other targets a column.

Replicate weights need dozens of solutions near one another. All start where the weights are, with
the Hessian that is there, and a step is two matrix products for all of them together. Where the
base weights differ so much from uniform that this Hessian brings too little, a column gets its own;
rare categories, whose rows a replicate may have three times or not at all, need that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from counterpoise.weights.calibration import (
    CHUNK_ROWS,
    GAIN,
    moments_under,
    solve,
    thinned,
    weighted_moments,
)
from counterpoise.weights.standardise import spread

# The variance of a white coordinate among a part of the rows from which they can tell of it.
LEAST_SEEN = 0.5
SHARED_ROWS = 100_000  # for the Hessian that all columns start with
OWN_ROWS = 50_000  # for that of one
STEPS = 40
TRIES = 12  # of a step, each a quarter of the last
# What is left to gain is then far below the noise that the replicates are to show.
ENOUGH, ROUNDING = 1e-6, 1e-7


def calibrate_many(
    rows: np.ndarray,
    base: np.ndarray,
    targets: np.ndarray,
    softness: np.ndarray,
    theta: np.ndarray,
) -> np.ndarray:
    """The weights for many base weights and targets at once, one a column, averaging to one.

    `theta` is the solution of uniform base weights, where all start.

    >>> rows = np.array([[-1.0], [0.0], [1.0]])
    >>> base = np.array([[1.0, 2.0], [1.0, 0.0], [1.0, 1.0]])
    >>> found = calibrate_many(rows, base, np.array([[0.5, 0.0]]), np.full(1, 1e-9), np.zeros(1))
    >>> (found.T @ rows / 3).round(2).T.tolist()
    [[0.5, 0.0]]
    """
    if rows.shape[1] == 0 or len(rows) == 0:
        return base / base.mean(axis=0, dtype=float) if len(rows) else base
    solution = _Solution(rows, base, targets, softness, theta)
    left = np.arange(base.shape[1])
    for _ in range(STEPS):
        moves = solution.moves(left)
        going = solution.decrements[left] > ENOUGH
        left = solution.advance(left[going], moves[:, going])
        if len(left) == 0:
            break
    return solution.weights


@dataclass(eq=False)
class _Solution:
    """Where the columns are on their way; `left` are those that are not there yet."""

    rows: np.ndarray
    base: np.ndarray
    targets: np.ndarray
    softness: np.ndarray
    theta: np.ndarray
    own: dict[int, np.ndarray] = field(default_factory=dict)  # inverses of Hessians

    def __post_init__(self) -> None:
        count = self.base.shape[1]
        part = thinned(self.rows, SHARED_ROWS)
        self.shared = weighted_moments(part, self.theta)[1] + np.diag(self.softness)
        # What hardly varies among the rows of a column, they cannot be asked to match.
        self.soft = self.softness[:, None] + (self._variances() < LEAST_SEEN)
        self.single = self.rows.astype(np.float32, copy=False)
        self.thetas = np.repeat(self.theta[:, None], count, axis=1)
        self.weights, self.values = self._tilted(np.arange(count), self.thetas)
        self.decrements = np.full(count, np.inf)

    def moves(self, left: np.ndarray) -> np.ndarray:
        """The Newton steps; a column whose Hessian brought too little gets one of its own."""
        means = (self.rows.T @ _columns(self.weights, left)).astype(float) / len(self.rows)
        gradients = means - self.targets[:, left] + _columns(self.soft, left) * self.thetas[:, left]
        moves = -solve(self.shared, gradients)
        for place, column in enumerate(left):
            before, gradient = self.decrements[column], gradients[:, place]
            if column in self.own:
                moves[:, place] = -(self.own[column] @ gradient)
            if -gradient @ moves[:, place] > max(ENOUGH, GAIN * before):
                self.own[column] = self._inverse(column)
                moves[:, place] = -(self.own[column] @ gradient)
            self.decrements[column] = -gradient @ moves[:, place]
        return moves

    def advance(self, left: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Take the steps, shorter where they go up, and tell which columns got further."""
        trying, length = np.arange(len(left)), 1.0
        for _ in range(TRIES):
            if len(trying) == 0:
                break
            which = left[trying]
            tried = self.thetas[:, which] + length * moves[:, trying]
            weights, values = self._tilted(which, tried)
            wanted = self.values[which] - 0.1 * length * self.decrements[which]
            good = values <= wanted + ROUNDING
            done = which[good]
            self.thetas[:, done], self.values[done] = tried[:, good], values[good]
            self.weights[:, done] = weights[:, good]
            trying, length = trying[~good], length / 4
        return np.delete(left, trying)

    def _variances(self) -> np.ndarray:
        totals = self.base.sum(axis=0, dtype=float)
        means, squares = np.zeros((2, len(self.theta), len(totals)))
        for start in range(0, len(self.rows), CHUNK_ROWS):
            part = self.rows[start : start + CHUNK_ROWS].T
            base = self.base[start : start + CHUNK_ROWS]
            means += part @ base / totals
            squares += part**2 @ base / totals
        found: np.ndarray = squares - means**2
        return found

    def _inverse(self, column: int) -> np.ndarray:
        there = np.flatnonzero(self.weights[:, column])
        there = there[spread(len(there), OWN_ROWS)]
        weights = self.weights[there, column].astype(float)
        # Single precision will do for a direction, and is twice as fast.
        rows = self.single[there]
        hessian = moments_under(rows, weights / weights.sum())[1]
        return np.linalg.inv(hessian + np.diag(self.soft[:, column]))

    def _tilted(self, which: np.ndarray, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights of these columns at these thetas, and the values of the dual."""
        base, targets = _columns(self.base, which), _columns(self.targets, which)
        weights = self.rows @ thetas.astype(self.rows.dtype)
        # The largest among the rows that there are in a replicate: they cannot all vanish.
        top = weights.max(axis=0, where=base > 0, initial=-np.inf)
        weights -= top
        np.minimum(weights, 0, out=weights)
        np.exp(weights, out=weights)
        weights *= base
        sizes = weights.mean(axis=0, dtype=float)
        values = top.astype(float) + np.log(sizes / base.mean(axis=0, dtype=float))
        values += 0.5 * (_columns(self.soft, which) * thetas**2).sum(axis=0)
        values -= (thetas * targets).sum(axis=0)
        weights /= sizes.astype(self.rows.dtype)
        return weights, values


def _columns(values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """These columns, without a copy if they are all."""
    return values if len(which) == values.shape[1] else values[:, which]
