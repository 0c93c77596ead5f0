"""Rows are drawn by their weights, whichever way is the quicker."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.weights.resampling import FEW_DRAWS, Resampling

WEIGHTS = st.lists(st.sampled_from([0.0, 1e-6, 0.3, 1.0, 1.7, 40.0]), min_size=1, max_size=60)


@settings(max_examples=300, deadline=None)
@given(WEIGHTS.filter(any), st.integers(0, 2**32 - 1))
def test_the_chance_of_a_row_is_in_proportion_to_its_weight(weights, seed):
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, len(weights)) * weights
    found = Resampling.of(weights)
    chances = found.chances.astype(float)
    assert ((chances >= 0) & (chances <= 1)).all()
    # A row is taken when it was picked, or another was picked that it takes the place of.
    taken = chances + np.bincount(found.others, 1 - chances, minlength=len(weights))
    assert taken == pytest.approx(weights / weights.mean(), abs=1e-5)


def test_equal_weights_that_rounding_leaves_below_their_mean_are_drawn_alike():
    """Of all numbers of rows up to 2,000, in some the mean of equal weights is above them."""
    is_above = []
    for rows in range(1, 2000):
        weights = np.full(rows, 0.1)
        is_above.append(weights.mean() > 0.1)
        found = Resampling.of(weights)
        assert np.abs(found.chances - 1).max() < 1e-6
    assert any(is_above)


@pytest.mark.parametrize("size", [100, 4 * FEW_DRAWS * 100])
def test_counts_have_the_mean_and_the_variance_of_a_multinomial_draw(size):
    generator = np.random.default_rng(0)
    weights = generator.exponential(size=100)
    resampling, shares = Resampling.of(weights), weights / weights.sum()
    draws = np.array([resampling.draw(size, generator) for _ in range(4000)])
    assert (draws.sum(axis=1) == size).all()
    deviation = np.sqrt(size * shares * (1 - shares))
    # 100 means of 4,000 draws each: the largest of them is beyond 4.5 deviations once in 1,500.
    assert (np.abs(draws.mean(axis=0) - size * shares) < 4.5 * deviation / np.sqrt(4000)).all()
    common = shares > 0.005
    assert draws.std(axis=0)[common] == pytest.approx(deviation[common], rel=0.08)
