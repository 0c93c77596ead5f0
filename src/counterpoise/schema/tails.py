"""What noise hides of a column: thin tails beyond what stands clear of it, and rows not located.

A noisy histogram ends where its cells hold fewer rows than noise can hide. What it hides there
decides a mean, and nothing in the answer says that it is none. So the last piece is taken to fall
by a constant factor for each step of the grid's own scale, and to go on like that: an exponential
tail among equal cells, a power law among relative ones. How fast it falls is not known; each pace,
from an abrupt end to a long tail, is weighed by how well the noisy counts beyond agree with it, and
the tail is the mean of all.

Where fewer rows stand than there are, or none but at single values such as zero, the others are
somewhere: in a bump of normal density on the grid's own scale, of whatever place and width, whose M
rows are no more than would stand out. With y the noisy counts, P their precision, q the bump of one
row, and M0 the rows that are missing, known to e0,

    M | q ~ N(m, v) within [0, H],  1/v = q'Pq + 1/e0^2,  m = v (q'Py + M0/e0^2),

and each bump counts by its marginal likelihood (J. A. Hoeting and others, Bayesian Model Averaging:
A Tutorial, 1999). What is put into a cell is the mean of that, and its error the deviation. All
places being as likely before, so are all orders of magnitude among relative cells. Everything here
works on noised answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from counterpoise.schema.grids import Grid, is_relative
from counterpoise.schema.noisy_cells import NoisyCells

# The paces that are weighed: steps in which the density falls by a factor of e.
PACES = 16
# The slowest of them: so many octaves among relative cells, where 1 / (s log 2) is the index of the
# power law; among equal cells, a part of the width of all that stands.
SLOWEST_OCTAVES, SLOWEST_PART = 2.5, 0.5
# Beyond what stands a tail falls at least as fast as this, so that its mean exists.
LONGEST_OCTAVES, LONGEST_PART = 0.8, 0.25
# A tail that holds less than this many rows is none.
FEWEST_ROWS = 0.5
# Widths of bumps, and how far apart their places are, in steps: octaves, or the fourteenth part of
# the range among equal cells. A lognormal amount of deviation 1 has 1.4; round numbers around it.
BUMP_WIDTHS, BUMPS_APART, STEPS_OF_A_RANGE = (0.7, 1.5, 3.0), 0.5, 14


@dataclass(frozen=True, eq=False)
class Tail:
    """Rows in each cell of a grid beyond what stands, and the standard error of their sum."""

    rows: np.ndarray
    error: float


def tail(
    grid: Grid, answer: NoisyCells, rows: np.ndarray, pieces: np.ndarray, side: int
) -> Tail | None:
    """The tail below (side -1) or above (1) all that stands; None where there is no room for one.

    If the m rows of the last piece, of w steps, fall by e in every s steps, then
    m e^(-w/s) / (1 - e^(-w/s)) are beyond it.
    """
    standing = np.flatnonzero(pieces >= 0)
    last = int(standing[0] if side < 0 else standing[-1])
    places = _places(grid, last, side)
    beyond = np.flatnonzero(np.isfinite(places[:-1] + places[1:]) & ~grid.atoms)
    if grid.atoms[last] or not len(beyond):
        return None
    near = np.minimum(places[beyond], places[beyond + 1])
    far = np.maximum(places[beyond], places[beyond + 1])
    held, width = _last_piece(grid, rows, pieces, last)
    slowest, longest = _limits(grid, pieces, last)
    found = [np.zeros(len(rows))]
    for pace in np.geomspace(slowest / 10, slowest, PACES).tolist():
        steps = min(pace, longest)
        template = np.zeros(len(rows))
        template[beyond] = np.exp(-near / steps) - np.exp(-far / steps)
        if template.sum() > 0:
            further = held / math.expm1(min(width / pace, 700.0))
            found.append(further * template / template.sum())
    profiles = np.array(found)
    chances = _chances(answer, rows, profiles, beyond)
    mean = chances @ profiles
    sums = profiles.sum(axis=1)
    whole = float(mean.sum())
    if whole < FEWEST_ROWS:
        return None
    error = math.sqrt(float(chances @ (sums - whole) ** 2))
    # Cells of the tail that hold next to nothing would only lengthen the list.
    mean[mean < 1e-4 * whole] = 0.0
    return Tail(mean, error)


@dataclass(frozen=True, eq=False)
class Unlocated:
    """Rows in each cell that nothing located, their pieces, and the error of each cell's piece."""

    rows: np.ndarray
    pieces: np.ndarray  # the first cell of the piece, -1 for none
    errors: np.ndarray  # by the first cell


