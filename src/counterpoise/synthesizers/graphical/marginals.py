"""Marginals of any columns from a calibrated junction tree, many at a time.

A query whose columns share a clique is a sum of that clique's table. Otherwise its columns are
gathered up the tree: each branch that holds queried columns A says what it knows of them given the
separator above it, p(A | S), until the branches meet in one clique. These conditionals depend only
on the branch and on A, so the queries of a batch share them. This is variable elimination within
the smallest subtree (Koller and Friedman 2009, section 10.3.3), as batched matrix products.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from counterpoise.synthesizers.graphical.domain import Columns
from counterpoise.synthesizers.graphical.factor import Array, Factor, contract
from counterpoise.synthesizers.graphical.junction_tree import JunctionTree

# Tables larger than this many cells are not kept for the queries that follow.
LARGEST_KEPT = 1 << 22


@dataclass
class _Branch:
    """What a clique has gathered of a query: columns that are new in it, and branches below."""

    asked: list[str] = field(default_factory=list)  # every queried column at or below the clique
    own: list[str] = field(default_factory=list)  # those of them that first appear in the clique
    below: list[tuple[Columns, Factor]] = field(default_factory=list)  # separator, p(A | separator)


@dataclass(frozen=True, eq=False)
class Marginaliser:
    """Answers queries to a junction tree with calibrated clique tables, and remembers the work."""

    tree: JunctionTree
    beliefs: Sequence[Array]
    _conditionals: dict[tuple[int, Columns], Factor] = field(default_factory=dict)
    _parts: dict[tuple[int, Columns, bool], Factor] = field(default_factory=dict)

    def marginal(self, columns: Iterable[str]) -> Factor:
        """The probabilities of the combinations of `columns`, with the axes in some order."""
        query = self.tree.arrange(columns)
        clique = self.tree.smallest_clique(query)
        if clique is not None:
            return self._part(clique, query, conditional=False)
        pending: dict[int, _Branch] = {}
        for column in query:
            branch = pending.setdefault(self.tree.home[column], _Branch())
            branch.asked.append(column)
            branch.own.append(column)
        independent: list[Factor] = []
        while pending:
            # Parents stand before their children: the last clique has all its branches by now.
            clique = max(pending)
            branch = pending.pop(clique)
            parent = self.tree.parents[clique]
            if parent < 0 or not pending:
                independent.append(self._gather(clique, branch, conditional=False))
            else:
                above = pending.setdefault(parent, _Branch())
                above.asked += branch.asked
                above.below.append((self.tree.separators[clique], self._below(clique, branch)))
        # Columns that no path connects are independent.
        return reduce(Factor.multiply, independent)

    def _below(self, clique: int, branch: _Branch) -> Factor:
        key = (clique, tuple(sorted(branch.asked)))
        known = self._conditionals.get(key)
        if known is None:
            known = self._gather(clique, branch, conditional=True)
            if known.values.size <= LARGEST_KEPT:
                self._conditionals[key] = known
        return known

    def _gather(self, clique: int, branch: _Branch, conditional: bool) -> Factor:
        """p(A) or p(A | S) = sum over the rest of p(C) or p(C | S) times what is known below."""
        keep = set(branch.asked)
        if conditional:
            keep.update(self.tree.separators[clique])
        needed = keep.intersection(self.tree.cliques[clique]).union(
            *(separator for separator, _ in branch.below)
        )
        table = self._part(clique, self.tree.arrange(needed), conditional)
        for i, (_, factor) in enumerate(branch.below):
            later = keep.union(*(separator for separator, _ in branch.below[i + 1 :]))
            table = contract(table, factor, later)
        return table

    def _part(self, clique: int, columns: Columns, conditional: bool) -> Factor:
        """The clique's table summed to `columns`; given its separator if `conditional`."""
        key = (clique, columns, conditional)
        known = self._parts.get(key)
        if known is None:
            known = Factor(self.tree.cliques[clique], self.beliefs[clique]).marginal(columns)
            if conditional:
                separator = self.tree.separators[clique]
                given = known.marginal(separator).expand(columns)
                values = np.divide(
                    known.values, given, out=np.zeros_like(known.values), where=given > 0
                )
                known = Factor(columns, values)
            if known.values.size <= LARGEST_KEPT:
                self._parts[key] = known
        return known
