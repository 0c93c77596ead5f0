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
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.errors import SchemaError
from counterpoise.schema.bins import number
from counterpoise.schema.grids import is_relative
from counterpoise.schema.rules import finite_number, is_number, listed

if TYPE_CHECKING:
    from counterpoise.schema.column import Column


@dataclass(frozen=True)
class Shape:
    """Fine cells of a column and their shares; `edges` are stated as those of bins are.

    Cells that lie nearer to zero than `relative_below` hold values spread evenly over their
    logarithm.
    """

    edges: tuple[Any, ...]
    shares: tuple[float, ...]
    relative_below: float = 0.0


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
    return Shape(edges, tuple(found), below)


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
