"""MNIST: which weights help a private GAN of pictures, at one total budget.

A conditional GAN (`dpcgan`, given the digit) is fitted on the 60,000 training pictures at epsilon
9.64, the setting of Ghalebikesabi et al. 2022, table 3. Weights that are free leave all of the
budget to it; weights that are not take a fifth, and the GAN has the rest. On as many synthetic
rows as asked for, weighted, stand two measures of the table: the mean square error of the
coefficients of a logistic regression, relative to those of the private rows, and the area under the
ROC curve (one digit against the rest) of a network with one hidden layer on the test pictures.

    python benchmarks/mnist.py [--data DIR] [--side 14] [--seeds 2] [--out results]

`mnist.npz` (x_train, y_train, x_test, y_test) is looked for in --data or COUNTERPOISE_DATA.
Pictures are averaged down to `side` x `side` pixels, one column each. Noise comes from seeds.
Each method's results are kept in `mnist.csv` as they come: a run that is interrupted, or that has
had its `--minutes` of CPU time, goes on when started again. Beside ours stands what is published,
of 10 runs on pictures of 28 x 28 with another GAN. `mnist.png` shows some of the made pictures.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

from counterpoise import Budget, Column, Schema, Vault
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.weights import WEIGHTERS, Weights
from weights_report import pyplot

EPSILON, DELTA = 9.64, 1 / 60_000 - 1e-6
WEIGHTS_PART = 0.2
LABEL = "digit"
METHODS = ("uniform", "discriminator", "moments", "logistic", "dp-mlp", "pate", "mlp")
DIGITS = [str(digit) for digit in range(10)]
# Relative error of the coefficients, and area under the ROC curve.
PUBLISHED = {
    "uniform": (0.6605, 0.8502),
    "discriminator": (0.6242, 0.8631),
    "logistic": (0.6240, 0.8783),
    "dp-mlp": (0.5813, 0.8683),
    "mlp": (0.5707, 0.8737),
}


def pictures(path: Path, side: int, part: str) -> pd.DataFrame:
    """A table of pixels from 0 to 1, and the digit."""
    with np.load(path / "mnist.npz") as arrays:
        pixels, digits = arrays[f"x_{part}"] / 255.0, arrays[f"y_{part}"]
    fold = pixels.shape[1] // side
    edge = side * fold
    start = (pixels.shape[1] - edge) // 2
    pixels = pixels[:, start : start + edge, start : start + edge]
    pixels = pixels.reshape(len(pixels), side, fold, side, fold).mean(axis=(2, 4))
    table = pd.DataFrame(pixels.reshape(len(pixels), -1), columns=names(side))
    return table.assign(**{LABEL: digits.astype(str)})


def names(side: int) -> list[str]:
    return [f"p{row}_{column}" for row in range(side) for column in range(side)]


def schema_of(side: int) -> Schema:
    pixels = [Column.continuous(name, 0, 1, bins=4) for name in names(side)]
    return Schema([*pixels, Column.categorical(LABEL, DIGITS)])


def coefficients(table: pd.DataFrame, weights: np.ndarray | None = None) -> np.ndarray:
    model = LogisticRegression(C=0.1, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table.drop(columns=LABEL), table[LABEL].astype(str), sample_weight=weights)
    found = np.zeros((10, model.coef_.shape[1]))
    found[[DIGITS.index(name) for name in model.classes_]] = (
        model.coef_ if len(model.classes_) > 2 else np.vstack([-model.coef_, model.coef_])
    )
    return found


def roc_auc(table: pd.DataFrame, weights: np.ndarray, test: pd.DataFrame, seed: int) -> float:
    # Drawn by weight: the network of scikit-learn takes weights in its newer versions only.
    generator = np.random.default_rng(seed)
    drawn = table.iloc[generator.choice(len(table), len(table), p=weights / weights.sum())]
    model = MLPClassifier((100,), max_iter=15, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(drawn.drop(columns=LABEL), drawn[LABEL].astype(str))
    chances = np.zeros((len(test), 10))
    places = [DIGITS.index(name) for name in model.classes_]
    chances[:, places] = model.predict_proba(test.drop(columns=LABEL))
    truth = np.eye(10)[[DIGITS.index(name) for name in test[LABEL]]]
    return float(roc_auc_score(truth, chances, average="macro"))


class Runs:
    """The weightings of one seed, at the same total budget; a GAN is made when it is needed."""

    def __init__(self, private: pd.DataFrame, test: pd.DataFrame, options: Any, seed: int):
        self._private, self._test, self._options, self._seed = private, test, options, seed
        self._schema, self._budget = schema_of(options.side), Budget(EPSILON, DELTA)
        self._made: dict[bool, Any] = {}

    @cached_property
    def _target(self) -> np.ndarray:
        return coefficients(self._private)

    def run(self, name: str) -> dict[str, Any]:
        """One weighting."""
        weighter = WEIGHTERS.make(name)
        for_weights, rest = self._budget.whole.split(WEIGHTS_PART, 1 - WEIGHTS_PART)
        with Vault(self._private, self._schema, self._budget, seed=self._seed) as vault:
            if weighter.is_free not in self._made:
                started = time.process_time()
                share = self._budget.whole if weighter.is_free else rest
                model = SYNTHESIZERS.make("dpcgan", target=LABEL).fit(vault, share)
                self._made[weighter.is_free] = (
                    model,
                    model.sample(self._options.rows, seed=self._seed),
                    time.process_time() - started,
                )
        model, table, gan_seconds = self._made[weighter.is_free]
        started = time.process_time()
        # A vault for the weights alone, of the same seed and budget: what is asked of it is the
        # weights' share, and with the GAN's share it makes the whole.
        with Vault(self._private, self._schema, self._budget, seed=self._seed + 1000) as vault:
            share = None if weighter.is_free else for_weights
            fitted = weighter.fit(vault, table, share, **_critic(weighter, model))
            weights: Weights = fitted.weigh(table)
        seconds = time.process_time() - started
        target = self._target
        error = np.mean((coefficients(table, weights.normalised) - target) ** 2)
        return {
            "seed": self._seed,
            "weights": name,
            "coefficient_error": float(error / np.mean(target**2)),
            "roc_auc": roc_auc(table, weights.normalised, self._test, self._seed),
            "effective_part": weights.effective_sample_size / len(table),
            "gan_seconds": gan_seconds,
            "seconds": seconds,
        }

    def picture(self, file: Path) -> None:
        """Some of the pictures that a GAN with the whole budget makes."""
        if True not in self._made:
            return
        side = self._options.side
        some = self._made[True][1].sort_values(LABEL, kind="stable")
        some = some.groupby(LABEL, observed=True).head(12).drop(columns=LABEL)
        pixels = some.to_numpy(float)[: 12 * (len(some) // 12)].reshape(-1, 12, side, side)
        figure, axis = pyplot().subplots(figsize=(8, 6.5))
        axis.imshow(pixels.transpose(0, 2, 1, 3).reshape(-1, 12 * side), cmap="gray_r")
        axis.axis("off")
        figure.savefig(file, dpi=100, bbox_inches="tight")


def _critic(weighter: Any, model: Any) -> dict[str, Any]:
    return {"synthesizer": model} if getattr(weighter, "needs_critic", False) else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--side", type=int, default=14)
    parser.add_argument("--rows", type=int, default=10_000, help="synthetic rows")
    parser.add_argument("--private-rows", type=int, default=60_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=np.inf, help="of CPU time, then stop")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    if options.data is None:
        parser.error("state the folder of mnist.npz by --data or COUNTERPOISE_DATA")
    private = pictures(options.data, options.side, "train")[: options.private_rows]
    test = pictures(options.data, options.side, "test")
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "mnist.csv"
    results = pd.read_csv(file) if file.exists() else pd.DataFrame({"seed": [], "weights": []})
    for seed in range(options.seeds):
        runs = Runs(private, test, options, seed)
        have = set(results.loc[results["seed"] == seed, "weights"])
        for name in METHODS:
            if name in have or time.process_time() > 60 * options.minutes:
                continue
            results = pd.concat([results, pd.DataFrame([runs.run(name)])], ignore_index=True)
            results.to_csv(file, index=False)
            print(results.iloc[-1].to_dict(), flush=True)
        runs.picture(options.out / "mnist.png")
    table = results.groupby("weights", sort=False).agg(["mean", "sem"])
    columns = ["coefficient_error", "roc_auc", "effective_part", "gan_seconds", "seconds"]
    print(table[columns].round(4).to_string())
    print("\npublished: relative error of the coefficients, area under the ROC curve")
    for name, (error, area) in PUBLISHED.items():
        print(f"{name:<16}{error:.4f}  {area:.4f}")


if __name__ == "__main__":
    main()
