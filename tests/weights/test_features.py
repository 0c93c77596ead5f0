"""Feature maps: never longer than their bound, each row by itself, the same after saving."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.errors import MethodError
from counterpoise.schema import Coded, Column, Schema
from counterpoise.schema.shape import Shape
from counterpoise.weights.choose_features import MOST_FEATURES, choose_features
from counterpoise.weights.features import (
    Cells,
    Features,
    Intercept,
    Linear,
    OneHot,
    PairProducts,
    PrincipalComponents,
    Products,
    RandomFourier,
    Squares,
    Trends,
)
from counterpoise.weights.standardise import Standardised
from tests.conftest import make_schema, make_table
from tests.schema.schema_strategies import HARD_COLUMNS, schemas

RECIPES = [
    Intercept(),
    Linear(),
    OneHot(),
    Squares(),
    PairProducts(),
    Trends(),
    Cells(),
    Cells(most=1),
    PrincipalComponents(3),
    RandomFourier(4),
    OneHot() + Squares() + PairProducts() + Cells(most=3) + RandomFourier(2, width=0.1),
]
EVERY_RECIPE = pytest.mark.parametrize("recipe", RECIPES, ids=str)

# Each column of every hard kind beside one of few values, so that there are pairs.
HARD_SCHEMAS = [Schema([column, Column.boolean("beside")]) for column in HARD_COLUMNS]


def any_rows(schema: Schema, count: int, seed: int) -> Coded:
    """Rows anywhere in the coded domain: corners, nulls and rare codes as likely as the rest."""
    generator = np.random.default_rng(seed)
    codes = np.column_stack([generator.integers(0, c.size, count) for c in schema])
    units = generator.choice([0.0, 0.5, 1.0, generator.random()], (count, len(schema)))
    for position, column in enumerate(schema):
        if column.null_code is not None:
            units[codes[:, position] == column.null_code, position] = 0.5
    return Coded(schema, np.asfortranarray(codes.astype(np.int32)), np.asfortranarray(units))


def assert_bounded(features: Features, rows: Coded) -> None:
    values = features(rows)
    assert values.shape == (len(rows), len(features.names)) == (len(rows), len(features.groups))
    assert np.isfinite(values).all()
    assert np.linalg.norm(values, axis=1).max(initial=0.0) <= features.bound * (1 + 1e-12)


@EVERY_RECIPE
@pytest.mark.parametrize("seed", [0, 1])
def test_no_row_is_longer_than_the_bound_whatever_the_schema(recipe, seed):
    for schema in HARD_SCHEMAS:
        # What is read off the synthetic table must not matter: the rows come from elsewhere.
        features = recipe.over(any_rows(schema, 5, seed))
        assert_bounded(features, any_rows(schema, 50, seed + 100))


@settings(max_examples=40)
@given(schemas(), st.sampled_from(RECIPES), st.integers(0, 1000), st.integers(0, 4))
def test_no_row_is_longer_than_the_bound_in_any_schema(schema, recipe, seed, synthetic_rows):
    features = recipe.over(any_rows(schema, synthetic_rows, seed))
    assert_bounded(features, any_rows(schema, 20, seed + 1))


@pytest.mark.parametrize("name", ["Linear", "OneHot", "Squares", "Cells"])
def test_the_bound_is_reached_where_a_row_can_reach_it(name):
    recipe = {"Linear": Linear(), "OneHot": OneHot(), "Squares": Squares(), "Cells": Cells()}[name]
    schema = Schema([Column.continuous("x", 0, 1), Column.integer("k", 0, 9)])
    rows = schema.encode(pd.DataFrame({"x": [1.0], "k": [9]}))
    features = recipe.over(rows)
    assert np.linalg.norm(features(rows)) == pytest.approx(features.bound)


def test_the_bound_of_products_is_reached_at_the_corner_farthest_from_the_centre():
    schema = Schema(
        [
            Column.continuous("x", 0, 1),
            Column.boolean("y"),
            Column.categorical("z", ["a", "b", "c"]),
        ]
    )
    synthetic = schema.encode(pd.DataFrame({"x": [0.2, 0.4], "y": [True, True], "z": ["b", "a"]}))
    features = PairProducts((("x", "y"), ("x", "z"))).over(synthetic)
    corners = schema.encode(
        pd.DataFrame(
            [(x, y, z) for x in (0.0, 1.0) for y in (False, True) for z in "abc"],
            columns=["x", "y", "z"],
        )
    )
    longest = np.linalg.norm(features(corners), axis=1).max()
    assert longest == pytest.approx(features.bound)


@EVERY_RECIPE
def test_a_row_has_the_same_features_whatever_rows_are_beside_it(recipe):
    """That is what makes a bound on one row's vector the sensitivity of a sum."""
    for schema in HARD_SCHEMAS[::5]:
        rows = any_rows(schema, 40, seed=3)
        features = recipe.over(any_rows(schema, 10, seed=4))
        together = features(rows)
        for part in (slice(0, 1), slice(7, 8), slice(3, 30), slice(0, 0)):
            alone = features(rows.take(np.arange(40)[part]))
            assert alone == pytest.approx(together[part], abs=1e-13)


