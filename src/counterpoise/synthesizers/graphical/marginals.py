"""Marginals of any columns from a calibrated junction tree, many at a time.

A query whose columns share a clique is a sum of that clique's table. Otherwise its columns are
gathered in the clique where the paths between them meet: each branch that holds queried columns A
says what it knows of them given columns D of the separator, p(A | D). For three columns there is a
clique from which each is in a branch of its own, so that a branch has to know of one column only,
and such tables are small. They depend only on the branch and on A, so the queries of a batch share
them. This is variable elimination within the smallest subtree (Koller and Friedman 2009, section
10.3.3), rooted anew for each query, as batched matrix products.

The queries that meet in one clique through the same separators are answered together. All but one
of their messages are multiplied into the clique's table, once for all queries that have them, and
the messages that come last are laid side by side, so that one matrix product takes them all. A
column that hangs on a smaller one is asked for through that one, in whose place it then comes.
"""

from __future__ import annotations

import math
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
# Messages larger than this many cells are not laid beside others: copies would cost more.
LARGEST_BESIDE = 1 << 15


@dataclass(frozen=True, eq=False)
class _Leg:
    """What a branch knows of asked columns A, p(A | D)."""

    given: Columns  # D
    asked: Columns  # A
    message: Factor


@dataclass(frozen=True, eq=False)
class _Crossing:
    """A query across cliques: its columns where branches meet, and what the branches know."""

    query: Columns
    own: Columns
    legs: tuple[_Leg, ...]


