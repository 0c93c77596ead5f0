"""Contingency tables from codes, block by block: many tables in one pass over the rows.

A block is the codes of some rows, one array a column, of any width of integers. All that is held is
a block and the tables that are being filled, and counts are whole numbers, so that blocks may come
in any order and size.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from counterpoise.schema import Schema

# Blocks of so many rows stay near the processor, and are long enough for what each costs by itself.
ROWS_A_BLOCK = 65_536

# One pass counts cliques of so many cells together, eight bytes each.
_CELLS_A_PASS = 2**23

# A table with more cells than this for each row of a block is not walked through for every block.
_CELLS_A_ROW = 4


def code_kinds(sizes: Sequence[int]) -> list[np.dtype]:
    """The narrowest integers that hold the codes of each column.

    >>> [str(kind) for kind in code_kinds((2, 256, 257))]
    ['uint8', 'uint8', 'uint16']
    """
    return [np.min_scalar_type(size - 1) for size in sizes]


def counted_together(
    cliques: Iterable[tuple[str, ...]], schema: Schema
) -> Iterator[list[tuple[str, ...]]]:
    """Cliques in parts that are counted in one pass each."""
    part: list[tuple[str, ...]] = []
    cells = 0
    for clique in cliques:
        more = math.prod(schema.shape(clique))
        if part and cells + more > _CELLS_A_PASS:
            yield part
            part, cells = [], 0
        part.append(clique)
        cells += more
    if part:
        yield part


def cells_of(
    codes: Sequence[np.ndarray], clique: Sequence[int], sizes: Sequence[int]
) -> np.ndarray:
    """The cell of every row of a block in the table of a clique, by the places of its columns.

    >>> cells_of([np.array([1, 0]), np.array([2, 1])], (0, 1), (2, 3)).tolist()
    [5, 1]
    """
    most = math.prod(sizes[place] for place in clique)
    first, *others = clique
    # Narrow integers are worked on several at a time.
    cell = codes[first].astype(np.min_scalar_type(most) if most < 2**32 else np.int64)
    for place in others:
        cell *= sizes[place]
        np.add(cell, codes[place], out=cell, casting="unsafe")
    return cell


def tabulated(
    blocks: Iterable[Sequence[np.ndarray]], cliques: Sequence[tuple[str, ...]], schema: Schema
) -> list[np.ndarray]:
    """The contingency table of each clique."""
    places = [tuple(map(schema.index, clique)) for clique in cliques]
    shapes = [schema.shape(clique) for clique in cliques]
    tables = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
    for codes in blocks:
        for clique, table in zip(places, tables, strict=True):
            cell = cells_of(codes, clique, schema.sizes)
            if len(table) <= _CELLS_A_ROW * len(cell):
                table += np.bincount(cell, minlength=len(table))
            else:
                np.add.at(table, cell, 1)
    return [table.reshape(shape) for table, shape in zip(tables, shapes, strict=True)]
