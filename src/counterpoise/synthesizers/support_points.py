"""Support points: a few private points that stand for a table, and a density around them.

Single columns are counted first; rows that are drawn from them, column by column, are a public pool
of candidates, and their sum says how many rows there are. Points are then chosen out of the pool by
their energy against the private rows, one after the other (see `vault.points`): the points spread
over the table as its rows do, and see how columns go together, which the pool does not. Asked for
as many rows as there are points, the model gives the points themselves; asked for more, it draws
from a kernel density around them. [Mak and Joseph 2018, Support points; PRIVACY: private support
points]

Charge: one Gaussian event over d marginals (discrete Laplace for a pure budget), one exponential
mechanism a point, and one event for the bandwidth where it is to be found. With
`sampler="metropolis"` there is no pool: a chain goes anywhere, the counts only say how many rows
there are, and the guarantee is one of the limit of a chain without end, which ledger and card say.

What is known of its error: the noise of the counts is no part of the points, and a choice out of a
pool has no noise that could be drawn again, so there is no `redrawn_tables`. Weights that measure
for themselves, such as moment weights, have replicates of their own measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from counterpoise.arguments import one_of, real_number, settle, whole_number
from counterpoise.errors import MethodError
from counterpoise.schema import Coded, Schema
from counterpoise.schema.unit_places import coded_at, decode_at, unspread
from counterpoise.synthesizers.independent import Independent, IndependentModel
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request, checked_draw
from counterpoise.vault import REPLACE, PointDistance, Share, Vault, checked_width

# Points when nobody says how many, and the most rows that are taken to be asked for as points.
POINTS, MOST_ASKED_AS_POINTS = 100, 1_000
# The part of the share that the counts get, where they make the pool, and where they only say how
# many rows there are; and the part of a bandwidth that is to be found.
POOL_PART, ROWS_PART, BANDWIDTH_PART = 0.2, 0.05, 0.05
# A bandwidth of its own accord, in parts of a column's range, and those among which one is found.
BANDWIDTH = 0.05
BANDWIDTHS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
FOUND = {"selected": "exponential", "likelihood": "laplace"}


@SYNTHESIZERS.register("support-points")
@dataclass(frozen=True)
class SupportPoints:
    """A few points chosen by their energy, and a density around them.

    `points` is their number; in a release it is by default that of the rows, where those are asked
    for and at most 1,000, else 100. `sampler` is "exact", out of a pool of `candidates`, or
    "metropolis", by a chain of so many `moves`, whose guarantee is that of its limit. `norm` is
    that of distances over columns, 1 or 2; with a `width` they are those of a bounded kernel.
    `repeats` draws so many sets of points, each with its part of the share. `bandwidth` is that of
    the density, in parts of a column's range: a number, "selected" by the exponential mechanism, or
    of the largest "likelihood" with Laplace noise. `pool_part` of the share goes to the counts, by
    default a fifth, or a twentieth where no pool is made of them. `seed` is that of the pool.
    """

    points: int | None = None
    sampler: str = "exact"
    candidates: int = 5_000
    moves: int = 100_000
    norm: int = 2
    width: float | None = None
    repeats: int = 1
    bandwidth: float | str = BANDWIDTH
    pool_part: float | None = None
    seed: int = 0

    needs_rows = True

    def __post_init__(self) -> None:
        if self.points is not None:
            settle(self, points=whole_number("points", self.points, most=100_000))
        settle(
            self,
            sampler=one_of("sampler", self.sampler, ("exact", "metropolis")),
            candidates=whole_number("candidates", self.candidates, most=1_000_000),
            moves=whole_number("moves", self.moves, most=10**9),
            norm=whole_number("norm", self.norm, 1, 2),
            width=None if self.width is None else checked_width("width", self.width, MethodError),
            repeats=whole_number("repeats", self.repeats, most=1_000),
            bandwidth=_checked_bandwidth(self.bandwidth),
            seed=whole_number("seed", self.seed, 0),
        )
        if self.pool_part is not None:
            part = real_number("pool_part", self.pool_part, "a part up to 0.9", above=0, below=0.9)
            settle(self, pool_part=part)
        if self.sampler == "metropolis" and self.moves < (self.points or POINTS):
            raise MethodError("moves: expected one for every point at least, and far more")

    def for_rows(self, rows: int | None) -> SupportPoints:
        """The method with its number of points settled, for a release of so many rows.

        >>> SupportPoints().for_rows(50).points, SupportPoints().for_rows(None).points
        (50, 100)
        """
        if self.points is not None:
            return self
        few = rows is not None and rows <= MOST_ASKED_AS_POINTS
        return replace(self, points=rows if few else POINTS)

    @property
    def counts_part(self) -> float:
        """The part of the share that goes to the counts, where there is anything to count."""
        return self.pool_part or (POOL_PART if self.sampler == "exact" else ROWS_PART)

    def fit(self, vault: Vault, share: Share) -> SupportPointsModel:
        """Count columns, choose the points, and the bandwidth; charges the whole share."""
        check_request(vault, share)
        is_exact = self.sampler == "exact"
        count, distance = self.points or POINTS, PointDistance(self.norm, self.width)
        found_part = 0.0 if isinstance(self.bandwidth, float) else BANDWIDTH_PART
        # Where no pool is made, and the number of rows is public, there is nothing to count.
        is_counted = is_exact or vault.budget.neighbours is not REPLACE
        counts_part = self.counts_part if is_counted else 0.0
        pool = None
        if is_exact:
            columns = Independent().fit(vault, share.part(counts_part))
            rows, pool = columns.rows, self._pool(columns)
        else:
            rows = max(1, vault.total(share.part(counts_part) if is_counted else None).value)
        chosen = vault.select_points(
            count,
            share.part(1 - counts_part - found_part),
            candidates=pool,
            rows=rows,
            sampler=self.sampler,
            distance=distance,
            repeats=self.repeats,
            moves=max(self.moves, count),
        )
        width = self.bandwidth
        if isinstance(width, str):
            law = FOUND[width]
            width = vault.select_bandwidth(chosen.points, BANDWIDTHS, share.part(found_part), law)
        found = chosen.points
        return SupportPointsModel(
            vault.schema, found.codes, found.units, width, rows, vault.private
        )

    def _pool(self, columns: IndependentModel) -> Coded:
        """Rows of the noisy marginals, column by column."""
        drawn = columns.sample(self.candidates, seed=self.seed)
        return columns.schema.encode(drawn)


@dataclass(frozen=True, eq=False)
class SupportPointsModel:
    """The points, as codes and units, and the width of the density around them."""

    schema: Schema
    codes: np.ndarray
    units: np.ndarray
    bandwidth: float
    rows: int
    private: bool = True

    @cached_property
    def points(self) -> Coded:
        """The points themselves."""
        return Coded(self.schema, self.codes, self.units)

    @property
    def coreset(self) -> int:
        """The number of points: asked for as many rows or fewer, the model gives points."""
        return len(self.codes)

    def sample(self, rows: int, seed: int | None = None, format: str = "pandas") -> Any:
        """The points, or where more rows are asked for than there are, rows of the density."""
        rows, seed, format = checked_draw(rows, seed, format)
        generator = np.random.default_rng(seed)
        count = len(self.codes)
        # Every point as often as another, but for the last few.
        order = [generator.permutation(count) for _ in range(-(-rows // count))]
        chosen = np.concatenate(order)[:rows] if order else np.empty(0, dtype=np.int64)
        if rows == count:
            chosen = np.arange(count)
        drawn = self.points.take(chosen)
        if rows > count:
            drawn = self._spread(drawn, generator)
        return decode_at(drawn, generator, format)

    def _spread(self, drawn: Coded, generator: np.random.Generator) -> Coded:
        """Rows around points: normal steps, folded at the bounds, and some categories redrawn."""
        units, codes = drawn.spread().units.copy(), drawn.codes.copy()
        for position, column in enumerate(self.schema):
            if column.kind == "categorical":
                other = generator.random(len(drawn)) < min(self.bandwidth, 1.0)
                fresh = generator.integers(0, column.size, len(drawn))
                codes[:, position] = np.where(other, fresh, codes[:, position])
                continue
            moved = units[:, position] + self.bandwidth * generator.normal(size=len(drawn))
            folded = np.abs(np.mod(moved + 1, 2.0) - 1)
            units[:, position] = unspread(column, folded)
        return coded_at(self.schema, units, codes)

    def to_arrays(self) -> Mapping[str, np.ndarray]:
        """The points and the width."""
        return {
            "codes": np.asarray(self.codes),
            "units": np.asarray(self.units),
            "bandwidth": np.array(self.bandwidth),
            "rows": np.array(self.rows),
        }

    @classmethod
    def from_arrays(
        cls, schema: Schema, arrays: Mapping[str, np.ndarray], private: bool = True
    ) -> SupportPointsModel:
        """The inverse of `to_arrays`."""
        codes = np.asfortranarray(arrays["codes"])
        units = np.asfortranarray(arrays["units"])
        return cls(schema, codes, units, float(arrays["bandwidth"]), int(arrays["rows"]), private)


def _checked_bandwidth(value: Any) -> float | str:
    if isinstance(value, str):
        return str(one_of("bandwidth", value, tuple(FOUND)))
    return real_number("bandwidth", value, "a positive number, or a way to find one", above=0)
