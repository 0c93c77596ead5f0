"""Telling tables apart: the logit is the log-ratio, however many rows each side has."""

import math

import numpy as np
import pytest

from counterpoise.networks import (
    Network,
    Rehearsal,
    Training,
    clipped_gradient,
    standardised_start,
    typical_slope,
)


def tilted(rows: int, tilt: float, seed: int) -> np.ndarray:
    """Two columns on [-1, 1]; the first has a density proportional to exp(tilt x)."""
    uniform = np.random.default_rng(seed).uniform(size=(rows, 2))
    found = 2 * uniform - 1
    if tilt:
        found[:, 0] = np.log1p(uniform[:, 0] * math.expm1(2 * tilt)) / tilt - 1
    return found


def trained(private: np.ndarray, public: np.ndarray, hidden=(32,), steps=150) -> np.ndarray:
    """The logits of the public rows, by steps over all rows without noise."""
    network = Network((2, *hidden, 1))
    start = standardised_start(network, public, np.random.default_rng(0))
    slope = typical_slope(network, start, public)
    training = Training(network, start, steps, slope, 3.0 / slope**2, len(public))
    source = Rehearsal(
        network,
        private,
        np.ones(len(private), dtype=int),
        1.0,
        float(len(private)),
        slope,
        0.0,
        steps,
        np.random.default_rng(0),
    )
    parameters = training.train(source, public)
    return network.outputs(parameters, public)[:, 0]


@pytest.mark.parametrize("hidden", [(), (32,)])
@pytest.mark.parametrize(("private_rows", "public_rows"), [(800, 2400), (2400, 800)])
def test_the_logit_is_the_log_ratio_whatever_the_numbers_of_rows(hidden, private_rows, public_rows):
    """Its constant too: log(N/n) = 1.1 either way would be seen."""
    private, public = tilted(private_rows, 0.8, 1), tilted(public_rows, 0.0, 2)
    log_ratio = 0.8 * public[:, 0] - math.log(math.sinh(0.8) / 0.8)
    found = trained(private, public, hidden)
    assert float(np.sqrt(np.mean((found - log_ratio) ** 2))) < 0.2


def test_a_hidden_layer_tells_what_no_single_column_shows():
    generator = np.random.default_rng(3)
    signs = generator.choice([-1.0, 1.0], 1000)
    first = generator.uniform(0, 1, 1000)
    private = np.column_stack([first, first * 0.5]) * signs[:, None]
    public = private * generator.choice([-1.0, 1.0], (1000, 2))
    agree = np.sign(public[:, 0]) == np.sign(public[:, 1])
    linear, bent = trained(private, public, ()), trained(private, public, (32,))
    assert bent[agree].mean() - bent[~agree].mean() > 1.5
    assert abs(linear[agree].mean() - linear[~agree].mean()) < 0.2


def test_clipping_below_the_slope_would_be_sure_of_what_it_suspects():
    """Why C is the slope G: at a quarter of it the same training overstates the ratio."""
    private, public = tilted(2000, 0.4, 1), tilted(2000, 0.0, 2)
    network = Network((2, 32, 1))
    start = standardised_start(network, public, np.random.default_rng(0))
    slope = typical_slope(network, start, public)
    spreads = {}
    for part in (1.0, 0.25):
        training = Training(network, start, 100, part * slope, 3.0 / slope**2, 2000)
        source = Rehearsal(
            network,
            private,
            np.ones(2000, dtype=int),
            1.0,
            2000.0,
            part * slope,
            0.0,
            100,
            np.random.default_rng(0),
        )
        found = network.outputs(training.train(source, public), public)[:, 0]
        spreads[part] = float(found.std())
    truth = 0.4 / math.sqrt(3)
    assert spreads[1.0] == pytest.approx(truth, rel=0.25)
    assert spreads[0.25] > 1.5 * truth


def test_the_start_says_nothing_and_sees_rows_on_their_own_scale():
    rows = np.array([0.9, 0.0]) + np.random.default_rng(0).normal(size=(500, 2)) * [0.1, 0.5]
    network = Network((2, 64, 1))
    start = standardised_start(network, rows, np.random.default_rng(1))
    assert (network.outputs(start, rows) == 0).all()
    matrix, offsets = network.layers(start)[0]
    seen = rows @ matrix.T + offsets
    # Each unit bends among the rows: some are on either side.
    assert ((seen > 0).mean(axis=0) > 0).mean() > 0.9
    assert ((seen < 0).mean(axis=0) > 0).mean() > 0.9


def test_a_rehearsal_samples_each_row_with_its_rate_and_adds_noise_once():
    network = Network((1, 1))
    rows = np.linspace(-1, 1, 50)[:, None]
    counts = np.arange(50) % 3
    source = Rehearsal(network, rows, counts, 0.3, 10.0, 5.0, 0.7, 2000, np.random.default_rng(0))
    parameters = np.array([0.4, -0.2])
    found = np.array([source.gradient(parameters) for _ in range(2000)])
    assert source.left == 0
    all_rows = np.repeat(rows, counts, axis=0)
    each = np.array([clipped_gradient(network, parameters, row[None], "logistic", 1.0, 5.0)
                     for row in all_rows])  # fmt: skip
    expected = 0.3 * each.sum(axis=0) / 10
    variance = (0.3 * 0.7 * (each**2).sum(axis=0) + 0.7**2) / 100
    error = np.sqrt(variance / 2000)
    assert (np.abs(found.mean(axis=0) - expected) < 4 * error).all()
    assert found.var(axis=0) == pytest.approx(variance, rel=0.12)


class Stopped:
    """A source that keeps what it is given, and can be stopped and taken up again."""

    def __init__(self, source, kept=None):
        self.source, self.kept, self.latest = source, kept, None

    @property
    def left(self):
        return self.source.left

    def gradient(self, parameters):
        return self.source.gradient(parameters)

    def keep(self, state):
        self.latest = {name: np.array(value) for name, value in state.items()}


class Kept:
    def __init__(self, arrays):
        self.arrays = arrays


def test_a_training_that_was_interrupted_goes_on_as_it_would_have():
    private, public = tilted(300, 0.8, 1), tilted(700, 0.0, 2)
    network = Network((2, 8, 1))
    start = standardised_start(network, public, np.random.default_rng(0))
    training = Training(network, start, 30, 2.0, 0.3, lot=100)

    def source(steps):
        return Rehearsal(
            network,
            private,
            np.ones(300, dtype=int),
            1.0,
            300.0,
            2.0,
            0.0,
            steps,
            np.random.default_rng(0),
        )

    whole = training.train(Stopped(source(30)), public)

    class Killed(Exception):
        pass

    class Dying(Stopped):
        def gradient(self, parameters):
            if self.left == 9:
                raise Killed
            return super().gradient(parameters)

    dying = Dying(source(30))
    with pytest.raises(Killed):
        training.train(dying, public)
    assert training.train(Stopped(source(9), Kept(dying.latest)), public) == pytest.approx(whole)
