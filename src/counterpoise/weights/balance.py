"""Rows that carry their weights: a balanced part of a larger pool, chosen by weight.

Weights that differ throw rows away; rows are free. So a few times as many are drawn as are wanted,
weighed, and a part of them is kept, a row with a probability in proportion to its weight: what is
left to weigh is the weight over that probability, nearly the same for all, and whoever forgets the
weights is not far off. A plain draw would add the sampling error that the pool does not have.
Therefore one row is drawn from every stratum, a stretch of the pool in which one row is expected,
and the strata are then drawn again, some at a time, each row with its chance times

    exp(-BETA sum over tables of (kept_c - expected_c) / (expected_c + 1/2)),  c the cells it is in,

so that the counts of columns and pairs of columns come out as expected: a Gibbs sampler of the
draw, given that it is balanced (Hájek 1981 and Fuller 2009 reject draws that are not; Deville and
Tillé 2004 are the classic). It is all post-processing of synthetic rows, and free.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from counterpoise.weights.row_blocks import slices

# How much balance counts against chance, how often all strata are drawn again, and in how many
# parts: strata of a part are drawn as if the others stayed, so that a part must not be large.
BETA, SWEEPS, PARTS = 8.0, 2, 64
# The most numbers that the cells of all rows may be; beyond, fewer pairs are balanced.
MOST_NUMBERS = 20_000_000
# Rows whose cells are added up together.
ROWS_AT_ONCE = 5_000


@dataclass(frozen=True, eq=False)
class Kept:
    """The rows of a pool that are kept."""

    places: np.ndarray  # in the pool
    weights: np.ndarray  # what is left to weigh, averaging to one
    stands_for: np.ndarray  # how many rows of the pool each does, in units of the average
    pool: int  # how many rows they were chosen from
    reached: float = 1.0  # the part of the known difference that the pool's weights make up for


def keep(
    codes: np.ndarray,
    sizes: tuple[int, ...],
    weights: np.ndarray,
    rows: int,
    generator: np.random.Generator,
) -> Kept:
    """So many rows of a pool, each once at most, with chances in proportion to the weights.

    >>> codes = np.repeat([[0], [1]], 500, axis=0)
    >>> weights = np.repeat([0.4, 1.6], 500)
    >>> kept = keep(codes, (2,), weights, 250, np.random.default_rng(0))
    >>> np.bincount(codes[kept.places, 0]).tolist(), kept.weights.round(9).tolist() == [1.0] * 250
    ([51, 199], True)
    """
    chances = inclusion(weights, rows)
    order = generator.permutation(len(weights))
    cells, count = _cells(codes[order], sizes, rows)
    places = order[_balanced(_Line.of(chances[order], rows), cells, count, generator)]
    left, stands_for = weights[places] / chances[places], 1 / chances[places]
    return Kept(places, left / left.mean(), stands_for / stands_for.mean(), len(weights))


def inclusion(weights: np.ndarray, rows: int) -> np.ndarray:
    """The chance of each row: in proportion to its weight, one at most, `rows` in total.

    >>> inclusion(np.array([1.0, 1.0, 2.0, 12.0]), 2)
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    chances = np.asarray(weights * (rows / weights.sum()))
    certain = np.zeros(len(weights), dtype=bool)
    # What is cut off goes to the others, of which some may then be certain as well.
    while (beyond := (chances > 1) & ~certain).any():
        certain |= beyond
        rest = weights[~certain].sum()
        scale = (rows - certain.sum()) / rest if rest > 0 else 0.0
        chances = np.where(certain, 1.0, weights * scale)
    return chances


