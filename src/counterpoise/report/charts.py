"""Small charts as inline SVG: no script, no font, nothing to load."""

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 260, 64
_COLOURS = ("#2f6f8f", "#c26b3a", "#6a8f4e", "#8a6bab")


def bars(shares: np.ndarray, labels: Sequence[str]) -> Markup:
    """A bar a cell, as tall as its share; the label and share of each on hovering.

    >>> bars(np.array([0.25, 0.75]), ["no", "yes"]).count("<rect")
    2
    """
    tallest = max(float(np.max(shares, initial=0.0)), 1e-12)
    width = _WIDTH / max(len(shares), 1)
    parts = [Markup('<svg viewBox="0 0 {} {}" role="img">').format(_WIDTH, _HEIGHT)]
    for index, (share, label) in enumerate(zip(shares, labels, strict=True)):
        height = _HEIGHT * float(share) / tallest
        parts.append(
            Markup(
                '<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}">'
                "<title>{}: {:.1%}</title></rect>"
            ).format(
                index * width,
                _HEIGHT - height,
                max(width - 1, 0.5),
                height,
                _COLOURS[0],
                escape(label),
                share,
            )
        )
    parts.append(Markup("</svg>"))
    return Markup("").join(parts)


def budget_bar(parts: Mapping[str, float], whole: float) -> Markup:
    """The budget as one bar, with a piece a stage and the rest left blank."""
    pieces = [Markup('<svg viewBox="0 0 600 44" role="img">')]
    pieces.append(Markup('<rect width="600" height="22" rx="3" fill="#e8e6e1"/>'))
    start = 0.0
    for index, (stage, epsilon) in enumerate(parts.items()):
        width = 600 * epsilon / whole
        colour = _COLOURS[index % len(_COLOURS)]
        pieces.append(
            Markup(
                '<rect x="{:.2f}" width="{:.2f}" height="22" fill="{}">'
                "<title>{}: epsilon {:.3g}</title></rect>"
            ).format(start, width, colour, stage, epsilon)
        )
        # A legend below: a piece may be too narrow for its name.
        pieces.append(
            Markup(
                '<rect x="{0}" y="31" width="10" height="10" fill="{1}"/>'
                '<text x="{2}" y="40" font-size="11">{3} {4:.3g}</text>'
            ).format(150 * index, colour, 150 * index + 14, stage, epsilon)
        )
        start += width
    pieces.append(Markup("</svg>"))
    return Markup("").join(pieces)
