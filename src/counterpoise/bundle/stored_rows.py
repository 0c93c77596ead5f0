"""Rows of a release that stay in their file, and what is read of them when it is asked for.

Ten million rows with 80 replicate weights are more than most machines hold. What an estimate needs
is one or two columns, the weight, and the replicates a block of rows at a time; so that is what is
read, each time anew, and the same code adds it up as in memory. A file that is not the one which
was checked is refused. A release that was made and not saved yet has its rows in a folder of its
own, which goes when nobody needs it any more.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pandas as pd

from counterpoise.bundle.rules import MEAN_TOLERANCE, check_column, check_weights, refused
from counterpoise.bundle.saved_replicates import WHAT, SavedReplicates, stamp_of
from counterpoise.bundle.weight_columns import WEIGHT, weight_names
from counterpoise.disk import hash_of, new_folder, plainly
from counterpoise.errors import BundleError
from counterpoise.schema import Schema
from counterpoise.schema.decoding import restore
from counterpoise.schema.files import as_relation, connect, errors_of, literal_path
from counterpoise.schema.quoting import quote_name
from counterpoise.schema.row_rules import restored_identifier
from counterpoise.schema.tables import join_parquet, read_table

# A release of more numbers than this, weights among them, is not read whole unless asked to.
MOST_NUMBERS = 200_000_000
# Of replicates so many rows are read at a time, in units of the database's 2,048.
_VECTORS_AT_ONCE = 16
_PLACE = "counterpoise_place"
# What a file of rows takes unpacked, in bytes: a value beside its text, with its length, and what a
# group of rows has of its own, such as headers. Several times what is ever written.
_MOST_A_VALUE, _MOST_A_GROUP = 32, 2**16
# Rows in a group: the most that Arrow writes unasked, and several times what we do.
_MOST_GROUPED = 2**20


@dataclass(frozen=True, eq=False)
class StoredRows:
    """The rows, weights and replicate weights of a release, in a Parquet file.

    `hash` is what was stated of the file, if anything was; `known` are the stamps under which it
    was found to be whole. `folder` is one that is removed with these rows.
    """

    file: Path
    schema: Schema
    rows: int
    replicates: int = 0
    hash: str | None = None
    folder: OwnFolder | None = None
    is_uniform: bool = False  # whether all rows count alike, whatever weights the file has
    known: set[tuple[int, ...]] = field(default_factory=set)

    @classmethod
    def written(
        cls, file: Path, schema: Schema, rows: int, replicates: int, folder: OwnFolder
    ) -> StoredRows:
        """Rows that were just written to a folder of their own."""
        return cls(file, schema, rows, replicates, folder=folder, known={stamp_of(file)})

    @classmethod
    def checked(
        cls, file: Path, schema: Schema, rows: int, replicates: int, stated: str
    ) -> StoredRows:
        """The rows of a file with this hash; every value is looked at, a column at a time.

        Replicates are held to what the file states of them, and to all rules when they are read.
        """
        found = cls(file, schema, rows, replicates, stated, known={stamp_of(file)})
        with found._opened() as (_, written):
            for name in schema.names:
                column = read_table(written, [name], as_categories=expected_texts(schema))
                check_column(column[name], name, schema)
        check_weights(found.weights, rows, "the weights of the table")
        if replicates:
            SavedReplicates.checked(file, weight_names(replicates)[1:], rows, stated)
        return found

    @property
    def is_large(self) -> bool:
        """Whether they are too many to be read without a word."""
        return self.rows * (len(self.schema) + 1 + self.replicates) > MOST_NUMBERS

    def __len__(self) -> int:
        return self.rows

    @cached_property
    def weights(self) -> np.ndarray:
        """The weight of every row."""
        if self.is_uniform:
            return np.ones(self.rows)
        return self.as_written([WEIGHT])[WEIGHT].to_numpy(dtype=float)

    def read(
        self, names: Sequence[str] | None = None, places: np.ndarray | None = None
    ) -> pd.DataFrame:
        """Some columns as the schema has them, or all with the weight; of some rows, or all.

        `places` are positions, in order and each once.
        """
        names = [*self.schema.names, WEIGHT] if names is None else list(names)
        frame = self.as_written(names, places)
        identifiers = [name for name in names if name in self.schema.rules.identifiers]
        valued = [name for name in self.schema.plain.names if name in names]
        if valued:
            frame = restore(self.schema.plain.select(valued), frame)
        for name in identifiers:
            frame[name] = restored_identifier(self.schema[name], frame[name])
        if self.is_uniform and WEIGHT in names:
            frame[WEIGHT] = np.ones(len(frame))
        return frame[names]

    def as_written(self, names: Sequence[str], places: np.ndarray | None = None) -> pd.DataFrame:
        """Some columns as the file has them."""
        expected = expected_texts(self.schema)
        with self._opened() as (connection, rows):
            if places is None:
                return read_table(rows, names, as_categories=expected)
            columns = ", ".join(map(quote_name, names))
            numbered = rows.project(f"{columns}, row_number() OVER () - 1 AS {_PLACE}")
            connection.register("chosen", pd.DataFrame({"place": places}))
            # A table of its own: what was found is looked at more than once.
            connection.execute(
                f"CREATE TEMP TABLE taken AS SELECT * FROM ({numbered.sql_query()}) "
                f"WHERE {_PLACE} IN (SELECT place FROM chosen)"
            )
            taken = connection.sql(f"SELECT * FROM taken ORDER BY {_PLACE}")
            return read_table(taken, names, as_categories=expected)

    def replicate_blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """The replicate weights some rows at a time: where they begin, and rows x R."""
        names = weight_names(self.replicates)[1:]
        asked = ", ".join(f"CAST({quote_name(name)} AS FLOAT)" for name in names)
        start = 0
        with self._opened() as (connection, rows):
            connection.execute(rows.project(asked).sql_query())
            while len(chunk := connection.fetch_df_chunk(_VECTORS_AT_ONCE)):
                block = chunk.to_numpy(dtype=np.float32)
                if not (block.max() <= self.rows * (1 + MEAN_TOLERANCE) and block.min() >= 0):
                    raise BundleError(f"{WHAT}: expected finite numbers from zero, up to the rows")
                yield start, block
                start += len(block)
        if start != self.rows:
            raise BundleError(f"{WHAT}: expected one for each of the {self.rows:,} rows")

    def replicate(self, place: int) -> np.ndarray:
        """One replicate weight of every row."""
        name = weight_names(place + 1)[-1]
        found = self.as_written([name])[name].to_numpy(dtype=np.float32)
        check_weights(found, self.rows, WHAT)
        return found

    def all_replicates(self) -> np.ndarray:
        """The replicate weights, rows x R."""
        return self.replicates_at(np.arange(self.rows))

    def replicates_at(self, places: np.ndarray) -> np.ndarray:
        """The replicate weights of some rows, by positions in order."""
        found = np.empty((len(places), self.replicates), dtype=np.float32)
        for start, block in self.replicate_blocks():
            first, last = np.searchsorted(places, (start, start + len(block)))
            found[first:last] = block[places[first:last] - start]
        return found

    def write(self, path: Path, csv: bool | Literal["verbatim"] = False) -> None:
        """Write the rows to another file, as they are; a link to them where they are our own.

        As CSV, texts that a spreadsheet would run are guarded unless they are to be "verbatim".
        """
        self.check()
        weights = weight_names(0 if self.is_uniform else self.replicates)
        if csv or self.is_uniform:
            columns = {name: quote_name(name) for name in (*self.schema.names, *weights)}
            if self.is_uniform:
                columns[WEIGHT] = "CAST(1 AS DOUBLE)"
            join_parquet([self.path], path, columns, bool(csv), guarded=csv is True)
            return
        if self.folder is not None and self.folder.instead is None:
            # Not to another disk, or on one that has no links.
            with suppress(OSError):
                os.link(self.path, path)
                return
        shutil.copyfile(self.path, path)

    def follow(self, file: Path) -> None:
        """Rows in a folder of their own are where they were written to now, for all who hold them.

        The folder is removed.
        """
        if self.folder is not None and self.folder.instead is None and not self.is_uniform:
            self.known.add(stamp_of(file))
            self.folder.remove(instead=file)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return (self.folder and self.folder.instead) or self.file

    def check(self) -> None:
        """Refuse a file that is gone, or is not the one that was found to be whole."""
        with plainly(self.path, "read"):
            if not self.path.is_file():
                raise BundleError(f"{self.path} is no longer there; load the release again")
            stamp = stamp_of(self.path)
            if stamp in self.known:
                return
            if self.hash is None or hash_of(self.path) != self.hash:
                raise BundleError(f"{self.path} was changed; get the release again")
            self.known.add(stamp)

    def said(self) -> str:
        """What is asked of somebody who wants all of them in memory."""
        gigabytes = self.rows * (8 * len(self.schema) + 8 + 4 * self.replicates) / 1e9
        return (
            f"this release has {self.rows:,} rows and {self.replicates} replicate weights, up to "
            f"{gigabytes:.1f} GB, which stay in their file. Its estimates read what they need; "
            "release.read('age', 'ward') reads some columns, release.part(1_000_000) is a release "
            "of fewer rows, and release.read() is the whole table, without asking again"
        )

    @contextmanager
    def _opened(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation]]:
        self.check()
        # One thread: several would each hold a group of rows.
        with (
            refused(str(self.path)),
            errors_of(self.path),
            connect(threads=1) as connection,
        ):
            yield connection, as_relation(self.path, connection)


def check_sizes(file: Path, schema: Schema, rows: int, replicates: int) -> None:
    """Refuse a file of other sizes than these rows have, by what it says of itself.

    A few bytes of Parquet can stand for any number of rows, and of letters in them.
    """
    asked = (
        "SELECT column_id, row_group_num_rows, num_values, total_uncompressed_size "
        f"FROM parquet_metadata({literal_path(file)})"
    )
    with errors_of(file), connect() as connection:
        found = connection.execute(asked).fetchnumpy()
    columns, grouped, values, sizes = (np.ma.filled(found[key], -1) for key in found)
    longest = _longest_texts(schema) + [0] * (1 + replicates)
    counted = np.bincount(columns, weights=grouped, minlength=len(longest))
    if len(counted) != len(longest) or (counted != rows).any() or (values != grouped).any():
        raise BundleError(f"the table does not have the {rows:,} rows of the card")
    if not len(columns):
        return
    most = grouped * (_MOST_A_VALUE + np.array(longest)[columns]) + _MOST_A_GROUP
    if grouped.max() > _MOST_GROUPED or (sizes > most).any() or (sizes < 0).any():
        raise BundleError("the table is larger than its rows and the schema make it")


def _longest_texts(schema: Schema) -> list[int]:
    """The bytes of the longest text that each column can have; of made-up ones, enough."""
    expected = expected_texts(schema)
    return [
        max((len(text.encode()) for text in expected.get(name, ())), default=_MOST_A_VALUE)
        for name in schema.names
    ]


def expected_texts(schema: Schema) -> dict[str, list[str]]:
    """The texts that are expected in each column of texts, to read them as categories."""
    return {
        column.name: [str(category) for category in column.categories or ()]
        for column in schema
        if column.category_type == "string"
    }


class OwnFolder:
    """A folder that is removed when nobody holds it any more, and when Python ends.

    One that a killed process left is removed by the next that makes one beside it.
    """

    def __init__(self, parent: Path | None = None):
        self.path, handle = new_folder(parent or Path(tempfile.gettempdir()), PREFIX)
        self.instead: Path | None = None  # where its file is, once the folder is removed
        self._removed = weakref.finalize(self, _let_go, self.path, handle)

    def remove(self, instead: Path) -> None:
        """Remove the folder now, as its file is at another place too."""
        self.instead = instead
        self._removed()


def _let_go(folder: Path, handle: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if handle is not None:
        os.close(handle)


# By which a folder of rows is known to be one, where a killed process left it.
PREFIX = "counterpoise-rows-"


class TableWhenAsked:
    """A field that holds a table, or stored rows, which are read unless they are too many."""

    def __init__(self, name: str):
        self.place = f"_{name}"

    def __get__(self, release: object, owner: type | None = None) -> Any:
        if release is None:
            # What a dataclass takes for the default of a field.
            return None
        found = vars(release)[self.place]
        if isinstance(found, StoredRows):
            if found.is_large:
                raise BundleError(found.said())
            found = vars(release)[self.place] = self.read(found)
        return found.columns if isinstance(found, SavedReplicates) else found

    def read(self, stored: StoredRows) -> Any:
        """All of it, in memory."""
        return stored.read()

    def __set__(self, release: object, value: Any) -> None:
        vars(release)[self.place] = value


class ReplicatesWhenAsked(TableWhenAsked):
    """A field that holds replicate weights, or what they are read from at the first use."""

    def read(self, stored: StoredRows) -> np.ndarray:
        """All of them, rows x R."""
        return stored.all_replicates()

    def __set__(self, release: object, value: Any) -> None:
        # A dataclass hands over the field's default, which is this.
        super().__set__(release, None if value is self else value)
