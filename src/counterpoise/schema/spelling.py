"""How the values of a column are spelled in a table: dates in some order, commas, signs, nulls.

A spelling says how text becomes a value, and holds for text alone: what a table holds as a number
or a date is one already. Its keys are those of Table Schema (`format`, `decimalChar`, `groupChar`,
`bareNumber`, `missingValues`). It is public, fixed before a private row is read, and used up in
the reading: what is released is spelled in the standard's own way.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoise.errors import SchemaError
from counterpoise.schema.quoting import quote_text
from counterpoise.schema.rules import texts

_SPECIFIER = re.compile(r"%(-?[dmyYHIMSjf]|[bBpaA%])")
_DAY_PARTS, _CLOCK_PARTS = set("dmyYbBj"), set("HIMSpf")
# Seconds since midnight of the one moment that has two names.
_A_DAY = 86_400

MINUTES, SECONDS = "minutes since midnight", "seconds since midnight"


@dataclass(frozen=True)
class Spelling:
    """How text in a column is read; what is left out is read in the standard's own way.

    `format` is a pattern of strptime for dates and moments, `clock` one for times of day, which
    are whole minutes since midnight, or seconds if the pattern has them. `decimal` and `group`
    are the characters before the decimals and between thousands; `bare` is false where numbers
    may have a sign of a currency, a percent sign or a unit around them. `missing_values` are the
    texts that stand for null in this column, instead of those of the whole schema.

    >>> Spelling(format="%d/%m/%Y").to_dict()
    {'format': '%d/%m/%Y'}
    """

    format: str | None = None
    clock: str | None = None
    decimal: str = "."
    group: str | None = None
    bare: bool = True
    missing_values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check_pattern("format", self.format, _DAY_PARTS, "dates, such as %d/%m/%Y")
        _check_pattern("format", self.clock, _CLOCK_PARTS, "times of day, such as %H:%M")
        for key, mark in (("decimalChar", self.decimal), ("groupChar", self.group or " ")):
            if not isinstance(mark, str) or len(mark) != 1 or mark.isalnum() or mark in "+-\0":
                raise SchemaError(f"{key}: expected one character, such as ',' or '.'")
        if self.decimal == self.group:
            raise SchemaError("decimalChar: expected another character than groupChar")
        if not isinstance(self.bare, bool):
            raise SchemaError("bareNumber must be true or false")
        if self.missing_values is not None:
            refusal = "missingValues must be a list of texts, in UTF-8 without NUL"
            words = tuple(dict.fromkeys(texts(self.missing_values, refusal)))
            object.__setattr__(self, "missing_values", words)

    @property
    def is_of_numbers(self) -> bool:
        """Whether numbers are spelled in a way of their own."""
        return (self.decimal, self.group, self.bare) != (".", None, True)

    @property
    def unit(self) -> str | None:
        """What a time of day is counted in; None for anything else."""
        if self.clock is None:
            return None
        return SECONDS if self.counts_seconds else MINUTES

    @property
    def counts_seconds(self) -> bool:
        """Whether times of day are seconds since midnight, rather than minutes."""
        return self.clock is not None and ("S" in _parts(self.clock) or "f" in _parts(self.clock))

    @property
    def last_time(self) -> int:
        """The number of the moment at which a day ends."""
        return _A_DAY if self.counts_seconds else _A_DAY // 60

    def without_reading(self) -> Spelling:
        """The spelling of values that have been read: the words for null are what is left."""
        return Spelling(missing_values=self.missing_values)

    def to_dict(self) -> dict[str, Any]:
        """What is stated, as keys of a field."""
        stated: dict[str, Any] = {
            "format": self.format or self.clock,
            "decimalChar": self.decimal if self.decimal != "." else None,
            "groupChar": self.group,
            "bareNumber": None if self.bare else False,
            "missingValues": None if self.missing_values is None else [*self.missing_values],
        }
        return {key: value for key, value in stated.items() if value is not None}

    @classmethod
    def from_dict(cls, field: Mapping[str, Any], type_: str) -> Spelling:
        """The spelling that a field of a Table Schema states; keys of other types are ignored."""
        stated: dict[str, Any] = {}
        pattern = field.get("format", "default")
        if type_ == "time":
            stated["clock"] = "%H:%M:%S" if pattern in ("default", "any") else pattern
        elif type_ in ("date", "datetime") and pattern not in ("default", "any"):
            stated["format"] = pattern
        if type_ in ("integer", "number"):
            named = {"decimalChar": "decimal", "groupChar": "group", "bareNumber": "bare"}
            stated |= {name: field[key] for key, name in named.items() if key in field}
        if field.get("missingValues") is not None:
            stated["missing_values"] = words_listed(field["missingValues"])
        return cls(**stated)

    def number_of(self, text: str) -> str:
        """SQL for the number that a text spells, a DOUBLE; NULL if it spells none.

        >>> Spelling().number_of("t")
        'TRY_CAST(t AS DOUBLE)'
        """
        if not self.is_of_numbers:
            return f"TRY_CAST({text} AS DOUBLE)"
        group, decimal = _escaped(self.group or ""), _escaped(self.decimal)
        digits = f"[0-9][0-9{group}]*" if group else "[0-9]+"
        number = rf"(?:{digits}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][-+]?[0-9]+)?"
        # Around a number that is not bare stands anything but digits, signs and brackets: a
        # bracket may mean a minus, and is nothing that we read.
        around = rf"[^0-9()+{decimal}-]*" if not self.bare else r"\s*"
        # A minus may stand before the sign of a currency or after it, not on both sides.
        sign = rf"\s*([-+]?){around}"
        later = r"([-+]?)\s*" if not self.bare else "()"
        pattern = quote_text(f"^{sign}{later}({number}){around}$")
        matched = f"regexp_matches({text}, {pattern})"
        first, second, found = (
            f"regexp_extract({text}, {pattern}, {place})" for place in (1, 2, 3)
        )
        if self.group:
            found = f"replace({found}, {quote_text(self.group)}, '')"
        if self.decimal != ".":
            found = f"replace({found}, {quote_text(self.decimal)}, '.')"
        both = f"{first} <> '' AND {second} <> ''"
        signed = f"TRY_CAST(concat({first}, {second}, {found}) AS DOUBLE)"
        return f"CASE WHEN {matched} AND NOT ({both}) THEN {signed} END"

    def moment_of(self, text: str) -> str:
        """SQL for the moment that a text spells by the format, a TIMESTAMP; NULL if none."""
        assert self.format is not None
        return f"try_strptime({text}, {quote_text(self.format)})"

    def time_of(self, text: str) -> str:
        """SQL for the minutes or seconds since midnight that a text spells; NULL if none."""
        assert self.clock is not None
        spelled = f"trim({text})"
        if ":" not in self.clock and set(_parts(self.clock)) <= {"H", "M", "S"}:
            # Half past nine is 930 where a number holds it.
            width = 2 * len(_parts(self.clock))
            only_digits = f"regexp_matches({spelled}, '^[0-9]{{1,{width}}}$')"
            spelled = f"CASE WHEN {only_digits} THEN lpad({spelled}, {width}, '0') END"
        midnight = f"regexp_matches(trim({text}), '^24:?00(:?00)?$')"
        by_format = f"CAST(try_strptime({spelled}, {quote_text(self.clock)}) AS TIME)"
        # What holds times as such writes them in the standard's way, whatever the format.
        found = f"epoch(coalesce({by_format}, TRY_CAST(trim({text}) AS TIME)))"
        seconds = f"CASE WHEN {midnight} THEN CAST({_A_DAY} AS DOUBLE) ELSE {found} END"
        return f"floor({seconds})" if self.counts_seconds else f"floor(({seconds}) / 60)"

    def time_text(self, number: int) -> str:
        """A number of minutes or seconds since midnight as a time of day.

        >>> Spelling(clock="%H%M").time_text(930), Spelling(clock="%H:%M:%S").time_text(61)
        ('15:30', '00:01:01')
        """
        minutes, seconds = divmod(number, 60) if self.counts_seconds else (number, None)
        text = f"{minutes // 60:02}:{minutes % 60:02}"
        return text if seconds is None else f"{text}:{seconds:02}"

    def time_labels(self, edges: Sequence[int]) -> tuple[str, ...]:
        """What each bin between these edges holds, as times of day."""
        pairs = ((self.time_text(a), self.time_text(b - 1)) for a, b in itertools.pairwise(edges))
        return tuple(a if a == b else f"{a} to {b}" for a, b in pairs)

    def time_number(self, name: str, text: Any) -> Any:
        """The number that a time of day stands for; whatever is no text stays what it is."""
        if not isinstance(text, str):
            return text
        found = re.fullmatch(r"([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?", text.strip())
        if found is None:
            raise SchemaError(
                f"column {name!r}: minimum, maximum and edges must be times of day, such as 15:30"
            )
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        in_minutes = hours * 60 + minutes
        return in_minutes * 60 + seconds if self.counts_seconds else in_minutes

    def require_kind(self, name: str, kind: str) -> None:
        """Raise a SchemaError if values of that kind are not spelled in such a way."""
        numbers = ("integer", "continuous")
        for is_stated, kinds, what in (
            (self.format is not None, ("date", "datetime"), "a format of dates"),
            (self.clock is not None, numbers, "a format of times"),
            (self.is_of_numbers, numbers, "a spelling of numbers"),
        ):
            if is_stated and kind not in kinds:
                raise SchemaError(f"column {name!r} is {kind}, and takes no {what[2:]}")


def words_listed(missing: Any) -> tuple[Any, ...]:
    """The words of a `missingValues` list, whose members may be objects with a label."""
    if not isinstance(missing, list):
        raise SchemaError("missingValues must be a list of texts")
    return tuple(item.get("value") if isinstance(item, Mapping) else item for item in missing)


def _escaped(mark: str) -> str:
    # The database's patterns know no escaped space.
    return f"\\{mark}" if mark in {*string.punctuation} else mark


def _parts(pattern: str) -> list[str]:
    """The letters of a pattern's specifiers, in order."""
    return [found.lstrip("-") for found in _SPECIFIER.findall(pattern) if found != "%"]


def _check_pattern(key: str, pattern: Any, wanted: set[str], kind: str) -> None:
    if pattern is None:
        return
    rule = f"{key}: expected a pattern of strptime for {kind}"
    if not isinstance(pattern, str) or "\0" in pattern:
        raise SchemaError(rule)
    if "%" in _SPECIFIER.sub("", pattern) or not wanted & {*_parts(pattern)}:
        raise SchemaError(rule)


PLAIN = Spelling()
