"""Noisy sums of bounded features: the query behind totals, means and moment weights.

One record adds a vector f(x), clipped to norm at most R and rounded to a binary grid, so the
sum has L2 sensitivity R plus the rounding when a record is added or removed, and twice that
when one is replaced. Gaussian noise of scale s makes the answer (R/s)^2/2-zCDP; for a pure
budget L2-Laplace noise of scale R/epsilon makes it epsilon-DP.

All of that holds if what the other rows add stays as it is. A last bit that shifts with the company
of a row can take it over the middle between two points of the grid, and n rows can do so at once:
no number of steps pays for that. So a row's vector has to be a function of that row to the last
bit. Here it is: the rounding and the clip go one number at a time, a length adds up column by
column (`formulas.row_by_row`), and the squares and sums of whole numbers are exact in any order. Of
a feature map it is a condition, and ours multiply by `row_products`.
[PRIVACY: mechanisms; ground rule 11]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from counterpoise.errors import VaultError
from counterpoise.formulas.row_by_row import row_squares
from counterpoise.schema import Coded
from counterpoise.vault.asked import feature_names, positive, share_of
from counterpoise.vault.budget import Share
from counterpoise.vault.events import DpEvent, GaussianDpEvent, PureDpEvent
from counterpoise.vault.noise import Grid, Noise, check_scale
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# About so many values are read at a time, and features made of so few that they stay near the
# processor.
_BATCH_VALUES = 1_000_000
_BLOCK_CELLS = 250_000


class FeatureMap(Protocol):
    """A public function from a row to a vector, applied to many rows at once.

    Row `i` of the result may depend on row `i` of the input alone, to the last bit: that is what
    bounds one record's part in the sum. A product of matrices does not see to that, because it adds
    up in an order that depends on how many rows there are; `formulas.row_by_row` does.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """One name a feature."""
        ...

    def __call__(self, rows: Coded) -> np.ndarray:
        """The features of each row, one row a record."""
        ...


@dataclass(frozen=True)
class NoisySums:
    """Noisy sums of features over the private rows."""

    names: tuple[str, ...]
    values: np.ndarray  # one noisy sum a feature
    scale: float  # Gaussian: standard deviation a feature; L2-Laplace: the scale b
    law: str  # "gaussian" or "l2-laplace"
    private: bool = True


def sums(vault: Vault, features: FeatureMap, bound: float, share: Share) -> NoisySums:
    """Sum the features over the private rows, each row clipped to `bound`; charges one event."""
    names, bound, share = feature_names(features), positive("bound", bound), share_of(share)
    size = len(names)
    grid = Grid.below(bound)
    sensitivity = vault.budget.row_sensitivity(_most_after_rounding(bound, size, grid))
    event: DpEvent
    if share.pure:
        law, scale = "l2-laplace", share.laplace_scale(sensitivity)
        event = PureDpEvent(sensitivity / scale)
    else:
        law, scale = "gaussian", share.gaussian_scale(sensitivity)
        event = GaussianDpEvent(scale / sensitivity)
    check_scale(scale / grid.step, size if share.pure else 1)

    summand = ClippedSum(features, bound, grid, size)
    vault._require_portable(summand)

    def look(storage: Storage, source: Noise) -> np.ndarray:
        exact = storage.add_up(summand, max(1, _BATCH_VALUES // len(vault.schema)))
        draw = source.l2_laplace if share.pure else source.gaussian
        return draw(exact, scale / grid.step)

    asked = {"features": names, "bound": bound}
    values = grid.values(vault._ask(f"sums of {size} features", event, look, asked))
    return NoisySums(names, values, scale, law, vault.private)


@dataclass(frozen=True)
class ClippedSum:
    """The sum of the features of rows, each clipped and rounded to the grid, in steps of it."""

    features: FeatureMap
    bound: float
    grid: Grid
    size: int

    def __call__(self, rows: Coded) -> np.ndarray:
        """The sum over these rows."""
        found = np.zeros(self.size, dtype=np.int64)
        for part in rows.parts(max(1, _BLOCK_CELLS // self.size)):
            values = np.asarray(self.features(part), dtype=float)
            if values.shape != (len(part), self.size):
                # One record more must be one vector more, or the bound does not hold.
                raise VaultError(f"sums: the features have to be one vector of {self.size} a row")
            found += _sum_of_points(values, self.bound, self.grid)
        return found


def _most_after_rounding(bound: float, size: int, grid: Grid) -> float:
    # Clipping multiplies by a rounded quotient, which may overshoot by some units in the last
    # place.
    return bound * (1 + 1e-12) + grid.rounding(size)


def _sum_of_points(values: np.ndarray, bound: float, grid: Grid) -> np.ndarray:
    """The sum of the rows, clipped and rounded to the grid, as exact integers.

    A row that is no longer than the bound on the grid is what clipping leaves as it is.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        points = np.rint(values * (1 / grid.step))  # a power of two: exact
        # Of whole numbers: up to 2^53, and the bound is below 2^25, exact in any order.
        squares = np.einsum("ij,ij->i", points, points)
    # Not a number is not less.
    short = squares <= (bound / grid.step) ** 2
    if not short.all():
        points[~short] = np.rint(clip(values[~short], bound) / grid.step)
    # Integers below 2^25, and few enough of them that their sums are exact in any order.
    found: np.ndarray = np.ones(len(points)) @ points
    return found.astype(np.int64)


def clip(values: np.ndarray, bound: float) -> np.ndarray:
    """Rows scaled down to norm at most `bound`; what is not a number counts as zero."""
    values = np.nan_to_num(values, nan=0.0)
    # No coordinate may exceed the bound either; cutting them first keeps the norms finite.
    values = np.clip(values, -bound, bound)
    # In units of the bound: the squares of very small and very large numbers are none.
    norms = np.sqrt(row_squares(values / bound))
    return values / np.maximum(norms, 1.0)[:, None]
