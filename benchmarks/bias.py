"""Whether a release that is run again on itself shows its own bias, and whether correcting helps.

Slopes are too flat where noise hides a relation and the weights shrink towards the synthesizer.
The bootstrap's answer is to take the release for the population: run the procedure on samples of
it, see by how much the answers miss the release's own, and take that off,

    theta_corrected = theta - f (mean_r theta_r - theta),  f = 1, or less.

Two kinds of runs are tried. `replicates` are the replicate weights that every release carries.
`again` is the whole procedure (cells, synthesizer, rows, weights) on a sample of the weighted
synthetic table, as if that were private: nothing is asked of the private table, so it is free.
`twice` needs no runs: the shrunken difference T d leaves d - m of what was measured, m being what
the weights reach, and is shrunk once more, so that the weights aim at T d + T (d - m) instead
(J. W. Tukey, Exploratory Data Analysis, 1977: twicing). All of this is post-processing.
Private tables are drawn from a known law of borrowers, eight columns of which two are skewed, and
the answers are compared with the law's own values: bias, root mean square error and the coverage
of 95% intervals, whose standard errors include the runs' own, sqrt(V + f^2 s^2 / runs).

    python benchmarks/bias.py --tables 24 --rows 2000,5000 --epsilons 0.1,0.5,1,4 --runs 16

Every release is stored as it is made, so an interrupted run goes on. Noise comes from seeds, and
no real data is touched.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.analysis.replication import multiplier
from counterpoise.bundle.models import Models
from counterpoise.weights.calibration import calibrate, tilted_mean
from counterpoise.weights.moment_model import MomentModel
from resumed import resumed

AREAS = ["city", "suburb", "town", "village"]
SCHEMA = cp.Schema(
    [
        cp.Column.integer("age", 18, 85),
        cp.Column.continuous("income", 0, 400),
        cp.Column.integer("children", 0, 8),
        cp.Column.categorical("area", AREAS),
        cp.Column.boolean("owner"),
        cp.Column.continuous("debt", 0, 1),
        cp.Column.integer("late", 0, 24),
        cp.Column.boolean("failed"),
    ]
)
LOGISTIC = "failed ~ age + debt + owner + late"
LINEAR = "debt ~ age + children + owner"
POPULATION = 1_000_000
REPLICATES = 30
KEY = ["epsilon", "rows", "seed"]
# What is taken off: the runs, and the part f of the bias that they show.
CORRECTIONS = {"replicates": ("replicates", 1.0), "again": ("again", 1.0), "half": ("again", 0.5)}
WAYS = ["released", "replicates", "again", "half", "twice"]


def borrowers(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Borrowers whose columns depend on each other."""
    age = np.clip(np.round(18 + 67 * generator.beta(1.8, 2.6, rows)), 18, 85)
    area = generator.choice(4, rows, p=[0.48, 0.33, 0.16, 0.03])
    income = np.clip(np.exp(generator.normal(3.4 + 0.006 * (age - 45) - 0.1 * area, 0.6)), 0, 400)
    children = np.minimum(generator.poisson(np.where(age > 30, 1.3, 0.4)), 8)
    logit = -0.9 + 0.05 * (age - 45) + 0.012 * (income - 35) + 0.3 * area
    owner = generator.random(rows) < 1 / (1 + np.exp(-logit))
    middle = -0.6 - 0.02 * (age - 45) + 0.12 * children + 0.5 * owner
    debt = 1 / (1 + np.exp(-generator.normal(middle, 0.8)))
    late = np.minimum(generator.poisson(generator.gamma(0.7, 1 + 3 * debt)), 24)
    logit = -2.6 - 0.015 * (age - 45) + 2.2 * debt - 0.5 * owner + 0.22 * late
    failed = generator.random(rows) < 1 / (1 + np.exp(-logit))
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "income": income,
            "children": children,
            "area": np.array(AREAS)[area],
            "owner": owner,
            "debt": debt,
            "late": late,
            "failed": failed,
        }
    )


