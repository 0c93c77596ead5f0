"""MMD-GAN: a generator against an encoder that tells two tables apart. Never private.

The maximum mean discrepancy of private and made rows is taken behind an encoder f that is trained
to make it large, while a decoder keeps f from forgetting what rows differ in (Li, Chang, Cheng,
Yang and Póczos 2017); the generator makes it small. Encoder and decoder have three layers of 100
units and a bottleneck of 64, exponential linear units, steps of RMSProp at 0.001, and the
discrepancy counts a tenth of the reconstruction, as in chapter 4 of Diesendruck's dissertation.

Two things are ours. The kernel behind the encoder is of random features, k(a, b) = phi(a).phi(b),
phi(a) = elu(W a + c) with fixed W of several scales. Then the whole is a described network
w.phi(f(x)), whose gradient in w is the mean embedding of the private rows, and in the encoder that
of the discrepancy, when w is the difference of the two mean embeddings: gradients are all that a
vault gives. And the reconstruction is asked of made rows alone, as no gradient of such a network
tells it of private ones. The encoder's layers are held to a spectral norm of one, so that the
discrepancy cannot be blown up.

Charge: the number of rows, where it is private; the descent has no noise, and a line in the ledger
that says so. Only a vault with a seed goes along, and what comes out is stamped as not private.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterpoise.arguments import real_number, settle, whole_number
from counterpoise.networks import Inputs, Network, Optimiser
from counterpoise.networks.generator import RowGenerator
from counterpoise.networks.optimisers import OptimiserState
from counterpoise.synthesizers.adversarial import SQUARE_MEMORY, bounded
from counterpoise.synthesizers.beginning import pay_for_rows
from counterpoise.synthesizers.gan import check_noiseless
from counterpoise.synthesizers.gan_model import GanModel
from counterpoise.synthesizers.progress import report
from counterpoise.synthesizers.protocol import SYNTHESIZERS
from counterpoise.vault import Descent, DescentPlan, Share, Vault

LAYER, LAYERS, BOTTLENECK = 100, 3, 64
# Random features, a part of them of each scale.
FEATURES, SCALES = 128, (0.5, 1.0, 2.0, 4.0)
# The fewer rows, the fewer steps; these are the fewest.
FEWEST_STEPS = 50
# A row's gradient is not to be clipped.
UNCLIPPED = 1e4
# The last part of the steps, over which the generator is averaged; progress is told this often.
AVERAGED_PART, REPORTS = 0.3, 50


@SYNTHESIZERS.register("mmdgan")
@dataclass(frozen=True)
class MmdGan:
    """MMD-GAN, never private, and stamped so. Only for vaults with a seed.

    `steps` are at most as many as there are rows; `lot` is how many private rows a step sees on
    average, and as many are made; `weight` is what the discrepancy counts beside the
    reconstruction; `noise` is how many random numbers a row is made of, `hidden` the units of the
    generator's two hidden layers.
    """

    steps: int = 1000
    lot: int = 128
    rate: float = 0.001
    weight: float = 0.1
    noise: int = 16
    hidden: int = LAYER
    seed: int = 0

    needs_delta = True
    needs_rows = True
    needs_seed = True

    def __post_init__(self) -> None:
        settle(
            self,
            steps=whole_number("steps", self.steps, most=1_000_000),
            lot=whole_number("lot", self.lot, most=1_000_000),
            rate=real_number("rate", self.rate, "a positive number", above=0),
            weight=real_number("weight", self.weight, "a positive number", above=0),
            noise=whole_number("noise", self.noise, most=10_000),
            hidden=whole_number("hidden", self.hidden, most=10_000),
            seed=whole_number("seed", self.seed, 0),
        )

    def fit(self, vault: Vault, share: Share) -> GanModel:
        """Count the rows, then train without noise."""
        check_noiseless(vault, share, "mmdgan", "dp-mmd")
        rows, _, _ = pay_for_rows(vault, share, None)
        inputs = Inputs(vault.schema)
        maker = RowGenerator(inputs, self.noise, (self.hidden, self.hidden))
        units = (inputs.size, *(LAYER,) * LAYERS, BOTTLENECK, FEATURES, 1)
        rate = min(1.0, self.lot / rows)
        plan = DescentPlan(
            inputs=inputs,
            network=Network(units, "elu"),
            loss="wasserstein",
            rate=rate,
            lot=rate * rows,
            clip=UNCLIPPED,
            noise=0.0,
            steps=min(self.steps, max(FEWEST_STEPS, rows)),
        )
        with vault.descent(plan) as descent:
            made, witness = _Training(plan.network, maker, self).run(descent)
        return GanModel(
            vault.schema,
            maker,
            made[None],
            np.ones(1),
            None,
            plan.network,
            witness,
            "wasserstein",
            rows,
            vault.private,
        )


class _Training:
    """All networks of a training, as they are after the steps so far."""

    def __init__(self, witness: Network, maker: RowGenerator, method: MmdGan):
        generator = np.random.default_rng(method.seed)
        self.witness, self.maker, self.method = witness, maker, method
        self.encoder = Network(witness.units[:-2], "elu")
        size = witness.units[0]
        self.decoder = Network((BOTTLENECK, *(LAYER,) * LAYERS, size), "elu")
        parameters = witness.initial(generator)
        matrix, offsets = witness.layers(parameters)[-2]
        scales = np.resize(SCALES, FEATURES)
        matrix[:] = scales[:, None] * generator.standard_normal(matrix.shape)
        offsets[:] = generator.uniform(-2, 2, FEATURES)
        parameters[-FEATURES - 1 :] = 0.0
        self.parts = {
            "witness": parameters,
            "decoder": self.decoder.initial(generator),
            "generator": maker.network.initial(generator),
        }
        self._hold_encoder()
        self.states: dict[str, OptimiserState] = {}

    def run(self, descent: Descent) -> tuple[np.ndarray, np.ndarray]:
        """The averaged generator, and the last witness, after all steps that are left."""
        steps, every = descent.plan.steps, max(1, descent.plan.steps // REPORTS)
        if descent.kept is not None:
            self.parts = dict(descent.kept.arrays)
        total, count = np.zeros_like(self.parts["generator"]), 0
        while descent.left:
            done = descent.taken
            self._step(descent, np.random.default_rng([self.method.seed, 1, done]))
            if done >= (1 - AVERAGED_PART) * steps:
                total, count = total + self.parts["generator"], count + 1
            if descent.taken % every == 0 or not descent.left:
                descent.keep(self.parts)
                report(descent.taken / steps)
        return (total / count if count else self.parts["generator"]), self.parts["witness"]

    def _step(self, descent: Descent, generator: np.random.Generator) -> None:
        """One step of encoder and decoder, of the witness, and of the generator."""
        answer = descent.gradient(self.parts["witness"])
        # The slope in the last offset is minus the rows of the lot, in the plan's lots.
        rows = max(-float(answer[-1]), 1e-9)
        made = self.maker.make(self.parts["generator"], self.method.lot, generator)
        private, public = -answer / rows, self._mean_slopes(made.inputs)
        # d MMD^2 / d theta = 2 (E_x - E_y) d w.phi(f) / d theta, w = E_x phi - E_y phi
        size = self.encoder.size
        apart = 2 * (private - public)[:size]
        rebuilt, kept = self._reconstruction(made.inputs)
        self._move("decoder", rebuilt)
        moved = np.zeros_like(self.parts["witness"])
        moved[:size] = kept - self.method.weight * apart
        self._move("witness", moved)
        self._hold_encoder()
        self.parts["witness"][-FEATURES - 1 : -1] = (private - public)[-FEATURES - 1 : -1]
        # The generator moves its rows up the witness function.
        network, parameters = self.witness, self.parts["witness"]
        passed = network.forward(parameters, made.inputs)
        slopes = np.full_like(passed.outputs, -2 / len(made.inputs))
        slopes = network.input_slopes(parameters, network.backward(parameters, passed, slopes))
        self._move("generator", self.maker.gradient(self.parts["generator"], made, slopes))

    def _mean_slopes(self, rows: np.ndarray) -> np.ndarray:
        """The mean over rows of the gradient of the witness function in all parameters."""
        network, parameters = self.witness, self.parts["witness"]
        passed = network.forward(parameters, rows)
        errors = network.backward(parameters, passed, np.ones_like(passed.outputs))
        return network.gradient(passed, errors) / len(rows)

    def _reconstruction(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradients of the mean squared error of what is decoded, in decoder and encoder."""
        encoder, parameters = self.encoder, self.parts["witness"][: self.encoder.size]
        coded = encoder.forward(parameters, rows)
        decoded = self.decoder.forward(self.parts["decoder"], coded.outputs)
        slopes = 2 * (decoded.outputs - rows) / len(rows)
        errors = self.decoder.backward(self.parts["decoder"], decoded, slopes)
        back = self.decoder.input_slopes(self.parts["decoder"], errors)
        through = encoder.gradient(coded, encoder.backward(parameters, coded, back))
        return self.decoder.gradient(decoded, errors), through

    def _move(self, name: str, gradient: np.ndarray) -> None:
        # A longer memory of squares begins with steps many times as long.
        rule = Optimiser("rmsprop", self.method.rate, square_memory=SQUARE_MEMORY)
        state = self.states.get(name) or rule.start(len(gradient))
        self.parts[name], self.states[name] = rule.step(self.parts[name], gradient, state)

    def _hold_encoder(self) -> None:
        size = self.encoder.size
        held = bounded(self.encoder, self.parts["witness"][:size], "wasserstein")
        self.parts["witness"][:size] = held
