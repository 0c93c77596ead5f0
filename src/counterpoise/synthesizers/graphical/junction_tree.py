"""Junction trees: which cliques a set of measured column sets makes, and in which order to visit.

The measured sets make a graph with an edge between any two columns measured together. Eliminating
its columns one by one makes the graph chordal; the maximal cliques, joined by a spanning tree of
largest separators, have the running-intersection property on which exact inference rests (Lauritzen
and Spiegelhalter 1988; Koller and Friedman 2009, sections 9.4 and 10.4). Column sets are bit masks
in here, so that the size of thousands of candidate models can be had without building any table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from counterpoise.synthesizers.graphical.domain import Columns, Domain


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques in visiting order, parents first; a root has parent -1.

    `order` lists the columns by first appearance along that visit, and every table in the engine
    has its axes in this order. A clique's separator from its parent is therefore always the leading
    part of its axes: messages are sums over a contiguous block, and no table is ever transposed.
    """

    domain: Domain
    order: Columns
    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]
    separators: tuple[Columns, ...]

    @cached_property
    def home(self) -> dict[str, int]:
        """The clique in which each column first appears; no clique above it has the column."""
        return {
            column: i
            for i, (clique, separator) in enumerate(zip(self.cliques, self.separators, strict=True))
            for column in clique[len(separator) :]
        }

    @cached_property
    def rank(self) -> dict[str, int]:
        """Where each column stands in `order`."""
        return {column: place for place, column in enumerate(self.order)}

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """For each clique, the first clique of the connected tree that it is in."""
        roots: list[int] = []
        for clique, parent in enumerate(self.parents):
            roots.append(clique if parent < 0 else roots[parent])
        return tuple(roots)

    @cached_property
    def _next_clique(self) -> list[list[int]]:
        """For each clique and each other, the neighbour of the first on the way to the second."""
        steps = []
        for start, above in enumerate(self.parents):
            step: list[int] = []
            for clique, parent in enumerate(self.parents):
                if clique == start or parent == start:
                    step.append(clique)
                else:
                    # Whatever is below a clique lies where its parent does; the rest lies above.
                    step.append(above if parent < 0 else step[parent])
            steps.append(step)
        return steps

    def toward(self, clique: int, column: str) -> int:
        """The neighbour of `clique` in whose branch `column` is, or itself if it has the column.

        Both have to be in one connected tree.
        """
        if column in self.members[clique]:
            return clique
        return self._next_clique[clique][self.home[column]]

    def meeting(self, first: int, second: int) -> int:
        """The deepest clique that both cliques are at or below; they are in one connected tree."""
        while first != second:
            # Parents stand before their children, so the later of two cannot be above the other.
            first, second = min(first, second), self.parents[max(first, second)]
        return first

    @cached_property
    def members(self) -> list[frozenset[str]]:
        """The columns of each clique, as sets."""
        return [frozenset(clique) for clique in self.cliques]

    @cached_property
    def below(self) -> list[frozenset[str]]:
        """The columns that first appear in each clique or in one below it."""
        found = [set(c[len(s) :]) for c, s in zip(self.cliques, self.separators, strict=True)]
        for clique in range(len(found) - 1, 0, -1):
            if self.parents[clique] >= 0:
                found[self.parents[clique]] |= found[clique]
        return [frozenset(columns) for columns in found]

    @cached_property
    def separator_cells(self) -> tuple[int, ...]:
        """The number of cells of each clique's separator from its parent."""
        return tuple(self.domain.cells(separator) for separator in self.separators)

    @cached_property
    def _cliques_by_cells(self) -> list[tuple[frozenset[str], int]]:
        cells = [self.domain.cells(clique) for clique in self.cliques]
        ranked = sorted(range(len(cells)), key=cells.__getitem__)
        return [(frozenset(self.cliques[i]), i) for i in ranked]

    @property
    def cells(self) -> int:
        """The number of cells of all clique tables together."""
        return sum(self.domain.cells(clique) for clique in self.cliques)

    def arrange(self, columns: Iterable[str]) -> Columns:
        """`columns` in the axis order of this tree."""
        return tuple(sorted(set(columns), key=self.rank.__getitem__))

    def smallest_clique(self, columns: Iterable[str]) -> int | None:
        """The clique with the fewest cells that contains all of `columns`, if there is one."""
        wanted = frozenset(columns)
        return next((i for clique, i in self._cliques_by_cells if wanted <= clique), None)


