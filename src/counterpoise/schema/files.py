"""Files as DuckDB relations, and errors that quote nothing.

CSV is read as text, every column, and nothing is guessed from the rows: they are private. An
error says what is wrong with a file and never quotes it, so the errors of the reader, which do,
are replaced, not chained.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb

from counterpoise.disk import plainly
from counterpoise.errors import TableError
from counterpoise.schema.rules import is_writable
from counterpoise.schema.sql import quote_text

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
PARQUET = ".parquet"


def connect(**settings: Any) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection that never writes what it reads to disk."""
    connection = duckdb.connect(config=settings)
    connection.execute("SET temp_directory = ''")
    return connection


def as_relation(source: Any, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """A file as a DuckDB relation on a connection, for work out of core; relations pass through.

    Rows are read when the relation is used: wrap that in `private_errors`.
    """
    if isinstance(source, duckdb.DuckDBPyRelation):
        return source
    if not is_path(source):
        raise TableError("a relation is made of a file's path or of a DuckDB relation")
    path = Path(source)
    names = file_columns(path)
    refuse_duplicates(names)
    literal = quote_text(_without_patterns(str(path)))
    with errors_of(source):
        if _suffix(path) == PARQUET:
            return connection.sql(f"SELECT * FROM read_parquet({literal}, hive_partitioning=false)")
        columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
        delimiter = quote_text(DELIMITERS[_suffix(path)])
        # Without auto_detect nothing about the file is guessed from its rows, and without hive
        # partitions a folder named "age=5" says nothing of the column "age".
        return connection.sql(
            f"SELECT * FROM read_csv({literal}, auto_detect=false, header=true, nullstr='', "
            f"delim={delimiter}, quote='\"', escape='\"', hive_partitioning=false, "
            f"columns={{{columns}}})"
        )


@dataclass(frozen=True)
class private_errors:
    """Replaces errors of DuckDB, which may quote rows, by a TableError that quotes nothing.

    >>> with private_errors("the table"), duckdb.connect() as connection:
    ...     connection.execute("SELECT CAST('a private value' AS INTEGER)").fetchall()
    Traceback (most recent call last):
    counterpoise.errors.TableError: the table cannot be read: ...
    """

    description: str

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, duckdb.Error):
            return
        replacement = TableError(f"{self.description} cannot be read: {_rule_broken(str(error))}")
        try:
            raise replacement from None
        finally:
            # Hidden is not gone: whoever logs an error may follow its context to the rows.
            replacement.__context__ = None


def errors_of(source: Any) -> private_errors:
    """`private_errors` for a path or a relation."""
    return private_errors(f"{str(source)!r}" if is_path(source) else "the relation")


def is_path(source: Any) -> bool:
    """Whether a source of rows is the path of a file."""
    return isinstance(source, str | os.PathLike)


def refuse_duplicates(names: Iterable[str]) -> None:
    """Raise a TableError if a name stands for several columns, or cannot be written."""
    names = list(names)
    if not all(map(is_writable, names)):
        raise TableError("the name of a column must be UTF-8 text without NUL; rename it")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        listed = ", ".join(map(repr, twice))
        raise TableError(f"the table has several columns of one name: {listed}; rename them")


def _suffix(path: Path) -> str:
    name = path.name.lower()
    for suffix in (*DELIMITERS, PARQUET):
        if name.endswith(suffix):
            return suffix
    known = ", ".join((*DELIMITERS, PARQUET))
    raise TableError(f"{str(path)!r} has an unknown suffix; tables end in one of {known}")


def file_columns(path: Path) -> list[str]:
    """The names of the columns of a file, without reading its rows."""
    suffix = _suffix(path)
    with plainly(path, "read", TableError):
        is_folder, is_there = path.is_dir(), is_writable(str(path)) and path.exists()
    if is_folder:
        raise TableError(f"{str(path)!r} is a directory; give the path of one file")
    if not is_there:
        raise TableError(f"there is no file {str(path)!r}")
    names = _parquet_columns(path) if suffix == PARQUET else _csv_columns(path, suffix)
    if not names:
        raise TableError(f"{str(path)!r} is empty; the first line of a CSV names its columns")
    return names


def _csv_columns(path: Path, suffix: str) -> list[str]:
    opener: Any = gzip.open if suffix.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file, delimiter=DELIMITERS[suffix]), [])
    except UnicodeDecodeError:
        rule = _rule_broken("utf-8")
    except csv.Error:
        rule = _rule_broken("csv")
    except (OSError, EOFError):
        rule = _rule_broken("")
    raise TableError(f"{str(path)!r} cannot be read: {rule}")


def _parquet_columns(path: Path) -> list[str]:
    query = (
        f"SELECT name, num_children FROM parquet_schema({quote_text(_without_patterns(str(path)))})"
    )
    with errors_of(path), connect() as connection:
        elements = connection.execute(query).fetchall()
    # The tree in depth-first order: the root, then every column followed by what is in it.
    names: list[str] = []
    inside = 0
    for name, children in elements[1:]:
        if inside == 0:
            names.append(name)
        inside = max(inside - 1, 0) + (children or 0)
    return names


def _without_patterns(path: str) -> str:
    # A bracket, a star or a question mark in a path stands for itself.
    return "".join(f"[{letter}]" if letter in "[*?" else letter for letter in path)


def _rule_broken(message: str) -> str:
    lowered = message.lower()
    if "utf-8" in lowered or "utf8" in lowered or "unicode" in lowered:
        return (
            "its text is not UTF-8. Convert it first, for example with "
            "iconv -f WINDOWS-1252 -t UTF-8"
        )
    if "csv" in lowered:
        return (
            "it is not a well-formed CSV. Every row needs as many fields as the header, and every "
            "quote must be closed"
        )
    if "out of memory" in lowered:
        return "it does not fit into memory"
    return "the file is damaged, incomplete, or not what its suffix says"
