"""Rows that are made and written in parts, so that no more than one part is in memory.

Up to a million rows are made together. More are made in blocks of half a million, each drawn from
the model by itself, weighed, and given its replicates by what was drawn for the first one; a block
leaves as a file, and all of them are joined to one in the end. The blocks are a part of what a
release is, as the draw of a block is balanced in itself: the same seed gives the same rows
whatever is read or written at a time.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.bundle.descriptor import TABLE
from counterpoise.bundle.models import model_type
from counterpoise.bundle.stored_rows import OwnFolder, StoredRows
from counterpoise.bundle.weight_columns import weight_names
from counterpoise.disk import plainly
from counterpoise.errors import BundleError
from counterpoise.schema import Schema
from counterpoise.schema.tables import join_parquet, write_parquet
from counterpoise.weights.replicates import can_replicate_in_parts

# Up to here rows are made at once; beyond, so many at a time.
MADE_TOGETHER, BLOCK_ROWS = 1_000_000, 500_000


def goes_in_parts(rows: int, weights: Any) -> bool:
    """Whether so many rows are made in parts; `weights` is a weighter, or the model of one.

    Methods whose replicates need all rows at once, such as networks, make them at once.

    >>> from counterpoise.weights import Logistic, Moments
    >>> [goes_in_parts(2_000_000, weights) for weights in (Moments(), Logistic())]
    [True, False]
    """
    kind = weights if hasattr(weights, "weigh") else model_type(type(weights))
    return rows > MADE_TOGETHER and can_replicate_in_parts(kind)


def block_sizes(rows: int) -> list[int]:
    """The rows of every block, nearly the same for all.

    >>> block_sizes(1_100_000)
    [366666, 366667, 366667]
    """
    count = -(-rows // BLOCK_ROWS)
    return [rows * (place + 1) // count - rows * place // count for place in range(count)]


def check_room(rows: int, schema: Schema, replicates: int, folder: Path | None) -> None:
    """Refuse rows that the disk has no room for, before anything is paid for.

    They are written twice for a while: in parts, and joined.
    """
    if rows <= MADE_TOGETHER:
        return
    place = Path(tempfile.gettempdir()) if folder is None else folder
    needed = 2 * rows * (8 * (len(schema) + 1) + 4 * replicates)
    while not place.exists() and place != place.parent:
        place = place.parent
    with plainly(place, "used for the rows"):
        free = shutil.disk_usage(place).free
    if needed > free:
        raise BundleError(
            f"rows: {rows:,} rows with {replicates} replicate weights need {needed / 1e9:.1f} GB "
            f"in {place} while they are made, and {free / 1e9:.1f} GB are free; state a `work` "
            "folder on a larger disk, or fewer rows or replicates"
        )


@dataclass(eq=False)
class RowsWriter:
    """Rows that are written a block at a time, to a folder of their own."""

    schema: Schema
    replicates: int
    parent: Path | None = None
    folder: OwnFolder = field(init=False)
    files: list[Path] = field(default_factory=list)
    rows: int = 0

    def __post_init__(self) -> None:
        with plainly(self.parent or tempfile.gettempdir()):
            self.folder = OwnFolder(self.parent)

    def add(self, table: pd.DataFrame, replicates: np.ndarray | None) -> None:
        """Write a block: its columns and the weight, and its replicates."""
        file = self.folder.path / f"block_{len(self.files):05d}.parquet"
        if replicates is not None:
            names = weight_names(self.replicates)[1:]
            columns = pd.DataFrame(replicates, columns=names, index=table.index)
            table = pd.concat([table, columns], axis=1)
        # Read once, and gone: not worth packing.
        write_parquet(table, file, compression="uncompressed")
        self.files.append(file)
        self.rows += len(table)

    def finish(self) -> StoredRows:
        """Join the blocks to one file."""
        file = self.folder.path / TABLE
        join_parquet(self.files, file)
        for block in self.files:
            block.unlink()
        return StoredRows.written(file, self.schema, self.rows, self.replicates, self.folder)


class Sizes:
    """Kish's effective sample sizes of columns, (sum w)^2 / sum w^2, added up over blocks.

    >>> sizes = Sizes(2)
    >>> sizes.add(np.array([[1.0, 2.0]]))
    >>> sizes.add(np.array([[1.0, 0.0]]))
    >>> sizes.found
    array([2., 1.])
    """

    def __init__(self, count: int):
        self._totals, self._squares = np.zeros(count), np.zeros(count)

    def add(self, columns: np.ndarray) -> None:
        """Add the rows of a block."""
        for place, column in enumerate(columns.T):
            doubled = column.astype(np.float64)
            self._totals[place] += doubled.sum()
            self._squares[place] += doubled @ doubled

    @property
    def found(self) -> np.ndarray:
        """The sizes of all rows so far."""
        return np.asarray(self._totals**2 / np.maximum(self._squares, 1e-300))
