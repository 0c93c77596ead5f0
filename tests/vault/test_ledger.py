import contextlib
import json
import math

import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.errors import BudgetError
from counterpoise.vault import REPLACE, Budget, Ledger
from counterpoise.vault.events import (
    DiscreteLaplaceDpEvent,
    ExponentialDpEvent,
    PureDpEvent,
    event_from_dict,
    event_to_dict,
    pure_epsilon,
)

events = st.one_of(
    st.floats(0.5, 100).map(GaussianDpEvent),
    st.floats(0.5, 100).map(LaplaceDpEvent),
    st.floats(0.001, 2).map(PureDpEvent),
    st.floats(0.001, 2).map(ExponentialDpEvent),
    st.floats(1e-5, 1).map(ZCDpEvent),
    st.builds(DiscreteLaplaceDpEvent, st.floats(0.01, 1), st.integers(1, 5)),
)
pure_events = events.filter(lambda event: pure_epsilon(event) is not None)


def sampled(rate, noise_multiplier):
    return PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier))


def as_zcdp(event):
    """The event as dp_accounting can add it up, by the textbook's rho."""
    if isinstance(event, ExponentialDpEvent):
        return ZCDpEvent(event.epsilon**2 / 8)
    epsilon = pure_epsilon(event)
    return event if epsilon is None else ZCDpEvent(epsilon**2 / 2)


@settings(max_examples=60)
@given(st.floats(0.1, 5), st.lists(events, max_size=25))
def test_no_sequence_of_spends_exceeds_the_budget(epsilon, sequence):
    ledger = Ledger(Budget(epsilon, 1e-6))
    for index, event in enumerate(sequence):
        before = (ledger.epsilon_spent, ledger.spends)
        try:
            ledger.spend(f"query {index}", event)
        except BudgetError:
            assert (ledger.epsilon_spent, ledger.spends) == before
        assert ledger.epsilon_spent <= epsilon
    # Told again by dp_accounting from nothing, the total is no less.
    accountant = RdpAccountant(neighboring_relation=ledger.budget.neighbours)
    for spend in ledger.spends:
        accountant.compose(as_zcdp(spend.event))
    assert ledger.epsilon_spent <= accountant.get_epsilon(1e-6) * 1.01 + 1e-9


@settings(max_examples=60)
@given(st.floats(0.1, 5), st.lists(pure_events, max_size=25))
def test_no_sequence_of_pure_spends_exceeds_a_pure_budget(epsilon, sequence):
    ledger = Ledger(Budget(epsilon))
    kept = []
    for event in sequence:
        try:
            ledger.spend("query", event)
            kept.append(pure_epsilon(event))
        except BudgetError:
            assert math.fsum([*kept, pure_epsilon(event)]) > epsilon
    assert ledger.epsilon_spent == math.fsum(kept) <= epsilon


def test_gaussian_events_add_up_as_zcdp_does():
    ledger = Ledger(Budget(3.0, 1e-6))
    for scale in (5.0, 7.0, 9.0):
        ledger.spend("query", GaussianDpEvent(scale))
    together = Ledger(Budget(3.0, 1e-6))
    together.spend("query", ZCDpEvent(sum(1 / (2 * scale**2) for scale in (5.0, 7.0, 9.0))))
    assert ledger.epsilon_spent == pytest.approx(together.epsilon_spent, rel=1e-12)


def test_laplace_events_add_up_to_their_epsilons():
    ledger = Ledger(Budget(1.0))
    ledger.spend("first", LaplaceDpEvent(4.0))
    ledger.spend("second", DiscreteLaplaceDpEvent(0.05, 3))
    assert ledger.epsilon_spent == pytest.approx(0.4)


