"""Numbers as text: to the digit that their interval lets one trust, in aligned tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from counterpoise.arguments import visible

# Half-widths that differ by more than this factor do not share their digits in a table.
MOST_APART = 20
# Numbers of more decimals, or of more zeros before the point, are shown by a power of ten.
_MOST_DIGITS = 10


def show(value: Any, half: Any = None) -> str:
    """A value as text; numbers to the digit that half of their interval lets one trust.

    A number that is not zero does not become zero by rounding, unless it is a thousand times
    smaller than the digit that can be trusted.

    >>> show(12345.6, 630.0), show(-0.3, 8.0), show(47.0, 312.0)
    ('12,300', '-0.3', '50')
    """
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return str(value)
    if not math.isfinite(value):
        return "undefined"
    if half is None or isinstance(half, timedelta) or not 0 < half < math.inf:
        return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.5g}"
    number, digits = float(value), _decimals(float(half))
    if number and round(number, digits) == 0:
        digits = min(-_leading(abs(number))[1], digits + 3)
    if not -_MOST_DIGITS < digits < _MOST_DIGITS:
        # As many digits behind the first as there are down to the one that can be trusted.
        places = _leading(abs(number))[1] + digits if number else 0
        return f"{number:.{max(places, 0)}e}"
    # Adding zero turns a rounded -0 into 0.
    return f"{round(number, digits) + 0.0:,.{max(digits, 0)}f}"


def show_width(half: Any, shared: Any = None) -> str:
    """Half of an interval as text; of a span of time, in a unit that suits it."""
    if not isinstance(half, timedelta):
        return show(half, half if shared is None else shared)
    seconds = half.total_seconds()
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1)):
        if seconds >= size or unit == "seconds":
            return f"{show(seconds / size, seconds / size)} {unit}"
    raise AssertionError("every span of time has a unit")


def show_range(low: str, high: str) -> str:
    """Two ends as they are shown; one number where rounding has made them the same.

    >>> show_range("0.97", "0.99"), show_range("0.98", "0.98")
    ('0.97 to 0.99', '0.98')
    """
    return low if low == high else f"{low} to {high}"


def aligned(lines: Sequence[tuple[str, ...]], left: int) -> str:
    """Lines of cells as text; the first `left` columns are aligned left, the others right.

    A cell is one line, whatever is in it.

    >>> print(aligned([("ward", "value"), ("a", "1.5")], 1))
    ward  value
    a       1.5
    """
    lines = [tuple(map(visible, line)) for line in lines]
    widths = [max(len(cell) for cell in cells) for cells in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _decimals(half: float) -> int:
    """Decimals to show: one digit of the half-width, or two when the first is 1 or 2."""
    leading, place = _leading(half)
    return -place + (leading < 3)


def _leading(number: float) -> tuple[float, int]:
    """The first two digits of a number and the power of ten before them, after rounding.

    >>> _leading(0.0996), _leading(5e-324)
    ((1.0, -1), (4.9, -324))
    """
    digits, _, power = f"{number:.1e}".partition("e")
    return float(digits), int(power)


def shared_half(halves: Sequence[Any]) -> Any:
    """A half-width that lends its digits to a whole table, or None where they differ too much."""
    known = sorted(half for half in halves if half is not None and half and half == half)
    alike = bool(known) and known[-1] <= MOST_APART * known[0]
    return known[len(known) // 2] if alike else None
