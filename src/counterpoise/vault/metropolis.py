"""Metropolis chains over sets of points: one point moves at a time, at a cost of its own row.

A chain walks over sets Y of k places and is drawn, in the long run, to each in proportion to
exp(theta u(Y)), with u the negative energy of Y against rows X,

    u(Y) = -[2 / (m k) sum_ij d(x_i, y_j) - 1 / k^2 sum_ij d(y_i, y_j)].

Moving y_j changes n distances to rows and k to other points, and no others. The new places of all
points of a sweep are proposed together, so that their distances are one block; they are accepted or
not one after the other, given what became of those before. A proposal is as likely as its reverse:
a uniform step on a public grid of places, folded at the bounds, or, one time in ten, a place drawn
anew; a category drawn anew; a null put on or off. So the law that the chain tends to is exactly the
one above, over a finite space. Steps are adapted to accept three moves in ten in the first half of
the sweeps, and stay in the second, which alone may be judged. How near the end of a run is to that
law is not bounded by anything here. [PRIVACY: private support points]

Randomness is handed in: behind the vault's boundary it is the vault's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoise.schema import Schema
from counterpoise.vault.budget import Budget
from counterpoise.vault.point_scores import Places, PointDistance

# Places a coordinate can take: the bounds and what lies between at equal steps.
GRID_PLACES = 2**16 + 1
# How often a point is drawn anew, and a null is taken before anything is known of the rows.
ANEW, NULL_PART = 0.1, 0.1
# The part of moves that should be accepted, and how fast steps are adapted to that.
ACCEPTED, ADAPTION = 0.3, 0.5
# Distances to so many rows and points at a time stay near the processor.
_BLOCK_CELLS = 50_000

# Rounding in a decision to move is far below this part of the score's sensitivity.
_ROUNDING = 2.0**-20

Uniforms = Callable[[int], np.ndarray]


@dataclass(frozen=True, eq=False)
class PointSets:
    """Sets of points, one a chain: places on the grid, nulls, and codes of categories."""

    grid: np.ndarray  # chains x points x ordered columns, whole numbers
    null: np.ndarray  # the same, True or False
    codes: np.ndarray  # chains x points x categorical columns

    def where(self, chosen: np.ndarray, other: PointSets) -> PointSets:
        """The points of `other` where `chosen`, a truth value a chain and point; else these."""
        each = chosen[..., None]
        return PointSets(
            np.where(each, other.grid, self.grid),
            np.where(each, other.null, self.null),
            np.where(each, other.codes, self.codes),
        )


@dataclass(frozen=True)
class PointSpace:
    """The space of a schema's points, and how one proposes to move in it."""

    schema: Schema
    distance: PointDistance

    def places(self, sets: PointSets) -> Places:
        """The places of all points, chain after chain."""
        count = sets.grid.shape[0] * sets.grid.shape[1]
        null = sets.null.reshape(count, -1)
        units = np.where(null, 0.5, sets.grid.reshape(count, -1) / (GRID_PLACES - 1))
        aside = self.distance.aside * null[:, self._nullable]
        coordinates = np.concatenate([units, aside], axis=1)
        return Places(coordinates, sets.codes.reshape(count, -1), len(self.schema))

    def draw(self, chains: int, points: int, uniforms: Uniforms) -> PointSets:
        """Sets drawn before anything is known of the rows."""
        shape = (chains, points, len(self._nullable))
        null = _drawn(uniforms, shape) < NULL_PART * self._nullable
        grid = np.floor(_drawn(uniforms, shape) * GRID_PLACES).astype(np.int64)
        codes = _drawn(uniforms, (chains, points, len(self._sizes))) * self._sizes
        return PointSets(grid, null, codes.astype(np.int64))

    def propose(self, sets: PointSets, steps: np.ndarray, uniforms: Uniforms) -> PointSets:
        """For every point a place to move to; `steps` are the chains' longest, in grid places."""
        chains, points, _ = sets.grid.shape
        moved = np.rint((2 * _drawn(uniforms, sets.grid.shape) - 1) * steps[:, None, None])
        # Folded at the bounds: as likely there as back, at the bounds themselves too.
        grid = np.mod(sets.grid + moved.astype(np.int64), 2 * GRID_PLACES)
        grid = np.where(grid < GRID_PLACES, grid, 2 * GRID_PLACES - 1 - grid)
        # At most about one category or null of a point at a time, and often none.
        chance = 1 / (1 + len(self._sizes) + int(self._nullable.sum()))
        null = sets.null
        if self._nullable.any():
            null = null ^ ((_drawn(uniforms, null.shape) < chance) & self._nullable)
        size = (chains, points, len(self._sizes))
        fresh = (_drawn(uniforms, size) * self._sizes).astype(np.int64)
        codes = np.where(_drawn(uniforms, size) < chance, fresh, sets.codes)
        # Places drawn anew come with the null that they had, which is moved by itself.
        anew = _drawn(uniforms, (chains, points)) < ANEW
        far = np.floor(_drawn(uniforms, sets.grid.shape) * GRID_PLACES).astype(np.int64)
        return PointSets(np.where(anew[..., None], far, grid), null, codes)

    def log_prior(self, sets: PointSets) -> np.ndarray:
        """The logarithm of the public measure that the chain starts from, a number a point."""
        odds = np.log(NULL_PART / (1 - NULL_PART)) * self._nullable
        return np.asarray((sets.null * odds).sum(axis=2))

    @cached_property
    def _nullable(self) -> np.ndarray:
        """Of every column with an order, whether it may be null."""
        ordered = (column for column in self.schema if column.kind != "categorical")
        return np.array([column.nullable for column in ordered], dtype=bool)

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.array(
            [column.size for column in self.schema if column.kind == "categorical"], dtype=float
        )


