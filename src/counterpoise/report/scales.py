"""The axes of charts: where a value lies, which round values are written, and how they read.

An axis is linear, or logarithmic where a column is so skewed that a linear one would press most
rows into a corner. The logarithmic one is signed, so that it holds zero and negative numbers:
s(x) = sign(x) log10(1 + |x|/c), linear around zero and logarithmic beyond c, which is the
smallest step that the column's bins tell apart. Numbers have thousands separators, dates are
dates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date as Date
from datetime import timedelta
from typing import Any

import numpy as np

# A column is skewed when its middle lies within this part of its range, from the lower end, ...
MIDDLE = 0.05
# ... and its bins reach so many times as far as the smallest step that they tell apart.
LEAST_REACH = 15

_DAY = {"date": 1, "datetime": 86_400_000_000}  # in the units of the numeric scale
_EPOCH = Date(1970, 1, 1)
# What a density over dates can be measured by, in days, ...
_SPANS: tuple[tuple[float, str], ...] = (
    *((1 / 1440, "minute"), (1 / 24, "hour"), (1, "day"), (7, "week"), (30, "30 days")),
    *((365, "year"), (3652, "ten years")),
)
# ... and one on a logarithmic axis.
_STEPS = ((10, "tenfold step"), (2, "doubling"), (1.1, "step of 10%"), (1.01, "step of 1%"))


@dataclass(frozen=True)
class Axis:
    """From `low` to `high` of a kind of numbers; `turn` is c where it is logarithmic, else None.

    >>> Axis("integer", 0, 1000).places(np.array([0, 250, 1000])).tolist()
    [0.0, 0.25, 1.0]
    >>> [text for _, text in Axis("integer", -10, 20_000, turn=1.0).ticks()]
    ['-10', '-1', '0', '1', '10', '100', '1,000', '10,000']
    """

    kind: str
    low: float
    high: float
    turn: float | None = None

    def places(self, values: Any) -> np.ndarray:
        """Where values lie: 0 at the left end, 1 at the right one."""
        low, high = self._scaled(np.array([self.low, self.high], dtype=float))
        scaled = self._scaled(np.asarray(values, dtype=float))
        return np.asarray((scaled - low) / max(high - low, 1e-300)).clip(0, 1)

    def unit(self, widths: np.ndarray, most: float) -> tuple[float, str]:
        """What a density is measured by: a part of the axis, and that in words.

        `widths` are those of the bars, on the numeric scale: the unit is a round number like them.
        It is at most the part `most` of the axis, which keeps shares within it below 100%.
        """
        if self.turn is not None:
            low, high = self._scaled(np.array([self.low, self.high], dtype=float))
            steps = [(math.log10(times) / (high - low), said) for times, said in _STEPS]
            return next((step for step in steps if step[0] <= most), steps[-1])
        middle, span = float(np.median(widths)), max(self.high - self.low, 1e-300)
        middle = min(middle, most * span)
        if self.kind in _DAY:
            day = _DAY[self.kind]
            near = min(_SPANS, key=lambda each: abs(math.log(middle / day / each[0])))
            return near[0] * day / span, near[1]
        round_number = nearest_round(middle)
        if self.kind == "integer" and round_number <= 1:
            return 1 / span, "value"
        return round_number / span, number_text(round_number)

    def ticks(self, count: int = 4) -> list[tuple[float, str]]:
        """About `count` round values on the axis, with their texts, from left to right.

        A logarithmic axis has all powers of ten; whoever draws them leaves out what has no room.
        """
        if self.turn is not None:
            values = sorted(self._powers())
        elif self.kind in _DAY:
            return [
                (float(self.places(day * _DAY[self.kind])), text)
                for day, text in self._days(count)
                if self.low <= day * _DAY[self.kind] <= self.high
            ]
        else:
            values = round_values(self.low, self.high, count)
        return [(float(self.places(value)), self.text(value)) for value in values]

    def text(self, value: float) -> str:
        """A value of the axis in words.

        >>> Axis("date", 0, 1).text(18_262), Axis("continuous", 0, 1).text(1234567.5)
        ('2020-01-01', '1,234,568')
        >>> Axis("integer", 1950, 2023).text(1984), Axis("integer", 0, 5000).text(1984)
        ('1984', '1,984')
        """
        if self.kind == "date":
            return str(np.int64(value).astype("M8[D]"))
        if self.kind == "datetime":
            moment = str(np.int64(value).astype("M8[us]").astype("M8[m]"))
            return moment.removesuffix("T00:00").replace("T", " ")
        if self.kind == "integer":
            # Numbers of four digits throughout are years, more often than not.
            years = self.low >= 1000 and self.high <= 3000
            return str(int(value)) if years else number_text(value)
        return number_text(value)

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        if self.turn is None:
            return values
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(values)) - math.log(self.turn)
        # log(1 + exp(log|x| - log c)), which no x is too large for
        return np.asarray(np.sign(values) * np.logaddexp(0, logs) / math.log(10))

    def _powers(self) -> Iterator[float]:
        assert self.turn is not None
        if self.low <= 0 <= self.high:
            yield 0.0
        first = math.floor(math.log10(self.turn))
        last = math.floor(math.log10(max(abs(self.low), abs(self.high))))
        for power in range(first, last + 1):
            for value in (-(10.0**power), 10.0**power):
                if self.low <= value <= self.high and abs(value) >= self.turn:
                    yield value

    def _days(self, count: int) -> Iterator[tuple[int, str]]:
        """The first days of years, or of months, or single days, in days since 1970."""
        # The end of an axis can be a day after the last that there is.
        least, most = ((day - _EPOCH).days for day in (Date.min, Date.max))
        ends = (int(value // _DAY[self.kind]) for value in (self.low, self.high))
        low, high = (min(max(end, least), most) for end in ends)
        first, last = _EPOCH + timedelta(low), _EPOCH + timedelta(high)
        years, months = last.year - first.year, 12 * (last.year - first.year) + last.month
        if years >= 2:
            step = max(1, round(nearest_round(years / count)))
            for year in range(first.year - first.year % step, last.year + 1, step):
                if year >= 1:
                    yield (Date(year, 1, 1) - _EPOCH).days, str(year)
            return
        months -= first.month
        step = next((each for each in (1, 2, 3, 6) if months / each <= count + 1), 12)
        if months >= 2:
            for place in range(12 * first.year, 12 * last.year + last.month, step):
                day = Date(place // 12, place % 12 + 1, 1)
                yield (day - _EPOCH).days, f"{day:%Y-%m}"
            return
        step = max(1, (high - low) // count)
        for day_number in range(low, high + 1, step):
            yield day_number, str(_EPOCH + timedelta(day_number))


def axis_of(kind: str, edges: np.ndarray, shares: np.ndarray, atoms: np.ndarray) -> Axis:
    """The axis for bins between `edges` that hold `shares`; `atoms` marks bins of one value.

    >>> edges = np.array([0.0, 10.0, 100.0, 1000.0, 10_000.0])
    >>> none = np.zeros(4, dtype=bool)
    >>> axis_of("continuous", edges, np.array([0.3, 0.4, 0.3, 0.0]), none).turn
    10.0
    >>> axis_of("continuous", edges, np.array([0.0, 0.1, 0.2, 0.7]), none).turn is None
    True
    """
    low, high = float(edges[0]), float(edges[-1])
    linear = Axis(kind, low, high)
    spread = shares[~atoms]
    if kind not in ("integer", "continuous") or not spread.sum() > 0:
        return linear
    bins = np.flatnonzero(~atoms)
    middle = bins[np.searchsorted(np.cumsum(spread), spread.sum() / 2)]
    # What the bins tell apart around zero: the ends of bins that are not single values.
    steps = np.abs(np.concatenate([edges[bins], edges[bins + 1]]).astype(float))
    steps = steps[steps > np.finfo(float).tiny]
    if not len(steps):
        return linear
    centre = (float(edges[middle]) + float(edges[middle + 1])) / 2
    skewed = centre - low < MIDDLE * (high - low)
    turn = float(steps.min())
    reaches = max(abs(low), abs(high)) >= LEAST_REACH * turn
    return Axis(kind, low, high, turn) if skewed and reaches else linear


def number_text(value: float) -> str:
    """A number with thousands separators and few digits.

    >>> [number_text(value) for value in (5_000_000, 18_230.04, 0.25, 1e-7, -3.0, 1e20)]
    ['5,000,000', '18,230', '0.25', '1e-07', '-3', '1e+20']
    >>> number_text(5e-324)  # where the cells beside an atom of zero begin
    '0'
    """
    size = abs(value)
    if size < np.finfo(float).tiny:
        return "0"
    if not 1e-4 <= size < 1e15:
        return f"{value:.3g}"
    if value == int(value) or size >= 1e5:
        return f"{value:,.0f}"
    # Five digits in all, and at least one behind the point, which is there to be stripped.
    digits = max(1, 4 - math.floor(math.log10(size)))
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".")


def nearest_round(value: float) -> float:
    """The number 1, 2 or 5 times a power of ten that is nearest, on a logarithmic scale.

    >>> [nearest_round(value) for value in (0.0034, 0.8, 33, 7000)]
    [0.005, 1.0, 50.0, 5000.0]
    >>> nearest_round(5e-324)  # the width of an atom of zero, which has no digits left to round
    2e-308
    """
    value = max(value, float(np.finfo(float).tiny))
    power = math.floor(math.log10(value))
    near = (float(f"{lead}e{power + more}") for lead, more in ((1, 0), (2, 0), (5, 0), (1, 1)))
    return min(near, key=lambda each: abs(math.log(each / value)))


def round_values(low: float, high: float, count: int) -> list[float]:
    """About `count` multiples of a round number between two others.

    >>> round_values(0, 99, 4)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    if not high > low:
        return [low]
    step = nearest_round((high - low) / count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]
