"""Heaps: round numbers that many rows share, told from smooth columns by the paid histogram itself.

People round: pay to thousands, hours to fives, durations to half hours. Which numbers may be heaped
is public: the roundest ones, as close together as the fine cells are, and the usual words for
"unknown". Each is counted by itself, beside the rest of the cell that it was cut from, so that a
row is still in one cell and in one group of cells, and nothing more is charged. One that stands
clear of its noise and above its neighbours is a heap: it is lifted off, the rest is described as if
it were not there, and it is put back as a value of its own. Any other goes back into its cell.
Everything but the candidates works on noised answers.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.schema.grids import MANY_CELLS, Grid, fine_grid, holds_one_value
from counterpoise.schema.lattices import exact, in_order, onto, points_in, step_of
from counterpoise.schema.noisy_cells import NoisyCells
from counterpoise.schema.pieces import LEAST_SCALE, Denoised, denoised, standing

if TYPE_CHECKING:
    from counterpoise.schema.column import Column

# Numbers that people write for "unknown", or where they stop counting.
SENTINELS = (-1, -9, -99, -999, 9, 99, 999, 9_999, 99_999, 999_999)
# Leading digits, the roundest first: 1, 2, 5; other single digits; halves; dozens; all others of
# two digits; then three. How far the list is used follows from the width of the cells.
ROUND = (
    (100, 200, 500),
    (300, 400, 600, 700, 800, 900),
    tuple(range(150, 1000, 100)),
    (120, 180, 240, 360, 480, 720),
    tuple(range(100, 1000, 10)),
    tuple(range(100, 1000, 5)),
    tuple(range(100, 1000)),
)
# A candidate is so many cells away from the next; more of them would leave nothing to compare with.
CELLS_APART = 1.5
# A grid reaches over no more decades than this: relative cells, and equal ones beyond them.
DECADES = 8
# A heap exceeds what the largest of all candidates does by noise alone by this many deviations.
CLEAR = 0.5
# One far from all other rows would decide a mean: it has to stand clearer by this many.
CLEAR_ALONE = 2.0
# So many heaps with such a part of the rows may show a lattice, and it holds all of them when no
# more deviations are missing.
ENOUGH_FOR_A_LATTICE, MOST_OF_THEM, ALL_OF_THEM = 4, 2 / 3, 2.0


@dataclass(frozen=True, eq=False)
class Candidates:
    """A grid, and the finer one that is counted, with single values cut out of its cells."""

    base: Grid
    grid: Grid
    parents: np.ndarray  # the cell of the base that each cell of the grid is part of
    chosen: np.ndarray  # which cells of the grid are candidates

    @property
    def groups(self) -> np.ndarray:
        """The group of the base's cells that each cell of the grid is counted in as well."""
        return self.base.groups[self.parents]


def with_candidates(
    column: Column, cells: int, within: tuple[float, float] | None = None
) -> Candidates:
    """The fine grid of a column, of about `cells` cells, and all candidates for heaps in it.

    `within` is where most rows are known to lie; see `fine_grid`.
    """
    grid = fine_grid(column, cells, within)
    none = np.zeros(len(grid.atoms), dtype=bool)
    if column.kind not in ("integer", "continuous") or cells < MANY_CELLS:
        return Candidates(grid, grid, np.arange(len(none)), none)
    whole = column.kind == "integer"
    values = _round_numbers(grid, whole)
    base = _moved(grid, values)
    unknown = [value for value in map(grid.edges.dtype.type, SENTINELS) if _is_free(base, value)]
    values = np.unique(np.append(values, np.array(unknown, dtype=grid.edges.dtype)))
    values = values[[_is_free(base, value) for value in values]]
    after = values + 1 if whole else np.nextafter(values, math.inf)
    edges = np.unique(np.concatenate([base.edges, values, after]))
    parents = np.searchsorted(base.edges, edges[:-1], side="right") - 1
    chosen = np.isin(edges[:-1], values)
    counted = replace(base, edges=edges, atoms=base.atoms[parents] | chosen)
    return Candidates(base, counted, parents, chosen)


def described(
    candidates: Candidates,
    counts: np.ndarray,
    in_groups: np.ndarray,
    deviation: float,
    total: float,
) -> tuple[Grid, Denoised]:
    """The grid with the heaps that noisy counts of `deviation` show, and the rows in its cells."""
    shown = _heaped(candidates, counts, in_groups, deviation, total)
    step = _step_between(candidates, counts, deviation, total)
    return shown if step is None else onto(*shown, step)


