"""Whole numbers that are added up over coded rows: exact, so in any order and parts the same.

What is added up is a public function of rows that is handed to the storage, so that it can run
where the rows are. [PRIVACY: ground rule 6]
"""

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from counterpoise.schema import Coded
from counterpoise.vault.boundary import NeverCopied


class PrivateRows(NeverCopied, Coded):
    """Coded rows of a private table, and whatever part is taken of them."""


class Summand(Protocol):
    """A public function of rows: the sum, over these rows, of one vector of whole numbers a row."""

    @property
    def size(self) -> int:
        """The length of the vectors."""
        ...

    def __call__(self, rows: Coded) -> np.ndarray:
        """The sum over these rows, as int64."""
        ...


def added_up(batches: Iterable[Coded], summand: Summand) -> np.ndarray:
    """The sum over all batches."""
    found = np.zeros(summand.size, dtype=np.int64)
    for rows in batches:
        found += summand(rows)
    return found


def unit_counts(coded: Coded, place: int, cells: int) -> np.ndarray:
    """The rows in each of `cells` equal parts of a column's range, without the nulls."""
    present = coded.codes[:, place] != coded.schema.columns[place].null_code
    units = coded.units[present, place]
    # Within the range before they are whole numbers, whatever they are.
    inside = np.fmin(np.fmax(units * cells, 0), cells - 1)
    return np.bincount(inside.astype(np.int64), minlength=cells)
