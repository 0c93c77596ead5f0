"""Tables in and out: files, pandas, polars, Arrow tables and DuckDB relations.

Files go through DuckDB, so that nothing else is needed; polars and Arrow only where they are used.
A file is written in full or not at all. Categories are written as what they are (texts, integers),
a column of datetime64[s] as dates, and every kind of missing value as null.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from counterpoise.arguments import plain_text
from counterpoise.disk import as_path, plainly, system_error, whole_file
from counterpoise.errors import TableError
from counterpoise.schema.dialect import DEFAULT, SEPARATOR_WORDS, Dialect
from counterpoise.schema.files import (
    as_relation,
    connect,
    errors_of,
    file_columns,
    is_path,
    literal_path,
    refuse_duplicates,
)
from counterpoise.schema.incoming import (
    DATE_DTYPE,
    DATETIME_DTYPE,
    from_arrow,
    from_database,
    from_polars,
    is_exact,
)
from counterpoise.schema.quoting import AS_CELLS, as_cell, quote_name, quote_text
from counterpoise.schema.rules import listed, texts
from counterpoise.schema.schema import Schema

FORMATS = ("pandas", "polars", "arrow")


# A column of more different texts than this is not read as categories.
MOST_CATEGORIES = 10_000
# Up to here a text is looked for in the list itself, once for each entry of a file's dictionary.
_FEW_CATEGORIES = 64
_UNLISTED = -2
# Rows that are in memory together where a file is written or read in parts.
GROUP_ROWS = 122_880
# The first level takes half the time of the usual one, and a twentieth more room.
_PACKED = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"
_CSV, _AS_TEXT = (
    "FORMAT csv, HEADER true, NULLSTR ''",
    {"BOOLEAN": "upper(CAST({} AS VARCHAR))"},
)


def read_table(
    source: Any,
    columns: Sequence[str] | None = None,
    dialect: Dialect = DEFAULT,
    as_categories: bool | Mapping[str, Sequence[str]] = False,
) -> pd.DataFrame:
    """A table as a pandas frame; with `columns`, only those of them that it has.

    `source` is the path of a .csv, .csv.gz, .tsv or .parquet file, a pandas or polars frame, an
    Arrow table, or a DuckDB relation. Text in a CSV stays text; an empty field is null. `dialect`
    says how a file of text is written. With `as_categories`, a column of texts of a file comes as
    categories, those that are there: each text is then held once, and not once a row. Where it
    names columns with the texts that they are expected to hold, these are their categories, and
    need not be looked for unless there are others.
    """
    if columns is not None:
        columns = texts(columns, "the columns to read must be a list of their names")
    if isinstance(source, pd.DataFrame):
        names = [str(name) for name in source.columns]
        refuse_duplicates(names)
        frame = source.set_axis(names, axis=1)
        return frame if columns is None else frame[[name for name in columns if name in frame]]
    if is_path(source):
        with errors_of(source), connect() as connection:
            names = file_columns(Path(source), dialect, connection)
            relation = as_relation(source, connection, dialect)
            return _fetch(relation, _chosen(names, columns), as_categories)
    if isinstance(source, duckdb.DuckDBPyRelation):
        with errors_of(source):
            return _fetch(source, _chosen(list(table_columns(source)), columns), as_categories)
    names = list(table_columns(source))
    refuse_duplicates(names)
    if _library(source) == "polars":
        return _from_polars(source, _chosen(names, columns))
    chosen = _chosen(names, columns)
    return pd.DataFrame(
        {name: from_arrow(source.column(names.index(name))) for name in chosen},
        index=pd.RangeIndex(source.num_rows),
        columns=chosen,
    )


def table_columns(source: Any, dialect: Dialect = DEFAULT) -> tuple[str, ...]:
    """The names of a table's columns, without reading its rows."""
    if isinstance(source, pd.DataFrame):
        return tuple(str(name) for name in source.columns)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return tuple(source.columns)
    if is_path(source):
        return tuple(file_columns(Path(source), dialect))
    library = _library(source)
    if library == "polars":
        return tuple(source.collect_schema().names())
    if library == "pyarrow" and hasattr(source, "to_pandas") and hasattr(source, "column_names"):
        return tuple(source.column_names)
    if library == "pyarrow" and hasattr(source, "to_pandas") and hasattr(source, "schema"):
        return tuple(source.schema.names)
    raise TableError(
        "a table is the path of a .csv, .tsv or .parquet file, a pandas or polars frame, an Arrow "
        f"table or a DuckDB relation, not {type(source).__name__}"
    )


