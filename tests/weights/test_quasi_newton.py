"""Many minima at once: each where it is alone, however stiff the others are."""

import numpy as np
import pytest

from counterpoise.weights.quasi_newton import Curvatures, Valued, minimise_many


def stiff(size: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Hessians whose largest curvature is a thousand times the least, and where minima are."""
    generator = np.random.default_rng(seed)
    turns = np.linalg.qr(generator.normal(size=(columns, size, size)))[0]
    scales = np.geomspace(1e-2, 10.0, size)
    return (turns * scales) @ turns.transpose(0, 2, 1), generator.normal(size=(size, columns))


def quadratic(hessians: np.ndarray, minima: np.ndarray, seen: list[int]):
    """Functions that are least there; `seen` gets how many columns each pass had."""

    def valued(places: np.ndarray, which: np.ndarray) -> Valued:
        seen.append(len(which))
        left = places - minima[:, which]
        gradients = np.einsum("kij,jk->ik", hessians[which], left)
        return Valued(0.5 * (left * gradients).sum(axis=0), gradients)

    return valued


def test_stiff_functions_are_minimised_and_columns_that_are_done_are_left_alone():
    hessians, minima = stiff(12, 5, seed=0)
    start = minima.copy()
    start[:, :4] = 0.0
    seen = list[int]()
    curvatures = Curvatures(np.ones((12, 5)))
    found = minimise_many(quadratic(hessians, minima, seen), start, curvatures, 1e-6)
    left = found - minima
    assert np.einsum("ik,kij,jk->k", left, hessians, left).mean() < 1e-5
    # The fifth is where it should be from the start, and is looked at once.
    assert seen[0] == 5
    assert max(seen[1:]) == 4


def test_what_was_learned_of_curvatures_spares_passes_on_functions_nearly_the_same():
    hessians, minima = stiff(12, 4, seed=1)
    first, again, fresh = list[int](), list[int](), list[int]()
    curvatures = Curvatures(np.ones((12, 4)))
    found = minimise_many(quadratic(hessians, minima, first), 0 * minima, curvatures, 1e-6)
    moved = minima + 0.2 * np.random.default_rng(2).normal(size=minima.shape)
    minimise_many(quadratic(1.02 * hessians, moved, again), found, curvatures, 1e-6)
    minimise_many(
        quadratic(1.02 * hessians, moved, fresh), found, Curvatures(np.ones((12, 4))), 1e-6
    )
    assert len(again) < 0.7 * len(fresh)


def test_a_hessian_that_all_columns_are_near_spares_passes():
    [common], _ = stiff(12, 1, seed=3)
    generator = np.random.default_rng(4)
    # Each column has the common Hessian on scales of its own, which only its diagonal tells of.
    scales = np.exp(generator.normal(size=(12, 4)))
    hessians = scales.T[:, :, None] * common * scales.T[:, None, :]
    diagonals = np.stack([np.diag(each) for each in hessians], axis=1)
    minima, near, far = generator.normal(size=(12, 4)), list[int](), list[int]()
    curvatures = Curvatures(diagonals, common)
    found = minimise_many(quadratic(hessians, minima, near), 0 * minima, curvatures, 1e-6)
    assert found == pytest.approx(minima, abs=1e-2)
    minimise_many(quadratic(hessians, minima, far), 0 * minima, Curvatures(diagonals), 1e-6)
    # One step is all the way, but for single precision.
    assert len(near) <= 3 < len(far)


def test_steps_that_go_up_are_shortened_and_exponentials_are_survived():
    """From far on the flat side, a step by the curvature there is far too long."""

    def valued(places: np.ndarray, which: np.ndarray) -> Valued:
        with np.errstate(over="ignore"):
            tilted = np.exp(places)
        return Valued((tilted - 2 * places).sum(axis=0), tilted - 2)

    start = np.array([[-6.0, 0.0, 3.0]])
    found = minimise_many(valued, start, Curvatures(np.full((1, 3), 1e-3)), 1e-8)
    assert found[0] == pytest.approx(np.full(3, np.log(2)), abs=1e-3)


def test_a_function_that_cannot_be_lowered_ends_the_search():
    def valued(places: np.ndarray, which: np.ndarray) -> Valued:
        # Gradients that promise what the values do not keep
        return Valued((places != 0).sum(axis=0).astype(float), np.ones_like(places))

    found = minimise_many(valued, np.zeros((1, 2)), Curvatures(np.ones((1, 2))), 1e-9)
    assert found.tolist() == [[0.0, 0.0]]
