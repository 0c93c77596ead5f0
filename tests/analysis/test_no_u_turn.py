"""The sampler draws from the density it is given. Seeded; tolerances are five standard errors."""

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from counterpoise.analysis.no_u_turn import run_chain


def draws_of(surface, start, count=6000, seed=0):
    found = run_chain(surface, np.asarray(start), count, 500, np.random.default_rng(seed))
    assert not found.diverging.any()
    return found


def log_gammas(shapes):
    """Logarithms of independent gamma variables, which are skewed to the left."""

    def surface(z):
        return float(shapes @ z - np.exp(z).sum()), shapes - np.exp(z)

    return surface


def test_skewed_densities_are_drawn_as_they_are():
    shapes = np.array([0.7, 2.0, 9.0])
    found = draws_of(log_gammas(shapes), np.zeros(3)).draws
    deviations = np.sqrt(polygamma(1, shapes))
    assert (np.abs(found.mean(axis=0) - digamma(shapes)) < 0.1 * deviations).all()
    assert found.std(axis=0) == pytest.approx(deviations, rel=0.08)
    skewness = (((found - found.mean(axis=0)) / found.std(axis=0)) ** 3).mean(axis=0)
    expected = polygamma(2, shapes) / polygamma(1, shapes) ** 1.5
    assert skewness == pytest.approx(expected, abs=0.35)
    # A sampler that forgot to choose by density would not know the tails.
    for place in (0.01, 0.99):
        known = np.quantile(
            np.log(np.random.default_rng(1).gamma(shapes, size=(200_000, 3))), place, axis=0
        )
        assert (found < known).mean(axis=0) == pytest.approx(np.full(3, place), abs=0.01)


def test_directions_that_are_wide_or_lean_are_crossed():
    root = np.array([[3.0, 0.0], [2.7, 0.4]])
    precision = np.linalg.inv(root @ root.T)
    found = draws_of(lambda z: (-z @ precision @ z / 2, -precision @ z), np.zeros(2))
    assert np.cov(found.draws, rowvar=False) == pytest.approx(root @ root.T, rel=0.12)
    # It goes on until it turns: more steps than a round density takes.
    assert found.steps.mean() > 5


def test_the_warmup_finds_steps_of_the_acceptance_that_is_aimed_at():
    found = draws_of(lambda z: (-z @ z / 2, -z), np.zeros(20))
    assert found.acceptance_rate.mean() == pytest.approx(0.8, abs=0.06)
    assert (found.step_size == found.step_size[0]).all()


def test_a_trajectory_that_loses_its_energy_has_diverged():
    def cliff(z):
        inside = abs(z[0]) < 1
        return (0.0 if inside else -5000.0), np.zeros(1)

    found = run_chain(cliff, np.zeros(1), 200, 0, np.random.default_rng(0))
    assert found.diverging.any()
    assert (np.abs(found.draws) < 1).all()


def test_a_seed_repeats_the_draws():
    surface = log_gammas(np.array([2.0]))
    one, same, other = (draws_of(surface, [0.0], 50, seed).draws for seed in (3, 3, 4))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
