"""What would fail later, or go badly, with a draft: said while the table is at hand.

Each piece of advice names a column, what is the matter with it, and what to do. It is read off the
private table, as the draft is, and as confidential: it says of a column what kind of thing it is,
and shows no value that the draft does not show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.schema.column import Column
from counterpoise.schema.encoding import unread_rows
from counterpoise.schema.reading import distinct_texts
from counterpoise.schema.schema import Schema

# The part of the rows with a value of their own that makes an identifier, and rows to tell by.
OWN_VALUES, FEWEST_ROWS = 0.95, 20
# A list of so many categories is mostly noise where rows are few.
MANY_CATEGORIES = 200
# How much wider than the middle half of the values bounds may be.
WIDE = 100
MANY_COLUMNS = 60
# Texts that read as numbers, but for few odd ones.
MOSTLY, FEW_WORDS = 0.9, 5
WEIGHT = re.compile(r"weight(_\d+)?")  # names that a release gives to its weights
_SPELLED_NUMBER = re.compile(r"[-+$€£¥ ]{0,3}\d[\d\s.,']*[%$€£¥ ]{0,2}")
_CODE = re.compile(r"0\d")  # a zero in front is a sign of a code, which is no quantity
_DATE = re.compile(r"\d{1,4}([-/. ])(\d{1,2}|[A-Za-z]{3,9})\1\d{1,4}.*")
# Where quartiles do, a part of the rows does.
MOST_ROWS = 200_000


@dataclass(frozen=True)
class Advice:
    """What is the matter with a column, and the change to the draft that settles it.

    `verb` is a command of `counterpoise schema`, with `options`; without a column and a verb, the
    advice is on the table as a whole, or there is nothing that the draft alone can settle.
    """

    column: str | None
    matter: str
    verb: str | None = None
    options: tuple[str, ...] = field(default=())


def advise(schema: Schema, table: pd.DataFrame) -> tuple[Advice, ...]:
    """Advice on the draft of a table, column by column; empty when nothing is the matter.

    >>> table = pd.DataFrame({"weight": [61.5, 80.2], "town": ["Oslo", "Rome"]})
    >>> from counterpoise.schema import draft_schema
    >>> [advice.column for advice in advise(draft_schema(table), table)]
    ['weight']
    """
    found = []
    if len(schema) > MANY_COLUMNS:
        found.append(
            Advice(
                None,
                f"{len(schema)} columns share one budget, so each is known badly: drop those that "
                "nobody needs",
            )
        )
    every = max(1, -(-len(table) // MOST_ROWS))
    part = table.iloc[::every]
    for column in schema:
        if WEIGHT.fullmatch(column.name.casefold()):
            found.append(_weight(column.name))
        if column.name in table:
            found += _on_values(column, table[column.name], part, schema.words_for_null(column))
    return tuple(found)


def on_reading(column: Column, values: pd.Series, missing: tuple[str, ...]) -> Advice | None:
    """Advice on a column that does not hold all that is in the table; None where it does.

    >>> print(on_reading(Column.boolean("ill", True), pd.Series(["yes", "no", "?"]), ("",)).matter)
    1 of 3 rows cannot be read as boolean: null
    """
    found = unread_rows(column, values, missing)
    kind = "time" if column.spelling.clock is not None else column.kind
    what = column.category_type or {"continuous": "number"}.get(kind, kind)
    is_other = column.other is not None
    unlisted = 0 if is_other else found.unlisted
    parts = [
        (found.unreadable, f"cannot be read as {what}"),
        (unlisted, "is not listed" if unlisted == 1 else "are not listed"),
        (found.nulls * (not column.nullable), "is null" if found.nulls == 1 else "are null"),
    ]
    said = [f"{count:,} {why}" for count, why in parts if count]
    if not said:
        kept = [
            (is_other and found.unlisted, f"not listed, and taken for {column.other!r}"),
            (found.cut, "fractions, which are cut down to whole numbers"),
        ]
        told = [f"{count:,} of {found.rows:,} rows are {why}" for count, why in kept if count]
        return Advice(column.name, " and ".join(told)) if told else None
    said[0] = said[0].replace(" ", f" of {found.rows:,} rows ", 1)
    matter = " and ".join(said)
    if column.nullable:
        return Advice(column.name, f"{matter}: null")
    first = "the minimum" if column.categories is None else repr(column.categories[0])
    taken = first if column.other is None else repr(column.other)
    matter = f"{matter}: taken for {taken}, because the column is stated to have no nulls"
    return Advice(column.name, matter, "set", ("--nullable",))


def _weight(name: str) -> Advice:
    return Advice(
        name,
        "a release needs this name for its weights: rename the column in the table, or drop it",
        "drop",
    )


def _on_values(
    column: Column, values: pd.Series, part: pd.DataFrame, missing: tuple[str, ...]
) -> Iterator[Advice]:
    if column.is_numeric:
        yield from _on_numbers(column, part, missing)
        return
    if column.category_type == "boolean":
        return
    positions, texts = distinct_texts(values, missing)
    there = positions[positions >= 0]
    present = texts[np.unique(there)]
    if len(present) == 0:
        yield Advice(column.name, "it is empty", "drop")
    elif len(present) == 1:
        yield _constant(column.name)
    elif len(there) >= FEWEST_ROWS and len(present) >= OWN_VALUES * len(there):
        yield Advice(
            column.name,
            "nearly every row has a value of its own, as identifiers and free text do: a list of "
            "them would be a list of people",
            "drop",
        )
    elif column.category_type == "string":
        yield from _on_texts(column, [str(text) for text in present])


def _on_texts(column: Column, texts: list[str]) -> Iterator[Advice]:
    dates = sum(_DATE.fullmatch(text.strip()) is not None for text in texts)
    odd = [text for text in texts if not _is_plain_number(text)]
    spelled = sum(_SPELLED_NUMBER.fullmatch(text.strip()) is not None for text in texts)
    is_code = any(_CODE.match(text) for text in texts)
    if dates >= MOSTLY * len(texts):
        yield Advice(
            column.name,
            "its values look like dates and are taken for text: write them as 2020-12-31 in the "
            "table and draft again, or drop it",
            "drop",
        )
    elif not is_code and 0 < len(odd) <= min(FEW_WORDS, (1 - MOSTLY) * len(texts)):
        # Which words they are, a draft shows only if it lists the categories.
        shown = ", ".join(map(repr, odd)) if column.categories is not None else "a few words"
        yield Advice(
            column.name,
            f"its values are numbers but for {shown}, so it is taken for text: as numbers, with "
            "null for the rest",
            "set",
            ("--type", "number", "--minimum", "...", "--maximum", "...", "--nullable"),
        )
    elif not is_code and spelled >= MOSTLY * len(texts) and len(texts) > FEW_WORDS:
        yield Advice(
            column.name,
            "its values look like numbers and are taken for text: write them as 1234.5 in the "
            "table and draft again, or drop it",
            "drop",
        )
    elif column.categories is None or len(texts) > MANY_CATEGORIES:
        yield Advice(
            column.name,
            f"it has {len(texts):,} categories: pay for a list of the frequent ones, or state the "
            "public list, whose rare ones then share a code; if it says whose a row is, drop it "
            "and name it as the release's person",
            "pay",
        )


def _is_plain_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def _on_numbers(column: Column, part: pd.DataFrame, missing: tuple[str, ...]) -> Iterator[Advice]:
    if not column.is_complete:
        if not len(part):
            return
        yield Advice(column.name, "no bounds could be read off its values", "drop")
        return
    if column.low == column.high:
        yield _constant(column.name)
        return
    # The place of each value between the bounds, read as a release will read it
    coded = Schema([column], missing).encode(part[[column.name]])
    there: Any = coded.units[:, 0]
    if column.null_code is not None:
        there = there[coded.codes[:, 0] != column.null_code]
    if len(there) < FEWEST_ROWS:
        return
    if column.kind == "integer" and _is_serial(column, there):
        yield Advice(
            column.name,
            "nearly every row has a number of its own, and nearly every number a row, as "
            "identifiers have",
            "drop",
        )
        return
    low, high = np.quantile(there, [0.25, 0.75])
    if (high - low) * WIDE < 1:
        matter = (
            "half of its values are one value"
            if low == high
            else f"its bounds are more than {WIDE} times as wide as the middle half of its values"
        )
        yield Advice(
            column.name,
            f"{matter}, and most of its range is empty: state tighter bounds, beyond which values "
            "are clamped, or edges of bins",
            "set",
            ("--minimum", "...", "--maximum", "...", "--bins", "..."),
        )


def _is_serial(column: Column, units: np.ndarray) -> bool:
    own = len(np.unique(units))
    return own >= OWN_VALUES * len(units) and column.high - column.low < 2 * len(units)


def _constant(name: str) -> Advice:
    return Advice(name, "it has one value only, and costs budget all the same", "drop")
