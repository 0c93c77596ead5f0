"""Support points: few that are as near to the rows, by energy, as points can be."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from counterpoise.errors import MethodError
from counterpoise.importance import energy, support_points
from counterpoise.importance.points import ROUTES
from tests.odd import foreign_errors


def two_clusters(rows=300, seed=0):
    """Three quarters of the rows near (0.2, 0.2), the others near (0.8, 0.7)."""
    generator = np.random.default_rng(seed)
    centres = np.where(generator.random(rows)[:, None] < 0.75, [[0.2, 0.2]], [[0.8, 0.7]])
    return centres + 0.04 * generator.standard_normal((rows, 2))


@pytest.mark.parametrize("route", ROUTES)
def test_points_of_one_column_are_its_quantiles(route):
    rows = np.random.default_rng(0).gamma(2, size=(400, 1))
    found = np.sort(support_points(rows, 5, route=route, steps=2000, seed=1)[:, 0])
    assert np.allclose(found, np.quantile(rows, (np.arange(5) + 0.5) / 5), atol=0.06)


@pytest.mark.parametrize("route", ROUTES)
def test_clusters_get_points_by_their_size(route):
    rows = two_clusters()
    for seed in range(6):
        found = support_points(rows, 12, route=route, steps=50, seed=seed)
        assert abs(np.sum(found[:, 0] > 0.5) - 12 * np.mean(rows[:, 0] > 0.5)) < 1
    found = support_points(rows, 12, route=route, seed=2)
    drawn = rows[np.random.default_rng(3).choice(len(rows), 12, replace=False)]
    assert energy(rows, found) < 0.5 * energy(rows, drawn)


@pytest.mark.parametrize("route", ROUTES)
def test_weights_are_as_good_as_copies(route):
    rows = two_clusters(60)
    times = np.random.default_rng(4).integers(0, 4, len(rows))
    weighted = support_points(rows, 6, times, route=route, seed=5)
    copies = np.repeat(rows, times, axis=0)
    # Another start ends elsewhere, and about as low.
    again = support_points(copies, 6, route=route, seed=6)
    assert energy(copies, weighted) < 1.3 * energy(copies, again)
    assert energy(rows, weighted, times) == pytest.approx(energy(copies, weighted))


def test_no_convex_concave_step_leads_up():
    rows = two_clusters(200)
    reached = [energy(rows, support_points(rows, 8, steps=steps, seed=7)) for steps in range(1, 25)]
    assert (np.diff(reached) < 1e-9).all()
    assert reached[-1] < 0.9 * reached[0]


def test_no_small_step_betters_what_was_found():
    rows = two_clusters(200)
    found = support_points(rows, 8, steps=5000, tolerance=1e-7, seed=8)
    least = energy(rows, found)
    generator = np.random.default_rng(9)
    for _ in range(50):
        assert energy(rows, found + 3e-3 * generator.standard_normal(found.shape)) > least - 1e-6


@pytest.mark.parametrize("route", ROUTES)
def test_points_stay_within_the_ranges_of_the_rows(route):
    rows = np.random.default_rng(10).random((100, 6)) ** 3
    found = support_points(rows, 40, route=route, seed=1)
    assert (found >= rows.min(axis=0) - 1e-12).all()
    assert (found <= rows.max(axis=0) + 1e-12).all()


def test_blocks_make_no_difference(monkeypatch):
    rows = two_clusters(100)
    whole = support_points(rows, 7, steps=20, seed=1), energy(rows, rows[:7])
    monkeypatch.setattr("counterpoise.importance.points.BLOCK_PAIRS", 50)
    assert np.allclose(support_points(rows, 7, steps=20, seed=1), whole[0])
    assert energy(rows, rows[:7]) == pytest.approx(whole[1])


def test_units_and_places_of_the_rows_do_not_matter():
    rows = two_clusters(100)
    found = support_points(rows, 5, seed=1)
    assert np.allclose(support_points(1e6 * rows - 3e6, 5, seed=1), 1e6 * found - 3e6, atol=1)


def test_the_energy_is_that_of_all_pairs():
    generator = np.random.default_rng(11)
    x, y, p, q = *generator.random((2, 9, 3)), *generator.random((2, 9))
    p, q = p / p.sum(), q / q.sum()
    expected = 2 * p @ cdist(x, y) @ q - p @ cdist(x, x) @ p - q @ cdist(y, y) @ q
    assert energy(x, y, 3 * p, 5 * q) == pytest.approx(expected)


def test_points_that_start_on_the_same_row_part():
    corners = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 25, axis=0)
    found = support_points(corners, 5, seed=1)
    assert np.sum(np.abs(found - 0.5).max(axis=1) < 0.05) == 1


def test_rows_that_are_all_the_same_are_their_own_points():
    assert np.allclose(support_points(np.full((10, 2), 4.0), 3, seed=1), 4.0)


def test_rows_without_weight_draw_no_point():
    found = support_points([[0.0], [0.1], [2.0]], 2, [1.0, 1.0, 0.0], seed=1)
    assert found.max() < 0.2


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(MethodError, match="count"):
        support_points([[0.0], [1.0]], 3)
    with pytest.raises(MethodError, match="as many columns"):
        energy([[0.0]], [[0.0, 1.0]])


SOUND = {
    "points": np.random.default_rng(0).random((4, 2)),
    "count": 2,
    "weights": None,
    "route": "ccp",
    "steps": 3,
    "tolerance": 0.1,
    "seed": 1,
}


@pytest.mark.parametrize("argument", SOUND)
def test_odd_arguments_are_refused_in_our_words(argument):
    assert foreign_errors(support_points, SOUND, argument) == {}