def _heaped(
    candidates: Candidates,
    counts: np.ndarray,
    in_groups: np.ndarray,
    deviation: float,
    total: float,
) -> tuple[Grid, Denoised]:
    chosen = candidates.chosen
    expected, noise = _expected(candidates, counts)
    excess = np.where(chosen, counts - expected, 0.0)
    clear = math.sqrt(2 * math.log(max(2, chosen.sum()))) + CLEAR
    heaps = chosen & (excess > clear * deviation * noise)
    lattice = _lattice(candidates, heaps)
    missing = total - counts[lattice].sum()
    is_all = missing < ALL_OF_THEM * deviation * math.sqrt(lattice.sum())
    if is_all and excess[heaps].sum() > MOST_OF_THEM * total:
        shown = _along(candidates, lattice, counts, deviation, total)
        if shown is not None:
            return shown
    rest = _without(candidates, heaps, expected, counts, excess, in_groups, deviation)
    lonely = _beyond(candidates, standing(candidates.base, rest, total, goes_on=False)) & heaps
    lonely &= excess < (clear + CLEAR_ALONE) * deviation * noise
    if lonely.any():
        heaps &= ~lonely
        rest = _without(candidates, heaps, expected, counts, excess, in_groups, deviation)
    if not heaps.any():
        return candidates.base, denoised(candidates.base, rest, total)
    held, errors = excess[heaps], deviation * noise[heaps]
    variances = errors**2
    found = standing(candidates.base, rest, total - held.sum(), variances.sum())
    if found is None:
        found = _nothing(candidates.base)
    else:
        missing = total - found.rows.sum() - held.sum()
        held = np.maximum(held + missing * variances / variances.sum(), LEAST_SCALE * held)
    numbers = len(found.errors) + np.arange(len(held))
    known = (np.append(found.errors, errors), np.append(found.slopes, np.zeros(len(held))))
    return _put_back(candidates, found.rows, found.pieces, heaps, held, numbers, known)


def _step_between(
    candidates: Candidates, counts: np.ndarray, deviation: float, total: float
) -> Fraction | None:
    """What all values that stand out are multiples of, where no rows are seen between.

    The cells between them tell nothing where their noise could hide a quarter of the rows.
    """
    edges = candidates.grid.edges
    single = holds_one_value(candidates.grid)
    clear = math.sqrt(2 * math.log(max(2, single.sum()))) + CLEAR
    there = np.flatnonzero(single & (counts > clear * deviation))
    if len(there) < ENOUGH_FOR_A_LATTICE or counts[there].sum() < total / 2:
        return None
    step = step_of(edges[there])
    if edges.dtype.kind == "i" and step <= 1:
        return None
    between = points_in(edges[there[0] : there[-1] + 2], step) == 0
    noise = ALL_OF_THEM * deviation * math.sqrt(between.sum())
    seen = counts[there[0] : there[-1] + 1][between].sum()
    return step if seen < noise < total / 4 else None


def _beyond(candidates: Candidates, found: Denoised | None) -> np.ndarray:
    """Which counted cells lie beyond all cells in which rows were found."""
    if found is None:
        return np.zeros(len(candidates.chosen), dtype=bool)
    there = np.flatnonzero(found.pieces >= 0)
    edges = candidates.base.edges
    values = candidates.grid.edges[:-1]
    return np.asarray((values < edges[there[0]]) | (values >= edges[there[-1] + 1]))


def _round_numbers(grid: Grid, whole: bool) -> np.ndarray:
    """The roundest numbers within a grid, none nearer to another than some cells are wide."""
    edges = grid.edges.astype(float)
    found = [-math.inf, math.inf]
    for values in _by_roundness(float(np.abs(edges).max()), whole):
        values = values[(values > edges[0]) & (values < edges[-1])]
        places = np.searchsorted(edges, values, side="right") - 1
        widths = np.diff(edges)[places]
        # A cell that reaches further than to twice its values tells nothing of how fine to be.
        fits = ~grid.atoms[places] & (np.abs(values) >= widths)
        if whole:
            fits &= widths > 1
        for value, width in zip(values[fits].tolist(), widths[fits].tolist(), strict=True):
            place = bisect.bisect(found, value)
            room = min(value - found[place - 1], found[place] - value)
            if room >= CELLS_APART * width:
                found.insert(place, value)
    return np.array(found[1:-1], dtype=grid.edges.dtype)


