"""One table of all columns at once: for few columns, where nothing is lost but to noise.

Every cell of the full contingency table is counted with noise, and the nearest non-negative table
is kept. Charge: one Gaussian event with D2 = 1 (discrete Laplace, D1 = 1, for a pure budget).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from counterpoise.arguments import instance_of, settle, whole_number
from counterpoise.errors import MethodError
from counterpoise.schema import Schema
from counterpoise.synthesizers.marginal_model import (
    MarginalModel,
    domain_of,
    fit_model,
    measurement_of,
    total_of,
)
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request
from counterpoise.vault import Share, Vault


@SYNTHESIZERS.register("histogram")
@dataclass(frozen=True)
class Histogram:
    """The full contingency table, when it has at most `most_cells` cells."""

    most_cells: int = 2_000_000

    def __post_init__(self) -> None:
        settle(self, most_cells=whole_number("most_cells", self.most_cells))

    def check(self, schema: Schema) -> None:
        """Refuse a schema with too many cells."""
        instance_of("schema", schema, Schema, "a Schema")
        cells = math.prod(schema.sizes)
        if cells > self.most_cells:
            raise MethodError(
                f"histogram: the table of all columns has {cells:,} cells, and at most "
                f"{self.most_cells:,} are counted; choose 'mst' or 'aim', or fewer bins"
            )

    def fit(self, vault: Vault, share: Share) -> MarginalModel:
        """Count every cell; charges the whole share."""
        check_request(vault, share)
        self.check(vault.schema)
        domain = domain_of(vault.schema)
        measured = [measurement_of(answer) for answer in vault.counts([domain.columns], share)]
        total = total_of(vault, measured)
        return fit_model(vault.schema, measured, total=total, private=vault.private)
