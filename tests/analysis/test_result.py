import pickle
from datetime import timedelta

import numpy as np
import pytest

from counterpoise.analysis.result import Estimate, Estimates, Symmetric, estimate, show, show_width
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
        (-0.3, 4.0, "0 ± 8 (95%)"),
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


def test_values_without_an_interval_are_shown_in_full():
    assert show(1234567) == "1,234,567"
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


def test_a_crosstab_prints_across():
    text = str(make_release().crosstab("ill", "pain")).splitlines()
    assert text[0].split() == ["ill", "\\", "pain", "none", "some", "much"]
    assert text[1].startswith("False")
    assert text[1].count("±") == 3


def test_a_frame_has_the_interval_at_the_level_that_is_asked_for():
    found = make_release().mean("age", by="ward")
    frame = found.to_frame(level=0.5)
    assert frame.columns.tolist() == ["value", "standard_error", "low", "high", "unweighted"]
    assert frame.index.name == "ward"
    assert frame.loc["surgery", "low"] == found["surgery"].interval(0.5)[0]
    assert np.isnan(frame.loc["closed", "value"])
    assert frame.dtypes.eq(float).all()
    two = make_release().mean("age", by=["ward", "ill"]).to_frame()
    assert two.index.names == ["ward", "ill"]


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
