"""Importance-weighted statistics: by hand, on average, by copies; and gradients by differences."""

import numpy as np
import pytest

from counterpoise import importance
from counterpoise.errors import MethodError
from counterpoise.importance import losses
from counterpoise.importance.averages import random_groups, single_coefficients
from tests.odd import foreign_errors


@pytest.fixture
def generator():
    return np.random.default_rng(5)


def kernel(x, y, widths):
    squares = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)
    return np.mean([np.exp(-squares / (2 * width**2)) for width in widths], axis=0)


def by_loops(matrix, weights, normalised, with_itself):
    """Table 3.1, term by term."""
    above = below = 0.0
    rows = range(len(weights))
    pairs = [(i, j) for i in rows for j in rows if with_itself or i != j]
    for i, j in pairs:
        above += weights[i] * weights[j] * matrix[i, j]
        below += weights[i] * weights[j] if normalised else 1.0
    return above / below


def test_averages_are_those_of_the_table(generator):
    values, weights = generator.normal(size=7), generator.gamma(2, size=7)
    assert importance.average(values, weights, "iw") == pytest.approx(np.mean(weights * values))
    assert importance.average(values, weights) == pytest.approx(
        np.sum(weights * values) / np.sum(weights)
    )
    repeated = np.repeat(values, np.ceil(weights).astype(int))
    assert importance.average(values, weights, "id") == pytest.approx(repeated.mean())
    parts = random_groups(7, 3, seed=1)
    median = np.median([np.mean((weights * values)[part]) for part in parts])
    assert importance.average(values, weights, "miw", groups=3, seed=1) == pytest.approx(median)


@pytest.mark.parametrize("with_itself", [False, True])
def test_statistics_of_pairs_are_those_of_the_table(generator, with_itself):
    matrix, weights = generator.normal(size=(6, 6)), generator.gamma(2, size=6)
    found = importance.v_statistic if with_itself else importance.u_statistic
    for estimator, normalised in (("iw", False), ("sniw", True)):
        expected = by_loops(matrix, weights, normalised, with_itself)
        assert found(matrix, weights, estimator) == pytest.approx(expected)
    times = np.ceil(weights).astype(int)
    rows = np.repeat(np.arange(6), times)
    expected = by_loops(matrix[np.ix_(rows, rows)], np.ones(len(rows)), False, with_itself)
    assert found(matrix, weights, "id") == pytest.approx(expected)
    assert found(matrix, np.ones(6), "iw") == pytest.approx(found(matrix))
    parts = random_groups(6, 2, seed=3)
    halves = [by_loops(matrix[np.ix_(p, p)], weights[p], False, with_itself) for p in parts]
    median = np.median(halves)
    assert found(matrix, weights, "miw", groups=2, seed=3) == pytest.approx(median)


def test_weights_by_a_known_modifier_are_right_on_average():
    """Rows of density M(x) = 2x on the unit interval; the target is uniform."""
    generator = np.random.default_rng(0)
    found = []
    for _ in range(4000):
        x = np.sqrt(generator.random(40))
        # One over M is unbounded; bounded away from zero by M = (1 + 2x) / 2 in half of the rows
        x = np.where(generator.random(40) < 0.5, x, generator.random(40))
        weights = 1 / (0.5 + x)
        pairs = np.abs(x[:, None] - x[None, :])
        found.append(
            [
                importance.average(x, weights, "iw"),
                importance.u_statistic(pairs, weights, "iw"),
                importance.average(x),
                importance.average(x, 17 * weights),
            ]
        )
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    assert abs(means[0] - 1 / 2) < 4 * errors[0]
    assert abs(means[1] - 1 / 3) < 4 * errors[1]
    assert means[2] > 0.57  # without weights: 7/12
    assert abs(means[3] - 1 / 2) < 4 * errors[3] + 0.003  # a bias of about 1/n, whatever the scale


