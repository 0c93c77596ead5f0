"""Few points in place of a table: how well does a regression on them predict rows held out?

Figure 5.8 of M. Diesendruck's dissertation (2019), with the sound sensitivity: boston, diabetes and
california (500 rows to train on, as there, chosen at random), budgets 1 and 10 (ours), 100, 1,000
and 10,000, sets of 5, 10 and 20% of the rows, five folds. Median and quartiles over the folds of
the mean squared error of a linear regression, least squares with an intercept, on the fold held
out; beside it how far the means of columns are, and the energy distance. All columns are numbers of the unit box, and so is the target; bounds are read off the whole
table and rounded, so that epsilon describes the mechanisms alone. Records are replaced, so that the
number of rows is public. Pure methods have delta 0, the others 1e-6.

    python benchmarks/support_points.py --data DIR [--sets boston] [--folds 5] [--jobs 1]
        [--methods histogram,aim] [--out results]

- Not private: `full` is all rows, `constant` their mean; `support` the support points of the rows,
  `kme` the weighted points of their kernel mean embedding.
- The dissertation's: `histogram`, `kme-weighted` and `kme-uniform` (see `point_baselines`), and the
  private support points: `metropolis`, a chain over the whole box whose guarantee is asymptotic,
  and `exact`, chosen from a public pool with a finite one.
- Ours: `coreset`, exact points with moment weights. At the same total epsilon, and no bound on what
  is made on the way: `aim`, a release with AIM and moment weights resampled to k rows, and
  `aim-support`, the support points of its weighted rows, which are free.

What has a row in `support_points.csv` is not run again; with `--folds 0` nothing is. The table goes
to `support_points.md`, the plot to `support_points.png`. Points are better than their rivals where
their upper quartile is below the lower one of each of them, worse where their lower one is above
the upper one of some, and else level.
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
from weighted_tables import round_bounds
from weights_report import pyplot

TARGETS = {"boston": "MEDV", "diabetes": "target", "california": "MedHouseVal"}
FILES = {
    "boston": "boston_housing.csv",
    "diabetes": "diabetes.csv",
    "california": "california_housing.csv.gz",
}
BUDGETS, PUBLISHED_BUDGETS = (1, 10, 100, 1000, 10000), (100, 1000, 10000)
SIZES = (0.05, 0.1, 0.2)
FOLDS, MOST_TRAINED, DELTA = 5, 500, 1e-6
MOVES = 20_000  # of a chain
MOST_EPSILON_WITH_DELTA = 100
DISTANCES = ("mean_error", "energy")
KEY = ("data", "method", "epsilon", "size", "fold")


@lru_cache(maxsize=8)
def table(data: str, directory: str) -> tuple[pd.DataFrame, cp.Schema]:
    """All rows as numbers, the target last, and a schema of rounded bounds."""
    rows = pd.read_csv(Path(directory) / FILES[data]).astype(float)
    target = TARGETS[data]
    rows = rows[[*(name for name in rows if name != target), target]]
    return rows, cp.Schema([cp.Column.continuous(name, *round_bounds(rows[name])) for name in rows])


def fold(rows: pd.DataFrame, place: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows to train on, at most so many, and those held out."""
    order = np.random.default_rng(0).permutation(len(rows))
    parts = np.array_split(order, FOLDS)
    trained = np.concatenate([part for i, part in enumerate(parts) if i != place])
    trained = np.random.default_rng(place).permutation(trained)[:MOST_TRAINED]
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


NOT_PRIVATE: dict[str, Maker] = {"full": full, "constant": constant, "support": support, "kme": kme}
PRIVATE: dict[str, Maker] = {
    "histogram": histogram,
    "kme-weighted": private_kme(True),
    "kme-uniform": private_kme(False),
    "metropolis": private_points("metropolis"),
    "exact": private_points("exact"),
    "coreset": coreset,
    "aim": aim,
    "aim-support": aim_support,
}
METHODS = NOT_PRIVATE | PRIVATE
# Methods that make one set, whatever the size that is asked for; it stands as 1.
OF_ANY_SIZE = ("full", "constant", "histogram")
# What the dissertation's private support points are compared with, and what all is.
PUBLISHED_RIVALS = ("histogram", "kme-weighted", "kme-uniform")
RIVALS = (*PUBLISHED_RIVALS, "aim", "aim-support")
JUDGED = ("metropolis", "exact", "coreset")


