"""Histograms of numbers: bars whose areas are the shares, spikes for single values, error bars.

A bar is as wide as its bin on the axis, and as high as its share divided by that width, so that
equal areas are equal shares whatever the bins are. For whole numbers the width is how many of them
a bin holds, which keeps bins of three and of four from making a sawtooth. A bin of one value among
wide ones has no width to speak of: it is a spike, cut off at the top where it has to be, with its
share beside it. Error bars are 95% intervals of the weighted shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from counterpoise.report.charts import PLAIN, WEIGHTED, chart_text, error_text
from counterpoise.report.scales import Axis, axis_of, number_text, round_values

# More bins than this are drawn as so many bars, each of neighbours.
MOST_BARS = 100
# More spikes than this are drawn with their neighbours.
MOST_SPIKES = 20
# A single whole number is a spike when its neighbours have at least so many values each.
WIDE = 5

_WIDTH, _LEFT, _TOP, _HEIGHT, _AXIS = 300, 34, 19, 78, 16
_SPIKE = 3.0  # how wide a spike is drawn
_LETTER = 6.2  # how wide a letter is, about


@dataclass(frozen=True, eq=False)
class Bars:
    """Shares of bins, without weights and with them, and half an interval (NaN: not known)."""

    kind: str
    edges: np.ndarray
    plain: np.ndarray
    weighted: np.ndarray
    errors: np.ndarray
    atoms: np.ndarray

    @property
    def labels(self) -> list[str]:
        """What each bar holds, in words."""
        axis = Axis(self.kind, float(self.edges[0]), float(self.edges[-1]))
        steps = self.kind != "continuous"
        found = []
        for left, right, atom in zip(self.edges[:-1], self.edges[1:], self.atoms, strict=True):
            first, last = axis.text(left), axis.text(right - 1 if steps else right)
            found.append(first if atom or first == last else f"{first} to {last}")
        return found

    @property
    def widths(self) -> np.ndarray:
        """On the numeric scale: how many whole numbers, days or microseconds, or how far."""
        return np.diff(self.edges.astype(float))


def find_atoms(kind: str, edges: np.ndarray) -> np.ndarray:
    """Which bins hold a single value, among others that hold many.

    >>> find_atoms("integer", np.array([0, 1, 52, 53])).tolist()
    [True, False, True]
    >>> find_atoms("integer", np.array([0, 1, 2, 3])).tolist()
    [False, False, False]
    >>> find_atoms("continuous", np.array([0, np.nextafter(0, 1), 9])).tolist()
    [True, False]
    """
    if kind == "continuous":
        return np.asarray(edges[1:] <= np.nextafter(edges[:-1], np.inf))
    if kind != "integer":
        return np.zeros(len(edges) - 1, dtype=bool)
    widths = np.diff(edges)
    wide = np.concatenate([[True], widths >= WIDE, [True]])
    return np.asarray((widths == 1) & wide[:-2] & wide[2:] & (len(widths) > 1))


def groups(kind: str, edges: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The first bin of each bar: every bin, or neighbours together where there are very many.

    Spikes stay by themselves.

    >>> groups("integer", np.arange(252), np.ones(251)).tolist()[:4]
    [0, 3, 6, 8]
    """
    count = len(edges) - 1
    if count <= MOST_BARS:
        return np.arange(count)
    atoms = find_atoms(kind, edges)
    axis = axis_of(kind, edges, shares, atoms)
    # The hair keeps places that are whole but for rounding on their side.
    places = np.floor(axis.places(edges[:-1]) * MOST_BARS + 1e-9)
    starts = np.flatnonzero(np.diff(places, prepend=-1.0) > 0)
    kept = np.flatnonzero(atoms)
    kept = kept[np.argsort(-shares[kept], kind="stable")[:MOST_SPIKES]]
    starts = np.union1d(starts, np.union1d(kept, kept + 1))
    return np.asarray(starts[starts < count], dtype=np.intp)


