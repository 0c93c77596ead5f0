"""Noisy counts: contingency tables over any sets of columns, asked for together.

One record is one count in each of k tables, so k tables have D2 = sqrt(k) and D1 = k when a
record is added or removed, sqrt(2k) and 2k when one is replaced. Noise goes on every cell of
the public domain, empty ones too: discrete Gaussian, or discrete Laplace for a pure budget.
[PRIVACY: mechanisms]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.errors import VaultError
from counterpoise.vault.asked import cliques_of, share_of
from counterpoise.vault.budget import Share
from counterpoise.vault.counting import count_noise
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# 2^27 cells of noise take a gigabyte; a table that large says nothing about anybody's data.
MOST_CELLS = 2**27


@dataclass(frozen=True)
class NoisyCounts:
    """A noised contingency table over `columns`, with the law of its noise."""

    columns: tuple[str, ...]
    values: np.ndarray  # one noisy count a cell, in the shape of the columns' codes
    deviation: float  # standard deviation of the noise on each cell; public
    law: str  # "gaussian" or "laplace"
    private: bool = True


def counts(vault: Vault, cliques: Sequence[Sequence[str]], share: Share) -> list[NoisyCounts]:
    """Count the rows in every cell of each clique; charges one event for all of them."""
    wanted, share = cliques_of("cliques", cliques), share_of(share)
    if not wanted:
        return []
    for clique in wanted:
        check_clique(vault, clique)
    noise = count_noise(vault.budget, share, len(wanted))

    def look(storage: Storage, source: Noise) -> np.ndarray:
        exact = storage.counts(wanted)
        return noise.add(source, np.concatenate([table.ravel() for table in exact]))

    noised = vault._ask(describe_cliques(wanted), noise.event, look, {"cliques": wanted})
    sizes = [math.prod(vault.schema.shape(clique)) for clique in wanted]
    parts = np.split(noised, np.cumsum(sizes)[:-1])
    return [
        NoisyCounts(
            clique,
            part.reshape(vault.schema.shape(clique)),
            noise.deviation,
            noise.law,
            vault.private,
        )
        for clique, part in zip(wanted, parts, strict=True)
    ]


def check_clique(vault: Vault, clique: tuple[str, ...]) -> None:
    """Refuse a clique that names a column twice, or has more cells than can be noised."""
    if not clique or len(set(clique)) != len(clique):
        raise VaultError(f"counts: expected different columns, not {clique}")
    cells = math.prod(vault.schema.shape(clique))
    if cells > MOST_CELLS:
        raise VaultError(
            f"counts of {', '.join(clique)}: {cells:,} cells are too many to noise; ask for fewer "
            "columns or fewer bins"
        )


def describe_cliques(cliques: Sequence[tuple[str, ...]]) -> str:
    """A short public name for a set of marginals.

    >>> describe_cliques([("age", "sex"), ("age",)])
    'counts of age x sex, age'
    """
    names = [" x ".join(clique) for clique in cliques]
    shown = ", ".join(names[:3])
    return f"counts of {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
