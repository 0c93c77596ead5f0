"""The shape of a numeric column within its bins: fine cells, and the part of the rows in each.

Relations between columns are counted in bins, few and wide; where a value lies within its bin is
told by a finer histogram of the column alone. A shape is that histogram: edges, among them those
of the bins, and the share of each cell. It comes from noised answers, so it is public, and it
stands in the schema beside the bins. Decoding draws the fine cell of a bin by its share, then a
value within it: evenly over the logarithm where cells are of relative width, else over the line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.errors import SchemaError
from counterpoise.schema.bins import number
from counterpoise.schema.grids import is_relative
from counterpoise.schema.rules import finite_number, is_number, listed

if TYPE_CHECKING:
    from counterpoise.schema.column import Column

# The part of the rows at either end that may lie beyond the range that features are spread over.
BEYOND = 0.002


@dataclass(frozen=True)
class Shape:
    """Fine cells of a column and their shares; `edges` are stated as those of bins are.

    Cells that lie nearer to zero than `relative_below` hold values spread evenly over their
    logarithm. Where the shares came from a noisy answer, cells belong to `pieces`, numbered from
    zero, -1 for what is empty: those of a piece were found together, and are wrong together. The
    standard error of a piece's share is in `errors`. Within it the density may in truth be
    t / sinh(t) e^(t (2u - 1)), u the rank from 0 to 1, with t of about its entry in `slopes`.
    `noise` is that of one count, as a part of the rows: so many may lie where none were seen.
    """

    edges: tuple[Any, ...]
    shares: tuple[float, ...]
    relative_below: float = 0.0
    pieces: tuple[int, ...] = ()
    errors: tuple[float, ...] = ()
    slopes: tuple[float, ...] = ()
    noise: float = 0.0


def checked_shape(column: Column, shape: Any) -> Shape:
    """A shape in the one form that columns keep; a SchemaError where it does not fit the bins."""
    prefix = f"column {column.name!r}: "
    if not isinstance(shape, Shape) or not isinstance(column.bins, tuple):
        raise SchemaError(f"{prefix}a shape is a Shape, beside edges of bins")
    edges = column.checked_edges(listed(shape.edges, f"{prefix}the edges of a shape are a list"))
    shares = listed(shape.shares, f"{prefix}the shares of a shape are a list")
    numbers = [finite_number(share) if is_number(share) else None for share in shares]
    found = [share for share in numbers if share is not None and share >= 0]
    if len(found) < len(shares) or len(shares) != len(edges) - 1 or sum(found) <= 0:
        raise SchemaError(f"{prefix}a shape has one share a cell, none negative, not all zero")
    if not set(map(number, column.bins[:-1])) <= set(map(number, edges[:-1])):
        raise SchemaError(f"{prefix}the edges of the bins must be among those of the shape")
    below = finite_number(shape.relative_below) if is_number(shape.relative_below) else None
    if below is None or below < 0:
        raise SchemaError(f"{prefix}relative_below must be a number that is not negative")
    noise = finite_number(shape.noise) if is_number(shape.noise) else None
    if noise is None or noise < 0:
        raise SchemaError(f"{prefix}the noise of a shape must be a number that is not negative")
    return Shape(edges, tuple(found), below, *_checked_errors(prefix, shape, len(shares)), noise)


def _checked_errors(
    prefix: str, shape: Shape, cells: int
) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    """The pieces, their errors and their slopes; all of them, or none."""
    what = f"{prefix}the pieces, errors and slopes of a shape are lists"
    pieces, errors, slopes = (
        listed(values, what) for values in (shape.pieces, shape.errors, shape.slopes)
    )
    if not (pieces or errors or slopes):
        return (), (), ()
    numbers = [piece for piece in pieces if type(piece) is int and piece >= -1]
    count = max(numbers, default=-1) + 1
    if len(numbers) != cells or len(pieces) != cells or len({*numbers} - {-1}) != count:
        raise SchemaError(f"{prefix}a shape has one piece a cell, numbered from 0, or -1 for none")
    found = [
        [
            number
            for each in values
            if is_number(each) and (number := finite_number(each)) is not None
        ]
        for values in (errors, slopes)
    ]
    if any(len(values) != count or min(values, default=0.0) < 0 for values in found):
        raise SchemaError(f"{prefix}a shape has an error and a slope a piece, none negative")
    return tuple(numbers), tuple(found[0]), tuple(found[1])


def draw_within(column: Column, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values on the numeric scale for codes of a column that has a shape."""
    shape = column.shape
    assert shape is not None
    end = column.edges[-1]
    starts = np.array([number(edge) for edge in shape.edges[:-1]], dtype=column.edges.dtype)
    first = np.searchsorted(starts, column.edges[:-1])
    last = np.append(first[1:], len(starts))
    ends = np.append(starts[1:], end)
    cumulative = np.append(0.0, np.cumsum(_shares(shape, starts, ends, first)))
    low, high = cumulative[first][codes], cumulative[last][codes]
    target = low + rng.random(len(codes)) * (high - low)
    fine = np.searchsorted(cumulative, target, side="right") - 1
    fine = np.clip(fine, first[codes], last[codes] - 1)
    left, right = starts[fine], ends[fine]
    if column.kind == "continuous":
        values = _floats(left, right, shape.relative_below, rng)
        # The last cell holds its end; where it is an atom, that is its value.
        at_end = (right == end) & (np.nextafter(left, math.inf) == right)
        return np.where(at_end, end, values)
    values = rng.integers(left, right)
    relative = is_relative(left.astype(float), right.astype(float), shape.relative_below)
    if relative.any():
        drawn = np.floor(_floats(left[relative], right[relative], math.inf, rng)).astype(np.int64)
        values[relative] = np.clip(drawn, left[relative], right[relative] - 1)
    return values


