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
# With more different rows than this part, of so many that are looked at, fits of fewer rows gain
# little; round numbers, not studied.
ENOUGH_ALIKE, ENOUGH_ROWS = 0.5, 10_000


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


def alike(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The first of the rows that are alike in y and x, and which of those each row is like.

    None where hardly any are, so that adding their weights up would gain little.

    >>> first, of_row = alike(np.array([1.0, 0.0, 1.0, 1.0]), np.ones((4, 1)))
    >>> first.tolist(), of_row.tolist()
    ([1, 0], [1, 0, 1, 1])
    """
    every = slice(None, None, max(1, len(y) // ENOUGH_ROWS))
    some = np.column_stack([y[every], x[every]])
    if len(np.unique(some, axis=0)) > ENOUGH_ALIKE * len(some):
        return None
    first, of_row = np.unique(y, return_index=True, return_inverse=True)[1:]
    for column in x.T:
        different, codes = np.unique(column, return_inverse=True)
        # Numbered anew each time, so that the product of their numbers cannot overflow.
        _, first, of_row = np.unique(
            of_row * len(different) + codes, return_index=True, return_inverse=True
        )
    return first, of_row