@dataclass(frozen=True, eq=False)
class Marginaliser:
    """Answers queries to a junction tree with calibrated clique tables, and remembers the work."""

    tree: JunctionTree
    beliefs: Sequence[Array]
    _messages: dict[Branch, Factor] = field(default_factory=dict)
    _legs: dict[Branch, _Leg] = field(default_factory=dict)
    _parts: dict[tuple[int, Columns, Columns], Factor] = field(default_factory=dict)

    def marginals(self, queries: Iterable[Iterable[str]]) -> list[Factor]:
        """The probabilities of the combinations of each query's columns, axes in some order."""
        # Columns that no path connects are independent.
        parts = [self._connected_parts(query) for query in queries]
        found = self._connected({part: None for query in parts for part in query})
        return [reduce(_beside, [found[part] for part in query], _NOTHING) for query in parts]

    def _connected_parts(self, query: Iterable[str]) -> list[Columns]:
        """The columns of a query in each connected tree."""
        connected: dict[int, list[str]] = {}
        for column in self.tree.arrange(query):
            connected.setdefault(self.tree.roots[self.tree.home[column]], []).append(column)
        return [tuple(columns) for columns in connected.values()]

    def _connected(self, queries: Iterable[Columns]) -> dict[Columns, Factor]:
        """The marginals of queries whose columns are in one connected tree each."""
        found: dict[Columns, Factor] = {}
        narrowed: list[tuple[Columns, Columns, Factor]] = []
        together: dict[tuple[int, Columns, tuple[Columns, ...]], list[_Crossing]] = {}
        waiting = dict.fromkeys(queries)
        seen = set(waiting)
        while waiting:
            query, _ = waiting.popitem()
            clique = self.tree.smallest_clique(query)
            if clique is not None:
                found[query] = self._part(clique, query)
                continue
            narrower = self._narrower(query)
            if narrower is not None:
                narrowed.append((query, *narrower))
                if narrower[0] not in seen:
                    seen.add(narrower[0])
                    waiting[narrower[0]] = None
                continue
            clique = self._meeting(query)
            crossing = self._crossing(clique, query)
            givens = tuple(leg.given for leg in crossing.legs)
            if all(leg.message.values.size <= LARGEST_KEPT for leg in crossing.legs):
                together.setdefault((clique, crossing.own, givens), []).append(crossing)
            else:
                found |= self._gathered(clique, crossing.own, givens, [crossing])
        for (clique, own, givens), crossings in together.items():
            found |= self._gathered(clique, own, givens, crossings)
        # What another one is made of has fewer cells.
        for query, base, message in sorted(
            narrowed, key=lambda one: self.tree.domain.cells(one[0])
        ):
            found[query] = contract(found[base], message, query)
        return found

    def _narrower(self, query: Columns) -> tuple[Columns, Factor] | None:
        """A query of fewer cells that this one follows from, and the message that it takes.

        If a separator S, of which at most one column x is not asked for, parts a column A from all
        others Q, then p(Q, A) = sum over x of p(Q, x) p(A | S).
        """
        tree = self.tree
        for column in sorted(query, key=tree.domain.__getitem__, reverse=True):
            others = [other for other in query if other != column]
            clique, best, fewest = tree.home[column], -1, tree.domain[column]
            while tree.parents[clique] >= 0 and tree.below[clique].isdisjoint(others):
                more = set(tree.separators[clique]).difference(others)
                cells = tree.domain.cells(more)
                if len(more) <= 1 and cells < fewest:
                    best, fewest = clique, cells
                clique = tree.parents[clique]
            if best >= 0:
                message = self._message(best, tree.parents[best], (column,))
                given = (c for c in message.columns if c != column)
                return tree.arrange({*others, *given}), message
        return None

    def _crossing(self, clique: int, query: Columns) -> _Crossing:
        members = self.tree.members[clique]
        legs = [self._leg(branch) for branch in self._branches(clique, query)]
        if len(legs) > 1:
            legs.sort(key=lambda leg: leg.given)
        return _Crossing(query, tuple(c for c in query if c in members), tuple(legs))

    def _leg(self, branch: Branch) -> _Leg:
        known = self._legs.get(branch)
        if known is None:
            clique, receiver, asked = branch
            message = self._message(clique, receiver, asked)
            given = self.tree.members[receiver].intersection(message.columns)
            known = _Leg(self.tree.arrange(given), asked, message)
            if message.values.size <= LARGEST_KEPT:
                self._legs[branch] = known
        return known

    def _gathered(
        self, clique: int, own: Columns, givens: tuple[Columns, ...], crossings: list[_Crossing]
    ) -> dict[Columns, Factor]:
        """The marginals of queries that meet in a clique with the same columns D of each branch.

        p(A_1, ..., A_k, own) = sum over D_1, ..., D_k of p(own, D) p(A_1 | D_1) ... p(A_k | D_k)
        """
        last = self._last(own, givens, crossings)
        begun: dict[tuple[Columns, ...], list[_Crossing]] = {}
        for crossing in crossings:
            asked = tuple(leg.asked for leg in crossing.legs)
            begun.setdefault(asked[:last] + asked[last + 1 :], []).append(crossing)
        found: dict[Columns, Factor] = {}
        for same in begun.values():
            legs = [leg for place, leg in enumerate(same[0].legs) if place != last]
            # What is still needed after each of the messages.
            needed = [{*own, *givens[last]}]
            for leg in reversed(legs):
                needed.append({*needed[-1], *leg.given})
            if legs:
                columns = self._ready(needed.pop(), set(legs[0].given), needed[-1])
            else:
                columns = self._ready({*own, *givens[last]}, set(own), set())
            table = self._part(clique, columns)
            known: set[str] = set()
            for leg in legs:
                known.update(leg.asked)
                table = contract(table, leg.message, known | needed.pop())
            ends = [(crossing.query, crossing.legs[last]) for crossing in same]
            found |= _finished(table, own, ends)
        return found

    def _last(self, own: Columns, givens: tuple[Columns, ...], crossings: list[_Crossing]) -> int:
        """The branch whose messages come last, so that the others make few and small tables."""
        if len(givens) == 1:
            return 0
        cells = self.tree.domain.cells
        costs = []
        for last, given in enumerate(givens):
            others = {
                tuple(leg.asked for place, leg in enumerate(crossing.legs) if place != last)
                for crossing in crossings
            }
            before = cells({*own}.union(*givens))
            after = cells({*own, *given})
            costs.append(sum((before + after) * cells(sum(asked, ())) for asked in others))
        return costs.index(min(costs))

    def _meeting(self, query: Columns) -> int:
        """The clique to gather in."""
        tree = self.tree
        homes = [tree.home[column] for column in query]
        if len(query) > 2:
            # The deepest meeting of any two. Of three columns it has no two in one branch.
            return self._nearest(max(tree.meeting(i, j) for i, j in combinations(homes, 2)), query)
        # Either end does; the one with the smaller separator has less to sum over.
        first, second = homes
        at_first = max(first, tree.toward(first, query[1]))
        at_second = max(second, tree.toward(second, query[0]))
        cells = tree.separator_cells
        return first if cells[at_first] <= cells[at_second] else second

    def _nearest(self, clique: int, query: Columns) -> int:
        """Of the cliques that have all columns but those of one branch, that with least to sum."""
        tree = self.tree
        best, fewest = clique, math.inf
        while len(branches := self._branches(clique, query)) == 1:
            [(neighbour, _, asked)] = branches
            own = [column for column in query if column not in asked]
            cells = tree.domain.cells({*own, *tree.separators[max(clique, neighbour)]})
            if cells <= fewest:
                best, fewest = clique, cells
            if not tree.members[neighbour].issuperset(own):
                break
            clique = neighbour
        return best

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
                # One division for each cell of S, and products for the many of the table.
                is_sound = among >= np.finfo(among.dtype).tiny
                values = values * np.divide(1, among, out=np.zeros_like(among), where=is_sound)
            known = Factor(columns, values)
            if values.size <= LARGEST_KEPT:
                self._parts[key] = known
        return known


