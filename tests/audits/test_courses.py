"""Descents and votes, audited white-box on a worst-case pair: never above the claim, close below.

For a descent the person's gradient has the whole clipping norm, in a direction of which all other
rows' part is known, so that the answer along it is noise with or without that norm. At a rate below
one the person is in the lot only now and then, and the claim is the trade-off between false alarms
and detections of a Gaussian that is sampled: detections <= (1 - q) a + q Phi(Phi^-1(a) + mu) for
false alarms a. For votes the person alone decides what a teacher says. The bounds are lower bounds
with 95% confidence; a sound mechanism exceeds its claim by the tenth that is allowed in fewer than
one of 10^5 runs.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from counterpoise.networks import Inputs, Network, Optimiser
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, DescentPlan, TeacherPlan, Vault
from counterpoise.vault.gradients import LONGEST
from tests.audits.audit import (
    HalvedNoise,
    _lower,
    _upper,
    audited_vault,
    mu_lower_bound,
)
from tests.audits.exact import Listening

SCHEMA = Schema([Column.categorical("a", ["x", "y", "z"]), Column.categorical("b", ["u", "v"])])
INPUTS = Inputs(SCHEMA)
ROWS = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": ["u", "u", "v", "v"]})
PERSON = pd.DataFrame({"a": ["z"], "b": ["u"]})
LINEAR = Network((INPUTS.size, 1))
DEEP = Network((INPUTS.size, 5, 4, 1))
CLIP = 0.5


def plan_of(network, rate, noise, steps=1):
    return DescentPlan(INPUTS, network, "wasserstein", rate, 1.0, CLIP, noise, steps)


def exact_sum(rows, network, parameters, budget):
    """What the sum over all rows is, before the noise."""
    noise = Listening()
    vault = audited_vault(rows, SCHEMA, budget, noise)
    vault.descent(plan_of(network, 1.0, 1.0)).gradient(parameters)
    step = plan_of(network, 1.0, 1.0).step_noise(budget).step
    return noise.draws[0].exact * step


def answers(rows, network, plan, budget, runs, noise=None):
    """The answer along the person's direction, run after run."""
    parameters = network.initial(np.random.default_rng(0))
    person = pd.concat([PERSON] * budget.max_rows_per_person)
    direction = exact_sum(person, network, parameters, budget)
    vault = audited_vault(rows, SCHEMA, budget, noise)
    descent = vault.descent(plan)
    others = exact_sum(ROWS, network, parameters, budget) @ direction
    found = np.array([descent.gradient(parameters) @ direction for _ in range(runs)])
    return (found - others) / np.linalg.norm(direction)


def pair(budget):
    return ROWS, pd.concat([ROWS, *[PERSON] * budget.max_rows_per_person])


def audit_whole(network, budget, noise=None, runs=2500):
    """(lower bound, claim) of mu for a descent in which every row is in every lot."""
    plan = plan_of(network, 1.0, 1.0, runs)
    without, having = (
        answers(rows, network, plan, budget, runs, noise() if noise else None)
        for rows in pair(budget)
    )
    return mu_lower_bound(without, having), 1 / plan.noise


def sampled_mu_lower_bound(without, having, rate):
    """The least mu of a Gaussian, sampled at a rate, that explains the detections.

    Few false alarms: where most are, even a much larger mu would show in few detections more.
    """
    threshold = np.quantile(without[::2], 0.98)
    false_alarms = _upper(int((without[1::2] > threshold).sum()), len(without[1::2]))
    detections = _lower(int((having[1::2] > threshold).sum()), len(having[1::2]))
    among_sampled = (detections - (1 - rate) * false_alarms) / rate
    return stats.norm.ppf(among_sampled) - stats.norm.ppf(false_alarms)


def audit_sampled(noise=None, rate=0.4, runs=8000):
    """(lower bound, claim) of mu for one person of one row, who is in the lot now and then.

    The others have gone: their lots would only blur the answer.
    """
    budget = Budget(1.0, 1e-6)
    plan = plan_of(LINEAR, rate, 0.5, runs)
    parameters = LINEAR.initial(np.random.default_rng(0))
    direction = exact_sum(PERSON, LINEAR, parameters, budget)
    found = []
    for rows in (PERSON[:0], PERSON):
        vault = audited_vault(rows, SCHEMA, budget, noise() if noise else None)
        descent = vault.descent(plan)
        found.append(np.array([descent.gradient(parameters) @ direction for _ in range(runs)]))
    return sampled_mu_lower_bound(*found, rate), 1 / plan.noise


def assert_tight(bound, claim, share):
    assert bound <= 1.1 * claim, f"the loss is at least {bound:.3f}, and {claim:.3f} is charged"
    assert bound >= share * claim, f"the loss could be shown to be {bound:.3f} of {claim:.3f} only"


@pytest.mark.parametrize(
    ("network", "people"), [(LINEAR, 1), (DEEP, 3)], ids=["linear", "deep, three rows a person"]
)
def test_a_descent_over_all_rows(network, people):
    budget = Budget(1.0, 1e-6, max_rows_per_person=people)
    assert_tight(*audit_whole(network, budget), 0.7)