def one(
    directory: str, data: str, method: str, epsilon: float, size: float, place: int
) -> list[dict[str, Any]]:
    """The error of one method on one fold; nothing where it does not fit into memory."""
    rows, schema = table(data, directory)
    trained, held_out = fold(rows, place)
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
                        sizes = (1.0,) if method in OF_ANY_SIZE else SIZES
                        yield from ((data, method, epsilon, size, place) for size in sizes)


def quartiles(results: pd.DataFrame, measure: str = "mse") -> pd.DataFrame:
    """The lower quartile, the median and the upper quartile of each setting, over its folds."""
    grouped = results.groupby(["data", "method", "epsilon", "size"], sort=False)[measure]
    found = grouped.quantile([0.25, 0.5, 0.75]).unstack()
    return found.set_axis(["low", "median", "high"], axis=1)


def of_setting(found: pd.DataFrame, data: str, method: str, epsilon: float, size: float) -> Any:
    """The quartiles of a method in a setting, or None where it was not run or did not fit."""
    key = (
        data,
        method,
        0 if method in NOT_PRIVATE else epsilon,
        1.0 if method in OF_ANY_SIZE else size,
    )
    if key not in found.index or found.loc[key].isna().any():
        return None
    return found.loc[key]


def verdict(
    found: pd.DataFrame, data: str, method: str, epsilon: float, size: float, rivals: tuple
) -> str:
    """Better than all rivals, worse than one, or level: quartiles apart count, and no overlap."""
    own = of_setting(found, data, method, epsilon, size)
    others = [of_setting(found, data, rival, epsilon, size) for rival in rivals]
    others = [other for other in others if other is not None]
    if any(own["low"] > other["high"] for other in others):
        return "worse"
    return "better" if all(own["high"] < other["low"] for other in others) else "level"


def lines(results: pd.DataFrame) -> Iterator[str]:
    """The tables, as lines of Markdown."""
    found = quartiles(results)
    yield f"Folds: {results['fold'].nunique()} of {FOLDS}. Quartiles in brackets."
    for data in results["data"].unique():
        fixed = [
            f"{method} {of_setting(found, data, method, 0, 1.0)['median']:.4f}"
            for method in ("full", "constant")
        ]
        yield f"\n## {data}: median held-out MSE; {', '.join(fixed)}\n"
        shown = [m for m in METHODS if m not in ("full", "constant") and m in set(results.method)]
        yield "| epsilon | size | " + " | ".join(shown) + " |"
        yield "| --- " * (2 + len(shown)) + "|"
        for epsilon in sorted(set(results["epsilon"]) - {0}):
            for size in SIZES:
                cells = []
                for method in shown:
                    each = of_setting(found, data, method, epsilon, size)
                    cells.append(
                        ""
                        if each is None
                        else f"{each['median']:.4f} ({each['low']:.4f}-{each['high']:.4f})"
                    )
                yield f"| {epsilon:g} | {size:.0%} | " + " | ".join(cells) + " |"
    yield from distance_lines(results)
    yield from verdict_lines(results, found)


def distance_lines(results: pd.DataFrame) -> Iterator[str]:
    """The other two measures: medians over folds, and means of those over tables and sizes."""
    for measure, title in zip(
        DISTANCES,
        ("absolute error of the means of columns", "squared energy distance"),
        strict=True,
    ):
        yield f"\n## {title}, mean over tables and sizes of medians over folds\n"
        medians = results.groupby(["data", "method", "epsilon", "size"])[measure].median()
        shown = medians.groupby(["method", "epsilon"]).mean().unstack()
        yield "| | " + " | ".join(f"{epsilon:g}" for epsilon in shown.columns) + " |"
        yield "| --- " * (1 + shown.shape[1]) + "|"
        for method in (each for each in METHODS if each in shown.index):
            cells = ["" if np.isnan(each) else f"{each:.4f}" for each in shown.loc[method]]
            yield f"| {method} | " + " | ".join(cells) + " |"