def test_subsampled_gaussian_costs_what_dp_accounting_says():
    event = SelfComposedDpEvent(sampled(0.01, 1.0), 1000)
    ledger = Ledger(Budget(3.0, 1e-5))
    ledger.spend("training", event)
    theirs = RdpAccountant().compose(event).get_epsilon(1e-5)
    assert theirs * (1 - 1e-3) <= ledger.epsilon_spent <= theirs * 1.01
    assert ledger.epsilon_spent == pytest.approx(2.10, abs=0.02)
    assert ledger.tighter_epsilon is None  # discrete noise of this scale is not as good
    calmer = Ledger(Budget(3.0, 1e-5))
    calmer.spend("training", SelfComposedDpEvent(sampled(0.02, 2.0), 1000))
    assert 0.85 * calmer.epsilon_spent < calmer.tighter_epsilon < calmer.epsilon_spent


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_tighter_figure_is_below_the_guarantee_under_both_relations(neighbours):
    ledger = Ledger(Budget(1.0, 1e-6, neighbours))
    ledger.spend("counts", GaussianDpEvent(ledger.budget.whole.gaussian_scale(1.0)))
    assert 0.85 < ledger.tighter_epsilon < ledger.epsilon_spent <= 1.0


def test_the_tighter_figure_is_not_claimed_where_discrete_noise_is_easier_to_see_through():
    ledger = Ledger(Budget(20.0, 1e-6))
    ledger.spend("counts", GaussianDpEvent(0.5))
    assert ledger.tighter_epsilon is None


def test_subsampling_under_replacement_is_refused():
    ledger = Ledger(Budget(3.0, 1e-5, REPLACE))
    with pytest.raises(BudgetError, match="add-remove"):
        ledger.spend("training", PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)))


def test_a_pure_budget_takes_no_gaussian():
    with pytest.raises(BudgetError, match="delta > 0"):
        Ledger(Budget(1.0)).spend("query", GaussianDpEvent(100.0))


def test_selection_is_cheaper_than_a_pure_mechanism_of_the_same_epsilon():
    spent = []
    for event in (ExponentialDpEvent(0.5), PureDpEvent(0.5)):
        ledger = Ledger(Budget(20.0, 1e-6))
        for _ in range(20):
            ledger.spend("query", event)
        spent.append(ledger.epsilon_spent)
    assert spent[0] < 0.6 * spent[1]


def test_delta_for_thresholds_is_set_aside_before_anything_is_spent():
    ledger = Ledger(Budget(2.0, 1e-6), threshold_delta=5e-7)
    plain = Ledger(Budget(2.0, 1e-6))
    for each in (ledger, plain):
        each.spend("counts", GaussianDpEvent(5.0))
    assert ledger.delta_set_aside == 5e-7
    assert ledger.epsilon_spent > plain.epsilon_spent
    before = ledger.epsilon_spent
    for _ in range(3):  # parts that add up to all of it, but for rounding
        ledger.spend("categories", ZCDpEvent(1e-12), delta=5e-7 / 3)
    assert ledger.epsilon_spent == pytest.approx(before, rel=1e-6)
    with pytest.raises(BudgetError, match="threshold_delta"):
        ledger.spend("more categories", ZCDpEvent(1e-12), delta=1e-12)
    assert not ledger.fits(ZCDpEvent(1e-12), delta=1e-12)
    # What was not set aside cannot be had later, however little is spent.
    with pytest.raises(BudgetError, match="threshold_delta"):
        Ledger(Budget(2.0, 1e-6)).spend("categories", ZCDpEvent(1e-12), delta=1e-12)


@pytest.mark.parametrize("set_aside", [0.0, 1e-7, 9e-7])
def test_shares_that_add_up_to_the_whole_are_accepted(set_aside):
    budget = Budget(1.0, 1e-6)
    ledger = Ledger(budget, threshold_delta=set_aside)
    for part in budget.whole_beside(set_aside).split(*range(1, 40)):
        ledger.spend("part", GaussianDpEvent(part.gaussian_scale(1.0)))
    assert ledger.epsilon_spent == pytest.approx(1.0, abs=1e-6)
    assert ledger.left is None