def test_a_descent_over_samples():
    assert_tight(*audit_sampled(), 0.7)


def test_the_audit_finds_a_descent_with_half_the_noise():
    bound, claim = audit_whole(LINEAR, Budget(1.0, 1e-6), HalvedNoise)
    assert bound > 1.5 * claim
    bound, claim = audit_sampled(HalvedNoise)
    assert bound > 1.3 * claim


@pytest.mark.parametrize("network", [LINEAR, DEEP], ids=["linear", "deep"])
@pytest.mark.parametrize("people", [1, 3])
def test_a_step_reveals_all_that_it_is_charged_but_rounding(network, people):
    """Exactly: the shift of what is noised, in deviations, against the noise multiplier."""
    budget = Budget(1.0, 1e-6, max_rows_per_person=people)
    plan = plan_of(network, 1.0, 1.3)
    parameters = network.initial(np.random.default_rng(0))
    heard = []
    for rows in pair(budget):
        noise = Listening()
        vault = audited_vault(rows, SCHEMA, budget, noise)
        vault.descent(plan).gradient(parameters)
        heard += noise.draws
    without, having = heard
    assert without.scale == having.scale
    shift = np.linalg.norm(having.exact - without.exact) / without.scale
    event = vault.ledger.event.event.event
    assert 0.9999 / event.noise_multiplier < shift <= 1 / event.noise_multiplier


def test_the_person_is_in_as_many_lots_as_is_charged():
    rate, runs = 0.3, 4000
    budget = Budget(1.0, 1e-6)
    noise = Listening()
    vault = audited_vault(PERSON, SCHEMA, budget, noise)
    descent = vault.descent(plan_of(LINEAR, rate, 1.0, runs))
    for _ in range(runs):
        descent.gradient(np.zeros(LINEAR.size))
    sampled = sum(draw.exact.any() for draw in noise.draws)
    assert len(noise.draws) == runs
    assert stats.binomtest(int(sampled), runs, rate).pvalue > 1e-5
    norms = {np.linalg.norm(draw.exact) for draw in noise.draws if draw.exact.any()}
    step = plan_of(LINEAR, rate, 1.0).step_noise(budget).step
    assert max(norms) * step <= CLIP * LONGEST + np.sqrt(LINEAR.size) * step / 2


def audit_votes(noise=None, runs=4000, together=16):
    """(lower bound, claim) of mu for counts of one teacher, whom the person alone teaches.

    Sixteen rows are voted on together, each with noise of four votes, at which discrete noise is
    as good as continuous noise.
    """
    public = np.ones((4, INPUTS.size))
    person = INPUTS(SCHEMA.encode(PERSON))
    plan = TeacherPlan(
        INPUTS,
        LINEAR,
        teachers=1,
        queries=runs * together,
        noise=4.0,
        optimiser=Optimiser("adam", 0.05),
    )
    found = []
    for rows in (PERSON[:0], PERSON):
        vault = audited_vault(rows, SCHEMA, Budget(1.0, 1e-6), noise)
        teachers = vault.teachers(plan)
        teachers.train(public, 200)
        votes = teachers.votes(np.repeat(person, runs * together, axis=0))
        found.append(votes.reshape(runs, together).sum(axis=1))
    claim = 1 / vault.ledger.event.event.noise_multiplier
    return mu_lower_bound(*found), claim * np.sqrt(together)


def test_votes():
    assert_tight(*audit_votes(), 0.75)


def test_the_audit_finds_votes_with_half_the_noise():
    bound, claim = audit_votes(HalvedNoise())
    assert bound > 1.5 * claim


def test_no_vote_is_counted_twice_and_none_for_a_teacher_that_is_not_there():
    noise = Listening()
    vault = audited_vault(pd.concat([ROWS] * 10), SCHEMA, Budget(1.0, 1e-6), noise)
    teachers = vault.teachers(TeacherPlan(INPUTS, DEEP, teachers=7, queries=600, noise=4.0))
    teachers.train(np.ones((4, INPUTS.size)), 5)
    teachers.votes(np.random.default_rng(0).uniform(-1, 1, (600, INPUTS.size)))
    [draw] = noise.draws
    assert draw.exact.min() >= 0
    assert draw.exact.max() <= 7
    assert draw.scale == 4.0


def test_a_lot_without_rows_is_noised_like_any_other():
    noise = Listening(seed=1)
    vault = Vault(PERSON[:0], SCHEMA, Budget(1.0, 1e-6))
    vault._noise = noise
    plan = plan_of(LINEAR, 0.1, 50.0, 4)
    with vault.descent(plan) as descent:
        for _ in range(4):
            assert np.abs(descent.gradient(np.zeros(LINEAR.size))).min() > 0
    assert [draw.scale for draw in noise.draws] == [plan.step_noise(vault.budget).scale] * 4
