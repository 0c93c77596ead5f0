"""Poisson samples: every row with one probability, independently, whatever the table of gaps."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from counterpoise.vault.noise import Noise, sampling
from counterpoise.vault.noise.entropy import SeededEntropy, SystemEntropy
from counterpoise.vault.noise.sampling import geometric_gaps, poisson_sample

# Each test fails a sound sampler once in a million runs.
FALSE_ALARM = 1e-6


def samples(rows, rate, runs):
    found = np.zeros((runs, rows), dtype=bool)
    for run in range(runs):
        found[run, poisson_sample(rows, rate, SystemEntropy())] = True
    return found


@pytest.mark.parametrize(("rows", "rate"), [(40, 0.3), (40, 0.97), (200, 0.01), (1, 0.5)])
def test_each_row_is_taken_with_the_rate_and_by_itself(rows, rate):
    runs = 6000
    found = samples(rows, rate, runs)
    # Every row as often.
    expected = runs * rate
    statistic = ((found.sum(axis=0) - expected) ** 2).sum() / (expected * (1 - rate))
    assert stats.chi2.sf(statistic, rows) > FALSE_ALARM / 2
    # A single row may well be taken exactly as often as expected.
    assert rows == 1 or stats.chi2.cdf(statistic, rows) > FALSE_ALARM / 2
    # As many together as independent rows are.
    sizes = found.sum(axis=1)
    deviation = np.sqrt(rows * rate * (1 - rate))
    centred = (sizes - rows * rate) / deviation
    assert stats.chi2.sf((centred**2).sum(), runs) > FALSE_ALARM / 2
    assert stats.chi2.cdf((centred**2).sum(), runs) > FALSE_ALARM / 2
    # A row says nothing of the next, nor of the one after it.
    for apart in (1, 2):
        together = (found[:, apart:] & found[:, :-apart]).sum()
        pairs = runs * max(0, rows - apart)
        if pairs:
            spread = np.sqrt(pairs * rate**2 * (1 - rate**2) * 3)
            assert abs(together - pairs * rate**2) < 5 * spread + 1


def test_sizes_of_samples_are_binomial():
    sizes = samples(30, 0.2, 10_000).sum(axis=1)
    law = stats.binom(30, 0.2)
    found = np.bincount(np.minimum(sizes, 13), minlength=14)
    expected = 10_000 * np.append(law.pmf(np.arange(13)), law.sf(12))
    assert stats.chisquare(found, expected).pvalue > FALSE_ALARM


def test_boundaries_are_the_powers_to_one_unit():
    rate = 0.0371
    found = sampling._boundaries(rate, 64)
    for gap in (1, 2, 17, len(found)):
        exact = (1 - Fraction(rate)) ** gap * 2**64
        assert abs(found[len(found) - gap] - exact) <= 1


def test_gaps_that_are_cut_go_on_as_if_nothing_had_been(monkeypatch):
    monkeypatch.setattr(sampling, "_MOST_BOUNDARIES", 3)
    sampling._table64.cache_clear()
    sizes = samples(50, 0.1, 6_000).sum(axis=1)
    sampling._table64.cache_clear()
    law = stats.binom(50, 0.1)
    found = np.bincount(np.minimum(sizes, 12), minlength=13)
    expected = 6_000 * np.append(law.pmf(np.arange(12)), law.sf(11))
    assert stats.chisquare(found, expected).pvalue > FALSE_ALARM


def test_a_sample_that_needs_more_draws_goes_on_where_they_ended(monkeypatch):
    told = geometric_gaps(0.2, 400, SeededEntropy(1)).tolist()
    given = iter(told)

    def few(rate, count, entropy):
        return np.array([next(given) for _ in range(3)])

    monkeypatch.setattr(sampling, "geometric_gaps", few)
    found = poisson_sample(300, 0.2, SeededEntropy(0))
    # Each gap, and then the row that is taken.
    places = np.cumsum(np.array(told) + 1) - 1
    assert found.tolist() == places[places < 300].tolist()


class OnABoundary:
    """Words that are exactly a boundary, so that 64 bits never decide; then fair ones."""

    private = False

    def __init__(self, boundary):
        self._boundary, self._fair = boundary, SeededEntropy(4)

    def words(self, count):
        found = self._fair.words(count).copy()
        if count > 1:
            found[:] = self._boundary
        return found


def test_a_number_on_a_boundary_is_continued_with_more_bits():
    rate = 0.25
    table = sampling._table64(rate)
    # 0.75 * 2^64 is whole, so the continued number is at or above the boundary: the gap is 0. The
    # boundary itself is known to one unit only, so 64 bits do not say it.
    assert (geometric_gaps(rate, 300, OnABoundary(table[-1])) == 0).all()
    just_below = geometric_gaps(rate, 300, OnABoundary(table[-1] - np.uint64(1)))
    assert (just_below == 1).all()
    # (3/4)^40 2^64 is not whole: the bits that follow decide between the two gaps.
    either = set(geometric_gaps(rate, 300, OnABoundary(table[-40])).tolist())
    assert either == {39, 40}


def test_all_rows_at_a_rate_of_one_and_none_of_an_empty_table():
    assert poisson_sample(5, 1.0, SystemEntropy()).tolist() == [0, 1, 2, 3, 4]
    assert len(poisson_sample(0, 0.5, SystemEntropy())) == 0
    assert len(poisson_sample(1000, 1e-12, SystemEntropy())) == 0


def test_seeds_repeat():
    assert np.array_equal(Noise(7).sample(1000, 0.1), Noise(7).sample(1000, 0.1))
