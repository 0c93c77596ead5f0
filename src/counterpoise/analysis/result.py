"""What an analysis gives back: a value, how far off it may be, and what it was without weights.

An estimate prints as a value with its interval; several of them print as an aligned table and
turn into a pandas frame. The interval is the estimate plus or minus so many standard errors from
the replicate weights, by Student's t; for a quantile it is Woodruff's. Without replicates, or
where they cannot tell, there is a note that says so in the place of an interval. The support of an
estimate says whether what it depends on was measured: what was not bears a mark, with a footnote.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
import pandas as pd

from counterpoise.analysis.allowed import Allowed
from counterpoise.analysis.columns import Scale, is_same
from counterpoise.analysis.replication import (
    FULL,
    NO_REPLICATES,
    REPLICATES,
    UNWEIGHTED,
    multiplier,
    standard_errors,
)
from counterpoise.analysis.support import FOOTNOTES, MARKS, briefly, footnote
from counterpoise.analysis.text import aligned, shared_half, show, show_width
from counterpoise.arguments import shown
from counterpoise.bundle.card import rows_counted
from counterpoise.errors import AnalysisError

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

Statistic = TypeVar("Statistic", bound=Callable[..., Any])
Answer = TypeVar("Answer", bound="Estimate | Estimates")

LEVEL = 0.95

EMPTY = "undefined where too few synthetic rows have a value"
ALL_ALIKE = (
    "no standard error where the replicates cannot differ, as of rows that are all alike or of "
    "margins that were stated"
)
# Draws by which a quantile of the largest miss is known to about a hundredth of itself: a cost.
MISSES_DRAWN = 4000
# What stands between the clauses of a note, and in none of them.
_BETWEEN = "; "
# Replicates that differ by less than this, of the estimate's size, differ by rounding.
SAME = 1e-12


class Span(Protocol):
    """The interval of an estimate, at any level."""

    def __call__(self, level: float) -> tuple[Any, Any]:
        """The ends of the interval."""
        ...


@dataclass(frozen=True)
class Symmetric:
    """The interval of an estimate on a scale, within what is possible.

    >>> Symmetric(0.9, 0.1, degrees=80, highest=1.0)(0.95)
    (0.7009..., 1.0)
    """

    centre: float
    standard_error: float
    degrees: int
    scale: Scale = field(default_factory=Scale)
    lowest: float = -math.inf
    highest: float = math.inf
    # Draws of the largest miss of several estimates, in standard errors, where all are to hold.
    largest: np.ndarray | None = field(default=None, repr=False, compare=False)

    def multiple(self, level: float) -> float:
        """The number of standard errors from the centre to an end."""
        if self.largest is None:
            return multiplier(level, self.degrees)
        return float(np.quantile(self.largest, level))

    def __call__(self, level: float) -> tuple[Any, Any]:
        """The centre plus and minus so many standard errors."""
        half = self.multiple(level) * self.standard_error
        low, high = max(self.lowest, self.centre - half), min(self.highest, self.centre + half)
        return self.scale.value(low), self.scale.value(high)


@dataclass(frozen=True)
class Estimate:
    """A weighted estimate: its value, its standard error, and the same without the weights.

    `standard_error` is None, and `note` says why, when the release cannot tell it. A note beside
    an interval says what an estimate rests on. `support` is "measured", "implied", "never" or
    "unknown" (see `counterpoise.analysis.support`), and empty where the release cannot know what a
    statistic depends on; `assumed` is the part of the variance that is assumption, where what was
    summed of the columns does not carry the estimate. `counted` says of which private rows it is,
    where not of all of them.

    >>> age = Estimate(54.23, 0.41, 51.0, span=Symmetric(54.23, 0.41, 80))
    >>> age
    54.2 ± 0.8 (95%)
    >>> tuple(round(end, 1) for end in age.interval(0.9))
    (53.5, 54.9)
    """

    value: Any
    standard_error: Any
    unweighted: Any
    note: str = ""
    span: Span | None = field(default=None, repr=False, compare=False)
    support: str = ""
    counted: str = ""
    # By what each replicate differs, the whole way: how the estimate goes together with others.
    moves: np.ndarray | None = field(default=None, repr=False, compare=False)
    assumed: float | None = None

    def interval(self, level: float = LEVEL) -> tuple[Any, Any] | None:
        """The ends of the interval that holds the truth with this probability, or None."""
        return None if self.span is None else self.span(level)

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        ends = self.interval()
        said = joined(briefly(self.support, self.assumed), self.note, self.counted)
        if ends is None:
            shown = show(self.value) or "undefined"
            return f"{shown} ({said})" if said else shown
        more = f"; {said}" if said else ""
        if isinstance(self.span, Allowed):
            value, low, high = (show(each, self.coarse) for each in (self.value, *ends))
            return f"{value} ({low} to {high}{more})"
        if not isinstance(self.span, Symmetric):
            low, high = (show(end, None) for end in ends)
            return f"{show(self.value)} ({LEVEL:.0%}: {low} to {high}{more})"
        half = self._half(LEVEL)
        return f"{show(self.value, half)} ± {show_width(half)} ({LEVEL:.0%}{more})"

    __repr__ = __str__

    @property
    def coarse(self) -> float | None:
        """A half-width for the digits of bounds, which nobody needs to many."""
        if not isinstance(self.span, Allowed) or not isinstance(self.span.low, float):
            return None
        return (self.span.high - self.span.low) / 20

    def _half(self, level: float) -> Any:
        """Half of the interval, before it is cut to what is possible."""
        if isinstance(self.span, Symmetric):
            return self.standard_error * self.span.multiple(level)
        return None


@dataclass(frozen=True)
class Estimates:
    """Several estimates with labels: of groups, of categories, of bins, of pairs of columns.

    It is used as a pandas Series is: indexed by label, iterated over the estimates, with the
    labels in `keys()` and both in `items()`; `in` asks for a label. A label that is no text, such
    as a number, is also found by its text.

    >>> both = Estimates(("ward",), (("a",), ("b",)), (Estimate(1.0, None, 1.1, "so"),) * 2)
    >>> both["b"].value
    1.0
    >>> both.to_frame()[["value", "unweighted"]]
          value  unweighted
    ward
    a       1.0         1.1
    b       1.0         1.1
    """

    columns: tuple[str, ...]  # what the labels are of
    labels: tuple[tuple[Any, ...], ...]
    members: tuple[Estimate, ...]
    is_wide: bool = False  # prints with the last label across
    is_simultaneous: bool = False  # all intervals hold together with the probability of the level

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.members)

    def __contains__(self, label: object) -> bool:
        return self._place(label) is not None

    def __getitem__(self, label: Any) -> Estimate:
        place = self._place(label)
        if place is not None:
            return self.members[place]
        listed = ", ".join(repr(_only(own)) for own in self.labels[:8])
        more = ", ..." if len(self.labels) > 8 else ""
        raise AnalysisError(f"there is no estimate {shown(label)}; the labels are {listed}{more}")

    def keys(self) -> list[Any]:
        """The labels; one of a single column is not in a tuple."""
        return [_only(own) for own in self.labels]

    def items(self) -> list[tuple[Any, Estimate]]:
        """Labels with their estimates."""
        return list(zip(self.keys(), self.members, strict=True))

    def simultaneous(self) -> Estimates:
        """The same with wider intervals, all of which hold together with the level's probability.

        An interval is the estimate plus and minus c standard errors, c the quantile of the largest
        of all misses in standard errors, which go together as the replicates do (the sup-t band of
        J. L. Montiel Olea and M. Plagborg-Moller, 2019). What has bounds keeps them. Quantiles have
        no such intervals.

        >>> moves = np.random.default_rng(0).normal(size=(50, 80))
        >>> many = estimates(["x"], [(k,) for k in range(50)], [
        ...     estimate(np.append([0.0, 0.0], each)) for each in moves
        ... ])
        >>> alone, together = many[0].interval()[1], many.simultaneous()[0].interval()[1]
        >>> round(alone, 1), round(together, 1)
        (1.9, 3.3)
        """
        placed = [
            (place, member.moves, member.span.standard_error)
            for place, member in enumerate(self.members)
            if member.moves is not None and isinstance(member.span, Symmetric)
        ]
        if not placed:
            raise AnalysisError(
                "simultaneous: none of these estimates has a standard error from replicates"
            )
        largest = _largest_misses([moves for _, moves, _ in placed], [own for *_, own in placed])
        members = list(self.members)
        for place, _, _ in placed:
            span = cast(Symmetric, members[place].span)
            members[place] = replace(members[place], span=replace(span, largest=largest))
        return replace(self, members=tuple(members), is_simultaneous=True)

    def _place(self, label: Any) -> int | None:
        """Where a label is: by its value, or by its text where that means one label alone."""
        wanted = label if isinstance(label, tuple) else (label,)
        same = [place for place, own in enumerate(self.labels) if _is_same(own, wanted)]
        if not same and all(isinstance(part, str) for part in wanted):
            same = [
                place for place, own in enumerate(self.labels) if tuple(map(str, own)) == wanted
            ]
            same = same if len(same) == 1 else []
        return same[0] if same else None

    def to_frame(self, level: float = LEVEL) -> pd.DataFrame:
        """A frame by label: value, standard_error, low, high, unweighted, support and assumed."""
        ends = [member.interval(level) or (None, None) for member in self.members]
        index: pd.Index
        if len(self.columns) == 1:
            index = pd.Index([own[0] for own in self.labels], name=self.columns[0])
        else:
            index = pd.MultiIndex.from_tuples(self.labels, names=self.columns)
        parts = {
            "value": [member.value for member in self.members],
            "standard_error": [member.standard_error for member in self.members],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "unweighted": [member.unweighted for member in self.members],
            "support": [member.support for member in self.members],
            "assumed": [member.assumed for member in self.members],
        }
        series = {name: _series(values, index) for name, values in parts.items()}
        return pd.DataFrame(series, index=index)

    def pivot(self, part: str = "value", level: float = LEVEL) -> pd.DataFrame:
        """One part of the frame with the last label across, such as a crosstab's values."""
        if len(self.columns) < 2:
            raise AnalysisError("pivot: expected labels of two columns or more; use to_frame")
        frame = self.to_frame(level)
        if not isinstance(part, str) or part not in frame:
            raise AnalysisError(
                f"pivot: expected one of {', '.join(map(str, frame))}, not {shown(part)}"
            )
        across = list(dict.fromkeys(own[-1] for own in self.labels))
        down = list(dict.fromkeys(own[:-1] for own in self.labels))
        found = dict(zip(self.labels, frame[part], strict=True))
        values = [[found.get((*left, right)) for right in across] for left in down]
        index: pd.Index
        if len(self.columns) == 2:
            index = pd.Index([left[0] for left in down], name=self.columns[0])
        else:
            index = pd.MultiIndex.from_tuples(down, names=self.columns[:-1])
        return pd.DataFrame(values, index=index, columns=pd.Index(across, name=self.columns[-1]))

    def __str__(self) -> str:
        return self._wide() if self.is_wide and len(self.columns) == 2 else self._long()

    __repr__ = __str__

    def _long(self) -> str:
        halves = [member._half(LEVEL) for member in self.members]
        shared = shared_half(halves)
        # An interval that is not symmetric, as of a quantile, has ends alone.
        with_half = any(half is not None for half in halves)
        half_name = ("±",) if with_half else ()
        marks = self.marks
        mark_name = ("",) if marks else ()
        lines = [(*self.columns, "value", *half_name, "low", "high", "unweighted", *mark_name)]
        for own, member, half in zip(self.labels, self.members, halves, strict=True):
            low, high = member.interval() or (None, None)
            digits = (half or member.coarse) if shared is None else shared
            width = ("" if half is None else show_width(half, digits),) if with_half else ()
            cells = (show(each, digits) for each in (low, high, member.unweighted))
            value = show(member.value, digits) or "undefined"
            mark = (marks[member.support],) if marks else ()
            lines.append((*map(str, own), value, *width, *cells, *mark))
        return "\n".join([aligned(lines, len(self.columns)), *self.notes()])

    def _wide(self) -> str:
        across = list(dict.fromkeys(own[-1] for own in self.labels))
        down = list(dict.fromkeys(own[0] for own in self.labels))
        found = dict(zip(self.labels, self.members, strict=True))
        halves = {own: member._half(LEVEL) for own, member in found.items()}
        shared, marks = shared_half(list(halves.values())), self.marks
        # As wide in every cell, so that numbers stay below each other.
        room = max(map(len, marks.values()), default=0)
        lines = [(" \\ ".join(self.columns), *map(str, across))]
        for left in down:
            cells = []
            for right in across:
                member = found.get((left, right))
                if member is None:
                    cells.append("")
                    continue
                half = halves[left, right]
                digits = (half or member.coarse) if shared is None else shared
                width = "" if half is None else f" ± {show_width(half, digits)}"
                if isinstance(member.span, Allowed):
                    low, high = (show(end, member.coarse) for end in member.span(LEVEL))
                    width = f" [{low}, {high}]"
                mark = f" {marks[member.support]:{room}}" if marks else ""
                cells.append(show(member.value, digits) + width + mark)
            lines.append((str(left), *cells))
        return "\n".join([aligned(lines, 1), *self.notes()])

    @property
    def marks(self) -> dict[str, str]:
        """A mark for every support; none when all estimates have the same."""
        found = {member.support for member in self.members if member.support}
        return MARKS if len(found) > 1 else {}

    def notes(self, level: float = LEVEL) -> list[str]:
        """The lines below a table: the level of its intervals, what they rest on, and marks."""
        spans = [member.span for member in self.members if member.span is not None]
        has_level = any(not isinstance(span, Allowed) for span in spans)
        level_said = f"intervals of {100 * level:g}%" if has_level else ""
        if level_said and self.is_simultaneous:
            level_said += ", of all together"
        notes = [member.note for member in self.members]
        first = joined(level_said, *notes, *(member.counted for member in self.members))
        found: dict[str, list[float | None]] = {}
        for member in self.members:
            found.setdefault(member.support, []).append(member.assumed)
        footnotes = [
            f"{self.marks.get(support, '')} {footnote(support, found[support])}".strip()
            for support in FOOTNOTES
            if support in found
        ]
        return [*([f"({first})"] if first else []), *footnotes]


