"""The distances of an evaluation: which are taken, in which direction they count, what they say.

Each is taken of the release without its weights, with them, and of two real samples, the floor,
below which no distance to the private rows can be asked to go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counterpoise.evaluation.distances import sliced_wasserstein, wasserstein
from counterpoise.evaluation.divergence import neighbour_divergence
from counterpoise.evaluation.kernels import discrepancy, energy_distance, mmd
from counterpoise.evaluation.marginals import k_marginal_score, mean_error
from counterpoise.evaluation.two_sample import tell_apart
from counterpoise.importance.averages import MIW, SNIW
from counterpoise.schema import Coded

LOWER, HIGHER = "lower", "higher"
# Points of the distances whose time grows with more than their number.
TRANSPORTED, PAIRED, NEIGHBOURING, CLASSIFIED = 1000, 4000, 2000, 5000

Take = Callable[[Coded, Coded, "np.ndarray | None", int], dict[str, float]]


@dataclass(frozen=True)
class Distance:
    """A measure: its name, whether lower or higher is better, and what it is in a sentence."""

    name: str
    better: str
    says: str


WASSERSTEIN = Distance(
    "Wasserstein-1", LOWER, "how far rows have to be moved, on average, to become the private ones"
)
SLICED = Distance("sliced Wasserstein-1", LOWER, "the same on lines in random directions")
ENERGY = Distance("energy distance", LOWER, "how much farther apart rows of both tables are")
MMD = Distance("MMD", LOWER, "the largest difference of means of smooth functions")
SQUARED = Distance("MMD², unbiased", LOWER, "its square without bias; below zero by chance")
ROBUST = Distance("MMD², median of means", LOWER, "the same, whatever few large weights say")
DIVERGENCE = Distance(
    "Kullback-Leibler", LOWER, "nats that are lost by taking the release for the private rows"
)
PMSE = Distance("pMSE", LOWER, "how well a logistic regression tells synthetic rows from real ones")
AUC = Distance(
    "two-sample AUC", LOWER, "how well gradient boosting does; one half when nothing tells"
)
MEANS = Distance("error of means", LOWER, "of numbers as parts of their range, and of shares")
K_MARGINAL = Distance(
    "k-marginal score", HIGHER, "1000 (1 - total variation) of sets of three columns"
)
DISTANCES = (
    *(WASSERSTEIN, SLICED, ENERGY, MMD, SQUARED, ROBUST, DIVERGENCE, PMSE, AUC),
    *(MEANS, K_MARGINAL),
)


def _transport(
    left: Coded, right: Coded, weights: np.ndarray | None, seed: int
) -> dict[str, float]:
    return {WASSERSTEIN.name: wasserstein(left, right, weights, points=TRANSPORTED)}


def _slices(left: Coded, right: Coded, weights: np.ndarray | None, seed: int) -> dict[str, float]:
    return {SLICED.name: sliced_wasserstein(left, right, weights, directions=100, seed=seed)}


def _pairs(left: Coded, right: Coded, weights: np.ndarray | None, seed: int) -> dict[str, float]:
    found = {
        ENERGY.name: energy_distance(left, right, weights, points=PAIRED),
        MMD.name: mmd(left, right, weights, points=PAIRED),
    }
    for distance, estimator in ((SQUARED, SNIW), (ROBUST, MIW)):
        found[distance.name] = discrepancy(
            left, right, weights, estimator=estimator, points=PAIRED, seed=seed
        )
    return found


def _neighbours(
    left: Coded, right: Coded, weights: np.ndarray | None, seed: int
) -> dict[str, float]:
    return {DIVERGENCE.name: neighbour_divergence(left, right, weights, points=NEIGHBOURING)}


def _classifier(
    left: Coded, right: Coded, weights: np.ndarray | None, seed: int
) -> dict[str, float]:
    found = tell_apart(left, right, weights, points=CLASSIFIED, seed=seed)
    return {PMSE.name: found.pmse, AUC.name: found.auc}


def _tables(left: Coded, right: Coded, weights: np.ndarray | None, seed: int) -> dict[str, float]:
    degree = min(3, len(left.schema))
    return {
        MEANS.name: mean_error(left, right, weights),
        K_MARGINAL.name: k_marginal_score(left, right, weights, degree=degree, seed=seed),
    }


# What is computed together, by what it is called while it is done.
TAKEN: dict[str, Take] = {
    "transport": _transport,
    "slices": _slices,
    "pairs": _pairs,
    "neighbours": _neighbours,
    "classifier": _classifier,
    "tables": _tables,
}