def verdict_lines(results: pd.DataFrame, found: pd.DataFrame) -> Iterator[str]:
    """How often points are better than, level with and worse than their rivals."""
    yield "\n## Better, level, worse\n"
    yield "| points | rivals | budgets | better | level | worse | lowest median |"
    yield "| --- " * 7 + "|"
    for method in JUDGED:
        for rivals, name in ((PUBLISHED_RIVALS, "the dissertation's"), (RIVALS, "and AIM's")):
            for budgets in (PUBLISHED_BUDGETS, tuple(set(BUDGETS) - set(PUBLISHED_BUDGETS))):
                settings = [
                    (data, epsilon, size)
                    for data in results["data"].unique()
                    for epsilon in budgets
                    for size in SIZES
                    if _is_there(found, data, (method, *rivals), epsilon, size)
                ]
                if not settings:
                    continue
                said = [verdict(found, d, method, e, s, rivals) for d, e, s in settings]
                first = sum(
                    _is_lowest(found, data, method, epsilon, size, rivals)
                    for data, epsilon, size in settings
                )
                counts = [str(said.count(each)) for each in ("better", "level", "worse")]
                shown = ", ".join(f"{each:,}" for each in sorted(budgets))
                yield f"| {method} | {name} | {shown} | " + " | ".join(counts) + f" | {first} |"


def _is_there(
    found: pd.DataFrame, data: str, methods: tuple[str, ...], epsilon: float, size: float
) -> bool:
    """Whether all were run there; a histogram may have been too large."""
    needed = (method for method in methods if method != "histogram")
    return all(of_setting(found, data, method, epsilon, size) is not None for method in needed)


def _is_lowest(found: pd.DataFrame, data: str, method: str, *setting: Any) -> bool:
    epsilon, size, rivals = setting
    own = of_setting(found, data, method, epsilon, size)
    others = [of_setting(found, data, rival, epsilon, size) for rival in rivals]
    return all(own["median"] < other["median"] for other in others if other is not None)


def draw(results: pd.DataFrame, file: Path) -> None:
    """A panel a table and a size: errors by the budget, and those of what is not private."""
    plots = pyplot()
    found, sets = quartiles(results), list(results["data"].unique())
    figure, axes = plots.subplots(
        len(sets), len(SIZES), figsize=(13, 3.6 * len(sets)), squeeze=False, sharey="row"
    )
    for row, data in zip(axes, sets, strict=True):
        for panel, size in zip(row, SIZES, strict=True):
            for place, method in enumerate(PRIVATE):
                each = [of_setting(found, data, method, epsilon, size) for epsilon in BUDGETS]
                known = [(i, one) for i, one in enumerate(each) if one is not None and len(one)]
                if not known:
                    continue
                x = np.array([i for i, _ in known]) + 0.08 * (place - len(PRIVATE) / 2)
                y, low, high = (
                    np.array([one[name] for _, one in known]) for name in ("median", "low", "high")
                )
                panel.errorbar(x, y, [y - low, high - y], marker="o", ms=4, lw=1, label=method)
            for method, style in (
                ("full", "-"),
                ("constant", ":"),
                ("support", "--"),
                ("kme", "-."),
            ):
                each = of_setting(found, data, method, 0, size)
                if each is not None:
                    panel.axhline(each["median"], color="black", lw=0.8, ls=style, label=method)
            panel.set(yscale="log", title=f"{data}, {size:.0%} of the rows", xlabel="epsilon")
            panel.set_xticks(range(len(BUDGETS)), [f"{each:,}" for each in BUDGETS])
        row[0].set_ylabel("held-out mean squared error")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=6, fontsize=9)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(file, dpi=110)


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--sets", type=names, default=list(TARGETS))
    parser.add_argument("--methods", type=names, default=list(METHODS))
    parser.add_argument("--budgets", type=lambda text: [*map(int, names(text))], default=BUDGETS)
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many of the five to run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = resumed(
        partial(one, str(chosen.data)),
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
