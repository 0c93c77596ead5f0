"""How often each of many rows is drawn, when rows are drawn by weight with replacement.

A multinomial draw takes a binomial for every row. Where about as many are drawn as there are rows,
it is quicker to draw one by one: pick any row, and with a chance that it has take another in its
place, which is the same one each time (A. J. Walker, "An efficient method for generating discrete
random variables with general distributions", 1977). Which one, and with what chance, is worked out
for all rows at once: what rows lack of an average weight lies end to end on a line, and so does
what others have beyond it; a row takes in its place the one whose surplus its lack begins in. The
last of those that begin in a surplus may reach beyond it, and that much the row with the surplus
then lacks itself, and takes the next one in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Beyond so many draws for each row, a binomial for every row is quicker.
FEW_DRAWS = 2


@dataclass(frozen=True, eq=False)
class Resampling:
    """Rows to be drawn by their weights, which average to one."""

    weights: np.ndarray
    chances: np.ndarray  # that a row which was picked is taken
    others: np.ndarray  # the row that is taken in its place

    @classmethod
    def of(cls, weights: np.ndarray) -> Resampling:
        """The draw of rows with these weights, of which one at least is above zero.

        >>> found = Resampling.of(np.array([0.5, 0.5, 2.0]))
        >>> found.chances.tolist(), found.others.tolist()
        ([0.5, 0.5, 1.0], [2, 2, 2])
        """
        weights = weights / weights.mean()
        # Of equal weights rounding may leave all below their mean.
        is_rich = weights >= min(1.0, float(weights.max()))
        lacking, rich = np.flatnonzero(~is_rich), np.flatnonzero(is_rich)
        lack, surplus = 1 - weights[lacking], np.maximum(weights[rich] - 1, 0)
        ends, rich_ends = np.cumsum(lack), np.cumsum(surplus)
        starts = np.append(0.0, ends[:-1])
        chances, others = weights.copy(), np.arange(len(weights))
        last = len(rich) - 1
        payer = np.searchsorted(rich_ends, starts[: len(lacking)], side="right")
        others[lacking] = rich[np.minimum(payer, last)]
        # Beyond a surplus, as far as the last of those that begin in it, or before it, reaches.
        reach = np.append(0.0, ends)[np.searchsorted(starts[: len(lacking)], rich_ends)]
        chances[rich] = np.where(
            np.arange(len(rich)) < last, 1 - np.maximum(reach - rich_ends, 0), 1
        )
        others[rich] = rich[np.minimum(np.arange(len(rich)) + 1, last)]
        return cls(weights, chances.astype(np.float32), others)

    def draw(self, size: int, generator: np.random.Generator) -> np.ndarray:
        """How often each row is among so many draws."""
        rows = len(self.weights)
        if size > FEW_DRAWS * rows:
            return generator.multinomial(size, self.weights / self.weights.sum())
        picked = generator.integers(0, rows, size)
        is_taken = generator.random(size, dtype=np.float32) < self.chances[picked]
        return np.bincount(np.where(is_taken, picked, self.others[picked]), minlength=rows)
