"""How the time and memory of AIM and MST grow with rows, columns and values a column.

Tables are chains of correlated categorical columns: a cell repeats its left neighbour with
probability 0.6, and is uniform otherwise. Rows grow in a Parquet file that DuckDB scans and that
is never loaded; there 10,000 rows are sampled, so that the memory is that of the fit. Columns and
values grow in memory, and as many rows are sampled as there are. Every job is a fresh process;
its peak memory includes the imports, which are drawn as a line. `measured` counts the measured
sets of two columns or more: where it is 0, the model is of single columns, and its points are
hollow. Crosses at the top are jobs that were stopped. Last come stress cases, which AIM with its
defaults has to fit within a gigabyte: 60 columns of 100 values at epsilon 1 and 10.

    python benchmarks/growth.py [--rows 10000000] [--limit 120] [--parts rows,columns]

Writes `growth.csv` and `growth.png` into `results/`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

import peers
from counterpoise import Budget, Vault
from synthesizers import schema_of, synthesizer

REPEATS = 0.6  # chance that a cell repeats its left neighbour
SAMPLED = 10_000
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = (10, 20, 40, 70, 100)
VALUES = (4, 10, 25, 50, 100, 200)
METHODS = {"mst": ("mst", 2), "aim, 2-way": ("aim", 2), "aim, 3-way": ("aim", 3)}
STRESS_MB = 1000.0


def plan(most_rows: int) -> Iterator[dict]:
    """Every job: what grows, the shape of the table, the method, and the storage."""
    for rows in (count for count in ROWS if count <= most_rows):
        for method in ("mst", "aim, 2-way"):
            yield _job("rows", method, rows, 10, 8, "duckdb")
    for columns in COLUMNS:
        for method in METHODS:
            yield _job("columns", method, 20_000, columns, 8, "memory")
    for values in VALUES:
        for method in METHODS:
            yield _job("values", method, 20_000, 8, values, "memory")
    for epsilon in (1.0, 10.0):
        yield _job("stress", "aim, 3-way", 20_000, 60, 100, "memory", epsilon)


def _job(
    part: str,
    method: str,
    rows: int,
    columns: int,
    values: int,
    storage: str,
    epsilon: float = 1.0,
) -> dict:
    return {
        "part": part,
        "method": method,
        "rows": rows,
        "columns": columns,
        "values": values,
        "storage": storage,
        "epsilon": epsilon,
    }


def generate(path: Path, rows: int, columns: int, values: int) -> None:
    """Write a chain of correlated columns to a Parquet file."""
    generator = np.random.default_rng(0)
    table: dict[str, np.ndarray] = {}
    last = generator.integers(0, values, rows, dtype=np.uint8)
    for index in range(columns):
        fresh = generator.integers(0, values, rows, dtype=np.uint8)
        last = np.where(generator.random(rows, dtype=np.float32) < REPEATS, last, fresh)
        table[f"c{index}"] = last
    with duckdb.connect() as connection:
        connection.register("frame", pd.DataFrame(table))
        connection.execute(f"COPY frame TO '{path}' (FORMAT parquet)")


def run_here(job: dict) -> None:
    """Fit and sample in this process, and print what it took."""
    idle = peers.memory_mb(os.getpid())[1]
    schema = schema_of({f"c{index}": job["values"] for index in range(job["columns"])})
    budget = Budget(job["epsilon"], 1 / job["rows"] ** 2)
    cpu, wall = time.process_time(), time.perf_counter()
    with Vault(job["path"], schema, budget, storage=job["storage"]) as vault:
        model = synthesizer(*METHODS[job["method"]]).fit(vault, budget.whole)
    model.sample(SAMPLED if job["part"] == "rows" else job["rows"], seed=0)
    cost = {
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "wall_seconds": round(time.perf_counter() - wall, 3),
        "peak_mb": round(peers.memory_mb(os.getpid())[1]),
        "idle_mb": round(idle),
        "measured": sum(len(part.columns) > 1 for part in model.measured),
        "model_cells": model.graph.tree.cells,
        "status": "ok",
    }
    print(json.dumps(cost))


def run(jobs: list[dict], limit: float) -> pd.DataFrame:
    """Run the jobs one after the other, each in a process of its own."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        path, shape = Path(directory, "rows.parquet"), None
        for job in jobs:
            if shape != (shape := (job["rows"], job["columns"], job["values"])):
                generate(path, *shape)
            command = [sys.executable, __file__, json.dumps(job | {"path": str(path)})]
            environment = os.environ | peers.ONE_THREAD
            try:
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=limit
                )
            except subprocess.TimeoutExpired:
                cost = {"status": f"stopped after {limit:g} s"}
            else:
                failed = {"status": "failed: " + (done.stderr.splitlines() or ["no message"])[-1]}
                cost = failed if done.returncode else json.loads(done.stdout)
            rows.append(job | cost)
            print(" ".join(f"{value}" for value in rows[-1].values()), flush=True)
    return pd.DataFrame(rows)


