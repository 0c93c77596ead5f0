"""What a release of many rows takes: to make, to save, to load and to ask.

A small generated private table of `cost.py`, by default of 20,000 rows and 7 columns, is released
as so many synthetic rows with 80 replicates and saved by one process with one thread, and loaded
and asked by another: processor seconds, seconds by the clock, and the most memory that the process
held in each step, with Python and its libraries. DuckDB's threads are counted too; page cache is
not.

    python benchmarks/large_release.py [--rows 1000000,10000000] [--table medium]

The releases stay in the folder, and figures in `results/large_release.csv`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import counterpoise as cp
from cost import DELTA, ONE_THREAD, SHAPES, reference, schema_of, table_file
from memory import forget_peak, peak_megabytes

STEPS: dict[str, Callable[[cp.Release], Any]] = {
    "mean": lambda release: release.mean("number0"),
    "quantile": lambda release: release.quantile("number1"),
    "binomial glm": lambda release: release.glm("category0 ~ number0 + integer0"),
    "mean by group": lambda release: release.mean("number1", by="category1"),
    "correlation": lambda release: release.corr("number0", "number2"),
    "crosstab": lambda release: release.crosstab("category0", "category2"),
    "part": lambda release: release.part(1_000_000),
}


def path_of(rows: int, folder: Path) -> Path:
    return folder / f"release-{rows}"


def make(name: str, rows: int, folder: Path) -> Callable[[], Any]:
    table, schema = table_file(name, folder), schema_of(SHAPES[name])
    work = folder / f"work-{rows}"

    def run() -> Any:
        made = cp.release(
            table, schema, 1.0, DELTA, rows=rows, seed=1, work=work, progress=_say(time.time())
        )
        return made.save(path_of(rows, folder), overwrite=True)

    return run


def _say(began: float) -> Callable[[str, float], None]:
    def say(stage: str, done: float) -> None:
        seconds, peak = time.time() - began, peak_megabytes()
        print(f"{seconds:7.0f} s {done:5.0%} {stage} {peak:.0f} MB", file=sys.stderr, flush=True)

    return say


def run_here(step: str, name: str, rows: int, folder: Path) -> None:
    """Make a release in this process, or load one and ask it."""
    known = reference()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        if step == "make":
            _measure("make and save", make(name, rows, folder), known)
            return
        release = _measure("load", lambda: cp.load(path_of(rows, folder)), known).use_weights()
        for question, ask in STEPS.items():
            _measure(question, partial(ask, release), known)


def _measure(step: str, run: Callable[[], Any], known: float) -> Any:
    forget_peak()
    began, wall = time.process_time(), time.perf_counter()
    made = run()
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    found = {"step": step, "seconds": seconds, "wall": wall, "megabytes": peak_megabytes()}
    print(json.dumps(found | {"reference": known}), flush=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--table", default="posterior-table", choices=SHAPES)
    parser.add_argument("--steps", default="make,ask")
    parser.add_argument("--folder", type=Path, default=Path("results/large"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--here", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    if chosen.here:
        return run_here(chosen.here, chosen.table, int(chosen.rows), chosen.folder)
    chosen.out.mkdir(parents=True, exist_ok=True)
    kept = []
    for rows in chosen.rows.split(","):
        for step in chosen.steps.split(","):
            command = [sys.executable, __file__, "--here", step, "--rows", rows]
            command += ["--table", chosen.table, "--folder", str(chosen.folder)]
            running = subprocess.Popen(
                command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True
            )
            assert running.stdout is not None
            for line in running.stdout:
                found = {"rows": int(rows), **json.loads(line)}
                kept.append(found)
                pd.DataFrame(kept).to_csv(chosen.out / "large_release.csv", index=False)
                print(
                    f"{int(rows):>12,} {found['step']:<14} {found['seconds']:8.1f} s CPU "
                    f"{found['megabytes']:6.0f} MB  (reference {found['reference']:.2f} s)",
                    flush=True,
                )
            if running.wait():
                sys.exit(f"{step}: failed")


if __name__ == "__main__":
    main()
