"""Exact inference: from log-potentials on measured column sets to the model's marginals on them.

A `Schedule` is compiled once for a junction tree and the column sets that carry potentials; a
`Workspace` holds the tables of one fit, so that a pass allocates nothing large. One pass is Hugin
propagation (Jensen, Lauritzen and Olesen 1990): messages collect towards the roots, then
distribute back. It works on probabilities, each message rescaled by its largest entry, because a
product costs a tenth of an exponential; when a message comes near the smallest float the pass is
begun again from max-calibrated tables, for which no message can underflow.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from counterpoise.synthesizers.graphical.domain import Columns
from counterpoise.synthesizers.graphical.factor import Array, Projection, projection
from counterpoise.synthesizers.graphical.junction_tree import JunctionTree

# Below this a sum of products may have lost terms to underflow that its neighbours would scale up.
SMALLEST_MESSAGE = 1e-280


@dataclass(frozen=True)
class Schedule:
    """Everything about a pass that does not depend on the numbers."""

    tree: JunctionTree
    columns: tuple[Columns, ...]  # the sets with potentials, most cells first, in tree order
    offsets: tuple[int, ...]  # where each set begins in the flat vector of potentials; and its end
    shapes: tuple[tuple[int, ...], ...]  # of the clique tables
    messages: tuple[Projection, ...]  # clique to the separator from its parent
    parents: tuple[Projection | None, ...]  # parent clique to that separator; None at a root
    hosts: tuple[int, ...]  # for each set, the larger set that contains it, or -1
    clique: tuple[int, ...]  # for each set, the clique that contains it
    opens: tuple[bool, ...]  # for each set, whether it is the first to be put into its clique
    unopened: tuple[int, ...]  # the cliques that no set is put into
    inside: tuple[Projection, ...]  # from the host if there is one, otherwise from the clique

    @property
    def cells(self) -> int:
        """The length of the flat vector of potentials."""
        return self.offsets[-1]

    @cached_property
    def starts(self) -> Array:
        """Where each set begins in the flat vector of potentials."""
        return np.array(self.offsets[:-1], dtype=np.intp)

    @cached_property
    def lengths(self) -> Array:
        """The number of cells of each set."""
        return np.diff(self.offsets)

    @cached_property
    def slices(self) -> list[slice]:
        """The part of the flat vector that each set has."""
        return [slice(*ends) for ends in itertools.pairwise(self.offsets)]


@lru_cache(maxsize=256)
def compile_schedule(tree: JunctionTree, column_sets: frozenset[Columns]) -> Schedule:
    """Compile the passes over `tree` for potentials on `column_sets`.

    A set that is part of another is handled through the smallest such host: its potential is
    multiplied into the host's small table rather than into a clique, and its marginal summed from
    the host's marginal.
    """
    domain = tree.domain
    columns = sorted(
        (tree.arrange(column_set) for column_set in column_sets),
        key=lambda part: (-domain.cells(part), -len(part), part),
    )
    offsets = np.cumsum([0] + [domain.cells(part) for part in columns])
    shapes = tuple(domain.shape(clique) for clique in tree.cliques)
    hosts, cliques, inside = [], [], []
    for i, part in enumerate(columns):
        # Sets stand in falling order of cells: the last one before that contains it is smallest.
        host = next((j for j in range(i - 1, -1, -1) if set(part) < set(columns[j])), -1)
        clique = tree.smallest_clique(part)
        assert clique is not None, "a junction tree covers every set it was built from"
        whole = tree.cliques[clique] if host < 0 else columns[host]
        hosts.append(host)
        cliques.append(clique)
        inside.append(projection(whole, domain.shape(whole), part))
    opened: set[int] = set()
    opens = [False] * len(columns)
    for i in range(len(columns) - 1, -1, -1):
        if hosts[i] < 0 and cliques[i] not in opened:
            opened.add(cliques[i])
            opens[i] = True
    return Schedule(
        tree=tree,
        columns=tuple(columns),
        offsets=tuple(int(offset) for offset in offsets),
        shapes=shapes,
        messages=tuple(
            projection(clique, shape, separator)
            for clique, shape, separator in zip(tree.cliques, shapes, tree.separators, strict=True)
        ),
        parents=tuple(
            None
            if parent < 0
            else projection(tree.cliques[parent], shapes[parent], tree.separators[i])
            for i, parent in enumerate(tree.parents)
        ),
        hosts=tuple(hosts),
        clique=tuple(cliques),
        opens=tuple(opens),
        unopened=tuple(i for i in range(len(shapes)) if i not in opened),
        inside=tuple(inside),
    )


class Workspace:
    """The tables of one fit: scratch memory that every pass overwrites."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.tables = [np.empty(shape) for shape in schedule.shapes]
        self.slices = schedule.slices

    def marginals(self, potentials: Array) -> tuple[float, Array]:
        """The log-partition function and every set's marginal, normalised to sum to one.

        Potentials and marginals are flat vectors laid out by the schedule. Afterwards `tables`
        holds the clique marginals.
        """
        log_scale = self._multiply(potentials)
        log_partition = sum_product(self.schedule, self.tables, SMALLEST_MESSAGE)
        if log_partition is None:
            self._add(potentials)
            log_scale = max_sum(self.schedule, self.tables)
            for table in self.tables:
                np.exp(table, out=table)
            log_partition = sum_product(self.schedule, self.tables)
        assert log_partition is not None
        return log_scale + log_partition, self._gather()

    def largest(self, potentials: Array) -> float:
        """The largest sum of potentials over all rows a table could hold."""
        self._add(potentials)
        return max_sum(self.schedule, self.tables)

    def _multiply(self, potentials: Array) -> float:
        """Set the tables to the products of exponentials; return the log of the scale left out."""
        for i in self.schedule.unopened:
            self.tables[i].fill(1.0)
        if not len(potentials):
            return 0.0
        peaks = np.maximum.reduceat(potentials, self.schedule.starts)
        factors = np.exp(potentials - np.repeat(peaks, self.schedule.lengths))
        schedule = self.schedule
        # Smallest first, so that a host has taken in its guests before it is passed on.
        for i in range(len(schedule.columns) - 1, -1, -1):
            host = schedule.hosts[i]
            whole = self.tables[schedule.clique[i]] if host < 0 else factors[self.slices[host]]
            if schedule.opens[i]:
                schedule.inside[i].fill(whole, factors[self.slices[i]])
            else:
                schedule.inside[i].multiply(whole, factors[self.slices[i]])
        return float(peaks.sum())

    def _add(self, potentials: Array) -> None:
        """Set the tables to the sums of potentials."""
        for i in self.schedule.unopened:
            self.tables[i].fill(0.0)
        sums = potentials.copy()
        schedule = self.schedule
        for i in range(len(schedule.columns) - 1, -1, -1):
            host = schedule.hosts[i]
            whole = self.tables[schedule.clique[i]] if host < 0 else sums[self.slices[host]]
            if schedule.opens[i]:
                schedule.inside[i].fill(whole, sums[self.slices[i]])
            else:
                schedule.inside[i].add(whole, sums[self.slices[i]])

    def _gather(self) -> Array:
        schedule = self.schedule
        gathered = np.empty(schedule.cells)
        for i, plan in enumerate(schedule.inside):
            host = schedule.hosts[i]
            whole = self.tables[schedule.clique[i]] if host < 0 else gathered[self.slices[host]]
            gathered[self.slices[i]] = plan.reduce(whole)
        return gathered


