"""What a fit will cost, before it is paid for.

The seconds are rough: they come from a small formula with constants measured on one core of a
common server, and are meant to tell milliseconds from minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from counterpoise.synthesizers.graphical.domain import Domain
from counterpoise.synthesizers.graphical.junction_tree import model_size

# A pass reads and writes every clique table a few times, and starts a few calls for each clique.
NANOSECONDS_A_CELL = 5.0
MICROSECONDS_A_CLIQUE = 40.0
# Passes that a fit usually takes.
USUAL_PASSES = 20
# Vectors as long as the potentials: what the descent remembers, works with, and indexes.
VECTORS = 36


class Cost(NamedTuple):
    """The size of a model and the price of fitting it once."""

    cells: int  # of all clique tables together
    bytes: int  # held while fitting
    seconds: float  # for a fit from nothing, roughly


def predict_cost(domain: Domain, cliques: Iterable[Sequence[str]]) -> Cost:
    """The cost of fitting a model to measurements of `cliques`; nothing is built.

    >>> predict_cost(Domain(("a", "b"), (10, 20)), [("a", "b")]).cells
    200
    """
    measured = {domain.canonical(clique) for clique in cliques}
    cells = model_size(domain, measured)
    potentials = sum(domain.cells(clique) for clique in measured)
    nanoseconds = NANOSECONDS_A_CELL * (cells + VECTORS * potentials / 4)
    microseconds = MICROSECONDS_A_CLIQUE * (len(measured) + len(domain)) + nanoseconds / 1e3
    return Cost(
        cells=cells,
        bytes=8 * (2 * cells + VECTORS * potentials),
        seconds=USUAL_PASSES * microseconds / 1e6,
    )
