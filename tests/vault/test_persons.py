"""How many persons have more rows than are kept: alike in every storage, and charged as persons."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, TableError, VaultError
from counterpoise.vault import Budget, NoisyPersons, Vault
from counterpoise.vault.events import DiscreteLaplaceDpEvent, GaussianDpEvent
from counterpoise.vault.storage import out_of_core
from tests.vault.test_people import SCHEMA, STORAGES, opened, visits


def exact(table, rows):
    """Persons with at most so many rows, and with more."""
    sizes = table.groupby("patient").size()
    return [int((sizes <= rows).sum()), int((sizes > rows).sum())]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("rows", [1, 4, 8, 9])
def test_persons_within_the_bound_and_beyond_it_are_counted(storage, rows, tmp_path):
    with opened(visits(), storage, tmp_path, rows) as vault:
        assert vault._storage.persons().tolist() == exact(visits(), rows)
        # Not only before the rows are coded.
        vault._storage.counts([("ward",)])
        assert vault._storage.persons().tolist() == exact(visits(), rows)


@pytest.mark.parametrize("storage", ["pandas", "csv", "parquet", "relation"])
def test_rows_of_nobody_are_nobodys_and_persons_are_told_apart_as_their_rows_are(storage, tmp_path):
    whose = ["1", " 1", "1 ", "2", "", " ", None, None, "3", "3", "3"]
    table = pd.DataFrame(
        {"patient": pd.array(whose, "string"), "ward": "A", "stay": 1, "cost": 1.0}
    )
    with opened(table, storage, tmp_path, rows=2) as vault:
        assert vault._storage.persons().tolist() == [1, 2]


@pytest.mark.parametrize("storage", ["parquet", "relation"])
def test_persons_counted_in_parts_are_counted_once(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "_ROWS_BOUNDED_AT_ONCE", 60)
    with opened(visits(), storage, tmp_path, rows=3) as vault:
        assert vault._storage.persons().tolist() == exact(visits(), 3)


@pytest.mark.parametrize("storage", ["pandas", "parquet", "relation"])
def test_a_table_without_rows_has_nobody(storage, tmp_path):
    with opened(visits()[:0], storage, tmp_path) as vault:
        assert vault._storage.persons().tolist() == [0, 0]


def test_the_same_seed_gives_the_same_answer_in_every_storage(tmp_path):
    answers = []
    for storage in STORAGES:
        with opened(visits(), storage, tmp_path) as vault:
            answers.append(vault.persons(vault.budget.whole))
    assert answers[0] != NoisyPersons(*exact(visits(), 2), answers[0].deviation, False)
    assert all(answer == answers[0] for answer in answers[1:])


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2, 500])
def test_a_person_is_one_record_however_many_rows_of_theirs_are_kept(rows, neighbours):
    budget = Budget(1.0, 1e-6, neighbours, rows)
    with Vault(visits(), SCHEMA, budget, person="patient", seed=1) as vault:
        share = budget.whole.part(0.1)
        found = vault.persons(share)
        [spend] = vault.ledger.spends
        moved = 1.0 if neighbours == "add-remove" else np.sqrt(2)
        assert found.deviation == pytest.approx(moved / np.sqrt(2 * share.amount))
        assert spend.event == GaussianDpEvent(pytest.approx(found.deviation / moved))
        assert spend.query.startswith(f"persons with at most {rows} row")


@pytest.mark.parametrize(("neighbours", "moved"), [("add-remove", 1), ("replace", 2)])
def test_a_pure_budget_pays_by_a_discrete_laplace(neighbours, moved):
    budget = Budget(1.0, 0.0, neighbours, 7)
    with Vault(visits(), SCHEMA, budget, person="patient", seed=1) as vault:
        vault.persons(budget.whole.part(0.5))
        [spend] = vault.ledger.spends
    assert spend.event == DiscreteLaplaceDpEvent(pytest.approx(0.5 / moved), moved)


def test_a_large_budget_tells_nearly_the_truth():
    budget = Budget(1000.0, 1e-6, max_rows_per_person=4)
    with Vault(visits(500), SCHEMA, budget, person="patient") as vault:
        found = vault.persons(budget.whole)
    assert [found.within, found.beyond] == pytest.approx(exact(visits(500), 4), abs=3)
    assert found.private


def test_where_nobody_says_whose_a_row_is_nobody_is_counted():
    budget = Budget(1.0, 1e-6, max_rows_per_person=2)
    with Vault(visits(), SCHEMA, budget, seed=1) as vault:
        with pytest.raises(VaultError, match=r"persons: .* open the vault with person="):
            vault.persons(budget.whole)
        assert vault.ledger.spends == ()


def test_an_overspend_counts_nobody(monkeypatch):
    budget = Budget(1.0, 1e-6, max_rows_per_person=2)
    with Vault(visits(), SCHEMA, budget, person="patient") as vault:
        vault.total(budget.whole)

        def read():
            raise AssertionError("the persons were counted")

        monkeypatch.setattr(vault._storage, "persons", read)
        with pytest.raises(BudgetError):
            vault.persons(budget.whole.part(0.01))
        assert len(vault.ledger.spends) == 1


def test_a_file_that_changes_after_its_persons_were_counted_is_refused(tmp_path):
    with opened(visits(), "parquet", tmp_path) as vault:
        visits(seed=3).to_parquet(tmp_path / "table.parquet")
        with pytest.raises(TableError, match="was written to while it was in use"):
            vault.persons(vault.budget.whole)


def test_the_answer_is_of_a_vault_that_is_private_or_not():
    budget = Budget(1.0, 1e-6, max_rows_per_person=2)
    found = []
    for seed in (None, 1):
        with Vault(visits(), SCHEMA, budget, person="patient", seed=seed) as vault:
            found.append(vault.persons(budget.whole))
    assert [one.private for one in found] == [True, False]
