"""Many calibrations of the same rows at once: other base weights and other targets a column.

Replicate weights need dozens of solutions. All go together: Newton's method, whose linear systems
are solved by conjugate gradients, so that a step of all columns is a few products of matrices and
no column needs a Hessian. White coordinates make the systems easy: what is left are rare
categories, whose rows a replicate may have three times or not at all, and the diagonals of the
Hessians know how many there are.

The tilts are first worked out on a part of the rows, chosen by how much each can move a mean and
weighted for it, as if it were all, its means put where those of all rows are; then on a larger one.
Only the last steps see all rows, until what is left to gain is far below the noise that the
replicates are to show. So the solution is that of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from counterpoise.weights.row_blocks import HeldRows, RowBlocks, slices

# The variance of a white coordinate among a part of the rows from which they can tell of it.
LEAST_SEEN = 0.5
# About how many rows the solution is looked for on, one part after the other; where there are
# fewer than twice as many, all are taken. Steps on all rows have the Hessians of the last part.
PART_ROWS = 20_000, 48_000
STEPS = 40
TRIES = 12  # of a step, each a quarter of the last
PRODUCTS = 12  # with the Hessians, for one step
WELL_SOLVED = 0.02  # the part of the squared residual that may be left after those
# What may be left to gain in the mean over columns, on all rows, as a part of the squared distance
# of the targets from their mean, which is what the columns are to show; within what bounds; and on
# a part of the rows. About twice the divergence of weights. No column may have many times as much
# left, and one with half of it is not worked on.
ENOUGH, LEAST_ENOUGH, MOST_ENOUGH, ENOUGH_OF_A_PART = 1e-3, 1e-6, 3e-4, 1e-2
MANY_TIMES, HALF = 20.0, 0.5
ROUNDING = 1e-7
WORTH_A_COPY = 0.75  # the part of the columns that is still worked on
# Added to the diagonal of Hessians, which rounding may leave without any curvature.
LEAST_CURVATURE = 1e-6
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

    They are in single precision, in `out` if there is such a place. What `describe` says of the
    rows is worked out where it is not given. `start` is a theta that all are near, if one is known.

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
    soft = softness[:, None] + (known.variances < LEAST_SEEN)
    curvatures = known.variances + soft
    thetas = (
        np.zeros(targets.shape) if start is None else np.repeat(start[:, None], base.shape[1], 1)
    )
    part = whole
    for about in PART_ROWS:
        part = whole.part(known.norms, about)
        if len(part.base) == count:
            break
        # The way from the base weights' means to the target is that of all rows.
        target = targets - known.means + describe(part.rows, part.base).means
        thetas, _ = _solve(target, soft, part, part, curvatures, thetas, ENOUGH_OF_A_PART)
    enough = float(np.clip(ENOUGH * targets.var(axis=1).sum(), LEAST_ENOUGH, MOST_ENOUGH))
    found = np.empty_like(whole.base) if out is None else out
    thetas, stayed = _solve(targets, soft, whole, part, curvatures, thetas, enough, found)
    if len(stayed):
        whole.tilted(thetas[:, stayed], stayed, found)
    return found, thetas


def tilt_many(rows: RowBlocks, base: np.ndarray, thetas: np.ndarray) -> np.ndarray:
    """Base weights, a column each, tilted by exp(z.theta) and averaging to one.

    >>> rows = HeldRows(np.array([[0.0], [1.0]], dtype=np.float32))
    >>> tilt_many(rows, np.ones((2, 1), dtype=np.float32), np.log([[3.0]])).round(3).tolist()
    [[0.5], [1.5]]
    """
    found = np.empty_like(base)
    if found.size:
        _Weighted(rows, base).tilted(thetas, np.arange(base.shape[1]), found)
    return found


class Described(NamedTuple):
    """What is to be known of rows and their base weights, from one pass over them.

    The squared norm of each row; means and variances under the base weights, a column each; and
    how far the means under other weights, a column each, are from those under given ones.
    """

    norms: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    shifts: np.ndarray


def describe(
    rows: RowBlocks,
    base: np.ndarray,
    others: np.ndarray | None = None,
    given: np.ndarray | None = None,
) -> Described:
    """The rows and their base weights, and if there are `others`, averaging to one, those."""
    norms = np.empty(len(base))
    sums, squared, shifts = np.zeros((3, rows.shape[1], base.shape[1]))
    for place, some in rows.blocks():
        squares = some**2
        norms[place] = squares.sum(axis=1)
        sums += some.T @ base[place]
        squared += squares.T @ base[place]
        if others is not None and given is not None:
            moved = others[place] - given[place, None]
            shifts += some.T @ moved.astype(np.float32, copy=False)
    totals = base.sum(axis=0, dtype=float)
    means = sums / totals
    return Described(norms, means, squared / totals - means**2, shifts / len(base))


class _Tilted(NamedTuple):
    """The logarithm of the mean tilt, and the means under the tilted weights, a column each."""

    logs: np.ndarray
    means: np.ndarray


@dataclass(frozen=True, eq=False)
class _Weighted:
    """Rows with base weights, a column each."""

    rows: RowBlocks
    base: np.ndarray

    def part(self, norms: np.ndarray, about: int) -> _Weighted:
        """About so many rows in memory, those that can move means most with more chance."""
        if len(self.base) < 2 * about:
            held = self.rows
            if not isinstance(held, HeldRows):
                held = HeldRows(held.take(np.arange(len(self.base))))
            return _Weighted(held, self.base)
        places, scale = _chosen(norms, about)
        return _Weighted(HeldRows(self.rows.take(places)), self.base[places] * scale[:, None])

    def tilted(
        self, thetas: np.ndarray, which: np.ndarray, out: np.ndarray | None = None
    ) -> _Tilted:
        """In one pass: the sums are scaled down where a block has a larger exponent than before.

        The tilted weights of these columns, averaging to one, go to their places in `out`.
        """
        turn, count = self.rows.turn, len(which)
        vectors = thetas if turn is None else turn.vectors(thetas)[0]
        single = vectors.astype(np.float32)
        top = np.full(count, BOTTOM)
        sizes, totals, sums = np.zeros(count), np.zeros(count), np.zeros(vectors.shape)
        tops = list[np.ndarray]()
        for place, rows in self.rows.raw_blocks():
            weights, base = rows @ single, _columns(self.base[place], which)
            # The largest among the rows that there are in a column: they cannot all vanish.
            weights[base == 0] = BOTTOM
            larger = np.maximum(top, weights.max(axis=0))
            scale = np.exp((top - larger).astype(float))
            top = larger
            weights -= top
            np.exp(weights, out=weights)
            weights *= base
            sizes = sizes * scale + weights.sum(axis=0)
            totals += base.sum(axis=0)
            sums *= scale
            sums += rows.T @ weights
            if out is not None:
                _set_columns(out, place, which, weights)
                tops.append(top)
        if out is not None:
            mean = sizes / len(self.base)
            for place, before in zip(slices(len(self.base)), tops, strict=True):
                scale = np.exp((before - top).astype(float)) / mean
                _set_columns(out, place, which, _columns(out[place], which) * scale)
        logs = top + np.log(sizes / totals)
        if turn is None:
            return _Tilted(logs, sums / sizes)
        return _Tilted(logs - turn.vectors(thetas)[1], turn.sums(sums, sizes) / sizes)

    def hessians(self, thetas: np.ndarray, soft: np.ndarray, which: np.ndarray) -> _Hessians:
        """The Hessians of these columns."""
        rows = self.rows.values  # type: ignore[attr-defined]
        weights = rows @ thetas.astype(np.float32)
        base = _columns(self.base, which)
        weights[base == 0] = BOTTOM
        weights -= weights.max(axis=0)
        np.exp(weights, out=weights)
        weights *= base
        weights /= weights.sum(axis=0, dtype=float).astype(np.float32)
        return _Hessians.of(rows, weights, soft)


@dataclass(frozen=True, eq=False)
class _Hessians:
    """The covariances under the weights of some columns, plus softness: what they do to vectors."""

    rows: np.ndarray
    weights: np.ndarray  # adding up to one
    means: np.ndarray
    soft: np.ndarray
    diagonal: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray, soft: np.ndarray) -> _Hessians:
        """Of the rows under these weights."""
        means, squares = np.zeros((2, *soft.shape))
        for place, some in HeldRows(rows).blocks():
            means += some.T @ weights[place]
            squares += (some**2).T @ weights[place]
        diagonal = np.maximum(squares - means**2, 0) + soft + LEAST_CURVATURE
        return cls(rows, weights, means, soft, diagonal)

    def only(self, going: np.ndarray) -> _Hessians:
        """Some of the columns."""
        if going.all():
            return self
        parts = (self.weights, self.means, self.soft, self.diagonal)
        return _Hessians(self.rows, *(each[:, going] for each in parts))

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """The product of each column's Hessian and vector."""
        single = vectors.astype(np.float32)
        offsets = (self.means * vectors).sum(axis=0).astype(np.float32)
        found = self.soft * vectors
        for place, rows in HeldRows(self.rows).blocks():
            along = rows @ single
            along -= offsets
            along *= self.weights[place]
            found += rows.T @ along
        return found

    def roughly_solved(self, right: np.ndarray) -> np.ndarray:
        """Vectors that the Hessians take about there, by their diagonals."""
        found: np.ndarray = right / self.diagonal
        return found

    def solved(self, right: np.ndarray) -> np.ndarray:
        """Vectors that the Hessians take there, by conjugate gradients."""
        found, hessians, which = np.zeros_like(right), self, np.arange(right.shape[1])
        left, rough = right, self.roughly_solved(right)
        along, size = rough, (left * rough).sum(axis=0)
        enough = WELL_SOLVED * size
        for _ in range(PRODUCTS):
            product = hessians.times(along)
            curvature = (along * product).sum(axis=0)
            length = np.divide(size, curvature, out=np.zeros_like(size), where=curvature > 0)
            found[:, which] += length * along
            left = left - length * product
            rough = hessians.roughly_solved(left)
            before, size = size, (left * rough).sum(axis=0)
            along = (
                rough + np.divide(size, before, out=np.zeros_like(size), where=before > 0) * along
            )
            going = size > enough
            if not going.any():
                break
            if going.mean() < WORTH_A_COPY:
                hessians, which, enough = hessians.only(going), which[going], enough[going]
                left, along, size = left[:, going], along[:, going], size[going]
        return found


