"""Patterns for what a schema states: `age.minimum`, `ward`, `ward.*`, `*.type`, `c_*.m*imum`.

A pattern is `COLUMN` or `COLUMN.KEY`, both with the signs of a shell: `*`, `?` and `[...]`. A name
that a column really has is that column, whatever signs or dots it contains, and `*.type` is the
types of all columns, also where a column is called `x.type`: what is accepted is published, so a
pattern must not take more than it says.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from counterpoise.errors import SchemaError

if TYPE_CHECKING:
    from counterpoise.schema import Schema

# The keys as a Table Schema spells them, and as `counterpoise schema show` heads them.
ALIASES = {"categories": "enum", "nulls": "required"}


def is_glob(pattern: str) -> bool:
    """Whether a pattern may stand for several names."""
    return any(sign in pattern for sign in "*?[")


def matching_columns(schema: Schema, pattern: str) -> list[str]:
    """The columns that a pattern names; an error if there are none.

    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.boolean("ill"), Column.boolean("ill_before")])
    >>> matching_columns(schema, "ill*"), matching_columns(schema, "ill")
    (['ill', 'ill_before'], ['ill'])
    """
    found = _columns(schema, pattern)
    if found:
        return found
    if not is_glob(pattern):
        schema.index(pattern)
    raise SchemaError(
        f"no column of the schema is like {pattern!r}; see `counterpoise schema show`"
    )


def matching_values(schema: Schema, pattern: str) -> list[tuple[str, str | None]]:
    """The columns that a pattern names, each with one of its keys, or with None for all of them.

    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.integer("age", 0, 109), Column.boolean("ill")])
    >>> matching_values(schema, "*.type")
    [('age', 'type'), ('ill', 'type')]
    >>> matching_values(schema, "age"), matching_values(schema, "age.m*")
    ([('age', None)], [('age', 'minimum'), ('age', 'maximum')])
    """
    if pattern in schema:
        return [(pattern, None)]
    columns, dot, key = pattern.rpartition(".")
    keys = _keys(key) if dot else []
    if keys and (found := _columns(schema, columns)):
        return [(name, each) for name in found for each in keys]
    if dot and not keys and not is_glob(key) and _columns(schema, columns):
        from counterpoise.schema.rules import MARKABLE

        raise SchemaError(
            f"{pattern!r}: a column has no {key!r}; it may have one of {', '.join(MARKABLE)}"
        )
    return [(name, None) for name in matching_columns(schema, pattern)]


def matching_marks(schema: Schema, patterns: Iterable[str]) -> list[tuple[str, str]]:
    """The values read off the data that the patterns take, in the schema's order."""
    taken = {
        (name, key)
        for pattern in patterns
        for name, found in matching_values(schema, pattern)
        for own, key in schema.unconfirmed
        if own == name and found in (None, key)
    }
    return [mark for mark in schema.unconfirmed if mark in taken]


def _columns(schema: Schema, pattern: str) -> list[str]:
    if pattern in schema:
        return [pattern]
    return [name for name in schema.names if fnmatchcase(name, pattern)]


def _keys(pattern: str) -> list[str]:
    from counterpoise.schema.rules import MARKABLE

    pattern = ALIASES.get(pattern, pattern)
    return [key for key in MARKABLE if fnmatchcase(key, pattern)]
