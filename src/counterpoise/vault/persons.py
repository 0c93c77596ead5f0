"""Of how many persons the bound leaves rows out: those with more than k in the table, and the rest.

Where persons are bounded, all rows of a person come and go together, and here a person is one
record, however many those are. Let r(p) be the number of rows of person p in the table, before any
is let go. It depends on p's rows alone, and rows of nobody have no p, so the two counts

    h = (number of p with 1 <= r(p) <= k, number of p with r(p) > k)

are a histogram of persons: each is in exactly one of its cells, and no one else's rows can move
them. A person who is added or removed changes one cell by one: D2 = D1 = 1. One who is replaced
changes two at most, from the one to the other: D2 = sqrt(2), D1 = 2. k multiplies neither: this is
one contingency table of a budget with one row a person, and is noised and charged as that. Without
a column of persons nobody's rows come together, and the query is refused.
[PRIVACY: mechanisms; ground rule 13]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.errors import VaultError
from counterpoise.vault.asked import share_of
from counterpoise.vault.budget import Share
from counterpoise.vault.counting import count_noise
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault


@dataclass(frozen=True)
class NoisyPersons:
    """How many persons had all of their rows kept, how many had more, and the noise on each."""

    within: int
    beyond: int
    deviation: float  # standard deviation of the noise on each of the two; public
    private: bool = True


def persons(vault: Vault, share: Share) -> NoisyPersons:
    """Count the persons within the bound and beyond it; charges one event for both."""
    if not vault.bounds_people:
        raise VaultError(
            "persons: they are counted where a column says whose a row is; open the vault with "
            "person="
        )
    most = vault.budget.max_rows_per_person
    noise = count_noise(replace(vault.budget, max_rows_per_person=1), share_of(share))

    def look(storage: Storage, source: Noise) -> np.ndarray:
        return noise.add(source, storage.persons())

    query = f"persons with at most {most:,} row{'s' * (most > 1)}, and with more"
    within, beyond = vault._ask(query, noise.event, look)
    return NoisyPersons(int(within), int(beyond), noise.deviation, vault.private)
