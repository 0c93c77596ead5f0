"""How far a weighted posterior is from the private one, as the synthetic rows get worse.

The study of convex combinations of Ghalebikesabi et al. 2021, section 4.3: a logistic regression
with theta_D = (1.5, 1, 2.5) on features from N((-1.25, 1.25), ((1, 0.5), (0.5, 1))), and synthetic
rows of which a part gamma comes from N((2, -2.5), ((4, 0.2), (0.2, 4))) with theta_G = (-1.5, 1,
-2.5) instead (the paper prints "(-1.5, 1.0 - 2.5)"); 10,000 rows of each, prior N(0, 10 I). The
weights have all of the budget, because nothing else is asked of the private rows.

- distance: between the means of the two posteriors, in the private posterior's covariance
  (Mahalanobis), so that 1 is about one standard deviation.
- square: mean squared distance of the draws from theta_D.
- worth: how many rows of the private law the weighted rows are worth to the model.

    python benchmarks/posterior.py [--epsilon 6] [--seeds 5] [--rows 10000] [--out results]

Prints both measures and writes `posterior.csv` and `posterior.png`. With `--coverage REPEATS` it
asks instead how often intervals of 95% hold the coefficients that the rows were drawn with, given
the weights alone and with their replicates, of 1,000 private rows at epsilon 1.
The noise is seeded, so that a figure can be repeated.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import multivariate_normal

import counterpoise as cp
from counterpoise.errors import CounterpoiseWarning
from counterpoise.weights import WEIGHTERS
from counterpoise.weights.protocol import replicate_part
from counterpoise.weights.replicates import replicate_weights
from weights_report import pyplot

DELTA = 1e-5
PRIOR = math.sqrt(10)
FORMULA = "y ~ x1 + x2"
GAMMAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
METHODS = ("logistic", "moments")

THETA = {"private": np.array([1.5, 1.0, 2.5]), "other": np.array([-1.5, 1.0, -2.5])}
FEATURES = {
    "private": multivariate_normal([-1.25, 1.25], [[1, 0.5], [0.5, 1]]),
    "other": multivariate_normal([2, -2.5], [[4, 0.2], [0.2, 4]]),
}
# Public bounds that hold nearly all rows of either law.
SCHEMA = cp.Schema(
    [
        cp.Column.continuous("x1", -8, 10, bins=32),
        cp.Column.continuous("x2", -10, 8, bins=32),
        cp.Column.boolean("y"),
    ]
)


def draw(law: str, rows: int, generator: np.random.Generator) -> pd.DataFrame:
    x = FEATURES[law].rvs(rows, random_state=generator).reshape(rows, 2)
    chance = 1 / (1 + np.exp(-THETA[law][0] - x @ THETA[law][1:]))
    table = pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "y": generator.random(rows) < chance})
    return SCHEMA.restore(table)


def mixture(gamma: float, rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """gamma p_G + (1 - gamma) p_D"""
    others = int(generator.binomial(rows, gamma))
    parts = [draw("other", others, generator), draw("private", rows - others, generator)]
    return pd.concat(parts, ignore_index=True)


def true_weights(table: pd.DataFrame, gamma: float) -> np.ndarray:
    """p_D / (gamma p_G + (1 - gamma) p_D)"""
    x, y = table[["x1", "x2"]].to_numpy(), table["y"].to_numpy()
    density = {}
    for law, theta in THETA.items():
        eta = theta[0] + x @ theta[1:]
        density[law] = FEATURES[law].pdf(x) / (1 + np.exp(np.where(y, -eta, eta)))
    mixed = gamma * density["other"] + (1 - gamma) * density["private"]
    ratio = density["private"] / mixed
    return ratio / ratio.mean()


def updated(table: pd.DataFrame, weights: np.ndarray, population: int, **options):
    replicates = options.pop("replicate_weights", None)
    card: dict[str, Any] = {"population": population}
    if replicates is not None:
        card["replicates"] = {"count": replicates.shape[1], "part": options.pop("part")}
    release = cp.Release(table.assign(weight=weights), SCHEMA, card, replicates)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CounterpoiseWarning)
        return release.posterior(FORMULA, "logistic", **options)


def study(epsilon: float, seeds: int, rows: int) -> pd.DataFrame:
    lines = []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        private = draw("private", rows, generator)
        options = {"prior": PRIOR, "size": "population", "draws": 500, "seed": seed}
        truth = updated(private, np.ones(rows), rows, **options)
        centre, precision = _mean(truth), np.linalg.inv(truth.covariance.to_numpy())
        for gamma in GAMMAS:
            synthetic = mixture(gamma, rows, generator)
            for method in ("none", "true ratio", *METHODS):
                weights = _weights(method, private, synthetic, gamma, epsilon, seed)
                found = updated(synthetic, weights, rows, **options)
                apart = _mean(found) - centre
                errors = found.draws.reshape(-1, 3) - THETA["private"]
                lines.append(
                    {
                        "seed": seed,
                        "gamma": gamma,
                        "weights": method,
                        "distance": math.sqrt(apart @ precision @ apart),
                        "square": (errors**2).sum(axis=1).mean(),
                        "worth": found.sizes.effective,
                        "trusted": not found.convergence.complaint,
                    }
                )
        print(f"seed {seed} of {seeds}", flush=True)
    return pd.DataFrame(lines)


def coverage(repeats: int, gamma: float = 0.3, private_rows: int = 1000, rows: int = 5000) -> None:
    """How often intervals of 95% hold theta_D, and how wide they are."""
    budget, lines = cp.Budget(1.0, DELTA), []
    for seed in range(repeats):
        generator = np.random.default_rng(1000 + seed)
        private, synthetic = (
            draw("private", private_rows, generator),
            mixture(gamma, rows, generator),
        )
        with cp.Vault(private, SCHEMA, budget, seed=seed) as vault:
            model = WEIGHTERS.make("moments").fit(vault, synthetic, budget.whole)
        weights = model.weigh(synthetic).normalised
        redrawn = replicate_weights(model, synthetic, 80, population=private_rows, seed=seed)
        plain = np.ones(private_rows)
        for name, found in {
            "private rows": updated(private, plain, private_rows, size="population", seed=seed),
            "no weights": updated(synthetic, np.ones(rows), private_rows, seed=seed),
            "population": updated(synthetic, weights, private_rows, size="population", seed=seed),
            "combined": updated(synthetic, weights, private_rows, seed=seed),
            "combined, replicates": updated(
                synthetic,
                weights,
                private_rows,
                seed=seed,
                replicate_weights=redrawn,
                part=replicate_part(model),
            ),
        }.items():
            frame = found.to_frame()
            held = (frame["low"] <= THETA["private"]) & (THETA["private"] <= frame["high"])
            error = (frame["mean"] - THETA["private"]) ** 2
            lines.append(
                {
                    "posterior": name,
                    "covered": held.mean(),
                    "width": (frame["high"] - frame["low"]).mean(),
                    "error": math.sqrt(error.mean()),
                }
            )
        if (seed + 1) % 5 == 0 or seed + 1 == repeats:
            table = pd.DataFrame(lines).groupby("posterior", sort=False).mean().round(3)
            print(f"after {seed + 1} repeats\n{table.to_string()}", flush=True)


def _weights(
    method: str,
    private: pd.DataFrame,
    synthetic: pd.DataFrame,
    gamma: float,
    epsilon: float,
    seed: int,
) -> np.ndarray:
    if method == "none":
        return np.ones(len(synthetic))
    if method == "true ratio":
        return true_weights(synthetic, gamma)
    budget = cp.Budget(epsilon, DELTA)
    with cp.Vault(private, SCHEMA, budget, seed=seed) as vault:
        return (
            WEIGHTERS.make(method).fit(vault, synthetic, budget.whole).weigh(synthetic).normalised
        )


def _mean(found) -> np.ndarray:
    return found.draws.mean(axis=(0, 1))


def plot(found: pd.DataFrame, epsilon: float, path: Path) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
    labels = {
        "distance": "Mahalanobis distance of the means",
        "square": "mean squared distance of the draws from theta_D",
    }
    for axis, (measure, label) in zip(axes, labels.items(), strict=True):
        for method, lines in found.groupby("weights", sort=False):
            by_gamma = lines.groupby("gamma")[measure]
            middle = by_gamma.median()
            axis.plot(middle.index, middle, marker="o", markersize=4, label=method)
            axis.fill_between(
                middle.index, by_gamma.quantile(0.1), by_gamma.quantile(0.9), alpha=0.15
            )
        axis.set_yscale("log")
        axis.set_xlabel("gamma: the part of the rows that is from the wrong law")
        axis.set_title(label, fontsize=10)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=9)
    seeds = found["seed"].nunique()
    figure.suptitle(
        f"Weighted and private posterior, epsilon {epsilon:g}: median of {seeds} seeds, "
        "band from 10% to 90%",
        fontsize=10,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=6.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--coverage", type=int, default=0, metavar="REPEATS")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    if chosen.coverage:
        coverage(chosen.coverage)
        return
    chosen.out.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    found = study(chosen.epsilon, chosen.seeds, chosen.rows)
    found.to_csv(chosen.out / "posterior.csv", index=False)
    for measure in ("distance", "square", "worth"):
        table = found.pivot_table(measure, "gamma", "weights", "median", sort=False)
        print(f"\n{measure}, median of {chosen.seeds} seeds\n{table.round(2).to_string()}")
    plot(found, chosen.epsilon, chosen.out / "posterior.png")
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
