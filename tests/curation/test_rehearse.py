"""A release that is run again on its own rows: the same plan, nothing private, nothing charged."""

import warnings

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.curation import rehearse as room
from counterpoise.curation.plan import plan_release
from counterpoise.errors import AnalysisError, CounterpoiseWarning
from counterpoise.weights import Moments
from counterpoise.weights.features import Linear
from tests.conftest import make_schema, make_table


@pytest.fixture(scope="module")
def release():
    return cp.release(make_table(600), make_schema(), 2.0, 1e-6, replicates=8, seed=1)


@pytest.fixture
def planned(monkeypatch):
    """The plans by which runs are made, with the rows that they see; nothing is fitted."""
    seen = []

    def carry_out(table, plan, kept, said, replicates, seed):
        seen.append((table, plan, replicates, seed))
        return cp.Release(table.assign(weight=1.0), plan.released, {"rows": len(table)})

    monkeypatch.setattr(room, "carry_out", carry_out)
    return seen


def test_runs_are_releases_of_synthetic_rows_without_a_ledger(release):
    told = []
    rehearsal = release.rehearse(2, seed=5, progress=lambda stage, done: told.append((stage, done)))
    assert "nothing was spent" in repr(rehearsal)
    assert told == [("rehearsal 1 of 2", 0.0), ("rehearsal 2 of 2", 0.5), ("done", 1.0)]
    for run in rehearsal.runs:
        assert "ledger" not in run.card and not run.private
        assert "synthetic rows" in run.card["rehearsal"]
        assert run.models is None and run.replicates is None
        assert len(run.table) == len(release.table)
    first, second = (run.table for run in rehearsal.runs)
    assert not first.equals(second)
    again = release.rehearse(2, seed=5).runs
    pd.testing.assert_frame_equal(first, again[0].table)
    found = rehearsal.correct(lambda made: made.mean("age"))
    assert found.value == pytest.approx(release.mean("age").value, abs=5)


def test_a_run_sees_rows_of_the_release_drawn_by_weight(release, planned):
    weights = np.where(release.table["sex"] == "F", 1.9, 0.1)
    heavy = cp.Release(
        release.table.assign(weight=weights / weights.mean()), release.schema, release.card
    )
    heavy.rehearse(2, seed=1)
    for table, _, replicates, seed in planned:
        assert len(table) == round(release.card["population"])
        assert table.merge(release.table[list(table)].drop_duplicates()).shape == table.shape
        assert (table["sex"] == "F").mean() > 0.9
        assert replicates == 0 and seed is not None
    assert planned[0][3] != planned[1][3]


def stated():
    return make_schema().select(["sex", "income"])


def unstated_cells():
    return cp.Schema([cp.Column.boolean("ill"), cp.Column.continuous("income", 0, 1000)])


def paid_bounds():
    return cp.Schema([cp.Column.boolean("ill"), cp.Column.continuous("income", bins=8)]).pay(
        "income"
    )


@pytest.mark.parametrize("make", [stated, unstated_cells, paid_bounds])
def test_the_plan_is_that_of_the_release(make, planned):
    schema, budget = make(), cp.Budget(2.0, 1e-6)
    table = make_table(600).assign(ill=lambda made: made["sex"] == "M")
    made = cp.release(table, schema, budget.epsilon, budget.delta, replicates=0, split=0.3, seed=1)
    made.rehearse(2, seed=1)
    _, plan, _, _ = planned[0]
    expected = plan_release(schema, budget, split=0.3)
    assert plan.synthesizer == expected.synthesizer and plan.weighter == expected.weighter
    for share in ("synthesizer_share", "weights_share", "cells_share", "rows_share"):
        own, other = getattr(plan, share), getattr(expected, share)
        assert (own is None) == (other is None)
        if own is not None:
            assert own.amount == pytest.approx(other.amount, rel=1e-3)
    assert plan.domain_share is None
    assert [column.has_open_cells for column in plan.schema] == [
        column.has_open_cells and column.is_complete for column in schema
    ]


def test_a_question_and_a_target_are_asked_again(planned):
    made = cp.release(
        make_table(400),
        make_schema(),
        2.0,
        1e-6,
        target="sex",
        questions=["mean(income) by sex"],
        replicates=0,
        seed=1,
    )
    made.rehearse(2)
    assert planned[0][1].weighter.target == "sex"
    assert planned[0][1].weighter.questions == ("mean(income) by sex",)


def test_a_release_from_disk_and_one_with_rules_can_be_rehearsed(tmp_path):
    schema = cp.Schema(
        [
            cp.Column.identifier("id"),
            cp.Column.integer("a", 0, 4),
            cp.Column.derived("double", "2 * a"),
        ]
    )
    table = pd.DataFrame({"a": np.arange(300) % 5})
    made = cp.release(table, schema, 2.0, 1e-6, replicates=2, seed=1)
    [run, _] = cp.load(made.save(tmp_path / "out")).rehearse(2, seed=1).runs
    assert (run.table["double"] == 2 * run.table["a"]).all()


def test_what_was_not_made_here_cannot_be_made_again(release):
    table, schema = make_table(200), make_schema()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CounterpoiseWarning)
        foreign = cp.weigh(table, make_table(200, 2), schema, 1.0, 1e-6, replicates=2, seed=1)
    for made, reason in (
        (foreign, "came from elsewhere"),
        (release.reweighted(release.weights), "given by the caller"),
        (release.unweighted(), "set aside"),
        (release.retarget(modifier="age >= 30"), "another population"),
        (cp.Release(release.table, schema, {}), "does not say how"),
    ):
        with pytest.raises(AnalysisError, match=reason):
            made.rehearse(2)


def test_methods_that_the_card_does_not_tell_in_full_are_refused(release):
    table = make_table(300)
    own = cp.release(
        table, make_schema(), 2.0, 1e-6, weights=Moments(blocks=(Linear(),)), replicates=0, seed=1
    )
    with pytest.raises(AnalysisError, match="weights 'moments' cannot be had again"):
        own.rehearse(2)
    unknown = release.card | {"synthesizer": {"method": "theirs", "parameters": {}}}
    with pytest.raises(AnalysisError, match="no method 'theirs'"):
        cp.Release(release.table, release.schema, unknown).rehearse(2)


def test_large_private_tables_and_other_versions_are_told_of(release, planned):
    large = release.card | {"population": 3e6}
    with pytest.raises(AnalysisError, match="2,000,000 at most"):
        cp.Release(release.table, release.schema, large).rehearse(2)
    older = release.card | {"counterpoise": "0.0.1"}
    with pytest.warns(CounterpoiseWarning, match=r"made by version 0\.0\.1"):
        cp.Release(release.table, release.schema, older).rehearse(2)


@pytest.mark.parametrize("runs", [1, 0, -1, 2.5, "ten", None, True])
def test_runs_are_a_number_of_two_or_more(release, runs):
    with pytest.raises(cp.CounterpoiseError, match="runs"):
        release.rehearse(runs)
