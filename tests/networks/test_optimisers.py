"""Optimisers: the published update rules by hand, and a minimum that all of them find."""

import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.networks import OPTIMISERS, Optimiser


@pytest.mark.parametrize("name", OPTIMISERS)
def test_all_of_them_go_down_a_bowl(name):
    rule, point = Optimiser(name, rate=0.05), np.array([3.0, -2.0])
    state = rule.start(2)
    for _ in range(500):
        point, state = rule.step(point, point * np.array([1.0, 10.0]), state)
    assert np.abs(point).max() < 0.06


def test_adam_does_as_published():
    rule, point = Optimiser("adam", rate=0.1), np.array([1.0])
    state, average, square = rule.start(1), 0.0, 0.0
    expected = 1.0
    for step, gradient in enumerate([0.5, -0.2, 0.9], start=1):
        average, square = 0.9 * average + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        ratio = (average / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        expected -= 0.1 * ratio
        point, state = rule.step(point, np.array([gradient]), state)
        assert point[0] == pytest.approx(expected, rel=1e-12)
    assert state.steps == 3


def test_rmsprop_divides_by_the_running_root_mean_square():
    rule = Optimiser("rmsprop", rate=0.1, square_memory=0.9)
    point, _ = rule.step(np.array([1.0]), np.array([2.0]), rule.start(1))
    assert point[0] == pytest.approx(1 - 0.1 * 2 / np.sqrt(0.1 * 4))


@pytest.mark.parametrize("wrong", [{"name": "lbfgs"}, {"rate": 0}, {"memory": 1.0}, {"rate": "x"}])
def test_odd_rules_are_refused(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        Optimiser(**wrong)
