"""Dense tables over named columns, and the two ways they meet: projection and contraction.

A `Projection` is the compiled form of "sum this table down to those columns" and of its adjoint
"spread that smaller table over this one"; inference runs the same few of them hundreds of times.
A `Factor` carries its columns along and serves where the structure is not known in advance. Sums
are written as products with a vector of ones because BLAS reads memory faster than a reduction.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from counterpoise.synthesizers.graphical.domain import Columns

Array = np.ndarray


@dataclass(frozen=True)
class Projection:
    """How a table over some columns sums to, and is multiplied by, a table over a part of them.

    Runs of neighbouring axes that are kept or summed together are merged, so a table of many
    columns is seen as one of two or three axes.
    """

    merged: tuple[int, ...]  # the table's shape with runs of axes merged
    spread: tuple[int, ...]  # the part's shape against it: 1 where the part has no axis
    sums: tuple[tuple[int, int, int], ...]  # (before, summed, after) of each sum, widest first
    summed: tuple[int, ...]  # the axes of `merged` that are summed

    def reduce(self, table: Array) -> Array:
        """The table summed to the part, flat."""
        for before, width, after in self.sums:
            ones = _ones(width, table.dtype == np.float32)
            if after == 1:
                table = table.reshape(before, width) @ ones
            elif before == 1:
                table = ones @ table.reshape(width, after)
            else:
                table = np.matmul(ones, table.reshape(before, width, after))
        return table.reshape(-1)

    def maximum(self, table: Array) -> Array:
        """The table's largest value for every cell of the part, flat."""
        return table.reshape(self.merged).max(axis=self.summed).reshape(-1)

    def multiply(self, table: Array, part: Array) -> None:
        """Multiply every cell of `table` by its cell of `part`, in place."""
        view = table.reshape(self.merged)
        np.multiply(view, part.reshape(self.spread), out=view)

    def add(self, table: Array, part: Array) -> None:
        """Add to every cell of `table` its cell of `part`, in place."""
        view = table.reshape(self.merged)
        np.add(view, part.reshape(self.spread), out=view)

    def fill(self, table: Array, part: Array) -> None:
        """Set every cell of `table` to its cell of `part`."""
        table.reshape(self.merged)[...] = part.reshape(self.spread)


@lru_cache(maxsize=1 << 14)
def projection(columns: Columns, shape: tuple[int, ...], part: Columns) -> Projection:
    """Compile the projection of a table over `columns` to `part`, both in the same axis order.

    >>> plan = projection(("a", "b", "c"), (2, 3, 4), ("b",))
    >>> plan.reduce(np.ones((2, 3, 4)))
    array([8., 8., 8.])
    """
    runs: list[tuple[bool, int]] = []
    for column, size in zip(columns, shape, strict=True):
        kept = column in part
        if runs and runs[-1][0] == kept:
            runs[-1] = (kept, runs[-1][1] * size)
        else:
            runs.append((kept, size))
    runs = runs or [(True, 1)]
    summed = tuple(axis for axis, (kept, _) in enumerate(runs) if not kept)
    widths = [width for _, width in runs]
    sums = []
    # The widest axis first leaves the least for the sums that follow.
    for axis in sorted(summed, key=lambda axis: -widths[axis]):
        sums.append((math.prod(widths[:axis]), widths[axis], math.prod(widths[axis + 1 :])))
        widths[axis] = 1
    return Projection(
        merged=tuple(width for _, width in runs),
        spread=tuple(width if kept else 1 for kept, width in runs),
        sums=tuple(sums),
        summed=summed,
    )


@lru_cache(maxsize=256)
def _ones(width: int, is_single: bool) -> Array:
    ones = np.ones(width, dtype=np.float32 if is_single else np.float64)
    ones.flags.writeable = False
    return ones


@dataclass(frozen=True, eq=False)
class Factor:
    """A table of values with an axis for every one of `columns`."""

    columns: Columns
    values: Array

    def marginal(self, columns: Sequence[str]) -> Factor:
        """Sum to `columns`, with the axes in that order.

        >>> Factor(("a", "b"), np.array([[1.0, 2.0], [3.0, 4.0]])).marginal(("b",)).values
        array([4., 6.])
        """
        kept = tuple(column for column in self.columns if column in columns)
        plan = projection(self.columns, self.values.shape, kept)
        sizes = dict(zip(self.columns, self.values.shape, strict=True))
        summed = plan.reduce(self.values).reshape([sizes[column] for column in kept])
        return Factor(kept, summed).transpose(columns)

    def transpose(self, columns: Sequence[str]) -> Factor:
        """The same table with its axes in the order of `columns`."""
        if tuple(columns) == self.columns:
            return self
        axes = [self.columns.index(column) for column in columns]
        return Factor(tuple(columns), self.values.transpose(axes))

    def expand(self, columns: Sequence[str]) -> Array:
        """A view that broadcasts against a table over `columns`, which must contain these."""
        kept = tuple(column for column in columns if column in self.columns)
        sizes = dict(zip(self.columns, self.values.shape, strict=True))
        return self.transpose(kept).values.reshape([sizes.get(column, 1) for column in columns])

    def multiply(self, other: Factor) -> Factor:
        """The product over the columns of both."""
        columns = self.columns + tuple(c for c in other.columns if c not in self.columns)
        return Factor(columns, self.expand(columns) * other.expand(columns))


def contract(left: Factor, right: Factor, keep: Collection[str]) -> Factor:
    """Multiply two factors and sum out the columns not in `keep`, as one batched matrix product.

    The product is never built: shared columns that are kept are the batch, shared columns that are
    not are the inner dimension, and what only one factor has is its outer dimension.

    >>> table = Factor(("a", "b"), np.array([[0.1, 0.4], [0.3, 0.2]]))
    >>> contract(table, Factor(("b",), np.array([1.0, 0.0])), keep={"a"}).values
    array([0.1, 0.3])
    """
    left = left.marginal([c for c in left.columns if c in keep or c in right.columns])
    right = right.marginal([c for c in right.columns if c in keep or c in left.columns])
    batch = tuple(c for c in left.columns if c in right.columns and c in keep)
    inner = tuple(c for c in left.columns if c in right.columns and c not in keep)
    rows = tuple(c for c in left.columns if c not in right.columns)
    others = tuple(c for c in right.columns if c not in left.columns)
    if not inner:
        return left.multiply(right)
    sizes = dict(zip(left.columns, left.values.shape, strict=True))
    sizes |= dict(zip(right.columns, right.values.shape, strict=True))

    def cells(columns: Columns) -> int:
        return math.prod(sizes[column] for column in columns)

    first = left.transpose(batch + rows + inner).values
    second = right.transpose(batch + inner + others).values
    product = np.matmul(
        first.reshape(cells(batch), cells(rows), cells(inner)),
        second.reshape(cells(batch), cells(inner), cells(others)),
    )
    columns = batch + rows + others
    return Factor(columns, product.reshape([sizes[column] for column in columns]))
