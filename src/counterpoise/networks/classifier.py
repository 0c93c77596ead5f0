"""Telling two tables apart: a network whose logit is the log-ratio of their densities.

Private rows have the label 1, public rows the label -1, and each step adds the *mean* gradient of
either side, so that both count the same however many rows they have. Then the prior odds of the
training are one, and by Bayes' rule

    logit p(private | x) = log p_private(x) - log p_public(x)

without any constant. (Trained on all n + N rows alike, the logit would lack log(N/n).) Three things
keep the logit near that while steps are few and noisy:

- The network starts on the scale of the public rows, with a last layer of zeros: every row has the
  logit zero, and the first layer tells apart what public rows differ in.
- Gradients are clipped at G, the median over the public rows of the norm of the *logit's* gradient.
  A row's gradient is at most that long whatever its label, for half of the rows, and clipping
  leaves it alone. Clipped below G/2, undecided rows would all pull alike, and the logit would go on
  to be sure of what it only suspects.
- The pace is a multiple of 1/G^2, for then a step of noise s G on the parameters moves a logit by
  about `pace` times s, however many parameters there are.

The parameters are averaged over the later steps (Polyak and Juditsky 1992).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from counterpoise.networks.clipped import clipped_gradient
from counterpoise.networks.dense import Network

# A column that is nearly constant is not spread by more than this.
_LEAST_SPREAD = 0.05

# Rows from which a typical norm is known well enough.
_TYPICAL_ROWS = 4096


class Gradients(Protocol):
    """Where the private side's gradients come from: a vault's descent, or a rehearsal of one."""

    @property
    def left(self) -> int:
        """How many steps are left."""
        ...

    @property
    def kept(self) -> Any:
        """What an earlier run kept, as `arrays`, or None."""
        ...

    def gradient(self, parameters: np.ndarray) -> np.ndarray:
        """The mean gradient of a fresh lot, with whatever noise there is."""
        ...

    def keep(self, state: Mapping[str, np.ndarray]) -> None:
        """Keep what the steps so far have led to."""
        ...


@dataclass(frozen=True, eq=False)
class Training:
    """A training against public rows; all of it public."""

    network: Network
    start: np.ndarray  # the parameters to start from
    steps: int
    clip: float  # C
    pace: float  # what a gradient is multiplied by
    lot: int  # public rows a step

    def train(self, private: Gradients, public: np.ndarray, seed: int = 0) -> np.ndarray:
        """The averaged parameters; `public` are the inputs of the public rows."""
        parameters, total, count = self.start, np.zeros(self.network.size), 0
        if private.kept is not None:
            kept = private.kept.arrays
            parameters, total, count = kept["parameters"], kept["total"], int(kept["count"])
        while private.left:
            step = self.steps - private.left
            lot = public
            if self.lot < len(public):
                # A stream a step: a run that was interrupted goes on as it would have.
                stream = np.random.default_rng((seed, step))
                lot = public[stream.choice(len(public), self.lot, replace=False, shuffle=False)]
            gradient = private.gradient(parameters) + clipped_gradient(
                self.network, parameters, lot, "logistic", -1.0, self.clip
            )
            parameters = parameters - self.pace * gradient
            if 2 * (step + 1) > self.steps:
                total, count = total + parameters, count + 1
            private.keep({"parameters": parameters, "total": total, "count": np.array(count)})
        return total / count if count else parameters


def standardised_start(
    network: Network, rows: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Parameters that see rows centred and scaled, in units that differ, and say zero of all.

    >>> network = Network((2, 8, 1))
    >>> rows = np.random.default_rng(0).uniform(size=(100, 2))
    >>> start = standardised_start(network, rows, np.random.default_rng(0))
    >>> float(np.abs(network.outputs(start, rows)).max())
    0.0
    """
    parameters = network.initial(generator)
    layers = network.layers(parameters)
    if len(layers) > 1:
        matrix, offsets = layers[0]
        matrix /= np.maximum(rows.std(axis=0), _LEAST_SPREAD)
        # Units that all bend at the mean could tell no product of two columns.
        offsets[:] = generator.uniform(-1, 1, len(offsets)) - matrix @ rows.mean(axis=0)
    layers[-1][0][:] = 0.0
    return parameters


def typical_slope(network: Network, parameters: np.ndarray, rows: np.ndarray) -> float:
    """G: the median over rows of the norm of the output's gradient in the parameters.

    >>> typical_slope(Network((2, 1)), np.zeros(3), np.array([[2.0, 2.0]]))
    3.0
    """
    passed = network.forward(parameters, rows[:_TYPICAL_ROWS])
    errors = network.backward(parameters, passed, np.ones_like(passed.outputs))
    return float(np.sqrt(np.median(network.squared_norms(passed, errors))))
