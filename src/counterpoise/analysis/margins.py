"""Margins that are known of a target, as values: shares of cells, and means; and what they ask.

A margin finds its cells in the rows of a release and makes of them a condition on weights, for
raking. Where it states no share of null, its shares are of the rows that are not null, as
everywhere in this room, and as many rows stay null as there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from counterpoise.analysis.columns import Scale, codes, numbers, one_column
from counterpoise.analysis.intervals import Interval
from counterpoise.analysis.raking import indicators
from counterpoise.errors import AnalysisError

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# Shares that add up to one but for this were rounded by the computer, not by the office.
ROUNDING = 1e-6

# A category that is not stated has a share of zero where rows of less than this part of the weight
# have it, as noise gives to one that nobody has; a round number, not studied. More is an oversight.
UNSTATED = 0.01

Part = Any  # a category, an Interval, or None for null


@dataclass(frozen=True, eq=False)
class Condition:
    """What a margin asks of weights: means of features, which equal `keys` make equal.

    `targets` are those among the rows that count; of the others there stay as many as are, and the
    last feature is their share. `zero` are rows that get no weight. `labels` name the features,
    and a mean m of one stands for `centre + unit * m` of the column.
    """

    name: str
    labels: tuple[str, ...]
    features: sparse.csr_array
    keys: np.ndarray
    targets: np.ndarray
    counts: np.ndarray
    zero: np.ndarray
    centre: float = 0.0
    unit: float = 1.0

    def targets_of(self, weights: np.ndarray) -> np.ndarray:
        """The means that all features are to have, of weights that are to be raked."""
        kept = float(weights[~self.counts].sum() / weights.sum())
        return np.append(self.targets * (1 - kept), kept)

    def found(self, weights: np.ndarray) -> np.ndarray:
        """What weights have now, as shares or as the mean; nothing of no rows."""
        inside = weights * self.counts
        whole = float(inside.sum())
        sums = self.features[:, : len(self.targets)].T @ inside
        means = sums / whole if whole > 0 else np.zeros(len(self.targets))
        return np.asarray(self.centre + self.unit * means)


@dataclass(frozen=True)
class Margin:
    """The shares of cells of one column or of several together; `people` of counts, else None."""

    columns: tuple[str, ...]
    cells: tuple[tuple[Part, ...], ...]
    shares: tuple[float, ...]
    people: float | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return " x ".join(map(repr, self.columns))

    def to_dict(self, release: Release) -> dict[str, Any]:
        """The margin as JSON values; `read_margins` reads a list of them."""
        cells = [_written(release, self.columns, cell) for cell in self.cells]
        return {"columns": list(self.columns), "cells": cells, "shares": list(self.shares)}

    def condition(self, release: Release, weights: np.ndarray, used: np.ndarray) -> Condition:
        """What it asks of rows with these weights; `used` are those with some in any replicate."""
        states_null = any(None in cell for cell in self.cells)
        unnamed = np.zeros(len(used), bool)
        rows: np.ndarray = np.zeros(len(used), dtype=np.int64)
        is_null = np.zeros(len(used), bool)
        places: np.ndarray = np.zeros(len(self.cells), dtype=np.int64)
        for place, name in enumerate(self.columns):
            parts = list(dict.fromkeys(cell[place] for cell in self.cells))
            own, nulls = _part_codes(release, name, parts)
            is_null |= nulls
            unnamed |= (own < 0) & ~nulls & (not one_column(release, name).is_numeric)
            rows = np.where((rows < 0) | (own < 0), -1, rows * len(parts) + own)
            places = places * len(parts) + [parts.index(cell[place]) for cell in self.cells]
        order = np.argsort(places)
        at = np.minimum(np.searchsorted(places, rows, sorter=order), len(places) - 1)
        cell_of = np.where(places[order][at] == rows, order[at], -1)
        counts = np.ones(len(used), bool) if states_null else ~is_null
        unnamed &= counts
        if weights[unnamed].sum() >= UNSTATED * weights.sum():
            unnamed[:] = False
        outside = np.flatnonzero(used & counts & (cell_of < 0) & ~unnamed)
        if len(outside):
            row = release.table.iloc[int(outside[0])]
            values = [None if pd.isna(row[name]) else row[name] for name in self.columns]
            raise AnalysisError(
                f"margins: {self.name} states no share for {shown_cell(values)}, which rows have; "
                "state all, and 0 for what should be left out"
            )
        shares = np.array(self.shares)
        coded = np.where(counts, cell_of, len(shares))
        return Condition(
            name=self.name,
            labels=tuple(shown_cell(_written(release, self.columns, cell)) for cell in self.cells),
            features=indicators(coded, len(shares) + 1),
            keys=coded + 1,
            targets=shares,
            counts=counts,
            zero=unnamed | ((coded >= 0) & np.isin(coded, np.flatnonzero(shares == 0))),
        )


@dataclass(frozen=True)
class Mean:
    """The mean of a column, on its numeric scale, over the rows that are not null."""

    columns: tuple[str]
    value: float
    people: None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return repr(self.columns[0])

    def to_dict(self, release: Release) -> dict[str, Any]:
        """The mean as JSON values."""
        return {"columns": list(self.columns), "mean": self.written(release, self.value)}

    def written(self, release: Release, value: float) -> float | str:
        """A mean as JSON has it: a number, or the text of a date."""
        column = one_column(release, self.columns[0])
        if column.kind not in ("date", "datetime"):
            return value
        return str(Scale(column.kind).value(value).isoformat())

    def condition(self, release: Release, weights: np.ndarray, used: np.ndarray) -> Condition:
        """What it asks of a release's rows: a mean of zero of the distance from it."""
        found = numbers(release, self.columns[0])
        distances = np.where(found.present, found.values - self.value, 0.0)
        unit = float(np.abs(distances).max(initial=0.0)) or 1.0
        _, keys = np.unique(np.where(found.present, distances, np.inf), return_inverse=True)
        features = np.stack([distances / unit, ~found.present], axis=1)
        return Condition(
            name=self.name,
            labels=("the mean",),
            features=sparse.csr_array(features),
            keys=keys,
            targets=np.zeros(1),
            counts=found.present,
            zero=np.zeros(len(used), bool),
            centre=self.value,
            unit=unit,
        )


