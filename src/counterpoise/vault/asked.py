"""What a query may be asked with: shares, sets of columns, feature maps; or our error.

Whatever is wrong with a question is found before it is charged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from counterpoise.arguments import column_sets, instance_of, number_array, real_number
from counterpoise.errors import VaultError
from counterpoise.vault.budget import Share

Kind = TypeVar("Kind")


def share_of(value: Any) -> Share:
    """A share of the budget."""
    return instance_of("share", value, Share, "a Share, such as budget.whole", VaultError)


def positive(name: str, value: Any) -> float:
    """A positive number."""
    return real_number(name, value, "a positive number", VaultError, above=0)


def cliques_of(name: str, value: Any) -> list[tuple[str, ...]]:
    """Sets of columns, each a list of names."""
    return list(column_sets(name, value, VaultError))


# Probabilities are as far from 0, from 1 and from each other: their ratios, which the quantiles
# within a part are, then stay apart in floating point, and no grid of ours is as fine.
LEAST_GAP = 1e-9


def probabilities_of(name: str, value: Any) -> tuple[float, ...]:
    """Increasing numbers between 0 and 1, all well apart."""
    expected = f"increasing probabilities in (0, 1), {LEAST_GAP:g} apart or more"
    found = number_array(name, value, expected, VaultError)
    if found.ndim != 1 or not found.size:
        raise VaultError(f"{name}: expected {expected}")
    # The differences are rounded.
    if not np.diff([0.0, *found, 1.0]).min() >= LEAST_GAP * (1 - 1e-6):
        raise VaultError(f"{name}: expected {expected}")
    return tuple(found.tolist())


def feature_names(features: Any) -> tuple[str, ...]:
    """The names of a feature map; there is at least one."""
    names: Any = getattr(features, "names", None)
    is_list = isinstance(names, Iterable) and not isinstance(names, str | bytes)
    if not (callable(features) and is_list):
        raise VaultError("features: expected a feature map: a function of rows that has `names`")
    found = tuple(str(name) for name in names)
    if not found:
        raise VaultError("features: expected at least one feature")
    return found


def exactly(name: str, value: Any, kind: type[Kind], expected: str) -> Kind:
    """A value of this very type: one derived from it could look at rows in a way of its own."""
    if type(value) is not kind:
        raise VaultError(f"{name}: expected {expected}, not a {type(value).__name__}")
    return value


def require_methods(name: str, value: Any, expected: str, *methods: str) -> None:
    """Refuse what has not these methods or attributes; `expected` says what would have them."""
    if isinstance(value, type) or not all(hasattr(value, method) for method in methods):
        raise VaultError(f"{name}: expected {expected}, not a {type(value).__name__}")
