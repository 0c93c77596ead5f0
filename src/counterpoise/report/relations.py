"""How strongly columns go together, without weights and with them.

A synthesizer usually gets single columns right and relations between them less so; the weights
are there for the relations. Each pair is measured by Cramér's V of its cross table (H. Cramér,
Mathematical Methods of Statistics, 1946): 0 for columns that tell nothing of each other, 1 when
one decides the other. Numbers are cut into five groups of about as many rows. It is a summary to
look at, and has no interval.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release
    from counterpoise.schema import Column

# Enough rows and columns for a picture, and few enough for a second.
MOST_ROWS, MOST_COLUMNS = 100_000, 24
GROUPS = 5


@dataclass(frozen=True)
class Relation:
    """Two columns and Cramér's V of them, from the rows alone and from the weighted rows."""

    columns: tuple[str, str]
    plain: float
    weighted: float


def changed_relations(release: Release, most: int = 6) -> list[Relation]:
    """The pairs of columns whose relation the weights change most, in that order."""
    rows = np.arange(0, len(release.table), max(1, -(-len(release.table) // MOST_ROWS)))
    schema = release.schema.select(release.schema.names[:MOST_COLUMNS])
    coded = schema.encode(release.table.iloc[rows]).codes
    weights = release.weights[rows]
    groups = [_groups(column, coded[:, place]) for place, column in enumerate(schema)]
    found = [
        Relation(
            (schema.names[left], schema.names[right]),
            cramers_v(_table(groups[left], groups[right], np.ones(len(rows)))),
            cramers_v(_table(groups[left], groups[right], weights)),
        )
        for left, right in itertools.combinations(range(len(groups)), 2)
    ]
    return sorted(found, key=lambda each: -abs(each.weighted - each.plain))[:most]


def cramers_v(table: np.ndarray) -> float:
    """Cramér's V of a cross table of counts or weights; 0 when a column is constant.

    >>> cramers_v(np.array([[5.0, 0.0], [0.0, 5.0]])), cramers_v(np.ones((2, 3)))
    (1.0, 0.0)
    """
    kept = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least = min(kept.shape) - 1
    if least < 1:
        return 0.0
    shares = kept / kept.sum()
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    # V^2 = (chi^2 / n) / min(rows - 1, columns - 1)
    return float(np.sqrt(((shares - expected) ** 2 / expected).sum() / least))


def _groups(column: Column, codes: np.ndarray) -> np.ndarray:
    """Codes in few groups: numbers by their rank, categories and null as they are."""
    if not column.is_numeric or column.cells <= GROUPS:
        return codes
    below = np.cumsum(np.bincount(codes, minlength=column.size)[: column.cells])
    whole = max(int(below[-1]), 1)
    places = np.append(np.minimum((below - 1) * GROUPS // whole, GROUPS - 1).clip(0), GROUPS)
    return np.asarray(places[np.minimum(codes, column.cells)])


def _table(left: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    size = int(right.max(initial=0)) + 1
    height = int(left.max(initial=0)) + 1
    cells = np.bincount(left * size + right, weights=weights, minlength=height * size)
    return np.asarray(cells.reshape(height, size))