Known = Margin | Mean


def people_of(margins: Sequence[Known]) -> float | None:
    """The number of people that margins of counts are of; None where none has counts."""
    counted = [each for each in margins if each.people is not None]
    for each in counted[1:]:
        assert each.people is not None and counted[0].people is not None
        if not math.isclose(each.people, counted[0].people, rel_tol=ROUNDING):
            raise AnalysisError(
                f"margins: {counted[0].name} counts {counted[0].people:,.0f} people and "
                f"{each.name} {each.people:,.0f}; state counts of the same people, or shares"
            )
    return counted[0].people if counted else None


def _part_codes(release: Release, name: str, parts: list[Part]) -> tuple[np.ndarray, np.ndarray]:
    """Which part every row of a column has, -1 for none of them; and which rows are null."""
    column = one_column(release, name)
    found = np.full(len(release.table), -1, dtype=np.int64)
    if column.is_numeric:
        values = numbers(release, name)
        nulls = ~values.present
        for place, part in enumerate(parts):
            if part is not None:
                found[part.holds(values.values) & ~nulls] = place
    else:
        coded = codes(release, name)
        nulls = coded.codes < 0
        place_of = {repr(part): place for place, part in enumerate(parts) if part is not None}
        by_code = np.array([place_of.get(repr(label), -1) for label in coded.labels])
        found = np.where(nulls, -1, by_code[coded.codes])
    if None in parts:
        found[nulls] = parts.index(None)
    return found, nulls


def _written(release: Release, names: tuple[str, ...], cell: tuple[Part, ...]) -> list[Any]:
    columns = [one_column(release, name) for name in names]
    return [
        part.written(column) if isinstance(part, Interval) else part
        for column, part in zip(columns, cell, strict=True)
    ]


def shown_cell(values: Sequence[Any]) -> str:
    """A cell as text: null by that word, several values with a sign between them."""
    return " x ".join("null" if value is None else str(value) for value in values)
