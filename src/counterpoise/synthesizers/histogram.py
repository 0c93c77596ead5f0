"""One table of all columns at once: for few columns, where nothing is lost but to noise.

Every cell of the full contingency table is counted with noise. A sum over m of its cells has
sqrt(m) times the noise of one, so that what is mostly asked for, tables of few columns, is known
worse than if it had been counted. With Gaussian noise T tables cost but sqrt(T) in noise: there
half of the share counts all tables of three columns, and one model is fitted to both, each answer
by its noise. Charge: one Gaussian event with D2 = 1, and one with D2 = sqrt(T); of a pure budget
one discrete Laplace event, D1 = 1.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from counterpoise.arguments import instance_of, settle, truth_value, whole_number
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

# The part of the share that tables of so many columns get, beside the full table.
PARTS_FRACTION = 0.5
PARTS_COLUMNS = 3
# More columns have so many such tables, and more cells are so many to fit, that it takes long.
MOST_COLUMNS_IN_PARTS = 8
MOST_CELLS_IN_PARTS = 1_000


@SYNTHESIZERS.register("histogram")
@dataclass(frozen=True)
class Histogram:
    """The full contingency table, when it has at most `most_cells` cells.

    With `parts`, half of the share counts all tables of three columns, where the noise is Gaussian
    and there are four to eight columns of at most 1,000 cells in all.
    """

    most_cells: int = 2_000_000
    parts: bool = True

    def __post_init__(self) -> None:
        settle(
            self,
            most_cells=whole_number("most_cells", self.most_cells),
            parts=truth_value("parts", self.parts),
        )

    def check(self, schema: Schema) -> None:
        """Refuse a schema with too many cells."""
        instance_of("schema", schema, Schema, "a Schema")
        cells = math.prod(schema.sizes)
        if cells > self.most_cells:
            raise MethodError(
                f"histogram: the table of all columns has {cells:,} cells, and at most "
                f"{self.most_cells:,} are counted; choose 'mst' or 'aim', or fewer bins"
            )

    def parts_of(self, schema: Schema, *, is_pure: bool) -> tuple[tuple[str, ...], ...]:
        """The tables that are counted beside the full one; none where they would not pay.

        >>> from counterpoise.schema import Column
        >>> schema = Schema([Column.boolean(name) for name in "abcd"])
        >>> [len(Histogram().parts_of(schema, is_pure=is_pure)) for is_pure in (False, True)]
        [4, 0]
        """
        has_parts = PARTS_COLUMNS < len(schema) <= MOST_COLUMNS_IN_PARTS
        if not self.parts or is_pure or not has_parts:
            return ()
        if math.prod(schema.sizes) > MOST_CELLS_IN_PARTS:
            return ()
        return tuple(itertools.combinations(schema.names, PARTS_COLUMNS))

    def fit(self, vault: Vault, share: Share) -> MarginalModel:
        """Count every cell, and the parts where there are any; charges the whole share."""
        check_request(vault, share)
        self.check(vault.schema)
        whole = domain_of(vault.schema).columns
        parts = self.parts_of(vault.schema, is_pure=share.pure)
        rest = share
        if parts:
            of_parts, rest = share.split(PARTS_FRACTION, 1 - PARTS_FRACTION)
        answers = list(vault.counts([whole], rest))
        if parts:
            answers += vault.counts(parts, of_parts)
        measured = [measurement_of(answer) for answer in answers]
        total = total_of(vault, measured)
        return fit_model(vault.schema, measured, total=total, private=vault.private)
