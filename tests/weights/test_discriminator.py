"""Discriminator weights: free, from a critic alone, and mild where a critic has no scale."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.curation.plan import plan_release, plan_weigh
from counterpoise.errors import MethodError
from counterpoise.networks import Inputs, Network
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Independent
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Discriminator, DiscriminatorModel
from counterpoise.weights.discriminator import largest_power

SCHEMA = Schema([Column.continuous("x", 0, 1), Column.boolean("b")])
BUDGET = Budget(1.0, 1e-6)
TABLE = pd.DataFrame({"x": np.linspace(0, 1, 400), "b": [True, False] * 200})


@dataclass(frozen=True, eq=False)
class Gan:
    """A model whose critic is linear in x."""

    critic_loss: str = "logistic"
    slope: float = 2.0
    offset: float = 0.5
    schema: Schema = SCHEMA
    private: bool = True

    @property
    def critic(self) -> Network:
        return Network((Inputs(self.schema).size, 1))

    @property
    def critic_parameters(self) -> np.ndarray:
        return np.array([self.slope, *[0.0] * (self.critic.size - 2), self.offset])


def fitted(gan, method=None) -> DiscriminatorModel:
    with Vault(TABLE, SCHEMA, BUDGET) as vault:
        model = (method or Discriminator()).fit(vault, TABLE, None, gan)
        assert vault.ledger.spends == ()
    return model


def test_a_logit_is_the_log_weight_with_its_constant():
    found = fitted(Gan(), Discriminator(effective=0.1)).weigh(TABLE).log_weights
    # Inputs run from -1 to 1.
    assert found == pytest.approx(2.0 * (2 * TABLE["x"].to_numpy() - 1) + 0.5)


def test_a_logit_that_is_too_sure_is_made_milder_and_none_is_made_surer():
    weights = fitted(Gan(slope=20.0), Discriminator(0.8)).weigh(TABLE)
    assert weights.effective_sample_size / len(TABLE) == pytest.approx(0.8, abs=0.01)
    mild = fitted(Gan(slope=0.01, offset=0.0), Discriminator(0.8)).weigh(TABLE)
    assert np.ptp(mild.log_weights) == pytest.approx(0.02)


def test_a_logit_is_within_the_limit_on_new_rows_too():
    model = fitted(Gan(slope=20.0, offset=0.0), Discriminator(0.01, limit=3.0))
    found = model.weigh(TABLE).log_weights
    assert -3.0 <= found.min() < -2.9
    assert 2.9 < found.max() <= 3.0


@pytest.mark.parametrize("slope", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("effective", [0.5, 0.9])
def test_a_wasserstein_critic_gives_its_order_and_no_scale(slope, effective):
    """However long its outputs are, the weights are the same, and leave the rows asked for."""
    gan = Gan("wasserstein", slope)
    weights = fitted(gan, Discriminator(effective)).weigh(TABLE)
    assert (np.diff(weights.log_weights) > 0).all()
    assert weights.effective_sample_size / len(TABLE) == pytest.approx(effective, abs=0.01)
    other = fitted(Gan("wasserstein", 7.0, offset=-3.0), Discriminator(effective)).weigh(TABLE)
    assert weights.normalised == pytest.approx(other.normalised, rel=1e-6)


def test_a_critic_that_says_the_same_of_all_rows_leaves_them_alone():
    weights = fitted(Gan("wasserstein", 0.0)).weigh(TABLE)
    assert weights.normalised == pytest.approx(1)


def test_the_limit_holds_a_critic_that_singles_rows_out():
    outputs = np.zeros(10_000)
    outputs[0] = 1.0
    power = largest_power(outputs, effective=0.1, limit=2.0)
    assert power == pytest.approx(4.0)


def test_it_is_as_private_as_the_model_that_it_asks():
    assert fitted(Gan()).private
    assert not fitted(Gan(private=False)).private


def test_a_saved_model_is_the_same():
    model = fitted(Gan("wasserstein"))
    again = DiscriminatorModel.from_arrays(SCHEMA, model.to_arrays())
    assert (again.weigh(TABLE).log_weights == model.weigh(TABLE).log_weights).all()
    assert again.private == model.private


@pytest.mark.parametrize("made_by", [None, "independent"])
def test_rows_made_without_a_critic_are_refused_in_words(made_by):
    with Vault(TABLE, SCHEMA, BUDGET, seed=1) as vault:
        model = None if made_by is None else Independent().fit(vault, vault.budget.whole)
        with pytest.raises(MethodError, match="'dpgan', 'dpcgan' or 'pategan'"):
            Discriminator().fit(vault, TABLE, None, model)
    with Vault(TABLE, SCHEMA, BUDGET, seed=1) as vault:
        other = Gan(schema=Schema([Column.continuous("x", 0, 2)]))
        with pytest.raises(MethodError, match="synthesizer"):
            Discriminator().fit(vault, TABLE, None, other)


def test_a_release_without_a_critic_is_refused_before_anything_is_paid_for():
    with pytest.raises(MethodError, match="'dpgan', 'dpcgan' or 'pategan'"):
        plan_release(SCHEMA, BUDGET, synthesizer="independent", weights="discriminator")
    with pytest.raises(MethodError, match="'dpgan', 'dpcgan' or 'pategan'"):
        plan_weigh(SCHEMA, BUDGET, "discriminator")
    with pytest.raises(MethodError, match="critic"):
        cp.release(TABLE, SCHEMA, 1.0, 1e-6, synthesizer="independent", weights="discriminator")


@pytest.mark.parametrize(
    "wrong", [{"effective": 0}, {"effective": 1.5}, {"limit": 0}, {"limit": "wide"}], ids=str
)
def test_odd_arguments_are_refused(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        Discriminator(**wrong)
