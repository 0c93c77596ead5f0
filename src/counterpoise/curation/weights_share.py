"""The weights' share of what is left for them and the synthesizer, by the number of rows.

A noisy mean need not be known better than the private rows know the population's. So moment weights
get what makes the noise on a standardised mean a quarter of its sampling error 1/sqrt(n), which
adds a sixteenth to its variance, but no more than a fifth (two fifths where questions are asked)
and no less than a fiftieth: the more rows and budget there are, the more is the synthesizer's. It
follows from the schema, the budget and the number of rows, where that is public or was paid for
before; else it is a fifth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from counterpoise.schema import Coded, Schema
from counterpoise.vault import REPLACE, Budget, Share
from counterpoise.weights import Moments
from counterpoise.weights.asked import ask, asked_pairs
from counterpoise.weights.choose_features import choose_features
from counterpoise.weights.moments import TOTAL_FRACTION
from counterpoise.weights.standardise import PRIORITY

if TYPE_CHECKING:
    from counterpoise.curation.plan import Plan

# What the noise on a mean may be of its sampling error, and the least that weights get.
OF_SAMPLING_ERROR = 0.25
LEAST_FRACTION = 0.02
# Rows of which the terms of a question are counted.
ANY_ROWS = 2000


@dataclass(frozen=True)
class AskedFeatures:
    """How many features moment weights ask for, the groups that they are in, and the questions'."""

    groups: int
    features: int
    asked: int

    @property
    def size(self) -> int:
        """All features."""
        return self.features + self.asked


def share_by_rows(plan: Plan, schema: Schema, rows: int) -> Plan:
    """The plan with the shares of synthesizer and weights settled by the number of rows.

    Nothing changes where the split was stated, or the weights do not ask for moments.
    """
    weighter, most = plan.weighter, plan.split
    own, others = plan.weights_share, plan.synthesizer_share
    if not plan.splits_by_rows or own is None or others is None or most is None:
        return plan
    assert isinstance(weighter, Moments)
    rows = max(1, rows)
    features = asked_features(weighter, plan.budget, schema, own, rows)
    noise = max(
        mean_noise(plan.budget, own, features, rows, asked)
        for asked in ((False, True) if features.asked else (False,))
    )
    # The deviation goes with 1/sqrt(share) for Gaussian noise, and with 1/share for Laplace noise.
    excess = noise * math.sqrt(rows) / OF_SAMPLING_ERROR
    fraction = min(most, max(LEAST_FRACTION, most * excess ** (1 if own.pure else 2)))
    both = Share(own.amount + others.amount, own.pure)
    return replace(
        plan,
        split=fraction,
        synthesizer_share=both.part(1 - fraction),
        weights_share=both.part(fraction),
    )


def why_split(plan: Plan) -> str:
    """In words, what made the weights' part of the budget what it is."""
    if not plan.splits_by_rows or plan.split is None:
        return ""
    if plan.split >= plan.most_split:
        return "the most they get: their noise is above a quarter of the sampling error"
    if plan.split <= LEAST_FRACTION:
        return "the least they get: their noise is below a quarter of the sampling error"
    return "so that their noise is a quarter of the sampling error"


def asked_features(
    method: Moments, budget: Budget, schema: Schema, share: Share, private_rows: int
) -> AskedFeatures:
    """What the moment weights would ask for."""
    asked = len(ask(method.questions, _any_rows(schema)).features.names) if method.questions else 0
    part = PRIORITY if asked else 0.0

    def noise(bound: float, size: int) -> float:
        return _deviation(budget, share, bound**2 * (1 + part), size, private_rows)

    pairs = asked_pairs(method.questions, schema)
    recipes = method.blocks or choose_features(schema, method.target, noise, pairs)
    nothing = schema.encode(pd.DataFrame({name: [] for name in schema.names}))
    found = [recipe.over(nothing) for recipe in recipes]
    groups = {group for features in found for group in features.groups}
    return AskedFeatures(len(groups), sum(len(features.names) for features in found), asked)


def mean_noise(
    budget: Budget, share: Share, features: AskedFeatures, private_rows: int, asked: bool = False
) -> float:
    """The deviation of the noise on a standardised mean, or on one that was asked for."""
    # A group has variance one, so the mean square of a row's norm is the number of groups.
    length = features.groups * (1 + (PRIORITY if features.asked else 0.0))
    if asked:
        length = features.asked * (1 + 1 / PRIORITY)
    return _deviation(budget, share, length, features.size, private_rows)


def _deviation(
    budget: Budget, share: Share, length: float, features: int, private_rows: int
) -> float:
    """The deviation of the noise on a mean of vectors whose norm squares to `length`."""
    sensitivity = budget.row_sensitivity(math.sqrt(length))
    if budget.neighbours is not REPLACE:
        share = share.part(1 - TOTAL_FRACTION)
    if share.pure:
        return share.laplace_scale(sensitivity) * math.sqrt(features + 1) / private_rows
    return share.gaussian_scale(sensitivity) / private_rows


def _any_rows(schema: Schema) -> Coded:
    """Some rows that the schema allows, all codes as likely: a model has its terms on them."""
    generator = np.random.default_rng(0)
    codes = [generator.integers(0, column.size, ANY_ROWS) for column in schema]
    return schema.encode(schema.decode(np.stack(codes, axis=1), generator))