def histogram(bars: Bars, said: str) -> Markup:
    """Grey bars without weights, a blue line with them, and a thin line an interval.

    `said` is what the chart says to those who do not see it.

    >>> bars = Bars("integer", np.array([0, 5, 10]), np.array([0.5, 0.5]), np.array([0.2, 0.8]),
    ...     np.array([0.1, 0.1]), np.array([False, False]))
    >>> chart = histogram(bars, "two bars")
    >>> chart.count("<rect"), chart.count('class="error"')
    (2, 1)
    """
    axis = axis_of(bars.kind, bars.edges, bars.weighted, bars.atoms)
    room = _WIDTH - _LEFT
    ends = axis.places(bars.edges) * room
    lefts, rights = ends[:-1].copy(), ends[1:].copy()
    middle = (lefts + rights) / 2
    lefts[bars.atoms] = (middle[bars.atoms] - _SPIKE / 2).clip(0, room - _SPIKE)
    rights[bars.atoms] = lefts[bars.atoms] + _SPIKE
    widths = np.maximum(rights - lefts, 1e-9)
    plain, weighted, errors = (each / widths for each in (bars.plain, bars.weighted, bars.errors))
    top = _highest(bars, plain, weighted, errors)
    base = _TOP + _HEIGHT

    def height(density: float) -> float:
        return base - _HEIGHT * min(max(density / top, 0.0), 1.0)

    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            _WIDTH, base + _AXIS, said
        ),
        *_upright(bars, axis, top * room, height, room),
    ]
    line, whiskers, at = [], [], None
    for place, label in enumerate(bars.labels):
        left, right = _LEFT + lefts[place], _LEFT + rights[place]
        share, own, error = bars.plain[place], bars.weighted[place], bars.errors[place]
        gap = 1 if right - left > 4 else 0
        if share > 0 or own > 0:
            y = height(plain[place])
            parts.append(
                Markup(
                    '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}">'
                    "<title>{}: {:.1%} unweighted, {:.1%} weighted{}</title></rect>"
                ).format(
                    *(left, y, max(right - left - gap, 0.4), base - y, PLAIN),
                    *(label, share, own, error_text(error)),
                )
            )
        y = height(weighted[place])
        if bars.atoms[place]:
            line.append(f"M{left:.1f} {base}V{y:.1f}H{right:.1f}V{base}")
            at = None
        else:
            opening = f"M{left:.1f} {base}" if at is None or abs(at - left) > 0.05 else ""
            line.append(f"{opening}V{y:.1f}H{right:.1f}")
            at = right
            if place + 1 == len(bars.plain) or bars.atoms[place + 1]:
                line.append(f"V{base}")
        if error > 0:
            low, high = (height(weighted[place] + side * errors[place]) for side in (-1, 1))
            if low - high >= 0.5:
                whiskers.append(f"M{(left + right) / 2:.1f} {low:.1f}V{high:.1f}")
    parts.append(
        Markup('<path d="{}" fill="none" stroke="{}" stroke-width="1.6"/>').format(
            "".join(line), WEIGHTED
        )
    )
    if whiskers:
        parts.append(Markup('<path class="error" d="{}"/>').format("".join(whiskers)))
    parts.extend(_spike_labels(bars, lefts + _LEFT))
    parts.extend(_along(axis, room, base))
    return Markup("").join([*parts, Markup("</svg>")])


def _highest(bars: Bars, plain: np.ndarray, weighted: np.ndarray, errors: np.ndarray) -> float:
    """The density at the top: that of the highest bar, with some room for errors and spikes."""
    spread = ~bars.atoms
    tallest = max(float(plain[spread].max(initial=0)), float(weighted[spread].max(initial=0)))
    known = np.where(np.isfinite(errors), errors, 0.0)
    with_errors = min(float((weighted + known)[spread].max(initial=0)), 1.4 * tallest)
    spikes = float(np.maximum(plain, weighted)[bars.atoms].max(initial=0))
    if tallest <= 0:
        return max(spikes, 1e-12)
    return max(with_errors, tallest, min(spikes, 1.6 * tallest)) * 1.04


def _upright(
    bars: Bars, axis: Axis, top: float, height: Callable[[float], float], room: float
) -> list[Markup]:
    """The axis on the left: some round densities, and what they are measured by."""
    widths = bars.widths[~bars.atoms]
    if not len(widths):
        return []
    if axis.turn is None and np.ptp(widths) <= 1e-6 * widths.max():
        part, said = float(widths[0] / max(axis.high - axis.low, 1e-300)), "bar"
    else:
        part, said = axis.unit(widths, 1 / max(top, 1e-300))
    part = max(part, 1e-300)
    # top is the density at the top over the whole axis; a tick of so many percent of the rows
    # within the unit, which is `part` of the axis, lies at (percent / 100) / part.
    parts = [chart_text(0, 9, f"% of rows per {said}")]
    for percent in round_values(0, 100 * top * part, 3):
        y = height(percent / 100 / part / room)
        parts.append(Markup('<path class="grid" d="M{} {:.1f}H{}"/>').format(_LEFT, y, _WIDTH))
        parts.append(chart_text(_LEFT - 3, y + 4, number_text(percent), "end"))
    return parts


def _spike_labels(bars: Bars, lefts: np.ndarray) -> list[Markup]:
    """The shares of the largest spikes, where they do not stand in each other's way."""
    order = np.flatnonzero(bars.atoms)
    parts: list[Markup] = []
    taken: list[float] = []
    for place in order[np.argsort(-bars.weighted[order], kind="stable")]:
        x = float(lefts[place])
        if bars.weighted[place] >= 0.005 and all(abs(x - other) > 36 for other in taken):
            taken.append(x)
            late = x > _WIDTH - 40
            text = f"{bars.weighted[place]:.0%}"
            parts.append(
                chart_text(
                    x - 3 if late else x + _SPIKE + 3, _TOP + 9, text, "end" if late else "start"
                )
            )
    return parts


def _along(axis: Axis, room: float, base: float) -> list[Markup]:
    """The axis below: both ends, and the round values between them that have room."""
    last = axis.high - (axis.kind != "continuous" and axis.high > axis.low)
    written: list[tuple[float, float]] = []
    parts: list[Markup] = []
    candidates = [(0.0, axis.text(axis.low)), (1.0, axis.text(last)), *axis.ticks()]
    for place, text in candidates:
        x, wide = _LEFT + place * room, _LETTER * len(text)
        anchor = "start" if x - wide / 2 < _LEFT else "end" if x + wide / 2 > _WIDTH else "middle"
        if place in (0.0, 1.0):
            anchor = "end" if place else "start"
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        if any(left < right + 8 and left + wide > start - 8 for start, right in written):
            continue
        written.append((left, left + wide))
        parts.append(Markup('<path class="tick" d="M{:.1f} {}v3"/>').format(x, base))
        parts.append(chart_text(x, base + 13, text, anchor))
    return parts
