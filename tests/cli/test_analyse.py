"""`counterpoise analyse`: the analyst's estimates, the same as Python's."""

import json

import pytest

import counterpoise as cp
from counterpoise.analysis.result import Estimate
from counterpoise.cli.console import estimate_lines, estimate_values
from counterpoise.errors import AnalysisError
from tests.cli.calls import run
from tests.conftest import make_schema, make_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = cp.release(make_table(2000), make_schema(), 2.0, 1e-6, rows=800, replicates=20, seed=1)
    return made.save(tmp_path_factory.mktemp("analyse") / "out")


@pytest.fixture(scope="module")
def release(folder):
    return cp.load(folder)


def values(*words):
    return json.loads(run("analyse", *words, "--json"))["estimates"]


def test_a_mean_by_group_is_pythons(folder, release):
    expected = release.mean("age", by="sex")
    found = values(folder, "mean", "age", "--by", "sex")
    assert [each["label"] for each in found] == [{"sex": "F"}, {"sex": "M"}]
    for each, own in zip(found, expected, strict=True):
        assert each["value"] == own.value
        assert each["standard_error"] == own.standard_error
        assert [each["low"], each["high"]] == list(own.interval())
        assert each["unweighted"] == own.unweighted


def test_the_level_is_that_of_the_intervals(folder, release):
    (wide,) = values(folder, "mean", "age", "--level", 0.99)
    assert [wide["low"], wide["high"]] == list(release.mean("age").interval(0.99))
    assert "(intervals of 99%" in run("analyse", folder, "mean", "age", "--level", 0.99)
    assert "--level" in run("analyse", folder, "mean", "age", "--level", 95, code=2)


def test_a_table_shows_value_half_width_interval_and_unweighted(folder, release):
    lines = run("analyse", folder, "mean", "age", "--by", "sex").splitlines()
    assert lines[0].split() == ["sex", "value", "±", "low", "high", "unweighted"]
    assert [line.split()[0] for line in lines[1:3]] == ["F", "M"]
    value, half = (float(cell) for cell in lines[1].split()[1:3])
    own = release.mean("age", by="sex")["F"]
    low, high = own.interval()
    assert value == pytest.approx(own.value, abs=0.06)
    assert half == pytest.approx((high - low) / 2, rel=0.1)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["total"], lambda release: release.total()),
        (["total", "sex", "--category", "M"], lambda release: release.total("sex", "M")),
        (["proportion", "sex"], lambda release: release.proportion("sex")),
        (["quantile", "age", "--at", 0.9], lambda release: release.quantile("age", 0.9)),
        (["quantile", "grade"], lambda release: release.quantile("grade")),
        (["histogram", "income"], lambda release: release.histogram("income")),
        (
            ["histogram", "age", "--bins", "0,50,100"],
            lambda release: release.histogram("age", [0, 50, 100]),
        ),
        (
            ["crosstab", "sex", "grade", "--of", "rows"],
            lambda release: release.crosstab("sex", "grade", "rows"),
        ),
        (["corr", "age", "income"], lambda release: release.corr("age", "income")),
        (
            ["glm", "income ~ age + C(sex)"],
            lambda release: release.glm("income ~ age + C(sex)").coefficients,
        ),
    ],
)
def test_every_statistic_is_pythons(folder, release, words, expected):
    own = expected(release)
    members = [own] if isinstance(own, type(release.mean("age"))) else list(own)
    assert [each["value"] for each in values(folder, *words)] == [each.value for each in members]
    assert run("analyse", folder, *words)


def test_without_weights_it_says_what_the_rows_say(folder, release):
    (plain,) = values(folder, "mean", "age", "--unweighted")
    assert plain["value"] == pytest.approx(release.table["age"].mean())
    assert plain["standard_error"] is None
    assert "no standard error" in plain["note"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["mean"], "mean COLUMN"),
        (["mean", "age", "income"], "mean COLUMN"),
        (["crosstab", "sex"], "ROW COLUMN"),
        (["corr", "age"], "corr"),
        (["mean", "age", "--at", 0.5], "mean takes no --at"),
        (["corr", "age", "income", "--by", "sex"], "corr takes no --by"),
        (["histogram", "age", "--bins", "low,high"], "--bins"),
        (["median", "age"], "quantile"),
        (["mean", "age", "--unweighted", "--use-weights"], "exclude"),
        (["total", "--category", "M"], "of which column"),
    ],
)
def test_a_wrong_call_is_told_what_was_expected(folder, words, named):
    assert named in run("analyse", folder, *words, code=2)


def test_an_unknown_column_or_category_is_ours_to_tell(folder):
    with pytest.raises(cp.CounterpoiseError, match="agee"):
        run("analyse", folder, "mean", "agee")
    with pytest.raises(AnalysisError, match="Q"):
        run("analyse", folder, "proportion", "sex", "--category", "Q")


def judged(release, level, folder):
    weights = release.card["weights"] | {
        "verdict": {"level": level, "reason": "few rows count", "way_out": "draw more rows"}
    }
    made = cp.Release(release.table, release.schema, release.card | {"weights": weights})
    return made.save(folder / level.replace(" ", "-"))


