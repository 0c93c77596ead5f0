"""Small charts as inline SVG: no script, no font, nothing to load.

Every chart is drawn 300 units wide, about the width that it is shown at, so that its text keeps
the size of the page's. What the rows say by themselves is grey; with their weights it is blue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

PLAIN, WEIGHTED = "#cfcbc3", "#1f6f93"
STAGE_COLOURS = ("#1f6f93", "#c26b3a", "#6a8f4e", "#8a6bab", "#b8962e")

_WIDTH = 300
_AXIS = 16  # height of the line of labels below a chart


def histogram(
    plain: np.ndarray, weighted: np.ndarray, labels: Sequence[str], ends: tuple[str, str]
) -> Markup:
    """Bins side by side: grey bars without weights, and a blue line with them.

    `labels` are shown on hovering, `ends` below the first and the last bin.

    >>> chart = histogram(np.array([0.5, 0.5]), np.array([0.2, 0.8]), ["low", "high"], ("0", "9"))
    >>> chart.count("<rect"), chart.count("<path")
    (2, 1)
    """
    height = 72
    tallest = max(float(plain.max(initial=0)), float(weighted.max(initial=0)), 1e-12)
    width = _WIDTH / max(len(plain), 1)
    gap = 1 if width > 4 else 0
    parts = [_opening(height + _AXIS)]
    steps = [f"M0 {height}"]
    for place, (left, right, label) in enumerate(zip(plain, weighted, labels, strict=True)):
        tall, top = height * float(left) / tallest, height * (1 - float(right) / tallest)
        parts.append(
            Markup(
                '<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}">'
                "<title>{}: {:.1%} unweighted, {:.1%} weighted</title></rect>"
            ).format(place * width, height - tall, width - gap, tall, PLAIN, label, left, right)
        )
        steps.append(f"L{place * width:.2f} {top:.2f}L{(place + 1) * width:.2f} {top:.2f}")
    steps.append(f"L{_WIDTH} {height}")
    parts.append(
        Markup('<path d="{}" fill="none" stroke="{}" stroke-width="1.6"/>').format(
            "".join(steps), WEIGHTED
        )
    )
    parts.append(_text(0, height + 13, ends[0]))
    parts.append(_text(_WIDTH, height + 13, ends[1], "end"))
    return _closed(parts)


def categories(plain: np.ndarray, weighted: np.ndarray, labels: Sequence[str]) -> Markup:
    """A line a category: its name, a grey bar without weights, a blue one with, its share.

    >>> chart = categories(np.array([0.5, 0.5]), np.array([0.2, 0.8]), ["no", "yes"])
    >>> chart.count("<rect"), "80.0%" in chart
    (4, True)
    """
    start, room, line = 104, _WIDTH - 104 - 46, 20
    longest = max(float(plain.max(initial=0)), float(weighted.max(initial=0)), 1e-12)
    parts = [_opening(line * len(labels) + 2)]
    for place, (left, right, label) in enumerate(zip(plain, weighted, labels, strict=True)):
        top = place * line
        shown = label if len(label) <= 16 else f"{label[:15]}…"
        parts.append(
            Markup("<g><title>{}: {:.1%} unweighted, {:.1%} weighted</title>").format(
                label, left, right
            )
        )
        parts.append(_text(0, top + 14, shown))
        for share, colour, shift, thick in ((left, PLAIN, 3, 14), (right, WEIGHTED, 7, 6)):
            parts.append(
                Markup('<rect x="{}" y="{}" width="{:.2f}" height="{}" fill="{}"/>').format(
                    start, top + shift, room * float(share) / longest, thick, colour
                )
            )
        parts.append(_text(_WIDTH, top + 14, f"{right:.1%}", "end"))
        parts.append(Markup("</g>"))
    return _closed(parts)


def pair_of_bars(plain: float, weighted: float) -> Markup:
    """One value between 0 and 1 without weights, grey, and with them, blue.

    >>> pair_of_bars(0.2, 0.4).count("<rect")
    2
    """
    parts = [Markup('<svg viewBox="0 0 300 14" preserveAspectRatio="none" role="img">')]
    for value, colour, top, thick in ((plain, PLAIN, 0, 14), (weighted, WEIGHTED, 4, 6)):
        parts.append(
            Markup('<rect y="{}" width="{:.2f}" height="{}" fill="{}"/>').format(
                top, _WIDTH * value, thick, colour
            )
        )
    return _closed(parts)


def weights_histogram(weights: np.ndarray) -> Markup:
    """How many rows have which weight, on a logarithmic scale with a line at one; no zeros.

    >>> "<rect" in weights_histogram(np.array([0.5, 1.0, 2.0]))
    True
    """
    height, count = 110, 48
    logs = np.log10(weights[weights > 0])
    # A margin around one keeps the scale readable when the weights hardly differ.
    low, high = min(float(logs.min()), -0.1), max(float(logs.max()), 0.1)
    counts, _ = np.histogram(logs, bins=count, range=(low, high))
    width = _WIDTH / count
    parts = [_opening(height + _AXIS)]
    for place, rows in enumerate(counts):
        if rows:
            tall = max(height * rows / counts.max(), 0.8)
            ends = (10 ** (low + (place + side) * (high - low) / count) for side in (0, 1))
            parts.append(
                Markup(
                    '<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}">'
                    "<title>{:.3g} to {:.3g}: {:,} rows</title></rect>"
                ).format(place * width, height - tall, width - 0.6, tall, WEIGHTED, *ends, rows)
            )
    for tick in _ticks(low, high):
        x = _WIDTH * (math.log10(tick) - low) / (high - low)
        one = tick == 1
        parts.append(
            Markup(
                '<line x1="{0:.2f}" x2="{0:.2f}" y1="{1}" y2="{2}" stroke="#22262a"{3}/>'
            ).format(
                x,
                0 if one else height,
                height + 3,
                Markup(' stroke-dasharray="3 3"') if one else "",
            )
        )
        anchor = "start" if x < 8 else "end" if x > _WIDTH - 8 else "middle"
        parts.append(_text(x, height + 14, f"{tick:g}", anchor))
    return _closed(parts)


def budget_bar(parts: Mapping[str, float], whole: float) -> Markup:
    """The budget as one bar, with a piece a stage and the rest left blank.

    >>> budget_bar({"synthesizer": 0.5}, whole=1.0).count("<rect")
    2
    """
    pieces = [
        Markup('<svg viewBox="0 0 300 14" preserveAspectRatio="none" class="budget" role="img">'),
        Markup('<rect width="300" height="14" fill="#e8e6e1"/>'),
    ]
    start = 0.0
    for place, (stage, epsilon) in enumerate(parts.items()):
        width = _WIDTH * epsilon / whole
        colour = STAGE_COLOURS[place % len(STAGE_COLOURS)]
        pieces.append(
            Markup(
                '<rect x="{:.2f}" width="{:.2f}" height="14" fill="{}">'
                "<title>{}: epsilon {:.3g}</title></rect>"
            ).format(start, width, colour, stage, epsilon)
        )
        start += width
    return _closed(pieces)


def _ticks(low: float, high: float) -> list[float]:
    """1, and round numbers around it: few enough to stand apart."""
    decades = range(math.floor(low), math.ceil(high) + 1)
    for leading in ((1, 2, 5), (1,)):
        ticks = [
            number
            for decade in decades
            for number in (float(f"{lead}e{decade}") for lead in leading)
            if low <= math.log10(number) <= high
        ]
        if len(ticks) <= 9:
            break
    step = math.ceil(len(ticks) / (9 if len(leading) > 1 else 6))
    return [tick for place, tick in enumerate(ticks) if (place - ticks.index(1.0)) % step == 0]


def _opening(height: float) -> Markup:
    return Markup('<svg viewBox="0 0 {} {}" role="img">').format(_WIDTH, height)


def _closed(parts: list[Markup]) -> Markup:
    return Markup("").join([*parts, Markup("</svg>")])


def _text(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, text
    )
