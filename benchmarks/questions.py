"""What it is worth to state questions in advance: errors and coverage, asked and not.

Private tables are drawn from a known law of a firm's employees, eight columns of which one is
skewed. Each is released four ways: with nothing said, with a target, with one question (a logistic
model of five coefficients), and with all five that are then asked (that model, a linear one, a
Poisson one, a mean by groups, an effect). Errors of the analyst's answers are against the law's own
values, in units of what the private table itself would miss; intervals are of 95%.

    python benchmarks/questions.py --tables 40 --rows 2000,5000 --epsilons 0.5,1,4 --jobs 2

Every release is stored as it is made, so an interrupted run goes on. Noise comes from seeds, and
no real data is touched.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import counterpoise as cp
from resumed import resumed

REGIONS = ["coast", "hills", "plain"]
SCHEMA = cp.Schema(
    [
        cp.Column.integer("age", 18, 70),
        cp.Column.boolean("abroad"),
        cp.Column.categorical("region", REGIONS),
        cp.Column.continuous("tenure", 0, 50),
        cp.Column.continuous("score", 0, 100),
        cp.Column.boolean("trained"),
        cp.Column.integer("absences", 0, 30),
        cp.Column.boolean("left"),
    ]
)
LEFT = "left ~ age + abroad + tenure + score"
SCORE = "score ~ age + tenure * abroad"
ABSENCES = "poisson: absences ~ age + score"
MEAN = "mean(tenure) by region"
EFFECT = "effect(trained) on score given age + tenure"
WAYS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "target": {"target": "left"},
    "one question": {"questions": [LEFT]},
    "five questions": {"questions": [LEFT, SCORE, ABSENCES, MEAN, EFFECT]},
}
POPULATION = 1_000_000
# Tables by which the private table's own errors are worked out.
PLAIN_TABLES = 200
KEY = ["way", "epsilon", "rows", "seed"]


def employees(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Employees whose columns depend on each other."""
    region = generator.choice(3, rows, p=[0.5, 0.35, 0.15])
    age = np.clip(np.round(generator.normal(41, 11, rows)), 18, 70)
    tenure = np.clip(generator.gamma(1.3, 4 + 1.5 * region, rows) * (age - 10) / 31, 0, 50)
    abroad = generator.random(rows) < 0.25 + 0.2 * (region == 0)
    trained = generator.random(rows) < 1 / (1 + np.exp(0.4 + 0.03 * (age - 41) - 0.04 * tenure))
    mean = 52 - 0.25 * (age - 41) + 0.5 * tenure * (1 - 0.6 * abroad) + 6 * trained
    score = np.clip(generator.normal(mean, 12), 0, 100)
    absences = generator.poisson(np.exp(1.1 + 0.012 * (age - 41) - 0.01 * (score - 52)))
    logit = -0.9 - 0.035 * (age - 41) + 0.6 * abroad - 0.06 * (tenure - 6) - 0.02 * (score - 52)
    left = generator.random(rows) < 1 / (1 + np.exp(-logit))
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "abroad": abroad,
            "region": np.array(REGIONS)[region],
            "tenure": tenure,
            "score": score,
            "trained": trained,
            "absences": np.minimum(absences, 30),
            "left": left,
        }
    )


def answers(release: cp.Release) -> Iterator[tuple[str, str, Any]]:
    """What an analyst asks: the question, a name within it, and the estimate."""
    for question in (LEFT, SCORE):
        for term, found in release.glm(question).items():
            yield question, term, found
    for term, found in release.glm(ABSENCES.removeprefix("poisson: "), "poisson").items():
        yield ABSENCES, term, found
    for region, found in release.mean("tenure", by="region").items():
        yield MEAN, str(region), found
    yield EFFECT, "effect", release.effect("trained", "score", "age + tenure")


def plain_values(rows: int, seed: int) -> dict[tuple[str, str], float]:
    """The answers of a table itself."""
    table = employees(rows, np.random.default_rng(seed)).assign(weight=1.0)
    card = {"ledger": {"private": False}, "rows": rows, "weights": {}}
    release = cp.Release(table, SCHEMA, card)
    return {(question, name): float(found.value) for question, name, found in answers(release)}


