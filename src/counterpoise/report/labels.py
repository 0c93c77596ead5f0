"""Names that fit beside a chart, and differ there wherever they differ in full.

A chart has no script to measure letters with, and fonts differ; widths are estimates for the widest
of the usual fonts (those of DejaVu Sans and Verdana), so that a text never runs into what follows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_LEFT_OUT = "…"
# Below so many letter heights there is no room to show where names differ.
_LEAST_ROOM = 3.0
# A word is shown whole if that takes no more letters on either side: as many as a year has.
_MORE_LETTERS = 4


def text_width(text: str) -> float:
    """About how wide a text is, in letter heights; rather too much than too little.

    >>> text_width("ill") < text_width("age") < text_width("WWW")
    True
    """
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF" or letter in f"mwMW@%{_LEFT_OUT}":
        return 1.0
    if letter in "iIjlftr.,:;'|!()[] -":
        return 0.45
    return 0.8 if letter.isupper() else 0.65


def short_names(names: Sequence[str], room: float) -> list[str]:
    """Names no wider than `room` letter heights; of those that look alike, where they differ.

    >>> short_names(["ward", "cost_of_medicines_2019", "cost_of_medicines_2020"], 8)
    ['ward', 'cost_…s_2019', 'cost_…s_2020']
    >>> short_names(["cost_2019_of_medicines", "cost_2020_of_medicines"], 8)
    ['cost_…2019…', 'cost_…2020…']
    """
    shown = [_ends(name, room) for name in names]
    for text in dict.fromkeys(shown):
        alike = [place for place, each in enumerate(shown) if each == text]
        if len({names[place] for place in alike}) == 1 or room < _LEAST_ROOM:
            continue
        own = [names[place] for place in alike]
        start, after = _shared(own)
        parts = [name[start : len(name) - after] for name in own]
        # The part that differs is what the label is for; the beginning gets what is left.
        for place, part in zip(alike, short_names(parts, 0.7 * room), strict=True):
            if part:
                differs = f"{_LEFT_OUT}{part}{_LEFT_OUT if after else ''}"
                beginning = _beginning(names[place][:start], room - text_width(differs))
                shown[place] = beginning + differs
    return shown


def _shared(names: Sequence[str]) -> tuple[int, int]:
    """How many letters names share before and after what differs, which keeps its words whole."""
    start = _common(names)
    after = _common([name[start:][::-1] for name in names])
    before, behind = names[0][:start], names[0][len(names[0]) - after :]
    return start - _of_word(before[::-1]), after - _of_word(behind)


def _common(texts: Sequence[str]) -> int:
    """How many letters several texts begin with alike."""
    columns = enumerate(zip(*texts, strict=False))
    return next(
        (place for place, letters in columns if len(set(letters)) > 1), min(map(len, texts))
    )


def _of_word(text: str) -> int:
    """How many letters at the beginning of a text belong to one word; none if they are many."""
    count = next((place for place, each in enumerate(text) if not each.isalnum()), len(text))
    return count if count <= _MORE_LETTERS else 0


def _ends(name: str, room: float) -> str:
    """A name, or its beginning and its end, which is where long names often differ."""
    if text_width(name) <= room:
        return name
    left = room - text_width(_LEFT_OUT)
    beginning = _beginning(name, left / 2)
    end = _beginning(name[::-1], left - text_width(beginning))[::-1]
    return f"{beginning}{_LEFT_OUT}{end}"


def _beginning(text: str, room: float) -> str:
    """As much of a text as there is room for."""
    for place, letter in enumerate(text):
        room -= _letter_width(letter)
        if room < 0:
            return text[:place]
    return text
