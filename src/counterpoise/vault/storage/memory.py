"""Private rows in memory, as codes and unit-box values; the table itself is let go.

The rows are coded when codes are first asked for. Until then the domain may still be settled:
bounds and categories that were paid for, bins that were chosen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from counterpoise.errors import VaultError
from counterpoise.schema import Coded, Column, Schema
from counterpoise.schema.reading import distinct_texts
from counterpoise.vault.boundary import NeverCopied
from counterpoise.vault.storage.adding import PrivateRows, Summand, added_up, unit_counts
from counterpoise.vault.storage.cache import CountCache
from counterpoise.vault.storage.tabulating import ROWS_A_BLOCK, counted_together, tabulated


class MemoryStorage(NeverCopied):
    """Codes in memory; counts are remembered, because selection asks for them again."""

    def __init__(self, table: pd.DataFrame, schema: Schema, persons: np.ndarray | None = None):
        self._stated = schema
        self._schema = schema.as_released()
        self._rows = len(table)
        self._persons = persons  # within the bound and beyond it, where they are bounded
        self._cache = CountCache()
        self._raw: pd.DataFrame | None = table[list(schema.names)]
        self._coded: Coded | None = None

    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    def persons(self) -> np.ndarray:
        """Of bounded persons, how many have no more rows than stay, and how many have more."""
        assert self._persons is not None
        return self._persons

    def counts(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The contingency table of each clique."""
        known = {clique: self._cache.get(clique) for clique in cliques}
        found = {clique: table for clique, table in known.items() if table is not None}
        unknown = [clique for clique in known if clique not in found]
        for part in counted_together(unknown, self._schema):
            for clique, table in zip(
                part, tabulated(self._blocks(), part, self._schema), strict=True
            ):
                found[clique] = table
                self._cache.keep(clique, table)
        return [found[clique] for clique in cliques]

    def unit_counts(self, column: str, cells: int) -> np.ndarray:
        """Rows in each of `cells` equal parts of a column's range, without the nulls."""
        return unit_counts(self._complete(), self._schema.index(column), cells)

    def provisional_counts(self, columns: Sequence[Column]) -> list[np.ndarray]:
        """Rows in each cell of columns coded as they say, the nulls last."""
        self.require_uncoded()
        assert self._raw is not None
        words, found = self._schema.missing_values, []
        for column in columns:
            spelled = replace(column, spelling=self._stated[column.name].spelling)
            coded = Schema((spelled,), words).encode(self._raw[[column.name]])
            found.append(np.bincount(coded.codes[:, 0], minlength=column.size))
        return found

    def distinct(self, column: str) -> tuple[list[str], np.ndarray]:
        """The values of a column that the schema does not list, as text, and their counts."""
        self.require_uncoded()
        assert self._raw is not None
        words = self._schema.words_for_null(self._schema[column])
        positions, texts = distinct_texts(self._raw[column], words)
        found = np.bincount(positions[positions >= 0], minlength=len(texts))
        present = np.flatnonzero(found)
        return [str(texts[place]) for place in present], found[present]

    def add_up(self, summand: Summand, rows: int) -> np.ndarray:
        """The sum of whole numbers that a public function makes of the rows; see `Summand`."""
        return added_up(self.batches(rows), summand)

    def batches(self, rows: int) -> Iterator[Coded]:
        """All rows, at most `rows` at a time."""
        coded = self._complete()
        for start in range(0, self._rows, rows):
            yield coded.take(np.arange(start, min(start + rows, self._rows)))

    def require_batches(self, query: str) -> None:
        """Nothing to refuse: the rows are here."""

    def require_portable(self, summand: Summand) -> None:
        """Nothing to refuse: the work is done here."""

    def require_uncoded(self) -> None:
        """Refuse unless the rows are still as they came."""
        if self._raw is None:
            raise VaultError("the domain has to be settled before anything is counted or summed")

    def settle(self, schema: Schema) -> None:
        """Go on with a schema that says more of the same columns."""
        self.require_uncoded()
        self._schema = schema

    def close(self) -> None:
        """Let go of the rows."""
        self._raw = self._coded = None
        self._cache.clear()

    def _complete(self) -> Coded:
        if self._coded is None:
            self._schema.require_complete()
            # Read as the private table is spelled, coded as what is released.
            read = self._schema.read_as(self._stated).encode(self._raw)
            self._coded = PrivateRows(self._schema, read.codes, read.units)
            self._raw = None
        return self._coded

    def _blocks(self) -> Iterator[list[np.ndarray]]:
        codes = self._complete().codes
        for start in range(0, self._rows, ROWS_A_BLOCK):
            yield [*codes[start : start + ROWS_A_BLOCK].T]
