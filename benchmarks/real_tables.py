"""Tables as agencies have them, with known truth: skewed, heaped, mostly zero, generous bounds.

A generated table of unlike columns is released, no edges stated, with bounds that are right, 10 and
100 times too wide: with fine cells, with the bins of equal width that a release chooses by itself,
or both.
For every column: the error of the 10, 50 and 90% quantiles as a part of the 10-90 range, and the
relative error of the mean, with weights and of the synthetic table alone; whether the 95% intervals
hold the truth; and the error of the rank correlation with the one column that drives several
others.

    python benchmarks/real_tables.py [--rows 20000] [--epsilon 1] [--seeds 2] [--wide 1 10 100]
"""

import argparse
import datetime
import math
import time
from pathlib import Path

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.analysis.result import Estimate

CODINGS = ("fine", "equal")
PROBABILITIES = (0.1, 0.5, 0.9)
FIRST_DAY = datetime.date(2010, 1, 1)
# What somebody might state without looking; wider bounds are multiples of the maximum.
BOUNDS = {
    "pay": (0.0, 500_000.0),
    "fee": (0.0, 200_000.0),
    "benefit": (0.0, 50_000.0),
    "score": (0.0, 100.0),
    "height": (0.0, 250.0),
}


def people(rows: int, seed: int) -> pd.DataFrame:
    """Columns of every awkward kind; `height`, `pay`, `benefit` and `seen` hang together."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=rows)

    def like(strength: float) -> np.ndarray:
        own = math.sqrt(1 - strength**2) * generator.normal(size=rows)
        return strength * common + own

    works = generator.random(rows)
    weeks = np.where(works < 0.3, 0, np.where(works < 0.8, 52, generator.integers(0, 53, rows)))
    low, high = generator.normal(20, 2, rows), generator.normal(80, 3, rows)
    return pd.DataFrame(
        {
            "pay": np.exp(9.5 + like(0.7)),
            "fee": 1000 * (1 + generator.pareto(1.8, rows)),
            "benefit": np.where(like(0.5) < 0.5, 0.0, np.exp(6 + 1.2 * like(0.3))),
            "hours": (np.round(generator.gamma(3, 10, rows) / 5) * 5).astype(int),
            "score": np.where(generator.random(rows) < 0.4, low, high),
            "height": 170 + 10 * common,
            "weeks": weeks,
            "seen": pd.Timestamp(FIRST_DAY)
            + pd.to_timedelta(np.round(750 + 250 * np.clip(like(0.6), -3, 3)), "D"),
        }
    )


def schema_of(wide: int) -> cp.Schema:
    columns = [cp.Column.continuous(name, low, high * wide) for name, (low, high) in BOUNDS.items()]
    return cp.Schema(
        [
            *columns[:3],
            cp.Column.integer("hours", 0, 168 * wide),
            *columns[3:],
            cp.Column.integer("weeks", 0, 52),
            cp.Column.date("seen", FIRST_DAY, datetime.date(2015 + 10 * (wide > 1), 12, 31)),
        ]
    )


def numbers(values: pd.Series) -> np.ndarray:
    if values.dtype.kind == "M":
        return values.to_numpy().astype("M8[D]").astype(float)
    return values.to_numpy(dtype=float)


def errors(release: cp.Release, table: pd.DataFrame) -> list[dict[str, object]]:
    found = []
    for name in table.columns:
        real, made = numbers(table[name]), numbers(release.table[name])
        column = release.schema[name]
        real = np.clip(real, column.low, column.high)
        truth = np.quantile(real, PROBABILITIES, method="inverted_cdf")
        spread = truth[-1] - truth[0]
        row: dict[str, object] = {"column": name, "cells": column.cells}
        for place, probability in enumerate(PROBABILITIES):
            estimate = release.quantile(name, probability)
            exact = float(truth[place])
            alone = float(np.quantile(made, probability, method="inverted_cdf"))
            label = f"q{probability * 100:.0f}"
            row[label] = abs(_plain(estimate.value) - exact) / spread
            row[f"{label} alone"] = abs(alone - exact) / spread
            row[f"{label} held"] = _holds(estimate, exact)
        mean = release.mean(name)
        # Days have no zero to be relative to.
        scale = spread if table[name].dtype.kind == "M" else float(real.mean())
        row["mean"] = abs(_plain(mean.value) - real.mean()) / scale
        row["mean alone"] = abs(made.mean() - real.mean()) / scale
        row["mean held"] = _holds(mean, float(real.mean()))
        real_height, made_height = numbers(table["height"]), numbers(release.table["height"])
        row["correlation"] = abs(_ranks(real, real_height) - _ranks(made, made_height))
        found.append(row)
    return found


def _holds(estimate: Estimate, truth: float) -> bool:
    ends = estimate.interval()
    return ends is not None and _plain(ends[0]) <= truth <= _plain(ends[1])


def _plain(value: object) -> float:
    if isinstance(value, datetime.date | np.datetime64 | pd.Timestamp):
        return float((pd.Timestamp(value) - pd.Timestamp(0)) / pd.Timedelta(days=1))
    return float(value)  # type: ignore[arg-type]


def _ranks(left: np.ndarray, right: np.ndarray) -> float:
    if left is right or np.ptp(left) == 0 or np.ptp(right) == 0:
        return 0.0
    return float(pd.Series(left).corr(pd.Series(right), method="spearman"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--wide", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--codings", nargs="+", choices=CODINGS, default=["fine"])
    parser.add_argument("--replicates", type=int, default=80)
    parser.add_argument("--out", type=Path, default=Path("results/real_tables.csv"))
    options = parser.parse_args()
    rows = []
    for wide in options.wide:
        for coding in options.codings:
            for seed in range(options.seeds):
                table, schema = people(options.rows, seed), schema_of(wide)
                started = time.process_time()
                made = cp.release(
                    table,
                    schema,
                    options.epsilon,
                    options.delta,
                    replicates=options.replicates,
                    fine=coding == "fine",
                    progress=False,
                )
                common = {
                    "wide": wide,
                    "coding": coding,
                    "seed": seed,
                    "seconds": time.process_time() - started,
                    "refused": made.card["weights"]["verdict"]["level"] == "do not use",
                }
                # What an analyst is told to do then.
                made = made.unweighted() if common["refused"] else made
                rows += [common | row for row in errors(made, table)]
    results = pd.DataFrame(rows)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results.to_csv(options.out, index=False)
    shown = results.drop(columns="seed").groupby(["wide", "coding", "column"], sort=False)
    print(shown.mean().to_string(float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
