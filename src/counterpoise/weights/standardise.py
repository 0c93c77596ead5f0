"""Features on one scale, short enough for a noisy sum: centred, scaled, clipped.

Every group of features (a column, a pair of columns) is centred at the synthetic table's mean and
scaled to total variance one there, so that the noise of a joint sum is spread over groups evenly.
Vectors longer than most of the synthetic table's are cut to that length; the same map is applied
to private and synthetic rows, so clipping costs information and adds no bias.

Features that were asked for in advance are a part by themselves, in front: cut by themselves, so
that what is odd in other columns of a row does not touch them, and as long as all of the rest, so
that their noise does not grow with it. The whole is then no longer than the root of the two
squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counterpoise.formulas.row_by_row import row_squares
from counterpoise.schema import Coded
from counterpoise.weights.features import Features

# Few enough that the features of them stay near the processor; and no power of two, at which the
# values of a row would lie where they drive each other out of it.
CHUNK_ROWS = 1000
# About how many synthetic rows tell of scales and covariances, where there are twice as many.
PART_ROWS = 30_000
# This part of the synthetic rows has features that are not clipped.
UNCLIPPED = 0.95
# The same of those that were asked for, each question of which is cut already.
UNCLIPPED_ASKED = 0.99
# How long the vectors of what was asked for are beside the others, squared: the variance of their
# noise is 1.25 times what it would be alone, that of the others five times. A round number.
PRIORITY = 4.0
# A group that hardly varies is not blown up beyond this.
LEAST_DEVIATION = 0.01


@dataclass(frozen=True, eq=False)
class Standardised:
    """A feature map f with |f(x)| <= bound."""

    features: Features
    centre: np.ndarray
    scale: np.ndarray
    bound: float
    asked: int = 0  # how many features in front were asked for
    asked_bound: float = 0.0  # the bound of that part

    @classmethod
    def over(cls, features: Features, synthetic: Coded, asked: int = 0) -> Standardised:
        """Centre, scale and bound read off a synthetic table."""
        size = len(features.names)
        if len(synthetic) == 0 or size == 0:
            return cls(features, np.zeros(size), np.ones(size), 1.0)
        # A scale is none the better for more rows than these.
        some = synthetic
        if len(synthetic) >= 2 * PART_ROWS:
            some = synthetic.take(spread(len(synthetic), PART_ROWS))
        total, squares = np.zeros(size), np.zeros(size)
        for chunk in chunks(some):
            values = features(chunk)
            total += values.sum(axis=0)
            squares += np.einsum("ij,ij->j", values, values)
        centre = total / len(some)
        variance = np.maximum(squares / len(some) - centre**2, 0)
        scale = np.maximum(np.sqrt(_group_sums(features.groups, variance)), LEAST_DEVIATION)
        unclipped = cls(features, centre, scale, np.inf, asked)
        norms = np.concatenate([unclipped._part_norms(chunk) for chunk in chunks(some)])
        bound = max(float(np.quantile(norms[:, 1], UNCLIPPED)), 1e-3)
        if not asked:
            return cls(features, centre, scale, bound)
        asked_bound = max(float(np.quantile(norms[:, 0], UNCLIPPED_ASKED)), 1e-3)
        longer = math.sqrt(PRIORITY) * bound / asked_bound if asked < size else 1.0
        scale[:asked] /= longer
        asked_bound *= longer
        return cls(features, centre, scale, math.hypot(asked_bound, bound), asked, asked_bound)

    @property
    def names(self) -> tuple[str, ...]:
        """One name a feature."""
        return self.features.names

    def __call__(self, rows: Coded) -> np.ndarray:
        """The features of each row, no longer than the bound."""
        return self._made(rows, np.float64)

    def single(self, rows: Coded) -> np.ndarray:
        """The same in single precision, in half the time: for synthetic rows, gone through often.

        The bound then holds up to rounding.
        """
        return self._made(rows, np.float32)

    def _made(self, rows: Coded, precision: type[np.floating]) -> np.ndarray:
        values = self.features(rows, precision)
        values -= self.centre.astype(precision)
        values *= (1 / self.scale).astype(precision)
        if np.isfinite(self.bound):
            rest = math.sqrt(max(self.bound**2 - self.asked_bound**2, 0.0))
            _cut(values[:, : self.asked], self.asked_bound)
            _cut(values[:, self.asked :], rest)
        return values

    def ready(self, rows: Coded) -> Coded:
        """The same rows, in the form in which they are quickest gone through more than once."""
        return rows if self.features.takes_values else rows.spread()

    def _part_norms(self, rows: Coded) -> np.ndarray:
        """For each row, the norm of what was asked for, and that of the rest."""
        values = self(rows)
        parts = values[:, : self.asked], values[:, self.asked :]
        return np.stack([_norms(part) for part in parts], axis=1)


def chunks(rows: Coded) -> Iterator[Coded]:
    """The rows, about a thousand at a time, in order."""
    yield from rows.parts(CHUNK_ROWS)


def spread(rows: int, about: int) -> np.ndarray:
    """The places of about so many rows, whatever pattern their order has; the same every time.

    >>> spread(3, 10).tolist(), len(spread(1000, 10))
    ([0, 1, 2], 10)
    """
    if rows < 2 * about:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, about, replace=False))


def _cut(values: np.ndarray, bound: float) -> None:
    """Shorten rows that are longer than the bound, in place."""
    norms = _norms(values)
    if (norms > bound).any():
        # A hair shorter than the bound, so that it holds whatever the rounding.
        factors = np.where(norms > bound, bound * (1 - 1e-12) / np.maximum(norms, bound), 1.0)
        values *= factors.astype(values.dtype)[:, None]


def _norms(values: np.ndarray) -> np.ndarray:
    return np.sqrt(row_squares(values))


def _group_sums(groups: tuple[str, ...], values: np.ndarray) -> np.ndarray:
    """For each feature, the sum over its group."""
    _, numbers = np.unique(np.array(groups), return_inverse=True)
    return np.bincount(numbers, weights=values)[numbers]
