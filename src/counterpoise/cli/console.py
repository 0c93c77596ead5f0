"""What the commands share: how they print, notes, and tables of estimates as text or JSON.

Names, categories and notes come from files of others, and a terminal obeys what is in them. So all
that a command prints goes through `echo`, which shows control characters and lets none through.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from counterpoise.arguments import visible
from counterpoise.errors import CounterpoiseWarning

if TYPE_CHECKING:
    from counterpoise.analysis.result import Estimate, Estimates


def echo(text: object, err: bool = False, is_visible: bool = False) -> None:
    """Print lines of text, on standard error if asked, with control characters to be seen.

    What `is_visible` went through `visible` part by part, and then got colours.
    """
    click.echo(text if is_visible else visible(str(text), lines=True), err=err)


@contextmanager
def notes(quiet: bool = False) -> Iterator[None]:
    """Show our warnings as lines on standard error, each once, instead of Python's form."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = str(message)
        if not quiet and text not in shown:
            shown.add(text)
            echo(f"note: {visible(text)}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", CounterpoiseWarning)
        usual = warnings.showwarning
        warnings.showwarning = lambda message, category, *rest, **more: (
            show(message)
            if issubclass(category, CounterpoiseWarning)
            else usual(message, category, *rest, **more)
        )
        yield


def estimate_lines(found: Estimate | Estimates, level: float, heading: str) -> str:
    """Estimates as an aligned table: value, ±, the ends of the interval, and unweighted.

    >>> from counterpoise.analysis.result import Estimate, Symmetric
    >>> age = Estimate(54.23, 0.41, 51.0, span=Symmetric(54.23, 0.41, 80))
    >>> print(estimate_lines(age, 0.9, "age"))
         value    ±   low  high  unweighted
    age   54.2  0.7  53.5  54.9        51.0
    (intervals of 90%)
    """
    from counterpoise.analysis.result import Estimates, Symmetric
    from counterpoise.analysis.text import aligned, show, show_width

    columns, rows = _rows(found, heading)
    halves = [
        member.standard_error * member.span.multiple(level)
        if isinstance(member.span, Symmetric)
        else None
        for _, member in rows
    ]
    known = sorted(half for half in halves if half)
    # The digits of a typical interval serve all, unless they differ as coefficients do.
    alike = bool(known) and known[-1] <= 20 * known[0]
    typical = known[len(known) // 2] if known else None
    with_half = bool(known)
    with_ends = any(member.span is not None for _, member in rows)
    headings = ["value", *["±"] * with_half, *["low", "high"] * with_ends, "unweighted", ""]
    lines = [(*columns, *headings)]
    table = Estimates(columns, tuple(own for own, _ in rows), tuple(each for _, each in rows))
    if isinstance(found, Estimates):
        table = replace(table, is_simultaneous=found.is_simultaneous)
    for (own, member), half in zip(rows, halves, strict=True):
        low, high = member.interval(level) or (None, None)
        digits = typical if alike or half is None else half
        digits = member.coarse if digits is None else digits
        cells = [show(member.value, digits) or "undefined"]
        cells += [show_width(half, digits) if half else ""] * with_half
        cells += [show(low, digits), show(high, digits)] * with_ends
        cells += [show(member.unweighted, digits), table.marks.get(member.support, "")]
        lines.append((*map(str, own), *cells))
    return "\n".join([aligned(lines, len(columns)), *table.notes(level)])


def estimate_values(found: Estimate | Estimates, level: float) -> list[dict[str, Any]]:
    """Estimates as JSON values; dates are ISO texts, spans of time are numbers of days."""
    from counterpoise.analysis.result import joined

    columns, rows = _rows(found, "")
    values = []
    for own, member in rows:
        low, high = member.interval(level) or (None, None)
        values.append(
            {
                "label": {}
                if columns == ("",)
                else dict(zip(columns, map(plain, own), strict=True)),
                "value": plain(member.value),
                "standard_error": plain(member.standard_error),
                "low": plain(low),
                "high": plain(high),
                "unweighted": plain(member.unweighted),
                "support": member.support,
                "assumed": member.assumed,
                "note": joined(member.note, member.counted),
            }
        )
    return values


def plain(value: Any) -> Any:
    """A value that JSON has: numbers that are not finite and dates without value are null."""
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def echo_json(value: Any) -> None:
    """Print JSON for machines."""
    echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def verdict_line(card: Mapping[str, Any]) -> str:
    """The verdict on a release's weights as one line; nothing is said of a card without one."""
    verdict = card.get("weights", {}).get("verdict")
    if not verdict:
        return "weights: no verdict"
    said = "; ".join(verdict[key] for key in ("reason", "way_out") if verdict.get(key))
    return visible(f"weights: {verdict['level']}" + (f" ({said})" if said else ""))


def price_line(card: Mapping[str, Any]) -> str:
    """What privacy costs in the width of intervals, as one line; nothing where it is unknown."""
    from counterpoise.analysis.price import said

    found = said(card)
    return f"intervals: {found}" if found else "intervals: nothing says how wide privacy made them"


def _rows(
    found: Estimate | Estimates, heading: str
) -> tuple[tuple[str, ...], Sequence[tuple[tuple[Any, ...], Estimate]]]:
    from counterpoise.analysis.result import Estimates

    if isinstance(found, Estimates):
        return found.columns, list(zip(found.labels, found.members, strict=True))
    return ("",), [((heading,), found)]
