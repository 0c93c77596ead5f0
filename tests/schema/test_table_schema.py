"""A schema is a Table Schema on disk, and comes back as it was."""

import json
from datetime import date, datetime

import pytest
from hypothesis import given

from counterpoise.errors import SchemaError
from counterpoise.schema import Column, Schema
from tests.schema.schema_strategies import schemas


@given(schemas(complete=False))
def test_every_schema_survives_json(schema):
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_every_schema_survives_a_file(tmp_path):
    schema = Schema([Column.categorical("größe", ["klein", "groß"]), Column.integer("n", 0, 9)])
    schema.write(tmp_path / "schema.json")
    assert Schema.read(tmp_path / "schema.json") == schema
    assert Schema.read(str(tmp_path / "schema.json")) == schema
    assert Schema.read(schema) is schema
    assert [path.name for path in tmp_path.iterdir()] == ["schema.json"]


def test_the_standard_is_written_where_it_has_a_place():
    schema = Schema(
        [
            Column.integer("age", 0, 99, nullable=True, unit="years", bins=10),
            Column.ordinal("grade", ["low", "high"]),
            Column.boolean("member"),
            Column.date("day", date(2020, 1, 1), date(2020, 12, 31)),
        ]
    )
    assert schema.to_dict() == {
        "fields": [
            {
                "name": "age",
                "type": "integer",
                "constraints": {"minimum": 0, "maximum": 99},
                "bins": 10,
                "unit": "years",
            },
            {
                "name": "grade",
                "type": "string",
                "constraints": {"enum": ["low", "high"], "required": True},
                "categoriesOrdered": True,
            },
            {"name": "member", "type": "boolean", "constraints": {"required": True}},
            {
                "name": "day",
                "type": "date",
                "constraints": {
                    "minimum": "2020-01-01",
                    "maximum": "2020-12-31",
                    "required": True,
                },
            },
        ],
        "missingValues": [""],
    }


def field(**keys):
    return Schema.from_dict({"fields": [{"name": "x", **keys}]}).columns[0]


def test_kinds_follow_from_types_and_categories():
    assert field().kind == "categorical"
    assert field(type="integer").kind == "integer"
    assert field(type="integer", constraints={"enum": [1, 2]}).kind == "categorical"
    assert field(type="integer", categorical=True).category_type == "integer"
    assert field(type="string", categoriesOrdered=True).kind == "ordinal"
    assert field(type="string", categories=[{"value": "a", "label": "A"}]).categories == ("a",)
    assert field(type="number").kind == "continuous"
    assert field(type="datetime", constraints={"minimum": "2020-01-01T00:00:00Z"}).minimum == (
        datetime(2020, 1, 1)
    )
    assert field(type="boolean").categories == (False, True)
    assert field(title="X", format="default", rdfType="x", whatever=1).kind == "categorical"


def test_one_source_marks_all_that_is_stated():
    column = field(type="integer", constraints={"minimum": 0, "required": True}, source="data")
    assert dict(column.sources) == {"type": "data", "minimum": "data", "required": "data"}
    assert dict(field(type="string", source="paid").sources) == {"enum": "paid"}
    assert dict(field(type="number", source="paid").sources) == {
        "minimum": "paid",
        "maximum": "paid",
    }


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        ({"type": "geopoint"}, "type"),
        ({"constraints": {"min": 0}}, "minimum"),
        ({"constraints": {"max": 0}}, "maximum"),
        ({"constraints": {"values": []}}, "enum"),
        ({"minimum": 0}, "inside constraints"),
        ({"constraints": 3}, "object"),
        ({"constraints": {"required": "yes"}}, "true or false"),
        ({"constraints": {"enum": "abc"}}, "list"),
        ({"type": "integer", "constraints": {"enum": ["a"]}}, "type integer"),
        ({"type": "number", "constraints": {"enum": [1.5]}}, "enum"),
        ({"type": "integer", "constraints": {"minimum": "zero"}}, "integers"),
        ({"type": "date", "constraints": {"minimum": "yesterday"}}, "ISO 8601"),
        ({"type": "date", "constraints": {"minimum": 5}}, "ISO 8601"),
        ({"source": "rumour"}, "source"),
        ({"source": {"minimum": "rumour"}}, "source"),
        ({"source": {"colour": "data"}}, "source"),
        ({"source": 5}, "source"),
        ({"unit": 5}, "unit"),
        ({"type": "integer", "bins": "many"}, "bins"),
        ({"type": "string", "bins": 5}, "bins"),
        ({"type": ["integer"]}, "type"),
    ],
)
def test_a_bad_field_is_refused_by_column_and_rule(keys, rule):
    with pytest.raises(SchemaError, match=f"'x'.*{rule}"):
        field(**keys)


@pytest.mark.parametrize(
    "descriptor",
    [
        [],
        {},
        {"fields": {}},
        {"fields": []},
        {"fields": [5]},
        {"fields": [{"type": "string"}]},
        {"fields": [{"name": "x"}], "missingValues": "?"},
        {"fields": [{"name": "x"}], "missingValues": [5]},
        {"fields": [{"name": "x"}, {"name": "x"}]},
    ],
)
def test_a_malformed_descriptor_is_refused(descriptor):
    with pytest.raises(SchemaError):
        Schema.from_dict(descriptor)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"", b"[1, 2]", b"null"])
def test_a_malformed_file_is_refused(tmp_path, content):
    path = tmp_path / "schema.json"
    path.write_bytes(content)
    with pytest.raises(SchemaError):
        Schema.read(path)


def test_a_missing_file_or_something_else_is_refused(tmp_path):
    with pytest.raises(SchemaError, match="no schema file"):
        Schema.read(tmp_path / "absent.json")
    with pytest.raises(SchemaError):
        Schema.read(tmp_path)
    with pytest.raises(SchemaError, match="path"):
        Schema.read(5)
