"""Private gradient descent: charged whole, noised always, exact, and never one step too many."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy import stats

from counterpoise.errors import BudgetError, VaultError
from counterpoise.networks import Inputs, Network, clipped_gradient
from counterpoise.schema import Column, Schema
from counterpoise.vault import ADD_REMOVE, Budget, DescentPlan, Journal, Share, Vault
from counterpoise.vault.descend import _next_lots
from counterpoise.vault.divergence import renyi_divergence
from counterpoise.vault.gradients import LONGEST
from tests.forks import fork
from tests.vault.courses import (
    BUDGET,
    INPUTS,
    NETWORK,
    PARAMETERS,
    SCHEMA,
    descent_plan,
    table,
)


def opened(budget=BUDGET, **options):
    return Vault(table(), SCHEMA, budget, **options)


def test_the_gradient_is_the_mean_of_clipped_gradients_plus_noise():
    plan = descent_plan(rate=1.0, lot=80.0, noise=0.05, clip=0.4, steps=20)
    with opened(Budget(10_000.0, 0.5), seed=3) as vault, vault.descent(plan) as descent:
        found = np.mean([descent.gradient(PARAMETERS) for _ in range(20)], axis=0)
    rows = INPUTS(SCHEMA.encode(table()))
    expected = clipped_gradient(NETWORK, PARAMETERS, rows, "logistic", 1.0, 0.4)
    assert np.allclose(found, expected, atol=4e-4)  # seven deviations


@pytest.mark.parametrize("rows", [0, 80])
@pytest.mark.parametrize("people", [1, 3])
def test_the_noise_is_as_planned_also_when_the_lot_is_empty(rows, people):
    plan = descent_plan(rate=1e-9, lot=1.0, noise=30.0, steps=300)
    budget = Budget(2.0, 1e-6, max_rows_per_person=people)
    with Vault(table(rows), SCHEMA, budget) as vault, vault.descent(plan) as descent:
        found = np.concatenate([descent.gradient(PARAMETERS) for _ in range(300)])
        noise = plan.step_noise(budget)
    # No row is in any lot: all that comes out is noise, of thirty sensitivities.
    assert noise.sensitivity == pytest.approx(people, rel=1e-3)
    assert noise.deviation == pytest.approx(30 * people, rel=1e-3)
    statistic = ((found / noise.deviation) ** 2).sum()
    assert 1e-6 < stats.chi2.sf(statistic, found.size) < 1 - 1e-6


@pytest.mark.parametrize("people", [1, 4])
@pytest.mark.parametrize("noise", [0.001, 1.0, 1000.0])
def test_the_sensitivity_counts_clipping_people_and_rounding(people, noise):
    plan = descent_plan(noise=noise, clip=0.7)
    found = plan.step_noise(Budget(1.0, 1e-6, max_rows_per_person=people))
    assert found.sensitivity == pytest.approx(
        0.7 * people * LONGEST + np.sqrt(NETWORK.size) * found.step, rel=1e-12
    )
    assert found.deviation / found.sensitivity >= noise
    assert found.deviation / found.sensitivity <= noise * (1 + 1e-8)
    assert np.log2(found.step) == round(np.log2(found.step))
    assert 2**21 <= found.scale < 2**23


def test_all_steps_are_charged_before_the_first_look_and_none_is_given_beyond_them():
    plan = descent_plan(steps=3)
    with opened() as vault:
        descent = vault.descent(plan)
        assert [spend.event for spend in vault.ledger.spends] == [plan.event]
        assert descent._rows is None
        for left in (3, 2, 1):
            assert descent.left == left
            descent.gradient(PARAMETERS)
        with pytest.raises(VaultError, match="all but 0 of its 3 steps are taken"):
            descent.gradient(PARAMETERS)
        assert len(vault.ledger.spends) == 1


def test_a_plan_beyond_the_budget_is_refused_and_nothing_is_looked_at():
    with opened() as vault:
        with pytest.raises(BudgetError, match="would overspend"):
            vault.descent(descent_plan(noise=0.5, steps=10_000))
        assert vault.ledger.spends == ()
        assert not vault._courses


def test_a_step_that_fails_counts_as_taken(monkeypatch):
    with opened() as vault, vault.descent(descent_plan()) as descent:
        monkeypatch.setattr(vault._noise, "repeated_gaussian", lambda values, scale: 1 / 0)
        with pytest.raises(VaultError, match="behind the boundary"):
            descent.gradient(PARAMETERS)
        assert descent.taken == 1


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.01, 0.9, 1000), (0.3, 4.0, 50)])
def test_the_event_is_that_of_dp_accounting_for_the_parameters_used(rate, noise, steps):
    plan = descent_plan(rate=rate, noise=noise, steps=steps)
    orders = [2, 3, 5, 8, 16, 32]
    accountant = RdpAccountant(orders, ADD_REMOVE)
    sampled = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
    accountant.compose(SelfComposedDpEvent(sampled, steps))
    ours = renyi_divergence(plan.event_under(BUDGET), np.array(orders, dtype=float))
    assert np.allclose(ours, accountant._rdp, rtol=1e-6)


def test_a_person_of_several_rows_is_sampled_more_often():
    plan = descent_plan(rate=0.1)
    event = plan.event_under(Budget(1.0, 1e-6, max_rows_per_person=3)).event
    assert event.sampling_probability == pytest.approx(1 - 0.9**3)
    assert event.sampling_probability >= 1 - 0.9**3
    assert event.event.noise_multiplier == plan.noise
    assert descent_plan(rate=1.0).event_under(BUDGET).event.sampling_probability == 1.0


@pytest.mark.parametrize("people", [1, 2])
def test_a_share_is_used_up_and_not_exceeded(people):
    budget = Budget(1.0, 1e-6, max_rows_per_person=people)
    options = {
        "inputs": INPUTS,
        "network": NETWORK,
        "loss": "logistic",
        "rate": 0.05,
        "lot": 4.0,
        "clip": 1.0,
        "steps": 200,
    }
    with opened(budget) as vault:
        share = budget.whole.part(0.5)
        plan = DescentPlan.within(vault, share, **options)
        order = np.array([budget.renyi_limit().order])
        cost = renyi_divergence(plan.event_under(budget), order)[0]
        assert 0.9999 * share.amount * order[0] < cost <= share.amount * order[0]
        vault.descent(plan)
        vault.descent(DescentPlan.within(vault, share, **options))
        with pytest.raises(BudgetError, match="would overspend"):
            vault.descent(plan)


def test_what_cannot_be_accounted_is_refused_before_it_is_charged():
    options = {
        "inputs": INPUTS,
        "network": NETWORK,
        "loss": "logistic",
        "rate": 0.05,
        "lot": 4.0,
        "clip": 1.0,
        "steps": 200,
    }
    replace = Budget(1.0, 1e-6, "replace")
    with opened(replace) as vault:
        with pytest.raises(BudgetError, match="neighbours='add-remove'"):
            vault.descent(descent_plan())
        with pytest.raises(BudgetError, match="neighbours='add-remove'"):
            DescentPlan.within(vault, replace.whole, **options)
        assert vault.ledger.spends == ()
    with opened(Budget(1.0)) as vault:
        with pytest.raises(BudgetError, match="needs delta > 0"):
            DescentPlan.within(vault, vault.budget.whole, **options)
        with pytest.raises(BudgetError, match="needs delta > 0"):
            vault.descent(descent_plan())
    with opened() as vault, pytest.raises(BudgetError, match="too many for this share"):
        DescentPlan.within(vault, Share(1e-22, pure=False), **options)
    with pytest.raises(VaultError, match="would drown them"):
        descent_plan(noise=1e6, network=Network((INPUTS.size, 100, 1))).step_noise(BUDGET)


def test_only_a_vault_with_a_seed_gives_gradients_without_noise():
    plan = descent_plan(noise=0, rate=1.0, lot=80.0)
    with opened() as vault, pytest.raises(VaultError, match="vault with a seed"):
        vault.descent(plan)
    with opened(seed=1) as vault, vault.descent(plan) as descent:
        found = descent.gradient(PARAMETERS)
        assert np.array_equal(found, descent.gradient(PARAMETERS))
        assert not vault.private
        assert vault.ledger.spends[0].query.endswith("WITHOUT NOISE")


def test_lots_of_many_rows_are_drawn_one_at_a_time(monkeypatch):
    monkeypatch.setattr("counterpoise.vault.descend._ROWS_IN_LOTS", 20)
    with opened() as vault, vault.descent(descent_plan()) as descent:
        descent.gradient(PARAMETERS)
        assert descent._lots == []


def test_every_lot_is_a_stretch_of_its_own_of_what_was_drawn():
    class Scripted:
        def sample(self, rows, rate):
            assert (rows, rate) == (64 * 10, 0.3)
            return np.array([0, 9, 10, 25, 29, 639])

    lots = _next_lots(10, 0.3, Scripted())
    expected = {0: [0, 9], 1: [0], 2: [5, 9], 63: [9]}
    assert [lot.tolist() for lot in lots] == [expected.get(place, []) for place in range(64)]


def test_no_lot_is_used_twice():
    plan = descent_plan(steps=130, noise=0, rate=0.3)
    used = []
    with opened(seed=1) as vault, vault.descent(plan) as descent:
        sums = descent._gradients.sums

        def watched(parameters, rows, lot, room):
            used.append(tuple(lot.tolist()))
            return sums(parameters, rows, lot, room)

        object.__setattr__(descent._gradients, "sums", watched)
        for _ in range(130):
            descent.gradient(PARAMETERS)
    assert len({*used}) == 130


def test_seeds_repeat_a_descent():
    def run(seed):
        with opened(seed=seed) as vault, vault.descent(descent_plan()) as descent:
            return [descent.gradient(PARAMETERS) for _ in range(3)]

    assert np.array_equal(run(5), run(5))
    assert not np.array_equal(run(5), run(6))


def test_rows_that_stay_on_disk_are_descended_on_alike(tmp_path):
    table().to_parquet(tmp_path / "table.parquet")
    plan = descent_plan(noise=0, rate=1.0)
    answers = []
    for storage in ("memory", "duckdb"):
        with (
            Vault(tmp_path / "table.parquet", SCHEMA, BUDGET, storage=storage, seed=1) as vault,
            vault.descent(plan) as descent,
        ):
            answers.append(descent.gradient(PARAMETERS))
    assert np.array_equal(*answers)


def test_rows_in_single_precision_give_the_same_sums(monkeypatch):
    def run():
        with opened(seed=1) as vault, vault.descent(descent_plan(noise=0, rate=1.0)) as descent:
            return descent.gradient(PARAMETERS), descent._rows.dtype

    double, kind = run()
    monkeypatch.setattr("counterpoise.vault.descend._LARGE", 1)
    single, other_kind = run()
    assert (kind, other_kind) == (np.float64, np.float32)
    assert np.array_equal(double, single)


def test_an_open_descent_is_neither_shown_nor_copied_and_ends_with_the_vault():
    with opened() as vault:
        descent = vault.descent(descent_plan())
        descent.gradient(PARAMETERS)
        assert repr(descent) == "<Descent, open: 1 of 10 steps taken>"
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(VaultError, match="never copied"):
                copied(descent)
    assert descent._rows is None
    assert descent._lots == []
    assert not descent._room._arrays
    with pytest.raises(VaultError, match="closed"):
        descent.gradient(PARAMETERS)
    with opened() as vault:
        with vault.descent(descent_plan()) as descent:
            descent.gradient(PARAMETERS)
        assert descent._rows is None
        with pytest.raises(VaultError, match="what is left of it stays paid for"):
            descent.gradient(PARAMETERS)
        with pytest.raises(VaultError, match="what is left of it stays paid for"):
            descent.keep({})


def test_a_descent_that_is_closed_during_a_step_of_another_thread_keeps_no_rows(monkeypatch):
    with opened() as vault, vault.descent(descent_plan()) as descent:
        read, is_reading, is_closed = vault._storage.batches, threading.Event(), threading.Event()

        def slowly(rows):
            is_reading.set()
            # Closing that does not wait for the step would be over by then.
            is_closed.wait(0.1)
            return read(rows)

        def close():
            is_reading.wait()
            descent.close()
            is_closed.set()

        monkeypatch.setattr(vault._storage, "batches", slowly)
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        descent.gradient(PARAMETERS)
        closing.join()
        assert descent._rows is None
        assert descent._lots == []
        assert not descent._room._arrays


def test_another_query_cannot_be_asked_from_within_a_step(monkeypatch):
    with opened() as vault, vault.descent(descent_plan()) as descent:

        def nosy(rows, rate):
            vault.total(vault.budget.whole)

        monkeypatch.setattr(vault._noise, "sample", nosy)
        with pytest.raises(VaultError, match="from within another one"):
            descent.gradient(PARAMETERS)
        monkeypatch.undo()
        # In between it can.
        vault.total(vault.budget.whole.part(0.01))
        descent.gradient(PARAMETERS)


class OwnInputs(Inputs):
    pass


class OwnNetwork(Network):
    pass


class OwnPlan(DescentPlan):
    pass


def test_a_plan_of_a_type_of_its_own_is_refused():
    with opened() as vault, pytest.raises(VaultError, match="expected a DescentPlan"):
        vault.descent(OwnPlan(**vars(descent_plan())))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("inputs", OwnInputs(SCHEMA)),
        ("inputs", lambda rows: rows),
        ("network", OwnNetwork(NETWORK.units)),
        ("network", Network((INPUTS.size + 1, 1))),
        ("network", Network((INPUTS.size, 2))),
        ("loss", "hinge"),
        ("rate", 0.0),
        ("rate", 1.1),
        ("lot", 0.0),
        ("clip", -1.0),
        ("noise", -1.0),
        ("noise", 1e-4),
        ("noise", 1e7),
        ("steps", 0),
        ("steps", 1.5),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(field, value):
    with pytest.raises(VaultError, match=field):
        descent_plan(**{field: value})


def test_the_inputs_have_to_be_those_of_the_vault():
    other = Schema([Column.categorical("a", ["x", "y", "z"]), Column.continuous("b", 0.0, 2.0)])
    inputs = Inputs(other)
    plan = descent_plan(inputs=inputs, network=Network((inputs.size, 1)))
    with opened() as vault, pytest.raises(VaultError, match="the vault's own schema"):
        vault.descent(plan)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e101])
def test_parameters_are_finite_numbers(bad):
    with opened() as vault, vault.descent(descent_plan()) as descent:
        poisoned = PARAMETERS.copy()
        poisoned[3] = bad
        for wrong in (poisoned, PARAMETERS[1:], "text", None):
            with pytest.raises(VaultError, match="parameters"):
                descent.gradient(wrong)
        assert descent.taken == 0


# From here on: runs that end before their time, and runs that go on.


def journal_of(folder):
    return Journal(folder / "journal", BUDGET)


def test_a_descent_goes_on_from_what_was_kept(tmp_path):
    plan = descent_plan(steps=100)
    with opened(journal=journal_of(tmp_path)) as vault, vault.descent(plan) as descent:
        assert descent.kept is None
        for step in range(37):
            descent.gradient(PARAMETERS)
            descent.keep({"parameters": PARAMETERS + step, "seeds": np.arange(3)})
        with pytest.raises(VaultError, match="state"):
            descent.keep({"text": np.array(["x"])})
    with opened(journal=journal_of(tmp_path)) as vault, vault.descent(plan) as descent:
        assert len(vault.ledger.spends) == 1
        assert (descent.left, descent.kept.steps) == (63, 37)
        assert np.array_equal(descent.kept.arrays["parameters"], PARAMETERS + 36)
        assert descent.kept.arrays["seeds"].tolist() == [0, 1, 2]
        for _ in range(63):
            descent.gradient(PARAMETERS)
    with opened(journal=journal_of(tmp_path)) as vault, vault.descent(plan) as descent:
        assert descent.left == 0
        assert descent.kept.steps == 37
        with pytest.raises(VaultError, match="steps are taken"):
            descent.gradient(PARAMETERS)


def test_steps_are_written_down_in_blocks(tmp_path):
    plan = descent_plan(steps=200)
    with opened(journal=journal_of(tmp_path)) as vault, vault.descent(plan) as descent:
        for _ in range(200):
            descent.gradient(PARAMETERS)
    assert (tmp_path / "journal").read_text().count('"begun"') == 50


def test_two_descents_of_one_plan_are_paid_for_twice_and_resumed_in_their_order(tmp_path):
    plan = descent_plan(steps=10, noise=40.0)
    with opened(journal=journal_of(tmp_path)) as vault:
        with vault.descent(plan) as first, vault.descent(plan) as second:
            first.gradient(PARAMETERS)
            second.gradient(PARAMETERS)
            second.gradient(PARAMETERS)
        assert len(vault.ledger.spends) == 2
    with opened(journal=journal_of(tmp_path)) as vault:
        assert [vault.descent(plan).left for _ in range(2)] == [9, 8]
        assert len(vault.ledger.spends) == 2
        vault.descent(descent_plan(steps=10, noise=50.0))
        assert len(vault.ledger.spends) == 3


def run_and_be_killed(folder, steps):
    """Take some steps in a process that ends without a word; how many it got."""
    ours, theirs = os.pipe()
    process = fork()
    if process == 0:
        try:
            with opened(journal=journal_of(folder)) as vault:
                descent = vault.descent(descent_plan(steps=200))
                for _ in range(min(steps, descent.left)):
                    descent.gradient(PARAMETERS)
                    descent.keep({"taken": np.array([descent.taken])})
                    os.write(theirs, b"x")
                os._exit(9)
        finally:
            os._exit(1)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        taken = len(pipe.read())
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9
    return taken


def test_runs_that_are_killed_take_no_more_steps_than_were_paid_for(tmp_path):
    taken = [run_and_be_killed(tmp_path, 29) for _ in range(8)]
    assert sum(taken) <= 200
    # A block of a fiftieth is all that each of them loses.
    assert sum(taken) >= 200 - 4 * len(taken)
    with opened(journal=journal_of(tmp_path)) as vault:
        descent = vault.descent(descent_plan(steps=200))
        assert descent.left == 0
        assert len(vault.ledger.spends) == 1
        assert 0 <= 200 - int(descent.kept.arrays["taken"][0]) <= 4
        assert descent.kept.steps == descent.kept.arrays["taken"][0]
