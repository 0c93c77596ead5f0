"""Finding out how a file of text is written, for a draft: its encoding, separator and quote.

This looks at private rows, so it belongs to drafting alone: a person sees what was found in the
draft and can change it, and every later reading follows what the draft then says. The database's
own sniffer proposes; a proposal holds only if every line that was looked at has as many fields as
the header.
"""

from __future__ import annotations

import codecs
import csv
import itertools
from dataclasses import replace
from pathlib import Path

import duckdb

from counterpoise.schema.dialect import DEFAULT, SEPARATOR_WORDS, UTF8, Dialect
from counterpoise.schema.files import (
    connect,
    file_columns,
    literal_path,
    open_bytes,
    open_text,
    separator,
    text_errors,
)

# Lines that separators are tried on; the encoding is tried on all.
_LINES = 1000
_BLOCK = 2**20
# Windows' letters hold nearly all of what is no UTF-8; any bytes at all are latin-1.
_ENCODINGS = (UTF8, "windows-1252", "latin-1")


def sniff_dialect(path: Path, stated: Dialect = DEFAULT, encoding: str | None = None) -> Dialect:
    """How a file of text seems to be written; what is stated stands."""
    # The complaints about a file that is not there are those of reading its header.
    file_columns(path, replace(stated, encoding="latin-1"))
    found = replace(stated, encoding=encoding or _encoding(path))
    if stated.separator is not None:
        return found
    usual = separator(path, DEFAULT)
    lines = _first_lines(path, found)
    proposed = _proposal(path) if found.encoding == UTF8 else None
    tried = [(mark, found.quote) for mark in (usual, *SEPARATOR_WORDS)]
    for mark, quote in ([proposed] if proposed else []) + tried:
        if _is_regular(lines, mark, quote):
            return replace(found, separator=None if mark == usual else mark, quote=quote)
    return found


def _encoding(path: Path) -> str:
    """The first encoding that a file can be read in as a whole."""
    with open_bytes(path) as file:
        start = file.read(4)
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    # The names of columns begin with a plain letter, which in UTF-16 has a zero beside it.
    if len(start) > 1 and 0 in start[:2]:
        return "utf-16-be" if start[0] == 0 else "utf-16-le"
    for encoding in _ENCODINGS:
        try:
            with open_text(path, encoding) as file:
                while file.read(_BLOCK):
                    pass
        except UnicodeError:
            continue
        except (OSError, EOFError):
            break
        return encoding
    return UTF8


def _proposal(path: Path) -> tuple[str, str] | None:
    """The separator and the quote that the database's sniffer finds, if it finds any."""
    query = (
        f"SELECT Delimiter, Quote FROM sniff_csv({literal_path(path)}, header=true, "
        "all_varchar=true)"
    )
    try:
        with connect() as connection:
            found = connection.execute(query).fetchone()
    except duckdb.Error:
        return None
    if found is None or found[0] not in SEPARATOR_WORDS:
        return None
    return found[0], found[1] if found[1] in ('"', "'") else DEFAULT.quote


def _first_lines(path: Path, dialect: Dialect) -> list[str]:
    with text_errors(path, dialect), open_text(path, dialect.encoding) as file:
        return [*itertools.islice(file, _LINES)]


def _is_regular(lines: list[str], mark: str, quote: str) -> bool:
    """Whether a separator gives every line as many fields as the header, and more than one."""
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=mark, quotechar=quote) if row]
    except csv.Error:
        return False
    # The last row may go on where the lines that were looked at end.
    rows = widths[:-1] if len(lines) == _LINES else widths
    return len({*rows}) == 1 and rows[0] > 1
