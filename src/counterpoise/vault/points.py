"""Private support points: k public places that stand for the private rows, chosen by their energy.

A set Y of k points is scored against the rows X themselves by its negative energy,

    u(X, Y) = -[2 / (m k) sum_ij d(x_i, y_j) - 1 / k^2 sum_ij d(y_i, y_j)],

the part of the energy distance (or, with 1 - k for d, of the squared MMD) that depends on Y, where
m is a public number of rows: the number itself when records are replaced, else a noisy one that was
paid for. Distances are in parts of the diameter, and so is u. [PRIVACY: private support points]

**Sensitivity.** The exponential mechanism gives away no more than rate times the *range* over Y of
u(X, Y) - u(X', Y): what a row does to all Y alike cancels. A row x more adds
-2 / (m k) sum_j d(x, y_j), which lies in [-2/m, 0] for all Y: a range of 2/m, where |u - u'| alone
would give 4/m. A replaced row changes u by 2 / (m k) sum_j (d(x, y_j) - d(x', y_j)), within
[-2/m, 2/m]: a range of 4/m. A person with r rows changes r of them. The mechanism's D is half the
range: r/m, and 2r/m under replacement. All Y in one corner and all Y in the opposite one attain it.

**`exact`** chooses from a public pool, one point after the other. With y_1 .. y_t chosen, the
energy of t + 1 points depends on the next one, up to the factor 2/(t + 1), through

    g(y) = -[1/m sum_i d(x_i, y) - 1/(t + 1) sum_j d(y_j, y)],

whose range over y changes by 1/m for a row more, and 2/m for one replaced: D is r/(2m), and r/m.
Distances to rows are rounded to whole parts of 2^24 before they are summed, so a row adds a whole
number from 0 to 2^24 whatever it is, and their sums are exact in any order. Charge: k exponential
mechanisms of epsilon each, composed adaptively; k epsilon on a pure budget, k epsilon^2/8 in zCDP.
One mechanism over whole sets of epsilon' weighs a point's mean distance to rows by epsilon' m / k,
and this by epsilon m. With a pure budget epsilon' = k epsilon, so that the two follow the rows
about as well; in zCDP epsilon' = sqrt(k) epsilon, and choosing one by one has sqrt(k) times the
rate. A large share pays for more by pure composition, which the ledger's own order tells.

**`metropolis`** draws whole sets from all of the space by a chain that tends to the exponential
mechanism (see `metropolis`), and is charged as one, epsilon a set, with a mark: nothing bounds how
far a finite chain is from its limit. Of a chain nothing but its last set is let out. Its scores,
its rate of acceptance, its steps and whatever is computed from them (R-hat, variances between and
within chains) are functions of the rows that nobody paid for; another chain's set is another draw,
and is charged as one. The grid of places is public and all proposals fall on it, so a set has no
low bits that could tell more; rounding moves a distance that a decision rests on by a part in 2^40.

**m** is from 1 to 2^30. A sum of distances over a smaller one could overflow, and beside a larger
one the rounding of a score is no longer small beside what a row does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.arguments import instance_of, one_of, real_number, whole_number
from counterpoise.errors import VaultError
from counterpoise.schema import Coded
from counterpoise.schema.unit_places import coded_at, unspread
from counterpoise.vault.asked import exactly, share_of
from counterpoise.vault.budget import REPLACE, Share
from counterpoise.vault.events import (
    DpEvent,
    ExponentialDpEvent,
    MetropolisDpEvent,
    SelfComposedDpEvent,
)
from counterpoise.vault.metropolis import (
    GRID_PLACES,
    PointSets,
    PointSpace,
    limit_rate,
    run_chains,
)
from counterpoise.vault.noise import Noise
from counterpoise.vault.point_scores import Places, PointDistance
from counterpoise.vault.select import exponential_choice
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

SAMPLERS = ("exact", "metropolis")
MOST_POINTS, MOST_CANDIDATES, MOST_MOVES = 100_000, 1_000_000, 10**9
MOST_ROWS = 2**30
MOVES = 100_000

# A distance is a whole number of these parts of the diameter.
_PARTS = 2**24
# So many distances are worked out at a time.
_BLOCK_CELLS = 4_000_000
# Rows that a chain walks over are held, by the public number of them, in no more bytes than this.
_MOST_BYTES = 500_000_000


@dataclass(frozen=True, eq=False)
class NoisyPoints:
    """Points that were chosen, `repeats` sets of them one after the other."""

    points: Coded
    repeats: int
    sampler: str
    rows: float  # m, the public number of rows that they were scored with
    places: np.ndarray | None = None  # in the pool of candidates, if there was one
    private: bool = True

    @property
    def is_asymptotic(self) -> bool:
        """Whether the charge is that of a law which the sampler only tends to."""
        return self.sampler == "metropolis"


def select_points(
    vault: Vault,
    count: int,
    share: Share,
    *,
    candidates: Coded | None = None,
    rows: float | None = None,
    sampler: str = "exact",
    distance: PointDistance | None = None,
    repeats: int = 1,
    moves: int = MOVES,
) -> NoisyPoints:
    """Choose sets of `count` points that are near the private rows; charges one event for all.

    The `exact` sampler takes points from `candidates`, public rows, and has a finite guarantee.
    `metropolis` goes anywhere, in so many `moves` of one point, and has none: see the ledger's
    mark. `rows` is the public number m of private rows; it may be left out where it is public.
    With `repeats` so many sets are drawn, each with its own part of the share.
    """
    share = share_of(share)
    count = whole_number("count", count, 1, MOST_POINTS, VaultError)
    repeats = whole_number("repeats", repeats, 1, MOST_POINTS, VaultError)
    moves = whole_number("moves", moves, count, MOST_MOVES, VaultError)
    sampler = one_of("sampler", sampler, SAMPLERS, VaultError)
    distance = PointDistance() if distance is None else distance
    exactly("distance", distance, PointDistance, "a PointDistance")
    vault.schema.require_complete()
    vault.require_rows("points")
    known = _public_rows(vault, rows)
    if sampler == "exact":
        pool = _checked_pool(vault, candidates)
        return _exact(vault, count, share, pool, known, distance, repeats)
    if candidates is not None:
        raise VaultError("candidates: a chain goes anywhere; leave them out, or sampler='exact'")
    return _metropolis(vault, count, share, known, distance, repeats, moves)


def _exact(
    vault: Vault,
    count: int,
    share: Share,
    pool: Coded,
    rows: float,
    distance: PointDistance,
    repeats: int,
) -> NoisyPoints:
    choices = count * repeats
    epsilon = vault.ledger.selection_epsilon(share.part(1 / choices))
    # Half of the range of one row's part 1/m in g, in parts of the diameter
    sensitivity = vault.budget.row_sensitivity(1 / (2 * rows))
    places = distance.places(pool)

    def look(storage: Storage, source: Noise) -> np.ndarray:
        sums = _distance_sums(storage, distance, places)
        attraction = sums / (_PARTS * rows)
        chosen = []
        for place in range(choices):
            before = place % count
            if before == 0:
                repulsion = np.zeros(len(places))
            # g(y) = -[1/m sum_i d(x_i, y) - 1/(t + 1) sum_j d(y_j, y)]
            scores = repulsion / (before + 1) - attraction
            chosen.append(exponential_choice(source, scores, sensitivity, epsilon))
            repulsion += distance.between(places.take(slice(chosen[-1], chosen[-1] + 1)), places)[0]
        return np.array(chosen, dtype=np.int64)

    query = f"{choices} points out of {len(pool)} candidates"
    event = SelfComposedDpEvent(ExponentialDpEvent(epsilon), choices)
    asked = {"rows": rows, "distance": distance, "count": count, "pool": places.digest}
    found = vault._ask(query, event, look, asked)
    return NoisyPoints(pool.take(found), repeats, "exact", rows, found, vault.private)


def _distance_sums(storage: Storage, distance: PointDistance, places: Places) -> np.ndarray:
    """For every candidate the sum of its distances to the private rows, in whole parts."""
    exact = np.zeros(len(places), dtype=np.int64)
    block = max(1, _BLOCK_CELLS // len(places))
    for batch in storage.batches(max(block, 10_000)):
        for part in batch.parts(block):
            parts = np.rint(distance.between(distance.places(part), places) * _PARTS)
            # Whole numbers below 2^53 together: exact in any order.
            exact += parts.sum(axis=0).astype(np.int64)
    return exact


def _metropolis(
    vault: Vault,
    count: int,
    share: Share,
    rows: float,
    distance: PointDistance,
    repeats: int,
    moves: int,
) -> NoisyPoints:
    space = PointSpace(vault.schema, distance)
    width = sum(1 + column.nullable for column in vault.schema)
    if 8 * width * rows > _MOST_BYTES:
        raise VaultError(
            "sampler: a chain holds all rows in memory, and these are too many; use 'exact'"
        )
    epsilon = vault.ledger.selection_epsilon(share.part(1 / repeats))

    def look(storage: Storage, source: Noise) -> np.ndarray:
        parts = [distance.places(batch) for batch in storage.batches(100_000)]
        if not parts:
            parts = [distance.places(Coded(vault.schema, *_nothing(len(vault.schema))))]
        found = run_chains(
            space,
            Places.together(parts),
            chains=repeats,
            points=count,
            weight=1 / rows,
            theta=limit_rate(vault.budget, rows, epsilon),
            sweeps=-(-moves // count),
            uniforms=source.uniforms,
        )
        # The last sets, and nothing else.
        sets = found.sets
        return np.concatenate([sets.grid, sets.null, sets.codes], axis=2).astype(np.int64)

    event: DpEvent = MetropolisDpEvent(epsilon, moves)
    if repeats > 1:
        event = SelfComposedDpEvent(event, repeats)
    query = f"{count * repeats} points by a chain of {moves} moves"
    asked = {"rows": rows, "distance": distance, "count": count}
    answer = vault._ask(query, event, look, asked)
    ordered = sum(column.kind != "categorical" for column in vault.schema)
    sets = PointSets(*np.split(answer, [ordered, 2 * ordered], axis=2))
    return NoisyPoints(_coded(vault, sets), repeats, "metropolis", rows, None, vault.private)


def _coded(vault: Vault, sets: PointSets) -> Coded:
    """Points on the grid as rows of the schema."""
    schema, count = vault.schema, sets.grid.shape[0] * sets.grid.shape[1]
    units, codes = np.zeros((count, len(schema))), np.zeros((count, len(schema)), dtype=np.int32)
    ordered = unordered = 0
    for position, column in enumerate(schema):
        if column.kind == "categorical":
            codes[:, position] = sets.codes[..., unordered].ravel()
            unordered += 1
            continue
        units[:, position] = sets.grid[..., ordered].ravel() / (GRID_PLACES - 1)
        if column.shape is not None:
            units[:, position] = unspread(column, units[:, position])
        codes[:, position] = np.where(sets.null[..., ordered].ravel(), column.cells, 0)
        ordered += 1
    return coded_at(schema, units, codes)


def _public_rows(vault: Vault, rows: float | None) -> float:
    """m: what the caller says, or the number of rows where that is public."""
    if rows is not None:
        expected = f"a number of rows from 1 to {MOST_ROWS:,}"
        return real_number(
            "rows", rows, expected, VaultError, above=1, below=MOST_ROWS, inclusive=True
        )
    if vault.budget.neighbours is not REPLACE:
        raise VaultError(
            "rows: the number of rows is private; state one that was paid for, as of `total`"
        )
    return float(max(1, vault._public_rows()))


def _checked_pool(vault: Vault, candidates: Coded | None) -> Coded:
    expected = "public rows to choose from, which the schema has coded"
    pool = instance_of("candidates", candidates, Coded, expected, VaultError)
    if pool.schema.as_released() != vault.schema.as_released():
        raise VaultError("candidates: expected rows that the vault's own schema has coded")
    whole_number("the number of candidates", len(pool), 1, MOST_CANDIDATES, VaultError)
    return pool


def _nothing(columns: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty((0, columns), dtype=np.int32), np.empty((0, columns))
