"""Telling private rows from synthetic ones: the question that both logistic methods put.

A logistic regression of "private or synthetic?" on the features of a row is asked of the vault as
one noisy minimiser, or as a linear map of one. Under add/remove a part of the share pays for the
number of private rows first. What is checked and worked out here is public; what is made of the
answer is each method's own. [PRIVACY: importance weights]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Coded
from counterpoise.vault import (
    Budget,
    NoiseLaw,
    NoisyMinimiser,
    Perturbation,
    Share,
    Vault,
    perturbation_for,
)
from counterpoise.weights.features import Features, Intercept, Recipe
from counterpoise.weights.protocol import coded_rows, pay_for_total

# The part of the share that the number of private rows gets, where it is private. An error of
# one in a hundred in n is one in a hundred in every weight alike, which no estimate notices.
TOTAL_FRACTION = 0.05


def balanced_regularisation(
    deviation: float, regularisation: float, bound: float, size: int
) -> float:
    """The lambda at which shrinkage and noise cost a log-weight about the same.

    `deviation` is that of the noise on `size` coefficients at some `regularisation`. With lambda =
    kappa R^2, the noise on a log-weight is at most c / kappa, where c is its value at kappa = 1,
    and the curvature of the loss is about R^2 / (2p) in each direction, so a coefficient shrinks
    by about 2 p kappa of itself. The sum of squares of the two is least at
    kappa = sqrt(c / (2p)).

    >>> round(balanced_regularisation(0.02, 1.0, bound=1.0, size=4), 3)
    0.05
    """
    largest_noise = deviation * bound * regularisation / bound**2
    return bound**2 * math.sqrt(largest_noise / (2 * size))


def noise_arrays(model: Any) -> dict[str, np.ndarray]:
    """What both methods' models know of their noise, as arrays."""
    return {name: np.array(getattr(model, name)) for name in _KEPT}


def noise_fields(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The inverse of `noise_arrays`."""
    return {name: kind(arrays[name]) for name, kind in _KEPT.items()}


_KEPT: dict[str, Callable[[Any], Any]] = {
    "law": str,
    "scale": float,
    "population": float,
    "private": bool,
}


@dataclass(frozen=True, eq=False)
class Classification:
    """A question put to the vault: which rows are private? All of it is public."""

    budget: Budget
    share: Share  # for the minimiser, after the number of rows is paid for
    synthetic: Coded
    features: Features  # an intercept first
    matrix: np.ndarray  # the features of the synthetic rows
    population: float  # the number of private rows: public, or noisy and paid for

    @classmethod
    def of(
        cls, vault: Vault, synthetic: Any, share: Share | None, recipe: Recipe, noise: str | None
    ) -> Classification:
        """Check what can be checked for free, then pay for the number of rows."""
        if share is None:
            raise BudgetError("logistic weights look at private rows: give them a share")
        if noise == "gaussian" and share.pure:
            raise BudgetError(
                "noise: 'gaussian' needs delta > 0: state a delta, such as 1e-9, or choose "
                "noise='l2-laplace'"
            )
        if noise is None and vault.private:
            raise MethodError(
                "noise: None is a probe that is not private; open the vault with a seed, which "
                "stamps what comes out as not private, or choose 'gaussian' or 'l2-laplace'"
            )
        coded = coded_rows(vault.schema, synthetic)
        if len(coded) == 0:
            raise MethodError("logistic weights need at least one synthetic row to compare with")
        features = (Intercept() + recipe).over(coded)
        total, rest = pay_for_total(vault, share, TOTAL_FRACTION)
        population = max(1.0, float(total.value))
        return cls(vault.budget, rest, coded, features, features(coded), population)

    @property
    def bound(self) -> float:
        """R: the largest norm of a row's features."""
        return self.features.bound

    def balanced(self, noise_at: Callable[[float], Perturbation]) -> float:
        """The `balanced_regularisation`, for noise that is given at each lambda."""
        trial = self.bound**2
        noise = noise_at(trial)
        return balanced_regularisation(noise.deviation, trial, self.bound, noise.size)

    @property
    def log_odds(self) -> float:
        """log(N/n)."""
        return math.log(len(self.synthetic) / self.population)

    def noise(
        self, law: NoiseLaw, regularisation: float, scale: float | None = None
    ) -> Perturbation:
        """The noise on the coefficients."""
        return perturbation_for(
            self.budget,
            self.share,
            size=len(self.features.names),
            bound=self.bound,
            rows=self.population,
            regularisation=regularisation,
            noise=law,
            scale=scale,
        )

    def ask(
        self,
        vault: Vault,
        noise: Perturbation,
        regularisation: float,
        outputs: np.ndarray | None = None,
    ) -> NoisyMinimiser:
        """One noisy minimiser, or a linear map of one."""
        # Coefficients shrink towards equal tables: an intercept of log(n/N), and nothing else.
        centre = np.zeros(len(self.features.names))
        centre[0] = -self.log_odds
        return vault.minimise(
            self.features,
            self.bound,
            self.synthetic,
            self.share,
            rows=self.population,
            regularisation=regularisation,
            noise=noise.law,
            scale=noise.scale if noise.law != "none" else None,
            centre=centre,
            outputs=outputs,
        )