def unlocated(
    grid: Grid,
    answer: NoisyCells,
    rows: np.ndarray,
    free: np.ndarray,
    missing: tuple[float, float],
    most: float,
) -> Unlocated | None:
    """About the `missing` rows (and the error of that), in `free` cells; None where none are.

    `rows` are those that stand, and `most` is by how many deviations a bump would stand out.
    """
    near, far, side = _ends_in_steps(grid)
    cells = np.flatnonzero(free & (far > near))
    if not len(cells):
        return None
    middles, sizes, side = ((near + far) / 2)[cells], (far - near)[cells], side[cells]
    bumps = _bumps(middles, sizes, side)
    precision, along = answer.weighed(answer.counts - rows, cells, bumps)
    chances, first, second = _masses(precision, along, *missing, most)
    found = (chances * first) @ bumps
    made, pieces, errors = np.zeros(len(rows)), np.full(len(rows), -1), np.zeros(len(rows))
    made[cells] = found
    # A piece for each step: what is known of where the rows are is hardly finer.
    number = np.floor(middles) * 3 + side
    for each in np.unique(number).tolist():
        there = number == each
        begin = int(cells[there][0])
        pieces[cells[there]] = begin
        square = (chances * second) @ bumps[:, there].sum(axis=1) ** 2
        errors[begin] = math.sqrt(max(float(square) - float(found[there].sum()) ** 2, 0.0))
    return Unlocated(made, pieces, errors)


