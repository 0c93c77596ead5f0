"""The account pays first, once, and never more than it has; what it cannot believe pays nothing."""

import json
import math
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise import disk
from counterpoise.errors import BudgetError, BundleError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Account, Budget, Journal, Spend, Vault
from counterpoise.vault.events import (
    ExponentialDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from counterpoise.vault.ledger import Ledger
from tests.forks import fork

SCHEMA = Schema([Column.boolean("ill")])
TABLE = pd.DataFrame({"ill": [True, False, False] * 20})
BUDGET = Budget(1.0, 1e-6)
GAUSSIAN = Spend("query", "counts", GaussianDpEvent(8.0))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.account.json"


@pytest.fixture
def account(path):
    return Account.create(path, 4.0, 1e-6)


def ask(vault, part=0.5):
    return vault.counts([("ill",)], vault.budget.whole.part(part))


def test_every_charge_of_every_vault_is_in_the_account_before_the_look(account, path, monkeypatch):
    for number in (1, 2):
        with Vault(TABLE, SCHEMA, BUDGET, account=path) as vault:
            counts = vault._storage.counts

            def counting(cliques, counts=counts, number=number):
                assert len(Account(path).charges) == number
                return counts(cliques)

            monkeypatch.setattr(vault._storage, "counts", counting)
            ask(vault)
            assert vault.charged_to["id"] == account.id
            assert [charge.spend for charge in account.charges[-1:]] == list(vault.ledger.spends)
    assert len({charge.release for charge in account.charges}) == 2


def test_all_kinds_of_charges_are_composed_as_one_ledger_composes_them(account):
    """Thresholds, selections and sampled gradients of two releases, as if all were one."""
    spends = [
        GAUSSIAN,
        Spend("domain", "categories", GaussianDpEvent(9.0), 1e-8),
        Spend("synthesizer", "selection", ExponentialDpEvent(0.1)),
        Spend(
            "weights",
            "gradients",
            SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), 100),
        ),
    ]
    together = Ledger(Budget(4.0, 1e-6), threshold_delta=1e-7)
    for place, spend in enumerate(spends):
        account.charge(f"release {place % 2}", spend)
        together.stage = spend.stage
        together.spend(spend.query, spend.event, spend.delta)
    assert account.ledger.spends == together.spends
    assert account.ledger.epsilon_spent == together.epsilon_spent
    assert Account(account._path).ledger.epsilon_spent == together.epsilon_spent
    assert list(account.to_frame()["charges"]) == [2, 2]
    with pytest.raises(BudgetError, match="would overspend the account"):
        account.charge("a list", Spend("domain", "categories", GaussianDpEvent(9.0), 1e-7))


def test_an_overspend_is_refused_and_leaves_everything_as_it_was(account, path):
    before = path.read_bytes()
    with pytest.raises(BudgetError, match="'counts' would overspend the account: epsilon 0 of 4"):
        account.charge("one", Spend("query", "counts", GaussianDpEvent(0.5)))
    assert path.read_bytes() == before
    while (epsilon := account.next_epsilon()) > 1.0:
        with Vault(TABLE, SCHEMA, Budget(1.0, 1e-6), account=account) as vault:
            ask(vault, 1.0)
    assert epsilon < 1.0
    with pytest.raises(BudgetError, match="account: the release does not fit what is left of it"):
        Vault(TABLE, SCHEMA, Budget(1.0, 1e-6), account=account)
    assert account.ledger.epsilon_spent <= 4.0


def test_what_the_release_itself_refuses_is_not_charged(account):
    with Vault(TABLE, SCHEMA, BUDGET, account=account) as vault:
        ask(vault, 1.0)
        with pytest.raises(BudgetError, match="would overspend the budget"):
            ask(vault, 0.5)
        assert len(account.charges) == 1


def test_a_release_that_runs_at_the_same_time_can_be_quicker(account):
    """Room is not set aside, so the slower one is refused at its next charge; nothing is lost."""
    large = Budget(3.5, 1e-6)
    with Vault(TABLE, SCHEMA, large, account=account) as slow:
        with Vault(TABLE, SCHEMA, large, account=account) as quick:
            ask(quick, 0.9)
        with pytest.raises(BudgetError, match="would overspend the account"):
            ask(slow, 0.9)
        assert not slow.ledger.spends


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_next_release_can_have_what_it_is_told_and_no_more(account, epsilon):
    with Vault(TABLE, SCHEMA, Budget(epsilon, 1e-7), account=account) as vault:
        ask(vault, 1.0)
    for delta in (1e-6, 1e-8):
        largest = account.next_epsilon(delta)
        with pytest.raises(BudgetError, match="does not fit what is left"):
            Vault(TABLE, SCHEMA, Budget(largest * 1.001, delta), account=account)
        Vault(TABLE, SCHEMA, Budget(largest, delta), account=account).close()
    with Vault(TABLE, SCHEMA, Budget(account.next_epsilon(), 1e-6), account=account) as vault:
        ask(vault, 1.0)
    assert account.ledger.epsilon_spent <= 4.0
    assert account.next_epsilon() < 1e-3