def test_the_median_of_means_is_not_decided_by_one_row(generator):
    values, weights = generator.normal(1, 0.1, size=100), np.ones(100)
    weights[0] = 1e6
    assert importance.average(values, weights, "iw") > 1000
    assert importance.average(values, weights, "miw", groups=5, seed=0) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("estimator", importance.ESTIMATORS)
@pytest.mark.parametrize("with_itself", [False, True])
def test_the_discrepancy_is_that_of_the_equations(generator, estimator, with_itself):
    x, y = generator.normal(size=(9, 2)), generator.normal(size=(6, 2)) + 0.5
    weights, widths = generator.gamma(2, size=9), (0.5, 2.0)

    def one(x, y, weights, normalised):
        own = by_loops(kernel(x, x, widths), weights, normalised, with_itself)
        other = by_loops(kernel(y, y, widths), np.ones(len(y)), False, with_itself)
        across = weights @ kernel(x, y, widths)
        across = across / (weights.sum() if normalised else len(weights))
        return own + other - 2 * across.mean()

    found = importance.mean_discrepancy(
        x, y, weights, estimator, widths, with_itself, groups=3, seed=2
    )
    if estimator == "miw":
        parts = zip(random_groups(9, 3, 2), random_groups(6, 3, 2), strict=True)
        expected = np.median([one(x[a], y[b], weights[a], False) for a, b in parts])
    elif estimator == "id":
        rows = np.repeat(np.arange(9), np.ceil(weights).astype(int))
        expected = one(x[rows], y, np.ones(len(rows)), False)
    else:
        expected = one(x, y, weights, estimator == "sniw")
    assert found.value == pytest.approx(expected)


@pytest.mark.parametrize("estimator", importance.ESTIMATORS)
@pytest.mark.parametrize("with_itself", [False, True])
def test_gradients_are_those_of_finite_differences(generator, estimator, with_itself):
    x, y = generator.normal(size=(8, 3)), generator.normal(size=(6, 3)) + 0.5
    weights = generator.gamma(2, size=8)

    def loss(x, y):
        return importance.mean_discrepancy(
            x, y, weights, estimator, (0.7, 1.5), with_itself, groups=2, seed=4
        )

    found, step = loss(x, y), 1e-6
    for place in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[place] = step
        slope = (loss(x + moved, y).value - loss(x - moved, y).value) / (2 * step)
        assert found.of_real[place] == pytest.approx(slope, abs=1e-8)
    for place in np.ndindex(y.shape):
        moved = np.zeros_like(y)
        moved[place] = step
        slope = (loss(x, y + moved).value - loss(x, y - moved).value) / (2 * step)
        assert found.of_generated[place] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("estimator", importance.ESTIMATORS)
def test_cross_entropy_and_its_gradients(generator, estimator):
    real, generated = generator.normal(size=9), generator.normal(size=5)
    weights = generator.gamma(2, size=9)

    def loss(real, generated):
        return importance.cross_entropy(real, generated, weights, estimator, groups=3, seed=1)

    found = loss(real, generated)
    by_hand = importance.average(-np.log(1 / (1 + np.exp(-real))), weights, estimator, 3, 1)
    by_hand += np.mean(-np.log(1 - 1 / (1 + np.exp(-generated))))
    assert found.value == pytest.approx(by_hand)
    for logits, gradient, move in (
        (real, found.of_real, lambda by: loss(real + by, generated)),
        (generated, found.of_generated, lambda by: loss(real, generated + by)),
    ):
        for place in range(len(logits)):
            by = np.zeros(len(logits))
            by[place] = 1e-6
            slope = (move(by).value - move(-by).value) / 2e-6
            assert gradient[place] == pytest.approx(slope, abs=1e-8)


def test_blocks_of_rows_change_nothing(generator, monkeypatch):
    x, y = generator.normal(size=(50, 2)), generator.normal(size=(31, 2))
    weights = generator.gamma(2, size=50)
    whole = importance.mean_discrepancy(x, y, weights)
    monkeypatch.setattr(losses, "BLOCK_ROWS", 7)
    parts = importance.mean_discrepancy(x, y, weights)
    assert parts.value == pytest.approx(whole.value)
    assert parts.of_real == pytest.approx(whole.of_real)
    assert parts.of_generated == pytest.approx(whole.of_generated)