def _by_roundness(largest: float, whole: bool) -> Iterator[np.ndarray]:
    top = math.floor(math.log10(largest))
    for leading in ROUND:
        numbers = [
            # Read as a decimal: 3 * 0.1 is not 0.3.
            float(f"{sign * digits}e{power - 2}")
            for power in range(max(top - DECADES, -300), top + 1)
            for digits in leading
            for sign in (-1, 1)
        ]
        found = np.array(numbers)
        yield found[found % 1 == 0] if whole else found


def _moved(grid: Grid, values: np.ndarray) -> Grid:
    """The grid with the edges that are nearest to some values moved to them.

    A candidate at the edge of its cell leaves one part of it, not two.
    """
    edges = grid.edges.copy()
    fixed = np.append(grid.atoms, True)
    fixed[1:] |= grid.atoms
    fixed[0] = True
    for value in values:
        place = int(np.searchsorted(edges, value))
        near = [at for at in (place - 1, place) if not fixed[at]]
        if near:
            nearest = min(near, key=lambda at: abs(edges[at] - value))
            edges[nearest] = value
            fixed[nearest] = True
    return replace(grid, edges=edges)


def _is_free(grid: Grid, value: float) -> bool:
    """Whether a value lies in a cell that holds others, too."""
    if not grid.edges[0] < value < grid.edges[-1]:
        return False
    place = int(np.searchsorted(grid.edges, value, side="right")) - 1
    is_single = grid.edges.dtype.kind == "i" and grid.edges[place + 1] - grid.edges[place] == 1
    return not (grid.atoms[place] or is_single)


