"""What the texts of a column are, for a draft: truths, numbers, dates, times, in which spelling.

A column is something if all of its texts are, once the usual words for null are set aside; one
text that is not leaves it text. What was guessed is a spelling in the draft, for a person to see,
and later readings follow the spelling alone. The guesses are strict where readings are lenient:
a number that begins with a zero is a code, thousands come in groups of three.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime as DateTime

import numpy as np

from counterpoise.schema.column import Column
from counterpoise.schema.quoting import quote_text
from counterpoise.schema.reading import TextReader
from counterpoise.schema.spelling import FALSE_WORDS, PLAIN, TRUE_WORDS, Spelling, folded_word
from counterpoise.schema.sql import value_expression

# Most columns show within this many values what they are not.
SAMPLE = 1000

# Words for null, compared without case and spaces around them: those that no text would mean
# otherwise, and those that only stand out among numbers and dates.
_CERTAIN = ("", "na", "n/a", "#n/a", "#na", "<na>", "null", "(null)", "nan", "?", "#null!")
_LIKELY = (
    *("none", "nil", "-", "--", "---", ".", "..", "...", "–", "—", "*", "n", "nd", "n.d."),
    *("n.a.", "missing", "unknown"),
)

# What is called true and false together. 1 and 0 are numbers as well, and drafted as such.
_PAIRS = (
    *(("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("ja", "nein"), ("j", "n")),
    *(("oui", "non"), ("o", "n"), ("si", "no"), ("sí", "no")),
    *(("wahr", "falsch"), ("vrai", "faux"), ("verdadero", "falso"), ("vero", "falso")),
)
_PAIRED = frozenset(word for pair in _PAIRS for word in pair)

_SIGN = re.compile(r"US\$|R\$|[$€£¥₹%‰]|\b(?:USD|EUR|GBP|CHF|JPY|NOK|SEK|DKK|kr)\b")
_SPACE = r"[\s\x{00a0}\x{202f}]*"
_GROUPS = (" ", "\u00a0", "\u202f", "'", "\u2019")
_PLAIN_NUMBER = (
    "NOT regexp_matches(text, '^ *[-+]?0[0-9]') "
    f"AND NOT coalesce(isnan({PLAIN.number_of('text')}), true)"
)

_CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p")
_DAYS = (
    *(f"%d{mark}%m{mark}%Y" for mark in "/.-"),
    *(f"%m{mark}%d{mark}%Y" for mark in "/.-"),
    *(f"%Y{mark}%m{mark}%d" for mark in "/."),
    *("%Y%m%d", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *(f"%d{mark}%m{mark}%y" for mark in "/.-"),
    *(f"%m{mark}%d{mark}%y" for mark in "/.-"),
    *("%d-%b-%y", "%d %b %y"),
)
_FORMATS = tuple(
    f"{day}{clock}"
    for day in _DAYS
    for clock in ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
)
_PIECES = {
    **dict.fromkeys(("%H", "%I"), "[0-9]{1,2}"),
    **dict.fromkeys(("%d", "%m"), "[0-9]{1,2}"),
    **dict.fromkeys(("%M", "%S", "%y"), "[0-9]{2}"),
    "%Y": "[0-9]{4}",
    "%b": "[A-Za-z]{3}",
    "%B": "[A-Za-z]{3,9}",
    "%p": "[AaPp][Mm]",
}
_ISO = "regexp_matches(text, '^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$')"
# Together these digits are a number too, so they are a date only in our times.
_DIGITS = "(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])"
_ANY_MOMENT = Column.datetime("text", DateTime.min, DateTime.max)


@dataclass(frozen=True)
class Habits:
    """What is the custom of a table, where one column alone does not tell."""

    decimal: str | None = None  # as stated: nothing else is tried
    prefers_comma: bool = False
    day_first: bool | None = None


@dataclass(frozen=True, eq=False)
class Guess:
    """What all texts of a column are; `values` are theirs, on the scale of the kind."""

    kind: str  # "number", "moment" or "time"
    values: np.ndarray
    spelling: Spelling = PLAIN
    unit: str | None = None
    doubt: str = ""


def null_words(texts: Iterable[str], among_text: bool) -> list[str]:
    """The texts that stand for null: certain words, and likely ones where the rest is no text.

    >>> null_words(["12", "?", "-", " "], among_text=False), null_words(["+", "-"], True)
    (['?', '-', ' '], [])
    """
    listed = _CERTAIN if among_text else _CERTAIN + _LIKELY
    return [text for text in texts if text.strip().casefold() in listed]


def truth_words(texts: Iterable[str]) -> tuple[str, ...]:
    """Those of some texts that are a pair of words for true and false; none unless both are there.

    >>> truth_words(["no", "Yes", "YES", "maybe"]), truth_words(["yes", "non"])
    (('no', 'Yes', 'YES'), ())
    """
    folded = {text: folded_word(text) for text in texts}
    words = {text: word for text, word in folded.items() if word in _PAIRED}
    for pair in _PAIRS:
        if {*pair} <= {*words.values()}:
            return tuple(text for text, word in words.items() if word in pair)
    return ()


def guess_truths(texts: np.ndarray) -> Spelling | None:
    """What true and false are called, where texts are nothing else; None where they are more.

    >>> guess_truths(np.array(["Ja", "Nein"], dtype=object)).to_dict()
    {'trueValues': ['Ja'], 'falseValues': ['Nein']}
    """
    if not len(texts):
        return None
    folded = {*map(folded_word, texts)}
    if folded <= {"true", "false"}:
        return PLAIN
    if len(truth_words(texts)) < len(texts):
        return None
    true, false = (
        tuple(sorted({text.strip() for text in texts if folded_word(text) in words}))
        for words in (TRUE_WORDS, FALSE_WORDS)
    )
    return Spelling(true_values=true, false_values=false)


def guess(reader: TextReader, texts: np.ndarray, habits: Habits) -> Guess | None:
    """What all of some texts are; None if that is nothing but text."""
    if not len(texts):
        return None
    return (
        _moments(reader, texts, habits) or _numbers(reader, texts, habits) or _times(reader, texts)
    )


def date_formats(reader: TextReader, texts: np.ndarray) -> list[str]:
    """The patterns by which all texts are dates or moments."""
    found = []
    # Any text will do to leave most patterns out.
    for format in (each for each in _FORMATS if re.fullmatch(_pattern(each), texts[0].strip())):
        moments = Spelling(format=format).moment_of("text")
        condition = f"regexp_matches(text, {quote_text(f'^ *{_pattern(format)} *$')})"
        if _all_read(reader, texts, condition, f"epoch_us({moments})") is not None:
            found.append(format)
    return found


def day_first(formats: Sequence[str]) -> bool | None:
    """Whether the day comes before the month; None where it may be either."""
    orders = {each[1] == "d" for each in formats if {each[1], each[4]} == {"d", "m"}}
    return orders.pop() if len(orders) == 1 else None


def evident_decimal(texts: Iterable[str]) -> str | None:
    """The decimal mark that numbers show: one that other than three digits follow.

    >>> evident_decimal(["1.234,5", "7"]), evident_decimal(["1,234"])
    (',', None)
    """
    seen = set()
    for text in texts:
        found = re.fullmatch(r"[^\d.,]*[\d.,'\s]*?([.,]?)(\d+)[^\d.,]*", text)
        if found is None:
            return None
        if found[1] and (len(found[2]) != 3 or re.match(r"\D*0?[.,]", text)):
            seen.add(found[1])
    return seen.pop() if len(seen) == 1 else None


def resembles(texts: Collection[str]) -> str | None:
    """What most of some texts look like, although not all of them are: "numbers" or "dates"."""
    for what, pattern in (
        ("dates", r"\s*\d{1,4}([/.-])\d{1,2}\1\d{1,4}.*"),
        ("numbers", r"[^\w]{0,4}(?!0\d)\d[\d.,'\s]*[^\w]{0,4}"),
    ):
        if sum(re.fullmatch(pattern, text) is not None for text in texts) >= 0.9 * len(texts):
            return what
    return None


def _moments(reader: TextReader, texts: np.ndarray, habits: Habits) -> Guess | None:
    moments = _all_read(reader, texts, _ISO, value_expression(_ANY_MOMENT, "text"))
    if moments is not None:
        return Guess("moment", moments)
    formats = date_formats(reader, texts)
    if not formats:
        return None
    is_clear = len({day_first([each]) for each in formats}) == 1
    wanted = habits.day_first is not False
    format = next((each for each in formats if day_first([each]) is wanted), formats[0])
    read = f"epoch_us({Spelling(format=format).moment_of('text')})"
    moments = np.ma.getdata(reader.read(texts, read))
    doubt = ""
    if not is_clear and habits.day_first is None:
        doubt = f"whether the day or the month comes first is not clear; it is read as {format}"
    return Guess("moment", moments, Spelling(format=format), doubt=doubt)


def _times(reader: TextReader, texts: np.ndarray) -> Guess | None:
    for clock in _CLOCKS:
        spelling = Spelling(clock=clock)
        condition = f"regexp_matches(text, {quote_text(f'^ *{_pattern(clock)} *$')})"
        times = _all_read(reader, texts, condition, spelling.time_of("text"))
        if times is not None:
            return Guess("time", times, spelling, spelling.unit)
    return None


def _numbers(reader: TextReader, texts: np.ndarray, habits: Habits) -> Guess | None:
    signs = {*_SIGN.findall(texts[0])}
    sign = signs.pop() if len(signs) == 1 else ""
    has_digits = any(letter.isdigit() for letter in texts[0])
    for spelling in _number_spellings(habits):
        if not has_digits and spelling != PLAIN:
            continue
        is_plain = spelling == PLAIN and not sign
        bare = replace(spelling, bare=not sign)
        condition = _PLAIN_NUMBER if is_plain else _spells_number(bare, sign)
        numbers = _all_read(reader, texts, condition, bare.number_of("text"))
        if numbers is not None:
            used = _used(bare, texts)
            return Guess("number", numbers, used, sign or None, _doubt(used, texts, habits))
    return None


def _number_spellings(habits: Habits) -> Iterator[Spelling]:
    point = [PLAIN, *(Spelling(group=mark) for mark in (",", *_GROUPS))]
    comma = [
        Spelling(decimal=","),
        *(Spelling(decimal=",", group=mark) for mark in (".", *_GROUPS)),
    ]
    if habits.decimal is not None:
        yield from comma if habits.decimal == "," else point
    elif habits.prefers_comma:
        yield from (*comma, *point)
    else:
        yield from (*point, *comma)


def _spells_number(spelling: Spelling, sign: str) -> str:
    """SQL that holds for texts that spell a number strictly, with the sign if there is one."""
    whole = "(0|[1-9][0-9]*)"
    if spelling.group:
        whole = rf"({whole}|[1-9][0-9]{{0,2}}({re.escape(spelling.group)}[0-9]{{3}})+)"
        whole = whole.replace("\\ ", " ").replace("\\'", "'")
    number = rf"{whole}({re.escape(spelling.decimal)}[0-9]+)?"
    if not sign:
        patterns = [rf"{_SPACE}[-+]?{number}{_SPACE}"]
    else:
        around = rf"{_SPACE}{re.escape(sign)}{_SPACE}"
        patterns = [
            rf"{_SPACE}[-+]?{around}[-+]?{number}{_SPACE}",
            rf"{_SPACE}[-+]?{number}{around}",
        ]
    return f"regexp_matches(text, {quote_text('^(' + '|'.join(patterns) + ')$')})"


def _used(spelling: Spelling, texts: np.ndarray) -> Spelling:
    """The spelling without the marks that no text has."""
    group = spelling.group if any((spelling.group or "\0") in text for text in texts) else None
    has_decimals = any(spelling.decimal in text for text in texts)
    return replace(
        spelling, group=group, decimal=spelling.decimal if has_decimals or group else "."
    )


def _doubt(used: Spelling, texts: np.ndarray, habits: Habits) -> str:
    """What to say where a mark may as well be of thousands as of decimals."""
    marks = [mark for mark in ".," if any(mark in text for text in texts)]
    if len(marks) != 1 or marks[0] not in (used.group, used.decimal) or used == PLAIN:
        return ""
    [mark] = marks
    either = re.compile(rf"\D*(?:[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}|\d{{1,3}})\D*")
    if habits.decimal is not None or not all(map(either.fullmatch, texts)):
        return ""
    read, other = ("thousands", mark) if used.group == mark else ("decimals", ".")
    return f"{mark!r} is read as the mark of {read}; state decimal={other!r} if it is not"


def _pattern(format: str) -> str:
    """What a text by a pattern of strptime looks like, with as many digits as people write."""
    if format.startswith("%Y%m%d"):
        return _DIGITS + _pattern(format[6:])
    pieces = re.split(r"(%[A-Za-z])", format)
    return "".join(_PIECES.get(piece) or re.escape(piece).replace("\\ ", " ") for piece in pieces)


def _all_read(
    reader: TextReader, texts: np.ndarray, condition: str, expression: str
) -> np.ndarray | None:
    """The values of an expression, if all the texts meet a condition and have one."""
    for part in (texts[:SAMPLE], texts):
        values = reader.read(part, f"CASE WHEN {condition} THEN {expression} END")
        if np.ma.getmaskarray(values).any():
            return None
    return np.ma.getdata(values)
