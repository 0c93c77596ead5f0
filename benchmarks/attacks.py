"""What attackers learn from releases of adult: every attack, on a hold-out of a fifth of the rows.

A release is made of four fifths of the table at each epsilon, with default methods and a delta of
1/n^2, and attacked by `attack_all`; so is a copy of the private rows, to see that the attacks have
power. What somebody might state of the columns without looking is in `public_tables`.

    python benchmarks/attacks.py --data DIR [--epsilon 1 6] [--out DIR]

The noise of the releases has a seed, so that the table can be had again. Releases are kept in
`--out`, and not made again while they are there. Time is that of the processor, and memory the
peak of the process. There is one release an epsilon: differences between them may be luck.
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
from counterpoise.evaluation.attacks import attack_all
from public_tables import load

PRIVATE_PART = 0.8


def copy_of(table: pd.DataFrame, schema: cp.Schema) -> cp.Release:
    """A release that is the table itself, with weights that say nothing."""
    card = {"population": float(len(table))}
    return cp.Release(table.assign(weight=1.0), schema, card, None)


def main() -> None:
    """Make the releases, attack them, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 6.0])
    parser.add_argument("--out", type=Path, default=Path("results/attacks"))
    parser.add_argument("--without-copy", action="store_true")
    chosen = parser.parse_args()
    table, schema, _ = load("adult", Path(chosen.data))
    order = np.random.default_rng(0).permutation(len(table))
    cut = round(PRIVATE_PART * len(table))
    private, holdout = (
        table.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:])
    )
    found = []
    for epsilon in chosen.epsilon:
        folder = chosen.out / f"adult-{epsilon:g}"
        if not folder.exists():
            made = cp.release(private, schema, epsilon, 1 / cut**2, seed=0, progress=False)
            folder.parent.mkdir(parents=True, exist_ok=True)
            made.save(folder)
        found.append(attacked(f"epsilon {epsilon:g}", cp.load(folder), private, holdout))
    if not chosen.without_copy:
        seen = cp.load(chosen.out / f"adult-{chosen.epsilon[0]:g}").schema
        found.append(attacked("copy", copy_of(private, seen), private, holdout))
    every = pd.concat(found, ignore_index=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    every.to_csv(chosen.out / "attacks.csv", index=False)
    print(every.drop(columns="says").round(4).to_string())


def attacked(
    name: str, release: cp.Release, private: pd.DataFrame, holdout: pd.DataFrame
) -> pd.DataFrame:
    """The risks of a release, and what it took to find them."""

    def again(table: pd.DataFrame, seed: int) -> cp.Release:
        return copy_of(table, release.schema)

    began = time.process_time()
    found = attack_all(release, private, holdout, rehearse=again if name == "copy" else None)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {time.process_time() - began:.1f} s, {memory:.0f} MB", flush=True)
    found.insert(0, "release", name)
    return found


if __name__ == "__main__":
    main()
