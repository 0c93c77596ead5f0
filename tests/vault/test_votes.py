"""Teacher votes: charged whole, one teacher a row, and no teacher learns from another's rows."""

import threading

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from counterpoise.errors import BudgetError, VaultError
from counterpoise.networks import ACTIVATIONS, Network, Optimiser, loss_slopes
from counterpoise.networks.team import initial_team, team_gradient, team_outputs
from counterpoise.vault import Budget, Journal, TeacherPlan, Vault
from counterpoise.vault.events import GaussianDpEvent, SelfComposedDpEvent
from counterpoise.vault.noise import Noise
from counterpoise.vault.votes import _assigned, _Classes
from tests.vault.courses import BUDGET, INPUTS, NETWORK, PUBLIC, SCHEMA, table, teacher_plan


def opened(budget=BUDGET, rows=80, **options):
    return Vault(table(rows), SCHEMA, budget, **options)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_team_is_as_many_networks(activation):
    network = Network((4, 6, 5, 1), activation)
    team = initial_team(network, 3, seed=1)
    generator = np.random.default_rng(0)
    rows, multiples = generator.normal(size=(3, 10, 4)), generator.random((3, 10))
    labels = generator.choice([-1.0, 1.0], 10)
    found = team_gradient(network, team, rows, "logistic", labels, multiples)
    for member in range(3):
        passed = network.forward(team[member], rows[member])
        slopes = loss_slopes("logistic", passed.outputs, labels)
        errors = network.backward(team[member], passed, slopes)
        expected = network.gradient(passed, errors, multiples[member])
        assert np.allclose(found[member], expected)
        assert np.allclose(team_outputs(network, team, rows)[member], passed.outputs[:, 0])


def test_teachers_learn_to_tell_their_rows_from_public_ones():
    # Public rows are no rows at all: all three categories at once.
    public = np.ones((30, INPUTS.size))
    private = INPUTS(SCHEMA.encode(table(20)))
    plan = teacher_plan(noise=0, optimiser=Optimiser("adam", 0.01))
    with opened(seed=1) as vault, vault.teachers(plan) as teachers:
        teachers.train(public, 150)
        assert teachers.votes(private).mean() > 4.5
        assert teachers.votes(public[:20]).mean() < 0.5
        assert teachers.left == 0
        assert vault.ledger.spends[0].query.endswith("WITHOUT NOISE")


def test_votes_have_the_noise_of_the_plan():
    plan = teacher_plan(noise=60.0, queries=5000)
    budget = Budget(10.0, 1e-6, max_rows_per_person=2)
    with opened(budget) as vault, vault.teachers(plan) as teachers:
        found = teachers.votes(np.zeros((5000, INPUTS.size)))
    assert found.dtype == np.int64
    # The same count for each row, with noise of sixty times what a person changes, which is two.
    assert plan.scale(budget) == 120.0
    statistic = ((found - found.mean()) ** 2).sum() / 120.0**2
    assert 1e-6 < stats.chi2.sf(statistic, 4999) < 1 - 1e-6


def test_all_votes_are_charged_in_advance_and_none_is_given_beyond_them():
    plan = teacher_plan()
    with opened() as vault, vault.teachers(plan) as teachers:
        assert [spend.event for spend in vault.ledger.spends] == [plan.event]
        assert plan.event == SelfComposedDpEvent(GaussianDpEvent(60.0), 40)
        teachers.train(PUBLIC, 2)
        teachers.votes(PUBLIC[:30])
        with pytest.raises(VaultError, match="all but 10 of its 40 votes are taken"):
            teachers.votes(PUBLIC[:11])
        teachers.votes(PUBLIC[:10])
        with pytest.raises(VaultError, match="all but 0"):
            teachers.votes(PUBLIC[:1])
        assert len(vault.ledger.spends) == 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_share_is_used_up_under_either_relation(neighbours):
    budget = Budget(1.0, 1e-6, neighbours)
    with opened(budget) as vault:
        plan = TeacherPlan.within(
            vault, budget.whole, queries=100, inputs=INPUTS, network=NETWORK, teachers=4
        )
        # rho = Q / (2 s^2)
        assert 100 / (2 * plan.noise**2) == pytest.approx(budget.whole.amount)
        vault.teachers(plan)
        with pytest.raises(BudgetError, match="would overspend"):
            vault.teachers(teacher_plan(noise=1000.0))


