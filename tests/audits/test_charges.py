"""Figures that everything else is built on: pure sums, parts of a budget, deviations of noise."""

import math

import numpy as np
import pytest
from scipy import stats

from counterpoise.errors import BudgetError
from counterpoise.vault import (
    Budget,
    Ledger,
    Perturbation,
    Share,
    count_noise,
    perturbation_for,
)
from counterpoise.vault.events import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    ExponentialDpEvent,
    GaussianDpEvent,
    PureDpEvent,
    SelfComposedDpEvent,
    pure_epsilon,
)
from counterpoise.vault.noise import Noise


def test_pure_epsilons_of_containers_add_up():
    three = SelfComposedDpEvent(ExponentialDpEvent(0.25), 3)
    assert pure_epsilon(three) == 0.75
    both = ComposedDpEvent([three, PureDpEvent(0.5), DiscreteLaplaceDpEvent(0.125, 2)])
    assert pure_epsilon(both) == 1.5
    assert pure_epsilon(ComposedDpEvent([PureDpEvent(0.5), GaussianDpEvent(9.0)])) is None
    assert pure_epsilon(SelfComposedDpEvent(GaussianDpEvent(9.0), 2)) is None


def test_a_pure_budget_pays_for_a_container_what_its_parts_cost():
    ledger = Ledger(Budget(1.0))
    ledger.spend("levels", SelfComposedDpEvent(ExponentialDpEvent(0.25), 3))
    assert ledger.epsilon_spent == 0.75
    with pytest.raises(BudgetError, match="overspend"):
        ledger.spend("more", ComposedDpEvent([PureDpEvent(0.2), PureDpEvent(0.2)]))


@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-6)], ids=["pure", "zcdp"])
def test_the_whole_of_a_budget_can_be_spent_in_parts_and_no_more(budget):
    def event(share: Share):
        if share.pure:
            return PureDpEvent(share.amount)
        return GaussianDpEvent(share.gaussian_scale(1.0))

    ledger = Ledger(budget)
    for fraction in (0.5, 0.3, 0.2):
        ledger.spend("part", event(budget.whole.part(fraction)))
    assert 0.999 < ledger.epsilon_spent / budget.epsilon <= 1
    with pytest.raises(BudgetError, match="overspend"):
        ledger.spend("more", event(budget.whole.part(1e-3)))


def test_a_total_that_overflows_fits_nowhere():
    ledger = Ledger(Budget(1.0))
    huge = Share(1e308, pure=True)
    assert ledger.fits(PureDpEvent(0.1))
    assert not ledger.fits(PureDpEvent(0.1), reserve=[huge, huge])


@pytest.mark.parametrize("share", [Share(0.1, pure=True), Share(0.02, pure=False)], ids=str)
@pytest.mark.parametrize("part", [0.1, 1.0])
def test_the_deviation_of_counts_is_that_of_their_noise(share, part):
    noise = count_noise(Budget(9.0, 0.0 if share.pure else 1e-6), share.part(part), 2)
    places = np.arange(-40 * int(noise.scale), 40 * int(noise.scale) + 1)
    far = np.abs(places) / noise.scale
    weights = np.exp(-far if share.pure else -(far**2) / 2)
    assert noise.deviation**2 == pytest.approx((weights @ places**2) / weights.sum(), rel=1e-6)


def test_every_number_of_a_minimiser_pays_for_its_rounding():
    one, many = (
        perturbation_for(
            Budget(1.0, 1e-6),
            Share(0.1, pure=False),
            size=size,
            bound=1.0,
            rows=8.0,
            regularisation=0.5,
        )
        for size in (1, 10**6)
    )
    assert one.step == many.step
    # Either neighbour is rounded by half a step a number: sqrt(q) / 2 steps in norm.
    assert many.sensitivity - one.sensitivity == pytest.approx(999 * one.step, rel=1e-6)


@pytest.mark.parametrize("size", [1, 2, 50])
def test_the_deviation_of_a_minimiser_is_that_of_its_noise(size):
    def deviation(law):
        return Perturbation(law, 3.0, 1.0, size, 0.1, PureDpEvent(1.0)).deviation

    assert deviation("gaussian") == 3.0
    assert deviation("laplace") == pytest.approx(stats.laplace(scale=3.0).std())
    # norm ~ Gamma(q, b), and every direction has as much of its square
    square = stats.gamma(size, scale=3.0).moment(2)
    assert deviation("l2-laplace") == pytest.approx(math.sqrt(square / size))


def test_seeded_noise_has_its_scale_where_no_table_is_made():
    """A scale beyond the tables: the law is rounded there, but not another one."""
    noise, nothing = Noise(seed=4), np.zeros(4000, dtype=int)
    # 4,000 draws: within 15%, except once in more than 10^9 seeds.
    assert noise.gaussian(nothing, 1e6).std() == pytest.approx(1e6, rel=0.15)
    assert noise.laplace(nothing, 1e6).std() == pytest.approx(1e6 * math.sqrt(2), rel=0.15)
