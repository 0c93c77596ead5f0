"""Questions in a release: planned, paid for first, written on the card, and taken up again."""

import json

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.cli.plan import Guess, plan_lines
from counterpoise.curation.plan import plan_release, plan_weigh
from counterpoise.errors import BundleError, MethodError
from counterpoise.synthesizers import Aim, Mst
from counterpoise.weights import Moments
from tests.conftest import make_schema, make_table

BUDGET = cp.Budget(2.0, 1e-6)
ASKED = ["sex ~ age + income", cp.Question.mean("income", by="sex"), "sex x grade"]
TEXTS = ["sex ~ age + income", "mean(income) by sex", "sex x grade"]


def made(**options):
    asked = {"questions": ASKED, "rows": 300, "replicates": 3, "seed": 1} | options
    return cp.release(make_table(500), make_schema(), 2.0, 1e-6, progress=False, **asked)


def test_the_plan_hands_questions_to_both_methods_and_says_so():
    plan = plan_release(make_schema(), BUDGET, synthesizer="aim", target="sex", questions=ASKED)
    assert isinstance(plan.synthesizer, Aim)
    assert isinstance(plan.weighter, Moments)
    assert plan.synthesizer.questions == plan.weighter.questions == plan.questions == tuple(TEXTS)
    assert plan.synthesizer.target == plan.weighter.target == "sex"
    shown = plan_lines(plan, 80, Guess())
    assert "first of those of 3 questions" in shown
    assert "one that was asked for: ± " in shown
    quiet = plan_lines(plan_release(make_schema(), BUDGET), 80, Guess())
    assert "question" not in quiet
    assert "asked for" not in quiet


def test_asking_costs_nothing_more_but_the_weights_get_more_of_it():
    plain, asked = (plan_release(make_schema(), BUDGET, questions=q) for q in ((), ASKED))
    assert asked.weights_share.amount == pytest.approx(2 * plain.weights_share.amount)
    stated = plan_release(make_schema(), BUDGET, questions=ASKED, split=0.2)
    assert stated.weights_share == plain.weights_share
    assert made().ledger.epsilon_spent == pytest.approx(
        made(questions=None).ledger.epsilon_spent, rel=1e-3
    )


def test_questions_of_a_method_come_before_those_beside_it():
    plan = plan_release(
        make_schema(),
        BUDGET,
        weights=Moments(questions=["mean(age)"]),
        questions=["mean(age)", *ASKED],
    )
    assert plan.weighter.questions == ("mean(age)", *TEXTS)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_card_says_what_was_asked_and_stays_in_the_bundle(tmp_path, neighbours):
    release = made(neighbours=neighbours)
    lines = [{"question": text, "measured": True} for text in TEXTS]
    assert release.card["questions"] == lines
    json.dumps(release.card, allow_nan=False)
    kept = cp.load(release.save(tmp_path / "out"))
    assert kept.card["questions"] == lines
    again, first = kept.sample(50, seed=1), release.sample(50, seed=1)
    np.testing.assert_allclose(again.weights, first.weights)
    assert "questions" not in made(questions=[]).card


def test_the_card_says_what_could_not_be_asked():
    """Of one sex with so large a budget, rows of independent counts have one sex too."""
    table = make_table(500).assign(sex="F")
    asked = {"rows": 75, "replicates": 3, "seed": 1, "questions": ["sex ~ age", "mean(age)"]}
    release = cp.release(table, make_schema(), 5000.0, 1e-6, synthesizer="independent", **asked)
    refused, measured = release.card["questions"]
    reason = "its target has one value in the synthetic rows"
    assert refused == {"question": "sex ~ age", "measured": False, "reason": reason}
    assert measured == {"question": "mean(age)", "measured": True}
    uniform = made(synthesizer="aim", weights="uniform")
    assert [line["measured"] for line in uniform.card["questions"]] == [False] * 3
    assert uniform.card["questions"][0]["reason"] == "the chosen weights take no questions"


def test_weigh_takes_questions_too():
    synthetic = made(questions=None).table.drop(columns="weight")
    weighed = cp.weigh(
        make_table(500), synthetic, make_schema(), 1.0, 1e-6, replicates=3, seed=1, questions=ASKED
    )
    assert [line["question"] for line in weighed.card["questions"]] == TEXTS
    with pytest.raises(MethodError, match="these weights take none"):
        plan_weigh(make_schema(), BUDGET, "uniform", questions=ASKED)


def test_methods_without_questions_refuse_them():
    with pytest.raises(MethodError, match="none of the chosen methods takes any"):
        plan_release(make_schema(), BUDGET, Mst(), "uniform", questions=ASKED)


@pytest.mark.parametrize(
    ("questions", "why"),
    [
        (["sex ~ shoe"], "no column 'shoe'"),
        (["what is it"], "expected a formula such as"),
        ("sex ~ age", "expected a list of questions"),
        ([3], "expected a formula such as"),
        (["poisson: grade ~ age"], "not for it"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_read(questions, why):
    with pytest.raises(MethodError, match="questions: ") as refused:
        cp.release("nowhere.csv", make_schema(), 1.0, 1e-6, questions=questions)
    assert why in str(refused.value)


def test_an_interrupted_run_goes_on_with_the_same_questions_only(tmp_path):
    folder = tmp_path / "work"

    def stop(name, done):
        if name == "replicates":
            raise KeyboardInterrupt

    asked = {"rows": 200, "replicates": 3, "work": folder}

    def go(questions, progress=False):
        return cp.release(
            make_table(400),
            make_schema(),
            2.0,
            1e-6,
            questions=questions,
            progress=progress,
            **asked,
        )

    with pytest.raises(KeyboardInterrupt):
        go(ASKED, stop)
    with pytest.raises(BundleError, match="differs in synthesizer, weights"):
        go(ASKED[:1])
    release = go(TEXTS)
    assert [line["question"] for line in release.card["questions"]] == TEXTS
    assert [spend.stage for spend in release.ledger.spends].count("weights") == 2
    assert release.ledger.epsilon_spent <= 2.0
