"""The columns that a release adds to those of its schema: the weight, and its replicates."""

from __future__ import annotations

WEIGHT = "weight"


def weight_names(replicates: int) -> list[str]:
    """The weight and so many replicates, in the order in which they are written.

    >>> weight_names(2)
    ['weight', 'weight_1', 'weight_2']
    """
    return [WEIGHT, *(f"{WEIGHT}_{place + 1}" for place in range(replicates))]
