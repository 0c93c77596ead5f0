"""The mean embedding of rows by a kernel of pairs: products of functions of two columns each.

    k(x, y) = sum over i < j of k_i(x_i, y_i) k_j(x_j, y_j),    k_i(a, b) = phi_i(a).phi_i(b)

A column's functions are of its codes alone: for categories the indicators, for what has an order
cosines of the rank, and whether it is null. They are centred, and scaled so that a row adds as much
in one column as in another, by the column's own noisy counts, which are public by then. So every
feature is about a relation, and no feature spends anything on what single columns tell. The kernel
is of finite rank: its mean embedding is known exactly by the means of finitely many products. Where
categories are very many, fixed random directions stand for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoise.schema import Coded, Column, Schema

# Functions of all columns together, about, products of which are asked for; and cosines of one.
MOST_FUNCTIONS, MOST_COSINES = 112, 6
# A column that hardly varies is not blown up to the size of the others by more than this.
LARGEST_SCALE = 3.0
# Rows are clipped to this part of their average norm at least, and to more where the noise is so
# clear of relations, whose largest eigenvalue is about the number of columns they are of.
AVERAGE, CLEAR = 1.0, 0.25
# Directions that stand for many categories are part of the definition, like the cosines.
DIRECTIONS_SEED = 0


@dataclass(frozen=True, eq=False)
class Embedding:
    """The functions of every column, a row a code; their products are the features."""

    tables: tuple[np.ndarray, ...]

    @classmethod
    def over(
        cls, schema: Schema, chances: Sequence[np.ndarray], given: str | None = None
    ) -> Embedding:
        """The embedding of a schema's rows, given the chances of the codes of each column.

        The column that a network is told of, `given`, has all of its categories.
        """
        most = max(1, MOST_FUNCTIONS // len(schema))
        generator = np.random.default_rng(DIRECTIONS_SEED)
        return cls(
            tuple(
                _functions(
                    column, chance, MOST_FUNCTIONS if column.name == given else most, generator
                )
                for column, chance in zip(schema, chances, strict=True)
            )
        )

    @cached_property
    def owners(self) -> np.ndarray:
        """For each function, the place of its column."""
        return np.repeat(np.arange(len(self.tables)), [table.shape[1] for table in self.tables])

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The two functions of each feature; they are of different columns."""
        left, right = np.triu_indices(len(self.owners), 1)
        across = self.owners[left] != self.owners[right]
        return left[across], right[across]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name a feature."""
        return tuple(f"{left} x {right}" for left, right in zip(*self.pairs, strict=True))

    @cached_property
    def matrix(self) -> np.ndarray:
        """The functions of all codes, column after column: codes x functions."""
        found = np.zeros((sum(len(table) for table in self.tables), len(self.owners)))
        row = place = 0
        for table in self.tables:
            rows, size = table.shape
            found[row : row + rows, place : place + size] = table
            row, place = row + rows, place + size
        return found

    def bound(self, noise: float) -> float:
        """The norm to which the features of a row are clipped, all of it from public numbers.

        It is what a row's norm is on average, or more, up to the most that it can be, as long as
        the noise stays clear of relations; `noise` is its deviation on a mean, per unit of bound.
        """
        # |f|^2 = sum over i, j of |phi_i|^2 |phi_j|^2, i not j; each is one on average.
        columns = sum(table.any() for table in self.tables)
        average = AVERAGE * math.sqrt(max(columns * (columns - 1), 1))
        largest = np.array([(table**2).sum(axis=1).max() for table in self.tables])
        most = math.sqrt(max(largest.sum() ** 2 - (largest**2).sum(), 1.0))
        # The largest eigenvalue of noise alone; see `shrink`.
        edge = 2 * math.sqrt(len(self.owners)) * noise
        return float(np.clip(CLEAR / edge, min(average, most), most))

    def __call__(self, rows: Coded) -> np.ndarray:
        """The features of each row; the square root of two is for i > j."""
        values = np.concatenate(
            [table[rows.codes[:, place]] for place, table in enumerate(self.tables)], axis=1
        )
        left, right = self.pairs
        made = values[:, left]
        made *= values[:, right]
        made *= math.sqrt(2)
        return made

    def moments(self, sums: np.ndarray, rows: float) -> np.ndarray:
        """The means of all products as a symmetric matrix, zero within columns."""
        left, right = self.pairs
        found = np.zeros((len(self.owners),) * 2)
        found[left, right] = sums / (math.sqrt(2) * rows)
        return found + found.T

    @cached_property
    def is_across(self) -> np.ndarray:
        """Where a matrix of products has those of different columns."""
        found: np.ndarray = self.owners[:, None] != self.owners[None, :]
        return found


def shrink(moments: np.ndarray, deviation: float) -> np.ndarray:
    """A symmetric matrix of noisy means with its noise taken out, as far as its spectrum tells.

    Noise alone has eigenvalues up to e = 2 sqrt(p) times its deviation. An eigenvalue above that is
    shrunken to sqrt(l^2 - e^2), which is the best in the mean square for few of them among many
    (Gavish and Donoho 2017); what is below was noise.

    >>> round(float(shrink(np.array([[0.0, 0.5], [0.5, 0.0]]), 0.1)[0, 1]), 2)
    0.41
    """
    values, vectors = np.linalg.eigh(moments)
    edge = 2 * math.sqrt(len(moments)) * deviation
    kept = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    found: np.ndarray = (vectors * kept) @ vectors.T
    return found


def _functions(
    column: Column, chances: np.ndarray, most: int, generator: np.random.Generator
) -> np.ndarray:
    """The functions of a column's codes, centred, with a mean square norm of about one."""
    if column.kind == "categorical":
        made = np.eye(column.size)
        if column.size - 1 > most:
            directions = generator.normal(size=(column.size, most))
            made = made @ directions / math.sqrt(directions.shape[1])
    else:
        made = _cosines(column, chances, min(most, MOST_COSINES))
    centred = made - chances @ made
    size = math.sqrt(float(chances @ (centred**2).sum(axis=1)))
    return centred / max(size, 1 / LARGEST_SCALE)


def _cosines(column: Column, chances: np.ndarray, most: int) -> np.ndarray:
    """cos(pi k r) / k of the rank r of each code; and whether it is null."""
    cells = column.cells
    known = chances[:cells] / max(chances[:cells].sum(), 1e-12)
    ranks = np.cumsum(known) - known / 2
    orders = np.arange(1, min(most, cells - 1) + 1)
    cosines = math.sqrt(2) * np.cos(np.pi * ranks[:, None] * orders) / orders
    if not column.nullable:
        return cosines
    made = np.zeros((cells + 1, len(orders) + 1))
    # A null has no rank: it is where ranks are on average.
    made[:cells, :-1] = cosines
    made[cells, :-1] = known @ cosines
    made[cells, -1] = 1.0
    return made
