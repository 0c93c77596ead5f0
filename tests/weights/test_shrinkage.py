"""Empirical Bayes: what stands out of the noise is believed, and the noise is not."""

import numpy as np
import pytest

from counterpoise.weights.shrinkage import shrink


def drawn(deviations: np.ndarray, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """True differences of these deviations, and as measured with noise of this variance."""
    generator = np.random.default_rng(seed)
    truth = deviations * generator.normal(size=len(deviations))
    return truth, truth + np.sqrt(noise) * generator.normal(size=len(deviations))


def trust(differences: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return shrink(differences, noise).trust


def test_trust_is_a_part():
    for deviations in (np.zeros(40), np.ones(40), np.geomspace(1e-3, 1e3, 40)):
        _, measured = drawn(deviations, 0.1, seed=0)
        found = trust(measured, np.full(40, 0.1))
        assert ((found >= 0) & (found <= 1)).all()


def test_noise_alone_is_not_believed():
    _, measured = drawn(np.zeros(200), 0.01, seed=1)
    assert trust(measured, np.full(200, 0.01)).mean() < 0.15


def test_differences_far_above_the_noise_are_believed():
    _, measured = drawn(np.full(200, 10.0), 0.01, seed=2)
    assert np.median(trust(measured, np.full(200, 0.01))) > 0.99


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_shrunken_differences_are_closer_to_the_truth_than_measured_ones_or_none(share):
    """Seeded: 400 differences, of which a share is twice as large as the noise."""
    deviations = np.where(np.arange(400) < 400 * share, 2.0, 0.0)
    truth, measured = drawn(deviations, 1.0, seed=3)
    shrunken = trust(measured, np.ones(400)) * measured
    error = ((shrunken - truth) ** 2).mean()
    assert error < 0.95 * min(((measured - truth) ** 2).mean(), (truth**2).mean())


def test_a_normal_prior_gives_the_posterior_mean():
    """With many differences of one width the mixture finds it: v / (v + s)."""
    _, measured = drawn(np.full(3000, 2.0), 1.0, seed=4)
    found = trust(measured, np.ones(3000))
    assert (found * measured) @ measured / (measured @ measured) == pytest.approx(0.8, abs=0.05)


def test_each_difference_is_judged_by_its_own_noise():
    measured = np.tile([1.0, -1.0], 50)
    noise = np.tile([0.01, 100.0], 50)
    found = trust(measured, noise)
    assert found[0] > 0.9
    assert found[1] < 0.1


def test_the_scale_and_the_signs_do_not_matter():
    _, measured = drawn(np.geomspace(0.1, 10, 30), 1.0, seed=5)
    found = trust(measured, np.ones(30))
    assert trust(-1e3 * measured, np.full(30, 1e6)) == pytest.approx(found, abs=1e-6)


def test_nothing_and_one_and_no_noise_are_answered():
    assert trust(np.empty(0), np.empty(0)).shape == (0,)
    assert 0 <= float(trust(np.array([0.0]), np.array([1.0]))[0]) <= 1
    assert trust(np.array([1.0, -2.0]), np.zeros(2)) == pytest.approx(np.ones(2))


def test_where_nothing_is_plausible_nothing_is_believed():
    found = shrink(np.array([1.0, -2.0]), np.ones(2), np.zeros(2))
    assert found.trust.tolist() == [0.0, 0.0]
    assert found.variance.tolist() == [0.0, 0.0]


def test_the_variance_left_is_that_of_the_error():
    """Seeded: a third of 3,000 differences is four noises wide, the others are none."""
    deviations = np.where(np.arange(3000) < 1000, 4.0, 0.0)
    truth, measured = drawn(deviations, 1.0, seed=6)
    found = shrink(measured, np.ones(3000))
    error = (found.trust * measured - truth) ** 2
    assert found.variance.mean() == pytest.approx(error.mean(), rel=0.1)
    # Where it is unclear to which of the two a difference belongs, more is left than T s.
    unclear = np.abs(np.abs(measured) - 2.2) < 0.4
    assert found.variance[unclear].mean() == pytest.approx(error[unclear].mean(), rel=0.3)
    assert (found.variance >= found.trust - 1e-12).all()


def test_no_difference_is_believed_beyond_what_is_plausible_for_it():
    _, measured = drawn(np.full(100, 10.0), 1.0, seed=7)
    largest = np.where(np.arange(100) < 50, 0.01, np.inf)
    found = shrink(measured, np.ones(100), largest)
    assert found.trust[:50].max() <= 0.01 / 1.01
    assert np.median(found.trust[50:]) > 0.9
