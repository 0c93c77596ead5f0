"""jax-privacy's descent, compiled: python -m peer_runners.descend_jax FEATURES LOT STEPS

Prints the CPU seconds of compilation, and of all steps after it. Lots are drawn by its Poisson
sampler, and padded to a multiple of a quarter lot so that few shapes are compiled, as its guide
advises; noise is jax's.
"""

from __future__ import annotations

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy import batch_selection, clipping, noise_addition

ROWS, UNITS, CLIP, NOISE, RATE = 5000, 128, 1.0, 1.0, 0.05


def main() -> None:
    features, lot, steps = map(int, sys.argv[1:])
    generator = np.random.default_rng(0)
    rows = (2 * generator.random((ROWS, features)) - 1).astype(np.float32)
    keys = jax.random.split(jax.random.key(0), 3)
    parameters = {
        "first": jax.random.normal(keys[0], (features, UNITS)) / np.sqrt(features),
        "offsets": jnp.zeros(UNITS),
        "last": jax.random.normal(keys[1], (UNITS,)) / np.sqrt(UNITS),
        "offset": jnp.zeros(()),
    }

    def loss(parameters: dict[str, jax.Array], inputs: jax.Array) -> jax.Array:
        hidden = jax.nn.relu(inputs @ parameters["first"] + parameters["offsets"])
        return jax.nn.softplus(-(hidden @ parameters["last"] + parameters["offset"])).sum()

    gradient = clipping.clipped_grad(
        loss, l2_clip_norm=CLIP, normalize_by=lot, batch_argnums=1, keep_batch_dim=False
    )
    privatizer = noise_addition.gaussian_privatizer(
        stddev=NOISE * gradient.sensitivity(), prng_key=keys[2]
    )

    @jax.jit
    def update(parameters, state, inputs, is_padding):
        found = gradient(parameters, inputs, is_padding_example=is_padding)
        noised, state = privatizer.update(found, state)
        moved = jax.tree.map(lambda old, slope: old - RATE * slope, parameters, noised)
        return moved, state

    state = privatizer.init(parameters)
    sampler = batch_selection.CyclicPoissonSampling(sampling_prob=lot / ROWS, iterations=steps)
    start = time.process_time()
    multiple = lot // 4
    for size in range(lot // 2, 3 * lot // 2 + 1, multiple):  # what a padded lot can well have
        jax.block_until_ready(update(parameters, state, rows[:size], np.zeros(size, dtype=bool)))
    first = time.process_time()
    for indices in sampler.batch_iterator(ROWS, generator):
        padded = batch_selection.pad_to_multiple_of(indices, multiple)
        is_padding = padded == -1
        parameters, state = update(parameters, state, rows[padded], is_padding)
    jax.block_until_ready(parameters)
    print(json.dumps({"first": first - start, "rest": time.process_time() - first}))


if __name__ == "__main__":
    main()