def draw(results: pd.DataFrame, path: Path) -> None:
    """Time above memory, against rows, columns and values."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    parts = [part for part in ("rows", "columns", "values") if part in set(results["part"])]
    figure, axes = plt.subplots(
        2, len(parts), figsize=(4.2 * len(parts), 7), sharex="col", sharey="row", squeeze=False
    )
    titles = {
        "rows": "10 columns of 8 values, DuckDB",
        "columns": "20,000 rows, 8 values a column",
        "values": "20,000 rows, 8 columns",
    }
    for place, part in enumerate(parts):
        upper, lower = axes[:, place]
        here = results[(results["part"] == part) & (results["status"] == "ok")]
        for method, line in results[results["part"] == part].groupby("method", sort=False):
            done = line[line["status"] == "ok"]
            bare, stopped = done[done["measured"] == 0], line[line["status"] != "ok"]
            for axis, cost in ((upper, "cpu_seconds"), (lower, "peak_mb")):
                [drawn] = axis.plot(done[part], done[cost], marker="o", label=method)
                # Hollow where no pair was measured; a cross at the top where a job was stopped.
                axis.plot(bare[part], bare[cost], "o", color=drawn.get_color(), mfc="white")
            offset = 0.97 - 0.05 * list(METHODS).index(str(method))
            heights = [offset] * len(stopped)
            place_above = upper.get_xaxis_transform()
            upper.plot(stopped[part], heights, "x", color=drawn.get_color(), transform=place_above)
        lower.axhline(here["idle_mb"].mean(), color="grey", linestyle=":", label="imports")
        upper.set(title=titles[part], xscale="log", yscale="log")
        lower.set(xlabel=part if part != "values" else "values a column", ylim=(0, None))
        for axis in (upper, lower):
            axis.grid(alpha=0.3)
        if part != "rows":
            ticks = sorted(set(here[part]))
            lower.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
            lower.minorticks_off()
    axes[0, 0].set_ylabel("CPU seconds")
    axes[1, 0].set_ylabel("peak memory, MB")
    axes[0, -1].legend()
    axes[1, -1].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=max(ROWS), help="the most rows")
    parser.add_argument("--limit", type=float, default=120, help="wall seconds a job may take")
    parser.add_argument("--parts", default="rows,columns,values,stress")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    parts = chosen.parts.split(",")
    results = run([job for job in plan(chosen.rows) if job["part"] in parts], chosen.limit)
    out = chosen.out / "growth.csv"
    if out.exists():  # the parts that were not run now stay as they were
        earlier = pd.read_csv(out)
        results = pd.concat([earlier[~earlier["part"].isin(parts)], results], ignore_index=True)
    results.to_csv(out, index=False)
    if set(results["part"]) != {"stress"}:
        draw(results, chosen.out / "growth.png")
    for _, job in results[results["part"] == "stress"].iterrows():
        is_met = job["status"] == "ok" and job["peak_mb"] <= STRESS_MB
        print(
            f"stress, {job['columns']} columns of {job['values']} values, epsilon"
            f" {job['epsilon']:g}: {job['status']}, {job.get('cpu_seconds')} CPU s,"
            f" {job.get('peak_mb')} MB, {job.get('measured')} pairs or larger sets measured;"
            f" within {STRESS_MB:g} MB: {'met' if is_met else 'NOT met'}"
        )


if __name__ == "__main__":
    run_here(json.loads(sys.argv[1])) if sys.argv[1:2] and sys.argv[1][0] == "{" else main()
