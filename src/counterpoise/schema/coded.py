"""A coded table: for every row its integer codes, and its place in the unit box.

Codes serve counting, unit values serve sums and distances. Both are bounded by the schema alone,
whatever the rows were, which is what gives a query over them a known sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from counterpoise.schema.column import Column
from counterpoise.schema.schema import Schema
from counterpoise.schema.shape import spread_out


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """Rows as codes (int32) and units (float64 in [0, 1], 0.5 for null), columns contiguous.

    >>> from counterpoise.schema import Column
    >>> import pandas as pd
    >>> schema = Schema([Column.continuous("x", 0, 10, bins=5), Column.boolean("y")])
    >>> coded = schema.encode(pd.DataFrame({"x": [2.5, 99.0], "y": [True, False]}))
    >>> coded.codes.tolist(), coded.units.tolist()
    ([[1, 1], [4, 0]], [[0.25, 1.0], [1.0, 0.0]])
    """

    schema: Schema
    codes: np.ndarray
    units: np.ndarray
    is_spread: bool = False

    def spread(self) -> Coded:
        """The same rows, with units spread over the range that a column's own rows have.

        Only a column whose shape was paid for has such a range; see `spread_out`.
        """
        if self.is_spread or all(column.shape is None for column in self.schema):
            return self
        units = self.units.copy(order="F")
        for position, column in enumerate(self.schema):
            if column.shape is not None:
                null = self.codes[:, position] == column.cells
                units[:, position] = np.where(null, 0.5, spread_out(column, units[:, position]))
        return replace(self, units=units, is_spread=True)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        # Rows may be private: neither they nor their number are shown.
        return f"Coded(columns={self.schema.names!r})"

    def take(self, rows: np.ndarray) -> Coded:
        """Some of the rows, by position or by a mask."""
        codes = np.asfortranarray(self.codes[rows])
        return replace(self, codes=codes, units=np.asfortranarray(self.units[rows]))

    def parts(self, rows: int) -> Iterator[Coded]:
        """So many of the rows at a time, in order, without a copy."""
        for start in range(0, len(self), rows):
            part = slice(start, start + rows)
            yield replace(self, codes=self.codes[part], units=self.units[part])

    def one_hot(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Features for models: categories one-hot, numbers and ordinals as units, null as 0 or 1.

        Categories that share a code share a feature, and a null categorical is 0 in all of its
        features. Also returns a name for each feature.
        """
        return self.features(one_hot=True), self._names(one_hot=True)

    def unit_box(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """The unit values, with an indicator of null after every nullable column; and names."""
        return self.features(one_hot=False), self._names(one_hot=False)

    def _names(self, one_hot: bool) -> tuple[str, ...]:
        return tuple(name for column in self.schema for name in feature_names(column, one_hot))

    def features(self, one_hot: bool) -> np.ndarray:
        """What `one_hot` or `unit_box` make of the rows, without the names."""
        widths = (
            column.size if one_hot and column.kind == "categorical" else 1 + column.nullable
            for column in self.schema
        )
        features = np.zeros((len(self), sum(widths)), order="F")
        # A view that counts through a column before the next: setting ones is quicker by places.
        flat, every, place = features.reshape(-1, order="F"), np.arange(len(self)), 0
        for position, column in enumerate(self.schema):
            codes = self.codes[:, position]
            if one_hot and column.kind == "categorical":
                # The code of null is the one after those of the categories, and so is its place.
                flat[(place + codes.astype(np.int64)) * len(self) + every] = 1.0
                place += column.size
                continue
            features[:, place] = self.units[:, position]
            place += 1
            if column.null_code is not None:
                features[:, place] = codes == column.null_code
                place += 1
        return features


def feature_names(column: Column, one_hot: bool) -> list[str]:
    """The names of a column's features: one, or one a code of categories, and one for null."""
    if one_hot and column.kind == "categorical":
        names = [f"{column.name}={label}" for label in column.code_labels()]
    else:
        names = [column.name]
    return [*names, f"{column.name} is null"] if column.nullable else names