def estimate(
    results: np.ndarray,
    scale: Scale | None = None,
    lowest: float = -math.inf,
    highest: float = math.inf,
    note: str = "",
    beyond: float = 0.0,
) -> Estimate:
    """An estimate from a statistic with the weight, without, and with every replicate (2 + R).

    `beyond` is a standard error of what replicates do not vary.

    >>> estimate(np.array([5.0, 4.0, 4.0, 6.0])).standard_error
    1.0
    """
    shown = scale or Scale()
    value, plain = (shown.value(results[place]) for place in (FULL, UNWEIGHTED))
    degrees = len(results) - 2
    if not degrees:
        return Estimate(value, None, plain, joined(NO_REPLICATES, note))
    if not np.isfinite(results[FULL]):
        return Estimate(value, None, plain, joined(EMPTY, note))
    error = math.hypot(float(standard_errors(results)), beyond)
    # An error of zero would claim a certainty that one row, or none, does not give.
    if not error > SAME * abs(float(results[FULL])):
        return Estimate(value, None, plain, joined(ALL_ALIKE, note))
    span = Symmetric(float(results[FULL]), error, degrees, shown, lowest, highest)
    moves = results[REPLICATES] - results[FULL]
    return Estimate(value, shown.width(error), plain, note, span, moves=moves)


