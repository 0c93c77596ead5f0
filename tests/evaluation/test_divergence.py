"""The divergence by neighbours is close to closed forms, weighted and not."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma
from sklearn.neighbors import NearestNeighbors

from counterpoise.errors import MethodError
from counterpoise.evaluation import coordinates, neighbour_divergence
from counterpoise.schema import Column, Schema

PLANE = Schema([Column.continuous("x", -8, 8), Column.continuous("y", -8, 8)])


def normal(rows, seed, shift=0.0, deviation=1.0):
    drawn = shift + deviation * np.random.default_rng(seed).normal(size=(rows, 2))
    return drawn, PLANE.encode(pd.DataFrame(drawn, columns=["x", "y"]))


def test_it_is_that_of_two_normal_laws():
    _, right = normal(2500, 0)
    _, left = normal(2500, 1, shift=0.5, deviation=1.3)
    # KL(N(0, 1) || N(m, s^2)) = log s + (1 + m^2) / (2 s^2) - 1/2 for each column
    expected = 2 * (np.log(1.3) + (1 + 0.25) / (2 * 1.69) - 0.5)
    assert neighbour_divergence(left, right) == pytest.approx(expected, abs=0.05)


def test_weights_that_undo_the_difference_bring_it_to_zero():
    _, right = normal(2500, 0)
    drawn, left = normal(4000, 1, deviation=1.5)
    weights = np.exp((drawn**2).sum(axis=1) * (0.5 / 1.5**2 - 0.5))
    expected = 2 * (np.log(1.5) + 0.5 / 2.25 - 0.5)
    assert neighbour_divergence(left, right) == pytest.approx(expected, abs=0.05)
    assert neighbour_divergence(left, right, weights) == pytest.approx(0, abs=0.06)


def test_with_equal_weights_it_is_the_estimator_of_wang_kulkarni_and_verdu():
    _, right = normal(60, 2)
    _, left = normal(80, 3, shift=0.3)
    x, y = coordinates(left), coordinates(right)
    near = NearestNeighbors().fit(y).kneighbors(y, 6)[0][:, 5]
    far = NearestNeighbors().fit(x).kneighbors(y, 5)[0][:, 4]
    radius = np.maximum(near, far) + 1e-9
    inside = [
        [(np.linalg.norm(points - row, axis=1) <= reach).sum() for points in (y, x)]
        for row, reach in zip(y, radius, strict=True)
    ]
    real, synthetic = np.array(inside).T
    expected = np.mean(digamma(real - 1) - digamma(synthetic)) + np.log(80 / 59)
    assert neighbour_divergence(left, right) == pytest.approx(expected)


def test_rows_that_are_alike_are_counted():
    schema = Schema([Column.categorical("c", list("abc"))])
    left = schema.encode(pd.DataFrame({"c": list("abc") * 400}))
    right = schema.encode(pd.DataFrame({"c": ["a"] * 600 + ["b"] * 300 + ["c"] * 100}))
    shares = np.array([0.6, 0.3, 0.1])
    assert neighbour_divergence(left, right) == pytest.approx(shares @ np.log(3 * shares), abs=0.01)
    weights = np.tile(shares, 400)
    assert neighbour_divergence(left, right, weights) == pytest.approx(0, abs=0.01)


def test_too_few_rows_are_refused():
    _, few = normal(5, 0)
    _, many = normal(50, 1)
    for tables in ((few, few), (normal(4, 0)[1], many)):
        with pytest.raises(MethodError, match="neighbours"):
            neighbour_divergence(*tables)
