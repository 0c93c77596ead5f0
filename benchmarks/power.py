"""Whether a release finds the effect of a group, beside a noisy query that asks for nothing else.

Private tables have eight columns. Half of what makes up `y` goes with others of them, and a group
moves it by 0, 0.15 or 0.3 standard deviations; `group` has nothing else to do with `y`, so that the
difference of its means is known. Each table is released with nothing named and with a question
that names what is then asked, `y ~ group` or `mean(y) by group`. Beside them stand the private
table itself, and one query that spends the whole budget on this answer alone (`direct`).

    python benchmarks/power.py --rows 1000,5000 --tables 30

A table's answers are one file a way in the folder `--out`, so an interrupted study goes on. For
every way it says, of the difference and of both groups' means, in standard deviations of `y`,

- `rejects`: the part of the 95% intervals of the difference without zero, which is power, and
  where the effect is zero false rejections;
- `half`: the median half width; `error`: the root mean square error; `covers`: the part of the
  intervals that hold the law's answer.

Noise comes from seeds, and no real data is touched.
"""

from __future__ import annotations

import argparse
import os
import re
import warnings
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import brentq
from scipy.stats import norm

import counterpoise as cp

EFFECTS = (0.0, 0.15, 0.3)
# Bounds four deviations off, as of a score from 0 to 100: less than one row in 10,000 is cut.
MIDDLE, HALF, DEVIATION = 50.0, 50.0, 12.0
SHARE = 0.35
SCHEMA = cp.Schema(
    [
        cp.Column.boolean("group"),
        cp.Column.continuous("y", MIDDLE - HALF, MIDDLE + HALF),
        cp.Column.integer("age", 0, 120),
        cp.Column.categorical("region", ["coast", "hills", "plain", "city"]),
        cp.Column.continuous("pay", 0, 100_000),
        cp.Column.integer("visits", 0, 60),
        cp.Column.boolean("smokes"),
        cp.Column.continuous("score", 0, 100),
    ]
)
WAYS: dict[str, list[str]] = {
    "nothing": [],
    "y ~ group": ["y ~ group"],
    "mean(y) by group": ["mean(y) by group"],
}
BESIDE = ("direct", "private table")
# How far the direct query's counts and squares reach where its sums reach one: what is not asked
# of them goes to the sums, which the difference is made of. A round number; not studied.
OTHERS = 0.5
NORMAL = float(norm.ppf(0.975))
# An answer's names, and its ends beside it.
DIFFERENCE, MEANS = "difference", ("mean without", "mean with")


def people(rows: int, effect: float, generator: np.random.Generator) -> pd.DataFrame:
    """A private table: what moves `y` moves others, and so does the group."""
    factor, side = generator.normal(size=(2, rows))
    group = side > norm.ppf(1 - SHARE)
    own = np.sqrt(0.5) * (factor + generator.normal(size=rows))
    both = 0.5 * factor + 0.4 * side
    region = np.digitize(both + generator.normal(size=rows), [-1.0, 0.2, 1.2])
    return pd.DataFrame(
        {
            "group": group,
            "y": np.clip(MIDDLE + DEVIATION * (effect * group + own), 0, MIDDLE + HALF),
            "age": np.clip(45 + 15 * (both + generator.normal(size=rows)), 0, 120).astype(int),
            "region": np.array(["coast", "hills", "plain", "city"])[region],
            "pay": np.clip(np.exp(7.5 + 0.5 * factor + generator.normal(size=rows)), 0, 100_000),
            "visits": generator.poisson(np.exp(0.8 + 0.4 * both)).clip(0, 60),
            "smokes": generator.random(rows) < 1 / (1 + np.exp(1 - both)),
            "score": np.clip(50 + 15 * (0.4 * side + generator.normal(size=rows)), 0, 100),
        }
    )