def test_descending_the_weighted_discrepancy_leads_to_the_target(generator):
    """Rows have their mean at one by thinning; weighted, generated points settle around zero."""
    x = generator.normal(1.0, 1.0, size=(400, 1))
    # N(0, 1) over N(1, 1), up to a scale
    weights = np.exp(-x[:, 0])
    y = generator.normal(2.0, 0.5, size=(100, 1))
    plain = y.copy()
    for _ in range(300):
        y = y - 40 * importance.mean_discrepancy(x, y, weights, widths=1.5).of_generated
        plain = plain - 40 * importance.mean_discrepancy(x, plain, widths=1.5).of_generated
    assert abs(y.mean()) < 0.25
    assert abs(plain.mean() - 1) < 0.25


def test_a_weight_function_is_learned_from_few_points(generator):
    points = generator.uniform(-2, 2, size=(300, 2))
    thinning = 1 / (1 + np.exp(-(1.5 * points[:, 0] - points[:, 1])))
    labels = generator.random(300) < thinning
    found = importance.learn_weights(points, labels, among=points)
    assert np.sqrt(np.mean((found(points) - thinning) ** 2)) < 0.08
    few = importance.learn_weights(points[:30], labels[:30], among=points)
    spread = [each.draw(points, 200, seed=1).std(axis=1).mean() for each in (found, few)]
    assert spread[1] > 1.5 * spread[0]
    factors = np.exp(points[:, 0] + generator.normal(0, 0.05, 300))
    ratio = importance.learn_weights(points[:40], factors[:40])(points) / np.exp(points[:, 0])
    assert np.std(np.log(ratio)) < 0.1


def test_coefficients_of_an_average_are_its_gradient(generator):
    values, weights = generator.normal(size=8), generator.gamma(2, size=8)
    for estimator in importance.ESTIMATORS:
        found = single_coefficients(values, weights, estimator, 3, 1)
        assert found @ values == pytest.approx(importance.average(values, weights, estimator, 3, 1))


ODD_CALLS = {
    "average": {"values": [1.0, 2.0], "weights": [1.0, 2.0], "groups": 2, "seed": 0},
    "u_statistic": {"pairs": np.eye(2), "weights": [1.0, 2.0], "estimator": "iw"},
    "v_statistic": {"pairs": np.eye(2), "weights": [1.0, 2.0], "estimator": "id"},
    "copies": {"weights": [1.0, 2.0], "factor": 2.0},
    "mean_discrepancy": {
        "real": np.ones((4, 1)),
        "generated": np.zeros((4, 1)),
        "weights": np.ones(4),
        "estimator": "miw",
        "widths": [1.0],
        "with_itself": True,
        "groups": 2,
        "seed": 0,
    },
    "cross_entropy": {"real": [0.0, 1.0], "generated": [0.0], "weights": [1.0, 1.0]},
    "learn_weights": {
        "points": np.arange(5.0)[:, None],
        "labels": [0, 1, 0, 1, 1],
        "among": np.zeros((3, 1)),
    },
}


@pytest.mark.parametrize(
    ("name", "argument"), [(name, each) for name, call in ODD_CALLS.items() for each in call]
)
def test_odd_arguments_are_refused_in_our_words(name, argument):
    assert foreign_errors(getattr(importance, name), ODD_CALLS[name], argument) == {}


@pytest.mark.parametrize(
    ("weights", "said"),
    [([1.0], "each of the 2 rows"), ([-1.0, 1.0], "from zero"), ([0.0, 0.0], "some above zero")],
)
def test_weights_that_are_none_are_refused(weights, said):
    with pytest.raises(MethodError, match=said):
        importance.average([1.0, 2.0], weights)


def test_one_row_makes_no_pair():
    with pytest.raises(MethodError, match="two rows or more"):
        importance.u_statistic([[1.0]])
    assert importance.v_statistic([[1.0]]) == 1
