"""An interrupted release goes on from what it has paid for, within its budget."""

import os
import shutil

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.bundle import files
from counterpoise.errors import BudgetError, BundleError, TableError, VaultError
from counterpoise.synthesizers import Aim, aim
from counterpoise.vault import Journal, threshold_delta
from counterpoise.vault import journal as journal_module
from counterpoise.weights import Oracle
from tests.cli.calls import run as call
from tests.conftest import make_schema, make_table

BUDGET = cp.Budget(4.0, 1e-6)
STAGES = ["domain", "synthesizer", "sampling", "weights", "replicates", "done"]


def paid_schema() -> cp.Schema:
    return make_schema().replace(cp.Column.categorical("sex")).pay("sex")


def interrupted_at(stage):
    def progress(name, done):
        if name == stage:
            raise KeyboardInterrupt

    return progress


def written(folder) -> cp.Ledger:
    """The charges that are on disk."""
    set_aside = threshold_delta(paid_schema(), BUDGET.delta)
    return Journal(folder / "journal", BUDGET, threshold_delta=set_aside).ledger()


def run(folder, **options):
    asked = {"rows": 60, "replicates": 3} | options
    table = asked.pop("table", make_table(400))
    return cp.release(table, paid_schema(), BUDGET.epsilon, BUDGET.delta, work=folder, **asked)


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_interrupted_at_any_stage_goes_on(tmp_path, stage):
    folder = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=interrupted_at(stage))
    # Nothing is paid for before the domain is asked for, and then nothing is left either.
    assert folder.exists() == (stage != "domain")
    assert not list(folder.glob(".*"))
    release = run(folder)
    assert 0.99 * 4 <= release.ledger.epsilon_spent <= 4
    assert [spend.stage for spend in release.ledger.spends].count("weights") == 2
    assert len(release.table) == 60
    assert release.replicates.shape == (60, 3)


def test_what_was_finished_is_not_asked_again(tmp_path):
    folder = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=interrupted_at("sampling"))
    paid = written(folder).spends
    release = run(folder)
    assert release.ledger.spends[: len(paid)] == paid
    assert {spend.stage for spend in release.ledger.spends[len(paid) :]} == {"weights"}


def test_a_finished_run_comes_out_the_same_again_without_paying(tmp_path):
    first, second = (run(tmp_path / "work") for _ in range(2))
    pd.testing.assert_frame_equal(first.table, second.table)
    np.testing.assert_allclose(first.replicates, second.replicates, rtol=1e-3)
    assert first.card["ledger"] == second.card["ledger"]


def test_rounds_that_were_paid_for_are_not_lost(tmp_path, monkeypatch):
    folder = tmp_path / "work"
    measure, measured = aim._measure_worst, []

    def interrupted(*arguments):
        if len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(arguments)
        return measure(*arguments)

    monkeypatch.setattr(aim, "_measure_worst", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(folder, synthesizer=Aim(rounds=8))
    monkeypatch.undo()
    kept = written(folder).spends
    first, second, rough, cells, singles, choice, counts = (spend.query for spend in kept)
    assert (first, second) == ("categories of sex", "number of rows")
    assert rough.startswith("rough cells") and cells.startswith("fine cells")
    assert choice.startswith("selection")
    assert singles.startswith("counts")
    assert counts.startswith("counts")
    release = run(folder, synthesizer=Aim(rounds=8))
    assert release.ledger.spends[: len(kept)] == kept
    assert release.ledger.epsilon_spent <= 4


def test_saving_removes_the_folder(tmp_path):
    release = run(tmp_path / "work")
    release.save(tmp_path / "out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out"]


def test_an_interrupted_save_keeps_the_folder(tmp_path, monkeypatch):
    release = run(tmp_path / "work")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "describe_folder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        release.save(tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["work"]
    pd.testing.assert_frame_equal(run(tmp_path / "work").table, release.table)


def test_an_interrupted_stage_leaves_nothing_half_written(tmp_path, monkeypatch):
    folder = tmp_path / "work"

    def interrupted(*paths):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=interrupted_at("synthesizer"))
    before = sorted(file.name for file in folder.iterdir())
    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(folder, synthesizer="auto")
    monkeypatch.undo()
    assert sorted(file.name for file in folder.iterdir()) == before
    assert run(folder).ledger.epsilon_spent <= 4


