import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import AnalysisError
from tests.analysis.releases import brute_force, make_release, repeated


def test_a_resampled_table_holds_each_row_its_expected_number_of_times_up_to_one():
    release = make_release()
    table = release.table.assign(age=np.arange(300) % 100, children=np.arange(300) // 100)
    labelled = release.__class__(table, release.schema, {}, release.replicates)
    drawn = labelled.resample(2000, seed=3)
    times = (drawn["age"] + 100 * drawn["children"]).value_counts().reindex(range(300)).fillna(0)
    expected = 2000 * release.weights / release.weights.sum()
    assert (np.abs(times.sort_index() - expected) < 1).all()


def test_a_resampled_table_needs_no_weights_and_repeats_with_a_seed():
    release = make_release()
    drawn = release.resample(5000, seed=1)
    assert list(drawn.columns) == list(release.schema.names)
    assert drawn["age"].mean() == pytest.approx(release.mean("age").value, abs=0.5)
    assert len(release.resample()) == len(release.table)
    pd.testing.assert_frame_equal(drawn, release.resample(5000, seed=1))
    assert not drawn.equals(release.resample(5000, seed=2))
    assert drawn["ward"].dtype == release.table["ward"].dtype


def test_duplication_of_whole_weights_is_exact():
    release = make_release()
    smallest = release.weights[release.weights > 0].min()
    exact = release.duplicate(factor=1 / smallest)
    pd.testing.assert_frame_equal(exact, repeated(release).reset_index(drop=True))


def test_duplication_rounds_up_and_less_so_with_a_larger_factor():
    release = make_release()
    truth = release.mean("age").value
    rough, fine = (abs(release.duplicate(factor)["age"].mean() - truth) for factor in (1.0, 500.0))
    assert fine < rough
    assert len(release.duplicate(1.0)) == np.ceil(release.weights - 1e-9).sum()


def test_a_statistic_gets_every_replicate():
    release = make_release()

    def mean(table, weights):
        return np.average(table["age"], weights=weights)

    found = release.bootstrap(mean)
    assert found.value == pytest.approx(release.mean("age").value)
    assert found.unweighted == pytest.approx(release.mean("age").unweighted)
    assert found.standard_error == pytest.approx(brute_force(release, mean))


@pytest.mark.parametrize("make", [dict, pd.Series, lambda both: list(both.values())])
def test_a_statistic_may_be_several_numbers(make):
    release = make_release()

    def both(table, weights):
        return make({"weights": weights.sum(), "age": np.average(table["age"], weights=weights)})

    found = release.bootstrap(both)
    label = 1 if isinstance(both(release.table, release.weights), list) else "age"
    assert found[label].value == pytest.approx(release.mean("age").value)
    assert found[label].standard_error == pytest.approx(release.mean("age").standard_error)


def test_a_statistic_that_takes_no_weights_sees_resampled_tables():
    release = make_release(rows=3000, replicates=40)
    found = release.bootstrap(lambda table: table["age"].mean(), takes_weights=False, seed=0)
    known = release.mean("age")
    assert found.value == pytest.approx(known.value, abs=0.1)
    assert found.standard_error == pytest.approx(known.standard_error, rel=0.2)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda release: release.resample(0), "rows: expected"),
        (lambda release: release.resample(2.5), "rows: expected"),
        (lambda release: release.duplicate(0), "factor: expected"),
        (lambda release: release.duplicate(1e9), "smaller"),
        (lambda release: release.bootstrap(lambda table, weights: "text"), "statistic: expected"),
    ],
)
def test_what_cannot_be_drawn_is_refused(ask, words):
    with pytest.raises(AnalysisError, match=words):
        ask(make_release())
