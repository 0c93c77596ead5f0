"""The marginals of a model as the gradient of its log-partition function, by matrix products.

    d log Z / d theta_i = p_i,

so one sweep that sums the product of all factors exp(theta_i) down to Z, and the same sweep
backwards, give every measured marginal. No clique table is built on the way: within a clique the
factors and the messages of its children are contracted two at a time, those first that are little
work and leave little behind, and a pair is one batched matrix product. A large clique that holds
many small measurements so costs three products of its size, where Hugin propagation reads and
writes its table a dozen times. This is variable elimination with reverse-mode differentiation
(Darwiche 2003, A differential approach to inference in Bayesian networks), in the elimination order
of the tree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from counterpoise.synthesizers.graphical.domain import Columns, Domain
from counterpoise.synthesizers.graphical.factor import Array, Projection, projection
from counterpoise.synthesizers.graphical.inference import SMALLEST_MESSAGE, Schedule

Axes = tuple[int, ...]


@dataclass(frozen=True)
class _Operand:
    """A table of an earlier step, and how it is turned into a batch of matrices."""

    place: int
    shape: Axes
    axes: Axes  # the order in which its axes form batch, rows and columns
    back: Axes  # the inverse of that order
    turned: Axes  # the shape in that order
    matrices: tuple[int, int, int]

    def take(self, tables: Sequence[Array]) -> Array:
        """The table as a batch of matrices."""
        table = tables[self.place]
        if len(self.axes) > 1:
            table = table.reshape(self.shape).transpose(self.axes)
        return table.reshape(self.matrices)

    def give(self, gradients: list[Array], matrices: Array) -> None:
        """Lay the gradient out as the table is."""
        if len(self.back) > 1:
            matrices = matrices.reshape(self.turned).transpose(self.back)
        gradients[self.place] = matrices.reshape(-1)


@dataclass(frozen=True)
class _Pair:
    """Two tables multiplied, and summed over what nobody else needs of both."""

    left: _Operand  # batch x rows x inner
    right: _Operand  # batch x inner x columns


@dataclass(frozen=True)
class _Sum:
    """One table, summed over what nobody else needs."""

    place: int
    plan: Projection
    cells: int


@dataclass(frozen=True)
class Contraction:
    """The steps that lead from the factors of a schedule to Z.

    Tables are numbered: first the sets of the schedule, then the result of each step.
    """

    steps: tuple[_Pair | _Sum, ...]
    messages: frozenset[int]  # the steps after which a clique is done
    log_alone: float  # what columns without any factor add to log Z


@lru_cache(maxsize=64)
def compile_contraction(schedule: Schedule) -> Contraction:
    """The order of the products for `schedule`; sets inside another one are in that already."""
    tree, domain = schedule.tree, schedule.tree.domain
    columns: dict[int, Columns] = dict(enumerate(schedule.columns))
    inside: list[list[int]] = [[] for _ in tree.cliques]
    for place, (clique, host) in enumerate(zip(schedule.clique, schedule.hosts, strict=True)):
        if host < 0:
            inside[clique].append(place)
    steps: list[_Pair | _Sum] = []
    messages: set[int] = set()
    log_alone = 0.0

    def append(step: _Pair | _Sum, result: Columns) -> int:
        place = len(schedule.columns) + len(steps)
        steps.append(step)
        columns[place] = result
        return place

    for clique in range(len(tree.cliques) - 1, -1, -1):
        waiting = inside[clique]
        separator = set(tree.separators[clique])
        alone = tree.members[clique].difference(separator, *(columns[one] for one in waiting))
        log_alone += math.log(domain.cells(alone))
        if not waiting:
            continue
        while True:
            for place, one in enumerate(waiting):
                summed = _sum_alone(domain, columns, one, waiting, separator)
                if summed is not None:
                    waiting[place] = append(*summed)
            if len(waiting) == 1:
                break
            first, second = _cheapest(domain, columns, waiting, separator)
            waiting = [one for one in waiting if one not in (first, second)]
            kept = separator.union(*(columns[one] for one in waiting))
            waiting.append(append(*_pair(domain, columns, first, second, kept)))
        messages.add(waiting[0] - len(schedule.columns))
        if tree.parents[clique] >= 0:
            inside[tree.parents[clique]].append(waiting[0])
    return Contraction(tuple(steps), frozenset(messages), log_alone)


def _cheapest(
    domain: Domain, columns: dict[int, Columns], waiting: list[int], separator: set[str]
) -> tuple[int, int]:
    """The pair whose product is little work, and leaves little in place of what it takes away."""
    sets = {one: frozenset(columns[one]) for one in waiting}
    cells = {one: domain.cells(own) for one, own in sets.items()}
    number = Counter(column for own in sets.values() for column in own)

    def cost(pair: tuple[int, int]) -> int:
        first, second = pair
        both = sets[first] | sets[second]
        # A column goes when nobody else has it.
        kept = [
            column
            for column in both
            if column in separator
            or number[column] > (column in sets[first]) + (column in sets[second])
        ]
        return domain.cells(both) + 2 * domain.cells(kept) - cells[first] - cells[second]

    return min(combinations(waiting, 2), key=cost)


def _sum_alone(
    domain: Domain, columns: dict[int, Columns], one: int, waiting: list[int], separator: set[str]
) -> tuple[_Sum, Columns] | None:
    """The sum over the columns that no other table in the clique has, if there are any."""
    kept = separator.union(*(columns[other] for other in waiting if other != one))
    own = columns[one]
    part = tuple(column for column in own if column in kept)
    if part == own:
        return None
    return _Sum(one, projection(own, domain.shape(own), part), domain.cells(own)), part


def _pair(
    domain: Domain, columns: dict[int, Columns], first: int, second: int, kept: set[str]
) -> tuple[_Pair, Columns]:
    mine, theirs = columns[first], columns[second]
    batch = tuple(c for c in mine if c in theirs and c in kept)
    inner = tuple(c for c in mine if c in theirs and c not in kept)
    rows = tuple(c for c in mine if c not in theirs)
    others = tuple(c for c in theirs if c not in mine)
    if domain.cells(rows) > domain.cells(others):
        # Products run along the last axis, and are slow where it is short.
        return _pair(domain, columns, second, first, kept)
    left = _operand(domain, first, mine, (batch, rows, inner))
    right = _operand(domain, second, theirs, (batch, inner, others))
    return _Pair(left, right), batch + rows + others


def _operand(
    domain: Domain, place: int, columns: Columns, parts: tuple[Columns, Columns, Columns]
) -> _Operand:
    # Axes that stay together are moved as one.
    runs: list[list[int]] = []
    for column in (column for part in parts for column in part):
        axis = columns.index(column)
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    widths = [domain.cells(columns[axis] for axis in run) for run in runs]
    order = sorted(range(len(runs)), key=lambda run: runs[run][0])
    axes = tuple(order.index(run) for run in range(len(runs)))
    batch, rows, others = (domain.cells(part) for part in parts)
    return _Operand(
        place=place,
        shape=tuple(widths[run] for run in order),
        axes=axes,
        back=tuple(order),
        turned=tuple(widths),
        matrices=(batch, rows, others),
    )


def log_partition_and_marginals(
    contraction: Contraction, schedule: Schedule, potentials: Array
) -> tuple[float, Array] | None:
    """The log-partition function and every set's marginal, as in `Workspace.marginals`.

    None when a table comes near the smallest float: terms may be lost then.
    """
    peaks = np.maximum.reduceat(potentials, schedule.starts)
    factors = np.exp(potentials - np.repeat(peaks, schedule.lengths))
    # Smallest first, so that a host has taken in its guests before it is used.
    for i in range(len(schedule.columns) - 1, -1, -1):
        if (host := schedule.hosts[i]) >= 0:
            schedule.inside[i].multiply(factors[schedule.slices[host]], factors[schedule.slices[i]])
    tables: list[Array] = [factors[place] for place in schedule.slices]
    scales: dict[int, float] = {}
    matrices: list[tuple[Array, Array] | None] = []
    for place, step in enumerate(contraction.steps):
        if isinstance(step, _Sum):
            found = step.plan.reduce(tables[step.place])
            matrices.append(None)
        else:
            left, right = step.left.take(tables), step.right.take(tables)
            found = _matrix_product(left, right)
            matrices.append((left, right))
        if place in contraction.messages:
            # Factors are at most 1, so what a message still shows was not lost on the way to it.
            scales[place] = scale = float(found.max())
            if not float(found.min()) >= SMALLEST_MESSAGE * max(scale, 1.0):
                return None
            found = found / scale
        tables.append(found)
    log_partition = float(peaks.sum()) + contraction.log_alone + sum(map(math.log, scales.values()))
    # What the root of a tree comes to is 1 by its scale, and so is the gradient of its logarithm.
    gradients: list[Array] = [np.ones(1)] * len(tables)
    for place in range(len(contraction.steps) - 1, -1, -1):
        step, pair = contraction.steps[place], matrices[place]
        gradient = gradients[len(schedule.columns) + place]
        if place in scales:
            gradient = gradient / scales[place]
        if isinstance(step, _Sum):
            spread = np.empty(step.cells)
            step.plan.fill(spread, gradient)
            gradients[step.place] = spread
            continue
        assert pair is not None
        left, right = pair
        gradient = gradient.reshape(left.shape[0], left.shape[1], right.shape[2])
        step.left.give(gradients, _matrix_product(gradient, right.transpose(0, 2, 1)))
        step.right.give(gradients, _matrix_product(left.transpose(0, 2, 1), gradient))
    marginals = np.empty(schedule.cells)
    for i, host in enumerate(schedule.hosts):
        here = schedule.slices[i]
        if host < 0:
            # p_i = factor_i d log Z / d factor_i
            np.multiply(factors[here], gradients[i].reshape(-1), out=marginals[here])
        else:
            marginals[here] = schedule.inside[i].reduce(marginals[schedule.slices[host]])
    return log_partition, marginals


def _matrix_product(left: Array, right: Array) -> Array:
    """The products of two batches of matrices."""
    # With nothing to sum over it is a product of cells, which broadcasts faster.
    return left * right if left.shape[2] == 1 else np.matmul(left, right)