def _largest_misses(moves: Sequence[np.ndarray], errors: Sequence[float]) -> np.ndarray:
    """Draws of the largest of several misses in standard errors, by Student's t.

    A miss is sum_r g_r m_r / sqrt(R) with g normal, which has the covariance of the replicates'
    moves m; what an error has beside them is its own.
    """
    generator = np.random.default_rng(0)
    count = min(map(len, moves))
    draws = generator.normal(size=(count, MISSES_DRAWN))
    largest = np.zeros(MISSES_DRAWN)
    for each, error in zip(moves, errors, strict=True):
        along = np.where(np.isfinite(each), each, 0.0)[:count] / (math.sqrt(count) * error)
        own = math.sqrt(max(0.0, 1 - float(along @ along)))
        miss = np.abs(along @ draws + own * generator.normal(size=MISSES_DRAWN))
        np.maximum(largest, miss, out=largest)
    return np.asarray(largest / np.sqrt(generator.chisquare(count, MISSES_DRAWN) / count))


def estimates(
    columns: Sequence[str],
    labels: Sequence[tuple[Any, ...]],
    members: Sequence[Estimate],
    is_wide: bool = False,
) -> Estimate | Estimates:
    """The one estimate there is when nothing is labelled, or all of them with their labels."""
    if not columns:
        return members[0]
    return Estimates(tuple(columns), tuple(labels), tuple(members), is_wide)


