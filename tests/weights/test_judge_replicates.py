"""Replicates are judged by the rows they rest on: bounded where few do, and never in silence."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import AnalysisError, CounterpoiseWarning
from counterpoise.weights import UniformModel
from counterpoise.weights.diagnostics import Verdict
from counterpoise.weights.judge_replicates import (
    effective_sizes,
    judge_replicates,
    least_size,
    worse,
)
from counterpoise.weights.weights import Weights

ROWS = 4000


def resting_on(rows: int, total: int = ROWS) -> np.ndarray:
    """Weights of mean one that give all to the first `rows` rows."""
    column = np.zeros(total)
    column[:rows] = total / rows
    return column


def replicates(*rows: int) -> np.ndarray:
    return np.column_stack([resting_on(each) for each in rows])


@pytest.mark.parametrize("size", [1.0, 55.0, 100.0, 999.0, 1001.0, 1e6])
def test_the_bound_is_a_hundredth_or_ten_rows_and_never_more_than_a_tenth(size):
    assert least_size(size) <= size / 10
    assert least_size(size) == pytest.approx(min(size / 10, max(10, size / 100)))


def test_sizes_are_kishs_whatever_the_precision():
    columns = np.random.default_rng(0).lognormal(0, 1, (300, 3))
    expected = [Weights(np.log(column)).effective_sample_size for column in columns.T]
    assert effective_sizes(columns) == pytest.approx(expected)
    assert effective_sizes(columns.astype(np.float32)) == pytest.approx(expected, rel=1e-5)


def test_replicates_on_enough_rows_are_fine_and_left_as_they_are():
    columns = replicates(2000, 1000, 400)
    judged = judge_replicates(np.ones(ROWS), columns)
    assert judged.columns is columns
    assert judged.verdict.level == "fine"
    assert judged.to_dict() == {
        "part": 1.0,
        "effective_sample_sizes": [2000, 1000, 400],
        "worst_effective_sample_size": 400,
        "median_effective_sample_size": 1000,
        "bounded": 0,
        "worst_before_bounding": 400,
    }


def test_a_replicate_below_a_tenth_is_not_changed_but_said():
    judged = judge_replicates(np.ones(ROWS), replicates(2000, 2000, 399))
    assert judged.bounded == 0
    assert judged.verdict.level == "caution"
    assert "the worst of the 3 replicate weights counts as 399 rows" in judged.verdict.reason
    assert "count as 4,000" in judged.verdict.reason


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_replicate_on_one_row_is_brought_to_the_bound_and_said(precision):
    weights = np.random.default_rng(1).lognormal(0, 0.5, ROWS)
    weights /= weights.mean()
    columns = replicates(2000, 2000, 1).astype(precision)
    judged = judge_replicates(weights, columns)
    least = least_size(Weights(np.log(weights)).effective_sample_size)
    assert judged.columns.dtype == precision
    assert judged.found[2] == 1
    assert least <= judged.sizes[2] < least * 1.001
    assert judged.columns.mean(axis=0) == pytest.approx(np.ones(3), rel=1e-4)
    assert (judged.columns[:, :2] == columns[:, :2]).all()
    assert (columns[:, 2] == resting_on(1)).all()  # the array that was given is not written to
    assert judged.verdict.level == "caution"
    assert "1 of the 3 replicate weights" in judged.verdict.reason
    assert "(the worst as 1.0 rows)" in judged.verdict.reason
    assert "too narrow" in judged.verdict.reason
    assert judged.to_dict()["bounded"] == 1


def test_a_bounded_replicate_moves_every_mean_by_the_same_part_of_what_it_did():
    values = np.random.default_rng(2).normal(size=(ROWS, 4))
    before = resting_on(3) @ values / ROWS
    after = judge_replicates(np.ones(ROWS), replicates(2000, 2000, 3)).columns[:, 2] @ values / ROWS
    full = values.mean(axis=0)
    part = (after - full) / (before - full)
    assert part == pytest.approx(np.full(4, part[0]))
    # 1/40 = 1/4000 + t^2 (1/3 - 1/4000)
    assert part[0] == pytest.approx(np.sqrt((1 / 40 - 1 / 4000) / (1 / 3 - 1 / 4000)), rel=1e-4)


def test_when_half_of_them_are_below_the_bound_the_weights_are_not_to_be_used():
    judged = judge_replicates(np.ones(ROWS), replicates(2000, 5, 1))
    assert judged.verdict.level == "do not use"
    assert "2 of the 3 replicate weights counted as fewer than 40 rows" in judged.verdict.reason


def test_the_worse_verdict_is_the_one_that_is_said():
    fine, few = Verdict("fine", "good", ""), Verdict("caution", "few", "more")
    heavy, bad = Verdict("caution", "heavy", "less"), Verdict("do not use", "bad", "none")
    assert worse(fine, few) == worse(few, fine) == few
    assert worse(bad, heavy) == worse(heavy, bad) == bad
    assert worse(few, heavy) == Verdict("caution", "few; heavy", "more")


SCHEMA = cp.Schema([cp.Column.boolean("ill"), cp.Column.integer("age", 0, 99)])


@pytest.fixture(scope="module")
def release():
    generator = np.random.default_rng(0)
    age = generator.integers(0, 100, 3000)
    rows = pd.DataFrame({"ill": generator.random(3000) < age / 200, "age": age})
    return cp.release(rows, SCHEMA, 2.0, 1e-6, rows=2000, replicates=12, seed=1)


class OnOneRow(UniformModel):
    """Equal weights whose replicates all rest on one row."""

    def replicate(self, synthetic, redraws):
        columns = np.zeros_like(redraws.base)
        columns[0] = len(columns)
        return columns


def test_the_card_says_what_the_replicates_rest_on(release, tmp_path):
    found = release.card["replicates"]
    assert release.card["weights"]["verdict"]["level"] == "fine"
    assert found["effective_sample_sizes"] == pytest.approx(effective_sizes(release.replicates))
    assert found["worst_effective_sample_size"] == min(found["effective_sample_sizes"])
    assert found["bounded"] == 0
    again = cp.load(release.save(tmp_path / "out"))
    assert again.card["replicates"] == found


def test_new_rows_of_a_fine_release_are_judged_alike_and_fine(release):
    drawn = release.sample(3000, seed=5)
    assert drawn.card["weights"]["verdict"]["level"] == "fine"
    sizes = drawn.card["replicates"]["effective_sample_sizes"]
    assert sizes == pytest.approx(effective_sizes(drawn.replicates))
    assert min(sizes) > drawn.card["weights"]["effective_sample_size"] / 10


def test_new_rows_with_bad_replicates_are_refused(release):
    models = replace(release.models, weights=OnOneRow())
    drawn = replace(release, models=models).sample(2000, seed=5)
    assert drawn.card["weights"]["verdict"]["level"] == "do not use"
    assert drawn.card["replicates"]["bounded"] == 12
    with pytest.raises(AnalysisError, match="the error bars cannot be trusted"):
        drawn.mean("age")


def test_replicates_that_somebody_chose_are_judged_and_left_alone(release):
    columns = release.replicates.astype(float)
    columns[:, 0] = resting_on(2, 2000)
    made = release.reweighted(release.weights, columns)
    assert made.card["replicates"]["worst_effective_sample_size"] == pytest.approx(2)
    assert made.card["replicates"]["bounded"] == 0
    with pytest.warns(CounterpoiseWarning, match="the error bars rest on few rows"):
        made.mean("age")
