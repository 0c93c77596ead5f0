"""What may stand in a schema: plain categories, writable text, known marks.

Each rule returns its value in the one form that columns keep, or raises a SchemaError that names
the column and the rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from counterpoise.errors import SchemaError

Category = str | int | bool

SOURCES = ("data", "public", "paid")
MARKABLE = ("type", "minimum", "maximum", "enum", "required", "bins")
# Beyond 2^53 not every integer is a float64, and the two codings (numpy, SQL) could disagree.
LARGEST_INTEGER = 2**53


def plain_category(name: str, value: Any) -> Category:
    """A category as plain text, a Python integer, or true/false."""
    if isinstance(value, str):
        check_text(name, value, "a category (enum)")
        return str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        number = int(value)
        if abs(number) > LARGEST_INTEGER:
            raise SchemaError(f"column {name!r}: integer categories must be within 2^53")
        return number
    raise SchemaError(
        f"column {name!r}: categories (enum) must be text, whole numbers or true/false"
    )


def check_text(name: str, text: str, what: str) -> None:
    """Refuse text that does not survive a CSV or a database."""
    # A NUL ends a string, a lone surrogate is not UTF-8.
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise SchemaError(f"column {name!r}: {what} must be UTF-8 text without NUL")


def sorted_sources(name: str, sources: Any) -> tuple[tuple[str, str], ...]:
    """Marks as sorted pairs of a key and its source.

    >>> sorted_sources("age", {"minimum": "data", "maximum": "public"})
    (('maximum', 'public'), ('minimum', 'data'))
    """
    try:
        marks = dict(sources)
    except (TypeError, ValueError):
        raise SchemaError(f"column {name!r}: sources must map keys to sources") from None
    for key, source in marks.items():
        if key not in MARKABLE:
            raise SchemaError(f"column {name!r}: source marks one of {', '.join(MARKABLE)}")
        if source not in SOURCES:
            raise SchemaError(f"column {name!r}: a source is one of {', '.join(SOURCES)}")
    return tuple(sorted(marks.items()))
