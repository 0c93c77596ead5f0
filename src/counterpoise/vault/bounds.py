"""Private bounds of a column that the schema leaves open, from a noisy geometric histogram.

The cells are public: powers of two on either side of zero for numbers, calendar years for
dates. Each is counted with noise, once, and the charge is that of one contingency table; what
follows is arithmetic on the noisy counts. The bounds are the outermost cells that stand clear of
the noise, alone or in sum with their neighbours: rows that are thinly spread beside a spike, as
amounts are beside many zeros, are clear together long before any cell of theirs is. Values beyond
the bounds will be clamped. [PRIVACY: ground rule 4; Dwork and Lei 2009 for the idea]
"""

from __future__ import annotations

import datetime
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.errors import CounterpoiseWarning, VaultError
from counterpoise.schema import Column
from counterpoise.vault.asked import share_of
from counterpoise.vault.budget import Share
from counterpoise.vault.counting import CountNoise, count_noise
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# The chance that any empty cell, or run of empty cells, stands above its threshold.
_FALSE_ALARM = 0.01
# Runs of so many cells are summed, besides single cells.
_RUNS = (2, 4, 8, 16)
# Next to cells that are clear, this part of their threshold is enough.
_NEARBY = 0.5

_ZERO_ALONE = (
    "bounds of {!r}: nothing but zeros stands clear of the noise, so the bounds are -1 and 1 and "
    "larger values, if there are any, will be cut; state the bounds in the schema, or give the "
    "domain a larger share"
)

_LARGEST_POWER = 40
_SMALLEST_POWER = -20
_YEARS = range(1850, 2151)


@dataclass(frozen=True)
class NoisyBounds:
    """Bounds of `column`, in the column's own type."""

    column: str
    minimum: Any
    maximum: Any
    private: bool = True


def bounds(vault: Vault, column: str, share: Share) -> NoisyBounds:
    """Estimate the bounds of a numeric or date column; charges one contingency table."""
    provisional = _provisional_column(vault.schema[column])
    vault._require_unsettled()
    noise = count_noise(vault.budget, share_of(share))

    def look(storage: Storage, source: Noise) -> np.ndarray:
        [exact] = storage.provisional_counts([provisional])
        exact = exact[: provisional.cells]
        return noise.add(source, exact)

    noised = vault._ask(f"bounds of {column}", noise.event, look)
    found = clear_cells(noised, noise)
    if found is None:
        raise VaultError(
            f"bounds of {column!r}: no range stands clear of the noise; state the bounds in the "
            "schema, or give the domain a larger share"
        )
    assert isinstance(provisional.bins, tuple)
    minimum, maximum = _ends(provisional, *found)
    if _is_zero_alone(minimum, maximum):
        # Arithmetic on a noisy answer that was paid for: as public as the bounds themselves.
        warnings.warn(_ZERO_ALONE.format(column), CounterpoiseWarning, stacklevel=2)
        minimum, maximum = -type(maximum)(1), type(maximum)(1)
    return NoisyBounds(column, minimum, maximum, vault.private)


def clear_cells(noised: np.ndarray, noise: CountNoise) -> tuple[int, int] | None:
    """The outermost cells that hold rows, from noisy counts alone; None if none is clear.

    >>> from counterpoise.vault.events import GaussianDpEvent
    >>> noise = CountNoise("gaussian", 10.0, GaussianDpEvent(10.0))
    >>> clear_cells(np.array([0, 900, 4, -9, 31, 35, 32, 33, 3]), noise)
    (1, 7)
    """
    runs = [length for length in (1, *_RUNS) if length <= len(noised)]
    chance = _FALSE_ALARM / len(runs)
    spans = []
    for length in runs:
        sums = np.convolve(noised, np.ones(length, dtype=noised.dtype), "valid")
        threshold = noise.exceeded_by_chance(len(sums), chance, length)
        spans += [
            (int(start), int(start) + length - 1) for start in np.flatnonzero(sums > threshold)
        ]
    if not spans:
        return None
    # A run beside a spike is clear because of the spike. So the last cell that holds rows is the
    # end of the run that starts latest, and of those the shortest; likewise for the first cell.
    last = min((-start, end) for start, end in spans)[1]
    first = -min((end, -start) for start, end in spans)[1]
    nearby = _NEARBY * noise.exceeded_by_chance(len(noised), chance)
    while first > 0 and noised[first - 1] > nearby:
        first -= 1
    while last + 1 < len(noised) and noised[last + 1] > nearby:
        last += 1
    return first, last


def _ends(provisional: Column, first: int, last: int) -> tuple[Any, Any]:
    """The bounds of a range of cells; a range that ends in the cell around zero ends at zero."""
    edges: Any = provisional.bins
    minimum, maximum = edges[first], edges[last + 1]
    if provisional.kind == "continuous" and first != last:
        smallest = 2.0**_SMALLEST_POWER
        minimum = 0.0 if minimum == -smallest else minimum
        maximum = 0.0 if maximum == smallest else maximum
    return minimum, maximum


def _is_zero_alone(minimum: Any, maximum: Any) -> bool:
    """Whether nothing but zeros, or what is next to nothing, was found."""
    if isinstance(maximum, datetime.date):
        return False
    smallest = 1 if isinstance(maximum, int) else 2.0**_SMALLEST_POWER
    return bool(-smallest <= minimum and maximum <= smallest)


def _provisional_column(column: Column) -> Column:
    """The column with the public cells in which its bounds are sought."""
    edges: tuple[Any, ...]
    match column.kind:
        case "continuous":
            powers = [2.0**power for power in range(_SMALLEST_POWER, _LARGEST_POWER + 1)]
            edges = (*(-edge for edge in reversed(powers)), *powers)
        case "integer":
            whole = [2**power for power in range(_LARGEST_POWER + 1)]
            edges = (*(-edge for edge in reversed(whole)), 0, *whole)
        case "date":
            edges = tuple(datetime.date(year, 1, 1) for year in _YEARS)
        case "datetime":
            edges = tuple(datetime.datetime(year, 1, 1) for year in _YEARS)
        case _:
            raise VaultError(f"bounds of {column.name!r}: expected a numeric or date column")
    # Nulls must not count towards a bound, so they keep a code of their own here.
    return replace(
        column, minimum=edges[0], maximum=edges[-1], bins=edges, nullable=True, sources=()
    )
