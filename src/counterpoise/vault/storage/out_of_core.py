"""Private rows where they are, scanned by DuckDB: for files and tables larger than memory.

The coding of each column is a SQL expression, so contingency tables come from GROUP BY, many
of them in one scan by GROUPING SETS, and the rows of a file are never loaded. A relation of the
caller's is run once and its result is kept in memory: run again, it might give other rows, and a
row could count any number of times. Our connection may not spill to disk, and such a result that
had to be spilled is refused. DuckDB's errors quote rows, so they are replaced.

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
import pandas as pd

from counterpoise.disk import plainly
from counterpoise.errors import TableError
from counterpoise.schema import (
    Coded,
    Column,
    Schema,
    as_relation,
    code_expression,
    private_errors,
    unit_expression,
)
from counterpoise.schema.files import ROW_NUMBER, connect, is_parquet
from counterpoise.schema.quoting import quote_name
from counterpoise.schema.sql import text_expression
from counterpoise.vault.storage.adding import Summand, added_up
from counterpoise.vault.storage.cache import CountCache
from counterpoise.vault.storage.people import (
    PLACE,
    People,
    identified_rows,
    person_expression,
    surplus,
)

_MEMORY_LIMIT = "1GB"

# A scan answers this many cliques over this many columns: the hash tables stay small, and the
# grouping identifier stays within 63 bits.
_CLIQUES_A_SCAN = 64
_COLUMNS_A_SCAN = 48

_VECTOR = 2048

# What the database calls the place of a row in a table of its own.
_ROW = "rowid"

# Persons are bounded in parts of about this many rows, which have some 200 bytes each while sorted.
_ROWS_BOUNDED_AT_ONCE = 1_000_000


class DuckDBStorage:
    """A file or a DuckDB relation; every question is a scan, and counts are remembered."""

    def __init__(self, table: Any, schema: Schema, people: People | None = None):
        self._stated = schema
        self._schema = schema.as_released()
        self._connection = connect(memory_limit=_MEMORY_LIMIT)
        self._connection.execute("SET preserve_insertion_order = false")
        stays = people is not None and is_parquet(table)
        self._relation = as_relation(table, self._connection, schema.dialect, is_numbered=stays)
        self._is_ours = self._relation is not table
        is_run = not self._is_ours or (people is not None and not stays)
        self._kept = f"counterpoise_{uuid.uuid4().hex}" if is_run else ""
        self._cache = CountCache()
        self._file: tuple[Any, tuple[int, ...]] | None = None
        if self._kept:
            self._run_once(people)
        elif people is not None:
            self._file = table, _state_of(table)
            self._leave_out(people)

    def rows(self) -> int:
        """The number of rows."""
        return int(self._ask("SELECT count(*) AS n FROM private_rows")["n"][0])

    def counts(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The contingency table of each clique."""
        self._schema.require_complete()
        known = {clique: self._cache.get(clique) for clique in cliques}
        found = {clique: table for clique, table in known.items() if table is not None}
        coding = {column.name: column for column in self._schema}
        for batch in _batches_of_cliques([clique for clique in known if clique not in found]):
            for clique, table in zip(batch, self._scan(batch, coding), strict=True):
                found[clique] = table
                self._cache.keep(clique, table)
        return [found[clique] for clique in cliques]

    def unit_counts(self, column: str, cells: int) -> np.ndarray:
        """Rows in each of `cells` equal parts of a column's range, without the nulls."""
        described = self._schema[column]
        unit = self._unit(described)
        code = self._code(described)
        null = -1 if described.null_code is None else described.null_code
        return self._group(
            f"least(CAST(floor(({unit}) * {cells}) AS INTEGER), {cells - 1})",
            cells,
            f"({code}) <> {null}",
        )

    def provisional_counts(self, columns: Sequence[Column]) -> list[np.ndarray]:
        """Rows in each cell of columns coded as they say, the nulls last."""
        coding = {column.name: column for column in columns}
        cliques = [(column.name,) for column in columns]
        return [
            table for batch in _batches_of_cliques(cliques) for table in self._scan(batch, coding)
        ]

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
        columns = [
            f"{self._code(column)} AS c{i}, {self._unit(column)} AS u{i}"
            for i, column in enumerate(self._schema)
        ]
        for frame in self._stream(", ".join(columns), rows):
            size = len(self._schema)
            codes = np.empty((len(frame), size), dtype=np.int32, order="F")
            units = np.empty((len(frame), size), dtype=np.float64, order="F")
            for i in range(size):
                codes[:, i] = frame[f"c{i}"]
                units[:, i] = frame[f"u{i}"]
            yield Coded(self._schema, codes, units)

    def require_batches(self, query: str) -> None:
        """Nothing to refuse: the rows come in parts."""

    def require_portable(self, summand: Summand) -> None:
        """Nothing to refuse: the work is done here."""

    def require_uncoded(self) -> None:
        """Always so: the rows stay as they are, and every scan codes them anew."""

    def settle(self, schema: Schema) -> None:
        """Go on with a schema that says more of the same columns."""
        self._schema = schema
        self._cache.clear()

    def close(self) -> None:
        """Let go of the table, and of the counts that were remembered."""
        self._cache.clear()
        if self._kept:
            self._drop()
        del self._relation
        self._connection.close()

    def _run_once(self, people: People | None) -> None:
        """Run the caller's relation, and go on with what came out of it."""
        columns = [*self._schema.names] + ([people.column] if people is not None else [])
        names = ", ".join(quote_name(name) for name in columns)
        keep = f"CREATE TEMP TABLE {self._kept} AS SELECT {names} FROM private_rows"
        what = "the private table" if self._is_ours else "the relation"
        with private_errors(what):
            try:
                self._relation.query("private_rows", keep)
                if people is not None:
                    if _ROW in map(str.casefold, columns):
                        raise TableError(f"the table has a column {_ROW!r} of its own; rename it")
                    left_out = self._surplus(people, self._kept, _ROW)
                    self._run(f"DELETE FROM {self._kept} WHERE {_ROW} IN (FROM {left_out})")
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
        """The name of a table of the places of all rows that do not stay."""
        name = f"counterpoise_{uuid.uuid4().hex}"
        self._run(f"CREATE TEMP TABLE {name} ({PLACE} BIGINT)")
        person = person_expression(people, self._stated)
        count = int(self._ask(f"SELECT count(*) AS n FROM {rows}")["n"][0])
        parts = math.ceil(count / _ROWS_BOUNDED_AT_ONCE)
        for part in range(parts):
            # All rows of a person are in one part, and so are those of nobody.
            here = f"hash({person}) % {parts} = {part}"
            some = identified_rows(rows, place, here, people, self._stated)
            self._run(f"INSERT INTO {name} {surplus(f'({some})', people)}")
        return name

    def _run(self, statement: str) -> None:
        """Run a statement where the rows are."""
        self._relation.query("private_rows", statement)

    def _drop(self) -> None:
        with contextlib.suppress(duckdb.Error):
            self._relation.query("private_rows", f"DROP TABLE IF EXISTS {self._kept}")

    def _scan(
        self, cliques: Sequence[tuple[str, ...]], coding: Mapping[str, Column]
    ) -> list[np.ndarray]:
        """The tables of a few cliques, in one pass over the rows; each column coded as stated."""
        names = list(dict.fromkeys(name for clique in cliques for name in clique))
        place = {name: i for i, name in enumerate(names)}
        coded = ", ".join(f"{self._code(coding[name])} AS c{i}" for name, i in place.items())
        every = ", ".join(f"c{i}" for i in range(len(names)))
        sets = ["(" + ", ".join(f"c{place[name]}" for name in clique) + ")" for clique in cliques]
        found = self._ask(
            f"SELECT {every}, count(*) AS n, grouping_id({every}) AS absent "
            f"FROM (SELECT {coded} FROM private_rows) GROUP BY GROUPING SETS ({', '.join(sets)})"
        )
        tables = []
        for clique in cliques:
            shape = tuple(coding[name].size for name in clique)
            # A column that is not grouped by sets its bit; the first column has the highest.
            absent = sum(
                1 << (len(names) - 1 - i) for name, i in place.items() if name not in clique
            )
            here = found["absent"] == absent
            cell = np.ravel_multi_index(
                [np.asarray(found[f"c{place[name]}"][here], dtype=np.int64) for name in clique],
                shape,
            )
            table = np.zeros(math.prod(shape), dtype=np.int64)
            table[cell] = found["n"][here]
            tables.append(table.reshape(shape))
        return tables

    def _code(self, column: Column) -> str:
        return code_expression(self._spelled(column), missing_values=self._schema.missing_values)

    def _unit(self, column: Column) -> str:
        return unit_expression(self._spelled(column), missing_values=self._schema.missing_values)

    def _spelled(self, column: Column) -> Column:
        """A column as the private table spells it; what comes out is of the released one."""
        return replace(column, spelling=self._stated[column.name].spelling)

    def _group(self, expression: str, cells: int, condition: str = "true") -> np.ndarray:
        found = self._ask(
            f"SELECT {expression} AS cell, count(*) AS n FROM private_rows "
            f"WHERE {condition} GROUP BY cell"
        )
        table = np.zeros(cells, dtype=np.int64)
        table[np.asarray(found["cell"], dtype=np.int64)] = found["n"]
        return table

    def _ask(self, sql: str) -> dict[str, np.ndarray]:
        self._require_unchanged()
        with private_errors("the private table"):
            answer = self._relation.query("private_rows", sql)
            assert answer is not None
            return answer.fetchnumpy()

    def _stream(self, columns: str, rows: int) -> Iterator[pd.DataFrame]:
        if not self._is_ours:
            yield from self._parts(columns, rows)
            return
        self._require_unchanged()
        with private_errors("the private table"):
            self._relation.create_view("private_rows", replace=True)
            result = self._connection.execute(f"SELECT {columns} FROM private_rows")
            while len(frame := result.fetch_df_chunk(max(1, rows // _VECTOR))):
                yield frame

    def _parts(self, columns: str, rows: int) -> Iterator[pd.DataFrame]:
        """A relation of the caller's has no result to stream: ask for one hashed part at a time."""
        parts = max(1, math.ceil(self.rows() / rows))
        names = ", ".join(quote_name(name) for name in self._schema.names)
        for part in range(parts):
            yield pd.DataFrame(
                self._ask(
                    f"SELECT {columns} FROM private_rows WHERE hash({names}) % {parts} = {part}"
                )
            )

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


def _batches_of_cliques(
    cliques: Sequence[tuple[str, ...]],
) -> Iterator[list[tuple[str, ...]]]:
    batch: list[tuple[str, ...]] = []
    columns: set[str] = set()
    for clique in cliques:
        wider = columns | set(clique)
        if batch and (len(batch) == _CLIQUES_A_SCAN or len(wider) > _COLUMNS_A_SCAN):
            yield batch
            batch, wider = [], set(clique)
        batch.append(clique)
        columns = wider
    if batch:
        yield batch
