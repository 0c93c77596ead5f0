"""Whether intervals hold the values of a population, of which a sample is released.

Private tables are drawn from `populations.py` and released by default, with the target of the
logistic model named, or with the model asked in advance; of every answer it is seen whether its
95% interval holds the population's value, how wide it is beside the private table's own, and
whether it was marked as never measured.

    python benchmarks/sample_coverage.py --data DIR --populations adult,dutch,credit --tables 10
    python benchmarks/sample_coverage.py --populations borrowers --asks default --kinds share \
        --epsilons 0.1 --rows 2000 --tables 40

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
from populations import PUBLIC, population
from resumed import resumed

LEVEL, REPLICATES = 0.95, 40
KEY = ["population", "asked", "epsilon", "rows", "seed"]
ASKS = ("default", "target", "questions")


def one(
    name: str,
    asked: str,
    epsilon: float,
    rows: int,
    seed: int,
    kinds: tuple[str, ...],
    data: Path | None,
) -> list[dict[str, Any]]:
    """Draw a private table, release it, and ask."""
    known = population(name, data)
    private = known.draw(rows, np.random.default_rng([seed, rows, 31]))
    formula = known.asked.logistic
    more: dict[str, dict[str, Any]] = {
        "default": {},
        "target": {"target": formula.partition("~")[0].strip()},
        "questions": {"questions": [formula]},
    }
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
            **more[asked],
        ).use_weights()
        own = cp.Release(private.assign(weight=1.0), known.schema, card={})
        real = {each: float(found.value) for _, each, found in known.asked.of(own, kinds)}
        found = list(known.asked.of(made, kinds))
    key = dict(zip(KEY, (name, asked, epsilon, rows, seed), strict=True))
    lines = []
    for kind, each, answer in found:
        low, high = answer.interval(LEVEL) or (np.nan, np.nan)
        line = {"kind": kind, "name": each, "value": float(answer.value), "low": low, "high": high}
        line |= {"error": float(answer.standard_error or np.nan), "support": answer.support}
        lines.append(key | line | {"private": real[each]})
    return lines


def summary(results: pd.DataFrame, truth: pd.Series, by: list[str]) -> pd.DataFrame:
    """Coverage and errors; a bias and an error are in units of the private tables' own errors."""
    keys = pd.MultiIndex.from_frame(results[["population", "name"]])
    frame = results.assign(truth=truth.reindex(keys).to_numpy())
    frame["covers"] = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    frame["never"] = frame["support"] == "never"
    frame["covers_or_marked"] = frame["covers"] | frame["never"]
    own = (frame["private"] - frame["truth"]) ** 2
    names = frame.groupby(["population", "epsilon", "rows", "name"])["seed"]
    unit = np.sqrt(own.groupby([frame[c] for c in names.keys]).transform("mean"))
    frame["bias"] = (frame["value"] - frame["truth"]) * np.sign(frame["truth"]) / unit
    frame["squared"] = ((frame["value"] - frame["truth"]) / unit) ** 2
    frame["width"] = frame["error"] / unit
    grouped = frame.groupby(by, sort=False)
    table = grouped[["covers", "never", "covers_or_marked", "bias", "width"]].mean()
    table["error"] = np.sqrt(grouped["squared"].mean())
    table["tables"] = grouped["seed"].nunique()
    return table.round(3)


def main() -> None:
    def several(kind: type) -> Any:
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--populations", type=several(str), default=list(PUBLIC))
    parser.add_argument("--asks", type=several(str), default=list(ASKS))
    parser.add_argument("--kinds", type=several(str), default=["logistic"])
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--rows", type=several(int), default=[5000])
    parser.add_argument("--epsilons", type=several(float), default=[1.0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (name, asked, epsilon, rows, seed)
        for seed, name, rows, epsilon, asked in product(
            range(chosen.tables), chosen.populations, chosen.rows, chosen.epsilons, chosen.asks
        )
    ]
    made = partial(one, kinds=tuple(chosen.kinds), data=chosen.data)
    results = resumed(made, wanted, KEY, chosen.out / "sample_coverage.csv", chosen.jobs, every=1)
    truth = {
        (name, each): value
        for name in chosen.populations
        for each, value in population(name, chosen.data).truths(chosen.kinds).items()
    }
    cell = ["population", "epsilon", "rows", "asked", "kind"]
    for by in (cell, [*cell, "name"]):
        print(summary(results, pd.Series(truth), by).to_string(), end="\n\n")


if __name__ == "__main__":
    main()