def _solve(
    targets: np.ndarray,
    soft: np.ndarray,
    whole: _Weighted,
    part: _Weighted,
    curvatures: np.ndarray,
    thetas: np.ndarray,
    enough: float,
    out: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method from these thetas; gradients are of the whole, Hessians of a part of it.

    It ends when little is left to gain, for which the `curvatures` are a first guess. The weights
    go to `out`, except those of columns that took their last steps in vain, which are returned
    with the thetas.
    """
    thetas, left, stayed = thetas.copy(), np.arange(thetas.shape[1]), list[int]()
    values, means = _dual(whole, targets, soft, thetas, left, out)
    gains, curvatures = np.zeros(len(left)), curvatures.copy()
    for _ in range(STEPS):
        gradients = means - targets[:, left] + soft[:, left] * thetas[:, left]
        gains[left] = (gradients**2 / curvatures[:, left]).sum(axis=0)
        if gains.mean() < enough and gains.max() < MANY_TIMES * enough:
            break
        going = gains[left] > HALF * enough
        left, values, gradients = left[going], values[going], gradients[:, going]
        hessians = part.hessians(thetas[:, left], soft[:, left], left)
        curvatures[:, left] = hessians.diagonal
        moves = -hessians.solved(gradients)
        decrements = -(gradients * moves).sum(axis=0)
        # Shorter steps where they go up; a column that gets no further stays where it is.
        trying, length, means = np.arange(len(left)), 1.0, np.empty_like(gradients)
        for _ in range(TRIES):
            tried = thetas[:, left[trying]] + length * moves[:, trying]
            tried_values, tried_means = _dual(whole, targets, soft, tried, left[trying], out)
            good = tried_values <= values[trying] - 0.1 * length * decrements[trying] + ROUNDING
            done = trying[good]
            thetas[:, left[done]], values[done] = tried[:, good], tried_values[good]
            means[:, done] = tried_means[:, good]
            trying, length = trying[~good], length / 4
            if len(trying) == 0:
                break
        gains[left[trying]] = 0.0  # nothing more can be had
        stayed += left[trying].tolist()
        left, values = np.delete(left, trying), np.delete(values, trying)
        means = np.delete(means, trying, axis=1)
    return thetas, np.array(stayed, dtype=int)


def _dual(
    whole: _Weighted,
    targets: np.ndarray,
    soft: np.ndarray,
    thetas: np.ndarray,
    which: np.ndarray,
    out: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The values of the dual, and the means that its gradients are made of."""
    found = whole.tilted(thetas, which, out)
    values = found.logs - (thetas * targets[:, which]).sum(axis=0)
    return values + 0.5 * (soft[:, which] * thetas**2).sum(axis=0), found.means


def _chosen(norms: np.ndarray, about: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of about so many rows, and what each stands for; the same every time.

    Half of the chance of a row is everybody's, half goes by its squared norm: what moves means is
    there, and what is rare is not missed. Systematic, so that the order of the rows is balanced.
    """
    if len(norms) <= about:
        return np.arange(len(norms)), np.ones(len(norms), dtype=np.float32)
    shares = 0.5 / len(norms) + 0.5 * norms / max(float(norms.sum()), 1e-300)
    chances = np.minimum(1.0, about * shares)
    upto = np.cumsum(chances)
    start = np.random.default_rng(0).uniform()
    places = np.searchsorted(upto, start + np.arange(int(upto[-1] - start) + 1))
    places = np.unique(places[places < len(norms)])
    return places, (1 / chances[places]).astype(np.float32)


def _columns(values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """These columns, without a copy if they are all."""
    return values if len(which) == values.shape[1] else values[:, which]


def _set_columns(values: np.ndarray, place: slice, which: np.ndarray, columns: np.ndarray) -> None:
    if len(which) == values.shape[1]:
        values[place] = columns
    else:
        values[place, which] = columns
