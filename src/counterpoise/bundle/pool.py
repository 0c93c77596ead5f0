"""The pool of a release: a few times the rows that are wanted, of which a balanced part is kept.

Rows are free, and weights that differ throw them away. So more rows are drawn and weighed than
leave, and those that leave are chosen by weight (see `counterpoise.weights.balance`). It is done
where the weights can be worked out for any row, and the pool stays small. A model of a few points
has no more rows to choose from: asked for no more than these, it gives all of them, and they carry
the weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.schema import Schema
from counterpoise.weights import WeightModel
from counterpoise.weights.balance import Kept, keep
from counterpoise.weights.moment_model import MomentModel

# Rows drawn for each that is kept, at most and at least, and how many may make a pool: as many as
# are weighed quickly, or twice as many for two of each; larger tables have rows to spare.
MOST, LEAST = 4, 2
QUICKLY_WEIGHED = 100_000


def pool_rows(weights: Any, rows: int, model: Any = None) -> int:
    """How many rows to draw for a weighter or its model, so that so many are kept.

    `model` is what they are drawn from.

    >>> from counterpoise.weights import Moments, Uniform
    >>> [pool_rows(Moments(), rows) for rows in (1_000, 40_000, 80_000, 150_000)]
    [4000, 80000, 160000, 150000]
    >>> pool_rows(Uniform(), 1_000)
    1000
    """
    is_coreset = rows <= getattr(model, "coreset", 0)
    if is_coreset or not getattr(weights, "is_pooled", False) or rows > QUICKLY_WEIGHED:
        return rows
    return rows * min(MOST, max(LEAST, QUICKLY_WEIGHED // max(1, rows)))


def balanced_part(
    pool: pd.DataFrame, schema: Schema, model: WeightModel, rows: int, seed: int | None
) -> tuple[pd.DataFrame, Kept | None]:
    """So many rows of a pool, chosen by weight, and how; all of it where there are no more."""
    if len(pool) <= rows or not rows:
        return pool, None
    # A stream of its own: rows must not be chosen by the numbers that they were made of.
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    coded = schema.encode(pool)
    # Models of other kinds may read values that have no place in codes.
    weights = model.weigh(coded if isinstance(model, MomentModel) else pool)
    kept = keep(coded.codes, schema.sizes, weights.normalised, rows, generator)
    part = pool.iloc[kept.places].reset_index(drop=True)
    return part, replace(kept, reached=weights.reached)
