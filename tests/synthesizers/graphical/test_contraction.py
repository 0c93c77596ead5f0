"""Sweeps by matrix products against Hugin propagation, which brute force has checked."""

import numpy as np
import pytest

from counterpoise.synthesizers.graphical import Domain, junction_tree
from counterpoise.synthesizers.graphical.contraction import (
    compile_contraction,
    log_partition_and_marginals,
)
from counterpoise.synthesizers.graphical.inference import Workspace, compile_schedule
from tests.synthesizers.graphical.structures import STRUCTURES, random_structure


def sweep_and_pass(structure, spread, seed=0):
    """What the sweep says, or None, and what a pass through the junction tree does."""
    domain, cliques = structure
    sets = frozenset(domain.canonical(clique) for clique in cliques)
    schedule = compile_schedule(junction_tree(domain, sets), sets)
    potentials = np.random.default_rng(seed).normal(0.0, spread, schedule.cells)
    swept = log_partition_and_marginals(compile_contraction(schedule), schedule, potentials)
    return swept, Workspace(schedule).marginals(potentials)


@pytest.mark.parametrize("name", [name for name in STRUCTURES if name != "nothing measured"])
def test_a_sweep_says_what_a_pass_does(name):
    (log_partition, marginals), (exact, expected) = sweep_and_pass(STRUCTURES[name], 2.0)
    assert log_partition == pytest.approx(exact, abs=1e-10)
    np.testing.assert_allclose(marginals, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_sweep_says_what_a_pass_does_on_random_graphs(seed):
    structure = random_structure(np.random.default_rng(seed), 9, 6, loopy=True)
    (log_partition, marginals), (exact, expected) = sweep_and_pass(structure, 1.0, seed)
    assert log_partition == pytest.approx(exact, abs=1e-10)
    np.testing.assert_allclose(marginals, expected, rtol=1e-9, atol=1e-15)


def test_a_sweep_that_would_lose_terms_says_so():
    chain = Domain(tuple("abc"), (2, 2, 2)), [("a", "b"), ("b", "c")]
    swept, (_, marginals) = sweep_and_pass(chain, 2000.0)
    assert swept is None
    assert marginals.sum() == pytest.approx(2.0)
