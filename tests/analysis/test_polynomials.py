"""Polynomials close to a loss: against what is known of the best ones."""

from dataclasses import dataclass

import numpy as np
import pytest

from counterpoise.analysis.margin_losses import LOSSES, MarginLoss
from counterpoise.analysis.polynomials import bernstein, minimax

LOGISTIC = LOSSES["logistic"]


@dataclass(frozen=True)
class Power(MarginLoss):
    """t^power, whose best polynomial of one degree less is known."""

    name: str = "power"
    power: int = 5
    most_bend: float = 20.0

    def value(self, margins):
        return margins**self.power

    def slope(self, margins):
        return self.power * margins ** (self.power - 1)


def test_the_best_polynomial_for_a_power_is_off_by_chebyshevs_error():
    # min over degree n - 1 of max |t^n - p(t)| on [-1, 1] is 2^(1 - n)
    for power in (2, 3, 5):
        found = minimax(Power(power=power, most_bend=20.0), power - 1, 1.0)
        assert found.error == pytest.approx(2.0 ** (1 - power), rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
@pytest.mark.parametrize("degree", [1, 2, 5])
def test_no_interpolation_at_chebyshevs_points_is_closer_than_the_best(loss, degree):
    reach = 3.0
    found = minimax(loss, degree, reach)
    margins = np.linspace(-reach, reach, 5001)
    other = np.polynomial.Chebyshev.interpolate(loss.value, degree, domain=[-reach, reach])
    theirs = np.abs(other(margins) - loss.value(margins)).max()
    assert found.error <= theirs + 1e-6
    # The interpolation is known to be within a factor of the best, 1 + its Lebesgue constant.
    assert theirs <= found.error * (2 + 2 / np.pi * np.log(degree + 1) + 1) + 1e-6


@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
@pytest.mark.parametrize("make", [minimax, bernstein])
def test_stated_errors_hold_between_the_points_of_the_grid(loss, make):
    found = make(loss, 4, 2.0)
    margins = np.random.default_rng(0).uniform(-2, 2, 50_000)
    errors = np.abs(found(margins) - loss.value(margins))
    assert errors.max() <= found.error <= errors.max() * 1.001 + 1e-6
    slopes = np.polynomial.Polynomial(found.coefficients).deriv()(margins) - loss.slope(margins)
    assert np.abs(slopes).max() <= found.slope_error


def test_figure_1_of_zhou_and_others():
    # On [-5, 5] with degree 4, Bernstein's errors are the printed ones. The printed "minimax" of
    # 0.061 is no minimax: the best polynomial is three times closer, and no Bernstein beats it.
    printed = {1: 0.545, 4: 0.100, 9: 0.057}
    best = minimax(LOGISTIC, 4, 5.0)
    for iterations, error in printed.items():
        found = bernstein(LOGISTIC, 4, 5.0, iterations)
        assert found.error == pytest.approx(error, abs=6e-4)
        assert found.error > best.error
    assert best.error == pytest.approx(0.0202, abs=1e-4)
    theirs = np.polynomial.Polynomial([0.71, -0.5, 0.1096, 0, -0.0015])
    margins = np.linspace(-5, 5, 2001)
    assert np.abs(theirs(margins) - LOGISTIC.value(margins)).max() == pytest.approx(0.062, abs=1e-3)


def test_bernsteins_polynomial_is_its_definition():
    found = bernstein(LOGISTIC, 2, 1.0)
    # f(-1) (1 - s)^2 + 2 f(0) s (1 - s) + f(1) s^2 with s = (t + 1) / 2, at t = 1/2
    values = LOGISTIC.value(np.array([-1.0, 0.0, 1.0]))
    expected = values @ np.array([0.0625, 0.375, 0.5625])
    assert found(np.array([0.5]))[0] == pytest.approx(expected)


def test_the_squared_loss_is_its_own_polynomial():
    found = minimax(LOSSES["squared"], 2, 3.0)
    assert found.error < 1e-6
    assert found.coefficients == pytest.approx([1, -2, 1], abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
def test_slopes_and_bends_are_the_derivatives(loss):
    margins, step = np.linspace(-3, 3, 301) + 1e-3, 1e-6
    ahead, behind = margins + step, margins - step
    slopes = (loss.value(ahead) - loss.value(behind)) / (2 * step)
    assert loss.slope(margins) == pytest.approx(slopes, abs=1e-4)
    bends = (loss.slope(ahead) - loss.slope(behind)) / (2 * step)
    assert loss.bend(margins) == pytest.approx(bends, abs=1e-3)
    assert bends.max() <= loss.most_bend * (1 + 1e-6)
    assert np.abs(slopes).max() <= loss.lipschitz(3.01) * (1 + 1e-6)
    assert (loss.bend(margins) >= loss.least_bend(np.full(301, 3.01)) - 1e-9).all()
