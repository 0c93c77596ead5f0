"""Relations on the page: the pairs that the weights change, and by how much."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.report.relations import cramers_v, relations

SCHEMA = cp.Schema(
    [
        cp.Column.boolean("x"),
        cp.Column.boolean("y"),
        cp.Column.continuous("z", 0, 1, bins=40, nullable=True),
    ]
)


def release(weights, rows):
    table = SCHEMA.restore(rows).assign(weight=weights / weights.mean())
    return cp.Release(table, SCHEMA, card={})


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": generator.random(4000) < 0.5,
            "y": generator.random(4000) < 0.5,
            "z": np.where(generator.random(4000) < 0.1, np.nan, generator.random(4000)),
        }
    )


def test_the_pair_that_the_weights_bring_together_comes_first(rows):
    weights = np.where(rows["x"] == rows["y"], 1.6, 0.4)
    first = relations(release(weights, rows)).most_changed()[0]
    assert first.columns == ("x", "y")
    # with P(x = y) = 0.8 and even halves, phi = 2 * 0.8 - 1
    assert first.weighted == pytest.approx(0.6, abs=0.03)
    assert first.plain < 0.05


def test_equal_weights_change_no_relation(rows):
    for each in relations(release(np.ones(len(rows)), rows)).pairs:
        assert each.plain == pytest.approx(each.weighted)


def test_numbers_are_grouped_by_rank_so_that_a_strong_relation_shows(rows):
    bound = rows.assign(x=rows["z"].fillna(0) > 0.5)
    found = {each.columns: each for each in relations(release(np.ones(4000), bound)).pairs}
    # Four groups of five are on one side or the other; the middle one is on both.
    assert found["x", "z"].plain > 0.85


def test_one_row_or_a_constant_column_is_no_relation(rows):
    made = release(np.ones(len(rows)), rows.assign(x=True))
    assert {each.columns: each for each in relations(made).pairs}["x", "y"].plain == 0
    relations(replace(made, table=made.table.iloc[:1]))
    assert cramers_v(np.zeros((2, 2))) == 0


def test_rare_categories_are_put_together_so_that_any_number_of_them_has_a_map():
    names = [str(code) for code in range(50_000)]
    schema = cp.Schema([cp.Column.categorical("a", names), cp.Column.categorical("b", names)])
    chosen = np.random.default_rng(0).choice(names, 500)
    table = schema.restore(pd.DataFrame({"a": chosen, "b": chosen})).assign(weight=1.0)
    found = relations(cp.Release(table, schema, card={}))
    assert found.weighted.shape == (2, 2)


def test_few_rows_do_not_make_unrelated_columns_look_related():
    generator = np.random.default_rng(0)
    table = np.zeros((10, 10))
    for left, right in generator.integers(0, 10, (100, 2)):
        table[left, right] += 1
    assert cramers_v(table) > 0.25
    assert cramers_v(table, size=100) < 0.15
    assert cramers_v(np.eye(10), size=1000) == pytest.approx(1, abs=0.01)


def test_every_pair_knows_whether_it_was_measured(rows):
    made = release(np.ones(len(rows)), rows)
    assert {pair.support for pair in relations(made).pairs} == {"unknown"}
    measured = {"counts": [["x", "y"], ["z"]], "cells": [], "products": [["x", "z"]]}
    found = relations(replace(made, card={"measured": measured}))
    supports = {pair.columns: pair.support for pair in found.pairs}
    # A product of values says something of the table of the two, and not all.
    assert supports == {("x", "y"): "measured", ("x", "z"): "implied", ("y", "z"): "implied"}
