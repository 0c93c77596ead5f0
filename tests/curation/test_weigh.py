"""Weights for a synthetic table that another tool made."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.curation import weigh as weigh_module
from counterpoise.curation.plan import plan_weigh
from counterpoise.errors import (
    BudgetError,
    BundleError,
    CounterpoiseWarning,
    MethodError,
    SchemaError,
    TableError,
)
from counterpoise.schema import Dialect, Spelling
from counterpoise.vault import Budget, Journal
from counterpoise.weights import Moments
from tests.conftest import make_table


@pytest.fixture(autouse=True)
def warned(monkeypatch):
    """The caveat was told already, so that it does not fail every test here."""
    monkeypatch.setattr(weigh_module, "_warned", True)


def shifted(rows: int, seed: int = 1) -> pd.DataFrame:
    """A synthetic table whose columns are those of the private one, but for more men."""
    table = make_table(rows, seed)
    return table.assign(sex=np.random.default_rng(seed).choice(["F", "M"], rows, p=[0.4, 0.6]))


def test_the_weights_bring_the_table_to_the_private_one(table, schema):
    synthetic = shifted(1000)
    made = cp.weigh(table, synthetic, schema, 5.0, 1e-6, replicates=4, seed=0)
    assert made.proportion("sex", "F").value == pytest.approx(
        (table["sex"] == "F").mean(), abs=0.04
    )
    assert made.unweighted().proportion("sex", "F").value == pytest.approx(0.4, abs=0.05)
    assert made.replicates.shape == (1000, 4)


def test_the_table_is_the_synthetic_one_with_its_weights(table, schema, tmp_path):
    synthetic = shifted(300).assign(note="kept out")
    made = cp.weigh(table, synthetic, schema, 1.0, 1e-6, replicates=2)
    assert list(made.table.columns) == [*schema.names, "weight"]
    np.testing.assert_array_equal(made.table["age"], synthetic["age"])
    loaded = cp.load(made.save(tmp_path / "out"))
    pd.testing.assert_frame_equal(loaded.table, made.table)
    with pytest.raises(MethodError, match="made elsewhere"):
        loaded.sample(5)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_all_of_the_budget_goes_to_the_weights(table, schema, delta, neighbours):
    made = cp.weigh(table, shifted(200), schema, 1.0, delta, replicates=0, neighbours=neighbours)
    assert 0.99 <= made.ledger.epsilon_spent <= 1.0
    assert {spend.stage for spend in made.ledger.spends} == {"weights"}
    assert made.card["population_is_public"] == (neighbours == "replace")
    if neighbours == "replace":
        assert made.card["population"] == len(table)


def test_files_are_weighed_as_frames_are(table, schema, tmp_path):
    synthetic = shifted(250)
    table.to_csv(tmp_path / "private.csv", index=False)
    synthetic.to_csv(tmp_path / "synthetic.csv", index=False)
    of_files = cp.weigh(
        tmp_path / "private.csv", tmp_path / "synthetic.csv", schema, 1.0, 1e-6, seed=1
    )
    of_frames = cp.weigh(table, synthetic, schema, 1.0, 1e-6, seed=1)
    assert of_files.weights == pytest.approx(of_frames.weights)
    assert not of_files.private


def test_the_caveat_is_warned_once_and_stays_in_the_card(table, schema, monkeypatch):
    monkeypatch.setattr(weigh_module, "_warned", False)
    with pytest.warns(CounterpoiseWarning, match="privacy cost is yours to add"):
        made = cp.weigh(table, shifted(50), schema, 1.0, 1e-6, replicates=0)
    assert "yours to add" in made.card["caveat"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cp.weigh(table, shifted(50), schema, 1.0, 1e-6, replicates=0)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("sex", "X", "'sex': the schema has no place for 'X'"),
        ("age", 120, "'age': the schema has no place for"),
        ("age", -1, "'age': the schema has no place for"),
        ("income", np.inf, "'income': the schema has no place for"),
        ("income", np.nan, "'income': the synthetic table has nulls"),
    ],
)
def test_a_value_that_the_schema_lacks_is_refused_before_anything_is_read(
    schema, column, value, words
):
    synthetic = make_table(20)
    synthetic[column] = synthetic[column].astype(object)
    synthetic.loc[3, column] = value
    with pytest.raises(TableError, match=words):
        cp.weigh("nowhere.csv", synthetic, schema, 1.0, 1e-6)


def test_dates_texts_and_words_for_null_are_read(tmp_path):
    schema = cp.Schema(
        [
            cp.Column.date("day", datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
            cp.Column.integer("count", 0, 9, nullable=True),
            cp.Column.categorical("city", ["Rome", "else"], other="else"),
        ],
        missing_values=("", "NA"),
    )
    rows = ["2020-03-01,3,Rome", "2020-12-31,NA,Oslo"] * 30
    path = tmp_path / "synthetic.csv"
    path.write_text("\n".join(["day,count,city", *rows]) + "\n")
    private = cp.release(pd.DataFrame(columns=schema.names), schema, 1.0, rows=40).table
    made = cp.weigh(private, path, schema, 1.0, replicates=0)
    assert made.table["count"].isna().sum() == 30
    assert set(made.table["city"]) == {"Rome", "else"}
    for wrong, words in (
        ("2019-03-01,3,Rome", "no place for '2019-03-01'.*widen the schema"),
        ("2020-03-01,2.5,Rome", "whole numbers.*'2.5'; round them"),
        ("2020-03-01,many,Rome", "expected numbers.*'many'"),
        ("soon,3,Rome", r"ISO dates \(YYYY-MM-DD\).*'soon'"),
    ):
        path.write_text(f"day,count,city\n{wrong}\n")
        with pytest.raises(TableError, match=words):
            cp.weigh(private, path, schema, 1.0)


@pytest.mark.parametrize(
    "rows",
    [
        ["01.03.2020;1.500,5", "31.12.2020;n/a"],
        ["2020-03-01,1500.5", "2020-12-31,"],
        ['01.03.2020,"1.500,5"', "31.12.2020,n/a"],
    ],
    ids=["as the private table", "plain", "with the private table's values in plain fields"],
)
def test_a_table_written_as_the_private_one_is_read_as_that_is(tmp_path, rows):
    money = Spelling(decimal=",", group=".", missing_values=("", "n/a"))
    schema = cp.Schema(
        [
            cp.Column.date("day", "2020-01-01", "2021-01-01", spelling=Spelling("%d.%m.%Y")),
            cp.Column.continuous("cost", 0, 9_000, nullable=True, spelling=money),
        ],
        dialect=Dialect(";"),
    )
    private, synthetic = tmp_path / "private.csv", tmp_path / "synthetic.csv"
    private.write_text("\n".join(["day;cost", *["02.03.2020;7,5"] * 30]) + "\n")
    separator = ";" if ";" in rows[0] else ","
    synthetic.write_text("\n".join([f"day{separator}cost", *rows * 20]) + "\n")
    made = cp.weigh(private, synthetic, schema, 1.0, replicates=0).table
    assert made["day"].astype(str).tolist()[:2] == ["2020-03-01", "2020-12-31"]
    assert made["cost"].iloc[0] == 1500.5 and made["cost"].isna().sum() == 20
    # What is neither plain nor spelled so is refused by its name.
    synthetic.write_text("day,cost\n2020-03-01,many\n")
    with pytest.raises(TableError, match=r"'cost': expected numbers.*'many'"):
        cp.weigh(private, synthetic, schema, 1.0, replicates=0)


DAYS = cp.Schema(
    [
        cp.Column.date("day", datetime.date(2023, 1, 1), datetime.date(2023, 12, 31)),
        cp.Column.datetime(
            "moment", datetime.datetime(2023, 1, 1), datetime.datetime(2023, 12, 31, 12)
        ),
    ]
)


def weighed_days(days, moments=None):
    """The released table of a synthetic one of days; without moments they are noon in May."""
    noon = pd.Timestamp("2023-05-01 12:00")
    synthetic = pd.DataFrame({"day": days, "moment": noon if moments is None else moments})
    private = pd.DataFrame({"day": ["2023-05-01"] * 20, "moment": ["2023-05-01"] * 20})
    return cp.weigh(private, synthetic, DAYS, 1.0, replicates=0)


def test_moments_with_a_time_zone_are_converted_to_utc():
    late = pd.to_datetime(["2023-05-01 23:30", "2023-12-31 06:00"]).tz_localize("America/New_York")
    made = weighed_days(late, late).table
    assert made["day"].astype(str).tolist() == ["2023-05-02", "2023-12-31"]
    assert made["moment"].astype(str).tolist() == ["2023-05-02 03:30:00", "2023-12-31 11:00:00"]
    with pytest.raises(TableError, match="'moment': the schema has no place for 2023-12-31 17:00"):
        weighed_days(late, late + pd.Timedelta(hours=6))


def test_dates_may_be_written_in_several_iso_forms_and_lose_their_time_of_day(tmp_path):
    forms = ["2023-05-01T00:00:00", "2023-06-01", "2023-12-31 12:00"]
    made = weighed_days(forms, forms)
    assert made.table["day"].astype(str).tolist() == ["2023-05-01", "2023-06-01", "2023-12-31"]
    assert made.table["moment"].iloc[2] == pd.Timestamp("2023-12-31 12:00")
    loaded = cp.load(made.save(tmp_path / "out"))
    pd.testing.assert_frame_equal(loaded.table, made.table)
    of_moments = weighed_days(pd.to_datetime(forms, format="ISO8601")).table
    pd.testing.assert_series_equal(of_moments["day"], made.table["day"])


@pytest.mark.parametrize("value", ["31/12/2023", "soon"])
def test_a_date_that_is_not_iso_is_refused_without_a_warning(value):
    # A warning would be raised in the place of the refusal.
    with pytest.raises(TableError, match=rf"'day': expected ISO dates .YYYY-MM-DD.*'{value}'"):
        weighed_days([value])
    with pytest.raises(TableError, match="'moment': expected ISO moments"):
        weighed_days(["2023-05-01"], value)


def test_a_fraction_in_a_column_of_integers_is_named_as_a_number(schema):
    synthetic = make_table(20).assign(age=24.5)
    with pytest.raises(TableError, match=r"whole numbers.*, not 24\.5; round them"):
        cp.weigh("nowhere.csv", synthetic, schema, 1.0, 1e-6)


def test_a_schema_that_leaves_something_to_pay_for_is_refused(schema):
    paid = schema.replace(cp.Column.categorical("sex")).pay("sex")
    with pytest.raises(SchemaError, match=r"leaves something of 'sex' open.*do not pay"):
        cp.weigh("nowhere.csv", make_table(20), paid, 1.0, 1e-6)


def test_a_request_is_checked_before_anything_is_read(schema):
    synthetic = make_table(20)
    with pytest.raises(MethodError, match="moments"):
        cp.weigh("nowhere.csv", synthetic, schema, 1.0, method="moment")
    with pytest.raises(BudgetError, match="epsilon"):
        cp.weigh("nowhere.csv", synthetic, schema, -1.0)
    with pytest.raises(TableError, match="the synthetic table lacks columns"):
        cp.weigh("nowhere.csv", synthetic[["sex"]], schema, 1.0)
    with pytest.raises(TableError, match="no rows"):
        cp.weigh("nowhere.csv", synthetic.iloc[:0], schema, 1.0)
    with pytest.raises(MethodError, match="replicates"):
        cp.weigh("nowhere.csv", synthetic, schema, 1.0, replicates=-1)
    for seed in (1.5, "1", -1, True):
        with pytest.raises(MethodError, match="seed: expected a whole number"):
            cp.weigh("nowhere.csv", synthetic, schema, 1.0, seed=seed)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"method": "oracle"}, r"'oracle' cannot be had by name.*log density ratio.*instance"),
        ({"method": Moments}, r"expected a name or an instance; write Moments\(\)"),
        ({"method": Moments(target="age"), "target": "sex"}, "of its own, 'age'.*state one"),
        ({"target": ["age"]}, "target: expected the name of a column, not a list"),
    ],
)
def test_a_method_or_target_that_cannot_be_meant_is_refused(schema, asked, words):
    with pytest.raises(MethodError, match=words):
        cp.weigh("nowhere.csv", make_table(20), schema, 1.0, 1e-6, **asked)


def test_the_same_target_may_be_said_twice(schema):
    plan = plan_weigh(schema, Budget(1.0, 1e-6), Moments(target="age"), target="age")
    assert plan.weighter == Moments(target="age")


def test_weights_that_take_no_target_do_not_send_one_to_a_synthesizer(schema):
    with pytest.raises(MethodError, match=r"these weights take none.*'moments'") as refused:
        cp.weigh("nowhere.csv", make_table(20), schema, 1.0, method="uniform", target="age")
    assert "synthesizer" not in str(refused.value)


def interrupted(stage, done):
    if stage == "replicates":
        raise KeyboardInterrupt


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_an_interrupted_run_goes_on_and_does_not_pay_again(table, schema, tmp_path, neighbours):
    asked = {"replicates": 3, "work": tmp_path / "work", "neighbours": neighbours}
    with pytest.raises(KeyboardInterrupt):
        cp.weigh(table, shifted(80), schema, 1.0, 1e-6, progress=interrupted, **asked)
    paid = Journal(tmp_path / "work" / "journal", Budget(1.0, 1e-6, neighbours)).ledger()
    assert paid.epsilon_spent > 0.99
    made = cp.weigh(table, shifted(80), schema, 1.0, 1e-6, **asked)
    assert made.ledger.spends == paid.spends
    again = cp.weigh(table, shifted(80), schema, 1.0, 1e-6, **asked)
    assert again.weights == pytest.approx(made.weights)
    assert again.replicates == pytest.approx(made.replicates, rel=1e-3)
    assert again.card["population"] == made.card["population"]
    made.save(tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_the_work_of_another_synthetic_table_is_refused(table, schema, tmp_path):
    work = tmp_path / "work"
    cp.weigh(table, shifted(80), schema, 1.0, 1e-6, replicates=0, work=work)
    with pytest.raises(BundleError, match=r"differs in synthetic\)"):
        cp.weigh("nowhere.csv", shifted(80, seed=2), schema, 1.0, 1e-6, replicates=0, work=work)
    with pytest.raises(BundleError, match=r"differs in budget, weights\)"):
        cp.weigh(
            "nowhere.csv", shifted(80), schema, 2.0, 1e-6, method="uniform", replicates=0, work=work
        )
    with pytest.raises(BundleError, match=r"differs in fine, split, synthesizer, synthetic\)"):
        cp.release("nowhere.csv", schema, 1.0, 1e-6, replicates=0, work=work)


def test_progress_is_told_in_order(table, schema):
    told = []
    cp.weigh(table, shifted(50), schema, 1.0, replicates=2, progress=lambda *s: told.append(s))
    assert told == [("weights", 0.0), ("replicates", 0.5), ("done", 1.0)]


def test_free_weights_state_no_population_that_nobody_paid_for(table, schema):
    made = cp.weigh(table, shifted(50), schema, 1.0, method="uniform", replicates=2)
    assert made.card["population"] is None
    assert made.ledger.spends == ()
    assert "synthetic rows" in made.total().note
