"""Columns as a Table Schema, the JSON of the Data Package standard, and back, without loss.

Types, bounds, categories and nulls stand where the standard has them (`type`, `constraints`,
`categoriesOrdered`, `missingValues`); what it has no place for (`bins`, `shape`, `scale`, `atoms`,
`step`, `unit`, `other`, `grouping`, `source`, `derived`, `role`, `checks`) stands beside them,
where other readers ignore it.
https://datapackage.org/standard/table-schema/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date as Date
from typing import Any

from counterpoise.arguments import plain_text
from counterpoise.errors import SchemaError
from counterpoise.schema.column import IDENTIFIER, Column
from counterpoise.schema.grouping import Grouping
from counterpoise.schema.rules import MARKABLE, SOURCES, from_iso
from counterpoise.schema.shape import Shape
from counterpoise.schema.spelling import Spelling, words_listed

_TYPES = {"integer": "integer", "continuous": "number", "date": "date", "datetime": "datetime"}
_KINDS = {type_: kind for kind, type_ in _TYPES.items()}
_CATEGORY_TYPES = ("string", "integer", "boolean")
_MISSPELT = {
    "min": "minimum",
    "max": "maximum",
    "values": "enum",
    "nullable": "required",
    "exclusiveMinimum": "minimum",
    "exclusiveMaximum": "maximum",
}
_DAY = {"minimum": "00:00", "maximum": "23:59:59"}
_CONSTRAINTS = ("minimum", "maximum", "enum", "required")


def describe(
    columns: Iterable[Column], missing_values: Iterable[str], checks: Iterable[str] = ()
) -> dict[str, Any]:
    """Columns as a Table Schema."""
    described: dict[str, Any] = {
        "fields": [_describe_column(column) for column in columns],
        "missingValues": list(missing_values),
    }
    stated = list(checks)
    return described | {"checks": stated} if stated else described


def parse(descriptor: Any) -> tuple[tuple[Column, ...], tuple[str, ...], tuple[str, ...]]:
    """The columns, the missing values and the checks of a Table Schema."""
    if not isinstance(descriptor, Mapping) or not isinstance(descriptor.get("fields"), list):
        raise SchemaError('a Table Schema is an object with a list of "fields"')
    tokens = words_listed(descriptor.get("missingValues", [""]))
    if not all(isinstance(token, str) for token in tokens):
        raise SchemaError("missingValues must be a list of texts")
    checks = descriptor.get("checks", [])
    if not isinstance(checks, list):
        raise SchemaError("checks must be a list of texts")
    return tuple(_parse_field(field) for field in descriptor["fields"]), tokens, tuple(checks)


def _describe_column(column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": column.name,
        "type": _type(column),
        **column.spelling.to_dict(),
    }
    constraints: dict[str, Any] = {}
    for key in ("minimum", "maximum"):
        if getattr(column, key) is not None:
            constraints[key] = _to_json(column, getattr(column, key))
    if column.categories is not None and column.categories != (False, True):
        constraints["enum"] = list(column.categories)
    elif column.category_type == "integer" and column.categories is not None:
        # (0, 1) equals (False, True) in Python, and is not it.
        constraints["enum"] = list(column.categories)
    if not column.nullable:
        constraints["required"] = True
    if constraints:
        field["constraints"] = constraints
    if column.kind == "ordinal":
        field["categoriesOrdered"] = True
    elif (
        column.kind == "categorical" and column.category_type == "integer" and not column.categories
    ):
        field["categorical"] = True
    if column.kind == IDENTIFIER:
        field["role"] = IDENTIFIER
    if column.expression is not None:
        field["derived"] = column.expression
    if column.other is not None:
        field["other"] = column.other
    if column.grouping is not None:
        field["grouping"] = {
            key: list(getattr(column.grouping, key)) for key in ("codes", "shares", "deviations")
        } | {"noise": column.grouping.noise}
    if isinstance(column.bins, tuple):
        field["bins"] = [_to_json(column, edge) for edge in column.bins]
    elif column.bins is not None:
        field["bins"] = column.bins
    if column.scale is not None:
        field["scale"] = column.scale
    if column.atoms is not None:
        field["atoms"] = [_to_json(column, atom) for atom in column.atoms]
    if column.step is not None:
        field["step"] = column.step
    if column.shape is not None:
        field["shape"] = {
            "edges": [_to_json(column, edge) for edge in column.shape.edges],
            "shares": list(column.shape.shares),
            "relative_below": column.shape.relative_below,
        }
        if column.shape.pieces:
            field["shape"] |= {
                "pieces": list(column.shape.pieces),
                "errors": list(column.shape.errors),
                "slopes": list(column.shape.slopes),
            }
        if column.shape.noise:
            field["shape"]["noise"] = column.shape.noise
    if column.unit is not None:
        field["unit"] = column.unit
    if column.sources:
        field["source"] = dict(column.sources)
    return field


def _parse_field(field: Any) -> Column:
    if not isinstance(field, Mapping) or not isinstance(field.get("name"), str):
        raise SchemaError('every field of a Table Schema is an object with a "name"')
    name = field["name"]
    constraints = field.get("constraints", {})
    if not isinstance(constraints, Mapping):
        raise SchemaError(f"column {name!r}: constraints must be an object")
    _refuse_misspelt(name, field, constraints)
    required = constraints.get("required", False)
    ordered, categorical = field.get("categoriesOrdered", False), field.get("categorical", False)
    if not all(isinstance(flag, bool) for flag in (required, ordered, categorical)):
        raise SchemaError(
            f"column {name!r}: required, categoriesOrdered and categorical must be true or false"
        )
    type_ = field.get("type", "string")
    types = tuple(dict.fromkeys((*_CATEGORY_TYPES, *_KINDS, "time")))
    if not isinstance(type_, str) or plain_text(type_) not in types:
        known = ", ".join(types)
        raise SchemaError(f"column {name!r}: type must be one of {known}")
    role = field.get("role")
    if role is not None and (not isinstance(role, str) or role != IDENTIFIER):
        raise SchemaError(f"column {name!r}: a role is {IDENTIFIER!r}, or is left out")
    categories = _categories(name, field, constraints)
    in_categories = type_ in ("string", "boolean") or (
        type_ == "integer" and (categories is not None or ordered or categorical)
    )
    spelling = _spelling(name, type_, field)
    common: dict[str, Any] = {
        "nullable": not required and role is None,
        "unit": field.get("unit", spelling.unit),
        "spelling": spelling,
        "expression": field.get("derived"),
        "scale": field.get("scale"),
        "atoms": _edges(name, type_, field.get("atoms"), spelling),
        "step": field.get("step"),
    }
    bounds: dict[str, Any] = {key: constraints.get(key) for key in ("minimum", "maximum")}
    if type_ == "time" and "paid" not in str(field.get("source")):
        # A day has public bounds.
        bounds |= {key: end for key, end in _DAY.items() if bounds[key] is None}
    if role is not None:
        stated: dict[str, Any] = {
            "categories": categories,
            "other": field.get("other"),
            "bins": field.get("bins"),
        }
        column = Column(name, IDENTIFIER, category_type=type_, **stated, **bounds, **common)
    elif in_categories:
        column = Column(
            name,
            "ordinal" if ordered else "categorical",
            categories,
            other=field.get("other"),
            bins=field.get("bins"),
            category_type=None if categories is not None else type_,
            grouping=_grouping(name, field.get("grouping")),
            **bounds,
            **common,
        )
        if column.category_type != type_:
            raise SchemaError(f"column {name!r}: the enum does not hold values of type {type_}")
    else:
        if categories is not None or ordered or categorical:
            raise SchemaError(
                f"column {name!r}: categories (enum) belong to type {', '.join(_CATEGORY_TYPES)}"
            )
        column = Column(
            name,
            "integer" if type_ == "time" else _KINDS[type_],
            other=field.get("other"),
            bins=_edges(name, type_, field.get("bins"), spelling),
            minimum=_from_json(name, type_, bounds["minimum"], spelling),
            maximum=_from_json(name, type_, bounds["maximum"], spelling),
            shape=_shape(name, type_, field.get("shape"), spelling),
            **common,
        )
    return column.with_sources(_marks(column, field, constraints))


def _edges(name: str, type_: str, value: Any, spelling: Spelling) -> Any:
    """A list of values of a column; whatever else stands for it as it is."""
    if not isinstance(value, list):
        return value
    return tuple(_from_json(name, type_, each, spelling) for each in value)


def _shape(name: str, type_: str, value: Any, spelling: Spelling) -> Shape | None:
    if value is None:
        return None
    lists = [value.get(key) for key in ("edges", "shares")] if isinstance(value, Mapping) else []
    if not lists or not all(isinstance(item, list) for item in lists):
        raise SchemaError(f"column {name!r}: a shape is an object with edges and shares")
    edges, shares = lists
    return Shape(
        tuple(_from_json(name, type_, edge, spelling) for edge in edges or ()),
        tuple(shares or ()),
        value.get("relative_below", 0.0),
        value.get("pieces", ()),
        value.get("errors", ()),
        value.get("slopes", ()),
        value.get("noise", 0.0),
    )


def _grouping(name: str, value: Any) -> Grouping | None:
    if value is None:
        return None
    keys = ("codes", "shares", "deviations")
    lists = [value.get(key) for key in keys] if isinstance(value, Mapping) else []
    if not lists or not all(isinstance(item, list) for item in lists):
        raise SchemaError(
            f"column {name!r}: a grouping is an object with codes, shares and deviations"
        )
    codes, shares, deviations = (tuple(item or ()) for item in lists)
    return Grouping(codes, shares, deviations, value.get("noise", 0.0))


def _refuse_misspelt(name: str, field: Mapping[str, Any], constraints: Mapping[str, Any]) -> None:
    for wrong, right in _MISSPELT.items():
        if wrong in constraints or wrong in field:
            raise SchemaError(f"column {name!r}: {wrong!r} is not understood; use {right!r}")
    for key in _CONSTRAINTS:
        if key in field:
            raise SchemaError(f"column {name!r}: {key!r} belongs inside constraints")


def _categories(
    name: str, field: Mapping[str, Any], constraints: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    listed = constraints.get("enum", field.get("categories"))
    if listed is None:
        return None
    if not isinstance(listed, list):
        raise SchemaError(f"column {name!r}: enum must be a list")
    return tuple(item.get("value") if isinstance(item, Mapping) else item for item in listed)


def _marks(
    column: Column, field: Mapping[str, Any], constraints: Mapping[str, Any]
) -> dict[str, str]:
    source = field.get("source", {})
    if isinstance(source, Mapping):
        return dict(source)
    if not isinstance(source, str) or plain_text(source) not in SOURCES:
        raise SchemaError(f"column {column.name!r}: a source is one of {', '.join(SOURCES)}")
    if source == "paid":
        # What a budget can estimate, stated or not; a type or a null is never estimated.
        return dict.fromkeys(("minimum", "maximum") if column.is_numeric else ("enum",), "paid")
    stated = {**constraints, **field}
    if field.get("categories") is not None:
        stated["enum"] = field["categories"]
    return {key: source for key in MARKABLE if stated.get(key) is not None}


def _type(column: Column) -> str | None:
    if column.spelling.clock is not None:
        return "time"
    return _TYPES.get(column.kind) or column.category_type


def _spelling(name: str, type_: str, field: Mapping[str, Any]) -> Spelling:
    try:
        return Spelling.from_dict(field, type_)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


def _to_json(column: Column, bound: Any) -> Any:
    if column.spelling.clock is not None:
        return column.spelling.time_text(bound)
    return bound.isoformat() if isinstance(bound, Date) else bound


def _from_json(name: str, type_: str, value: Any, spelling: Spelling) -> Any:
    if value is None or type_ not in ("date", "datetime", "time"):
        return value
    if type_ == "time":
        return spelling.time_number(name, value)
    return from_iso(name, type_, value)