def junction_tree(domain: Domain, cliques: Iterable[Sequence[str]]) -> JunctionTree:
    """The junction tree of the graph in which every one of `cliques` is fully connected.

    Columns in none of `cliques` become cliques of their own. Equal sets give the same object.

    >>> domain = Domain(tuple("abcd"), (2, 3, 4, 5))
    >>> junction_tree(domain, [("a", "b"), ("b", "c"), ("c", "a")]).cliques
    (('a', 'b', 'c'), ('d',))
    """
    return _tree(domain, adjacency_of(domain, cliques))


def model_size(domain: Domain, cliques: Iterable[Sequence[str]]) -> int:
    """The number of cells of the junction tree that `cliques` need; no table is built.

    >>> model_size(Domain(tuple("abc"), (10, 10, 10)), [("a", "b"), ("b", "c")])
    200
    """
    return cells_of(domain, _maximal_cliques(domain, adjacency_of(domain, cliques)))


Adjacency = tuple[int, ...]  # for each column, the mask of its neighbours, itself excluded


def bits(mask: int) -> Iterator[int]:
    """The columns of a mask."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask_of(domain: Domain, columns: Iterable[str]) -> int:
    """A bit for each of `columns`."""
    mask = 0
    for column in columns:
        mask |= 1 << domain.position[column]
    return mask


def connect(adjacency: Adjacency, mask: int) -> Adjacency:
    """The graph with the columns of `mask` joined to each other."""
    connected = list(adjacency)
    for column in bits(mask):
        connected[column] |= mask & ~(1 << column)
    return tuple(connected)


def adjacency_of(domain: Domain, cliques: Iterable[Sequence[str]]) -> Adjacency:
    """The graph in which every one of `cliques` is fully connected."""
    adjacency = [0] * len(domain)
    for clique in cliques:
        mask = mask_of(domain, domain.canonical(clique))
        for column in bits(mask):
            adjacency[column] |= mask & ~(1 << column)
    return tuple(adjacency)


def cells_of(domain: Domain, masks: Iterable[int]) -> int:
    """The cells of the tables over each of `masks` together."""
    return sum(_table_cells(domain.sizes, mask) for mask in masks)


@lru_cache(maxsize=1 << 16)
def _table_cells(sizes: tuple[int, ...], mask: int) -> int:
    cells = 1
    for column in bits(mask):
        cells *= sizes[column]
    return cells


@lru_cache(maxsize=1 << 10)
def _maximal_cliques(domain: Domain, adjacency: Adjacency) -> tuple[int, ...]:
    """The maximal cliques of a chordal completion, connected part by connected part."""
    return tuple(
        clique for part in parts_of(adjacency) for clique in part_cliques(domain, adjacency, part)
    )


def parts_of(adjacency: Adjacency) -> list[int]:
    """The connected parts of the graph, as masks."""
    unseen = (1 << len(adjacency)) - 1
    parts = []
    while unseen:
        part, frontier = 0, unseen & -unseen
        while frontier:
            part |= frontier
            reached = 0
            for column in bits(frontier):
                reached |= adjacency[column]
            frontier = reached & ~part
        unseen &= ~part
        parts.append(part)
    return parts


def part_cliques(domain: Domain, adjacency: Adjacency, part: int) -> tuple[int, ...]:
    """The maximal cliques of one connected part."""
    members = tuple(bits(part))
    return _eliminate(domain.sizes, members, tuple(adjacency[i] for i in members))


@lru_cache(maxsize=1 << 16)
def _eliminate(
    sizes: tuple[int, ...], members: tuple[int, ...], adjacency: Adjacency
) -> tuple[int, ...]:
    """Eliminate one connected part greedily and return its maximal cliques as masks.

    A column whose neighbours are all joined already costs nothing and goes first, which is never
    wrong; otherwise the column goes whose elimination makes the smallest table (min-weight).
    """
    # With itself among its neighbours, a column's mask is the clique that its elimination makes.
    clique_of = {c: ring | 1 << c for c, ring in zip(members, adjacency, strict=True)}
    cells = {column: _table_cells(sizes, clique) for column, clique in clique_of.items()}
    remaining = sum(1 << column for column in members)
    # Joined already, and so for good: new edges come only where none is left.
    joined = {column for column in members if _is_joined(clique_of, column)}
    cliques: list[int] = []
    covered: set[int] = set()
    while remaining:
        fills = not joined
        column = min(cells, key=cells.__getitem__) if fills else joined.pop()
        del cells[column]
        clique = clique_of.pop(column)
        # A clique is part of an earlier one exactly when it is what that elimination left behind.
        if clique not in covered:
            cliques.append(clique)
        if clique == remaining:
            break
        left = 1 << column
        ring = clique ^ left
        covered.add(ring)
        remaining ^= left
        for other in bits(ring):
            before = clique_of[other]
            clique_of[other] = (before | ring) ^ left
            for new in bits(ring & ~before):
                cells[other] *= sizes[new]
            cells[other] //= sizes[column]
        for other in clique_of if fills else bits(ring):
            # Only where an edge came or went: in the ring, and at two of its columns.
            met = clique_of[other] & ring
            changed = met & (met - 1) or ring == met
            if changed and other not in joined and _is_joined(clique_of, other):
                joined.add(other)
    return tuple(cliques)


def _is_joined(clique_of: dict[int, int], column: int) -> bool:
    """Whether all neighbours of a column are neighbours of each other."""
    clique = rest = clique_of[column]
    while rest:
        lowest = rest & -rest
        if clique & ~clique_of[lowest.bit_length() - 1]:
            return False
        rest ^= lowest
    return True


@lru_cache(maxsize=256)
def _tree(domain: Domain, adjacency: Adjacency) -> JunctionTree:
    """Join the maximal cliques by Prim's algorithm: largest separator first, largest clique root.

    A spanning tree that maximises the summed separator widths has the running-intersection
    property (Jensen and Jensen 1994).
    """
    masks = sorted(
        _maximal_cliques(domain, adjacency),
        key=lambda mask: (-_table_cells(domain.sizes, mask), mask),
    )
    waiting = dict.fromkeys(masks, (0, -1))  # widest overlap with the tree so far, and where
    visited: list[int] = []
    parents: list[int] = []
    order: list[int] = []
    seen = 0
    while waiting:
        mask = max(waiting, key=lambda waiter: waiting[waiter][0])
        width, parent = waiting.pop(mask)
        parents.append(parent if width else -1)
        # The largest column goes last, which keeps the inner loops over its axis long.
        new = sorted(bits(mask & ~seen), key=lambda column: (domain.sizes[column], column))
        order += new
        seen |= mask
        for waiter, (widest, _) in waiting.items():
            overlap = (waiter & mask).bit_count()
            if overlap > widest:
                waiting[waiter] = (overlap, len(visited))
        visited.append(mask)

    def names(mask: int) -> Columns:
        return tuple(domain.columns[column] for column in order if mask >> column & 1)

    return JunctionTree(
        domain=domain,
        order=tuple(domain.columns[column] for column in order),
        cliques=tuple(names(mask) for mask in visited),
        parents=tuple(parents),
        separators=tuple(
            names(mask & visited[parent]) if parent >= 0 else ()
            for mask, parent in zip(visited, parents, strict=True)
        ),
    )
