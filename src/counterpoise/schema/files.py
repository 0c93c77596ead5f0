"""Files as DuckDB relations, and errors that quote nothing.

CSV is read as text, every column, as the schema's dialect says it is written, and nothing is
guessed from the rows: they are private. An error says what is wrong with a file and never quotes
it, so the errors of the reader, which do, are replaced, not chained.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import os
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import duckdb
import pandas as pd

from counterpoise.disk import plainly, require_file
from counterpoise.errors import TableError
from counterpoise.schema.dialect import DEFAULT, UTF8, Dialect
from counterpoise.schema.quoting import quote_name, quote_text
from counterpoise.schema.rules import is_writable

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
PARQUET = ".parquet"
ROW_NUMBER = "file_row_number"
_ROWS_AT_ONCE = 50_000
_OTHER_ENCODING = (
    "its text is not in the encoding that the schema's dialect states. State another, for example "
    '"encoding": "latin-1", which any file can be read in'
)


def connect(**settings: Any) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection that never writes what it reads to disk."""
    connection = duckdb.connect(config=settings)
    connection.execute("SET temp_directory = ''")
    return connection


def as_relation(
    source: Any,
    connection: duckdb.DuckDBPyConnection,
    dialect: Dialect = DEFAULT,
    is_numbered: bool = False,
) -> duckdb.DuckDBPyRelation:
    """A file as a DuckDB relation on a connection, for work out of core; relations pass through.

    Rows are read when the relation is used: wrap that in `private_errors`. A file in another
    encoding than UTF-8 is decoded into memory at once. A Parquet file that `is_numbered` has one
    more column, `ROW_NUMBER`, the place of each row in the file.
    """
    if isinstance(source, duckdb.DuckDBPyRelation):
        return source
    if not is_path(source):
        raise TableError("a relation is made of a file's path or of a DuckDB relation")
    path = Path(source)
    names = file_columns(path, dialect, connection)
    refuse_duplicates(names)
    literal = literal_path(path)
    with errors_of(source):
        if is_parquet(path):
            number = ", file_row_number=true" if is_numbered else ""
            if is_numbered and ROW_NUMBER in map(str.casefold, names):
                raise TableError(f"the table has a column {ROW_NUMBER!r} of its own; rename it")
            return connection.sql(
                f"SELECT * FROM read_parquet({literal}, hive_partitioning=false{number})"
            )
        if dialect.encoding != UTF8:
            return _decoded(path, names, connection, dialect)
        columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
        delimiter, quote = quote_text(separator(path, dialect)), quote_text(dialect.quote)
        # Without auto_detect nothing about the file is guessed from its rows, and without hive
        # partitions a folder named "age=5" says nothing of the column "age".
        return connection.sql(
            f"SELECT * FROM read_csv({literal}, auto_detect=false, header=true, nullstr='', "
            f"delim={delimiter}, quote={quote}, escape={quote}, hive_partitioning=false, "
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


def is_parquet(source: Any) -> bool:
    """Whether a source of rows is the path of a Parquet file."""
    return is_path(source) and _suffix(Path(source)) == PARQUET


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
    """The suffix that says how a table is written; whoever reads one asks for it first."""
    require_file(path, TableError)
    name = path.name.lower()
    for suffix in (*DELIMITERS, PARQUET):
        if name.endswith(suffix):
            return suffix
    known = ", ".join((*DELIMITERS, PARQUET))
    raise TableError(f"{str(path)!r} has an unknown suffix; tables end in one of {known}")


def separator(path: Path, dialect: Dialect) -> str:
    """What stands between the fields of a file of text: as stated, or as its suffix has it."""
    return dialect.separator or DELIMITERS[_suffix(path)]


def literal_path(path: Path) -> str:
    """A path as a SQL literal that stands for this one file."""
    # A bracket, a star or a question mark in a path stands for itself.
    return quote_text("".join(f"[{mark}]" if mark in "[*?" else mark for mark in str(path)))


def is_text_file(path: Path) -> bool:
    """Whether a file, by its suffix, is one of text and has a dialect."""
    return _suffix(path) in DELIMITERS


def file_columns(
    path: Path,
    dialect: Dialect = DEFAULT,
    connection: duckdb.DuckDBPyConnection | None = None,
) -> list[str]:
    """The names of the columns of a file, without reading its rows; by a connection, if any."""
    suffix = _suffix(path)
    with plainly(path, "read", TableError):
        is_folder, is_there = path.is_dir(), is_writable(str(path)) and path.exists()
    if is_folder:
        raise TableError(f"{str(path)!r} is a directory; give the path of one file")
    if not is_there:
        raise TableError(f"there is no file {str(path)!r}")
    is_parquet = suffix == PARQUET
    names = _parquet_columns(path, connection) if is_parquet else _csv_columns(path, dialect)
    if not names:
        raise TableError(f"{str(path)!r} is empty; the first line of a CSV names its columns")
    return names


def open_bytes(path: Path) -> IO[bytes]:
    """A file of text as its bytes, unpacked where it is packed."""
    opener: Any = gzip.open if _suffix(path).endswith(".gz") else open
    return opener(path, "rb")


def open_text(path: Path, encoding: str) -> IO[str]:
    """A file of text, unpacked where it is packed, with its line ends as they are."""
    # A mark of the encoding at the start of a file is no part of the first name.
    named = "utf-8-sig" if encoding == UTF8 else encoding
    return io.TextIOWrapper(open_bytes(path), encoding=named, newline="")


def _csv_columns(path: Path, dialect: Dialect) -> list[str]:
    with text_errors(path, dialect), _lines(path, dialect) as lines:
        return next(lines, [])


def _decoded(
    path: Path, names: list[str], connection: duckdb.DuckDBPyConnection, dialect: Dialect
) -> duckdb.DuckDBPyRelation:
    """The rows of a file in another encoding than the database reads, in a table in memory.

    Nothing is written to disk: the rows are private. They obey the rules of the database's own
    reader: as many fields as the header has, blank lines left out, empty fields null.
    """
    table = f"decoded_{uuid.uuid4().hex}"
    places = range(len(names))
    columns = ", ".join(f"{quote_name(name)} VARCHAR" for name in names)
    connection.execute(f"CREATE TEMP TABLE {table} ({columns})")
    texts = ", ".join(f"CAST(c{place} AS VARCHAR)" for place in places)
    with text_errors(path, dialect), _lines(path, dialect) as lines:
        next(lines)
        filled = (row for row in lines if row)
        while rows := [*itertools.islice(filled, _ROWS_AT_ONCE)]:
            if any(len(row) != len(names) for row in rows):
                raise csv.Error
            # Positions as names, because the database does not tell "Age" from "age".
            chunk = pd.DataFrame(
                {f"c{place}": [row[place] or None for row in rows] for place in places},
                dtype=object,
            )
            connection.register("chunk", chunk)
            connection.execute(f"INSERT INTO {table} SELECT {texts} FROM chunk")
            connection.unregister("chunk")
    return connection.sql(f"SELECT * FROM {table}")


@contextlib.contextmanager
def _lines(path: Path, dialect: Dialect) -> Iterator[Iterator[list[str]]]:
    with open_text(path, dialect.encoding) as file:
        yield csv.reader(
            file, delimiter=separator(path, dialect), quotechar=dialect.quote, strict=True
        )


@contextlib.contextmanager
def text_errors(path: Path, dialect: Dialect) -> Iterator[None]:
    """Replaces errors of reading text by a TableError that quotes nothing."""
    try:
        yield
        return
    except UnicodeError:
        rule = _rule_broken("utf-8") if dialect.encoding == UTF8 else _OTHER_ENCODING
    except csv.Error:
        rule = _rule_broken("csv")
    except (OSError, EOFError):
        rule = _rule_broken("")
    replacement = TableError(f"{str(path)!r} cannot be read: {rule}")
    try:
        raise replacement from None
    finally:
        replacement.__context__ = None


def _parquet_columns(path: Path, connection: duckdb.DuckDBPyConnection | None) -> list[str]:
    query = f"SELECT name, num_children FROM parquet_schema({literal_path(path)})"
    with errors_of(path), contextlib.ExitStack() as stack:
        connection = connection or stack.enter_context(connect())
        elements = connection.execute(query).fetchall()
    # The tree in depth-first order: the root, then every column followed by what is in it.
    names: list[str] = []
    inside = 0
    for name, children in elements[1:]:
        if inside == 0:
            names.append(name)
        inside = max(inside - 1, 0) + (children or 0)
    return names


def _rule_broken(message: str) -> str:
    lowered = message.lower()
    if "utf-8" in lowered or "utf8" in lowered or "unicode" in lowered:
        return (
            'its text is not UTF-8. State its encoding in the schema ("dialect": {"encoding": '
            '"windows-1252"}), or convert it first, for example with iconv -f WINDOWS-1252 -t UTF-8'
        )
    if "csv" in lowered:
        return (
            "it is not a well-formed CSV. Every row needs as many fields as the header, and every "
            "quote must be closed"
        )
    if "out of memory" in lowered:
        return "it does not fit into memory"
    return "the file is damaged, incomplete, or not what its suffix says"
