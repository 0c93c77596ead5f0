"""The ledger fails shut: what it does not know, cannot compute or was not promised is refused."""

import copy
import functools
import json
import math
import os
import pickle
import sys
import threading
import time

import attr
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.errors import BudgetError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import REPLACE, Budget, Ledger, Share, Vault
from counterpoise.vault import ledger as ledger_module
from counterpoise.vault.events import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    ExponentialDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    PureDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
    event_from_dict,
    event_to_dict,
)
from counterpoise.vault.spends import Spend
from tests.forks import fork

NUMBERS = [math.nan, math.inf, -math.inf, -1.0, 0.0, None, "1", True, 1j, [1.0], np.float64("nan")]

NESTED = ComposedDpEvent(
    (
        SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), 10),
        SelfComposedDpEvent(SelfComposedDpEvent(PureDpEvent(0.001), 2), 3),
        ExponentialDpEvent(0.01),
    )
)


@attr.frozen
class Cheap(GaussianDpEvent):
    """An event that says that it is Gaussian, and is not."""


@attr.frozen
class Unheard(DpEvent):
    """An event that nobody has heard of."""


def wrong_events():
    for number in NUMBERS:
        yield PureDpEvent(number)
        yield ExponentialDpEvent(number)
        yield GaussianDpEvent(number)
        yield LaplaceDpEvent(number)
        yield DiscreteLaplaceDpEvent(number, 1)
        yield ZCDpEvent(number)
        yield SelfComposedDpEvent(GaussianDpEvent(100.0), number)
        yield PoissonSampledDpEvent(number, GaussianDpEvent(100.0))
        yield SelfComposedDpEvent(GaussianDpEvent(number), 2)
        yield ComposedDpEvent([GaussianDpEvent(100.0), PureDpEvent(number)])
    for sensitivity in (0, -1, 1.5, True, None, math.nan):
        yield DiscreteLaplaceDpEvent(0.1, sensitivity)
    yield ZCDpEvent(1e-6, -1e-3)
    yield ZCDpEvent(1e-6, math.nan)
    yield PoissonSampledDpEvent(1.5, GaussianDpEvent(100.0))
    yield PoissonSampledDpEvent(0.1, PureDpEvent(0.1))
    yield PoissonSampledDpEvent(0.1, Cheap(100.0))
    yield ComposedDpEvent([])
    yield ComposedDpEvent(None)
    yield ComposedDpEvent([Cheap(100.0)])
    yield Cheap(100.0)
    yield Unheard()
    yield None
    yield "GaussianDpEvent"
    yield GaussianDpEvent
    yield NoOpDpEvent()
    yield SelfComposedDpEvent(NoOpDpEvent(), 3)
    deep: DpEvent = PureDpEvent(1e-9)
    for _ in range(100):
        deep = SelfComposedDpEvent(deep, 1)
    yield deep
    endless: list = []
    endless.append(ComposedDpEvent(endless))
    yield endless[0]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_only_known_events_with_sensible_numbers_are_charged(delta):
    for event in wrong_events():
        ledger = Ledger(Budget(1.0, delta))
        for attempt in (
            lambda ledger=ledger, event=event: ledger.spend("query", event),
            lambda ledger=ledger, event=event: ledger.fits(event),
            lambda ledger=ledger, event=event: ledger.calibrate(lambda _: event, 1.0, 2.0),
        ):
            with pytest.raises(BudgetError):
                attempt()
        assert ledger.spends == ()
        assert ledger.epsilon_spent == 0


@pytest.mark.parametrize("delta", [-0.5, -1e-300, 1.0, math.nan, math.inf, None, "0", True, 1j])
def test_only_a_delta_from_0_to_below_1_is_charged(delta):
    ledger = Ledger(Budget(1.0, 1e-6), threshold_delta=1e-7)
    with pytest.raises(BudgetError, match="delta"):
        ledger.spend("query", GaussianDpEvent(100.0), delta)
    with pytest.raises(BudgetError, match="delta"):
        ledger.fits(GaussianDpEvent(100.0), delta)
    with pytest.raises(BudgetError):
        Ledger(Budget(1.0, 1e-6), threshold_delta=delta)
    assert ledger.spends == ()


def test_a_pure_budget_sets_no_delta_aside():
    with pytest.raises(BudgetError, match="delta"):
        Ledger(Budget(1.0), threshold_delta=1e-9)
    with pytest.raises(BudgetError, match="threshold_delta"):
        Ledger(Budget(1.0)).spend("query", PureDpEvent(0.1), 1e-9)


