"""`counterpoise schema set`: state what is publicly known of one column.

The column is changed as its field of the Table Schema and read again, so that every rule of a
schema holds, and keys that this command does not know stay as they are. What is stated here is
public: its mark says so from then on.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH
from counterpoise.cli.schema_review import (
    complete_column,
    draft_argument,
    drafted_table,
    write_changed,
    writing_options,
)
from counterpoise.errors import SchemaError, TableError

if TYPE_CHECKING:
    from counterpoise.schema import Column, Schema

_EPILOG = """\b
Examples:
  counterpoise schema set draft.json age --minimum 0 --maximum 110 --required
  counterpoise schema set draft.json ward --categories north,south,other --other other
  counterpoise schema set draft.json admitted --type date --minimum 2020-01-01
  counterpoise schema set draft.json charge --scale log --atoms 0,99999 --step 0.01
  counterpoise schema set draft.json smoker --true 1 --false 2
"""
# As a Table Schema has them, as we say, and whether the values are categories, in order.
_TYPES: dict[str, dict[str, Any]] = {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "date": {"type": "date"},
    "datetime": {"type": "datetime"},
    "boolean": {"type": "boolean"},
    "string": {"type": "string"},
    "ordered": {"type": "string", "categoriesOrdered": True},
}
_NUMBERS = ("integer", "number")
_CODING = ("scale", "atoms", "step")
# What changes what a value is read as, and so what cannot be read.
_READING = ("type", "enum", "trueValues", "falseValues", "other", "required")
# A way to take back what was stated, for those that have a default.
_UNSTATED = ""


@click.command("set", epilog=_EPILOG, short_help="state public values of a column")
@draft_argument
@click.argument("column", shell_complete=complete_column)
@click.option("--type", "kind", type=click.Choice(list(_TYPES)), help="What its values are.")
@click.option("--minimum", metavar="VALUE", help="The least, known without looking; or a date.")
@click.option("--maximum", metavar="VALUE", help="The largest.")
@click.option("--bins", metavar="N|EDGES", help="A number, or edges: 0,18,65,110. '' for none.")
@click.option("--scale", metavar="log|linear", help="Cells by ratio, or of one width. '' for none.")
@click.option("--atoms", metavar="A,B,C", help="Values that many rows have: 0,99999. '' for none.")
@click.option("--step", metavar="VALUE", help="What numbers are multiples of: 0.01. '' for none.")
@click.option("--categories", metavar="A,B,C", help="All categories; with commas: 'a,\"b, c\"'.")
@click.option("--true", metavar="A,B", help="Means true: yes,y. '' for the usual words.")
@click.option("--false", metavar="A,B", help="Means false: no,n.")
@click.option("--other", metavar="CATEGORY", help="Takes what is not listed. '' for none.")
@click.option("--required/--nullable", "required", default=None, help="Without nulls, or with.")
@click.option("--unit", metavar="TEXT", help="For readers. '' for none.")
@click.option("--table", type=PATH, help="Where to look; else where the draft is from.")
@writing_options
def set_values(
    draft: Path,
    column: str,
    kind: str | None,
    minimum: str | None,
    maximum: str | None,
    bins: str | None,
    scale: str | None,
    atoms: str | None,
    step: str | None,
    categories: str | None,
    true: str | None,
    false: str | None,
    other: str | None,
    required: bool | None,
    unit: str | None,
    table: Path | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """State public values of one COLUMN of DRAFT; what is stated counts as public knowledge.

    State what is known of any such table without looking at this one. Values beyond the bounds
    are clamped to them, so generous is better than tight. How many rows are not what is stated is
    looked up in the table, and told to you alone.
    """
    from counterpoise.schema import Schema

    schema = Schema.read(draft)
    old = schema[column]
    stated = {
        "type": "boolean" if kind is None and (true, false) != (None, None) else kind,
        "minimum": minimum,
        "maximum": maximum,
        "enum": categories,
        "trueValues": true,
        "falseValues": false,
        "bins": bins,
        "scale": scale,
        "atoms": atoms,
        "step": step,
        "other": other,
        "required": required,
        "unit": unit,
    }
    if all(value is None for value in stated.values()):
        raise click.UsageError("state something of the column, such as --minimum 0 --maximum 110")
    descriptor = schema.to_dict()
    place = schema.index(column)
    field = _changed(old, descriptor["fields"][place], stated)
    fields = [*descriptor["fields"][:place], field, *descriptor["fields"][place + 1 :]]
    changed = Schema.from_dict({**descriptor, "fields": fields})
    keys = [key for key in stated if stated[key] is not None]
    note = ""
    if {*keys} & {*_READING}:
        changed, note = _looked_up(changed, column, draft, table, stated["type"] is not None)
    said = _differences(old, changed[column], keys)
    write_changed(draft, changed, said, dry_run, quiet)
    if note and not quiet:
        echo(f"note: {note}", err=True)


def _looked_up(
    schema: Schema, name: str, draft: Path, stated: Path | None, is_of_type: bool
) -> tuple[Schema, str]:
    """What the table says of a column as it is stated now: a note, which is confidential.

    That a column has no nulls, as far as a draft saw, holds for what it could be read as then.
    """
    from counterpoise.cli.schema_settle import command_text
    from counterpoise.schema import read_table
    from counterpoise.schema.advice import on_reading

    column, table = schema[name], stated or drafted_table(draft)
    if not column.is_modelled:
        return schema, ""
    try:
        rows = read_table(table or "", [name], dialect=schema.dialect)
        if name not in rows:
            raise TableError(f"{table} has no column {name!r}")
    except TableError:
        if stated is not None:
            raise
        said = f"{name}: no table was looked at; --table says what of it cannot be read"
        return schema, said if is_of_type else ""
    words = schema.words_for_null(column)
    found = on_reading(column, rows[name], words)
    has_nulls = found is not None and found.verb is not None
    if has_nulls and not column.nullable and ("required", "data") in column.sources:
        column = replace(column, nullable=True)
        schema, found = schema.replace(column), on_reading(column, rows[name], words)
    if found is None:
        return schema, ""
    note = f"{name}: {found.matter} (read off the data, and as confidential)"
    way_out = [command_text(found.verb, draft, name, found.options)] if found.verb else []
    return schema, "\n  ".join([note, *way_out])


def _changed(old: Column, field: dict[str, Any], stated: dict[str, Any]) -> dict[str, Any]:
    """The field of a column with other values, all of them public."""
    field = json.loads(json.dumps(field))
    constraints, marks = field.setdefault("constraints", {}), dict(field.get("source") or {})
    numeric = ("type", "minimum", "maximum", "bins", *_CODING)
    if "shape" in field and any(stated[key] is not None for key in numeric):
        # Shape and bins were chosen together, between the bounds as they were.
        field.pop("shape")
        field.pop("bins", None)
    if stated["type"] is not None:
        _change_type(old, field, constraints, marks, stated["type"], stated["enum"] is not None)
    type_ = field.get("type", "string")
    in_categories = _is_categorical(field, constraints) or stated["enum"] is not None
    for key in ("minimum", "maximum"):
        if stated[key] is not None:
            _refuse(old, in_categories, f"{key} belongs to numbers and dates", "--type integer")
            constraints[key] = _bound(old, key, type_, stated[key])
    if stated["bins"] is not None:
        _refuse(old, in_categories, "bins belong to numbers and dates", "--type integer")
        _put(field, "bins", _bins(old, type_, stated["bins"]))
    for key in _CODING:
        if stated[key] is not None:
            _refuse(old, in_categories, f"{key} belongs to numbers and dates", "--type number")
            _put(field, key, _coding(old, key, type_, stated[key]))
    if stated["enum"] is not None:
        is_number = type_ not in ("string", "integer", "boolean") or old.is_numeric
        is_number = is_number and stated["type"] is None
        _refuse(old, is_number, "categories do not belong to numbers", "--type string")
        _refuse(old, type_ == "boolean", "it is true or false already", "--type string")
        constraints["enum"] = _categories(old, type_, stated["enum"])
    if any(stated[key] is not None for key in ("type", "enum", "other")):
        # It was paid for with the categories as they were.
        field.pop("grouping", None)
    for key in ("trueValues", "falseValues"):
        if stated[key] is not None:
            _refuse(old, type_ != "boolean", "it is neither true nor false", "--type boolean")
            words = stated[key] != _UNSTATED
            _put(field, key, _categories(old, "string", stated[key]) if words else None)
    if stated["other"] is not None:
        _refuse(old, not in_categories, "other belongs to categories", "--type string")
        _put_other(old, field, constraints, type_, stated["other"])
    if stated["required"] is not None:
        constraints.pop("required", None)
        if stated["required"]:
            constraints["required"] = True
    if stated["unit"] is not None:
        _put(field, "unit", stated["unit"] or None)
    markable = ("type", "minimum", "maximum", "enum", "required", "bins")
    marks |= {key: "public" for key in markable if stated[key] is not None}
    field["source"] = marks
    return field


def _change_type(
    old: Column,
    field: dict[str, Any],
    constraints: dict[str, Any],
    marks: dict[str, str],
    to: str,
    is_listed: bool,
) -> None:
    """Another type; bounds stay among numbers, and what does not fit any longer goes."""
    before = field.get("type", "string")
    stays = before == to or (before in _NUMBERS and to in _NUMBERS)
    stays = stays and old.is_numeric and not is_listed
    stays = stays and (before == to or to != "integer" or _are_whole(old))
    for key in ("categoriesOrdered", "categorical"):
        field.pop(key, None)
    field.update(_TYPES[to])
    if not stays:
        for key in ("minimum", "maximum"):
            constraints.pop(key, None)
            marks.pop(key, None)
        for key in ("bins", *_CODING):
            field.pop(key, None)
            marks.pop(key, None)
    if to != "number":
        field.pop("step", None)
        marks.pop("step", None)
    if to not in ("string", "ordered") or before != "string":
        # Numbers have no categories, and those of other types are other values.
        constraints.pop("enum", None)
        field.pop("other", None)
        marks.pop("enum", None)


def _are_whole(column: Column) -> bool:
    """Whether the bounds of a column of numbers could be those of integers."""
    bounds: tuple[Any, ...] = (column.minimum, column.maximum)
    return all(bound is None or int(bound) == bound for bound in bounds)


def _is_categorical(field: dict[str, Any], constraints: dict[str, Any]) -> bool:
    if field.get("type", "string") in ("string", "boolean"):
        return True
    return "enum" in constraints or bool(field.get("categoriesOrdered") or field.get("categorical"))


def _bound(column: Column, key: str, type_: str, text: str) -> Any:
    """A bound as JSON has it; the rules of dates are the schema's own."""
    if type_ in ("date", "datetime"):
        return text.strip()
    refusal = SchemaError(f"column {column.name!r}: {key} must be a number, not {text!r}")
    if "_" in text:  # which Python reads over
        raise refusal
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise refusal


