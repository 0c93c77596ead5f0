"""What an evaluation takes, and what it says of a release of a raw table at one epsilon.

The table is adult as it was published (48,842 rows, 15 columns), with the schema of `adult.py`; the
release is made with a seed, once, and kept in `--out`. Then `cp.evaluate` runs at its defaults, and
its summary, the CPU and wall seconds and the peak memory are printed. `--kernels` times the
unbiased MMD of 20,000 by 20,000 points instead, in blocks.

    python benchmarks/evaluation.py --data DIR [--epsilon 1] [--holdout 0.2]
    python benchmarks/evaluation.py --kernels

The page and the figures go to `results/evaluation`, a line of times to `results/evaluation.csv`. Of
a private table they would be confidential; this one is public. With `--holdout 0` the floor is of
two halves, and most attacks lack a baseline.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd

import counterpoise as cp
from adult import FILE, SCHEMA, TARGET
from counterpoise.evaluation import discrepancy

RESULTS = Path("results")
POINTS = 20_000


def memory_mb() -> float:
    """The peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def kernels() -> None:
    """The time and memory of a discrepancy of many points, in few columns and in many."""
    generator = np.random.default_rng(0)
    for columns in (15, 100):
        schema = cp.Schema([cp.Column.continuous(f"x{place}", 0, 1) for place in range(columns)])
        tables = [
            schema.encode(pd.DataFrame(generator.random((POINTS, columns)), columns=schema.names))
            for _ in range(2)
        ]
        weights = generator.exponential(size=POINTS)
        start, began = time.process_time(), memory_mb()
        value = discrepancy(*tables, weights, points=POINTS)
        seconds = time.process_time() - start
        print(
            f"{POINTS:,} x {POINTS:,} points, {columns} columns: {seconds:.1f} CPU s, "
            f"{memory_mb() - began:.0f} MB more at the peak, MMD² {value:.2e}"
        )


def evaluate(
    data: Path, out: Path, epsilon: float, part: float, workers: int, attacks: bool
) -> None:
    """Make the release if it is not there, and evaluate it."""
    folder = out / f"adult-{epsilon:g}-{part:g}"
    rows = pd.read_csv(data / FILE, dtype=str, keep_default_na=False, skipinitialspace=True)
    order = np.random.default_rng(0).permutation(len(rows))
    aside = int(part * len(rows))
    holdout, private = rows.iloc[order[:aside]], rows.iloc[order[aside:]]
    if not folder.exists():
        made = cp.release(private, SCHEMA, epsilon, 1e-9, target=TARGET, seed=1)
        made.save(folder)
    release = cp.load(folder)
    start, clock = time.process_time(), time.monotonic()
    found = cp.evaluate(
        release, private, holdout if aside else None, workers=workers, attacks=attacks
    )
    line = {
        "epsilon": epsilon,
        "private_rows": len(private),
        "holdout_rows": aside,
        "workers": workers,
        "attacks": attacks,
        "cpu_seconds": round(time.process_time() - start, 1),
        "wall_seconds": round(time.monotonic() - clock, 1),
        "peak_mb": round(memory_mb()),
    }
    print(found)
    print(line)
    found.save(RESULTS / "evaluation")
    file = RESULTS / "evaluation.csv"
    pd.DataFrame([line]).to_csv(file, mode="a", header=not file.exists(), index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--out", type=Path, default=RESULTS / "releases")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--holdout", type=float, default=0.2, help="the part set aside")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-attacks", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    chosen = parser.parse_args()
    if chosen.kernels:
        kernels()
        return
    if chosen.data is None:
        parser.error("state where adult.csv.gz is, with --data or COUNTERPOISE_DATA")
    RESULTS.mkdir(exist_ok=True)
    evaluate(
        Path(chosen.data),
        chosen.out,
        chosen.epsilon,
        chosen.holdout,
        chosen.workers,
        not chosen.no_attacks,
    )


if __name__ == "__main__":
    main()
