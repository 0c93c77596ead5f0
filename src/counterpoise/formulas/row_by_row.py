"""Products and lengths of rows that are the same to the last bit in whatever company a row is.

A product of matrices in floating point adds up in an order that depends on how many rows there are
and on where a row stands, so that a row more shifts the last bits of all others. Summed over many
rows that can be any number of steps of a grid: it has no sensitivity. Here every product is exact,
so that the order is of no consequence. Of x with k columns, a row is cut into two whole numbers a
column,

    x = t 2^-p (U + 2^-p V) + r,    |U| <= 2^p, |V| <= 2^(p - 1), k 2^(2p) <= 2^53,

with t a power of two of the row's own, and so is each column of the matrix, into M and N with its
own t'. Then U M and U N + V M are sums of k and of 2k whole numbers of which no part exceeds 2^53,
up to which double precision has all of them. Their sum and the scaling are done one number at a
time. So what comes out of a row is a function of that row and of the matrix, whatever adds up. What
is left out, V N and r, is below 2 k 2^(-2p) t t': some k^2 / 2^50 of the largest numbers.

Of numpy it is taken that a function of one number, such as `exp`, gives the same wherever the
number stands. [PRIVACY: ground rule 11]
"""

from __future__ import annotations

import math

import numpy as np


def row_products(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The product of rows and a matrix; each row of it follows from that row alone.

    >>> row_products(np.array([[1.0, 2.0], [0.0, 0.1]]), np.array([[3.0], [4.0]])).tolist()
    [[11.0], [0.4]]
    """
    places = (53 - math.ceil(math.log2(max(rows.shape[1], 1)))) // 2
    u, v, of_row = _whole_parts(rows, places)
    m, n, of_column = (part.T for part in _whole_parts(matrix.T, places))
    with np.errstate(invalid="ignore"):
        found: np.ndarray = u @ m
        found += (np.hstack([u, v]) @ np.vstack([n, m])) * 0.5**places
    return np.ldexp(found, of_row + of_column - 2 * places)


def row_squares(rows: np.ndarray) -> np.ndarray:
    """The squared length of each row, added up from the first column to the last.

    >>> row_squares(np.array([[3.0, 4.0], [0.0, 2.0]])).tolist()
    [25.0, 4.0]
    """
    found = np.zeros(len(rows), dtype=rows.dtype)
    for column in rows.T:
        found += column * column
    return found


def _whole_parts(rows: np.ndarray, places: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, V and the binary logarithm of t, the least power of two above a row's numbers."""
    of_row = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1][:, None]
    scaled = np.ldexp(rows, places - of_row)
    u = np.rint(scaled)
    # What is no finite number stays none, in its own row.
    with np.errstate(invalid="ignore"):
        scaled -= u
    return u, np.rint(np.ldexp(scaled, places)), of_row
