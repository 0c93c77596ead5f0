"""Tables that a tilt leaves alone: what the synthesizer counted moves no further than its noise.

A tilt by moments makes means and relations right, and moves whole cells of rows to do so. Where the
synthesizer counted those cells itself, and well, they were right before: a relation that is lost
within the cells is then made up for between them, and the tables suffer for it. So after the tilt
the weights are raked, table by table, until no cell that was counted has moved by more than the
deviation of the noise on its count:

    total_c <- before_c + clip(total_c - before_c, -s, s),
    s^-2 = sum over tables t of (k s_t^2)^-1,

in which every counted table counts that the cell is a sum of k cells of. So a cell is at most as
far off again as it was by its noise. Tables of few columns, which are known best, come last, so
that no other undoes it. Where the noise is large, on small tables or with a small budget, hardly
anything is held back; where it is small, what the tilt has to mend is mended within the cells. All
of it is post-processing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.schema import Schema
from counterpoise.synthesizers.redraw import cell_totals, multiply_by_cell

# How many deviations of its noise a cell may move.
DEVIATIONS = 1.0
# What a tilt has all but emptied is not filled by the few rows that are left of it.
MOST_FACTOR = 1e3


@dataclass(frozen=True, eq=False)
class HeldTable:
    """One table that is held: how far its cells may move, and what that makes of a tilt."""

    columns: tuple[str, ...]
    most: float  # that a cell may move, as a part of all rows
    log_factors: np.ndarray  # one a cell, by which a row's tilted weight changes


@dataclass(frozen=True, eq=False)
class HeldTables:
    """The tables that a tilt has to be held back from, in the order in which that is done."""

    schema: Schema
    tables: tuple[HeldTable, ...] = ()

    @classmethod
    def of(
        cls, schema: Schema, codes: np.ndarray, weights: np.ndarray, synthesizer: Any
    ) -> HeldTables:
        """Those that tilted weights move too far, on rows of a synthesizer.

        The weights average to one. A synthesizer that does not say what it counted has none.
        """
        found, held = [], weights.copy()
        for columns, deviation in sorted(_deviations(schema, synthesizer).items(), key=_by_size):
            cells, size = _cells(schema, codes, columns)
            most = DEVIATIONS * deviation / max(1, synthesizer.rows)
            before = np.bincount(cells, minlength=size)
            factors = _factors(before, np.bincount(cells, held, minlength=size), most * len(codes))
            if np.any(factors != 1):
                held *= factors[cells]
                with np.errstate(divide="ignore"):
                    found.append(HeldTable(columns, most, np.log(factors)))
        return cls(schema, tuple(found))

    def log_factors(self, codes: np.ndarray) -> np.ndarray:
        """What is to be added to the log-weights of a tilt, a row each."""
        total = np.zeros(len(codes))
        for table in self.tables:
            total += table.log_factors[_cells(self.schema, codes, table.columns)[0]]
        return total

    def hold(self, codes: np.ndarray, base: np.ndarray, tilted: np.ndarray) -> np.ndarray:
        """Tilted weights, a column a replicate, held back from the tables of their base weights.

        They are changed in place, and average to one as the base weights do.
        """
        self.factors(codes, base, tilted)
        return tilted

    def factors(
        self, codes: np.ndarray, base: np.ndarray, tilted: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """The factors by which `hold` holds weights back, which it does: cells x R, one a table."""
        found = []
        for table in self.tables:
            cells, size = _cells(self.schema, codes, table.columns)
            before, after = cell_totals(cells, size, base), cell_totals(cells, size, tilted)
            found.append(_factors(before, after, table.most * len(codes)))
            multiply_by_cell(tilted, cells, found[-1])
        self._normalise(tilted)
        return tuple(found)

    def apply(
        self, codes: np.ndarray, tilted: np.ndarray, factors: tuple[np.ndarray, ...]
    ) -> np.ndarray:
        """Hold weights of other rows back by factors that were found, in place."""
        for table, each in zip(self.tables, factors, strict=True):
            multiply_by_cell(tilted, _cells(self.schema, codes, table.columns)[0], each)
        self._normalise(tilted)
        return tilted

    def _normalise(self, tilted: np.ndarray) -> None:
        if self.tables:
            tilted *= len(tilted) / np.maximum(tilted.sum(axis=0, dtype=float), 1e-300)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The tables as named arrays."""
        described = [[list(table.columns), table.most] for table in self.tables]
        return {"held": np.array(json.dumps(described))} | {
            f"held_{place}": table.log_factors for place, table in enumerate(self.tables)
        }

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> HeldTables:
        """The inverse of `to_arrays`; none where there are none."""
        described = json.loads(str(arrays.get("held", "[]")))
        tables = [
            HeldTable(tuple(columns), float(most), arrays[f"held_{place}"])
            for place, (columns, most) in enumerate(described)
        ]
        return cls(schema, tuple(tables))


def _deviations(schema: Schema, synthesizer: Any) -> dict[tuple[str, ...], float]:
    """How well the cells of each set of columns that was counted are known, by all answers."""
    answers = getattr(synthesizer, "measured", ())
    sets = {tuple(answer.columns) for answer in answers}
    precision = dict.fromkeys(sets, 0.0)
    for answer in answers:
        size = math.prod(schema.shape(answer.columns))
        for columns in sets:
            if set(columns) <= set(answer.columns):
                # A cell is a sum of so many of this answer's, each with its noise.
                summed = size / math.prod(schema.shape(columns))
                precision[columns] += 1 / (summed * answer.scale**2)
    return {columns: found**-0.5 for columns, found in precision.items()}


def _by_size(item: tuple[tuple[str, ...], float]) -> tuple[int, tuple[str, ...]]:
    """Tables of many columns first."""
    return -len(item[0]), item[0]


def _cells(schema: Schema, codes: np.ndarray, columns: tuple[str, ...]) -> tuple[np.ndarray, int]:
    """The cell of each row in the table of these columns, and how many cells it has."""
    shape = schema.shape(columns)
    places = tuple(codes[:, schema.index(name)] for name in columns)
    return np.ravel_multi_index(places, shape), int(np.prod(shape))


def _factors(before: np.ndarray, after: np.ndarray, most: float) -> np.ndarray:
    """By what the totals of cells have to change, so that none has moved by more than this."""
    wanted = np.maximum(before + np.clip(after - before, -most, most), 0.0)
    factors = np.divide(wanted, after, out=np.ones(after.shape), where=after > 0)
    return np.minimum(factors, MOST_FACTOR)