def test_a_pure_account_adds_up_epsilons_and_takes_pure_releases(tmp_path):
    account = Account.create(tmp_path / "pure.json", 2.0)
    with Vault(TABLE, SCHEMA, Budget(0.5), account=account) as vault:
        ask(vault, 1.0)
    assert account.ledger.epsilon_spent == pytest.approx(0.5)
    assert account.next_epsilon() == pytest.approx(1.5)
    with pytest.raises(BudgetError, match="account: it has no delta, and the release has"):
        Vault(TABLE, SCHEMA, BUDGET, account=account)


def test_a_pure_release_is_charged_to_an_account_with_a_delta(account):
    with Vault(TABLE, SCHEMA, Budget(0.5), account=account) as vault:
        ask(vault, 1.0)
    assert 0 < account.ledger.epsilon_spent <= 0.5 + 1e-9
    assert account.next_epsilon(0.0) > 0


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (Budget(1.0, 1e-6, "replace"), "its neighbours are 'add-remove', and the release's 'rep"),
        (Budget(1.0, 1e-6, max_rows_per_person=2), "its max_rows_per_person is 1, and the rel"),
    ],
)
def test_a_release_with_other_neighbours_is_refused(account, budget, message):
    with pytest.raises(BudgetError, match=message):
        Vault(TABLE, SCHEMA, budget, account=account)


def test_a_list_of_categories_needs_what_the_account_set_aside(account):
    schema = Schema([Column.categorical("ill")])
    with pytest.raises(BudgetError, match="is left for lists of categories"):
        Vault(TABLE, schema, Budget(1.0, 1.1e-6), account=account)
    with Vault(TABLE, schema, Budget(1.0, 1e-7), account=account) as vault:
        vault.learn_domain(vault.budget.whole_beside(1e-8), 1e-8)
    assert account.ledger.spends[0].delta == 1e-8


def test_what_comes_from_a_seed_never_touches_an_account(account, path):
    before = path.read_bytes()
    with pytest.raises(VaultError, match="what comes from a seed is not private, and is never"):
        Vault(TABLE, SCHEMA, BUDGET, account=account, seed=1)
    with pytest.raises(VaultError, match="what comes from a seed is not private, and is never"):
        cp.release(TABLE, SCHEMA, 1.0, 1e-6, account=account, seed=1)
    with pytest.raises(VaultError, match="ledger: an account does not know its charges"):
        Vault(TABLE, SCHEMA, BUDGET, account=account, ledger=Ledger(BUDGET))
    assert path.read_bytes() == before


def test_a_run_that_goes_on_does_not_pay_twice(account, tmp_path):
    def run(parts):
        journal = Journal(tmp_path / "journal", BUDGET)
        with Vault(TABLE, SCHEMA, BUDGET, account=account, journal=journal) as vault:
            return [ask(vault, part)[0].values.tolist() for part in parts]

    first = run([0.4])
    assert run([0.4, 0.3])[0] == first[0]
    assert len(account.charges) == 2
    assert len({charge.release for charge in account.charges}) == 1


def test_a_run_whose_charges_the_account_lost_is_refused(account, path, tmp_path):
    older = path.read_bytes()
    journal = Journal(tmp_path / "journal", BUDGET)
    with Vault(TABLE, SCHEMA, BUDGET, account=account, journal=journal) as vault:
        ask(vault)
    path.write_bytes(older)
    with pytest.raises(BudgetError, match="the file has lost charges that it had"):
        account.ledger  # noqa: B018
    again = Journal(tmp_path / "journal", BUDGET)
    with pytest.raises(BudgetError, match="it lacks what this release has spent already"):
        Vault(TABLE, SCHEMA, BUDGET, account=path, journal=again)


