"""Rows that networks make: within their ranges, as likely as they should be, with true slopes."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.networks.generator import RowGenerator
from counterpoise.networks.inputs import Inputs
from counterpoise.networks.mixture import CodeMixture
from counterpoise.schema import Column, Schema
from counterpoise.schema.placing import place

SCHEMA = Schema(
    [
        Column.categorical("a", ["x", "y", "z"]),
        Column.continuous("b", 0, 10, nullable=True),
        Column.integer("c", 0, 9),
        Column.categorical("d", ["u", "v"], nullable=True),
        Column.continuous("e", -1, 1, nullable=True),
    ]
)


def numeric_gradient(value, point, step=1e-6):
    found = np.empty_like(point)
    for place_ in range(len(point)):
        ahead, behind = point.copy(), point.copy()
        ahead[place_] += step
        behind[place_] -= step
        found[place_] = (value(ahead) - value(behind)) / (2 * step)
    return found


@pytest.mark.parametrize("given", [None, "a"])
def test_the_gradient_of_made_rows_is_that_of_finite_differences(given):
    maker = RowGenerator(Inputs(SCHEMA), noise=3, hidden=(6,), given=given)
    generator = np.random.default_rng(0)
    parameters = maker.network.initial(generator)
    slopes = generator.standard_normal((7, maker.inputs.size))
    codes = None if given is None else np.array([0, 1, 2, 0, 1, 2, 0])

    def made(point):
        return maker.make(point, 7, np.random.default_rng(1), codes)

    found = maker.gradient(parameters, made(parameters), slopes)
    expected = numeric_gradient(lambda point: (made(point).inputs * slopes).sum(), parameters)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_given_column_is_made_as_it_is_given():
    maker = RowGenerator(Inputs(SCHEMA), noise=3, hidden=(6,), given="d")
    generator = np.random.default_rng(0)
    codes = np.array([0, 1, 2, 1])
    made = maker.make(maker.network.initial(generator), 4, generator, codes)
    assert maker.read(made.inputs)[0][:, 3].tolist() == codes.tolist()


def test_categories_are_as_frequent_as_their_chances():
    maker = RowGenerator(Inputs(SCHEMA), noise=1, hidden=())
    parameters = np.zeros(maker.network.size)
    maker.network.layers(parameters)[-1][1][:3] = np.log([0.2, 0.3, 0.5])
    made = maker.make(parameters, 40_000, np.random.default_rng(0))
    codes, _ = maker.read(made.inputs)
    shares = np.bincount(codes[:, 0], minlength=3) / len(codes)
    # Four standard deviations of a share.
    np.testing.assert_allclose(shares, [0.2, 0.3, 0.5], atol=0.01)


def test_what_was_made_is_coded_as_it_was_made():
    maker = RowGenerator(Inputs(SCHEMA), noise=3, hidden=(6,))
    generator = np.random.default_rng(0)
    made = maker.make(maker.network.initial(generator), 200, generator)
    codes, places = maker.read(made.inputs)
    table = place(SCHEMA, codes, places, generator)
    coded = SCHEMA.encode(table)
    for name in ("a", "d"):
        assert (coded.codes[:, SCHEMA.index(name)] == codes[:, SCHEMA.index(name)]).all()
    for name in ("b", "e"):
        position = SCHEMA.index(name)
        null = codes[:, position] == SCHEMA[name].null_code
        assert (pd.isna(table[name]) == null).all()
        assert null.any() and not null.all()
        np.testing.assert_allclose(coded.units[~null, position], places[~null, position])
    # A whole number is the nearest one.
    assert (abs(coded.units[:, 2] - places[:, 2]) <= 0.5 / 9 + 1e-9).all()


def test_the_gradient_of_chances_is_that_of_finite_differences():
    mixture = CodeMixture((2, 3, 1), noise=3, hidden=(5,))
    generator = np.random.default_rng(0)
    parameters = mixture.network.initial(generator)
    noise = mixture.draw_noise(6, generator)
    slopes = generator.standard_normal((6, 6))
    passed = mixture.network.forward(parameters, noise)
    found = mixture.gradient(parameters, passed, mixture.softmax(passed.outputs, noise), slopes)
    expected = numeric_gradient(
        lambda point: (mixture.chances(point, noise) * slopes).sum(), parameters
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_codes_are_as_frequent_as_their_chances():
    mixture = CodeMixture((3, 2), noise=1, hidden=())
    parameters = np.zeros(mixture.network.size)
    mixture.network.layers(parameters)[-1][1][:3] = np.log([0.2, 0.3, 0.5])
    codes = mixture.draw(parameters, 40_000, np.random.default_rng(0))
    shares = np.bincount(codes[:, 0], minlength=3) / len(codes)
    np.testing.assert_allclose(shares, [0.2, 0.3, 0.5], atol=0.01)
    assert abs(codes[:, 1].mean() - 0.5) < 0.01