def test_only_its_own_files_are_removed(tmp_path):
    release = run(tmp_path / "work")
    (tmp_path / "work" / "diary.txt").write_text("mine")
    release.save(tmp_path / "out")
    assert [file.name for file in (tmp_path / "work").iterdir()] == ["diary.txt"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rows": 61}, "rows"),
        ({"split": 0.3}, "split"),
        ({"synthesizer": "mst"}, "synthesizer"),
        ({"target": "age"}, "synthesizer, weights"),
        ({"seed": 1}, "seed"),
        ({"neighbours": "replace"}, "budget"),
    ],
)
def test_another_request_is_refused_with_what_differs(tmp_path, options, named):
    folder = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=interrupted_at("synthesizer"))
    with pytest.raises(BundleError, match=f"differs in {named}\\).*remove the folder"):
        run(folder, table="nowhere.csv", **options)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(BundleError, match="something else"):
        run(tmp_path, table="nowhere.csv")
    with pytest.raises(BundleError, match="not a folder"):
        run(tmp_path / "thesis.tex", table="nowhere.csv")


def test_a_damaged_request_is_refused_by_its_name(tmp_path):
    folder = tmp_path / "work"
    run(folder)
    content = (folder / "request.json").read_bytes()
    (folder / "request.json").write_bytes(content[: len(content) // 2])
    with pytest.raises(BundleError, match=r"request\.json"):
        run(folder)


def test_a_journal_that_was_changed_is_refused_by_its_name(tmp_path):
    folder = tmp_path / "work"
    run(folder)
    content = bytearray((folder / "journal").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "journal").write_bytes(content)
    with pytest.raises(BundleError, match="journal"):
        run(folder)


@pytest.mark.parametrize("stage", ["domain", "synthesizer", "weights"])
def test_a_damaged_stage_is_made_again_from_the_answers(tmp_path, stage):
    folder = tmp_path / "work"
    first = run(folder)
    content = (folder / f"{stage}.npz").read_bytes()
    (folder / f"{stage}.npz").write_bytes(content[: len(content) // 2])
    second = run(folder)
    assert second.ledger.spends == first.ledger.spends
    pd.testing.assert_frame_equal(first.table, second.table)


def test_a_stage_of_another_run_is_not_believed(tmp_path):
    """Its answers are not in this run's ledger, so they must not be in its release either."""
    mine, other = run(tmp_path / "mine"), run(tmp_path / "other")
    for stage in ("domain", "synthesizer", "weights"):
        shutil.copy(tmp_path / "other" / f"{stage}.npz", tmp_path / "mine" / f"{stage}.npz")
    again = run(tmp_path / "mine")
    assert not mine.table.equals(other.table)
    pd.testing.assert_frame_equal(again.table, mine.table, rtol=1e-3)
    assert again.ledger.spends == mine.ledger.spends


def test_lines_of_another_run_are_found_out(tmp_path):
    for name in ("mine", "other"):
        run(tmp_path / name)
    head, *_ = (tmp_path / "mine" / "journal").read_bytes().splitlines(keepends=True)
    _, *rest = (tmp_path / "other" / "journal").read_bytes().splitlines(keepends=True)
    (tmp_path / "mine" / "journal").write_bytes(head + b"".join(rest))
    with pytest.raises(BundleError, match="journal"):
        run(tmp_path / "mine")


def test_two_runs_do_not_share_a_folder(tmp_path):
    def second(stage, done):
        if stage == "weights":
            with pytest.raises(BundleError, match="another run is at work"):
                run(tmp_path / "work")

    release = run(tmp_path / "work", progress=second)
    assert release.ledger.epsilon_spent <= 4


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, np.linalg.LinAlgError])
def test_whatever_ends_a_stage_its_answers_are_not_drawn_anew(tmp_path, monkeypatch, error):
    folder = tmp_path / "work"
    fit, answers = aim.fit, []

    def failing(*arguments, **options):
        answers.append([part.values for part in arguments[1]])
        if len(answers) == 3:
            raise error
        return fit(*arguments, **options)

    monkeypatch.setattr(aim, "fit", failing)
    with pytest.raises(error):
        run(folder, synthesizer="aim")
    before, paid = answers[2], written(folder).spends
    answers.clear()
    monkeypatch.setattr(aim, "fit", lambda *a, **o: answers.append(a[1]) or fit(*a, **o))
    release = run(folder, synthesizer="aim")
    for one, other in zip(before, answers[2], strict=True):
        np.testing.assert_array_equal(one, other.values)
    assert release.ledger.spends[: len(paid)] == paid


def test_an_answer_that_was_lost_stays_paid_for_and_the_run_says_so(tmp_path):
    folder = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=interrupted_at("weights"))
    lines = (folder / "journal").read_bytes().splitlines(keepends=True)
    (folder / "journal").write_bytes(b"".join(lines[:-1]))
    (folder / "synthesizer.npz").unlink()
    with pytest.raises(BudgetError, match=r"its answer is lost.*remove the folder"):
        run(folder)


def test_a_folder_that_a_kill_left_half_made_is_taken_over(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "lock").touch()
    (folder / ".request.json.k3q9").write_text("{")
    assert run(folder).ledger.epsilon_spent <= 4
    assert not [file for file in folder.iterdir() if file.name.startswith(".")]


def test_a_seeded_run_stays_stamped_and_does_not_repeat_its_noise(tmp_path):
    folder = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        run(folder, seed=5, progress=interrupted_at("weights"))
    release = run(folder, seed=5)
    assert not release.private
    assert not release.models.weights.private
    assert release.card["seeded"]


def test_a_run_that_failed_on_its_answers_does_not_try_again_for_free(tmp_path):
    open_age = make_schema().replace(cp.Column.integer("age")).pay("age")

    def attempt():
        cp.release(make_table(1), open_age, 0.5, 1e-6, rows=9, work=tmp_path / "work")

    for _ in range(3):
        with pytest.raises(VaultError, match="clear of the noise"):
            attempt()
    assert len(Journal(tmp_path / "work" / "journal", cp.Budget(0.5, 1e-6)).ledger().spends) == 1


def test_a_table_that_could_not_be_read_can_be_read_later(tmp_path):
    path = tmp_path / "table.csv"
    with pytest.raises(TableError):
        run(tmp_path / "work", table=path)
    make_table(400).to_csv(path, index=False)
    assert run(tmp_path / "work", table=path).ledger.epsilon_spent <= 4


def test_another_file_than_that_of_the_first_run_is_noticed(tmp_path):
    path, folder = tmp_path / "table.csv", tmp_path / "work"
    make_table(400).to_csv(path, index=False)
    with pytest.raises(KeyboardInterrupt):
        run(folder, table=path, progress=interrupted_at("weights"))
    paid, stated = written(folder).spends, path.stat()
    kept = (folder / "table.json").read_text()
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert str(stated.st_size) not in kept and str(stated.st_mtime_ns) not in kept
    make_table(401, seed=1).to_csv(path, index=False)
    with pytest.raises(BundleError, match=r"another table: its file .*remove .*table\.json, and"):
        run(folder, table=path)
    assert written(folder).spends == paid
    make_table(400).to_csv(path, index=False)
    os.utime(path, ns=(stated.st_atime_ns, stated.st_mtime_ns))
    path.rename(tmp_path / "moved.csv")
    release = run(folder, table=tmp_path / "moved.csv")
    assert release.ledger.spends[: len(paid)] == paid


def test_a_file_that_was_only_copied_goes_on_when_the_curator_says_so(tmp_path):
    path, folder = tmp_path / "table.csv", tmp_path / "work"
    make_table(400).to_csv(path, index=False)
    with pytest.raises(KeyboardInterrupt):
        run(folder, table=path, progress=interrupted_at("weights"))
    os.utime(path, ns=(1, 1))
    with pytest.raises(BundleError, match="another table"):
        run(folder, table=path)
    (folder / "table.json").unlink()
    run(folder, table=path).save(tmp_path / "out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "table.csv"]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_another_number_of_rows_is_noticed_where_it_is_public(tmp_path, neighbours):
    folder, options = tmp_path / "work", {"neighbours": neighbours}
    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=interrupted_at("weights"), **options)
    assert (folder / "table.json").exists() == (neighbours == "replace")
    if neighbours == "replace":
        with pytest.raises(BundleError, match="another number of rows, which is public here"):
            run(folder, table=make_table(401), **options)
    assert run(folder, **options).ledger.epsilon_spent <= 4


@pytest.mark.parametrize("way", ["release", "weigh", "command"])
def test_a_request_that_is_refused_leaves_nothing_in_the_way_of_the_next(tmp_path, way):
    schema, table = make_schema(), make_table(60)
    work, missing = tmp_path / "new" / ".out.work", tmp_path / "nowhere.csv"
    schema.write(tmp_path / "schema.json")
    for epsilon in (1.0, 2.0):
        with pytest.raises(TableError, match="there is no file"):
            if way == "release":
                cp.release(missing, schema, epsilon, work=work)
            elif way == "weigh":
                cp.weigh(missing, table, schema, epsilon, work=work)
            else:
                asked = ("--schema", tmp_path / "schema.json", "--epsilon", epsilon)
                call("release", missing, *asked, "--out", tmp_path / "new" / "out")
        assert not work.parent.exists()


@pytest.mark.parametrize("mine", [(), ("diary.txt",)])
def test_a_folder_that_was_there_outlives_a_refused_request(tmp_path, mine):
    folder = tmp_path / "work"
    folder.mkdir()

    def progress(stage, done):
        for name in mine:
            (folder / name).write_text("mine")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=progress)
    assert sorted(file.name for file in folder.iterdir()) == sorted(mine)