def known_range(column: Column) -> tuple[float, float]:
    """Between which numbers the rows of a column stand clear of the noise; beyond are its tails.

    A tail, which no count showed, may lean all the way: its slope is one.
    """
    shape = column.shape
    if shape is None or not shape.pieces:
        return -math.inf, math.inf
    edges = [number(edge) for edge in shape.edges]
    low, high = -math.inf, math.inf
    clear = [slope < 1 for slope in shape.slopes]
    if not any(clear):
        return low, high
    first, last = clear.index(True), len(clear) - 1 - clear[::-1].index(True)
    if first > 0:
        low = edges[shape.pieces.index(first)]
    if last < len(clear) - 1:
        high = edges[len(shape.pieces) - shape.pieces[::-1].index(last)]
    return low, high


def ends_short_of_bounds(column: Column) -> list[tuple[float, float]]:
    """Where rows stop standing clear of the noise, short of the column's bounds: end and bound."""
    shape = column.shape
    if shape is None or not shape.pieces:
        return []
    edges = [number(edge) for edge in shape.edges]
    there = [place for place, piece in enumerate(shape.pieces) if piece >= 0]
    low, high = known_range(column)
    found = []
    first = edges[there[0]] if math.isinf(low) else low
    if first > edges[0]:
        found.append((float(first), float(column.low)))
    last = edges[there[-1] + 1] if math.isinf(high) else high
    if last < edges[-1]:
        found.append((float(last), float(column.high)))
    return found


def spread_out(column: Column, units: np.ndarray) -> np.ndarray:
    """Places between the bounds as places between the ends of the column's own rows, 0 to 1.

    Bounds may be generous; all but a few rows at either end, as the shape tells it, are then
    spread over the whole of the unit box. What lies further out is at its edge.
    """
    low, high = spread_ends(column)
    # The rows may all have one value, next to nothing apart; what lies further out is cut anyway.
    with np.errstate(over="ignore"):
        return np.asarray(np.clip((units - low) / (high - low), 0.0, 1.0))


@lru_cache(maxsize=1024)  # asked for with every few rows
def spread_ends(column: Column) -> tuple[float, float]:
    """Between which places of its bounds the rows of a column are spread out; all without a shape.

    >>> from counterpoise.schema import Column
    >>> spread_ends(Column.integer("age", 0, 50))
    (0.0, 1.0)
    """
    shape = column.shape
    if shape is None or column.high == column.low:
        return 0.0, 1.0
    edges = np.array([number(edge) for edge in shape.edges], dtype=float)
    ranks = np.append(0.0, np.cumsum(shape.shares)) / np.sum(shape.shares)
    low, high = np.interp(
        [BEYOND, 1 - BEYOND], ranks, (edges - column.low) / float(column.high - column.low)
    )
    return (float(low), float(high)) if high > low else (0.0, 1.0)


def places_within(column: Column, cells: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Where in its piece a value lies, from -1 to 1; 0 for what is in no piece.

    `cells` are the fine cells of values, with one more for null, and `units` their places between
    the bounds.
    """
    shape = column.shape
    assert shape is not None
    edges = np.array([number(edge) for edge in shape.edges], dtype=float)
    edges[-1] = column.edges[-1]
    known = cells < len(shape.shares)
    cell = np.where(known, cells, 0)
    left, right = edges[cell], edges[cell + 1]
    values = column.low + units * float(column.high - column.low)
    relative = is_relative(left, right, shape.relative_below)
    # Far out between bounds of any size, neither scale is to be asked for the other's cells.
    begin, end = np.where(relative, left, 1.0), np.where(relative, right, 2.0)
    ratio = np.where(relative & (values * begin > 0), values, begin) / begin
    width = np.where(right > left, right - left, 1.0)
    inner = np.where(
        relative, np.log(ratio) / np.log(end / begin), np.clip(values - left, 0.0, width) / width
    )
    inner = np.clip(inner, 0.0, 1.0)
    shares, pieces = np.array(shape.shares), np.array(shape.pieces or [-1] * len(shape.shares))
    before, whole = np.zeros(len(shares)), np.ones(len(shares))
    for piece in set(pieces.tolist()) - {-1}:
        there = np.flatnonzero(pieces == piece)
        before[there] = np.cumsum(shares[there]) - shares[there]
        whole[there] = max(shares[there].sum(), 1e-300)
    place = (before[cell] + inner * shares[cell]) / whole[cell]
    return np.where(known & (pieces[cell] >= 0), 2 * place - 1, 0.0)


def _shares(shape: Shape, starts: np.ndarray, ends: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The shares; a bin that has none is drawn from evenly."""
    shares = np.array(shape.shares)
    empty = np.add.reduceat(shares, first) <= 0
    sizes = np.diff(np.append(first, len(shares)))
    return np.where(np.repeat(empty, sizes), (ends - starts).astype(float), shares)


def _floats(
    left: np.ndarray, right: np.ndarray, relative_below: float, rng: np.random.Generator
) -> np.ndarray:
    left, right = left.astype(float), right.astype(float)
    places = rng.random(len(left))
    relative = is_relative(left, right, relative_below)
    ratio = np.where(relative, right, 1.0) / np.where(relative, left, 1.0)
    drawn = np.where(relative, left * ratio**places, left + places * (right - left))
    # An atom is one float: next to zero, half of a step would be rounded to all of it.
    return np.where(right == np.nextafter(left, math.inf), left, drawn)
