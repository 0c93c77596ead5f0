"""The fine public grid of a numeric column: cells of equal width, of relative width, single values.

Equal cells between the bounds resolve a column whose bounds are right. Where they are generous, or
the column is skewed, most values lie in the equal cells next to zero; so these are cut again, into
cells that shrink towards zero by a constant ratio. A hundred times wider bounds then cost a few
octaves of cells, not a hundred times the width of each. A column may state one of the two for all
of its range. Values that often stand for many rows, zero, the bounds and those that are stated,
have cells of their own: atoms. All of it follows from the schema, a number of cells, and from where
most rows were found to be by an answer that was paid for; so it is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date as Date
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.schema.bins import EPOCH, EPOCH_DAY, number
from counterpoise.schema.stated_coding import nearest_to_zero

if TYPE_CHECKING:
    from counterpoise.schema.column import Column

# How many octaves below an equal cell's width the relative cells reach, with many cells or few.
MANY_CELLS = 100
OCTAVES, OCTAVES_OF_FEW = 14, 10
# More cells an octave than this tell nothing that noise leaves standing.
MOST_AN_OCTAVE = 16
# Cells so many times wider than closer ones are divided by these.
CLOSER = 1.5
# Neighbouring cells that are counted as a group too: about half an octave, or a few equal cells.
CELLS_A_GROUP = 8


@dataclass(frozen=True, eq=False)
class Grid:
    """Fine cells of a column on the numeric scale; edges[i] <= x < edges[i + 1] in each."""

    edges: np.ndarray  # one unit past the maximum at the end, as `Column.edges` has it
    relative_below: float  # cells nearer to zero than this are of relative width
    atoms: np.ndarray  # whether a cell is a value of its own among wider ones

    @property
    def measures(self) -> np.ndarray:
        """The size of each cell on the scale on which it is drawn from: linear, or logarithmic."""
        left, right = self.edges[:-1].astype(float), self.edges[1:].astype(float)
        relative = is_relative(left, right, self.relative_below)
        inner = np.where(relative, np.minimum(np.abs(left), np.abs(right)), 1.0)
        outer = np.where(relative, np.maximum(np.abs(left), np.abs(right)), 2.0)
        sizes = np.where(relative, np.log2(outer / inner), (right - left) / np.max(right - left))
        # A sliver, as a bound next to zero or to an edge leaves it, counts as this wide: its square
        # has to be seen beside those of the others.
        return np.where(self.atoms, 1.0, np.maximum(sizes, 1e-6))

    @property
    def zones(self) -> np.ndarray:
        """A number for each run of cells that lie on one scale without an atom between them."""
        left, right = self.edges[:-1].astype(float), self.edges[1:].astype(float)
        scale = np.where(self.atoms, 2, is_relative(left, right, self.relative_below))
        scale = scale + 4 * (left < 0)
        changed = (np.diff(scale) != 0) | self.atoms[1:] | self.atoms[:-1]
        return np.append(0, np.cumsum(changed))

    @property
    def groups(self) -> np.ndarray:
        """A number for each run of neighbours that are counted together as well."""
        size = CELLS_A_GROUP
        zones = np.flatnonzero(np.append(True, np.diff(self.zones) != 0))
        within = np.arange(len(self.atoms)) - np.repeat(
            zones, np.diff(np.append(zones, len(self.atoms)))
        )
        return np.cumsum((within % size == 0).astype(int)) - 1


def is_relative(left: np.ndarray, right: np.ndarray, below: float) -> np.ndarray:
    """Whether values between two edges are spread evenly over the logarithm, not over the line."""
    nearest, farthest = np.minimum(np.abs(left), np.abs(right)), np.maximum(-left, right)
    # What reaches down further than this touches zero, but for the rounding of an atom there.
    touches = nearest <= farthest * 2.0**-40
    return ~touches & (farthest <= below * (1 + 1e-9))


def holds_one_value(grid: Grid) -> np.ndarray:
    """Whether a cell holds a single value, so that nothing is left to be known within it."""
    if grid.edges.dtype.kind == "i":
        return np.diff(grid.edges) == 1
    return grid.atoms


def fine_grid(column: Column, cells: int, within: tuple[float, float] | None = None) -> Grid:
    """The public grid of about `cells` cells for a numeric column with bounds.

    Half of them divide the numbers `within` which most rows are known to lie, if that is known.
    """
    low, high = column.low, column.high
    whole = column.kind != "continuous"
    if whole and high - low < cells:
        edges = np.arange(int(low), int(high) + 2, dtype=np.int64)
        return Grid(edges, 0.0, np.zeros(len(edges) - 1, dtype=bool))
    around_zero = column.kind in ("integer", "continuous")
    wide = cells if within is None or column.scale == "log" else cells // 2
    if column.scale == "log":
        width, found = _relative_edges(float(low), float(high), wide, whole)
    elif column.scale == "linear":
        width, found = 0.0, _equal_edges(float(low), float(high), wide)
    else:
        width, found = _wide_edges(float(low), float(high), wide, around_zero, whole)
    if within is not None and wide < cells:
        found |= _closer_edges(found, float(low), float(high), within, cells - wide)
    atoms = _atoms(low, high, around_zero, whole)
    atoms |= {atom for atom in map(number, column.atoms or ()) if low < atom < high}
    if whole:
        found = {math.ceil(edge) for edge in found}
        found |= {edge for atom in atoms for edge in (atom, atom + 1)}
        found = {edge for edge in found if low < edge <= high} | {low, high + 1}
        edges = np.array(sorted(found), dtype=np.int64)
        single = np.isin(edges[:-1], sorted(atoms)) & (np.diff(edges) == 1)
        return Grid(edges, width, single)
    found |= {edge for atom in atoms for edge in (atom, math.nextafter(atom, math.inf))}
    found = {edge for edge in found if low < edge < high} | {low, high}
    # The last cell holds its right end too: the atom of the maximum begins one float before it.
    found.add(math.nextafter(high, -math.inf))
    edges = np.array(sorted(found), dtype=np.float64)
    single = edges[1:] == np.nextafter(edges[:-1], math.inf)
    return Grid(edges, width, single)


def provisional(column: Column, grid: Grid) -> Column:
    """The column coded by the cells of a grid."""
    return replace(column, bins=stated(column, grid.edges), shape=None, sources=())


def stated(column: Column, edges: np.ndarray) -> tuple[Any, ...]:
    """Edges on the numeric scale as a schema states them, the maximum last."""
    inner = [_bound(column.kind, edge) for edge in edges[:-1].tolist()]
    return (*inner, column.maximum)


def _bound(kind: str, place: Any) -> Any:
    if kind == "date":
        return Date.fromordinal(place + EPOCH_DAY)
    if kind == "datetime":
        return EPOCH + timedelta(microseconds=place)
    return place


def _equal_edges(low: float, high: float, cells: int) -> set[float]:
    return {low + place * (high - low) / cells for place in range(1, cells)}


def _relative_edges(low: float, high: float, cells: int, whole: bool) -> tuple[float, set[float]]:
    """The distance of the farther bound from zero, and the edges of relative cells up to there."""
    nearest, farthest = nearest_to_zero(low, high, whole), max(abs(low), abs(high))
    octaves = math.log2(farthest / nearest)
    sides = (low < 0) + (high > 0)
    count = math.ceil(octaves * min(cells / (max(octaves, 1e-9) * sides), MOST_AN_OCTAVE))
    # The last is a bound, and so is the first where zero is none of the values.
    first = 0 if low <= 0 <= high else 1
    edges = {nearest * 2 ** (octaves * place / max(1, count)) for place in range(first, count)}
    return farthest, {sign * edge for edge in edges for sign in (-1.0, 1.0)} | {0.0}


def _wide_edges(
    low: float, high: float, cells: int, around_zero: bool, whole: bool
) -> tuple[float, set[float]]:
    """The width of an equal cell, and the edges of equal and of relative cells."""
    equal = max(4, cells // 2)
    width = (high - low) / equal
    if not around_zero or (min(abs(low), abs(high)) >= width and low * high > 0):
        # Zero is nowhere near: all cells are equal.
        return 0.0, _equal_edges(low, high, cells)
    sides = (low < 0) + (high > 0)
    octaves: float = OCTAVES if cells >= MANY_CELLS else OCTAVES_OF_FEW
    if whole:
        octaves = min(octaves, max(1.0, math.log2(width)))
    ratio = 2 ** (1 / min((cells - equal) / (octaves * sides), MOST_AN_OCTAVE))
    # Relative cells grow up to the width of the equal ones, where these take over.
    widest = width / (1 - 1 / ratio)
    steps = math.ceil(math.log(widest / width * 2**octaves, ratio))
    nearer = [widest * ratio**-step for step in range(steps + 1)]
    found = {low + place * width for place in range(1, equal)}
    found = {edge for edge in found if abs(edge) > widest * (1 + 1e-9)}
    found |= {sign * edge for edge in nearer for sign in (-1.0, 1.0)}
    return widest, found | {0.0}


def _closer_edges(
    found: set[float], low: float, high: float, within: tuple[float, float], cells: int
) -> set[float]:
    """Edges of equal cells within some range, where those found so far are further apart."""
    old = np.array(sorted({low, high, *(edge for edge in found if low < edge < high)}))
    start, step = within[0], (within[1] - within[0]) / cells
    edges = start + step * np.arange(cells + 1)
    edges = edges[(edges > low) & (edges < high)]
    apart = np.diff(old)[np.searchsorted(old, edges, side="right") - 1]
    near = np.abs(edges[:, None] - old).min(axis=1) if len(edges) else edges
    return set(edges[(apart > CLOSER * step) & (near > 0.25 * step)].tolist())


def _atoms(low: Any, high: Any, around_zero: bool, whole: bool) -> set[Any]:
    found = {low, high}
    if around_zero and low <= 0 <= high:
        found.add(0 if whole else 0.0)
    return found