def test_a_kill_between_the_account_and_the_journal_costs_its_charge(
    account, tmp_path, monkeypatch
):
    journal = Journal(tmp_path / "journal", BUDGET)
    with Vault(TABLE, SCHEMA, BUDGET, account=account, journal=journal) as vault:
        monkeypatch.setattr(journal, "charge", lambda *_: 1 / 0)
        monkeypatch.setattr(vault._storage, "counts", lambda _: pytest.fail("looked"))
        with pytest.raises(ZeroDivisionError):
            ask(vault)
    assert len(account.charges) == 1
    with Vault(TABLE, SCHEMA, BUDGET, account=account, journal=Journal(journal.path, BUDGET)) as on:
        ask(on)
    assert len(account.charges) == 2


def changes(content):
    """A file in which something is not as it was written."""
    values = json.loads(content)
    half = content[: len(content) // 2]
    yield "empty", b""
    yield "cut off", half
    yield "no JSON", content + b"}"
    yield "not ASCII", content.replace(b"charges", "chärges".encode())
    yield "a list", b"[]"
    for name, change in {
        "the last charge left out": lambda v: v["charges"].pop(),
        "the first charge left out": lambda v: v["charges"].pop(0),
        "charges in another order": lambda v: v["charges"].reverse(),
        "a cheaper charge": lambda v: v["charges"][0]["spend"]["mechanism"].update(
            noise_multiplier=80.0
        ),
        "another release": lambda v: v["charges"][0].update(release="other"),
        "a larger budget": lambda v: v["account"]["budget"].update(epsilon=40.0),
        "more set aside": lambda v: v["account"].update(threshold_delta=5e-7),
        "another format": lambda v: v.update(format=2),
        "a charge too many": lambda v: v["charges"].append(v["charges"][0]),
        "charges that are none": lambda v: v.update(charges=[1]),
        "no account": lambda v: v.pop("account"),
        "a field too many": lambda v: v.update(more=1),
    }.items():
        changed = json.loads(json.dumps(values))
        change(changed)
        yield name, json.dumps(changed).encode()


def test_a_damaged_file_pays_nothing(account, path):
    account.charge("one", GAUSSIAN)
    account.charge("two", Spend("query", "counts", GaussianDpEvent(9.0)))
    for name, content in changes(path.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(BundleError, match=r"is damaged, and nothing can be paid from it"):
            Account(path)
            pytest.fail(name)
        with pytest.raises((BundleError, BudgetError)):
            account.charge("three", GAUSSIAN)
        assert path.read_bytes() == content, name


def test_a_file_that_overspends_its_own_budget_is_not_believed(account, path, monkeypatch):
    monkeypatch.setattr(Ledger, "fits", lambda *_: True)
    monkeypatch.setattr(Ledger, "spend", lambda *_: None)
    account.charge("one", Spend("query", "counts", GaussianDpEvent(0.1)))
    monkeypatch.undo()
    with pytest.raises(BundleError, match="is damaged"):
        Account(path)


def test_what_cannot_be_written_is_not_looked_for(account, path, monkeypatch):
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    for call in ("fsync", "replace"):
        with (
            Vault(TABLE, SCHEMA, BUDGET, account=account) as vault,
            monkeypatch.context() as broken,
        ):
            broken.setattr(vault._storage, "counts", lambda _: pytest.fail("looked"))
            broken.setattr(os, call, full)
            with pytest.raises(BundleError, match="cannot be written: the disk is full"):
                ask(vault)
            assert not vault.ledger.spends
        assert path.read_bytes() == before
    assert not account.charges
    assert sorted(os.listdir(path.parent)) == [path.name]


def test_a_file_that_is_missing_or_there_already_is_said_to_be(account, path, tmp_path):
    with pytest.raises(BundleError, match=r"none\.json cannot be read: there is no such file"):
        Vault(TABLE, SCHEMA, BUDGET, account=tmp_path / "none.json")
    with pytest.raises(BundleError, match="is there already; state another path"):
        Account.create(path, 1.0)
    path.unlink()
    with pytest.raises(BundleError, match="cannot be read: there is no such file"):
        account.charge("one", GAUSSIAN)


def test_a_read_only_folder_refuses(account, path, monkeypatch):
    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(BundleError, match="cannot be written: the file system is read-only"):
        account.charge("one", GAUSSIAN)


def test_an_account_has_one_name_in_the_file_system(account, path, tmp_path):
    """A rename would leave the other name with an account that forgets."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "link.json").symlink_to(path)
    Account(other / "link.json").charge("by a link", GAUSSIAN)
    assert (other / "link.json").is_symlink()
    assert [charge.release for charge in account.charges] == ["by a link"]
    os.link(path, other / "hard.json")
    with pytest.raises(BundleError, match="has a second name in the file system"):
        account.charge("two", GAUSSIAN)


def test_a_charge_waits_for_its_turn_and_not_for_ever(account, path):
    lock = path.with_name(f".{path.name}.counterpoise-lock")
    hasty = Account(path, wait=0.05)
    with disk.only_one(lock, "busy"), pytest.raises(BundleError, match="is in use by other rel"):
        hasty.charge("one", GAUSSIAN)
    hasty.charge("one", GAUSSIAN)
    assert len(account.charges) == 1


def test_without_locks_there_is_no_account(account, monkeypatch):
    monkeypatch.setattr(disk, "fcntl", None)
    with pytest.raises(BundleError, match="this system has no file locks"):
        account.charge("one", GAUSSIAN)


@pytest.mark.parametrize("name", ["two\nlines", "x" * 201, 3])
def test_a_name_is_one_line(tmp_path, name):
    with pytest.raises(BudgetError, match="name: expected"):
        Account.create(tmp_path / "a.json", 1.0, name=name)


def test_the_file_and_its_text_hold_no_path_and_no_value(path, tmp_path):
    account = Account.create(path, 4.0, 1e-6, name="visits")
    table = pd.DataFrame({"ill": ["CANARY", "CANARY"]})
    with Vault(
        table, Schema([Column.categorical("ill")]), Budget(1.0, 1e-7), account=path
    ) as vault:
        vault.learn_domain(vault.budget.whole_beside(1e-8), 1e-8)
    for text in (path.read_text(), str(account), repr(account), json.dumps(account.to_dict())):
        assert "CANARY" not in text
        assert str(tmp_path) not in text and path.name not in text
    assert "visits" in str(account) and account.id in str(account)


def test_what_is_shown_can_be_had(account):
    account.charge("first", GAUSSIAN)
    shown = float(str(account).splitlines()[-1].split("epsilon ")[1].split()[0])
    assert math.isclose(shown, account.next_epsilon(), rel_tol=2e-3)
    assert shown <= account.next_epsilon()
    assert "first" in str(account) and account.to_dict()["releases"][0]["charges"] == 1


def charging(path: Path, number: int, seed: int) -> None:
    """Charge in a loop, and note after each charge that it was made."""
    generator = np.random.default_rng(seed)
    account = Account(path)
    notes = os.open(path.with_name(f"notes.{number}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        spend = Spend("query", f"{number}", GaussianDpEvent(float(generator.uniform(10, 30))))
        try:
            account.charge(f"run {number}", spend)
        except BudgetError:
            os._exit(0)
        os.write(notes, b"x")
        # A busy machine is slow to start and to kill: nobody has spent it all by then.
        time.sleep(0.002)


def test_eight_processes_and_random_kills_never_overspend_and_never_lose(tmp_path):
    """What a process was told is charged is in the file, though it was killed at any moment."""
    path = tmp_path / "people.account.json"
    account = Account.create(path, 2.0, 1e-6)
    chance = random.Random(1)
    running: dict[int, int] = {}
    started = kills = 0

    def start() -> None:
        nonlocal started
        child = fork()
        if child == 0:
            try:
                charging(path, started, started)
            finally:
                os._exit(1)
        running[child] = started
        started += 1

    for _ in range(8):
        start()
    failed = []
    while running:
        time.sleep(chance.uniform(0, 0.02))
        if kills < 30:
            victim = chance.choice(list(running))
            os.kill(victim, signal.SIGKILL)
            kills += 1
        for child in list(running):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                number = running.pop(child)
                if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
                    failed.append(number)
                if os.waitstatus_to_exitcode(status) == -signal.SIGKILL:
                    start()
    assert not failed
    charges = Account(path).charges
    made = dict.fromkeys(range(started), 0)
    for charge in charges:
        made[int(charge.spend.query)] += 1
    for number, count in made.items():
        notes = path.with_name(f"notes.{number}")
        told = notes.stat().st_size if notes.exists() else 0
        # A process that is killed between the charge and the note has one that it was not told.
        assert told <= count <= told + 1, (number, told, count)
    assert account.ledger.epsilon_spent <= 2.0
    # All of it was spent: the last one that was refused would have been one too many.
    assert account.next_epsilon() < 0.5
    assert kills > 3
