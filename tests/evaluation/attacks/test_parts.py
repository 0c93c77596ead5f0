"""The parts of attacks have known answers: rates, distances, thresholds, predicates."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from counterpoise.evaluation.attacks import inference, set_scene, singling_out
from counterpoise.evaluation.attacks.membership import area, implied_epsilon, roc_curve
from counterpoise.evaluation.attacks.rates import Rate, clopper_pearson
from counterpoise.evaluation.attacks.scene import certain_weights
from counterpoise.evaluation.attacks.shadow import rehearsal
from counterpoise.evaluation.attacks.space import Space, log_density
from counterpoise.schema import Column, Schema
from tests.evaluation.attacks.people import SCHEMA, copied, people, private_release, released


@pytest.mark.parametrize(("hits", "trials"), [(0, 20), (3, 40), (20, 20), (150, 1000)])
def test_intervals_are_those_of_scipy(hits, trials):
    test = stats.binomtest(hits, trials)
    expected = test.proportion_ci(method="wilson")
    found = Rate.of(hits, trials)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    exact = test.proportion_ci(method="exact")
    low, high = clopper_pearson(np.array([hits]), trials, 0.025)
    assert (low[0], high[0]) == pytest.approx((exact.low, exact.high))


def test_an_interval_of_rows_covers_though_their_trials_go_together():
    """Ten trials a row that are all alike are as one: 95% of the intervals hold 0.3, within 4%."""
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        rows = np.repeat(generator.random(80) < 0.3, 10).reshape(80, 10).sum(axis=1)
        found = Rate.of_rows(rows.astype(float), np.full(80, 10.0))
        covered += found.low <= 0.3 <= found.high
    assert covered / 400 == pytest.approx(0.95, abs=0.04)


def test_distances_are_summed_over_columns_of_every_kind():
    schema = Schema(
        [
            Column.categorical("a", list(range(200))),
            Column.categorical("b", ["x", "y"], nullable=True),
            Column.continuous("c", 0.0, 1e9, nullable=True),
        ]
    )
    rows = pd.DataFrame(
        {
            "a": np.arange(100),
            "b": ["x", "y"] * 50,
            "c": np.linspace(0, 1000, 100),
        }
    )
    space = Space(schema.encode(rows))
    width = np.quantile(rows["c"], 0.99) - np.quantile(rows["c"], 0.01)
    asked = pd.DataFrame({"a": [0, 7, 0], "b": ["x", "x", None], "c": [0.0, 0.0, 500.0]})
    found = space.squared(space.place(schema.encode(asked)), np.zeros((3, 1), dtype=int))[:, 0]
    # A null category has a code of its own.
    assert found == pytest.approx([0, 1, 1 + (500 / width) ** 2], rel=1e-4)
    asked = pd.DataFrame({"a": [0], "b": ["x"], "c": [np.nan]})
    # Null is where the median is, and one away besides.
    [[apart]] = space.squared(space.place(schema.encode(asked)), np.zeros((1, 1), dtype=int))
    assert apart == pytest.approx(1 + (500 / width) ** 2, rel=1e-4)


def test_neighbours_are_the_nearest_whatever_the_blocks(monkeypatch):
    table, asked = SCHEMA.encode(people(300, 0)), SCHEMA.encode(people(40, 1))
    space = Space(table)
    every = np.broadcast_to(np.arange(300), (40, 300))
    exact = np.sort(space.squared(space.place(asked), every), axis=1)[:, :7]
    for block in (1, 5000, 10**9):
        monkeypatch.setattr("counterpoise.evaluation.attacks.space.BLOCK", block)
        found = space.nearest(space.place(asked), 7)
        assert found.squared == pytest.approx(exact, abs=1e-5)
    itself = space.nearest(space.place(table), 1)
    assert (itself.squared == 0).all()


def test_a_copy_outweighs_every_neighbour_in_the_density():
    near = np.full((1, 20), 1.0)
    with_copy = near.copy()
    with_copy[0, 0] = 0.0
    assert log_density(with_copy, 1.0, None)[0] > log_density(near, 1.0, None)[0] + 3


def test_the_area_is_that_of_scikit_learn_and_its_interval_holds_it():
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        members = generator.normal(0.5, 1, 150).round(1)
        strangers = generator.normal(0, 1, 90).round(1)
        found = area(members, strangers)
        covered += found.low <= stats.norm.cdf(0.5 / np.sqrt(2)) <= found.high
    truth = np.repeat([1, 0], [150, 90])
    expected = roc_auc_score(truth, np.concatenate([members, strangers]))
    assert found.value == pytest.approx(expected)
    assert covered / 200 == pytest.approx(0.95, abs=0.05)
    curve = roc_curve(members, strangers)
    steps = np.diff(curve["false_positives"])
    heights = (curve["true_positives"].to_numpy()[1:] + curve["true_positives"].to_numpy()[:-1]) / 2
    assert steps @ heights == pytest.approx(expected)


def test_implied_epsilon_is_a_lower_bound_and_comes_close():
    """Randomised response of epsilon 2: at most one bound in twenty is above, of forty."""
    generator = np.random.default_rng(2)
    said = np.exp(2) / (1 + np.exp(2))
    bounds = []
    for _ in range(40):
        members = (generator.random(2000) < said).astype(float)
        strangers = (generator.random(2000) < 1 - said).astype(float)
        bounds.append(implied_epsilon(members, strangers).low)
    assert np.mean(np.array(bounds) > 2.0) <= 0.1
    assert np.mean(bounds) > 1.6


def test_implied_epsilon_subtracts_delta():
    """Three in a thousand are given away, which a delta of 0.01 allows."""
    members, strangers = np.zeros(4000), np.zeros(4000)
    members[::2][:40] = members[1::2][:40] = 1.0
    assert implied_epsilon(members, strangers).low > 0.5
    assert implied_epsilon(members, strangers, delta=0.05).low == 0.0


def test_replicates_that_scatter_take_trust_from_a_weight():
    table = people(40, 0)
    replicates = np.ones((40, 10))
    replicates[:20] += np.tile([2.0, -0.9], 5)
    found = certain_weights(released(table, replicates=replicates))
    assert (found[:20] < 0.5 * found[20:]).all()
    assert found.mean() == pytest.approx(1)


def test_a_planted_secret_is_named():
    """A pin goes with nothing: only a release that copies it tells it, and only of its people."""
    private, holdout = people(600, 1), people(600, 2)
    release = copied(private)
    worst = inference(set_scene(release, private, holdout)).risks[1]
    assert "'pin'" in worst.says
    assert worst.exceeds_baseline
    assert worst.value > 0.95
    assert worst.baseline < 0.25
    shuffled = copied(private.assign(pin=np.random.default_rng(0).permutation(private["pin"])))
    worst = inference(set_scene(shuffled, private, holdout)).risks[1]
    assert "'pin'" not in worst.says


def test_rare_values_of_strangers_single_nobody_out():
    private, holdout, others = (people(600, seed) for seed in (1, 2, 3))
    univariate, multivariate, random = singling_out(
        set_scene(copied(others), private, holdout)
    ).risks[:3]
    for risk in (univariate, multivariate, random):
        assert not risk.exceeds_baseline
        assert risk.baseline_high >= risk.low


def test_a_rehearsal_has_the_methods_and_the_budget_of_the_release():
    table = people(200, 0)
    release = private_release(table, epsilon=2.0, synthesizer="mst")
    again = rehearsal(release)(table[:100], 5)
    for part in ("synthesizer", "split"):
        assert again.card[part] == release.card[part]
    assert again.card["weights"]["method"] == release.card["weights"]["method"]
    assert again.card["ledger"]["budget"] == release.card["ledger"]["budget"]
    assert len(again.table) == 100
    assert not again.private
