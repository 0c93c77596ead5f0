"""The charts of the confidential page: strips that stand in tables, and a cloud of relations.

Grey is the release without its weights, blue with them, as on the released page; an upright mark
in the colour of the text is what real rows say. A strip is as wide as the cell of a table, and has
no text: the figures stand beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from counterpoise.report.charts import PLAIN, WEIGHTED, chart_text

_WIDE, _HIGH = 300, 14
_SQUARE, _MARGIN = 260, 30


def bars(unweighted: float, weighted: float, mark: float, longest: float) -> Markup:
    """Two bars from zero, grey and blue, and an upright mark, all as parts of the longest.

    >>> bars(0.2, 0.1, 0.05, 0.2).count("<rect")
    2
    """
    parts = [_strip()]
    for value, colour, top, thick in ((unweighted, PLAIN, 0, 14), (weighted, WEIGHTED, 4, 6)):
        parts.append(_box(0, _part(value, 0, longest), top, thick, colour))
    return _closed([*parts, _mark(_part(mark, 0, longest))])


def ticks(unweighted: float, weighted: float, mark: float, low: float, high: float) -> Markup:
    """Where three values lie between two others: a grey block, a blue one, an upright mark.

    >>> ticks(0.6, 0.7, 0.8, 0.5, 1.0).count("<rect")
    2
    """
    parts = [_strip(), Markup('<path class="grid" d="M0 7H300"/>')]
    for value, colour, top, thick in ((unweighted, PLAIN, 0, 14), (weighted, WEIGHTED, 3, 8)):
        if np.isfinite(value):
            x = _part(value, low, high) * (_WIDE - 6)
            parts.append(_rect(x, 6, top, thick, colour))
    return _closed([*parts, _mark(_part(mark, low, high))])


def spans(baseline: Sequence[float], value: Sequence[float], low: float, high: float) -> Markup:
    """Two intervals, (low, value, high) each: the baseline grey, the other blue, marks for values.

    >>> spans((0.1, 0.2, 0.3), (0.2, 0.3, 0.4), 0.0, 1.0).count("<rect")
    2
    """
    parts = [_strip(), Markup('<path class="grid" d="M0 7H300"/>')]
    for each, colour, top, thick in ((baseline, PLAIN, 0, 14), (value, WEIGHTED, 4, 6)):
        if np.isfinite(each[1]):
            # An end that is not known is where the value is, and an infinite one at the edge.
            ends = [each[1] if np.isnan(end) else end for end in (each[0], each[2])]
            left, right = (_part(end, low, high) for end in np.clip(ends, low, high))
            parts.append(_box(left, right, top, thick, colour))
            parts.append(_mark(_part(each[1], low, high), top, thick))
    return _closed(parts)


def cloud(private: np.ndarray, unweighted: np.ndarray, weighted: np.ndarray, said: str) -> Markup:
    """Pairs of columns by how they go together: across in private, upwards in the release.

    >>> one = np.array([0.5])
    >>> cloud(one, one, one, "a pair").count("<circle"), cloud(one, one, one, "a").count("<rect")
    (1, 1)
    """
    values = np.concatenate([private, unweighted, weighted, [0.0]])
    low, high = float(values.min()), float(values.max())
    low, high = low - 0.03 * (high - low) - 1e-6, high + 0.03 * (high - low) + 1e-6
    room = _SQUARE - _MARGIN

    def place(value: float) -> float:
        return room * (value - low) / (high - low)

    parts = [
        Markup('<svg viewBox="0 0 {0} {0}" role="img" aria-label="{1}">').format(_SQUARE, said),
        Markup('<path class="grid" d="M{0} {1}L{2} 0"/>').format(_MARGIN, room, _SQUARE),
    ]
    for tick in (-0.5, 0.0, 0.5, 1.0):
        if low <= tick <= high:
            x, y = _MARGIN + place(tick), room - place(tick)
            parts.append(Markup('<path class="grid" d="M{} {:.1f}h{}"/>').format(_MARGIN, y, room))
            parts.append(chart_text(_MARGIN - 4, y + 4, f"{tick:g}", "end"))
            parts.append(chart_text(min(x, _SQUARE - 8), room + 14, f"{tick:g}", "middle"))
    for truth, plain, own in zip(private, unweighted, weighted, strict=True):
        x = _MARGIN + place(truth)
        parts.append(
            Markup('<rect x="{:.1f}" y="{:.1f}" width="5" height="5" fill="{}"/>').format(
                x - 2.5, room - place(plain) - 2.5, PLAIN
            )
        )
        parts.append(
            Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2" fill="{}"/>').format(
                x, room - place(own), WEIGHTED
            )
        )
    parts.append(chart_text(_SQUARE, _SQUARE - 2, "in private", "end"))
    parts.append(chart_text(0, 10, "in the release"))
    return _closed(parts)


def _part(value: float, low: float, high: float) -> float:
    if not np.isfinite(value) or not high > low:
        return 0.0
    return float(min(max((value - low) / (high - low), 0.0), 1.0))


def _strip() -> Markup:
    return Markup(
        '<svg viewBox="0 0 300 14" preserveAspectRatio="none" role="img" aria-hidden="true">'
    )


def _box(left: float, right: float, top: int, thick: int, colour: str) -> Markup:
    """A bar between two parts of the strip; one without width is a hair."""
    return _rect(left * _WIDE, max((right - left) * _WIDE, 1.0), top, thick, colour)


def _rect(x: float, width: float, top: int, thick: int, colour: str) -> Markup:
    return Markup('<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" fill="{}"/>').format(
        x, top, width, thick, colour
    )


def _mark(part: float, top: int = 0, thick: int = _HIGH) -> Markup:
    return Markup('<path class="truth" d="M{:.1f} {}v{}"/>').format(
        1 + part * (_WIDE - 2), top, thick
    )


def _closed(parts: list[Markup]) -> Markup:
    return Markup("").join([*parts, Markup("</svg>")])
