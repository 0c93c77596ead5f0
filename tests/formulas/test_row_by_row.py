"""Products and lengths of rows: near those of numpy, and the same in every company."""

from fractions import Fraction

import numpy as np
import pytest

from counterpoise.formulas.row_by_row import row_products, row_squares


def odd_rows(columns):
    """Rows of all sizes, some of which cancel."""
    generator = np.random.default_rng(columns)
    sizes = np.exp(generator.normal(0, 9, (97, columns)))
    rows = generator.normal(size=(97, columns)) * sizes
    rows[0], rows[1], rows[2] = 0.0, 1e-300, 1e300
    return rows


@pytest.mark.parametrize("columns", [1, 2, 7, 33, 200])
def test_a_product_is_that_of_matrices(columns):
    rows, matrix = odd_rows(columns)[:5], np.random.default_rng(0).normal(size=(columns, 3))
    found = row_products(rows, matrix)
    most = np.abs(rows).max(axis=1, keepdims=True) * np.abs(matrix).max(axis=0)
    for row, column in np.ndindex(found.shape):
        pairs = zip(rows[row], matrix[:, column], strict=True)
        exact = sum(Fraction(a) * Fraction(b) for a, b in pairs)
        error = abs(Fraction(found[row, column]) - exact)
        assert error <= Fraction(most[row, column]) * columns**2 / 2**49


@pytest.mark.parametrize("columns", [1, 2, 7, 33, 200])
@pytest.mark.parametrize("make", ["products", "squares"])
def test_what_a_row_gives_is_the_same_to_the_last_bit_in_every_company(columns, make):
    matrix = np.random.default_rng(0).normal(size=(columns, 12))
    matrix[:, -1] *= 1e-200

    def made(rows):
        with np.errstate(over="ignore"):
            found = row_products(rows, matrix) if make == "products" else row_squares(rows)
        return found.reshape(len(rows), -1)

    rows = odd_rows(columns)
    whole = made(rows)
    for order in "CF":
        for size in (1, 2, 3, 5, 8, 13, 50):
            for start in range(0, len(rows), size):
                some = rows[start : start + size].copy(order)
                assert np.array_equal(made(some), whole[start : start + size])


def test_what_is_no_finite_number_is_none_in_its_own_row_alone():
    rows = np.array([[1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0], [3.0, 4.0]])
    found = row_products(rows, np.array([[1.0], [1.0]]))
    assert found[[0, 3], 0].tolist() == [3.0, 7.0]
    assert not np.isfinite(found[1:3]).any()


def test_rows_without_columns_are_zero():
    assert row_products(np.zeros((2, 0)), np.zeros((0, 3))).tolist() == [[0.0] * 3] * 2
    assert row_squares(np.zeros((2, 0))).tolist() == [0.0, 0.0]
