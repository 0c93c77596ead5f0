"""What is charged bounds what the noise reveals: the discrete laws are added up and compared."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, ZCDpEvent
from dp_accounting.rdp import RdpAccountant

from counterpoise.vault import Budget
from counterpoise.vault.budget import best_renyi_limit, epsilon_of_divergence
from counterpoise.vault.divergence import renyi_divergence
from counterpoise.vault.events import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    ExponentialDpEvent,
    NoOpDpEvent,
    PureDpEvent,
)

ORDERS = np.array([1.05, 1.5, 2.0, 2.5, 3.0, 7.0, 12.3, 20.0])


def log_law(exponents: np.ndarray) -> np.ndarray:
    return exponents - np.logaddexp.reduce(exponents)


def divergence(first: np.ndarray, second: np.ndarray, order: float) -> float:
    """D_a(first | second) of two laws on the same support, given by their logarithms."""
    return float(np.logaddexp.reduce(order * first + (1 - order) * second) / (order - 1))


def gaussian_pair(scale: float, shift: int) -> tuple[np.ndarray, np.ndarray]:
    reach = math.ceil(40 * scale) + 40 * shift
    support = np.arange(-reach, reach + shift + 1, dtype=float)
    return log_law(-(support**2) / (2 * scale**2)), log_law(
        -((support - shift) ** 2) / (2 * scale**2)
    )


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(("scale", "shift"), [(0.5, 1), (1.0, 1), (2.0, 1), (3.0, 4)])
def test_a_sampled_discrete_gaussian_diverges_no_more_than_it_is_charged(rate, scale, shift):
    noise, shifted = gaussian_pair(scale, shift)
    mixed = np.logaddexp(math.log1p(-rate) + noise, math.log(rate) + shifted)
    charged = renyi_divergence(PoissonSampledDpEvent(rate, GaussianDpEvent(scale / shift)), ORDERS)
    for order, charge in zip(ORDERS, charged, strict=True):
        there, back = divergence(mixed, noise, order), divergence(noise, mixed, order)
        assert max(there, back) <= charge
        assert back <= there * (1 + 1e-9) + 1e-12  # the reflection of the grid
        if order >= 2 and order == round(order) and scale >= 2:
            # At whole orders nothing is given away either: the bound is the law, nearly.
            assert charge <= there * (1 + 1e-6)


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.2, 1.0])
@pytest.mark.parametrize("scale", [0.7, 1.5, 10.0])
def test_at_whole_orders_the_sampled_charge_is_that_of_dp_accounting(rate, scale):
    orders = np.array([2, 3, 8, 64, 500])
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(scale))
    theirs = RdpAccountant(orders).compose(event)._rdp
    assert renyi_divergence(event, orders) == pytest.approx(theirs, rel=1e-5, abs=1e-14)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_discrete_gaussian_and_laplace_diverge_no_more_than_they_are_charged(scale):
    support = np.arange(-60 * math.ceil(scale), 60 * math.ceil(scale) + 2, dtype=float)
    laplace = log_law(-np.abs(support) / scale), log_law(-np.abs(support - 1) / scale)
    for pair, event in (
        (gaussian_pair(scale, 1), GaussianDpEvent(scale)),
        (laplace, DiscreteLaplaceDpEvent(1 / scale, 1)),
    ):
        charged = renyi_divergence(event, ORDERS)
        for order, charge in zip(ORDERS, charged, strict=True):
            assert divergence(*pair, order) <= charge * (1 + 1e-12)


def test_a_selection_diverges_no_more_than_it_is_charged():
    # Scores of three candidates that move by at most 1, on which all pairs of corners are tried.
    corners = np.array(np.meshgrid(*[[0.0, 0.5, 1.0]] * 3)).reshape(3, -1).T
    for epsilon in (0.3, 1.0, 4.0):
        charged = renyi_divergence(ExponentialDpEvent(epsilon), ORDERS)
        laws = [log_law(epsilon / 2 * scores) for scores in corners]
        most = [
            max(divergence(first, second, order) for first in laws for second in laws)
            for order in ORDERS
        ]
        assert (most <= charged).all()


def test_containers_cost_the_sum_of_their_parts():
    part, other = GaussianDpEvent(2.0), PureDpEvent(0.1)
    one, two = renyi_divergence(part, ORDERS), renyi_divergence(other, ORDERS)
    assert renyi_divergence(SelfComposedDpEvent(part, 3), ORDERS) == pytest.approx(3 * one)
    assert renyi_divergence(ComposedDpEvent((part, other)), ORDERS) == pytest.approx(one + two)
    assert not renyi_divergence(NoOpDpEvent(), ORDERS).any()


def test_the_order_of_a_budget_is_the_best_for_zcdp():
    for epsilon, delta in ((0.01, 1e-9), (1.0, 1e-6), (50.0, 1e-3), (1.0, 0.5)):
        limit = best_renyi_limit(epsilon, delta)
        # The limit is what implies (epsilon, delta) there, and no other order implies it for more.
        assert epsilon_of_divergence(limit.order, limit.divergence, delta) == pytest.approx(epsilon)
        rho = limit.divergence / limit.order
        orders = 1 + (limit.order - 1) * np.geomspace(1e-2, 1e2, 1000)
        implied = epsilon_of_divergence(orders, rho * 1.000001 * orders, delta)
        assert (implied > epsilon).all()


def test_whole_orders_and_limits_agree_with_dp_accounting_on_zcdp():
    for budget in (Budget(0.5, 1e-9), Budget(3.0, 1e-6)):
        rho = budget.whole.amount
        order = budget.renyi_limit().order
        theirs = RdpAccountant([order]).compose(ZCDpEvent(rho)).get_epsilon(budget.delta)
        assert theirs == pytest.approx(budget.epsilon, rel=1e-7)
        assert theirs <= budget.epsilon
