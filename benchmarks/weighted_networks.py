"""Weighted generators: how near do they come to the target, when rows are from another law.

**Laws.** Diesendruck 2019, section 3.3.1 and tables 3.2, A.1 and A.2. A row is theta F, theta ten
uniform numbers and F a fixed matrix of normal numbers, in 2, 4 or 10 dimensions; in the rows to
train on the first of the ten has density 2 theta, and M(x) = 2 theta_1 is known. Networks are
trained by every estimator of `counterpoise.importance`, with cross-entropy (CE) and with the
discrepancy (MMD); C-GAN is told theta_1, and makes rows of uniform ones; `none` has no weights.
Between 1,000 made rows and 1,000 fresh ones of the target: the Kullback-Leibler divergence
KL(target, made) by nearest neighbours (Wang, Kulkarni and Verdu 2009, k = 1), and as V-statistics
the squared discrepancy, with a kernel as wide as the median distance of the target, and the energy
distance. `target` is what they are between fresh rows of the target: no generator has less.

**Digits.** Class rebalancing, as figure 3.2, on scikit-learn's 8 x 8 digits: of three classes with
shares 0.7, 0.2 and 0.1 all are wanted alike. A classifier that knows real digits counts the classes
of 3,000 made ones.

    python benchmarks/weighted_networks.py [--part laws digits] [--published FILE] [--runs 10]
        [--out results] [--minutes 8]

`--published` is a CSV file of the published figures: metric, model, dimension, mean, stdev. What
was run is kept in `weighted_laws.csv` and `weighted_digits.csv`, and some of the made digits beside
them: a run that is interrupted, or that has had its minutes, goes on when started again. The plots
are `weighted_networks.png` and `weighted_digits.png`.

Not stated by the dissertation, and chosen here: 2,000 rows to train on, Gaussian noise, the kernel
(three Gaussians), and all of how distances are estimated but for the nearest neighbours. Its
networks for cross-entropy have two layers of ten units; ours have two of 64. The training of the
networks was settled on 3 and 6 dimensions, with other matrices.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist

from counterpoise.importance import ESTIMATORS, WeightedGenerator, energy
from weights_report import pyplot

ROWS, LATENT, COMPARED = 2000, 10, 1000
DIMENSIONS = (2, 4, 10)
LOSSES = {"CE": "cross-entropy", "MMD": "mmd"}
MODELS = (
    *(f"{estimator.upper()}-{loss}" for loss in LOSSES for estimator in ESTIMATORS),
    "C-GAN",
    "none-CE",
    "none-MMD",
    "target",
)
METRICS = {"kl": "KL", "mmd2": "squared MMD", "energy": "energy distance"}
# As many groups of a lot as the dissertation has of its pictures.
GROUPS = 8
CLASSES, SHARES, SAMPLED, MADE = (0, 1, 2), (0.7, 0.2, 0.1), 240, 3000


def mapping(dimension: int, seed: int = 0) -> np.ndarray:
    """F, the same in every run."""
    return np.random.default_rng((seed, dimension)).standard_normal((LATENT, dimension))


def kullback_leibler(target: np.ndarray, made: np.ndarray) -> float:
    """D(target, made) = d/n sum log(nu_i / rho_i) + log(m / (n - 1)), by nearest neighbours."""
    rho = cKDTree(target).query(target, k=2)[0][:, 1]
    nu = cKDTree(made).query(target, k=1)[0]
    rows, columns = target.shape
    return float(columns * np.mean(np.log(nu / rho)) + np.log(len(made) / (rows - 1)))


def squared_discrepancy(target: np.ndarray, made: np.ndarray) -> float:
    width = np.median(pdist(target))

    def mean(left: np.ndarray, right: np.ndarray) -> float:
        return float(np.exp(-cdist(left, right, "sqeuclidean") / (2 * width**2)).mean())

    return mean(target, target) + mean(made, made) - 2 * mean(target, made)


def make(model: str, dimension: int, run: int, matrix: np.ndarray, **options: Any) -> np.ndarray:
    """Rows of a model of that run."""
    generator = np.random.default_rng((run, dimension, 1))
    if model == "target":
        return generator.random((COMPARED, LATENT)) @ matrix
    latent = generator.random((ROWS, LATENT))
    latent[:, 0] = np.sqrt(latent[:, 0])  # of density 2 theta
    points, weights = latent @ matrix, 1 / (2 * latent[:, 0])
    if model == "C-GAN":
        fitted = WeightedGenerator("cross-entropy", **options).fit(
            points, given=latent[:, :1], seed=run
        )
        return fitted.sample(COMPARED, seed=run, given=generator.random((COMPARED, 1)))
    kind, loss = model.split("-")
    estimator = "iw" if kind == "none" else kind.lower()
    fitted = WeightedGenerator(LOSSES[loss], estimator, groups=GROUPS, **options).fit(
        points, None if kind == "none" else weights, seed=run
    )
    return fitted.sample(COMPARED, seed=run)


def law(model: str, dimension: int, run: int, matrix: np.ndarray, **options: Any) -> dict[str, Any]:
    """One training, and how far it is from the target."""
    started = time.process_time()
    made = make(model, dimension, run, matrix, **options)
    seconds = time.process_time() - started
    target = np.random.default_rng((run, dimension, 2)).random((COMPARED, LATENT)) @ matrix
    return {
        "model": model,
        "dimension": dimension,
        "run": run,
        "kl": kullback_leibler(target, made),
        "mmd2": squared_discrepancy(target, made),
        "energy": energy(target, made),
        "seconds": seconds,
    }


def digits(estimator: str, run: int) -> dict[str, Any]:
    """One training on an uneven sample of digits, and the classes of what it makes."""
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    pictures, classes = load_digits(return_X_y=True)
    of_three = np.isin(classes, CLASSES)
    pictures, classes = pictures[of_three], classes[of_three]
    judge = SVC().fit(pictures, classes)
    generator = np.random.default_rng((run, 3))
    chosen = np.concatenate(
        [
            generator.choice(np.flatnonzero(classes == each), round(share * SAMPLED), replace=False)
            for each, share in zip(CLASSES, SHARES, strict=True)
        ]
    )
    # M(x) is the share of its class here, over the share of a third that is wanted.
    weights = (1 / len(CLASSES)) / np.array(SHARES)[classes[chosen]]
    started = time.process_time()
    model = WeightedGenerator(
        "mmd", "iw" if estimator == "none" else estimator, (128, 128), groups=GROUPS
    ).fit(pictures[chosen], None if estimator == "none" else weights, seed=run)
    made = model.sample(MADE, seed=run)
    seconds = time.process_time() - started
    found = judge.predict(made)
    shares = {f"share_{each}": float(np.mean(found == each)) for each in CLASSES}
    return {"estimator": estimator, "run": run, **shares, "seconds": seconds, "made": made}


def unfinished(file: Path, wanted: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What is wanted and not in the file yet."""
    kept = pd.read_csv(file) if file.exists() else pd.DataFrame()
    have = set()
    if len(kept):
        # A model of the name "none" is not a missing value.
        kept = pd.read_csv(file, keep_default_na=False)
        have = set(kept[list(wanted[0])].itertuples(index=False, name=None))
    yield from (each for each in wanted if tuple(each.values()) not in have)