def _bins(column: Column, type_: str, text: str) -> Any:
    if text == _UNSTATED:
        return None
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1:
        try:
            return int(parts[0].replace("_", "?"))
        except ValueError:
            rule = "bins must be a whole number, or edges with commas between them"
            raise SchemaError(f"column {column.name!r}: {rule}") from None
    return [_bound(column, "an edge", type_, part) for part in parts]


def _coding(column: Column, key: str, type_: str, text: str) -> Any:
    if text == _UNSTATED:
        return None
    if key == "atoms":
        return [_bound(column, "an atom", type_, part.strip()) for part in text.split(",")]
    return _bound(column, "a step", type_, text) if key == "step" else text


def _categories(column: Column, type_: str, text: str) -> list[Any]:
    """The categories of a line of CSV, so that one in quotes may have a comma."""
    [listed, *more] = [*csv.reader([text], skipinitialspace=True)] or [[]]
    if more or not all(part.strip() for part in listed) or not listed:
        raise SchemaError(f"column {column.name!r}: categories must be a list like a,b,c")
    return [_category(column, type_, part.strip()) for part in listed]


def _category(column: Column, type_: str, text: str) -> Any:
    if type_ != "integer":
        return text
    try:
        return int(text)
    except ValueError:
        raise SchemaError(
            f"column {column.name!r}: its categories are integers, not {text!r}; say --type string "
            "if they are texts"
        ) from None


