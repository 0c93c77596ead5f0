"""Rows from a calibrated junction tree, column by column.

Along the tree, each column is drawn given the columns of its clique that are drawn already. The
rows that agree on those form a group, and what is drawn is how many rows of the group get each
value, and which rows those are. "plain" draws the counts from a multinomial and shuffles, so that
rows are independent. "rounding" rounds the expected counts at random: each count is its
expectation rounded down or up, on average the expectation itself, and the sample is much closer
to the model (McKenna, Miklau and Sheldon 2021, synthetic data generation). It then deals the values
out evenly over the group, whose rows are sorted by columns that are drawn already and are no part
of the clique: of these the new column is independent, given the group, and with a shuffle its
tables with them would be as far from the model as those of independent rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from counterpoise.arguments import one_of, whole_number
from counterpoise.synthesizers.graphical.domain import Domain
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
    is_even = draw is rounded_counts
    rows = whole_number("rows", rows, 0)
    position = tree.domain.position
    # One contiguous array a column: each is read again for every clique that it is in.
    codes: list[Array] = [np.zeros(rows, dtype=np.int32)] * len(tree.domain)
    drawn: set[str] = set()
    for clique, separator, belief in zip(tree.cliques, tree.separators, beliefs, strict=True):
        group = np.zeros(rows, dtype=np.int64)
        for column in separator:
            group = group * tree.domain[column] + codes[position[column]]
        for place in range(len(separator), len(clique)):
            known, column = clique[:place], clique[place]
            table = projection(clique, belief.shape, (*known, column)).reduce(belief)
            counts = _group_counts(group, table.reshape(-1, tree.domain[column]), draw, rng)
            if is_even:
                strata = _strata(tree.domain, codes, drawn.difference(known), rows)
                chosen = _deal_evenly(group, counts, strata, rng)
            else:
                chosen = _shuffle_within(group, counts, rng)
            codes[position[column]] = chosen
            group = group * tree.domain[column] + chosen
            drawn.add(column)
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


def _group_counts(group: Array, table: Array, draw: CountDraw, rng: np.random.Generator) -> Array:
    """How many rows get each value of the next column, for every group that has rows.

    `table` has a row of probabilities, up to their sum, for each group.
    """
    sizes = np.bincount(group, minlength=len(table))
    present = np.flatnonzero(sizes)
    return draw(table[present], sizes[present], rng)


def _shuffle_within(group: Array, counts: Array, rng: np.random.Generator) -> Array:
    """Give the values of every group to its rows, in any order."""
    values = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
    # The fraction shuffles the rows of a group; the whole part keeps the groups together.
    place = np.argsort(group + rng.random(len(group)))
    chosen = np.empty(len(group), dtype=np.int32)
    chosen[place] = np.repeat(values, counts.reshape(-1))
    return chosen


def _strata(domain: Domain, codes: Sequence[Array], others: Collection[str], rows: int) -> Array:
    """A number for each row that sorts the rows by other columns, those of fewest values first.

    Of so many columns only as many are of use as leave a few rows together.
    """
    strata = np.zeros(rows, dtype=np.int64)
    number = 1
    for column in sorted(others, key=lambda name: (domain[name], domain.position[name])):
        number *= domain[column]
        if number > rows:
            break
        strata = strata * domain[column] + codes[domain.position[column]]
    return strata


def _deal_evenly(group: Array, counts: Array, strata: Array, rng: np.random.Generator) -> Array:
    """Give the values of every group to its rows, each value evenly over the rows by strata.

    The j-th of the c rows of a value has the place (j + u) / c in its group, with u uniform, so
    that any run of neighbours has about its share of every value. Where the deal begins is random:
    each row is then equally likely to get each of the values, and no table is off on average.
    """
    rows, flat = np.arange(len(group)), counts.reshape(-1)
    sizes = counts.sum(axis=1)
    begins = np.repeat(np.cumsum(flat) - flat, flat)
    places = (rows - begins + np.repeat(rng.random(len(flat)), flat)) / np.repeat(flat, flat)
    values = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
    of_group = np.repeat(np.arange(len(sizes)), sizes)
    dealt = np.repeat(values, flat)[np.argsort(of_group + places)]
    starts = (np.cumsum(sizes) - sizes)[of_group]
    turned = starts + (rows - starts + rng.integers(sizes)[of_group]) % sizes[of_group]
    # The fraction settles ties at random.
    order = np.argsort(group * (int(strata.max(initial=0)) + 1) + strata + rng.random(len(group)))
    chosen = np.empty(len(group), dtype=np.int32)
    chosen[order] = dealt[turned]
    return chosen
