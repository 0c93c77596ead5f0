"""Private rows where they are, scanned by DuckDB: for files and tables larger than memory.

DuckDB reads the columns that a question is about, and hands over a block of rows at a time, which
is coded and counted as rows in memory are; the rows of a file are never loaded. Codes, a byte or
two a value, are kept in memory from the first counts on if all of them fit a limit, because
selection asks again; if not, each pass reads the file anew. A relation of the caller's is run once
and its result is kept in memory: run again, it might give other rows, and a row could count any
number of times. Our connection may not spill to disk, and such a result that had to be spilled is
refused. DuckDB's errors quote rows, so they are replaced.

Where persons are bounded, the rows that do not stay are found once, some persons at a time. Of a
Parquet file, their numbers in it are kept, and every scan leaves them out; the file must not change
meanwhile, and one that did is refused. Text files have no such numbers that can be relied on, so
that they are kept in memory as relations are, without the rows that do not stay.
"""

import contextlib
import math
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np

from counterpoise.disk import plainly
from counterpoise.errors import TableError
from counterpoise.schema import (
    Coded,
    Column,
    Schema,
    as_relation,
    private_errors,
)
from counterpoise.schema.files import ROW_NUMBER, connect, is_parquet
from counterpoise.schema.quoting import quote_name
from counterpoise.schema.readings import coded, codes_of, readings_of, readings_sql
from counterpoise.schema.sql import text_expression
from counterpoise.vault.boundary import NeverCopied
from counterpoise.vault.storage.adding import PrivateRows, Summand, added_up, unit_counts
from counterpoise.vault.storage.cache import CountCache
from counterpoise.vault.storage.people import (
    PLACE,
    People,
    cells_of,
    counted,
    identified_rows,
    person_expression,
    surplus,
)
from counterpoise.vault.storage.tabulating import (
    ROWS_A_BLOCK,
    code_kinds,
    counted_together,
    tabulated,
)

_MEMORY_LIMIT = "1GB"

# Codes of more bytes than this are not kept.
_MOST_BYTES_KEPT = 2**30

# The database hands over rows in so many at a time.
_VECTOR = 2048

# Persons are bounded in parts of about this many rows, which have some 200 bytes each while sorted.
_ROWS_BOUNDED_AT_ONCE = 1_000_000


