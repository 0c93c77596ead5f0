"""Moment weights: match what noisy sums say of the private table, as far as the noise allows.

If the ratio of private to synthetic density is exp(theta.f(x) - A), the private table enters the
likelihood only through the mean of f. So one noisy sum of bounded features is all that is asked;
what follows is free. In coordinates z in which the synthetic table is white, each feature less what
the ones before it explain, the measured difference d between the tables is shrunk by empirical
Bayes, block by block (what was asked for in advance, the columns' own features, their relations
with a target or within a question, other relations).
The weights are those closest to uniform that bring the synthetic table there, softly where the
difference is uncertain:

    minimise  KL(w, uniform) + 1/2 sum_j (mean_w z_j - (T d)_j)^2 / softness_j,
    T = V (V + S)^-1,  softness_j = (1 - t_j) / 10 * P_j / (P_j + S_jj),

with S the covariance of the noise, t_j as far as a difference by itself is believed, from what its
block suggests and no further than P, by which the synthesizer can plausibly be wrong, and V the
diagonal of the prior variances that say so. Where d is no larger than its noise, or the synthesizer
knows better, T is near 0 and nothing moves. Charge: one sum of features of bounded norm, and a
count for the number of rows where that is private.
[PRIVACY: moment weights]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterpoise.arguments import column_name, settle
from counterpoise.errors import BudgetError, MethodError
from counterpoise.formulas.questions import read_questions
from counterpoise.schema import Coded, Schema
from counterpoise.vault import NoisySums, Share, Vault
from counterpoise.weights.asked import ask, asked_pairs
from counterpoise.weights.choose_features import MOST_FEATURES, choose_features
from counterpoise.weights.features import Features, Recipe, checked_recipe
from counterpoise.weights.fine_cells import FineCells
from counterpoise.weights.knowledge import is_measured, plausible_variances
from counterpoise.weights.moment_model import MomentModel
from counterpoise.weights.protocol import (
    WEIGHTERS,
    Redrawable,
    check_request,
    coded_rows,
    pay_for_total,
)
from counterpoise.weights.row_blocks import FeatureRows
from counterpoise.weights.shrinkage import Shrinkage, normal_density, shrink
from counterpoise.weights.standardise import PRIORITY, Standardised
from counterpoise.weights.whitening import Whitening

# The part of the share that the number of private rows gets, where it is private. The features
# are centred at the synthetic means, so an error in it only scales the difference.
TOTAL_FRACTION = 0.05
# A white difference, which is about one of correlations, may well be as large as this, however
# small the others of its block are.
LIKELY_DIFFERENCE = 0.2
# How softly a mean is matched whose difference is not believed at all; one that is believed
# wholly is matched nearly exactly, but never without any softness, so that a solution exists.
SOFTNESS = 0.1
LEAST_SOFTNESS = 1e-6
# What was asked for in advance is a block by itself, of which such differences are expected; where
# rows have to stay effective, it gives way by this part of what the rest does.
ASKED = -1
GIVES_WAY = 0.01


@WEIGHTERS.register("moments")
@dataclass(frozen=True)
class Moments:
    """Weights that match noisy means of features.

    `target` names the column that models will predict; its relations are then asked for first.
    `questions` are what analysts will ask, as texts: what each needs comes before all else.
    `blocks` are recipes of features, each block shrunk by itself; by default they are chosen from
    the schema, the share and the noisy number of rows.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column
    >>> from counterpoise.vault import Budget
    >>> schema = Schema([Column.continuous("x", 0, 1), Column.boolean("y")])
    >>> generator = np.random.default_rng(0)
    >>> x = generator.uniform(size=5000)
    >>> private = pd.DataFrame({"x": x, "y": generator.uniform(size=5000) < x})
    >>> synthetic = private.assign(x=generator.permutation(x))
    >>> with Vault(private, schema, Budget(1.0, 1e-6), seed=1) as vault:
    ...     model = Moments().fit(vault, synthetic, vault.budget.whole)
    >>> weights = model.weigh(synthetic).normalised
    >>> def relation(table, weights):
    ...     return np.cov(table["x"], table["y"], aweights=weights)[0, 1]
    >>> [round(float(relation(*pair)), 2) for pair in
    ...  [(private, None), (synthetic, None), (synthetic, weights)]]
    [0.08, 0.0, 0.08]
    """

    target: str | None = None
    blocks: tuple[Recipe, ...] | None = None
    questions: tuple[str, ...] = ()

    is_free = False
    is_pooled = True

    def __post_init__(self) -> None:
        settle(self, questions=read_questions(self.questions))
        if self.target is not None:
            settle(self, target=column_name("target", self.target))
        if self.blocks is not None:
            settle(self, blocks=_checked_blocks(self.blocks))

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None,
        synthesizer: Redrawable | None = None,
    ) -> MomentModel:
        """Ask for the number of rows, where it is private, and for one noisy sum.

        With the `synthesizer`'s model, what it measured itself is corrected only as far as its
        own noise may have misled it.
        """
        check_request(vault, share, synthesizer)
        if share is None:
            raise BudgetError("weights 'moments' need a share of the budget")
        rows = coded_rows(vault.schema, synthetic)
        self._check(vault.schema, rows)
        total, sums_share = pay_for_total(vault, share, TOTAL_FRACTION)
        population = max(1.0, float(total.value))
        recipes = self.blocks or self._choose(vault, sums_share, population, len(rows))
        answerable = ask(self.questions, rows)
        asked = answerable.features
        blocks = [asked, *(recipe.over(rows) for recipe in recipes)]
        features = Features(tuple(block for made in blocks for block in made.blocks))
        standardised = Standardised.over(features, rows, len(asked.names))
        answer = vault.sums(standardised, standardised.bound, sums_share)
        is_asked = np.arange(len(features.names)) < len(asked.names)
        ready, size = standardised.ready(rows), len(features.names)
        values = FeatureRows(ready, standardised.single, size).held()
        whitening = Whitening.over(
            values,
            np.repeat(np.arange(len(blocks)) + ASKED, [len(made.names) for made in blocks]),
            np.where(is_asked, 0, np.where(is_measured(standardised, synthesizer), 1, 2)),
        )
        fine = FineCells.of(vault.schema, synthetic)
        plausible = plausible_variances(standardised, whitening.directions, rows, synthesizer, fine)
        # d = mean over private rows - mean over synthetic rows, in white coordinates
        differences = (answer.values / population - whitening.centre) @ whitening.directions
        noise_root = _deviation(answer) / population * whitening.directions
        noise = noise_root.T @ noise_root
        # How much more the noisy sum knows than the synthesizer, from 0 to 1
        loose = plausible / (plausible + np.diag(noise))
        alone = _shrink(differences, np.diag(noise), plausible, whitening.blocks)
        trust = _joint_trust(_prior(alone.trust, np.diag(noise)), noise)
        model = MomentModel(
            schema=vault.schema,
            standardised=standardised,
            whitening=whitening,
            differences=differences,
            noise_scale=_deviation(answer) / population,
            trust=trust,
            softness=LEAST_SOFTNESS + SOFTNESS * (1 - alone.trust) * loose,
            doubt=_doubt(alone, trust, differences, noise, plausible),
            missed=np.zeros(len(differences)),
            population=population,
            theta=np.zeros(len(differences)),
            private=answer.private,
            not_asked=answerable.reasons,
        )
        # The floor goes by how many private rows there may be, where the total is but noise.
        gives_way = np.where(whitening.blocks == ASKED, GIVES_WAY * loose, loose)
        return model.calibrated(values, population + 2 * total.deviation, gives_way)

    def _check(self, schema: Schema, rows: Coded) -> None:
        """Refuse what cannot be asked for before anything is paid."""
        if len(rows) == 0:
            raise MethodError("weights 'moments' need at least one synthetic row to compare with")
        if self.target is not None and self.target not in schema.names:
            raise MethodError(f"target: the schema has no column {self.target!r}")
        read_questions(self.questions, schema)
        one = rows.take(np.arange(1))
        if self.blocks and not any(recipe.over(one).names for recipe in self.blocks):
            raise MethodError("blocks: the recipes make no feature for this schema")

    def _choose(
        self, vault: Vault, share: Share, population: float, synthetic: int
    ) -> tuple[Recipe, ...]:
        def noise(bound: float, size: int) -> float:
            sensitivity = vault.budget.row_sensitivity(bound)
            if share.pure:
                return share.laplace_scale(sensitivity) * math.sqrt(size + 1) / population
            return share.gaussian_scale(sensitivity) / population

        # Beside what was asked for, the rest has but a part of the vector.
        less = math.sqrt(1 + PRIORITY) if self.questions else 1.0
        pairs = asked_pairs(self.questions, vault.schema)
        return choose_features(
            vault.schema,
            self.target,
            lambda bound, size: less * noise(bound, size),
            pairs,
            min(MOST_FEATURES, synthetic // 2),
        )


def _checked_blocks(blocks: Any) -> tuple[Recipe, ...]:
    if not isinstance(blocks, list | tuple):
        raise MethodError("blocks: expected a tuple of recipes of features, or None")
    return tuple(checked_recipe("blocks", block) for block in blocks)


def _shrink(
    differences: np.ndarray, noise: np.ndarray, plausible: np.ndarray, blocks: np.ndarray
) -> Shrinkage:
    """Empirical Bayes, block by block."""
    found = Shrinkage(*np.zeros((3, len(noise))))
    for block in np.unique(blocks):
        chosen = blocks == block
        part = shrink(differences[chosen], noise[chosen], plausible[chosen])
        if block == ASKED:
            # Few differences, and all of them wanted: never taken for smaller than this.
            wide = np.minimum(plausible[chosen], LIKELY_DIFFERENCE**2)
            trust = np.maximum(part.trust, wide / (wide + noise[chosen]))
            part = replace(
                part, trust=trust, variance=np.maximum(part.variance, noise[chosen] * trust)
            )
        found.trust[chosen], found.variance[chosen] = part.trust, part.variance
        found.density[chosen] = part.density
    return found


def _prior(trust: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The prior variance v under which a difference is believed that far: v / (v + s)."""
    found: np.ndarray = noise * trust / np.maximum(1 - trust, LEAST_SOFTNESS)
    return found


