"""Generators trained by weighted rows: they make rows of the target, and not of the sample."""

import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.importance import ESTIMATORS, WeightedGenerator, mean_discrepancy
from counterpoise.importance.losses import discrepancy_slopes


def thinned(rows=2000, seed=0):
    """Two uniform columns; of rows whose first is below a half only one in nine is there."""
    generator = np.random.default_rng(seed)
    points = generator.random((rows, 2))
    points = points[(points[:, 0] > 0.5) | (generator.random(rows) < 1 / 9)]
    return points, np.where(points[:, 0] > 0.5, 5 / 9, 5.0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("loss", ["mmd", "cross-entropy"])
def test_weights_turn_the_generator_to_the_target(loss, estimator):
    points, weights = thinned()
    asked = WeightedGenerator(
        loss, estimator, hidden=(32,), steps=400, lot=64, rate=0.01, groups=2, copies=9 / 5
    )
    made = asked.fit(points, weights, seed=1).sample(2000, seed=2)
    assert np.mean(points[:, 0] < 0.5) < 0.15
    assert abs(np.mean(made[:, 0] < 0.5) - 0.5) < 0.2
    assert np.allclose(made.mean(axis=0), 0.5, atol=0.12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_slopes_alone_are_those_of_the_discrepancy(estimator):
    generator = np.random.default_rng(3)
    real, made = generator.normal(size=(30, 2)), generator.normal(size=(20, 2))
    weights = generator.gamma(2, size=30)
    options = {"widths": [0.5, 2.0], "groups": 3, "seed": 4}
    found = discrepancy_slopes(real, made, weights, estimator, **options)
    assert np.allclose(
        found, mean_discrepancy(real, made, weights, estimator, **options).of_generated
    )


def test_seeds_decide_the_training_and_the_rows():
    points, weights = thinned(300)
    asked = WeightedGenerator("cross-entropy", hidden=(8,), steps=20)
    one, same, other = (
        asked.fit(points, weights, seed=seed).sample(50, seed=7) for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_conditional_generator_makes_rows_of_what_it_is_given():
    generator = np.random.default_rng(0)
    given = generator.random((2000, 1))
    points = given + 0.1 * generator.normal(size=(2000, 1))
    for loss in ("mmd", "cross-entropy"):
        model = WeightedGenerator(loss, hidden=(32,), steps=300, lot=64, rate=0.01).fit(
            points, given=given, seed=1
        )
        low, high = (model.sample(500, seed=2, given=np.full((500, 1), at)) for at in (0.1, 0.9))
        assert low.mean() < 0.35
        assert high.mean() > 0.65
        with pytest.raises(MethodError, match="given: expected 5 rows of the 1 columns"):
            model.sample(5)


def test_rows_stay_within_the_ranges_and_constants_stay_constant():
    points, _ = thinned(200)
    points = np.column_stack([points, np.full(len(points), 3.0)])
    made = WeightedGenerator(hidden=(8,), steps=5).fit(points, seed=0).sample(500, seed=0)
    assert made.shape == (500, 3)
    assert (made >= points.min(axis=0)).all()
    assert (made <= points.max(axis=0)).all()


def test_what_cannot_be_trained_on_is_refused():
    points, weights = thinned(40)
    small = WeightedGenerator(steps=1)
    with pytest.raises(MethodError, match="points: expected finite numbers"):
        small.fit(np.full((3, 1), np.nan))
    with pytest.raises(MethodError, match="two rows or more"):
        small.fit(points[:1])
    with pytest.raises(MethodError, match="weights: expected"):
        small.fit(points, weights[:3])
    with pytest.raises(MethodError, match="as many of what is given"):
        small.fit(points, weights, given=points[:5])
    with pytest.raises(MethodError, match="loss"):
        WeightedGenerator(loss="hinge")
    with pytest.raises(MethodError, match="groups"):
        WeightedGenerator(lot=8, groups=5)
