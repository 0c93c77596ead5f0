"""Marginals of any columns from a calibrated junction tree, many at a time.

A query whose columns share a clique is a sum of that clique's table. Otherwise its columns are
gathered in the clique where the paths between them meet: each branch that holds queried columns A
says what it knows of them given columns D of the separator, p(A | D). For three columns there is a
clique from which each is in a branch of its own, so that a branch has to know of one column only,
and such tables are small. They depend only on the branch and on A, so the queries of a batch share
them. This is variable elimination within the smallest subtree (Koller and Friedman 2009, section
10.3.3), rooted anew for each query, as batched matrix products.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations

import numpy as np

from counterpoise.synthesizers.graphical.domain import Columns
from counterpoise.synthesizers.graphical.factor import Array, Factor, contract
from counterpoise.synthesizers.graphical.junction_tree import JunctionTree

Branch = tuple[int, int, Columns]  # its first clique, the clique it tells, the columns asked for

# Tables larger than this many cells are not kept for the queries that follow.
LARGEST_KEPT = 1 << 22


@dataclass(frozen=True, eq=False)
class Marginaliser:
    """Answers queries to a junction tree with calibrated clique tables, and remembers the work."""

    tree: JunctionTree
    beliefs: Sequence[Array]
    _messages: dict[Branch, Factor] = field(default_factory=dict)
    _parts: dict[tuple[int, Columns, Columns], Factor] = field(default_factory=dict)

    def marginal(self, columns: Iterable[str]) -> Factor:
        """The probabilities of the combinations of `columns`, with the axes in some order."""
        query = self.tree.arrange(columns)
        clique = self.tree.smallest_clique(query)
        if clique is not None:
            return self._part(clique, query)
        # Columns that no path connects are independent.
        connected: dict[int, list[str]] = {}
        for column in query:
            connected.setdefault(self.tree.roots[self.tree.home[column]], []).append(column)
        return reduce(Factor.multiply, [self._connected(tuple(c)) for c in connected.values()])

    def _connected(self, query: Columns) -> Factor:
        """The marginal of columns of one connected tree."""
        clique = self.tree.smallest_clique(query)
        if clique is not None:
            return self._part(clique, query)
        clique = self._meeting(query)
        messages = [self._message(*branch) for branch in self._branches(clique, query)]
        return self._gather(clique, query, (), messages)

    def _meeting(self, query: Columns) -> int:
        """The clique to gather in."""
        tree = self.tree
        homes = [tree.home[column] for column in query]
        if len(query) > 2:
            # The deepest meeting of any two. Of three columns it has no two in one branch.
            return max(tree.meeting(i, j) for i, j in combinations(homes, 2))
        # Either end does; the one with the smaller separator has less to sum over.
        first, second = homes
        at_first = max(first, tree.toward(first, query[1]))
        at_second = max(second, tree.toward(second, query[0]))
        cells = tree.separator_cells
        return first if cells[at_first] <= cells[at_second] else second

    def _branches(self, clique: int, asked: Columns) -> list[Branch]:
        """The branches around a clique that hold asked columns."""
        held: dict[int, list[str]] = {}
        for column in asked:
            neighbour = self.tree.toward(clique, column)
            if neighbour != clique:
                held.setdefault(neighbour, []).append(column)
        return [(neighbour, clique, tuple(columns)) for neighbour, columns in held.items()]

    def _message(self, clique: int, receiver: int, asked: Columns) -> Factor:
        """What the branch that begins with `clique` knows of A: p(A | D), D within its separator.

        It needs what the branches behind it know, which are done first. The list of what is to be
        done is kept here, since a path of cliques can be longer than Python lets calls be deep.
        """
        known = self._messages.get((clique, receiver, asked))
        if known is not None:
            return known
        fresh: dict[Branch, Factor] = {}
        waiting = [(clique, receiver, asked)]
        while waiting:
            here, above, columns = waiting[-1]
            behind = self._branches(here, columns)
            found = [self._messages.get(branch, fresh.get(branch)) for branch in behind]
            messages = [message for message in found if message is not None]
            if len(messages) < len(behind):
                waiting += [b for b, message in zip(behind, found, strict=True) if message is None]
                continue
            separator = self.tree.separators[max(here, above)]
            known = self._gather(here, columns, separator, messages)
            fresh[waiting.pop()] = known
            if known.values.size <= LARGEST_KEPT:
                self._messages[here, above, columns] = known
        return fresh[clique, receiver, asked]

    def _gather(
        self, clique: int, asked: Columns, given: Columns, messages: list[Factor]
    ) -> Factor:
        """p(A | S) = sum over the rest of p(C | S) times what the branches know, p(A_i | D_i)."""
        members = self.tree.members[clique]
        shared = [[c for c in message.columns if c in members] for message in messages]
        own = [column for column in asked if column in members]
        if given and not own and len(messages) == 1 and set(shared[0]) <= set(given):
            # What lies behind is known from a part of S alone: p(A | S) = p(A | D).
            return messages[0]
        keep = {*asked, *given}
        needed = {*own, *given}.union(*shared)
        if not messages:
            return self._part(clique, self.tree.arrange(needed), given)
        later = [keep.union(*shared[i + 1 :]) for i in range(len(messages))]
        table = self._part(clique, self._ready(needed, set(shared[0]), later[0]), given)
        for message, kept in zip(messages, later, strict=True):
            table = contract(table, message, kept)
        return table

    def _ready(self, needed: set[str], shared: set[str], keep: set[str]) -> Columns:
        """The columns in an order that `contract` takes as it stands: batch, rows, inner."""
        return tuple(
            sorted(
                self.tree.arrange(needed),
                key=lambda column: 1 if column not in shared else 0 if column in keep else 2,
            )
        )

    def _part(self, clique: int, columns: Columns, given: Columns = ()) -> Factor:
        """The clique's table summed to `columns`, in that order; conditional on those `given`."""
        key = (clique, columns, given)
        known = self._parts.get(key)
        if known is None:
            summed = Factor(self.tree.cliques[clique], self.beliefs[clique]).marginal(columns)
            values = np.ascontiguousarray(summed.values)
            if given:
                among = summed.marginal(given).expand(columns)
                values = np.divide(values, among, out=np.zeros_like(values), where=among > 0)
            known = Factor(columns, values)
            if values.size <= LARGEST_KEPT:
                self._parts[key] = known
        return known
