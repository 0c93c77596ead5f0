"""Private categories of a column that the schema does not list: the frequent ones.

Every value that occurs is counted with Gaussian noise, and listed when its noisy count passes
a threshold. A value that only one person has is listed with probability at most delta, which is
set aside from the budget's delta; for values that both neighbouring tables have, the counts
cost one Gaussian event. [Korolova et al. 2009; PRIVACY: ground rule 4]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.stats import norm

from counterpoise.arguments import real_number
from counterpoise.errors import VaultError
from counterpoise.schema.rules import is_writable
from counterpoise.vault.asked import share_of
from counterpoise.vault.budget import REPLACE, Share
from counterpoise.vault.events import GaussianDpEvent
from counterpoise.vault.noise import Noise, check_scale
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# With less the quantile of a threshold is infinite, and no list is any better hidden.
LEAST_DELTA = 1e-200


@dataclass(frozen=True)
class NoisyCategories:
    """The categories of `column` whose noisy count passed `threshold`, in sorted order."""

    column: str
    values: tuple[str, ...]
    threshold: int
    private: bool = True


def categories(vault: Vault, column: str, share: Share, delta: float) -> NoisyCategories:
    """List the frequent values of a categorical column; charges a Gaussian event and `delta`."""
    if vault.schema[column].is_numeric:
        raise VaultError(f"categories of {column!r}: expected a categorical column")
    expected = f"a delta between {LEAST_DELTA:g} and 1"
    delta = real_number(
        f"categories of {column!r}", delta, expected, VaultError, above=LEAST_DELTA, below=1
    )
    vault._require_unsettled()
    l2_sensitivity, _ = vault.budget.count_sensitivity()
    scale = share_of(share).gaussian_scale(l2_sensitivity)
    check_scale(scale)
    threshold = _threshold(scale, delta, vault.budget.max_rows_per_person, vault.budget.neighbours)
    event = GaussianDpEvent(scale / l2_sensitivity)
    # What no schema can list, such as half of a surrogate pair, stays unlisted.
    taken = vault.schema.missing_values

    def look(storage: Storage, source: Noise) -> list[str]:
        values, exact = storage.distinct(column)
        # In an order of their own: that of a scan may differ from one to the next.
        order = sorted(range(len(values)), key=values.__getitem__)
        listed = source.gaussian(exact[order], scale) >= threshold
        return [
            values[place]
            for place, keep in zip(order, listed, strict=True)
            if keep and is_writable(values[place]) and values[place] not in taken
        ]

    kept = vault._ask(f"categories of {column}", event, look, delta=delta)
    return NoisyCategories(column, tuple(kept), threshold, vault.private)


def _threshold(scale: float, delta: float, rows: int, neighbours: object) -> int:
    """The least T for which values of one person alone pass with probability at most delta.

    A person has at most `rows` values, each at most `rows` times, so it is enough that
    rows * P(rows + Z >= T) <= delta; a replaced person has such values on both sides. The tail
    of the discrete Gaussian at an integer t is at most that of the continuous one at t - 1
    (Canonne, Kamath and Steinke 2020, proposition 25), from t = 1 on: no delta makes T less.
    """
    values = rows * (2 if neighbours is REPLACE else 1)
    return rows + 1 + math.ceil(scale * max(0.0, float(norm.isf(delta / values))))
