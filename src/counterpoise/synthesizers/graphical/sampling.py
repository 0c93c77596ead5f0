"""Rows from a calibrated junction tree, column by column.

Along the tree, each column is drawn given the columns of its clique that are drawn already. The
rows that agree on those form a group, and what is drawn is how many rows of the group get each
value; which rows they are is a shuffle. "plain" draws these counts from a multinomial, so that
rows are independent. "rounding" rounds the expected counts at random: each count is its
expectation rounded down or up, on average the expectation itself, and the sample is much closer
to the model (McKenna, Miklau and Sheldon 2021, synthetic data generation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from counterpoise.arguments import one_of, whole_number
from counterpoise.synthesizers.graphical.factor import Array, projection
from counterpoise.synthesizers.graphical.junction_tree import JunctionTree

CountDraw = Callable[[Array, Array, np.random.Generator], Array]


def draw_rows(
    tree: JunctionTree,
    beliefs: Sequence[Array],
    rows: int,
    rng: np.random.Generator,
    method: str = "rounding",
) -> Array:
    """Draw `rows` rows of codes, with the columns in the order of the domain."""
    draw = COUNT_DRAWS[one_of("method", method, COUNT_DRAWS)]
    rows = whole_number("rows", rows, 0)
    position = tree.domain.position
    # One contiguous array a column: each is read again for every clique that it is in.
    codes: list[Array] = [np.zeros(rows, dtype=np.int32)] * len(tree.domain)
    for clique, separator, belief in zip(tree.cliques, tree.separators, beliefs, strict=True):
        group = np.zeros(rows, dtype=np.int64)
        for column in separator:
            group = group * tree.domain[column] + codes[position[column]]
        for place in range(len(separator), len(clique)):
            known, column = clique[:place], clique[place]
            table = projection(clique, belief.shape, (*known, column)).reduce(belief)
            chosen = _fill_groups(group, table.reshape(-1, tree.domain[column]), draw, rng)
            codes[position[column]] = chosen
            group = group * tree.domain[column] + chosen
    return np.stack(codes, axis=1) if codes else np.zeros((rows, 0), dtype=np.int32)


def rounded_counts(probabilities: Array, sizes: Array, rng: np.random.Generator) -> Array:
    """For every group, a row: its size times its probabilities, rounded to integers without bias.

    With F_t the running sums of the expected counts and u uniform, value t gets
    floor(F_t + u) - floor(F_(t-1) + u) rows. This is systematic sampling; unlike a draw of the
    remainders without replacement, it is unbiased: the integer part of an
    expectation is certain, its remainder is exactly the probability of one row more, and no running
    sum is off by more than one, so the quantiles of an ordered column hold as well.

    >>> rounded_counts(np.array([[0.4, 0.6]]), np.array([5]), np.random.default_rng(0))
    array([[2, 3]])
    """
    running = np.cumsum(probabilities, axis=1)
    # Dividing by the last sum makes that sum 1 exactly: no group loses or gains a row to rounding.
    running /= running[:, -1:].copy()
    running *= sizes[:, None]
    running += rng.random((len(sizes), 1))
    reached = np.minimum(np.floor(running, out=running), sizes[:, None])
    return np.diff(reached, axis=1, prepend=0.0).astype(np.int64)


def multinomial_counts(probabilities: Array, sizes: Array, rng: np.random.Generator) -> Array:
    """For every group, a row: how many of its rows draw each value independently."""
    return rng.multinomial(sizes, probabilities / probabilities.sum(axis=1, keepdims=True))


COUNT_DRAWS: dict[str, CountDraw] = {"rounding": rounded_counts, "plain": multinomial_counts}


def _fill_groups(group: Array, table: Array, draw: CountDraw, rng: np.random.Generator) -> Array:
    """Give every row a value of the next column, given the group it is in.

    `table` has a row of probabilities, up to their sum, for each group.
    """
    sizes = np.bincount(group, minlength=len(table))
    present = np.flatnonzero(sizes)
    counts = draw(table[present], sizes[present], rng)
    values = np.arange(table.shape[1], dtype=np.int32)
    grouped = np.repeat(np.tile(values, len(present)), counts.reshape(-1))
    # The fraction shuffles the rows of a group; the whole part keeps the groups together.
    place = np.argsort(group + rng.random(len(group)))
    chosen = np.empty(len(group), dtype=np.int32)
    chosen[place] = grouped
    return chosen
