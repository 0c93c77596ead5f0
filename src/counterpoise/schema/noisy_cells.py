"""Noisy counts of fine cells at two resolutions, and how well sums of them are known.

A sum over many fine cells carries the noise of each of them. So neighbouring cells are counted in
groups as well: a group's count has noise once, however many cells it has. Least squares puts the
two together: what a group's count and the sum of its cells differ by is spread over the cells, by
their variances. With cells of variances v, and a group of variance w beside them,

    y_i + v_i (Y - sum y) / (w + sum v),   covariance  diag(v) - v v' / (w + sum v).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Counts of cells in order, with variances, and groups of neighbours that were counted too."""

    counts: np.ndarray
    variances: np.ndarray
    groups: np.ndarray  # the group of each cell, never decreasing
    shrunk: np.ndarray  # for each group 1 / (w + sum v); 0 where it was not counted
    known: np.ndarray  # for each group 1 / w

    @classmethod
    def of(
        cls, counts: np.ndarray, in_groups: np.ndarray, groups: np.ndarray, deviation: float
    ) -> NoisyCells:
        """Counts of cells and of groups, all with the same noise, put together."""
        same = (np.full(len(each), deviation**2) for each in (counts, in_groups))
        return cls.joined(counts, in_groups, groups, *same)

    @classmethod
    def joined(
        cls,
        counts: np.ndarray,
        in_groups: np.ndarray,
        groups: np.ndarray,
        variances: np.ndarray,
        of_groups: np.ndarray,
    ) -> NoisyCells:
        """Counts of cells and of groups, with a variance each, put together."""
        shrunk = 1 / (of_groups + np.bincount(groups, variances))
        left = (in_groups - np.bincount(groups, counts)) * shrunk
        return cls(counts + variances * left[groups], variances, groups, shrunk, 1 / of_groups)

    @classmethod
    def alone(cls, counts: np.ndarray, deviation: float) -> NoisyCells:
        """Counts of cells that have the same noise, and no groups."""
        return cls(
            counts.astype(float),
            np.full(len(counts), deviation**2),
            np.zeros(len(counts), dtype=int),
            np.zeros(1),
            np.zeros(1),
        )

    def __len__(self) -> int:
        return len(self.counts)

    def sums(self, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The counts of the stretches [start, end), which are not empty, and their variances."""
        totals = np.append(0.0, np.cumsum(self.counts))
        plain = np.append(0.0, np.cumsum(self.variances))
        # Of each stretch: a part of its first group, whole groups, a part of its last.
        begins = np.searchsorted(self.groups, np.arange(len(self.shrunk) + 1))
        inside = np.diff(plain[begins])
        whole = np.append(0.0, np.cumsum(inside**2 * self.shrunk))
        first, last = self.groups[starts], self.groups[ends - 1]
        left = np.where(first == last, 0.0, plain[begins[first + 1]] - plain[starts])
        right = plain[ends] - np.where(first == last, plain[starts], plain[begins[last]])
        between = np.where(first == last, 0.0, whole[last] - whole[first + 1])
        saved = left**2 * self.shrunk[first] + between + right**2 * self.shrunk[last]
        return totals[ends] - totals[starts], plain[ends] - plain[starts] - saved

    def sum(self, start: int, end: int) -> tuple[float, float]:
        """The count of one stretch and its standard error."""
        count, variance = self.sums(np.array([start]), np.array([end]))
        return float(count[0]), float(variance[0]) ** 0.5

    def projected(self, counts: np.ndarray, template: np.ndarray) -> tuple[float, float]:
        """How much of a template there is in counts that have this noise, and its error.

        `template` has an entry a cell, most of them zero.
        """
        norm = float(template @ template)
        along = np.bincount(self.groups, template * self.variances)
        variance = float(template**2 @ self.variances) - float(self.shrunk @ along**2)
        return float(template @ counts) / norm, max(variance, 0.0) ** 0.5 / norm

    def weighed(
        self, counts: np.ndarray, cells: np.ndarray, profiles: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """q'Pq and q'Py of every profile q of some cells, P the precision of cells and groups.

        `counts` are y, of all cells, that have this noise.
        """
        weights, groups = 1 / self.variances[cells], self.groups[cells]
        sums = np.zeros((len(profiles), len(self.known)))
        np.add.at(sums.T, groups, profiles.T)
        held = np.bincount(self.groups, counts, len(self.known))
        precision = profiles**2 @ weights + sums**2 @ self.known
        return precision, profiles @ (weights * counts[cells]) + sums @ (self.known * held)
