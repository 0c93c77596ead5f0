"""Plug-ins on the command line: in its help and completion, without being imported."""

import sys

import pytest
from click.shell_completion import ShellComplete

from counterpoise.cli import group
from tests.cli.calls import run
from tests.distributions import install

ENTRIES = {
    "counterpoise.synthesizers": ["copula = far_away_plugin:Copula", "aim = far_away_plugin:Aim"],
    "counterpoise.weighters": [
        "strata = far_away_plugin:Strata",
        "kernel = far_away_plugin:Kernel",
    ],
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution whose module would fail if it were imported."""
    module = {"far_away_plugin.py": "raise RuntimeError('imported')"}
    install(tmp_path, monkeypatch, module, ENTRIES)


def unwrapped(shown):
    """Help as one line; it may be broken after any hyphen."""
    return " ".join(shown.split()).replace("plug- ins", "plug-ins")


@pytest.mark.usefixtures("installed")
def test_help_lists_the_plug_ins_that_are_installed():
    shown = run("--help")
    assert "Plug-ins:" in shown
    assert "copula" in shown
    assert "kernel, strata" in shown
    # One of ours is not taken over by a plug-in of the same name.
    assert "aim" not in shown
    released = unwrapped(run("release", "--help"))
    assert "support-points; plug-ins: copula." in released
    assert "uniform; plug-ins: kernel, strata." in released
    assert "uniform; plug-ins: kernel, strata." in unwrapped(run("weigh", "--help"))
    assert "far_away_plugin" not in sys.modules


def test_help_says_nothing_of_plug_ins_where_there_are_none():
    for call in (["--help"], ["release", "--help"], ["weigh", "--help"]):
        assert "lug-ins" not in run(*call)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["release", "--synthesizer"], ["aim", "auto", "copula", "histogram"]),
        (["release", "--weights"], ["kernel", "logistic", "moments", "strata", "uniform"]),
        (["weigh", "--method"], ["kernel", "logistic", "moments", "strata", "uniform"]),
    ],
)
def test_a_shell_completes_our_methods_and_those_of_plug_ins(words, expected):
    shell = ShellComplete(group, {}, "counterpoise", "_COUNTERPOISE_COMPLETE")
    found = [item.value for item in shell.get_completions(words, "")]
    assert set(expected) <= set(found)
    assert found == sorted(found)
    assert "oracle" not in found
    assert [item.value for item in shell.get_completions(words, expected[0][:3])] == [expected[0]]
