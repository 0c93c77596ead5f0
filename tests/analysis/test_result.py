import pickle
import re
from datetime import timedelta

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from counterpoise.analysis.result import (
    ALL_ALIKE,
    EMPTY,
    Estimate,
    Estimates,
    Symmetric,
    estimate,
    estimates,
)
from counterpoise.analysis.text import show, show_width
from counterpoise.errors import AnalysisError
from tests.analysis.releases import make_release


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (54.2345, 0.4, "54.2 ± 0.8 (95%)"),
        (54.2345, 0.07, "54.23 ± 0.14 (95%)"),
        (12345.6, 321.0, "12,300 ± 600 (95%)"),
        (0.0123, 0.00004, "0.01230 ± 0.00008 (95%)"),
        (-3.0, 5.0, "-3 ± 10 (95%)"),
        (-0.3, 4.0, "-0.3 ± 8 (95%)"),
        (47.0, 157.0, "50 ± 300 (95%)"),
        (0.0, 157.0, "0 ± 300 (95%)"),
        (1e-7, 157.0, "0.0 ± 300 (95%)"),
        (1.2345e-9, 4e-11, "1.23e-09 ± 8e-11 (95%)"),
        (1.2345e-12, 4e-14, "1.23e-12 ± 8e-14 (95%)"),
        (1.2345e9, 4e6, "1,234,000,000 ± 8,000,000 (95%)"),
        (1.2345e30, 4e27, "1.235e+30 ± 8e+27 (95%)"),
        (5e-324, 5e-324, "5e-324 ± 1e-323 (95%)"),
    ],
)
def test_an_estimate_prints_the_digits_that_can_be_trusted(value, error, text):
    found = Estimate(value, error, 0.0, span=Symmetric(value, error, degrees=80))
    assert str(found) == repr(found) == text


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (timedelta(days=3.2), "3 days"),
        (timedelta(hours=5), "5 hours"),
        (timedelta(minutes=1.5), "1.5 minutes"),
        (timedelta(seconds=0.25), "0.25 seconds"),
    ],
)
def test_spans_of_time_are_shown_in_a_unit_that_suits_them(width, text):
    assert show_width(width) == text


def test_simultaneous_intervals_hold_together():
    """Estimates that are off together and by themselves: all are held in 95 of 100 draws."""
    generator = np.random.default_rng(3)
    root = np.hstack([0.7 * np.ones((20, 1)), 0.7 * np.eye(20)])
    held, alone = 0, 0
    for _ in range(400):
        moves = root @ generator.normal(size=(21, 80))
        values = root @ generator.normal(size=21)
        many = estimates(
            ["x"],
            [(place,) for place in range(20)],
            [estimate(np.append([v, v], v + m)) for v, m in zip(values, moves, strict=True)],
        )
        held += all(low < 0 < high for low, high in (e.interval() for e in many.simultaneous()))
        alone += all(low < 0 < high for low, high in (e.interval() for e in many))
    # 400 draws of 95% lie within 92 and 98%, but for once in 200 times.
    assert 0.92 < held / 400 < 0.98
    assert alone / 400 < 0.75


def test_simultaneous_intervals_say_so_and_are_those_of_several():
    release = make_release()
    table = release.crosstab("ward", "ill")
    wide = table.simultaneous()
    assert "of all together" in str(wide) and "of all together" not in str(table)
    for label, own in table.items():
        assert wide[label].value == own.value
        if own.interval() is not None:
            assert wide[label].interval()[1] >= own.interval()[1]
    model = release.glm("ill ~ age + children").simultaneous()
    assert "of all together" in str(model)
    with pytest.raises(AnalysisError, match="none of these estimates has a standard error"):
        make_release(replicates=0).crosstab("ward", "ill").simultaneous()


def test_values_without_an_interval_are_shown_in_full():
    assert show(1234567) == "1,234,567"
    for half in (0.0, np.nan, np.inf, None):
        assert show(1.23456789, half) == "1.2346"
    assert show(np.inf, 1.0) == show(np.nan, 1.0) == "undefined"
    assert show(None) == ""
    assert show(True) == "True"
    assert show(float("nan")) == "undefined"


def test_a_replicate_in_which_a_statistic_is_undefined_is_left_out():
    assert estimate(np.array([5.0, 5.0, 4.0, np.nan, 6.0])).standard_error == pytest.approx(1.0)


def test_grouped_estimates_print_as_an_aligned_table():
    text = str(make_release().mean("age", by="ward")).splitlines()
    assert text[0].split() == ["ward", "value", "±", "low", "high", "unweighted"]
    assert text[1].startswith("surgery")
    assert text[-1].startswith("(intervals of 95%; undefined where")
    assert len({len(line) for line in text[:3]}) == 1


def test_grouped_quantiles_print_the_ends_of_their_intervals():
    text = str(make_release().quantile("pain", by="ward")).splitlines()
    assert text[0].split() == ["ward", "value", "low", "high", "unweighted"]


def test_a_clause_that_several_estimates_have_is_said_once_below_a_table():
    results = np.array([5.0, 5.0, 4.0, 6.0])
    members = (
        estimate(results, note="so"),
        estimate(np.full(4, np.nan), note="so"),
        estimate(np.full(4, 5.0), note="so"),
    )
    [said] = Estimates(("ward",), (("a",), ("b",), ("c",)), members).notes()
    clauses = said.strip("()").split("; ")
    assert sorted(clauses) == sorted({"intervals of 95%", "so", EMPTY, ALL_ALIKE})


