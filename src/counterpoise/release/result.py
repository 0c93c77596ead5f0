"""A release: the synthetic table, its weights, and the card that says how it was made."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.schema import Schema
from counterpoise.vault import Ledger

WEIGHT = "weight"


@dataclass(frozen=True)
class Release:
    """What leaves the curator: nothing in it depends on private rows except through noise.

    `table` has the columns of the schema and `weight`, which averages to one. `card` says what
    was spent, by which methods, and what the weights look like.
    """

    table: pd.DataFrame
    schema: Schema
    card: dict[str, Any]

    @property
    def weights(self) -> np.ndarray:
        """The weight of every row."""
        return self.table[WEIGHT].to_numpy()

    @property
    def private(self) -> bool:
        """False when the noise was drawn from a seed: such a release is for teaching only."""
        return bool(self.card["ledger"]["private"])

    @property
    def ledger(self) -> Ledger:
        """What was spent, as a ledger."""
        return Ledger.from_dict(self.card["ledger"])

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the release as a Data Package; the folder is there in full or not at all."""
        from counterpoise.release.bundle import write_bundle

        return write_bundle(self, Path(path), overwrite=overwrite)

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE (seeded)"
        columns = len(self.schema)
        return f"<Release: {len(self.table):,} rows x {columns} columns{stamp}>"