def keep(file: Path, row: dict[str, Any]) -> None:
    pd.DataFrame([row]).to_csv(file, mode="a", header=not file.exists(), index=False)


def show_laws(results: pd.DataFrame, published: Path | None, out: Path) -> None:
    found = results.groupby(["model", "dimension"])[list(METRICS)].agg(["mean", "std", "min"])
    theirs = pd.DataFrame() if published is None else pd.read_csv(published)
    if len(theirs):
        theirs = theirs.set_index(["metric", "model", "dimension"])["mean"]
    print(f"\nmean of {results['run'].nunique()} runs (deviation), and published in brackets")
    for metric, title in METRICS.items():
        print(f"\n{title:<12}" + "".join(f"{f'{each}D':>30}" for each in DIMENSIONS))
        for model in MODELS:
            cells = []
            for dimension in DIMENSIONS:
                if (model, dimension) not in found.index:
                    cells.append("")
                    continue
                mean, spread, _ = found.loc[(model, dimension), metric]
                place = (metric, model, dimension)
                known = f" [{theirs[place]:.4f}]" if place in theirs.index else " " * 9
                cells.append(f"{mean:.4f} ({spread:.4f}){known}")
            print(f"{model:<12}" + "".join(f"{cell:>30}" for cell in cells))
    draw_laws(found, theirs, out / "weighted_networks.png")


