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


@pytest.mark.parametrize("columns", [12, 40, 70])
def test_many_candidates_are_sized_as_each_by_itself(columns):
    """Side by side in 32 or 64 bits, and one by one where there are more columns than bits."""
    rng = np.random.default_rng(columns)
    domain = Domain(tuple(f"c{i}" for i in range(columns)), tuple(rng.integers(2, 6, columns)))
    cliques = [tuple(rng.choice(domain.columns, 2, replace=False)) for _ in range(columns + 6)]
    candidates = [tuple(rng.choice(domain.columns, size, replace=False)) for size in (1, 2, 3) * 20]
    expected = [model_size(domain, [*cliques, candidate]) for candidate in candidates]
    assert model_sizes(domain, cliques, candidates) == expected


@pytest.mark.parametrize("structure", [*STRUCTURES.values(), *RANDOM])
def test_every_step_toward_a_column_comes_closer_to_it(structure):
    tree = junction_tree(*structure)
    for column in tree.domain.columns:
        for start in range(len(tree.cliques)):
            if tree.roots[start] != tree.roots[tree.home[column]]:
                continue
            here, passed = start, {start}
            while column not in tree.cliques[here]:
                onward = tree.toward(here, column)
                assert here in (tree.parents[onward], onward) or tree.parents[here] == onward
                assert onward not in passed
                here = onward
                passed.add(here)
            assert tree.toward(here, column) == here


@pytest.mark.parametrize("structure", [*STRUCTURES.values(), *RANDOM])
def test_columns_below_a_clique_are_those_first_seen_on_its_side(structure):
    tree = junction_tree(*structure)
    for clique, parent in enumerate(tree.parents):
        expected = {
            column
            for column, home in tree.home.items()
            if tree.roots[home] == tree.roots[clique] and tree.meeting(home, clique) == clique
        }
        assert tree.below[clique] == expected
        assert parent < 0 or tree.below[clique] < tree.below[parent]


@pytest.mark.parametrize("structure", RANDOM)
def test_three_columns_meet_where_no_two_of_them_share_a_branch(structure):
    tree = junction_tree(*structure)
    for columns in itertools.combinations(tree.domain.columns, 3):
        homes = [tree.home[column] for column in columns]
        if len({tree.roots[home] for home in homes}) > 1:
            continue
        meeting = max(tree.meeting(i, j) for i, j in itertools.combinations(homes, 2))
        steps = [tree.toward(meeting, column) for column in columns]
        outside = [step for step in steps if step != meeting]
        assert len(outside) == len(set(outside))


def _cells_by_plain_elimination(domain, cliques):
    """Joined columns first, then the smallest table, with everything worked out at every step."""
    near = {column: {column} for column in domain.columns}
    for clique in cliques:
        for column in clique:
            near[column] |= set(clique)
    made: list[set[str]] = []
    while near:
        fills = {c: any(not ring <= near[other] for other in ring) for c, ring in near.items()}
        column = min(near, key=lambda c: (fills[c], domain.cells(near[c])))
        ring = near.pop(column)
        made.append(ring)
        for other in ring - {column}:
            near[other] = (near[other] | ring) - {column}
    return sum(domain.cells(c) for c in made if not any(c < other for other in made))


@pytest.mark.parametrize("seed", range(20))
def test_columns_are_eliminated_in_the_plain_greedy_order(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(f"c{i}" for i in range(14)), tuple(rng.integers(2, 12, 14)))
    cliques = [rng.choice(domain.columns, size, replace=False) for size in (2, 3) * 9]
    assert model_size(domain, cliques) == _cells_by_plain_elimination(domain, cliques)


def test_what_was_too_large_may_fit_into_a_model_that_has_grown():
    """So no candidate can be passed over because it was too large in an earlier round."""
    domain = Domain(tuple("abcde"), (5, 2, 3, 4, 5))
    present, candidate = [("a", "b"), ("c", "d"), ("d", "e"), ("e", "a")], ("b", "c")
    assert model_sizes(domain, present, [candidate]) == [164]
    assert model_sizes(domain, [*present, ("b", "e")], [candidate]) == [114]


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
