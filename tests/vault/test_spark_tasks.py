"""What executors do with Arrow batches, without Spark: as in memory, and no word of errors."""

import numpy as np
import pandas as pd
import pyarrow
import pytest

from counterpoise.errors import VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault.storage import spark_tasks
from counterpoise.vault.storage.memory import MemoryStorage
from counterpoise.vault.storage.spark_tasks import (
    FAILURES,
    CountCliques,
    CountColumns,
    Gather,
    PackCodes,
    Packing,
    Reading,
    Task,
    what_failed,
)

CANARY = "Canary-Zebrafinch-8231"
SCHEMA = Schema(
    [
        Column.categorical("ward", ["A", "B", "C"], other="C"),
        Column.integer("stay", 0, 999, bins=1000),
        Column.continuous("cost", 0.0, 100.0, bins=8, nullable=True),
    ]
)


def rows(count=500):
    generator = np.random.default_rng(3)
    cost = generator.uniform(-10, 110, count)
    cost[::7] = np.nan
    return pd.DataFrame(
        {
            "ward": generator.choice(["A", "B", "C", CANARY], count),
            "stay": generator.integers(0, 1100, count),
            "cost": cost,
        }
    )


def batches(frame=None, size=100):
    table = pyarrow.Table.from_pandas(rows() if frame is None else frame, preserve_index=False)
    return iter(table.to_batches(size))


def added(task, parts):
    """What Spark makes of the pairs of several partitions."""
    gather = Gather(task, "bigint")
    found = pd.concat([batch.to_pandas() for part in parts for batch in gather(part)])
    assert (found["failure"] == 0).all()
    return found.groupby("key")["n"].sum()


def test_codes_take_as_few_bytes_as_their_sizes_need():
    packing = Packing(SCHEMA.sizes)
    codes = SCHEMA.encode(rows()).codes
    content = packing.pack(codes)
    assert len(content) == 500 * (1 + 2 + 1)
    np.testing.assert_array_equal(np.column_stack(packing.unpack(content, 500)), codes)


@pytest.mark.parametrize("most_dense", [2**20, 1])
def test_cliques_are_counted_as_in_memory_however_many_cells_they_have(monkeypatch, most_dense):
    monkeypatch.setattr(spark_tasks, "DENSE_CELLS", most_dense)
    monkeypatch.setattr(spark_tasks, "ROWS_A_BLOCK", 150)
    packing = Packing(SCHEMA.sizes)
    packed = PackCodes(Reading(SCHEMA), packing)
    parts = [packed(batches(rows()[:200])), packed(batches(rows()[200:])), packed(iter(()))]
    found = added(CountCliques(packing, ((0, 2), (2, 1, 0), (1,))), parts)
    expected = MemoryStorage(rows(), SCHEMA).counts(
        [("ward", "cost"), ("cost", "stay", "ward"), ("stay",)]
    )
    flat = np.concatenate([table.ravel() for table in expected])
    np.testing.assert_array_equal(found.reindex(range(len(flat)), fill_value=0), flat)


def test_columns_are_coded_anew_as_in_memory():
    columns = [Column.integer("stay", 0, 2000, bins=7), Column.continuous("cost", 0, 9, bins=3)]
    found = added(CountColumns(Reading(SCHEMA), tuple(columns)), [batches()])
    flat = np.concatenate(MemoryStorage(rows(), SCHEMA).provisional_counts(columns))
    np.testing.assert_array_equal(found.reindex(range(len(flat)), fill_value=0), flat)


class Failing(Task):
    def __init__(self, error):
        self._error = error

    def pairs(self, given):
        for batch in given:
            yield np.arange(1), np.ones(1, dtype=np.int64)
            raise self._error(f"could not read {batch.to_pylist()}")


@pytest.mark.parametrize("error", [ValueError, MemoryError, VaultError, KeyError, RuntimeError])
def test_a_failure_is_a_number_and_no_more(error):
    *_, last = Gather(Failing(error), "bigint")(batches())
    [told] = last.to_pylist()
    kind = FAILURES[told.pop("failure") - 1]
    assert issubclass(error, kind)
    assert told == {"key": None, "n": 0}
    assert CANARY not in what_failed(1 + FAILURES.index(kind))


def test_codes_that_could_not_be_made_are_a_failure_of_their_counts(monkeypatch):
    def encode(schema, table):
        raise ValueError(str(table.to_pylist()))

    monkeypatch.setattr(Schema, "encode", encode)
    packing = Packing(SCHEMA.sizes)
    packed = PackCodes(Reading(SCHEMA), packing)(batches())
    [told] = Gather(CountCliques(packing, ((0,),)), "bigint")(packed)
    assert told.to_pylist() == [{"failure": 1 + FAILURES.index(ValueError), "key": None, "n": 0}]


def test_work_of_another_version_is_refused():
    [told] = Gather(Failing(ValueError), "bigint", version="0.0.1")(batches())
    assert "another version of counterpoise" in what_failed(told.to_pylist()[0]["failure"])
