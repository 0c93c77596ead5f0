"""What a schema leaves to settle, and the command that settles it: one short table.

Types and nulls are mostly public knowledge and take one command for all columns; bounds are to be
stated, and lists of categories confirmed, column by column.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from counterpoise.arguments import visible
from counterpoise.cli.console import echo
from counterpoise.errors import SchemaError

if TYPE_CHECKING:
    from counterpoise.schema import Column, Schema

# A screen; whoever has more columns sees the rest once these are settled.
MOST_LINES = 24
_TOGETHER = {"type": "the type", "required": "nulls"}


def command_text(verb: str, draft: Path | str, name: str, options: Iterable[str] = ()) -> str:
    """A command for the shell on one column, or on a pattern; names are quoted as they need it.

    >>> command_text("drop", "draft.json", "patient id")
    "counterpoise schema drop draft.json 'patient id'"
    >>> command_text("set", "draft.json", "-x", ["--nullable"])
    'counterpoise schema set --nullable -- draft.json -x'
    """
    words = [shlex.quote(str(draft)), shlex.quote(name)]
    stated = [word if word == "..." else shlex.quote(word) for word in options]
    # What begins with a dash would be taken for an option, so it stands behind the mark.
    call = [*stated, "--", *words] if name.startswith("-") else [*words, *stated]
    return " ".join(["counterpoise schema", verb, *call])


def settling_lines(schema: Schema, draft: Path | str) -> list[tuple[str, str]]:
    """What is open, and the command that settles it; empty when a release may be made.

    >>> from counterpoise.schema import Column, Schema
    >>> age = Column.integer("age", 18, 99, sources={"minimum": "data", "type": "data"})
    >>> for what, how in settling_lines(Schema([age]), "draft.json"):
    ...     print(what, "|", how)
    age: the type, read off the data | counterpoise schema accept draft.json '*.type'
    age: minimum, read off the data | counterpoise schema set draft.json age --minimum ...
    """
    drafted = schema.unconfirmed
    lines = []
    for key, said in _TOGETHER.items():
        names = [name for name, own in drafted if own == key]
        if names:
            which = names[0] if len(names) == 1 else f"{len(names)} columns"
            what = f"{which}: {said}, read off the data"
            lines.append((what, command_text("accept", draft, f"*.{key}")))
    for column in schema:
        lines += _column_lines(schema, column, draft)
    return lines


def settling_table(schema: Schema, draft: Path | str) -> str:
    """The same as a table, cut to a screen; empty when there is nothing to settle."""
    from counterpoise.analysis.text import aligned

    lines = settling_lines(schema, draft)
    if not lines:
        return ""
    shown = [("open", "settle it with"), *lines[:MOST_LINES]]
    table = aligned(shown, 2)
    if len(lines) > MOST_LINES:
        show = f"counterpoise schema show {shlex.quote(str(draft))}"
        table += f"\nand {len(lines) - MOST_LINES} more: {show}"
    return table


def require_settled(schema: Schema, draft: Path | str) -> None:
    """Refuse a schema with something to settle, after a table of it on standard error."""
    table = settling_table(schema, draft)
    if not table:
        return
    counts = ((len(schema.unconfirmed), "read off the data"), (len(schema.unstated), "not stated"))
    found = " and ".join(
        f"{count} {'is' if count == 1 else 'are'} {why}" for count, why in counts if count
    )
    echo(table + "\n", err=True)
    raise SchemaError(
        f"{draft} has values that are not public knowledge yet: {found}; settle each with the "
        "command beside it"
    )


def show_advice(schema: Schema, table: Path, draft: Path | None) -> None:
    """What would go badly with a draft, on standard error, each with the command that settles it.

    It says what the table is like, so it is as confidential as the draft.
    """
    from counterpoise.schema import read_table
    from counterpoise.schema.advice import advise

    found = advise(schema, read_table(table, schema.names, dialect=schema.dialect))
    if not found:
        return
    echo("\nBefore a release (read off the data, and as confidential):", err=True)
    for advice in found:
        start = "" if advice.column is None else f"{advice.column}: "
        echo(f"  {visible(start + advice.matter)}", err=True)
        if advice.column is not None and advice.verb is not None:
            place = draft or Path("draft.json")
            how = command_text(advice.verb, place, advice.column, advice.options)
            echo(f"    {visible(how)}", err=True)


def _column_lines(schema: Schema, column: Column, draft: Path | str) -> list[tuple[str, str]]:
    lines = []
    drafted = [key for name, key in schema.unconfirmed if name == column.name]
    unstated = [key for name, key in schema.unstated if name == column.name]
    for keys, why in ((drafted, "read off the data"), (unstated, "not stated")):
        bounds = [key for key in ("minimum", "maximum") if key in keys]
        if bounds:
            options = [word for key in bounds for word in (f"--{key}", "...")]
            what = f"{column.name}: {' and '.join(bounds)}, {why}"
            lines.append((what, command_text("set", draft, column.name, options)))
    if "enum" in drafted:
        accepting = command_text("accept", draft, f"{column.name}.enum")
        lines.append((f"{column.name}: categories, read off the data", accepting))
    elif "enum" in unstated:
        paying = command_text("pay", draft, column.name)
        lines.append((f"{column.name}: categories, not stated", paying))
    if "bins" in drafted:
        binning = command_text("set", draft, column.name, ["--bins", "..."])
        lines.append((f"{column.name}: bins, read off the data", binning))
    return lines
