"""Hard structures for the graphical engine, and the answers that brute force gives on them."""

import itertools
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from counterpoise.synthesizers.graphical import Domain, Factor, GraphicalModel

Structure = tuple[Domain, list[tuple[str, ...]]]


def _domain(columns: str, *sizes: int) -> Domain:
    return Domain(tuple(columns), sizes)


# Small enough for the whole table to be built.
STRUCTURES: dict[str, Structure] = {
    "nothing measured": (_domain("ab", 3, 2), []),
    "single column": (_domain("a", 4), [("a",)]),
    "column of size one": (_domain("abc", 3, 1, 2), [("a", "b"), ("b", "c")]),
    "only columns of size one": (_domain("ab", 1, 1), [("a", "b")]),
    "disconnected": (_domain("abcde", 3, 2, 4, 2, 3), [("a", "b"), ("d", "c")]),
    "chain": (_domain("abcde", 3, 2, 4, 2, 3), [("a", "b"), ("c", "b"), ("c", "d"), ("d", "e")]),
    "star": (_domain("abcde", 3, 2, 4, 2, 3), [("a", x) for x in "bcde"] + [("a",), ("e",)]),
    "cycle": (
        _domain("abcde", 3, 2, 4, 2, 3),
        [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a")],
    ),
    "full clique": (_domain("abcd", 3, 2, 4, 2), [("d", "b", "a", "c"), ("c", "a"), ("b",)]),
    "all pairs": (_domain("abcd", 3, 2, 4, 2), list(itertools.combinations("abcd", 2))),
    "triples": (
        _domain("abcdef", 3, 2, 4, 2, 3, 2),
        [("a", "b", "c"), ("c", "d", "e"), ("e", "f"), ("b", "c"), ("f",)],
    ),
    "grid": (
        _domain("abcdefghi", 2, 3, 2, 2, 2, 3, 2, 2, 2),
        list(zip("abdeghadbecf", "bcefhidgehfi", strict=True)),
    ),
}


def random_potentials(
    structure: Structure, rng: np.random.Generator, spread: float = 1.0
) -> list[Factor]:
    domain, cliques = structure
    return [Factor(clique, rng.normal(0.0, spread, domain.shape(clique))) for clique in cliques]


def random_model(name: str, seed: int = 0, spread: float = 1.0, total: float = 1.0):
    structure = STRUCTURES[name]
    potentials = random_potentials(structure, np.random.default_rng(seed), spread)
    return GraphicalModel.from_potentials(structure[0], potentials, total)


def brute_force(domain: Domain, potentials: list[Factor]) -> np.ndarray:
    """The probability of every row of the domain, with an axis for each column."""
    log_joint = np.zeros(domain.sizes)
    for potential in potentials:
        log_joint = log_joint + potential.expand(domain.columns)
    joint = np.exp(log_joint - log_joint.max())
    return joint / joint.sum()


def with_truth(name: str, seed: int, spread: float = 1.0, total: float = 1.0):
    """A random model of a structure, its potentials, and the table that brute force gives."""
    domain, _ = structure = STRUCTURES[name]
    potentials = random_potentials(structure, np.random.default_rng(seed), spread)
    model = GraphicalModel.from_potentials(domain, potentials, total)
    return model, potentials, brute_force(domain, potentials)


@contextmanager
def mbi_in_double_precision():
    """The package `mbi` and its `jax`, where they are installed; they warn of this and that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mbi = pytest.importorskip("mbi")
        jax = pytest.importorskip("jax")
        with jax.enable_x64(True):
            yield mbi, jax


def project(domain: Domain, joint: np.ndarray, columns: tuple[str, ...]) -> np.ndarray:
    return Factor(domain.columns, joint).marginal(columns).values


def random_structure(rng: np.random.Generator, columns: int, sets: int, loopy: bool) -> Structure:
    """A random tree of pairs, with `sets` further pairs and triples thrown in if `loopy`."""
    names = tuple(f"c{i}" for i in range(columns))
    domain = Domain(names, tuple(int(size) for size in rng.integers(1, 6, columns)))
    cliques = [(names[i], names[rng.integers(i)]) for i in range(1, columns)]
    if loopy:
        for _ in range(sets):
            width = int(rng.integers(2, 4))
            cliques.append(tuple(str(c) for c in rng.choice(names, width, replace=False)))
    unique = {frozenset(clique): clique for clique in cliques}
    return domain, list(unique.values())
