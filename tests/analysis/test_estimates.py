from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import counterpoise as cp
from counterpoise.errors import AnalysisError, SchemaError
from counterpoise.schema import Grouping, Shape
from tests.analysis.releases import brute_force, make_release, repeated


def average(column):
    def statistic(table, weights):
        present = table[column].notna().to_numpy()
        return np.average(table[column][present].to_numpy(float), weights=weights[present])

    return statistic


@pytest.mark.parametrize("column", ["ill", "age", "children", "dose"])
def test_a_mean_is_that_of_the_repeated_rows(column):
    release = make_release()
    found = release.mean(column)
    assert found.value == pytest.approx(repeated(release)[column].mean())
    assert found.unweighted == pytest.approx(release.table[column].mean())
    assert found.value != pytest.approx(found.unweighted)


@pytest.mark.parametrize("column", ["ill", "age", "dose"])
def test_a_standard_error_is_the_spread_of_the_replicates_around_the_estimate(column):
    release = make_release()
    found = release.mean(column)
    assert found.standard_error == pytest.approx(brute_force(release, average(column)))
    low, high = found.interval(0.9)
    reach = stats.t.ppf(0.95, df=12) * found.standard_error
    assert (low, high) == pytest.approx((found.value - reach, found.value + reach))


def test_the_mean_of_a_date_is_a_date_and_of_a_moment_a_moment():
    release = make_release()
    rows = repeated(release)
    seen, left = release.mean("seen"), release.mean("left")
    assert isinstance(seen.value, date)
    assert not isinstance(seen.value, datetime)
    assert abs(pd.Timestamp(seen.value) - rows["seen"].mean()) <= pd.Timedelta(hours=12)
    assert isinstance(left.value, datetime)
    assert abs(pd.Timestamp(left.value) - rows["left"].mean()) < pd.Timedelta(seconds=1)
    assert isinstance(seen.standard_error, timedelta)

    def days(table, weights):
        return np.average(table["seen"].to_numpy("M8[D]").astype(float), weights=weights)

    assert seen.standard_error.total_seconds() == pytest.approx(
        86_400 * brute_force(release, days), rel=1e-6
    )
    low, high = seen.interval()
    assert low < seen.value < high
    assert str(seen).startswith(f"{seen.value} ± ")
    assert "days (95%)" in str(seen)


def test_grouped_means_are_those_of_each_group():
    release = make_release()
    found = release.mean("age", by=["ward", "ill"])
    rows = repeated(release)
    for (ward, ill), group in rows.groupby(["ward", "ill"], observed=True):
        assert found[ward, ill].value == pytest.approx(group["age"].mean())
    inside = (release.table["ward"] == "surgery").to_numpy()

    def within(table, weights):
        return np.average(table["age"][inside], weights=weights[inside])

    expected = brute_force(release, within)
    assert release.mean("age", by="ward")["surgery"].standard_error == pytest.approx(expected)


def test_an_empty_group_is_undefined_and_does_not_disturb_the_others():
    found = make_release().mean("age", by="ward")
    closed = found["closed"]
    assert np.isnan(closed.value)
    assert closed.standard_error is None
    assert closed.interval() is None
    assert "too few synthetic rows" in closed.note
    assert found["surgery"].standard_error > 0
    assert make_release().quantile("age", by="ward")["closed"].value is None


def test_a_column_of_nulls_has_no_answers_and_breaks_none():
    release = make_release()
    nothing = release.table.assign(dose=np.nan)
    empty = cp.Release(release.schema.restore(nothing), release.schema, {}, release.replicates)
    assert np.isnan(empty.mean("dose").value)
    assert empty.quantile("dose").value is None
    assert str(empty.quantile("dose")).startswith("undefined (")
    assert np.isnan(empty.corr("age", "dose").value)
    assert empty.total("dose").value == 0
    assert all(np.isnan(member.value) for member in empty.histogram("dose"))


def test_a_replicate_without_a_group_is_left_out_of_its_error():
    release = make_release()
    inside = (release.table["ward"] == "surgery").to_numpy()
    emptied = release.replicates.copy()
    emptied[inside, 3] = 0.0
    without = cp.Release(release.table, release.schema, {}, emptied).mean("age", by="ward")
    others = np.delete(release.replicates, 3, axis=1)
    expected = cp.Release(release.table, release.schema, {}, others).mean("age", by="ward")
    assert without["surgery"].standard_error == pytest.approx(expected["surgery"].standard_error)


