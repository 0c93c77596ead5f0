"""The sizes of many grown models at once: one greedy elimination for a whole batch of candidates.

A method that grows its model by one set at a time wants to know, for each of hundreds of
candidates, how large the junction tree would be with it. The graphs differ in a few edges, so they
are eliminated side by side: the neighbours of a column are the bits of an integer, one for each
candidate, and a step is a few operations on arrays of them. The order is the one in which
`junction_tree` eliminates, and the sizes are those of the trees that it would build: all columns
whose neighbours are joined already go at once, otherwise the one that makes the smallest table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from counterpoise.synthesizers.graphical.domain import Domain
from counterpoise.synthesizers.graphical.factor import Array
from counterpoise.synthesizers.graphical.junction_tree import (
    Adjacency,
    adjacency_of,
    bits,
    cells_of,
    connect,
    mask_of,
    part_cliques,
    parts_of,
)

# Fewer candidates than this are sized one by one, and so are those of more columns than bits.
SMALLEST_BATCH = 4
LARGEST_BATCH = 1 << 11
BITS = 64
# Joins that are done with are left out once fewer than this part of them are open.
MOSTLY_OPEN = 0.75


def model_sizes(
    domain: Domain, cliques: Iterable[Sequence[str]], candidates: Iterable[Sequence[str]]
) -> list[float]:
    """For each candidate, the model size if it joined `cliques`; whole numbers up to 2^53.

    A candidate within a clique changes nothing. Of more columns than bits, only the connected parts
    that a candidate touches are eliminated anew.

    >>> domain = Domain(tuple("abc"), (10, 10, 10))
    >>> model_sizes(domain, [("a", "b")], [("a",), ("b", "c"), ("a", "b", "c")])
    [110.0, 200.0, 1000.0]
    """
    adjacency = adjacency_of(domain, cliques)
    parts = parts_of(adjacency)
    cliques_in = {part: part_cliques(domain, adjacency, part) for part in parts}
    cells_in = {part: cells_of(domain, found) for part, found in cliques_in.items()}
    part_of = {column: part for part in parts for column in bits(part)}
    whole = sum(cells_in.values())
    masks = [mask_of(domain, candidate) for candidate in candidates]
    sizes = [float(whole)] * len(masks)
    waiting: dict[frozenset[int], list[int]] = {}
    for place, mask in enumerate(masks):
        touched = frozenset(part_of[column] for column in bits(mask))
        if not any(mask & clique == mask for part in touched for clique in cliques_in[part]):
            waiting.setdefault(touched, []).append(place)
    if len(domain) <= BITS and len(waiting) > 1:
        # Parts do not act on each other, and one batch for all takes less than one for each.
        waiting = {frozenset(parts): [place for places in waiting.values() for place in places]}
    for touched, places in waiting.items():
        rest = whole - sum(cells_in[part] for part in touched)
        asked = tuple(masks[place] for place in places)
        found = _joined_sizes(domain, adjacency, sum(touched), asked)
        for place, size in zip(places, found, strict=True):
            sizes[place] = float(rest + size)
    return sizes


@lru_cache(maxsize=4)  # what was measured may have joined no new columns
def _joined_sizes(
    domain: Domain, adjacency: Adjacency, part: int, masks: tuple[int, ...]
) -> Sequence[float]:
    """The cells of the columns in `part`, joined by each of `masks` in turn."""
    if len(masks) < SMALLEST_BATCH or part.bit_count() > BITS:
        return [
            cells_of(domain, part_cliques(domain, connect(adjacency, mask), part)) for mask in masks
        ]
    members = list(bits(part))
    near = np.array([_packed(adjacency[c] | 1 << c, members) for c in members], dtype=np.uint64)
    joins = np.array([_packed(mask, members) for mask in masks], dtype=np.uint64)
    kind = np.uint32 if len(members) <= 32 else np.uint64
    columns = [domain.sizes[column] for column in members]
    return np.concatenate(
        [
            _eliminated_sizes(columns, near.astype(kind), joins[start : start + LARGEST_BATCH])
            for start in range(0, len(masks), LARGEST_BATCH)
        ]
    ).tolist()


def _packed(mask: int, members: list[int]) -> int:
    """The bits of `members` in a mask, close together."""
    return sum(1 << place for place, column in enumerate(members) if mask >> column & 1)


def _eliminated_sizes(columns: list[int], start: Array, joins: Array) -> Array:
    """The cells of all maximal cliques, for each of `joins`.

    `start` has for each column its neighbours and itself, and every join connects its own columns.
    """
    kind, width = start.dtype.type, len(columns)
    unit = [kind(1 << place) for place in range(width)]
    near = np.repeat(start[:, None], len(joins), axis=1)
    _connect_all(near, joins.astype(kind), range(width))
    products = _products(columns)
    # The clique that the elimination of each column makes.
    made = np.zeros_like(near)
    left = np.full(len(joins), sum(1 << place for place in range(width)), dtype=kind)
    # The joins and the columns that are not done with, as they stand in `near`.
    at, places = np.arange(len(joins)), list(range(width))
    while len(at):
        is_joined = _joined(near, places)
        joined = np.zeros_like(left)
        for row, place in enumerate(places):
            # Of columns that go together, each leaves the earlier ones out of its clique.
            gone = is_joined[row]
            made[place, at[gone]] = near[row, gone] & ~joined[gone]
            joined[gone] |= unit[place]
        stuck = np.flatnonzero((joined == 0) & (left != 0))
        if len(stuck):
            among = near[:, stuck]
            is_left = _has(among, np.array(places, dtype=kind)[:, None])
            row = np.where(is_left, _cells(products, among), np.inf).argmin(axis=0)
            place = np.array(places)[row]
            ring = near[row, stuck]
            made[place, at[stuck]] = ring
            joined[stuck] = np.left_shift(kind(1), place.astype(kind))
            _connect_all(among, ring, places)
            near[:, stuck] = among
        left &= ~joined
        near &= ~joined
        is_open = left != 0
        if np.count_nonzero(is_open) < MOSTLY_OPEN * len(at):
            at, left, near = at[is_open], left[is_open], near[:, is_open]
        anywhere = int(np.bitwise_or.reduce(left, initial=0))
        kept = [row for row, place in enumerate(places) if anywhere >> place & 1]
        if len(kept) < len(places):
            near, places = near[kept], [places[row] for row in kept]
        if not places:
            break
    # A clique is part of another exactly when it is what the elimination of one column left behind.
    is_part = np.zeros(made.shape, dtype=bool)
    for place, one in enumerate(unit):
        is_part |= made == made[place] & ~one
    return np.where(is_part, 0.0, _cells(products, made)).sum(axis=0)


def _joined(near: Array, places: list[int]) -> Array:
    """Whether all neighbours of a column are neighbours of each other, for each column and join."""
    kind = near.dtype.type
    # What all neighbours of a column have in common; where one is none, it takes nothing away.
    common = near.copy()
    for row, place in enumerate(places):
        outside = (near >> kind(place)) & kind(1)
        outside -= kind(1)
        outside |= near[row]
        common &= outside
    is_joined: Array = near & ~common == 0
    is_joined &= _has(near, np.array(places, dtype=kind)[:, None])
    return is_joined


def _has(masks: Array, places: Array) -> Array:
    found: Array = (masks >> places) & masks.dtype.type(1) != 0
    return found


def _connect_all(near: Array, rings: Array, places: Iterable[int]) -> None:
    """Make the columns of each ring neighbours of each other, in place."""
    kind = near.dtype.type
    for row, place in enumerate(places):
        # All bits where the ring has the column, none elsewhere.
        has = kind(0) - ((rings >> kind(place)) & kind(1))
        has &= rings
        near[row] |= has


def _products(columns: list[int]) -> list[Array]:
    """For every eight columns, the cells of each part of them."""
    products = []
    for start in range(0, len(columns), 8):
        product = np.ones(1)
        for size in columns[start : start + 8]:
            product = np.concatenate([product, product * float(size)])
        products.append(product)
    return products


def _cells(products: list[Array], masks: Array) -> Array:
    """The number of cells of a table over each of `masks`."""
    cells = np.ones(masks.shape)
    for place, product in enumerate(products):
        cells *= product[(masks >> masks.dtype.type(8 * place)) & masks.dtype.type(255)]
    return cells
