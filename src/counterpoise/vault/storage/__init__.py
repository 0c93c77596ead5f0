"""Where private rows are kept while a vault is open: in memory as codes, or in DuckDB.

Both answer the same few exact questions, to the vault's queries only: counts of cliques, rows
in batches, and counts of single columns under provisional codings. Small files are coded into
memory; large ones stay where they are and are scanned by DuckDB, so they may be larger than
memory. With `People` every storage lets go of the rows beyond the bound before it answers anything.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

import duckdb
import numpy as np

from counterpoise.errors import VaultError
from counterpoise.schema import (
    Coded,
    Column,
    Schema,
    check_columns,
    read_table,
    table_columns,
)
from counterpoise.vault.storage.memory import MemoryStorage
from counterpoise.vault.storage.out_of_core import DuckDBStorage
from counterpoise.vault.storage.people import People, bounded

__all__ = ["People", "Storage", "StorageKind", "open_storage"]

StorageKind = Literal["auto", "memory", "duckdb"]

# Files below this many bytes are coded into memory, which makes repeated counts quicker.
_SMALL_FILE = 64 * 2**20


class Storage(Protocol):
    """Exact answers about private rows; for the vault's queries alone."""

    def rows(self) -> int:
        """The number of rows."""
        ...

    def counts(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The contingency table of each clique."""
        ...

    def unit_counts(self, column: str, cells: int) -> np.ndarray:
        """Rows in each of `cells` equal parts of a column's range, without the nulls."""
        ...

    def provisional_counts(self, column: Column) -> np.ndarray:
        """Rows in each cell of a column coded as `column` says, the nulls last."""
        ...

    def distinct(self, column: str) -> tuple[list[str], np.ndarray]:
        """The values of a column that the schema does not list, as text, and their counts."""
        ...

    def batches(self, rows: int) -> Iterator[Coded]:
        """All rows, at most about `rows` at a time."""
        ...

    def require_uncoded(self) -> None:
        """Refuse when it is too late to say more of the domain."""
        ...

    def settle(self, schema: Schema) -> None:
        """Go on with a schema that says more of the same columns."""
        ...

    def close(self) -> None:
        """Let go of the rows."""
        ...


def open_storage(
    table: Any, schema: Schema, kind: StorageKind = "auto", people: People | None = None
) -> Storage:
    """Open the storage that suits the table; errors never quote what is in it.

    With `people` it has at most so many rows of each person, whatever it is asked.
    """
    columns = table_columns(table, schema.dialect)
    check_columns(columns, schema)
    if people is not None:
        people.require_apart(schema)
        people.require_in(columns)
    is_file = isinstance(table, str | os.PathLike)
    can_stay = is_file or isinstance(table, duckdb.DuckDBPyRelation)
    if kind not in ("auto", "memory", "duckdb"):
        raise VaultError(f"storage: expected 'auto', 'memory' or 'duckdb', not {kind!r}")
    if kind == "duckdb" and not can_stay:
        raise VaultError("storage='duckdb' takes a file or a DuckDB relation")
    is_small = not can_stay or (is_file and os.path.getsize(table) < _SMALL_FILE)
    if kind == "memory" or (kind == "auto" and is_small):
        if people is None:
            return MemoryStorage(read_table(table, schema.names, schema.dialect), schema)
        frame = read_table(table, (*schema.names, people.column), schema.dialect)
        return MemoryStorage(bounded(frame, schema, people), schema)
    return DuckDBStorage(table, schema, people)
