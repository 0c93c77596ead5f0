"""From a noisy histogram to the shape of a column: the fewest pieces that noise does not refute.

A fine histogram has far more cells than its noise leaves standing. It is cut into pieces of
constant density on the scale of their cells: least squares with a price of `PRICE` variances times
the logarithm of the number of cells for every piece (Potts' functional, solved exactly by dynamic
programming; Boysen et al. 2009). What stands clear of its noise nowhere is empty. Each piece
then leans as its neighbours suggest and its own counts y allow: with u the place in it,

    density ~ e^(k (2u - 1)),   chance of k ~ N(k; log(right / left) / 2, s^2) exp(q'Py - q'Pq / 2),

q the rows that k gives its cells, P the precision of y, left and right the densities halfway to its
neighbours, and s larger where rows end, because how soon they do within the last piece is what its
noise hides. Everything here works on noised answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from counterpoise.schema.grids import Grid, holds_one_value, is_relative
from counterpoise.schema.noisy_cells import NoisyCells
from counterpoise.schema.tails import Tail, Unlocated, tail, unlocated

# What a piece costs, in variances of a count, times the logarithm of the number of cells.
PRICE = 2.0
# A piece stands out by itself when it exceeds what the largest of all cells does by noise alone,
# sqrt(2 log cells) deviations, by this many; next to one that stands, when it has the second number
# of deviations while rows are missing, and the third when none are.
CLEAR, CLEAR_NEARBY, CLEAR_NOT_NEEDED = 1.0, 1.2, 2.5
# Rows are missing, and not only by noise, where they are so many of its deviations.
SURELY = 2.0
# How far a piece leans, before its own counts are asked, is known to so much between neighbours
# that stand, and to so much where rows end. In shapes of 12 samples of each population that
# `benchmarks/truth.py` chooses rules on, they leaned by 0.4 (0.7 at 300 rows) and by 0.8 to 1.1
# beyond a line between neighbours; errors of means are the same with 0.35 and 0.8. What its counts
# then leave is no less than the last at an end, where rows seldom fall by one law: a round number.
UNSEEN_SLOPE, UNSEEN_AT_END, LEAST_AT_END = 0.45, 1.2, 0.4
# One that may lean all the way is a tail; see `known_range`.
MOST_SLOPE = 0.999
# Places on the normal law at which a lean is weighed; a round number.
LEANINGS = np.linspace(-3.0, 3.0, 25)
# What is missing from the total, or too much, changes no piece by more than to this part.
LEAST_SCALE = 0.1


@dataclass(frozen=True, eq=False)
class Denoised:
    """Rows in each cell of a grid, and how well each piece of them is known."""

    rows: np.ndarray
    pieces: np.ndarray  # for each cell the piece that it belongs to, -1 where it is empty
    errors: np.ndarray  # for each piece the standard error of its rows
    slopes: np.ndarray  # for each piece how far it may lean to one side, as `Shape` has it


def denoised(grid: Grid, answer: NoisyCells, total: float) -> Denoised:
    """Rows in each cell of a grid, from noisy counts of them, about `total` in all.

    Where none stand out of the noise, they are spread over the range.
    """
    found = standing(grid, answer, total)
    if found is not None:
        return found
    even = np.diff(grid.edges.astype(float))
    return Denoised(even, np.zeros(len(even), dtype=int), np.zeros(1), np.ones(1))


def standing(
    grid: Grid, answer: NoisyCells, total: float, variance: float = 0.0, goes_on: bool = True
) -> Denoised | None:
    """Rows in each cell of a grid as far as they stand out of the noise; None where none do.

    `variance` is that of the total, and what `goes_on` has tails beyond what stands.
    """
    zones, size = grid.zones, len(answer)
    price = PRICE * math.log(size)
    rows, scores = np.zeros(size), np.zeros(size)
    pieces = np.full(size, -1)
    ends = [0, *(np.flatnonzero(np.diff(zones)) + 1).tolist(), size]
    for first, last in pairwise(ends):
        for start, end in fewest_pieces(answer, grid.measures, first, last, price):
            rows[start:end], scores[start:end] = _fitted(grid, answer, start, end)
            pieces[start:end] = start
    clear = math.sqrt(2 * math.log(size)) + CLEAR
    stands = scores >= clear
    rows[~stands] = 0.0
    _extend(grid, answer, total, rows, stands, pieces)
    pieces[~stands] = -1
    if not (stands.any() or (goes_on and grid.relative_below)):
        return None
    sides = (-1, 1) if goes_on and stands.any() else ()
    tails = [tail(grid, answer, rows, pieces, side) for side in sides]
    held = [found for found in tails if found]
    missing = total - rows.sum() - sum(float(found.rows.sum()) for found in held)
    error = math.sqrt(_error_of(answer, stands) ** 2 + variance + sum(f.error**2 for f in held))
    bump = None
    if missing > SURELY * error or grid.atoms[stands].all():
        free = ~stands & ~grid.atoms
        for found in held:
            free &= found.rows == 0
        bump = unlocated(grid, answer, rows, free, (missing, error), clear)
    if bump is None and not stands.any():
        return None
    return _described(grid, answer, total, variance, rows, pieces, held, bump)


def _error_of(answer: NoisyCells, chosen: np.ndarray) -> float:
    """The standard error of all chosen cells together, and of one more."""
    variance = float(answer.variances[0])
    if chosen.any():
        variance += (
            answer.projected(answer.counts, chosen.astype(float))[1] ** 2 * chosen.sum() ** 2
        )
    return math.sqrt(variance)


def _described(
    grid: Grid,
    answer: NoisyCells,
    total: float,
    variance: float,
    rows: np.ndarray,
    pieces: np.ndarray,
    tails: list[Tail],
    bump: Unlocated | None,
) -> Denoised:
    """The pieces in order, what noise hides among them, as many rows in all as there are."""
    measures, single = grid.measures, holds_one_value(grid)
    rows, pieces = rows.copy(), pieces.copy()
    errors, slopes = np.zeros(len(rows)), np.zeros(len(rows))
    densities = rows / measures
    for piece in np.unique(pieces[pieces >= 0]).tolist():
        cells = np.flatnonzero(pieces == piece)
        errors[piece] = answer.sum(int(cells[0]), int(cells[-1]) + 1)[1]
        if len(cells) > 1 or not single[cells[0]]:
            rows[cells], slopes[piece] = _leaning(grid, answer, densities, cells)
    for found in tails:
        first = int(np.flatnonzero(found.rows)[0])
        rows += found.rows
        pieces[found.rows > 0] = first
        errors[first], slopes[first] = found.error, 1.0
    if bump is not None:
        there = bump.pieces >= 0
        rows[there], pieces[there] = bump.rows[there], bump.pieces[there]
        errors += bump.errors
        slopes[np.unique(bump.pieces[there])] = 1.0
    # What is missing from the total, or too much, is the pieces' in the proportion of their errors,
    # and the total's own.
    masses = np.bincount(np.maximum(pieces, 0), rows, minlength=len(rows))
    missing = (total - rows.sum()) * errors**2 / max(float((errors**2).sum()) + variance, 1e-300)
    scales = np.divide(masses + missing, masses, out=np.zeros_like(masses), where=masses > 0)
    rows = np.where(pieces >= 0, rows * np.maximum(scales, LEAST_SCALE)[np.maximum(pieces, 0)], 0.0)
    used, numbers = np.unique(pieces, return_inverse=True)
    shift = int(used[0] < 0)
    return Denoised(rows, numbers - shift, errors[used[shift:]], slopes[used[shift:]])


def _leaning(
    grid: Grid, answer: NoisyCells, densities: np.ndarray, cells: np.ndarray
) -> tuple[np.ndarray, float]:
    """The rows of a piece of density d k / sinh(k) e^(k (2u - 1)), and how far it may yet lean.

    The rows are the mean over k; where each k has them, by their ranks under that mean, is how far
    it leans.
    """
    measures, own = grid.measures[cells], float(densities[cells[0]])
    beside = _beside(grid, densities, cells[0], -1), _beside(grid, densities, cells[-1], 1)
    left, right = (own if other is None else (own + other) / 2 for other in beside)
    suggested = math.log(right / left) / 2
    between = bool(beside[0] and beside[1])
    known, least = (UNSEEN_SLOPE, 0.0) if between else (UNSEEN_AT_END, LEAST_AT_END)
    if len(cells) == 1:
        return own * measures, min(math.hypot(suggested, known), MOST_SLOPE)
    ends = 2 * np.append(0.0, np.cumsum(measures)) / measures.sum() - 1
    # The rows of a cell are a difference of e^(k (2u - 1)), which is none at k = 0.
    lean = suggested + known * LEANINGS[:, None] + 1e-9
    shares = np.abs(np.diff(np.exp(lean * ends - np.abs(lean)), axis=1))
    shares /= shares.sum(axis=1, keepdims=True)
    profiles = own * measures.sum() * shares
    precision, along = answer.weighed(answer.counts, cells, profiles)
    likely = along - precision / 2 - LEANINGS**2 / 2
    chances = np.exp(likely - likely.max())
    chances /= chances.sum()
    mean = chances @ shares
    # int (F_k - F) dF = t / 6 for a density 1 + t (2F - 1) by the ranks F.
    leaned = 6 * (shares @ (np.cumsum(mean) - mean / 2) - 0.5)
    slope = math.hypot(math.sqrt(chances @ leaned**2), least)
    return own * measures.sum() * mean, min(slope, MOST_SLOPE)


def _beside(grid: Grid, densities: np.ndarray, cell: int, side: int) -> float | None:
    """The density next to a cell, per unit of its own measure; None where the range ends.

    Values that many rows have by themselves say nothing of their neighbours.
    """
    padded, single = np.pad(densities, 1), holds_one_value(grid)
    peaks = single & (densities > np.maximum(padded[:-2], padded[2:]))
    other = cell + side
    while 0 <= other < len(densities) and (grid.atoms[other] or peaks[other]):
        other += side
    if not 0 <= other < len(densities):
        return None
    edges = grid.edges.astype(float)
    # dm / dx of the measure m at the edge x between: 1 / (x log 2) of octaves, else a constant.
    edge = abs(edges[cell + (side > 0)])
    relative = is_relative(edges[:-1], edges[1:], grid.relative_below)
    stretch = np.where(relative, 1 / max(edge * math.log(2), 1e-300), 1 / np.diff(edges).max())
    return float(densities[other] * stretch[other] / stretch[cell])


def _fitted(grid: Grid, answer: NoisyCells, start: int, end: int) -> tuple[np.ndarray, float]:
    """Rows of a piece of constant density, and by how many deviations they stand out."""
    measures = grid.measures[start:end]
    count, error = answer.sum(start, end)
    return count * measures / measures.sum(), count / error


def _extend(
    grid: Grid,
    answer: NoisyCells,
    total: float,
    rows: np.ndarray,
    stands: np.ndarray,
    pieces: np.ndarray,
) -> None:
    """Go on from what stands, by a group or so and no more than its own width at a time.

    A tail is thin: no piece of it stands out by itself. But it begins where the bulk ends, and the
    bulk alone has fewer rows than there are.
    """
    widths, zones = np.diff(grid.edges.astype(float)), grid.zones
    refused: set[tuple[int, int]] = set()
    while stands.any():
        clear = CLEAR_NEARBY if rows.sum() < total else CLEAR_NOT_NEEDED
        best: tuple[float, int, int, np.ndarray] | None = None
        for start, end in _next_to(stands, grid.atoms, answer.groups, widths, zones) - refused:
            if grid.atoms[start]:
                continue  # a value that stands for many rows stands out by itself
            found, score = _fitted(grid, answer, start, end)
            if score < CLEAR_NEARBY:
                refused.add((start, end))
            elif score >= clear and (best is None or score > best[0]):
                best = score, start, end, found
        if best is None:
            return
        _, start, end, found = best
        rows[start:end], stands[start:end], pieces[start:end] = found, True, start


def _next_to(
    stands: np.ndarray,
    atoms: np.ndarray,
    groups: np.ndarray,
    widths: np.ndarray,
    zones: np.ndarray,
) -> set[tuple[int, int]]:
    """The stretches [start, end) next to what stands: the next group, and what is left of this.

    A value that stands for many rows tells nothing of its neighbours.
    """
    found = set()
    room = widths[stands].sum()
    for place in np.flatnonzero(np.diff(stands.astype(int))).tolist():
        step = 1 if stands[place] else -1
        if atoms[place if step > 0 else place + 1]:
            continue
        first = place + 1 if stands[place] else place
        cell, width, passed = first, 0.0, 0
        while 0 <= cell < len(stands) and not stands[cell] and zones[cell] == zones[first]:
            width += widths[cell]
            passed += cell != first and groups[cell] != groups[cell - step]
            if cell != first and (width > room or passed > 1):
                break
            cell += step
        found.add((min(first, cell + 1), max(first + 1, cell)))
    return found


def fewest_pieces(
    answer: NoisyCells, measures: np.ndarray, first: int, last: int, price: float
) -> list[tuple[int, int]]:
    """The pieces [start, end) of the cells from `first` to `last`, at `price` a piece.

    They minimise the squared error of a constant density in each, in units of the noise, of cells
    and of groups. A piece is a run of whole groups, or a part of one.

    >>> answer = NoisyCells.alone(np.array([9.0, 11.0, 10.0, 50.0, 52.0]), 1.0)
    >>> fewest_pieces(answer, np.ones(5), 0, 5, price=20.0)
    [(0, 3), (3, 5)]
    """
    starts = np.flatnonzero(np.diff(answer.groups[first:last], prepend=-1)) + first
    bounds = np.append(starts, last)
    inner = [_parts(answer, measures, *pair, price) for pair in pairwise(bounds.tolist())]
    # A density d fits counts y of deviation s with (d m.y)^2 / |m|^2 less error than none.
    weights = 1 / answer.variances[first:last]
    own, counts = measures[first:last], answer.counts[first:last]
    places = starts - first
    sizes, held = np.add.reduceat(own, places), np.add.reduceat(counts, places)
    known = answer.known[answer.groups[starts]]
    cross = np.add.reduceat(own * counts * weights, places) + sizes * held * known
    square = np.add.reduceat(own**2 * weights, places) + sizes**2 * known
    cross, square = np.append(0.0, np.cumsum(cross)), np.append(0.0, np.cumsum(square))
    count = len(starts)
    best, cut, split = np.zeros(count + 1), np.zeros(count + 1, dtype=int), np.zeros(count + 1)
    for end in range(1, count + 1):
        fits = (cross[end] - cross[:end]) ** 2 / (square[end] - square[:end])
        scores = best[:end] + fits - price
        cut[end] = int(np.argmax(scores))
        best[end] = scores[cut[end]]
        apart = best[end - 1] + inner[end - 1][0] + held[end - 1] ** 2 * known[end - 1]
        if apart > best[end]:
            best[end], cut[end], split[end] = apart, end - 1, 1
    pieces: list[tuple[int, int]] = []
    end = count
    while end:
        whole = [(int(bounds[cut[end]]), int(bounds[end]))]
        pieces = (inner[end - 1][1] if split[end] else whole) + pieces
        end = int(cut[end])
    return pieces


def _parts(
    answer: NoisyCells, measures: np.ndarray, first: int, last: int, price: float
) -> tuple[float, list[tuple[int, int]]]:
    """The best pieces within a group, and by how much less error they fit its cells than none."""
    weights, own = 1 / answer.variances[first:last], measures[first:last]
    cross = np.append(0.0, np.cumsum(own * answer.counts[first:last] * weights))
    square = np.append(0.0, np.cumsum(own**2 * weights))
    size = last - first
    best, cut = np.zeros(size + 1), np.zeros(size + 1, dtype=int)
    for end in range(1, size + 1):
        fits = (cross[end] - cross[:end]) ** 2 / (square[end] - square[:end])
        scores = best[:end] + fits - price
        cut[end] = int(np.argmax(scores))
        best[end] = scores[cut[end]]
    pieces: list[tuple[int, int]] = []
    end = size
    while end:
        pieces.insert(0, (first + int(cut[end]), first + end))
        end = int(cut[end])
    return float(best[size]), pieces