def test_what_cannot_be_paid_for_is_refused():
    with opened(Budget(1.0)) as vault, pytest.raises(BudgetError, match="needs delta > 0"):
        TeacherPlan.within(
            vault, vault.budget.whole, queries=9, inputs=INPUTS, network=NETWORK, teachers=4
        )
    with opened() as vault, pytest.raises(VaultError, match="vault with a seed"):
        vault.teachers(teacher_plan(noise=0))


class Scripted(Noise):
    """Uniform numbers that are told in advance."""

    def __init__(self, uniforms):
        super().__init__(0)
        self.told = np.asarray(uniforms)

    def uniforms(self, count):
        assert count == len(self.told)
        return self.told


def rows_by_teacher(private, uniforms, teachers=7):
    """The rows of each teacher, as the network sees them, where these numbers are drawn."""
    plan = teacher_plan(teachers=teachers)
    with Vault(private, SCHEMA, BUDGET) as vault:
        classes = _assigned(vault._storage, plan, Scripted(uniforms))
    return np.split(classes._rows, np.cumsum(classes.sizes)[:-1])


def test_every_row_goes_to_one_teacher_drawn_for_it_alone():
    """A row goes where its own number says, whatever stands before it."""
    private, uniforms = table(60), Noise(3).uniforms(60)
    seen = INPUTS(SCHEMA.encode(private))
    drawn = np.floor(uniforms * 7)
    found = rows_by_teacher(private, uniforms)
    for teacher in range(7):
        assert np.array_equal(found[teacher], seen[drawn == teacher])
    # One more row, in front: it goes to the last teacher, and nobody else has other rows.
    more = rows_by_teacher(pd.concat([private.tail(1), private]), [0.999, *uniforms])
    assert all(map(np.array_equal, found[:-1], more[:-1]))
    assert np.array_equal(more[-1], np.concatenate([seen[-1:], found[-1]]))


def test_a_teacher_picks_from_all_of_its_rows_and_from_no_others():
    rows, teacher = np.arange(60.0)[:, None], (Noise(3).uniforms(60) * 7).astype(np.int64)
    classes = _Classes(rows, teacher, 7)
    picked = classes.pick(Noise(4).uniforms(7 * 500).reshape(7, 500))
    for place in range(7):
        assert {*picked[place].ravel().tolist()} == {*np.flatnonzero(teacher == place).tolist()}


def test_a_step_shows_every_teacher_its_own_picks_and_none_in_place_of_rows(monkeypatch):
    plan, shown = teacher_plan(teachers=3, batch=4), []
    private, uniforms = np.arange(1.0, 5 * INPUTS.size + 1).reshape(5, -1), Noise(5).uniforms(24)

    def watched(network, parameters, rows, loss, labels, multiples):
        shown.append((rows, labels, multiples))
        return np.zeros_like(parameters)

    monkeypatch.setattr("counterpoise.vault.votes.team_gradient", watched)
    # The second teacher has no rows.
    classes = _Classes(private, np.array([0, 2, 0, 2, 0]), 3)
    with opened() as vault, vault.teachers(plan) as teachers:
        teachers._step(classes, PUBLIC, Scripted(uniforms))
    [(rows, labels, multiples)] = shown
    own, others = uniforms.reshape(2, 3, 4)
    for teacher, places in ((0, [0, 2, 4]), (2, [1, 3])):
        picked = private[np.array(places)[(own[teacher] * len(places)).astype(int)]]
        assert np.array_equal(rows[teacher, :4], picked)
    assert np.array_equal(rows[:, 4:], PUBLIC[(others * len(PUBLIC)).astype(int)])
    assert labels.tolist() == [1.0] * 4 + [-1.0] * 4
    assert multiples.tolist() == [[1 / 8] * 8, [0.0] * 4 + [1 / 8] * 4, [1 / 8] * 8]


def test_teachers_are_chosen_uniformly():
    sizes = []
    for _ in range(60):
        with opened(rows=100, seed=len(sizes)) as vault, vault.teachers(teacher_plan()) as teachers:
            teachers.train(PUBLIC, 1)
            sizes.append(teachers._classes.sizes)
    assert stats.chisquare(np.sum(sizes, axis=0)).pvalue > 1e-6


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_teachers_without_rows_vote_too(rows):
    with opened(rows=rows) as vault, vault.teachers(teacher_plan()) as teachers:
        teachers.train(PUBLIC, 5)
        assert np.isfinite(teachers._parameters).all()
        assert teachers.votes(PUBLIC[:3]).shape == (3,)


