"""Marginals of any columns from a calibrated junction tree, many at a time.

A query whose columns share a clique is a sum of that clique's table. Otherwise a clique at the edge
of the query is peeled off: with B what the query has there and nowhere further in, and D the
columns that separate the clique from the rest,

    p(Q) = sum over D of p(Q without B, D) p(B | D),

and the first factor is a query again, one clique further in. This is variable elimination within
the smallest subtree that holds the query (Koller and Friedman 2009, section 10.3.3). A query is
peeled where that leaves the fewest cells to ask for. What was asked on the way is remembered: the
queries of a batch have most of it in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from counterpoise.synthesizers.graphical.domain import Columns
from counterpoise.synthesizers.graphical.factor import Array, Factor, contract
from counterpoise.synthesizers.graphical.junction_tree import JunctionTree

# Tables larger than this many cells are not kept for the queries that follow, nor any once all that
# are kept have so many together.
LARGEST_KEPT, MOST_KEPT = 1 << 22, 1 << 24


@dataclass(frozen=True, eq=False)
class Marginaliser:
    """Answers queries to a junction tree with calibrated clique tables, and remembers the work."""

    tree: JunctionTree
    beliefs: Sequence[Array]
    _tables: dict[Columns, Factor] = field(default_factory=dict)
    _parts: dict[tuple[int, Columns, Columns], Factor] = field(default_factory=dict)
    _cells: list[int] = field(default_factory=lambda: [0])  # of all tables that are kept

    def marginal(self, columns: Iterable[str]) -> Factor:
        """The probabilities of the combinations of `columns`, with the axes in some order."""
        query = self.tree.arrange(columns)
        # Columns that no path connects are independent.
        connected: dict[int, list[str]] = {}
        for column in query:
            connected.setdefault(self.tree.roots[self.tree.home[column]], []).append(column)
        tables = [self._connected(tuple(part)) for part in connected.values()]
        return reduce(Factor.multiply, tables) if tables else self._part(0, ())

    def _connected(self, query: Columns) -> Factor:
        """The marginal of columns of one connected tree."""
        peels = []
        # A list, not recursion: a path of cliques can be longer than Python lets calls be deep.
        while (table := self._tables.get(query)) is None:
            peel = self.tree.peel(query)
            if isinstance(peel, int):
                table = self._part(peel, query)
                break
            peels.append((query, peel))
            query = peel.rest
        for asked, peel in reversed(peels):
            conditional = self._part(peel.clique, peel.columns, peel.given)
            table = contract(table, conditional, asked)
            if self._has_room(table):
                self._tables[asked] = table
        return table

    def _has_room(self, table: Factor) -> bool:
        """Whether a table is to be kept; it is counted then."""
        size = table.values.size
        if size > LARGEST_KEPT or self._cells[0] + size > MOST_KEPT:
            return False
        self._cells[0] += size
        return True

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
            if self._has_room(known):
                self._parts[key] = known
        return known
