"""Weights for a synthetic table that another tool made."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import (
    BudgetError,
    BundleError,
    CounterpoiseWarning,
    MethodError,
    SchemaError,
    TableError,
)
from counterpoise.release import elsewhere
from counterpoise.release.work import Work
from tests.conftest import make_table


@pytest.fixture(autouse=True)
def warned(monkeypatch):
    """The caveat was told already, so that it does not fail every test here."""
    monkeypatch.setattr(elsewhere, "_warned", True)


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
    monkeypatch.setattr(elsewhere, "_warned", False)
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
    for wrong in ("2019-03-01,3,Rome", "2020-03-01,2.5,Rome", "soon,3,Rome"):
        path.write_text(f"day,count,city\n{wrong}\n")
        with pytest.raises(TableError, match="no place"):
            cp.weigh(private, path, schema, 1.0)


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
    with pytest.raises(TableError, match="lacks columns"):
        cp.weigh("nowhere.csv", synthetic[["sex"]], schema, 1.0)
    with pytest.raises(TableError, match="no rows"):
        cp.weigh("nowhere.csv", synthetic.iloc[:0], schema, 1.0)
    with pytest.raises(MethodError, match="replicates"):
        cp.weigh("nowhere.csv", synthetic, schema, 1.0, replicates=-1)


def interrupted(stage, done):
    if stage == "replicates":
        raise KeyboardInterrupt


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_an_interrupted_run_goes_on_and_does_not_pay_again(table, schema, tmp_path, neighbours):
    asked = {"replicates": 3, "work": tmp_path / "work", "neighbours": neighbours}
    with pytest.raises(KeyboardInterrupt):
        cp.weigh(table, shifted(80), schema, 1.0, 1e-6, progress=interrupted, **asked)
    paid = Work(tmp_path / "work", 0).ledger()
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
    with pytest.raises(BundleError, match=r"differs in split, synthesizer, synthetic\)"):
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
