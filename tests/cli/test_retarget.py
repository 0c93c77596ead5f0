"""`counterpoise retarget`: files of margins, factors and labelled rows, and what it prints."""

import json

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.cli.hospital import SCHEMA, patients
from counterpoise.errors import AnalysisError, BundleError
from tests.cli.calls import run

SEX = "sex,share\nfemale,0.4\nmale,0.6\n"
BOTH = "sex,emergency,count\nfemale,true,10\nfemale,false,40\nmale,true,30\nmale,false,120\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = cp.release(
        patients(2000), SCHEMA, 5.0, 1e-6, synthesizer="independent", replicates=4, seed=2
    )
    return made.save(tmp_path_factory.mktemp("cli") / "release")


def test_margins_of_files_are_raked_to_at_once(folder, tmp_path):
    (tmp_path / "sex.csv").write_text(SEX)
    ages = {"age": {"[0, 40)": 0.2, "[40, 65)": 0.5, "[65, )": 0.3}, "emergency": 0.25}
    (tmp_path / "more.json").write_text(json.dumps(ages))
    files = ["--margins", tmp_path / "sex.csv", "--margins", tmp_path / "more.json"]
    said = run("retarget", folder, *files, "--population", 5e6, "--out", tmp_path / "out")
    made = cp.load(tmp_path / "out")
    assert made.proportion("sex", "female").value == pytest.approx(0.4, abs=1e-9)
    assert made.proportion("emergency").value == pytest.approx(0.25, abs=1e-9)
    assert made.total().value == 5e6
    lines = [line.split() for line in said.splitlines()]
    assert lines[0] == ["margin", "category", "before", "after"]
    assert lines[1][:2] == ["sex", "female"]
    assert lines[1][3] == "0.4"
    assert any(line[:3] == ["effective", "sample", "size"] for line in lines)
    assert "weights: " in said
    shown = run("inspect", tmp_path / "out")
    assert "raked to known margins of sex, age, emergency" in shown
    assert "5,000,000 people, as stated" in shown


def test_a_table_of_two_columns_is_a_margin_of_both_and_counts_say_how_many(folder, tmp_path):
    (tmp_path / "both.csv").write_text(BOTH)
    run("retarget", folder, "--margins", tmp_path / "both.csv", "--out", tmp_path / "out", "-q")
    made = cp.load(tmp_path / "out").use_weights()
    assert made.total().value == 200
    assert made.crosstab("sex", "emergency")["male", True].value == pytest.approx(0.15, abs=1e-9)


def test_an_empty_field_is_the_share_of_null(folder, tmp_path):
    release = cp.load(folder)
    words = [*release.schema["pain"].categories, ""]
    (tmp_path / "pain.csv").write_text("pain,share\n" + "".join(f"{w},0.25\n" for w in words))
    run("retarget", folder, "--margins", tmp_path / "pain.csv", "--out", tmp_path / "out")
    made = cp.load(tmp_path / "out")
    null = made.table["pain"].isna().to_numpy()
    assert made.weights[null].sum() / made.weights.sum() == pytest.approx(0.25, abs=1e-9)


def test_a_list_in_a_file_is_that_of_the_card(folder, tmp_path):
    (tmp_path / "both.csv").write_text(BOTH)
    run("retarget", folder, "--margins", tmp_path / "both.csv", "--out", tmp_path / "one")
    card = json.loads(run("inspect", tmp_path / "one", "--json"))
    [step] = card["retargeted"]["steps"]
    (tmp_path / "card.json").write_text(json.dumps(step["margins"]))
    run("retarget", folder, "--margins", tmp_path / "card.json", "--out", tmp_path / "two")
    one, two = cp.load(tmp_path / "one"), cp.load(tmp_path / "two")
    assert one.weights == pytest.approx(two.weights)


def test_a_modifier_and_labelled_rows(folder, tmp_path):
    run("retarget", folder, "--modifier", "age >= 65", "--out", tmp_path / "old")
    assert cp.load(tmp_path / "old").quantile("age", 0).value >= 65
    rows = pd.DataFrame({"age": np.arange(20, 80), "target": np.arange(20, 80) > 50})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    given = ["--labelled", tmp_path / "rows.csv", "--label", "target", "--seed", 1]
    card = json.loads(run("retarget", folder, *given, "--out", tmp_path / "learned", "--json"))
    assert card["retargeted"]["steps"][0]["link"] == "logistic"
    before, after = cp.load(folder), cp.load(tmp_path / "learned")
    assert after.mean("age").value > before.mean("age").value + 5


def test_a_wrong_call_says_so(folder, tmp_path):
    out = ("--out", tmp_path / "out")
    assert "state what is known" in run("retarget", folder, *out, code=2)
    assert "go together" in run("retarget", folder, "--label", "x", *out, code=2)
    assert "--out" in run("retarget", folder, "--modifier", "age", code=2)
    with pytest.raises(BundleError, match="exists"):
        run("retarget", folder, "--modifier", "1 + age", "--out", folder)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", "{", "expected JSON"),
        ("x.json", "3", "an object of margins"),
        ("x.json", '{"age": "old"}', "expected an interval"),
        ("x.csv", "sex,part\nfemale,1\n", "called share or count"),
        ("x.csv", "share\n1\n", "called share or count"),
        ("x.csv", "sex,share\nfemale,half\nmale,0.5\n", "a number in every line"),
        ("x.csv", "sex,share\nfemale,0.5\nmale,0.4\n", "add up to 1, not 0.9"),
        ("x.csv", "gender,share\nfemale,0.5\nmale,0.5\n", "no column 'gender'"),
    ],
)
def test_files_that_have_no_margins_are_refused(folder, tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(Exception, match=said) as found:
        run("retarget", folder, "--margins", tmp_path / name, "--out", tmp_path / "out")
    assert isinstance(found.value, cp.CounterpoiseError)
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_is_refused(folder, tmp_path):
    with pytest.raises(AnalysisError, match="no file"):
        run("retarget", folder, "--margins", tmp_path / "no.json", "--out", tmp_path / "out")
