"""Private rows on a Spark cluster: every question is a job, and only its sums come to the driver.

The rows are coded in the executors, by the same `Schema.encode` that codes them in memory, and each
partition sends integers that Spark adds up (`spark_tasks`). So answers are exact, and do not depend
on how the rows are spread over partitions, or how often a task was tried. Codes, a byte or two a
column, are kept in the executors' memory when they are first counted, because selection asks again;
what does not fit is coded anew, and nothing of it is written to disk. Counts are remembered here.
Which frames are taken, and what the curator promises of them, is in `spark_frames`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from counterpoise.errors import VaultError
from counterpoise.schema import Coded, Column, Schema
from counterpoise.vault.boundary import NeverCopied
from counterpoise.vault.storage.adding import Summand
from counterpoise.vault.storage.cache import CountCache
from counterpoise.vault.storage.people import People
from counterpoise.vault.storage.spark_frames import (
    by_position,
    let_go,
    quiet,
    refuse_changed,
    refuse_rows,
)
from counterpoise.vault.storage.spark_people import CELL, bounded_frame
from counterpoise.vault.storage.spark_tasks import (
    AddUp,
    CountCliques,
    CountColumns,
    CountTexts,
    CountUnits,
    Gather,
    PackCodes,
    Packing,
    Reading,
    Ready,
    Task,
    what_failed,
)
from counterpoise.vault.storage.tabulating import counted_together


class SparkStorage(NeverCopied):
    """A frame of Spark's; every question is a job in its session."""

    def __init__(self, frame: Any, schema: Schema, people: People | None = None):
        self._stated = schema
        self._schema = schema.as_released()
        self._session = frame.sparkSession
        self._codes: Any = None
        self._cache = CountCache()
        self._seen: int | None = None  # rows, in the first look that tells
        self._has_changed = False
        self._require_workers()
        self._bounded = None if people is None else self._bound(frame, people)
        self._frame = (
            by_position(frame, schema.names) if self._bounded is None else self._bounded.drop(CELL)
        )

    def rows(self) -> int:
        """The number of rows."""
        self._require_same()
        with quiet(self._session):
            count = int(self._frame.count())
        self._require_same(count)
        return count

    def persons(self) -> np.ndarray:
        """Of bounded persons, how many have no more rows than stay, and how many have more."""
        assert self._bounded is not None
        self._require_same()
        with quiet(self._session):
            marked = self._bounded.groupBy(CELL).count().collect()
        rows = {row[CELL]: int(row["count"]) for row in marked}
        self._require_same(sum(rows.values()))
        return np.array([rows.get(0, 0), rows.get(1, 0)], dtype=np.int64)

    def counts(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The contingency table of each clique."""
        self._schema.require_complete()
        known = {clique: self._cache.get(clique) for clique in cliques}
        found = {clique: table for clique, table in known.items() if table is not None}
        unknown = [clique for clique in known if clique not in found]
        for part in counted_together(unknown, self._schema):
            for clique, table in zip(part, self._count(part), strict=True):
                found[clique] = table
                self._cache.keep(clique, table)
        return [found[clique] for clique in cliques]

    def unit_counts(self, column: str, cells: int) -> np.ndarray:
        """Rows in each of `cells` equal parts of a column's range, without the nulls."""
        return self._numbers(self._of([column]), CountUnits(self._reading([column]), cells), cells)

    def provisional_counts(self, columns: Sequence[Column]) -> list[np.ndarray]:
        """Rows in each cell of columns coded as they say, the nulls last."""
        names = [column.name for column in columns]
        spelled = tuple(
            replace(column, spelling=self._stated[column.name].spelling) for column in columns
        )
        sizes = [column.size for column in columns]
        task = CountColumns(self._reading(names), spelled)
        flat = self._numbers(self._of(names), task, sum(sizes))
        found = np.split(flat, np.cumsum(sizes)[:-1])
        self._require_same(*(int(counts.sum()) for counts in found))
        return found

    def distinct(self, column: str) -> tuple[list[str], np.ndarray]:
        """The values of a column that the schema does not list, as text, and their counts."""
        reading = Reading(self._schema.select([column]))
        texts, counts = self._gather(self._of([column]), Gather(CountTexts(reading), "string"))
        return texts.to_pylist(), counts

    def add_up(self, summand: Summand, rows: int) -> np.ndarray:
        """The sum of whole numbers that a public function makes of the rows; see `Summand`."""
        self._schema.require_complete()
        task = AddUp(self._reading(self._schema.names), self._schema, summand)
        found = self._numbers(self._frame, task, summand.size + 1)
        self._require_same(int(found[-1]))
        return found[:-1]

    def batches(self, rows: int) -> Iterator[Coded]:
        """Refused: no row comes to the driver."""
        raise VaultError("batches: the rows stay in Spark's executors")

    def require_batches(self, query: str) -> None:
        """Refuse a query that needs the rows themselves."""
        refuse_rows(query)

    def require_portable(self, summand: Summand) -> None:
        """Refuse features that cannot be sent to the executors."""
        from pyspark import cloudpickle

        pickler: Any = cloudpickle
        try:
            pickler.dumps(summand)
            return
        except Exception:
            problem = VaultError(
                "sums: the features cannot be sent to Spark's executors; make them of values and "
                "functions that can be pickled"
            )
        raise problem

    def require_uncoded(self) -> None:
        """Always so: what the rows are coded as is said anew with every question."""

    def settle(self, schema: Schema) -> None:
        """Go on with a schema that says more of the same columns."""
        self._schema = schema
        self._forget()

    def close(self) -> None:
        """Let go of the codes in the executors, and of the counts that were remembered."""
        self._forget()
        if self._bounded is not None:
            let_go(self._bounded)
        del self._frame, self._bounded

    def _require_same(self, *counts: int) -> None:
        """Refuse a frame in which a look saw so many rows, and another one other numbers."""
        for count in counts:
            self._seen = count if self._seen is None else self._seen
            self._has_changed |= count != self._seen
        if self._has_changed:
            refuse_changed()

    def _forget(self) -> None:
        self._cache.clear()
        if self._codes is not None:
            let_go(self._codes)
            self._codes = None

    def _bound(self, frame: Any, people: People) -> Any:
        """The rows that stay of each person, with marks, kept in memory as far as it goes."""
        from pyspark import StorageLevel

        numbered = by_position(frame, (*self._stated.names, people.column))
        with quiet(self._session):
            rows = bounded_frame(numbered, self._stated, people)
            # Never to disk by us; what Spark writes on the way is its shuffle.
            return rows.persist(StorageLevel.MEMORY_ONLY)

    def _reading(self, names: Sequence[str]) -> Reading:
        return Reading(self._schema.select(names).read_as(self._stated))

    def _of(self, names: Sequence[str]) -> Any:
        """The frame with these columns of the schema alone, numbered anew."""
        places = enumerate(self._schema.index(name) for name in names)
        return self._frame.selectExpr(*(f"c{place} AS c{i}" for i, place in places))

    def _count(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """The tables of a few cliques, in one pass over the codes."""
        packing = Packing(self._schema.sizes)
        if self._codes is None:
            self._codes = self._packed(packing)
        places = tuple(tuple(map(self._schema.index, clique)) for clique in cliques)
        shapes = [self._schema.shape(clique) for clique in cliques]
        cells = [math.prod(shape) for shape in shapes]
        flat = self._numbers(self._codes, CountCliques(packing, places), sum(cells))
        parts = np.split(flat, np.cumsum(cells)[:-1])
        self._require_same(*(int(part.sum()) for part in parts))
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def _packed(self, packing: Packing) -> Any:
        """The codes, to be kept in memory as far as it goes; nothing is done yet."""
        from pyspark import StorageLevel

        task = PackCodes(self._reading(self._schema.names), packing)
        with quiet(self._session):
            coded = self._frame.mapInArrow(task, PackCodes.OUTPUT)
            # Never to disk: these are private rows.
            return coded.persist(StorageLevel.MEMORY_ONLY)

    def _numbers(self, frame: Any, task: Task, size: int) -> np.ndarray:
        keys, numbers = self._gather(frame, Gather(task, "bigint"))
        found = np.zeros(size, dtype=np.int64)
        found[keys.to_numpy()] = numbers
        return found

    def _gather(self, frame: Any, task: Gather) -> tuple[Any, np.ndarray]:
        """The keys that the executors found, as an Arrow array, and what was added up for each."""
        self._require_same()
        with quiet(self._session):
            partial = frame.mapInArrow(task, task.output)
            summed = partial.groupBy("failure", "key").agg({"n": "sum"}).toArrow().combine_chunks()
        failures = summed.column(0).to_numpy()
        if failures.any():
            raise VaultError(what_failed(int(failures.max())))
        return summed.column(1), summed.column(2).to_numpy()

    def _require_workers(self) -> None:
        """Refuse a cluster that could not do the work, before any private row is touched."""
        try:
            self._numbers(self._session.range(1, numPartitions=1), Ready(), 1)
        except VaultError:
            raise
        except Exception:
            problem = VaultError(
                "Spark's executors cannot do the work: on every machine their Python, which "
                "PYSPARK_PYTHON names, needs 'counterpoise[spark]' in the version of the driver"
            )
        else:
            return
        raise problem
