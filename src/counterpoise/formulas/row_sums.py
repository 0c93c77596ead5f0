"""Sums and triangles of a tall matrix, a block of rows at a time.

A model of many rows asks its matrix for X'WX and for the triangle R of a QR decomposition. Both
add up over blocks, so that no second matrix of that size is ever made: the triangle of all rows is
that of the triangles of the blocks (J. Demmel and others, "Communication-optimal parallel and
sequential QR and LU factorizations", SIAM Journal on Scientific Computing, 2012).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Few enough for a cache with some dozen terms, and enough for products to be quick.
BLOCK_ROWS = 32_768


def row_blocks(rows: int) -> Iterator[slice]:
    """The blocks of so many rows."""
    for start in range(0, rows, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, rows))


def weighted_gram(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """X' W X.

    >>> weighted_gram(np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([1.0, 3.0])).tolist()
    [[4.0, 6.0], [6.0, 12.0]]
    """
    found = np.zeros((x.shape[1], x.shape[1]))
    for some in row_blocks(len(x)):
        found += (x[some] * weights[some, None]).T @ x[some]
    return found


def triangle(x: np.ndarray, factors: np.ndarray, beside: np.ndarray | None = None) -> np.ndarray:
    """The triangle R of the rows of X, each times its factor; `beside` is one column more.

    >>> found = triangle(np.array([[3.0], [4.0]]), np.ones(2))
    >>> np.abs(found).tolist()
    [[5.0]]
    """
    width = x.shape[1] + (beside is not None)
    found = np.zeros((0, width))
    for some in row_blocks(len(x)):
        rows = x[some] if beside is None else np.column_stack([x[some], beside[some]])
        found = np.asarray(np.linalg.qr(np.vstack([found, rows * factors[some, None]]), mode="r"))
    return found
