"""The full table against AIM on generated tables: how many cells are too many?

Tables of 16 to 6,000 cells, whose columns lean on one another; the first is a yes or no that the
others cause, two of them together. Both methods get the whole budget, and as many rows are drawn as
there were. Errors: the mean total variation of all one-, two- and three-way tables, and the root
mean square error of the coefficients of a logistic regression with that interaction, against the
private rows'. `noise` is the part of the rows that the noise of the full table would misplace,
1/2 sqrt(2/pi) s cells / n: what `best_synthesizer` goes by.

    python benchmarks/full_table.py [--seeds 3] [--jobs 1] [--out results/full_table.csv]

Noise is seeded, so that a run can be repeated; what has rows in the file is not run again.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.linear_model import LogisticRegression

from counterpoise import Budget, Column, Schema, Vault
from counterpoise.curation.best_synthesizer import full_table_noise
from counterpoise.synthesizers import Aim, Histogram, Synthesizer
from measures import marginal_error
from resumed import resumed

SIZES = {
    16: (2, 2, 2, 2),
    64: (2, 2, 4, 4),
    144: (2, 2, 2, 2, 3, 3),
    512: (2, 2, 2, 4, 4, 4),
    1_920: (2, 2, 2, 3, 4, 4, 5),
    6_000: (2, 2, 3, 4, 5, 5, 5),
}
ROWS = (500, 5_000, 50_000)
EPSILONS = (0.1, 1.0, 10.0)
METHODS: dict[str, Synthesizer] = {"histogram": Histogram(), "aim": Aim()}
ERRORS = ("one_way", "two_way", "three_way", "coefficients")
KEY = ("cells", "rows", "epsilon", "seed")
# Below, both are nearly exact; above, the full table is lost.
LEAST_NOISE, MOST_NOISE = 0.001, 1.0


def schema_of(sizes: tuple[int, ...]) -> Schema:
    """A schema of categories 0, ..., size - 1."""
    columns = enumerate(sizes)
    return Schema([Column.categorical(f"column{place}", list(range(n))) for place, n in columns])


def budget_of(epsilon: float) -> Budget:
    """The budget of a case, at one delta for all."""
    return Budget(epsilon, 1e-6)


def generate(sizes: tuple[int, ...], rows: int, seed: int) -> np.ndarray:
    """Codes of columns in a chain, and before them the answer that they cause."""
    generator = np.random.default_rng(seed)
    place, columns = generator.normal(size=rows), []
    for size in sizes[1:]:
        place = 0.5 * place + math.sqrt(0.75) * generator.normal(size=rows)
        shares = 1 / np.arange(1, size + 1) ** 0.5
        columns.append(np.searchsorted(ndtri(np.cumsum(shares / shares.sum())[:-1]), place))
    log_odds = _features(np.stack(columns, axis=1), sizes) @ _effects(len(sizes)) - 1
    answer = generator.random(rows) < 1 / (1 + np.exp(-log_odds))
    return np.stack([answer.astype(int), *columns], axis=1)


def compare(cells: int, rows: int, epsilon: float, seed: int) -> list[dict[str, Any]]:
    """The errors of both methods on one table."""
    sizes = SIZES[cells]
    private = generate(sizes, rows, seed)
    schema, budget = schema_of(sizes), budget_of(epsilon)
    names = list(schema.names)
    wanted = coefficients(private, sizes)
    found = []
    for name, method in METHODS.items():
        with Vault(pd.DataFrame(private, columns=names), schema, budget, seed=seed) as vault:
            model = method.fit(vault, budget.whole)
        made = model.sample(rows, seed=seed)[names].to_numpy().astype(int)
        errors = [marginal_error(made, private, sizes, degree) for degree in (1, 2, 3)]
        errors.append(float(np.sqrt(np.mean((coefficients(made, sizes) - wanted) ** 2))))
        noise = full_table_noise(schema, budget, rows)
        named = dict(zip(KEY, (cells, rows, epsilon, seed), strict=True)) | {
            "noise": noise,
            "method": name,
        }
        found.append(named | dict(zip(ERRORS, errors, strict=True)))
    return found


def coefficients(codes: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """The log odds of the answer for each column, and for the first two others together."""
    if len(set(codes[:, 0])) < 2:
        return np.zeros(len(sizes))
    # A weak penalty, so that separated rows have coefficients too.
    model = LogisticRegression(C=100.0, max_iter=1000)
    return np.asarray(model.fit(_features(codes[:, 1:], sizes), codes[:, 0]).coef_[0])


def _features(codes: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    units = codes / (np.array(sizes[1:]) - 1)
    return np.column_stack([units, units[:, 0] * units[:, 1]])


def _effects(columns: int) -> np.ndarray:
    mains = [0.5, -0.5, *[0.8, -0.4] * columns]
    return np.array([*mains[: columns - 1], 1.2])


def side_by_side(results: pd.DataFrame) -> pd.DataFrame:
    """The errors of the full table over those of AIM, by case, those of least noise first."""
    keys = ["cells", "rows", "epsilon", "noise"]
    means = results.groupby([*keys, "method"])[list(ERRORS)].mean()
    full, aim = means.xs("histogram", level="method"), means.xs("aim", level="method")
    return (full / aim).sort_index(level="noise").reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/full_table.csv"))
    chosen = parser.parse_args()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    cases = itertools.product(SIZES, ROWS, EPSILONS)
    wanted = [
        (*case, seed)
        for case in cases
        if LEAST_NOISE
        <= full_table_noise(schema_of(SIZES[case[0]]), budget_of(case[2]), case[1])
        <= MOST_NOISE
        for seed in range(chosen.seeds)
    ]
    results = resumed(compare, wanted, KEY, chosen.out, chosen.jobs, every=20)
    print(side_by_side(results).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    main()
