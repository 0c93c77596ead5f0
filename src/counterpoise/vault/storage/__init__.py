"""Where private rows are kept while a vault is open: in memory as codes, in DuckDB, or on Spark.

All answer the same few exact questions, to the vault's queries only: counts of cliques, sums of
whole numbers, counts of single columns under provisional codings, and rows in batches, which Spark
does not give. Small files are coded into memory; large ones stay where they are and are scanned by
DuckDB, so they may be larger than memory; Spark's tables may be larger than a machine. With
`People` every storage lets go of the rows beyond the bound before it answers anything.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol, get_args

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
from counterpoise.vault.storage.adding import Summand
from counterpoise.vault.storage.memory import MemoryStorage
from counterpoise.vault.storage.out_of_core import DuckDBStorage
from counterpoise.vault.storage.people import People, bounded
from counterpoise.vault.storage.spark import SparkStorage
from counterpoise.vault.storage.spark_frames import is_frame, is_named, spark_frame

__all__ = ["People", "Storage", "StorageKind", "Summand", "open_storage"]

StorageKind = Literal["auto", "memory", "duckdb", "spark"]

# Files below this many bytes are coded into memory, which makes repeated counts quicker.
_SMALL_FILE = 64 * 2**20


class Storage(Protocol):
    """Exact answers about private rows; for the vault's queries alone."""

    def rows(self) -> int:
        """The number of rows."""
        ...

    def persons(self) -> np.ndarray:
        """Of bounded persons, how many have no more rows than stay, and how many have more."""
        ...

    def counts(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The contingency table of each clique."""
        ...

    def unit_counts(self, column: str, cells: int) -> np.ndarray:
        """Rows in each of `cells` equal parts of a column's range, without the nulls."""
        ...

    def provisional_counts(self, columns: Sequence[Column]) -> list[np.ndarray]:
        """Rows in each cell of columns coded as they say, the nulls last; one pass for all."""
        ...

    def distinct(self, column: str) -> tuple[list[str], np.ndarray]:
        """The values of a column that the schema does not list, as text, and their counts."""
        ...

    def add_up(self, summand: Summand, rows: int) -> np.ndarray:
        """The sum of whole numbers that a public function makes of about `rows` rows at a time."""
        ...

    def batches(self, rows: int) -> Iterator[Coded]:
        """All rows, at most about `rows` at a time."""
        ...

    def require_batches(self, query: str) -> None:
        """Refuse a query that needs `batches` where no row is given away; before it is charged."""
        ...

    def require_portable(self, summand: Summand) -> None:
        """Refuse what cannot be sent to where the rows are; before it is charged."""
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
    kinds = get_args(StorageKind)
    if kind not in kinds:
        *others, last = map(repr, kinds)
        raise VaultError(f"storage: expected {', '.join(others)} or {last}, not {kind!r}")
    is_sparks = is_frame(table) or is_named(table)
    if is_sparks and kind not in ("auto", "spark"):
        raise VaultError(f"storage={kind!r} takes no table of Spark's; its rows stay there")
    if kind == "spark" and not is_sparks:
        raise VaultError("storage='spark' takes a frame of Spark's, or 'spark:database.table'")
    frame = spark_frame(table) if is_sparks else None
    columns = table_columns(table, schema.dialect) if frame is None else tuple(frame.columns)
    check_columns(columns, schema)
    if people is not None:
        people.require_apart(schema)
        people.require_in(columns)
    if frame is not None:
        return SparkStorage(frame, schema, people)
    is_file = isinstance(table, str | os.PathLike)
    can_stay = is_file or isinstance(table, duckdb.DuckDBPyRelation)
    if kind == "duckdb" and not can_stay:
        raise VaultError("storage='duckdb' takes a file or a DuckDB relation")
    is_small = not can_stay or (is_file and os.path.getsize(table) < _SMALL_FILE)
    if kind == "memory" or (kind == "auto" and is_small):
        if people is None:
            return MemoryStorage(read_table(table, schema.names, schema.dialect), schema)
        rows = read_table(table, (*schema.names, people.column), schema.dialect)
        kept, persons = bounded(rows, schema, people)
        return MemoryStorage(kept, schema, persons)
    return DuckDBStorage(table, schema, people)
