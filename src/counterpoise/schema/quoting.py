"""Names and texts as SQL: quoted, never pasted. And as cells that no spreadsheet runs.

A spreadsheet takes a cell for a formula by its first character, whoever wrote it. With an
apostrophe before it the cell is a text; signed numbers stay what they are.
"""

from __future__ import annotations

import re

# Regular expressions that Python and the database read alike.
_FORMULA, _NUMBER = r"[=+@\t\r\n-]", "[-+][0-9.,]+"
# A column of texts as such cells, in SQL.
AS_CELLS = (
    f"CASE WHEN regexp_matches({{0}}, '^{_FORMULA}') AND NOT regexp_full_match({{0}}, '{_NUMBER}') "
    "THEN '''' || {0} ELSE {0} END"
)


def as_cell(text: str) -> str:
    """A text as a cell that no spreadsheet runs.

    >>> as_cell("=1+1"), as_cell("-9"), as_cell("Oslo")
    ("'=1+1", '-9', 'Oslo')
    """
    is_run = re.match(_FORMULA, text) and not re.fullmatch(_NUMBER, text)
    return f"'{text}" if is_run else text


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
