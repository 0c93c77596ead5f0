"""Small charts as inline SVG: no script, no font, nothing to load.

Every chart is drawn 300 units wide, about the width that it is shown at, so that its text keeps
the size of the page's. What the rows say by themselves is grey; with their weights it is blue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from counterpoise.analysis.text import show_range
from counterpoise.report.labels import short_names, text_width
from counterpoise.report.scales import number_text

PLAIN, WEIGHTED = "#cfcbc3", "#1f6f93"
STAGE_COLOURS = ("#1f6f93", "#c26b3a", "#6a8f4e", "#8a6bab", "#b8962e")

_WIDTH = 300
# A mark on a stronger relation is white.
_DARK = 0.3
_AXIS = 16  # height of the line of labels below a chart
_LETTERS = 11  # height of letters, as the page's style has it
_GAP = 4  # between a label and what it is of
# Names beside a map take no more letter heights than 13 letters of usual width.
_MOST_NAME = 8.5


def categories(
    plain: np.ndarray,
    weighted: np.ndarray,
    labels: Sequence[str],
    errors: np.ndarray | None = None,
    said: str = "",
    truth: np.ndarray | None = None,
) -> Markup:
    """A line a category: its name, a grey bar without weights, a blue one with, its share.

    `errors` are half the intervals of the weighted shares, drawn as thin lines where they are
    known; `said` is what the chart says to those who do not see it. `truth` are the shares of
    private rows, for the curator alone: an upright mark each.

    >>> chart = categories(np.array([0.5, 0.5]), np.array([0.2, 0.8]), ["no", "yes"])
    >>> chart.count("<rect"), "80.0%" in chart
    (4, True)
    """
    start, room, line = 104, _WIDTH - 104 - 46, 20
    known = np.full(len(labels), np.nan) if errors is None else errors
    reach = weighted + np.where(np.isfinite(known), known, 0.0)
    longest = max(float(plain.max(initial=0)), float(weighted.max(initial=0)), 1e-12)
    longest = max(longest, min(float(reach.max(initial=0)), 1.4 * longest))
    longest = longest if truth is None else max(longest, float(truth.max(initial=0)))
    parts = [_opening(line * len(labels) + 2, said)]
    names = short_names(labels, (start - _GAP) / _LETTERS)
    for place, (left, right, label) in enumerate(zip(plain, weighted, labels, strict=True)):
        top = place * line
        error = float(known[place])
        private = "" if truth is None else f", {truth[place]:.1%} private"
        parts.append(
            Markup("<g><title>{}: {:.1%} unweighted, {:.1%} weighted{}{}</title>").format(
                label, left, right, error_text(error), private
            )
        )
        parts.append(chart_text(0, top + 14, names[place]))
        for share, colour, shift, thick in ((left, PLAIN, 3, 14), (right, WEIGHTED, 7, 6)):
            parts.append(
                Markup('<rect x="{}" y="{}" width="{:.2f}" height="{}" fill="{}"/>').format(
                    start, top + shift, room * float(share) / longest, thick, colour
                )
            )
        if error > 0:
            low, high = (
                start + room * min(max(float(right) + side * error, 0.0), longest) / longest
                for side in (-1, 1)
            )
            parts.append(
                Markup('<path class="error" d="M{:.1f} {}H{:.1f}"/>').format(low, top + 10, high)
            )
        if truth is not None:
            x = start + room * float(truth[place]) / longest
            parts.append(Markup('<path class="truth" d="M{:.1f} {}v16"/>').format(x, top + 2))
        parts.append(chart_text(_WIDTH, top + 14, f"{right:.1%}", "end"))
        parts.append(Markup("</g>"))
    return _closed(parts)


def heat_map(
    strengths: np.ndarray,
    names: Sequence[str],
    said: str,
    supports: Sequence[Sequence[str]] | None = None,
    full: float = 1.0,
) -> Markup:
    """How strongly every two columns go together, 0 to 1: the darker, the stronger.

    Columns are numbered from the top, and named at the side; a pair is shown once. `supports` say
    of every pair whether it was measured together: a ring marks what is implied, a cross what
    never was. A strength of `full` is drawn as dark as can be.

    >>> heat_map(np.array([[1.0, 0.5], [0.5, 1.0]]), ["age", "ill"], "a pair").count("<rect")
    1
    """
    count = len(names)
    size = min(_LETTERS, (_WIDTH - 92) / max(count, 1))
    shown = [
        f"{place} {name}" for place, name in enumerate(short_names(names, _MOST_NAME), start=1)
    ]
    start = _GAP + size * max(map(text_width, shown), default=0)
    side = min((_WIDTH - start) / max(count, 1), 24.0)
    parts = [_opening(side * count + 12, said)]
    for row, name in enumerate(names):
        y = 12 + row * side
        parts.append(
            Markup('<text x="0" y="{:.1f}" style="font-size: {:.1f}px">{}</text>').format(
                y + side / 2 + size / 3, size, shown[row]
            )
        )
        parts.append(
            Markup(
                '<text x="{:.1f}" y="{:.1f}" text-anchor="middle" style="font-size: {:.1f}px">'
                "{}</text>"
            ).format(
                start + (row + 0.5) * side, y + side / 2 + size / 3, min(size, side * 0.6), row + 1
            )
        )
        for column in range(row):
            strength = float(strengths[row, column])
            support = "" if supports is None else supports[row][column]
            parts.append(
                Markup(
                    '<g><title>{} × {}: {}{}</title><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" '
                    'height="{:.1f}" fill="{}"/>'
                ).format(
                    *(names[column], name, f"{strength:.{2 if full == 1 else 3}f}"),
                    f", {support}" if support else "",
                    *(start + column * side, y, side - 0.4, side - 0.4, shade(strength / full)),
                )
            )
            middle = start + (column + 0.5) * side, y + side / 2
            parts.append(support_mark(support, *middle, side / 6, strength > _DARK * full))
            parts.append(Markup("</g>"))
    return _closed(parts)


def support_mark(support: str, x: float, y: float, size: float, is_dark: bool = False) -> Markup:
    """A ring for what is implied, a cross for what was never measured, else nothing.

    >>> support_mark("never", 5, 5, 2)
    Markup('<path class="support" d="M3.0 3.0l4.0 4.0m0 -4.0l-4.0 4.0"/>')
    """
    kind = "support dark" if is_dark else "support"
    if support == "implied":
        return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>').format(
            kind, x, y, size
        )
    if support == "never":
        return Markup(
            '<path class="{0}" d="M{1:.1f} {2:.1f}l{3:.1f} {3:.1f}m0 -{3:.1f}l-{3:.1f} {3:.1f}"/>'
        ).format(kind, x - size, y - size, 2 * size)
    return Markup("")


def shade(strength: float) -> str:
    """A colour from nearly white to dark blue for a strength between 0 and 1.

    >>> shade(0.0), shade(1.0)
    ('#f1efeb', '#0d3f59')
    """
    # A power below one brings out weak relations, which most are.
    part = min(max(strength, 0.0), 1.0) ** 0.75
    ends = zip((0xF1, 0xEF, 0xEB), (0x0D, 0x3F, 0x59), strict=True)
    return "#" + "".join(f"{round(light + part * (dark - light)):02x}" for light, dark in ends)


def pair_of_bars(plain: float, weighted: float) -> Markup:
    """One value between 0 and 1 without weights, grey, and with them, blue.

    >>> pair_of_bars(0.2, 0.4).count("<rect")
    2
    """
    parts = [
        Markup(
            '<svg viewBox="0 0 300 14" preserveAspectRatio="none" role="img" aria-hidden="true">'
        )
    ]
    for value, colour, top, thick in ((plain, PLAIN, 0, 14), (weighted, WEIGHTED, 4, 6)):
        parts.append(
            Markup('<rect y="{}" width="{:.2f}" height="{}" fill="{}"/>').format(
                top, _WIDTH * value, thick, colour
            )
        )
    return _closed(parts)


def weights_histogram(weights: np.ndarray) -> Markup:
    """How many rows have which weight, on a logarithmic scale with a line at one; no zeros.

    Weights below a ten-thousandth are in the first bar: they are nothing, however small.

    >>> "<rect" in weights_histogram(np.array([0.5, 1.0, 2.0]))
    True
    """
    height, count = 110, 48
    logs = np.maximum(np.log10(weights[weights > 0]), -4.0)
    # A margin around one keeps the scale readable when the weights hardly differ.
    low, high = min(float(logs.min()), -0.1), max(float(logs.max()), 0.1)
    counts, _ = np.histogram(logs, bins=count, range=(low, high))
    width = _WIDTH / count
    parts = [
        _opening(
            height + _AXIS,
            "Histogram of the weights, of "
            + show_range(f"{10 ** logs.min():.3g}", f"{10 ** logs.max():.3g}"),
        )
    ]
    for place, rows in enumerate(counts):
        if rows:
            tall = max(height * rows / counts.max(), 0.8)
            ends = (f"{10 ** (low + (place + side) * (high - low) / count):.3g}" for side in (0, 1))
            parts.append(
                Markup(
                    '<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}">'
                    "<title>{}: {:,} rows</title></rect>"
                ).format(
                    *(place * width, height - tall, width - 0.6, tall, WEIGHTED),
                    *(show_range(*ends), rows),
                )
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
        parts.append(chart_text(x, height + 14, number_text(tick), anchor))
    return _closed(parts)


def budget_bar(parts: Mapping[str, float], whole: float) -> Markup:
    """The budget as one bar, with a piece a stage and the rest left blank.

    >>> budget_bar({"synthesizer": 0.5}, whole=1.0).count("<rect")
    2
    """
    pieces = [
        Markup(
            '<svg viewBox="0 0 300 14" preserveAspectRatio="none" class="budget" role="img" '
            'aria-label="{}">'
        ).format(
            "Epsilon spent: "
            + ", ".join(f"{stage} {epsilon:.3g}" for stage, epsilon in parts.items())
            + f", of {whole:g}"
        ),
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


def chart_text(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    """A text in a chart."""
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, text
    )


def error_text(error: float) -> str:
    """Half an interval of a share, to stand behind it; nothing where it is not known.

    >>> error_text(0.012), error_text(float("nan"))
    (' ± 1.2%', '')
    """
    return f" ± {error:.1%}" if math.isfinite(error) else ""


def _opening(height: float, said: str = "") -> Markup:
    return Markup('<svg viewBox="0 0 {} {:g}" role="img" aria-label="{}">').format(
        _WIDTH, height, said
    )


def _closed(parts: list[Markup]) -> Markup:
    return Markup("").join([*parts, Markup("</svg>")])
