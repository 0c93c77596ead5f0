"""Whether the intervals of a release cover what they claim.

Private tables are drawn from a known population of a hospital's patients; each is released, and
the analyst's 95% intervals for means, proportions and regression coefficients are compared with
the population's values. Beside them stand the naive intervals, which take the synthetic rows for
people, and the width of the interval that the private table itself would give.

    python benchmarks/coverage.py --tables 200 --epsilons 0.5,1,4 --jobs 2

Every release is stored as it is made, so an interrupted run goes on. Noise comes from seeds, and
no real data is touched.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy import stats

import counterpoise as cp
from resumed import resumed

SCHEMA = cp.Schema(
    [
        cp.Column.continuous("age", 18, 90, bins=16),
        cp.Column.boolean("man"),
        cp.Column.categorical("ward", ["north", "east", "south", "west"]),
        cp.Column.continuous("stay", 0, 200, bins=16),
        cp.Column.boolean("ill"),
    ]
)
RISK, LENGTH = "ill ~ age + stay + man", "stay ~ age + man"
POPULATION = 1_000_000
LEVEL = 0.95
KEY = ["epsilon", "rows", "weights", "seed"]


def patients(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Patients whose columns depend on each other."""
    ward = generator.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    man = generator.random(rows) < 0.5
    age = np.clip(18 + 72 * generator.beta(2, 3, rows) + 3 * ward, 18, 90)
    stay = np.clip(30 + 0.4 * age + 15 * man + generator.gamma(2, 15, rows), 0, 200)
    logit = -2 + 0.04 * (age - 45) - 0.01 * (stay - 70) + 0.5 * man
    ill = generator.random(rows) < 1 / (1 + np.exp(-logit))
    wards = np.array(["north", "east", "south", "west"])[ward]
    return pd.DataFrame({"age": age, "man": man, "ward": wards, "stay": stay, "ill": ill})


def answers(release: cp.Release) -> Iterator[tuple[str, str, Any, float]]:
    """What an analyst asks: kind, name, estimate, and its naive standard error."""
    rows = len(release.table)
    for column in ("age", "stay"):
        spread = float(release.table[column].std())
        yield "mean", column, release.mean(column), spread / rows**0.5
    for column, category in (("ill", True), ("man", True), ("ward", "west"), ("ward", "south")):
        share = float((release.table[column] == category).mean())
        error = (share * (1 - share) / rows) ** 0.5
        yield "proportion", f"{column}={category}", release.proportion(column, category), error
    for formula, family in ((RISK, "binomial"), (LENGTH, "gaussian")):
        model = release.glm(formula, family=family)
        for term, found in model.coefficients.items():
            yield "coefficient", f"{formula}: {term}", found, float(model.naive_errors[term])


def plain(table: pd.DataFrame) -> cp.Release:
    """A table as a release without weights, to ask it the same questions."""
    card = {"ledger": {"private": False}, "rows": len(table), "weights": {}}
    return cp.Release(table.assign(weight=1.0), SCHEMA, card)


def truths() -> dict[str, float]:
    """The population's values."""
    table = patients(POPULATION, np.random.default_rng(2**32))
    return {name: float(found.value) for _, name, found, _ in answers(plain(table))}


def one(epsilon: float, rows: int, weights: str, seed: int) -> list[dict[str, Any]]:
    """Draw a private table, release it, and ask."""
    private = patients(rows, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        target = "ill" if weights == "moments" else None
        made = cp.release(
            private, SCHEMA, epsilon, 1 / rows**2, weights=weights, target=target, seed=seed
        )
        real = {name: error for _, name, _, error in answers(plain(private))}
        found = list(answers(made))
    key = dict(zip(KEY, (epsilon, rows, weights, seed), strict=True))
    return [
        key
        | {
            "kind": kind,
            "name": name,
            "value": float(answer.value),
            "error": float(answer.standard_error),
            "low": float(answer.interval(LEVEL)[0]),
            "high": float(answer.interval(LEVEL)[1]),
            "unweighted": float(answer.unweighted),
            "naive_error": naive,
            "private_error": real[name],
        }
        for kind, name, answer, naive in found
    ]


def summary(results: pd.DataFrame, truth: dict[str, float]) -> pd.DataFrame:
    """Coverage and width a quantity."""
    quantile = stats.norm.ppf(0.5 + LEVEL / 2)
    frame = results.assign(truth=results["name"].map(truth))
    frame["covers"] = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    frame["naive"] = (frame["unweighted"] - frame["truth"]).abs() <= quantile * frame["naive_error"]
    frame["width"] = (frame["high"] - frame["low"]) / (2 * quantile * frame["private_error"])
    frame["squared"] = (frame["value"] - frame["truth"]) ** 2
    frame["squared_unweighted"] = (frame["unweighted"] - frame["truth"]) ** 2
    table = frame.groupby(["weights", "epsilon", "kind", "name"], sort=False).agg(
        truth=("truth", "first"),
        error=("squared", lambda squares: squares.mean() ** 0.5),
        unweighted_error=("squared_unweighted", lambda squares: squares.mean() ** 0.5),
        covers=("covers", "mean"),
        naive=("naive", "mean"),
        width=("width", "median"),
        tables=("covers", "size"),
    )
    return table.round(4)


def run(chosen: argparse.Namespace, out: Path) -> pd.DataFrame:
    """Make the releases that are missing."""
    wanted = [
        (epsilon, chosen.rows, chosen.weights, seed)
        for epsilon in chosen.epsilons
        for seed in range(chosen.tables)
    ]
    results = resumed(one, wanted, KEY, out, chosen.jobs, every=10)
    asked = results["epsilon"].isin(chosen.epsilons) & (results["rows"] == chosen.rows)
    return results[asked & (results["weights"] == chosen.weights)]


def draw(table: pd.DataFrame, file: Path) -> None:
    """Coverage of every quantity, ours and naive, an epsilon a panel."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    budgets = table.index.unique("epsilon")
    figure, axes = plt.subplots(
        1, len(budgets), figsize=(2 + 4 * len(budgets), 4.5), sharey=True, squeeze=False
    )
    for axis, epsilon in zip(axes[0], budgets, strict=True):
        here = table.xs(epsilon, level="epsilon").iloc[::-1]
        place = np.arange(len(here))
        axis.axvspan(0.92, 0.98, color="#dfeee2")
        axis.plot(here["naive"], place, "o", color="#c0504d", label="naive")
        axis.plot(here["covers"], place, "o", color="#2f6f9f", label="replicate weights")
        axis.set_yticks(place, here.index.get_level_values("name"))
        axis.set_xlim(0, 1.02)
        axis.set_title(f"epsilon {epsilon:g}")
        axis.set_xlabel("coverage of 95% intervals")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=2)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--rows", type=int, default=5000, help="of a private table")
    parser.add_argument(
        "--epsilons",
        type=lambda text: [float(part) for part in text.split(",")],
        default=[0.5, 1.0, 4.0],
    )
    parser.add_argument("--weights", default="moments")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = run(chosen, chosen.out / "coverage.csv")
    table = summary(results, truths())
    print(table.to_string())
    table.to_csv(chosen.out / "coverage_summary.csv")
    draw(table, chosen.out / "coverage.png")


if __name__ == "__main__":
    main()
