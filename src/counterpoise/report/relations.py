"""How strongly columns go together, without weights and with them.

A synthesizer usually gets single columns right and relations between them less so; the weights
are there for the relations. Each pair is measured by Cramér's V of its cross table (H. Cramér,
Mathematical Methods of Statistics, 1946): 0 for columns that tell nothing of each other, 1 when
one decides the other; without the part that few rows give to unrelated columns by chance (W.
Bergsma, "A bias-correction for Cramér's V and Tschuprow's T", Journal of the Korean Statistical
Society, 2013). Numbers are cut into five groups of about as many rows, and rare categories put
together. It is a summary to look at, and has no interval.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.analysis.support import IMPLIED, Measured

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release
    from counterpoise.schema import Column

# Enough rows and columns for a picture, and few enough for a second.
MOST_ROWS, MOST_COLUMNS = 100_000, 40
GROUPS = 5
# More categories than this are the most frequent ones, and the others together.
MOST_CATEGORIES = 12


@dataclass(frozen=True)
class Relation:
    """Two columns and Cramér's V of them, from the rows alone and from the weighted rows."""

    columns: tuple[str, str]
    plain: float
    weighted: float
    support: str  # whether the two were measured together
    assumed: float | None = None  # the part of the variance that is, of what is implied


@dataclass(frozen=True, eq=False)
class Relations:
    """Cramér's V of every two of some columns, as symmetric tables with ones on the diagonal."""

    names: tuple[str, ...]
    plain: np.ndarray
    weighted: np.ndarray
    supports: tuple[tuple[str, ...], ...]  # of every two columns
    assumed: tuple[tuple[float | None, ...], ...]

    @property
    def pairs(self) -> list[Relation]:
        """Every pair once, in the order of the columns."""
        return [
            Relation(
                (self.names[left], self.names[right]),
                float(self.plain[left, right]),
                float(self.weighted[left, right]),
                self.supports[left][right],
                self.assumed[left][right],
            )
            for left, right in itertools.combinations(range(len(self.names)), 2)
        ]

    def strongest(self, most: int = 3) -> list[Relation]:
        """The pairs that go together most, weighted."""
        return sorted(self.pairs, key=lambda each: -each.weighted)[:most]

    def most_changed(self, most: int = 6) -> list[Relation]:
        """The pairs whose relation the weights change most, in that order."""
        return sorted(self.pairs, key=lambda each: -abs(each.weighted - each.plain))[:most]


def relations(release: Release) -> Relations:
    """How strongly every two of the first columns of a release go together."""
    rows = np.arange(0, len(release.table), max(1, -(-len(release.table) // MOST_ROWS)))
    plain = release.schema.plain
    schema = plain.select(plain.names[:MOST_COLUMNS])
    coded = schema.encode(release.table.iloc[rows]).codes
    groups = [_groups(column, coded[:, place]) for place, column in enumerate(schema)]
    both = []
    for weights in (np.ones(len(rows)), release.weights[rows]):
        size = float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300))
        strengths = np.eye(len(groups))
        for left, right in itertools.combinations(range(len(groups)), 2):
            found = cramers_v(_table(groups[left], groups[right], weights), size)
            strengths[left, right] = strengths[right, left] = found
        both.append(strengths)
    measured = Measured.of_release(release)
    supports = tuple(
        tuple(measured.of({left, right}) for right in schema.names) for left in schema.names
    )
    assumed = tuple(
        tuple(
            measured.assumed_part({left, right}) if support == IMPLIED else None
            for right, support in zip(schema.names, line, strict=True)
        )
        for left, line in zip(schema.names, supports, strict=True)
    )
    return Relations(tuple(schema.names), both[0], both[1], supports, assumed)


def cramers_v(table: np.ndarray, size: float | None = None) -> float:
    """Cramér's V of a cross table of counts or weights; 0 when a column is constant.

    With `size`, the effective number of rows, what chance alone would give is taken off.

    >>> cramers_v(np.array([[5.0, 0.0], [0.0, 5.0]])), cramers_v(np.ones((2, 3)))
    (1.0, 0.0)
    """
    kept = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    height, width = kept.shape
    if min(height, width) < 2:
        return 0.0
    shares = kept / kept.sum()
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    # phi^2 = chi^2 / n,  V^2 = phi^2 / min(rows - 1, columns - 1)
    # A share of next to nothing, squared, may leave nothing to divide by.
    terms = np.divide((shares - expected) ** 2, expected, where=expected > 0, out=0 * expected)
    square = float(terms.sum())
    least: float = min(height, width) - 1
    if size is not None and size > 1:
        # phi^2 - (r - 1)(c - 1)/(n - 1), and r - (r - 1)^2/(n - 1) in the place of r   [Bergsma]
        square = max(square - (height - 1) * (width - 1) / (size - 1), 0.0)
        least = min(each - 1 - (each - 1) ** 2 / (size - 1) for each in (height, width))
    return min(math.sqrt(square / least), 1.0) if least > 0 else 0.0


def _groups(column: Column, codes: np.ndarray) -> np.ndarray:
    """Codes in few groups: numbers by their rank, frequent categories and null as they are."""
    counts = np.bincount(codes, minlength=column.size)
    if not column.is_numeric:
        if column.size <= MOST_CATEGORIES:
            return codes
        places = np.full(column.size, MOST_CATEGORIES - 1)
        frequent = np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1]
        places[frequent] = np.arange(len(frequent))
        return np.asarray(places[codes])
    if column.cells <= GROUPS:
        return codes
    below = np.cumsum(counts[: column.cells])
    whole = max(int(below[-1]), 1)
    places = np.append(np.minimum((below - 1) * GROUPS // whole, GROUPS - 1).clip(0), GROUPS)
    return np.asarray(places[np.minimum(codes, column.cells)])


def _table(left: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    size = int(right.max(initial=0)) + 1
    height = int(left.max(initial=0)) + 1
    cells = np.bincount(left * size + right, weights=weights, minlength=height * size)
    return np.asarray(cells.reshape(height, size))
