"""A schema as a table to review: a line a column, and which values came from the data.

What was read off the data has a star, and a colour where the terminal has colours; what is
neither stated nor paid for has a question mark.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from counterpoise.arguments import visible

if TYPE_CHECKING:
    from counterpoise.schema import Column, Schema

HEADINGS = ("column", "type", "minimum", "maximum", "categories", "nulls", "bins", "to settle")
FROM_DATA, UNKNOWN, PAID = "*", "?", "paid for"
# What a cell of categories may take of the line.
WIDEST = 36
_LEGEND = "* read off the data: confidential until it is accepted"


def schema_table(schema: Schema, colour: bool = False) -> str:
    """The table; with `colour`, what came from the data is yellow and what is open red.

    >>> from counterpoise.schema import Column, Schema
    >>> age = Column.integer("age", 0, 99, sources={"maximum": "data"})
    >>> ward = Column.categorical("ward", ["a", "b"], nullable=True)
    >>> print(schema_table(Schema([age, ward, Column.continuous("pay", 0)])))
    column  type     minimum  maximum  categories  nulls  bins  to settle
    age     integer  0        99*                  no     auto  maximum
    ward    string                     2: a, b     yes
    pay     number   0.0      ?                    no     auto  maximum
    * read off the data: confidential until it is accepted
    ? neither stated nor paid for
    """
    lines = [HEADINGS, *(_cells(column) for column in schema)]
    widths = [max(len(cell) for cell in cells) for cells in zip(*lines, strict=True)]
    shown = []
    for line in lines:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        last = len("".join(padded).rstrip()) and max(i for i, cell in enumerate(line) if cell)
        padded = [*padded[:last], line[last]]
        shown.append("  ".join(_styled(cell) for cell in padded) if colour else "  ".join(padded))
    if schema.unconfirmed:
        shown.append(_styled(_LEGEND) if colour else _LEGEND)
    if schema.unstated:
        shown.append("? neither stated nor paid for")
    return "\n".join(shown)


def schema_values(schema: Schema) -> list[dict[str, Any]]:
    """The same for machines: a column as its field of the Table Schema, and what is to settle."""
    unstated = set(schema.unstated)
    return [
        {
            **field,
            "to_settle": [
                {"key": key, "why": "not stated" if (column.name, key) in unstated else "data"}
                for key in _unsettled(column)
            ],
        }
        for column, field in zip(schema, schema.to_dict()["fields"], strict=True)
    ]


def has_colour() -> bool:
    """Whether to colour: not where NO_COLOR asks for none; click leaves it out of files itself."""
    return not os.environ.get("NO_COLOR")


def value_text(column: Column, key: str) -> str:
    """One stated value of a column as text, under the key of its mark.

    >>> from counterpoise.schema import Column
    >>> value_text(Column.integer("age", 0, 99), "maximum")
    '99'
    """
    match key:
        case "type":
            return column_type(column)
        case "minimum" | "maximum":
            value = getattr(column, key)
            return "not stated" if value is None else str(value)
        case "enum":
            return "not stated" if column.categories is None else shortened(column.categories)
        case "required":
            return "nulls" if column.nullable else "no nulls"
    return _bins(column)


def column_type(column: Column) -> str:
    """The type of a column as a Table Schema has it, and what its categories are to us.

    >>> from counterpoise.schema import Column
    >>> column_type(Column.continuous("pay")), column_type(Column.ordinal("pain", ["no", "yes"]))
    ('number', 'ordered string')
    >>> column_type(Column.categorical("grade", [1, 2, 3]))
    'integer category'
    >>> from counterpoise.schema import Spelling
    >>> column_type(Column.boolean("ill", spelling=Spelling(true_values=["J"], false_values=["N"])))
    'boolean (j/n)'
    """
    if column.kind == "continuous":
        return "number"
    if column.is_numeric or column.category_type is None:
        return column.kind
    if column.spelling.is_of_truths:
        [false, *_], [true, *_] = column.spelling.truths
        return f"boolean ({true}/{false})"
    if column.kind == "ordinal":
        return f"ordered {column.category_type}"
    return column.category_type + (" category" if column.category_type == "integer" else "")


def shortened(categories: tuple[Any, ...]) -> str:
    """How many categories there are, and the first of them.

    >>> shortened(("north", "south", "east", "west", "the middle of the country"))
    '5: north, south, east, west, ...'
    """
    start = f"{len(categories)}: "
    shown: list[str] = []
    room = WIDEST - len(start)
    for place, category in enumerate(map(str, categories)):
        text = category if len(category) <= WIDEST // 2 else category[: WIDEST // 2 - 3] + "..."
        more = 5 if place + 1 < len(categories) else 0
        if len(text) + 2 + more > room + 2:
            return start + ", ".join([*shown, "..."])
        shown.append(text)
        room -= len(text) + 2
    return start + ", ".join(shown)


def _cells(column: Column) -> tuple[str, ...]:
    marks = dict(column.sources)

    def cell(key: str, text: str) -> str:
        if marks.get(key) == "paid":
            return PAID
        if key in column.missing:
            return UNKNOWN
        return text + FROM_DATA if marks.get(key) == "data" else text

    bound = {key: cell(key, value_text(column, key)) for key in ("minimum", "maximum")}
    listed = column.category_type is not None and column.category_type != "boolean"
    has_codes = column.is_numeric or column.grouping is not None
    cells = (
        column.name,
        cell("type", column_type(column)),
        bound["minimum"] if column.is_numeric else "",
        bound["maximum"] if column.is_numeric else "",
        cell("enum", value_text(column, "enum")) if listed else "",
        cell("required", "yes" if column.nullable else "no"),
        _coding(column, cell("bins", _bins(column))) if has_codes else "",
        ", ".join(_unsettled(column)),
    )
    return tuple(map(visible, cells))


def coding_text(column: Column, key: str) -> str:
    """The scale, the atoms or the step of a column as text; empty where none is stated.

    >>> from counterpoise.schema import Column
    >>> coding_text(Column.continuous("pay", 0, 1e6, atoms=(0, 99_999)), "atoms")
    '0, 99999'
    """
    stated = getattr(column, key)
    if stated is None:
        return ""
    listed = stated if isinstance(stated, tuple) else (stated,)
    return ", ".join(f"{each:.15g}" if isinstance(each, float) else str(each) for each in listed)


def _coding(column: Column, bins: str) -> str:
    """The bins, and what else is stated of the coding: `auto, log, atoms 0, 99999`."""
    texts = {key: coding_text(column, key) for key in ("scale", "atoms", "step")}
    stated = [text if key == "scale" else f"{key} {text}" for key, text in texts.items() if text]
    return ", ".join([bins, *stated])


def _bins(column: Column) -> str:
    if isinstance(column.bins, tuple):
        return f"{len(column.bins) - 1} stated"
    if column.bins is not None:
        return str(column.bins)
    if column.grouping is not None:
        return f"{column.cells} groups"
    return "auto" if column.has_open_bins or column.missing else str(column.cells)


def _unsettled(column: Column) -> list[str]:
    marks = dict(column.sources)
    open_keys = [key for key in column.missing if marks.get(key) != "paid"]
    drafted = [key for key, mark in marks.items() if mark == "data"]
    order = ("type", "minimum", "maximum", "enum", "required", "bins")
    return [key for key in order if key in open_keys or key in drafted]


def _styled(padded: str) -> str:
    text = padded.rstrip()
    if text.endswith(FROM_DATA) or text == _LEGEND:
        return click.style(text, fg="yellow") + padded[len(text) :]
    if text == UNKNOWN:
        return click.style(text, fg="red", bold=True) + padded[len(text) :]
    return padded
