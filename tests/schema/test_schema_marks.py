"""A schema knows its columns, and which of their values are not public."""

import pytest

from counterpoise.errors import SchemaError
from counterpoise.schema import Column, Schema

SCHEMA = Schema(
    [
        Column.integer("age", 0, 99, sources={"minimum": "data", "maximum": "data"}),
        Column.categorical("city", ["Oslo", "Rome"], nullable=True, sources={"enum": "data"}),
        Column.continuous("income", 0, 1e6),
    ]
)


def test_columns_are_found_by_name():
    assert SCHEMA["age"].kind == "integer"
    assert SCHEMA.index("income") == 2
    assert "age" in SCHEMA and "Age" not in SCHEMA
    assert [column.name for column in SCHEMA] == list(SCHEMA.names)
    assert SCHEMA.shape(["city", "age"]) == (3, 20)
    assert SCHEMA.select(["income", "age"]).names == ("income", "age")
    with pytest.raises(SchemaError, match="did you mean 'city'"):
        _ = SCHEMA["citty"]


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A")])
def test_names_are_unique_whatever_their_case(names):
    with pytest.raises(SchemaError, match="unique"):
        Schema([Column.boolean(name) for name in names])


def test_an_empty_schema_is_refused():
    with pytest.raises(SchemaError, match="at least one"):
        Schema([])


def test_a_category_cannot_be_a_missing_value():
    with pytest.raises(SchemaError, match=r"'grade'.*missing value"):
        Schema([Column.categorical("grade", ["A", "?"])], missing_values=("", "?"))


def test_what_was_read_off_data_is_refused_by_name_without_its_values():
    with pytest.raises(SchemaError) as refused:
        SCHEMA.require_public()
    message = str(refused.value)
    assert "age.minimum" in message and "city.enum" in message and "paid" in message
    assert "99" not in message and "Oslo" not in message


def test_accepting_makes_values_public():
    assert SCHEMA.unconfirmed == (("age", "maximum"), ("age", "minimum"), ("city", "enum"))
    accepted = SCHEMA.accept("age", "minimum")
    assert accepted.unconfirmed == (("age", "maximum"), ("city", "enum"))
    accepted = SCHEMA.accept("age").accept("city")
    assert accepted.unconfirmed == ()
    accepted.require_public()


def test_paying_drops_the_value_and_marks_it():
    paid = SCHEMA.pay("age", "maximum").pay("city")
    assert paid["age"].minimum == 0 and paid["age"].maximum is None
    assert paid["city"].categories is None
    assert paid.paid == (("age", "maximum"), ("city", "enum"))
    assert not paid.is_complete
    with pytest.raises(SchemaError, match=r"'age'.*maximum"):
        paid.require_complete()
    with pytest.raises(SchemaError, match="not 'enum'"):
        SCHEMA.pay("age", "enum")
    with pytest.raises(SchemaError, match="nothing to pay"):
        Schema([Column.boolean("b")]).pay("b")


def test_edges_are_dropped_with_the_bounds_they_end_at():
    schema = Schema([Column.integer("age", 0, 99, bins=(0, 18, 65, 99))])
    assert schema.pay("age").columns[0].bins is None


def test_bins_fill_in_where_none_are_stated():
    schema = Schema(
        [
            Column.continuous("x", 0, 1),
            Column.continuous("y", 0, 1, bins=3),
            Column.integer("few", 1, 5),
            Column.integer("many", 1, 500),
            Column.continuous("open"),
            Column.boolean("b"),
        ]
    ).with_bins(8)
    assert [column.bins for column in schema] == [8, 3, None, 8, 8, None]
