"""Few points in place of a table: how well does a regression on them predict rows held out?

Figure 5.8 of M. Diesendruck's dissertation (2019), with the sound sensitivity: boston, diabetes and
california (500 rows to train on, as there, chosen at random), budgets 1 and 10 (ours), 100, 1,000
and 10,000, sets of 5, 10 and 20% of the rows, five folds. Median and quartiles over the folds of
the mean squared error of a linear regression, least squares with an intercept, on the fold held
out; beside it how far the means of columns are, and the energy distance. All columns are numbers of
the unit box, and so is the target; bounds are read off the whole table and rounded, so that epsilon
describes the mechanisms alone. Records are replaced, so that the number of rows is public. Pure
methods have delta 0, the others 1e-6.

    python benchmarks/support_points.py --data DIR [--sets boston] [--folds 5] [--jobs 1]
        [--methods histogram,aim] [--rows 500] [--sizes 0.05,0.1,0.2] [--out results]

- Not private: `full` is all rows, `constant` their mean; `support` the support points of the rows,
  `kme` the weighted points of their kernel mean embedding.
- The dissertation's: `histogram`, `kme-weighted` and `kme-uniform` (see `point_baselines`), and the
  private support points: `metropolis`, a chain over the whole box whose guarantee is asymptotic,
  and `exact`, chosen from a public pool with a finite one.
- Ours: `coreset`, exact points with moment weights. At the same total epsilon, and no bound on what
  is made on the way: `aim`, a release with AIM and moment weights resampled to k rows, and
  `aim-support`, the support points of its weighted rows, which are free.

What has a row in `support_points.csv` is not run again; with `--folds 0` nothing is. The table goes
to `support_points.md`, the plot to `support_points.png`; see `support_points_report`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.importance import energy, support_points
from counterpoise.synthesizers import SupportPoints
from point_baselines import (
    WeightedPoints,
    exact_embedding,
    laplace_histogram,
    match_embedding,
    noisy_embedding,
)
from resumed import resumed
from support_points_report import (
    BUDGETS,
    DISTANCES,
    FOLDS,
    NOT_PRIVATE,
    OF_ANY_SIZE,
    SIZES,
    draw,
    lines,
)
from weighted_tables import round_bounds

TARGETS = {"boston": "MEDV", "diabetes": "target", "california": "MedHouseVal"}
FILES = {
    "boston": "boston_housing.csv",
    "diabetes": "diabetes.csv",
    "california": "california_housing.csv.gz",
}
MOST_TRAINED, DELTA = 500, 1e-6
MOVES = 20_000  # of a chain
MOST_EPSILON_WITH_DELTA = 100
KEY = ("data", "method", "epsilon", "size", "fold")


@lru_cache(maxsize=8)
def table(data: str, directory: str) -> tuple[pd.DataFrame, cp.Schema]:
    """All rows as numbers, the target last, and a schema of rounded bounds."""
    rows = pd.read_csv(Path(directory) / FILES[data]).astype(float)
    target = TARGETS[data]
    rows = rows[[*(name for name in rows if name != target), target]]
    return rows, cp.Schema([cp.Column.continuous(name, *round_bounds(rows[name])) for name in rows])


def fold(
    rows: pd.DataFrame, place: int, most: int = MOST_TRAINED
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows to train on, at most so many, and those held out."""
    order = np.random.default_rng(0).permutation(len(rows))
    parts = np.array_split(order, FOLDS)
    trained = np.concatenate([part for i, part in enumerate(parts) if i != place])
    trained = np.random.default_rng(place).permutation(trained)[:most]
    return rows.iloc[trained].reset_index(drop=True), rows.iloc[parts[place]]


def error(made: WeightedPoints, held_out: np.ndarray) -> float:
    """The mean squared error, on held-out rows, of the least squares of weighted points."""
    design = np.column_stack([np.ones(len(made.units)), made.units[:, :-1]])
    # A weight below zero counts as none: equations with both signs have wild solutions.
    root = np.sqrt(np.maximum(made.weights, 0.0))
    found = np.linalg.lstsq(root[:, None] * design, root * made.units[:, -1], rcond=None)[0]
    predicted = np.column_stack([np.ones(len(held_out)), held_out[:, :-1]]) @ found
    return float(np.mean((predicted - held_out[:, -1]) ** 2))


def distances(made: WeightedPoints, trained: np.ndarray) -> dict[str, float]:
    """How far the means of columns are from those of the rows trained on, and the squared energy.

    With weights of both signs there is no energy distance.
    """
    apart = np.abs(made.weights @ made.units - trained.mean(axis=0)).mean()
    is_measure = (made.weights >= 0).all()
    found = energy(trained, made.units, None, made.weights) if is_measure else float("nan")
    return dict(zip(DISTANCES, (float(apart), found), strict=True))


Maker = Callable[[pd.DataFrame, cp.Schema, int, float, int], WeightedPoints | None]


def full(rows: pd.DataFrame, schema: cp.Schema, *_: Any) -> WeightedPoints:
    return WeightedPoints.even(schema.encode(rows).units)


def constant(rows: pd.DataFrame, schema: cp.Schema, *_: Any) -> WeightedPoints:
    return WeightedPoints.even(schema.encode(rows).units.mean(axis=0, keepdims=True))


def support(
    rows: pd.DataFrame, schema: cp.Schema, count: int, _: float, seed: int
) -> WeightedPoints:
    return WeightedPoints.even(support_points(schema.encode(rows).units, count, seed=seed))


def kme(rows: pd.DataFrame, schema: cp.Schema, count: int, _: float, seed: int) -> WeightedPoints:
    return match_embedding(exact_embedding(schema.encode(rows)), count, len(schema), True, seed)


