"""A balanced part of a pool: the right chances, no row twice, counts as expected."""

import numpy as np
import pytest

from counterpoise.weights import balance
from counterpoise.weights.balance import inclusion, keep

SIZES = (3, 4, 5, 2)


def pool(rows=4000, seed=0, spread=0.6):
    generator = np.random.default_rng(seed)
    codes = np.stack([generator.integers(0, size, rows) for size in SIZES], axis=1)
    weights = np.exp(spread * (codes[:, 0] - 1) + 0.3 * generator.normal(size=rows))
    return codes, weights / weights.mean()


def misfit(codes, weights, kept):
    """The chi-square of all one-way and two-way tables against those of the weighted pool."""
    cells, count = balance._cells(codes, SIZES, len(kept.places))
    size = cells.shape[1]
    expected = np.bincount(cells.ravel(), np.repeat(weights, size), count)
    expected *= len(kept.places) / len(codes)
    found = np.bincount(cells[kept.places].ravel(), np.repeat(kept.weights, size), count)
    return ((found - expected) ** 2 / (expected + 0.5)).sum()


def test_chances_add_up_and_none_is_above_one():
    weights = np.random.default_rng(0).pareto(1.2, 500) + 0.01
    chances = inclusion(weights, 200)
    assert chances.sum() == pytest.approx(200)
    assert chances.max() == 1
    free = chances < 1
    assert np.ptp(chances[free] / weights[free]) < 1e-12


def test_no_row_is_kept_twice_and_what_is_left_to_weigh_is_the_weight_over_the_chance():
    codes, weights = pool(spread=0.3)
    kept = keep(codes, SIZES, weights, 1000, np.random.default_rng(1))
    assert len(np.unique(kept.places)) == 1000
    chances = inclusion(weights, 1000)[kept.places]
    left, stands_for = weights[kept.places] / chances, 1 / chances
    assert kept.weights == pytest.approx(left / left.mean(), abs=1e-9)
    assert kept.stands_for == pytest.approx(stands_for / stands_for.mean(), abs=1e-9)
    # All but those that are certain weigh the same.
    assert np.ptp(kept.weights[chances < 1]) < 1e-9


def test_rows_heavier_than_a_place_keep_the_rest_of_their_weight():
    weights = np.ones(100)
    weights[7] = 30.0
    kept = keep(np.zeros((100, 1), dtype=int), (1,), weights, 20, np.random.default_rng(0))
    heavy = kept.places == 7
    assert heavy.sum() == 1
    assert kept.weights[heavy][0] / kept.weights[~heavy][0] == pytest.approx(30 / (99 / 19))


def test_a_balanced_part_is_much_closer_to_the_pool_than_a_plain_draw(monkeypatch):
    codes, weights = pool()
    balanced = keep(codes, SIZES, weights, 1000, np.random.default_rng(1))
    monkeypatch.setattr(balance, "SWEEPS", 0)
    plain = keep(codes, SIZES, weights, 1000, np.random.default_rng(1))
    assert misfit(codes, weights, balanced) < 0.2 * misfit(codes, weights, plain)


def test_rows_are_kept_as_often_as_their_weights_say():
    """Over 300 draws the frequencies are off by no more than chance makes them: chi-square."""
    codes, weights = pool(rows=200)
    chances = inclusion(weights, 50)
    kept = np.zeros(200)
    for seed in range(300):
        kept[keep(codes, SIZES, weights, 50, np.random.default_rng(seed)).places] += 1
    scaled = (kept - 300 * chances) / np.sqrt(300 * chances * (1 - chances))
    assert abs(np.corrcoef(kept, chances)[0, 1]) > 0.9
    assert np.sqrt((scaled**2).mean()) < 2.0


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_very_few_rows_can_be_kept(rows):
    codes, weights = pool(rows=8)
    kept = keep(codes, SIZES, weights, rows, np.random.default_rng(0))
    assert len(np.unique(kept.places)) == rows
