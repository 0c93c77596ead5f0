"""The coding in two levels: fine cells for a column by itself, coarse ones for its relations.

Every open column is counted once, all of them in one query: numbers and dates on a fine public
grid, categories each by itself where there are more than relations can be seen in. One record is
one count a column, as in as many one-way tables. What the noisy histograms show is then public: the
shape or the grouping of each column, and with it the coarse cells in which its relations will be
counted. How fine the grids are follows from the number of rows and the noise, so that few rows have
few cells. [PRIVACY: mechanisms]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.schema import (
    Column,
    Schema,
    described,
    fine_grid,
    grouped,
    provisional,
    settled,
    with_candidates,
)
from counterpoise.vault.asked import share_of
from counterpoise.vault.budget import Budget, Share
from counterpoise.vault.counting import CountNoise, count_noise
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage
from counterpoise.vault.totals import total

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# Bins where none are stated: no fewer and no more than these.
FEWEST_BINS, MOST_BINS = 4, 32

# Coarse cells need no more than half of that, because the shape tells where in them a value lies,
# and relations are measured the better; but not fewer than these, where bins are few anyway.
COARSE_PART, FEWEST_COARSE = 0.5, 10

# Fine cells of a column: so many for each deviation of the noise that the rows make up, within
# these. Where all rows together are fewer deviations than the last number, a histogram of them is
# noise, and bins of equal width do better.
CELLS_A_DEVIATION = 1.5
FEWEST_CELLS, MOST_CELLS = 12, 400
LEAST_DEVIATIONS = 5.0

# The part of the share, and the cells, by which a column is first looked for between its bounds,
# and the chance that noise alone is taken for it.
WHERE_PART, ROUGH_CELLS, SEEN_BY_CHANCE = 0.15, 48, 0.05

# The values of a number keep a code each where there are so many deviations of noise for each of
# them. A fifth of a deviation of rows is left, on average, at a value that nobody has; where bounds
# are generous, such a row counts a hundred times in a variance, which then is 5% too large.
ROWS_AT_A_VALUE = 400

# Categories keep a code each, or those that stand clear do, up to a number within these: fewer are
# never worth grouping, and more would leave the features of weights no room.
FEWEST_CATEGORIES, MOST_CATEGORIES = 32, 400


def choose_bins(vault: Vault, share: Share | None = None) -> Schema:
    """Choose the number of bins where none is stated; charges the number of rows if private."""
    vault._require_unsettled()
    rows = max(1, total(vault, share).value)
    schema = vault.schema.with_bins(_bins(_useful_bins(vault.budget, len(vault.schema), rows)))
    vault._settle(schema)
    return schema


def choose_cells(vault: Vault, share: Share, rows_share: Share | None = None) -> Schema:
    """Count every open column in fine cells, and choose its coarse ones: its shape or grouping.

    Charges two events for all columns together, one to find numbers between their bounds and one to
    count all, and the number of rows if that is private. Where there are too few rows for it, bins
    of equal width are chosen, and `share` is not spent.
    """
    vault._require_unsettled()
    share = share_of(share)
    rows = max(1, total(vault, rows_share).value)
    useful = _useful_bins(vault.budget, len(vault.schema), rows)
    most = most_codes(vault.budget, len(vault.schema), rows)
    open_columns = [
        column
        for column in vault.schema
        if column.has_open_cells and not _keeps_codes(column, useful, most)
    ]
    schema = vault.schema.with_bins(_bins(useful))
    coarse = min(_bins(useful), max(_bins(COARSE_PART * useful), FEWEST_COARSE))
    numeric = [column for column in open_columns if column.is_numeric]
    first, second = share.split(WHERE_PART, 1 - WHERE_PART) if numeric else (share, share)
    # A number is counted twice, in its cell and in the group of cells that it is in.
    tables = sum(2 if column.is_numeric else 1 for column in open_columns)
    noise = count_noise(vault.budget, second, max(1, tables))
    deviations = rows / noise.deviation
    cells = round(min(max(CELLS_A_DEVIATION * deviations, FEWEST_CELLS), MOST_CELLS))
    if not open_columns or deviations < LEAST_DEVIATIONS:
        vault._settle(schema)
        return schema
    ranges = _where(vault, numeric, first) if numeric else {}
    grids = [
        with_candidates(column, cells, ranges[column.name]) if column.is_numeric else None
        for column in open_columns
    ]
    coded = [
        column if fine is None else provisional(column, fine.grid)
        for column, fine in zip(open_columns, grids, strict=True)
    ]

    def count(storage: Storage) -> list[np.ndarray]:
        exact = []
        every = storage.provisional_counts(coded)
        for column, fine, counts in zip(coded, grids, every, strict=True):
            exact.append(counts)
            if fine is not None:
                exact.append(np.bincount(fine.groups, counts[: column.cells]).astype(np.int64))
        return exact

    noised = _noised(vault, f"fine cells of {_listed(open_columns)}", coded, cells, noise, count)
    for column, fine, code in zip(open_columns, grids, coded, strict=True):
        counts, nulls, noised = np.split(noised, [code.cells, code.size])
        # Nulls have a code of their own, and are no part of the shape.
        present = max(1.0, rows - float(nulls.sum()))
        if fine is None:
            codes = coarse if column.kind == "ordinal" else most
            found = grouped(
                column, counts, noise.deviation, present, noise.exceeded_by_chance, codes
            )
        else:
            in_groups, noised = np.split(noised, [fine.groups[-1] + 1])
            shown = described(fine, counts, in_groups, noise.deviation, present)
            found = settled(column, *shown, coarse, noise.deviation)
        schema = schema.replace(found)
    vault._settle(schema)
    return schema


def _where(
    vault: Vault, columns: list[Column], share: Share
) -> dict[str, tuple[float, float] | None]:
    """Between which numbers most rows of each column lie, from rough counts; None if unseen.

    Bounds may be so generous that even fine cells are wider than all that a column has.
    """
    grids = [fine_grid(column, ROUGH_CELLS) for column in columns]
    coded = [provisional(column, grid) for column, grid in zip(columns, grids, strict=True)]
    noise = count_noise(vault.budget, share, len(columns))

    def count(storage: Storage) -> list[np.ndarray]:
        return storage.provisional_counts(coded)

    query = f"rough cells of {_listed(columns)}"
    noised = _noised(vault, query, coded, ROUGH_CELLS, noise, count)
    height = noise.exceeded_by_chance(ROUGH_CELLS, SEEN_BY_CHANCE)
    found: dict[str, tuple[float, float] | None] = {}
    for column, grid, code in zip(columns, grids, coded, strict=True):
        counts, _, noised = np.split(noised, [code.cells, code.size])
        seen = np.flatnonzero(counts > height)
        found[column.name] = None
        if len(seen):
            found[column.name] = float(grid.edges[seen[0]]), float(grid.edges[seen[-1] + 1])
    return found


def _noised(
    vault: Vault,
    query: str,
    columns: list[Column],
    cells: int,
    noise: CountNoise,
    count: Callable[[Storage], list[np.ndarray]],
) -> np.ndarray:
    """What `count` finds in the private rows, one table after the other, with noise on it."""

    def look(storage: Storage, source: Noise) -> np.ndarray:
        return noise.add(source, np.concatenate(count(storage)))

    asked = {"columns": [column.name for column in columns], "cells": cells}
    answer: np.ndarray = vault._ask(query, noise.event, look, asked)
    return answer.astype(float)


def _listed(columns: list[Column]) -> str:
    names = [column.name for column in columns]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def most_codes(budget: Budget, columns: int, rows: int) -> int:
    """How many codes a column of categories has at most where its grouping is left open.

    With c codes a cell of a relation with a yes or no holds n / (2 c) rows on average, which is to
    be no less than noise, as for two columns of bins.

    >>> [most_codes(Budget(1.0, 1e-9), 6, rows) for rows in (500, 5_000, 50_000)]
    [32, 177, 400]
    """
    useful = _useful_bins(budget, columns, rows) ** 2 / 2
    return round(min(max(useful, FEWEST_CATEGORIES), MOST_CATEGORIES))


def _keeps_codes(column: Column, useful: float, most: int) -> bool:
    """Whether a value or a category each is what relations are counted in.

    Neighbours can go together where there is an order; where there is none, what goes together is
    lost to relations, so that lists may be longer. Of the values of a number, some may be there for
    generous bounds alone, and noise leaves rows at them that no later step can tell from others.
    """
    if column.kind == "categorical":
        return column.cells <= most
    if not column.is_numeric:
        return column.cells <= useful
    return column.has_single_values and column.cells <= useful**2 / ROWS_AT_A_VALUE


def _useful_bins(budget: Budget, columns: int, rows: int) -> float:
    """With b bins a column, a cell of two columns holds n / b^2 rows on average.

    That is to be no less than the noise of counting every column once with the whole budget, or
    bins starve.
    """
    return math.sqrt(rows / count_noise(budget, budget.whole, columns).deviation)


def _bins(useful: float) -> int:
    return round(min(max(useful, FEWEST_BINS), MOST_BINS))