def test_one_row_changes_what_one_teacher_has_learnt():
    """The same draws over neighbours: what the other teachers are is equal to the last bit."""

    class Same(Noise):
        """The draws of each call are those of its number, so that a row more shifts none."""

        def __init__(self):
            super().__init__(0)
            self.calls = 0

        def uniforms(self, count):
            self.calls += 1
            return Noise(self.calls).uniforms(max(count, 1000))[:count]

    def learnt(rows):
        with Vault(table(80)[:rows], SCHEMA, BUDGET) as vault:
            vault._noise = Same()
            with vault.teachers(teacher_plan(teachers=8)) as teachers:
                teachers.train(PUBLIC, 20)
                return teachers._parameters

    for more in (80, 61, 3):
        changed = (learnt(more - 1) != learnt(more)).any(axis=1)
        assert changed.sum() == 1


def test_teachers_are_let_go_with_the_course_and_seeds_repeat():
    def run():
        with opened(seed=4) as vault:
            with vault.teachers(teacher_plan()) as teachers:
                teachers.train(PUBLIC, 3)
                found = teachers.votes(PUBLIC[:20])
            assert teachers._classes is None
            assert teachers._parameters.size == 0
            with pytest.raises(VaultError, match="closed"):
                teachers.train(PUBLIC, 1)
            with pytest.raises(VaultError, match="never copied"):
                teachers.__reduce__()
            return found

    assert np.array_equal(run(), run())


def test_teachers_that_are_closed_while_another_thread_trains_them_are_let_go(monkeypatch):
    with opened() as vault, vault.teachers(teacher_plan()) as teachers:
        draw, is_training, is_closed = vault._noise.uniforms, threading.Event(), threading.Event()

        def slowly(count):
            is_training.set()
            is_closed.wait(0.1)
            return draw(count)

        def close():
            is_training.wait()
            teachers.close()
            is_closed.set()

        monkeypatch.setattr(vault._noise, "uniforms", slowly)
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        teachers.train(PUBLIC, 1)
        closing.join()
        assert teachers._classes is None
        assert teachers._parameters.size == 0


@pytest.mark.parametrize("wrong", [None, "x", [[1.0]], np.zeros((0, 4)), [[np.nan] * 5]])
def test_rows_that_are_none_are_refused_and_cost_no_vote(wrong):
    with opened() as vault, vault.teachers(teacher_plan()) as teachers:
        for ask in (teachers.votes, lambda rows: teachers.train(rows, 1)):
            with pytest.raises(VaultError, match="rows"):
                ask(wrong)
        assert teachers.taken == 0


class OwnOptimiser(Optimiser):
    pass


class OwnPlan(TeacherPlan):
    pass


def test_a_plan_of_a_type_of_its_own_is_refused():
    with opened() as vault, pytest.raises(VaultError, match="expected a TeacherPlan"):
        vault.teachers(OwnPlan(**vars(teacher_plan())))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("inputs", None),
        ("optimiser", OwnOptimiser()),
        ("network", Network((1, 1))),
        ("teachers", 0),
        ("queries", 0),
        ("noise", np.inf),
        ("loss", "x"),
        ("batch", 0),
        ("optimiser", "adam"),
        ("seed", -1),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(field, value):
    with pytest.raises(VaultError, match=field):
        teacher_plan(**{field: value})


def test_votes_that_were_given_stay_given_in_a_later_run(tmp_path):
    def journal():
        return Journal(tmp_path / "journal", BUDGET)

    with opened(journal=journal()) as vault, vault.teachers(teacher_plan()) as teachers:
        teachers.votes(PUBLIC[:15])
        teachers.keep({"labels": np.arange(15)})
    with opened(journal=journal()) as vault, vault.teachers(teacher_plan()) as teachers:
        assert (teachers.left, teachers.kept.steps) == (25, 15)
        assert len(vault.ledger.spends) == 1
        teachers.votes(PUBLIC[:25])
    with opened(journal=journal()) as vault, vault.teachers(teacher_plan()) as teachers:
        assert teachers.left == 0