def _expected(candidates: Candidates, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a candidate would hold at its neighbours' density, and the noise of what exceeds it.

    The denser neighbour counts: where rows begin, the first round number is no heap. Of floats, one
    value is next to nothing of its neighbours. The noise is in deviations of a count.
    """
    # Next to zero, a cell may be one that no number can be divided by.
    widths = np.maximum(np.diff(candidates.grid.edges.astype(float)), 1e-290)
    sizes = np.where(candidates.grid.atoms, np.inf, widths)
    densities, noises = (np.pad(each / sizes, 1) for each in (np.maximum(counts, 0.0), 1.0))
    is_left = densities[:-2] > densities[2:]
    density = np.where(is_left, densities[:-2], densities[2:])
    noise = np.where(is_left, noises[:-2], noises[2:])
    return np.where(candidates.chosen, density * widths, 0.0), np.hypot(1.0, noise * widths)


def _lattice(candidates: Candidates, heaps: np.ndarray) -> np.ndarray:
    """The cells of one value that are multiples of what all heaps are multiples of; or none."""
    edges = candidates.grid.edges
    if heaps.sum() < ENOUGH_FOR_A_LATTICE:
        return np.zeros(len(heaps), dtype=bool)
    step = step_of(edges[:-1][heaps])
    single = holds_one_value(candidates.grid)
    values = [exact(edge) for edge in edges[:-1][single]]
    found = single.copy()
    found[single] = [value % step == 0 for value in values]
    return found


def _along(
    candidates: Candidates, lattice: np.ndarray, counts: np.ndarray, deviation: float, total: float
) -> tuple[Grid, Denoised] | None:
    """The rows on a lattice, described as a histogram of its own; None where none stand out.

    It has no tails: its values are as far from each other as candidates are, not evenly.
    """
    values = candidates.grid.edges[:-1][lattice]
    edges = np.append(values, 2 * values[-1] - values[-2])
    points = Grid(edges, 0.0, np.zeros(len(values), dtype=bool))
    answer = NoisyCells.alone(counts[lattice], deviation)
    found = standing(points, answer, total, goes_on=False)
    if found is None:
        return None
    rows, pieces = np.zeros(len(lattice)), np.full(len(lattice), -1)
    rows[lattice], pieces[lattice] = found.rows, found.pieces
    heaps, others = candidates.chosen & (rows > 0), ~candidates.chosen & (rows > 0)
    empty = _nothing(candidates.base)
    empty.rows[candidates.parents[others]] = rows[others]
    empty.pieces[candidates.parents[others]] = pieces[others]
    known = found.errors, found.slopes
    return _put_back(candidates, empty.rows, empty.pieces, heaps, rows[heaps], pieces[heaps], known)


def _nothing(grid: Grid) -> Denoised:
    size = len(grid.atoms)
    return Denoised(np.zeros(size), np.full(size, -1), np.zeros(0), np.zeros(0))


def _without(
    candidates: Candidates,
    heaps: np.ndarray,
    expected: np.ndarray,
    counts: np.ndarray,
    excess: np.ndarray,
    in_groups: np.ndarray,
    deviation: float,
) -> NoisyCells:
    """The counts of the base's cells and groups, with what exceeds in heaps lifted off."""
    refused = candidates.chosen & ~heaps
    lifted = np.where(heaps, expected, counts)
    left, spread = _rejoined(candidates, refused, lifted, excess)
    starts = np.flatnonzero(np.diff(candidates.parents, prepend=-1))
    variances = np.add.reduceat(spread, starts)
    # Every heap takes its own noise from the count of its group.
    groups = candidates.groups
    taken = np.bincount(groups, np.where(heaps, excess, 0.0))
    of_groups = 1.0 + np.bincount(groups, heaps.astype(float))
    return NoisyCells.joined(
        np.add.reduceat(left, starts),
        in_groups - taken,
        candidates.base.groups,
        deviation**2 * np.where(variances > 0, variances, 1.0),
        deviation**2 * of_groups,
    )


def _rejoined(
    candidates: Candidates, refused: np.ndarray, counts: np.ndarray, excess: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Counts and their variances with refused candidates back in their cells, as calmly as may be.

    A rest of n counts, on a part 1 / f of its cell, that stands for all of it has the variance
    n f^2; with the counts of its m candidates it is n + m. Lesser heaps are not lost: f has the
    ratio of what is heaped to the rest, over all of the column.
    """
    plain = ~candidates.chosen
    starts = np.flatnonzero(np.diff(candidates.parents, prepend=-1))
    widths = np.diff(candidates.grid.edges.astype(float))

    def of_cells(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values.astype(float), starts)

    rest, heaped = of_cells(np.where(plain, counts, 0.0)), of_cells(np.where(refused, excess, 0.0))
    # Rows next door, whose noise is another, say where a ratio can be seen at all.
    padded = np.pad(rest, 1)
    near = np.where(of_cells(refused) > 0, np.maximum(padded[:-2] + padded[2:], 0.0), 0.0)
    ratio = max(0.0, near @ heaped / max(near @ rest, 1.0))
    own = of_cells(widths * plain)
    factors = (1 + ratio) * of_cells(widths * (plain | refused)) / np.where(own > 0, own, 1.0)
    factors = np.where(of_cells(refused) > 0, factors, 1.0)
    calm = (own > 0) & (of_cells(plain) * factors**2 < of_cells(plain | refused))
    factor = np.where(plain & calm[candidates.parents], factors[candidates.parents], 1.0)
    silent = refused & calm[candidates.parents]
    variances = np.where(silent | (candidates.chosen & ~refused), 0.0, factor**2)
    return np.where(silent, 0.0, counts * factor), variances


def _put_back(
    candidates: Candidates,
    rows: np.ndarray,
    pieces: np.ndarray,
    heaps: np.ndarray,
    held: np.ndarray,
    numbers: np.ndarray,
    known: tuple[np.ndarray, np.ndarray],
) -> tuple[Grid, Denoised]:
    """The base with heaps as single values, and the rows in its cells and in them.

    `rows` and `pieces` are those of the base, `held` and `numbers` those of the heaps; `known` has
    the errors and slopes of all pieces.
    """
    base, counted = candidates.base, candidates.grid.edges
    ends = np.append(counted[:-1][heaps], counted[1:][heaps])
    edges = np.union1d(base.edges, ends)
    parents = np.searchsorted(base.edges, edges[:-1], side="right") - 1
    parts = np.diff(edges) / np.diff(base.edges)[parents]
    is_heap = np.isin(edges[:-1], counted[:-1][heaps])
    found, of_cells = rows[parents] * parts, pieces[parents]
    found[is_heap] += held
    of_cells[is_heap] = numbers
    grid = replace(base, edges=edges, atoms=base.atoms[parents] | is_heap)
    return grid, in_order(found, of_cells, *known)
