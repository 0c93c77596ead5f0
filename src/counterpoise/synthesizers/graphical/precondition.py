"""What overlapping measurements can trade among themselves, solved in closed form.

Potentials on sets that share a column are not unique: a function of that column can move from one
set to another, or a constant into any set, and the model stays the same. Along such directions the
dual of the fit has only the curvature of its ridge, thousands of times less than along all others,
and a descent that does not know of them creeps. Here they are known: for a shared column, the best
trade f_i between the sets i that have it, sum_i f_i = 0, maximises <v_i, f_i> - 1/2 w_i f_i^2
summed over i, where v_i is the gradient summed to the column and w_i the ridge summed likewise:

    f_i = (v_i - lambda) / w_i,   lambda = sum_i (v_i / w_i) / sum_i (1 / w_i).

Added to the diagonal step this is an additive two-level preconditioner (Smith, Bjorstad and Gropp
1996, chapter 2), with the trades as its coarse space.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array

from counterpoise.synthesizers.graphical.factor import Array
from counterpoise.synthesizers.graphical.inference import Schedule


@dataclass(frozen=True, eq=False)
class _Trades:
    """The sums of a vector of potentials that take part in trades."""

    sums: csr_array  # a row for each value of each column of each set, then one for each set
    spread: csr_array  # its transpose
    partners: Array  # for each of the former rows, the value of the column that it is about
    values: int  # how many values all columns have together


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """The two-level preconditioner of one fit: diagonal step plus trades."""

    trades: _Trades
    inverse: Array  # 1 / w_i, for every row of the sums
    partner_inverse: Array  # sum_i 1 / w_i, for every value of every column

    def __call__(self, vector: Array, diagonal: Array) -> Array:
        """Apply the approximate inverse of the Hessian to `vector`."""
        weighted = (self.trades.sums @ vector) * self.inverse
        partners = self.trades.partners
        # f_i = (v_i - lambda) / w_i; a constant needs no partner, so its lambda is 0.
        sums = np.bincount(partners, weighted[: len(partners)], self.trades.values)
        means = sums / self.partner_inverse
        weighted[: len(partners)] -= means[partners] * self.inverse[: len(partners)]
        return vector / diagonal + self.trades.spread @ weighted


def precondition(schedule: Schedule, ridge: Array) -> Preconditioner:
    """The preconditioner for potentials laid out by `schedule` under `ridge`."""
    trades = _trades(schedule)
    inverse = 1.0 / (trades.sums @ ridge)
    partners = trades.partners
    partner_inverse = np.bincount(partners, inverse[: len(partners)], trades.values)
    # A column in no set has no trades: any divisor will do for its means.
    partner_inverse[partner_inverse == 0.0] = 1.0
    return Preconditioner(trades=trades, inverse=inverse, partner_inverse=partner_inverse)


@lru_cache(maxsize=4)  # as large as the potentials, and of use to the next fit at most
def _trades(schedule: Schedule) -> _Trades:
    domain = schedule.tree.domain
    first_value = dict(zip(domain.columns, np.cumsum([0, *domain.sizes[:-1]]), strict=True))
    rows: list[Array] = []
    cells: list[Array] = []
    partners: list[Array] = []
    height = 0
    for columns, start, end in zip(
        schedule.columns, schedule.offsets[:-1], schedule.offsets[1:], strict=True
    ):
        shape = domain.shape(columns)
        for axis, column in enumerate(columns):
            codes = np.arange(shape[axis], dtype=np.int32)
            spread = codes.reshape([-1 if place == axis else 1 for place in range(len(shape))])
            rows.append(np.broadcast_to(spread + height, shape).reshape(-1))
            cells.append(np.arange(start, end, dtype=np.int32))
            partners.append(first_value[column] + codes)
            height += shape[axis]
    for i, (start, end) in enumerate(zip(schedule.offsets[:-1], schedule.offsets[1:], strict=True)):
        rows.append(np.full(end - start, height + i, dtype=np.int32))
        cells.append(np.arange(start, end, dtype=np.int32))
    row, cell = np.concatenate(rows), np.concatenate(cells)
    sums = csr_array(
        (np.ones(len(row)), (row, cell)),
        shape=(height + len(schedule.columns), schedule.cells),
    )
    return _Trades(sums, sums.T.tocsr(), np.concatenate(partners), sum(domain.sizes))
