"""How the values of a column are spelled in a table: dates in some order, commas, signs, nulls.

A spelling says how text becomes a value, and holds for text alone: what a table holds as a number
or a date is one already. Its keys are those of Table Schema (`format`, `decimalChar`, `groupChar`,
`bareNumber`, `trueValues`, `falseValues`, `missingValues`). It is public, fixed before a private
row is read, and used up in the reading: what is released is spelled in the standard's own way.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoise.arguments import settle_texts
from counterpoise.errors import SchemaError
from counterpoise.schema.quoting import quote_text
from counterpoise.schema.rules import texts

_SPECIFIER = re.compile(r"%(-?[dmyYHIMSjf]|[bBpaA%])")
_DAY_PARTS, _CLOCK_PARTS = set("dmyYbBj"), set("HIMSpf")
# Seconds since midnight of the one moment that has two names.
_A_DAY = 86_400

MINUTES, SECONDS = "minutes since midnight", "seconds since midnight"

# Those that look like a minus: U+2012 to U+2015, the minus of mathematics and the wide one.
_DASHES = "\u2012-\u2015\u2212\ufe63\uff0d"
# What true and false are called where nothing is stated: in English, German, French and Spanish, by
# a letter or a digit, and by the worksheets of Excel in these languages and in Italian.
TRUE_WORDS = (
    *("true", "t", "yes", "y", "ja", "j", "oui", "o", "si", "sí", "1"),
    *("wahr", "vrai", "verdadero", "vero"),
)
FALSE_WORDS = ("false", "f", "no", "n", "nein", "non", "0", "falsch", "faux", "falso")
# What may stand around a word without being a part of it.
BLANKS = " \t\r\n\u00a0\u202f"
# A mark between thousands has three digits behind it, or two where lakhs are counted; the last
# always three, or a decimal comma would be taken for it.
_GROUPED = "[0-9]{{1,3}}(?:{0}[0-9]{{2,3}})*{0}[0-9]{{3}}"


@dataclass(frozen=True)
class Spelling:
    """How text in a column is read; what is left out is read in the standard's own way.

    `format` is a pattern of strptime for dates and moments, `clock` one for times of day, which
    are whole minutes since midnight, or seconds if the pattern has them. `decimal` and `group`
    are the characters before the decimals and between thousands; `bare` is false where numbers
    may have a sign of a currency, a percent sign or a unit around them. `true_values` and
    `false_values` are what true and false are called, in any case, instead of the usual words.
    `missing_values` are the texts that stand for null in this column, instead of those of the
    whole schema.

    >>> Spelling(format="%d/%m/%Y").to_dict()
    {'format': '%d/%m/%Y'}
    """

    format: str | None = None
    clock: str | None = None
    decimal: str = "."
    group: str | None = None
    bare: bool = True
    missing_values: tuple[str, ...] | None = None
    true_values: tuple[str, ...] | None = None
    false_values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle_texts(self, "format", "clock", "decimal", "group")
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
        self._check_truths()

    @property
    def is_of_truths(self) -> bool:
        """Whether true and false are called in a way of their own."""
        return self.true_values is not None or self.false_values is not None

    @property
    def truths(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words for false and those for true; a word that is stated for one is not the other's.

        >>> Spelling(true_values=["1"], false_values=["2"]).truths
        (('2',), ('1',))
        """
        stated = (self.false_values, self.true_values)
        folded = [None if words is None else [*map(folded_word, words)] for words in stated]
        found = [
            own or [word for word in usual if word not in (other or ())]
            for own, other, usual in zip(
                folded, folded[::-1], (FALSE_WORDS, TRUE_WORDS), strict=True
            )
        ]
        return tuple(dict.fromkeys(found[0])), tuple(dict.fromkeys(found[1]))

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
            "trueValues": self.true_values,
            "falseValues": self.false_values,
            "missingValues": self.missing_values,
        }
        return {
            key: [*value] if isinstance(value, tuple) else value
            for key, value in stated.items()
            if value is not None
        }

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
        if type_ == "boolean":
            named = {"trueValues": "true_values", "falseValues": "false_values"}
            stated |= {name: field.get(key) for key, name in named.items()}
        if field.get("missingValues") is not None:
            stated["missing_values"] = words_listed(field["missingValues"])
        return cls(**stated)

    def number_of(self, text: str) -> str:
        """SQL for the number that a text spells, a DOUBLE; NULL if it spells none.

        >>> Spelling().number_of("t")
        "TRY_CAST(replace(t, '_', '?') AS DOUBLE)"
        """
        if not self.is_of_numbers:
            # The database reads over a stroke between digits, which is no number but a code.
            return f"TRY_CAST(replace({text}, '_', '?') AS DOUBLE)"
        group, decimal = _escaped(self.group or ""), _escaped(self.decimal)
        digits = f"(?:{_GROUPED.format(group)}|[0-9]+)" if group else "[0-9]+"
        number = rf"(?:{digits}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][-+]?[0-9]+)?"
        # Around a number that is not bare stands anything but digits, signs and brackets: a
        # bracket may mean a minus, and is nothing that we read.
        around = rf"[^0-9()+{decimal}-]*" if not self.bare else r"\s*"
        # A minus may stand before the sign of a currency or after it, not on both sides. A dash
        # before a number may be a minus as well; after it, it is that of a price without cents.
        before = around if self.bare else around.replace("[^", f"[^{_DASHES}")
        sign = rf"\s*([-+]?){before}"
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

    def truth_of(self, text: str) -> str:
        """SQL for the truth that a text spells, '1' or '0'; NULL if it spells none."""
        false, true = self.truths
        listed = ", ".join(map(quote_text, (*true, *false)))
        word = f"lower(trim({text}, {quote_text(BLANKS)}))"
        # One look-up a row, however many words there are.
        place = f"enum_code(TRY_CAST({word} AS ENUM({listed})))"
        return f"CASE {place} < {len(true)} WHEN true THEN '1' WHEN false THEN '0' END"

    def moment_of(self, text: str) -> str:
        """SQL for the moment that a text spells by the format, a TIMESTAMP; NULL if none."""
        assert self.format is not None
        # A year of two digits were one of the first century, and clamped to the minimum. The
        # database reads words such as "infinity" by any format.
        digits = "[0-9]{4}" if "Y" in _parts(self.format) else "[0-9]"
        moment = f"try_strptime({text}, {quote_text(self.format)})"
        return f"CASE WHEN regexp_matches({text}, '{digits}') THEN {moment} END"

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
        of_format = f"CAST(try_strptime({spelled}, {quote_text(self.clock)}) AS TIME)"
        by_format = f"CASE WHEN regexp_matches({text}, '[0-9]') THEN {of_format} END"
        # What holds times as such writes them in the standard's way, whatever the format. A day
        # alone is no time, nor are the hours of a clock of twelve without their half of the day.
        seconds = ":[0-9]{2}" if {*_parts(self.clock)} & {*"Ip"} else ""
        standard = quote_text(f"[0-9]:[0-9]{{2}}{seconds}[^A-Za-z]*Z?$")
        is_standard = f"regexp_matches(trim({text}), {standard})"
        as_such = f"CASE WHEN {is_standard} THEN TRY_CAST(trim({text}) AS TIME) END"
        found = f"epoch(coalesce({by_format}, {as_such}))"
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
        """Raise a SchemaError if values of that kind, or boolean, are not spelled in such a way."""
        numbers = ("integer", "continuous")
        for is_stated, kinds, what in (
            (self.format is not None, ("date", "datetime"), "a format of dates"),
            (self.clock is not None, numbers, "a format of times"),
            (self.is_of_numbers, numbers, "a spelling of numbers"),
            (self.is_of_truths, ("boolean",), "words for true and false"),
        ):
            if is_stated and kind not in kinds:
                what = what.removeprefix("a ")
                raise SchemaError(f"column {name!r} is {kind}, and takes no {what}")

    def _check_truths(self) -> None:
        for key, stated in (("true_values", self.true_values), ("false_values", self.false_values)):
            if stated is None:
                continue
            named = {"true_values": "trueValues", "false_values": "falseValues"}[key]
            refusal = f"{named}: expected a list of texts that are not empty"
            words = tuple(dict.fromkeys(texts(stated, refusal)))
            if not words or not all(map(folded_word, words)):
                raise SchemaError(refusal)
            object.__setattr__(self, key, words)
        false, true = self.truths
        if not {*false}.isdisjoint(true):
            raise SchemaError(
                "trueValues: expected other words than falseValues, whatever the case"
            )
        if not (false and true):
            raise SchemaError("trueValues, falseValues: state both")


def folded_word(text: str) -> str:
    """A word for true or false as words are compared: without case or blanks around it.

    >>> folded_word(" Yes")
    'yes'
    """
    return text.strip(BLANKS).lower()


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
