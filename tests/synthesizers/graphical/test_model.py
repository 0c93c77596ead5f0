"""The model's answers against brute force, and against `mbi` where it is installed."""

import itertools

import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.synthesizers.graphical import Domain, Factor, GraphicalModel, marginals
from counterpoise.synthesizers.graphical.factor import contract
from tests.synthesizers.graphical.structures import (
    STRUCTURES,
    brute_force,
    mbi_in_double_precision,
    project,
    random_model,
    random_potentials,
    random_structure,
    with_truth,
)


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_marginal_is_that_of_the_whole_table(name):
    model, _, joint = with_truth(name, 1, total=50.0)
    domain = model.domain
    queries = [
        query
        for width in range(min(4, len(domain)) + 1)
        for query in itertools.permutations(domain.columns, width)
    ][:400]
    for query, answer in zip(queries, model.marginals(queries), strict=True):
        np.testing.assert_allclose(answer, 50.0 * project(domain, joint, query), atol=1e-10)


@pytest.mark.parametrize("largest_beside", [0, 1 << 15])
@pytest.mark.parametrize("largest_kept", [0, 1 << 22])
@pytest.mark.parametrize("seed", range(6))
def test_queries_of_a_batch_are_answered_as_those_of_the_whole_table(
    seed, largest_kept, largest_beside, monkeypatch
):
    """In any clique, across up to three branches and narrowed, with messages together or alone."""
    monkeypatch.setattr(marginals, "LARGEST_KEPT", largest_kept)
    monkeypatch.setattr(marginals, "LARGEST_BESIDE", largest_beside)
    rng = np.random.default_rng(seed)
    domain, _ = structure = random_structure(rng, 9, 3, seed % 3 > 0)
    potentials = random_potentials(structure, rng)
    model = GraphicalModel.from_potentials(domain, potentials, total=50.0)
    joint = brute_force(domain, potentials)
    queries = [q for width in (1, 2, 3, 4) for q in itertools.combinations(domain.columns, width)]
    for query, answer in zip(queries, model.marginals(queries), strict=True):
        np.testing.assert_allclose(answer, 50.0 * project(domain, joint, query), atol=1e-10)


@pytest.mark.parametrize("name", STRUCTURES)
def test_clique_tables_agree_on_their_separators_and_sum_to_one(name):
    model = random_model(name, spread=3.0)
    tree = model.tree
    for i, belief in enumerate(model.beliefs):
        assert belief.sum() == pytest.approx(1.0, abs=1e-12)
        if tree.parents[i] >= 0:
            here = Factor(tree.cliques[i], belief).marginal(tree.separators[i]).values
            parent = tree.parents[i]
            there = Factor(tree.cliques[parent], model.beliefs[parent])
            np.testing.assert_allclose(
                here, there.marginal(tree.separators[i]).values, rtol=1e-9, atol=1e-14
            )


@pytest.mark.parametrize("name", STRUCTURES)
def test_log_density_and_entropy_are_those_of_the_whole_table(name):
    model, _, joint = with_truth(name, 2, total=7.0)
    domain = model.domain
    codes = np.array(list(np.ndindex(domain.sizes)))
    np.testing.assert_allclose(model.log_density(codes), np.log(joint.reshape(-1)), atol=1e-10)
    assert model.entropy == pytest.approx(-np.sum(joint * np.log(joint)), abs=1e-10)