@EVERY_RECIPE
def test_a_map_is_the_same_after_saving(recipe):
    rows = make_schema().encode(make_table(30))
    features = recipe.over(rows)
    again = Features.from_dict(make_schema(), json.loads(json.dumps(features.to_dict())))
    assert again.names == features.names
    assert again.groups == features.groups
    assert again.bound == features.bound
    assert (again(rows) == features(rows)).all()


def test_features_are_what_their_names_say():
    schema = Schema(
        [
            Column.categorical("city", ["Oslo", "Rome", "Bari"], nullable=True),
            Column.continuous("x", 0, 10, nullable=True),
        ]
    )
    rows = schema.encode(pd.DataFrame({"city": ["Rome", None], "x": [5.0, None]}))
    found = (OneHot() + Squares()).over(rows)
    assert found.names == (
        *("city=Oslo", "city=Rome", "city=Bari", "city is null"),
        *("x", "x is null", "x^2"),
    )
    assert found(rows).tolist() == [[0, 1, 0, 0, 0.5, 0, 0.25], [0, 0, 0, 1, 0.5, 1, 0.25]]


def test_products_are_centred_by_the_synthetic_table():
    schema = Schema([Column.continuous("x", 0, 1), Column.continuous("y", 0, 1)])
    synthetic = schema.encode(pd.DataFrame({"x": [0.0, 0.5], "y": [0.5, 1.0]}))
    features = Products("y").over(synthetic)
    assert features.names == ("x * y",)
    other = schema.encode(pd.DataFrame({"x": [1.0], "y": [0.0]}))
    assert features(other) == pytest.approx(np.array([[(1 - 0.25) * (0 - 0.75)]]))


def test_cells_partition_every_pair_of_columns():
    rows = make_schema().encode(make_table(200))
    features = Cells(most=4).over(rows)
    values = features(rows)
    assert set(np.unique(values)) == {0.0, 1.0}
    assert values.sum(axis=1) == pytest.approx(math.comb(4, 2))
    table = features.names.index("sex = 1, grade = 3")  # a man of unknown grade
    expected = (rows.codes[:, 0] == 1) & (rows.codes[:, 1] == 3)
    assert (values[:, table] == expected).all()


def test_components_are_uncorrelated_and_vary_less_and_less():
    rows = make_schema().encode(make_table(500))
    covariance = np.cov(PrincipalComponents(4).over(rows)(rows).T)
    assert covariance - np.diag(np.diag(covariance)) == pytest.approx(np.zeros((4, 4)), abs=1e-12)
    assert (np.diff(np.diag(covariance)) <= 0).all()


def test_random_cosines_approximate_a_gaussian_kernel():
    schema = Schema([Column.continuous("x", 0, 1), Column.continuous("y", 0, 1)])
    rows = any_rows(schema, 30, seed=0)
    values = RandomFourier(20_000, width=0.7).over(rows)(rows)
    distances = ((rows.units[:, None] - rows.units[None]) ** 2).sum(axis=2)
    kernel = np.exp(-distances / (2 * 0.7**2))
    assert 2 * values @ values.T / 20_000 == pytest.approx(kernel, abs=0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cells(most=0), "most"),
        (lambda: PrincipalComponents(0), "count"),
        (lambda: RandomFourier(2.5), "count"),
        (lambda: RandomFourier(2, width=0.0), "width"),
        (lambda: Products("shoe").over(make_schema().encode(make_table(3))), "shoe"),
        (lambda: Cells((("sex", "shoe"),)).over(make_schema().encode(make_table(3))), "shoe"),
    ],
)
def test_what_cannot_be_made_is_refused_by_name(make, message):
    with pytest.raises(MethodError, match=message):
        make()


