import json
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, ZCDpEvent, get_epsilon_gaussian
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.errors import BudgetError
from counterpoise.vault import ADD_REMOVE, REPLACE, Budget, Ledger, Share
from counterpoise.vault.budget import largest_rho
from counterpoise.vault.events import PureDpEvent

epsilons = st.floats(0.01, 20)
deltas = st.sampled_from([1e-12, 1e-9, 1e-6, 1e-3])


@given(epsilons, deltas)
def test_the_largest_rho_implies_the_budget_and_hardly_less(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    # No worse than the textbook's conversion of zCDP, no better than Gaussian noise allows.
    textbook = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2
    assert rho >= 0.99 * textbook
    assert get_epsilon_gaussian(1 / math.sqrt(2 * rho), delta) <= epsilon
    budget = Budget(epsilon, delta)
    ledger = Ledger(budget)
    share = budget.whole
    ledger.spend("all", GaussianDpEvent(share.gaussian_scale(1.0)))
    assert 0.999 * epsilon <= ledger.epsilon_spent <= epsilon


@given(epsilons, deltas, st.lists(st.floats(0.01, 10), min_size=1, max_size=30))
def test_shares_add_up_to_the_whole(epsilon, delta, weights):
    whole = Budget(epsilon, delta).whole
    parts = whole.split(*weights)
    assert math.fsum(part.amount for part in parts) == pytest.approx(whole.amount, rel=1e-12)
    for part, weight in zip(parts, weights, strict=True):
        assert part.amount / whole.amount == pytest.approx(weight / math.fsum(weights))


def test_the_orders_are_no_worse_than_those_of_dp_accounting():
    for epsilon in (0.1, 1.0, 8.0):
        rho = largest_rho(epsilon, 1e-9)
        theirs = RdpAccountant().compose(GaussianDpEvent(1 / math.sqrt(2 * rho))).get_epsilon(1e-9)
        assert epsilon <= theirs * (1 + 1e-4)


def test_a_share_calibrates_each_noise_by_its_closed_form():
    share = Share(0.08, pure=False)
    assert share.gaussian_scale(2.0) == pytest.approx(2.0 / math.sqrt(0.16))
    assert share.laplace_scale(3.0) == pytest.approx(3.0 / math.sqrt(0.16))
    assert share.selection_epsilon == pytest.approx(0.8)
    pure = Share(0.5, pure=True)
    assert pure.laplace_scale(3.0) == 6.0
    assert pure.selection_epsilon == 0.5
    with pytest.raises(BudgetError, match="delta > 0"):
        pure.gaussian_scale(1.0)


def test_sensitivities_follow_the_neighbours_and_the_rows_of_a_person():
    one = Budget(1.0, 1e-6)
    assert one.count_sensitivity(4) == (2.0, 4)
    assert one.row_sensitivity(1.5) == 1.5
    replaced = Budget(1.0, 1e-6, "replace", max_rows_per_person=3)
    assert replaced.count_sensitivity(2) == (6.0, 12)
    assert replaced.row_sensitivity(1.5) == 9.0


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": "1"}, "epsilon: expected a positive number, not '1'"),
        ({"epsilon": None}, "epsilon: expected a positive number, not None"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": 1.0, "delta": "x"}, "delta: expected a number from 0 to below 1, not 'x'"),
        ({"epsilon": 1.0, "delta": None}, "delta: expected a number from 0 to below 1, not None"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": -1e-9}, "delta"),
        ({"epsilon": 1.0, "neighbours": "swap"}, "neighbours"),
        ({"epsilon": 1.0, "max_rows_per_person": 0}, "max_rows_per_person"),
        ({"epsilon": 1.0, "max_rows_per_person": True}, "max_rows_per_person"),
        ({"epsilon": 1.0, "max_rows_per_person": 1.5}, "max_rows_per_person"),
        ({"epsilon": 1.0, "max_rows_per_person": 10**9}, "max_rows_per_person"),
        ({"epsilon": 1.0, "neighbours": ["replace"]}, "neighbours"),
        ({"epsilon": 1.0, "neighbours": None}, "neighbours"),
        ({"epsilon": 1e300}, "at most 10,000"),
        ({"epsilon": 10**400}, "epsilon"),
        ({"epsilon": 1e-12}, "too small a budget"),
        ({"epsilon": 5e-324}, "too small a budget"),
        ({"epsilon": 1e-12, "delta": 1e-12}, "too small a budget"),
        ({"epsilon": 5e-324, "delta": 5e-324}, "too small a budget"),
    ],
)
def test_a_wrong_budget_is_refused_by_name(parameters, named):
    with pytest.raises(BudgetError, match=named):
        Budget(**parameters)


@given(epsilons, st.sampled_from([0.0, 1e-9]), st.sampled_from([ADD_REMOVE, REPLACE]))
def test_a_budget_survives_json(epsilon, delta, neighbours):
    budget = Budget(epsilon, delta, neighbours, max_rows_per_person=2)
    assert Budget.from_dict(budget.to_dict()) == budget


@pytest.mark.parametrize("number", [np.float32, np.float64, np.int64, np.int8])
def test_numbers_of_numpy_become_plain_ones(number):
    budget = Budget(number(2), np.float32(0.0), max_rows_per_person=np.int16(3))
    assert budget == Budget(2.0, 0.0, max_rows_per_person=3)
    assert json.loads(json.dumps(budget.to_dict())) == budget.to_dict()
    assert type(budget.epsilon) is type(budget.delta) is float
    assert type(budget.max_rows_per_person) is int
    share = Share(number(2), pure=True)
    assert type(share.amount) is type(share.part(np.float32(0.5)).amount) is float


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 100.0, 1e4])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5, 1 - 1e-12])
def test_extreme_budgets_can_be_spent_and_no_more(epsilon, delta):
    budget = Budget(epsilon, delta)
    ledger = Ledger(budget)
    assert ledger.left == budget.whole
    for part in budget.whole.split(1, 2, 3):
        event = PureDpEvent(part.amount) if part.pure else ZCDpEvent(part.amount)
        ledger.spend("part", event)
    assert ledger.epsilon_spent <= epsilon
    assert ledger.left is None
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict()))).spends == ledger.spends
    with pytest.raises(BudgetError, match="overspend"):
        ledger.spend("more", PureDpEvent(1e-3 * budget.whole.epsilon))


def test_small_budgets_are_worth_what_their_own_order_gives():
    # The best order is about 2 log(1/delta) / epsilon, beyond any fixed list of orders.
    for epsilon in (1e-3, 1e-5):
        assert largest_rho(epsilon, 1e-9) > epsilon**2 / (4 * math.log(1.01e9))


@pytest.mark.parametrize("fraction", [0.0, 1.5, -0.1, math.nan, None, "x"])
def test_a_share_is_not_taken_in_impossible_parts(fraction):
    with pytest.raises(BudgetError):
        Share(1.0, pure=True).part(fraction)


def test_delta_can_be_set_aside_but_not_all_of_it():
    budget = Budget(1.0, 1e-6)
    assert budget.whole_beside(5e-7).amount < budget.whole.amount
    with pytest.raises(BudgetError, match="set aside"):
        budget.whole_beside(1e-6)
    with pytest.raises(BudgetError, match="delta > 0"):
        Budget(1.0).whole_beside(1e-9)
