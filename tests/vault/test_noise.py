"""Noise has the law it says it has. Draws are seeded, so no test here fails by chance."""

import math

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from counterpoise.errors import BudgetError
from counterpoise.vault.noise import Grid, Noise
from counterpoise.vault.noise.entropy import SeededEntropy, SystemEntropy, longer
from counterpoise.vault.noise.integers import (
    _add_noise,
    _boundaries,
    _refine,
    _through_opendp,
    sample_by_table,
)
from counterpoise.vault.noise.selection import _choose_precisely, choose

LAWS = ["gaussian", "laplace"]


def exact_probabilities(law: str, scale: float, reach: int) -> np.ndarray:
    """P(Z = k) for |k| <= reach, with the tail added to the last cells."""
    support = np.arange(-40 * max(1, math.ceil(scale)), 40 * max(1, math.ceil(scale)) + 1)
    exponents = -(support**2) / (2 * scale**2) if law == "gaussian" else -np.abs(support) / scale
    weights = np.exp(exponents)
    weights /= weights.sum()
    middle = np.abs(support) < reach
    tail = (1 - weights[middle].sum()) / 2
    return np.concatenate([[tail], weights[middle], [tail]])


def observed_counts(draws: np.ndarray, reach: int) -> np.ndarray:
    clipped = np.clip(draws, -reach, reach) + reach
    return np.bincount(clipped, minlength=2 * reach + 1)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7, 25.0])
def test_the_table_sampler_has_the_exact_law(law, scale):
    draws = sample_by_table(law, scale, 200_000, SeededEntropy(7))
    reach = math.ceil(2 * scale) + 1
    expected = 200_000 * exact_probabilities(law, scale, reach)
    assert stats.chisquare(observed_counts(draws, reach), expected).pvalue > 1e-3


@pytest.mark.parametrize("law", LAWS)
def test_the_table_sampler_agrees_with_opendp(law):
    # OpenDP cannot be seeded: false-alarm rate 1e-6.
    ours = observed_counts(sample_by_table(law, 6.0, 40_000, SystemEntropy()), 15)
    theirs = observed_counts(_through_opendp(law, np.zeros(40_000, dtype=np.int64), 6.0), 15)
    assert stats.chi2_contingency(np.array([ours, theirs])).pvalue > 1e-6


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.3, 2.5])
def test_boundaries_are_the_cumulative_law_to_one_unit(law, scale):
    boundaries, largest = _boundaries(law, scale, 64)
    with mp.workprec(300):
        reach = 40 * largest

        def weight(k):
            exponent = mp.mpf(k) ** 2 / (2 * mp.mpf(scale) ** 2)
            return mp.exp(-(exponent if law == "gaussian" else abs(k) / mp.mpf(scale)))

        total = mp.fsum(weight(k) for k in range(-reach, reach + 1))
        below = mp.fsum(weight(k) for k in range(-reach, -largest))
        for index, boundary in enumerate(boundaries):
            below += weight(index - largest)
            exact = mp.ldexp(below / total, 64)
            assert -1 < exact - boundary < 2


@pytest.mark.parametrize("law", LAWS)
def test_more_bits_refine_a_draw_and_never_change_it(law):
    entropy = SeededEntropy(3)
    words = SeededEntropy(11).words(300)

    class Replay:
        private = False

        def words(self, count):
            return words[:count]

    draws = sample_by_table(law, 4.0, len(words), Replay())
    refined = [_refine(law, 4.0, int(word), entropy) for word in words]
    assert draws.tolist() == refined


def test_a_draw_in_the_far_tail_is_resolved_beyond_the_table():
    class Zeros:
        """The smallest uniform number, to 64 bits, and then ordinary bits."""

        private = False

        def __init__(self):
            self.rest = SeededEntropy(5)
            self.first = True

        def words(self, count):
            if self.first:
                self.first = False
                return np.zeros(count, dtype=np.uint64)
            return self.rest.words(count)

    [draw] = sample_by_table("gaussian", 10.0, 1, Zeros())
    # P(Z <= -9 sigma) is about 2^-63.
    assert -110 < draw < -85


