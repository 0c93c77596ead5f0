"""Retargeting: margins hold in every replicate, factors multiply, and everything else follows."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.analysis.support import Measured
from counterpoise.bundle.card import private_rows
from counterpoise.errors import AnalysisError, BundleError, CounterpoiseError, MethodError
from tests.analysis.releases import SCHEMA, make_release, make_table

MARGINS = {
    "ward": {"surgery": 0.3, "medicine": 0.7, "closed": 0},
    "age": {(0, 18): 0.2, (18, 65): 0.6, (65, None): 0.2},
    "children": 1.2,
    "ill": 0.4,
}


def every_column(release):
    yield release.weights
    yield from release.replicates.T


def share(release, chosen, weights, among=None):
    among = np.ones(len(weights), bool) if among is None else among
    return weights[chosen & among].sum() / weights[among].sum()


def test_margins_hold_in_the_weight_and_in_every_replicate():
    release = make_release(800).retarget(MARGINS)
    table, age = release.table, release.table["age"].to_numpy()
    for weights in every_column(release):
        assert weights.mean() == pytest.approx(1, abs=1e-12)
        assert share(release, (table["ward"] == "surgery").to_numpy(), weights) == pytest.approx(
            0.3, abs=1e-9
        )
        assert share(release, age < 18, weights) == pytest.approx(0.2, abs=1e-9)
        assert share(release, (age >= 18) & (age < 65), weights) == pytest.approx(0.6, abs=1e-9)
        assert np.average(table["children"], weights=weights) == pytest.approx(1.2, abs=1e-9)
        assert share(release, table["ill"].to_numpy(), weights) == pytest.approx(0.4, abs=1e-9)


def test_one_margin_multiplies_each_category_by_one_factor():
    before = make_release(800)
    after = before.retarget({"ward": {"surgery": 0.3, "medicine": 0.7}})
    surgery = (before.table["ward"] == "surgery").to_numpy()
    for old, new in zip(every_column(before), every_column(after), strict=True):
        for chosen, stated in ((surgery, 0.3), (~surgery, 0.7)):
            by_hand = old[chosen] * stated / (old[chosen].sum() / old.sum())
            assert new[chosen] == pytest.approx(by_hand / old.mean(), rel=1e-9)


def test_raking_is_what_iterative_fitting_comes_to():
    before = make_release(500)
    after = before.retarget({"ward": {"surgery": 0.7, "medicine": 0.3}, "ill": 0.6})
    ward = (before.table["ward"] == "surgery").to_numpy()
    ill = before.table["ill"].to_numpy()
    weights = before.weights / before.weights.sum()
    for _ in range(500):
        for chosen, stated in ((ward, 0.7), (~ward, 0.3), (ill, 0.6), (~ill, 0.4)):
            weights = np.where(chosen, weights * stated / weights[chosen].sum(), weights)
    assert after.weights == pytest.approx(weights / weights.mean(), rel=1e-8)


def test_crossed_columns_are_one_margin():
    stated = {
        ("surgery", True): 0.1,
        ("surgery", False): 0.4,
        ("medicine", True): 0.2,
        ("medicine", False): 0.3,
    }
    release = make_release(600).retarget({("ward", "ill"): stated})
    found = release.crosstab("ward", "ill")
    for cell, value in stated.items():
        assert found[cell].value == pytest.approx(value, abs=1e-9)
        assert found[cell].support == "measured"


def test_shares_are_of_what_is_not_null_and_as_many_stay_null():
    before = make_release(800)
    after = before.retarget({"pain": {"none": 0.2, "some": 0.3, "much": 0.5}, "dose": 4.0})
    for name in ("pain", "dose"):
        null = before.table[name].isna().to_numpy()
        for old, new in zip(every_column(before), every_column(after), strict=True):
            assert share(after, null, new) == pytest.approx(share(before, null, old), abs=1e-9)
    assert after.proportion("pain", "much").value == pytest.approx(0.5, abs=1e-9)
    assert after.mean("dose").value == pytest.approx(4.0, abs=1e-9)


def test_null_is_a_category_where_it_is_stated():
    after = make_release(800).retarget({"pain": {"none": 0.4, "some": 0.2, "much": 0.3, None: 0.1}})
    null = after.table["pain"].isna().to_numpy()
    for weights in every_column(after):
        assert share(after, null, weights) == pytest.approx(0.1, abs=1e-9)
    assert after.proportion("pain", "none").value == pytest.approx(0.4 / 0.9, abs=1e-9)


def test_intervals_of_dates_and_a_mean_date():
    half = {("2020-01-01", "2021-01-01"): 0.25, (date(2021, 1, 1), None): 0.75}
    after = make_release(800).retarget({"seen": half, "left": "2021-06-01T12:00:00"})
    early = (after.table["seen"] < "2021-01-01").to_numpy()
    assert share(after, early, after.weights) == pytest.approx(0.25, abs=1e-9)
    assert abs(after.mean("left").value - pd.Timestamp("2021-06-01T12:00:00")).seconds <= 1


def test_the_highest_interval_holds_its_upper_end_and_a_text_says_what_it_holds():
    release = make_release(800)
    assert (release.table["age"] == 99).any()
    one = release.retarget({"age": {(0, 50): 0.5, (50, 99): 0.5}})
    two = release.retarget({"age": {"[0, 50)": 0.5, "[50, 99]": 0.5}})
    assert one.weights == pytest.approx(two.weights)
    with pytest.raises(AnalysisError, match="states no share for 99"):
        release.retarget({"age": {"[0, 50)": 0.5, "[50, 99)": 0.5}})


def test_counts_are_shares_and_say_how_many_people_the_target_has():
    release = make_release(400, population=1000.0)
    counted = release.retarget({"ward": {"surgery": 3000, "medicine": 7000}})
    shares = release.retarget({"ward": {"surgery": 0.3, "medicine": 0.7}})
    assert counted.weights == pytest.approx(shares.weights)
    assert counted.total("ward", "surgery").value == pytest.approx(3000)
    assert counted.total().value == 10_000
    assert shares.total().value == 1000
    assert "nobody stated how many people" in shares.total("ward", "surgery").note
    stated = release.retarget({"ward": {"surgery": 0.3, "medicine": 0.7}}, population=50)
    assert stated.total("ward", "surgery").value == pytest.approx(15)
    assert "stated of the target" in stated.total().note


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ({"ward": {"surgery": 0.6, "medicine": 0.3, "closed": 0.1}}, "no row has closed"),
        ({"ward": {"surgery": 1.0}}, "states no share for medicine"),
        ({"ward": {"surgery": 0.5, "medicine": 0.4}}, "add up to 1, not 0.9"),
        ({"ward": {"surgery": 51.5, "medicine": 48.5}}, "write percentages as shares"),
        ({"ward": {"surgery": 51, "medicine": 49}}, "percentages or people"),
        ({"ward": {"surgery": -0.5, "medicine": 1.5}}, "shares from 0, not -0.5"),
        ({"ward": {"surgery": 0.5, "chapel": 0.5}}, "no category 'chapel'"),
        ({"ward": 0.5}, "expected a dictionary of shares"),
        ({"ward": {}}, "expected shares"),
        ({"ill": 1.5}, "the share of true"),
        ({"ill": {True: 0.5, "true": 0.5}}, "every cell once"),
        ({"ill": {True: 0.5, None: 0.5}}, "is never null"),
        ({"age": {(0, 50): 0.5, (40, 99): 0.5}}, "overlap"),
        ({"age": {(0, 50): 0.5, (50, 90): 0.5}}, "states no share for 9"),
        ({"age": {(50, 0): 1.0}}, "expected an interval"),
        ({"age": 120}, "within the bounds of the column, 0 to 99"),
        ({"children": 4}, "the mean comes to 3 at best, not 4"),
        ({"dose": 9.9999}, "the mean comes to [0-9.]+ at best, not 10"),
        ({"seen": {"yesterday": 1.0}}, "expected an interval of its values"),
        ({"nobody": {"x": 1.0}}, "no column 'nobody'"),
        ({("ward", "ward"): {("surgery", "surgery"): 1.0}}, "once"),
        ({("ward", "ill"): {"surgery": 1.0}}, "as a tuple"),
        ({}, "expected some"),
        (
            {"ward": {"surgery": 300, "medicine": 700}, "ill": {True: 300, False: 300}},
            "counts 1,000 people and 'ill' 600",
        ),
        (
            {
                "ward": {"surgery": 0.6, "medicine": 0.4},
                ("ward", "ill"): {
                    ("surgery", True): 0.1,
                    ("surgery", False): 0.4,
                    ("medicine", True): 0.2,
                    ("medicine", False): 0.3,
                },
            },
            "cannot be reached together with the others: .* comes to .*, not",
        ),
    ],
)
def test_margins_that_cannot_be_are_refused_with_what_is_wrong(margins, said):
    with pytest.raises(CounterpoiseError, match=said):
        make_release(400).retarget(margins)


def test_contradictory_margins_are_refused_with_by_how_much():
    table = pd.DataFrame({"a": [True, True, False], "b": [True, False, True]})
    schema = cp.Schema([cp.Column.boolean("a"), cp.Column.boolean("b")])
    release = cp.Release(table.assign(weight=1.0), schema, {})
    # Of nobody both are false, so one of the two is true of everybody.
    assert release.retarget({"a": 0.7, "b": 0.5}).weights.min() > 0
    with pytest.raises(
        AnalysisError, match=r"'a' cannot be .*: True comes to 0.4 at best, not 0.3"
    ):
        release.retarget({"a": 0.3, "b": 0.6})
    # Reached only in the limit in which nobody has both.
    limit = release.retarget({"a": 0.4, "b": 0.6})
    assert limit.weights == pytest.approx([0, 1.2, 1.8], abs=1e-9)


def test_a_category_that_is_not_stated_and_that_nobody_has_is_left_out():
    release = make_release(800)
    table, weights = release.table.copy(), release.weights.copy()
    # Rows that the noise made, some of them with weight in a replicate alone.
    table.loc[:4, "ward"], weights[:3], weights[3:5] = "closed", 0.5, 0.0
    made = cp.Release(table.assign(weight=weights), SCHEMA, {}, release.replicates)
    stated = {"surgery": 0.3, "medicine": 0.7}
    after = made.retarget({"ward": stated})
    assert after.weights == pytest.approx(made.retarget({"ward": stated | {"closed": 0}}).weights)
    for column in every_column(after):
        assert (column[:5] == 0).all()
    both = {(ward, ill): share / 2 for ward, share in stated.items() for ill in (True, False)}
    assert (made.retarget({("ward", "ill"): both}).weights[:5] == 0).all()
    table.loc[:20, "ward"], weights[:20] = "closed", 1.0
    many = cp.Release(table.assign(weight=weights), SCHEMA, {}, release.replicates)
    with pytest.raises(AnalysisError, match="states no share for closed"):
        many.retarget({"ward": stated})


def test_a_share_of_zero_leaves_rows_out():
    after = make_release(400).retarget({"ward": {"surgery": 0, "medicine": 1}})
    surgery = (after.table["ward"] == "surgery").to_numpy()
    for weights in every_column(after):
        assert (weights[surgery] == 0).all()
    assert after.proportion("ward", "medicine").value == 1


def test_a_replicate_without_rows_of_a_category_borrows_them_and_the_verdict_says_so():
    before = make_release(600, replicates=20)
    surgery = (before.table["ward"] == "surgery").to_numpy()
    replicates = before.replicates.copy()
    replicates[np.ix_(surgery, range(5))] = 0
    after = before.reweighted(before.weights, replicates).retarget(
        {"ward": {"surgery": 0.5, "medicine": 0.5}}
    )
    for weights in every_column(after):
        assert share(after, surgery, weights) == pytest.approx(0.5, abs=1e-9)
    # Within the category they are the weight's own.
    own, lent = after.weights[surgery], after.replicates[surgery, 0]
    assert lent / lent.sum() == pytest.approx(own / own.sum())
    assert after.card["retargeted"]["replicates_lent"] == 5
    assert "5 of the 20 replicate weights lack rows" in after.card["weights"]["verdict"]["reason"]


def test_a_modifier_multiplies_every_column_and_its_scale_does_not_matter():
    before = make_release(300)
    factors = 1 / (1 + before.table["age"].to_numpy())
    ways = [
        before.retarget(modifier="1 / (1 + age)"),
        before.retarget(modifier="1e6 / (1 + age)"),
        before.retarget(modifier=lambda frame: 1 / (1 + frame["age"])),
        before.retarget(modifier=factors),
        before.retarget(modifier=pd.Series(factors)),
    ]
    for after in ways:
        for old, new in zip(every_column(before), every_column(after), strict=True):
            assert new == pytest.approx(old * factors / (old * factors).mean(), rel=1e-9)


def test_a_claim_as_modifier_has_a_part_as_its_target():
    before = make_release(300)
    after = before.retarget(modifier="age >= 18 and not ill")
    kept = (before.table["age"] >= 18) & ~before.table["ill"]
    assert ((after.weights > 0) <= kept).all()
    chosen = before.table[kept]
    assert after.mean("age").value == pytest.approx(
        np.average(chosen["age"], weights=chosen["weight"])
    )


@pytest.mark.parametrize(
    ("modifier", "said"),
    [
        ("age - 50", "from 0 in all rows"),
        ("1 / age", "no finite number, in some rows"),
        ("dose", "is null"),
        ("ward", "is a category"),
        ("age >", "expression"),
        ("heights", "no column 'heights'"),
        ("2 + 2", "names no column"),
        ("age > 1000", "leave no row any weight"),
        ([1.0, 2.0], "a number for each of the 300 rows"),
        (lambda frame: frame["age"].head(3), "a number for each"),
        (lambda frame: frame["ward"], "expected numbers"),
        (lambda frame: -frame["age"], "from 0"),
        (3, "expected an expression over the columns"),
    ],
)
def test_modifiers_that_are_none_are_refused(modifier, said):
    with pytest.raises(CounterpoiseError, match=said):
        make_release(300).retarget(modifier=modifier)


def labelled_rows(count, seed, kept):
    generator = np.random.default_rng(seed)
    rows = make_table(count, seed + 100)
    return rows.assign(label=kept(rows, generator))


def test_a_learned_modifier_recovers_a_known_thinning_function():
    release = make_release(4000)
    age = release.table["age"].to_numpy()
    thinning = 1 / (1 + np.exp(-(age - 50) / 12))
    rows = labelled_rows(
        600, 3, lambda rows, g: g.random(len(rows)) < 1 / (1 + np.exp(-(rows["age"] - 50) / 12))
    )
    after = release.retarget(labelled=rows[["age", "ward", "label"]], label="label", seed=1)
    factors = after.weights[release.weights > 0] / release.weights[release.weights > 0]
    truth = thinning[release.weights > 0]
    scaled = factors * (truth @ factors) / (factors @ factors)
    assert np.sqrt(np.mean((scaled - truth) ** 2)) < 0.05
    true_mean = np.average(age, weights=release.weights * thinning)
    found = after.mean("age")
    assert abs(found.value - true_mean) < 3 * found.standard_error
    # Few rows leave more open, and the replicates say so.
    few = release.retarget(labelled=rows.head(40)[["age", "label"]], label="label", seed=1)
    assert few.mean("age").standard_error > 1.5 * found.standard_error


def test_learned_factors_recover_a_known_function_and_have_no_scale():
    release = make_release(3000)
    age = release.table["age"].to_numpy()
    rows = labelled_rows(
        80, 5, lambda rows, g: 7 * np.exp(0.02 * rows["age"] + g.normal(0, 0.1, len(rows)))
    )
    after = release.retarget(labelled=rows[["age", "label"]], label="label", seed=1)
    used = release.weights > 0
    logs = np.log(after.weights[used] / release.weights[used])
    slope = np.polyfit(age[used], logs, 1)[0]
    assert slope == pytest.approx(0.02, abs=0.004)
    tripled = rows.assign(label=3 * rows["label"])
    again = release.retarget(labelled=tripled[["age", "label"]], label="label", seed=1)
    assert again.weights == pytest.approx(after.weights, rel=0.02)


def test_the_error_of_a_learned_modifier_is_in_the_replicates():
    """Over draws of the labelled rows, the intervals of the learned target hold its mean."""
    release = make_release(2000, replicates=40)
    age = release.table["age"].to_numpy()
    true = np.average(age, weights=release.weights / (1 + np.exp(-(age - 40) / 15)))
    held = 0
    for seed in range(30):
        rows = labelled_rows(
            60,
            seed,
            lambda rows, g: g.random(len(rows)) < 1 / (1 + np.exp(-(rows["age"] - 40) / 15)),
        )
        after = release.retarget(labelled=rows[["age", "label"]], label="label", seed=seed)
        low, high = after.mean("age").interval()
        held += low <= true <= high
    # With a chance of 0.95 each, fewer than 25 of 30 would be seen once in 600 times.
    assert held >= 25


@pytest.mark.parametrize(
    ("rows", "label", "said"),
    [
        (pd.DataFrame({"age": range(9), "y": True}), "y", "rows of both sorts"),
        (pd.DataFrame({"age": range(9)}), "y", "have no column 'y'"),
        (pd.DataFrame({"x": range(9), "y": [0, 1, 0] * 3}), "y", "columns of the release"),
        (pd.DataFrame({"age": [1], "y": [1]}), "y", "at least 4 rows"),
        (pd.DataFrame({"age": range(9), "y": [0, 2, 1] * 3}), "y", "factors above 0"),
        (pd.DataFrame({"age": range(9), "y": [None, 2, 1] * 3}), "y", "a label in every row"),
        (pd.DataFrame({"age": range(9), "y": ["a", "b", "c"] * 3}), "y", "true and false"),
        (pd.DataFrame({"age": range(9), "y": [True] * 9}), None, "or neither"),
        (None, "y", "or neither"),
        (pd.DataFrame({"ward": ["chapel", "surgery"] * 3, "y": [0, 1] * 3}), "y", "no place for"),
        (pd.DataFrame({"age": ["old", "7"] * 3, "y": [0, 1] * 3}), "y", "no place for"),
        (pd.DataFrame({"age": [None, 7] * 3, "y": [0, 1] * 3}), "y", "no place for"),
        ("nowhere.csv", "y", "nowhere.csv"),
    ],
)
def test_labelled_rows_that_tell_nothing_are_refused(rows, label, said):
    with pytest.raises(AnalysisError, match=said):
        make_release(100).retarget(labelled=rows, label=label)


def test_in_one_call_margins_come_last_and_hold():
    release = make_release(800).retarget(
        {"ward": {"surgery": 0.5, "medicine": 0.5}}, modifier="1 + age", population=10
    )
    kinds = [step["kind"] for step in release.card["retargeted"]["steps"]]
    assert kinds == ["modifier", "margins"]
    assert release.proportion("ward", "surgery").value == pytest.approx(0.5, abs=1e-9)


def test_nothing_to_retarget_to_is_refused():
    with pytest.raises(AnalysisError, match="state margins, a modifier, or labelled rows"):
        make_release(50).retarget()
    with pytest.raises(AnalysisError, match="no rows"):
        empty = make_release(50)
        cp.Release(empty.table.head(0), SCHEMA, {}).retarget(MARGINS)


def test_the_verdict_is_that_of_the_new_weights():
    release = make_release(400)
    assert "verdict" not in release.card.get("weights", {})
    mild = release.retarget({"ill": 0.5})
    assert mild.card["weights"]["verdict"]["level"] == "fine"
    assert mild.card["replicates"]["count"] == 12
    steep = release.use_weights().retarget(modifier="exp(age)")
    assert steep.card["weights"]["verdict"]["level"] == "do not use"
    with pytest.raises(AnalysisError, match="should not be used"):
        steep.mean("age")


def test_a_margin_that_was_stated_does_not_vary_and_others_vary_less():
    before = make_release(3000, replicates=40)
    after = before.retarget(
        {"age": {(0, 25): 0.25, (25, 50): 0.25, (50, 75): 0.25, (75, 99): 0.25}}
    )
    assert after.proportion("ill").standard_error < before.proportion("ill").standard_error
    stated = after.bootstrap(lambda table, weights: np.average(table["age"] < 25, weights=weights))
    assert stated.standard_error is None
    assert "margins that were stated" in stated.note


def test_retargeting_twice_is_a_history_in_which_the_last_margins_hold():
    first = make_release(800).retarget({"ill": 0.5}, population=900)
    second = first.retarget({"ward": {"surgery": 0.5, "medicine": 0.5}})
    said = second.card["retargeted"]
    assert [step["columns"] for step in said["steps"]] == [[["ill"]], [["ward"]]]
    assert said["population"] is None  # of the second target nobody stated it
    assert said["effective_part"] < first.card["retargeted"]["effective_part"] < 1
    measured = Measured.of_release(second)
    assert measured.stated == (frozenset({"ward"}),)
    assert len(first.card["retargeted"]["steps"]) == 1  # the first is as it was


def test_the_card_can_be_handed_back_as_margins():
    release = make_release(500)
    after = release.retarget(MARGINS)
    [step] = after.card["retargeted"]["steps"]
    assert release.retarget(json.loads(json.dumps(step["margins"]))).weights == pytest.approx(
        after.weights
    )


def test_private_rows_count_for_fewer_once_they_are_retargeted():
    release = make_release(500, population=1000.0)
    after = release.retarget(modifier="1 + 9 * ill")
    old, new = release.weights, after.weights
    used = old > 0
    factor = new[used] / old[used]
    part = (old[used] @ factor) ** 2 / (old.sum() * (old[used] @ factor**2))
    assert private_rows(after.card) == pytest.approx(1000 * part)
    assert private_rows(release.card) == 1000


def apart(**card):
    """Wards were counted with illness, and ages by themselves."""
    measured = {
        "counts": [["ward", "ill"], ["age"], ["children", "ill"]],
        "cells": [],
        "products": [],
    }
    return make_release(800, **card | {"measured": measured})


def test_support_depends_on_the_columns_that_a_release_was_retargeted_by():
    after = apart().retarget({"ward": {"surgery": 0.5, "medicine": 0.5}})
    assert after.proportion("ward", "surgery").support == "measured"  # stated
    assert after.proportion("ill").support == "measured"  # counted with the ward
    assert after.mean("children").support == "implied"  # related to the ward by illness alone
    assert after.mean("age").support == "never"  # not related at all, as far as anybody looked
    assert after.mean("age").standard_error is None
    assert apart().mean("age").support == "measured"


def test_shares_of_intervals_leave_open_what_is_within_them():
    both = apart().retarget({"ill": 0.5, "age": {(0, 50): 0.5, (50, 99): 0.5}})
    assert both.proportion("ill").support == "measured"
    # Within them it may depend on illness, and nobody measured how.
    assert both.quantile("age").support == "never"
    mean = apart().retarget({"ill": 0.5, "age": 50})
    assert mean.mean("age").support == "measured"
    assert mean.mean("age").standard_error is None
    assert mean.quantile("age").support == "never"


def test_support_of_a_coefficient_holds_still_what_stands_in_the_formula():
    after = apart().retarget({"ward": {"surgery": 0.5, "medicine": 0.5}})
    within = after.glm("ill ~ C(ward)").coefficients
    assert within["C(ward)[T.medicine]"].support == "measured"
    assert apart().glm("ill ~ children").coefficients["children"].support == "measured"
    assert after.glm("ill ~ children").coefficients["children"].support == "implied"


def test_margins_are_no_longer_exact_once_weights_are_replaced_or_multiplied():
    raked = apart().retarget({"age": 50})
    assert raked.mean("age").support == "measured"
    assert Measured.of_release(raked.retarget(modifier="1 + ill")).stated == ()
    replaced = raked.reweighted(raked.weights**0.5, raked.replicates**0.5)
    assert Measured.of_release(replaced).stated == ()
    assert replaced.card["retargeted"]["steps"][-1]["kind"] == "replaced"
    assert "retargeted" not in raked.unweighted().card


def test_what_was_asked_in_advance_was_asked_of_another_population():
    from counterpoise.analysis.asked import _summed_questions

    asked = {"questions": [{"question": "ill ~ age", "measured": True}]}
    release = make_release(100, weights={"method": "moments"}, **asked)
    assert _summed_questions(release) == {"ill ~ age": "measured"}
    assert _summed_questions(release.retarget({"ill": 0.5})) == {}


def test_estimates_fits_and_rows_follow():
    from sklearn.linear_model import LinearRegression

    before = make_release(800)
    after = before.retarget(modifier="(1 + age) ** 2")
    assert after.quantile("age").value > before.quantile("age").value
    assert after.resample(500, seed=1)["age"].mean() > before.resample(500, seed=1)["age"].mean()
    fitted = [
        each.fit(LinearRegression(), "dose", ["age"]).predict(pd.DataFrame({"age": [50]}))[0]
        for each in (before, after)
    ]
    assert fitted[0] != fitted[1]


@pytest.fixture(scope="module")
def made():
    """A release with a model, of patients of whom too many are women."""
    generator = np.random.default_rng(0)
    sex = np.where(generator.random(3000) < 0.7, "F", "M")
    table = pd.DataFrame(
        {"sex": sex, "age": generator.integers(0, 100, 3000), "ill": generator.random(3000) < 0.3}
    )
    schema = cp.Schema(
        [
            cp.Column.categorical("sex", ["F", "M"]),
            cp.Column.integer("age", 0, 99, bins=10),
            cp.Column.boolean("ill"),
        ]
    )
    return cp.release(
        table, schema, 5.0, 1e-6, rows=1000, synthesizer="independent", replicates=8, seed=1
    )


def targets():
    rows = pd.DataFrame({"age": np.arange(40) * 2, "label": np.arange(40) > 20})
    return {
        "margins": {
            "margins": {"sex": {"F": 0.51, "M": 0.49}, "age": {(0, 40): 0.4, (40, 99): 0.6}}
        },
        "expression": {"modifier": "1 + age * (sex == 'F')"},
        "labelled": {"labelled": rows, "label": "label", "seed": 3},
        "all": {"margins": {"ill": 0.5}, "modifier": "1 + age", "labelled": rows, "label": "label"},
    }


@pytest.mark.parametrize("kind", list(targets()))
def test_saving_and_loading_keep_the_target_and_new_rows_have_it(made, kind, tmp_path):
    after = made.retarget(**targets()[kind], population=1e6)
    loaded = cp.load(after.save(tmp_path / "kept"))
    assert loaded.card == after.card
    assert np.array_equal(loaded.weights, after.weights)
    assert np.array_equal(loaded.replicates, after.replicates)
    new = loaded.sample(500, seed=2)
    steps = [{**step, "margins": None} for step in new.card["retargeted"]["steps"]]
    assert steps == [{**step, "margins": None} for step in after.card["retargeted"]["steps"]]
    assert new.card["retargeted"]["population"] == 1e6
    assert new.replicates.shape == (500, 8)
    assert new.total().value == 1e6
    # As if the new rows had been retargeted by hand.
    options = targets()[kind]
    if kind in ("margins", "expression"):
        by_hand = made.sample(500, seed=2).retarget(**options)
        assert new.weights == pytest.approx(by_hand.weights)
        assert new.replicates == pytest.approx(by_hand.replicates, rel=1e-6)
    if kind == "margins":
        for weights in every_column(new):
            women = (new.table["sex"] == "F").to_numpy()
            assert share(new, women, weights) == pytest.approx(0.51, abs=1e-9)


def test_very_many_replicates_are_kept_in_single_precision(made, tmp_path, monkeypatch):
    for place in ("bundle.files", "bundle.saved_replicates", "analysis.raked"):
        monkeypatch.setattr(f"counterpoise.{place}.MANY", 10)
    after = made.retarget({"sex": {"F": 0.51, "M": 0.49}})
    loaded = cp.load(after.save(tmp_path / "large"))
    women = (loaded.table["sex"] == "F").to_numpy()
    for release in (after, loaded):
        assert release.replicates.dtype == np.float32
        for weights in release.replicates.T.astype(float):
            assert share(release, women, weights) == pytest.approx(0.51, abs=1e-7)


def test_new_rows_of_a_learned_target_are_weighed_by_the_same_coefficients(made):
    after = made.retarget(**targets()["labelled"])
    new = after.sample(400, seed=5)
    plain = made.sample(400, seed=5)
    by_age = {}
    for release, base in ((after, made), (new, plain)):
        factor = release.weights / base.weights
        order = np.argsort(release.table["age"].to_numpy(), kind="stable")
        by_age[len(factor)] = (release.table["age"].to_numpy()[order], factor[order])
    ages, factors = by_age[1000]
    known = dict(zip(ages, factors, strict=True))
    pairs = [(known[age], value) for age, value in zip(*by_age[400], strict=True) if age in known]
    ratio = np.array([new / old for old, new in pairs])
    assert ratio == pytest.approx(ratio[0], rel=1e-9)


def test_a_function_and_factors_of_rows_cannot_be_kept_and_sampling_says_why(made, tmp_path):
    by_function = made.retarget(modifier=lambda frame: 1 + frame["age"])
    by_rows = made.retarget(modifier=np.arange(1000.0))
    for release, said in ((by_function, "a function"), (by_rows, "factors that were handed in")):
        loaded = cp.load(release.save(tmp_path / said.split()[0]))
        for each in (release, loaded):
            with pytest.raises(MethodError, match=f"its weights follow {said}"):
                each.sample(10)
        assert loaded.mean("age").value == release.mean("age").value
    # What comes after does not bring it back.
    with pytest.raises(MethodError, match="a function"):
        by_function.retarget({"ill": 0.5}).sample(10)


def test_new_rows_that_cannot_reach_the_margins_are_refused(made):
    after = made.retarget({"sex": {"F": 0.51, "M": 0.49}})
    with pytest.raises(AnalysisError, match="no row has"):
        after.sample(1, seed=1)


def test_the_guarantee_says_that_the_target_was_stated(made, tmp_path):
    assert "gave the target" not in made.guarantee
    card = made.card | {"ledger": made.card["ledger"] | {"private": True}, "seeded": False}
    private = cp.Release(made.table, made.schema, card, made.replicates)
    after = private.retarget({"ill": 0.5})
    assert private.private
    assert not after.private
    assert after.guarantee.endswith(
        "as stated by the caller, who gave the target that it was turned to"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card.update(population=-1), "retargeted.population"),
        (lambda card: card.update(effective_part=2), "retargeted.effective_part"),
        (lambda card: card["steps"][0].update(kind="wished"), "kind: expected one of"),
        (lambda card: card["steps"][0].pop("margins"), "margins is missing"),
        (lambda card: card["steps"][0].update(columns="sex"), "columns: expected a list"),
        (lambda card: card["steps"][0]["margins"][0]["shares"].pop(), "a share for each cell"),
        (lambda card: card["steps"][0]["margins"][0].update(columns=[1]), "a list of columns"),
        (lambda card: card["steps"].append("x"), "expected an object"),
        (lambda card: card["steps"][0].update(kind="modifier"), "expression is missing"),
        (lambda card: card["steps"][0].update(kind="labelled"), "link is missing"),
        (lambda card: card["steps"][0]["margins"][0].update(mean=3), "expected a mean, or"),
    ],
)
def test_a_card_with_a_damaged_target_is_refused(made, change, said, tmp_path):
    after = made.retarget({"sex": {"F": 0.51, "M": 0.49}})
    card = json.loads(json.dumps(after.card))
    change(card["retargeted"])
    with pytest.raises(BundleError, match=said):
        cp.Release(after.table, after.schema, card, after.replicates).save(tmp_path / "damaged")


def test_the_page_says_what_the_release_was_turned_to(made):
    from counterpoise.report import release_page

    assert "The target" not in release_page(made)
    page = release_page(made.retarget({"sex": {"F": 0.51, "M": 0.49}, "age": 40}, population=7e6))
    assert "The target" in page
    assert "raked to known margins of sex, age" in page
    assert "7,000,000 people" in page
    assert "0.51" in page
    odd = made.retarget(modifier="1 + (sex == '<b>')")
    assert "&lt;b&gt;" in release_page(odd)


def test_a_biased_sample_raked_to_the_truth_has_honest_intervals():
    """Women of the north answer three times as often; raked, intervals hold the truth."""
    generator = np.random.default_rng(11)
    size = 200_000
    sex = generator.random(size) < 0.5
    north = generator.random(size) < 0.3 + 0.2 * sex
    ill = generator.random(size) < 0.1 + 0.3 * sex + 0.2 * north
    people = pd.DataFrame({"woman": sex, "north": north, "ill": ill})
    answers = (0.2 + 0.4 * sex) * (0.3 + 0.7 * north)
    schema = cp.Schema([cp.Column.boolean(name) for name in people])
    margins = {"woman": float(sex.mean()), "north": float(north.mean())}
    held = wrong = 0
    runs = 20
    for run in range(runs):
        chosen = generator.random(size) < answers * 3000 / answers.sum()
        release = cp.release(
            people[chosen],
            schema,
            2.0,
            1e-6,
            rows=3000,
            synthesizer="histogram",
            weights="uniform",
            replicates=60,
            seed=run,
            progress=False,
        )
        low, high = release.proportion("ill").interval()
        wrong += not low <= ill.mean() <= high
        low, high = release.retarget(margins).proportion("ill").interval()
        held += low <= ill.mean() <= high
    assert wrong == runs  # without it, none holds
    # With a chance of 0.95 each, fewer than 16 of 20 would be seen once in 400 times.
    assert held >= 16
