"""Coarse cells for the relations of a column, and its shape within them.

The fine cells in which rows were found are grouped into a few coarse ones, in which relations with
other columns are counted: half of them by rows, half so that little of the column's variance is
left within them, and a value that many rows have by itself. What lies within a coarse cell is drawn
by the pieces that were found there, whatever the other columns are: a slope is too flat by the part
of the variance that is lost so, and most of it is in the tails. Tails are cut as finely as noise
allows: no cell holds fewer rows than can be told from none. Everything here works on noised
answers.

Cells by variance: of a density f, cells of equal parts of f^(1/3) leave the least variance within
them (P. F. Panter and W. Dite, Quantization distortion in pulse-count modulation, 1951).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from counterpoise.schema.column import Column
from counterpoise.schema.grids import Grid, holds_one_value, stated
from counterpoise.schema.pieces import Denoised
from counterpoise.schema.shape import Shape

# What a coarse cell is to have the same of as others: this part its rows, the rest what cells of
# least variance have the same of.
BY_ROWS = 0.5
# A coarse cell has at least so many deviations of the noise that its rows were counted with.
CLEAR_DEVIATIONS = 2.0
# One of less than this part of an equal one is all but empty.
ALL_BUT_EMPTY = 0.025
# Densities that differ by no more than this part are one.
SAME_DENSITY = 0.1


def coarse_starts(grid: Grid, rows: np.ndarray, count: int, deviation: float = 0.0) -> np.ndarray:
    """The places of the fine cells at which about `count` coarse cells begin.

    A coarse cell has about its part of the rows and of what keeps the variance within cells small,
    an atom of more than half a cell's rows is one by itself, and a stretch of too few rows, which
    noise of the `deviation` hides, goes with its neighbour.
    """
    shares = rows / rows.sum()
    widths = np.diff(grid.edges.astype(float))
    # f^(1/3) dx, of a density f of rows over a width
    spread = np.cbrt(shares * (widths / widths.sum()) ** 2)
    # Where all rows are at single values, there is nothing to spread.
    parts = BY_ROWS * shares + (1 - BY_ROWS) * spread / max(spread.sum(), 1e-300)
    alone = (shares > 1 / (2 * count)) & holds_one_value(grid)
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
    least = max(CLEAR_DEVIATIONS * deviation / float(rows.sum()), ALL_BUT_EMPTY / count)
    return _joined(np.array(sorted(starts)), alone, shares, count, least)


def _joined(
    starts: np.ndarray, alone: np.ndarray, shares: np.ndarray, count: int, least: float
) -> np.ndarray:
    """Join coarse cells of less than the share `least` with the smaller neighbour, atoms last.

    What is all but empty joins even an atom: rows that noise alone puts there would lie anywhere
    between it and a generous bound, and the shape still tells which value has the rows. So does a
    small cell where there are more than asked for, as between many heaps.
    """
    cells = starts.tolist()
    while len(cells) > 2:
        ends = [*cells[1:], len(shares)]
        held = [shares[start:end].sum() for start, end in zip(cells, ends, strict=True)]
        single = [bool(alone[start]) for start in cells]
        small = [place for place in range(len(cells)) if held[place] < least]
        small.sort(key=lambda place: held[place])
        for place in small:
            beside = [other for other in (place - 1, place + 1) if 0 <= other < len(cells)]
            others = [other for other in beside if not single[other]]
            joins = held[place] < ALL_BUT_EMPTY / count or len(cells) > count
            beside = others or (beside if joins else [])
            if beside:
                partner = min(beside, key=lambda other: held[other])
                cells.pop(max(place, partner))
                break
        else:
            break
    return np.array(cells)


def settled(
    column: Column, grid: Grid, found: Denoised, count: int, deviation: float = 0.0
) -> Column:
    """The column with about `count` coarse bins, and the shape of what was found within them.

    `deviation` is that of the noise on one count.
    """
    rows = found.rows
    starts = coarse_starts(grid, rows, count, deviation)
    # Neighbours of about one density, in one piece and in one bin, are drawn from as one.
    levels = np.round(np.log(np.maximum(rows / grid.measures, 1e-300)) / SAME_DENSITY)
    changed = (np.diff(found.pieces) != 0) | (np.diff(grid.zones) != 0) | (np.diff(levels) != 0)
    begins = np.union1d(np.flatnonzero(np.append(True, changed)), starts)
    end, total = grid.edges[-1:], rows.sum()
    return replace(
        column,
        bins=stated(column, np.append(grid.edges[starts], end)),
        shape=Shape(
            stated(column, np.append(grid.edges[begins], end)),
            _rounded(np.add.reduceat(rows, begins) / total),
            grid.relative_below,
            tuple(found.pieces[begins].tolist()),
            _rounded(found.errors / total),
            _rounded(found.slopes),
            round(float(deviation / total), 9),
        ),
    )


def _rounded(values: np.ndarray) -> tuple[float, ...]:
    return tuple(np.round(values, 9).tolist())