def test_negative_events_refund_nothing():
    ledger = Ledger(Budget(1.0))
    ledger.spend("all", PureDpEvent(1.0))
    for event in (PureDpEvent(-1.0), LaplaceDpEvent(-1.0), DiscreteLaplaceDpEvent(-1.0, 1)):
        with pytest.raises(BudgetError):
            ledger.spend("refund", event)
    with pytest.raises(BudgetError, match="overspend"):
        ledger.spend("more", PureDpEvent(1e-6))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    "event",
    [
        PureDpEvent(1e308),
        ExponentialDpEvent(1e200),
        LaplaceDpEvent(5e-324),
        GaussianDpEvent(5e-324),
        GaussianDpEvent(1e-200),
        ZCDpEvent(1e308),
        ZCDpEvent(1e-9, 1e308),
        DiscreteLaplaceDpEvent(1e308, 10**400),
        SelfComposedDpEvent(PureDpEvent(1e-9), 10**400),
        SelfComposedDpEvent(PureDpEvent(1e300), 10**300),
        ComposedDpEvent([PureDpEvent(1e308)] * 3),
        PoissonSampledDpEvent(0.5, GaussianDpEvent(1e-200)),
    ],
)
def test_a_cost_that_overflows_is_an_overspend(event, delta):
    ledger = Ledger(Budget(1e4, delta))
    assert not (delta and ledger.fits(event))
    with pytest.raises(BudgetError):
        ledger.spend("query", event)
    assert ledger.spends == ()
    ledger.spend("a sensible one", PureDpEvent(0.1))
    assert 0 < ledger.epsilon_spent < 0.11


@pytest.mark.parametrize("cost", [math.nan, math.inf])
def test_a_total_that_is_not_a_number_is_an_overspend(monkeypatch, cost):
    ledger = Ledger(Budget(1.0, 1e-6))
    ledger.spend("first", GaussianDpEvent(100.0))
    monkeypatch.setattr(
        ledger_module, "renyi_divergence", lambda event, orders: np.full(len(orders), cost)
    )
    assert not ledger.fits(GaussianDpEvent(100.0))
    with pytest.raises(BudgetError, match="overspend"):
        ledger.spend("query", GaussianDpEvent(100.0))
    assert len(ledger.spends) == 1


def test_after_the_budget_is_spent_no_bound_of_a_sum_opens_it_again():
    class One:
        names = ("one",)

        def __call__(self, rows):
            return np.ones((len(rows), 1))

    schema = Schema((Column.boolean("ill"),))
    with Vault(pd.DataFrame({"ill": [True, False]}), schema, Budget(1.0, 1e-6)) as vault:
        vault.total(vault.budget.whole)
        for bound in (sys.float_info.max, 1.0):
            with pytest.raises((BudgetError, VaultError)):
                vault.sums(One(), bound=bound, share=vault.budget.whole)
        assert len(vault.ledger.spends) == 1
        assert vault.ledger.epsilon_spent == pytest.approx(1.0)


def test_numbers_of_numpy_are_charged_for_what_they_are():
    # 16 as an int8 squares to 0, which cost nothing; as an int8, 100 + 100 is negative.
    ledger = Ledger(Budget(1.0, 1e-6))
    ledger.spend("query", GaussianDpEvent(np.int8(16)))
    plain = Ledger(Budget(1.0, 1e-6))
    plain.spend("query", GaussianDpEvent(16.0))
    assert ledger.epsilon_spent == plain.epsilon_spent > 0
    assert ledger.spends == plain.spends
    assert type(ledger.spends[0].event.noise_multiplier) is float
    counted = SelfComposedDpEvent(
        DiscreteLaplaceDpEvent(np.float32(0.25), np.int8(100)), np.int8(2)
    )
    pure = Ledger(Budget(100.0))
    pure.spend("query", counted)
    assert pure.epsilon_spent == 50.0
    assert json.loads(json.dumps(pure.to_dict()))["epsilon_spent"] == 50.0


def test_what_was_charged_cannot_be_changed_from_outside():
    parts = [GaussianDpEvent(10.0), GaussianDpEvent(10.0)]
    ledger = Ledger(Budget(1.0, 1e-6))
    ledger.spend("query", ComposedDpEvent(parts))
    parts.clear()
    assert len(ledger.spends[0].event.events) == 2
    with pytest.raises(AttributeError):
        ledger.budget = Budget(100.0, 1e-6)
    with pytest.raises(AttributeError):
        ledger.delta_set_aside = 0.5


@pytest.mark.parametrize("name", [None, 5, b"query", ["query"]])
def test_names_are_text(name):
    ledger = Ledger(Budget(1.0, 1e-6))
    with pytest.raises(BudgetError, match="query"):
        ledger.spend(name, GaussianDpEvent(100.0))
    ledger.stage = name
    with pytest.raises(BudgetError, match="stage"):
        ledger.spend("query", GaussianDpEvent(100.0))
    assert ledger.spends == ()


