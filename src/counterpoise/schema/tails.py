"""What lies beyond the last cell that stands clear of its noise: a thin tail, in all likelihood.

A noisy histogram ends where its cells hold fewer rows than noise can hide. What it hides there
decides a mean, and nothing in the answer says that it is none. So the last piece is taken to fall
by a constant factor for each step of the grid's own scale, and to go on like that: an exponential
tail among equal cells, a power law among relative ones. How fast it falls is not known; each pace,
from an abrupt end to a long tail, is weighed by how well the noisy counts beyond agree with it, and
the tail is the mean of all. Everything here works on noised answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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
