"""What a dry run predicts of time and memory, against what a release then takes.

Tables are generated, with columns that are related in pairs: a census-like one, a small one, a
hospital-like one with generous bounds and wide categories, and a few more, so that rows, columns
and categories vary. Every job is a fresh process with one thread. A stage's seconds are those of
its processor, so that other work on the machine does not count; its memory is the most that the
process held during it, with Python and its libraries. The prediction sees the schema, the budget
and the number of rows, and not the table, so it cannot know which relations will be chosen.

    python benchmarks/outlook.py [--tables small,census,hospital] [--limit 600]

Writes `outlook.csv` into `results/`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise import Column, Schema
from counterpoise.curation.plan import plan_release
from memory import forget_peak, peak_megabytes

# Rows; how many columns are numbers with open bins, small integers, and categories of so many.
TABLES: dict[str, tuple[int, int, int, tuple[int, ...]]] = {
    "tiny": (1_000, 2, 1, (2, 3)),
    "small": (5_000, 3, 1, (2, 3, 5, 8)),
    "medium": (20_000, 4, 2, (2, 2, 4, 6, 10, 20)),
    "census": (48_842, 4, 1, (2, 2, 5, 6, 7, 9, 14, 16, 16, 42)),
    "hospital": (50_000, 6, 2, (2, 2, 3, 4, 5, 8, 12, 20, 60, 150)),
    "long": (200_000, 3, 1, (2, 3, 5, 8)),
    "wide": (10_000, 10, 5, (2, 2, 2, 3, 3, 4, 5, 5, 6, 8, 8, 10, 12, 15, 30)),
    "money": (50_000, 8, 2, (2, 3, 5, 8, 20, 60, 300, 900)),
    "flights": (336_776, 9, 4, (2, 3, 16, 40, 100, 105)),
}
# In these, amounts are mostly zero or far below their bounds, and most categories are rare. The
# constants were fitted to the others, so these and "wide" show what they are worth elsewhere.
ROUGH = ("money", "flights")
EPSILON, DELTA = 1.0, 1e-9
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def generate(name: str) -> tuple[pd.DataFrame, Schema]:
    """A table and its public schema; every column leans on the one before it."""
    rows, numbers, integers, categories = TABLES[name]
    generator = np.random.default_rng(0)
    table: dict[str, np.ndarray] = {}
    columns: list[Column] = []
    place = generator.normal(size=rows)
    for index in range(numbers):
        place = 0.5 * place + np.sqrt(0.75) * generator.normal(size=rows)
        # Every other one is skewed, with bounds far beyond most of it.
        skewed = index % 2 == 1
        values = np.exp(9 + place) if skewed else 50 + 15 * place
        largest = 1_000_000 if skewed else 110
        if name in ROUGH and skewed:
            values, largest = np.where(place < index % 3 - 1, 0, np.exp(8 + 1.5 * place)), 5_000_000
        table[f"number{index}"] = values.round(2)
        columns.append(Column.continuous(f"number{index}", 0, largest))
    for index in range(integers):
        place = 0.5 * place + np.sqrt(0.75) * generator.normal(size=rows)
        table[f"integer{index}"] = np.clip(8 + 3 * place, 1, 16).astype(int)
        columns.append(Column.integer(f"integer{index}", 1, 16))
    for index, size in enumerate(categories):
        place = 0.5 * place + np.sqrt(0.75) * generator.normal(size=rows)
        shares = 1 / np.arange(1, size + 1) ** (1.5 if name in ROUGH else 0.5)
        cuts = np.quantile(place, np.cumsum(shares / shares.sum())[:-1])
        labels = np.array([f"c{code}" for code in range(size)])
        table[f"category{index}"] = labels[np.searchsorted(cuts, place)]
        columns.append(Column.categorical(f"category{index}", labels.tolist()))
    return pd.DataFrame(table), Schema(columns)


def run_here(name: str) -> None:
    """Make and save one release in this process, and print what each stage took."""
    table, schema = generate(name)
    plan = plan_release(schema, cp.Budget(EPSILON, DELTA))
    predicted = {stage.name: stage for stage in plan.describe(private_rows=len(table))}
    took: dict[str, tuple[float, float]] = {}
    current, began = "opening", time.process_time()

    def said(stage: str, done: float) -> None:
        nonlocal current, began
        took[current] = (time.process_time() - began, peak_megabytes())
        current, began = stage, time.process_time()
        forget_peak()

    forget_peak()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        table.to_csv(path, index=False)
        del table
        release = cp.release(path, schema, EPSILON, DELTA, seed=1, progress=said)
        release.save(Path(folder, "release"))
        said("saved", 1.0)
    measured = {
        # Opening the table and drawing rows count as the synthesizer's, saving as the replicates'.
        "synthesizer": ("opening", "domain", "synthesizer", "sampling"),
        "weights": ("weights",),
        "replicates": ("replicates", "done"),
    }
    found = {}
    for stage, parts in measured.items():
        there = [took[part] for part in parts if part in took]
        expected = predicted[stage]
        found[stage] = {
            "seconds": round(sum(seconds for seconds, _ in there), 2),
            "predicted_seconds": round(expected.seconds or 0.0, 2),
            "megabytes": round(max(size for _, size in there)),
            "predicted_megabytes": round((expected.bytes or 0) / 1e6),
        }
    print(json.dumps({"stages": found, "parts": took}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--limit", type=float, default=1200, help="wall seconds a job may take")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    lines = []
    for name in chosen.tables.split(","):
        done = subprocess.run(
            [sys.executable, __file__, "--here", name],
            env=os.environ | ONE_THREAD,
            capture_output=True,
            text=True,
            timeout=chosen.limit,
        )
        if done.returncode:
            print(f"{name}: failed: {(done.stderr.splitlines() or ['no message'])[-1]}")
            continue
        stages = json.loads(done.stdout)["stages"]
        stages["all"] = {
            "seconds": sum(stage["seconds"] for stage in stages.values()),
            "predicted_seconds": sum(stage["predicted_seconds"] for stage in stages.values()),
            "megabytes": max(stage["megabytes"] for stage in stages.values()),
            "predicted_megabytes": max(stage["predicted_megabytes"] for stage in stages.values()),
        }
        for stage, values in stages.items():
            lines.append({"table": name, "rows": TABLES[name][0], "stage": stage, **values})
            print(_line(lines[-1]), flush=True)
    results = pd.DataFrame(lines)
    chosen.out.mkdir(parents=True, exist_ok=True)
    results.to_csv(chosen.out / "outlook.csv", index=False)


def _line(values: dict) -> str:
    seconds, megabytes = values["seconds"], values["megabytes"]
    return (
        f"{values['table']:<9} {values['stage']:<11} "
        f"{seconds:8.1f} s, predicted {values['predicted_seconds']:8.1f} "
        f"({values['predicted_seconds'] / max(seconds, 0.01):5.2f})  "
        f"{megabytes:6.0f} MB, predicted {values['predicted_megabytes']:6.0f} "
        f"({values['predicted_megabytes'] / megabytes:5.2f})"
    )


if __name__ == "__main__":
    run_here(sys.argv[2]) if sys.argv[1:2] == ["--here"] else main()
