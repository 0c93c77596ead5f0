"""The preconditioner: a proper one, exact where sets share a column, and worth its price."""

import numpy as np
import pytest

from counterpoise.synthesizers.graphical import Domain, Measurement, fit_report, junction_tree
from counterpoise.synthesizers.graphical.inference import compile_schedule
from counterpoise.synthesizers.graphical.precondition import precondition
from tests.synthesizers.graphical.structures import STRUCTURES


def _schedule(domain, column_sets):
    columns = frozenset(domain.canonical(columns) for columns in column_sets)
    return compile_schedule(junction_tree(domain, columns), columns)


@pytest.mark.parametrize("name", ["chain", "star", "all pairs", "triples", "full clique"])
def test_it_is_symmetric_and_positive(name):
    schedule = _schedule(*STRUCTURES[name])
    rng = np.random.default_rng(0)
    ridge, counts = rng.uniform(0.1, 1.0, (2, schedule.cells)) * [[1.0], [50.0]]
    step = precondition(schedule, ridge)(counts + ridge)
    matrix = np.stack([step(unit) for unit in np.eye(schedule.cells)])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9)
    assert np.linalg.eigvalsh(matrix).min() > 0


def test_it_is_exact_for_sets_that_have_nothing_but_a_column_in_common():
    # A column of one value makes two sets of the same column.
    domain = Domain(("a", "b"), (4, 1))
    schedule = _schedule(domain, [("a",), ("a", "b")])
    counts, ridges = np.array([900.0, 90.0, 9.0, 0.0]), (0.3, 2.0)
    ridge = np.repeat(ridges, 4)
    vector = np.random.default_rng(1).normal(size=(2, 4))
    # A constant of a set is a matter of its own.
    vector -= vector.mean(axis=1, keepdims=True)
    step = precondition(schedule, ridge)(np.tile(counts, 2) + ridge)(vector.reshape(-1))
    first, second = step.reshape(2, 4)
    # Hessian: counts (sum_i f_i)^2 / 2 + sum_i ridge_i f_i^2 / 2.
    np.testing.assert_allclose(counts * (first + second) + ridges[0] * first, vector[0], atol=1e-9)
    np.testing.assert_allclose(counts * (first + second) + ridges[1] * second, vector[1], atol=1e-9)


def test_many_tables_of_one_column_take_few_passes():
    """Each of the eight pairs and nine columns pulls at the column that the pairs share."""
    rng = np.random.default_rng(2)
    names = tuple("abcdefghi")
    domain = Domain(names, (6,) * 9)
    shared = rng.integers(0, 6, 5000)
    rows = [shared] + [(shared + rng.integers(0, 3, 5000)) % 6 for _ in names[1:]]
    measured = []
    for one in [*((place,) for place in range(9)), *((0, other) for other in range(1, 9))]:
        table = np.zeros([6] * len(one))
        np.add.at(table, tuple(rows[place] for place in one), 1)
        noisy = table + 10.0 * rng.normal(size=table.shape)
        measured.append(Measurement(tuple(names[place] for place in one), noisy, 10.0))
    report = fit_report(domain, measured, total=5000.0)
    assert report.gap <= 1e-3 * max(1.0, report.loss)
    assert report.passes <= 30  # With trades alone it takes 35.