def of_kept_rows(statistic: Statistic) -> Statistic:
    """Have a statistic of a release say of which private rows its estimates are."""

    @wraps(statistic)
    def said(release: Release, *options: Any, **named: Any) -> Estimate | Estimates:
        return counting(release, statistic(release, *options, **named))

    return cast(Statistic, said)


def counting(release: Release, found: Answer) -> Answer:
    """Estimates of a release that say of which private rows they are, where not of all of them."""
    counted = rows_counted(release.card)
    if not counted:
        return found
    if isinstance(found, Estimates):
        members = tuple(replace(each, counted=counted) for each in found.members)
        return replace(found, members=members)
    return replace(found, counted=counted)


def joined(*notes: str) -> str:
    """What the notes say, as one note: a clause that several have is said once.

    >>> joined("undefined; rare", "", "rare")
    'undefined; rare'
    """
    clauses = (clause for note in notes for clause in note.split(_BETWEEN) if clause)
    return _BETWEEN.join(dict.fromkeys(clauses))


def _is_same(own: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    if len(own) != len(wanted):
        return False
    return all(is_same(left, right) for left, right in zip(own, wanted, strict=True))


def _only(label: tuple[Any, ...]) -> Any:
    return label[0] if len(label) == 1 else label


def _series(values: list[Any], index: pd.Index) -> pd.Series:
    plain = all(value is None or isinstance(value, int | float) for value in values)
    if plain and not any(isinstance(value, bool) for value in values):
        numbers = [math.nan if value is None else value for value in values]
        return pd.Series(numbers, index=index)
    return pd.Series(values, index=index, dtype=object)
