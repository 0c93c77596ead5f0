"""From a noisy histogram to the shape of a column: the fewest pieces that noise does not refute.

A fine histogram has far more cells than its noise leaves standing. It is described by pieces of
constant density on the scale of their cells: least squares with a price of `PRICE` variances times
the logarithm of the number of cells for every piece (Potts' functional, solved exactly by dynamic
programming; Boysen et al. 2009). What stands clear of its noise nowhere is empty. The cells are
then grouped into a few coarse ones, in which relations with other columns are counted, and what
lies within a coarse cell is drawn by the pieces. Everything here works on noised answers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from counterpoise.schema.column import Column
from counterpoise.schema.grids import Grid, is_relative, stated
from counterpoise.schema.shape import Shape

# What a piece costs, in variances of a count, times the logarithm of the number of cells.
PRICE = 1.5
# A piece stands out by itself when it exceeds what the largest of all cells does by noise alone,
# sqrt(2 log cells) deviations, by this many; next to one that stands, when it has these.
CLEAR, CLEAR_NEARBY = 0.5, 0.7
# Where more than this part of the rows is missing then, the likeliest place for them has to do.
MISSING = 0.1
# What a coarse cell is to have the same of as others: this part its rows, the rest its width.
BY_ROWS = 0.5


def denoised(grid: Grid, counts: np.ndarray, deviation: float, total: float) -> np.ndarray:
    """Rows in each cell of a grid, from noisy counts of `deviation`, about `total` in all."""
    measures, zones = grid.measures, grid.zones
    price = PRICE * deviation**2 * math.log(len(counts))
    rows, scores = np.zeros(len(counts)), np.zeros(len(counts))
    ends = [0, *(np.flatnonzero(np.diff(zones)) + 1).tolist(), len(counts)]
    for first, last in pairwise(ends):
        for start, end in fewest_pieces(counts[first:last], measures[first:last], price):
            piece = slice(first + start, first + end)
            rows[piece], scores[piece] = _fitted(counts[piece], measures[piece], deviation)
    stands = scores >= math.sqrt(2 * math.log(len(counts))) + CLEAR
    rows[~stands] = 0.0
    _extend(grid, counts, deviation, total, rows, stands)
    while total - rows.sum() > max(MISSING * total, 2 * deviation * math.sqrt(1 + stands.sum())):
        likeliest = _likeliest(grid, counts, stands, deviation)
        if likeliest is None:
            break
        rows[likeliest] = _fitted(counts[likeliest], measures[likeliest], deviation)[0]
        stands[likeliest] = True
        _extend(grid, counts, deviation, total, rows, stands)
    return rows if stands.any() else np.diff(grid.edges.astype(float))


def _likeliest(
    grid: Grid, counts: np.ndarray, stands: np.ndarray, deviation: float
) -> slice | None:
    """The stretch of free cells that stands out most; None where none does at all.

    Where there are relative cells it is one of them: rows that are put too near to zero harm a mean
    by no more than they have, those that are put too far by any amount.
    """
    measures, zones = grid.measures, grid.zones
    near = is_relative(
        grid.edges[:-1].astype(float), grid.edges[1:].astype(float), grid.relative_below
    )
    free = ~stands & (near | ~near.any())
    cross = np.append(0.0, np.cumsum(counts * measures))
    square = np.append(0.0, np.cumsum(measures**2))
    best, found = CLEAR_NEARBY, None
    # Cells of one run have the same number: no zone ends between them, and none of them stands.
    runs = np.cumsum(np.append(0, (np.diff(zones) != 0) | (np.diff(free) != 0)))
    for start in np.flatnonzero(free).tolist():
        end = int(np.searchsorted(runs, runs[start], side="right"))
        norms = np.sqrt(square[start + 1 : end + 1] - square[start])
        scores = (cross[start + 1 : end + 1] - cross[start]) / (norms * deviation)
        place = int(np.argmax(scores))
        if scores[place] > best:
            best, found = float(scores[place]), slice(start, start + 1 + place)
    return found


def _fitted(counts: np.ndarray, measures: np.ndarray, deviation: float) -> tuple[np.ndarray, float]:
    """Rows of a piece of constant density, and by how many deviations they stand out."""
    density = (measures @ counts) / (measures @ measures)
    return density * measures, float(density * np.linalg.norm(measures) / deviation)


def _extend(
    grid: Grid,
    counts: np.ndarray,
    deviation: float,
    total: float,
    rows: np.ndarray,
    stands: np.ndarray,
) -> None:
    """Go on from what stands, by no more than its own width at a time, while rows are missing.

    A tail is thin: no piece of it stands out by itself. But it begins where the bulk ends, and the
    bulk alone has fewer rows than there are.
    """
    edges, measures = grid.edges.astype(float), grid.measures
    widths = np.diff(edges)
    refused: set[tuple[int, int]] = set()
    while stands.any() and rows.sum() < total:
        room = widths[stands].sum()
        best: tuple[float, slice, np.ndarray] | None = None
        for start, end in _beside(stands, widths, room) - refused:
            piece = slice(start, end)
            found, score = _fitted(counts[piece], measures[piece], deviation)
            if score < CLEAR_NEARBY:
                refused.add((start, end))
            elif best is None or score > best[0]:
                best = score, piece, found
        if best is None:
            return
        _, piece, found = best
        rows[piece], stands[piece] = found, True


def _beside(stands: np.ndarray, widths: np.ndarray, room: float) -> set[tuple[int, int]]:
    """The stretches [start, end) next to what stands: as much of them as is `room` wide."""
    found = set()
    for place in np.flatnonzero(np.diff(stands.astype(int))).tolist():
        if stands[place]:
            start = end = place + 1
            while end < len(stands) and not stands[end]:
                if end > start and widths[start : end + 1].sum() > room:
                    break
                end += 1
        else:
            start = end = place + 1
            while start > 0 and not stands[start - 1]:
                if start < end and widths[start - 1 : end].sum() > room:
                    break
                start -= 1
        found.add((start, end))
    return found


def fewest_pieces(counts: np.ndarray, measures: np.ndarray, price: float) -> list[tuple[int, int]]:
    """The pieces [start, end) that minimise squared error plus `price` a piece.

    >>> fewest_pieces(np.array([9.0, 11.0, 10.0, 50.0, 52.0]), np.ones(5), price=20.0)
    [(0, 3), (3, 5)]
    """
    size = len(counts)
    cross = np.append(0.0, np.cumsum(counts * measures))
    square = np.append(0.0, np.cumsum(measures**2))
    best, cut = np.zeros(size + 1), np.zeros(size + 1, dtype=int)
    for end in range(1, size + 1):
        # The error of a piece is sum y^2 - (sum m y)^2 / sum m^2; the first term is common.
        fits = (cross[end] - cross[:end]) ** 2 / (square[end] - square[:end])
        scores = best[:end] - fits + price
        cut[end] = int(np.argmin(scores))
        best[end] = scores[cut[end]]
    pieces: list[tuple[int, int]] = []
    end = size
    while end:
        pieces.append((int(cut[end]), end))
        end = int(cut[end])
    return pieces[::-1]


def coarse_starts(grid: Grid, rows: np.ndarray, count: int) -> np.ndarray:
    """The places of the fine cells at which about `count` coarse cells begin.

    A coarse cell has about its part of the rows and of the occupied width, an atom of more than
    half a cell's rows is one by itself, and a stretch without rows goes with its neighbour.
    """
    shares = rows / rows.sum()
    widths = np.where(rows > 0, np.diff(grid.edges.astype(float)), 0.0)
    parts = BY_ROWS * shares + (1 - BY_ROWS) * widths / widths.sum()
    alone = (shares > 1 / (2 * count)) & _holds_one_value(grid)
    starts = {0}
    starts |= {place + side for place in np.flatnonzero(alone).tolist() for side in (0, 1)}
    starts.discard(len(rows))
    bounds = sorted({*starts, len(rows)})
    for first, last in pairwise(bounds):
        if alone[first]:
            continue
        within = parts[first:last].sum()
        wanted = max(1, round(count * within))
        reached = np.cumsum(parts[first:last]) / max(within, 1e-300) * wanted
        # A cell begins where the next whole number is reached, as nearly as fine cells allow.
        marks = [first + 1 + int(np.argmin(np.abs(reached - k))) for k in range(1, wanted)]
        starts |= {mark for mark in marks if first < mark < last}
    return _joined(np.array(sorted(starts)), alone, shares, 1 / (4 * count))


def _holds_one_value(grid: Grid) -> np.ndarray:
    if grid.edges.dtype.kind == "i":
        return np.diff(grid.edges) == 1
    return grid.atoms


def _joined(starts: np.ndarray, alone: np.ndarray, shares: np.ndarray, least: float) -> np.ndarray:
    """Join coarse cells of too few rows with the smaller neighbour, atoms last."""
    cells = starts.tolist()
    while len(cells) > 2:
        ends = [*cells[1:], len(shares)]
        held = [shares[start:end].sum() for start, end in zip(cells, ends, strict=True)]
        single = [bool(alone[start]) for start in cells]
        small = [place for place in range(len(cells)) if held[place] < least]
        small.sort(key=lambda place: held[place])
        for place in small:
            beside = [other for other in (place - 1, place + 1) if 0 <= other < len(cells)]
            beside = [other for other in beside if not single[other]]
            if beside:
                partner = min(beside, key=lambda other: held[other])
                cells.pop(max(place, partner))
                break
        else:
            break
    return np.array(cells)


def settled(column: Column, grid: Grid, rows: np.ndarray, count: int) -> Column:
    """The column with about `count` coarse bins, and the shape of `rows` within them."""
    starts = coarse_starts(grid, rows, count)
    measures, zones = grid.measures, grid.zones
    densities = rows / measures
    # Neighbours of one density, on one scale and in one bin, are drawn from as one.
    changed = (np.diff(zones) != 0) | ~np.isclose(densities[1:], densities[:-1], rtol=1e-9)
    begins = np.union1d(np.flatnonzero(changed) + 1, starts)
    shares = np.add.reduceat(rows, begins) / rows.sum()
    end = grid.edges[-1:]
    return replace(
        column,
        bins=stated(column, np.append(grid.edges[starts], end)),
        shape=Shape(
            stated(column, np.append(grid.edges[begins], end)),
            tuple(np.round(shares, 9).tolist()),
            grid.relative_below,
        ),
    )