@pytest.mark.parametrize("law", LAWS)
def test_large_and_small_vectors_have_the_same_spread(law):
    factor = 1.0 if law == "gaussian" else math.sqrt(2)
    for size, scale in [(200, 30.0), (20_000, 30.0), (200, 1e6)]:
        runs = max(1, 4000 // size)
        draws = np.concatenate(
            [
                _add_noise(law, np.zeros(size, dtype=int), scale, SystemEntropy())
                for _ in range(runs)
            ]
        )
        # 4,000 draws: the standard deviation is within 15% except once in more than 10^9 runs.
        assert draws.std() == pytest.approx(factor * scale, rel=0.15)


def test_noise_keeps_shape_and_adds_to_the_value():
    noised = Noise(seed=2).gaussian(np.full((3, 4), 1000), 0.5)
    assert noised.shape == (3, 4)
    assert noised.dtype == np.int64
    assert abs(noised - 1000).max() < 6


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_noise_without_a_positive_scale_is_refused(scale):
    with pytest.raises(BudgetError, match="positive"):
        Noise().gaussian(np.zeros(2, dtype=int), scale)


def test_a_seed_repeats_the_noise_and_is_not_private():
    first, second = (Noise(seed=5).laplace(np.zeros(50, dtype=int), 9.0) for _ in range(2))
    assert (first == second).all()
    assert not Noise(seed=5).private
    assert Noise().private
    system = [Noise().laplace(np.zeros(50, dtype=int), 1e6).tolist() for _ in range(2)]
    assert system[0] != system[1]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_l2_laplace_has_a_gamma_radius_and_a_uniform_direction(size):
    noise, scale = Noise(seed=1), 1e5
    draws = np.array([noise.l2_laplace(np.zeros(size, dtype=int), scale) for _ in range(600)])
    radii = np.linalg.norm(draws, axis=1) / scale
    assert stats.kstest(radii, stats.gamma(size).cdf).pvalue > 1e-3
    # Any coordinate of a uniform direction has mean 0 and mean square 1/size.
    directions = draws / np.linalg.norm(draws, axis=1)[:, None]
    assert abs(directions.mean(axis=0)).max() < 4 / math.sqrt(600)
    assert (directions**2).mean(axis=0) == pytest.approx(1 / size, rel=0.25)


def test_the_exponential_mechanism_has_its_probabilities():
    scores, rate = np.array([0, 3, -2, 3, 1]), 0.6
    entropy = SeededEntropy(4)
    chances = np.exp(rate * scores) / np.exp(rate * scores).sum()
    drawn = np.bincount([choose(scores, rate, entropy) for _ in range(20_000)], minlength=5)
    assert stats.chisquare(drawn, 20_000 * chances).pvalue > 1e-3


def test_the_precise_choice_is_the_quick_choice():
    scores = np.array([0, 3, -2, 3, 1])
    words = SeededEntropy(9).words(200)
    for word in words:

        class Replay:
            private = False

            def words(self, count, word=word):
                return np.array([word], dtype=np.uint64)

        quick = choose(scores, 0.6, Replay())
        assert quick == _choose_precisely(scores - 3, 0.6, int(word), SeededEntropy(1))


@pytest.mark.parametrize("scores", [[5], [0, -(10**12)], [-(10**15)] * 3])
def test_the_exponential_mechanism_takes_extreme_scores(scores):
    assert choose(np.array(scores), 1.0, SystemEntropy()) in range(len(scores))


def test_the_grid_is_a_power_of_two_and_knows_its_rounding():
    grid = Grid.below(3.0)
    assert math.log2(grid.step).is_integer()
    values = np.random.default_rng(0).normal(size=(1000, 7))
    error = np.linalg.norm(grid.values(grid.round(values)) - values, axis=1)
    assert error.max() <= grid.rounding(7)


def test_longer_numbers_fill_all_their_bits():
    numbers = [longer(SystemEntropy(), 128) for _ in range(200)]
    assert max(numbers).bit_length() == 128
    assert len(set(numbers)) == 200


def test_what_is_far_off_the_grid_or_no_number_is_cut_before_it_wraps_around():
    points = Grid(0.5).round(np.array([1.2, -math.inf, 1e300, math.nan]))
    assert points.tolist() == [2, -(2**62), 2**62, 0]