def test_reserves_are_shares_that_the_budget_can_pay():
    pure = Ledger(Budget(1.0))
    with pytest.raises(BudgetError, match="delta > 0"):
        pure.fits(PureDpEvent(0.1), reserve=[Share(100.0, pure=False)])
    with pytest.raises(BudgetError, match="shares"):
        pure.fits(PureDpEvent(0.1), reserve=[0.5])
    assert not pure.fits(PureDpEvent(0.6), reserve=[Share(0.5, pure=True)])


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (1, math.inf), ("x", 1), (2, 1)])
def test_calibration_takes_sensible_limits(low, high):
    with pytest.raises(BudgetError, match=r"low|high"):
        Ledger(Budget(1.0, 1e-6)).calibrate(GaussianDpEvent, low, high)


def test_an_answer_without_noise_is_for_ledgers_that_are_not_private():
    ledger = Ledger(Budget(1.0, 1e-6), private=False)
    ledger.spend("WITHOUT NOISE", NoOpDpEvent())
    assert ledger.epsilon_spent == 0
    values = ledger.to_dict()
    assert Ledger.from_dict(values).to_dict() == values
    with pytest.raises(BudgetError, match="without noise"):
        Ledger.from_dict(values | {"private": True})


def test_a_ledger_never_becomes_private_again():
    ledger = Ledger(Budget(1.0))
    ledger.private = ledger.private and True
    assert ledger.private
    ledger.private = ledger.private and False
    assert not ledger.private
    ledger.private = False
    with pytest.raises(BudgetError, match="private"):
        ledger.private = True
    assert not ledger.private
    for odd in (None, 1, "True"):
        with pytest.raises(BudgetError, match="private"):
            ledger.private = odd
        with pytest.raises(BudgetError, match="private"):
            Ledger(Budget(1.0), private=odd)


def test_a_ledger_needs_a_budget():
    with pytest.raises(BudgetError, match="Budget"):
        Ledger({"epsilon": 1.0})


def test_events_that_contain_events_survive_json():
    ledger = Ledger(Budget(5.0, 1e-6))
    ledger.spend("training", NESTED)
    again = Ledger.from_dict(json.loads(json.dumps(ledger.to_dict())))
    assert again.spends == ledger.spends
    assert again.to_dict() == ledger.to_dict()
    assert str(again) == str(ledger)
    assert "PoissonSampled(sampling_probability=0.01, Gaussian(noise_multiplier=2))" in str(again)


@functools.cache
def written_ledger():
    ledger = Ledger(Budget(5.0, 1e-6), threshold_delta=1e-7)
    ledger.spend("training", NESTED)
    ledger.spend("categories", GaussianDpEvent(20.0), 1e-8)
    return json.dumps(ledger.to_dict())


def a_ledger():
    return json.loads(written_ledger())


def places(value, path=()):
    """Every place in nested JSON."""
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, part in value.items() if isinstance(value, dict) else ():
        yield from places(part, (*path, key))


def changed(values, path, change):
    if not path:
        return change(values)
    at = values
    for key in path[:-1]:
        at = at[key]
    if change is REMOVE:
        del at[path[-1]]
    else:
        at[path[-1]] = change(at[path[-1]])
    return values


REMOVE = object()
ALL_PLACES = sorted(places(a_ledger()), key=str)
RUBBISH = [None, True, -1, 0, 1e400, math.nan, "x", "", [], {}, [[]], {"event": {}}, {"event": []}]
RUBBISH += [{1: 2}, 10**400, -1e-9, ["x"], {"event": "NoOpDpEvent"}, {"event": "DpEvent"}]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(ALL_PLACES), st.sampled_from(RUBBISH))
def test_a_file_is_a_ledger_or_an_error_of_ours(path, rubbish):
    values = changed(a_ledger(), path, lambda _: rubbish)
    try:
        ledger = Ledger.from_dict(values)
    except BudgetError:
        return
    # What was taken is a ledger in its own right, and within its budget.
    assert ledger.epsilon_spent <= ledger.budget.epsilon
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict()))).spends == ledger.spends


def test_nothing_of_a_file_may_be_missing():
    # A part of a list may be: another ledger might not have had it.
    for path in ALL_PLACES:
        if path and isinstance(path[-1], str):
            with pytest.raises(BudgetError):
                Ledger.from_dict(changed(a_ledger(), path, REMOVE))


