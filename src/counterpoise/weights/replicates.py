"""Replicate weights: the release as it might have come out, many times over.

The law of all noise is public, so the whole procedure can be run again without the private table:
a fresh sample of as many private rows is drawn from the weighted synthetic table, the
synthesizer's measurements and the weights' sums get the shift of that sample and fresh noise, and
the synthetic rows are drawn again. Each replicate is a column of weights on the same rows; the
variance of any statistic is the mean over replicates of its squared distance from the full one,
and includes the privacy noise. This is the convention of official statistics, understood by every
survey package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.arguments import real_number, seed_or_none, whole_number
from counterpoise.errors import MethodError
from counterpoise.weights.balance import Kept
from counterpoise.weights.fine_cells import FineCells
from counterpoise.weights.protocol import Redrawable, WeightModel, redrawable

REPLICATES = 80
# Each replicate is a column of the table; nobody's standard error needs more of them.
MOST_REPLICATES = 10_000
# What a multinomial draw takes; a noisy number of rows beyond it is nothing but noise.
MOST_POPULATION = 2**62
# A row of all replicates lies together; columns are drawn a few at a time, and turned.
COLUMNS_AT_ONCE = 8


@dataclass(frozen=True, eq=False)
class Redraws:
    """What is random in the replicates, one column each, on the rows of a synthetic table."""

    base: np.ndarray  # how often a row was drawn, times what a fresh synthesizer makes of it
    resample: np.ndarray  # a fresh private sample, as weights of the synthetic rows; mean one
    weights: np.ndarray  # the weights that it was drawn from; mean one
    generator: np.random.Generator  # for the noise


def replicate_weights(
    model: WeightModel,
    synthetic: Any,
    count: int = REPLICATES,
    *,
    population: float,
    synthesizer: Redrawable | None = None,
    kept: Kept | None = None,
    seed: int | None = None,
) -> np.ndarray:
    """`count` columns of weights, each averaging to one, in single precision; free.

    `population` is the (noisy, or public) number of private rows. `synthesizer` is the model that
    the synthetic table was drawn from; without it the table is taken as given, and only the noise
    of the weights is shown. Rows that were `kept` of a pool stand for more or fewer of its rows
    each, and are weighed for what is left.
    """
    if not hasattr(model, "weigh") or not hasattr(model, "replicate"):
        raise MethodError("model: expected the weight model that a weighter's fit returns")
    if synthesizer is not None and redrawable(synthesizer) is None:
        raise MethodError("synthesizer: expected the model that the rows were drawn from, or None")
    count = whole_number("count", count, 0, MOST_REPLICATES)
    seed = seed_or_none(seed)
    population = real_number("population", population, "a number of rows")
    # A stream of its own: a table sampled with the same seed must not be resampled by the numbers
    # that it was made of.
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    weights = model.weigh(synthetic).normalised if kept is None else kept.weights
    rows = len(weights)
    if rows == 0:
        return np.empty((0, count), dtype=np.float32)
    size = max(1, min(round(population), MOST_POPULATION))
    resample = np.empty((rows, count), dtype=np.float32)
    base = np.empty((rows, count), dtype=np.float32)
    chances = weights / weights.sum()
    for first in range(0, count, COLUMNS_AT_ONCE):
        some = slice(first, min(first + COLUMNS_AT_ONCE, count))
        drawn = np.empty((2, some.stop - first, rows), dtype=np.float32)
        for column in range(some.stop - first):
            drawn[0, column] = generator.multinomial(size, chances) * (rows / size)
            # A multinomial draw of equal chances, but quicker
            drawn[1, column] = np.bincount(generator.integers(0, rows, rows), minlength=rows)
        resample[:, some], base[:, some] = drawn[0].T, drawn[1].T
    if kept is not None:
        base *= kept.stands_for.astype(np.float32)[:, None]
    if synthesizer is not None:
        codes = synthesizer.schema.encode(synthetic).codes
        base = synthesizer.redraw(codes, base, resample, weights, generator)
        fine = FineCells.of(synthesizer.schema, synthetic)
        base = fine.redraw(base, resample, weights, generator)
    redraws = Redraws(base, resample, weights, generator)
    return model.replicate(synthetic, redraws).astype(np.float32, copy=False)