def test_standardised_features_are_centred_of_one_scale_and_clipped():
    rows = make_schema().encode(make_table(3000))
    features = (OneHot() + Squares()).over(rows)
    standardised = Standardised.over(features, rows)
    values = standardised(rows)
    norms = np.linalg.norm(values, axis=1)
    assert norms.max() <= standardised.bound * (1 + 1e-12)
    assert np.mean(norms < standardised.bound * (1 - 1e-9)) == pytest.approx(0.95, abs=0.01)
    whole = Standardised(features, standardised.centre, standardised.scale, np.inf)(rows)
    assert whole.mean(axis=0) == pytest.approx(np.zeros(len(features.names)), abs=1e-9)
    groups = pd.Series(whole.var(axis=0)).groupby(list(features.groups)).sum()
    assert groups.to_numpy() == pytest.approx(np.ones(len(groups)))


@EVERY_RECIPE
def test_features_in_single_precision_are_the_same_but_for_rounding(recipe):
    schema = Schema(
        [
            *make_schema(),
            Column.categorical("ward", list("abcd"), nullable=True),
            Column.continuous("cost", 0, 9, nullable=True),
        ]
    )
    rows = any_rows(schema, 500, seed=1)
    standardised = Standardised.over(recipe.over(rows), rows)
    single = standardised.single(rows)
    assert single.dtype == np.float32
    assert single == pytest.approx(standardised(rows), abs=1e-4)


def test_rows_that_are_spread_out_stay_so_when_some_are_taken():
    fine = Column.continuous("x", 0, 10, bins=[0, 10])
    column = replace(fine, shape=Shape((0.0, 1.0, 10.0), (1.0, 0.0)))
    schema = Schema([column])
    spread = Coded(schema, np.zeros((3, 1), np.int32), np.array([[0.0], [0.05], [0.1]])).spread()
    assert spread.units[1, 0] == pytest.approx(0.5, abs=0.01)
    some = spread.take(np.array([1]))
    assert some.spread().units.tolist() == [[spread.units[1, 0]]]


def test_standardised_features_stay_finite_where_nothing_varies():
    schema = Schema([Column.integer("k", 3, 3), Column.integer("age", 0, 99, nullable=True)])
    for count in (0, 1, 50):
        synthetic = schema.encode(pd.DataFrame({"k": [3] * count, "age": [None] * count}))
        standardised = Standardised.over((OneHot() + Squares()).over(synthetic), synthetic)
        values = standardised(schema.encode(pd.DataFrame({"k": [3, 3], "age": [7, None]})))
        assert np.isfinite(values).all()
        assert np.linalg.norm(values, axis=1).max() <= standardised.bound * (1 + 1e-12)


def quiet(bound: float, size: int) -> float:
    return 0.0


def test_chosen_features_are_few_whatever_the_schema():
    thousand = Column.categorical("city", [f"city {i}" for i in range(1000)])
    few = [Column.boolean(name) for name in "abc"]
    wide = [Column.categorical(f"c{i}", list(range(30))) for i in range(40)]
    numbers = [Column.continuous(f"c{i}", 0, 1) for i in range(300)]
    nullable = [Column.continuous(f"c{i}", 0, 1, nullable=True) for i in range(190)]
    for columns, target in (
        ([thousand, *few], "city"),
        ([thousand, *few], "a"),
        (wide, "c0"),
        (numbers, "c0"),
        (nullable, "c0"),
    ):
        schema = Schema(columns)
        synthetic = any_rows(schema, 5, seed=0)
        made = [recipe.over(synthetic) for recipe in choose_features(schema, target, quiet)]
        assert 0 < sum(len(features.names) for features in made) <= MOST_FEATURES


def test_a_target_too_wide_for_products_leaves_the_other_relations():
    thousand = Column.categorical("city", [f"city {i}" for i in range(1000)])
    schema = Schema([thousand, *(Column.boolean(name) for name in "abc")])
    _, with_target, others = choose_features(schema, "city", quiet)
    assert with_target.pairs == ()
    assert others.recipes[0].pairs == (("a", "b"), ("a", "c"), ("b", "c"))
    # Of the relations with the target there is a trend each.
    assert others.recipes[1].pairs == (("city", "a"), ("city", "b"), ("city", "c"))