def test_null_is_a_group_of_its_own_and_numbers_are_grouped_by_bins():
    release = make_release()
    rows = repeated(release)
    found = release.mean("age", by="pain")
    assert [own[0] for own in found.labels] == ["none", "some", "much", None]
    assert found[None].value == pytest.approx(rows.loc[rows["pain"].isna(), "age"].mean())
    tens = release.mean("ill", by="age")
    thirties = rows[(rows["age"] >= 30) & (rows["age"] < 40)]
    assert tens["30 to 39"].value == pytest.approx(thirties["ill"].mean())
    assert release.mean("ill", by="children").labels == tuple((n,) for n in range(6))


def test_proportions_leave_nulls_out():
    release = make_release()
    expected = repeated(release)["pain"].value_counts(normalize=True)  # leaves them out as well
    found = release.proportion("pain")
    for category in ("none", "some", "much"):
        assert found[category].value == pytest.approx(expected[category])
        assert release.proportion("pain", category).value == pytest.approx(expected[category])
    assert sum(member.value for member in found) == pytest.approx(1)


def test_the_proportion_of_true_and_false_is_that_of_true():
    release = make_release()
    share, mean = release.proportion("ill"), release.mean("ill")
    assert share.value == pytest.approx(mean.value)
    assert share.standard_error == pytest.approx(mean.standard_error)
    assert release.proportion("ill", False).value == pytest.approx(1 - mean.value)


def test_grouped_proportions_are_within_their_group():
    release = make_release()
    rows = repeated(release)
    expected = pd.crosstab(rows["ward"], rows["ill"], normalize="index")
    assert release.proportion("ill", by="ward")["surgery"].value == pytest.approx(
        expected.loc["surgery", True]
    )
    by_pain = release.proportion("ward", by="ill")
    assert by_pain[True, "medicine"].value == pytest.approx(
        pd.crosstab(rows["ill"], rows["ward"], normalize="index").loc[True, "medicine"]
    )


def test_an_interval_of_a_share_stays_between_zero_and_one():
    table = pd.DataFrame({"ill": [True] + [False] * 9, "weight": 1.0})
    redrawn = np.ones((10, 2))
    redrawn[0] = 0.1, 3.0
    schema = cp.Schema([cp.Column.boolean("ill")])
    release = cp.Release(table, schema, {}, replicates=redrawn / redrawn.mean(axis=0))
    low, high = release.proportion("ill").interval()
    assert low == 0.0
    assert 0.1 < high <= 1.0


def test_no_certainty_is_claimed_where_the_replicates_cannot_differ():
    release = make_release()
    closed = release.proportion("ward")["closed"]
    assert (closed.value, closed.standard_error) == (0.0, None)
    assert "cannot differ" in closed.note
    one = release.table.assign(ward=["closed"] + ["surgery"] * (len(release.table) - 1))
    lonely = cp.Release(release.schema.restore(one), release.schema, {}, release.replicates)
    assert lonely.mean("age", by="ward")["closed"].standard_error is None
    assert lonely.quantile("age", by="ward")["closed"].standard_error is None


def test_a_total_is_the_population_times_the_mean():
    release = make_release(population=5000)
    assert release.total("age").value == pytest.approx(5000 * release.mean("age").value)
    assert release.total("age").standard_error == pytest.approx(
        5000 * release.mean("age").standard_error
    )
    assert release.total("ward", "surgery").value == pytest.approx(
        5000 * release.proportion("ward", "surgery").value
    )
    assert release.total().value == 5000
    by_ward = release.total(by="ward")
    assert sum(member.value for member in by_ward) == pytest.approx(5000)
    assert by_ward["closed"].value == 0.0
    assert by_ward["closed"].standard_error is None


def test_a_total_adds_nothing_for_a_null():
    release = make_release(population=300)
    rows = repeated(release)
    expected = 300 * rows["dose"].sum() / len(rows)
    assert release.total("dose").value == pytest.approx(expected)


def test_a_total_without_a_stated_population_says_what_it_is_scaled_to():
    release = make_release()
    found = release.total("age")
    assert found.value == pytest.approx(300 * release.mean("age").value)
    assert "synthetic rows" in found.note


