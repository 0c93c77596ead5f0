"""Relations on the page: the pairs that the weights change, and by how much."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.report.relations import changed_relations, cramers_v

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
    first = changed_relations(release(weights, rows))[0]
    assert first.columns == ("x", "y")
    # with P(x = y) = 0.8 and even halves, phi = 2 * 0.8 - 1
    assert first.weighted == pytest.approx(0.6, abs=0.03)
    assert first.plain < 0.05


def test_equal_weights_change_no_relation(rows):
    for each in changed_relations(release(np.ones(len(rows)), rows)):
        assert each.plain == pytest.approx(each.weighted)


def test_numbers_are_grouped_by_rank_so_that_a_strong_relation_shows(rows):
    bound = rows.assign(x=rows["z"].fillna(0) > 0.5)
    found = {each.columns: each for each in changed_relations(release(np.ones(4000), bound))}
    # Four groups of five are on one side or the other; the middle one is on both.
    assert found["x", "z"].plain > 0.85


def test_one_row_or_a_constant_column_is_no_relation(rows):
    made = release(np.ones(len(rows)), rows.assign(x=True))
    assert {each.columns: each for each in changed_relations(made)}["x", "y"].plain == 0
    changed_relations(replace(made, table=made.table.iloc[:1]))
    assert cramers_v(np.zeros((2, 2))) == 0