@settings(max_examples=25)
@given(st.floats(0.3, 5), st.lists(events, max_size=4), st.floats(0.1, 0.6))
def test_calibration_fills_what_is_left_and_no_more(epsilon, sequence, reserved):
    ledger = Ledger(Budget(epsilon, 1e-6))
    for event in sequence:
        if ledger.fits(event, reserve=[ledger.budget.whole.part(0.65)]):
            ledger.spend("earlier", event)
    reserve = ledger.budget.whole.part(reserved)
    noise = ledger.calibrate(GaussianDpEvent, 1e-3, 1e6, reserve=[reserve])
    ledger.spend("calibrated", GaussianDpEvent(noise))
    assert ledger.fits(ZCDpEvent(reserve.amount))
    assert not ledger.fits(ZCDpEvent(reserve.amount), reserve=[ledger.budget.whole.part(0.02)])


def test_calibration_says_when_nothing_fits():
    ledger = Ledger(Budget(0.1, 1e-6))
    with pytest.raises(BudgetError, match="larger budget"):
        ledger.calibrate(GaussianDpEvent, 0.1, 1.0)


@settings(max_examples=30)
@given(st.floats(0.5, 3), st.lists(events, max_size=6), st.sampled_from([0.0, 1e-6]))
def test_what_is_left_can_be_spent_and_then_nothing_is(epsilon, sequence, delta):
    ledger = Ledger(Budget(epsilon, delta))
    for event in sequence:
        if delta or pure_epsilon(event) is not None:
            with contextlib.suppress(BudgetError):
                ledger.spend("query", event)
    left = ledger.left
    if left is None:
        return
    ledger.spend("rest", PureDpEvent(left.amount) if left.pure else ZCDpEvent(left.amount))
    rest = ledger.left
    assert rest is None or rest.amount < 1e-4 * ledger.budget.whole.amount


@settings(max_examples=20)
@given(st.lists(events, max_size=5), st.booleans())
def test_a_ledger_survives_json(sequence, private):
    ledger = Ledger(Budget(1000.0, 1e-6, max_rows_per_person=2), private)
    for index, event in enumerate(sequence):
        ledger.stage = f"stage {index % 2}"
        ledger.spend(f"query {index}", event)
    again = Ledger.from_dict(json.loads(json.dumps(ledger.to_dict())))
    assert again.to_dict() == ledger.to_dict()
    assert again.to_frame().equals(ledger.to_frame())
    assert str(again) == str(ledger)


@given(events)
def test_an_event_survives_json(event):
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event


def test_a_file_cannot_make_any_other_object():
    with pytest.raises(BudgetError, match="unknown privacy event"):
        event_from_dict({"event": "NonPrivateDpEvent"})
    with pytest.raises(BudgetError, match="does not take"):
        event_from_dict({"event": "GaussianDpEvent", "surprise": 1})


def test_the_table_shows_every_spend_with_the_running_total():
    ledger = Ledger(Budget(2.0, 1e-6))
    ledger.stage = "synthesizer"
    ledger.spend("counts of age", GaussianDpEvent(8.0))
    ledger.spend("selection", ExponentialDpEvent(0.3))
    frame = ledger.to_frame()
    assert frame["query"].tolist() == ["counts of age", "selection"]
    assert frame["epsilon so far"].iloc[-1] == ledger.epsilon_spent
    # Alone, a pure mechanism costs no more than its pure epsilon.
    assert frame["epsilon alone"].iloc[1] == pytest.approx(0.3, abs=1e-5)
    shown = str(ledger)
    assert "epsilon" in shown.splitlines()[0]
    assert "counts of age" in shown
    assert len({len(line) for line in shown.splitlines()[1:]}) == 1  # aligned


def test_a_seeded_ledger_says_that_it_is_not_private():
    assert "NOT PRIVATE" in str(Ledger(Budget(1.0), private=False))
