"""Logistic log-weights noised directly: for a few rows of a synthetic table, one number each.

The log-weights of N_S released rows are F b + log(N/n), where F holds the rows' features and b
the coefficients of a logistic regression. As a vector they have L2 sensitivity operator_norm(F)
D2(b), less than N_S separate releases would (Ghalebikesabi and others 2021, corollaries 1 and 2,
which compose those). Each gets noise of its own, and a constant shift keeps the weights
unbiased. The noise grows with the number of rows, so only the first N_S rows of the synthetic
table get a weight and all others none, with N_S the largest for which the noise stays below a
stated one: a public computation. The model knows these rows alone. [PRIVACY: weights noised
directly]
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.arguments import (
    one_of,
    positive_or_none,
    real_number,
    settle,
    whole_number,
)
from counterpoise.errors import MethodError
from counterpoise.schema import Coded, Schema
from counterpoise.vault import NoiseLaw, Perturbation, Share, Vault, operator_norm, perturbation_for
from counterpoise.weights.classification import Classification, noise_arrays, noise_fields
from counterpoise.weights.debias import average_to_one, redraw, unbiased_shift
from counterpoise.weights.features import Linear, Recipe, checked_recipe
from counterpoise.weights.protocol import WEIGHTERS, Redrawable, check_request, coded_rows
from counterpoise.weights.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws


@WEIGHTERS.register("logistic-outputs")
@dataclass(frozen=True)
class LogisticOutputs:
    """Weights for the first rows of a synthetic table, with noise on each log-weight.

    `noise` is "gaussian" (needs delta > 0) or "laplace" (pure). `rows` is the number of rows to
    weigh; None takes as many as keep the standard deviation of the noise on a log-weight below
    `most_noise`. `features` and `regularisation` are as for `Logistic`.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> from counterpoise.vault import Budget
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> generator = np.random.default_rng(0)
    >>> private = pd.DataFrame({"x": generator.beta(3, 2, 20000)})
    >>> synthetic = pd.DataFrame({"x": generator.uniform(size=20000)})
    >>> with Vault(private, schema, Budget(2.0, 1e-6), seed=1) as vault:
    ...     model = LogisticOutputs().fit(vault, synthetic, vault.budget.whole)
    >>> 100 < len(model.noised) < 1000, int((model.weigh(synthetic).normalised > 0).sum()) > 100
    (True, True)
    """

    noise: str = "gaussian"
    rows: int | None = None
    most_noise: float = 0.5
    features: Recipe = field(default_factory=Linear)
    regularisation: float | None = None

    is_free = False
    needs_rows = True
    weighs_new_rows = False

    def __post_init__(self) -> None:
        settle(
            self,
            noise=one_of("noise", self.noise, ("gaussian", "laplace")),
            rows=None if self.rows is None else whole_number("rows", self.rows),
            most_noise=real_number("most_noise", self.most_noise, "a positive number", above=0),
            features=checked_recipe("features", self.features),
            regularisation=positive_or_none("regularisation", self.regularisation),
        )

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None,
        synthesizer: Redrawable | None = None,
    ) -> LogisticOutputsModel:
        """Pay for the number of rows, where it is private, and for one vector of log-weights."""
        check_request(vault, share, synthesizer)
        coded = coded_rows(vault.schema, synthetic)
        if self.rows is not None and self.rows > len(coded):
            raise MethodError(f"rows: the synthetic table has {len(coded)}, fewer than {self.rows}")
        task = Classification.of(vault, coded, share, self.features, self.noise)
        law: NoiseLaw = self.noise  # type: ignore[assignment]
        regularisation = self.regularisation
        if regularisation is None:
            regularisation = task.balanced(partial(task.noise, law))
        rows = self.rows
        if rows is None:
            rows = largest_feasible_rows(task, regularisation, law, self.most_noise)
        noise = outputs_noise(task, regularisation, law, rows)
        # Refused before the look where there is no unbiased shift.
        unbiased_shift(noise.law, noise.scale)
        answer = task.ask(vault, noise, regularisation, outputs=task.matrix[:rows])
        return LogisticOutputsModel(
            schema=vault.schema,
            noised=answer.values + task.log_odds,
            law=answer.law,
            scale=answer.scale,
            fingerprint=fingerprint(task.synthetic),
            population=task.population,
            private=answer.private,
        )


def outputs_noise(
    task: Classification, regularisation: float, law: NoiseLaw, rows: int
) -> Perturbation:
    """The noise on the log-weights of the first `rows` synthetic rows; public."""
    return perturbation_for(
        task.budget,
        task.share,
        size=rows,
        bound=task.bound,
        rows=task.population,
        regularisation=regularisation,
        noise=law,
        # operator_norm(F) D2(b)
        reach=operator_norm(task.matrix[:rows]),
    )


def largest_feasible_rows(
    task: Classification, regularisation: float, law: NoiseLaw, most_noise: float
) -> int:
    """The most rows whose log-weights can be noised with a deviation of at most `most_noise`.

    For Laplace noise the weights also have to have a mean: b < 1. A public computation.
    """

    def is_feasible(rows: int) -> bool:
        noise = outputs_noise(task, regularisation, law, rows)
        return noise.deviation <= most_noise and (law != "laplace" or noise.scale < 1)

    # More rows lengthen F and the noise with it: halving finds where it becomes too much.
    least, most = 0, len(task.matrix)
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if is_feasible(middle) else (least, middle - 1)
    if least == 0:
        raise MethodError(
            f"most_noise: not one log-weight can be released with a deviation of {most_noise:g}; "
            "allow more noise, use a larger share or regularisation, or the method 'logistic'"
        )
    return least


@dataclass(frozen=True, eq=False)
class LogisticOutputsModel:
    """Noisy log-weights of the first rows of one synthetic table; no other rows can be weighed."""

    schema: Schema
    noised: np.ndarray  # noisy log-weights, before the shift
    law: NoiseLaw
    scale: float
    fingerprint: str  # of the synthetic table
    population: float  # n: public, or noisy
    private: bool = True

    def weigh(self, synthetic: Any) -> Weights:
        """The shifted log-weights; rows beyond those that were released weigh nothing."""
        return Weights(self._log_weights(synthetic))

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """Weights as other draws of the noise would have made them, one replicate a column."""
        log_weights = np.repeat(
            self._log_weights(synthetic)[:, None], redraws.base.shape[1], axis=1
        )
        if len(log_weights):
            drawn = redraw(
                self.law, self.scale, len(self.noised), redraws.base.shape[1], redraws.generator
            )
            log_weights[: len(drawn)] += drawn + unbiased_shift(self.law, self.scale)
        return average_to_one(log_weights, redraws.base)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays that `from_arrays` reads back; fit for `numpy.savez`, free of pickles."""
        return {
            "noised": self.noised,
            "fingerprint": np.array(self.fingerprint),
            **noise_arrays(self),
        }

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> LogisticOutputsModel:
        """The inverse of `to_arrays`."""
        return cls(
            schema=schema,
            noised=np.asarray(arrays["noised"]),
            fingerprint=str(arrays["fingerprint"]),
            **noise_fields(arrays),
        )

    def _log_weights(self, synthetic: Any) -> np.ndarray:
        rows = coded_rows(self.schema, synthetic)
        if len(rows) == 0:
            return np.empty(0)
        if fingerprint(rows) != self.fingerprint:
            raise MethodError(
                "'logistic-outputs' knows the weights of the synthetic table that it was fitted "
                "with, in its order, and of no other rows; use 'logistic' to weigh new rows"
            )
        log_weights = np.full(len(rows), -np.inf)
        shift = unbiased_shift(self.law, self.scale)
        log_weights[: len(self.noised)] = self.noised + shift
        return log_weights


def fingerprint(rows: Coded) -> str:
    """A digest of coded rows in their order."""
    digest = hashlib.sha256(np.ascontiguousarray(rows.codes).tobytes())
    digest.update(np.ascontiguousarray(rows.units).tobytes())
    return digest.hexdigest()
