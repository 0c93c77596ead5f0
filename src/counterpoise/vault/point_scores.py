"""How far rows are from points, in parts of the farthest that they can be.

A row is a place: what has an order by its place between the bounds, from 0 to 1 (and spread over
the column's own range where that was paid for), a category by its code. Two categories are at
distance one if they differ. A null of an ordered column lies in the middle and aside, so that no
value is farther from it than one, and none nearer than a half. So every column has diameter one,
the whole table d^(1/p) for d columns in the norm p = 1 or 2, and a bounded kernel
k = 1 / (1 + r^2 / w^2) of that distance r makes 1 - k of diameter 1 / (1 + w^2 / d^(2/p)).
With p = 1 distances add up column by column, so that a mean of them tells nothing of how columns
go together. [Mak and Joseph 2018 for the energy of points; Gower 1971 for columns of all kinds]

The distance of a row is made of that row's numbers alone, by operations that floating point rounds
correctly one number at a time, and is cut at one: this is what bounds what a row can do.
`nearly_between` has the same distances up to a part in 2^40 and in a fraction of the time, by a
product of matrices: for chains, whose steps are weighed with rounding anyway.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.arguments import real_number, settle, whole_number
from counterpoise.errors import CounterpoiseError, VaultError
from counterpoise.schema import Coded, Schema

# Widths of kernels and bandwidths, in parts of a column's range. Below them rows that differ at all
# are as far apart as can be, above them a kernel is the square of a distance and a density is flat;
# their squares, and those divided by each other, are numbers by far.
LEAST_WIDTH, MOST_WIDTH = 1e-12, 1e12

# Squares below this part of the farthest one lose too many digits in a product of matrices.
_NEAR = 1e-4


@dataclass(frozen=True, eq=False, repr=False)
class Places:
    """Rows as places: coordinates of what has an order, and codes of what has none.

    Before the rows, arrays may have one axis more: sets of rows, of equal size.
    """

    coordinates: np.ndarray  # rows x coordinates
    codes: np.ndarray  # rows x categorical columns
    columns: int  # of the table that they are places of

    def __len__(self) -> int:
        return self.coordinates.shape[-2]

    def take(self, rows: np.ndarray | slice) -> Places:
        """Some of the places."""
        return Places(self.coordinates[rows], self.codes[rows], self.columns)

    def in_sets(self, sets: int) -> Places:
        """The same places, as so many sets of them."""
        shape = (sets, len(self) // sets, -1)
        return Places(self.coordinates.reshape(shape), self.codes.reshape(shape), self.columns)

    @property
    def digest(self) -> str:
        """What tells public places from others."""
        parts = (np.ascontiguousarray(part).tobytes() for part in (self.coordinates, self.codes))
        return hashlib.sha256(b"".join(parts)).hexdigest()

    @classmethod
    def together(cls, parts: list[Places]) -> Places:
        """Places one after the other."""
        return cls(
            np.concatenate([part.coordinates for part in parts]),
            np.concatenate([part.codes for part in parts]),
            parts[0].columns,
        )


@dataclass(frozen=True)
class PointDistance:
    """A distance of rows: the `norm` 1 or 2 over columns, or a kernel of it with a `width`.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column
    >>> schema = Schema([Column.continuous("x", 0, 10), Column.boolean("y")])
    >>> rows = schema.encode(pd.DataFrame({"x": [0.0, 5.0, 10.0], "y": [False, False, True]}))
    >>> distance = PointDistance(norm=1)
    >>> places = distance.places(rows)
    >>> (distance.between(places, places)[0] * distance.diameter(schema)).tolist()
    [0.0, 0.5, 2.0]
    """

    norm: int = 2
    width: float | None = None

    def __post_init__(self) -> None:
        settle(
            self,
            norm=whole_number("norm", self.norm, 1, 2, VaultError),
            width=None if self.width is None else checked_width("width", self.width),
        )

    def diameter(self, schema: Schema) -> float:
        """The farthest that two rows can be."""
        # d^(1/p); or 1 - k at that distance.
        farthest = len(schema) ** (1 / self.norm)
        return farthest if self.width is None else 1 / (1 + (self.width / farthest) ** 2)

    def places(self, rows: Coded) -> Places:
        """The places of rows, each from its own values."""
        spread = rows.spread()
        units, nulls, codes = [], [], []
        for position, column in enumerate(rows.schema):
            if column.kind == "categorical":
                codes.append(rows.codes[:, position])
                continue
            units.append(spread.units[:, position])
            if column.nullable:
                nulls.append(self.aside * (rows.codes[:, position] == column.cells))
        ordered = units + nulls
        return Places(
            np.array(ordered, dtype=float).reshape(len(ordered), len(rows)).T,
            np.array(codes, dtype=np.int32).reshape(len(codes), len(rows)).T,
            len(rows.schema),
        )

    @property
    def aside(self) -> float:
        """How far nulls are aside of the middle: (1/2)^p + aside^p = 1."""
        return (1 - 0.5**self.norm) ** (1 / self.norm)

    def between(self, left: Places, right: Places) -> np.ndarray:
        """The distance of each of `left` to each of `right`, in parts of the diameter: 0 to 1.

        Of places in sets it is that of each to each within every set.
        """
        total = np.zeros((*left.coordinates.shape[:-1], len(right)))
        gap = np.empty_like(total)
        for place in range(left.coordinates.shape[-1]):
            one, other = left.coordinates[..., place], right.coordinates[..., place]
            np.subtract(one[..., :, None], other[..., None, :], out=gap)
            total += np.abs(gap, out=gap) if self.norm == 1 else np.multiply(gap, gap, out=gap)
        for place in range(left.codes.shape[-1]):
            one, other = left.codes[..., place], right.codes[..., place]
            total += one[..., :, None] != other[..., None, :]
        if self.norm == 2:
            np.sqrt(total, out=total)
        total /= left.columns ** (1 / self.norm)
        return self._in_parts(total, left.columns)

    def nearly_between(self, left: Places, right: Places) -> np.ndarray:
        """`between`, within a part in 2^40 and faster; not for what has to be rounded correctly.

        >>> generator = np.random.default_rng(0)
        >>> left, right = (
        ...     Places(generator.random((9, 4)), generator.integers(0, 3, (9, 2)), columns=6)
        ...     for _ in range(2)
        ... )
        >>> distance = PointDistance()
        >>> apart = distance.nearly_between(left, right) - distance.between(left, right)
        >>> bool(np.abs(apart).max() < 2.0**-40)
        True
        """
        if self.norm == 1:
            return self.between(left, right)
        # In parts of the farthest, and around the middle, where squares are small:
        # |x - y|^2 = (-2 x, |x|^2, 1) . (y, 1, |y|^2)
        root = left.columns**0.5
        x, y = (left.coordinates - 0.5) / root, (right.coordinates - 0.5) / root
        own, other = (np.einsum("...i,...i->...", each, each)[..., None] for each in (x, y))
        first = np.concatenate([-2 * x, own, np.ones_like(own)], axis=-1)
        second = np.concatenate([y, np.ones_like(other), other], axis=-1)
        total = first @ second.swapaxes(-1, -2)
        near = np.nonzero(total < _NEAR)
        gaps = x[near[:-1]] - y[(*near[:-2], near[-1])]
        total[near] = np.einsum("ij,ij->i", gaps, gaps)
        for place in range(left.codes.shape[-1]):
            one, another = left.codes[..., place], right.codes[..., place]
            total += (one[..., :, None] != another[..., None, :]) * (1 / left.columns)
        return self._in_parts(np.sqrt(total, out=total), left.columns)

    def _in_parts(self, total: np.ndarray, columns: int) -> np.ndarray:
        """Distances in parts of the farthest as parts of the diameter, in their place."""
        if self.width is not None:
            # (1 - k(r)) / (1 - k(most)) with r and w in parts of the farthest
            square = (self.width / columns ** (1 / self.norm)) ** 2
            np.multiply(total, total, out=total)
            total *= (1 + square) / (total + square)
        # What is not a number, which no width that is taken makes, would be as far as can be.
        return np.fmin(total, 1.0, out=total)


def checked_width(name: str, value: Any, error: type[CounterpoiseError] = VaultError) -> float:
    """A width of a kernel or a density."""
    expected = f"a width from {LEAST_WIDTH:g} to {MOST_WIDTH:g}, in parts of a column's range"
    return real_number(
        name, value, expected, error, above=LEAST_WIDTH, below=MOST_WIDTH, inclusive=True
    )