_NOTHING = Factor((), np.ones(()))


def _beside(first: Factor, second: Factor) -> Factor:
    """The product of the marginals of independent columns."""
    if not first.columns:
        return second
    return Factor(first.columns + second.columns, np.multiply.outer(first.values, second.values))


def _finished(
    table: Factor, own: Columns, queries: list[tuple[Columns, _Leg]]
) -> dict[Columns, Factor]:
    """For each query the table times its last message, summed over what that is given.

    sum over D of table(rest, D) p(A | D), for many A in one product; asked columns in D stay.
    """
    given = set(queries[0][1].given)
    batch = tuple(column for column in table.columns if column in given and column in own)
    inner = tuple(column for column in table.columns if column in given and column not in own)
    rest = tuple(column for column in table.columns if column not in given)
    turned = table.transpose(batch + inner + rest).values
    kept, summed = turned.shape[: len(batch)], turned.shape[len(batch) : len(given)]
    left = turned.reshape(math.prod(kept), math.prod(summed), -1).transpose(0, 2, 1)
    found: dict[Columns, Factor] = {}
    for some in _side_by_side(queries):
        tables = [leg.message.transpose(batch + inner + leg.asked).values for _, leg in some]
        matrices = [each.reshape(math.prod(kept), math.prod(summed), -1) for each in tables]
        right = matrices[0] if len(matrices) == 1 else np.concatenate(matrices, axis=2)
        product, start = np.matmul(left, right), 0
        for (query, leg), each in zip(some, tables, strict=True):
            stop = start + math.prod(each.shape[len(given) :])
            shape = kept + turned.shape[len(given) :] + each.shape[len(given) :]
            found[query] = Factor(
                batch + rest + leg.asked, product[:, :, start:stop].reshape(shape)
            )
            start = stop
    return found


def _side_by_side(queries: list[tuple[Columns, _Leg]]) -> list[list[tuple[Columns, _Leg]]]:
    """Queries whose messages are small together, the others each by itself."""
    small = [query for query in queries if query[1].message.values.size <= LARGEST_BESIDE]
    large = [[query] for query in queries if query[1].message.values.size > LARGEST_BESIDE]
    return [small, *large] if small else large
