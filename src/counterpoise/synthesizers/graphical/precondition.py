"""What overlapping measurements do to each other through a shared column, solved in closed form.

The Hessian of the dual of the fit is Cov + diag(ridge), with diagonal close to the expected counts.
Its diagonal alone misjudges sets that share a column. When k of them want more of a value, each
takes the step by itself, and together they go k times too far. When they disagree, a function of
the column moves from one set to another and the model stays the same: there the curvature is that
of the ridge, thousands of times less. Both are known for each value of a column: with v_i the
gradient of set i summed to it, w_i the ridge summed likewise and c the expected count,

    c / 2 (sum_i f_i)^2 + 1/2 sum_i w_i f_i^2 - sum_i v_i f_i

is least for f_i = (v_i - lambda) / w_i, lambda = c sum_i (v_i / w_i) / (1 + c sum_i (1 / w_i)).
The diagonal step is kept for the rest of each set: (I - P) diag^-1 (I - P)^T, where I - P takes the
means over each shared column away, one column after the other. A constant in a set changes nothing
but its ridge. The sum of the three is an additive two-level preconditioner (Smith, Bjorstad and
Gropp 1996, chapter 2), with functions of single columns as its coarse space.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from counterpoise.synthesizers.graphical.factor import Array
from counterpoise.synthesizers.graphical.inference import Schedule

# Up to so many cells, their places are held in full width: faster, and twice as large.
LARGEST_WIDE = 1 << 18


@dataclass(frozen=True, eq=False)
class _Slot:
    """One shared column of each set that has so many: a row for each of its values, in each set.

    Row 0 stands for the cells of all other sets, and nothing is done there.
    """

    rows: Array  # for each cell
    values: Array  # for each row but 0, the value of the column that it is about

    def sum(self, cells: Array) -> Array:
        """The sums of a vector of cells, a row each."""
        return np.bincount(self.rows, cells, len(self.values) + 1)[1:]

    def spread(self, sums: Array) -> Array:
        """The adjoint: to every cell what its row has."""
        return np.concatenate([[0.0], sums]).take(self.rows)


@dataclass(frozen=True, eq=False)
class _Sharing:
    """Which cells of a vector of potentials share which values."""

    slots: tuple[_Slot, ...]
    values: int  # how many values all columns have together
    sets: Array  # for each cell, the set that it is in


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """The two-level preconditioner of one fit."""

    sharing: _Sharing
    ridges: tuple[Array, ...]  # w_i, for every row of each slot
    ridge_inverse: Array  # sum_i 1 / w_i, for every value
    set_ridges: Array  # the ridge summed over each set

    def __call__(self, diagonal: Array) -> Step:
        """The approximate inverse of a Hessian with about this diagonal."""
        means = tuple(slot.sum(diagonal) for slot in self.sharing.slots)
        counts = np.zeros(self.sharing.values)
        for slot, mean, ridge in zip(self.sharing.slots, means, self.ridges, strict=True):
            np.maximum.at(counts, slot.values, mean - ridge)
        return Step(self, diagonal, means, counts / (1.0 + counts * self.ridge_inverse))


@dataclass(frozen=True, eq=False)
class Step:
    """The preconditioner at one point of the descent."""

    of: Preconditioner
    diagonal: Array
    means: tuple[Array, ...]  # the diagonal summed to every row of each slot
    pull: Array  # lambda / sum_i (v_i / w_i), for every value

    def __call__(self, vector: Array) -> Array:
        """Apply the approximate inverse of the Hessian to `vector`."""
        sharing, of = self.of.sharing, self.of
        step = (np.bincount(sharing.sets, vector) / of.set_ridges).take(sharing.sets)
        weighted = [
            slot.sum(vector) / ridge for slot, ridge in zip(sharing.slots, of.ridges, strict=True)
        ]
        together = np.zeros(sharing.values)
        for slot, part in zip(sharing.slots, weighted, strict=True):
            together += np.bincount(slot.values, part, sharing.values)
        multiplier = self.pull * together
        for slot, part, ridge in zip(sharing.slots, weighted, of.ridges, strict=True):
            # f_i = (v_i - lambda) / w_i
            step += slot.spread(part - multiplier[slot.values] / ridge)
        rest = vector
        for slot, mean in zip(sharing.slots, self.means, strict=True):
            rest = rest - self.diagonal * slot.spread(slot.sum(rest) / mean)
        rest = rest / self.diagonal
        for slot, mean in reversed(tuple(zip(sharing.slots, self.means, strict=True))):
            rest = rest - slot.spread(slot.sum(self.diagonal * rest) / mean)
        return step + rest


def precondition(schedule: Schedule, ridge: Array) -> Preconditioner:
    """The preconditioner for potentials laid out by `schedule` under `ridge`."""
    sharing = _sharing(schedule)
    ridges = tuple(slot.sum(ridge) for slot in sharing.slots)
    inverse = np.zeros(sharing.values)
    for slot, own in zip(sharing.slots, ridges, strict=True):
        inverse += np.bincount(slot.values, 1.0 / own, sharing.values)
    return Preconditioner(sharing, ridges, inverse, np.bincount(sharing.sets, ridge))


@lru_cache(maxsize=4)  # as large as the potentials, and of use to the next fit at most
def _sharing(schedule: Schedule) -> _Sharing:
    domain = schedule.tree.domain
    first_value = dict(zip(domain.columns, np.cumsum([0, *domain.sizes[:-1]]), strict=True))
    number = Counter(column for columns in schedule.columns for column in columns)
    shared = [[c for c in columns if number[c] > 1] for columns in schedule.columns]
    # numpy takes places of its own width as they are, and copies others to it each time.
    kind = np.intp if schedule.cells <= LARGEST_WIDE else np.int32
    slots = []
    for place in range(max(map(len, shared))):
        rows = np.zeros(schedule.cells, dtype=kind)
        values: list[Array] = []
        height = 1
        for columns, ours, cells in zip(schedule.columns, shared, schedule.slices, strict=True):
            if place < len(ours):
                shape, axis = domain.shape(columns), columns.index(ours[place])
                codes = np.arange(shape[axis], dtype=np.int32)
                along = codes.reshape([-1 if other == axis else 1 for other in range(len(shape))])
                rows[cells] = np.broadcast_to(along + height, shape).reshape(-1)
                values.append(first_value[ours[place]] + codes)
                height += shape[axis]
        slots.append(_Slot(rows, np.concatenate(values)))
    sets = np.repeat(np.arange(len(schedule.columns), dtype=kind), schedule.lengths)
    return _Sharing(tuple(slots), sum(domain.sizes), sets)
