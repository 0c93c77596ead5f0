"""Repeated discrete Gaussian noise: the tickets and what they leave add up to the exact law."""

import math

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from counterpoise.errors import BudgetError
from counterpoise.vault.noise import cells as room
from counterpoise.vault.noise.cells import RepeatedGaussian, is_below
from counterpoise.vault.noise.entropy import SeededEntropy, SystemEntropy
from counterpoise.vault.noise.integers import sample_by_table

SCALE = 5000.0

# Chi-square tests fail a sound sampler once in a million runs.
FALSE_ALARM = 1e-6


def probabilities(scale, low, high):
    """The exact law at low .. high - 1."""
    values = np.arange(low, high, dtype=float)
    return np.exp(-0.5 * (values / scale) ** 2) / (scale * math.sqrt(2 * math.pi))


def chi_square_p_value(draws, scale, width):
    """How well draws agree with the law, in bins of `width` integers."""
    reach = math.ceil(4 * scale / width) * width
    inside = draws[(draws >= -reach) & (draws < reach)]
    found = np.bincount((inside + reach) // width, minlength=2 * reach // width)
    expected = len(draws) * probabilities(scale, -reach, reach).reshape(-1, width).sum(axis=1)
    found = np.append(found, len(draws) - len(inside))
    expected = np.append(expected, len(draws) - expected.sum())
    return stats.chi2.sf(((found - expected) ** 2 / expected).sum(), len(found) - 1)


@pytest.mark.parametrize("scale", [2.0**12, SCALE, 2.0**13 - 1])
@pytest.mark.parametrize("width", [8, 1000])
def test_the_law_is_the_discrete_gaussian(scale, width):
    draws = RepeatedGaussian(scale, SystemEntropy()).draw(3_000_000)
    assert chi_square_p_value(draws, scale, width) > FALSE_ALARM


def test_a_large_scale_has_its_law_too():
    draws = RepeatedGaussian(1.9 * 2**22, SystemEntropy()).draw(1_000_000)
    assert stats.kstest(draws / (1.9 * 2**22), "norm").pvalue > FALSE_ALARM


def test_the_table_sampler_agrees():
    mine = RepeatedGaussian(SCALE, SeededEntropy(1)).draw(200_000)
    other = sample_by_table("gaussian", SCALE, 200_000, SeededEntropy(2))
    assert stats.ks_2samp(mine, other).pvalue > FALSE_ALARM


def test_tickets_and_weights_bound_the_law_from_both_sides():
    cells = room._cells(SCALE, 8.5)
    width = 1 << cells.offset_bits
    with mp.workprec(200):
        for place, (tickets, weight) in enumerate(zip(cells.tickets, cells.weights, strict=False)):
            first = (place - cells.side) * width
            for value in (first, first + width // 2, first + width - 1):
                left = width * room._probability(SCALE, value) - mp.mpf(int(tickets)) / 65536
                assert 0 <= mp.ldexp(left, 60) <= int(weight)
        beyond = sum(room._probability(SCALE, x) for x in range(cells.side * width, 45_000))
        assert 2 * mp.ldexp(beyond, 60) <= int(cells.weights[-1])


def test_every_ticket_belongs_to_a_cell_or_is_left_over():
    cells = room._cells(SCALE, 8.5)
    numbers, times = np.unique(cells.drawn, return_counts=True)
    found = dict(zip(numbers.tolist(), times.tolist(), strict=True))
    left_over = found.pop(room._LEFT_OVER)
    assert sum(found.values()) + left_over == 65536
    assert left_over < 0.02 * 65536
    expected = {c - cells.side: n for c, n in enumerate(cells.tickets.tolist()) if n}
    assert found == expected


def test_what_is_left_is_drawn_by_its_own_law():
    cells = room._cells(SCALE, 8.5)
    width = 1 << cells.offset_bits
    draws = room._from_what_is_left(cells, 300_000, SystemEntropy())
    reach = cells.side * width
    law = probabilities(SCALE, -reach, reach).reshape(-1, width).sum(axis=1)
    left = law - cells.tickets / 65536
    found = np.bincount((draws + reach) // width, minlength=2 * cells.side)
    expected = left / left.sum() * len(draws)
    often = expected > 20
    statistic = ((found - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2.sf(statistic, often.sum()) > FALSE_ALARM


def test_tails_beyond_the_cells_have_the_law():
    # Cells up to one deviation: a third of all draws are from the tails.
    draws = RepeatedGaussian(SCALE, SystemEntropy(), reach=1.0).draw(6_000)
    assert np.abs(draws).max() > 3 * SCALE
    assert chi_square_p_value(draws, SCALE, 500) > FALSE_ALARM


def test_what_floating_point_leaves_open_is_decided_precisely(monkeypatch):
    # Nothing counts as decided: every proposal is compared in arbitrary precision.
    monkeypatch.setattr(room, "_ROUNDING", 10.0)
    monkeypatch.setattr(room, "_AT_ONCE", 100)
    draws = RepeatedGaussian(SCALE, SystemEntropy()).draw(200_000)
    assert chi_square_p_value(draws, SCALE, 500) > FALSE_ALARM
    precise = room._from_what_is_left(room._cells(SCALE, 8.5), 3000, SeededEntropy(3))
    monkeypatch.undo()
    quick = room._from_what_is_left(room._cells(SCALE, 8.5), 3000, SeededEntropy(3))
    assert np.array_equal(precise, quick)


def test_a_comparison_is_continued_with_fresh_bits():
    # Two bits leave 0.3 undecided from 0 to 0.75; the bits that follow are uniform.
    entropy = SeededEntropy(0)
    found = [is_below(lambda: mp.mpf(0.3), word % 4, 2, entropy) for word in range(8_000)]
    assert stats.binomtest(sum(found), len(found), 0.3).pvalue > FALSE_ALARM
    assert all(not is_below(lambda: mp.mpf(0.3), 3, 2, entropy) for _ in range(50))


def test_seeds_repeat_and_batches_do_not_matter_to_the_law():
    first, second = (RepeatedGaussian(SCALE, SeededEntropy(5)) for _ in range(2))
    assert np.array_equal(first.draw(999), second.draw(999))
    assert np.array_equal(first.draw(1), second.draw(1))
    assert len(first.draw(0)) == 0


@pytest.mark.parametrize("scale", [1.0, 2.0**23, math.nan, -1.0])
def test_other_scales_are_refused(scale):
    with pytest.raises(BudgetError, match="scales from 2"):
        RepeatedGaussian(scale, SystemEntropy())
