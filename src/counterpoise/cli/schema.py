"""`counterpoise schema`: draft a schema from a table, or review and confirm one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from counterpoise.arguments import visible
from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH, many

if TYPE_CHECKING:
    from counterpoise.schema import Schema

_EPILOG = """\b
Examples:
  counterpoise schema patients.csv -o patients.json
  counterpoise schema patients.csv --separator ';' --decimal , --missing NA
  counterpoise schema patients.json --accept age.minimum --pay diagnosis
"""


drafting_options = many(
    click.option("--separator", metavar="CHAR", help="Between fields; tab is a tab."),
    click.option("--decimal", metavar="CHAR", help="The decimal mark: a point or a comma."),
    click.option("--encoding", metavar="NAME", help="Of the file: utf-8, windows-1252, ..."),
    click.option("--missing", multiple=True, metavar="TEXT", help="Stands for null; only these."),
    click.option("--keep", multiple=True, metavar="COLUMN", help="Draft it, identifier or not."),
)


@click.command("schema", epilog=_EPILOG)
@click.argument("source", type=PATH)
@click.option("-o", "--out", type=PATH, help="Where to write the schema.")
@click.option("--accept", multiple=True, metavar="COLUMN[.KEY]", help="Confirm as public.")
@click.option("--pay", multiple=True, metavar="COLUMN[.KEY]", help="Let the budget estimate it.")
@drafting_options
@click.option("--overwrite", is_flag=True, help="Draft anew over a schema that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print the schema as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    source: Path,
    out: Path | None,
    accept: tuple[str, ...],
    pay: tuple[str, ...],
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
    missing: tuple[str, ...],
    keep: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draft a schema from a table (SOURCE.csv, .parquet), or review a schema (SOURCE.json).

    A draft is read off the private table: every value in it is marked "source": "data", and no
    release is made with it until each is confirmed as public knowledge or paid for. How the file
    is written, its decimal mark and its words for null are looked for unless they are stated.
    """
    from counterpoise.cli.console import notes
    from counterpoise.cli.schema_review import drafted_table, placed
    from counterpoise.cli.schema_settle import show_advice
    from counterpoise.disk import plainly
    from counterpoise.errors import SchemaError
    from counterpoise.schema import Schema, draft_schema

    if out is not None:
        _check_target(out, source)
    is_schema = source.suffix == ".json"
    if out is not None and not is_schema and out.exists() and not overwrite:
        raise SchemaError(
            f"{out} is there, and may hold what was stated and confirmed; write the draft to "
            "another place, or draft it anew with --overwrite"
        )
    if is_schema:
        if separator or decimal or encoding or missing or keep:
            raise click.UsageError("how to read a table is stated when a schema is drafted from it")
        schema = Schema.read(source)
    else:
        with notes(quiet):
            schema = draft_schema(
                source,
                separator="\t" if separator in ("tab", "\\t") else separator,
                decimal=decimal,
                encoding=encoding,
                missing=missing or None,
                keep=keep,
            )
    for place in accept:
        schema = schema.accept(*_split(schema, place))
    for place in pay:
        schema = schema.pay(*_split(schema, place))
    target = out or (source if is_schema and (accept or pay) else None)
    if target is not None:
        with plainly(target, error=SchemaError):
            table = drafted_table(source) if is_schema else source
            schema.write(target, None if table is None else placed(table, target))
    if as_json:
        from counterpoise.cli.console import echo_json

        echo_json(schema.to_dict())
    if as_json or quiet:
        return
    echo(schema_lines(schema))
    if reading := reading_lines(schema):
        echo(reading)
    if target is not None:
        echo(f"written to {target}")
    if schema.unconfirmed:
        echo(
            f"NOT PUBLIC YET: {len(schema.unconfirmed)} values were read off the data. Treat this "
            "schema as confidential. State what is publicly known (counterpoise schema set), "
            "confirm what is public as it stands (accept), or let the budget estimate it (pay).",
            err=True,
        )
    if not is_schema:
        show_advice(schema, source, target)


def _check_target(out: Path, source: Path) -> None:
    """Refuse a place that no file can have, and the table's own, before anything is read."""
    from counterpoise.errors import SchemaError

    if out.exists() and not out.is_file():
        raise SchemaError(f"{out} is not a file; state the file to write the schema to")
    if not out.parent.is_dir():
        raise SchemaError(f"there is no folder {out.parent}; make it, or state another place")
    if source.suffix != ".json" and out.exists() and source.exists() and out.samefile(source):
        raise SchemaError(f"{out} is the table itself; state another place for its schema")


def _split(schema: Schema, place: str) -> tuple[str, ...]:
    """`age.minimum` as ("age", "minimum"); a column name may itself contain dots."""
    if place in schema:
        return (place,)
    column, _, key = place.rpartition(".")
    return (column, key) if column else (place,)


def schema_lines(schema: Schema) -> str:
    """A schema as a table; where its values came from is shown when any is marked.

    >>> from counterpoise.schema import Column, Schema
    >>> print(schema_lines(Schema([Column.integer("age", 0, 109), Column.boolean("ill")])))
    column  kind         domain             nulls
    age     integer      0 to 109, 20 bins  no
    ill     categorical  2 categories       no
    """
    from counterpoise.analysis.text import aligned

    marks = {
        heading: {name: [key for own, key in pairs if own == name] for name, _ in pairs}
        for heading, pairs in (("read off the data", schema.unconfirmed), ("paid for", schema.paid))
        if pairs
    }
    lines = [("column", "kind", "domain", "nulls", *marks)]
    for column in schema:
        if column.kind == "identifier":
            domain = "made up"
        elif column.expression is not None:
            domain = f"= {column.expression}"
        elif column.missing:
            domain = f"{' and '.join(column.missing)} not stated"
        elif column.is_numeric:
            domain = f"{column.minimum} to {column.maximum}, {column.cells} bins"
        else:
            domain = f"{column.ungrouped.cells} categories"
        sources = (", ".join(found.get(column.name, [])) for found in marks.values())
        nulls = "yes" if column.nullable else "no"
        lines.append((column.name, column.kind, domain, nulls, *sources))
    table = aligned(lines, len(lines[0]))
    return "\n".join([table, *(visible(f"check: {text}") for text in schema.checks)])


def reading_lines(schema: Schema) -> str:
    """How a schema reads its table, where that is not plain: the file, then column by column.

    >>> from counterpoise.schema import Column, Schema, Spelling
    >>> born = Column.date("born", "1900-01-01", "2020-12-31", spelling=Spelling("%d/%m/%Y"))
    >>> print(reading_lines(Schema([born])))
    born is read by format '%d/%m/%Y'
    """
    said = []
    if stated := schema.dialect.to_dict():
        said.append(f"the file is read by {_stated(stated)}")
    for column in schema:
        if stated := column.spelling.to_dict():
            said.append(f"{visible(column.name)} is read by {_stated(stated)}")
    return "\n".join(said)


def _stated(stated: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value!r}" for key, value in stated.items())
