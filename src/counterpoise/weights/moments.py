"""Moment weights: match what noisy sums say of the private table, as far as the noise allows.

If the ratio of private to synthetic density is exp(theta.f(x) - A), the private table enters the
likelihood only through the mean of f. So one noisy sum of bounded features is all that is asked;
what follows is free. In coordinates z in which the synthetic table is white, each feature less what
the ones before it explain, the difference between the tables was measured as d = theta + e, and

    e ~ N(0, S),  theta_j ~ N(0, V_j),  theta | d ~ N(T d, T S),  T = V (V + S)^-1.

Where the synthesizer counted the columns, theta is what its noise may have done, whose law is known
(`knowledge`). Where it did not, the synthetic rows say nothing of the private sample: theta is the
difference of the population, of which that sample is one more noise of variance 1/n, and V is
learnt from all such differences of a block (`shrinkage`): relations with a target or within a
question, and others; of numbers, and of lists of categories. The weights are those closest to
uniform that bring the synthetic table there,

    minimise  KL(w, uniform) + 1/2 sum_j (mean_w z_j - (T d)_j)^2 / softness_j,  softness_j = 3/k_j

for a coordinate that k rows carry: what few rows would have to show, they may not be able to. Where
too few rows would stay effective, all is softer, the more so, the less the noisy sum knows than the
synthesizer. Where d is no larger than its noise, or the synthesizer
knows better, T is near 0 and nothing moves. Charge: one sum of features of bounded norm, and a
count for the number of rows where that is private.
[PRIVACY: moment weights]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
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
from counterpoise.weights.moment_model import FEW_ROWS, MomentModel
from counterpoise.weights.protocol import (
    WEIGHTERS,
    Redrawable,
    check_request,
    coded_rows,
    pay_for_total,
)
from counterpoise.weights.row_blocks import FeatureRows
from counterpoise.weights.shrinkage import (
    TINY,
    USUAL,
    USUAL_OF_NUMBERS,
    Shrinkage,
    shrink,
)
from counterpoise.weights.standardise import PRIORITY, Standardised
from counterpoise.weights.whitening import Whitening

# The part of the share that the number of private rows gets, where it is private. The features
# are centred at the synthetic means, so an error in it only scales the difference.
TOTAL_FRACTION = 0.05
# The deviation of a difference that somebody asks about, which is about one of correlations: few,
# and all of them wanted, they are not taken for as small as most are. A round number; not studied.
ASKED_DIFFERENCE = 0.2
# The most that the deviation of a difference may be where the synthesizer counted the columns. What
# its noise may have done is known, but of values within a cell no more than what is possible: of
# squares of a skewed column that is known to three cells, a deviation of 1.5 where others have 0.1,
# so that whatever noise said was believed. A round number above nearly all others; not studied.
COUNTED_DIFFERENCE = 0.3
# A difference that is believed wholly has a prior of a million noises, not one without end.
LEAST_DOUBT = 1e-6
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
        known = is_measured(standardised, synthesizer)
        ready, size = standardised.ready(rows), len(features.names)
        values = FeatureRows(ready, standardised.single, size).held()
        whitening = Whitening.over(
            values,
            _blocks(blocks),
            np.where(is_asked, 1, np.where(known, 0, 2)),
        )
        fine = FineCells.of(vault.schema, synthetic)
        plausible = plausible_variances(standardised, whitening.directions, rows, synthesizer, fine)
        # d = mean over private rows - mean over synthetic rows, in white coordinates
        differences = (answer.values / population - whitening.centre) @ whitening.directions
        noise_root = _deviation(answer) / population * whitening.directions
        noise = noise_root.T @ noise_root
        follows = known[whitening.features]
        # Where the synthetic rows do not follow the private sample, its chance is noise as well.
        noise += np.diag(np.where(follows, 0.0, 1 / population))
        # How much more the noisy sum knows than the synthesizer, from 0 to 1
        loose = plausible / (plausible + np.diag(noise))
        alone = _shrink(differences, np.diag(noise), plausible, whitening.blocks, follows)
        prior = _prior(alone.trust, np.diag(noise))
        trust = _joint_trust(prior, noise)
        model = MomentModel(
            schema=vault.schema,
            standardised=standardised,
            whitening=whitening,
            differences=differences,
            noise_scale=_deviation(answer) / population,
            trust=trust,
            softness=FEW_ROWS / whitening.carried,
            prior=prior,
            doubt=_doubt(alone, trust, noise),
            follows=follows,
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


def _blocks(made: Sequence[Features]) -> np.ndarray:
    """The block of each feature: of those that were made together, those of one scale.

    The relation of two numbers is one coordinate; that of lists of categories is spread over many,
    each of which is smaller.
    """
    found: list[int] = []
    for place, features in enumerate(made, start=ASKED):
        sizes = Counter(features.groups)
        kinds = [sizes[each] > 1 for each in features.groups]
        found += [ASKED if place == ASKED else 2 * place + kind for kind in kinds]
    return np.array(found, dtype=int)


def _shrink(
    differences: np.ndarray,
    noise: np.ndarray,
    plausible: np.ndarray,
    blocks: np.ndarray,
    follows: np.ndarray,
) -> Shrinkage:
    """What is believed of each difference by itself: by a known law, or by that of its block."""
    is_asked = blocks == ASKED
    likely = np.minimum(plausible, np.where(is_asked, ASKED_DIFFERENCE, COUNTED_DIFFERENCE) ** 2)
    trust = likely / (likely + np.maximum(noise, TINY))
    found = Shrinkage(trust, noise * trust)
    for block in np.unique(blocks[~is_asked]):
        chosen = (blocks == block) & ~follows
        usual = USUAL if block % 2 else USUAL_OF_NUMBERS
        part = shrink(differences[chosen], noise[chosen], plausible[chosen], usual)
        found.trust[chosen], found.variance[chosen] = part.trust, part.variance
    return found


def _prior(trust: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The prior variance v under which a difference is believed that far: v / (v + s)."""
    found: np.ndarray = noise * trust / np.maximum(1 - trust, LEAST_DOUBT)
    return found


def _joint_trust(prior: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The matrix T of the shrunken difference T d, for noise that is correlated."""
    found: np.ndarray = np.linalg.solve(noise + np.diag(prior), np.diag(prior)).T
    return found


def _doubt(found: Shrinkage, trust: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The posterior variance of each difference, for noise that is correlated.

    Of a difference by itself it is `found`; that the others tell of its noise leaves the diagonal
    of V - V (V + S)^-1 V = T S in the place of t s.
    """
    doubt: np.ndarray = found.variance - np.diag(noise) * found.trust + np.diag(trust @ noise)
    return np.maximum(doubt, 0.0)


def _deviation(answer: NoisySums) -> float:
    """The standard deviation of the noise on each sum."""
    if answer.law == "gaussian":
        return answer.scale
    # L2-Laplace in p dimensions: the norm is Gamma(p, b), so E|z|^2 = p (p + 1) b^2
    return answer.scale * math.sqrt(len(answer.values) + 1)
