"""A grouping: checked with its column, written with the schema, and obeyed in both directions."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import SchemaError
from counterpoise.schema import Column, Grouping, Schema
from counterpoise.schema.feasibility import require_possible

CITIES = ("Oslo", "Rome", "Bern", "Riga")
EVEN = (0.25,) * 4


def grouped(codes=(0, 1, 1, 1), shares=(0.7, 0.2, 0.1, 0.0), deviations=EVEN, **options):
    kind = options.pop("kind", Column.categorical)
    return kind("city", CITIES, grouping=Grouping(codes, shares, deviations), **options)


def test_categories_of_a_group_share_a_code_and_null_comes_after():
    column = grouped(nullable=True)
    assert (column.cells, column.size, column.null_code) == (2, 3, 2)
    coded = Schema([column]).encode(pd.DataFrame({"city": ["Riga", "Oslo", None, "Rome"]}))
    assert coded.codes[:, 0].tolist() == [1, 0, 2, 1]
    assert column.code_labels() == ("Oslo", "3 others")


def test_a_row_gets_a_category_of_its_group_by_the_shares():
    codes = np.full((30_000, 1), 1)
    drawn = Schema([grouped()]).decode(codes, np.random.default_rng(0))["city"]
    assert drawn.value_counts(normalize=True).to_dict() == pytest.approx(
        {"Oslo": 0, "Rome": 2 / 3, "Bern": 1 / 3, "Riga": 0}, abs=0.01
    )


def test_a_group_without_any_share_is_drawn_from_evenly():
    column = grouped(shares=(1.0, 0.0, 0.0, 0.0))
    drawn = Schema([column]).decode(np.full((9_000, 1), 1), np.random.default_rng(0))["city"]
    assert drawn.value_counts()[["Rome", "Bern", "Riga"]].min() > 2_800


def test_unlisted_values_take_the_code_of_other_and_units_are_places_in_the_list():
    column = grouped(kind=Column.ordinal, codes=(0, 0, 0, 1), other="Riga")
    coded = Schema([column]).encode(pd.DataFrame({"city": ["Rome", "Bern", "Paris"]}))
    assert coded.codes[:, 0].tolist() == [0, 0, 1]
    assert coded.units[:, 0].tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    assert column.code_labels() == ("Oslo to Bern", "Riga")


def test_features_are_one_a_group():
    coded = Schema([grouped(nullable=True)]).encode(pd.DataFrame({"city": ["Rome", None]}))
    features, names = coded.one_hot()
    assert names == ("city=Oslo", "city=3 others", "city is null")
    assert features.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_a_table_that_is_read_back_keeps_its_categories():
    frame = pd.DataFrame({"city": ["Riga", "Bern", "Oslo"]})
    assert Schema([grouped()]).restore(frame)["city"].tolist() == ["Riga", "Bern", "Oslo"]


def test_a_grouping_is_written_with_the_schema_and_read_back():
    schema = Schema([grouped(nullable=True), Column.boolean("member")])
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.as_released()["city"] == schema["city"]
    assert schema["city"].ungrouped == Column.categorical("city", CITIES, nullable=True)


def test_a_check_is_possible_that_one_category_of_a_group_obeys():
    require_possible(Schema([grouped()], checks=["city == 'Riga'"]))
    with pytest.raises(SchemaError, match="no row"):
        require_possible(Schema([grouped()], checks=["city == 'Riga' and city == 'Rome'"]))


def test_paying_for_categories_drops_what_was_known_of_them():
    assert Schema([grouped()]).pay("city")["city"].grouping is None


@pytest.mark.parametrize(
    ("codes", "shares", "deviations"),
    [
        ((0, 1, 1), EVEN, EVEN),
        ((), EVEN, EVEN),
        ((0, 2, 2, 2), EVEN, EVEN),
        ((0, -1, 1, 1), EVEN, EVEN),
        ((0, 1, 1, 10**12), EVEN, EVEN),
        ((0, 0.5, 1, 1), EVEN, EVEN),
        (None, EVEN, EVEN),
        ((0, 1, 1, 1), (0.5, 0.5, 0.5), EVEN),
        ((0, 1, 1, 1), (0.5, 0.5, -0.5, 0.5), EVEN),
        ((0, 1, 1, 1), (0.0,) * 4, EVEN),
        ((0, 1, 1, 1), EVEN, (0.1, 0.1, 0.1, float("nan"))),
        ((0, 1, 1, 1), EVEN, 3),
    ],
)
def test_a_grouping_that_does_not_fit_is_refused(codes, shares, deviations):
    with pytest.raises(SchemaError, match="'city'"):
        grouped(codes, shares, deviations)


def test_a_grouping_belongs_to_categories_in_their_order():
    with pytest.raises(SchemaError, match="must not decrease"):
        grouped(kind=Column.ordinal, codes=(1, 0, 0, 0))
    grouping = Grouping((0,), (1.0,), (0.0,))
    with pytest.raises(SchemaError, match="belongs to categories"):
        Column.integer("k", 0, 9, grouping=grouping)
    with pytest.raises(SchemaError, match="beside categories"):
        Column.categorical("city", grouping=grouping)
    with pytest.raises(SchemaError, match="not to an identifier"):
        Column.identifier("id", grouping=grouping)
    with pytest.raises(SchemaError, match="object with codes"):
        Schema.from_dict({"fields": [{"name": "c", "type": "string", "grouping": [0, 1]}]})