def _put_other(
    column: Column, field: dict[str, Any], constraints: dict[str, Any], type_: str, text: str
) -> None:
    """The category for the rest, which is listed with the others."""
    if text == _UNSTATED:
        field.pop("other", None)
        return
    _refuse(column, type_ == "boolean", "true or false leave no other", "--type string")
    field["other"] = _category(column, type_, text)
    listed = constraints.get("enum")
    if listed is not None and field["other"] not in listed:
        listed.append(field["other"])


def _put(field: dict[str, Any], key: str, value: Any) -> None:
    field.pop(key, None)
    if value is not None:
        field[key] = value


def _refuse(column: Column, is_wrong: bool, rule: str, way_out: str) -> None:
    if is_wrong:
        from counterpoise.cli.schema_table import column_type

        raise SchemaError(
            f"column {column.name!r} is {column_type(column)}: {rule}; change its type first, such "
            f"as with {way_out}"
        )


def _differences(old: Column, new: Column, stated: list[str]) -> list[str]:
    """A line for each value that was stated, or went, with what it was."""
    from counterpoise.cli.schema_table import coding_text, value_text

    was, now = dict(old.sources), dict(new.sources)
    said = []
    for key in ("type", "minimum", "maximum", "enum", "bins", "required"):
        before, after = value_text(old, key), value_text(new, key)
        if key in ("bins", "minimum", "maximum") and not (old.is_numeric or new.is_numeric):
            continue
        if key == "enum" and old.is_numeric and new.is_numeric:
            continue
        if before == after and was.get(key) == now.get(key):
            continue
        if key == "bins" and key not in stated:
            continue
        origin = {"data": ", read off the data", "paid": ", paid for"}.get(was.get(key, ""), "")
        if before == after:
            said.append(f"{new.name}.{key}: {before}{origin} -> public")
        else:
            ending = ", public" if key in stated else ""
            said.append(f"{new.name}.{key}: {before}{origin} -> {after}{ending}")
    for key in ("other", "unit"):
        before, after = getattr(old, key), getattr(new, key)
        if before != after:
            said.append(f"{new.name}.{key}: {before or 'none'} -> {after or 'none'}")
    for key in _CODING:
        before, after = coding_text(old, key), coding_text(new, key)
        if before != after:
            said.append(f"{new.name}.{key}: {before or 'none'} -> {after or 'none'}")
    return said
