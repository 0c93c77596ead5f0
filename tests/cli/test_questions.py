"""Questions on the command line: one by one, or from a file, planned and carried out."""

import json

import pytest

import counterpoise as cp
from counterpoise.errors import MethodError
from tests.cli.calls import run
from tests.conftest import make_schema, make_table


@pytest.fixture
def words(tmp_path):
    make_table(400).assign(old=lambda rows: rows["age"] > 50).to_csv(
        tmp_path / "table.csv", index=False
    )
    schema = cp.Schema([*make_schema(), cp.Column.boolean("old")])
    schema.write(tmp_path / "schema.json")
    (tmp_path / "asked.txt").write_text("# for the board\nold ~ income\nsex x grade\n")
    start = ["release", tmp_path / "table.csv", "--schema", tmp_path / "schema.json"]
    return [*start, "--epsilon", 2, "--delta", 1e-6, "--rows", 200, "--replicates", 3]


def test_questions_of_the_line_and_of_a_file_go_into_the_release(words, tmp_path):
    more = ["--question", "mean(income) by sex", "--questions", tmp_path / "asked.txt"]
    run(*words, *more, "--seed", 1, "--out", tmp_path / "out", "--quiet")
    asked = [line["question"] for line in cp.load(tmp_path / "out").card["questions"]]
    assert asked == ["mean(income) by sex", "old ~ income", "sex x grade"]


def test_a_dry_run_counts_the_questions_and_reads_nothing(words):
    shown = run(*words, "--question", "old ~ income", "--question", "mean(age)", "--dry-run")
    assert "first of those of 2 questions" in shown
    assert "nothing was read or spent" in shown
    stages = json.loads(run(*words, "--question", "old ~ income", "--dry-run", "--json"))["stages"]
    [weights] = [stage for stage in stages if stage["stage"] == "weights"]
    assert "first of those of 1 question," in weights["asks"]


def test_what_is_no_question_is_refused(words, tmp_path):
    with pytest.raises(MethodError, match="expected a formula such as"):
        run(*words, "--question", "the age, please", "--dry-run")
    with pytest.raises(MethodError, match="cannot be read"):
        run(*words, "--questions", tmp_path / "nowhere.txt", "--dry-run")


def test_weigh_takes_questions_and_analyse_estimates_an_effect(words, tmp_path):
    made = cp.release(
        tmp_path / "table.csv", tmp_path / "schema.json", 9.0, 1e-6, rows=300, replicates=0, seed=1
    )
    made.table.drop(columns="weight").to_csv(tmp_path / "synthetic.csv", index=False)
    effect = "effect(old) on income given sex"
    run(
        *("weigh", tmp_path / "table.csv", tmp_path / "synthetic.csv"),
        *("--schema", tmp_path / "schema.json", "--epsilon", 2, "--question", effect),
        *("--replicates", 10, "--seed", 1, "--out", tmp_path / "out", "--quiet"),
    )
    release = cp.load(tmp_path / "out").use_weights()
    assert release.card["questions"] == [{"question": effect, "measured": True}]
    words = ("analyse", tmp_path / "out", "effect", "old", "income", "sex", "--use-weights")
    [found] = json.loads(run(*words, "--json"))["estimates"]
    assert found["value"] == release.effect("old", "income", "sex").value
    assert "effect TREATMENT OUTCOME TERMS" in run(*words[:-2], code=2)