def check_columns(names: Iterable[str], schema: Schema, table: str = "the table") -> None:
    """Raise a TableError unless every column of the schema is there, once; others are ignored.

    `table` is what the message calls it.

    >>> from counterpoise.schema import Column
    >>> check_columns(["id", "age"], Schema([Column.integer("age", 0, 99)]))
    """
    given = listed(names, "the names of a table's columns must be a list")
    try:
        names = [plain_text(str(name)) for name in given]
    except Exception:
        raise TableError("the names of a table's columns must be texts") from None
    refuse_duplicates(names)
    missing = [name for name in schema.names if name not in set(names)]
    if missing:
        separator = _separator_of(names, schema.names)
        if separator is not None:
            raise TableError(
                f"{table} lacks columns that the schema names, and its header has all of them if "
                f"{separator} stands between its fields: state it in the schema "
                f'("dialect": {{"delimiter": "..."}}), or draft the schema from this file again'
            )
        near = {hit for name in missing for hit in difflib.get_close_matches(name, names, 1)}
        hint = f"; it does have {', '.join(map(repr, sorted(near)))}" if near else ""
        lacking = ", ".join(map(repr, missing))
        raise TableError(f"{table} lacks columns that the schema names: {lacking}{hint}")


def _separator_of(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The separator by which a header has all the names that are wanted, in words."""
    for mark, word in SEPARATOR_WORDS.items():
        # Whatever the header was split at, one of these put it apart.
        for joined in (other.join(names) for other in SEPARATOR_WORDS if other != mark):
            fields = {field.strip().strip('"') for field in joined.split(mark)}
            if len(fields) > 1 and fields >= {*wanted}:
                return word
    return None


def _library(source: Any) -> str:
    return type(source).__module__.partition(".")[0]


def convert(frame: pd.DataFrame, format: str = "pandas") -> Any:
    """A pandas frame as "pandas", "polars" or "arrow".

    >>> convert(pd.DataFrame({"age": [41]}), "pandas")["age"].tolist()
    [41]
    """
    if not isinstance(format, str) or plain_text(format) not in FORMATS:
        raise TableError(f"the format of a table is one of {', '.join(FORMATS)}")
    if format == "pandas":
        return frame
    library = "polars" if format == "polars" else "pyarrow"
    try:
        return _to_polars(frame) if format == "polars" else _to_arrow(frame)
    except ImportError:
        raise TableError(
            f"the {format} format needs {library}: pip install 'counterpoise[{format}]'"
        ) from None


def write_parquet(
    frame: pd.DataFrame, path: str | os.PathLike[str], compression: str = "zstd"
) -> None:
    """Write a frame as Parquet."""
    # What is not packed is for a while, and not worth looking for what can be written once.
    words = ", DICTIONARY_SIZE_LIMIT 1" if compression == "uncompressed" else ""
    _write(frame, path, f"FORMAT parquet, COMPRESSION {compression}{words}")


def join_parquet(
    files: Sequence[Path],
    path: str | os.PathLike[str],
    columns: Mapping[str, str] | None = None,
    csv: bool = False,
    guarded: bool = False,
) -> None:
    """Write the rows of Parquet files, one after the other, as one file, a row group at a time.

    `columns` are names and what they are in SQL, by default all as they are; `csv` writes text,
    `guarded` as `write_csv` does.
    """
    target = as_path("path", path, TableError)
    with errors_of(files[0]), connect(threads=1) as connection:
        listed = ", ".join(map(literal_path, files))
        rows = connection.sql(f"SELECT * FROM read_parquet([{listed}], hive_partitioning=false)")
        types = dict(zip(rows.columns, map(str, rows.types), strict=True))
        chosen = columns or {name: quote_name(name) for name in types}
        shapes = _csv_shapes(guarded) if csv else {}
        asked = ", ".join(
            f"{shapes.get(types.get(name, ''), '{}').format(what)} AS {_heading(name, guarded)}"
            for name, what in chosen.items()
        )
        options = _CSV if csv else f"{_PACKED}, ROW_GROUP_SIZE {GROUP_ROWS}"
        with plainly(target, error=TableError), whole_file(target) as file:
            place = f"{quote_text(file.name)} ({options}, USE_TMP_FILE false)"
            try:
                connection.execute(
                    f"COPY (SELECT {asked} FROM read_parquet([{listed}], "
                    f"hive_partitioning=false)) TO {place}"
                )
            except duckdb.Error as problem:
                raise (system_error(str(problem)) or problem) from None


def write_csv(frame: pd.DataFrame, path: str | os.PathLike[str], guarded: bool = False) -> None:
    """Write a frame as CSV in UTF-8; null is an empty field, truth is TRUE or FALSE.

    R takes "true" for a text; all that we know of take "TRUE" for the truth. With `guarded`, texts
    and names that a spreadsheet would run have an apostrophe before them.
    """
    _write(frame, path, _CSV, _csv_shapes(guarded), guarded)


def _csv_shapes(guarded: bool) -> Mapping[str, str]:
    """What values of some types are written as, in SQL."""
    return {**_AS_TEXT, "VARCHAR": AS_CELLS} if guarded else _AS_TEXT


def _heading(name: str, guarded: bool) -> str:
    return quote_name(as_cell(name) if guarded else name)


def _chosen(names: list[str], columns: Sequence[str] | None) -> list[str]:
    return names if columns is None else [name for name in columns if name in set(names)]


def _fetch(
    relation: duckdb.DuckDBPyRelation,
    names: list[str],
    as_categories: bool | Mapping[str, Sequence[str]] = False,
) -> pd.DataFrame:
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    if not names:
        count = relation.aggregate("count(*)").fetchall()[0][0]
        return pd.DataFrame(index=pd.RangeIndex(count))
    expected = as_categories if isinstance(as_categories, Mapping) else {}
    is_text = [name for name in names if types[name] == "VARCHAR"]
    found = {name: list(expected[name]) for name in is_text if _are_few(expected.get(name, ()))}
    if as_categories is not False:
        found |= _distinct(relation, [name for name in is_text if name not in found])
    exposed = ", ".join(
        f"{_place(name, found[name]) if name in found else _exposed(name, types[name])} "
        f"AS {quote_name(name)}"
        for name in names
    )
    arrays = relation.project(exposed).fetchnumpy()
    surprising = [name for name in found if (arrays[name] == _UNLISTED).any()]
    if surprising:
        known = {name: texts for name, texts in expected.items() if name not in surprising}
        return _fetch(relation, names, known)
    return pd.DataFrame(
        {
            name: pd.Categorical.from_codes(arrays[name], pd.Index(found[name], dtype=object))
            if name in found
            else from_database(arrays[name], types[name])
            for name in names
        },
        # The arrays are nobody else's.
        copy=False,
    )


def _are_few(listed: Sequence[str]) -> bool:
    """Whether texts can be looked for in their list, in a statement, which cannot hold a NUL."""
    return 0 < len(listed) <= _FEW_CATEGORIES and not any("\0" in text for text in listed)


def _distinct(relation: duckdb.DuckDBPyRelation, names: list[str]) -> dict[str, list[str]]:
    """The different texts of columns, in order; only of those that can be categories."""
    if not names:
        return {}
    counts = ", ".join(f"approx_count_distinct({quote_name(name)})" for name in names)
    [about] = relation.aggregate(counts).fetchall()
    few = [name for name, count in zip(names, about, strict=True) if count <= MOST_CATEGORIES]
    if not few:
        return {}
    lists = ", ".join(f"list(DISTINCT {quote_name(name)})" for name in few)
    [found] = relation.aggregate(lists).fetchall()
    different = {
        name: sorted(text for text in listed or () if text is not None)
        for name, listed in zip(few, found, strict=True)
    }
    # A statement cannot hold a NUL.
    return {
        name: listed
        for name, listed in different.items()
        if listed and not any("\0" in text for text in listed)
    }


def _place(name: str, listed: list[str]) -> str:
    """The place of a text in a list, -1 for null, and `_UNLISTED` where it is not in it."""
    among, quoted = ", ".join(map(quote_text, listed)), quote_name(name)
    if len(listed) <= _FEW_CATEGORIES:
        place = f"coalesce(list_position([{among}], {quoted}), {_UNLISTED + 1}) - 1"
        return f"CAST(CASE WHEN {quoted} IS NULL THEN -1 ELSE {place} END AS SMALLINT)"
    code = f"enum_code(CAST({quoted} AS ENUM({among})))"
    return f"coalesce(CAST({code} AS INTEGER), -1)"


def _exposed(name: str, type_: str) -> str:
    """A column as a type that numpy holds; years beyond 9999, and infinite ones, are clamped."""
    quoted = quote_name(name)
    if type_ == "TIMESTAMP WITH TIME ZONE":
        quoted, type_ = f"timezone('UTC', {quoted})", "TIMESTAMP"
    if type_ in ("DATE", "TIMESTAMP"):
        low, high = f"{type_} '0001-01-01'", f"{type_} '9999-12-31 23:59:59.999999'"
        clamped = f"least(greatest({quoted}, {low}), {high})"
        return f"CASE WHEN {quoted} IS NULL THEN NULL ELSE {clamped} END"
    if is_exact(type_):
        return f"CAST({quoted} AS VARCHAR)"
    plain = ("BOOLEAN", "VARCHAR", "FLOAT", "DOUBLE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
    return (
        quoted
        if type_ in plain or type_.endswith("INT") or type_ == "INTEGER"
        else f"CAST({quoted} AS VARCHAR)"
    )


def _from_polars(source: Any, names: list[str]) -> pd.DataFrame:
    from polars import selectors

    # By a selector: a bare name such as "*" would be taken for a pattern.
    frame = source.lazy().select(selectors.by_name(*names)).collect()
    return pd.DataFrame({name: from_polars(frame[name]) for name in names}, columns=names)


def _write(
    frame: pd.DataFrame,
    path: str | os.PathLike[str],
    options: str,
    written_as: Mapping[str, str] | None = None,
    guarded: bool = False,
) -> None:
    target = as_path("path", path, TableError)
    if not len(frame.columns):
        raise TableError("a table without columns cannot be written")
    plain = {str(name): _plain(frame.iloc[:, place]) for place, name in enumerate(frame.columns)}
    if len(plain) < len(frame.columns):
        raise TableError("a table with several columns of one name cannot be written")
    # Positions as names, because the database does not tell "Age" from "age".
    columns = pd.DataFrame(
        {f"c{place}": values for place, (values, _) in enumerate(plain.values())}
    )
    shapes = written_as or {}
    listed = ", ".join(
        f"{shapes.get(type_, '{}').format(f'CAST(c{place} AS {type_})')} "
        f"AS {_heading(name, guarded)}"
        for place, (name, (_, type_)) in enumerate(plain.items())
    )
    with plainly(target, error=TableError), whole_file(target) as file:
        # The file is there already, under a temporary name: no second one beside it.
        place = f"{quote_text(file.name)} ({options}, USE_TMP_FILE false)"
        _copy(columns, f"COPY (SELECT {listed} FROM columns) TO {place}")


def _copy(columns: pd.DataFrame, statement: str) -> None:
    """Let the database write; its errors may quote rows, so they are replaced, not chained."""
    failed: Exception | None = None
    try:
        with connect() as connection:
            connection.register("columns", columns)
            connection.execute(statement)
    except (duckdb.Error, UnicodeError) as problem:
        failed = system_error(str(problem)) or TableError(
            "the table cannot be written: it holds values that the format has no place for, or "
            "does not fit into memory"
        )
    if failed is not None:
        raise failed


def _plain(values: pd.Series) -> tuple[pd.Series, str]:
    """A column as a dtype that DuckDB scans by itself, and the SQL type to write it as."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        inner, type_ = _plain(pd.Series(values.cat.categories))
        return inner.astype(object).reindex(values.cat.codes).reset_index(drop=True), type_
    if isinstance(dtype, pd.DatetimeTZDtype):
        return values.dt.tz_convert("UTC").dt.tz_localize(None).reset_index(drop=True), "TIMESTAMP"
    values = values.reset_index(drop=True)
    if dtype == np.float32:
        return values, "FLOAT"
    if dtype == DATE_DTYPE:
        return values.astype(DATETIME_DTYPE), "DATE"
    if pd.api.types.is_datetime64_dtype(dtype):
        return values, "TIMESTAMP"
    for is_type, type_ in (
        (pd.api.types.is_bool_dtype, "BOOLEAN"),
        (pd.api.types.is_integer_dtype, "BIGINT"),
        (pd.api.types.is_float_dtype, "DOUBLE"),
    ):
        if is_type(dtype):
            return values, type_
    return values.astype(object).where(values.notna(), None), "VARCHAR"


def _to_polars(frame: pd.DataFrame) -> Any:
    import polars

    columns = []
    for name in frame.columns:
        values = frame[name]
        nulls = values.isna().to_numpy()
        if isinstance(values.dtype, pd.CategoricalDtype):
            categories = values.cat.categories
            texts = all(isinstance(category, str) for category in categories)
            dtype = polars.Enum(list(categories)) if texts else None
            listed = [None if null else value for value, null in zip(values, nulls, strict=True)]
            columns.append(polars.Series(str(name), listed, dtype=dtype))
            continue
        if values.dtype == DATE_DTYPE:
            plain: Any = values.to_numpy().astype("datetime64[D]")
        elif isinstance(values.dtype, np.dtype) and values.dtype.kind in "biufM":
            plain = values.to_numpy()
        else:
            plain = [
                None if null else value
                for value, null in zip(values.to_numpy(dtype=object), nulls, strict=True)
            ]
        columns.append(polars.Series(str(name), plain, nan_to_null=True))
    return polars.DataFrame(columns)


def _to_arrow(frame: pd.DataFrame) -> Any:
    import pyarrow

    arrays = []
    for name in frame.columns:
        values = frame[name]
        array = pyarrow.Array.from_pandas(values)
        arrays.append(array.cast(pyarrow.date32()) if values.dtype == DATE_DTYPE else array)
    return pyarrow.Table.from_arrays(arrays, names=[str(name) for name in frame.columns])