def answers(release: cp.Release) -> Iterator[tuple[str, str, Any]]:
    """What an analyst asks: the kind, a name, and the estimate."""
    for kind, formula in (("logistic", LOGISTIC), ("linear", LINEAR)):
        for term, found in release.glm(formula).items():
            if term != "Intercept":
                yield kind, f"{formula}: {term}", found
    for one, other in (("age", "debt"), ("income", "owner"), ("late", "failed")):
        yield "correlation", f"{one}, {other}", release.corr(one, other)
    for column in ("age", "income", "late"):
        yield "mean", column, release.mean(column)
    for area, found in release.proportion("area").items():
        yield "share", str(area), found
    for column in ("owner", "failed"):
        yield "share", column, release.proportion(column, True)


def plain(table: pd.DataFrame, weights: np.ndarray) -> cp.Release:
    """A table with weights as a release without replicates, to ask it the same questions."""
    card = {"ledger": {"private": False}, "rows": len(table), "weights": {}}
    return cp.Release(table.assign(weight=weights), SCHEMA, card)


def values(release: cp.Release) -> dict[str, float]:
    """The answers as numbers; none where a model cannot be fitted."""
    try:
        return {name: float(found.value) for _, name, found in answers(release)}
    except cp.CounterpoiseError:
        return {}


def truths() -> dict[str, float]:
    """The law's values."""
    table = borrowers(POPULATION, np.random.default_rng(2**32))
    return values(plain(table, np.ones(len(table))))


def made(table: pd.DataFrame, epsilon: float, replicates: int, seed: int) -> cp.Release:
    """The release of a table."""
    return cp.release(
        table,
        SCHEMA,
        epsilon,
        1 / len(table) ** 2,
        replicates=replicates,
        seed=seed,
        progress=False,
    ).use_weights()


def twice(release: cp.Release) -> np.ndarray:
    """The weights that aim at what they left of the measured difference, too."""
    assert isinstance(release.models, Models) and isinstance(release.models.weights, MomentModel)
    model = release.models.weights
    white = model.white(model.schema.encode(release.table))
    reached = tilted_mean(white, model.theta)
    target = model.trust @ (2 * model.differences - reached)
    tilt = white @ calibrate(white, target, model.softness, model.theta)
    found = np.exp(tilt - tilt.max())
    return np.asarray(found / found.mean())


def one(epsilon: float, rows: int, seed: int, runs: int) -> list[dict[str, Any]]:
    """Draw a private table, release it, run the release again on itself, and ask."""
    private = borrowers(rows, np.random.default_rng([seed, rows, 11]))
    generator = np.random.default_rng([seed, rows, 12])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        release = made(private, epsilon, REPLICATES, seed)
        try:
            found = list(answers(release))
        except cp.CounterpoiseError:
            return []
        table, chances = release.table[list(SCHEMA.names)], release.weights
        aimed = values(plain(table, twice(release)))
        assert release.replicates is not None
        redrawn = [values(plain(table, column)) for column in release.replicates.T]
        again = []
        for run in range(runs):
            drawn = generator.choice(len(table), rows, p=chances / chances.sum())
            sample = table.iloc[drawn].reset_index(drop=True)
            again.append(values(made(sample, epsilon, 0, 1000 * (seed + 1) + run)))
    key = dict(zip(KEY, (epsilon, rows, seed), strict=True))
    lines = []
    for kind, name, answer in found:
        line = key | {"kind": kind, "name": name, "value": float(answer.value)}
        line["error"] = float(answer.standard_error or np.nan)
        line["twice"] = aimed.get(name, np.nan)
        # Replicates go a part of the way.
        for way, seen, part in (
            ("replicates", redrawn, release.replicate_part),
            ("again", again, 1.0),
        ):
            there = np.array([each[name] for each in seen if name in each])
            there = answer.value + (there - answer.value) / part
            line |= {f"{way}_mean": there.mean(), f"{way}_spread": there.std(ddof=1)}
            line |= {f"{way}_count": len(there)}
        lines.append(line)
    return lines


