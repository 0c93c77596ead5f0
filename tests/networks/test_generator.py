"""Rows that networks make: within their ranges, as likely as they should be, with true slopes."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.networks.code_generator import CodeGenerator
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


def test_a_given_column_of_codes_is_certain_and_has_no_slope():
    mixture = CodeMixture((2, 3), noise=3, hidden=(5,), given=1)
    generator = np.random.default_rng(0)
    parameters, codes = mixture.network.initial(generator), np.array([0, 1, 2, 1])
    drawn = mixture.draw(parameters, 4, generator, codes)
    assert drawn[:, 1].tolist() == codes.tolist()
    noise = mixture.draw_noise(4, generator, codes)
    passed = mixture.network.forward(parameters, noise)
    slopes = np.zeros((4, 5))
    slopes[:, 2:] = generator.standard_normal((4, 3))
    found = mixture.gradient(parameters, passed, mixture.softmax(passed.outputs, noise), slopes)
    assert not found.any()


def test_codes_are_seen_as_rows_of_the_schema_are():
    maker = CodeGenerator(Inputs(SCHEMA), noise=3, hidden=(6,))
    generator = np.random.default_rng(0)
    made = maker.make(maker.network.initial(generator), 500, generator)
    coded = SCHEMA.encode(
        maker.table(
            *maker.draw(maker.network.initial(np.random.default_rng(0)), 500, generator),
            generator,
            "pandas",
        )
    )
    seen = maker.inputs(coded)
    for head in maker.inputs.heads:
        ours, theirs = made.inputs[:, head.places], seen[:, head.places]
        if head.kind == "number":
            assert abs(ours).max() <= 1
        else:
            assert set(np.unique(ours)) <= set(np.unique(theirs)) | {0.0, 1.0}
    # A null number is in the middle, with its indicator set.
    b, null = (head for head in maker.inputs.heads if head.column == "b")
    assert (made.inputs[made.inputs[:, null.start] == 1, b.start] == 0).all()


def test_the_gradient_of_drawn_codes_is_that_of_their_mean_under_a_linear_critic():
    maker = CodeGenerator(Inputs(SCHEMA), noise=3, hidden=(6,))
    generator = np.random.default_rng(0)
    parameters = maker.network.initial(generator)
    slopes = np.tile(generator.standard_normal(maker.inputs.size), (5, 1))
    made = maker.make(parameters, 5, np.random.default_rng(1))
    noise = made.passed.seen[0]
    found = maker.gradient(parameters, made, slopes)
    # The mean of what is seen is linear in chances: its coefficients, one code after another.
    seen = np.zeros((sum(SCHEMA.sizes), maker.inputs.size))
    rows = np.random.default_rng(2)
    for place_, size in enumerate(SCHEMA.sizes):
        codes = np.zeros((2000 * size, len(SCHEMA)), dtype=np.int32)
        codes[:, place_] = np.repeat(np.arange(size), 2000)
        inputs = maker.inputs(SCHEMA.encode(SCHEMA.decode(codes, rows)))
        start = maker.mixture.starts[place_]
        for head in maker.inputs.heads:
            if head.column == SCHEMA.names[place_]:
                means = inputs[:, head.places].reshape(size, 2000, -1).mean(axis=1)
                seen[start : start + size, head.places] = means

    def mean(point):
        return (maker.mixture.chances(point, noise) @ seen @ slopes[0]).sum()

    expected = numeric_gradient(mean, parameters)
    # The places within cells are drawn, here and there.
    np.testing.assert_allclose(found, expected, atol=0.05 * abs(expected).max())
