"""Rehearsals: a private descent run again on public rows, to see what another run would have made.

The sampler, the clipping and the law of the noise of a descent are public. With rows that stand for
the private ones, the same steps can be taken again at no charge: that is how far an answer might
have come out otherwise. It shows; it hides nothing, so ordinary randomness will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from counterpoise.networks.clipped import clipped_gradient
from counterpoise.networks.dense import Network


@dataclass(eq=False)
class Rehearsal:
    """Steps over `rows`, each of which stands for a number of private rows.

    >>> rows = np.array([[0.0], [1.0]])
    >>> rehearsal = Rehearsal(
    ...     Network((1, 1)), rows, np.array([3, 1]), 1.0, 4.0, 1.0, 0.0, 1, np.random.default_rng(0)
    ... )
    >>> rehearsal.gradient(np.zeros(2)), rehearsal.left
    (array([-0.125, -0.5  ]), 0)
    """

    network: Network
    rows: np.ndarray
    counts: np.ndarray  # how many private rows each row stands for
    rate: float  # the probability with which each of these is in a lot
    lot: float  # what sums are divided by
    clip: float
    deviation: float  # of the noise on each coordinate of a sum
    left: int  # steps
    generator: np.random.Generator
    kept: None = field(default=None, init=False)
    _rows: np.ndarray = field(init=False, repr=False)
    _ends: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        present = np.flatnonzero(self.counts)
        self._rows, self._ends = self.rows[present], np.cumsum(self.counts[present])

    def gradient(self, parameters: np.ndarray) -> np.ndarray:
        """The sum over a lot of clipped gradients, noised, and divided."""
        self.left -= 1
        drawn = self._drawn()
        total = np.zeros(self.network.size)
        if len(drawn):
            total = len(drawn) * clipped_gradient(
                self.network, parameters, drawn, "logistic", 1.0, self.clip
            )
        if self.deviation:
            total = total + self.generator.normal(scale=self.deviation, size=len(total))
        return total / self.lot

    def keep(self, state: Mapping[str, np.ndarray]) -> None:
        """Nothing is kept: it can be run again."""

    def _drawn(self) -> np.ndarray:
        """A Poisson sample of the rows that are stood for."""
        whole = int(self._ends[-1]) if len(self._ends) else 0
        size = self.generator.binomial(whole, self.rate)
        places = np.arange(whole)
        if size < whole:
            places = self.generator.choice(whole, size, replace=False, shuffle=False)
        return self._rows[np.searchsorted(self._ends, places, side="right")]
