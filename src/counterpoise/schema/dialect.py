"""How a file of text is written: what stands between fields, around them, and in which encoding.

A dialect is part of the public schema, so that a private file is read as stated and nothing about
it is guessed from its rows. Its keys are those of the Data Package standard's Table Dialect, with
`encoding` beside them. https://datapackage.org/standard/table-dialect/
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from counterpoise.arguments import settle_texts
from counterpoise.errors import SchemaError

UTF8 = "utf-8"
# What is tried, and suggested, when a separator is not stated; and what it is called.
SEPARATOR_WORDS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}

_KEYS = {"delimiter": "separator", "quoteChar": "quote", "encoding": "encoding"}
# Of the standard's other keys, the values that say what is done here in any case.
_GRANTED: dict[str, Any] = {"header": True, "doubleQuote": True, "headerRows": [1]}


@dataclass(frozen=True)
class Dialect:
    """The separator between fields, the quote around them, and the encoding of the file.

    A separator of None is the one that the file's suffix stands for: a comma in `.csv`, a tab in
    `.tsv`. A quote within quotes is doubled. A Parquet file has no dialect.

    >>> Dialect(separator=";", encoding="Latin-1").to_dict()
    {'delimiter': ';', 'encoding': 'latin-1'}
    """

    separator: str | None = None
    quote: str = '"'
    encoding: str = UTF8

    def __post_init__(self) -> None:
        settle_texts(self, "separator", "quote", "encoding")
        separator = "," if self.separator is None else self.separator
        for name, character in (("separator", separator), ("quote", self.quote)):
            if not isinstance(character, str) or len(character) != 1 or not _is_plain(character):
                raise SchemaError(f"{name}: expected one character, such as ';' or a tab")
        if self.separator == self.quote:
            raise SchemaError("separator: expected another character than the quote")
        object.__setattr__(self, "encoding", _encoding(self.encoding))

    def to_dict(self) -> dict[str, str]:
        """What differs from the default, as a Table Dialect."""
        return {
            key: getattr(self, name)
            for key, name in _KEYS.items()
            if getattr(self, name) != getattr(DEFAULT, name)
        }

    @classmethod
    def from_dict(cls, descriptor: Any) -> Dialect:
        """The dialect that a Table Dialect describes; one that cannot be obeyed is refused."""
        if not isinstance(descriptor, Mapping):
            raise SchemaError("dialect must be an object")
        for key, value in descriptor.items():
            if key in _KEYS or key.startswith("$"):
                continue
            if key not in _GRANTED or value != _GRANTED[key]:
                known = ", ".join(_KEYS)
                raise SchemaError(f"dialect: {key!r} is not understood; it has {known}")
        return cls(**{name: descriptor[key] for key, name in _KEYS.items() if key in descriptor})


def _is_plain(character: str) -> bool:
    return character == "\t" or (character.isascii() and character.isprintable())


def _encoding(name: Any) -> str:
    """The name of a text encoding in lower case, of whatever Python can read."""
    try:
        found = codecs.lookup(name)
    except (LookupError, TypeError, ValueError):
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise SchemaError(
            "encoding: expected the name of a text encoding, such as utf-8, utf-16, windows-1252 "
            "or latin-1"
        )
    return UTF8 if found.name in ("utf-8", "utf-8-sig", "ascii") else name.strip().lower()


DEFAULT = Dialect()