def released(private: pd.DataFrame, way: str, epsilon: float, delta: float, seed: int) -> Any:
    """The difference and both means of a release, each a value with the ends of its interval."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        made = cp.release(
            private, SCHEMA, epsilon, delta, seed=seed, progress=False, questions=WAYS[way]
        ).use_weights()
        means = made.mean("y", by="group")
        found = [made.glm("y ~ group")["group"], means[False], means[True]]
    return [(each.value, *each.interval(0.95)) for each in found]


def direct(
    private: pd.DataFrame, epsilon: float, delta: float, generator: np.random.Generator
) -> Any:
    """The same by the Gaussian mechanism, with the whole budget on it.

    A row adds (a, u, a u^2) to its group's sums, u in [-1, 1] its value and a = `OTHERS`, so that
    one row more or less moves them by at most sqrt(1 + 2 a^2).
    """
    u = (private["y"].to_numpy() - MIDDLE) / HALF
    each = np.column_stack([np.full(len(u), OTHERS), u, OTHERS * u**2])
    group = private["group"].to_numpy()
    sums = np.array([each[group == arm].sum(axis=0) for arm in (False, True)])
    scale = np.sqrt(1 + 2 * OTHERS**2) * gaussian_scale(epsilon, delta)
    counts, totals, squares = (sums + generator.normal(scale=scale, size=sums.shape)).T
    # No group is empty, as anybody knows who asks.
    counts = np.maximum(counts / OTHERS, 1.0)
    means = np.clip(totals / counts, -1, 1)
    # Both groups have one variance, and never a deviation below a hundredth of half the range.
    variance = np.clip(squares.sum() / OTHERS / counts.sum() - np.mean(means**2), 1e-4, 1.0)
    # Var m = v / n + (1 + (m / a)^2) s^2 / n^2
    errors = np.sqrt(variance / counts + (1 + (means / OTHERS) ** 2) * scale**2 / counts**2)
    values = np.array([means[1] - means[0], *means])
    halves = NORMAL * np.array([np.hypot(*errors), *errors])
    moved = np.array([0.0, MIDDLE, MIDDLE])
    return [
        tuple(at + HALF * np.array([value, value - half, value + half]))
        for at, value, half in zip(moved, values, halves, strict=True)
    ]


def gaussian_scale(epsilon: float, delta: float) -> float:
    """The deviation of Gaussian noise a unit of sensitivity (Balle and Wang 2018, theorem 8)."""

    def missing(scale: float) -> float:
        # Phi(1 / 2s - eps s) - e^eps Phi(-1 / 2s - eps s) = delta
        middle, reach = epsilon * scale, 1 / (2 * scale)
        return float(norm.cdf(reach - middle) - np.exp(epsilon) * norm.cdf(-reach - middle)) - delta

    return float(brentq(missing, 1e-3 / epsilon, 1e3 / epsilon))


def of_the_table(private: pd.DataFrame) -> Any:
    """The same of the private rows themselves, which nobody is to see."""
    arms = [private.loc[private["group"] == arm, "y"] for arm in (False, True)]
    values = [each.mean() for each in arms]
    errors = [each.std() / np.sqrt(len(each)) for each in arms]
    pairs = [(values[1] - values[0], np.hypot(*errors)), *zip(values, errors, strict=True)]
    return [(value, value - NORMAL * error, value + NORMAL * error) for value, error in pairs]


def one(way: str, effect: float, rows: int, epsilon: float, seed: int, out: Path) -> Path:
    """Draw a private table, answer in one way, and keep the answers in a file."""
    named = "_".join(re.findall(r"\w+", way))
    file = out / f"{named}-{effect:g}-{rows}-{epsilon:g}-{seed}.parquet"
    if file.exists():
        return file
    # The same table for every way.
    place = EFFECTS.index(effect)
    private = people(rows, effect, np.random.default_rng([seed, rows, place, 61]))
    delta = 1 / rows**2
    if way == "direct":
        found = direct(private, epsilon, delta, np.random.default_rng([seed, rows, place, 67]))
    elif way == "private table":
        found = of_the_table(private)
    else:
        found = released(private, way, epsilon, delta, seed)
    frame = pd.DataFrame(found, columns=["value", "low", "high"], dtype=float)
    truths = [effect * DEVIATION, MIDDLE, MIDDLE + effect * DEVIATION]
    frame = frame.assign(name=[DIFFERENCE, *MEANS], truth=truths)
    frame.assign(way=way, effect=effect, rows=rows, epsilon=epsilon, seed=seed).to_parquet(file)
    return file


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Rejections, widths, errors and coverage of every setting and way."""
    of_means = frame["name"].isin(MEANS)
    frame = frame.assign(answer=np.where(of_means, "group means", DIFFERENCE))
    frame["rejects"] = ((frame["low"] > 0) | (frame["high"] < 0)).where(~of_means).astype(float)
    frame["half"] = (frame["high"] - frame["low"]) / 2 / DEVIATION
    frame["squared"] = ((frame["value"] - frame["truth"]) / DEVIATION) ** 2
    frame["covers"] = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    frame["way"] = pd.Categorical(frame["way"], [*WAYS, *BESIDE])
    grouped = frame.groupby(["rows", "epsilon", "effect", "answer", "way"], observed=True)
    table = grouped.agg(
        rejects=("rejects", "mean"),
        half=("half", "median"),
        error=("squared", lambda squares: squares.mean() ** 0.5),
        covers=("covers", "mean"),
        tables=("seed", "nunique"),
    )
    return table.round(3)


def main() -> None:
    def several(kind: type) -> Any:
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=30)
    parser.add_argument("--rows", type=several(int), default=[1000, 5000])
    parser.add_argument("--epsilons", type=several(float), default=[1.0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/power"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (way, effect, rows, epsilon, seed)
        for seed, rows, epsilon, effect, way in product(
            range(chosen.tables), chosen.rows, chosen.epsilons, EFFECTS, (*WAYS, *BESIDE)
        )
    ]
    run = Parallel(n_jobs=chosen.jobs, return_as="generator")
    files = list(run(delayed(one)(*each, chosen.out) for each in wanted))
    table = summary(pd.concat([pd.read_parquet(file) for file in files], ignore_index=True))
    print(table.to_string())
    table.to_csv(chosen.out / "summary.csv")


if __name__ == "__main__":
    main()