@dataclass(frozen=True, eq=False)
class _Line:
    """The rows of a pool, their chances laid end to end; a stratum is a unit of the line."""

    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, chances: np.ndarray, rows: int) -> _Line:
        """The line, as long as so many rows."""
        ends = np.cumsum(chances)
        ends *= rows / ends[-1]
        return cls(np.append(0.0, ends[:-1]), ends)

    def systematic(self, generator: np.random.Generator) -> np.ndarray:
        """A row of each stratum, no row twice: none is longer than the way to the next stratum."""
        points = generator.random() + np.arange(round(self.ends[-1]))
        return np.minimum(np.searchsorted(self.ends, points, side="right"), len(self.ends) - 1)

    def rows_of(self, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows that reach into strata, one stratum after the other: which, of which, by what.

        The strata are numbered by their place in `strata`.
        """
        first = np.searchsorted(self.ends, strata, side="right")
        counts = np.searchsorted(self.starts, strata + 1, side="left") - first
        stratum = np.repeat(np.arange(len(strata)), counts)
        rows = np.arange(len(stratum)) + (first - np.cumsum(counts) + counts)[stratum]
        line = strata[stratum]
        length = np.minimum(self.ends[rows], line + 1) - np.maximum(self.starts[rows], line)
        return rows, stratum, np.maximum(length, 0.0)


def _balanced(
    line: _Line, cells: np.ndarray, count: int, generator: np.random.Generator
) -> np.ndarray:
    """A row of each stratum, after all were drawn again a few times for the sake of balance."""
    chosen = line.systematic(generator)
    strata = np.arange(len(chosen))
    expected = _totals(cells, np.arange(len(cells)), line.ends - line.starts, count)
    excess = _totals(cells, chosen, np.ones(len(cells)), count) - expected
    scale = BETA / (expected + 0.5)
    for _ in range(SWEEPS):
        # Neighbours may share a row, so they are never drawn at once.
        for side in (strata[::2], strata[1::2])[: len(strata)]:
            for some in np.array_split(generator.permutation(side), min(PARTS, len(side))):
                before = cells[chosen[some]]
                chosen[some] = _redrawn(line, some, chosen, cells, excess, scale, generator)
                excess += np.bincount(cells[chosen[some]].reshape(-1), minlength=count)
                excess -= np.bincount(before.reshape(-1), minlength=count)
    return chosen


def _totals(cells: np.ndarray, rows: np.ndarray, lengths: np.ndarray, count: int) -> np.ndarray:
    """What these rows add up to in every cell; some at a time, as each is in many cells."""
    found = np.zeros(count)
    for some in slices(len(rows), ROWS_AT_ONCE):
        own = cells[rows[some]]
        found += np.bincount(own.reshape(-1), np.repeat(lengths[rows[some]], own.shape[1]), count)
    return found


def _redrawn(
    line: _Line,
    strata: np.ndarray,
    chosen: np.ndarray,
    cells: np.ndarray,
    excess: np.ndarray,
    scale: np.ndarray,
    generator: np.random.Generator,
) -> np.ndarray:
    """Another row for each of these strata, as if all others stayed."""
    rows, stratum, length = line.rows_of(strata)
    number, last = strata[stratum], len(chosen) - 1
    taken = (chosen[np.maximum(number - 1, 0)] == rows) & (number > 0)
    taken |= (chosen[np.minimum(number + 1, last)] == rows) & (number < last)
    own, present = cells[rows], cells[chosen[strata]]
    # The excess without the stratum's present row, and half of the way to the one with this row.
    # What the present row has in common is known by stratum: fewer look-ups than by row.
    against = (scale * (excess + 0.5)).astype(np.float32)[own].sum(axis=1)
    common = scale.astype(np.float32)[present][stratum]
    common *= own == present[stratum]
    against -= common.sum(axis=1)
    score = np.log(np.where(taken, 0.0, length) + 1e-300) - against
    # The largest of scores with Gumbel noise is a draw in proportion to their exponentials.
    score += generator.gumbel(size=len(score))
    order = np.lexsort((score, stratum))
    found: np.ndarray = rows[order[np.cumsum(np.bincount(stratum)) - 1]]
    return found


def _cells(codes: np.ndarray, sizes: tuple[int, ...], rows: int) -> tuple[np.ndarray, int]:
    """The cells of each row, all tables' one after the other, and how many there are.

    The tables are those of every column, and of pairs with fewer cells than rows are kept; where
    there are too many pairs, of near ones in the order of the columns.
    """
    columns = len(sizes)
    pairs = [
        pair for pair in combinations(range(columns), 2) if sizes[pair[0]] * sizes[pair[1]] <= rows
    ]
    pairs.sort(key=lambda pair: min(pair[1] - pair[0], columns - pair[1] + pair[0]))
    most = max(0, MOST_NUMBERS // max(1, len(codes)) - columns)
    tables = [*((column,) for column in range(columns)), *pairs[:most]]
    found, height = np.empty((len(codes), len(tables)), dtype=np.int32), 0
    # No table has more cells than there are rows, but for those of single columns.
    own = np.ascontiguousarray(codes.T, dtype=np.int32)
    for place, table in enumerate(tables):
        first, *others = table
        cell = own[first]
        for column in others:
            cell = cell * np.int32(sizes[column]) + own[column]
        np.add(cell, np.int32(height), out=found[:, place])
        height += int(np.prod([sizes[column] for column in table]))
    return found, height
