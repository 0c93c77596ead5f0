"""Steps of private gradient descent a CPU second: ours beside plain numpy, Opacus and jax-privacy.

A network of d-128-1 units over 5,000 rows, a thousand steps, on one thread; 30 features with lots
of 64 rows, and 92 features with lots of 256. Ours samples and noises exactly, with the operating
system's bits; `numpy` is the same network without that: the generator's Gaussian noise in floating
point. Each method runs in a process of its own, round after round, because other work on a machine
slows all of them down; the best round of each counts. `warm` leaves out the first step, or what is
compiled; `all` is the thousand steps with it, after all imports.

    python benchmarks/descend.py --opacus ENVIRONMENT --jax ENVIRONMENT --rounds 3

An environment is the folder of a virtual environment with `opacus` or `jax-privacy`; a method
without one is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROWS, UNITS, CLIP, NOISE, RATE = 5000, 128, 1.0, 1.0, 0.05
PROBLEMS = ((30, 64), (92, 256))


def ours(features: int, lot: int, steps: int) -> dict[str, float]:
    """The vault's own descent."""
    import pandas as pd

    from counterpoise.networks import Inputs, Network
    from counterpoise.schema import Column, Schema
    from counterpoise.vault import Budget, DescentPlan, Vault

    schema = Schema([Column.continuous(f"x{i}", 0.0, 1.0) for i in range(features)])
    values = np.random.default_rng(0).random((ROWS, features))
    network = Network((features, UNITS, 1))
    parameters = network.initial(np.random.default_rng(1))
    plan = DescentPlan(Inputs(schema), network, "logistic", lot / ROWS, lot, CLIP, NOISE, steps)
    table = pd.DataFrame(values, columns=schema.names)
    with Vault(table, schema, Budget(100.0, 1e-6)) as vault, vault.descent(plan) as descent:

        def step() -> None:
            nonlocal parameters
            parameters = parameters - RATE * descent.gradient(parameters)

        return timed(step, steps)


def plain(features: int, lot: int, steps: int) -> dict[str, float]:
    """The same in numpy, with closed-form norms, and noise that is good for nothing."""
    from counterpoise.networks import Network, loss_slopes

    generator = np.random.default_rng(0)
    values = 2 * generator.random((ROWS, features)) - 1
    network = Network((features, UNITS, 1))
    parameters = network.initial(np.random.default_rng(1))

    def step() -> None:
        nonlocal parameters
        size = generator.binomial(ROWS, lot / ROWS)
        rows = values[generator.choice(ROWS, size, replace=False, shuffle=False)]
        passed = network.forward(parameters, rows)
        errors = network.backward(parameters, passed, loss_slopes("logistic", passed.outputs, 1.0))
        norms = np.sqrt(network.squared_norms(passed, errors))
        gradient = network.gradient(passed, errors, CLIP / np.maximum(norms, CLIP))
        gradient += NOISE * CLIP * generator.standard_normal(network.size)
        parameters = parameters - RATE * gradient / lot

    return timed(step, steps)


def timed(step: Callable[[], None], steps: int) -> dict[str, float]:
    """The CPU seconds of the first step, and of all others."""
    start = time.process_time()
    step()
    first = time.process_time()
    for _ in range(steps - 1):
        step()
    return {"first": first - start, "rest": time.process_time() - first}


def run(command: list[str], features: int, lot: int, steps: int) -> dict[str, float] | None:
    """One method in a process of its own; None where it does not run."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    xla = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    done = subprocess.run(
        [*command, str(features), str(lot), str(steps)],
        cwd=HERE,
        env=os.environ | one_thread | {"XLA_FLAGS": xla},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opacus", type=Path, help="the folder of an environment with opacus")
    parser.add_argument("--jax", type=Path, help="the folder of an environment with jax-privacy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--method", choices=("ours", "numpy"), help="run one of ours, once")
    parser.add_argument("problem", nargs="*", type=int, help="features, lot and steps of --method")
    given = parser.parse_args()
    if given.method:
        print(json.dumps({"ours": ours, "numpy": plain}[given.method](*given.problem)))
        return
    here = [sys.executable, __file__, "--method"]
    methods = {"ours": [*here, "ours"], "numpy": [*here, "numpy"]}
    if given.opacus:
        runner = [str(given.opacus / "bin/python"), "-m", "peer_runners.descend_opacus"]
        methods |= {"opacus": [*runner, "hooks"], "opacus, ghost": [*runner, "ghost"]}
    if given.jax:
        runner = [str(given.jax / "bin/python"), "-m", "peer_runners.descend_jax"]
        methods["jax-privacy"] = runner
    for features, lot in PROBLEMS:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in methods}
        for _ in range(given.rounds):
            for name, command in methods.items():
                one = run(command, features, lot, given.steps)
                found[name] += [] if one is None else [one]
        print(f"\n{features} features, lots of {lot}: steps a CPU second")
        print(f"{'method':<16}{'warm':>8}{'all':>8}")
        for name, rounds in found.items():
            if rounds:
                warm = (given.steps - 1) / min(one["rest"] for one in rounds)
                whole = given.steps / min(one["first"] + one["rest"] for one in rounds)
                print(f"{name:<16}{warm:>8.0f}{whole:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