def one(way: str, epsilon: float, rows: int, seed: int) -> list[dict[str, Any]]:
    """Draw a private table, release it, and ask."""
    private = employees(rows, np.random.default_rng([seed, rows, 7]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        made = cp.release(
            private, SCHEMA, epsilon, 1 / rows**2, seed=seed, progress=False, **WAYS[way]
        ).use_weights()
        found = list(answers(made))
    key = dict(zip(KEY, (way, epsilon, rows, seed), strict=True))
    return [
        key
        | {
            "question": question,
            "name": name,
            "value": float(answer.value),
            "low": float(answer.interval()[0]),
            "high": float(answer.interval()[1]),
        }
        for question, name, answer in found
    ]


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """For every question: errors over those of the private table, coverage, and widths."""
    truth = plain_values(POPULATION, 2**32)
    places = list(zip(results["question"], results["name"], strict=True))
    frame = results.assign(truth=[truth[place] for place in places])
    frame["covers"] = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    own: dict[tuple[int, str, str], float] = {}
    for rows in frame["rows"].unique():
        drawn = [plain_values(int(rows), 10**6 + seed) for seed in range(PLAIN_TABLES)]
        for place, value in truth.items():
            misses = np.array([found[place] for found in drawn]) - value
            own[int(rows), *place] = float(np.sqrt((misses**2).mean()))
    paired = zip(frame["rows"], places, strict=True)
    errors = np.array([own[int(rows), *place] for rows, place in paired])
    frame["squared"] = ((frame["value"] - frame["truth"]) / errors) ** 2
    frame["width"] = (frame["high"] - frame["low"]) / (3.92 * errors)
    frame["way"] = pd.Categorical(frame["way"], list(WAYS))
    grouped = frame.groupby(["rows", "epsilon", "question", "way"], observed=True, sort=True)
    table = grouped.agg(
        error=("squared", lambda squares: squares.mean() ** 0.5),
        covers=("covers", "mean"),
        width=("width", "median"),
        tables=("seed", "nunique"),
    )
    return table.round(3)


def run(chosen: argparse.Namespace, out: Path) -> pd.DataFrame:
    """Make the releases that are missing."""
    wanted = [
        (way, epsilon, rows, seed)
        for seed, rows, epsilon, way in product(
            range(chosen.tables), chosen.rows, chosen.epsilons, WAYS
        )
    ]
    results = resumed(one, wanted, KEY, out, chosen.jobs, every=24)
    asked = results["epsilon"].isin(chosen.epsilons) & results["rows"].isin(chosen.rows)
    return results[asked & (results["seed"] < chosen.tables)]


def draw(table: pd.DataFrame, file: Path) -> None:
    """The errors of every question, a way a colour, a size and budget a panel."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [(rows, epsilon) for rows, epsilon, *_ in table.index]
    panels = list(dict.fromkeys(panels))
    figure, axes = plt.subplots(
        1, len(panels), figsize=(2 + 3 * len(panels), 4), sharey=True, squeeze=False
    )
    for axis, (rows, epsilon) in zip(axes[0], panels, strict=True):
        here = table.loc[(rows, epsilon)]["error"].unstack("way")
        for way in here:
            axis.plot(here[way], range(len(here)), "o", label=way)
        axis.set_yticks(range(len(here)), here.index)
        axis.set_xscale("log")
        axis.set_title(f"{rows:,} rows, epsilon {epsilon:g}")
        axis.set_xlabel("error over the private table's")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=4)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(file, dpi=120)


def main() -> None:
    def numbers(kind: type) -> Any:
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--rows", type=numbers(int), default=[2000, 5000])
    parser.add_argument("--epsilons", type=numbers(float), default=[0.5, 1.0, 4.0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = run(chosen, chosen.out / "questions.csv")
    table = summary(results)
    print(table.to_string())
    table.to_csv(chosen.out / "questions_summary.csv")
    draw(table, chosen.out / "questions.png")


if __name__ == "__main__":
    main()
