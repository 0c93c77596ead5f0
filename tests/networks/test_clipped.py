"""Means of clipped gradients over public rows."""

import numpy as np
import pytest

from counterpoise.networks import ACTIVATIONS, Network, clipped_gradient


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", ["logistic", "wasserstein"])
def test_each_row_is_clipped_by_itself(activation, loss):
    generator = np.random.default_rng(0)
    network = Network((3, 6, 4, 1), activation)
    parameters = network.initial(generator) + 0.2 * generator.normal(size=network.size)
    rows, labels = generator.normal(size=(12, 3)), generator.choice([-1.0, 1.0], 12)
    single = np.array(
        [
            clipped_gradient(network, parameters, rows[[row]], loss, labels[row], clip=1e9)
            for row in range(12)
        ]
    )
    norms = np.linalg.norm(single, axis=1)
    clip = float(np.median(norms))
    expected = (single * np.minimum(1, clip / norms)[:, None]).mean(axis=0)
    found = clipped_gradient(network, parameters, rows, loss, labels, clip)
    assert np.allclose(found, expected)


def test_a_row_without_a_gradient_stays_without_one():
    network = Network((2, 3, 1))
    found = clipped_gradient(network, np.zeros(network.size), np.ones((1, 2)), "wasserstein", 1.0)
    # All but the last offset, whose slope is minus one, are zero, and nothing is divided by zero.
    assert found.tolist() == [0.0] * (network.size - 1) + [-1.0]