def test_no_pair_goes_unseen_where_not_all_products_have_room():
    lists = [Column.categorical(name, list("abcdefghij")) for name in ("p", "q", "r", "s")]
    schema = Schema([Column.boolean("x"), *lists, Column.integer("n", 0, 99)])
    _, _, others = choose_features(schema, None, quiet, most=150)
    products, trends = (set(recipe.pairs) for recipe in others.recipes)
    assert len(products | trends) == 15 and not products & trends
    # The narrowest have all of their products: those of a list with a number or a truth.
    assert {("x", "n"), ("x", "p"), ("p", "n")} <= products
    assert ("p", "q") in trends
    size = sum(len(r.over(schema.encode(some_rows(schema))).names) for r in others.recipes)
    assert size + 2 * 6 + 1 + 4 * 9 + 1 <= 150


def some_rows(schema, rows=50):
    generator = np.random.default_rng(0)
    codes = np.stack([generator.integers(0, column.cells, rows) for column in schema], axis=1)
    return schema.decode(codes, generator)


def test_a_trend_is_the_product_of_places_and_no_longer_than_its_bound():
    schema = Schema(
        [
            Column.categorical("edu", list("abcde")),
            Column.integer("pay", 0, 10, nullable=True),
            Column.boolean("old"),
        ]
    )
    table = pd.DataFrame(
        {"edu": list("aebcd"), "pay": [0, 10, 5, None, 10], "old": [True, False] * 2 + [True]}
    )
    rows = schema.encode(table)
    features = Trends((("edu", "pay"), ("edu", "old"))).over(rows)
    edu, pay = np.array([0, 1, 0.25, 0.5, 0.75]), rows.spread().units[:, 1]
    centre = pay[[0, 1, 2, 4]].mean()
    expected = np.where(np.arange(5) == 3, 0, (edu - edu.mean()) * (pay - centre))
    made = features(rows)
    assert made[:, 0] == pytest.approx(expected)
    assert made[:, 1] == pytest.approx((edu - edu.mean()) * (table["old"] - table["old"].mean()))
    every = schema.encode(
        pd.DataFrame(
            [(e, p, o) for e in "abcde" for p in (0, 10, None) for o in (True, False)],
            columns=["edu", "pay", "old"],
        )
    )
    assert (np.linalg.norm(features(every), axis=1) <= features.bound * (1 + 1e-12)).all()
    again = Features.from_dict(schema, features.to_dict())
    assert (again(every) == features(every)).all()


def test_relations_with_the_target_come_first_and_others_only_where_they_are_readable():
    schema = Schema([Column.boolean(name) for name in "abc"])
    _, with_target, others = choose_features(schema, "b", lambda bound, size: 1.0)
    assert set(with_target.pairs) == {("a", "b"), ("b", "c")}
    assert [recipe.pairs for recipe in others.recipes] == [(), ()]
    assert choose_features(schema, "b", quiet)[2].recipes[0].pairs == (("a", "c"),)
    with pytest.raises(MethodError, match="shoe"):
        choose_features(schema, "shoe", quiet)


def test_a_null_takes_no_part_in_products():
    """Its place in the middle of the scale would show who has nulls, not how values relate."""
    schema = Schema(
        [Column.integer("age", 0, 10), Column.continuous("income", 0, 1, nullable=True)]
    )
    table = pd.DataFrame({"age": [1, 5, 9, 0, 10], "income": [0.1, 0.2, 0.3, None, None]})
    rows = schema.encode(table)
    [block] = PairProducts().over(rows).blocks
    assert block.centres["income"] == pytest.approx([0.2])
    products = block(rows)[:, 0]
    assert products[3:].tolist() == [0.0, 0.0]
    assert (products[[0, 2]] > 0).all()


def test_products_of_categories_are_those_of_centred_indicators():
    schema = Schema(
        [
            Column.categorical("x", list("abc"), nullable=True),
            Column.categorical("y", list("pq"), nullable=True),
            Column.continuous("z", 0, 1),
        ]
    )
    rows = any_rows(schema, 200, seed=2)
    [block] = PairProducts().over(rows).blocks
    factors = {"z": rows.units[:, 2:]}
    for position, name, cells in ((0, "x", 3), (1, "y", 2)):
        codes = rows.codes[:, position]
        factors[name] = (codes[:, None] == np.arange(1, cells)).astype(float)
        factors[name][codes == cells] = block.centres[name]
    centred = {name: values - block.centres[name] for name, values in factors.items()}
    expected = [
        left * right for x, y in block.pairs for left in centred[x].T for right in centred[y].T
    ]
    assert pytest.approx(np.array(expected), abs=1e-12) == block(rows).T
