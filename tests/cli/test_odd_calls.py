"""Whatever stands in the place of an option: an answer, or one line, a hint and an exit code.

A traceback, or "something unforeseen", is a defect, wherever it comes from. All of it happens in
a folder of the test's own.
"""

import os
import shutil

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.cli import main

NUMBERS = ("", "0", "-1", "1_0", "1e400", "nan", "-inf", "99999999999999999999", "x")
TEXTS = ("", " ", "x", "None", "a\0b", "\udc80", "å", "x" * 5000, "age", "age.", ".minimum")
PATHS = (
    "",
    " ",
    "a\0b",
    "\udc80",
    "å",
    "a" * 300,
    "x" * 5000,
    ".",
    "..",
    "file",
    "file/x",
    "folder",
    "folder/x.json",
    "nowhere/x",
    "table.csv",
    "schema.json",
    "https://nowhere.invalid/x.csv",
)

SHARED = {
    "--schema": ("schema.json", PATHS),
    "--epsilon": ("1", NUMBERS),
    "--delta": ("1e-6", NUMBERS),
    "--target": (None, TEXTS),
    "--replicates": ("1", NUMBERS),
    "--neighbours": ("replace", TEXTS),
    "--max-rows-per-person": ("1", ("", "0", "-1", "1_0", "1e400", "nan", "x")),
    "--seed": ("1", NUMBERS),
    "--private-rows": (None, NUMBERS),
    "--private-persons": (None, NUMBERS),
    "--out": ("out", PATHS),
    "--work": ("work", PATHS),
}
CALLS = {
    "release": {
        "table": ("table.csv", PATHS),
        **SHARED,
        "--synthesizer": ("independent", TEXTS),
        "--weights": ("uniform", TEXTS),
        "--rows": ("3", NUMBERS),
        "--split": (None, NUMBERS),
    },
    "weigh": {
        "private": ("table.csv", PATHS),
        "synthetic": ("table.csv", PATHS),
        **SHARED,
        "--method": ("uniform", TEXTS),
    },
    "schema": {
        "source": ("table.csv", PATHS),
        "-o": ("draft.json", PATHS),
        "--accept": (None, TEXTS),
        "--pay": (None, TEXTS),
    },
    "schema show": {"draft": ("schema.json", PATHS)},
    "schema set": {
        "draft": ("schema.json", PATHS),
        "column": ("age", TEXTS),
        "--type": (None, TEXTS),
        "--minimum": ("0", (*NUMBERS, *TEXTS)),
        "--maximum": ("9", NUMBERS),
        "--bins": (None, (*NUMBERS, ",", "0,", "0,9", "0,x,9")),
        "--categories": (None, (*TEXTS, ",", '"', 'a,"b', "a\nb")),
        "--other": (None, TEXTS),
        "--unit": (None, TEXTS),
    },
    "schema accept": {"draft": ("schema.json", PATHS), "patterns": ("age", (*TEXTS, "[", "*"))},
    "schema pay": {"draft": ("schema.json", PATHS), "patterns": ("age", (*TEXTS, "[", "*"))},
    "schema drop": {"draft": ("schema.json", PATHS), "columns": ("age", (*TEXTS, "[", "*"))},
    "inspect": {"folder": ("made", PATHS)},
    "retarget": {
        "folder": ("made", PATHS),
        "--margins": ("ill.csv", (*PATHS, "odd.json")),
        "--modifier": ("1 + age", TEXTS),
        "--labelled": (None, PATHS),
        "--label": (None, TEXTS),
        "--population": ("9", NUMBERS),
        "--seed": ("1", NUMBERS),
        "--out": ("out", PATHS),
    },
    "completion": {"shell": ("bash", TEXTS)},
}
EVERY = [(command, name) for command, options in CALLS.items() for name in options]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a table, its schema, a release, a file that is none of them, and a folder."""
    folder = tmp_path_factory.mktemp("odd") / "made"
    folder.mkdir()
    table = pd.DataFrame({"ill": [True, False] * 10, "age": np.arange(20) % 4})
    schema = cp.Schema([cp.Column.boolean("ill"), cp.Column.integer("age", 0, 3)])
    table.to_csv(folder / "table.csv", index=False)
    schema.write(folder / "schema.json")
    (folder / "file").write_text("x")
    (folder / "ill.csv").write_text("ill,share\ntrue,0.5\nfalse,0.5\n")
    (folder / "odd.json").write_text('{"ill": [1, null], "age": {"[": 1}}')
    (folder / "folder").mkdir()
    options = {"synthesizer": "independent", "weights": "uniform", "rows": 5, "replicates": 2}
    cp.release(table, schema, 1.0, 1e-6, **options).save(folder / "made")
    return folder


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """The same, afresh, as the working folder; one call in it does not get into another's way."""

    def enter(number):
        folder = tmp_path / str(number)
        shutil.copytree(made, folder)
        os.mkfifo(folder / "pipe")
        monkeypatch.chdir(folder)

    return enter


def exit_code(words):
    try:
        main(words)
    except SystemExit as ended:
        return ended.code
    return 0


def called(command, values):
    """A call, with what is no option behind the mark that ends them."""
    stated = {name: value for name, value in values.items() if value is not None}
    options = [word for name in stated if name.startswith("-") for word in (name, stated[name])]
    return [*command.split(), *options, "--", *(stated[name] for name in stated if name[0] != "-")]


@pytest.mark.parametrize(("command", "name"), EVERY)
def test_an_odd_word_is_taken_or_refused_in_one_line(command, name, place, capsys):
    sound = {option: value for option, (value, _) in CALLS[command].items()}
    for number, word in enumerate(CALLS[command][name][1]):
        place(number)
        code = exit_code(called(command, sound | {name: word}))
        said = capsys.readouterr().err.splitlines()
        said = [line for line in said if not line.startswith("note: ")]
        assert "unforeseen" not in " ".join(said), (word, said)
        if code == 0:
            continue
        assert code in (1, 2), (word, code)
        assert [line.partition(": ")[0] for line in said] in (["error"], ["error", "hint"]), said


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/", "is not a file"),
        (".", "is not a file"),
        ("folder", "is not a file"),
        ("pipe", "is not a file"),
        ("file/x", "there is no folder"),
        ("nowhere/draft.json", "there is no folder"),
    ],
)
def test_a_draft_is_not_written_to_what_cannot_be_its_file(target, said, place, capsys):
    place(0)
    assert exit_code(["schema", "table.csv", "-o", target]) == 1
    assert said in capsys.readouterr().err
    assert not os.path.isfile("pipe")


def test_a_draft_does_not_take_the_place_of_its_table(place, capsys):
    place(0)
    with open("table.csv", encoding="utf-8") as file:
        before = file.read()
    assert exit_code(["schema", "table.csv", "-o", "../0/table.csv"]) == 1
    assert "is the table itself" in capsys.readouterr().err
    with open("table.csv", encoding="utf-8") as file:
        assert file.read() == before


@pytest.mark.parametrize(
    "words",
    [
        ("--patients", "0"),
        ("--patients", "-1"),
        ("--patients", "99999999999999999999"),
        ("--epsilon", "nan"),
        ("--out", ""),
        ("--out", "a\0b"),
        ("--out", "file"),
        ("--out", "file/x"),
    ],
)
def test_a_demo_that_cannot_be_is_refused_before_it_begins(words, place, capsys):
    place(0)
    assert exit_code(["demo", *words]) in (1, 2)
    shown = capsys.readouterr()
    assert "unforeseen" not in shown.err
    assert "The analyst" not in shown.out
