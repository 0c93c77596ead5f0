"""Lattices: columns whose rows all lie on multiples of one number, seen from some of them.

Where the largest heaps of a column are multiples of five, and no rows are found between them, the
smaller ones are multiples of five as well, whether or not each stands out of the noise. Then what
was found in a cell goes to the multiples within it. Everything here works on noised answers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np

from counterpoise.schema.grids import Grid, holds_one_value
from counterpoise.schema.pieces import Denoised

# A cell with more multiples than this is left as it is: where in it a row lies hardly matters.
MOST_POINTS = 16


def step_of(values: np.ndarray) -> Fraction:
    """The largest number that all values are multiples of.

    >>> step_of(np.array([20.0, 35.0, 50.0])), step_of(np.array([0.5, 0.3]))
    (Fraction(5, 1), Fraction(1, 10))
    """
    return reduce(_common_measure, map(exact, values))


def points_in(edges: np.ndarray, step: Fraction) -> np.ndarray:
    """How many multiples of a step each cell has.

    >>> points_in(np.array([36, 41, 50, 51]), Fraction(5)).tolist()
    [1, 1, 1]
    """
    return np.diff([math.ceil(exact(edge) / step) for edge in edges])


def onto(grid: Grid, found: Denoised, step: Fraction) -> tuple[Grid, Denoised]:
    """The same rows, those of every piece on the multiples of a step in it, by their density.

    Rows of a piece that has none are noise, and go to all others.
    """
    points = points_in(grid.edges, step)
    moved = (found.rows > 0) & (points <= MOST_POINTS)
    values = np.array(
        [
            float((math.ceil(exact(grid.edges[place]) / step) + k) * step)
            for place in np.flatnonzero(moved & (points > 0))
            for k in range(points[place])
        ],
        dtype=grid.edges.dtype,
    )
    after = values + 1 if values.dtype.kind == "i" else np.nextafter(values, math.inf)
    edges = np.unique(np.concatenate([grid.edges, values, after]))
    parents = np.searchsorted(grid.edges, edges[:-1], side="right") - 1
    is_point = np.isin(edges[:-1], values)
    # A multiple stands for as much of its piece as lies from it to the next, one that is a cell by
    # itself for its rows, and what is left as it is for its own width.
    widths = np.diff(edges.astype(float))
    densities = found.rows / np.where(
        holds_one_value(grid), float(step), np.diff(grid.edges.astype(float))
    )
    rows = densities[parents] * np.where(moved[parents], is_point * float(step), widths)
    wanted, given = _by_piece(found.pieces, found.rows), _by_piece(found.pieces[parents], rows)
    factors = np.divide(wanted, given, out=np.zeros(len(given)), where=given > 0)
    rows *= factors[found.pieces[parents]]
    if not rows.sum() > 0:
        return grid, found
    rows *= found.rows.sum() / rows.sum()
    pieces = np.where(rows > 0, found.pieces[parents], -1)
    finer = replace(grid, edges=edges, atoms=grid.atoms[parents] | is_point)
    return finer, in_order(rows, pieces, found.errors, found.slopes)


def in_order(
    rows: np.ndarray, pieces: np.ndarray, errors: np.ndarray, slopes: np.ndarray
) -> Denoised:
    """Rows by cells, with the pieces that have any numbered in the order of their cells."""
    used, first, places = np.unique(pieces, return_index=True, return_inverse=True)
    order = np.argsort(np.where(used >= 0, first, -1))
    ranks = np.argsort(order) - np.sum(used < 0)
    known = used[order][used[order] >= 0]
    return Denoised(rows, ranks[places], errors[known], slopes[known])


def _by_piece(pieces: np.ndarray, rows: np.ndarray) -> np.ndarray:
    # The last is for cells without a piece, so that its place is -1.
    size = int(pieces.max()) + 2
    return np.bincount(np.where(pieces < 0, size - 1, pieces), rows, minlength=size)


def exact(value: float) -> Fraction:
    """A number as it is written, not as its bits are."""
    return Fraction(str(value))


def _common_measure(left: Fraction, right: Fraction) -> Fraction:
    common = left.denominator * right.denominator
    return Fraction(math.gcd(int(left * common), int(right * common)), common)