def corrected(results: pd.DataFrame, truth: dict[str, float]) -> pd.DataFrame:
    """Every answer in every way: its value, its standard error, and whether it covers."""
    frame = results.assign(truth=results["name"].map(truth))
    found = {way: frame.assign(way=way) for way in ("released", "twice")}
    found["twice"]["value"] = frame["twice"]
    for way, (runs, part) in CORRECTIONS.items():
        shift = part * (frame[f"{runs}_mean"] - frame["value"])
        own = part * frame[f"{runs}_spread"] / np.sqrt(frame[f"{runs}_count"])
        found[way] = frame.assign(way=way, value=frame["value"] - shift)
        found[way]["error"] = np.hypot(frame["error"], own)
    longer = pd.concat(found.values())
    half = multiplier(0.95, REPLICATES) * longer["error"]
    longer["miss"] = longer["value"] - longer["truth"]
    longer["covers"] = longer["miss"].abs() <= half
    return longer


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """For every kind of question and way: bias, error and coverage.

    Bias and root mean square error are in units of the root mean square error of the released
    answers, name by name, and then averaged: the bias as it is on the side away from zero, so that
    a slope that is too flat counts as negative.
    """
    cell = ["rows", "epsilon", "kind", "name"]
    frame = frame.assign(squared=frame["miss"] ** 2, away=frame["miss"] * np.sign(frame["truth"]))
    means = frame.groupby([*cell, "way"])[["squared", "away", "covers"]].mean()
    released = np.sqrt(means["squared"].xs("released", level="way"))
    means = means.reset_index("way").join(released.rename("unit"))
    means["error"] = np.sqrt(means["squared"]) / means["unit"]
    means["bias"] = means["away"] / means["unit"]
    means["way"] = pd.Categorical(means["way"], WAYS)
    grouped = means.groupby([*cell[:3], "way"], observed=True)[["bias", "error", "covers"]].mean()
    table = grouped.unstack("way").round(3)
    table["tables", ""] = frame.groupby(cell[:3])["seed"].nunique()
    return table


def shown(results: pd.DataFrame, truth: dict[str, float]) -> pd.DataFrame:
    """For every question: the bias, and what either kind of runs takes for it, with errors."""
    frame = results.assign(truth=results["name"].map(truth))
    frame["bias"] = frame["value"] - frame["truth"]
    for runs in ("replicates", "again"):
        frame[runs] = frame[f"{runs}_mean"] - frame["value"]
    grouped = frame.groupby(["rows", "epsilon", "kind", "name"], sort=False)
    seen = grouped[["bias", "replicates", "again"]]
    table = seen.mean().join(seen.sem().add_suffix("_error"))
    return table.div(grouped["truth"].first().abs(), axis=0).round(4)


def run(chosen: argparse.Namespace, out: Path) -> pd.DataFrame:
    """Make the releases that are missing."""
    wanted = [
        (epsilon, rows, seed)
        for seed, rows, epsilon in product(range(chosen.tables), chosen.rows, chosen.epsilons)
    ]
    results = resumed(partial(one, runs=chosen.runs), wanted, KEY, out, chosen.jobs, every=4)
    asked = results["epsilon"].isin(chosen.epsilons) & results["rows"].isin(chosen.rows)
    return results[asked & (results["seed"] < chosen.tables)]


def draw(table: pd.DataFrame, file: Path) -> None:
    """Errors of every correction against the released answers', a kind of question a panel."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kinds = list(table.index.unique("kind"))
    figure, axes = plt.subplots(1, len(kinds), figsize=(3 * len(kinds), 4), sharey=True)
    for axis, kind in zip(np.atleast_1d(axes), kinds, strict=True):
        here = table.xs(kind, level="kind")
        for way in WAYS[1:]:
            axis.plot(here["error", way], range(len(here)), "o", label=way)
        axis.axvline(1, color="#888888")
        axis.set_yticks(
            range(len(here)), [f"{rows:,}, {epsilon:g}" for rows, epsilon in here.index]
        )
        axis.set_title(kind)
        axis.set_xlabel("error over the released")
    figure.legend(*axis.get_legend_handles_labels(), loc="lower center", ncols=len(WAYS))
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(file, dpi=120)


def main() -> None:
    def numbers(kind: type) -> Any:
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=24)
    parser.add_argument("--rows", type=numbers(int), default=[2000, 5000])
    parser.add_argument("--epsilons", type=numbers(float), default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    results, truth = run(chosen, chosen.out / "bias.csv"), truths()
    seen, table = shown(results, truth), summary(corrected(results, truth))
    print(seen.to_string(), table.to_string(), sep="\n\n")
    seen.to_csv(chosen.out / "bias_shown.csv")
    table.to_csv(chosen.out / "bias_summary.csv")
    draw(table, chosen.out / "bias.png")


if __name__ == "__main__":
    main()