def test_bad_weights_are_refused_until_one_decides(release, tmp_path):
    folder = judged(release, "do not use", tmp_path)
    with pytest.raises(AnalysisError, match="should not be used"):
        run("analyse", folder, "mean", "age")
    assert values(folder, "mean", "age", "--unweighted")
    (used,) = values(folder, "mean", "age", "--use-weights")
    assert used["value"] == release.mean("age").value
    assert "weights: do not use (few rows count; draw more rows)" in run("inspect", folder)


def test_caution_is_a_note_that_quiet_leaves_out(release, tmp_path):
    folder = judged(release, "caution", tmp_path)
    assert "note: use the weights of this release with caution" in run(
        "analyse", folder, "mean", "age"
    )
    assert "note" not in run("analyse", folder, "mean", "age", "--quiet")


def test_estimates_that_nothing_measured_are_marked(tmp_path):
    made = cp.release(
        make_table(2000),
        make_schema(),
        2.0,
        1e-6,
        rows=400,
        synthesizer="independent",
        weights="uniform",
        replicates=10,
        seed=1,
    )
    out = made.save(tmp_path / "out")
    [alone] = values(out, "mean", "age")
    assert alone["support"] == "measured"
    assert alone["assumed"] is None
    found = values(out, "mean", "age", "--by", "sex")
    assert {each["support"] for each in found} == {"never"}
    assert [each["low"] for each in found] == [
        each.interval()[0] for each in made.mean("age", by="sex")
    ]
    said = run("analyse", out, "mean", "age", "--by", "sex").splitlines()
    assert said[-2] == "(low and high are all that the columns' own distributions allow)"
    assert said[-1].startswith("never measured:")
    formula = "age ~ sex"
    assert "deviation of 0.75 a step" in run("analyse", out, "glm", formula)
    _, wide = values(out, "glm", formula, "--prior-deviation", 1.5)
    _, usual = values(out, "glm", formula)
    assert 1.9 < wide["standard_error"] / usual["standard_error"] < 2.1
    assert "takes no --prior-deviation" in run(
        "analyse", out, "mean", "age", "--prior-deviation", 2, code=2
    )


def test_a_certificate_is_pythons(folder, release):
    found = json.loads(
        run(
            "analyse",
            folder,
            "certificate",
            "sex",
            "age",
            "--norm",
            0.2,
            "--json",
            "--loss",
            "hinge",
        )
    )
    expected = release.certificate("sex", "hinge", 0.2, ["age"]).to_dict()
    assert found == {"statistic": "certificate"} | json.loads(json.dumps(expected))
    text = run("analyse", folder, "certificate", "sex", "age", "--norm", 0.2, "--failure", 0.01)
    assert "with probability 0.99" in text


def test_options_of_a_certificate_are_refused_elsewhere(folder):
    assert "takes no --norm" in run("analyse", folder, "mean", "age", "--norm", 1, code=2)


def test_rehearsals_correct_as_in_python(folder, release):
    words = ["glm", "income ~ age", "--rehearsals", 2, "--seed", 3]
    found = json.loads(run("analyse", folder, *words, "--json"))
    expected = release.rehearse(2, seed=3).correct(lambda made: made.glm("income ~ age"))
    assert found["rehearsals"] == 2
    assert [each["value"] for each in found["estimates"]] == [each.value for each in expected]
    assert "--unweighted" in run("analyse", folder, *words, "--unweighted", code=2)
    assert "--seed" in run("analyse", folder, "mean", "age", "--seed", 3, code=2)
    bound = run("analyse", folder, "certificate", "sex", "--rehearsals", 2, code=2)
    assert "no --rehearsals" in bound


def test_simultaneous_intervals_are_pythons_and_say_so(folder, release):
    asked = "analyse", folder, "mean", "age", "--by", "sex"
    together = release.mean("age", by="sex").simultaneous()
    found = values(folder, *asked[2:], "--simultaneous")
    assert [(each["low"], each["high"]) for each in found] == [e.interval() for e in together]
    shown, alone = run(*asked, "--simultaneous"), run(*asked)
    assert "(intervals of 95%, of all together" in shown and "of all together" not in alone
    # The ± is that of the intervals beside it.
    sizes = [[float(line.split()[2]) for line in text.splitlines()[1:3]] for text in (shown, alone)]
    assert all(wide > narrow for wide, narrow in zip(*sizes, strict=True))
    assert "there is only one estimate" in run(
        "analyse", folder, "mean", "age", "--simultaneous", code=2
    )


def test_json_says_what_part_of_an_implied_estimate_is_assumption():
    faint = Estimate(1.0, None, 1.0, support="implied", assumed=0.83)
    [line] = estimate_values(faint, 0.95)
    assert (line["support"], line["assumed"]) == ("implied", 0.83)
    assert "about 83% of the variance is assumption" in estimate_lines(faint, 0.95, "it")
