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
LARGEST_BATCH = 1 << 9
BITS = 64


def model_sizes(
    domain: Domain, cliques: Iterable[Sequence[str]], candidates: Iterable[Sequence[str]]
) -> list[float]:
    """For each candidate, the model size if it joined `cliques`; whole numbers up to 2^53.

    Only the connected part of the graph that a candidate touches is eliminated anew.

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
    for touched, places in waiting.items():
        rest = whole - sum(cells_in[part] for part in touched)
        found = _joined_sizes(domain, adjacency, sum(touched), [masks[place] for place in places])
        for place, size in zip(places, found, strict=True):
            sizes[place] = float(rest + size)
    return sizes


def _joined_sizes(
    domain: Domain, adjacency: Adjacency, part: int, masks: list[int]
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
    _connect_all(near, joins.astype(kind), unit)
    products = _products(columns)
    # The clique that the elimination of each column makes.
    made = np.zeros_like(near)
    left = np.full(len(joins), sum(1 << place for place in range(width)), dtype=kind)
    while left.any():
        is_left = np.stack([left & one != 0 for one in unit])
        is_joined = is_left.copy()
        for place, one in enumerate(unit):
            is_joined &= (near & one == 0) | (near & ~near[place] == 0)
        joined = np.zeros_like(left)
        for place, one in enumerate(unit):
            # Of columns that go together, each leaves the earlier ones out of its clique.
            np.copyto(made[place], near[place] & ~joined, where=is_joined[place])
            joined |= is_joined[place] * one
        stuck = np.flatnonzero((joined == 0) & (left != 0))
        if len(stuck):
            cells = np.where(is_left[:, stuck], _cells(products, near[:, stuck]), np.inf)
            place = cells.argmin(axis=0)
            ring = near[place, stuck]
            made[place, stuck] = ring
            joined[stuck] = np.left_shift(kind(1), place.astype(kind))
            among = near[:, stuck]
            _connect_all(among, ring, unit)
            near[:, stuck] = among
        left &= ~joined
        near &= ~joined
    # A clique is part of another exactly when it is what the elimination of one column left behind.
    is_part = np.zeros(near.shape, dtype=bool)
    for place, one in enumerate(unit):
        is_part |= made == made[place] & ~one
    return np.where(is_part, 0.0, _cells(products, made)).sum(axis=0)


def _connect_all(near: Array, rings: Array, unit: list[np.unsignedinteger]) -> None:
    """Make the columns of each ring neighbours of each other, in place."""
    for place, one in enumerate(unit):
        near[place] |= np.where(rings & one != 0, rings, 0).astype(near.dtype)


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
