"""Networks as synthesizers of tables: how good, how stable, how quick, and which weights help them.

Every table is split 80 : 20. As in a release, a part of the budget settles the cells of columns,
and the synthesizer has the rest; or a part of it, where weights that are paid for have theirs. All
lines have the same total epsilon, at delta 1e-5; the ledger's figure is in the results. Weights
that are free ("uniform", "discriminator") weigh the rows of a synthesizer that had all; those that
are paid for weigh, each in turn, the same rows of one that had less. AIM with moment weights stands
beside the networks. Measured on the held-out rows, weighted throughout: the area under the ROC
curve of a logistic regression (the score of a linear one for numbers), and the Wasserstein
distance.

    python benchmarks/networks.py --data DIR [--sets breast,iris] [--seeds 10] [--jobs 2]
    python benchmarks/networks.py --data DIR --sets adult --weights uniform --seeds 1
    python benchmarks/networks.py --data DIR --synthesizers dpgan:nothing,dpgan:boosted

Rows go to `results/networks.csv` as they are finished, and what has rows there is not run again;
the table, with standard errors over seeds, goes to `results/networks.md`. Bounds and categories are
read off the very rows (see `weighted_tables`): epsilon describes the mechanisms alone.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise import Budget, CounterpoiseError, Schema, Vault, evaluation
from counterpoise.curation.plan import Plan, plan_release
from counterpoise.curation.stages import fit_synthesizer, settle_schema
from counterpoise.curation.work import Work
from counterpoise.synthesizers import SYNTHESIZERS, Aim
from counterpoise.vault import Ledger
from counterpoise.weights import WEIGHTERS
from counterpoise.weights.protocol import redrawable
from resumed import resumed
from weighted_tables import SOURCES, Table, load

SETS = ("breast", "banknote", "iris", "boston")
NETWORKS = ("dp-mmd", "dpgan", "dpcgan", "pategan")
BESIDE = "aim"
# What parts of the GANs are worth, where they are asked for: "dpgan:nothing" and so on.
VARIANTS: dict[str, dict[str, Any]] = {
    "nothing": {"start": 0.0, "generator_rate": 0.005},
    "still": {"generator_rate": 1e-12},
    "boosted": {"snapshots": 10},
}
WEIGHTS = ("uniform", "discriminator", "moments", "logistic", "dp-mlp", "pate")
KEY = ["data", "synthesizer", "epsilon", "seed"]
DELTA = 1e-5
# Added to seeds, so that no two uses of a seed draw the same numbers.
SAMPLING, WEIGHING = 1_000_003, 2_000_003
# Synthetic rows, times the private ones, within these.
MULTIPLE, FEWEST, MOST = 5, 1_000, 40_000
MOST_COLUMNS_OF_TRIPLES = 30
# Points that stand for either table in the Wasserstein distance.
POINTS = 1_000


@lru_cache(maxsize=2)
def table_of(name: str, directory: Path) -> Table:
    return load(name, directory)


def run(
    data: str, synthesizer: str, epsilon: float, seed: int, directory: Path, weights: list[str]
) -> list[dict[str, Any]]:
    """One table and synthesizer: fitted with all of the budget and with a part, then weighed."""
    table = table_of(data, directory)
    train, held_out = table.split(seed)
    test = table.evaluation_schema.encode(held_out)
    budget = Budget(epsilon, DELTA)
    results = []
    for is_free in (True, False):
        names = [name for name in weights if WEIGHTERS.get(name)().is_free == is_free]
        if synthesizer == BESIDE:
            names = [name for name in names if name in ("uniform", "moments")]
        if not names:
            continue
        plan = plan_release(table.schema, budget, method(synthesizer, table), names[0])
        start = time.process_time()
        schema, model, ledger = fitted(plan, train, seed)
        seconds = time.process_time() - start
        rows = int(np.clip(MULTIPLE * len(train), FEWEST, MOST))
        made = model.sample(rows, seed=SAMPLING + seed)
        coded = table.evaluation_schema.encode(made)
        for name in names:
            row = {"data": data, "synthesizer": synthesizer, "epsilon": epsilon, "seed": seed}
            row |= {"weights": name, "fit_seconds": round(seconds, 2)}
            start = time.process_time()
            try:
                found, spent = weighed(name, plan, train, schema, made, ledger, model, seed)
            except CounterpoiseError as error:
                results.append({**row, "status": f"refused: {error}"})
                continue
            row["weigh_seconds"] = round(time.process_time() - start, 2)
            results.append(
                {
                    **row,
                    "status": "ok",
                    "epsilon_spent": spent,
                    "score": evaluation.linear_score(coded, test, table.target, found),
                    "wasserstein": evaluation.wasserstein(coded, test, found, points=POINTS),
                    "effective_share": float(found.sum() ** 2 / (found**2).sum() / len(found)),
                }
            )
    return results


def method(name: str, table: Table) -> Any:
    """A synthesizer by its name, told the target where it takes one."""
    if name == BESIDE:
        wide = len(table.schema) > MOST_COLUMNS_OF_TRIPLES
        return Aim(degree=2) if wide else Aim()
    name, _, variant = name.partition(":")
    options = dict(VARIANTS.get(variant, {}))
    if name == "dpcgan" and table.schema[table.target].kind == "categorical":
        options["target"] = table.target
    return SYNTHESIZERS.make(name, **options)


def fitted(plan: Plan, train: pd.DataFrame, seed: int) -> tuple[Schema, Any, Ledger]:
    """The settled schema, the synthesizer's model, and what it took."""
    with Vault(train, plan.schema, plan.budget, seed=seed) as vault:
        kept = Work(sampling_seed=seed)
        settle_schema(vault, plan, kept)
        return vault.schema, fit_synthesizer(vault, plan, kept), vault.ledger


