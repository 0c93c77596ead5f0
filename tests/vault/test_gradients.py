"""Sums of clipped gradients: a sum over rows of vectors that each depend on one row, exactly."""

import math

import numpy as np
import pytest

from counterpoise.networks import ACTIVATIONS, Network, clipped_gradient
from counterpoise.vault import gradients as room
from counterpoise.vault.gradients import LONGEST, ClippedGradients, Workspace

UNITS = [(4, 1), (5, 7, 1), (3, 9, 6, 1), (4, 5, 6, 3, 1)]


def problem(units, activation="relu", rows=57, seed=0, clip=0.3, size=1.0):
    generator = np.random.default_rng(seed)
    network = Network(units, activation)
    parameters = size * (network.initial(generator) + 0.1 * generator.normal(size=network.size))
    inputs = generator.uniform(-1, 1, (rows, units[0]))
    return ClippedGradients(network, "logistic", clip), parameters, inputs


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_sum_is_that_of_clipped_gradients(units, activation):
    gradients, parameters, inputs = problem(units, activation)
    found = gradients.sums(parameters, gradients.prepare(inputs), np.arange(len(inputs)))
    network = gradients.network
    expected = clipped_gradient(network, parameters, inputs, "logistic", 1.0, gradients.clip)
    assert np.allclose(found * gradients.unit / len(inputs), expected, atol=3e-6 * gradients.clip)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", ["logistic", "wasserstein"])
def test_a_row_adds_the_same_in_every_company(units, activation, loss):
    gradients, parameters, inputs = problem(units, activation, rows=41)
    gradients = ClippedGradients(gradients.network, loss, gradients.clip)
    prepared = gradients.prepare(inputs)
    alone = np.array(
        [gradients.sums(parameters, prepared, np.array([row])) for row in range(len(inputs))]
    )
    generator = np.random.default_rng(1)
    room_ = Workspace()
    for size in (0, 1, 2, 7, 8, 9, 23, 41):
        lot = np.sort(generator.permutation(41)[:size])
        found = gradients.sums(parameters, prepared, lot, room_)
        assert np.array_equal(found, alone[lot].sum(axis=0))


def test_lots_of_many_thousand_rows_are_exact_too():
    gradients, parameters, inputs = problem((6, 20, 1), rows=10_000)
    prepared = gradients.prepare(inputs)
    whole = gradients.sums(parameters, prepared, np.arange(10_000))
    halves = [gradients.sums(parameters, prepared, np.arange(start, 10_000, 2)) for start in (0, 1)]
    assert np.array_equal(whole, halves[0] + halves[1])


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0])
def test_no_row_adds_more_than_the_clipping_norm(units, activation, size):
    gradients, parameters, inputs = problem(units, activation, clip=0.05, size=size)
    gradients = ClippedGradients(gradients.network, "wasserstein", 0.05)
    prepared = gradients.prepare(inputs)
    norms = []
    for row in range(len(inputs)):
        part = gradients.sums(parameters, prepared, np.array([row])).tolist()
        # In whole numbers: nothing is rounded away here.
        norms.append(math.sqrt(sum(value * value for value in part)) * gradients.unit)
    assert max(norms) <= 0.05 * LONGEST
    # The last offset alone has a slope of one, so all of them are clipped, and nearly that long.
    assert min(norms) > 0.05 * 0.999


@pytest.mark.parametrize("loss", ["logistic", "wasserstein"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_row_keeps_to_its_norm_and_to_itself_whatever_the_parameters(activation, loss):
    """Weights of all sizes side by side, and none at all: what a caller says is not believed."""
    generator = np.random.default_rng(7)
    for trial in range(60):
        units = UNITS[trial % len(UNITS)]
        network = Network(units, activation)
        sizes = 10.0 ** generator.uniform(-150, 150, network.size)
        parameters = network.initial(generator) * (sizes if trial % 2 else sizes[0])
        parameters[generator.random(network.size) < 0.3] = 0.0
        inputs = generator.uniform(-1, 1, (10, units[0])).round(trial % 3)
        gradients = ClippedGradients(network, loss, 0.7)
        prepared = gradients.prepare(inputs)
        alone = gradients.sums(parameters, prepared, np.array([0]))
        norm = np.linalg.norm(alone.astype(float)) * gradients.unit
        assert norm <= LONGEST * gradients.clip
        others = gradients.sums(parameters, prepared, np.arange(1, 10))
        assert np.array_equal(gradients.sums(parameters, prepared, np.arange(10)) - others, alone)


def test_what_has_no_finite_norm_adds_nothing():
    gradients, parameters, inputs = problem((3, 9, 6, 1), "elu")
    prepared = gradients.prepare(inputs)
    usual = gradients.sums(parameters, prepared, np.arange(20))
    poisoned = prepared.copy()
    poisoned[20], poisoned[21], poisoned[22] = np.nan, np.inf, -np.inf
    assert np.array_equal(gradients.sums(parameters, poisoned, np.arange(23)), usual)
    huge = 1e99 * np.sign(parameters)
    assert np.isfinite(gradients.sums(huge, prepared, np.arange(20))).all()


def test_sums_do_not_depend_on_what_the_workspace_held():
    gradients, parameters, inputs = problem((5, 7, 1))
    prepared = gradients.prepare(inputs)
    used = Workspace()
    gradients.sums(parameters, prepared, np.arange(57), used)
    for array in used._arrays.values():
        array[:] = np.nan
    lot = np.arange(3, 30)
    assert np.array_equal(
        gradients.sums(parameters, prepared, lot, used), gradients.sums(parameters, prepared, lot)
    )


def test_single_precision_holds_all_places_of_the_inputs():
    gradients, _, inputs = problem((5, 7, 1))
    prepared = gradients.prepare(inputs)
    assert np.array_equal(prepared, prepared.astype(np.float32))


@pytest.mark.parametrize("widest", [1, 100, 8000, 100_000])
def test_products_fit_double_precision(widest):
    gradients = ClippedGradients(Network((3, widest, 1)), "logistic", 1.0)
    units = max(widest, 3) + 1
    assert 2 * gradients.places + math.log2(units) <= 53
    assert gradients.places >= 17
    # A row's part is below 2^(places + 20), and so many rows below 2^53.
    most = 2.0 ** (gradients.places + room._ERROR_PLACES)
    assert gradients.clip * LONGEST / gradients.unit <= most
    assert most * room._ROWS_AT_ONCE < 2**53
