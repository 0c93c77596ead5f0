"""Shapes as they might have come out: the noise of a column's fine histogram, in the replicates.

Where a number lies within its bin, or which of many categories a group stands for, was told by a
noisy histogram of its column alone. Another draw
of that noise, and another private sample, would have given the rows of a bin to its pieces in other
parts, and would have leaned them to one side or the other. So the base weights of a replicate are
multiplied piece by piece, by

    g t / sinh(t) e^(t (2u - 1)),   g of mean 1 and the piece's relative error,   t ~ N(0, slope^2),

u the rank of a row in its piece; and the bins, which the synthesizer measures again for itself,
keep their totals. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterpoise.schema import Coded, Column, Schema
from counterpoise.schema.shape import places_within
from counterpoise.synthesizers.redraw import add_totals, cell_totals
from counterpoise.weights.row_blocks import slices

# A bin with less than this part of its weight left is empty: single precision could not bring it
# back.
LEAST_LEFT = 1e-30
# A piece that leans so far has nearly all of its rows at one end; a round number.
MOST_LEANING = 5.0
# Rows of which few enough are worked on that their products stay near the processor.
PRODUCTS_AT_ONCE = 2000


@dataclass(frozen=True, eq=False)
class RedrawnShape:
    """By what the pieces of a shape change, and how far they lean, a column a replicate."""

    factors: np.ndarray
    leaning: np.ndarray | None


@dataclass(frozen=True, eq=False)
class FineColumn:
    """The rows of a synthetic table by the pieces of one column's shape."""

    name: str
    cells: np.ndarray  # the fine cell of each row
    bins: np.ndarray  # the bin of each row
    pieces: np.ndarray  # the piece of each row; the number of pieces where there is none
    places: np.ndarray  # from -1 to 1, where in its piece a row lies
    shares: np.ndarray  # of each piece
    errors: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(cls, column: Column, values: Any, missing_values: tuple[str, ...]) -> FineColumn:
        """From the values of a column that has a shape."""
        shape = column.shape
        assert shape is not None
        finer = replace(column, bins=shape.edges, shape=None)
        fine = Schema((finer,), missing_values).encode(values)
        bins = Schema((column,), missing_values).encode(values).codes[:, 0]
        cells, count = fine.codes[:, 0], len(shape.errors)
        # A null has no cell, and a cell that is empty has no piece.
        of_cell = np.append(shape.pieces or np.full(len(shape.shares), -1), -1).astype(int)
        pieces = np.where(of_cell < 0, count, of_cell)[cells]
        shares = np.bincount(
            np.where(of_cell < 0, count, of_cell)[:-1], shape.shares, minlength=count + 1
        )[:count]
        return cls(
            column.name,
            cells,
            bins,
            pieces,
            places_within(column, cells, fine.units[:, 0]),
            shares / max(float(np.sum(shape.shares)), 1e-300),
            np.array(shape.errors),
            np.array(shape.slopes),
        )

    @classmethod
    def of_grouped(cls, column: Column, values: Any, missing_values: tuple[str, ...]) -> FineColumn:
        """From the values of a column whose categories are grouped: each is a piece by itself."""
        grouping = column.grouping
        assert grouping is not None
        cells = Schema((column.ungrouped,), missing_values).encode(values).codes[:, 0]
        whole = max(float(np.sum(grouping.shares)), 1e-300)
        return cls(
            column.name,
            cells,
            grouping.code_of_place[cells],
            cells,
            np.zeros(len(cells)),
            np.array(grouping.shares) / whole,
            np.array(grouping.deviations) / whole,
            np.zeros(len(grouping.shares)),
        )

    def take(self, rows: np.ndarray) -> FineColumn:
        """Some of the rows."""
        parts = {name: getattr(self, name)[rows] for name in ("cells", "bins", "pieces", "places")}
        return replace(self, **parts)

    def redrawn(
        self, resample: np.ndarray, weights: np.ndarray, generator: np.random.Generator
    ) -> RedrawnShape | None:
        """The shape as other answers would have had it, a column a replicate; see `FineCells`."""
        count, replicates = len(self.shares), resample.shape[1]
        if not count:
            return None
        known = self.pieces < count
        present = float(weights[known].sum())
        before = np.bincount(self.pieces, weights, minlength=count + 1)[:count]
        held = np.maximum(self.shares, 1e-12)
        # One answer has noise of one law on all its counts; a share is never below zero.
        relative = np.maximum(self.errors / held, 1e-9)
        noise = generator.gamma(relative[:, None] ** -2, size=(count, replicates))
        noise *= relative[:, None] ** 2
        leaning = generator.normal(size=(count, replicates)) * self.slopes[:, None]
        np.clip(leaning, -MOST_LEANING, MOST_LEANING, out=leaning)
        fresh = cell_totals(self.pieces, count + 1, resample)[:count]
        moved = noise + (fresh - before[:, None]) / (held * max(present, 1.0))[:, None]
        ones = np.ones((1, replicates))
        # t / sinh(t), so that what leans has the rows that it had
        even = np.abs(leaning) < 1e-6
        kept = np.where(even, 1.0, leaning / np.sinh(np.where(even, 1.0, leaning)))
        factors = np.concatenate([np.maximum(moved, 0.0) * kept, ones])
        leaning = np.concatenate([leaning, 0 * ones])
        return RedrawnShape(factors, leaning if self.slopes.any() else None)

    def weights(self, base: np.ndarray, shape: RedrawnShape | None) -> np.ndarray:
        """The base weights as rows of redrawn shapes have them, in place."""
        if shape is None:
            return base
        leaning = None if shape.leaning is None else shape.leaning.astype(base.dtype)
        return self._within_bins(base, shape.factors.astype(base.dtype), leaning)

    def _within_bins(
        self, base: np.ndarray, factors: np.ndarray, leaning: np.ndarray | None
    ) -> np.ndarray:
        """The base weights times the factors of their pieces, with the same totals in every bin.

        They are changed in place: the products are worked out twice, and never held for all rows.
        """
        bins = int(self.bins.max(initial=-1)) + 1
        totals, made = np.zeros((2, bins, base.shape[1]))
        for place in slices(len(base), PRODUCTS_AT_ONCE):
            product = self._product(base, place, factors, leaning)
            add_totals(totals, self.bins[place], base[place])
            add_totals(made, self.bins[place], product)
        there = made > LEAST_LEFT * totals
        kept = np.divide(totals, made, out=np.ones_like(totals), where=there).astype(base.dtype)
        for place in slices(len(base), PRODUCTS_AT_ONCE):
            product = self._product(base, place, factors, leaning)
            product *= kept[self.bins[place]]
            # A bin that came out empty stays as it was.
            np.copyto(base[place], product, where=there[self.bins[place]])
        return base

    def _product(
        self, base: np.ndarray, place: slice, factors: np.ndarray, leaning: np.ndarray | None
    ) -> np.ndarray:
        """The base weights of a block times the factors of their pieces, leaning within them."""
        pieces = self.pieces[place]
        product: np.ndarray = base[place] * factors[pieces]
        if leaning is not None:
            product *= np.exp(leaning[pieces] * self.places[place, None].astype(base.dtype))
        return product


