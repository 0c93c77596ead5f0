"""The plug-in guide as it stands: its package is installed, held to the rules and used."""

import importlib
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.cli.hospital import SCHEMA, patients
from counterpoise.testing import SYNTHESIZER_RULES, WEIGHTER_RULES
from tests.cli.calls import run
from tests.distributions import install

GUIDE = (Path(__file__).parent.parent.parent / "docs" / "plugins.md").read_text(encoding="utf-8")


def files() -> dict[str, str]:
    """The files that the guide shows, by their names."""
    found = re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', GUIDE, re.S)
    return {name.removeprefix("src/"): content for name, content in found}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    declared = tomllib.loads(files()["pyproject.toml"])["project"]["entry-points"]
    entries = {
        group: [f"{name} = {place}" for name, place in names.items()]
        for group, names in declared.items()
    }
    install(tmp_path / "site", monkeypatch, files(), entries)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("rule", WEIGHTER_RULES, ids=str)
def test_the_tests_of_the_package_pass(rule):
    there = {}
    exec(files()["tests/test_strata.py"], there)
    there["test_strata_keep_to_every_rule"](rule)


@pytest.mark.usefixtures("installed")
def test_a_release_is_made_by_the_plug_ins_name_and_read_back(tmp_path, monkeypatch):
    [command] = re.findall(r"\$ counterpoise (.*)", GUIDE)
    patients(1000).to_csv(tmp_path / "patients.csv", index=False)
    SCHEMA.write(tmp_path / "patients.json")
    monkeypatch.chdir(tmp_path)
    run(*command.split(), "--synthesizer", "independent", "--replicates", 3)
    loaded = cp.load("patients-release")
    assert loaded.card["weights"]["method"] == "strata"
    assert len(loaded.sample(20).table) == 20
    assert "strata" in run("--help")


@pytest.mark.usefixtures("installed")
def test_the_weights_do_what_the_guide_says_of_them():
    """A column's private shares come back, where a synthesizer lost most of a category."""
    strata = importlib.import_module("counterpoise_strata").Strata
    private, others = patients(20_000), patients(4000, seed=1)
    synthetic = others[(others["diagnosis"] != "heart") | (np.arange(len(others)) % 5 == 0)]
    with cp.Vault(private, SCHEMA, cp.Budget(5.0, 1e-6), seed=1) as vault:
        model = strata("diagnosis").fit(vault, synthetic, vault.budget.whole)
    weights = model.weigh(synthetic).normalised
    is_heart = synthetic["diagnosis"] == "heart"
    truth = (private["diagnosis"] == "heart").mean()
    assert abs(is_heart.mean() - truth) > 0.1
    assert np.average(is_heart, weights=weights) == pytest.approx(truth, abs=0.01)


def test_the_guide_has_every_rule_with_its_sentence():
    shown = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", GUIDE.split("## The rules")[1], re.M))
    assert shown == {rule.name: rule.sentence for rule in (*SYNTHESIZER_RULES, *WEIGHTER_RULES)}
