"""Names and texts as SQL: quoted, never pasted."""

from __future__ import annotations


def quote_name(name: str) -> str:
    """A name as a SQL identifier.

    >>> quote_name('5" pipe')
    '"5"" pipe"'
    """
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text as a SQL literal.

    >>> quote_text("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
