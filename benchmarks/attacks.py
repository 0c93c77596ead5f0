"""What attackers learn from releases of adult: every attack, on a hold-out, over several seeds.

A seed is a division of the table and a draw of the noise. Of each, a release is made of four fifths
of the rows at each epsilon, with default methods and a delta of 1/n^2, and attacked by
`attack_all`; so is a copy of the private rows, to see that the attacks have power. What somebody
might state of the columns without looking is in `public_tables`.

    python benchmarks/attacks.py --data DIR [--epsilon 1 6] [--seeds 5] [--rows 12500] [--out DIR]

`--rows` takes so many rows of the table at random, other ones for each seed: one release of all of
them shows more of its people, and several of fewer show how much the noise matters. What has rows
in `attacks.csv` is not run again; the table over seeds goes to `attacks.md`. Time is that of the
processor, and memory the peak of the process.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.evaluation.attacks import attack_all
from public_tables import load
from resumed import resumed

PRIVATE_PART = 0.8
COPY, EPSILON = "copy", "epsilon "
KEY = ["release", "seed"]
LINE = ["attack", "measure", "columns"]


def copy_of(table: pd.DataFrame, schema: cp.Schema) -> cp.Release:
    """A release that is the table itself, with weights that say nothing."""
    card = {"population": float(len(table))}
    return cp.Release(table.assign(weight=1.0), schema, card, None)


@lru_cache(maxsize=1)
def adult(folder: Path) -> tuple[pd.DataFrame, cp.Schema]:
    table, schema, _ = load("adult", folder)
    return table, schema


def attacked(name: str, seed: int, folder: Path, rows: int | None) -> pd.DataFrame:
    """The risks of one release, and what it took to find them."""
    table, schema = adult(folder)
    order = np.random.default_rng(seed).permutation(len(table))[:rows]
    cut = round(PRIVATE_PART * len(order))
    private, holdout = (
        table.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:])
    )
    began = time.process_time()
    if name == COPY:
        # Bounds and bins that a release of a large budget would have settled.
        bins = cp.release(
            private, schema, 10.0, 1 / cut**2, seed=seed, synthesizer="independent", progress=False
        ).schema
        release = copy_of(private, bins)
    else:
        epsilon = float(name.removeprefix(EPSILON))
        release = cp.release(private, schema, epsilon, 1 / cut**2, seed=seed, progress=False)
    made = time.process_time()

    def again(table: pd.DataFrame, seed: int) -> cp.Release:
        return copy_of(table, release.schema)

    rehearse = again if name == COPY else None
    found = attack_all(release, private, holdout, seed=seed, rehearse=rehearse)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.process_time() - made
    print(f"{name}, {seed}: {made - began:.1f} + {seconds:.1f} s, {memory:.0f} MB", flush=True)
    found.insert(0, "release", name)
    found.insert(1, "seed", seed)
    found["above"] = found["low"] > found["baseline_high"]
    return found.assign(make_seconds=made - began, attack_seconds=seconds)


def table_of(results: pd.DataFrame) -> str:
    """A line a measure: value and baseline over seeds, and how often the first is above."""
    names = list(dict.fromkeys(results["release"]))
    lines = ["| " + " | ".join([*LINE, *names]) + " |", "|" + "---|" * (len(LINE) + len(names))]
    for key, rows in results.groupby(LINE, sort=False):
        cells = [_cell(rows[rows["release"] == name]) for name in names]
        lines.append("| " + " | ".join([*key, *cells]) + " |")
    counts = results.groupby("release", sort=False).agg(
        seeds=("seed", "nunique"), above=("above", "sum"), figures=("above", "size")
    )
    return "\n".join([*lines, "", counts.to_string(), ""])


def _cell(rows: pd.DataFrame) -> str:
    excess = rows["value"] - rows["baseline"]
    error = excess.sem()
    above = int(rows["above"].sum())
    found = f"{rows['value'].mean():.3f} / {rows['baseline'].mean():.3f}"
    return f"{found}, {excess.mean():+.3f} ± {error:.3f}, {above} of {len(rows)}"


def main() -> None:
    """Make the releases, attack them, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--epsilon", nargs="*", default=["1", "6"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, help="by default all")
    parser.add_argument("--out", type=Path, default=Path("results/attacks"))
    parser.add_argument("--without-copy", action="store_true")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    names = [*(EPSILON + each for each in chosen.epsilon), *([] if chosen.without_copy else [COPY])]
    wanted = [(name, seed) for seed in range(chosen.seeds) for name in names]
    one = partial(attacked, folder=Path(chosen.data), rows=chosen.rows)
    found = resumed(one, wanted, KEY, chosen.out / "attacks.csv", 1, 1)
    text = table_of(found)
    (chosen.out / "attacks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
