"""Charges are on disk before the look, and what was looked at is never drawn anew."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, BundleError, VaultError
from counterpoise.patience import Terminated, patiently, stoppable
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Journal, MarginalError, Spend, Vault
from counterpoise.vault.events import GaussianDpEvent
from tests.vault.test_boundary import LOOKS

BUDGET = Budget(4.0, 1e-6)
SCHEMA = Schema(
    [
        Column.categorical("sex", ["F", "M"]),
        Column.integer("age", 0, 99, bins=4),
    ]
)
OPEN = Schema([Column.categorical("sex"), Column.integer("age")]).pay("sex").pay("age")


class Features:
    names = ("one", "two")

    def __call__(self, rows):
        return rows.units


def table(rows=2000):
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {"sex": generator.choice(["F", "M"], rows), "age": generator.integers(1, 90, rows)}
    )


QUERIES = {
    "counts": (SCHEMA, lambda vault, part: vault.counts([("sex", "age"), ("age",)], part)),
    "total": (SCHEMA, lambda vault, part: vault.total(part)),
    "sums": (SCHEMA, lambda vault, part: vault.sums(Features(), 2.0, part)),
    "minimise": (
        SCHEMA,
        lambda vault, part: vault.minimise(
            Features(), 2.0, SCHEMA.encode(table(50)), part, rows=2000, regularisation=0.5
        ),
    ),
    "minimise_perturbed": (
        SCHEMA,
        lambda vault, part: vault.minimise_perturbed(
            Features(), 2.0, SCHEMA.encode(table(50)), part, rows=2000, regularisation=0.5
        ),
    ),
    "select": (
        SCHEMA,
        lambda vault, part: vault.select(
            [("sex",), ("age",)] * 20,
            MarginalError([np.zeros(2), np.zeros(4)] * 20, np.ones(40), np.zeros(40)),
            part,
        ),
    ),
    "quantiles": (SCHEMA, lambda vault, part: vault.quantiles("age", [0.2, 0.5, 0.8], part)),
    "bounds": (OPEN, lambda vault, part: vault.bounds("age", part)),
    "categories": (OPEN, lambda vault, part: vault.categories("sex", part, 1e-7)),
}


def journal_of(folder, private=True):
    return Journal(folder / "journal", BUDGET, private, threshold_delta=5e-7)


def same(one, other):
    if isinstance(one, list):
        return all(same(*pair) for pair in zip(one, other, strict=True))
    if not hasattr(one, "__dict__"):
        return one == other
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))


@pytest.mark.parametrize("name", QUERIES)
def test_an_answer_that_was_paid_for_is_given_again(name, tmp_path):
    schema, ask = QUERIES[name]
    part = BUDGET.whole.part(0.05)
    answers = []
    for _ in range(2):
        journal = journal_of(tmp_path)
        with Vault(table(), schema, BUDGET, journal=journal) as vault:
            answers.append([ask(vault, part) for _ in range(3)])
            assert len(vault.ledger.spends) == 3
    assert same(answers[0], answers[1])
    # And once they are used up, the same question is another look, and charged.
    with Vault(table(), schema, BUDGET, journal=journal_of(tmp_path)) as vault:
        for _ in range(4):
            ask(vault, part)
        assert len(vault.ledger.spends) == 4


@pytest.mark.parametrize("name", QUERIES)
def test_the_charge_is_on_disk_before_the_look(name, tmp_path, monkeypatch):
    schema, ask = QUERIES[name]
    path, written = tmp_path / "journal", []
    with Vault(table(), schema, BUDGET, journal=journal_of(tmp_path)) as vault:
        for look in LOOKS:
            read = getattr(vault._storage, look)

            def looking(*arguments, read=read):
                written.append(path.read_bytes().count(b'"charge"'))
                return read(*arguments)

            monkeypatch.setattr(vault._storage, look, looking)
        ask(vault, BUDGET.whole.part(0.05))
    assert written
    assert set(written) == {1}


def test_another_question_gets_no_answer_of_this_one(tmp_path):
    part = BUDGET.whole.part(0.05)
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        vault.counts([("sex",)], part)
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        vault.counts([("age",)], part)
        vault.counts([("sex",)], part.part(0.5))
        assert len(vault.ledger.spends) == 3


def test_a_minimiser_around_another_centre_is_another_question(tmp_path):
    part = BUDGET.whole.part(0.05)
    for looks, centre in enumerate(([0.0, 0.0], [0.5, 0.0]), start=1):
        with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
            vault.minimise(
                Features(),
                2.0,
                SCHEMA.encode(table(50)),
                part,
                rows=2000,
                regularisation=0.5,
                centre=np.array(centre),
            )
            assert len(vault.ledger.spends) == looks


def test_a_lost_answer_stays_charged_and_is_paid_for_again(tmp_path):
    path, part = tmp_path / "journal", BUDGET.whole.part(0.4)
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        vault.total(part)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert journal_of(tmp_path).lost == ("number of rows",)
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        found = vault.total(part)
        assert len(vault.ledger.spends) == 2
    assert journal_of(tmp_path).lost == ()
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        assert vault.total(part) == found
        with pytest.raises(BudgetError, match="overspend"):
            vault.counts([("sex",)], part)


def test_only_its_owner_reads_a_journal(tmp_path):
    mask = os.umask(0o022)
    try:
        Journal(tmp_path / "journal", BUDGET)
    finally:
        os.umask(mask)
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_answers_up_to_a_mark_are_passed_over_and_none_after_it(tmp_path):
    marks = []
    journal = journal_of(tmp_path)
    for value in range(3):
        journal.charge(Spend("domain", "rows", GaussianDpEvent(50.0)), "how many rows?")
        journal.keep(np.array([value]))
        marks.append(journal.mark)
    for passed, mark in enumerate(marks, start=1):
        again = journal_of(tmp_path)
        assert again.skip(mark)
        left = [again.answer("how many rows?") for _ in range(4)]
        assert left == [*range(passed, 3), *[None] * (passed + 1)]
    other = journal_of(tmp_path)
    assert not other.skip("of another journal")
    assert other.answer("how many rows?") == 0


@pytest.mark.parametrize("torn", range(1, 60, 7))
def test_a_torn_last_line_is_cut_off(tmp_path, torn):
    path, part = tmp_path / "journal", BUDGET.whole.part(0.05)
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        first = vault.total(part)
        whole = path.stat().st_size
        vault.counts([("sex",)], part)
    content = path.read_bytes()
    path.write_bytes(content[: whole + torn])
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        assert vault.total(part) == first
        vault.counts([("sex",)], part)
        assert len(vault.ledger.spends) == 2
    assert len(journal_of(tmp_path).ledger().spends) == 2


def test_any_change_of_a_whole_line_is_found(tmp_path):
    path = tmp_path / "journal"
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        vault.total(BUDGET.whole.part(0.05))
    content = path.read_bytes()
    generator = np.random.default_rng(0)
    for place in generator.integers(0, len(content) - 1, 100):
        changed = bytearray(content)
        changed[place] ^= 1 << int(generator.integers(0, 7))
        if changed == content or b"\n" not in changed[-1:]:
            continue
        path.write_bytes(changed)
        with pytest.raises(BundleError, match="damaged"):
            journal_of(tmp_path)


def test_a_journal_of_another_budget_is_refused(tmp_path):
    journal_of(tmp_path)
    with pytest.raises(BundleError, match="another budget"):
        Journal(tmp_path / "journal", Budget(5.0, 1e-6))


def test_a_journal_and_a_ledger_are_not_stated_together(tmp_path):
    journal = journal_of(tmp_path)
    with pytest.raises(VaultError, match="state one"):
        Vault(table(), SCHEMA, BUDGET, journal=journal, ledger=journal.ledger())


def test_a_journal_of_seeded_noise_stays_stamped(tmp_path):
    with Vault(table(), SCHEMA, BUDGET, seed=1, journal=journal_of(tmp_path, False)) as vault:
        vault.total(BUDGET.whole.part(0.05))
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        assert not vault.private
        assert not vault.total(BUDGET.whole.part(0.05)).private


def test_where_the_charge_cannot_be_written_nothing_is_looked_at(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    with Vault(table(), SCHEMA, BUDGET, journal=journal_of(tmp_path)) as vault:
        before = path.read_bytes()
        monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "full")))
        monkeypatch.setattr(vault._storage, "rows", lambda: pytest.fail("looked"))
        with pytest.raises(BundleError, match="the disk is full"):
            vault.total(BUDGET.whole.part(0.05))
        assert len(vault.ledger.spends) == 1
    assert path.read_bytes() == before


def test_a_query_from_within_another_is_refused():
    class Asking(Features):
        def __call__(self, rows):
            with pytest.raises(VaultError, match="within another"):
                vault.total(BUDGET.whole.part(0.05))
            return super().__call__(rows)

    with Vault(table(), SCHEMA, BUDGET) as vault:
        vault.sums(Asking(), 2.0, BUDGET.whole.part(0.05))
        assert len(vault.ledger.spends) == 1


def test_queries_of_several_threads_are_answered_one_at_a_time(monkeypatch):
    part = BUDGET.whole.part(0.01)
    inside, most = [], []
    with Vault(table(), SCHEMA, BUDGET) as vault:
        count = vault._storage.counts

        def counting(cliques):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.002)
            found = count(cliques)
            inside.pop()
            return found

        monkeypatch.setattr(vault._storage, "counts", counting)
        threads = [
            threading.Thread(target=lambda: vault.counts([("sex", "age")], part)) for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(vault.ledger.spends) == 16
    assert max(most) == 1


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("way", ["alone", "stoppable"])
def test_a_signal_during_a_look_waits_for_the_answer_to_be_written(tmp_path, sent, way):
    script = textwrap.dedent(
        f"""
        import contextlib, os, signal
        from pathlib import Path
        from tests.vault.test_journal import BUDGET, SCHEMA, Features, journal_of, table
        from counterpoise.patience import stoppable
        from counterpoise.vault import Vault

        class Interrupted(Features):
            def __call__(self, rows):
                os.kill(os.getpid(), {int(sent)})
                return super().__call__(rows)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        journal = journal_of(Path({str(tmp_path)!r}))
        held = stoppable() if {way == "stoppable"} else contextlib.nullcontext()
        with held, Vault(table(), SCHEMA, BUDGET, journal=journal) as vault:
            try:
                vault.sums(Interrupted(), 2.0, BUDGET.whole.part(0.05))
            except KeyboardInterrupt as stopped:
                print(type(stopped).__name__)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if way == "stoppable" or sent == signal.SIGINT:
        said = {signal.SIGTERM: "Terminated", signal.SIGHUP: "HungUp"}
        assert done.stdout == said.get(sent, "KeyboardInterrupt") + "\n", done.stderr
    else:
        assert done.returncode == -sent
    assert len(journal_of(tmp_path).ledger().spends) == 1
    assert journal_of(tmp_path).lost == ()


def test_a_second_signal_does_not_wait_and_one_that_is_ignored_stays_so():
    usual = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    reached = []
    try:
        with pytest.raises(Terminated), stoppable(), patiently():
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
            reached.append("after the first")
            signal.raise_signal(signal.SIGTERM)
            reached.append("after the second")
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, usual)
    assert reached == ["after the first"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_spend_is_written_with_its_event(tmp_path):
    journal = journal_of(tmp_path)
    spend = Spend("weights", "sums of 2 features", GaussianDpEvent(12.5), 1e-9)
    journal.charge(spend, "what?")
    journal.keep(np.array([1.5, -2.5]))
    assert journal_of(tmp_path).ledger().spends == (spend,)
