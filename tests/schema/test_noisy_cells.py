"""Counts at two resolutions: least squares, and how well sums are known."""

import numpy as np
import pytest

from counterpoise.schema import NoisyCells

GROUPS = np.array([0, 0, 0, 1, 1, 1, 1, 2])
DEVIATION = 3.0


def covariance(groups=GROUPS, deviation=DEVIATION):
    """That of the best linear estimate, from the normal equations."""
    design = np.vstack([np.eye(len(groups)), groups == np.arange(groups[-1] + 1)[:, None]])
    return np.linalg.inv(design.T @ design) * deviation**2, design


def answer(seed=0):
    generator = np.random.default_rng(seed)
    counts, held = generator.normal(50, 30, 8), generator.normal(200, 50, 3)
    return NoisyCells.of(counts, held, GROUPS, DEVIATION), np.append(counts, held)


def test_cells_and_groups_are_put_together_by_least_squares():
    found, seen = answer()
    _, design = covariance()
    np.testing.assert_allclose(found.counts, np.linalg.lstsq(design, seen, rcond=None)[0])


def test_every_stretch_has_the_variance_of_least_squares():
    found, _ = answer()
    expected, _ = covariance()
    starts, ends = np.array([(s, e) for s in range(8) for e in range(s + 1, 9)]).T
    counts, variances = found.sums(starts, ends)
    for start, end, count, variance in zip(starts, ends, counts, variances, strict=True):
        assert count == pytest.approx(found.counts[start:end].sum())
        assert variance == pytest.approx(expected[start:end, start:end].sum())
    assert found.sum(0, 7) == pytest.approx((counts[6], variances[6] ** 0.5))


def test_a_template_is_projected_with_its_error():
    found, _ = answer()
    expected, _ = covariance()
    template = np.array([0, 0, 1.0, 2.0, -1.0, 0, 0, 3.0])
    value, error = found.projected(found.counts, template)
    assert value == pytest.approx(template @ found.counts / (template @ template))
    assert error**2 == pytest.approx(template @ expected @ template / (template @ template) ** 2)


def test_a_group_knows_its_sum_better_than_its_cells_do():
    groups = np.zeros(16, dtype=int)
    both = NoisyCells.of(np.ones(16), np.array([16.0]), groups, DEVIATION)
    alone = NoisyCells.alone(np.ones(16), DEVIATION)
    assert alone.sum(0, 16)[1] == pytest.approx(4 * DEVIATION)
    assert both.sum(0, 16)[1] < 1.01 * DEVIATION


def test_profiles_are_weighed_by_the_precision_of_cells_and_groups():
    found, _ = answer()
    expected, _ = covariance()
    cells = np.array([1, 2, 3, 5])
    profiles = np.zeros((2, 8))
    profiles[:, cells] = [[1.0, 2.0, 0.5, 0.0], [0.0, 1.0, 3.0, 2.0]]
    precision, along = found.weighed(found.counts, cells, profiles[:, cells])
    inverse = np.linalg.inv(expected)
    np.testing.assert_allclose(precision, np.diag(profiles @ inverse @ profiles.T))
    np.testing.assert_allclose(along, profiles @ inverse @ found.counts)
