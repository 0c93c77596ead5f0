"""What may stand in a schema: plain categories, writable text, known marks.

Each rule returns its value in the one form that columns keep, or raises a SchemaError that names
the column and the rule.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from datetime import date as Date
from datetime import datetime as DateTime
from typing import Any

import numpy as np

from counterpoise.arguments import plain_text
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
        return plain_text(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if is_number(value) and isinstance(value, int | np.integer):
        number = operator.index(value)
        if abs(number) > LARGEST_INTEGER:
            raise SchemaError(f"column {name!r}: integer categories must be within 2^53")
        return number
    raise SchemaError(
        f"column {name!r}: categories (enum) must be text, whole numbers or true/false"
    )


def is_number(value: Any) -> bool:
    """Whether a value is a whole or real number: no truth value, and no span of time.

    >>> is_number(np.int8(3)), is_number(True), is_number(np.timedelta64(1, "D"))
    (True, False, False)
    """
    # To numpy a span of time is an integer.
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(
        value, bool | np.timedelta64
    )


def from_iso(name: str, kind: str, text: Any) -> Date:
    """A day or, for another kind than "date", a moment, from its text in ISO 8601.

    >>> from_iso("born", "date", "2020-12-31")
    datetime.date(2020, 12, 31)
    """
    try:
        return Date.fromisoformat(text) if kind == "date" else DateTime.fromisoformat(text)
    except Exception:
        raise SchemaError(
            f"column {name!r}: minimum, maximum and edges must be ISO 8601 {kind}s"
        ) from None


def finite_number(value: Any) -> float | None:
    """A number as a finite float64; None if it is none, or too large for one."""
    try:
        number = float(value)
    except Exception:
        # Too large, or of a type of its own that has none.
        return None
    return number if math.isfinite(number) else None


def listed(values: Any, refusal: str) -> tuple[Any, ...]:
    """The values of a list, or of anything else that can be gone through; text is no list."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        try:
            return tuple(values)
        except Exception:
            # An array without dimensions only looks like one, and others refuse to be gone through.
            pass
    raise SchemaError(refusal)


def texts(values: Any, refusal: str) -> tuple[str, ...]:
    """The plain texts of a list that holds nothing else, and nothing that cannot be written."""
    found = listed(values, refusal)
    if not all(isinstance(value, str) and is_writable(value) for value in found):
        raise SchemaError(refusal)
    return tuple(map(plain_text, found))


def is_writable(text: str) -> bool:
    """Whether text survives a CSV or a database.

    >>> is_writable("naïve"), is_writable("a\\0b")
    (True, False)
    """
    text = plain_text(text)
    # A NUL ends a string, a lone surrogate is not UTF-8.
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_text(name: str, text: str, what: str) -> None:
    """Refuse text that does not survive a CSV or a database."""
    if not is_writable(text):
        raise SchemaError(f"column {name!r}: {what} must be UTF-8 text without NUL")


def sorted_sources(name: str, sources: Any) -> tuple[tuple[str, str], ...]:
    """Marks as sorted pairs of a key and its source.

    >>> sorted_sources("age", {"minimum": "data", "maximum": "public"})
    (('maximum', 'public'), ('minimum', 'data'))
    """
    try:
        marks = dict(sources)
    except Exception:
        raise SchemaError(f"column {name!r}: sources must map keys to sources") from None
    for key, source in marks.items():
        if not isinstance(key, str) or plain_text(key) not in MARKABLE:
            raise SchemaError(f"column {name!r}: source marks one of {', '.join(MARKABLE)}")
        if not isinstance(source, str) or plain_text(source) not in SOURCES:
            raise SchemaError(f"column {name!r}: a source is one of {', '.join(SOURCES)}")
    return tuple(sorted(marks.items()))
