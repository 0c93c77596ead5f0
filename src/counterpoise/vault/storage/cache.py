"""Exact contingency tables that were counted already, because selection asks for them again."""

import numpy as np

from counterpoise.vault.boundary import NeverCopied

# Eight bytes a cell: at most 80 MB.
_MOST_CELLS = 10_000_000


class CountCache(NeverCopied):
    """Tables by clique, kept up to a total of cells; it lives and dies inside a storage."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, ...], np.ndarray] = {}
        self._cells = 0

    def get(self, clique: tuple[str, ...]) -> np.ndarray | None:
        """The table of a clique, if it is here."""
        return self._tables.get(clique)

    def keep(self, clique: tuple[str, ...], table: np.ndarray) -> None:
        """Keep a table if there is room; it is read-only from now on."""
        table.setflags(write=False)
        if self._cells + table.size <= _MOST_CELLS:
            self._tables[clique] = table
            self._cells += table.size

    def clear(self) -> None:
        """Forget everything."""
        self._tables.clear()
        self._cells = 0
