"""Persons are bounded in every storage, by their own rows alone, before anything is asked."""

from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import TableError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault
from counterpoise.vault.storage import out_of_core

SCHEMA = Schema(
    [
        Column.categorical("ward", ["A", "B", "C"]),
        Column.integer("stay", 0, 9),
        Column.continuous("cost", 0.0, 100.0, bins=8, nullable=True),
    ]
)
STORAGES = ("pandas", "csv in memory", "parquet in memory", "csv", "parquet", "relation")


def visits(persons=40, seed=0):
    """Persons with one to nine visits each, some of them identical, in no order."""
    generator = np.random.default_rng(seed)
    person = np.repeat(np.arange(1000, 1000 + persons), generator.integers(1, 10, persons))
    generator.shuffle(person)
    rows = len(person)
    cost = np.round(generator.random(rows) * 100, 1)
    cost[generator.random(rows) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "patient": person,
            "ward": generator.choice(["A", "B", "C"], rows),
            "stay": generator.integers(0, 2, rows),
            "cost": cost,
        }
    )


def opened(table, storage, folder, rows=2, epsilon=2.0, schema=SCHEMA, person="patient", seed=1):
    budget = Budget(epsilon, 1e-6, max_rows_per_person=rows)
    options = {"person": person, "seed": seed}
    if storage == "pandas":
        return Vault(table, schema, budget, **options)
    database = duckdb.connect()
    source = database.from_df(table)
    if storage == "relation":
        return Vault(source, schema, budget, **options)
    kind, _, where = storage.partition(" in ")
    path = folder / f"table.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    else:
        source.write_parquet(str(path))
    return Vault(path, schema, budget, storage=where or "duckdb", **options)


def kept(vault):
    """The rows that a vault has, as sorted codes."""
    codes = np.concatenate([part.codes for part in vault._storage.batches(50)])
    return codes[np.lexsort(codes.T)]


@pytest.mark.parametrize("storage", STORAGES)
def test_at_most_k_rows_of_each_person_stay(storage, tmp_path):
    table, rows = visits(), 3
    expected = np.minimum(table.groupby("patient").size(), rows).sum()
    with opened(table, storage, tmp_path, rows) as vault:
        assert vault._storage.rows() == expected == len(kept(vault))
        assert vault._storage.counts([("ward",)])[0].sum() == expected


@pytest.mark.parametrize("storage", STORAGES)
def test_a_person_of_a_thousand_rows_changes_no_more_than_k(storage, tmp_path):
    """Whatever else is in the table, and wherever in it the person's rows are."""
    others = visits()
    busy = visits(1, seed=5).sample(1000, replace=True, random_state=1).assign(patient=7)
    both = pd.concat([busy[:400], others, busy[400:]], ignore_index=True)
    (tmp_path / "without").mkdir()
    with opened(others, storage, tmp_path / "without", 3) as vault:
        without = pd.DataFrame(kept(vault)).value_counts()
    with opened(both, storage, tmp_path, 3) as vault:
        together = pd.DataFrame(kept(vault)).value_counts()
    change = together.sub(without, fill_value=0)
    assert change.abs().sum() == 3
    assert (change >= 0).all()


def test_the_same_seed_gives_the_same_answers_in_every_storage(tmp_path):
    table = visits()
    answers = []
    for storage in STORAGES:
        with opened(table, storage, tmp_path) as vault:
            counts = vault.counts([("ward", "cost"), ("stay",)], vault.budget.whole.part(0.5))
            total = vault.total(vault.budget.whole.part(0.5))
        answers.append([*counts[0].values.ravel(), *counts[1].values, total.value])
    assert all(answer == answers[0] for answer in answers[1:])