def _joint_trust(prior: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The matrix T of the shrunken difference T d, for noise that is correlated."""
    found: np.ndarray = np.linalg.solve(noise + np.diag(prior), np.diag(prior)).T
    return found


def _doubt(
    found: Shrinkage,
    trust: np.ndarray,
    differences: np.ndarray,
    noise: np.ndarray,
    plausible: np.ndarray,
) -> np.ndarray:
    """The squared error of each shrunken difference, as that of the private table's own means.

    Under the prior that was fitted to its block the others tell of its noise: V - V (V + S)^-1 V =
    T S is less than one alone leaves. But that prior is of the block: the few differences that are
    large among many that are not, which are those that somebody asks about, are shrunk with the
    rest. Under a prior as wide as a difference may well be, the shrunken one T d misses by
    W S + ((W - T) d)^2, with W d what would then be believed. Before d is seen either prior is as
    likely as the other; each counts by what it makes of d (Bayesian model averaging). Where less
    is plausible, because few rows carry a coordinate or the synthesizer knows it, the wide prior is
    the narrower; what the synthesizer's own noise may have done is in the base weights of
    replicates.
    """
    alone = np.diag(noise) * found.trust
    fitted = found.variance - alone + np.diag(trust @ noise)
    likely = LIKELY_DIFFERENCE**2 * np.minimum(plausible, 1)
    wider = _joint_trust(likely, noise)
    wide = np.diag(wider @ noise) + ((wider - trust) @ differences) ** 2
    density = normal_density(differences, likely + np.diag(noise))
    chance = density / (density + found.density)
    return fitted + chance * np.maximum(wide - fitted, 0)


def _deviation(answer: NoisySums) -> float:
    """The standard deviation of the noise on each sum."""
    if answer.law == "gaussian":
        return answer.scale
    # L2-Laplace in p dimensions: the norm is Gamma(p, b), so E|z|^2 = p (p + 1) b^2
    return answer.scale * math.sqrt(len(answer.values) + 1)
