"""The examples, run as a newcomer runs them, and what they are there to show."""

import re
import runpy
import sys
from pathlib import Path

import pytest

import counterpoise as cp

# Their noise is fresh each time, and now and then a verdict comes with a warning for the reader.
pytestmark = pytest.mark.filterwarnings("ignore::counterpoise.errors.CounterpoiseWarning")

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a script as `python` does, and gives what it prints."""

    def printed(script, folder):
        monkeypatch.setattr(sys, "argv", [script, str(folder)])
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return printed


def test_the_curators_release_is_what_the_analyst_needs(run, tmp_path):
    folder = tmp_path / "release"
    shown = run("curator.py", folder)
    assert "plan: synthesizer" in shown
    assert "of 1 spent" in shown
    release = cp.load(folder)
    assert release.private
    assert release.ledger.epsilon_spent <= 1
    shown = run("analyst.py", folder)
    for expected in ("union members: 0.", "± ", "sector", "chance of being a member: [", "10,000"):
        assert expected in shown
    low, high = map(float, re.search(r"member: \[\s*(\S+)\s+(\S+?)\s*\]", shown).groups())
    assert low < high


def test_weights_for_another_tools_table_bring_the_estimates_to_the_truth(run, tmp_path):
    shown = run("other_tool.py", tmp_path / "weighted")
    rows = re.findall(r"^(?:benign|malignant) +(\S+) +(\S+) ± \S+ \(95%\) +(\S+)$", shown, re.M)
    assert len(rows) == 2
    for plain, weighted, truth in (map(float, row) for row in rows):
        assert abs(weighted - truth) < abs(plain - truth)
    assert "in the weights only" in cp.load(tmp_path / "weighted").guarantee


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_short_and_in_the_list(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) < 80
    assert f"({script.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