@pytest.mark.parametrize(
    ("is_public", "why"),
    [(False, "do not redraw the noise"), (True, "is public"), (None, "that the card states")],
)
def test_the_population_has_no_standard_error_and_says_why(is_public, why):
    release = make_release(population=5000)
    card = release.card | ({} if is_public is None else {"population_is_public": is_public})
    found = replace(release, card=card).total()
    assert (found.value, found.standard_error) == (5000, None)
    assert "no standard error" in found.note
    assert why in found.note


def test_a_total_has_the_noise_of_the_number_of_rows():
    release = make_release(population=5000)
    noisy = replace(release, card=release.card | {"population_deviation": 50.0})
    own, found = release.total("age"), noisy.total("age")
    per_row = found.value / 5000
    assert found.value == own.value
    assert found.standard_error == pytest.approx(np.hypot(own.standard_error, 50 * per_row))
    everybody = noisy.total()
    assert (everybody.value, everybody.standard_error) == (5000, 50)
    low, high = everybody.interval()
    assert (high - low) / 2 == pytest.approx(1.96 * 50, rel=1e-3)


def test_intervals_of_means_and_totals_stay_within_what_is_public():
    release = make_release(rows=8, replicates=12)
    low, high = release.mean("age").interval(1 - 1e-9)
    assert (low, high) == (0, 99)
    assert release.mean("ill").interval(0.999999)[0] == 0
    assert release.total("age").interval(0.999999)[0] == 0
    table = pd.DataFrame({"x": [-4.0, 5.0, 1.0], "weight": 1.0})
    replicates = np.array([[3.0, 0.0], [0.0, 3.0], [0.0, 0.0]])
    signed = cp.Release(table, cp.Schema([cp.Column.continuous("x", -9, 9)]), {}, replicates)
    assert signed.total("x").interval()[0] < 0


