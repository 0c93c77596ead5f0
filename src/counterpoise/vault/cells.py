"""The coding of numbers: fine cells for a column by itself, coarse ones for its relations.

Every open column is counted once on its fine public grid, all of them in one query: one record is
one count a column, as in as many one-way tables. What the noisy histograms show is then public: the
shape of each column, and the coarse cells in which its relations will be counted. How fine the
grids are follows from the number of rows and the noise, so that few rows have few cells.
[PRIVACY: mechanisms]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.schema import NoisyCells, Schema, denoised, fine_grid, provisional, settled
from counterpoise.vault.asked import share_of
from counterpoise.vault.budget import Budget, Share
from counterpoise.vault.counting import count_noise
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

# Fine cells of a column: so many for each deviation of the noise that the rows make up, and no more
# than these. Where fewer are left, a fine histogram is noise, and bins of equal width do better.
CELLS_A_DEVIATION = 1.5
FEWEST_CELLS, MOST_CELLS = 24, 400


def choose_bins(vault: Vault, share: Share | None = None) -> Schema:
    """Choose the number of bins where none is stated; charges the number of rows if private."""
    vault._require_unsettled()
    rows = max(1, total(vault, share).value)
    schema = vault.schema.with_bins(_bins(_useful_bins(vault.budget, len(vault.schema), rows)))
    vault._settle(schema)
    return schema


def choose_cells(vault: Vault, share: Share, rows_share: Share | None = None) -> Schema:
    """Count every open column on a fine grid, and choose its coarse cells and its shape.

    Charges one event for all columns together, and the number of rows if that is private. Where
    there are too few rows for it, bins of equal width are chosen, and `share` is not spent.
    """
    vault._require_unsettled()
    share = share_of(share)
    rows = max(1, total(vault, rows_share).value)
    useful = _useful_bins(vault.budget, len(vault.schema), rows)
    open_columns = [
        column
        for column in vault.schema
        if column.has_open_cells and not (column.has_single_values and column.cells <= useful)
    ]
    schema = vault.schema.with_bins(_bins(useful))
    coarse = min(_bins(useful), max(_bins(COARSE_PART * useful), FEWEST_COARSE))
    # Two counts a row and column: of its cell, and of the group of cells that it is in.
    noise = count_noise(vault.budget, share, 2 * max(1, len(open_columns)))
    cells = round(min(CELLS_A_DEVIATION * rows / noise.deviation, MOST_CELLS))
    if not open_columns or cells < FEWEST_CELLS:
        vault._settle(schema)
        return schema
    grids = [fine_grid(column, cells) for column in open_columns]
    coded = [provisional(*pair) for pair in zip(open_columns, grids, strict=True)]

    groups = [grid.groups for grid in grids]

    def look(storage: Storage, source: Noise) -> np.ndarray:
        exact = []
        for column, group in zip(coded, groups, strict=True):
            counts = storage.provisional_counts(column)
            grouped = np.bincount(group, counts[: column.cells]).astype(np.int64)
            exact += [counts, grouped]
        return noise.add(source, np.concatenate(exact))

    names = [column.name for column in open_columns]
    asked = {"columns": names, "cells": cells}
    query = f"fine cells of {', '.join(names[:3])}" + (
        f" and {len(names) - 3} more" if len(names) > 3 else ""
    )
    noised = vault._ask(query, noise.event, look, asked).astype(float)
    variance = noise.deviation**2
    for column, grid, code, group in zip(open_columns, grids, coded, groups, strict=True):
        # Nulls have a code of their own, and are no part of the shape.
        counts, nulls, grouped, noised = np.split(
            noised, np.cumsum([code.cells, code.size - code.cells, group[-1] + 1])
        )
        variances = np.full(code.cells, variance)
        answer = NoisyCells.of(counts, variances, group, grouped, variance)
        found = denoised(grid, answer, max(1.0, rows - float(nulls.sum())))
        schema = schema.replace(settled(column, grid, found, coarse))
    vault._settle(schema)
    return schema


def _useful_bins(budget: Budget, columns: int, rows: int) -> float:
    """With b bins a column, a cell of two columns holds n / b^2 rows on average.

    That is to be no less than the noise of counting every column once with the whole budget, or
    bins starve.
    """
    return math.sqrt(rows / count_noise(budget, budget.whole, columns).deviation)


def _bins(useful: float) -> int:
    return round(min(max(useful, FEWEST_BINS), MOST_BINS))
