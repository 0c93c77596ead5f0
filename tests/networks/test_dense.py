"""Dense networks: their gradients against those of JAX, on random networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.networks import ACTIVATIONS, LOSSES, Network, loss_slopes, loss_values

SHAPES = [(3, 1), (4, 7, 1), (30, 16, 8, 1), (2, 5, 5, 5, 1)]
THEIRS = {
    "relu": jax.nn.relu,
    "leaky-relu": lambda z: jax.nn.leaky_relu(z, 0.2),
    "elu": jax.nn.elu,
    "tanh": jnp.tanh,
}


def case(units, activation, rows=6):
    generator = np.random.default_rng([*units, ACTIVATIONS.index(activation)])
    network = Network(units, activation)
    labels = np.where(np.arange(rows) % 2, 1.0, -1.0)
    return (
        network,
        network.initial(generator) + 0.1 * generator.standard_normal(network.size),
        generator.standard_normal((rows, units[0])),
        labels,
    )


def loss_of_one(network, loss):
    """The loss of one row as JAX knows it."""

    def found(parameters, row, label):
        place, value = 0, row
        sizes = list(zip(network.units[:-1], network.units[1:], strict=True))
        for number, (before, after) in enumerate(sizes):
            matrix = parameters[place : place + before * after].reshape(after, before)
            offsets = parameters[place + before * after : place + (before + 1) * after]
            place += (before + 1) * after
            value = matrix @ value + offsets
            if number < len(sizes) - 1:
                value = THEIRS[network.activation](value)
        margin = label * value[0]
        return jnp.logaddexp(0.0, -margin) if loss == "logistic" else -margin

    return found


@pytest.mark.parametrize("units", SHAPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_norms_and_sums_of_gradients_are_those_of_automatic_differentiation(
    units, activation, loss
):
    network, parameters, rows, labels = case(units, activation)
    passed = network.forward(parameters, rows)
    errors = network.backward(parameters, passed, loss_slopes(loss, passed.outputs, labels))
    with jax.enable_x64(True):
        each = jax.vmap(jax.grad(loss_of_one(network, loss)), in_axes=(None, 0, 0))
        theirs = np.asarray(each(jnp.array(parameters), jnp.array(rows), jnp.array(labels)))
        by_row = jax.vmap(jax.grad(loss_of_one(network, loss), argnums=1), in_axes=(None, 0, 0))
        to_rows = np.asarray(by_row(jnp.array(parameters), jnp.array(rows), jnp.array(labels)))
    np.testing.assert_allclose(
        network.squared_norms(passed, errors), (theirs**2).sum(axis=1), rtol=1e-10
    )
    multiples = np.linspace(0.1, 2.0, len(rows))
    np.testing.assert_allclose(
        network.gradient(passed, errors, multiples), multiples @ theirs, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(network.gradient(passed, errors), theirs.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(network.input_slopes(parameters, errors), to_rows, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_are_those_of_the_values(loss):
    outputs, labels, step = np.linspace(-3, 3, 7)[:, None], np.array([1.0, -1.0] * 4)[:7], 1e-6
    around = [loss_values(loss, outputs + move, labels) for move in (step, -step)]
    expected = (around[0] - around[1]) / (2 * step)
    np.testing.assert_allclose(loss_slopes(loss, outputs, labels)[:, 0], expected, atol=1e-8)


@pytest.mark.parametrize(
    "wrong", [(), (3,), (3, 0), "3, 1", (3, 1.5), (3, True), None, (3, 10**9), (1,) * 60]
)
def test_units_have_to_be_whole_numbers_of_two_layers_or_more(wrong):
    with pytest.raises(MethodError, match="units"):
        Network(wrong)


def test_an_unknown_activation_is_refused():
    with pytest.raises(MethodError, match="activation"):
        Network((3, 1), "sigmoid")
