"""GANs: charged before the first step, resumed from what was kept; twins that are never private."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, MethodError
from counterpoise.networks import Network
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Cgan, DpCgan, DpGan, Gan
from counterpoise.synthesizers.adversarial import bounded
from counterpoise.synthesizers.gan_model import GanModel
from counterpoise.synthesizers.progress import watched
from counterpoise.vault import Budget, Journal, Vault

SCHEMA = Schema(
    [
        Column.continuous("x", 0, 10, bins=8),
        Column.continuous("y", 0, 10, bins=8, nullable=True),
        Column.categorical("ill", ["no", "yes"]),
    ]
)
BUDGET = Budget(3.0, 1e-6)


def table(rows, seed=0):
    generator = np.random.default_rng(seed)
    ill = generator.random(rows) < 0.3
    x = np.clip(generator.normal(np.where(ill, 7, 3), 1.0), 0, 10)
    y = np.clip(generator.normal(x, 1.0), 0, 10)
    y[generator.random(rows) < 0.1] = np.nan
    return pd.DataFrame({"x": x, "y": y, "ill": np.where(ill, "yes", "no")})


def quick(kind=DpGan, **options):
    """A method that learns little, for what does not depend on it."""
    return kind(**{"steps": 20, "start_steps": 20} | options)


def fitted(method, rows=1000, budget=BUDGET):
    with Vault(table(rows), SCHEMA, budget, seed=1) as vault:
        return method.fit(vault, budget.whole), vault.ledger


@pytest.mark.parametrize(
    "method", [DpGan(steps=20, start=0), DpCgan(steps=20, start=0)], ids=["dpgan", "dpcgan"]
)
def test_from_nothing_all_steps_are_one_charge_after_that_for_the_rows(method):
    model, ledger = fitted(method)
    queries = [spend.query for spend in ledger.spends]
    assert len(queries) == 2
    assert queries[0] == ("counts of ill" if method.is_given else "number of rows")
    assert queries[1].startswith("descent of 20 steps")
    assert ledger.epsilon_spent <= BUDGET.epsilon
    assert abs(model.rows - 1000) < 100


@pytest.mark.parametrize("method", [quick(), quick(DpCgan)], ids=["dpgan", "dpcgan"])
def test_a_start_is_two_charges_before_that_of_the_steps(method):
    model, ledger = fitted(method)
    assert [spend.query.split(" of ")[0] for spend in ledger.spends] == [
        "counts",
        "sums",
        "descent",
    ]
    assert 0.9 * BUDGET.epsilon < ledger.epsilon_spent <= BUDGET.epsilon
    assert abs(model.rows - 1000) < 100


def test_with_a_start_columns_are_as_they_were_measured_and_relations_are_there():
    model, _ = fitted(DpCgan(steps=50), rows=2000)
    made, truth = model.sample(5000, seed=1), table(5000, seed=1)
    for name in ("x", "y"):
        assert abs(made[name].mean() - truth[name].mean()) < 0.3
    assert abs(made["y"].isna().mean() - 0.1) < 0.03
    means = made.groupby("ill")["x"].mean()
    assert means["yes"] - means["no"] > 2.5


def test_a_generator_that_is_held_stays_nearer_to_its_start():
    def moved(hold):
        model, _ = fitted(DpGan(steps=20, hold=hold, generator_rate=0.02))
        return model.sample(5000, seed=1)["x"].corr(model.sample(5000, seed=1)["y"])

    truth = table(5000, seed=1)
    truth = truth["x"].corr(truth["y"])
    assert abs(moved(1000.0) - truth) < abs(moved(0.0) - truth)


def test_boosting_is_one_charge_more_and_shares_rows_among_snapshots():
    for start in (0.0, 0.8):
        model, ledger = fitted(quick(start=start, snapshots=3))
        assert ledger.spends[-1].query == "sums of 3 features"
        assert 0.9 * BUDGET.epsilon < ledger.epsilon_spent <= BUDGET.epsilon
        assert len(model.parameters) == 3 and abs(model.shares.sum() - 1) < 1e-9
        again = GanModel.from_arrays(SCHEMA, model.to_arrays(), private=False)
        assert again.sample(50, seed=1).equals(model.sample(50, seed=1))


def test_a_gan_learns_where_rows_are():
    model, _ = fitted(Cgan(steps=300), rows=2000)
    made, truth = model.sample(5000, seed=1), table(5000, seed=1)
    for ill in ("no", "yes"):
        ours, theirs = (each.loc[each["ill"] == ill, "x"].mean() for each in (made, truth))
        assert abs(ours - theirs) < 1.2, (ill, ours, theirs)
    assert abs((made["ill"] == "yes").mean() - 0.3) < 0.06


def test_a_given_column_has_its_paid_counts():
    model, _ = fitted(quick(DpCgan), rows=2000)
    made = model.sample(20_000, seed=1)
    assert abs((made["ill"] == "yes").mean() - 0.3) < 0.05


def test_the_critic_tells_private_rows_from_others():
    model, _ = fitted(Cgan(steps=200), rows=2000)
    inside, outside = table(500, seed=3), table(500, seed=3)
    outside["x"] = 10 - outside["x"]

    def means(rows):
        seen = model.inputs(SCHEMA.encode(rows))
        return model.critic.outputs(model.critic_parameters, seen).mean()

    assert model.critic_loss == "logistic"
    assert means(inside) > means(outside)


def test_a_wasserstein_critic_has_a_slope_of_at_most_one():
    model, _ = fitted(quick(loss="wasserstein"))
    layers = model.critic.layers(model.critic_parameters)
    assert all(np.linalg.norm(matrix, 2) <= 1 + 1e-9 for matrix, _ in layers)
    parameters = Network((2, 3, 1)).initial(np.random.default_rng(0))
    assert (bounded(Network((2, 3, 1)), parameters, "logistic") == parameters).all()


@pytest.mark.parametrize("method", [Gan(steps=5), Cgan(steps=5)], ids=["gan", "cgan"])
def test_twins_without_noise_are_stamped_and_refused_on_a_private_vault(method):
    model, ledger = fitted(method)
    assert not model.private
    assert ledger.spends[-1].query.endswith("WITHOUT NOISE")
    with Vault(table(50), SCHEMA, BUDGET) as vault:
        with pytest.raises(MethodError, match="seed"):
            method.fit(vault, BUDGET.whole)
        assert not vault.ledger.spends


class Stop(Exception):
    pass


@pytest.mark.parametrize(
    "method, charges",
    [(DpGan(steps=60, start=0), 2), (quick(steps=60), 3), (quick(steps=60, snapshots=4), 4)],
    ids=["from nothing", "with a start", "boosted"],
)
def test_a_run_that_was_stopped_goes_on_from_what_was_paid_for(tmp_path, method, charges):
    rows = table(300)

    def stop(done):
        if done > 0.5:
            raise Stop

    def opened(seed):
        journal = Journal(tmp_path / "journal", BUDGET, private=False)
        return Vault(rows, SCHEMA, BUDGET, seed=seed, journal=journal)

    with opened(1) as vault, watched(stop), pytest.raises(Stop):
        method.fit(vault, BUDGET.whole)
    seen = []
    with opened(2) as vault, watched(seen.append):
        model, ledger = method.fit(vault, BUDGET.whole), vault.ledger
    assert min(seen) > 0.5 and seen[-1] == 1.0
    assert len(model.parameters) == max(1, method.snapshots)
    assert len(ledger.spends) == charges and ledger.epsilon_spent <= BUDGET.epsilon
    assert len(model.sample(10, seed=0)) == 10


def test_a_model_is_the_same_when_read_back():
    model, _ = fitted(quick(DpCgan))
    again = GanModel.from_arrays(SCHEMA, model.to_arrays(), private=False)
    assert again.sample(50, seed=1).equals(model.sample(50, seed=1))
    assert again.critic == model.critic and again.critic_loss == model.critic_loss


def test_what_has_no_account_is_refused_unasked():
    for budget, error in ((Budget(1.0), BudgetError), (Budget(1.0, 1e-6, "replace"), MethodError)):
        with Vault(table(50), SCHEMA, budget, seed=1) as vault:
            with pytest.raises(error):
                DpGan().fit(vault, budget.whole)
            assert not vault.ledger.spends


@pytest.mark.parametrize("target", ["x", "nowhere"])
def test_only_a_column_of_categories_can_be_given(target):
    with Vault(table(50), SCHEMA, BUDGET, seed=1) as vault:
        with pytest.raises(Exception, match=target):
            DpCgan(target=target).fit(vault, BUDGET.whole)
        assert not vault.ledger.spends


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"clip": 0.0},
        {"loss": "hinge"},
        {"lot": 0},
        {"critic_rate": -1},
        {"start": 1.0},
        {"hold": -1.0},
        {"snapshots": -1},
    ],
)
def test_odd_parameters_are_refused(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        DpGan(**wrong)
