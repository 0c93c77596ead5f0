"""MMD-GAN: never private, with true gradients, and rows where the private ones are."""

import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.networks import Inputs, Network
from counterpoise.networks.generator import RowGenerator
from counterpoise.synthesizers import MmdGan
from counterpoise.synthesizers.mmdgan import FEATURES, _Training
from counterpoise.vault import Vault
from tests.synthesizers.test_gan import BUDGET, SCHEMA, fitted, table


def test_rows_are_where_the_private_ones_are():
    model, ledger = fitted(MmdGan(steps=300), rows=2000)
    assert not model.private and ledger.spends[-1].query.endswith("WITHOUT NOISE")
    made, truth = model.sample(5000, seed=1), table(5000, seed=1)
    assert abs(made["x"].mean() - truth["x"].mean()) < 0.8
    means = made.groupby("ill")["x"].mean()
    assert means["yes"] - means["no"] > 2
    assert abs((made["ill"] == "yes").mean() - 0.3) < 0.1


def test_a_private_vault_is_refused_unasked():
    with Vault(table(50), SCHEMA, BUDGET) as vault:
        with pytest.raises(MethodError, match="dp-mmd"):
            MmdGan().fit(vault, BUDGET.whole)
        assert not vault.ledger.spends


def test_the_witness_is_the_difference_of_mean_embeddings():
    inputs = Inputs(SCHEMA)
    network = Network((inputs.size, 100, 100, 100, 64, FEATURES, 1), "elu")
    maker = RowGenerator(inputs, 4, (8,))
    training = _Training(network, maker, MmdGan(lot=64))
    seen = inputs(SCHEMA.encode(table(500)))

    class Whole:
        def gradient(self, parameters):
            passed = network.forward(parameters, seen)
            errors = network.backward(parameters, passed, -np.ones_like(passed.outputs))
            return network.gradient(passed, errors) / 300  # a lot that is stated wrongly

    start = training.parts["witness"].copy()
    made = maker.make(training.parts["generator"], 64, np.random.default_rng(0)).inputs
    training._step(Whole(), np.random.default_rng(0))
    embedded = [network.forward(start, rows).seen[-1].mean(axis=0) for rows in (seen, made)]
    np.testing.assert_allclose(
        training.parts["witness"][-FEATURES - 1 : -1], embedded[0] - embedded[1], atol=1e-9
    )


def test_the_encoder_is_held():
    training = _Training(
        Network((Inputs(SCHEMA).size, 100, 100, 100, 64, FEATURES, 1), "elu"),
        RowGenerator(Inputs(SCHEMA), 4, (8,)),
        MmdGan(),
    )
    layers = training.witness.layers(training.parts["witness"])[:4]
    assert all(np.linalg.norm(matrix, 2) <= 1 + 1e-9 for matrix, _ in layers)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"rate": 0.0}, {"weight": -1.0}])
def test_odd_parameters_are_refused(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        MmdGan(**wrong)
