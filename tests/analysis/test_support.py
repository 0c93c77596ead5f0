"""Every estimate says whether what it depends on was measured; here the answer is known."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.analysis.allowed import means_within, product, sums_within
from counterpoise.analysis.coefficients import DEVIATION
from counterpoise.analysis.support import FOOTNOTES, Measured, worst
from counterpoise.errors import BundleError
from counterpoise.schema.grouping import Grouping

SCHEMA = cp.Schema(
    [
        cp.Column.boolean("y"),
        cp.Column.boolean("a"),
        cp.Column.boolean("b"),
        cp.Column.categorical("ward", ["s", "t", "u"]),
        cp.Column.ordinal("pain", ["none", "some", "much"]),
        cp.Column.continuous("age", 0, 100, bins=5),
        cp.Column.continuous("stay", 0, 50, bins=5),
    ]
)
# y - a - b are a triangle of pairs, ward hangs on b and age on ward; pain and stay are alone.
PAIRS = [["y", "a"], ["a", "b"], ["y", "b"], ["b", "ward"], ["ward", "age"], ["pain"], ["stay"]]


def release(counts=PAIRS, cells=(), products=(), replicates=30, rows=1500, assumed=()):
    generator = np.random.default_rng(3)
    a = generator.random(rows) < 0.5
    b = generator.random(rows) < np.where(a, 0.7, 0.3)
    logit = -1 + a + 0.5 * b
    table = pd.DataFrame(
        {
            "y": generator.random(rows) < 1 / (1 + np.exp(-logit)),
            "a": a,
            "b": b,
            "ward": generator.choice(["s", "t", "u"], rows, p=[0.5, 0.3, 0.2]),
            "pain": generator.choice(["none", "some", "much"], rows),
            "age": generator.integers(0, 101, rows).astype(float),
            "stay": generator.gamma(2, 5, rows).clip(0, 50),
        }
    )
    redrawn = generator.gamma(4.0, size=(rows, replicates))
    measured = {"counts": counts, "cells": list(cells), "products": list(products)}
    measured |= {"assumed": list(assumed)} if assumed else {}
    card = {"population": rows, "rows": rows} | (
        {} if counts == "not said" else {"measured": measured}
    )
    return cp.Release(
        SCHEMA.restore(table).assign(weight=1.0),
        SCHEMA,
        card,
        redrawn / redrawn.mean(axis=0) if replicates else None,
    )


def support(found):
    """The support of a result, which all of its estimates share."""
    if not hasattr(found, "members"):
        return found.support
    [shared] = {member.support for member in found}
    return shared


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda r: r.mean("age"), "measured"),
        (lambda r: r.total("stay"), "measured"),
        (lambda r: r.proportion("pain"), "measured"),
        (lambda r: r.quantile("age", 0.9), "measured"),
        (lambda r: r.histogram("stay"), "measured"),
        (lambda r: r.mean("y", by="a"), "measured"),
        (lambda r: r.mean("age", by="ward"), "measured"),
        (lambda r: r.total(by=["a", "b"]), "measured"),
        (lambda r: r.total("y", True, by="b"), "measured"),
        (lambda r: r.crosstab("b", "ward"), "measured"),
        (lambda r: r.quantile("age", by="ward"), "measured"),
        (lambda r: r.corr("a", "b"), "measured"),
        (lambda r: r.cov("y", "b"), "measured"),
        (lambda r: r.mean("y", by="ward"), "implied"),
        (lambda r: r.mean("y", by=["a", "b"]), "implied"),
        (lambda r: r.proportion("ward", by="y"), "implied"),
        (lambda r: r.crosstab("a", "age", of="rows"), "implied"),
        (lambda r: r.histogram("age", by="b"), "implied"),
        (lambda r: r.corr("age", "y"), "implied"),
        (lambda r: r.total("age", by="a"), "implied"),
        (lambda r: r.mean("stay", by="a"), "never"),
        (lambda r: r.mean("age", by="pain"), "never"),
        (lambda r: r.mean("y", by=["a", "pain"]), "never"),
        (lambda r: r.proportion("pain", by="ward"), "never"),
        (lambda r: r.proportion("y", True, by="pain"), "never"),
        (lambda r: r.quantile("stay", by="y"), "never"),
        (lambda r: r.histogram("stay", by="a"), "never"),
        (lambda r: r.crosstab("pain", "a"), "never"),
        (lambda r: r.total("stay", by="a"), "never"),
        (lambda r: r.total(by=["a", "pain"]), "never"),
        (lambda r: r.corr("stay", "age"), "never"),
        (lambda r: r.cov("stay", "y"), "never"),
    ],
)
def test_every_kind_of_estimate_knows_its_support(ask, expected):
    made = release()
    assert support(ask(made)) == expected
    assert support(ask(release("not said"))) == "unknown"
    assert support(ask(release([list(SCHEMA.names)]))) == "measured"


def test_a_matrix_of_correlations_marks_each_pair_by_itself():
    found = release().corr("y", "a", "age", "stay")
    assert found["y", "a"].support == "measured"
    assert found["age", "a"].support == "implied"
    assert found["stay", "y"].support == found["y", "stay"].support == "never"
    assert found.pivot("support").loc["stay", "age"] == "never"
    assert found["stay", "stay"].support == "measured"


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        # The slope of a main effect needs pairs alone, and these are all there.
        ("y ~ a + b", {"Intercept": "measured", "a": "measured", "b": "measured"}),
        ("y ~ 1", {"Intercept": "measured"}),
        ("age ~ ward", {"Intercept": "measured", "ward[T.t]": "measured"}),
        # Three columns counted in pairs have no interaction by assumption, nor the effect at zero.
        ("y ~ a * b", {"Intercept": "never", "a": "never", "b": "never", "a:b": "never"}),
        ("y ~ I(a * b)", {"I(a * b)": "never"}),
        # Ward tells of y through b: by itself it is implied, and beside b nothing is left of it.
        ("y ~ ward", {"ward[T.t]": "implied", "Intercept": "implied"}),
        ("y ~ b + ward", {"ward[T.t]": "never", "b": "implied", "Intercept": "never"}),
        ("y ~ a + ward", {"ward[T.t]": "implied", "a": "implied"}),
        ("y ~ a + stay", {"stay": "never", "a": "implied"}),
        ("ward ~ b", {"t: b": "measured", "u: Intercept": "measured"}),
        ("ward ~ b + stay", {"t: stay": "never", "t: b": "implied"}),
        ("log(stay + 1) ~ 1", {"Intercept": "measured"}),
        ("y ~ a + scale(age)", {"scale(age)": "implied"}),
    ],
)
def test_every_coefficient_knows_its_support(formula, expected):
    found = release().glm(formula)
    assert {term: found[term].support for term in expected} == expected
    assert found.to_frame()["support"][list(expected)].to_dict() == expected
    for each, all_of_them in (("not said", "unknown"), ([list(SCHEMA.names)], "measured")):
        assert {member.support for member in release(each).glm(formula)} == {all_of_them}


def test_a_table_of_three_columns_measures_their_interaction():
    counts = [*PAIRS, ["y", "a", "b"]]
    assert {member.support for member in release(counts).glm("y ~ a * b")} == {"measured"}
    # The others of the model need no table of their own with it, as long as each pair is there.
    with_pain = [["y", "a", "b"], ["y", "pain"], ["a", "pain"], ["b", "pain"]]
    assert release(with_pain).glm("y ~ a * b + pain")["a:b"].support == "measured"
    assert release(with_pain[:-1]).glm("y ~ a * b + pain")["a:b"].support == "implied"
    # What a column outside the formula brings along is no measurement of it.
    around = [["y", "pain"], ["pain", "a", "b"]]
    assert release(around).glm("y ~ a * b")["a:b"].support == "never"
    assert release(around).glm("y ~ a + b")["a"].support == "implied"


def test_products_measure_values_and_not_what_is_made_of_them():
    alone = [[name] for name in SCHEMA.names]
    made = release(
        alone, products=[["y", "age"], ["age", "pain"], ["age", "stay"], ["ward", "stay"]]
    )
    assert made.corr("age", "stay").support == "measured"
    assert support(made.mean("age", by="y")) == "measured"
    assert support(made.mean("stay", by="ward")) == "measured"
    assert made.glm("y ~ age")["age"].support == "measured"
    assert made.glm("y ~ center(age)")["center(age)"].support == "measured"
    # A quantile, a bin or a square needs more than the product; an order is no value of a group.
    for found in (
        made.quantile("age", by="y"),
        made.mean("y", by="age"),
        made.mean("age", by="pain"),
        made.crosstab("age", "stay"),
    ):
        assert support(found) == "implied"
    assert made.glm("y ~ I(age ** 2)")["I(age ** 2)"].support == "implied"


def test_cells_that_the_weights_summed_count_as_counted():
    alone = [[name] for name in SCHEMA.names]
    made = release(alone, cells=[["y", "pain"]])
    assert support(made.crosstab("y", "pain")) == "measured"
    assert support(made.crosstab("y", "a")) == "never"


def test_of_a_table_made_elsewhere_only_what_the_weights_summed_is_known():
    made = release(None, cells=[["y", "a"], ["a", "b"]], products=[["age"], ["y", "age"]])
    assert support(made.mean("y", by="a")) == "measured"
    assert made.mean("age").support == "measured"
    assert made.glm("y ~ age")["age"].support == "measured"
    for found in (made.quantile("age"), made.mean("y", by="b"), made.corr("age", "stay")):
        assert support(found) == "unknown"
    assert made.glm("y ~ a * b")["a:b"].support == "unknown"
    assert made.corr("age", "stay").standard_error > 0


def test_a_derived_column_depends_on_what_it_is_made_of_and_a_check_relates_its_columns():
    columns = [cp.Column.integer(name, 0, 9) for name in "abcd"]
    columns.append(cp.Column.derived("both", "a + b"))
    schema = cp.Schema(columns, checks=("c <= d",))
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.integers(0, 5, (50, 4)), columns=list("abcd"))
    table["d"] += table["c"]
    table = table.assign(both=table["a"] + table["b"], weight=1.0)

    def asked(*counts):
        card = {"measured": {"counts": list(counts), "cells": [], "products": []}}
        return cp.Release(table, schema, card)

    apart = asked(["a"], ["b"], ["c"], ["d"])
    # The mean of a sum is made of two means; of its distribution two columns alone tell nothing.
    assert apart.mean("both").support == apart.total("both").support == "measured"
    assert apart.quantile("both").support == "never"
    assert apart.quantile("both").interval() is None
    assert "not even the distribution" in apart.mean("both", by="c")[0].note
    assert apart.mean("c").support == "measured"
    assert apart.corr("c", "d").support == "implied"
    assert asked(["a", "b"], ["c"], ["d"]).mean("both").support == "measured"
    assert asked(["a", "b"], ["b", "c"]).corr("both", "c").support == "implied"
    model = asked(["a", "b"], ["b", "c"], ["a", "c"], ["d"]).glm("c ~ both")
    assert model["both"].support == "implied"
    assert asked(["a", "b"], ["b", "c"], ["d"]).glm("d ~ both")["both"].support == "implied"
    apart = asked(["a", "b"], ["c"], ["d", "c"]).glm("c ~ both")
    assert apart["both"].support == "never"


def test_the_weakest_support_is_what_a_whole_has():
    assert worst(["measured", "implied", "unknown"]) == "unknown"
    assert worst(["implied", "never"]) == "never"
    # The number of people depends on no column.
    assert release("not said").total().support == Measured(None).of([]) == "measured"


# What nothing measured gets no narrow interval.


def test_bounds_of_a_group_are_reached_by_its_lowest_and_highest_rows():
    made = release()
    stay, share = np.sort(made.table["stay"].to_numpy()), float(made.table["a"].mean())
    count = round(share * len(stay))
    low, high = made.mean("stay", by="a")[True].interval()
    assert low == pytest.approx(stay[:count].mean())
    assert high == pytest.approx(stay[-count:].mean())
    low, high = made.total("stay", by="a")[True].interval()
    assert (low, high) == pytest.approx((stay[:count].sum(), stay[-count:].sum()))
    low, high = made.quantile("stay", by="a")[True].interval()
    assert low == pytest.approx(np.quantile(stay, share / 2), abs=0.1)
    assert high == pytest.approx(np.quantile(stay, 1 - share / 2), abs=0.1)


def test_bounds_of_cells_are_those_of_frechet():
    made = release()
    table = made.table
    p, q = float((table["pain"] == "some").mean()), float(table["a"].mean())
    cell = max(0, p + q - 1), min(p, q)
    assert made.crosstab("pain", "a")["some", True].interval() == pytest.approx(cell)
    by_row = made.crosstab("pain", "a", of="rows")["some", True].interval()
    assert by_row == pytest.approx(tuple(end / p for end in cell))
    by_column = made.crosstab("pain", "a", of="columns")["some", True].interval()
    assert by_column == pytest.approx(tuple(end / q for end in cell))
    assert made.proportion("pain", "some", by="a")[True].interval() == pytest.approx(by_column)
    assert made.proportion("pain", by="a")[True, "some"].interval() == pytest.approx(by_column)
    counted = made.total(by=["pain", "a"])["some", True].interval()
    assert counted == pytest.approx(tuple(end * len(table) for end in cell))


def test_bounds_of_a_correlation_are_reached_by_sorting_both_columns():
    made = release()
    x, y = (np.sort(made.table[name].to_numpy(dtype=float)) for name in ("age", "stay"))
    low, high = made.corr("age", "stay").interval()
    assert (low, high) == pytest.approx((np.corrcoef(x, y[::-1])[0, 1], np.corrcoef(x, y)[0, 1]))
    assert made.cov("age", "stay").interval()[1] == pytest.approx(np.cov(x, y, ddof=0)[0, 1])
    assert made.corr("age", "stay").interval(0.5) == (low, high)
    assert made.corr("age", "stay").standard_error is None


def test_bounds_hold_with_weights_for_any_pairing():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 40))
    weights = generator.integers(1, 4, 40)
    low, high = product(x, y, weights, correlation=False)
    whole_x, whole_y = np.repeat(x, weights), np.repeat(y, weights)
    sorted_covariance = np.cov(np.sort(whole_x), np.sort(whole_y), ddof=0)[0, 1]
    assert high == pytest.approx(sorted_covariance)
    for _ in range(50):
        shuffled = generator.permutation(whole_y)
        assert low <= np.cov(whole_x, shuffled, ddof=0)[0, 1] <= high
        chosen = generator.random(len(whole_y)) < 0.3
        share = chosen.mean()
        [(least, most)] = means_within(y, weights, [(share, share)])
        assert least <= whole_y[chosen].mean() <= most
        [(least, most)] = sums_within(y, weights, [(0.1, 0.5)])
        if 0.1 <= share <= 0.5:
            assert least <= (whole_y * chosen).mean() <= most


def test_groups_of_columns_that_nothing_connects_may_be_of_any_size():
    made = release()
    ends = made.mean("stay", by=["a", "pain"])[True, "none"].interval()
    assert ends == (made.table["stay"].min(), made.table["stay"].max())


def test_bounds_need_no_replicates_and_an_empty_group_has_none():
    found = release(replicates=0).mean("stay", by="a")
    assert all(member.interval() is not None for member in found)
    made = release()
    rare = SCHEMA.replace(cp.Column.categorical("ward", ["s", "t", "u", "closed"]))
    empty = cp.Release(rare.restore(made.table), rare, made.card, made.replicates)
    closed = empty.mean("stay", by="ward")["closed"]
    assert closed.interval() is None
    assert closed.support == "never"


def test_an_interaction_that_nothing_measured_is_as_wide_as_its_prior():
    found = release().glm("y ~ a * b")
    narrow = release().glm("y ~ a * b", prior_deviation=0)
    wide = release().glm("y ~ a * b", prior_deviation=3)
    for term, _ in found.items():
        assert found[term].value == narrow[term].value == wide[term].value
        assert narrow[term].standard_error < found[term].standard_error < wide[term].standard_error
    own = narrow["a:b"].standard_error
    assert found["a:b"].standard_error == pytest.approx(np.hypot(own, DEVIATION))
    assert wide["a:b"].standard_error == pytest.approx(np.hypot(own, 3.0))
    errors = np.sqrt(np.diag(found.covariance))
    assert errors == pytest.approx([member.standard_error for member in found])


def test_the_others_follow_a_coefficient_that_nothing_measured():
    """Hold the interaction at another value, and fit the rest: it moves as the widening says."""
    made = release()
    free, found = made.glm("y ~ a * b", prior_deviation=0), made.glm("y ~ a * b", prior_deviation=1)
    extra = np.sqrt(np.diag(found.covariance - free.covariance))
    table = made.table
    x = np.column_stack([np.ones(len(table)), table["a"], table["b"]]).astype(float)
    offset = 0.01 * (table["a"] & table["b"]).to_numpy(dtype=float)
    beta = np.array([free[term].value for term in ("Intercept", "a", "b")])
    fixed = free["a:b"].value * (table["a"] & table["b"]).to_numpy(dtype=float)
    # The scores of the first three stay where they are: one step of Newton's.
    mean = 1 / (1 + np.exp(-(x @ beta + fixed)))
    moved = 1 / (1 + np.exp(-(x @ beta + fixed + offset)))
    step = np.linalg.solve((x * (mean * (1 - mean))[:, None]).T @ x, x.T @ (mean - moved))
    assert np.abs(step) / 0.01 == pytest.approx(extra[:3], rel=0.01)


def test_a_prior_goes_by_the_step_of_a_term_and_the_unit_of_the_target():
    made = release()
    binomial = made.glm("y ~ stay")["stay"].standard_error
    assert binomial == pytest.approx(DEVIATION / (2 * made.table["stay"].std(ddof=0)), rel=0.05)
    gaussian = made.glm("age ~ pain")["pain[T.some]"].standard_error
    # A deviation of the target is one of the logistic law.
    deviation = made.table["age"].std(ddof=0) * np.sqrt(3) / np.pi
    assert gaussian == pytest.approx(DEVIATION * deviation, rel=0.05)


@pytest.mark.parametrize("wrong", [-1, "wide", np.nan, True, None])
def test_a_prior_that_is_no_deviation_is_refused(wrong):
    with pytest.raises(cp.CounterpoiseError, match="prior_deviation: expected a number from 0"):
        release().glm("y ~ a", prior_deviation=wrong)


def test_what_is_implied_keeps_its_interval():
    made, everything = release(), release([list(SCHEMA.names)])
    assert made.corr("age", "y").standard_error == everything.corr("age", "y").standard_error
    implied, measured = (each.glm("y ~ ward")["ward[T.t]"] for each in (made, everything))
    assert implied.standard_error == measured.standard_error


# How it is shown.


def test_one_estimate_says_it_in_a_word():
    made = release()
    assert "measured" not in str(made.mean("age"))
    assert str(made.corr("age", "y")).endswith("(95%; implied)")
    assert "never measured; low and high are all" in str(made.corr("age", "stay"))
    assert str(release("not said").mean("age")).endswith("(95%; support unknown)")


def test_a_table_of_one_support_has_a_footnote_and_a_mixed_one_has_marks():
    made = release()
    lines = str(made.mean("y", by="ward")).splitlines()
    assert lines[0].split()[-1] == "unweighted"
    assert lines[-1] == FOOTNOTES["implied"]
    assert len(str(made.mean("y", by="a")).splitlines()) == 4
    mixed = str(made.glm("y ~ b + ward")).splitlines()
    marks = {line.split()[0]: line.split()[-1] for line in mixed[2:6]}
    assert marks == {"Intercept": "!", "b": "~", "ward[T.t]": "!", "ward[T.u]": "!"}
    assert mixed[-2:] == [f"~ {FOOTNOTES['implied']}", f"! {FOOTNOTES['never']}"]
    assert "deviation of 0.75 a step" in mixed[-3]
    wide = str(made.corr("y", "a", "stay"))
    assert "] !" in wide
    assert "~" not in wide


# Sums that do not carry estimates.

FAINT = [[["y", "stay"], 0.83], [["a", "stay"], 0.6]]


def test_what_a_sum_does_not_carry_is_implied_and_says_what_part_is_assumption():
    made = release(assumed=FAINT)
    assert made.corr("y", "stay").support == "implied"
    assert made.corr("y", "stay").assumed == 0.83
    assert "(95%; implied; about 83% of the variance is assumption)" in str(made.corr("y", "stay"))
    means = made.mean("stay", by="y")
    assert means.to_frame()["assumed"].tolist() == [0.83, 0.83]
    said = "implied: what was summed of its columns does not carry it; about 83% of the variance"
    assert str(means).splitlines()[-1] == f"{said} is assumption"
    # Measured together, or implied by a chain: nothing is known of the part.
    assert made.corr("y", "a").assumed is None
    assert made.corr("b", "stay").support == "implied"
    assert made.corr("b", "stay").assumed is None
    assert "is assumption" not in str(made.corr("b", "stay"))


def test_a_table_says_of_which_marks_the_part_is_known():
    """Of age and stay a chain tells, of the two others with stay a sum that carries little."""
    lines = str(release(assumed=FAINT).corr("y", "a", "age", "stay")).splitlines()
    more = "where what was summed does not carry it, about 60% to 83% of the variance is assumption"
    assert lines[-1] == f"~ {FOOTNOTES['implied']}; {more}"


def test_an_interaction_that_a_sum_does_not_carry_is_not_taken_to_be_none():
    never = release(products=[["stay", "a"], ["stay", "b"]])
    prior = never.glm("stay ~ a * b")["a:b"]
    for summed in (["stay", "a", "b"], ["stay", "a", "b", "ward"]):
        faint = release(products=[["stay", "a"], ["stay", "b"]], assumed=[[summed, 0.7]])
        ours = faint.glm("stay ~ a * b")["a:b"]
        assert (ours.support, prior.support) == ("implied", "never")
        assert ours.standard_error < prior.standard_error


def test_of_another_population_no_part_is_known():
    made = release(assumed=FAINT)
    turned = made.retarget({"a": {False: 0.4, True: 0.6}}).corr("y", "stay")
    assert (turned.support, turned.assumed) == ("implied", None)


def test_the_part_that_is_assumption_stays_in_the_bundle(tmp_path):
    made = cp.release(
        private()[["y", "a", "age"]],
        SCHEMA.select(["y", "a", "age"]),
        0.1,
        1e-6,
        target="y",
        synthesizer="independent",
        weights="moments",
        replicates=4,
        seed=1,
    )
    assert made.card["measured"]["assumed"]
    loaded = cp.load(made.save(tmp_path / "made"))
    found = loaded.corr("y", "age")
    assert found.assumed == made.corr("y", "age").assumed > 0.5
    assert loaded.sample(50, seed=1).card["measured"] == made.card["measured"]
    for wrong in ([["y", "age"], 1.2], [["y", "age"]], [["y", 3], 0.8], "y"):
        measured = made.card["measured"] | {"assumed": [wrong]}
        with pytest.raises(BundleError, match=r"measured\.assumed: expected a list of pairs"):
            replace(made, card=made.card | {"measured": measured}).save(tmp_path / "wrong")


def test_models_of_scikit_learn_know_the_support_of_their_features():
    made = release()
    features = ["a", "ward", "stay"]
    model = made.fit(LogisticRegression(), "y", features)
    assert model.support_ == {"a": "measured", "ward": "implied", "stay": "never"}
    for chosen, expected in (
        (["a"], "measured"),
        (features, "implied"),
        (["stay", "pain"], "never"),
    ):
        scored = made.cross_validate(LogisticRegression(), "y", chosen, folds=2).score
        assert scored.support == expected
    assert made.bootstrap(lambda table, weights: 1.0).support == ""


# Real releases, small ones.


def private(rows=1500):
    table = release(rows=rows).table.drop(columns="weight")
    return table.assign(ward=np.where(table["a"], "s", table["ward"].astype(str)))


@pytest.mark.parametrize("synthesizer", ["independent", "histogram", "privbayes", "mst", "aim"])
def test_real_releases_claim_what_their_synthesizer_counted_and_no_more(synthesizer, tmp_path):
    chosen = ["y", "a", "b", "ward"]
    made = cp.release(
        private()[chosen],
        SCHEMA.select(chosen),
        2.0,
        1e-6,
        synthesizer=synthesizer,
        weights="uniform",
        replicates=4,
        seed=1,
    )
    sets = [set(each) for each in made.card["measured"]["counts"]]
    made.save(tmp_path / "made")
    loaded = cp.load(tmp_path / "made")
    for left in chosen:
        for right in chosen:
            if left < right:
                together = any({left, right} <= each for each in sets)
                assert (support(loaded.crosstab(left, right)) == "measured") == together
    triple = any({"y", "a", "b"} <= each for each in sets)
    assert (loaded.glm("y ~ a * b")["a:b"].support == "measured") == triple
    expected = {"independent": "never", "histogram": "measured"}
    if synthesizer in expected:
        assert support(loaded.mean("y", by="a")) == expected[synthesizer]


def test_the_weights_of_a_release_measure_what_its_synthesizer_did_not():
    chosen = ["y", "a", "age"]
    made = cp.release(
        private()[chosen],
        SCHEMA.select(chosen),
        2.0,
        1e-6,
        synthesizer="independent",
        weights="moments",
        replicates=4,
        seed=1,
    )
    assert support(made.crosstab("y", "a")) == "measured"
    assert made.corr("y", "age").support == "measured"
    assert support(made.quantile("age", by="y")) == "implied"
    assert support(made.unweighted().crosstab("y", "a")) == "never"


def test_new_rows_of_a_release_have_its_support(tmp_path):
    chosen = ["y", "a"]
    made = cp.release(private()[chosen], SCHEMA.select(chosen), 2.0, 1e-6, replicates=0, seed=1)
    made.save(tmp_path / "made")
    again = cp.load(tmp_path / "made").sample(50, seed=1)
    assert again.card["measured"] == made.card["measured"]


def test_a_bundle_that_does_not_say_what_was_measured_claims_nothing(tmp_path):
    chosen = ["y", "a"]
    made = cp.release(private()[chosen], SCHEMA.select(chosen), 2.0, 1e-6, replicates=4, seed=1)
    older = {key: value for key, value in made.card.items() if key != "measured"}
    cp.Release(
        made.table,
        made.schema,
        older | {"model": {"saved": False, "reason": "old"}},
        made.replicates,
    ).save(tmp_path / "old")
    loaded = cp.load(tmp_path / "old")
    assert support(loaded.mean("y", by="a")) == "unknown"
    assert "support unknown" in str(loaded.glm("y ~ a"))
    assert loaded.unweighted().mean("y").support == "unknown"


def test_a_weighed_table_claims_what_its_weights_summed():
    chosen = ["y", "a", "age"]
    with warnings.catch_warnings():
        # Said once a session: that the table's own privacy cost is not in the ledger.
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        made = cp.weigh(
            private()[chosen],
            release(rows=400).table[chosen],
            SCHEMA.select(chosen),
            5.0,
            1e-6,
            replicates=4,
            seed=1,
        )
    assert support(made.crosstab("y", "a")) == "measured"
    assert made.mean("age").support == "measured"
    assert made.quantile("age").support == "unknown"


def test_categories_that_share_a_code_are_related_as_all_of_them_together_are():
    made = release([list(SCHEMA.names)])
    grouping = Grouping((0, 1, 1), (0.5, 0.3, 0.2), (0.01, 0.01, 0.01))
    ward = cp.Column.categorical("ward", ["s", "t", "u"], grouping=grouping)
    grouped = cp.Release(made.table, SCHEMA.replace(ward), made.card, made.replicates)
    expected = {"s": "measured", "t": "implied", "u": "implied"}

    def by_ward(found):
        return {label: each.support for label, each in found.items()}

    for found in (
        grouped.mean("age", by="ward"),
        grouped.quantile("age", by="ward"),
        grouped.proportion("y", by="ward"),
    ):
        assert by_ward(found) == expected
    # By itself each category was counted.
    for found in (grouped.proportion("ward"), grouped.total(by="ward")):
        assert by_ward(found) == dict.fromkeys("stu", "measured")
    assert grouped.crosstab("y", "ward")[True, "t"].support == "implied"
    assert grouped.proportion("ward", "u", by="y")[True].support == "implied"
    assert grouped.total("ward", "s", by="y")[True].support == "measured"
    model = grouped.glm("age ~ ward")
    assert [each.support for each in model] == ["measured", "implied", "implied"]
    from_t = grouped.glm('age ~ C(ward, Treatment("t"))')
    assert [each.support for each in from_t][1:] == ["implied", "implied"]
    assert [each.support for each in grouped.glm("age ~ ward - 1")] == list(expected.values())


def test_the_coefficients_of_a_model_that_was_asked_about_are_measured():
    made = release()

    def asked(*lines, **weights):
        questions = [{"question": line, "measured": not line.startswith("#")} for line in lines]
        card = made.card | {"questions": questions, "weights": weights}
        return cp.Release(made.table, SCHEMA, card, made.replicates)

    def supports(found):
        return {each.support for each in found}

    question = "y ~ b * a"
    assert supports(asked(question).glm("y ~ a * b")) == {"measured"}
    assert supports(asked(question).glm("y ~ a * b", "binomial")) == {"measured"}
    # Another model, another family, and one that could not be measured are not the same question.
    assert asked(question).glm("y ~ a * b + stay")["a:b"].support == "never"
    assert asked(question).glm("y ~ a * b", "gaussian")["a:b"].support == "never"
    assert supports(asked("gaussian: y ~ a * b").glm("y ~ a * b", "gaussian")) == {"measured"}
    assert asked(f"# {question}", "mean(y) by a", "z ~ q").glm(question)["b:a"].support == "never"
    # A sum that does not carry them tells of them all the same.
    line = {"question": question, "measured": False, "assumed": 0.9}
    faint = cp.Release(made.table, SCHEMA, made.card | {"questions": [line]}, made.replicates)
    assert faint.glm("y ~ a * b + stay")["a:b"].support == "never"
    assert "never" not in supports(faint.glm(question))
    assert faint.glm(question)["b:a"].support == "implied"
    # Weights that were set aside or replaced match no scores.
    assert asked(question).unweighted().glm(question)["b:a"].support == "never"
    assert asked(question, reweighted=True).glm(question)["b:a"].support == "never"
