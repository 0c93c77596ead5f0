"""A first draft of a schema, read off a table, for a person to review.

What a draft says of a private table is private: the types, bounds, categories and nulls it found
are marked "data", and the schema stays confidential until each mark is accepted as public
knowledge, replaced by a value known without looking, or paid for. How the table is written, its
dialect and the spelling of its columns, is found here and nowhere else; a mark on a type is on
its spelling too, and one on nulls on the words for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.arguments import one_of, whole_number
from counterpoise.errors import CounterpoiseWarning, SchemaError
from counterpoise.schema.bins import EPOCH
from counterpoise.schema.column import Column
from counterpoise.schema.dialect import DEFAULT, Dialect
from counterpoise.schema.files import is_path, is_text_file
from counterpoise.schema.guessing import (
    SAMPLE,
    Guess,
    Habits,
    date_formats,
    day_first,
    evident_decimal,
    guess,
    guess_truths,
    null_words,
    resembles,
    truth_words,
)
from counterpoise.schema.identifiers import is_identifier
from counterpoise.schema.incoming import plain
from counterpoise.schema.normal_form import NARROWEST_RANGE, WIDEST_RANGE
from counterpoise.schema.reading import (
    FIRST_MOMENT,
    LAST_MOMENT,
    TextReader,
    distinct_texts,
    is_moment_like,
    is_number_like,
    read_moments,
    read_numbers,
)
from counterpoise.schema.rules import LARGEST_INTEGER, texts
from counterpoise.schema.schema import Schema
from counterpoise.schema.sniffing import sniff_dialect
from counterpoise.schema.spelling import FALSE_WORDS, PLAIN, Spelling, folded_word
from counterpoise.schema.tables import read_table

# Integers that take few values close together are more likely codes than quantities.
FEW_INTEGERS, SMALL_RANGE = 10, 20
MISSING = ("",)
# Of fewer values nobody can say what most of them look like.
_ENOUGH_TO_RESEMBLE = 10


def draft_schema(
    source: Any,
    max_categories: int = 200,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: Iterable[str] | None = None,
    keep: Iterable[str] = (),
) -> Schema:
    """Propose a schema for a table; the draft is confidential while it has marks of "data".

    Text that reads as numbers, dates, times of day or true/false throughout becomes such a
    column; integers of at most ten values in a small range become categories; text of more than
    `max_categories` values has its categories left open, to be stated or paid for. A column in
    which nearly every row has a value of its own is left out as an identifier, with a warning,
    unless it is named in `keep`.

    The separator and the encoding of a file, the decimal mark and the words for null are looked
    for unless they are stated.

    >>> draft = draft_schema(pd.DataFrame({"age": [31, 78]}))
    >>> draft["age"].kind, draft.unconfirmed
    ('integer', (('age', 'maximum'), ('age', 'minimum'), ('age', 'required'), ('age', 'type')))
    """
    most = whole_number("max_categories", max_categories, 0, error=SchemaError)
    decimal = one_of("decimal", decimal, (".", ",", None), SchemaError)
    words: tuple[str, ...] = MISSING
    if missing is not None:
        words += texts(missing, "missing: expected a list of texts that stand for null")
    kept = texts(keep, "keep: expected a list of names of columns")
    stated = Dialect(separator, encoding=DEFAULT.encoding if encoding is None else encoding)
    dialect = DEFAULT
    if not (is_path(source) and is_text_file(Path(source))):
        if stated != DEFAULT or encoding is not None:
            raise SchemaError("separator, encoding: these are of files of text, such as a .csv")
    else:
        named = None if encoding is None else stated.encoding
        dialect = sniff_dialect(Path(source), stated, named)
    frame = read_table(source, dialect=dialect)
    drafted = _draft(frame, words, most, Habits(decimal), guesses_nulls=missing is None)
    for name in kept:
        if name not in frame:
            raise SchemaError(f"keep: the table has no column {name!r}")
    identifiers = [each.column.name for each in drafted if each.is_identifier]
    left_out = {*identifiers} - {*kept}
    if len(left_out) == len(drafted):
        left_out = set()
    for each in drafted:
        for note in each.notes(left_out):
            warnings.warn(note, CounterpoiseWarning, stacklevel=2)
    columns = tuple(each.column for each in drafted if each.column.name not in left_out)
    return Schema(columns, words, dialect)


@dataclass(frozen=True)
class _Drafted:
    """A column of the draft, and what has to be said of it."""

    column: Column
    is_identifier: bool = False
    doubt: str = ""

    def notes(self, left_out: set[str]) -> list[str]:
        """What to tell whoever asked for the draft."""
        name = self.column.name
        if name in left_out:
            return [
                f"column {name!r} is left out of the draft: nearly every row has a value of its "
                f"own, as identifiers and free text do; keep={name!r} (--keep) drafts it"
            ]
        return [f"column {name!r}: {self.doubt}"] if self.doubt else []


@dataclass(frozen=True, eq=False)
class _Texts:
    """The distinct texts of a column, the words for null among them, and its rows."""

    distinct: np.ndarray
    words: tuple[str, ...]  # those that stand for null if the rest is no text
    counts: np.ndarray  # the rows of each text
    nullable: bool

    @property
    def rows(self) -> int:
        """Those that are not null."""
        return int(self.counts.sum())

    def rows_of(self, texts: Collection[str]) -> int:
        """Those with one of some texts."""
        return sum(
            int(rows)
            for text, rows in zip(self.distinct, self.counts, strict=True)
            if text in texts
        )

    @property
    def rest(self) -> np.ndarray:
        """The texts that are no words for null."""
        return _without(self.distinct, self.words)


def _draft(
    frame: pd.DataFrame, missing: tuple[str, ...], most: int, habits: Habits, guesses_nulls: bool
) -> list[_Drafted]:
    values = {str(name): plain(frame[name]) for name in frame.columns}
    spelled = {
        name: _texts(series, missing, guesses_nulls)
        for name, series in values.items()
        if not (is_number_like(series) or is_moment_like(series))
    }
    with TextReader() as reader:
        habits = _habits(reader, list(spelled.values()), habits)
        return [
            _draft_text(name, series, spelled[name], most, reader, habits, guesses_nulls)
            if name in spelled
            else _draft_values(name, series, reader)
            for name, series in values.items()
        ]


def _texts(values: pd.Series, missing: tuple[str, ...], guesses_nulls: bool) -> _Texts:
    positions, distinct = distinct_texts(values, missing)
    present = positions[positions >= 0]
    places, counts = np.unique(present, return_counts=True)
    used = distinct[places]
    words = null_words(used, among_text=False) if guesses_nulls else []
    return _Texts(used, tuple(words), counts, bool((positions < 0).any()))


def _habits(reader: TextReader, columns: list[_Texts], stated: Habits) -> Habits:
    """The customs of a table: those that some column shows and none contradicts."""
    marks, orders = set(), set()
    for column in columns:
        sample = column.rest[:SAMPLE]
        if len(sample):
            marks.add(evident_decimal(sample))
            orders.add(day_first(date_formats(reader, sample)))
    order = orders - {None}
    return replace(
        stated,
        prefers_comma="," in marks and "." not in marks,
        day_first=order.pop() if len(order) == 1 else None,
    )


def _draft_values(name: str, values: pd.Series, reader: TextReader) -> _Drafted:
    """A column that holds numbers, truth values or moments as such."""
    if is_moment_like(values):
        moments, nulls = read_moments(values, "us", FIRST_MOMENT, LAST_MOMENT)
        return _Drafted(_moment_column(name, moments[~nulls], bool(nulls.any()), PLAIN))
    numbers = read_numbers(values)
    nullable = bool(np.isnan(numbers).any())
    if pd.api.types.is_bool_dtype(values.dtype):
        return _Drafted(_marked(Column.boolean(name, nullable), "type", "required"))
    present = numbers[np.isfinite(numbers)]
    days = _eight_digits(present, reader)
    if days is not None:
        return _Drafted(_moment_column(name, days, nullable, Spelling(format="%Y%m%d")))
    return _Drafted(
        _number_column(name, present, nullable, PLAIN, None),
        is_identifier(name, present, len(present)),
    )


def _eight_digits(numbers: np.ndarray, reader: TextReader) -> np.ndarray | None:
    """The days of numbers that are all dates in eight digits, such as 20201231."""
    distinct = np.unique(numbers)
    if not len(distinct) or not (distinct % 1 == 0).all() or distinct[0] < 19_000_101:
        return None
    listed = np.array([str(int(number)) for number in distinct], dtype=object)
    found = guess(reader, listed, Habits())
    return found.values if found is not None and found.kind == "moment" else None


def _draft_text(
    name: str,
    values: pd.Series,
    column: _Texts,
    most: int,
    reader: TextReader,
    habits: Habits,
    guesses_nulls: bool,
) -> _Drafted:
    in_order = isinstance(values.dtype, pd.CategoricalDtype) and bool(values.cat.ordered)
    truths = None if in_order else _draft_truths(name, column)
    if truths is not None:
        return truths
    found = None if in_order else guess(reader, column.rest, habits)
    if found is not None:
        return _draft_guess(name, column, found)
    words = tuple(null_words(column.distinct, among_text=True)) if guesses_nulls else ()
    distinct = _without(column.distinct, words)
    spelling, nullable = _with_words(PLAIN, words), column.nullable or bool(words)
    if not 0 < len(distinct) <= most:
        open_list = Column.categorical(name, nullable=nullable, spelling=spelling)
        drafted = _marked(open_list, "type", "required")
    elif in_order:
        present = set(distinct)
        ordered = [str(level) for level in values.cat.categories if str(level) in present]
        ordinal = Column.ordinal(name, ordered, nullable=nullable, spelling=spelling)
        drafted = _marked(ordinal, "type", "enum", "required")
    else:
        listed = Column.categorical(name, sorted(distinct), nullable=nullable, spelling=spelling)
        drafted = _marked(listed, "type", "enum", "required")
    doubt = _hint_of_truths(column, words) or _hint(distinct)
    return _Drafted(drafted, is_identifier(name, distinct, column.rows), doubt)


def _draft_truths(name: str, column: _Texts) -> _Drafted | None:
    """A column of two values that are called as true and false are; None where it is none."""
    # Among numbers an n says that there is none; beside a yes it is a no.
    words = tuple(word for word in column.words if folded_word(word) not in FALSE_WORDS)
    spelling = guess_truths(_without(column.distinct, words))
    if spelling is None:
        return None
    nullable = column.nullable or bool(words)
    truth = Column.boolean(name, nullable, spelling=_with_words(spelling, words))
    return _Drafted(_marked(truth, "type", "required"))


def _hint_of_truths(column: _Texts, nulls: tuple[str, ...]) -> str:
    """What to say where most rows, and not all, have one of a pair of words for true and false."""
    pair = truth_words(column.distinct)
    if not pair:
        return ""
    found, every = column.rows_of(pair), column.rows - column.rows_of(nulls)
    if not every / 2 < found < every:
        return ""
    return (
        f"{found:,} of its {every:,} values are {' or '.join(map(repr, pair))}, and the rest is "
        f"not, so it is drafted as text; as type boolean, the other {every - found:,} are null "
        "(confidential, as the draft is)"
    )


def _hint(distinct: np.ndarray) -> str:
    what = resembles([*distinct[:SAMPLE]]) if len(distinct) >= _ENOUGH_TO_RESEMBLE else None
    if what is None:
        return ""
    return (
        f"most of it looks like {what}, but not all in one spelling, so it is drafted as text; "
        "clean it, or state the words for null (missing, --missing) or its type in the schema"
    )


def _draft_guess(name: str, column: _Texts, found: Guess) -> _Drafted:
    nullable = column.nullable or bool(column.words)
    spelling = _with_words(found.spelling, column.words)
    if found.kind == "time":
        assert spelling.clock is not None
        # A day has public bounds: nothing is read off the data but that there are times.
        times = Column.time(
            name,
            nullable=nullable,
            format=spelling.clock,
            missing_values=spelling.missing_values,
        )
        return _Drafted(_marked(times, "type", "required"))
    if found.kind == "moment":
        return _Drafted(_moment_column(name, found.values, nullable, spelling), False, found.doubt)
    numbers = found.values[np.isfinite(found.values)]
    drafted = _number_column(name, numbers, nullable, spelling, found.unit)
    return _Drafted(drafted, is_identifier(name, numbers, column.rows), found.doubt)


def _number_column(
    name: str, numbers: np.ndarray, nullable: bool, spelling: Spelling, unit: str | None
) -> Column:
    more: dict[str, Any] = {"nullable": nullable, "spelling": spelling, "unit": unit}
    whole = bool((np.floor(numbers) == numbers).all()) and len(numbers) > 0
    if not whole:
        column = Column.continuous(name, **more)
        if len(numbers):
            low, high = float(numbers.min()), float(numbers.max())
            if NARROWEST_RANGE <= high - low <= WIDEST_RANGE:
                column = Column.continuous(name, low, high, **more)
        return _marked_bounds(column)
    low, high = int(numbers.min()), int(numbers.max())
    if max(-low, high) > LARGEST_INTEGER:
        return _marked_bounds(Column.integer(name, **more))
    distinct = np.unique(numbers)
    is_few = len(distinct) <= FEW_INTEGERS and high - low <= SMALL_RANGE
    if is_few and not spelling.is_of_numbers:
        column = Column.categorical(name, map(int, distinct), **more)
        return _marked(column, "type", "enum", "required")
    return _marked_bounds(Column.integer(name, low, high, **more))


def _moment_column(name: str, moments: np.ndarray, nullable: bool, spelling: Spelling) -> Column:
    more: dict[str, Any] = {"nullable": nullable, "spelling": spelling}
    if not len(moments):
        return _marked_bounds(Column.datetime(name, **more))
    day = timedelta(days=1) // timedelta(microseconds=1)
    low, high = (
        EPOCH + timedelta(microseconds=int(moment)) for moment in (moments.min(), moments.max())
    )
    if (moments % day == 0).all():
        return _marked_bounds(Column.date(name, low.date(), high.date(), **more))
    return _marked_bounds(Column.datetime(name, low, high, **more))


def _without(distinct: np.ndarray, words: tuple[str, ...]) -> np.ndarray:
    if not words:
        return distinct
    return np.array([text for text in distinct if text not in words], dtype=object)


def _with_words(spelling: Spelling, words: tuple[str, ...]) -> Spelling:
    return replace(spelling, missing_values=(*MISSING, *sorted(words))) if words else spelling


def _marked_bounds(column: Column) -> Column:
    keys = () if column.missing else ("minimum", "maximum")
    return _marked(column, "type", "required", *keys)


def _marked(column: Column, *keys: str) -> Column:
    return column.with_sources(dict.fromkeys(keys, "data"))