class DuckDBStorage(NeverCopied):
    """A file or a DuckDB relation; a question is a scan, and codes and counts are remembered."""

    def __init__(self, table: Any, schema: Schema, people: People | None = None):
        self._stated = schema
        self._schema = schema.as_released()
        self._connection = connect(memory_limit=_MEMORY_LIMIT)
        self._connection.execute("SET preserve_insertion_order = false")
        stays = people is not None and is_parquet(table)
        self._relation = as_relation(table, self._connection, schema.dialect, is_numbered=stays)
        self._is_ours = self._relation is not table
        is_run = not self._is_ours or (people is not None and not stays)
        # A table of ours, and the number of a row in it.
        self._kept = f"counterpoise_{uuid.uuid4().hex}" if is_run else ""
        self._number = f"{self._kept}_row"
        self._cache = CountCache()
        self._codes: list[list[np.ndarray]] | None = None
        self._file: tuple[Any, tuple[int, ...]] | None = None
        # Persons within the bound and beyond it, where they are bounded.
        self._persons: np.ndarray | None = None
        if self._kept:
            self._run_once(people)
        elif people is not None:
            self._file = table, _state_of(table)
            self._leave_out(people)

    def rows(self) -> int:
        """The number of rows."""
        return int(self._ask("SELECT count(*) AS n FROM private_rows")["n"][0])

    def persons(self) -> np.ndarray:
        """Of bounded persons, how many have no more rows than stay, and how many have more."""
        self._require_unchanged()
        assert self._persons is not None
        return self._persons

    def counts(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The contingency table of each clique."""
        self._schema.require_complete()
        known = {clique: self._cache.get(clique) for clique in cliques}
        found = {clique: table for clique, table in known.items() if table is not None}
        unknown = [clique for clique in known if clique not in found]
        for part in counted_together(unknown, self._schema):
            for clique, table in zip(part, self._tabulated(part), strict=True):
                found[clique] = table
                self._cache.keep(clique, table)
        return [found[clique] for clique in cliques]

    def unit_counts(self, column: str, cells: int) -> np.ndarray:
        """Rows in each of `cells` equal parts of a column's range, without the nulls."""
        alone = self._schema.select([column])
        counts = np.zeros(cells, dtype=np.int64)
        for found in self._read(tuple(alone), ROWS_A_BLOCK):
            counts += unit_counts(self._coded(alone, found), 0, cells)
        return counts

    def provisional_counts(self, columns: Sequence[Column]) -> list[np.ndarray]:
        """Rows in each cell of columns coded as they say, the nulls last."""
        counts = [np.zeros(column.size, dtype=np.int64) for column in columns]
        for found in self._read(columns, ROWS_A_BLOCK):
            every = zip(columns, readings_of(columns, found), counts, strict=True)
            for column, reading, count in every:
                count += np.bincount(codes_of(column, *reading), minlength=column.size)
        return counts

    def distinct(self, column: str) -> tuple[list[str], np.ndarray]:
        """The values of a column that the schema does not list, as text, and their counts."""
        text = text_expression(self._schema[column], missing_values=self._schema.missing_values)
        found = self._ask(
            f"SELECT value, count(*) AS n FROM (SELECT {text} AS value FROM private_rows) "
            "WHERE value IS NOT NULL GROUP BY value"
        )
        return [str(value) for value in found["value"]], np.asarray(found["n"], dtype=np.int64)

    def add_up(self, summand: Summand, rows: int) -> np.ndarray:
        """The sum of whole numbers that a public function makes of the rows; see `Summand`."""
        return added_up(self.batches(rows), summand)

    def batches(self, rows: int) -> Iterator[Coded]:
        """All rows, at most about `rows` at a time."""
        self._schema.require_complete()
        for found in self._read(tuple(self._schema), rows):
            yield self._coded(self._schema, found)

    def require_batches(self, query: str) -> None:
        """Nothing to refuse: the rows come in parts."""

    def require_portable(self, summand: Summand) -> None:
        """Nothing to refuse: the work is done here."""

    def require_uncoded(self) -> None:
        """Always so: the rows stay as they are, and are coded anew."""

    def settle(self, schema: Schema) -> None:
        """Go on with a schema that says more of the same columns."""
        self._schema = schema
        self._forget()

    def close(self) -> None:
        """Let go of the table, and of the codes and counts that were remembered."""
        self._forget()
        if self._kept:
            self._drop()
        del self._relation
        self._connection.close()

    def _forget(self) -> None:
        self._cache.clear()
        self._codes = None

    def _run_once(self, people: People | None) -> None:
        """Run the caller's relation, and go on with what came out of it."""
        columns = [*self._schema.names] + ([people.column] if people is not None else [])
        names = ", ".join(quote_name(name) for name in columns)
        keep = (
            f"CREATE TEMP TABLE {self._kept} AS "
            f"SELECT {names}, row_number() OVER () AS {self._number} FROM private_rows"
        )
        what = "the private table" if self._is_ours else "the relation"
        with private_errors(what):
            try:
                self._relation.query("private_rows", keep)
                if people is not None:
                    left_out = self._surplus(people, self._kept, self._number)
                    self._run(f"DELETE FROM {self._kept} WHERE {self._number} IN (FROM {left_out})")
                    self._run(f"DROP TABLE {left_out}")
                    person = quote_name(people.column)
                    self._run(f"ALTER TABLE {self._kept} DROP COLUMN {person}")
                kept = self._relation.query("private_rows", f"SELECT * FROM {self._kept}")
                assert kept is not None
                self._relation = kept
                spilled = self._ask("SELECT count(*) AS n FROM duckdb_temporary_files()")["n"][0]
            except BaseException:
                self._drop()
                raise
        if spilled:
            self._drop()
            raise TableError(
                f"{what} does not fit into memory, and would be written to disk as it is; "
                "write it to a Parquet file of your own, and hand over its path"
            )

    def _leave_out(self, people: People) -> None:
        """Go on without the rows of a Parquet file that are beyond the bound."""
        numbered = "numbered_rows"
        with private_errors("the private table"):
            self._relation.create_view(numbered)
            left_out = self._surplus(people, numbered, ROW_NUMBER)
            self._relation = self._connection.sql(
                f"SELECT * EXCLUDE ({ROW_NUMBER}) FROM {numbered} "
                f"ANTI JOIN {left_out} ON {numbered}.{ROW_NUMBER} = {left_out}.{PLACE}"
            )

    def _surplus(self, people: People, rows: str, place: str) -> str:
        """The name of a table of the places of all rows that do not stay; counts the persons."""
        name = f"counterpoise_{uuid.uuid4().hex}"
        self._run(f"CREATE TEMP TABLE {name} ({PLACE} BIGINT)")
        person = person_expression(people, self._stated)
        count = int(self._ask(f"SELECT count(*) AS n FROM {rows}")["n"][0])
        parts = math.ceil(count / _ROWS_BOUNDED_AT_ONCE)
        self._persons = np.zeros(2, dtype=np.int64)
        for part in range(parts):
            # All rows of a person are in one part, and so are those of nobody.
            here = f"hash({person}) % {parts} = {part}"
            some = identified_rows(rows, place, here, people, self._stated)
            self._run(f"INSERT INTO {name} {surplus(f'({some})', people)}")
            self._persons += cells_of(self._ask(counted(f"({some})", people)))
        return name

    def _run(self, statement: str) -> None:
        """Run a statement where the rows are."""
        self._relation.query("private_rows", statement)

    def _drop(self) -> None:
        with contextlib.suppress(duckdb.Error):
            self._relation.query("private_rows", f"DROP TABLE IF EXISTS {self._kept}")

    def _tabulated(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The tables of a few cliques, in one pass over the codes, kept or not."""
        return tabulated(
            self._blocks() if self._codes is None else self._codes, cliques, self._schema
        )

    def _blocks(self) -> Iterator[list[np.ndarray]]:
        """The codes of all rows; they are kept if all of them fit."""
        kinds = code_kinds(self._schema.sizes)
        kept: list[list[np.ndarray]] = []
        size = 0
        for found in self._read(tuple(self._schema), ROWS_A_BLOCK):
            every = zip(self._schema, readings_of(self._schema, found), kinds, strict=True)
            block = [codes_of(column, *reading).astype(kind) for column, reading, kind in every]
            size += sum(codes.nbytes for codes in block)
            if size <= _MOST_BYTES_KEPT:
                kept.append(block)
            else:
                kept.clear()
            yield block
        if size <= _MOST_BYTES_KEPT:
            self._codes = kept

    def _coded(self, schema: Schema, found: Mapping[str, np.ndarray]) -> Coded:
        read = coded(schema, len(found["r0"]), readings_of(schema, found))
        return PrivateRows(schema, read.codes, read.units)

    def _ask(self, sql: str) -> dict[str, np.ndarray]:
        self._require_unchanged()
        with private_errors("the private table"):
            answer = self._relation.query("private_rows", sql)
            assert answer is not None
            return answer.fetchnumpy()

    def _read(self, columns: Sequence[Column], rows: int) -> Iterator[Mapping[str, np.ndarray]]:
        """What columns are coded from, of all rows, at most about `rows` at a time.

        They are read as the private table spells them.
        """
        spelled = [
            replace(column, spelling=self._stated[column.name].spelling) for column in columns
        ]
        sql = f"SELECT {readings_sql(spelled, self._schema.missing_values)} FROM private_rows"
        if not self._is_ours:
            yield from self._parts(sql, rows)
            return
        self._require_unchanged()
        with private_errors("the private table"):
            self._relation.create_view("private_rows", replace=True)
            result = self._connection.execute(sql)
            while len(frame := result.fetch_df_chunk(max(1, rows // _VECTOR))):
                yield {str(name): frame[name].to_numpy() for name in frame}

    def _parts(self, sql: str, rows: int) -> Iterator[Mapping[str, np.ndarray]]:
        """A relation of the caller's has no result to stream: ask for some numbers at a time."""
        last = self._ask(f"SELECT max({self._number}) AS n FROM private_rows")["n"]
        for start in range(0, int(np.ma.filled(last, 0)[0]), rows):
            some = f"{self._number} > {start} AND {self._number} <= {start + rows}"
            found = self._ask(f"{sql} WHERE {some}")
            if len(found["r0"]):
                yield found

    def _require_unchanged(self) -> None:
        """Refuse a file in which the numbers of rows may mean others by now."""
        if self._file is not None and _state_of(self._file[0]) != self._file[1]:
            raise TableError(
                "the private table was written to while it was in use; let it be as it is until "
                "the work is done"
            )


def _state_of(path: Any) -> tuple[int, ...]:
    with plainly(path, "read", TableError):
        found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns
