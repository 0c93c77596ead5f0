"""Private bounds of a column that the schema leaves open, from a noisy geometric histogram.

The cells are public: powers of two on either side of zero for numbers, calendar years for
dates. Each is counted with noise, and the bounds are the outermost cells whose noisy count
stands clear of the noise. Values beyond them will be clamped. The charge is that of one
contingency table. [PRIVACY: ground rule 4; Dwork and Lei 2009 for the idea]
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.errors import VaultError
from counterpoise.schema import Column
from counterpoise.vault.asked import share_of
from counterpoise.vault.budget import Share
from counterpoise.vault.counting import count_noise
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# The chance that any empty cell stands above the threshold.
_FALSE_ALARM = 0.01

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
        return noise.add(source, storage.provisional_counts(provisional))

    noised = vault._ask(f"bounds of {column}", noise.event, look)
    threshold = noise.exceeded_by_chance(provisional.cells, _FALSE_ALARM)
    occupied = np.flatnonzero(noised > threshold)
    if len(occupied) == 0:
        raise VaultError(
            f"bounds of {column!r}: no range stands clear of the noise; state the bounds in the "
            "schema, or give the domain a larger share"
        )
    assert isinstance(provisional.bins, tuple)
    edges = provisional.bins
    return NoisyBounds(column, edges[occupied[0]], edges[occupied[-1] + 1], vault.private)


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
