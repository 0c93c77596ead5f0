"""What a network sees of a row."""

import numpy as np
import pandas as pd

from counterpoise.networks import Inputs
from counterpoise.schema import Column, Schema

SCHEMA = Schema(
    [
        Column.categorical("ward", ["A", "B", "C"], nullable=True),
        Column.continuous("stay", 0, 20, bins=4, nullable=True),
        Column.ordinal("pain", ["none", "some", "much"]),
    ]
)


def rows(**columns):
    return SCHEMA.encode(pd.DataFrame(columns))


def test_categories_are_one_hot_with_null_as_one_more():
    found = Inputs(SCHEMA)(rows(ward=["B", None], stay=[5.0, 5.0], pain=["none", "none"]))
    assert found[:, :4].tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]


def test_a_null_number_is_in_the_middle_and_marked():
    found = Inputs(SCHEMA)(rows(ward=["A", "A"], stay=[None, 15.0], pain=["much", "some"]))
    assert found[:, 4:].tolist() == [[0, 1, 1], [0.5, 0, 0]]


def test_heads_cover_all_places_in_order():
    inputs = Inputs(SCHEMA)
    assert [(head.column, head.kind) for head in inputs.heads] == [
        ("ward", "categories"),
        ("stay", "number"),
        ("stay", "null"),
        ("pain", "number"),
    ]
    covered = np.concatenate([np.arange(head.start, head.stop) for head in inputs.heads])
    assert covered.tolist() == list(range(inputs.size))


def test_a_row_is_seen_the_same_whatever_rows_are_beside_it():
    table = {"ward": ["A", None, "C"], "stay": [1.0, None, 99.0], "pain": ["none", "much", "some"]}
    together = Inputs(SCHEMA)(rows(**table))
    for place in range(3):
        alone = Inputs(SCHEMA)(rows(**{name: [values[place]] for name, values in table.items()}))
        assert (alone[0] == together[place]).all()
        assert np.abs(alone).max() <= 1
