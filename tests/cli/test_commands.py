"""The command line, as a person calls it: in a process of its own where it matters."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import counterpoise as cp
from counterpoise.cli import group
from counterpoise.errors import BundleError, MethodError


def run(*words, code=0):
    result = CliRunner().invoke(group, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def run_process(*words):
    command = [sys.executable, "-c", "from counterpoise.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def files(table, schema, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    schema.write(tmp_path / "schema.json")
    return tmp_path


def test_help_fits_a_screen_and_shows_an_example():
    for words in (
        ["--help"],
        *([name, "--help"] for name in ("schema", "release", "inspect", "demo")),
    ):
        shown = run(*words)
        assert "Example" in shown
        assert len(shown.splitlines()) <= 40


def test_version():
    assert run("version").strip() == cp.__version__


def test_a_draft_is_written_marked_and_announced_as_confidential(files):
    shown = run("schema", files / "table.csv", "-o", files / "draft.json")
    assert "NOT PUBLIC YET" in shown
    draft = cp.Schema.read(files / "draft.json")
    assert ("age", "minimum") in draft.unconfirmed


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


def test_a_release_is_written_and_inspected(files):
    out = files / "out"
    words = ["release", files / "table.csv", "--schema", files / "schema.json"]
    shown = run(*words, "--epsilon", 1, "--delta", 1e-6, "--out", out, "--rows", 50)
    assert str(out / "report.html") in shown
    assert "epsilon" in shown
    assert "50 rows" in run("inspect", out)
    card = json.loads(run("inspect", out, "--json"))
    assert card["ledger"]["budget"]["epsilon"] == 1
    assert len(cp.load(out).table) == 50


def test_quiet_is_quiet_and_json_is_json(files):
    words = ["release", files / "table.csv", "--schema", files / "schema.json", "--epsilon", 1]
    assert run(*words, "--out", files / "quiet", "--quiet") == ""
    card = json.loads(run(*words, "--out", files / "json", "--json"))
    assert card["ledger"]["private"] is True


def test_a_dry_run_reads_and_spends_nothing(files):
    (files / "table.csv").unlink()
    words = ["release", files / "table.csv", "--schema", files / "schema.json"]
    shown = run(*words, "--epsilon", 1, "--delta", 1e-6, "--dry-run")
    assert "synthesizer" in shown
    assert "nothing was read or spent" in shown


def test_a_dry_run_refuses_what_a_release_refuses(files):
    words = ["release", files / "table.csv", "--schema", files / "schema.json", "--epsilon", 1]
    with pytest.raises(MethodError, match="nonsense"):
        run(*words, "--dry-run", "--synthesizer", "nonsense")


def test_an_existing_folder_is_kept(files):
    words = ["release", files / "table.csv", "--schema", files / "schema.json", "--epsilon", 1]
    run(*words, "--out", files / "out")
    first = cp.load(files / "out").table
    with pytest.raises(BundleError, match="exists"):
        run(*words, "--out", files / "out")
    assert cp.load(files / "out").table.equals(first)
    run(*words, "--out", files / "out", "--overwrite")


def test_an_error_is_one_line_with_a_way_out_and_no_traceback(files):
    words = ["release", files / "nowhere.csv", "--schema", files / "schema.json", "--epsilon", 1]
    result = run_process(*words, "--out", files / "out")
    assert result.returncode == 1
    assert result.stderr.strip().startswith("error: there is no file")
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.stderr
    assert "Traceback" in run_process("--debug", *words, "--out", files / "out").stderr


def test_a_wrong_call_is_told_with_code_two():
    assert run_process("release").returncode == 2
    assert run_process("unheard-of").returncode == 2


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = (
        "import sys, counterpoise.cli; "
        "heavy = {'pandas', 'duckdb', 'dp_accounting', 'scipy', 'sklearn', 'opendp'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == "[]"


def test_the_demo_ends_with_a_release_and_its_report(tmp_path):
    out = tmp_path / "demo"
    shown = run("demo", "--out", out)
    assert (out / "report.html").is_file()
    assert "report.html" in shown
    assert "share malignant" in shown
    assert cp.load(out).private
