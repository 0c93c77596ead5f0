"""Replicate weights: the release as it might have come out, many times over.

The law of all noise is public, so the whole procedure can be run again without the private table:
a fresh sample of as many private rows is drawn from the weighted synthetic table, the
synthesizer's measurements and the weights' sums get the shift of that sample and fresh noise, and
the synthetic rows are drawn again. Each replicate is a column of weights on the same rows; the
variance of any statistic is the mean over replicates of its squared distance from the full one,
over the square of the part of the way that replicates go (`protocol.replicate_part`), and includes
the privacy noise. This is the convention of official statistics, understood by every survey package
(R. E. Fay, "Theory and application of replicate weighting for variance calculations", 1989).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from counterpoise.arguments import real_number, seed_or_none, whole_number
from counterpoise.errors import MethodError
from counterpoise.schema import Schema
from counterpoise.weights.balance import Kept
from counterpoise.weights.fine_cells import FineCells, RedrawnShape
from counterpoise.weights.protocol import Redrawable, Redrawn, WeightModel, redrawable
from counterpoise.weights.resampling import Resampling

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
    start: np.ndarray  # what `base` is where nothing is drawn again; mean one
    generator: np.random.Generator  # for the noise


class Tilting(Protocol):
    """What a weight model's `replicating` found: the weights of other rows of its release."""

    def weights(self, synthetic: Any, base: np.ndarray) -> np.ndarray:
        """The base weights of rows, a column a replicate, tilted; each averages to one."""
        ...


@dataclass(frozen=True, eq=False)
class Replication:
    """What was drawn for the replicates of some rows, for any other rows of the same release.

    Another private sample, other noise and what they make of the synthesizer and the weights are
    the same for all rows; only the synthetic rows themselves are drawn again for each.
    """

    count: int
    tables: Redrawn | None  # of the synthesizer
    schema: Schema | None  # of the synthesizer's rows
    shapes: tuple[RedrawnShape | None, ...]
    tilts: Tilting

    def weights(self, synthetic: Any, generator: np.random.Generator) -> np.ndarray:
        """The replicate weights of other rows, each averaging to one, in single precision."""
        rows = len(synthetic)
        base = np.empty((rows, self.count), dtype=np.float32)
        for some in _columns_at_once(self.count):
            base[:, some] = np.stack(
                [_redrawn_rows(rows, generator) for _ in range(some.stop - some.start)], axis=1
            )
        coded = synthetic
        if self.tables is not None and self.schema is not None:
            coded = self.schema.encode(synthetic)
            base = self.tables.weights(coded.codes, base)
            base = FineCells.of(self.schema, synthetic).weights(base, self.shapes)
        return self.tilts.weights(coded, base).astype(np.float32, copy=False)


def can_replicate_in_parts(model: Any) -> bool:
    """Whether what is drawn for the replicates of some rows serves others: see `Replication`.

    The weights' model has to say so; whatever can be redrawn can be for any rows.
    """
    return hasattr(model, "replicating")


def replicate_weights(
    model: WeightModel,
    synthetic: Any,
    count: int = REPLICATES,
    *,
    population: float,
    synthesizer: Redrawable | None = None,
    kept: Kept | None = None,
    weights: np.ndarray | None = None,
    seed: int | None = None,
) -> np.ndarray:
    """`count` columns of weights, each averaging to one, in single precision; free.

    `population` is the (noisy, or public) number of private rows. `synthesizer` is the model that
    the synthetic table was drawn from; without it the table is taken as given, and only the noise
    of the weights is shown. Rows that were `kept` of a pool stand for more or fewer of its rows
    each, and are weighed for what is left. `weights` are those of the rows, averaging to one, where
    they are known already.
    """
    redraws, _, _ = _redraw(model, synthetic, count, population, synthesizer, kept, weights, seed)
    if not len(redraws.weights):
        return redraws.base
    return model.replicate(synthetic, redraws).astype(np.float32, copy=False)


def replicate_first(
    model: Any,
    synthetic: Any,
    count: int,
    *,
    population: float,
    synthesizer: Any = None,
    weights: np.ndarray | None = None,
    seed: int | None = None,
) -> tuple[np.ndarray, Replication]:
    """The `replicate_weights` of some rows, and what gives other rows theirs.

    Only where `can_replicate_in_parts` says so.
    """
    redraws, tables, shapes = _redraw(
        model, synthetic, count, population, synthesizer, None, weights, seed
    )
    columns, tilts = model.replicating(synthetic, redraws)
    schema = None if synthesizer is None else synthesizer.schema
    found = Replication(redraws.base.shape[1], tables, schema, shapes, tilts)
    return columns.astype(np.float32, copy=False), found


def _redraw(
    model: WeightModel,
    synthetic: Any,
    count: int,
    population: float,
    synthesizer: Any,
    kept: Kept | None,
    weights: np.ndarray | None,
    seed: int | None,
) -> tuple[Redraws, Redrawn | None, tuple[RedrawnShape | None, ...]]:
    """What is random in the replicates of rows, and what of it the synthesizer's tables are."""
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
    if kept is not None:
        weights = kept.weights
    elif weights is None:
        weights = model.weigh(synthetic).normalised
    rows = len(weights)
    if rows == 0:
        nothing = np.empty((0, count), dtype=np.float32)
        return Redraws(nothing, nothing, weights, weights, generator), None, ()
    size = max(1, min(round(population), MOST_POPULATION))
    resample = np.empty((rows, count), dtype=np.float32)
    base = np.empty((rows, count), dtype=np.float32)
    resampling = Resampling.of(weights)
    for some in _columns_at_once(count):
        drawn = np.empty((2, some.stop - some.start, rows), dtype=np.float32)
        for column in range(some.stop - some.start):
            drawn[0, column] = resampling.draw(size, generator) * (rows / size)
            drawn[1, column] = _redrawn_rows(rows, generator)
        resample[:, some], base[:, some] = drawn[0].T, drawn[1].T
    start = np.ones(rows) if kept is None else kept.stands_for
    if kept is not None:
        base *= start.astype(np.float32)[:, None]
    tables: Redrawn | None = None
    shapes: tuple[RedrawnShape | None, ...] = ()
    if synthesizer is not None:
        codes = synthesizer.schema.encode(synthetic).codes
        tables = synthesizer.redrawn_tables(codes, resample, weights, generator)
        base = tables.weights(codes, base)
        fine = FineCells.of(synthesizer.schema, synthetic)
        shapes = fine.redrawn(resample, weights, generator)
        base = fine.weights(base, shapes)
    return Redraws(base, resample, weights, start, generator), tables, shapes


def _columns_at_once(count: int) -> Iterator[slice]:
    for first in range(0, count, COLUMNS_AT_ONCE):
        yield slice(first, min(first + COLUMNS_AT_ONCE, count))


def _redrawn_rows(rows: int, generator: np.random.Generator) -> np.ndarray:
    """How often each of so many rows is drawn: a multinomial of equal chances, but quicker."""
    return np.bincount(generator.integers(0, rows, rows), minlength=rows)
