"""Junction trees: valid on every structure, and sized without building anything."""

import itertools

import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.synthesizers.graphical import (
    Domain,
    junction_tree,
    model_size,
    model_sizes,
    predict_cost,
)
from tests.synthesizers.graphical.structures import STRUCTURES, random_structure

RANDOM = [
    random_structure(np.random.default_rng(seed), 12, 10, seed % 2 == 0) for seed in range(12)
]


@pytest.mark.parametrize("structure", [*STRUCTURES.values(), *RANDOM])
def test_tree_covers_every_set_and_has_the_running_intersection_property(structure):
    domain, cliques = structure
    tree = junction_tree(domain, cliques)
    for clique in cliques:
        assert tree.smallest_clique(clique) is not None
    assert sorted(tree.order) == sorted(domain.columns)
    seen: set[str] = set()
    for i, (clique, parent) in enumerate(zip(tree.cliques, tree.parents, strict=True)):
        # What a clique shares with all cliques before it, it shares with its parent alone.
        shared = seen & set(clique)
        assert parent < i
        assert shared == (set(tree.cliques[parent]) & set(clique) if parent >= 0 else set())
        assert set(tree.separators[i]) == shared
        # The separator is the leading part of the axes, which are in the tree's order.
        assert clique[: len(shared)] == tree.separators[i]
        assert clique == tree.arrange(clique)
        seen |= set(clique)


@pytest.mark.parametrize("structure", [*STRUCTURES.values(), *RANDOM])
def test_cliques_are_maximal_and_sized_as_built(structure):
    domain, cliques = structure
    tree = junction_tree(domain, cliques)
    for one, other in itertools.permutations(tree.cliques, 2):
        assert not set(one) <= set(other)
    assert model_size(domain, cliques) == tree.cells


@pytest.mark.parametrize("structure", RANDOM[:4])
def test_sizes_of_candidates_are_those_of_the_grown_models(structure):
    domain, cliques = structure
    candidates = [*itertools.combinations(domain.columns[::2], 3), cliques[0]]
    expected = [model_size(domain, [*cliques, candidate]) for candidate in candidates]
    assert model_sizes(domain, cliques, candidates) == expected


def test_chordal_structures_get_no_fill():
    names = tuple(f"c{i}" for i in range(300))
    domain = Domain(names, (10,) * 300)
    chain = list(itertools.pairwise(names))
    assert model_size(domain, chain) == 299 * 100
    tree = junction_tree(domain, chain)
    assert len(tree.cliques) == 299
    assert {len(clique) for clique in tree.cliques} == {2}


def test_hopeless_models_are_sized_exactly():
    names = tuple(f"c{i}" for i in range(60))
    domain = Domain(names, (100,) * 60)
    pairs = list(itertools.combinations(names, 2))
    assert model_size(domain, pairs) == 100**60
    assert predict_cost(domain, pairs).cells == 100**60


def test_cost_grows_with_the_model():
    domain = Domain(("a", "b", "c"), (10, 20, 30))
    small = predict_cost(domain, [("a",), ("b",)])
    large = predict_cost(domain, [("a", "b", "c")])
    assert small.cells == 60
    assert large.cells == 6000
    assert large.bytes > small.bytes
    assert large.seconds > small.seconds


def test_equal_structures_are_built_once():
    domain = Domain(("a", "b", "c"), (2, 3, 4))
    assert junction_tree(domain, [("a", "b"), ("c",)]) is junction_tree(domain, [("b", "a")])


def test_unknown_columns_are_named():
    with pytest.raises(MethodError, match="'z'"):
        junction_tree(Domain(("a",), (2,)), [("a", "z")])


@pytest.mark.parametrize(
    ("columns", "sizes"), [(("a", "a"), (2, 2)), (("a",), (0,)), (("a", "b"), (2,))]
)
def test_malformed_domains_are_refused(columns, sizes):
    with pytest.raises(MethodError):
        Domain(columns, sizes)
