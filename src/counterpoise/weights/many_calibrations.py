"""Many calibrations of the same rows at once: other base weights and other targets a column.

Replicate weights need dozens of solutions. All go together, by a quasi-Newton method whose passes
are a few products of matrices for all columns. White coordinates make that easy: what is left are
rare categories, whose rows a replicate may have three times or not at all.

The tilts are first worked out on a part of the rows, chosen by how much each can move a mean and
weighted for it, as if it were all, its means put where those of all rows are. Only the last steps
see all rows, with what the part has told of the curvature, until what is left to gain is far below
the noise that the replicates are to show. So the solution is that of all rows. A column's solution
is its theta: it tilts any rows, also those that it was not worked out on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from counterpoise.weights.calibration import weighted_moments
from counterpoise.weights.chosen_rows import choose_rows, projected_norms
from counterpoise.weights.quasi_newton import Curvatures, Valued, minimise_many
from counterpoise.weights.row_blocks import HeldRows, RowBlocks
from counterpoise.weights.standardise import spread

# The variance of a white coordinate among a part of the rows from which they can tell of it.
LEAST_SEEN = 0.5
# About how many rows the solution is first looked for on, and where rows are made at every pass, so
# that a larger part of them spares some; where there are fewer than twice as many, all are taken.
PART_ROWS, MORE_ROWS = 10_000, 60_000
# About how many rows tell of variances, where rows are made again at every pass.
DESCRIBED_ROWS = 50_000
# What may be left to gain in the mean over columns, on all rows, as a part of the squared distance
# of the targets from their mean, which is what the columns are to show; within what bounds; and on
# a part of the rows. About twice the divergence of weights.
ENOUGH, LEAST_ENOUGH, MOST_ENOUGH, ENOUGH_OF_A_PART = 5e-4, 1e-6, 1.5e-4, 1e-3
# What nothing is divided by.
TINY = 1e-300
# Less than any exponent.
BOTTOM = np.float32(-1e30)


def calibrate_many(
    rows: np.ndarray | RowBlocks,
    base: np.ndarray,
    targets: np.ndarray,
    softness: np.ndarray,
    described: Described | None = None,
    out: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """The weights for many base weights and targets at once, one a column, averaging to one.

    The softness is that of all columns, or has a column each. The weights are in single precision,
    in `out` if there is such a place. What `describe` says of the rows is worked out where it is
    not given. `start` is a theta that all are near, if one is known.

    >>> rows = np.array([[-1.0], [0.0], [1.0]])
    >>> base = np.array([[1.0, 2.0], [1.0, 0.0], [1.0, 1.0]])
    >>> found = calibrate_many(rows, base, np.array([[0.5, 0.0]]), np.full(1, 1e-9))
    >>> np.abs(found.T @ rows / 3).round(2).T.tolist()
    [[0.5, 0.0]]
    """
    return calibrate_tilts(rows, base, targets, softness, described, out, start)[0]


def calibrate_tilts(
    rows: np.ndarray | RowBlocks,
    base: np.ndarray,
    targets: np.ndarray,
    softness: np.ndarray,
    described: Described | None = None,
    out: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """What `calibrate_many` finds, and the theta of each column, by which other rows are tilted."""
    made = HeldRows(rows.astype(np.float32, copy=False)) if isinstance(rows, np.ndarray) else rows
    whole = _Weighted(made, base.astype(np.float32, copy=False))
    count, size = made.shape
    if 0 in (count, size, base.shape[1]):
        plain = whole.base / whole.base.mean(axis=0, dtype=float) if count else whole.base
        return plain, np.zeros(targets.shape)
    known = describe(made, whole.base) if described is None else described
    # What hardly varies among the rows of a column, they cannot be asked to match.
    own = softness[:, None] if softness.ndim == 1 else softness
    soft = own + (known.variances < LEAST_SEEN)
    near = np.zeros(size) if start is None else start
    thetas = np.repeat(near[:, None], base.shape[1], 1)
    apart = float(targets.var(axis=1).sum())
    part = whole.part(known.norms, MORE_ROWS if made.is_made else PART_ROWS)
    curvatures = _curvatures(part, near, known.variances, soft)
    if len(part.base) < count:
        # The way from the base weights' means to the target is that of all rows.
        target = targets - known.means + describe(part.rows, part.base).means
        enough = float(np.clip(ENOUGH_OF_A_PART * apart, LEAST_ENOUGH, MOST_ENOUGH))
        thetas = minimise_many(part.dual(target, soft), thetas, curvatures, enough)
    enough = float(np.clip(ENOUGH * apart, LEAST_ENOUGH, MOST_ENOUGH))
    thetas = minimise_many(whole.dual(targets, soft), thetas, curvatures, enough)
    return tilt_many(made, whole.base, thetas, out), thetas


def _curvatures(
    part: _Weighted, near: np.ndarray, variances: np.ndarray, soft: np.ndarray
) -> Curvatures:
    """What is known of the Hessians, covariance + softness, before the first step.

    At a theta that all columns are near, of the mean of their base weights; and for each column its
    own variances, which differ from those of the mean there about as they do under base weights.
    """
    covariance = weighted_moments(part.in_mean(), near)[1]
    tilted = np.diag(covariance) / np.maximum(variances.mean(axis=1), LEAST_SEEN)
    diagonals = np.maximum(variances * tilted[:, None], 0) + soft
    return Curvatures(diagonals, covariance + np.diag(soft.mean(axis=1)))


def tilt_many(
    rows: RowBlocks, base: np.ndarray, thetas: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """Base weights, a column each, tilted by exp(z.theta) and averaging to one; in `out` if given.

    >>> rows = HeldRows(np.array([[0.0], [1.0]], dtype=np.float32))
    >>> tilt_many(rows, np.ones((2, 1), dtype=np.float32), np.log([[3.0]])).round(3).tolist()
    [[0.5], [1.5]]
    """
    found = np.empty_like(base) if out is None else out
    vectors = thetas if rows.turn is None else rows.turn.vectors(thetas)[0]
    single, places = vectors.astype(np.float32), list[slice]()
    tops, totals = list[np.ndarray](), list[np.ndarray]()
    for place, some in rows.raw_blocks():
        exponents = some @ single
        exponents += _logarithms(base[place])
        # Each block in its own unit, until the largest is known.
        tops.append(np.maximum(exponents.max(axis=0), BOTTOM))
        exponents -= tops[-1]
        np.exp(exponents, out=found[place])
        totals.append(found[place].sum(axis=0))
        places.append(place)
    if not tops:
        return found
    units = np.array(tops, dtype=float)
    units = np.exp(units - units.max(axis=0))
    units *= len(base) / (units * np.array(totals, dtype=float)).sum(axis=0)
    for place, unit in zip(places, units.astype(np.float32), strict=True):
        found[place] *= unit
    return found


class Described(NamedTuple):
    """What is to be known of rows and their base weights, from one pass over them.

    The squared norm of each row; means and variances under the base weights, a column each, and how
    many rows carry each coordinate there; and how far the means under other weights, a column each,
    are from those under given ones.
    """

    norms: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    carried: np.ndarray
    shifts: np.ndarray


def describe(
    rows: RowBlocks,
    base: np.ndarray,
    others: np.ndarray | None = None,
    given: np.ndarray | None = None,
) -> Described:
    """The rows and their base weights, and if there are `others`, averaging to one, those."""
    if rows.is_made and len(base) >= 2 * DESCRIBED_ROWS:
        return _described_in_part(rows, base, others, given)
    norms = np.empty(len(base))
    sums, squared, fourth, shifts = np.zeros((4, rows.shape[1], base.shape[1]))
    for place, some in rows.blocks():
        squares = some**2
        norms[place] = squares.sum(axis=1)
        sums += some.T @ base[place]
        squared += squares.T @ base[place]
        squares *= squares
        fourth += squares.T @ base[place] ** 2
        if others is not None and given is not None:
            moved = others[place] - given[place, None]
            shifts += some.T @ moved.astype(np.float32, copy=False)
    totals = base.sum(axis=0, dtype=float)
    means = sums / totals
    # As many rows of equal weight and value: (sum b z^2)^2 / sum b^2 z^4
    carried = squared**2 / np.maximum(fourth, TINY)
    variances = squared / totals - means**2
    return Described(norms, means, variances, carried, shifts / len(base))


def means_under(rows: RowBlocks, weights: np.ndarray) -> np.ndarray:
    """The means of the rows under weights, a column each.

    >>> rows = HeldRows(np.array([[0.0], [1.0]], dtype=np.float32))
    >>> means_under(rows, np.array([[3.0, 1.0], [1.0, 1.0]])).tolist()
    [[0.25, 0.5]]
    """
    size = rows.shape[1] if rows.turn is None else len(rows.turn.centre)
    sums, totals = np.zeros((size, weights.shape[1])), weights.sum(axis=0, dtype=float)
    for place, raw in rows.raw_blocks():
        sums += raw.T @ weights[place].astype(raw.dtype, copy=False)
    found: np.ndarray = (sums if rows.turn is None else rows.turn.sums(sums, totals)) / totals
    return found


def _described_in_part(
    rows: RowBlocks, base: np.ndarray, others: np.ndarray | None, given: np.ndarray | None
) -> Described:
    """The same with means of all rows, which need no turned ones; a part tells of the rest."""
    places = spread(len(base), DESCRIBED_ROWS)
    part = describe(HeldRows(rows.take(places)), base[places])
    turn, norms_of, norms = rows.turn, projected_norms(rows), np.empty(len(base))
    size = rows.shape[1] if turn is None else len(turn.centre)
    sums, shifts = np.zeros((2, size, base.shape[1]))
    moved_totals = np.zeros(base.shape[1])
    for place, raw in rows.raw_blocks():
        norms[place] = norms_of(raw)
        sums += raw.T @ base[place]
        if others is not None and given is not None:
            moved = (others[place] - given[place, None]).astype(np.float32, copy=False)
            shifts += raw.T @ moved
            moved_totals += moved.sum(axis=0, dtype=float)
    totals = base.sum(axis=0, dtype=float)
    if turn is not None:
        sums, shifts = turn.sums(sums, totals), turn.sums(shifts, moved_totals)
    return part._replace(
        norms=norms,
        means=sums / totals,
        carried=part.carried * (len(base) / len(places)),
        shifts=shifts / len(base),
    )


@dataclass(frozen=True, eq=False)
class _Weighted:
    """Rows with base weights, a column each."""

    rows: RowBlocks
    base: np.ndarray

    def part(self, norms: np.ndarray, about: int) -> _Weighted:
        """About so many rows in memory, those that can move means most with more chance."""
        if len(self.base) < 2 * about:
            return self
        places, scale = choose_rows(norms, about)
        return _Weighted(HeldRows(self.rows.take(places)), self.base[places] * scale[:, None])

    def in_mean(self) -> HeldRows:
        """The rows in memory, with the means of their base weights."""
        rows, every = self.rows, np.arange(len(self.base))
        values = rows.values if isinstance(rows, HeldRows) else rows.take(every)
        return HeldRows(values, self.base.mean(axis=1, dtype=float))

    def dual(
        self, targets: np.ndarray, soft: np.ndarray
    ) -> Callable[[np.ndarray, np.ndarray], Valued]:
        """The functions to minimise:  log mean_base exp(z.theta) - theta.t + soft theta^2 / 2."""

        def valued(thetas: np.ndarray, which: np.ndarray) -> Valued:
            logs, means = self._tilted(thetas, which)
            own, goal = _columns(soft, which), _columns(targets, which)
            values = logs - (thetas * goal).sum(axis=0) + 0.5 * (own * thetas**2).sum(axis=0)
            return Valued(values, means - goal + own * thetas)

        return valued

    def _tilted(self, thetas: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The logarithm of the mean tilt, and the means under the tilted weights, a column each.

        In one pass: the sums are scaled down where a block has a larger exponent than before.
        """
        turn, count = self.rows.turn, len(which)
        vectors, offsets = (thetas, 0.0) if turn is None else turn.vectors(thetas)
        single = vectors.astype(np.float32)
        top = np.full(count, BOTTOM)
        sizes, totals, sums = np.zeros(count), np.zeros(count), np.zeros(vectors.shape)
        for place, rows in self.rows.raw_blocks():
            base = _columns(self.base[place], which)
            # Rows that a column does not have are at -inf, and cannot be its largest.
            weights = rows @ single
            weights += _logarithms(base)
            larger = np.maximum(top, weights.max(axis=0))
            scale = np.exp((top - larger).astype(float))
            top = larger
            weights -= top
            np.exp(weights, out=weights)
            sizes = sizes * scale + weights.sum(axis=0)
            totals += base.sum(axis=0)
            sums *= scale
            sums += rows.T @ weights
        means = (sums if turn is None else turn.sums(sums, sizes)) / sizes
        return top + np.log(sizes / totals) - offsets, means


def _logarithms(base: np.ndarray) -> np.ndarray:
    """The logarithms of base weights, -inf for none."""
    with np.errstate(divide="ignore"):
        found: np.ndarray = np.log(base)
    return found


def _columns(values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """These columns, without a copy if they are all."""
    return values if len(which) == values.shape[1] else values[:, which]