@pytest.mark.parametrize("storage", ["pandas", "parquet"])
def test_the_choice_does_not_depend_on_the_order_of_rows(storage, tmp_path):
    table = visits()
    found = []
    for seed in range(2):
        shuffled = table.sample(frac=1, random_state=seed)
        with opened(shuffled, storage, tmp_path) as vault:
            found.append(kept(vault).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("storage", ["pandas", "parquet"])
def test_rows_that_only_run_together_to_the_same_text_are_told_apart(storage, tmp_path):
    """Or which of them stays would depend on their order."""
    schema = Schema([Column.categorical(name, ["1", "11", "-"], nullable=True) for name in "ab"])
    for pair in ((["1", "11"], ["11", "1"]), (["-", None], [None, "-"])):
        found = []
        for order in (1, -1):
            rows = pd.DataFrame(pair[::order], columns=["a", "b"])
            every = pd.concat([rows.assign(patient=f"p{person}") for person in range(30)])
            with opened(every, storage, tmp_path, rows=1, schema=schema) as vault:
                found.append(kept(vault).tolist())
        assert found[0] == found[1]
        assert len(np.unique(found[0], axis=0)) == 2


def test_persons_bounded_in_parts_are_bounded_alike(tmp_path, monkeypatch):
    with opened(visits(), "parquet", tmp_path) as vault:
        whole = kept(vault).tolist()
    monkeypatch.setattr(out_of_core, "_ROWS_BOUNDED_AT_ONCE", 60)
    for storage in ("parquet", "relation"):
        with opened(visits(), storage, tmp_path) as vault:
            assert kept(vault).tolist() == whole


@pytest.mark.parametrize("storage", ["pandas", "parquet"])
def test_the_choice_is_fair_among_rows_and_differs_from_person_to_person(storage, tmp_path):
    """Nine rows of one kind and one of another: the one is kept by a tenth of the persons."""
    persons = 2000
    table = pd.DataFrame(
        {
            "patient": np.repeat(np.arange(persons), 10),
            "ward": np.tile(["A"] * 9 + ["B"], persons),
            "stay": 0,
            "cost": 1.0,
        }
    )
    with opened(table, storage, tmp_path, rows=1) as vault:
        a, b, _ = vault._storage.counts([("ward",)])[0]
    assert a + b == persons
    # Of 2,000 fair draws, five standard deviations: a false alarm in two million.
    assert b == pytest.approx(200, abs=5 * np.sqrt(2000 * 0.09))


@pytest.mark.parametrize("storage", ["pandas", "csv", "parquet"])
def test_rows_of_nobody_are_not_used(storage, tmp_path):
    table = visits().astype({"patient": object})
    table.loc[::3, "patient"] = None
    table["patient"] = table["patient"].astype("string")
    expected = np.minimum(table.groupby("patient").size(), 2).sum()
    with opened(table, storage, tmp_path) as vault:
        assert vault._storage.rows() == expected


@pytest.mark.parametrize("storage", ["pandas", "csv", "parquet"])
def test_values_that_read_the_same_are_one_person(storage, tmp_path):
    table = pd.DataFrame(
        {"patient": ["1", " 1", "1 ", "2", "", " "], "ward": "A", "stay": 1, "cost": 1.0}
    )
    with opened(table, storage, tmp_path, rows=1) as vault:
        assert vault._storage.rows() == 2


@pytest.mark.parametrize("storage", ["pandas", "parquet"])
def test_a_number_is_the_same_person_whatever_its_type(storage, tmp_path):
    table = visits()
    found = []
    for dtype in ("int64", "float64", "string"):
        with opened(table.astype({"patient": dtype}), storage, tmp_path) as vault:
            found.append(kept(vault).tolist())
    assert found[0] == found[1] == found[2]


def test_mixed_objects_are_persons_by_their_texts():
    table = pd.DataFrame({"patient": pd.Series([1, 1.0, "1", "one"], dtype=object)})
    table = table.assign(ward="A", stay=1, cost=1.0)
    with Vault(table, SCHEMA, Budget(1.0, 1e-6, max_rows_per_person=1), person="patient") as vault:
        assert vault._storage.rows() == 2


def test_the_person_is_neither_in_the_schema_nor_missing_from_the_table(tmp_path):
    schema = Schema([*SCHEMA, Column.integer("patient", 0, 2000)])
    with pytest.raises(TableError, match="person: the column 'patient' says whose a row is"):
        opened(visits(), "pandas", tmp_path, schema=schema)
    with pytest.raises(TableError, match="person: the table has no column 'nobody'"):
        opened(visits(), "parquet", tmp_path, person="nobody")
    with pytest.raises(VaultError, match="person: expected the name of a column, not 3"):
        opened(visits(), "pandas", tmp_path, person=3)


def test_an_identifier_that_is_made_up_may_be_the_person(tmp_path):
    schema = Schema([*SCHEMA, Column.identifier("patient")])
    with opened(visits(), "pandas", tmp_path, schema=schema) as vault:
        assert "patient" not in vault.schema.names
        assert vault._storage.rows() == np.minimum(visits().groupby("patient").size(), 2).sum()


def test_a_file_that_changes_while_its_persons_are_bounded_is_refused(tmp_path):
    with opened(visits(), "parquet", tmp_path) as vault:
        duckdb.connect().from_df(visits(seed=3)).write_parquet(str(tmp_path / "table.parquet"))
        with pytest.raises(TableError, match="was written to while it was in use"):
            vault.counts([("ward",)], vault.budget.whole)


def test_a_column_of_row_numbers_in_the_file_is_refused(tmp_path):
    table = visits().assign(file_row_number=0)
    with pytest.raises(TableError, match="'file_row_number' of its own; rename it"):
        opened(table, "parquet", tmp_path)


@pytest.mark.parametrize("storage", ["pandas", "csv", "parquet"])
def test_columns_may_be_called_what_we_call_ours(storage, tmp_path):
    """A name of the caller's never stands for one of the storage's."""
    ours = {"patient": "person", "ward": "place", "stay": "digest", "cost": "c1"}
    columns = [replace(column, name=ours[column.name]) for column in SCHEMA]
    table = visits().rename(columns=ours).assign(occurrence=1, rank=0, c2="x", c3="y")
    with opened(table, storage, tmp_path, schema=Schema(columns), person="person") as vault:
        found = kept(vault).tolist()
    with opened(visits(), storage, tmp_path) as vault:
        assert kept(vault).tolist() == found


@pytest.mark.parametrize("storage", ["csv", "relation"])
def test_a_column_may_be_called_what_the_database_calls_the_place_of_a_row(storage, tmp_path):
    table = visits().rename(columns={"patient": "RowId"})
    with opened(table, storage, tmp_path, person="RowId") as vault:
        found = kept(vault).tolist()
    with opened(visits(), storage, tmp_path) as vault:
        assert kept(vault).tolist() == found


def test_a_person_that_a_database_confuses_with_another_column_is_refused(tmp_path):
    with pytest.raises(TableError, match="another column 'patient', but for capital letters"):
        opened(visits().assign(Patient=1), "pandas", tmp_path)


@pytest.mark.parametrize("storage", ["pandas", "parquet", "relation"])
def test_a_table_without_rows_has_no_persons(storage, tmp_path):
    with opened(visits()[:0], storage, tmp_path) as vault:
        assert vault._storage.rows() == 0
