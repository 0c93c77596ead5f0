"""Weights of few points: by moments, or by a noisy kernel mean embedding?

Fifty support points of generated tables of 3,000 rows are weighted by `Moments`, as a release does
it of its own accord, and by `Moments` of random cosines alone, 20 and 100 of them: weights that
match a noisy kernel mean embedding, for one Gaussian query as well. All have the same points, since
they have the same seed and split, and the same budget; `none` are these points without weights.

- mixture: four clusters in three columns.
- factors: six columns of two factors, one of them skewed.
- mixed: two numbers, a category of three and a yes or no, which depend on each other.

Measured against the private rows: the error of means, the relative error of covariances, the
squared energy distance, and a linear regression of the last column on the others, fitted on the
weighted points, in parts of that column's variance; categories by their indicators. Medians over
seeds; nothing was tuned.

    python benchmarks/coreset_weights.py [--seeds 5] [--epsilons 1,4] [--out results]
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.importance import energy
from counterpoise.weights import Moments
from counterpoise.weights.features import RandomFourier
from resumed import resumed

ROWS, POINTS, DELTA = 3_000, 50, 1e-6
WARDS = ["u", "v", "w"]
WEIGHTS = ("none", "moments", "cosines, 20", "cosines, 100")
MEASURES = ("means", "covariances", "energy", "regression")
KEY = ("table", "epsilon", "weights", "seed")


def mixture(generator: np.random.Generator) -> pd.DataFrame:
    centres = np.array([[0.2, 0.2, 0.3], [0.7, 0.3, 0.8], [0.4, 0.8, 0.5], [0.85, 0.85, 0.2]])
    chosen = generator.choice(4, ROWS, p=[0.4, 0.3, 0.2, 0.1])
    places = centres[chosen] + generator.normal(0, 0.06, (ROWS, 3))
    return pd.DataFrame(places.clip(0, 1), columns=["a", "b", "c"])


def factors(generator: np.random.Generator) -> pd.DataFrame:
    loadings = generator.normal(size=(2, 6))
    mixed = generator.normal(size=(ROWS, 2)) @ loadings + 0.7 * generator.normal(size=(ROWS, 6))
    places = 1 / (1 + np.exp(-mixed / mixed.std(axis=0)))
    places[:, 0] **= 3
    return pd.DataFrame(places, columns=[f"x{place}" for place in range(6)])


def mixed(generator: np.random.Generator) -> pd.DataFrame:
    age, ward = generator.random(ROWS), generator.choice(3, ROWS, p=[0.5, 0.3, 0.2])
    dose = 0.5 * age + 0.2 * (ward == 1) + generator.normal(0.1, 0.1, ROWS)
    ill = generator.random(ROWS) < 1 / (1 + np.exp(2 - 4 * age))
    named = np.array(WARDS)[ward]
    return pd.DataFrame({"age": age, "dose": dose.clip(0, 1), "ward": named, "ill": ill})


TABLES: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "mixture": mixture,
    "factors": factors,
    "mixed": mixed,
}


def schema_of(table: pd.DataFrame) -> cp.Schema:
    kinds = {"ward": cp.Column.categorical("ward", WARDS), "ill": cp.Column.boolean("ill")}
    return cp.Schema([kinds.get(name) or cp.Column.continuous(name, 0, 1) for name in table])


def matrix(table: pd.DataFrame) -> np.ndarray:
    """Numbers as they are, and indicators of a category."""
    columns = []
    for name in table:
        values = table[name].astype(str) if name in ("ward", "ill") else table[name]
        wanted = {"ward": WARDS, "ill": ["True"]}.get(name)
        columns += [values] if wanted is None else [values == each for each in wanted]
    return np.column_stack(columns).astype(float)


def covariance(rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    apart = rows - shares @ rows
    return (shares[:, None] * apart).T @ apart


def one(name: str, epsilon: float, weights: str, seed: int) -> list[dict[str, object]]:
    table = TABLES[name](np.random.default_rng(100 + seed))
    schema, weighter = schema_of(table), Moments()
    if weights.startswith("cosines"):
        # The typical distance of two uniform points
        width = math.sqrt(len(schema) / 6)
        weighter = Moments(blocks=(RandomFourier(int(weights.split()[1]), width),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = cp.release(
            table,
            schema,
            epsilon,
            DELTA,
            synthesizer="support-points",
            rows=POINTS,
            weights=weighter,
            replicates=0,
            seed=seed,
            progress=False,
        )
    shares = np.full(POINTS, 1 / POINTS)
    if weights != "none":
        shares = release.weights / release.weights.sum()
    rows, points = matrix(table), matrix(release.table[list(table)])
    even = np.full(ROWS, 1 / ROWS)
    truth = covariance(rows, even)
    root = np.sqrt(shares)
    design, unseen = (
        np.column_stack([np.ones(len(each)), each[:, :-1]]) for each in (points, rows)
    )
    slopes = np.linalg.lstsq(root[:, None] * design, root * points[:, -1], rcond=None)[0]
    found = (
        np.abs(shares @ points - rows.mean(axis=0)).mean(),
        np.abs(covariance(points, shares) - truth).mean() / np.abs(truth).mean(),
        energy(rows, points, None, shares),
        np.mean((unseen @ slopes - rows[:, -1]) ** 2) / truth[-1, -1],
    )
    key = dict(zip(KEY, (name, epsilon, weights, seed), strict=True))
    return [key | dict(zip(MEASURES, map(float, found), strict=True))]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--epsilons", type=lambda text: [*map(float, text.split(","))], default=[1.0, 4.0]
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (name, epsilon, weights, seed)
        for seed in range(chosen.seeds)
        for name in TABLES
        for epsilon in chosen.epsilons
        for weights in WEIGHTS
    ]
    out = chosen.out / "coreset_weights.csv"
    results = resumed(one, wanted, KEY, out, chosen.jobs, every=8)
    medians = results.groupby(list(KEY[:3]), sort=False)[list(MEASURES)].median()
    lines = ["| " + " | ".join([*KEY[:3], *MEASURES]) + " |", "| --- " * 7 + "|"]
    for key, line in medians.iterrows():
        lines.append("| " + " | ".join([*map(str, key), *(f"{each:.4f}" for each in line)]) + " |")
    text = "\n".join([f"Medians over {chosen.seeds} seeds.", "", *lines, ""])
    (chosen.out / "coreset_weights.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
