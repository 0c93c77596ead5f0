"""The weights' share goes by the number of rows, within what was planned."""

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise import Budget, Column, Schema
from counterpoise.curation.plan import ASKED_FRACTION, WEIGHTS_FRACTION, plan_release
from counterpoise.curation.weights_share import LEAST_FRACTION, share_by_rows, why_split

SCHEMA = Schema([Column.continuous("x", 0, 1), Column.boolean("y"), Column.integer("z", 0, 99)])


def settled(rows, epsilon=1.0, **options):
    plan = plan_release(SCHEMA, Budget(epsilon, 1e-6), **options)
    return plan, share_by_rows(plan, SCHEMA.with_bins(10), rows)


def table(rows, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.random(rows)
    z = generator.integers(0, 100, rows)
    return pd.DataFrame({"x": x, "y": generator.random(rows) < x, "z": z})


def test_many_rows_and_a_large_budget_leave_the_synthesizer_more():
    splits = [settled(rows)[1].split for rows in (500, 20_000, 100_000, 10_000_000)]
    assert splits[0] == WEIGHTS_FRACTION
    assert splits == sorted(splits, reverse=True)
    assert splits[1] > splits[2] > splits[-1] == LEAST_FRACTION
    assert settled(20_000, epsilon=4.0)[1].split < settled(20_000)[1].split


def test_the_noise_on_a_mean_is_then_a_quarter_of_its_sampling_error():
    rows = 50_000
    plan = plan_release(SCHEMA, Budget(1.0, 1e-6))
    [stage] = [one for one in plan.describe(private_rows=rows) if one.name == "weights"]
    assert LEAST_FRACTION < settled(rows)[1].split < WEIGHTS_FRACTION
    stated = float(stage.noise.split("± ")[1].split(";")[0])
    assert stated == pytest.approx(0.25 / rows**0.5, rel=0.05)
    assert "a quarter of the sampling error" in stage.noise


@pytest.mark.parametrize("rows", [100, 50_000, 10**8])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_two_shares_add_up_to_what_was_planned(rows, delta):
    plan = plan_release(SCHEMA, Budget(1.0, delta))
    found = share_by_rows(plan, SCHEMA.with_bins(10), rows)
    before = plan.synthesizer_share.amount + plan.weights_share.amount
    after = found.synthesizer_share.amount + found.weights_share.amount
    assert after == pytest.approx(before, rel=1e-12)
    assert found.weights_share.amount <= plan.weights_share.amount * (1 + 1e-12)


def test_questions_may_take_more_and_shrink_as_well():
    asked = {"questions": ["y ~ x", "mean(x) by y"]}
    assert settled(500, **asked)[1].split == ASKED_FRACTION
    assert settled(10_000_000, **asked)[1].split < WEIGHTS_FRACTION


def test_a_stated_split_and_other_weights_stay_as_they_are():
    for options in ({"split": 0.3}, {"weights": "logistic"}, {"weights": "uniform"}):
        plan, found = settled(10**7, **options)
        assert found is plan
        assert why_split(found) == ""


def test_rows_that_nothing_counts_beforehand_leave_the_share_alone():
    complete = Schema([Column.boolean("y"), Column.categorical("w", list("abcdefgh"))])
    assert not plan_release(complete, Budget(1.0, 1e-6)).splits_by_rows
    assert plan_release(complete, Budget(1.0, 1e-6, "replace")).splits_by_rows


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_card_says_the_share_and_why_and_the_ledger_has_it(neighbours):
    made = cp.release(
        table(20_000),
        SCHEMA,
        4.0,
        1e-6,
        neighbours=neighbours,
        rows=200,
        replicates=0,
        seed=1,
    )
    split = made.card["split"]
    assert split < 0.15
    assert "sampling error" in made.card["split_reason"]
    assert made.ledger.epsilon_spent <= 4.0
    plan = plan_release(SCHEMA, Budget(4.0, 1e-6, neighbours))
    [stage] = [one for one in plan.describe(private_rows=20_000) if one.name == "weights"]
    both = plan.synthesizer_share.amount + plan.weights_share.amount
    assert stage.share.amount / both == pytest.approx(split, rel=0.1)


def test_a_run_that_goes_on_has_the_share_of_the_one_before(tmp_path, monkeypatch):
    from counterpoise.curation import release as module

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    call = {"rows": 200, "replicates": 0, "work": tmp_path / "work"}
    with monkeypatch.context() as patch:
        patch.setattr(module, "fit_synthesizer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cp.release(table(20_000), SCHEMA, 4.0, 1e-6, **call)
    counts = []
    share_of = module.settle_shares

    def seen(vault, plan, kept):
        counts.append(vault.counted_rows)
        return share_of(vault, plan, kept)

    monkeypatch.setattr(module, "settle_shares", seen)
    made = cp.release(table(20_000), SCHEMA, 4.0, 1e-6, **call)
    assert counts == [None]
    assert made.card["split"] < 0.15
    assert [spend.query for spend in made.ledger.spends].count("number of rows") <= 2
