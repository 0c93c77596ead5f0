"""`counterpoise schema`: draft a schema from a table, or review and confirm one."""

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from counterpoise.schema import Schema, draft_schema

_EPILOG = """\b
Examples:
  counterpoise schema patients.csv -o patients.json
  counterpoise schema patients.json --accept age.minimum --pay diagnosis
"""


@click.command("schema", epilog=_EPILOG)
@click.argument("source", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Where to write the schema.")
@click.option("--accept", multiple=True, metavar="COLUMN[.KEY]", help="Confirm as public.")
@click.option("--pay", multiple=True, metavar="COLUMN[.KEY]", help="Let the budget estimate it.")
@click.option("--json", "as_json", is_flag=True, help="Print the schema as JSON.")
def command(
    source: Path, out: Path | None, accept: tuple[str, ...], pay: tuple[str, ...], as_json: bool
) -> None:
    """Draft a schema from a table (SOURCE.csv, .parquet), or review a schema (SOURCE.json).

    A draft is read off the private table: every value in it is marked "source": "data", and no
    release is made with it until each is confirmed as public knowledge or paid for.
    """
    is_schema = source.suffix == ".json"
    schema = Schema.read(source) if is_schema else draft_schema(source)
    for place in accept:
        schema = schema.accept(*_split(schema, place))
    for place in pay:
        schema = schema.pay(*_split(schema, place))
    target = out or (source if is_schema and (accept or pay) else None)
    if target is not None:
        schema.write(target)
    if as_json:
        click.echo(_json(schema))
        return
    Console().print(_table(schema))
    if target is not None:
        click.echo(f"written to {target}")
    if schema.unconfirmed:
        click.echo(
            f"NOT PUBLIC YET: {len(schema.unconfirmed)} values were read off the data. Treat this "
            "schema as confidential. Confirm each that is public knowledge (--accept column.key), "
            "or let the budget estimate it (--pay column).",
            err=True,
        )


def _split(schema: Schema, place: str) -> tuple[str, ...]:
    """`age.minimum` as ("age", "minimum"); a column name may itself contain dots."""
    if place in schema:
        return (place,)
    column, _, key = place.rpartition(".")
    return (column, key) if column else (place,)


def _json(schema: Schema) -> str:
    import json

    return json.dumps(schema.to_dict(), indent=2, ensure_ascii=False)


def _table(schema: Schema) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("column", "kind", "domain", "nulls", "read off the data", "paid for"):
        table.add_column(heading, overflow="fold")
    marks = {"data": dict[str, list[str]](), "paid": dict[str, list[str]]()}
    for source, pairs in (("data", schema.unconfirmed), ("paid", schema.paid)):
        for name, key in pairs:
            marks[source].setdefault(name, []).append(key)
    for column in schema:
        if column.missing:
            domain = f"{' and '.join(column.missing)} not stated"
        elif column.is_numeric:
            domain = f"{column.minimum} to {column.maximum}, {column.cells} bins"
        else:
            domain = f"{column.cells} categories"
        table.add_row(
            column.name,
            column.kind,
            domain,
            "yes" if column.nullable else "no",
            ", ".join(marks["data"].get(column.name, [])),
            ", ".join(marks["paid"].get(column.name, [])),
        )
    return table