def draw_laws(found: pd.DataFrame, theirs: Any, file: Path) -> None:
    figure, axes = pyplot().subplots(
        len(METRICS), len(DIMENSIONS), figsize=(13, 9), sharex=True, squeeze=False
    )
    places = np.arange(len(MODELS) - 1)
    for line, (metric, title) in zip(axes, METRICS.items(), strict=True):
        for axis, dimension in zip(line, DIMENSIONS, strict=True):
            ours = [found[metric]["mean"].get((model, dimension)) for model in MODELS]
            spread = [found[metric]["std"].get((model, dimension)) for model in MODELS]
            axis.bar(places - 0.2, ours[:-1], 0.4, yerr=spread[:-1], label="ours")
            known = [theirs.get((metric, model, dimension), np.nan) for model in MODELS[:-1]]
            axis.bar(places + 0.2, known, 0.4, label="published")
            if ours[-1] is not None:
                axis.axhline(ours[-1], color="black", lw=0.8, ls=":", label="target itself")
            axis.set_title(f"{title}, {dimension} dimensions", fontsize=9)
            axis.set_xticks(places, MODELS[:-1], rotation=90, fontsize=8)
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def show_digits(results: pd.DataFrame, out: Path) -> None:
    columns = [f"share_{each}" for each in CLASSES]
    print(f"\nshares of made digits, mean of {results['run'].nunique()} runs; a third is wanted")
    table = results.groupby("estimator", sort=False)[columns].agg(["mean", "std"]).round(3)
    print(table.to_string())
    plot = pyplot()
    shown = ("none", "iw", "sniw", "id")
    figure, axes = plot.subplots(2, len(shown), figsize=(13, 6.5))
    for (above, below), estimator in zip(axes.T, shown, strict=True):
        above.bar([str(each) for each in CLASSES], table.loc[estimator, (slice(None), "mean")])
        above.axhline(1 / len(CLASSES), color="black", ls=":")
        above.set_title(f"{estimator}: shares of the made digits", fontsize=10)
        above.set_ylim(0, 0.8)
        made = np.load(out / f"weighted_digits_{estimator}.npy").reshape(6, 8, 8, 8)
        spaced = np.pad(made, ((0, 0), (0, 0), (1, 1), (1, 1)))
        below.imshow(spaced.transpose(0, 2, 1, 3).reshape(60, 80), cmap="gray_r")
        below.axis("off")
    figure.tight_layout()
    figure.savefig(out / "weighted_digits.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", choices=("laws", "digits"), default=["laws", "digits"])
    parser.add_argument("--published", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--digit-runs", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=np.inf, help="of CPU time, then stop")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    laws, counted = options.out / "weighted_laws.csv", options.out / "weighted_digits.csv"
    wanted = [
        {"model": model, "dimension": dimension, "run": run}
        for run in range(options.runs)
        for dimension in DIMENSIONS
        for model in MODELS
    ]
    if "laws" in options.part:
        for each in unfinished(laws, wanted):
            if time.process_time() > 60 * options.minutes:
                break
            keep(laws, law(**each, matrix=mapping(each["dimension"])))
        results = pd.read_csv(laws, keep_default_na=False)
        results = results.drop_duplicates(["model", "dimension", "run"])
        show_laws(results, options.published, options.out)
    if "digits" in options.part:
        wanted = [
            {"estimator": estimator, "run": run}
            for run in range(options.digit_runs)
            for estimator in ("none", *ESTIMATORS)
        ]
        for each in unfinished(counted, wanted):
            if time.process_time() > 60 * options.minutes:
                break
            found = digits(**each)
            made = found.pop("made")
            if each["run"] == 0:
                np.save(options.out / f"weighted_digits_{each['estimator']}.npy", made[:48])
            keep(counted, found)
        show_digits(pd.read_csv(counted, keep_default_na=False), options.out)


if __name__ == "__main__":
    main()
