"""Logistic weights: the odds that a classifier of private and synthetic rows gives to private.

w(x) = p_private(x) / p_synthetic(x), and by Bayes' rule log w(x) = logit p(private | x) +
log(N/n) for n private and N synthetic rows. The logit is f(x).b for a regularised logistic
regression, whose coefficients b the vault releases with noise (Ji and Elkan 2013); the bias that
the noise puts into the weights is divided out (Ghalebikesabi and others 2022). Under add/remove
a part of the share pays for n. It may be trusted as far as the log-ratio is linear in the
features: it corrects means of features, not what they do not show. [PRIVACY: importance weights]
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from counterpoise.arguments import one_of, positive_or_none, settle, truth_value
from counterpoise.errors import MethodError
from counterpoise.schema import Schema
from counterpoise.vault import NoiseLaw, Perturbation, Share, Vault
from counterpoise.weights.classification import Classification, noise_arrays, noise_fields
from counterpoise.weights.debias import average_to_one, has_moment, log_moment, redraw
from counterpoise.weights.features import Features, Linear, Recipe, checked_recipe
from counterpoise.weights.protocol import WEIGHTERS, Redrawable, check_request, coded_rows
from counterpoise.weights.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws


@WEIGHTERS.register("logistic")
@dataclass(frozen=True)
class Logistic:
    """Weights from a logistic regression with noise on its coefficients.

    `noise` is "gaussian" (needs delta > 0), "l2-laplace" or "laplace" (both pure; the second pays
    sqrt(p) more noise for p coefficients), or None, a probe that only a vault with a seed allows.
    `debias` divides the weights by what the noise does to them on average; where that does not
    exist, Gaussian noise is used instead if the budget has a delta. `features` is a recipe, to
    which an intercept is added. `regularisation` is lambda; None takes `balanced_regularisation`.
    `published_epsilon` sets Laplace noise of scale D2 / epsilon, as the papers do: that is not
    epsilon-DP but sqrt(p) epsilon, which is what is charged, or refused if the share is smaller.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> from counterpoise.vault import Budget
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> generator = np.random.default_rng(0)
    >>> private = pd.DataFrame({"x": generator.beta(3, 2, 5000)})
    >>> synthetic = pd.DataFrame({"x": generator.uniform(size=5000)})
    >>> with Vault(private, schema, Budget(2.0, 1e-6), seed=1) as vault:
    ...     model = Logistic().fit(vault, synthetic, vault.budget.whole)
    >>> weights = model.weigh(synthetic).normalised
    >>> before, after = synthetic["x"].mean(), np.average(synthetic["x"], weights=weights)
    >>> bool(abs(after - private["x"].mean()) < 0.3 * abs(before - private["x"].mean()))
    True
    """

    noise: str | None = "gaussian"
    debias: bool = True
    features: Recipe = field(default_factory=Linear)
    regularisation: float | None = None
    published_epsilon: float | None = None

    is_free = False
    needs_rows = True

    def __post_init__(self) -> None:
        settle(
            self,
            noise=one_of("noise", self.noise, ("gaussian", "l2-laplace", "laplace", None)),
            debias=truth_value("debias", self.debias),
            features=checked_recipe("features", self.features),
            regularisation=positive_or_none("regularisation", self.regularisation),
            published_epsilon=positive_or_none("published_epsilon", self.published_epsilon),
        )
        if self.published_epsilon is not None and self.noise != "laplace":
            raise MethodError("published_epsilon: the published noise is noise='laplace'")

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None,
        synthesizer: Redrawable | None = None,
    ) -> LogisticModel:
        """Pay for the number of rows, where it is private, and for one noisy minimiser."""
        check_request(vault, share, synthesizer)
        task = Classification.of(vault, synthetic, share, self.features, self.noise)
        noise, regularisation = self._calibrated(task)
        longest = task.bound * np.eye(1) if noise.law == "l2-laplace" else task.matrix
        if self.debias and not has_moment(longest, noise.law, noise.scale):
            # Decided by public quantities, before the look.
            if task.share.pure or self.published_epsilon is not None:
                raise MethodError(
                    f"debias: {noise.law} noise of scale {noise.scale:.4g} is too heavy-tailed "
                    "for weights to have a mean; use a larger regularisation or share, "
                    "noise='gaussian' and a budget with delta > 0, or debias=False"
                )
            noise, regularisation = replace(self, noise="gaussian")._calibrated(task)
        answer = task.ask(vault, noise, regularisation)
        return LogisticModel(
            schema=vault.schema,
            features=task.features,
            coefficients=answer.values,
            law=answer.law,
            scale=answer.scale,
            debias=self.debias,
            log_odds=task.log_odds,
            population=task.population,
            regularisation=regularisation,
            private=answer.private,
        )

    def _calibrated(self, task: Classification) -> tuple[Perturbation, float]:
        """The noise and lambda; both follow from what is public."""
        law: NoiseLaw = "none" if self.noise is None else self.noise  # type: ignore[assignment]

        def at(regularisation: float) -> Perturbation:
            if self.published_epsilon is None:
                return task.noise(law, regularisation)
            # b = D2 / epsilon: the papers' scale, where D1 / epsilon is needed
            sensitivity = task.noise("none", regularisation).sensitivity
            return task.noise(law, regularisation, sensitivity / self.published_epsilon)

        chosen = self.regularisation
        if chosen is None:
            # A probe without noise is regularised as the method that it is the probe of.
            usual: NoiseLaw = "l2-laplace" if task.share.pure else "gaussian"
            chosen = task.balanced(partial(task.noise, usual) if law == "none" else at)
        return at(chosen), chosen


@dataclass(frozen=True, eq=False)
class LogisticModel:
    """Noisy coefficients, and the public law of their noise."""

    schema: Schema
    features: Features
    coefficients: np.ndarray
    law: NoiseLaw
    scale: float
    debias: bool
    log_odds: float  # log(N/n)
    population: float  # n: public, or noisy
    regularisation: float  # lambda
    private: bool = True

    def weigh(self, synthetic: Any) -> Weights:
        """log w(x) = f(x).b + log(N/n), less the log of what the noise adds on average."""
        matrix = self.features(coded_rows(self.schema, synthetic))
        return Weights(self._log_weights(matrix))

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """The weights again, with fresh noise and fresh rows on either side; a column a replicate.

        Around the released coefficients, and debiased like them, so that a replicate is on
        average the weight itself.
        """
        matrix = self.features(coded_rows(self.schema, synthetic))
        if len(matrix) == 0:
            return np.empty(redraws.base.shape)
        count = redraws.base.shape[1]
        moved = redraw(self.law, self.scale, len(self.coefficients), count, redraws.generator)
        moved += self._refitted(matrix, redraws)
        log_weights = matrix @ moved + self._log_weights(matrix)[:, None]
        if self.debias:
            log_weights -= log_moment(matrix, self.law, self.scale)[:, None]
        return average_to_one(log_weights, redraws.base)

    def _refitted(self, matrix: np.ndarray, redraws: Redraws) -> np.ndarray:
        """How far one Newton step takes the coefficients when the rows are drawn again.

        With n = m, J(b) = mean over private rows + (N/n) mean over synthetic rows + penalty, and
        the weighted synthetic rows stand for the private ones.
        """
        ratio = math.exp(self.log_odds)  # N/n
        base = redraws.base / redraws.base.mean(axis=0)
        private = expit(matrix @ self.coefficients)
        # The gradients of loss(f.b) and loss(-f.b) are -(1 - p) f and p f.
        fresh = (matrix * (1 - private)[:, None]).T @ (redraws.resample - redraws.weights[:, None])
        other = (matrix * private[:, None]).T @ (base - 1)
        gradients = (ratio * other - fresh) / len(matrix)
        curvature = private * (1 - private) * (redraws.weights + ratio)
        hessian = (matrix * curvature[:, None]).T @ matrix / len(matrix)
        hessian += self.regularisation * np.eye(len(self.coefficients))
        return -np.linalg.solve(hessian, gradients)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays that `from_arrays` reads back; fit for `numpy.savez`, free of pickles."""
        return {
            "features": np.array(json.dumps(self.features.to_dict())),
            "coefficients": self.coefficients,
            "debias": np.array(self.debias),
            "log_odds": np.array(self.log_odds),
            "regularisation": np.array(self.regularisation),
            **noise_arrays(self),
        }

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> LogisticModel:
        """The inverse of `to_arrays`."""
        return cls(
            schema=schema,
            features=Features.from_dict(schema, json.loads(str(arrays["features"]))),
            coefficients=np.asarray(arrays["coefficients"]),
            debias=bool(arrays["debias"]),
            log_odds=float(arrays["log_odds"]),
            regularisation=float(arrays["regularisation"]),
            **noise_fields(arrays),
        )

    def _log_weights(self, matrix: np.ndarray) -> np.ndarray:
        # log w = f.b + log(N/n), by Bayes' rule: the prior odds are n/N.
        log_weights = matrix @ self.coefficients + self.log_odds
        if self.debias:
            log_weights = log_weights - log_moment(matrix, self.law, self.scale)
        return np.asarray(log_weights)
