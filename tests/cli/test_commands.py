"""The curator's commands, as a person calls them: in a process of its own where it matters."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import counterpoise as cp
from counterpoise.cli import error_text, group, main
from counterpoise.cli.hospital import SCHEMA, patients
from counterpoise.cli.options import SYNTHESIZERS, WEIGHTERS
from counterpoise.curation import weigh as weigh_module
from counterpoise.curation.plan import plan_release
from counterpoise.curation.progress import spent_before
from counterpoise.errors import (
    AnalysisError,
    BudgetError,
    BundleError,
    CounterpoiseError,
    MethodError,
    TableError,
)
from counterpoise.vault import Budget, Journal
from tests.cli.calls import run, run_process

COMMANDS = (
    "schema",
    "release",
    "weigh",
    "inspect",
    "report",
    "analyse",
    "demo",
    "completion",
    "version",
)


@pytest.fixture
def files(table, schema, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    schema.write(tmp_path / "schema.json")
    return tmp_path


@pytest.fixture
def words(files):
    """A release of few rows and replicates, which is all that a command has to hand on."""
    start = ["release", files / "table.csv", "--schema", files / "schema.json", "--epsilon", 1]
    return [*start, "--rows", 50, "--replicates", 3]


def test_help_fits_a_screen_and_shows_an_example():
    for call in (["--help"], *([name, "--help"] for name in COMMANDS)):
        shown = run(*call)
        assert "Example" in shown
        assert len(shown.splitlines()) <= 44


def test_help_names_every_method_that_can_be_had_by_name():
    from counterpoise.synthesizers import SYNTHESIZERS as synthesizers
    from counterpoise.weights import WEIGHTERS as weighters

    assert set(SYNTHESIZERS) == set(synthesizers)
    # The oracle is made of a function, which no name can give.
    assert set(WEIGHTERS) == set(weighters) - {"oracle"}
    assert sorted(WEIGHTERS) == weighters.by_name()


def test_version():
    assert run("version").strip() == cp.__version__
    assert json.loads(run("version", "--json"))["counterpoise"] == cp.__version__


def test_a_draft_is_written_marked_and_announced_as_confidential(files):
    shown = run("schema", files / "table.csv", "-o", files / "draft.json")
    assert "NOT PUBLIC YET" in shown
    draft = cp.Schema.read(files / "draft.json")
    assert ("age", "minimum") in draft.unconfirmed


def test_a_draft_is_never_silent_about_being_confidential_in_json(files):
    drafted = json.loads(run("schema", files / "table.csv", "--json"))
    assert "data" in json.dumps(drafted)
    assert run("schema", files / "table.csv", "-q") == ""


def test_marks_are_accepted_one_by_one_or_paid_for(files):
    draft = files / "draft.json"
    run("schema", files / "table.csv", "-o", draft)
    run("schema", draft, "--accept", "age.minimum", "--accept", "sex", "--pay", "income")
    schema = cp.Schema.read(draft)
    assert ("age", "minimum") not in schema.unconfirmed
    assert ("age", "maximum") in schema.unconfirmed
    assert not [mark for mark in schema.unconfirmed if mark[0] == "sex"]
    assert ("income", "maximum") in schema.paid
    assert schema["income"].maximum is None


def test_inspect_sums_up_the_ledger_and_lists_it_when_asked(files, words):
    out = files / "out"
    run(*words, "--delta", 1e-6, "--out", out, "--synthesizer", "aim")
    ledger = cp.load(out).ledger
    summed, listed = run("inspect", out), run("inspect", out, "--ledger")
    assert str(ledger) in listed
    assert ledger.headline in summed
    looks = re.findall(r"^(\w+) +(\w+) +(\d+) +([\d.e-]+)$", summed, re.M)
    assert len(looks) < len(ledger.spends)
    assert sum(int(count) for *_, count, _ in looks) == len(ledger.spends)
    assert sum(float(added) for *_, added in looks) == pytest.approx(1.0, rel=1e-2)


def test_a_release_is_written_and_inspected(files, words):
    out = files / "out"
    shown = run(*words, "--delta", 1e-6, "--out", out, "--target", "sex", "--csv")
    assert str(out / "report.html") in shown
    assert "epsilon" in shown
    assert "weights: fine" in shown or "weights: caution" in shown or "weights: do not" in shown
    assert (out / "synthetic.csv").is_file()
    inspected = run("inspect", out)
    assert "50 rows" in inspected
    assert "weights: " in inspected
    assert "replicate weights" in inspected
    card = json.loads(run("inspect", out, "--json"))
    assert card["ledger"]["budget"]["epsilon"] == 1
    assert card["weights"]["parameters"]["target"] == "sex"
    release = cp.load(out)
    assert len(release.table) == 50
    assert release.replicates.shape == (50, 3)


@pytest.mark.parametrize("command", ["release", "weigh"])
def test_a_dry_run_takes_a_guess_at_the_number_of_private_rows(command, files):
    tables = [files / "table.csv"] * (1 + (command == "weigh"))
    words = [command, *tables, "--schema", files / "schema.json", "--epsilon", 1, "--dry-run"]
    guessed, few, many = (
        json.loads(run(*words, "--json", *more))
        for more in ((), ("--private-rows", 2000), ("--private-rows", 200_000))
    )
    assert [plan["private_rows_assumed"] for plan in (guessed, few, many)] == [
        10_000,
        2000,
        200_000,
    ]
    assert few["seconds"] < guessed["seconds"] < many["seconds"]
    assert few["bytes"] < guessed["bytes"] < many["bytes"]
    assert many["seconds"] == pytest.approx(sum(stage["seconds"] or 0 for stage in many["stages"]))
    assert many["bytes"] == max(stage["bytes"] or 0 for stage in many["stages"])
    shown = run(*words, "--private-rows", 200_000)
    assert "for 200,000 private rows" in shown
    assert [line for line in shown.splitlines() if line.startswith("in all ")]
    with pytest.raises(CounterpoiseError, match="private_rows"):
        run(*words, "--private-rows", 0)


def test_the_rows_of_a_release_are_the_guess_where_there_is_no_other(files, words):
    plan = json.loads(run(*words, "--dry-run", "--json"))
    assert plan["private_rows_assumed"] == 50
    plan = json.loads(run(*words, "--dry-run", "--json", "--private-rows", 70))
    assert plan["private_rows_assumed"] == 70


def test_the_split_is_the_part_of_the_budget_that_the_weights_get(files, words):
    spends = {}
    for split in (0.2, 0.6):
        card = json.loads(
            run(*words, "--delta", 1e-6, "--out", files / str(split), "--split", split, "--json")
        )
        assert card["split"] == split
        spends[split] = sum(
            spend["mechanism"]["noise_multiplier"] ** -2
            for spend in card["ledger"]["spends"]
            if spend["stage"] == "weights"
        )
    assert spends[0.6] == pytest.approx(3 * spends[0.2], rel=1e-3)


def test_quiet_is_quiet_json_is_json_and_verbose_tells_every_stage(files, words):
    assert run(*words, "--out", files / "quiet", "--quiet") == ""
    card = json.loads(run(*words, "--out", files / "json", "--json"))
    assert card["ledger"]["private"] is True
    told = run_process(*words, "--out", files / "verbose", "--verbose").stderr
    stages = [line.split()[-1] for line in told.splitlines() if "of the budget spent" in line]
    assert [stage for stage in stages if stage in ("synthesizer", "sampling", "weights")] == [
        "synthesizer",
        "sampling",
        "weights",
    ]


def test_the_bar_counts_what_was_spent_before_each_stage():
    plan = plan_release(SCHEMA, Budget(1.0, 1e-6), split=0.25)
    gone = spent_before(plan)
    assert gone["domain"] == 0
    # The number of rows, and the cells that are chosen by it.
    assert gone["synthesizer"] == pytest.approx(0.16)
    assert gone["weights"] == pytest.approx(0.16 + 0.84 * 0.75)
    assert gone["replicates"] == pytest.approx(1.0)
    free = spent_before(plan_release(SCHEMA, Budget(1.0, 1e-6), weights="uniform"))
    assert free["weights"] == pytest.approx(1.0)


def test_a_dry_run_reads_and_spends_nothing(files, words):
    (files / "table.csv").unlink()
    shown = run(*words, "--delta", 1e-6, "--dry-run")
    assert "synthesizer" in shown
    assert "moments" in shown
    assert "nothing was read or spent" in shown
    stages = json.loads(run(*words, "--delta", 1e-6, "--dry-run", "--json"))["stages"]
    assert sum(stage["part"] for stage in stages) == pytest.approx(1.0)


def test_a_dry_run_refuses_what_a_release_refuses(words):
    with pytest.raises(MethodError, match="nonsense"):
        run(*words, "--dry-run", "--synthesizer", "nonsense")
    with pytest.raises(MethodError, match="'oracle' cannot be had by name"):
        run(*words, "--dry-run", "--weights", "oracle")
    with pytest.raises(BudgetError, match="state a delta, such as 1e-9, or choose 'moments'"):
        run(*words, "--dry-run", "--weights", "logistic")


def test_a_folder_or_a_dry_run_has_to_be_asked_for(words):
    assert "--out" in run(*words, code=2)


def test_a_page_that_fails_is_made_by_its_own_command(files, words, monkeypatch):
    def failing(release):
        raise ValueError("math domain error")

    out = files / "out"
    with monkeypatch.context() as patched:
        patched.setattr("counterpoise.report.release_page", failing)
        said = run(*words, "--out", out)
    assert "note: the release is saved, but without its page (ValueError): make it with `" in said
    assert f"report:  none; counterpoise report {out} makes it" in said
    assert "report:  none" in run("inspect", out)
    assert run("report", out) == f"release: {out}\nreport:  {out / 'report.html'}\n"
    assert run("report", out, "--quiet") == ""
    assert not (files / ".out.work").exists()


def test_an_existing_folder_is_kept(files, words):
    out = files / "out"
    run(*words, "--out", out)
    first = cp.load(out).table
    for another in (
        ("--seed", 3),
        ("--replicates", 4),
        ("--rows", 51),
        ("--csv",),
        ("--max-rows-per-person", 2),
        ("--epsilon", 1.5),
    ):
        with pytest.raises(BundleError, match="exists"):
            run(*words, "--out", out, *another)
    said = run(*words, "--out", out)
    assert f"{out} is there, of this very request: nothing private was read or spent" in said
    assert cp.load(out).table.equals(first)
    # What is another table by now, or turned to other people, is another release.
    cp.load(out).retarget(modifier="age / 100").save(out, overwrite=True)
    with pytest.raises(BundleError, match="exists"):
        run(*words, "--out", out)
    run(*words, "--out", out, "--overwrite")
    os.utime(files / "table.csv")
    with pytest.raises(BundleError, match="exists"):
        run(*words, "--out", out)


@pytest.mark.parametrize("length", [230, 236, 249, 250, 255])
def test_a_folder_whose_name_is_too_long_for_a_draft_is_refused_before_it_is_paid_for(
    files, words, length
):
    out, work = files / ("o" * length), files / "work"
    run(*words, "--out", files / "out", "--synthesizer", "independent")
    (files / "out").rename(out)
    asked = (*words, "--out", out, "--overwrite", "--work", work, "--synthesizer", "independent")
    if length <= 235:  # what stands beside a name has 20 letters more
        run(*asked)
        return
    with pytest.raises(BundleError, match="the name is too long; state a shorter one"):
        run(*asked)
    assert not work.exists()


def test_a_table_that_was_weighed_is_known_by_its_rows(files, table):
    made = ["weigh", files / "table.csv", files / "other.csv", "--schema", files / "schema.json"]
    made += ["--epsilon", 1, "--delta", 1e-6, "--replicates", 0, "--out", files / "out", "--quiet"]
    table.sample(frac=1, random_state=1).to_csv(files / "other.csv", index=False)
    run(*made)
    run(*made)
    table.sample(frac=1, random_state=2).to_csv(files / "other.csv", index=False)
    with pytest.raises(BundleError, match="exists"):
        run(*made)


def test_an_interrupted_release_goes_on_and_pays_once(files, words, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    out = files / "out"
    with monkeypatch.context() as patched:
        patched.setattr(cp.Release, "save", interrupt)
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in (*words, "--out", out, "--quiet")])
    assert ended.value.code == 130
    assert not out.exists()
    assert (files / ".out.work").is_dir()
    run(*words, "--out", out, "--quiet")
    assert cp.load(out).ledger.epsilon_spent <= 1
    assert not (files / ".out.work").exists()


@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_a_run_that_a_signal_ends_in_a_look_says_so_and_goes_on(files, words, sent, code, said):
    script = (
        "import os, signal\nfrom counterpoise.cli import main\n"
        "from counterpoise.vault import Vault\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "usual = Vault._look\n"
        "def look(*asked):\n"
        f"    os.kill(os.getpid(), {int(sent)})\n"
        "    return usual(*asked)\n"
        "Vault._look = look\n"
        "main()"
    )
    call = [sys.executable, "-c", script, *map(str, words), "--out", str(files / "out")]
    ended = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr and "give the same command to go on" in ended.stderr
    # What was paid for by then was answered, so that the rest can be paid for.
    run(*words, "--out", files / "out")
    assert cp.load(files / "out").ledger.epsilon_spent <= 1
    assert not (files / ".out.work").exists()


def test_a_table_made_elsewhere_is_weighed_with_the_caveat_said_once(files, table):
    table.sample(frac=1, random_state=1).assign(age=40).to_csv(files / "other.csv", index=False)
    start = ["weigh", files / "table.csv", files / "other.csv", "--schema", files / "schema.json"]
    result = run_process(
        *start, "--epsilon", 0.5, "--delta", 1e-6, "--replicates", 3, "--out", files / "out"
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("yours to add") == 1
    release = cp.load(files / "out")
    assert release.table["age"].eq(40).all()
    assert release.ledger.budget.epsilon == 0.5
    assert "yours to add" in run("inspect", files / "out")
    planned = json.loads(run(*start, "--epsilon", 0.5, "--dry-run", "--json"))["stages"]
    assert [stage["method"] for stage in planned if stage["part"]] == ["moments"]


def test_an_interrupted_weighing_goes_on_and_pays_once(files, table, monkeypatch):
    monkeypatch.setattr(weigh_module, "_warned", True)
    table.assign(age=40).to_csv(files / "other.csv", index=False)
    start = ["weigh", files / "table.csv", files / "other.csv", "--schema", files / "schema.json"]
    words = [*start, "--epsilon", 1, "--replicates", 3, "--out", files / "out", "--quiet"]

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cp.Release, "save", interrupt)
        with pytest.raises(SystemExit):
            main([str(word) for word in words])
    kept = Journal(files / ".out.work" / "journal", cp.Budget(1.0)).ledger()
    run(*words)
    assert cp.load(files / "out").ledger.spends == kept.spends
    assert not (files / ".out.work").exists()


def test_an_error_is_one_line_and_a_hint_without_a_traceback(files, words):
    words[1] = files / "nowhere.csv"
    result = run_process(*words, "--out", files / "out")
    assert result.returncode == 1
    assert result.stderr.startswith("error: there is no file")
    assert len(result.stderr.strip().splitlines()) <= 2
    assert "Traceback" not in result.stderr
    assert "Traceback" in run_process(*words, "--out", files / "out", "--debug").stderr


def test_the_way_out_of_an_error_is_a_hint_in_the_words_of_the_shell():
    error = AnalysisError("few rows count; go on without (release.unweighted())")
    assert error_text(error) == "error: few rows count\nhint:  go on without (--unweighted)"
    assert error_text(TableError("one\n line")) == "error: one line"


def test_an_unforeseen_error_shows_its_kind_and_not_what_it_says(monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("Zebrafinch, aged 41")

    monkeypatch.setattr("counterpoise.load", fail)
    with pytest.raises(SystemExit) as ended:
        main(["inspect", "somewhere"])
    assert ended.value.code == 1
    shown = capsys.readouterr().err
    assert "RuntimeError" in shown
    assert "Zebrafinch" not in shown


def test_a_wrong_call_is_one_line_and_a_hint_with_code_two():
    result = run_process("release")
    assert result.returncode == 2
    missing, hint = result.stderr.strip().splitlines()
    assert missing.startswith("error: missing argument")
    assert hint == "hint:  counterpoise release --help"
    assert run_process("unheard-of").returncode == 2


def test_every_command_that_writes_takes_the_short_word_for_where():
    options = {name: group.get_command(None, name).params for name in group.list_commands(None)}
    said = {
        (name, option)
        for name, params in options.items()
        for param in params
        if "--out" in param.opts
        for option in param.opts
    }
    assert {name for name, option in said if option == "-o"} == {name for name, _ in said}
    assert ("release", "--out") in said


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = (
        "import sys; from counterpoise.cli import group; "
        f"[group.get_command(None, name) for name in {COMMANDS}]; "
        "heavy = {'numpy', 'pandas', 'duckdb', 'dp_accounting', 'scipy', 'sklearn', 'opendp'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == "[]"


def test_the_package_names_what_is_public_before_it_is_imported():
    code = (
        "import sys, rlcompleter, counterpoise; from counterpoise import __all__ as public; "
        "assert dir(counterpoise) == sorted(public), dir(counterpoise); "
        "heavy = {'numpy', 'pandas', 'duckdb', 'dp_accounting', 'scipy', 'sklearn', 'opendp'}; "
        "print(sorted(heavy & set(sys.modules))); "
        "shown = rlcompleter.Completer({'cp': counterpoise}).attr_matches('cp.'); "
        "assert {'cp.release(', 'cp.load(', 'cp.Schema('} <= set(shown), shown"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == "[]", result.stderr
    assert not result.returncode, result.stderr


def completions(line):
    """What the shell is told when Tab is pressed at the end of a line."""
    place = len(line.split()) - (not line.endswith(" "))
    told = {"COMP_WORDS": line, "COMP_CWORD": str(place), "_COUNTERPOISE_COMPLETE": "bash_complete"}
    result = run_process(env=os.environ | told)
    return [answer.split(",")[1] for answer in result.stdout.splitlines()]


def test_shells_complete_commands_methods_and_columns(files, words):
    run(*words, "--out", files / "out")
    assert completions("counterpoise rel") == ["release"]
    assert completions("counterpoise release t.csv --synthesizer m") == [
        "marginals",
        "mmdgan",
        "mst",
    ]
    assert completions("counterpoise release t.csv --weights ") == list(WEIGHTERS)
    assert completions(f"counterpoise analyse {files / 'out'} mea") == ["mean"]
    assert completions(f"counterpoise analyse {files / 'out'} mean a") == ["age"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_completion_script(shell):
    assert "_COUNTERPOISE_COMPLETE" in run("completion", shell)


def test_the_demo_ends_with_a_release_and_its_report(tmp_path):
    out = tmp_path / "demo"
    shown = run("demo", "--out", out, "--patients", 3000)
    assert (out / "report.html").is_file()
    for part in ("report.html", "the synthesizer alone", "truth", "correlation", "ROC", "±"):
        assert part in shown
    assert cp.load(out).private


def test_the_demo_replaces_nothing_but_its_own_folder(files, words):
    out = files / "out"
    run(*words, "--out", out)
    with pytest.raises(BundleError, match="exists"):
        run("demo", "--out", out)
    assert len(cp.load(out).table) == 50


def test_the_hospital_has_every_kind_of_column_and_nulls():
    rows = patients(2000)
    assert {column.kind for column in SCHEMA} == {
        "integer",
        "categorical",
        "date",
        "continuous",
        "ordinal",
    }
    SCHEMA.encode(rows)
    assert set(rows.columns[rows.isna().any()]) == {"creatinine", "pain"}
    assert {column.name for column in SCHEMA if column.nullable} == {"creatinine", "pain"}
    for column in SCHEMA:
        if column.is_numeric:
            assert rows[column.name].min() >= type(rows[column.name].min())(column.minimum)


@pytest.mark.parametrize("left", ["everything", "the request", "nothing but locks"])
def test_a_run_that_was_killed_after_its_release_was_saved_ends_well_and_tidies_up(
    files, words, monkeypatch, left
):
    def killed(folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("counterpoise.curation.work.discard", killed)
        with pytest.raises(SystemExit):
            main([str(word) for word in (*words, "--out", files / "out")])
    work = files / ".out.work"
    for file in work.iterdir():
        if left != "everything" and file.name != "request.json":
            file.unlink()
    if left == "nothing but locks":
        (work / "request.json").rename(work / "lock")
        (files / ".out.counterpoise-lock").touch()
        (files / "out" / "report.html").unlink()
    with pytest.raises(BundleError, match="exists"):
        run(*words, "--out", files / "out", "--rows", 51)
    saved = cp.load(files / "out")
    assert "of this very request" in run(*words, "--out", files / "out")
    assert sorted(os.listdir(files)) == ["out", "schema.json", "table.csv"]
    assert cp.load(files / "out").ledger.spends == saved.ledger.spends
    assert (files / "out" / "report.html").exists()


def test_work_that_another_run_paid_for_outlives_a_release_that_is_there(files, words, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    run(*words, "--out", files / "out")
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(cp.Release, "save", killed)
        main([str(word) for word in (*words, "--out", files / "out", "--overwrite")])
    before = (files / ".out.work" / "journal").read_bytes()
    assert "of this very request" in run(*words, "--out", files / "out")
    assert (files / ".out.work" / "journal").read_bytes() == before