@pytest.mark.parametrize(
    "path", [(), ("budget",), ("spends", 0), ("spends", 0, "mechanism"), ("spends", 1, "mechanism")]
)
def test_nothing_may_be_in_a_file_besides(path):
    with pytest.raises(BudgetError):
        Ledger.from_dict(changed(a_ledger(), path, lambda values: values | {"surprise": 1}))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("private",), "false"),
        (("private",), 1),
        (("accountant",), "pure"),
        (("threshold_delta",), -1e-7),
        (("threshold_delta",), 1e-9),  # less than the spends have used
        (("epsilon_spent",), -1),
        (("epsilon_spent",), "0"),
        (("spends",), {}),
        (("spends", 1, "delta"), -0.5),
        (("spends", 1, "query"), 5),
        (("spends", 1, "mechanism", "noise_multiplier"), -20.0),
        (("spends", 1, "mechanism", "noise_multiplier"), 0.01),
        (("budget", "epsilon"), 1e-3),
    ],
)
def test_a_file_is_not_believed(path, value):
    with pytest.raises(BudgetError):
        Ledger.from_dict(changed(a_ledger(), path, lambda _: value))


def test_a_file_without_end_is_refused():
    values = event_to_dict(PureDpEvent(1e-9))
    for _ in range(200):
        values = {"event": "SelfComposedDpEvent", "contained": values, "count": 1}
    with pytest.raises(BudgetError, match="without end"):
        event_from_dict(values)


@pytest.mark.parametrize("values", [None, [], "x", {}, {"stage": 1}])
def test_a_spend_is_read_with_the_same_doubt(values):
    with pytest.raises(BudgetError):
        Spend.from_dict(values)
    for made_from in (Ledger.from_dict, Budget.from_dict, event_from_dict):
        with pytest.raises(BudgetError):
            made_from(values)


def test_sampling_is_refused_under_replacement_wherever_it_hides():
    with pytest.raises(BudgetError, match="add-remove"):
        Ledger(Budget(5.0, 1e-6, REPLACE)).spend("training", NESTED)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_threads_do_not_overspend(monkeypatch, delta):
    budget = Budget(1.0, delta)
    ledger = Ledger(budget)
    part = budget.whole.part(1 / 20)
    event = PureDpEvent(part.amount) if part.pure else ZCDpEvent(part.amount)
    check = Ledger._fits

    def check_and_dawdle(self, *more):
        # Whoever has been let through now waits, and every other thread has its turn.
        found = check(self, *more)
        time.sleep(1e-3)
        return found

    monkeypatch.setattr(Ledger, "_fits", check_and_dawdle)
    start = threading.Barrier(10)
    refused, snapshots = [], []

    def spend_and_read():
        start.wait()
        for _ in range(4):
            try:
                ledger.spend("query", event)
            except BudgetError:
                refused.append(1)
            values = ledger.to_dict()
            expected = ledger._epsilon([cost] * len(values["spends"]))
            snapshots.append(values["epsilon_spent"] == expected)

    cost = ledger._cost(event)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=spend_and_read) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(ledger.spends) == 20
    assert len(refused) == 20
    assert ledger.epsilon_spent <= 1.0
    # What is read while others spend is of one moment: its total is that of its spends.
    assert snapshots == [True] * 40


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_is_a_ledger_of_its_own(copied):
    ledger = Ledger(Budget(1.0, 1e-6), private=False, threshold_delta=1e-7)
    ledger.spend("first", GaussianDpEvent(10.0))
    again = copied(ledger)
    assert again.to_dict() == ledger.to_dict()
    again.spend("second", GaussianDpEvent(10.0))
    assert len(ledger.spends) == 1
    assert len(again.spends) == 2
    with pytest.raises(BudgetError, match="private"):
        again.private = True


def test_a_copy_of_a_vault_in_a_forked_process_answers_nothing():
    """It would have the same budget left, and the same noise drawn ahead."""
    schema = Schema([Column.boolean("ill")])
    table = pd.DataFrame({"ill": [True, False] * 10})
    with Vault(table, schema, Budget(1.0, 1e-6)) as vault:
        share = vault.budget.whole.part(0.5)
        vault.counts([("ill",)], share)
        ours, theirs = os.pipe()
        process = fork()
        if process == 0:
            try:
                vault.counts([("ill",)], share)
                os.write(theirs, b"answered")
            except VaultError as error:
                os.write(theirs, str(error).encode())
            finally:
                os._exit(0)
        os.close(theirs)
        with os.fdopen(ours, "rb") as pipe:
            said = pipe.read().decode()
        os.waitpid(process, 0)
        assert "opened by another process" in said
        # The one that opened it goes on.
        vault.counts([("ill",)], share)
        assert len(vault.ledger.spends) == 2
