"""How quickly moment weights are made: a million synthetic rows and 200 features.

Times the whole fit (features, noisy sum, whitening, calibration) and the weighing of all rows, and
then the calibration alone beside peers that solve the same dual on the same whitened rows: SciPy's
L-BFGS-B and BFGS. The objective that each reaches is printed too, since a solver that stops
early is quick. Everything is generated.

python benchmarks/moments_speed.py [--rows N] [--private N] [--out FOLDER]
"""

import argparse
import csv
import os
import resource
import time
from collections.abc import Callable
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault
from counterpoise.weights.calibration import calibrate
from counterpoise.weights.features import Linear, PairProducts, Squares
from counterpoise.weights.moment_model import MomentModel
from counterpoise.weights.moments import Moments

COLUMNS = 19
PAIRS = 162  # beside 19 columns and their squares: 200 features


def tables(private_rows: int, rows: int) -> tuple[Schema, pd.DataFrame, pd.DataFrame]:
    """Columns in a chain of relations, and a synthetic table that has half of their strength."""
    generator = np.random.default_rng(0)
    names = [f"x{column}" for column in range(COLUMNS)]

    def chain(count: int, strength: float) -> pd.DataFrame:
        values = generator.normal(size=(count, COLUMNS))
        for column in range(1, COLUMNS):
            values[:, column] += strength * values[:, column - 1]
        return pd.DataFrame(values, columns=names)

    schema = Schema([Column.continuous(name, -5, 5) for name in names])
    return schema, chain(private_rows, 0.3), chain(rows, 0.15)


def timed(work: Callable[[], object]) -> tuple[object, float, float]:
    """What the work returns, and its seconds by the wall and by the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    made = work()
    return made, time.perf_counter() - wall, time.process_time() - processor


def objective(
    rows: np.ndarray, target: np.ndarray, softness: np.ndarray, theta: np.ndarray
) -> tuple[float, np.ndarray]:
    """The dual and its gradient, as a peer would write them down."""
    exponents = rows @ theta.astype(rows.dtype)
    top = exponents.max()
    weights = np.exp(exponents - top)
    size = weights.sum(dtype=float)
    value = float(top) + np.log(size / len(rows)) - theta @ target + softness @ theta**2 / 2
    gradient = (weights @ rows).astype(float) / size - target + softness * theta
    return float(value), gradient


def compare(model: MomentModel, rows: np.ndarray) -> list[dict[str, object]]:
    """Our calibration and the peers', on the same rows, target and softness."""
    target, softness = model.trust @ model.differences, model.softness
    start = np.zeros(rows.shape[1])

    def peer(method: str, **options: float) -> Callable[[], np.ndarray]:
        def dual(theta: np.ndarray) -> tuple[float, np.ndarray]:
            return objective(rows, target, softness, theta)

        def solve() -> np.ndarray:
            return minimize(dual, start, jac=True, method=method, options=options).x

        return solve

    solvers = {
        "counterpoise": lambda: calibrate(rows, target, softness),
        "scipy L-BFGS-B": peer("L-BFGS-B", gtol=1e-6, ftol=1e-12, maxiter=1000),
        "scipy BFGS": peer("BFGS", gtol=1e-6, maxiter=1000),
    }
    found = []
    for name, solve in solvers.items():
        theta, wall, processor = timed(solve)
        value, gradient = objective(rows.astype(float), target, softness, np.asarray(theta))
        found.append(
            {
                "solver": name,
                "seconds": round(wall, 2),
                "processor_seconds": round(processor, 2),
                "objective": round(value, 9),
                "largest_gradient": float(f"{np.abs(gradient).max():.2g}"),
            }
        )
    for row in found:
        row["ratio"] = round(float(row["seconds"]) / float(found[0]["seconds"]), 1)  # type: ignore[arg-type]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--private", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    schema, private, synthetic = tables(options.private, options.rows)
    pairs = tuple(islice(combinations(schema.names, 2), PAIRS))
    method = Moments(blocks=(Linear() + Squares(), PairProducts(pairs)))
    with Vault(private, schema, Budget(1.0, 1e-6)) as vault:
        model, fit_wall, fit_processor = timed(
            lambda: method.fit(vault, synthetic, vault.budget.whole)
        )
    assert isinstance(model, MomentModel)
    weights, weigh_wall, weigh_processor = timed(lambda: model.weigh(synthetic))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{options.rows:,} synthetic rows, {len(model.standardised.names)} features, "
        f"{os.cpu_count()} cores"
    )
    print(f"{'':<16}{'seconds':>9}{'processor':>11}")
    print(f"{'fit':<16}{fit_wall:>9.2f}{fit_processor:>11.2f}")
    print(f"{'weigh':<16}{weigh_wall:>9.2f}{weigh_processor:>11.2f}")
    print(
        f"peak memory {peak:.1f} GB, effective sample size {weights.effective_sample_size:,.0f}\n"
    )
    compared = compare(model, model.white(schema.encode(synthetic)))
    print(pd.DataFrame(compared).to_string(index=False))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        with (options.out / "moments_speed.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(compared[0]))
            writer.writeheader()
            writer.writerows(compared)


if __name__ == "__main__":
    main()