def histogram(
    rows: pd.DataFrame, schema: cp.Schema, _: int, epsilon: float, seed: int
) -> WeightedPoints | None:
    return laplace_histogram(rows, schema, epsilon, seed)


def private_kme(is_weighted: bool) -> Maker:
    def make(
        rows: pd.DataFrame, schema: cp.Schema, count: int, epsilon: float, seed: int
    ) -> WeightedPoints:
        found = noisy_embedding(rows, schema, epsilon, DELTA, seed)
        return match_embedding(found, count, len(schema), is_weighted, seed)

    return make


def private_points(sampler: str) -> Maker:
    def make(
        rows: pd.DataFrame, schema: cp.Schema, count: int, epsilon: float, seed: int
    ) -> WeightedPoints:
        budget = cp.Budget(epsilon, neighbours="replace")
        method = SupportPoints(count, sampler, moves=MOVES)
        with cp.Vault(rows, schema, budget, seed=seed) as vault:
            found = method.fit(vault, budget.whole)
        return WeightedPoints.even(found.units)

    return make


def coreset(
    rows: pd.DataFrame, schema: cp.Schema, count: int, epsilon: float, seed: int
) -> WeightedPoints:
    # Many choices cost less with a delta, until epsilon is so large that it hides nothing.
    delta = DELTA if epsilon <= MOST_EPSILON_WITH_DELTA else 0.0
    found = _release("support-points", rows, schema, epsilon, delta, seed, count)
    return WeightedPoints(schema.encode(found.table).units, found.weights / found.weights.sum())


def aim(
    rows: pd.DataFrame, schema: cp.Schema, count: int, epsilon: float, seed: int
) -> WeightedPoints:
    thinned = _aim_release(rows, schema, epsilon, seed).resample(count, seed=seed)
    return WeightedPoints.even(schema.encode(thinned).units)


def aim_support(
    rows: pd.DataFrame, schema: cp.Schema, count: int, epsilon: float, seed: int
) -> WeightedPoints:
    found = _aim_release(rows, schema, epsilon, seed)
    units = schema.encode(found.table).units
    return WeightedPoints.even(support_points(units, count, found.weights, seed=seed))


def _release(
    method: str,
    rows: pd.DataFrame,
    schema: cp.Schema,
    epsilon: float,
    delta: float,
    seed: int,
    count: int | None = None,
) -> cp.Release:
    return cp.release(
        rows,
        schema,
        epsilon,
        delta,
        synthesizer=method,
        rows=count,
        neighbours="replace",
        replicates=0,
        seed=seed,
        progress=False,
    )


# The last release, which serves all sizes: they come one after the other.
_released: dict[tuple[Any, ...], cp.Release] = {}


def _aim_release(rows: pd.DataFrame, schema: cp.Schema, epsilon: float, seed: int) -> cp.Release:
    key = (schema.names, len(rows), epsilon, seed)
    if key not in _released:
        _released.clear()
        _released[key] = _release("aim", rows, schema, epsilon, DELTA, seed)
    return _released[key]


METHODS: dict[str, Maker] = {
    "full": full,
    "constant": constant,
    "support": support,
    "kme": kme,
    "histogram": histogram,
    "kme-weighted": private_kme(True),
    "kme-uniform": private_kme(False),
    "metropolis": private_points("metropolis"),
    "exact": private_points("exact"),
    "coreset": coreset,
    "aim": aim,
    "aim-support": aim_support,
}


def one(
    directory: str, most: int, data: str, method: str, epsilon: float, size: float, place: int
) -> list[dict[str, Any]]:
    """The error of one method on one fold; nothing where it does not fit into memory."""
    rows, schema = table(data, directory)
    trained, held_out = fold(rows, place, most)
    count = max(2, round(size * len(trained)))
    started = time.process_time()
    made = METHODS[method](trained, schema, count, epsilon, place)
    seconds = time.process_time() - started
    key = dict(zip(KEY, (data, method, epsilon, size, place), strict=True))
    found = dict.fromkeys(("mse", *DISTANCES), float("nan"))
    if made is not None:
        found = {"mse": error(made, schema.encode(held_out).units)}
        found |= distances(made, schema.encode(trained).units)
    return [key | found | {"cpu_seconds": round(seconds, 2)}]


def wanted(chosen: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """Every setting; folds first, so that a run cut short has some of each, and sizes last."""
    for place in range(chosen.folds):
        for data in chosen.sets:
            for epsilon in (0, *chosen.budgets):
                for method in chosen.methods:
                    if (method in NOT_PRIVATE) == (epsilon == 0):
                        sizes = (1.0,) if method in OF_ANY_SIZE else chosen.sizes
                        yield from ((data, method, epsilon, size, place) for size in sizes)


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--sets", type=names, default=list(TARGETS))
    parser.add_argument("--methods", type=names, default=list(METHODS))
    parser.add_argument("--budgets", type=lambda text: [*map(int, names(text))], default=BUDGETS)
    parser.add_argument("--sizes", type=lambda text: [*map(float, names(text))], default=SIZES)
    parser.add_argument("--rows", type=int, default=MOST_TRAINED, help="to train on, at most")
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many of the five to run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = resumed(
        partial(one, str(chosen.data), chosen.rows),
        list(wanted(chosen)),
        KEY,
        chosen.out / "support_points.csv",
        chosen.jobs,
        every=15,
    )
    text = "\n".join([*lines(results), ""])
    (chosen.out / "support_points.md").write_text(text)
    draw(results, chosen.out / "support_points.png")
    print(text)


if __name__ == "__main__":
    main()
