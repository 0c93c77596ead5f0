"""`counterpoise schema show`, `accept`, `pay` and `drop`: a draft, looked at and settled.

Accepting is a statement of the curator's: anybody may know this. So each value that becomes public
is printed with its name, and `--dry-run` prints it without writing anything.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from counterpoise.arguments import visible
from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH, many

if TYPE_CHECKING:
    from counterpoise.schema import Schema

_SHOW = """\b
Example:
  counterpoise schema show draft.json
"""
_ACCEPT = """\b
Examples:
  counterpoise schema accept draft.json '*.type' age.minimum 'ward.*'
  counterpoise schema accept draft.json '*' --dry-run
"""
_PAY = """\b
Example:
  counterpoise schema pay draft.json charges 'diagnosis_*'
"""
_DROP = """\b
Example:
  counterpoise schema drop draft.json patient_id 'note_*'
"""


def complete_column(context: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
    """The columns of the draft that was named, for a shell."""
    from counterpoise.errors import CounterpoiseError
    from counterpoise.schema import Schema

    draft = context.params.get("draft")
    try:
        names = Schema.read(draft).names if draft is not None else ()
    except CounterpoiseError:
        names = ()
    # A shell writes them to the terminal as they are.
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


draft_argument = click.argument("draft", type=PATH)
writing_options = many(
    click.option("--dry-run", is_flag=True, help="Say what would change; write nothing."),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
)


def drafted_table(draft: Path) -> Path | None:
    """Where the table of a draft lies, if its file says so."""
    found = json.loads(draft.read_text(encoding="utf-8")).get("table")
    return draft.parent / found if isinstance(found, str) and found else None


def placed(table: Path, draft: Path) -> str:
    """Where a table lies, as the file of its draft says it, so that both may be moved together."""
    try:
        return os.path.relpath(table.resolve(), draft.resolve().parent)
    except ValueError:  # on another drive
        return str(table.resolve())


def write_changed(draft: Path, schema: Schema, said: list[str], dry_run: bool, quiet: bool) -> None:
    """Write a schema whole in the place of its draft, and say what changed and what is left."""
    if not dry_run and said:
        table = drafted_table(draft)
        schema.write(draft, None if table is None else placed(table, draft))
    if quiet:
        return
    for line in said or ["nothing is left to change there"]:
        echo(visible(line))
    if not said:
        return
    left = len(schema.unconfirmed) + len(schema.unstated)
    ending = f"{left} value{'s' * (left > 1)} still to settle" if left else "all is settled"
    echo(f"not written ({ending})" if dry_run else f"written to {draft} ({ending})")


@click.command("show", epilog=_SHOW, short_help="show a schema, and what is still to settle")
@draft_argument
@click.option("--json", "as_json", is_flag=True, help="Print columns, and what to settle, as JSON.")
def show(draft: Path, as_json: bool) -> None:
    """Show a schema as a table, a line a column.

    What was read off the data has a star and a colour; below stands what is still to settle, with
    the command for it.
    """
    from counterpoise.cli.console import echo_json
    from counterpoise.cli.schema_settle import settling_lines, settling_table
    from counterpoise.cli.schema_table import has_colour, schema_table, schema_values
    from counterpoise.schema import Schema

    schema = Schema.read(draft)
    if as_json:
        steps = [{"open": what, "command": how} for what, how in settling_lines(schema, draft)]
        echo_json({"columns": schema_values(schema), "to_settle": steps})
        return
    echo(schema_table(schema, has_colour()), is_visible=True)
    if table := settling_table(schema, draft):
        echo("\n" + table)


@click.command("accept", epilog=_ACCEPT, short_help="accept drafted values as public knowledge")
@draft_argument
@click.argument("patterns", nargs=-1, required=True, shell_complete=complete_column)
@writing_options
def accept(draft: Path, patterns: tuple[str, ...], dry_run: bool, quiet: bool) -> None:
    """Accept values of DRAFT as public knowledge, as they stand.

    PATTERNS are COLUMN or COLUMN.KEY, with * and ? for any letters, in quotes. Accepting says that
    anybody may know these values: every release publishes them.
    """
    from counterpoise.cli.schema_patterns import matching_marks
    from counterpoise.cli.schema_table import value_text
    from counterpoise.schema import Schema

    schema = Schema.read(draft)
    marks = matching_marks(schema, patterns)
    said = []
    if marks:
        verb = "would become" if dry_run else "are now"
        said = [f"these {verb} public: anybody may know them, and a release publishes them"]
    width = max((len(f"{name}.{key}") for name, key in marks), default=0)
    for name, key in marks:
        column = schema[name]
        # Of categories each one, not the first few: all of them are published.
        listed = ", ".join(map(str, column.categories or ())) if key == "enum" else ""
        said.append(f"  {f'{name}.{key}'.ljust(width)}  {listed or value_text(column, key)}")
        schema = schema.accept(name, key)
    write_changed(draft, schema, said, dry_run, quiet)


@click.command("pay", epilog=_PAY, short_help="let the budget estimate bounds or categories")
@draft_argument
@click.argument("patterns", nargs=-1, required=True, shell_complete=complete_column)
@writing_options
def pay(draft: Path, patterns: tuple[str, ...], dry_run: bool, quiet: bool) -> None:
    """Let the budget estimate bounds or categories of DRAFT; what stood there goes.

    PATTERNS are COLUMN or COLUMN.KEY, with * and ? for any letters, in quotes. Types and nulls
    cannot be paid for.
    """
    from counterpoise.cli.schema_patterns import is_glob, matching_values
    from counterpoise.schema import Schema

    schema = Schema.read(draft)
    before = set(schema.paid)
    for pattern in patterns:
        for name, key in matching_values(schema, pattern):
            possible = _payable(schema, name)
            can_be_paid = bool(possible) if key is None else key in possible
            # Of many, a pattern means those that can be paid for; one that is named is refused.
            if can_be_paid or not is_glob(pattern) or pattern in schema:
                schema = schema.pay(name, *([] if key is None else [key]))
    fresh = [mark for mark in schema.paid if mark not in before]
    said = [f"{name}.{key}: a share of the budget will estimate it" for name, key in fresh]
    write_changed(draft, schema, said, dry_run, quiet)


@click.command("drop", epilog=_DROP, short_help="leave columns out")
@draft_argument
@click.argument("columns", nargs=-1, required=True, shell_complete=complete_column)
@writing_options
def drop(draft: Path, columns: tuple[str, ...], dry_run: bool, quiet: bool) -> None:
    """Leave COLUMNS out of DRAFT, and so out of every release.

    Names may have * and ? for any letters, in quotes. The table keeps them; a release ignores them.
    """
    from counterpoise.cli.schema_patterns import matching_columns
    from counterpoise.errors import SchemaError
    from counterpoise.schema import Schema

    schema = Schema.read(draft)
    dropped = {name for pattern in columns for name in matching_columns(schema, pattern)}
    kept = [name for name in schema.names if name not in dropped]
    if not kept:
        raise SchemaError("that would drop every column; name those that are not needed")
    said = [f"{name}: left out" for name in schema.names if name in dropped]
    write_changed(draft, schema.select(kept), said, dry_run, quiet)


def _payable(schema: Schema, name: str) -> tuple[str, ...]:
    column = schema[name]
    if column.category_type == "boolean":
        return ()
    return ("minimum", "maximum") if column.is_numeric else ("enum",)
