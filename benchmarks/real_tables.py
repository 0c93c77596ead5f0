"""Releases of tables as agencies have them, by default and with no edges stated, against the truth.

Generated tables of a known law (`awkward_tables.py`): 6, 17 or 18 columns of awkward families,
bounds that are right, 10 or 100 times too wide, released with bins of equal width, with fine cells,
or as a release decides by itself. With a data directory, public tables too (`public_tables.py`).

    python benchmarks/real_tables.py [--rows 2000 20000 200000] [--epsilons 0.5 1 4] [--jobs 2]
    python benchmarks/real_tables.py --coverage [--tables 40]
    python benchmarks/real_tables.py --public --data DIR [--sets census]

A release is one job, in a fresh process on one thread: its CPU seconds, and its peak memory with
imports and the private table. Every answer is a row of `real_tables_answers.csv` and every release
one of `real_tables_releases.csv`; what is there already is not run again. The tables of all that
was asked for go to the terminal and to a page of Markdown beside. Noise comes from seeds, so
nothing here is private. Where the verdict is "do not use" the answers are those of the synthetic
table without weights, as an analyst is told to ask, and there are no intervals.
"""

from __future__ import annotations

import argparse
import os
import time
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import awkward_tables
import counterpoise as cp
import public_tables
import real_tables_page
from peers import ONE_THREAD, memory_mb
from release_errors import answers

# What is handed to a release beyond its defaults.
CODINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "fine": {"fine": True},
    "equal": {"fine": False},
}
GENERATED = "generated"
DELTA = 1e-9
COVERAGE_ROWS, COVERAGE_REPLICATES = 5000, 30


@dataclass(frozen=True)
class Cell:
    """One release. A public table is taken as it is: its `columns`, `rows` and `wide` are 0."""

    source: str
    columns: int
    rows: int
    wide: int
    epsilon: float
    coding: str
    replicates: int
    seed: int


KEY = [each.name for each in fields(Cell)]
RELEASE_COLUMNS = [
    *KEY,
    "status",
    "seconds",
    "peak_mb",
    "made_rows",
    "verdict",
    "effective_rows",
    "worst_replicate",
    "worst_before_bounding",
    "score",
    "score_alone",
    "reason",
]


def run(cell: Cell, data: Path | None) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Make the release, and ask: the answers, and what is to be said of the whole."""
    key = asdict(cell)
    try:
        found, whole = _measured(cell, data)
    except Exception as error:
        traceback.print_exc()
        return pd.DataFrame(), key | {"status": f"failed: {type(error).__name__}: {error}"[:200]}
    return found.assign(**key)[[*KEY, *found.columns]], key | {"status": "ok"} | whole


def _measured(cell: Cell, data: Path | None) -> tuple[pd.DataFrame, dict[str, Any]]:
    if cell.source == GENERATED:
        table = awkward_tables.draw(cell.rows, cell.seed, cell.columns)
        schema = awkward_tables.schema_of(cell.columns, cell.wide)
        asked = awkward_tables.questions(cell.columns)
    else:
        assert data is not None
        table, schema, asked = public_tables.load(cell.source, data)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        made = cp.release(
            table,
            schema,
            cell.epsilon,
            DELTA,
            replicates=cell.replicates,
            seed=cell.seed,
            progress=False,
            **CODINGS[cell.coding],
        )
        seconds, peak = time.process_time() - started, memory_mb(os.getpid())[1]
        weights, replicates = made.card["weights"], made.card["replicates"]
        whole = {
            "seconds": round(seconds, 3),
            "peak_mb": round(peak),
            "made_rows": len(made.table),
            "verdict": weights["verdict"]["level"],
            "effective_rows": weights["effective_sample_size"],
            "worst_replicate": replicates["worst_effective_sample_size"],
            "worst_before_bounding": replicates["worst_before_bounding"],
            "reason": weights["verdict"]["reason"],
        }
        usable = made.unweighted() if whole["verdict"] == "do not use" else made
        if cell.source == public_tables.CENSUS:
            for label, shares in (("", usable.weights), ("_alone", np.ones(len(made.table)))):
                score = public_tables.k_marginal_score(made.table, shares, table, schema)
                whole[f"score{label}"] = score
        return answers(usable, table, asked), whole


def plan(chosen: argparse.Namespace) -> Iterator[Cell]:
    """The releases that were asked for, a seed after the other."""
    for seed in range(chosen.seeds):
        for epsilon in chosen.epsilons:
            for coding in chosen.codings:
                last = (epsilon, coding, chosen.replicates, seed)
                if chosen.public:
                    yield from (Cell(name, 0, 0, 0, *last) for name in chosen.sets)
                    continue
                for rows in chosen.rows:
                    for columns in chosen.columns:
                        for wide in chosen.wide:
                            yield Cell(GENERATED, columns, rows, wide, *last)


def benchmark(cells: list[Cell], chosen: argparse.Namespace) -> None:
    """Run what is not there yet, each release in a process of its own, and store it as it ends."""
    told, asked = files(chosen.out)
    done = set()
    if told.exists():
        known = pd.read_csv(told)
        done = set(known.loc[known["status"] == "ok", KEY].itertuples(index=False, name=None))
    missing = [cell for cell in cells if tuple(asdict(cell).values()) not in done]
    os.environ.update(ONE_THREAD)  # which a fresh process inherits
    context = get_context("spawn")
    with ProcessPoolExecutor(chosen.jobs, context, max_tasks_per_child=1) as pool:
        pending = [pool.submit(run, cell, chosen.data) for cell in missing]
        for count, each in enumerate(as_completed(pending), 1):
            found, whole = each.result()
            # The answers first: a release whose answers are not all there is run again.
            _append(found, asked)
            _append(pd.DataFrame([whole]).reindex(columns=RELEASE_COLUMNS), told)
            cell = ", ".join(f"{name} {whole[name]}" for name in KEY)
            print(f"{count}/{len(missing)} {cell}: {whole['status']}", flush=True)


def files(out: Path) -> tuple[Path, Path]:
    """Where releases and answers are stored."""
    return out / "real_tables_releases.csv", out / "real_tables_answers.csv"


def results(cells: list[Cell], out: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The releases and the answers of what was asked for; the last of those run twice."""
    told, asked = files(out)
    wanted = pd.DataFrame([asdict(cell) for cell in cells])
    releases = pd.read_csv(told).merge(wanted, on=KEY)
    releases = releases[releases["status"] == "ok"].drop_duplicates(KEY, keep="last")
    if releases.empty:
        raise SystemExit("no release came out, so there is nothing to show")
    found = pd.read_csv(asked).merge(releases[KEY], on=KEY)
    return releases, found.drop_duplicates([*KEY, "column", "statistic"], keep="last")


