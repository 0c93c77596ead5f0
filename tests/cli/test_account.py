"""`counterpoise account`, and `--account` and `--person` on the commands that charge."""

import json

import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import BudgetError, BundleError, VaultError
from tests.cli.calls import run


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(
        {"who": [1, 1, 1, 2, 3] * 40, "ill": [True, False, True, True, False] * 40}
    )
    table.to_csv("rows.csv", index=False)
    cp.Schema([cp.Column.boolean("ill")]).write("schema.json")
    return tmp_path


RELEASE = ("release", "rows.csv", "--schema", "schema.json", "--delta", "1e-6", "--rows", "20")
TERMS = ("--person", "who", "--max-rows-per-person", "2", "--account", "a.json", "--epsilon")


def test_an_account_is_created_charged_and_shown(place):
    said = run("account", "create", "a.json", "--epsilon", "2", "--delta", "1e-6",
               "--max-rows-per-person", "2", "--name", "wave one")  # fmt: skip
    assert "epsilon 0 of 2 spent" in said and "'wave one'" in said
    dry = run(*RELEASE, *TERMS, "1", "--dry-run")
    assert "protects one person with all their rows, of which at most 2 are used" in dry
    assert "could pay for it" in dry
    assert not cp.Account("a.json").charges
    run(*RELEASE, *TERMS, "1", "--out", "out", "-q")
    shown = run("account", "show", "a.json")
    release = cp.load("out")
    assert release.card["account"]["release"] in shown and release.protects in run("inspect", "out")
    found = json.loads(run("account", "show", "a.json", "--json"))
    assert found["releases"][0]["charges"] == len(release.ledger.spends)
    assert found["epsilon_spent"] <= 1.02 and 0 < found["next_epsilon"] < 2
    for refused in (("--dry-run",), ("--out", "more")):
        with pytest.raises(BudgetError, match="does not fit what is left"):
            run(*RELEASE, *TERMS, "2", *refused)
    assert not (place / ".more.work").exists()


def test_mistakes_are_said_before_anything_is_charged(place):
    with pytest.raises(BundleError, match="there is no such file"):
        run("account", "show", "none.json")
    run("account", "create", "a.json", "--epsilon", "2", "--delta", "1e-6")
    with pytest.raises(BundleError, match="is there already"):
        run("account", "create", "a.json", "--epsilon", "2")
    with pytest.raises(BudgetError, match="its max_rows_per_person is 1"):
        run(*RELEASE, *TERMS, "1", "--out", "out")
    with pytest.raises(VaultError, match="what comes from a seed is not private"):
        run(*RELEASE, "--account", "a.json", "--epsilon", "1", "--seed", "1", "--out", "out")
    run("account", "create", "b.json", "--delta", "1e-6", code=2)
    assert not cp.Account("a.json").charges


def test_a_dry_run_as_json_says_what_is_protected(place):
    said = json.loads(run(*RELEASE, "--epsilon", "1", "--dry-run", "--json"))
    assert said["protects"] == "one row, which is one person if nobody has two"
