"""The numeric scale and the bins on it.

Continuous values are float64; integers, days since 1970-01-01 and microseconds since
1970-01-01T00:00 are int64. Bins of equal width are defined by arithmetic, and their edges follow
from it:

    continuous, datetime:  code = floor((x - minimum) * (bins / (maximum - minimum)))
    integer, date:         code = ((x - minimum) * bins) // (maximum - minimum + 1)

clipped to the last bin; with stated edges the code is the number of inner edges <= x.
"""

from __future__ import annotations

import math
from datetime import date as Date
from datetime import datetime as DateTime
from datetime import timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from counterpoise.schema.column import Column

EPOCH = DateTime(1970, 1, 1)
EPOCH_DAY = EPOCH.toordinal()
MICROSECOND = timedelta(microseconds=1)
# Narrower bins than this many steps between floats could be empty.
FLOATS_IN_A_BIN = 16


def number(bound: Any) -> int | float:
    """A bound on the numeric scale.

    >>> number(Date(1970, 1, 31)), number(DateTime(1970, 1, 1, 0, 0, 1))
    (30, 1000000)
    """
    if isinstance(bound, DateTime):
        return (bound - EPOCH) // MICROSECOND
    if isinstance(bound, Date):
        return bound.toordinal() - EPOCH_DAY
    return bound


def numbers(bins: Any) -> tuple[int | float, ...] | None:
    """Stated edges on the numeric scale; None when the bins are of equal width."""
    return tuple(number(edge) for edge in bins) if isinstance(bins, tuple) else None


def most_bins(kind: str, low: int | float, high: int | float) -> int:
    """The most bins of equal width that a range holds without an empty one."""
    if kind != "continuous":
        return int(high - low) + 1
    step = float(np.spacing(max(abs(low), abs(high))))
    return max(1, int(min((high - low) / (FLOATS_IN_A_BIN * step), 2.0**31)))


def bin_codes(column: Column, values: np.ndarray) -> np.ndarray:
    """The codes of values that lie within the bounds of a numeric column."""
    low, high, cells = column.low, column.high, column.cells
    stated = column.stated_edges
    if stated is not None:
        return np.searchsorted(np.array(stated[1:-1]), values, side="right").astype(np.int32)
    return _equal_width_codes(column.kind, low, high, cells, values)


def unit_values(column: Column, values: np.ndarray) -> np.ndarray:
    """The place of values between the bounds: 0 at the minimum, 1 at the maximum."""
    low, high = column.low, column.high
    if low == high:
        return np.full(len(values), 0.5)
    return (values - low).astype(np.float64, copy=False) / float(high - low)


def edges(
    kind: str,
    low: int | float,
    high: int | float,
    cells: int,
    stated: tuple[int | float, ...] | None,
) -> np.ndarray:
    """Lower ends of the bins and the end of the last; see `Column.edges`."""
    if kind == "continuous":
        if stated is not None:
            return np.array(stated, dtype=np.float64)
        # Rounded for people to read; the arithmetic of the codes is what decides.
        return np.append(low + np.arange(cells) * ((high - low) / cells), high)
    if stated is not None:
        starts = np.array(stated[:-1], dtype=np.int64)
    else:
        starts = np.array(_starts(kind, int(low), int(high), cells), dtype=np.int64)
    return np.append(starts, np.int64(high) + 1)


def labels(kind: str, edges: np.ndarray) -> tuple[str, ...]:
    """What each bin between these edges holds, as text."""
    if kind == "continuous":
        pairs = list(pairwise(edges.tolist()))
        atoms = [right == math.nextafter(left, math.inf) for left, right in pairs]
        # The cell after an atom begins at the next float, which is shown as the atom's value; the
        # last cell holds its right end, so that is the value of an atom there.
        return tuple(
            f"{right if right == edges[-1] else left:g}" if atom else f"{left:g} to {right:g}"
            for (left, right), atom in zip(_shown(pairs, atoms), atoms, strict=True)
        )
    unit = {"integer": "i8", "date": "M8[D]", "datetime": "M8[us]"}[kind]
    starts, ends = (part.astype(unit).astype(str) for part in (edges[:-1], edges[1:] - 1))
    return tuple(
        left if left == right else f"{left} to {right}"
        for left, right in zip(starts.tolist(), ends.tolist(), strict=True)
    )


def _shown(pairs: list[tuple[float, float]], atoms: list[bool]) -> list[tuple[float, float]]:
    found = list(pairs)
    for place, is_atom in enumerate(atoms[:-1]):
        if is_atom:
            found[place + 1] = found[place][0], found[place + 1][1]
    return found


def _equal_width_codes(
    kind: str, low: int | float, high: int | float, cells: int, values: np.ndarray
) -> np.ndarray:
    if cells == 1:
        return np.zeros(len(values), dtype=np.int32)
    if kind in ("integer", "date"):
        offsets = values - np.int64(low)
        count = int(high - low) + 1
        if cells < count:
            offsets *= cells
            offsets //= count
        return offsets.astype(np.int32)
    scaled = (values - low).astype(np.float64, copy=False)
    scaled *= cells / (high - low)
    # The values are not below the minimum, so cutting the fraction off is the floor.
    return np.minimum(scaled.astype(np.int32), np.int32(cells - 1))


@lru_cache(maxsize=4096)
def _starts(kind: str, low: int, high: int, cells: int) -> tuple[int, ...]:
    if kind != "datetime":
        count = high - low + 1
        # (x - low) * cells // count >= i  <=>  x >= low + ceil(i * count / cells)
        return tuple(low - (-index * count // cells) for index in range(cells))
    # The codes never decrease with x, so bisection finds the first x of every code exactly,
    # where inverting the formula in floating point would be off by microseconds.
    wanted = np.arange(cells)
    below = np.full(cells, low - 1, dtype=np.int64)
    reached = np.full(cells, high, dtype=np.int64)
    while np.any(reached - below > 1):
        middle = below + (reached - below) // 2
        far_enough = _equal_width_codes(kind, low, high, cells, np.maximum(middle, low)) >= wanted
        reached = np.where(far_enough, middle, reached)
        below = np.where(far_enough, below, middle)
    return tuple(int(start) for start in np.maximum(reached, low))