@dataclass(frozen=True, eq=False)
class FineCells:
    """The rows of a synthetic table by the shapes and groupings of all columns that have one."""

    columns: tuple[FineColumn, ...] = ()

    @classmethod
    def of(cls, schema: Schema, synthetic: Any) -> FineCells:
        """From a table of values; rows that are coded have no more to tell than their bins."""
        if isinstance(synthetic, Coded):
            return cls()
        words = schema.missing_values
        found = []
        for column in schema:
            if column.shape is not None:
                found.append(FineColumn.of(column, synthetic[[column.name]], words))
            elif column.grouping is not None:
                found.append(FineColumn.of_grouped(column, synthetic[[column.name]], words))
        return cls(tuple(found))

    def take(self, rows: np.ndarray) -> FineCells:
        """Some of the rows."""
        return FineCells(tuple(column.take(rows) for column in self.columns))

    def redraw(
        self,
        base: np.ndarray,
        resample: np.ndarray,
        weights: np.ndarray,
        generator: np.random.Generator,
    ) -> np.ndarray:
        """The base weights of rows, a column a replicate, with every shape drawn again, in place.

        `resample` has a fresh private sample a column, drawn from the rows with `weights`.
        """
        return self.weights(base, self.redrawn(resample, weights, generator))

    def redrawn(
        self, resample: np.ndarray, weights: np.ndarray, generator: np.random.Generator
    ) -> tuple[RedrawnShape | None, ...]:
        """Every shape drawn again, for any rows of the same columns."""
        return tuple(column.redrawn(resample, weights, generator) for column in self.columns)

    def weights(self, base: np.ndarray, shapes: Sequence[RedrawnShape | None]) -> np.ndarray:
        """The base weights of rows as those of redrawn shapes, in place."""
        for column, shape in zip(self.columns, shapes, strict=True):
            base = column.weights(base, shape)
        return base

    def cells_of(self, columns: tuple[str, ...]) -> np.ndarray | None:
        """The fine cell of each row, of one column that has a shape or a grouping."""
        found = [column.cells for column in self.columns if (column.name,) == columns]
        return found[0] if found else None
