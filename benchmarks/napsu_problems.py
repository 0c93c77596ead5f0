"""Three small problems on which noise-aware methods are compared: coverage, width, and support.

Three binary columns of 2,000 rows, as in the paper of NAPSU-MQ (O. Räisä, J. Jälkö, S. Kaski and A.
Honkela, "Noise-aware statistical inference with differentially private synthetic data", 2023); and
six columns of 144 cells, 5,000 rows, with a logistic regression of one on the others, without an
interaction and with one of 1.2. Each private table is drawn from the known law, released at epsilon
1 with delta 1/n^2, and asked for coefficients, shares and group means; the truth is the law's own,
summed over its cells. An interval should hold it 95 times of 100, or bear the mark that nothing
measured it.

    python benchmarks/napsu_problems.py --tables 40

Noise comes from seeds, and no real data is touched.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import counterpoise as cp

LEVEL = 0.95


@dataclass(frozen=True)
class Problem:
    """Columns and their law, a formula, and the coefficients that the law has."""

    name: str
    rows: int
    levels: dict[str, int]
    law: Callable[[dict[str, np.ndarray]], np.ndarray]  # the probability of cells, up to a factor
    formula: str
    truth: dict[str, float]

    @property
    def schema(self) -> cp.Schema:
        """Two levels are true and false, more are categories."""
        return cp.Schema(
            [
                cp.Column.boolean(name)
                if count == 2
                else cp.Column.categorical(name, [f"{name}{level}" for level in range(count)])
                for name, count in self.levels.items()
            ]
        )

    def cells(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Every cell as a row, and its probability."""
        codes = np.array(list(itertools.product(*map(range, self.levels.values()))))
        by_name = dict(zip(self.levels, codes.T, strict=True))
        weights = self.law(by_name)
        table = pd.DataFrame(
            {
                name: codes.astype(bool)
                if self.levels[name] == 2
                else np.array([f"{name}{level}" for level in range(self.levels[name])])[codes]
                for name, codes in by_name.items()
            }
        )
        return table, weights / weights.sum()

    def draw(self, generator: np.random.Generator) -> pd.DataFrame:
        """A private table."""
        table, chances = self.cells()
        return table.iloc[generator.choice(len(table), self.rows, p=chances)].reset_index(drop=True)


def bernoulli(code: np.ndarray, logit: np.ndarray) -> np.ndarray:
    """The probability of a code 0 or 1."""
    return 1 / (1 + np.exp(np.where(code == 1, -logit, logit)))


def three(x: dict[str, np.ndarray]) -> np.ndarray:
    """Two fair coins, of which the first tells of the third column."""
    return bernoulli(x["y"], 1.0 * x["a"])


def six(interaction: float) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    """Five related columns and a sixth that depends on all of them."""

    def law(x: dict[str, np.ndarray]) -> np.ndarray:
        d, e = np.array([0.0, 0.4, 0.8])[x["d"]], np.array([0.0, -0.3, 0.6])[x["e"]]
        logit = -0.5 + x["a"] - 0.8 * x["b"] + 0.5 * x["c"] + d + e
        among = bernoulli(x["b"], 0.8 * x["a"] - 0.4) * bernoulli(x["c"], 0.6 - 0.9 * x["b"])
        among *= np.exp(0.3 * x["d"] * x["a"] - 0.2 * x["e"] * x["c"])
        return among * bernoulli(x["y"], logit + interaction * x["a"] * x["b"])

    return law


_SIX = {"a": 2, "b": 2, "c": 2, "d": 3, "e": 3, "y": 2}
_EFFECTS = {"Intercept": -0.5, "a": 1.0, "b": -0.8, "c": 0.5}
_EFFECTS |= {"d[T.d1]": 0.4, "d[T.d2]": 0.8, "e[T.e1]": -0.3, "e[T.e2]": 0.6}
PROBLEMS = (
    Problem(
        "three columns",
        2000,
        {"a": 2, "b": 2, "y": 2},
        three,
        "y ~ a + b",
        {"Intercept": 0.0, "a": 1.0, "b": 0.0},
    ),
    Problem("six columns", 5000, _SIX, six(0.0), "y ~ a + b + c + d + e", _EFFECTS),
    Problem(
        "with an interaction",
        5000,
        _SIX,
        six(1.2),
        "y ~ a * b + c + d + e",
        _EFFECTS | {"a:b": 1.2},
    ),
)


def answers(problem: Problem, release: cp.Release) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and estimate of every quantity."""
    for term, found in release.glm(problem.formula).items():
        yield "coefficient", term, found
    for name, count in problem.levels.items():
        if count == 2:
            yield "share", name, release.mean(name)
        if name != "y":
            for label, found in release.mean("y", by=name).items():
                yield "group mean", f"{name}={label}", found


def truths(problem: Problem) -> dict[tuple[str, str], float]:
    """The same of the law: the coefficients as stated, all else from its cells."""
    table, chances = problem.cells()
    whole = cp.Release(table.assign(weight=chances / chances.mean()), problem.schema, card={})
    found = {(kind, name): float(each.value) for kind, name, each in answers(problem, whole)}
    stated = {("coefficient", term): value for term, value in problem.truth.items()}
    assert all(abs(found[key] - value) < 1e-6 for key, value in stated.items())
    return found


def one(place: int, seed: int, target: str | None) -> list[dict[str, Any]]:
    """Draw a private table, release it, and ask."""
    problem = PROBLEMS[place]
    private = problem.draw(np.random.default_rng([place, seed]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        made = cp.release(
            private,
            problem.schema,
            1.0,
            problem.rows**-2.0,
            target=target,
            seed=1000 * place + seed,
            progress=False,
        )
        found = list(answers(problem, made))
    lines = []
    for kind, name, each in found:
        low, high = each.interval(LEVEL)
        line = {"problem": problem.name, "seed": seed, "kind": kind, "name": name}
        lines.append(
            line | {"value": each.value, "low": low, "high": high} | {"support": each.support}
        )
    return lines


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Coverage and width of every quantity, by its support."""
    truth = {
        (problem.name, *key): value
        for problem in PROBLEMS
        for key, value in truths(problem).items()
    }
    keys = zip(results["problem"], results["kind"], results["name"], strict=True)
    frame = results.assign(truth=[truth[key] for key in keys])
    frame["covers"] = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    frame["width"] = frame["high"] - frame["low"]
    return frame


def tables(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """By problem, kind and support; and every coefficient by itself."""
    parts = {
        "tables": ("seed", "nunique"),
        "covers": ("covers", "mean"),
        "mean_width": ("width", "mean"),
        "median_width": ("width", "median"),
        "intervals": ("covers", "size"),
    }
    yield frame.groupby(["problem", "kind", "support"], sort=False).agg(**parts).round(3)
    yield frame.groupby(["problem", "kind", "name", "support"], sort=False).agg(**parts).round(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=40, help="of each problem")
    parser.add_argument("--target", help="the column that the curator names, if any")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    jobs = Parallel(n_jobs=chosen.jobs, return_as="generator_unordered")
    wanted = itertools.product(range(len(PROBLEMS)), range(chosen.tables))
    found = jobs(delayed(one)(place, seed, chosen.target) for place, seed in wanted)
    frame = summary(pd.DataFrame(line for lines in found for line in lines))
    frame.to_csv(chosen.out / "napsu_problems.csv", index=False)
    for table in tables(frame):
        print(table.to_string(), end="\n\n")
    table.to_csv(chosen.out / "napsu_problems_summary.csv")


if __name__ == "__main__":
    main()
