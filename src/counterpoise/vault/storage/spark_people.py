"""Persons that are bounded on Spark: the same digests, windows and choice as in other storages.

Each executor finds the persons and digests of its rows (`people.identified`), and Spark brings the
rows of a person together to number and rank them. What comes out depends on a person's rows alone,
not on partitions or their order. For this Spark writes rows to its shuffle files, as it does in any
window over a table. [PRIVACY: ground rule 13]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import counterpoise
from counterpoise.errors import VaultError
from counterpoise.schema import Schema, read_table
from counterpoise.vault.storage.people import DIGEST, PERSON, People, identified
from counterpoise.vault.storage.spark_tasks import failure_number, require_version, what_failed

# Whether a row is the first of a person with more rows than stay; null where it is not the first.
CELL = "cell"


@dataclass(frozen=True)
class Identify:
    """The rows with their person and digest in the place of the column of persons, the last one."""

    schema: Schema  # as the private table is spelled
    people: People
    version: str = counterpoise.__version__

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of a partition; what goes wrong is told by its kind alone."""
        import pyarrow

        names = [*self.schema.names, self.people.column]
        try:
            require_version(self.version)
            for batch in batches:
                table = pyarrow.Table.from_batches([batch]).rename_columns(names)
                found = identified(read_table(table), self.schema, self.people)
                texts = [pyarrow.array(found[name], "string") for name in (PERSON, DIGEST)]
                columns = [*batch.columns[:-1], *texts]
                kept = [*batch.schema.names[:-1], PERSON, DIGEST]
                yield pyarrow.RecordBatch.from_arrays(columns, kept)
            return
        except Exception as error:
            problem = VaultError(what_failed(failure_number(error)))
        # Outside of the handler: Spark logs what an exception came from.
        raise problem


def bounded_frame(frame: Any, schema: Schema, people: People) -> Any:
    """The rows that stay, and in the place of whose they are, the last column, a mark in `CELL`.

    One row of every person is marked, as 0 for a person within the bound and 1 for one beyond it.
    """
    from pyspark.sql import Window, functions
    from pyspark.sql.types import StringType, StructField, StructType

    fields = frame.schema.fields[:-1]
    texts = [StructField(name, StringType()) for name in (PERSON, DIGEST)]
    rows = frame.mapInArrow(Identify(schema, people), StructType([*fields, *texts]))
    named = rows.where(f"{PERSON} IS NOT NULL")
    # Once for both windows, and in as many parts as there were: Spark's two hundred would stay, and
    # every later question would be as many tasks, however few rows there are.
    parts = _partitions(frame)
    together = named.repartition(PERSON) if parts is None else named.repartition(parts, PERSON)
    # Rows of one digest hold the same to every query, so their order is of no consequence.
    alike = Window.partitionBy(PERSON, DIGEST).orderBy(DIGEST)
    numbered = together.withColumn("occurrence", functions.row_number().over(alike))
    hashed = functions.expr(f"sha2({DIGEST} || ':' || occurrence, 256)")
    whose = Window.partitionBy(PERSON)
    ranked = numbered.withColumn("rank", functions.row_number().over(whose.orderBy(hashed, DIGEST)))
    sized = ranked.withColumn("size", functions.count("*").over(whose))
    mark = f"CASE WHEN rank = 1 THEN CAST(size > {people.rows} AS TINYINT) END AS {CELL}"
    kept = sized.where(f"rank <= {people.rows}")
    return kept.selectExpr(*(field.name for field in fields), mark)


def _partitions(frame: Any) -> int | None:
    """In how many parts Spark reads a frame; None where it had to run a part of it to tell."""
    execution = frame._jdf.queryExecution()
    if execution.executedPlan().getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        return None
    return max(1, int(execution.toRdd().getNumPartitions()))