@pytest.mark.parametrize("q", [0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("column", ["age", "dose"])
def test_a_quantile_is_that_of_the_repeated_rows(column, q):
    release = make_release()
    rows = repeated(release)[column].dropna()
    assert release.quantile(column, q).value == np.quantile(rows, q, method="inverted_cdf")


@pytest.mark.parametrize("tenths", range(1, 11))
def test_a_share_that_equals_q_is_enough_whatever_the_rounding(tenths):
    table = pd.DataFrame({"age": np.arange(10), "weight": 0.3})
    release = cp.Release(table, cp.Schema([cp.Column.integer("age", 0, 99)]), {})
    assert release.quantile("age", tenths / 10).value == tenths - 1


def test_quantiles_of_dates_and_ordinal_categories_are_values_of_the_column():
    release = make_release()
    rows = repeated(release)
    seen = release.quantile("seen", 0.25)
    expected = np.sort(rows["seen"].to_numpy())[int(np.ceil(0.25 * len(rows))) - 1]
    assert pd.Timestamp(seen.value) == pd.Timestamp(expected)
    low, high = seen.interval()
    assert low < seen.value < high
    pain = release.quantile("pain")
    codes = rows["pain"].cat.codes
    middle = int(np.quantile(codes[codes >= 0], 0.5, method="inverted_cdf"))
    assert pain.value == ["none", "some", "much"][middle]
    assert pain.standard_error is None
    assert set(pain.interval()) <= {"none", "some", "much"}
    assert isinstance(release.quantile("left").value, datetime)
    assert isinstance(release.quantile("age").value, int)


def test_a_quantile_at_the_largest_value_has_an_interval():
    values = np.repeat([1, 5], [70, 30])
    table = pd.DataFrame({"x": values, "weight": 1.0})
    replicates = np.random.default_rng(0).gamma(4.0, size=(100, 40))
    schema = cp.Schema([cp.Column.integer("x", 0, 9)])
    release = cp.Release(table, schema, {}, replicates / replicates.mean(axis=0))
    assert release.quantile("x", 0.9).interval() == (5, 5)
    # At 72% the share below five decides, of which replicates make more or less than 72.
    assert release.quantile("x", 0.72).interval() == (1, 5)


def test_the_interval_of_a_quantile_is_woodruffs():
    release = make_release()
    found = release.quantile("age", 0.5)

    def below(table, weights):
        return np.average(table["age"] <= found.value, weights=weights)

    reach = stats.t.ppf(0.975, df=12) * brute_force(release, below)
    rows = repeated(release)["age"]
    expected = tuple(
        np.quantile(rows, 0.5 + side * reach, method="inverted_cdf") for side in (-1, 1)
    )
    assert found.interval() == expected
    width = (expected[1] - expected[0]) / (2 * stats.t.ppf(0.975, df=12))
    assert found.standard_error == pytest.approx(width)
    assert str(found) == f"{found.value} (95%: {expected[0]} to {expected[1]})"


def test_intervals_cover_the_truth_as_often_as_they_claim():
    """Bootstrap weights around an exponential sample; at most 1 in 10,000 runs fails by chance.

    Of 400 intervals of 95% the number that covers has a standard deviation of 1.1%; the limits
    are four of them away, and one more percent, because the sample is small and skewed.
    """
    generator = np.random.default_rng(5)
    schema = cp.Schema([cp.Column.continuous("x", 0, 100)])
    covered = np.zeros(2)
    for _ in range(400):
        table = pd.DataFrame({"x": generator.exponential(size=400), "weight": 1.0})
        redrawn = generator.exponential(size=(400, 80))
        release = cp.Release(table, schema, {}, redrawn / redrawn.mean(axis=0))
        for place, (found, truth) in enumerate(
            ((release.mean("x"), 1.0), (release.quantile("x", 0.5), np.log(2)))
        ):
            low, high = found.interval()
            covered[place] += low <= truth <= high
    assert (np.abs(covered / 400 - 0.95) < 0.055).all(), covered


def test_without_replicates_there_is_a_value_and_a_reason_for_no_interval():
    release = make_release(replicates=0)
    for found in (release.mean("age"), release.quantile("age"), release.corr("age", "dose")):
        assert found.standard_error is None
        assert found.interval() is None
        assert "no replicate weights" in str(found)
    assert "no replicate weights" in str(release.mean("age", by="ward"))


def test_replicates_of_another_table_are_refused():
    release = make_release()
    other = cp.Release(release.table, release.schema, {}, replicates=np.ones((7, 3)))
    with pytest.raises(AnalysisError, match="one row for every row"):
        other.mean("age")


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda release: release.mean("agee"), SchemaError, "did you mean 'age'"),
        (lambda release: release.mean("age", by="wrad"), SchemaError, "did you mean 'ward'"),
        (lambda release: release.mean("ward"), AnalysisError, "ask for its proportion"),
        (lambda release: release.mean("pain"), AnalysisError, "proportion or quantile"),
        (lambda release: release.total("seen"), AnalysisError, "ask for their mean"),
        (lambda release: release.quantile("ward"), AnalysisError, "no order"),
        (lambda release: release.quantile("age", 50), AnalysisError, "from 0 to 1"),
        (lambda release: release.proportion("age"), AnalysisError, "histogram"),
        (lambda release: release.proportion("ward", "surgry"), AnalysisError, "'surgery'"),
        (lambda release: release.proportion("ill", 1), AnalysisError, "no category 1"),
        (lambda release: release.mean("age", by=["ward", "ward"]), AnalysisError, "once"),
        (lambda release: release.mean("age").interval(95), AnalysisError, "between 0 and 1"),
        (
            lambda release: release.mean("ill", by=["age", "dose", "seen", "left"]),
            AnalysisError,
            "more than 10,000 groups",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_way_out(ask, error, words):
    with pytest.raises(error, match=words):
        ask(make_release())


def test_an_empty_release_is_refused():
    release = make_release()
    empty = cp.Release(release.table.iloc[:0], release.schema, {})
    with pytest.raises(AnalysisError, match="no rows"):
        empty.mean("age")


def test_a_mean_says_what_part_of_it_lies_in_a_tail_that_nobody_counted():
    shape = Shape((0.0, 10.0, 100.0), (0.9, 0.1), 0.0, (0, 1), (0.01, 0.05), (0.1, 1.0))
    for last, said in ((80.0, "about 47% of it lies above 10"), (9.0, "")):
        column = cp.Column.continuous("pay", 0, 100, bins=(0, 10, 100), shape=shape)
        table = pd.DataFrame({"pay": [10.0 - 1e-9] * 9 + [last], "weight": 1.0})
        made = cp.Release(table, cp.Schema([column]), card={})
        assert said in made.mean("pay").note
        assert bool(said) == ("noise hides" in made.mean("pay").note)
        assert said in made.total("pay").note


def with_grouped_wards(noise):
    release = make_release(population=1000)
    grouping = Grouping((0, 1, 1), (0.4, 0.6, 0.0), (0.01, 0.01, 0.01), noise)
    ward = replace(release.schema["ward"], grouping=grouping)
    return cp.Release(
        release.table, release.schema.replace(ward), release.card, replicates=release.replicates
    )


def test_a_category_that_shares_its_code_is_known_only_to_the_noise_of_its_own_count():
    calm, noisy = with_grouped_wards(0.0), with_grouped_wards(0.2)
    medicine = noisy.proportion("ward", "medicine")
    before = calm.proportion("ward", "medicine")
    assert medicine.value == before.value
    assert medicine.standard_error == pytest.approx(np.hypot(before.standard_error, 0.2))
    assert "noise of its own count" in medicine.note
    # None of the rows has it, but that is not known.
    assert calm.proportion("ward", "closed").interval() is None
    low, high = noisy.proportion("ward", "closed").interval()
    assert low == 0.0
    assert high == pytest.approx(stats.t.ppf(0.975, df=12) * 0.2)
    total = noisy.total("ward", "medicine")
    assert total.standard_error == pytest.approx(1000 * medicine.standard_error, rel=0.01)
    # One with a code of its own was counted by the synthesizer as well.
    surgery = noisy.proportion("ward", "surgery")
    assert surgery.standard_error == calm.proportion("ward", "surgery").standard_error
    assert surgery.note == ""
    every = noisy.proportion("ward")
    assert every["medicine"].standard_error == medicine.standard_error
    assert noisy.histogram("ward")["closed"].interval() == (low, high)


def with_ends(column, values, noise):
    low, high = column.minimum, column.maximum
    edges = (low, *values, high)
    pieces = (-1, 0, -1)
    shape = Shape(edges, (0.0, 1.0, 0.0), 0.0, pieces, (0.01,), (0.1,), noise)
    shaped = replace(column, bins=(low, high), shape=shape)
    made = make_release(population=1000)
    schema = made.schema.replace(shaped)
    return cp.Release(made.table, schema, made.card, replicates=made.replicates)


def test_rows_that_noise_hides_beyond_the_ends_are_in_the_interval_of_a_mean():
    age = make_release().schema["age"]
    calm, noisy = (with_ends(age, (40, 90), noise) for noise in (0.0, 0.05))
    before, mean = calm.mean("age"), noisy.mean("age")
    # At 40 the mean is nearer than the bound of 0, at 90 the bound of 99 is nearer.
    # Of M rows further out, none as likely as any number that noise hides: E M^2 = (noise / 2)^2.
    ends = np.hypot(40 - mean.value, 99 - 90) / 2
    assert mean.value == before.value
    assert mean.standard_error == pytest.approx(np.hypot(before.standard_error, 0.05 * ends))
    total = noisy.total("age").standard_error
    whole = np.hypot(calm.total("age").standard_error, 1000 * 0.05 * ends)
    assert total == pytest.approx(whole)
    # A quantile hardly moves with a few rows, wherever they are.
    assert noisy.quantile("age").interval() == calm.quantile("age").interval()


def test_rows_may_be_hidden_beyond_a_tail_as_well():
    age = make_release().schema["age"]
    shape = Shape((0, 20, 60, 80, 99), (0.0, 0.8, 0.2, 0.0), 0.0, (-1, 0, 1, -1), (0.01,) * 2)
    errors = []
    for last in (0.1, 1.0):
        tailed = replace(shape, slopes=(0.1, last), noise=0.05)
        made = make_release(population=1000)
        schema = made.schema.replace(replace(age, bins=(0, 99), shape=tailed))
        errors.append(cp.Release(made.table, schema, made.card, replicates=made.replicates))
    ended, tail = (each.mean("age") for each in errors)
    # The piece above 60 is a tail where nothing was counted: rows stop standing clear at 60.
    known = ended.standard_error**2 - 0.025**2 * (99 - 80) ** 2
    assert tail.standard_error**2 - known == pytest.approx(
        0.025**2 * min(60 - tail.value, 99 - 60) ** 2
    )


def test_hidden_rows_move_the_mean_of_dates_on_their_own_scale():
    seen = make_release().schema["seen"]
    ends = (date(2021, 3, 1), date(2021, 9, 1))
    calm, noisy = (with_ends(seen, ends, noise) for noise in (0.0, 0.05))
    days = [(end - noisy.mean("seen").value).days for end in ends]
    moved = timedelta(days=0.05 * float(np.hypot(*days)) / 2)
    before = calm.mean("seen").standard_error
    wanted = np.hypot(before / timedelta(days=1), moved / timedelta(days=1))
    assert noisy.mean("seen").standard_error / timedelta(days=1) == pytest.approx(wanted, rel=0.01)
