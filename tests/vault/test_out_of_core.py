"""Rows that DuckDB scans: read in blocks, coded once where codes fit, and counted as in memory."""

from itertools import combinations

import duckdb
import numpy as np
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.vault.storage import open_storage, out_of_core, tabulating
from counterpoise.vault.storage.out_of_core import DuckDBStorage

SCHEMA = Schema(
    [
        Column.categorical("ward", ["a", "b", "c"], nullable=True),
        Column.integer("age", 0, 299, bins=300),
        Column.continuous("cost", 0.0, 10.0, bins=(0.0, 0.1, 0.5, 4.0, 10.0), nullable=True),
        Column.boolean("seen"),
    ]
)
ROWS = """
    SELECT ['a', 'b', 'c', NULL, 'd'][1 + CAST(hash(i) % 5 AS INTEGER)] AS ward,
           hash(i, 1) % 320 AS age, CASE WHEN i % 7 > 0 THEN (i * 37 % 1201) / 100 END AS cost,
           i % 3 = 0 AS seen
    FROM range(10_000) AS numbers(i)
"""
CLIQUES = [clique for size in (1, 2, 3) for clique in combinations(SCHEMA.names, size)]


@pytest.fixture(params=["parquet", "csv", "relation"])
def stored(request, tmp_path, monkeypatch):
    """A storage of rows that come in several blocks, and the same rows in memory."""
    monkeypatch.setattr(out_of_core, "ROWS_A_BLOCK", 2048)
    connection = duckdb.connect()
    relation = connection.sql(ROWS)
    path = tmp_path / f"rows.{request.param}"
    if request.param != "relation":
        connection.execute(f"COPY ({ROWS}) TO '{path}'")
    table = relation if request.param == "relation" else path
    stored = open_storage(table, SCHEMA, "duckdb")
    yield stored, open_storage(relation.df(), SCHEMA, "memory")
    stored.close()


def watched(monkeypatch):
    """A list that gets an entry for every scan of the source."""
    scans = []
    plain = DuckDBStorage._read
    monkeypatch.setattr(DuckDBStorage, "_read", lambda *given: scans.append(1) or plain(*given))
    return scans


def test_every_answer_is_that_of_the_same_rows_in_memory(stored):
    out, memory = stored
    fine = [Column.continuous("cost", 0.0, 10.0, bins=400, nullable=True), SCHEMA["ward"]]
    for found, known in zip(
        out.provisional_counts(fine), memory.provisional_counts(fine), strict=True
    ):
        np.testing.assert_array_equal(found, known)
    for found, known in zip(out.counts(CLIQUES), memory.counts(CLIQUES), strict=True):
        np.testing.assert_array_equal(found, known)
    np.testing.assert_array_equal(out.unit_counts("cost", 77), memory.unit_counts("cost", 77))
    parts = [*out.batches(3_000)]
    assert len(parts) > 1
    every, known = np.vstack([part.codes for part in parts]), next(memory.batches(10_000)).codes
    np.testing.assert_array_equal(every[np.lexsort(every.T)], known[np.lexsort(known.T)])


def test_codes_that_fit_are_made_once(stored, monkeypatch):
    out, _ = stored
    scans = watched(monkeypatch)
    for clique in CLIQUES:
        out.counts([clique])
    assert len(scans) == 1


def test_codes_that_do_not_fit_are_made_anew_and_counted_alike(stored, monkeypatch):
    out, memory = stored
    monkeypatch.setattr(out_of_core, "_MOST_BYTES_KEPT", 30_000)
    scans = watched(monkeypatch)
    for clique in CLIQUES:
        np.testing.assert_array_equal(out.counts([clique])[0], memory.counts([clique])[0])
    assert len(scans) == len(CLIQUES)
    assert out._codes is None


def test_codes_are_a_byte_or_two_and_are_let_go(stored):
    out, _ = stored
    out.counts(CLIQUES)
    # Only the column of 300 codes needs two bytes.
    assert sum(codes.nbytes for block in out._codes for codes in block) == 5 * 10_000
    out.settle(SCHEMA.replace(Column.continuous("cost", 0.0, 10.0, bins=3, nullable=True)))
    assert out._codes is None
    assert [table.shape for table in out.counts([("cost",)])] == [(4,)]


def test_what_is_counted_together_has_so_many_cells_at_most(monkeypatch):
    monkeypatch.setattr(tabulating, "_CELLS_A_PASS", 1_300)
    parts = [*tabulating.counted_together(CLIQUES, SCHEMA)]
    assert [clique for part in parts for clique in part] == CLIQUES
    cells = [[int(np.prod(SCHEMA.shape(clique))) for clique in part] for part in parts]
    assert all(sum(part) <= 1_300 or len(part) == 1 for part in cells)
    assert len(parts) < len(CLIQUES)


@pytest.mark.parametrize("sizes", [(3, 4), (200, 300), (70_000, 3), (5, 100_000), (1, 65_536)])
def test_tables_of_any_width_are_counted_alike(sizes):
    columns = [
        Column.integer(name, 0, size - 1, bins=size) for name, size in zip("ab", sizes, strict=True)
    ]
    schema = Schema(columns)
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, size, 500) for size in sizes]
    codes[0][0], codes[1][0] = (size - 1 for size in sizes)
    kinds = tabulating.code_kinds(sizes)
    narrow = [each.astype(kind) for each, kind in zip(codes, kinds, strict=True)]
    halves = [[each[:200] for each in narrow], [each[200:] for each in narrow]]
    [found] = tabulating.tabulated(halves, [("a", "b")], schema)
    expected = np.zeros(sizes, dtype=np.int64)
    np.add.at(expected, tuple(codes), 1)
    np.testing.assert_array_equal(found, expected)
