"""Whether answers that are corrected by rehearsals are better than those that are released.

Private tables are drawn from `populations.py`, released by default, and rehearsed; answers are
corrected by parts of the bias that shows, and by the part that `Rehearsal.correct` chooses by
itself, and compared with the population's: bias, root mean square error, coverage of 95%
intervals and their width.

    python benchmarks/rehearsals.py --populations borrowers,patients --tables 16
    python benchmarks/rehearsals.py --data DIR --populations "dutch small,adult small"

Every release is stored as it is made, so an interrupted run goes on. Noise comes from seeds.
"""

from __future__ import annotations

import argparse
import os
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.analysis.replication import multiplier
from populations import NAMES, population
from resumed import resumed

REPLICATES = 30
KEY = ["population", "epsilon", "rows", "seed"]
# What is taken off of the bias that shows; "own" is the default of `Rehearsal.correct`.
PARTS = {"released": 0.0, "own": None, "half": 0.5, "whole": 1.0}


def one(
    name: str, epsilon: float, rows: int, seed: int, runs: int, data: Path | None
) -> list[dict[str, Any]]:
    """Draw a private table, release it, rehearse the release, and ask them all."""
    known = population(name, data)
    private = known.draw(rows, np.random.default_rng([seed, rows, 21]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        made = cp.release(
            private,
            known.schema,
            epsilon,
            1 / rows**2,
            replicates=REPLICATES,
            seed=seed,
            progress=False,
        ).use_weights()
        try:
            found = list(known.asked.of(made))
        except cp.AnalysisError:
            return []
        again = []
        for run in made.rehearse(runs, seed=seed, progress=False).runs:
            try:
                again.append({each: float(at.value) for _, each, at in known.asked.of(run)})
            except cp.AnalysisError:
                again.append({})
    key = dict(zip(KEY, (name, epsilon, rows, seed), strict=True))
    lines = []
    for kind, each, answer in found:
        there = np.array([run[each] for run in again if each in run])
        line = {"kind": kind, "name": each, "value": float(answer.value)}
        line |= {"error": float(answer.standard_error or np.nan), "runs": len(there)}
        lines.append(key | line | {"mean": there.mean(), "spread": there.std(ddof=1)})
    return lines


def corrected(results: pd.DataFrame, truth: pd.Series) -> pd.DataFrame:
    """Every answer in every way: how far it misses, and whether its interval holds the truth."""
    keys = pd.MultiIndex.from_frame(results[["population", "name"]])
    frame = results.assign(truth=truth.reindex(keys).to_numpy())
    shown = frame["mean"] - frame["value"]
    parts = []
    for way, part in PARTS.items():
        taken = shown**2 / (shown**2 + frame["error"] ** 2) if part is None else part
        own = taken * frame["spread"] / np.sqrt(frame["runs"])
        error = np.hypot(frame["error"], own)
        miss = frame["value"] - taken * shown - frame["truth"]
        half = multiplier(0.95, REPLICATES) * error
        parts.append(frame.assign(way=way, miss=miss, half=half, covers=miss.abs() <= half))
    return pd.concat(parts)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """By population, epsilon and kind: bias and error over the released error, and coverage.

    Bias counts as negative towards zero; all is worked out name by name, and then averaged.
    """
    cell = ["population", "rows", "epsilon", "kind", "name"]
    frame = frame.assign(squared=frame["miss"] ** 2, away=frame["miss"] * np.sign(frame["truth"]))
    means = frame.groupby([*cell, "way"])[["squared", "away", "covers"]].mean()
    unit = np.sqrt(means["squared"].xs("released", level="way")).rename("unit")
    means = means.reset_index("way").join(unit)
    means["error"] = np.sqrt(means["squared"]) / means["unit"]
    means["bias"] = means["away"] / means["unit"]
    means["way"] = pd.Categorical(means["way"], list(PARTS))
    grouped = means.groupby([*cell[:4], "way"], observed=True)[["bias", "error", "covers"]].mean()
    table = grouped.unstack("way").round(3)
    table["tables", ""] = frame.groupby(cell[:4])["seed"].nunique()
    return table


def main() -> None:
    def numbers(kind: type) -> Any:
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--populations", type=numbers(str), default=list(NAMES[:2]))
    parser.add_argument("--tables", type=int, default=16)
    parser.add_argument("--rows", type=numbers(int), default=[3000])
    parser.add_argument("--epsilons", type=numbers(float), default=[0.5, 2.0])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (name, epsilon, rows, seed)
        for seed, name, rows, epsilon in product(
            range(chosen.tables), chosen.populations, chosen.rows, chosen.epsilons
        )
    ]
    made = partial(one, runs=chosen.runs, data=chosen.data)
    results = resumed(made, wanted, KEY, chosen.out / "rehearsals.csv", chosen.jobs, every=1)
    results = results[results["population"].isin(chosen.populations)]
    truth = {
        (name, each): value
        for name in chosen.populations
        for each, value in population(name, chosen.data).truths().items()
    }
    table = summary(corrected(results, pd.Series(truth)))
    print(table.to_string())
    table.to_csv(chosen.out / "rehearsals_summary.csv")


if __name__ == "__main__":
    main()