def _append(rows: pd.DataFrame, file: Path) -> None:
    if len(rows):
        rows.to_csv(file, mode="a", index=False, header=not file.exists())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", choices=list(awkward_tables.COLUMNS))
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--wide", type=int, nargs="+")
    parser.add_argument("--epsilons", type=float, nargs="+")
    parser.add_argument("--codings", nargs="+", choices=list(CODINGS), default=["fine", "equal"])
    parser.add_argument("--seeds", type=int, default=2, help="how many: 0, ..., SEEDS - 1")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--coverage", action="store_true", help="many tables of one size")
    parser.add_argument("--tables", type=int, default=40, help="seeds, with --coverage")
    parser.add_argument("--public", action="store_true", help="public tables, not generated ones")
    parser.add_argument("--sets", nargs="+", choices=list(public_tables.FILES))
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=None if data is None else Path(data))
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    if chosen.public and chosen.data is None:
        parser.error("state the data directory with --data or COUNTERPOISE_DATA")
    if chosen.coverage and chosen.public:
        parser.error("--coverage is of generated tables: nobody knows the law of public ones")
    many = chosen.coverage
    chosen.columns = chosen.columns or ([18] if many else [6, 18])
    chosen.rows = chosen.rows or ([COVERAGE_ROWS] if many else [2000, 20_000, 200_000])
    chosen.wide = chosen.wide or ([10] if many else [1, 10, 100])
    chosen.epsilons = chosen.epsilons or ([1.0] if many or chosen.public else [0.5, 1.0, 4.0])
    chosen.replicates = chosen.replicates or (COVERAGE_REPLICATES if many else 80)
    chosen.seeds = chosen.tables if many else chosen.seeds
    chosen.sets = chosen.sets or list(public_tables.FILES)
    return chosen


def main() -> None:
    chosen = arguments()
    chosen.out.mkdir(parents=True, exist_ok=True)
    cells = list(plan(chosen))
    benchmark(cells, chosen)
    releases, found = results(cells, chosen.out)
    tables = (
        real_tables_page.public(releases, found)
        if chosen.public
        else real_tables_page.coverage(releases, found)
        if chosen.coverage
        else real_tables_page.grid(releases, found)
    )
    for question, table in tables.items():
        print(f"\n{question}\n{table.to_string(index=False)}")
    name = "public" if chosen.public else "coverage" if chosen.coverage else "generated"
    page = chosen.out / f"real_tables_{name}.md"
    page.write_text(real_tables_page.markdown(tables, releases))
    print(f"\n{page}")


if __name__ == "__main__":
    main()
