"""Estimates corrected by rehearsals: the arithmetic, on releases that are made by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.analysis.rehearsals import NOT_CORRECTED, Rehearsal
from counterpoise.analysis.replication import multiplier
from counterpoise.errors import AnalysisError
from tests.analysis.releases import make_release

MOVES = (1.0, 3.0, 2.0, 4.0)


def rehearsed(moves=MOVES):
    """A release, and runs in which everybody is so many years older."""
    release = make_release()
    runs = tuple(
        replace(release, table=release.table.assign(age=release.table["age"] + move))
        for move in moves
    )
    return Rehearsal(release, runs)


def age(release):
    return release.mean("age")


def test_a_stated_part_of_the_bias_is_taken_off_and_its_noise_is_added():
    rehearsal = rehearsed()
    plain, found = age(rehearsal.release), rehearsal.correct(age, part=0.5)
    own = 0.5 * np.std(MOVES, ddof=1) / 2
    assert found.value == pytest.approx(plain.value - 0.5 * 2.5)
    assert found.standard_error == pytest.approx(math.hypot(plain.standard_error, own))
    low, high = found.interval()
    assert (low + high) / 2 == pytest.approx(found.value)
    assert (high - low) / 2 == pytest.approx(
        found.standard_error * multiplier(0.95, found.span.degrees)
    )
    assert "4 rehearsals" in found.note
    assert found.unweighted == plain.unweighted


def test_by_itself_the_part_is_large_where_the_bias_is_beside_the_error():
    rehearsal = rehearsed()
    plain = age(rehearsal.release)
    part = 2.5**2 / (2.5**2 + plain.standard_error**2)
    assert rehearsal.correct(age).value == pytest.approx(plain.value - part * 2.5)
    nothing = rehearsed((1.0, -1.0))
    assert nothing.correct(age).value == pytest.approx(plain.value)
    assert nothing.correct(age).standard_error == pytest.approx(plain.standard_error)


def test_the_bias_that_shows_has_the_error_of_the_mean_of_the_runs():
    found = rehearsed().bias(age)
    assert found.value == pytest.approx(2.5)
    assert found.standard_error == pytest.approx(np.std(MOVES, ddof=1) / 2)
    assert found.span.degrees == 3


def test_few_runs_leave_few_degrees_of_freedom():
    many, few = rehearsed(), rehearsed((0.0, 40.0))
    assert many.correct(age, part=0.0).span.degrees == age(many.release).span.degrees
    assert few.correct(age, part=1.0).span.degrees <= 2


def test_tables_keep_their_labels_and_shares_stay_shares():
    release = make_release()
    wards = release.schema["ward"].categories
    everybody = release.table.assign(ward=pd.Categorical.from_codes([0] * 300, wards))
    runs = (replace(release, table=everybody),) * 2
    found = Rehearsal(release, runs).correct(lambda made: made.proportion("ward"), part=1.0)
    assert found.keys() == release.proportion("ward").keys()
    values = [member.value for member in found]
    assert min(values) >= 0 and max(values) <= 1
    ends = [member.interval() for member in found if member.interval() is not None]
    assert ends and all(0 <= low <= high <= 1 for low, high in ends)


def test_a_model_is_corrected_as_a_whole():
    release = make_release()
    formula = "age ~ children"
    runs = tuple(
        replace(release, table=release.table.assign(children=release.table["children"] * scale))
        for scale in (2.0, 3.0, 4.0)
    )
    plain = release.glm(formula)
    found = Rehearsal(release, runs).correct(lambda made: made.glm(formula), part=1.0)
    slopes = plain["children"].value / np.array([2.0, 3.0, 4.0])
    assert found["children"].value == pytest.approx(2 * plain["children"].value - slopes.mean())
    errors = [member.standard_error for member in found]
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(errors)
    table = release.table.head(3)
    assert found.predict(table) == pytest.approx(
        found["Intercept"].value + found["children"].value * table["children"].to_numpy()
    )


def test_a_run_in_which_a_statistic_fails_is_left_out():
    release = rehearsed().release
    runs = rehearsed().runs
    broken = replace(runs[0], table=runs[0].table.iloc[:0], replicates=None)
    found = Rehearsal(release, (*runs, broken)).correct(age, part=1.0)
    assert found.value == pytest.approx(age(release).value - 2.5)
    assert "4 rehearsals" in found.note


def test_what_is_no_number_with_a_symmetric_interval_is_left_and_says_so():
    rehearsal = rehearsed()
    plain = rehearsal.release.quantile("age")
    found = rehearsal.correct(lambda made: made.quantile("age"))
    assert (found.value, found.interval()) == (plain.value, plain.interval())
    assert NOT_CORRECTED in found.note
    assert math.isnan(rehearsal.bias(lambda made: made.quantile("age")).value)


def test_without_replicates_a_part_has_to_be_stated():
    rehearsal = rehearsed()
    bare = Rehearsal(replace(rehearsal.release, replicates=None), rehearsal.runs)
    with pytest.raises(AnalysisError, match="state a part"):
        bare.correct(age)
    assert bare.correct(age, part=1.0).value == pytest.approx(age(bare.release).value - 2.5)
    assert bare.correct(age, part=1.0).interval() is None


@pytest.mark.parametrize("part", [-0.1, 1.1, "half", True, math.nan])
def test_a_part_is_a_number_from_zero_to_one(part):
    with pytest.raises(AnalysisError, match="part"):
        rehearsed().correct(age, part=part)


@pytest.mark.parametrize("statistic", ["mean", None, lambda made: 3.0, lambda made: made.table])
def test_a_statistic_gives_back_estimates(statistic):
    with pytest.raises(AnalysisError, match="statistic"):
        rehearsed().correct(statistic)


def test_one_run_is_too_few():
    rehearsal = rehearsed()
    with pytest.raises(cp.AnalysisError, match="2 rehearsals"):
        Rehearsal(rehearsal.release, rehearsal.runs[:1])
