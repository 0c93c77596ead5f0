"""Shares of many categories from noisy counts: rare ones share, frequent ones stand, sums hold."""

import math

import numpy as np
import pytest

from counterpoise.schema import Column, grouped
from counterpoise.schema.frequencies import expected_rows, neighbours, stand_clear


def height(deviation):
    return lambda draws, chance: deviation * math.sqrt(2 * math.log(draws / chance))


def noisy(size, exponent, rows, deviation, seed=0):
    rng = np.random.default_rng(seed)
    parts = np.arange(1, size + 1.0) ** -exponent
    exact = rng.multinomial(rows, rng.permutation(parts / parts.sum()))
    return exact, np.round(exact + rng.normal(0, deviation, size))


def distance(left, right):
    return float(np.abs(left / left.sum() - right / right.sum()).sum() / 2)


@pytest.mark.parametrize("deviation", [20.0, 70.0])
@pytest.mark.parametrize(("size", "exponent"), [(3000, 1.0), (3000, 1.3), (300, 0.3), (105, 0.0)])
def test_shares_are_no_worse_than_even_ones_and_better_than_counts_cut_at_zero(
    size, exponent, deviation
):
    exact, counts = noisy(size, exponent, 20_000, deviation)
    clear = stand_clear(counts, height(deviation))
    rows, _ = expected_rows(counts, deviation, clear, 20_000)
    left = max(0.0, 20_000 - counts[clear].sum())
    even = np.where(clear, counts, left / max(1, (~clear).sum()))
    assert (rows >= 0).all()
    assert distance(rows, exact) <= distance(even, exact) + 0.01
    assert distance(rows, exact) <= distance(np.maximum(counts, 0), exact) + 0.005


def test_what_is_left_of_the_rows_goes_to_what_does_not_stand_clear():
    exact, counts = noisy(2000, 1.2, 20_000, 40.0)
    clear = stand_clear(counts, height(40.0))
    rows, errors = expected_rows(counts, 40.0, clear, 20_000)
    assert 0 < clear.sum() < 100
    assert rows.sum() == pytest.approx(20_000)
    assert rows[~clear].sum() == pytest.approx(exact[~clear].sum(), rel=0.1)
    assert (errors[clear] == 40.0).all()
    assert (errors[~clear] <= 40.0).all()
    assert np.median(errors[~clear]) < 20.0


def test_hardly_any_category_stands_clear_by_chance():
    found = []
    for seed in range(50):
        noise = np.random.default_rng(seed).normal(0, 30.0, 1000)
        found.append(stand_clear(noise, height(30.0)).sum())
    assert np.mean(found) < 0.2


def test_noise_alone_is_shared_out_nearly_evenly():
    counts = np.random.default_rng(0).normal(0, 30.0, 1000)
    rows, _ = expected_rows(counts, 30.0, np.zeros(1000, dtype=bool), 500.0)
    assert rows.sum() == pytest.approx(500.0)
    assert distance(rows, np.ones(1000)) < 0.05


def test_counts_without_noise_stay_as_they_are():
    exact, _ = noisy(200, 1.0, 20_000, 1.0)
    clear = stand_clear(exact.astype(float), height(1e-4))
    rows, _ = expected_rows(exact.astype(float), 1e-4, clear, 20_000)
    assert rows == pytest.approx(exact, abs=0.01)


def test_the_largest_have_codes_of_their_own_and_the_rest_one():
    _, counts = noisy(500, 1.0, 50_000, 20.0)
    column = Column.categorical("c", [f"c{place}" for place in range(500)])
    made = grouped(column, counts, 20.0, 50_000, height(20.0), 12)
    codes = np.array(made.grouping.codes)
    assert made.cells == 12
    assert (codes < 11).sum() == 11
    assert counts[codes < 11].min() >= counts[codes == 11].max()
    assert sum(made.grouping.shares) == pytest.approx(1, abs=1e-6)


def test_of_ordered_categories_neighbours_go_together():
    column = Column.ordinal("c", range(60))
    counts = np.where(np.arange(60) == 20, 30_000.0, 500.0)
    made = grouped(column, counts, 20.0, counts.sum(), height(20.0), 8)
    assert made.cells <= 8
    assert list(made.grouping.codes) == sorted(made.grouping.codes)
    # What half of the rows have is by itself.
    assert made.grouping.codes.count(made.grouping.codes[20]) == 1


def test_as_many_runs_as_are_asked_for_have_about_as_many_rows_each():
    codes = neighbours(np.full(100, 0.01), 10)
    assert np.bincount(codes).tolist() == [10] * 10


@pytest.mark.parametrize("most", [2, 3, 8, 32])
@pytest.mark.parametrize("seed", range(5))
def test_runs_are_no_more_than_asked_for_and_heaps_are_by_themselves(most, seed):
    shares = np.random.default_rng(seed).pareto(0.8, 60)
    codes = neighbours(shares, most)
    assert set(np.diff(codes)) <= {0, 1}
    assert codes[0] == 0
    assert codes[-1] < most
    heap = int(shares.argmax())
    if most > 2 and shares[heap] * most > shares.sum():
        assert (codes == codes[heap]).sum() == 1