@pytest.mark.parametrize("name", ["chain", "cycle", "disconnected", "triples", "full clique"])
def test_conditioning_is_that_of_the_whole_table(name):
    model, _, joint = with_truth(name, 3, total=9.0)
    domain = model.domain
    given = {"b": 1, "d": 0}
    conditioned = model.condition(given)
    # Not normalised: its total is the expected number of rows with the given codes.
    kept = joint.take([1], axis=1).take([0], axis=3)
    np.testing.assert_allclose(
        conditioned.marginal(domain.columns), 9.0 * kept, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("spread", [30.0, 300.0, 3000.0])
@pytest.mark.parametrize("name", ["chain", "star", "cycle", "grid", "triples"])
def test_extreme_potentials_do_not_underflow(name, spread):
    model, potentials, joint = with_truth(name, 4, spread=spread)
    domain = model.domain
    for clique in itertools.combinations(domain.columns, 2):
        np.testing.assert_allclose(
            model.marginal(clique), project(domain, joint, clique), rtol=1e-7, atol=1e-12
        )
    log_joint = sum((p.expand(domain.columns) for p in potentials), np.zeros(domain.sizes))
    peak = log_joint.max()
    expected = peak + np.log(np.exp(log_joint - peak).sum())
    assert model.log_partition == pytest.approx(expected, rel=1e-10)


def test_messages_that_underflow_are_rescued():
    """Two ends of a chain contradict each other by more than the range of a float."""
    domain = Domain(("a", "b", "c"), (2, 2, 2))
    against = np.array([[0.0, -2000.0], [0.0, -2000.0]])
    in_favour = np.array([[-2001.0, -2001.0], [0.0, 0.0]])
    potentials = [Factor(("a", "b"), against), Factor(("b", "c"), in_favour)]
    model = GraphicalModel.from_potentials(domain, potentials)
    odds = model.marginal(("b",))
    assert odds[1] / odds[0] == pytest.approx(np.e, rel=1e-9)


def test_a_chain_longer_than_python_lets_calls_be_deep_is_exact():
    names = tuple(f"c{i}" for i in range(1200))
    domain = Domain(names, (4,) * 1200)
    rng = np.random.default_rng(5)
    potentials = [Factor(pair, rng.normal(size=(4, 4))) for pair in itertools.pairwise(names)]
    model = GraphicalModel.from_potentials(domain, potentials)
    # The joint of the ends is the product of the transfer matrices.
    product = np.eye(4)
    for potential in potentials:
        product = product @ np.exp(potential.values)
        product /= product.sum()
    np.testing.assert_allclose(model.marginal((names[0], names[-1])), product, rtol=1e-9)


def test_arrays_rebuild_the_model(tmp_path):
    model = random_model("triples", total=12.5)
    np.savez(tmp_path / "model.npz", **model.to_arrays())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        loaded = GraphicalModel.from_arrays(arrays)
    assert loaded.domain == model.domain
    assert loaded.total == model.total
    for query in [("a", "f"), ("d",), ("b", "c", "e")]:
        np.testing.assert_array_equal(loaded.marginal(query), model.marginal(query))


def test_contraction_is_the_sum_of_the_product():
    rng = np.random.default_rng(6)
    left = Factor(("a", "b", "c"), rng.random((2, 3, 4)))
    right = Factor(("d", "c", "b"), rng.random((5, 4, 3)))
    for keep in ["abcd", "abd", "d", "c", "", "ab", "bd"]:
        expected = np.einsum(f"abc,dcb->{keep}", left.values, right.values)
        result = contract(left, right, set(keep)).transpose(tuple(keep)).values
        np.testing.assert_allclose(result, expected)


def test_bad_questions_are_refused():
    model = random_model("chain")
    with pytest.raises(MethodError, match="'z'"):
        model.marginal(("a", "z"))
    with pytest.raises(MethodError, match="twice"):
        model.marginal(("a", "a"))
    with pytest.raises(MethodError, match="'z'"):
        model.condition({"z": 0})
    with pytest.raises(MethodError, match="codes 0 to 1"):
        model.condition({"b": 2})
    with pytest.raises(MethodError, match="one column"):
        model.log_density(np.zeros((3, 2), dtype=int))
    with pytest.raises(MethodError, match="below the size"):
        model.log_density(np.full((1, 5), 9))


@pytest.mark.parametrize("seed", range(3))
def test_inference_agrees_with_mbi(seed):
    rng = np.random.default_rng(seed)
    structure = domain, cliques = random_structure(rng, 7, 4, loopy=seed % 2 == 0)
    potentials = random_potentials(structure, rng, spread=2.0)
    model = GraphicalModel.from_potentials(domain, potentials)
    with mbi_in_double_precision() as (mbi, jax):
        other = mbi.Domain(domain.columns, domain.sizes)
        tables = {
            potential.columns: mbi.Factor(
                other.project(potential.columns), jax.numpy.asarray(potential.values)
            )
            for potential in potentials
        }
        vector = mbi.CliqueVector(other, cliques, tables)
        marginals = mbi.marginal_oracles.message_passing_shafer_shenoy(vector, 1.0)
        answers = [np.asarray(marginals[clique].datavector(flatten=False)) for clique in cliques]
    for clique, answer in zip(cliques, answers, strict=True):
        np.testing.assert_allclose(model.marginal(clique), answer, atol=1e-6)


@pytest.mark.parametrize("name", STRUCTURES)
def test_rough_marginals_are_right_to_a_millionth(name):
    model = random_model(name, seed=3)
    queries = [*itertools.combinations(model.domain.columns, min(2, len(model.domain)))]
    for rough, exact in zip(
        model.marginals(queries, is_rough=True), model.marginals(queries), strict=True
    ):
        assert rough.dtype == exact.dtype
        assert np.abs(rough - exact).sum() < 1e-5 * model.total
