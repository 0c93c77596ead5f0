"""Replicate weights that stay in their file until somebody asks for them.

They are most of a large release: 80 columns beside its table. Loading finds damage by the file's
checksum, refuses what the file itself says are no weights, and leaves them there; the first
estimate reads them, and holds every value to the rules that those of a small release are held to.
A file that is not the one which was loaded by then has to have the checksum that was stated.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from counterpoise.bundle.rules import MEAN_TOLERANCE, check_weights, refused
from counterpoise.disk import hash_of, plainly
from counterpoise.errors import BundleError
from counterpoise.schema.files import as_relation, connect, errors_of
from counterpoise.schema.quoting import quote_name

WHAT = "the replicate weights of the table"
# With fewer numbers than this they are read at once, and the folder may then go.
MANY = 8_000_000
_COLUMNS_AT_ONCE = 8


@dataclass(frozen=True, eq=False)
class SavedReplicates:
    """The columns of a table's file, of which `hash` is stated; the file is as it was checked."""

    file: Path
    names: tuple[str, ...]
    rows: int
    hash: str
    stamp: tuple[int, ...]

    @classmethod
    def checked(cls, file: Path, names: list[str], rows: int, stated: str) -> SavedReplicates:
        """Refuse what is not one finite number from zero for each row, with some above zero.

        By the least and the most that the file states of its columns, without reading them.
        """
        stamp = stamp_of(file)
        asked = [
            f"{what}({quote_name(name)})" for name in names for what in ("count", "min", "max")
        ]
        with errors_of(file), connect() as connection:
            [found] = as_relation(file, connection).aggregate(", ".join(asked)).fetchall()
        counts, least, most = np.array(found, dtype=float).reshape(-1, 3).T
        if (counts != rows).any():
            raise BundleError(f"{WHAT}: expected finite numbers from zero")
        # What averages to one is nowhere more than the rows.
        if rows and not ((most <= rows * (1 + MEAN_TOLERANCE)).all() and (least >= 0).all()):
            raise BundleError(f"{WHAT}: expected finite numbers from zero, up to the rows")
        if rows and not (most > 0).all():
            raise BundleError(f"{WHAT}: expected some above zero")
        return cls(file, tuple(names), rows, stated, stamp)

    @cached_property
    def columns(self) -> np.ndarray:
        """The weights, rows x R; read once."""
        with plainly(self.file, "read"), refused(str(self.file)):
            if not self.file.is_file():
                raise BundleError(f"{self.file} is no longer there; load the release again")
            if stamp_of(self.file) != self.stamp and hash_of(self.file) != self.hash:
                raise BundleError(f"{self.file} was changed; get the release again")
            found = _read(self.file, self.names, self.rows)
            check_weights(found, self.rows, WHAT)
            return found


def _read(file: Path, names: tuple[str, ...], rows: int) -> np.ndarray:
    """Columns of a file as float32, rows x R, and NaN for null.

    A few at a time go to the place where they stay, so that all are held once, and each without
    gaps, as sums over rows and fits with a replicate take them.
    """
    found = np.empty((len(names), rows), dtype=np.float32)
    with errors_of(file), connect() as connection:
        relation = as_relation(file, connection)
        for start in range(0, len(names), _COLUMNS_AT_ONCE):
            some = names[start : start + _COLUMNS_AT_ONCE]
            asked = ", ".join(
                f"CAST({quote_name(name)} AS FLOAT) AS {quote_name(name)}" for name in some
            )
            arrays = relation.project(asked).fetchnumpy()
            for place, name in enumerate(some, start):
                found[place] = np.ma.filled(arrays[name], np.nan)
    return found.T


def stamp_of(file: Path) -> tuple[int, ...]:
    """What tells whether a file is still the one that it was, without reading it."""
    found = os.stat(file)
    return found.st_size, found.st_mtime_ns, found.st_ino