@dataclass(frozen=True, eq=False)
class Chains:
    """Where chains ended, and what they went through in the second half of their sweeps."""

    sets: PointSets
    scores: np.ndarray  # chains x sweeps: u after each, in parts of the diameter
    accepted: np.ndarray  # chains: the part of moves that were


def limit_rate(budget: Budget, rows: float, epsilon: float) -> float:
    """theta, for which the law that chains tend to is the exponential mechanism of `epsilon`.

    With u in parts of the diameter, a row's part in it is 2/m: half of its range over sets is 1/m
    for a row more, and 2/m for one replaced (see `points`).

    >>> round(limit_rate(Budget(1.0), rows=100.0, epsilon=2.0), 3)
    100.0
    """
    sensitivity = budget.row_sensitivity(1 / rows)
    return epsilon / (2 * sensitivity * (1 + _ROUNDING))


def run_chains(
    space: PointSpace,
    rows: Places,
    *,
    chains: int,
    points: int,
    weight: float,
    theta: float,
    sweeps: int,
    uniforms: Uniforms,
) -> Chains:
    """Chains of so many sweeps over all points; `weight` is 1/m, u and d in parts of the diameter.

    The scores are of the rows: behind the vault's boundary they must not be let out.
    """
    sets = space.draw(chains, points, uniforms)
    places = space.places(sets)
    attraction = _sums(space.distance, places, rows).reshape(chains, points)
    between = _pairs(space.distance, places, places, chains)
    prior = space.log_prior(sets)
    steps, burn_in = np.full(chains, GRID_PLACES / 4), sweeps // 2
    scores, accepted = np.empty((chains, sweeps - burn_in)), np.zeros(chains)
    pull, push = 2 * theta * weight / points, 2 * theta / points**2
    for sweep in range(sweeps):
        proposed = space.propose(sets, steps, uniforms)
        new_places = space.places(proposed)
        new_attraction = _sums(space.distance, new_places, rows).reshape(chains, points)
        new_prior = space.log_prior(proposed)
        # d(y'_j, y_l) and d(y'_j, y'_l); a point is not its own neighbour.
        to_old = _pairs(space.distance, new_places, places, chains)
        to_old[:, np.arange(points), np.arange(points)] = 0.0
        to_new = _pairs(space.distance, new_places, new_places, chains)
        # What log exp(theta u) gains if y_j moves, while all others are where they were
        gain = push * (to_old.sum(axis=2) - between.sum(axis=2))
        gain += pull * (attraction - new_attraction) + new_prior - prior
        # and what the gain of y_j gains once y_l has moved: [chain, l, j].
        later = push * ((to_new - to_old).swapaxes(1, 2) - to_old + between)
        thresholds = np.log1p(-_drawn(uniforms, (points, chains)))
        moved = np.zeros((chains, points), dtype=bool)
        for point in range(points):
            goes = thresholds[point] <= gain[:, point]
            if goes.any():
                moved[:, point] = goes
                gain += goes[:, None] * later[:, point]
        sets = sets.where(moved, proposed)
        places = space.places(sets)
        attraction = np.where(moved, new_attraction, attraction)
        prior = np.where(moved, new_prior, prior)
        here, there = moved[:, :, None], moved[:, None, :]
        one = np.where(here, to_old, np.where(there, to_old.swapaxes(1, 2), between))
        between = np.where(here & there, to_new, one)
        rate = moved.mean(axis=1)
        if sweep < burn_in:
            steps = np.clip(steps * np.exp(ADAPTION * (rate - ACCEPTED)), 1.0, GRID_PLACES)
        else:
            energy = 2 * weight / points * attraction.sum(axis=1)
            energy -= between.sum(axis=(1, 2)) / points**2
            scores[:, sweep - burn_in] = -energy
            accepted += rate / (sweeps - burn_in)
    return Chains(sets, scores, accepted)


def full_score(distance: PointDistance, points: Places, rows: Places, weight: float) -> float:
    """u of one set of points from all distances, in parts of the diameter; `weight` is 1/m."""
    attraction = distance.between(points, rows).sum() * weight
    repulsion = distance.between(points, points).sum()
    return float(repulsion / len(points) ** 2 - 2 * attraction / len(points))


def _drawn(uniforms: Uniforms, shape: tuple[int, ...]) -> np.ndarray:
    return uniforms(int(np.prod(shape))).reshape(shape)


def _sums(distance: PointDistance, places: Places, rows: Places) -> np.ndarray:
    """For every place, the sum of its distances to all rows."""
    found = np.zeros(len(places))
    block = max(1, _BLOCK_CELLS // max(1, len(places)))
    for start in range(0, len(rows), block):
        part = rows.take(slice(start, start + block))
        found += distance.nearly_between(places, part).sum(axis=1)
    return found


def _pairs(distance: PointDistance, left: Places, right: Places, chains: int) -> np.ndarray:
    """The distances between the points of each chain: chains x points x points."""
    return distance.nearly_between(left.in_sets(chains), right.in_sets(chains))