def test_a_crosstab_prints_across():
    text = str(make_release().crosstab("ill", "pain")).splitlines()
    assert text[0].split() == ["ill", "\\", "pain", "none", "some", "much"]
    assert text[1].startswith("False")
    assert text[1].count("±") == 3


def test_a_frame_has_the_interval_at_the_level_that_is_asked_for():
    found = make_release().mean("age", by="ward")
    frame = found.to_frame(level=0.5)
    parts = ["value", "standard_error", "low", "high", "unweighted", "support", "assumed"]
    assert frame.columns.tolist() == parts
    assert frame.index.name == "ward"
    assert frame.loc["surgery", "low"] == found["surgery"].interval(0.5)[0]
    assert np.isnan(frame.loc["closed", "value"])
    assert frame.drop(columns="support").dtypes.eq(float).all()
    two = make_release().mean("age", by=["ward", "ill"]).to_frame()
    assert two.index.names == ["ward", "ill"]


def table_of(values, errors, is_wide=False):
    names = [f"x{place}" for place in range(len(values))]
    labels = tuple(("a", name) for name in names)
    members = tuple(
        Estimate(value, error, value, span=Symmetric(value, error, 80))
        for value, error in zip(values, errors, strict=True)
    )
    return str(Estimates(("column", "with"), labels, members, is_wide)).splitlines()


def test_a_table_of_unlike_scales_keeps_the_digits_of_each():
    values, errors = [0.0123, 47.0, 12345.6], [0.0004, 157.0, 321.0]
    shown = [line.split()[2:4] for line in table_of(values, errors)[1:4]]
    assert shown == [["0.0123", "0.0008"], ["50", "300"], ["12,300", "600"]]
    across = table_of(values, errors, is_wide=True)[1].split("  ")
    assert [cell.strip() for cell in across if "±" in cell] == [
        "0.0123 ± 0.0008",
        "50 ± 300",
        "12,300 ± 600",
    ]


def test_a_table_of_like_scales_shares_its_digits():
    lines = table_of([0.4812, 0.5219], [0.011, 0.018])[1:3]
    assert [line.split()[2:4] for line in lines] == [["0.48", "0.02"], ["0.52", "0.04"]]


def test_covariances_of_unlike_columns_are_not_shown_as_zero():
    cells = re.findall(r"(\S+) ± (\S+)", str(make_release().cov()))
    assert len(cells) == 36
    # The covariance of true and false, and the variance of a date, are both there to be read.
    assert ("0.2499", "0.0006") in cells
    assert ("86,000", "7,000") in cells
    assert "0" not in {part for cell in cells for part in cell}


def test_a_label_is_found_by_its_value_or_by_its_text():
    found = make_release().mean("age", by="children")
    assert found[0] == found["0"] == found[np.int64(0)]
    assert (
        make_release().mean("age", by="ill")["True"] == make_release().mean("age", by="ill")[True]
    )
    two = make_release().mean("age", by=["ill", "children"])
    assert two[False, 2] == two["False", "2"]
    both = Estimates(("x",), ((1,), ("1",)), (Estimate(1, None, 1), Estimate(2, None, 2)))
    assert (both[1].value, both["1"].value) == (1, 2)
    unclear = Estimates(("x",), ((1,), ("1",), (None,)), (Estimate(1, None, 1),) * 3)
    assert "None" in unclear
    twice = Estimates(("x",), ((1.0,), (np.float32(1),)), (Estimate(1, None, 1),) * 2)
    assert "1.0" not in twice
    for odd in (np.zeros(2), None, [], {}, object(), (1, 2), True, 1.5, "x" * 1000):
        with pytest.raises(AnalysisError):
            found[odd]
        assert odd not in found


def test_results_are_indexed_by_label_and_iterated_over_values():
    release = make_release(replicates=4)
    model = release.glm("ill ~ age + ward")
    assert [each for each in model] == list(model.coefficients)  # noqa: C416
    assert len(model) == 3
    assert model.keys() == ["Intercept", "age", "ward[T.medicine]"]
    assert dict(model) == dict(model.items())
    assert "age" in model
    assert "dose" not in model
    grouped = release.mean("age", by="ward")
    assert list(grouped) == [grouped[label] for label in grouped.keys()]  # noqa: SIM118
    assert "surgery" in grouped
    scores = release.cross_validate(DecisionTreeClassifier(max_depth=1), "ill", folds=3)
    assert list(scores) == list(scores.folds)
    assert len(scores) == 3


def test_an_unknown_label_is_refused_with_those_there_are():
    with pytest.raises(AnalysisError, match="'surgery', 'medicine', 'closed'"):
        make_release().mean("age", by="ward")["surgry"]


def test_results_can_be_pickled():
    release = make_release()
    for found in (release.mean("age", by="ward"), release.quantile("age")):
        again = pickle.loads(pickle.dumps(found))
        assert str(again) == str(found)
    assert isinstance(release.histogram("age"), Estimates)
    assert float(release.mean("age")) == release.mean("age").value
