"""The posterior of differences: what stands out of the noise is believed, and the noise is not."""

import numpy as np
import pytest

from counterpoise.weights import shrinkage
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
    _, measured = drawn(np.full(200, 1.0), 1e-4, seed=2)
    assert np.median(trust(measured, np.full(200, 1e-4))) > 0.99


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_shrunken_differences_are_closer_to_the_truth_than_measured_ones_or_none(share):
    """Seeded: 400 differences, of which a share is twice as large as the noise."""
    deviations = np.where(np.arange(400) < 400 * share, 0.2, 0.0)
    truth, measured = drawn(deviations, 0.01, seed=3)
    shrunken = trust(measured, np.full(400, 0.01)) * measured
    error = ((shrunken - truth) ** 2).mean()
    assert error < 0.95 * min(((measured - truth) ** 2).mean(), (truth**2).mean())


def test_the_scale_of_many_differences_is_learnt_from_them():
    """With many of one width it is found, wherever it is: nearly v / (v + s)."""
    for width in (0.03, 0.1, 0.4):
        _, measured = drawn(np.full(3000, width), width**2 / 4, seed=4)
        found = trust(measured, np.full(3000, width**2 / 4))
        assert (found * measured) @ measured / (measured @ measured) == pytest.approx(0.8, abs=0.05)


def test_each_difference_is_judged_by_its_own_noise():
    measured = np.tile([0.5, -0.5], 50)
    noise = np.tile([1e-4, 100.0], 50)
    found = trust(measured, noise)
    assert found[0] > 0.9
    assert found[1] < 0.1


def test_nothing_and_one_and_no_noise_are_answered():
    assert trust(np.empty(0), np.empty(0)).shape == (0,)
    assert 0 <= float(trust(np.array([0.0]), np.array([1.0]))[0]) <= 1
    assert trust(np.array([1.0, -2.0]), np.zeros(2)) == pytest.approx(np.ones(2))


def test_where_nothing_is_plausible_nothing_is_believed():
    found = shrink(np.array([1.0, -2.0]), np.ones(2), np.zeros(2))
    assert found.trust.tolist() == [0.0, 0.0]
    assert found.variance.tolist() == [0.0, 0.0]


def test_what_noise_hides_is_in_doubt_by_what_such_differences_usually_are():
    """E[v] of the law, by hand: E[tau^2] = USUAL^2 exp(2 SPREAD^2), and lambda^2 is one in mean."""
    found = shrink(np.zeros(20), np.full(20, 1e6))
    usual = shrinkage.USUAL**2 * np.exp(2 * shrinkage.SPREAD**2)
    assert found.trust.max() < 1e-6
    # The grid ends where the law goes on.
    assert found.variance == pytest.approx(np.full(20, usual), rel=0.25)


def test_the_posterior_is_as_wide_as_its_errors_under_its_own_law():
    """Drawn from the law itself, table by table: intervals hold what they say, at any noise."""
    generator = np.random.default_rng(6)
    for noise in (0.001, 0.01, 0.1):
        held, squares, variances = [], [], []
        for _ in range(150):
            scale = shrinkage.USUAL * np.exp(shrinkage.SPREAD * generator.normal())
            local = np.exp(shrinkage.LOCAL * generator.normal(size=30) - shrinkage.LOCAL**2)
            truth = scale * local * generator.normal(size=30)
            measured = truth + np.sqrt(noise) * generator.normal(size=30)
            found = shrink(measured, np.full(30, noise))
            missed = found.trust * measured - truth
            held.append(np.abs(missed) <= 1.96 * np.sqrt(found.variance))
            squares.append(missed**2)
            variances.append(found.variance)
        assert np.mean(held) == pytest.approx(0.95, abs=0.015)
        assert np.mean(variances) == pytest.approx(np.mean(squares), rel=0.25)


def test_a_few_large_differences_among_many_that_are_none_keep_their_doubt():
    """They are shrunk with the rest, but that some are far larger than most is in the law."""
    truth, noise = np.array([0.4] * 4 + [0.0] * 40), np.full(44, 0.1**2)
    generator, held, large, others = np.random.default_rng(1), [], [], []
    for _ in range(200):
        measured = generator.normal(truth, 0.1)
        found = shrink(measured, noise)
        missed = np.abs(found.trust * measured - truth)
        held.append((missed < 1.96 * np.sqrt(found.variance))[:4])
        large.append(found.variance[:4].mean())
        others.append(found.variance[4:].mean())
    # With one width for all, those that are none would have as much doubt, and these too little.
    assert np.mean(held) > 0.7
    assert np.mean(large) > 2 * np.mean(others)


def test_no_difference_is_believed_beyond_what_is_plausible_for_it():
    _, measured = drawn(np.full(100, 1.0), 0.01, seed=7)
    largest = np.where(np.arange(100) < 50, 1e-4, np.inf)
    found = shrink(measured, np.full(100, 0.01), largest)
    assert found.trust[:50].max() <= 1e-4 / 0.0101 + 1e-12
    assert np.median(found.trust[50:]) > 0.9