def sum_product(
    schedule: Schedule, tables: list[Array], smallest: float | None = None
) -> float | None:
    """Turn clique potentials into clique marginals, in place; return the log-partition function.

    With `smallest`, give up and return None as soon as a message has an entry below it.
    """
    parents = schedule.tree.parents
    collected: list[Array] = [np.ones(1)] * len(tables)
    log_partition = 0.0
    # Collect: m_C(s) = sum over C \ S of its table times its children's messages.
    for i in range(len(tables) - 1, -1, -1):
        message = schedule.messages[i].reduce(tables[i])
        if smallest is not None and message.min() < smallest:
            return None
        scale = message.max()
        if scale == 0.0:
            return float("-inf")
        log_partition += np.log(scale)
        collected[i] = message
        plan = schedule.parents[i]
        if plan is not None:
            plan.multiply(tables[parents[i]], message / scale)
        else:
            tables[i] /= scale
    # Distribute: b_C(c) = table(c) * b_parent(s) / m_C(s), with 0 / 0 = 0.
    for i, plan in enumerate(schedule.parents):
        if plan is not None:
            message = collected[i]
            if smallest is None:
                message[message == 0.0] = 1.0
            ratio = plan.reduce(tables[parents[i]]) / message
            schedule.messages[i].multiply(tables[i], ratio)
    return float(log_partition)


def max_sum(schedule: Schedule, tables: list[Array]) -> float:
    """Push maxima towards the roots, in place, and return the largest sum of the clique tables.

    The sum over cliques is unchanged for every row, but afterwards each table's largest entry is 0
    for every separator value: its exponentials then sum to at least 1 there.
    """
    largest = 0.0
    for i in range(len(tables) - 1, -1, -1):
        message = schedule.messages[i].maximum(tables[i])
        schedule.messages[i].add(tables[i], -message)
        plan = schedule.parents[i]
        if plan is None:
            largest += float(message[0])
        else:
            plan.add(tables[schedule.tree.parents[i]], message)
    return largest
