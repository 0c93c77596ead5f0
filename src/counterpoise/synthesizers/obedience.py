"""Rows of a model that obey the public rules of a schema, by bounded rejection.

Rows that break a check are drawn again, until there are enough or hardly any are kept. What is
kept has the density of the model within the rules, p_A(x) = p(x) 1[x in A] / p(A), whose counts
are no longer those that the model was fitted to: where `end >= start`, early starts are kept more
often. The model says what its counts should be, so a pool of kept rows is raked to the model's own
tables and rows are drawn from it by these weights. Raking finds the density closest to p_A with
the given tables (Csiszár 1975), exp(theta.f(x)) 1[x in A] up to a constant: it is the model that
would have been fitted had the cells outside A been known to be empty.

So nothing changes for what rests on the rows. Replicate weights are ratios of a redrawn model to
this one; 1[x in A] stands in both, and p(A) is a constant that normalising removes. Their first
order takes the covariance of cells from these rows, which is that of the density above, and rakes
to its tables. Where noise, or private rows that break the rules, put counts outside A, the tables
contradict each other: rows then follow the smaller ones, replicates the larger, and intervals are
wider by the difference. All of it is post-processing, and free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.errors import SchemaError
from counterpoise.schema import Schema
from counterpoise.schema.row_rules import all_obeyed, obeyed
from counterpoise.synthesizers.protocol import Model

# The smallest part of the model's rows that may obey, judged by this many rows at least.
LEAST_OBEYED, FEWEST_TRIED = 0.001, 20_000
# Rows a round, and rows of the pool for each that is wanted: twice, while that is quickly drawn.
MOST_A_ROUND = 250_000
POOL, LARGE = 2, 100_000
SWEEPS, CLOSE = 50, 1e-3
# A row of the pool is taken no more often than this; a cell with so few rows is hardly possible.
MOST_COPIES = 20.0
TRIES = 8


def draw(model: Model, schema: Schema, rows: int, seed: int | None = None) -> pd.DataFrame:
    """A table of the modelled columns whose rows obey the rules of `schema`; free.

    Raises a SchemaError that names a check when less than one row in a thousand obeys.
    """
    first = model.sample(rows, seed=seed)
    if not (schema.rules.checks or schema.rules.derived):
        return first
    kept = all_obeyed(schema, first)
    if kept.all():
        return first
    # A stream of its own: rows must not be chosen by the numbers that they were made of.
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    pool = _pool(model, schema, first[kept], rows, generator)
    codes = schema.encode(pool).codes
    weights = _raked(model, codes)
    order = generator.permutation(len(pool))
    chosen = generator.permutation(order[_systematic(weights[order], rows, generator)])
    return _with_fresh_values(schema, pool, codes, chosen, generator)


def _pool(
    model: Model, schema: Schema, kept: pd.DataFrame, rows: int, generator: np.random.Generator
) -> pd.DataFrame:
    """At least as many rows that obey as are wanted, and a few times more where that is cheap."""
    found, have, tried = [kept], len(kept), rows
    wanted = POOL * max(rows, 1_000) if rows <= LARGE else rows
    while have < wanted:
        rate = max(have, 1) / max(tried, 1)
        asked = int(min(max((wanted - have) / rate * 1.1, 1_000), MOST_A_ROUND))
        drawn = model.sample(asked, seed=int(generator.integers(2**63)))
        obey = all_obeyed(schema, drawn)
        found.append(drawn[obey])
        have, tried = have + int(obey.sum()), tried + asked
        if tried >= FEWEST_TRIED and have < LEAST_OBEYED * tried:
            _refuse(schema, drawn)
    return pd.concat(found, ignore_index=True)


def _refuse(schema: Schema, drawn: pd.DataFrame) -> None:
    """Name the rule that the fewest rows obey."""
    shares = {rule: float(kept.mean()) for rule, kept in obeyed(schema, drawn).items()}
    worst = min(shares, key=lambda rule: shares[rule])
    together = " (and fewer obey all rules together)" if shares[worst] >= LEAST_OBEYED else ""
    raise SchemaError(
        f"{worst}: it contradicts the model, {shares[worst]:.2g} of whose rows obey{together}: "
        "correct the rule, state bins whose edges tell apart what it allows from what it does "
        "not, or derive the column that it determines"
    )


def _raked(model: Any, codes: np.ndarray) -> np.ndarray:
    """Weights under which rows have the counts of their model; equal ones where it has none."""
    weights = np.ones(len(codes))
    if not (hasattr(model, "measured_columns") and hasattr(model, "marginal")):
        return weights
    cells, tables = [], []
    # A large table loses what it has outside the rules, be it noise; a small one, raked to last,
    # says how much there is of everything.
    for columns in _by_size(model.measured_columns):
        table = np.asarray(model.marginal(columns).values, dtype=float)
        places = tuple(codes[:, model.schema.index(name)] for name in columns)
        cell = np.ravel_multi_index(places, table.shape)
        # Cells outside the rules have no rows; what the model has in them goes to the others.
        there = np.bincount(cell, minlength=table.size) > 0
        target = np.where(there, table.reshape(-1), 0.0)
        if target.sum() > 0:
            cells.append(cell)
            tables.append(target * (len(codes) / target.sum()))
    for _ in range(SWEEPS):
        before = weights
        for cell, target in zip(cells, tables, strict=True):
            totals = np.bincount(cell, weights, minlength=target.size)
            factors = np.divide(target, totals, out=np.zeros_like(totals), where=totals > 0)
            weights = np.minimum(weights * factors[cell], MOST_COPIES)
        if not weights.any():
            return np.ones(len(codes))
        if np.abs(weights - before).mean() < CLOSE:
            break
    return weights


def _by_size(sets: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The sets of columns, each once, those with the most columns first."""
    unique = {frozenset(columns): tuple(columns) for columns in sets}
    return sorted(unique.values(), key=len, reverse=True)


def _systematic(weights: np.ndarray, rows: int, generator: np.random.Generator) -> np.ndarray:
    """As many places as rows, each as often as its weight says, rounded down or up."""
    reached = np.cumsum(weights)
    points = (generator.random() + np.arange(rows)) * (reached[-1] / max(rows, 1))
    return np.minimum(np.searchsorted(reached, points, side="right"), len(weights) - 1)


def _with_fresh_values(
    schema: Schema,
    pool: pd.DataFrame,
    codes: np.ndarray,
    chosen: np.ndarray,
    generator: np.random.Generator,
) -> pd.DataFrame:
    """The chosen rows; copies of a row get other values within the same cells, where any obey."""
    stack, places = [pool], chosen.copy()
    _, once = np.unique(chosen, return_index=True)
    copies = np.setdiff1d(np.arange(len(chosen)), once)
    height = len(pool)
    for _ in range(TRIES):
        if not len(copies):
            break
        again = schema.modelled.decode(codes[chosen[copies]], generator)
        obey = all_obeyed(schema, again)
        places[copies[obey]] = height + np.arange(int(obey.sum()))
        height += int(obey.sum())
        stack.append(again[obey])
        copies = copies[~obey]
    return pd.concat(stack, ignore_index=True).iloc[places].reset_index(drop=True)