def weighed(
    name: str,
    plan: Plan,
    train: pd.DataFrame,
    schema: Schema,
    made: pd.DataFrame,
    before: Ledger,
    synthesizer: Any,
    seed: int,
) -> tuple[np.ndarray, float]:
    """The weights of a method, and the epsilon of the release with them."""
    weighter = WEIGHTERS.make(name)
    ledger = Ledger(plan.budget, private=False)
    for spend in before.spends:
        ledger.spend(spend.query, spend.event, spend.delta)
    with Vault(train, schema, plan.budget, seed=WEIGHING + seed, ledger=ledger) as vault:
        share = None if weighter.is_free else plan.weights_share
        asked = synthesizer if name == "discriminator" else redrawable(synthesizer)
        model = weighter.fit(vault, made, share, asked)
    return model.weigh(made).normalised, ledger.epsilon_spent


def report(results: pd.DataFrame) -> str:
    """Means and standard errors over seeds: a line a synthesizer and weights."""
    done = results[results["status"] == "ok"]
    lines = ["| data | epsilon | synthesizer | weights | seeds | score | lowest | Wasserstein |"]
    lines += ["| --- " * 8 + "|"]
    keys = ["data", "epsilon", "synthesizer", "weights"]
    for key, rows in done.groupby(keys, sort=False):
        cells = [str(each) for each in key] + [str(len(rows))]
        cells += [_mean(rows["score"]), f"{rows['score'].min():.3f}", _mean(rows["wasserstein"])]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "What weights change against equal ones (score; Wasserstein distance):", ""]
    lines += helped(done)
    fits = done.groupby(["data", "synthesizer"], sort=False)["fit_seconds"].max()
    lines += ["", "CPU seconds of the slowest fit:", ""]
    lines += [f"- {data}, {name}: {seconds:.1f}" for (data, name), seconds in fits.items()]
    return "\n".join(lines) + "\n"


def helped(done: pd.DataFrame) -> list[str]:
    """Which weights help which network: a line a network, a cell for each kind of weights.

    Each is held against equal weights on the same table, budget and seed, whose synthesizer had all
    of the budget; means and standard errors are over all of these.
    """
    equal = done[done["weights"] == "uniform"].set_index(KEY)
    names = [name for name in done["weights"].unique() if name != "uniform"]
    lines = ["| synthesizer | " + " | ".join(names) + " |", "| --- " * (len(names) + 1) + "|"]
    for synthesizer, rows in done.groupby("synthesizer", sort=False):
        cells = [str(synthesizer)]
        for name in names:
            pairs = rows[rows["weights"] == name].set_index(KEY).join(equal, rsuffix="_equal")
            pairs = pairs.dropna(subset=["score", "score_equal"])
            changes = [
                _mean(pairs[measure] - pairs[f"{measure}_equal"], "+.3f")
                for measure in ("score", "wasserstein")
            ]
            cells.append("; ".join(changes) if len(pairs) else "")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _mean(values: pd.Series, form: str = ".3f") -> str:
    if len(values) < 2:
        return f"{values.mean():{form}}"
    return f"{values.mean():{form}} ± {values.std(ddof=1) / math.sqrt(len(values)):.3f}"


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--sets", type=names, default=list(SETS))
    parser.add_argument("--synthesizers", type=names, default=[*NETWORKS, BESIDE])
    known = [name for name in WEIGHTS if name in set(WEIGHTERS)]
    parser.add_argument("--weights", type=names, default=known)
    parser.add_argument("--epsilons", type=names, default=["1", "6"])
    parser.add_argument("--seeds", type=int, default=10, help="how many: 0, ..., SEEDS - 1")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    if unknown := set(chosen.sets) - set(SOURCES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(SOURCES)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (data, synthesizer, float(epsilon), seed)
        for seed in range(chosen.seeds)
        for data in chosen.sets
        for epsilon in chosen.epsilons
        for synthesizer in chosen.synthesizers
    ]
    one = partial(run, directory=chosen.data, weights=chosen.weights)
    results = resumed(one, wanted, KEY, chosen.out / "networks.csv", chosen.jobs, every=1)
    text = report(results)
    (chosen.out / "networks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