def _bumps(middles: np.ndarray, sizes: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Bumps of one row each on either side of zero, a line a bump: of all places and widths."""
    found = []
    for sign in np.unique(side).tolist():
        own = np.where(side == sign, sizes, 0.0)
        places = middles[own > 0]
        centres = np.arange(places.min(), places.max() + 1e-9, BUMPS_APART)
        for width in BUMP_WIDTHS:
            bumps = own * np.exp(-((middles - centres[:, None]) ** 2) / (2 * width**2))
            found.append(bumps / np.maximum(bumps.sum(axis=1, keepdims=True), 1e-300))
    return np.concatenate(found)


def _masses(
    precision: np.ndarray, along: np.ndarray, missing: float, error: float, most: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How likely each bump is, and the mean and the mean square of its mass M.

    M ~ N(m, v) within [0, H]. Before, none at all is as likely as all bumps together.
    """
    highest = np.maximum(most / np.sqrt(precision), missing + most * error)
    variance = 1 / (precision + error**-2)
    mean, deviation = variance * (along + missing / error**2), np.sqrt(variance)
    low, high = -mean / deviation, (highest - mean) / deviation
    # The normal law within [0, H]: far out its ends are told apart by the logs of the near side.
    flip = low > 0
    within = np.where(flip, log_ndtr(-low), log_ndtr(high))
    less = np.where(flip, log_ndtr(-high), log_ndtr(low))
    within = within + np.log1p(-np.exp(np.minimum(less - within, -1e-12)))
    likelihood = mean**2 / (2 * variance) + within + np.log(deviation / highest)
    chances = np.exp(likelihood - likelihood.max()) / len(likelihood)
    none = math.exp(min(-float(likelihood.max()) - 0.5 * math.log(2 * math.pi), 700.0))
    scale = np.exp(-within - 0.5 * math.log(2 * math.pi))
    at_low, at_high = np.exp(-(low**2) / 2) * scale, np.exp(-(high**2) / 2) * scale
    first = mean + deviation * (at_low - at_high)
    spread = 1 + low * at_low - high * at_high - (at_low - at_high) ** 2
    second = first**2 + variance * np.maximum(spread, 0.0)
    first, second = np.clip(first, 0.0, highest), np.clip(second, 0.0, highest**2)
    return chances / (chances.sum() + none), first, second


def _ends_in_steps(grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each cell its nearer and farther end in steps, and its side of zero.

    Steps are octaves where there are relative cells, else parts of the range. A cell that touches
    zero has no place among octaves: its ends are the same.
    """
    edges = grid.edges.astype(float)
    left, right = edges[:-1], edges[1:]
    if not grid.relative_below:
        steps = (edges - edges[0]) / (edges[-1] - edges[0]) * STEPS_OF_A_RANGE
        return steps[:-1], steps[1:], np.ones(len(left))
    side = np.sign(left + right)
    nearest, farthest = np.minimum(np.abs(left), np.abs(right)), np.maximum(-left, right)
    touches = (left * right <= 0) | (nearest <= farthest * 2.0**-40)
    near, far = (np.log2(np.where(touches, 1.0, each)) for each in (nearest, farthest))
    return near, far, side


def _chances(
    answer: NoisyCells, rows: np.ndarray, profiles: np.ndarray, beyond: np.ndarray
) -> np.ndarray:
    """How likely each profile is, given the counts of the groups that it reaches."""
    near = np.isin(answer.groups, answer.groups[beyond])
    left = np.where(near, answer.counts - rows - profiles, 0.0)
    errors = (left**2 / answer.variances).sum(axis=1)
    for group in np.unique(answer.groups[beyond]).tolist():
        errors += left[:, answer.groups == group].sum(axis=1) ** 2 * answer.known[group]
    chances = np.exp((errors.min() - errors) / 2)
    return np.asarray(chances / chances.sum())


def _places(grid: Grid, last: int, side: int) -> np.ndarray:
    """How far each edge lies beyond the cell `last`, in octaves or as it is; NaN for the others."""
    edges = grid.edges.astype(float)
    begin = edges[last + 1] if side > 0 else edges[last]
    places = side * (edges - begin)
    if _is_relative(grid, last):
        # The other side of zero, and zero itself, are no part of it.
        same = edges * begin > 0
        octaves = np.log2(np.abs(np.where(same, edges, begin))) - math.log2(abs(begin))
        places = np.where(same, side * np.sign(begin) * octaves, np.nan)
    return np.where(places < 0, np.nan, places)


def _is_relative(grid: Grid, cell: int) -> bool:
    ends = grid.edges[cell : cell + 2].astype(float)
    return bool(is_relative(ends[:1], ends[1:], grid.relative_below)[0])


def _last_piece(grid: Grid, rows: np.ndarray, pieces: np.ndarray, last: int) -> tuple[float, float]:
    """The rows of the piece at the end, and its width in steps."""
    cells = np.flatnonzero(pieces == pieces[last])
    low, high = float(grid.edges[cells[0]]), float(grid.edges[cells[-1] + 1])
    relative = _is_relative(grid, last)
    width = abs(math.log2(high / low)) if relative else high - low
    return max(float(rows[cells].sum()), 0.0), width


def _limits(grid: Grid, pieces: np.ndarray, last: int) -> tuple[float, float]:
    """The slowest pace that is weighed, and the slowest beyond what stands."""
    if _is_relative(grid, last):
        return SLOWEST_OCTAVES, LONGEST_OCTAVES
    whole = float(np.diff(grid.edges.astype(float))[pieces >= 0].sum())
    return SLOWEST_PART * whole, LONGEST_PART * whole
