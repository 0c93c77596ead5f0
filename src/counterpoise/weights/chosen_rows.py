"""A part of many rows that tells nearly as much as all: those that can move a mean, and some more.

How far a row can move means is its squared norm in white coordinates, which is its leverage. Half
of the chance of a row is everybody's, half goes by its norm: what is rare is not missed, and each
row stands for as many as its chance says. The norms themselves need no white rows. Those of a few
random projections are as good for a chance (Drineas, Magdon-Ismail, Mahoney and Woodruff, 2012),
and whatever they are, a part that is weighted by its chances is not biased by them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from counterpoise.weights.row_blocks import HeldRows, RowBlocks

# Random directions for a norm: with so many it is right within a third, mostly.
PROJECTIONS = 16


def choose_rows(norms: np.ndarray, about: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of about so many rows, and what each stands for; the same every time.

    Systematic, so that the order of the rows is balanced.

    >>> places, stands_for = choose_rows(np.array([1.0, 1.0, 1.0, 97.0]), 2)
    >>> 3 in places, stands_for[places == 3].tolist()
    (True, [1.0])
    """
    if len(norms) <= about:
        return np.arange(len(norms)), np.ones(len(norms), dtype=np.float32)
    shares = 0.5 / len(norms) + 0.5 * norms / max(float(norms.sum()), 1e-300)
    chances = np.minimum(1.0, about * shares)
    upto = np.cumsum(chances)
    start = np.random.default_rng(0).uniform()
    places = np.searchsorted(upto, start + np.arange(int(upto[-1] - start) + 1))
    places = np.unique(places[places < len(norms)])
    return places, (1 / chances[places]).astype(np.float32)


def choose_part(rows: RowBlocks, about: int) -> tuple[HeldRows, np.ndarray]:
    """About so many of the rows in memory, with what each stands for, and the mean of all rows.

    What they stand for averages to one.
    """
    norms, mean = _norms_and_mean(rows)
    places, stands_for = choose_rows(norms, about)
    return HeldRows(rows.take(places), stands_for / stands_for.mean(dtype=float)), mean


def projected_norms(rows: RowBlocks) -> Callable[[np.ndarray], np.ndarray]:
    """What gives about the squared norm of each row, of its raw ones."""
    size = rows.shape[1]
    random = np.random.default_rng(0).normal(size=(size, min(PROJECTIONS, size)))
    vectors, offsets = (random, 0.0) if rows.turn is None else rows.turn.vectors(random)

    def norms(raw: np.ndarray) -> np.ndarray:
        projected = raw @ vectors.astype(raw.dtype) - offsets
        return np.asarray(np.einsum("ij,ij->i", projected, projected))

    return norms


def _norms_and_mean(rows: RowBlocks) -> tuple[np.ndarray, np.ndarray]:
    """About the squared norm of each row, and the mean of all, in one pass."""
    count, size = rows.shape
    norms_of, norms = projected_norms(rows), np.empty(count)
    sums = np.zeros(size if rows.turn is None else len(rows.turn.centre))
    for place, some in rows.raw_blocks():
        norms[place] = norms_of(some)
        sums += np.ones(len(some), dtype=some.dtype) @ some
    if rows.turn is not None:
        sums = rows.turn.sums(sums[:, None], np.array([count]))[:, 0]
    return norms, sums / count
