"""The number of private rows: noised when it is private, as it is when it is public.

Adding or removing a record changes it by one. When records are replaced, the size is public
knowledge by definition, and asking for it is free. [PRIVACY: ground rule 1]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.errors import BudgetError
from counterpoise.vault.asked import share_of
from counterpoise.vault.budget import REPLACE, Share
from counterpoise.vault.counting import count_noise
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault


@dataclass(frozen=True)
class NoisyTotal:
    """The number of rows, and the standard deviation of its noise."""

    value: int
    deviation: float
    private: bool = True


def total(vault: Vault, share: Share | None = None) -> NoisyTotal:
    """Count the rows; charges one event under add/remove, nothing under replace-one."""
    if vault.budget.neighbours is REPLACE:
        return NoisyTotal(vault._public_rows(), 0.0, vault.private)
    if share is None:
        raise BudgetError("the number of rows is private under add/remove: state a share for it")
    noise = count_noise(vault.budget, share_of(share))

    def look(storage: Storage, source: Noise) -> np.ndarray:
        return noise.add(source, np.array([storage.rows()]))

    noised = vault._ask("number of rows", noise.event, look)
    vault.counted_rows = NoisyTotal(int(noised[0]), noise.deviation, vault.private)
    return vault.counted_rows
