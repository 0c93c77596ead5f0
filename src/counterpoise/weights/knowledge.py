"""What a synthesizer already knows: how far a feature's mean can be from the private one's.

Columns that the synthesizer measured together are wrong by its noise alone, whose law is public. So
the synthesizer is run again on paper, with its own model in the place of the private table: what
its answers then miss, they may have missed in truth. Numbers are known to their bin only; what
lies within, and the relations of columns that were not measured together, may differ by anything.
Weights should then not follow a noisy difference that is larger than this. All of it is free.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterpoise.schema import Coded
from counterpoise.weights.fine_cells import FineCells
from counterpoise.weights.protocol import Redrawable
from counterpoise.weights.standardise import PART_ROWS, Standardised, chunks, spread

REDRAWS = 30
MOST_ROWS = 10_000
# The variance of true differences between means of normal features, in units of theirs, is hardly
# larger. It matters where the noise is as large, which then moves nothing.
LARGEST_DIFFERENCE = 10.0
NORMAL_KURTOSIS = 3.0
NO_SHAPES = FineCells()


def is_measured(features: Standardised, synthesizer: Redrawable | None) -> np.ndarray:
    """For each feature, whether the synthesizer measured its columns together."""
    sets = [] if synthesizer is None else [set(c) for c in synthesizer.measured_columns]
    columns = features.features.columns
    known = {needed: any(set(needed) <= there for there in sets) for needed in set(columns)}
    return np.array([known[needed] for needed in columns], dtype=bool)


def plausible_variances(
    features: Standardised,
    directions: np.ndarray,
    rows: Coded,
    synthesizer: Redrawable | None,
    fine: FineCells = NO_SHAPES,
) -> np.ndarray:
    """For each direction in the features, how large the squared difference of means may well be.

    `rows` are the synthetic ones, `fine` the cells that they have in the shapes of their columns;
    without a synthesizer nothing is known of them.
    """
    chosen_rows = spread(len(rows), MOST_ROWS)
    some, fine = rows.take(chosen_rows), fine.take(chosen_rows)
    # Before there are values of so many features: this takes the most memory of all.
    redrawn = None if synthesizer is None else _redrawn(some, synthesizer, fine)
    # What is known is of the features themselves, not of clipped ones.
    unclipped = replace(features, bound=np.inf)
    values = unclipped.single(some)
    within = np.zeros(directions.shape[1])
    measured, sets = is_measured(features, synthesizer), features.features.columns
    for columns in dict.fromkeys(sets):
        chosen = np.array([there == columns for there in sets]) & measured
        if chosen.any():
            covariance = _within_cells(values[:, chosen], _cells(columns, some, fine))
            within += ((covariance @ directions[chosen]) * directions[chosen]).sum(axis=0)
    values -= values.mean(axis=0, dtype=float).astype(values.dtype)
    along = values @ directions.astype(values.dtype)
    squares = along**2
    # What features that hardly differ from one another may each do does not add up in a direction.
    found = np.minimum(
        directions.T**2 @ np.where(measured, 0.0, _unmeasured(unclipped, rows)),
        _largest(squares.mean(axis=0, dtype=float), (squares**2).mean(axis=0, dtype=float)),
    )
    found += within
    if redrawn is not None:
        found += ((redrawn.T @ along / len(some)) ** 2).mean(axis=0)
    return np.minimum(found, LARGEST_DIFFERENCE)


def _unmeasured(features: Standardised, rows: Coded) -> np.ndarray:
    """How large the squared difference of means may be where nothing was measured."""
    # The rows that the coordinates are made of; what is too rare for these has none.
    some = rows.take(spread(len(rows), PART_ROWS))
    variance, fourth = np.zeros((2, len(features.names)))
    for chunk in chunks(some):
        squares = features(chunk)
        squares *= squares  # unclipped features have mean zero
        variance += squares.sum(axis=0) / len(some)
        squares *= squares
        fourth += squares.sum(axis=0) / len(some)
    return _largest(variance, fourth)


def _largest(variance: np.ndarray, fourth: np.ndarray) -> np.ndarray:
    """How large the squared difference may be of means of this variance and fourth moment.

    What is far from its mean in a part p of the rows has a kurtosis of about 1 / p, and a mean that
    moves by sqrt(p) deviations when that part is doubled: the rarer, the less.
    """
    kurtosis = np.maximum(
        np.maximum(fourth, np.finfo(float).tiny) / np.maximum(variance, 1e-150) ** 2,
        NORMAL_KURTOSIS,
    )
    return LARGEST_DIFFERENCE * NORMAL_KURTOSIS / kurtosis * variance


def _redrawn(rows: Coded, synthesizer: Redrawable, fine: FineCells) -> np.ndarray:
    """Weights of rows as a synthesizer would have them that is given its own model, many times."""
    same, generator = np.ones((len(rows), REDRAWS)), np.random.default_rng(0)
    tables = synthesizer.redrawn_tables(rows.codes, same, same[:, 0], generator)
    weights = tables.weights(rows.codes, same)
    return fine.redraw(weights, same, same[:, 0], generator)


def _cells(columns: tuple[str, ...], rows: Coded, fine: FineCells) -> np.ndarray:
    """The cells to which these columns are known: fine ones of a single column, if it has any."""
    found = fine.cells_of(columns)
    if found is not None:
        return found[:, None]
    return np.ascontiguousarray(rows.codes[:, [rows.schema.names.index(name) for name in columns]])


def _within_cells(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The covariance of means, when the rows of a cell of these codes move within it together.

    sum_c p_c^2 Cov_c over the cells c
    """
    rows, cell = len(codes), np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        # A number for every combination so far, without gaps: no product of many can be too large.
        cell = np.unique(cell * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    counts = np.bincount(cell)
    means = np.stack([np.bincount(cell, column) for column in values.T], axis=1) / counts[:, None]
    # p_c^2 Cov_c = (1/N^2) sum_i n_c (x_i - mean_c)(x_i - mean_c)'
    left = (values - means[cell]) * np.sqrt(counts[cell])[:, None] / rows
    found: np.ndarray = left.T @ left
    return found
