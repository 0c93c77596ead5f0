"""Names that somebody chose for what a terminal, a spreadsheet or a browser would make of them."""

import ast
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import counterpoise as cp
import counterpoise.cli
from counterpoise.cli import group, main
from counterpoise.evaluation.progress import shown as evaluation_shown

RED, BOLD, FORMULA = "\x1b[31mred", "[bold]x[/bold]", "=cmd|' /C calc'!A0"
TURNED, CLEARED, TWO_LINES = "\u202egpj.exe", "\x9b2J\x7f", "a\r\nprivacy: private"
AGE = "\x1b]0;age\x07"
NAMES = (RED, BOLD, FORMULA, TURNED, CLEARED)
CATEGORIES = (*NAMES, TWO_LINES)
# Controls but the ends of lines, and what turns the direction of a text.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release, its schema and its account, whose names and categories are hostile."""
    place = tmp_path_factory.mktemp("hostile")
    columns = [cp.Column.categorical(name, [*CATEGORIES]) for name in NAMES]
    schema = cp.Schema([*columns, cp.Column.integer(AGE, 0, 9)])
    schema.write(place / "schema.json")
    rows = pd.DataFrame({name: [*CATEGORIES] * 20 for name in NAMES} | {AGE: 3})
    account = cp.Account.create(place / "account.json", 9, 1e-3, name=BOLD)
    made = cp.release(
        rows, schema, 1.0, 1e-6, rows=60, synthesizer="independent", replicates=3, account=account
    )
    made.save(place / "release")
    rows.to_csv(place / "table.csv", index=False)
    return place


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "release"),
        ("inspect", "release", "--ledger"),
        ("inspect", "release", "--json"),
        ("schema", "schema.json"),
        ("schema", "show", "schema.json"),
        ("schema", "show", "schema.json", "--json"),
        ("schema", "drop", "schema.json", "*red", "*age*", "--dry-run"),
        ("analyse", "release", "proportion", CLEARED),
        ("analyse", "release", "mean", AGE, "--by", TURNED),
        ("analyse", "release", "crosstab", RED, BOLD),
        ("analyse", "release", "glm", f"`{AGE}` ~ `{BOLD}`"),
        ("analyse", "release", "proportion", RED, "--json"),
        ("account", "show", "account.json"),
    ],
)
def test_a_terminal_is_shown_control_characters_and_obeys_none(words, folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(group, words, color=True)
    assert result.exit_code == 0
    assert result.output.strip()
    assert not OBEYED.findall(result.output)


def test_a_name_is_shown_as_what_it_is_on_one_line(folder):
    shown = CliRunner().invoke(group, ["schema", "show", str(folder / "schema.json")]).output
    for name in ("\\u001b[31mred", BOLD, FORMULA, "\\u202egpj.exe", "\\u009b2J\\u007f"):
        assert re.search(rf"^{re.escape(name)} ", shown, re.M)


def test_a_category_of_several_lines_is_shown_on_one(folder):
    words = ["analyse", str(folder / "release"), "proportion", BOLD]
    shown = CliRunner().invoke(group, words).output
    assert re.search(r"^a\\u000d\\u000aprivacy: private ", shown, re.M)


def test_json_has_the_names_themselves(folder):
    words = ["schema", "show", str(folder / "schema.json"), "--json"]
    shown = CliRunner().invoke(group, words, color=True).output
    assert [column["name"] for column in json.loads(shown)["columns"]][:5] == [*NAMES]


def test_an_error_shows_control_characters_too(folder, capsys):
    with pytest.raises(SystemExit):
        main(["inspect", str(folder / f"no{CLEARED}{TURNED}{RED}")])
    said = capsys.readouterr().err
    assert not OBEYED.findall(said)
    assert "\\u009b2J\\u007f\\u202egpj.exe\\u001b[31mred" in said


def test_commands_print_through_the_console_alone():
    for file in Path(counterpoise.cli.__file__).parent.glob("*.py"):
        # The script of a shell is written for the shell.
        if file.name not in ("console.py", "completion.py"):
            called = [
                ast.unparse(node.func)
                for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, ast.Call)
            ]
            assert not {"click.echo", "click.secho", "print"} & {*called}, file


def test_a_spreadsheet_is_given_texts_and_a_program_what_it_asks_for(folder, tmp_path):
    start = ["release", str(folder / "table.csv"), "--schema", str(folder / "schema.json")]
    start += ["--epsilon", "1", "--delta", "1e-6", "--rows", "20", "--replicates", "0", "-q"]
    for flag, expected in (("--csv", f"'{FORMULA}"), ("--csv-verbatim", FORMULA)):
        out = tmp_path / flag
        words = [*start, "--synthesizer", "independent", flag, "--out", str(out)]
        assert CliRunner().invoke(group, words).exit_code == 0
        assert expected in pd.read_csv(out / "synthetic.csv").columns


def test_a_bar_shows_what_stands_in_brackets(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with evaluation_shown(True) as report:
        report(BOLD, 0.5)
    assert BOLD in capsys.readouterr().err
