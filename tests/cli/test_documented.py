"""Every command that the page on the command line and the README show, run as it stands there."""

import contextlib
import doctest
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterpoise
from counterpoise.cli import main
from counterpoise.cli.hospital import SCHEMA, patients
from counterpoise.curation import weigh as weigh_module

ROOT = Path(__file__).parent.parent.parent


def documented(page):
    """The commands of a page in order, each with the lines that are shown below it."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    calls = []
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            calls.append((shlex.split(line[2:], comments=True), []))
        elif calls:
            calls[-1][1].append(line)
    return [(words[1:], shown) for words, shown in calls if words[0] == "counterpoise"]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A private table with its reviewed schema, and a synthetic one that was made elsewhere.

    Seeded, so that the verdict on the weights is the same whenever the test is run.
    """
    for name in ("release", "weigh"):
        usual = getattr(counterpoise, name)

        def seeded(*tables, usual=usual, **options):
            return usual(*tables, **options | {"seed": 1})

        monkeypatch.setattr(counterpoise, name, seeded)
    monkeypatch.setattr(weigh_module, "_warned", False)  # the note comes once
    patients(2000).to_csv(tmp_path / "patients.csv", index=False)
    patients(1000, seed=1).to_csv(tmp_path / "other.csv", index=False)
    SCHEMA.write(tmp_path / "patients.json")
    (tmp_path / "sex.csv").write_text("sex,share\nfemale,0.51\nmale,0.49\n")
    ages = {"[0, 40)": 0.3, "[40, 65)": 0.4, "[65, )": 0.3}
    (tmp_path / "ages.json").write_text(json.dumps({"age": ages}))
    with contextlib.chdir(tmp_path):
        yield tmp_path


@pytest.mark.parametrize(("page", "least"), [("docs/command-line.md", 15), ("README.md", 4)])
def test_every_command_on_the_page_runs_as_the_page_says(page, least, workplace, capsys):
    calls = documented(page)
    assert len(calls) >= least
    run_as_shown(calls, capsys)


def test_the_curators_tutorial_runs_in_the_shell(workplace, capsys):
    page = (ROOT / "docs/curator.md").read_text(encoding="utf-8")
    practice = doctest.script_from_examples(page.split("## 1.")[0])
    made_there = {}
    exec(practice.replace("Path(workspace.name)", 'Path(".")'), made_there)
    made_there["workspace"].cleanup()
    Path("patients.json").unlink()  # of the other pages: here it is drafted
    made = pd.DataFrame({"smoker": [True, False] * 500, "systolic": np.linspace(80, 200, 1000)})
    made.to_csv("other_tool.csv", index=False)
    calls = documented("docs/curator.md")
    assert len(calls) == 11
    weighing = next(place for place, call in enumerate(calls) if "weigh" in str(call))
    run_as_shown(calls[:weighing], capsys)
    # As public as the reviewed schema that it is a part of.
    counterpoise.Schema.read("patients.json").select(["smoker", "systolic"]).write("public.json")
    run_as_shown(calls[weighing:], capsys)
    assert list(counterpoise.load("weighted").table.columns) == ["smoker", "systolic", "weight"]


def run_as_shown(calls, capsys):
    for words, shown in calls:
        fails = any(line.startswith("error:") for line in shown)
        with pytest.raises(SystemExit) if fails else contextlib.nullcontext() as ended:
            main(words)
        printed = capsys.readouterr()
        if fails:
            assert ended.value.code in (1, 2)
            for expected, line in zip(shown, printed.err.splitlines(), strict=True):
                assert line.startswith(expected.removesuffix("..."))
            continue
        for note in (line for line in shown if line.startswith("note:")):
            assert note in printed.err
        results = [line for line in shown if not line.startswith("note:")]
        if results:
            # Numbers are noisy; what heads a table is not. Only these runs are seeded.
            head, first = (
                re.sub(r"\s+|[\d.,]+|NOT PRIVATE \(seeded\)", "", line)
                for line in (results[0], printed.out.splitlines()[0])
            )
            assert first == head
