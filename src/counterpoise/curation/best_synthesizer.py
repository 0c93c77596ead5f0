"""The synthesizer that `auto` stands for: the full table where rows outweigh its noise, else AIM.

From public knowledge, and at most a noisy number of rows; docs/methods/choosing.md has the study.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from counterpoise.schema import Column, Schema
from counterpoise.synthesizers.aim import NOISE_A_CELL
from counterpoise.synthesizers.histogram import Histogram
from counterpoise.synthesizers.response import MOST_CELLS
from counterpoise.vault import MOST_BINS, Budget

# Up to this many cells the full table is counted at any noise, and up to more where tables of three
# columns are counted beside it; beyond, where its noise misplaces at
# most this part of the rows, or of so many where their number is not known: fewer are hardly worth
# a release (docs/methods/choosing.md).
FEW_CELLS = 64
FEW_CELLS_WITH_PARTS = 160
FULL_TABLE_NOISE = 0.1
ASSUMED_ROWS = 1_000


def best_synthesizer(schema: Schema, budget: Budget, rows: float | None = None) -> str:
    """The method that `auto` stands for, from public knowledge and at most a noisy number of rows.

    The full table is taken where it has few cells, or where rows outweigh its noise, three-way
    tables are no noisier than if all were counted, and replicates can follow its cells.

    >>> schema = Schema([Column.boolean(name) for name in "abcdefgh"])
    >>> [best_synthesizer(schema, Budget(1.0, 1e-6), rows) for rows in (None, 10_000)]
    ['aim', 'histogram']
    """
    known = ASSUMED_ROWS if rows is None else max(1.0, rows)
    if schema.is_complete and _counts_all_cells(schema, budget, known):
        return "histogram"
    return "privbayes" if budget.is_pure else "aim"


def _counts_all_cells(schema: Schema, budget: Budget, rows: float) -> bool:
    cells = math.prod(_sizes(schema))
    has_parts = Histogram().parts_of(schema, is_pure=budget.is_pure)
    if cells <= (FEW_CELLS_WITH_PARTS if has_parts else FEW_CELLS):
        return True
    return (
        cells <= MOST_CELLS
        and full_table_noise(schema, budget, rows) <= FULL_TABLE_NOISE
        and _is_quieter_than_its_parts(_sizes(schema))
    )


def full_table_noise(schema: Schema, budget: Budget, rows: float) -> float:
    """The part of the rows that the noise of the full table would misplace, with all the budget.

    It is a total variation: half of the mean size of the noise on a cell, times cells, over rows.
    """
    euclidean, absolute = budget.count_sensitivity()
    # E|z| is sqrt(2/pi) s of Gaussian noise, and the scale itself of Laplace noise.
    if budget.is_pure:
        a_cell = budget.whole.laplace_scale(absolute)
    else:
        a_cell = NOISE_A_CELL * budget.whole.gaussian_scale(euclidean)
    return a_cell / 2 * math.prod(_sizes(schema)) / rows


def _is_quieter_than_its_parts(sizes: Sequence[int]) -> bool:
    """Whether three-way tables summed from the full one have less noise than if each was counted.

    A table of k of the K cells has sqrt(K / k) s on each of its cells, in place of sqrt(T) s for
    one of T tables that share the budget; this compares the sums over all cells of all tables.
    """
    parts = [math.prod(part) for part in itertools.combinations(sizes, min(3, len(sizes)))]
    summed = math.sqrt(math.prod(sizes)) * math.fsum(math.sqrt(cells) for cells in parts)
    return summed <= math.sqrt(len(parts)) * math.fsum(parts) * (1 + 1e-9)


def _sizes(schema: Schema) -> tuple[int, ...]:
    return tuple(_most_codes(column) for column in schema)


def _most_codes(column: Column) -> int:
    return MOST_BINS + column.nullable if column.has_open_bins else column.size
