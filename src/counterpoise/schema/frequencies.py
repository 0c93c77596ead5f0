"""From noisy counts of many categories to their shares, and to the few codes of their relations.

Most of thousands of categories are rarer than the noise is large. Each is taken to have what those
with such a noisy count have on average: the mean of its count given the noisy one, where the counts
of all categories are a sample from an unknown law, found by maximum likelihood (J. Kiefer and J.
Wolfowitz, Ann. Math. Statist. 27, 1956; C.-H. Zhang and W. Jiang, Ann. Statist. 37, 2009). So what
does not stand out shares nearly evenly, what nearly does has somewhat more, and nothing is
negative. The sum of thousands of noisy counts is itself noise, but the number of rows is known: the
categories that do not stand clear get what the others leave.

Clear of the noise are the largest, as many as leave no more than a tenth of them to chance (Y.
Benjamini and Y. Hochberg, JRSS B 57, 1995). Everything here works on noised answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from counterpoise.schema.column import Column
from counterpoise.schema.grouping import Grouping

# The part of the categories that stand clear which noise alone may have put there.
BY_CHANCE = 0.1
# Counts of more deviations than this are taken as they are: what they are is no longer in doubt.
CERTAIN = 8.0
# Steps of the maximisation; shares hardly change after them.
STEPS = 100
# Digits that a schema keeps of a share.
DIGITS = 9


def grouped(
    column: Column,
    counts: np.ndarray,
    deviation: float,
    total: float,
    height: Callable[[int, float], float],
    most: int,
) -> Column:
    """The column with a grouping into at most `most` codes, from a noisy count of each category.

    `total` is about the number of rows that are not null, and `height(draws, chance)` what none of
    so many counts of nothing exceeds, but for a chance.
    """
    clear = stand_clear(counts, height)
    rows, errors = expected_rows(counts, deviation, clear, total)
    whole = rows.sum()
    if column.kind == "ordinal":
        codes = neighbours(rows / whole, most)
    else:
        codes = _frequent(np.where(clear, counts, -np.inf), most)
    return replace(
        column,
        grouping=Grouping(
            tuple(codes.tolist()),
            tuple(np.round(rows / whole, DIGITS).tolist()),
            tuple(np.round(errors / whole, DIGITS).tolist()),
            round(float(deviation / whole), DIGITS),
        ),
    )


def stand_clear(counts: np.ndarray, height: Callable[[int, float], float]) -> np.ndarray:
    """Which counts stand clear of the noise, but for a tenth of them.

    >>> from math import log, sqrt
    >>> stand_clear(np.array([3.0, 40.0, -8.0]), lambda n, p: 9 * sqrt(2 * log(n / p))).tolist()
    [False, True, False]
    """
    order = np.argsort(-counts, kind="stable")
    size = len(counts)
    # Above the k-th of these heights, noise alone puts a tenth of k counts.
    heights = np.array([height(size, BY_CHANCE * rank) for rank in range(1, size + 1)])
    reached = np.flatnonzero(counts[order] >= heights)
    clear = np.zeros(size, dtype=bool)
    clear[order[: reached[-1] + 1 if len(reached) else 0]] = True
    return clear


def expected_rows(
    counts: np.ndarray, deviation: float, clear: np.ndarray, total: float
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of each category, about `total` in all, and the deviation of what is not known."""
    rows, errors = counts.astype(float), np.full(len(counts), float(deviation))
    doubtful = counts < CERTAIN * deviation
    if doubtful.any():
        rows[doubtful], errors[doubtful] = _posterior(counts[doubtful], deviation)
    errors[clear] = deviation
    if not clear.all():
        # sum of the clear ones + factor * sum of the others = total
        factor = max(0.0, total - rows[clear].sum()) / max(rows[~clear].sum(), 1e-300)
        rows[~clear] *= factor
        errors[~clear] *= min(factor, 1.0)
    if not rows.sum() > 0:
        rows = np.ones(len(counts))
    return rows, errors


def neighbours(shares: np.ndarray, most: int) -> np.ndarray:
    """Codes for ordered categories: at most `most` runs of neighbours.

    A category with more than its part of the rows is a run by itself; the stretches between such
    are cut into runs of about as many rows.

    >>> neighbours(np.array([0.1, 0.1, 0.5, 0.1, 0.1, 0.1]), 5).tolist()
    [0, 0, 1, 2, 3, 3]
    """
    largest = np.argsort(-shares, kind="stable")[: (most - 1) // 2]
    alone = {int(place) for place in largest if shares[place] * most > shares.sum()}
    bounds = sorted({0, len(shares), *alone, *(place + 1 for place in alone)})
    spare = most - (len(bounds) - 1)
    between = shares.sum() - shares[list(alone)].sum()
    codes, runs = np.zeros(len(shares), dtype=int), 0
    for first, last in pairwise(bounds):
        part = shares[first:last]
        whole = max(float(part.sum()), 1e-300)
        count = 1 if first in alone else 1 + int(spare * whole / max(between, whole))
        middles = (np.cumsum(part) - part / 2) / whole
        places = np.unique((middles * count).astype(int), return_inverse=True)[1]
        codes[first:last] = runs + places
        runs += int(places.max()) + 1
    return codes


def _frequent(counts: np.ndarray, most: int) -> np.ndarray:
    """Codes in which the largest are by themselves, in the order of the schema, the rest last."""
    order = np.argsort(-counts, kind="stable")
    alone = np.sort(order[: min(most - 1, int(np.isfinite(counts).sum()))])
    codes = np.full(len(counts), len(alone))
    codes[alone] = np.arange(len(alone))
    return codes


def _posterior(counts: np.ndarray, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the deviation, no more than the noise's, of each count given its noisy one."""
    values, places, times = np.unique(counts, return_inverse=True, return_counts=True)
    small = np.geomspace(0.02, 1.0, 20)[:-1]
    support = deviation * np.concatenate([[0.0], small, np.arange(1, CERTAIN + 0.25, 0.25)])
    squares = ((values[:, None] - support) / deviation) ** 2
    likelihood = np.exp((squares.min(axis=1, keepdims=True) - squares) / 2)
    prior = np.full(len(support), 1 / len(support))
    for _ in range(STEPS):
        # The step of expectation and maximisation: the mean of the posteriors is the next prior.
        joint = likelihood * prior
        prior = times / len(counts) @ (joint / joint.sum(axis=1, keepdims=True))
    joint = likelihood * prior
    posterior = joint / joint.sum(axis=1, keepdims=True)
    mean = posterior @ support
    spread = np.sqrt(np.maximum(posterior @ support**2 - mean**2, 0.0))
    return mean[places], np.minimum(spread, deviation)[places]
