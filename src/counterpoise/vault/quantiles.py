"""Private quantiles of a numeric column, by recursive halving with the exponential mechanism.

The middle quantile is chosen first, with score -|rows below - q n| at each point of a public
grid between the bounds; it cuts the column in two, and the quantiles on either side are chosen
within their part. The parts of a level are disjoint, so a level costs one exponential mechanism
and m quantiles cost ceil(log2(m + 1)) of them. One record more changes the rows below by 0 or 1
and q n by q, so the score by at most 1; a replaced record is one less in a part and one more in
another. [Kaplan, Schnapp and Stemmer 2022]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.errors import VaultError
from counterpoise.vault.asked import probabilities_of, share_of
from counterpoise.vault.budget import Share
from counterpoise.vault.events import ExponentialDpEvent, SelfComposedDpEvent
from counterpoise.vault.noise import Noise
from counterpoise.vault.select import exponential_choice
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# The grid: this many equal steps between the bounds.
GRID_CELLS = 4096


@dataclass(frozen=True)
class NoisyQuantiles:
    """Quantiles of `column` in the unit box: 0 is its minimum, 1 its maximum."""

    column: str
    probabilities: tuple[float, ...]
    units: np.ndarray
    private: bool = True


def quantiles(
    vault: Vault, column: str, probabilities: Sequence[float], share: Share
) -> NoisyQuantiles:
    """Choose the quantiles of a numeric column; charges an exponential mechanism a level."""
    wanted = probabilities_of("probabilities", probabilities)
    if not vault.schema[column].is_numeric:
        raise VaultError(f"quantiles of {column!r}: expected a numeric or date column")
    levels = math.ceil(math.log2(len(wanted) + 1))
    epsilon = share_of(share).part(1 / levels).selection_epsilon
    event = SelfComposedDpEvent(ExponentialDpEvent(epsilon), levels)
    sensitivity = vault.budget.row_sensitivity(1.0)

    def look(storage: Storage, source: Noise) -> np.ndarray:
        # Rows below each grid point.
        below = np.concatenate([[0], np.cumsum(storage.unit_counts(column, GRID_CELLS))])

        def choose(first: int, last: int, part: tuple[float, ...]) -> list[int]:
            """Grid points for the probabilities in `part`, between the points first and last."""
            if not part:
                return []
            middle = len(part) // 2
            rows = below[last] - below[first]
            target = below[first] + part[middle] * rows
            points = np.arange(first, last + 1)
            scores = -np.abs(below[points] - target)
            # Every point of a stretch without rows has the same score; that is as it should be.
            cut = first + exponential_choice(source, scores, sensitivity, epsilon)
            left = tuple(q / part[middle] for q in part[:middle])
            right = tuple((q - part[middle]) / (1 - part[middle]) for q in part[middle + 1 :])
            return [*choose(first, cut, left), cut, *choose(cut, last, right)]

        return np.array(choose(0, GRID_CELLS, wanted))

    query = f"quantiles of {column}, {levels} levels of halving"
    points = vault._ask(query, event, look, {"probabilities": wanted})
    return NoisyQuantiles(column, wanted, points / GRID_CELLS, vault.private)
