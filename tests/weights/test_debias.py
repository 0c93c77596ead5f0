"""What noise does to weights on average: closed forms against draws, and where there are none."""

import math

import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.weights.debias import (
    average_to_one,
    has_moment,
    log_moment,
    redraw,
    unbiased_shift,
)

LAWS = ["gaussian", "laplace", "l2-laplace"]
FEATURES = np.array([[1.0, 0.0, 0.0], [1.0, 0.5, -0.2], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("law", LAWS)
def test_the_moment_is_that_of_the_noise(law):
    """Over 200,000 seeded draws; the scale is such that exp(z.f) has a fourth moment."""
    scale = 0.12
    values = np.exp(FEATURES @ redraw(law, scale, 3, 200_000, np.random.default_rng(1)))
    error = values.std(axis=1) / math.sqrt(values.shape[1])
    expected = np.exp(log_moment(FEATURES, law, scale))
    assert (np.abs(values.mean(axis=1) - expected) <= 4 * error).all()
    # The test has to tell the laws apart: the moment is many errors away from one.
    assert ((expected - 1)[:3] > 5 * error[:3]).all()


@pytest.mark.parametrize("law", LAWS)
def test_in_one_dimension_both_laplace_laws_are_one(law):
    f = np.array([[0.7]])
    if law != "gaussian":
        assert log_moment(f, law, 0.5)[0] == pytest.approx(-math.log(1 - 0.35**2))
    else:
        assert log_moment(f, law, 0.5)[0] == pytest.approx(0.35**2 / 2)


@pytest.mark.parametrize("law", LAWS)
def test_redrawn_noise_has_the_variance_of_its_law(law):
    drawn = redraw(law, 0.3, 4, 100_000, np.random.default_rng(2))
    variance = {"gaussian": 0.09, "laplace": 2 * 0.09, "l2-laplace": 5 * 0.09}[law]
    assert drawn.shape == (4, 100_000)
    assert drawn.mean(axis=1) == pytest.approx(np.zeros(4), abs=0.01)
    assert drawn.var(axis=1) == pytest.approx(np.full(4, variance), rel=0.03)
    assert np.corrcoef(drawn)[0, 1] == pytest.approx(0, abs=0.02)


def test_the_moment_exists_while_the_tails_are_light_enough():
    rows = np.array([[0.6, 0.8], [0.1, 0.1]])
    assert has_moment(rows, "gaussian", 1e6)
    # Laplace noise looks at the largest coordinate, L2-Laplace noise at the norm.
    assert has_moment(rows, "laplace", 1.2) and not has_moment(rows, "laplace", 1.25)
    assert has_moment(rows, "l2-laplace", 0.99) and not has_moment(rows, "l2-laplace", 1.0)
    assert has_moment(np.empty((0, 2)), "laplace", 9.0)
    with pytest.raises(MethodError, match=r"noise='gaussian'.*debias=False"):
        log_moment(rows, "l2-laplace", 1.0)


def test_no_noise_has_no_bias():
    assert log_moment(FEATURES, "none", 0.0) == pytest.approx(np.zeros(4))
    assert redraw("none", 0.0, 3, 2, np.random.default_rng(0)).tolist() == [[0, 0]] * 3
    assert unbiased_shift("none", 0.0) == 0


def test_the_shift_of_single_log_weights():
    # Corollaries 1 and 2: log(1 - b^2) and -s^2 / 2
    assert unbiased_shift("laplace", 0.5) == pytest.approx(math.log(0.75))
    assert unbiased_shift("gaussian", 0.5) == pytest.approx(-0.125)
    with pytest.raises(MethodError, match=r"heavy-tailed.*fewer rows") as refused:
        unbiased_shift("laplace", 1.0)
    # Log-weights that are noised one by one are always shifted.
    assert "debias" not in str(refused.value)


def test_replicate_columns_average_to_one():
    generator = np.random.default_rng(0)
    logs, base = generator.normal(size=(50, 7)), generator.gamma(1.0, size=(50, 7))
    found = average_to_one(logs, base)
    assert found.mean(axis=0) == pytest.approx(np.ones(7))
    assert found / found[0] == pytest.approx(np.exp(logs - logs[0]) * base / base[0])
    # Nothing overflows, however far apart the log-weights are.
    assert average_to_one(1e4 * logs, base).mean(axis=0) == pytest.approx(np.ones(7))


def test_a_replicate_without_any_weighted_row_falls_back_to_its_base():
    logs = np.array([[0.0, 0.0], [-np.inf, -np.inf]])
    base = np.array([[1.0, 0.0], [1.0, 3.0]])
    assert average_to_one(logs, base).tolist() == [[2.0, 0.0], [0.0, 2.0]]
