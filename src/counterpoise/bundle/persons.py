"""Of how many persons rows were left out: two noisy counts, in words no surer than they are.

Where persons are bounded, a release counts those with at most k rows and those with more, A and B,
each with noise of one deviation s. What is said of them are intervals of 95%, with h as the noise's
half-width, rounded up to whole persons: A and B +- h, their sum +- sqrt(2) h, and of the part p of
the persons that have more all values for which (1 - p) B - p A, whose noise has the variance
s^2 ((1 - p)^2 + p^2), is within its own half-width (Fieller 1954). So a count that noise hides has
no number, and a part that it hides none either. With Laplace noise h / s is that of one Laplace
variable, which is more than that of any sum of two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

# The card's field of the two counts.
PERSONS = "persons"
# With which probability what is said holds, as in every interval of a release.
LEVEL = 0.95
# Half-widths of so many deviations: P(|Z| > t) = 1 - level, which is exp(-t sqrt(2)) for Laplace.
GAUSSIAN_WIDTHS = NormalDist().inv_cdf((1 + LEVEL) / 2)
LAPLACE_WIDTHS = -math.log(1 - LEVEL) / math.sqrt(2)


@dataclass(frozen=True)
class PersonsCounted:
    """How many persons have no more rows than were kept, and how many have more, by noisy counts.

    >>> found = PersonsCounted(within=530.0, beyond=1475.0, deviation=45.0, is_pure=False, rows=3)
    >>> found.described
    'about 2,005 ± 126 in all; about 1,475 ± 89 of them have more than 3 rows (95%)'
    >>> found.said
    '70% to 78% of persons have more'
    >>> hidden = PersonsCounted(within=1200.0, beyond=20.0, deviation=45.0, is_pure=False, rows=3)
    >>> hidden.described
    'about 1,220 ± 126 in all; at most 109 of them have more than 3 rows (95%)'
    >>> hidden.said
    'at most 9% of persons have more'
    """

    within: float
    beyond: float
    deviation: float
    is_pure: bool
    rows: int  # that are kept of each person at most

    @property
    def half_width(self) -> int:
        """How far each count may be off."""
        widths = LAPLACE_WIDTHS if self.is_pure else GAUSSIAN_WIDTHS
        return math.ceil(widths * self.deviation)

    @property
    def part_beyond(self) -> tuple[float, float]:
        """Between which parts of the persons have more rows than were kept; 0 to 1 if hidden."""
        total, half = self.within + self.beyond, self.half_width
        scale = total**2 - 2 * half**2
        if total <= 0 or scale <= 0:
            return 0.0, 1.0
        # ((1 - p) B - p A)^2 <= h^2 ((1 - p)^2 + p^2), a quadric in p: with n = A + B
        # (n^2 - 2 h^2) p^2 - 2 (B n - h^2) p + B^2 - h^2 <= 0
        middle = (self.beyond * total - half**2) / scale
        # A^2 + B^2 >= n^2 / 2 > h^2, but for rounding.
        room = half * math.sqrt(max(self.within**2 + self.beyond**2 - half**2, 0.0)) / scale
        low, high = (min(max(end, 0.0), 1.0) for end in (middle - room, middle + room))
        return low, high

    @property
    def said(self) -> str:
        """The part of the persons who have more rows than were kept; whole percents, outwards."""
        low, high = self.part_beyond
        least, most = min(math.floor(100 * low), 99), max(math.ceil(100 * high), 1)
        if least <= 0 and most >= 100:
            return "noise hides how many persons have more"
        if least <= 0:
            return f"at most {most}% of persons have more"
        if most >= 100:
            return f"at least {least}% of persons have more"
        return f"{least}% to {most}% of persons have more"

    @property
    def described(self) -> str:
        """How many persons there are, and how many of them have more rows than were kept."""
        both = math.ceil(math.sqrt(2) * self.half_width)
        more = "one row" if self.rows == 1 else f"{self.rows:,} rows"
        return (
            f"{_about(self.within + self.beyond, both)} in all; "
            f"{_about(self.beyond, self.half_width)} of them have more than {more} ({LEVEL:.0%})"
        )


def persons_counted(card: Mapping[str, Any]) -> PersonsCounted | None:
    """What a card says of how many persons there were; None where nobody counted them."""
    if PERSONS not in card or "ledger" not in card:
        return None
    budget = card["ledger"]["budget"]
    return PersonsCounted(
        **{name: float(card[PERSONS][name]) for name in ("within", "beyond", "deviation")},
        is_pure=budget["delta"] == 0,
        rows=budget["max_rows_per_person"],
    )


def _about(count: float, half: int) -> str:
    if count <= half:
        return f"at most {max(count, 0.0) + half:,.0f}"
    return f"about {count:,.0f} ± {half:,}"
