"""The released rows as the attacker's space: distances between rows of mixed kinds, and neighbours.

The squared distance of two rows is a sum over columns, as Gower's (1971): one for categories that
differ, and for numbers, dates and ordered categories the squared difference, in units of the width
between the 1st and the 99th percentile of the release. An attacker knows nothing else about scales,
and generous bounds of a schema would make all numbers alike. A null is apart from any value by one.
Distances are matrix products, in blocks of rows; columns of very many categories are compared code
by code. Neighbours are found in single precision, and their distances worked out anew, so that a
copy is at distance zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoise.schema import Coded, Column

# Columns of more categories are not spread out into a feature for each.
MOST_SPREAD = 120
# Pairs of rows that meet at a time: few enough for a processor to keep at hand.
BLOCK = 2_000_000
# Released rows by which the bandwidth is set.
PROBES = 500
# Distances, as parts of the bandwidth, below which rows are the same.
SHARPNESS = 0.1


@dataclass(frozen=True, eq=False)
class Points:
    """Rows in the attacker's space: features, and codes of the columns that have too many."""

    features: np.ndarray
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: np.ndarray | slice) -> Points:
        """Some of the rows."""
        return Points(self.features[rows], self.codes[rows])

    @cached_property
    def norms(self) -> np.ndarray:
        """The squared length of every row's features."""
        return np.einsum("ij,ij->i", self.features, self.features)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For every row its nearest released rows, nearest first, and the squared distances."""

    rows: np.ndarray
    squared: np.ndarray


class Space:
    """The space of some columns of a release, and its rows as points."""

    def __init__(self, released: Coded, columns: Sequence[int] | None = None):
        every = range(len(released.schema)) if columns is None else columns
        self.columns = list(every)
        self._schema = released.schema
        self._scales = [_scale(released, position) for position in self.columns]
        self.points = self.place(released)

    def place(self, table: Coded) -> Points:
        """Rows of any table of the same schema as points."""
        features: list[np.ndarray] = []
        codes: list[np.ndarray] = []
        for position, scale in zip(self.columns, self._scales, strict=True):
            column, found = self._schema.columns[position], table.codes[:, position]
            if _is_nominal(column) and column.size > MOST_SPREAD:
                codes.append(found)
            elif _is_nominal(column):
                # Two one-hot vectors are sqrt(2) apart.
                features.append(np.sqrt(0.5) * (found[:, None] == np.arange(column.size)))
            else:
                features.append(_scaled(column, table, position, scale)[:, None])
                if column.nullable:
                    features.append((found == column.null_code)[:, None])
        wide = np.zeros((len(table), 0), dtype=np.float32)
        return Points(
            np.concatenate([wide, *features], axis=1, dtype=np.float32, casting="same_kind"),
            np.stack(codes, axis=1) if codes else np.zeros((len(table), 0), dtype=np.int32),
        )

    def among(self, table: Coded) -> Space:
        """The same space, with the rows of another table in it."""
        other = copy(self)
        other.__dict__.pop("bandwidth", None)
        other.points = self.place(table)
        return other

    def nearest(self, points: Points, count: int) -> Neighbours:
        """The `count` nearest released rows of every point."""
        count = min(count, len(self.points))
        rows = np.empty((len(points), count), dtype=np.int64)
        for part, squared in self.blocks(points):
            rows[part] = np.argpartition(squared, count - 1, axis=1)[:, :count]
        squared = self.squared(points, rows)
        order = np.argsort(squared, axis=1, kind="stable")
        return Neighbours(
            np.take_along_axis(rows, order, axis=1), np.take_along_axis(squared, order, axis=1)
        )

    def blocks(self, points: Points) -> Iterator[tuple[slice, np.ndarray]]:
        """Parts of the points, and their squared distances to all released rows, to 1e-4 or so."""
        step = max(1, BLOCK // max(1, len(self.points)))
        for start in range(0, len(points), step):
            part = slice(start, start + step)
            some = points.take(part)
            # |x - y|^2 = |x|^2 - 2 x.y + |y|^2
            squared = (-2 * some.features) @ self.points.features.T
            squared += some.norms[:, None]
            squared += self.points.norms
            for ours, theirs in zip(some.codes.T, self.points.codes.T, strict=True):
                squared += ours[:, None] != theirs
            yield part, squared

    def squared(self, points: Points, rows: np.ndarray) -> np.ndarray:
        """The squared distances of points to some released rows each, exactly."""
        found = np.empty(rows.shape)
        for place in range(rows.shape[1]):
            other = self.points.take(rows[:, place])
            apart = points.features - other.features
            found[:, place] = np.einsum("ij,ij->i", apart, apart)
            found[:, place] += (points.codes != other.codes).sum(axis=1)
        return found

    @cached_property
    def bandwidth(self) -> float:
        """The median squared distance of released rows to the nearest other one, above zero."""
        probes = np.linspace(0, len(self.points) - 1, min(PROBES, len(self.points))).astype(int)
        found = self.nearest(self.points.take(probes), 2)
        apart = found.squared[:, -1]
        return float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0


def costs(squared: np.ndarray, bandwidth: float, weights: np.ndarray | None) -> np.ndarray:
    """By what neighbours are ranked: d^2 / 2h^2 - log w, the likelihood of a row by a kernel.

    Without weights it ranks as the distance does.

    >>> costs(np.array([1.0, 1.0]), 0.5, np.array([1.0, np.e])).tolist()
    [1.0, 0.0]
    """
    found = squared / (2 * bandwidth)
    return found if weights is None else found - np.log(weights)


def log_density(squared: np.ndarray, bandwidth: float, weights: np.ndarray | None) -> np.ndarray:
    """The logarithm of a density by weighted neighbours, sum_j w_j / (d_j^2 + b^2)^2.

    The kernel is so sharp, with b a tenth of the bandwidth, that a copy outweighs all neighbours.
    """
    kernel = (squared + SHARPNESS**2 * bandwidth) ** -2.0
    return np.log((kernel if weights is None else kernel * weights).sum(axis=1))


def _is_nominal(column: Column) -> bool:
    return column.kind == "categorical"


def _scale(released: Coded, position: int) -> tuple[float, float]:
    """The middle of a column of the release, and the width that counts as one."""
    column, units = released.schema.columns[position], released.units[:, position]
    stated = units[released.codes[:, position] != column.cells]
    if _is_nominal(column) or len(stated) == 0:
        return 0.5, 1.0
    low, middle, high = np.quantile(stated, [0.01, 0.5, 0.99])
    # Where nearly all have one value, the others are what there is.
    width = (high - low) or (stated.max() - stated.min()) or 1.0
    return float(middle), float(width)


def _scaled(column: Column, table: Coded, position: int, scale: tuple[float, float]) -> np.ndarray:
    middle, width = scale
    found = (table.units[:, position] - middle) / width
    return np.where(table.codes[:, position] == column.cells, 0.0, found)