def test_a_run_that_is_stopped_while_its_journal_is_begun_leaves_nothing(tmp_path, monkeypatch):
    def stop(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(journal_module, "sync_folder", stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "work")
    assert not list(tmp_path.iterdir())


def test_a_journal_that_cannot_be_told_is_kept(tmp_path):
    folder = tmp_path / "work"
    run(folder)
    (folder / "journal").write_bytes(bytes(200))
    with pytest.raises(BundleError, match="another request"):
        run(folder, rows=61)
    assert (folder / "journal").exists()


def test_a_folder_in_which_nothing_was_paid_for_goes_to_the_next_request(tmp_path):
    """A kill leaves it: the request, and a journal of one line, or of a torn second one."""
    folder = tmp_path / "work"
    run(folder)
    request = (folder / "request.json").read_bytes()
    first, second, *_ = (folder / "journal").read_bytes().splitlines(keepends=True)
    for left in (first, first + second[:40]):
        (folder / "request.json").write_bytes(request)
        (folder / "journal").write_bytes(left)
        assert len(run(folder, rows=61).table) == 61
    with pytest.raises(BundleError, match=r"differs in rows\)"):
        run(folder)


def test_weights_that_cannot_be_kept_are_fitted_again(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "work", weights=Oracle(), progress=interrupted_at("replicates"))
    release = run(tmp_path / "work", weights=Oracle())
    assert release.ledger.epsilon_spent <= 4


def test_the_folder_holds_json_and_arrays_without_pickles(tmp_path):
    folder = tmp_path / "work"
    run(folder)
    assert sorted(file.name for file in folder.iterdir()) == [
        "domain.npz",
        "journal",
        "request.json",
        "synthesizer.npz",
        "weights.npz",
    ]
    for file in folder.glob("*.npz"):
        with np.load(file, allow_pickle=False) as arrays:
            assert all(not arrays[name].dtype.hasobject for name in arrays.files)
