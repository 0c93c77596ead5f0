"""Samples: the right distribution, the right rows, and rounding closer than chance."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from counterpoise.errors import MethodError
from counterpoise.synthesizers.graphical import Factor
from counterpoise.synthesizers.graphical.sampling import rounded_counts
from tests.synthesizers.graphical.structures import STRUCTURES, random_model


def counts(domain, codes):
    """How often each row of the domain occurs in the sample."""
    places = np.ravel_multi_index(codes.T, domain.sizes)
    return np.bincount(places, minlength=domain.cells(domain.columns)).reshape(domain.sizes)


@pytest.mark.parametrize("method", ["plain", "rounding"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_codes_are_in_the_domain_and_seeded(name, method):
    model = random_model(name)
    codes = model.sample(137, np.random.default_rng(0), method=method)
    assert codes.shape == (137, len(model.domain))
    assert (codes >= 0).all()
    assert (codes < np.array(model.domain.sizes)).all()
    again = model.sample(137, np.random.default_rng(0), method=method)
    np.testing.assert_array_equal(codes, again)
    assert model.sample(0, np.random.default_rng(0), method=method).shape == (0, len(model.domain))


@pytest.mark.parametrize("name", ["chain", "cycle", "triples", "disconnected", "full clique"])
def test_plain_rows_follow_the_model(name):
    """Chi-square on the whole table; false alarms: 1e-6, and the seed is fixed."""
    model = random_model(name, seed=1, spread=0.7)
    rows = 40_000
    observed = counts(model.domain, model.sample(rows, np.random.default_rng(2), method="plain"))
    expected = rows * model.marginal(model.domain.columns)
    statistic = np.sum((observed - expected) ** 2 / expected)
    assert statistic < chi2.ppf(1 - 1e-6, expected.size - 1)


@pytest.mark.parametrize("name", ["chain", "cycle", "triples", "disconnected", "full clique"])
def test_rounded_rows_are_right_on_average(name):
    """Every cell over many small samples, within 6 standard errors; false alarms below 1e-6."""
    model = random_model(name, seed=1, spread=0.7)
    rng = np.random.default_rng(3)
    samples = np.array([counts(model.domain, model.sample(20, rng)) for _ in range(1500)])
    expected = 20 * model.marginal(model.domain.columns)
    error = np.maximum(samples.std(axis=0), np.sqrt(expected)) / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - expected) < 6 * error).all()


@pytest.mark.parametrize("name", ["chain", "cycle", "triples", "star", "grid"])
def test_rounding_is_closer_to_the_model_than_chance(name):
    model = random_model(name, seed=4)
    cliques = [*model.tree.cliques, *itertools.combinations(model.domain.columns, 1)]

    def error(method):
        codes = model.sample(5000, np.random.default_rng(5), method=method)
        distances = []
        for clique in cliques:
            places = [model.domain.position[column] for column in clique]
            sampled = counts(model.domain.project(clique), codes[:, places])
            distances.append(np.abs(sampled / 5000 - model.marginal(clique)).sum())
        return np.mean(distances)

    assert error("rounding") < 0.5 * error("plain")


@pytest.mark.parametrize("name", ["chain", "star", "disconnected"])
def test_rounding_is_closer_than_chance_for_columns_that_share_no_clique(name):
    model = random_model(name, seed=4)
    pairs = [
        pair
        for pair in itertools.combinations(model.domain.columns, 2)
        if model.tree.smallest_clique(pair) is None
    ]
    assert pairs

    def error(method):
        distances = []
        for seed in range(20):
            codes = model.sample(2000, np.random.default_rng(seed), method=method)
            for pair in pairs:
                places = [model.domain.position[column] for column in pair]
                sampled = counts(model.domain.project(pair), codes[:, places])
                distances.append(np.abs(sampled / 2000 - model.marginal(pair)).sum())
        return np.mean(distances)

    assert error("rounding") < 0.6 * error("plain")


def test_rounded_counts_are_neighbours_of_the_expectation_and_unbiased():
    rng = np.random.default_rng(6)
    probabilities = rng.dirichlet(np.full(7, 0.3), size=4)
    probabilities[:, 3] = 0.0
    sizes = np.array([1, 5, 50, 12345])
    expected = sizes[:, None] * probabilities / probabilities.sum(axis=1, keepdims=True)
    draws = np.array([rounded_counts(probabilities, sizes, rng) for _ in range(4000)])
    assert (draws.sum(axis=2) == sizes).all()
    assert (draws[:, :, 3] == 0).all()
    assert (np.abs(draws - expected) < 1.0).all()
    # Each count is a coin between two neighbours: 6 standard errors, false alarms below 1e-6.
    assert (np.abs(draws.mean(axis=0) - expected) < 6 * 0.5 / np.sqrt(4000)).all()


@pytest.mark.parametrize("method", ["plain", "rounding"])
def test_given_codes_are_kept_and_the_rest_follows_them(method):
    """Chi-square of the other columns given these; false alarms 1e-6, and the seed is fixed."""
    model = random_model("cycle", seed=7)
    given = {"b": 1, "d": 0}
    codes = model.sample(20_000, np.random.default_rng(8), given=given, method=method)
    assert (codes[:, 1] == 1).all()
    assert (codes[:, 3] == 0).all()
    others = ("a", "c", "e")
    observed = counts(model.domain.project(others), codes[:, [0, 2, 4]])
    joint = Factor(model.domain.columns, model.marginal(model.domain.columns).take([1], 1))
    kept = Factor(joint.columns, joint.values.take([0], 3)).marginal(others).values
    expected = 20_000 * kept / kept.sum()
    statistic = np.sum((observed - expected) ** 2 / expected)
    assert statistic < chi2.ppf(1 - 1e-6, expected.size - 1)


def test_rows_within_a_group_are_shuffled():
    model = random_model("single column")
    codes = model.sample(1000, np.random.default_rng(9))[:, 0]
    assert (np.diff(codes) < 0).any()


def test_bad_requests_are_refused():
    model = random_model("chain")
    rng = np.random.default_rng(0)
    with pytest.raises(MethodError, match="method"):
        model.sample(5, rng, method="guess")
    with pytest.raises(MethodError, match="rows"):
        model.sample(-1, rng)
