"""The grouping of many categories: which of them have a code of their own, and the share of each.

Relations between columns are counted in codes, and a column of thousands of categories would have
too many for any relation to be seen. So the frequent ones keep a code each, and the others share
one; of an ordered column neighbours go together. Which category a row of a shared code has is told
by the shares of the column alone, as a `Shape` does for numbers. Both come from noised answers, so
they are public, and stand in the schema beside the categories.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.errors import SchemaError
from counterpoise.schema.rules import finite_number, is_number, listed

if TYPE_CHECKING:
    from counterpoise.schema.column import Column


@dataclass(frozen=True)
class Grouping:
    """For each category, in the order of the schema: its code, its share, and what noise left open.

    Shares are parts of the rows that are not null, and `deviations` the standard deviations of
    what the noise makes of them, given what all categories are like. `noise` is that of a count
    by itself: what is known of one category that somebody has chosen to ask for.

    >>> Grouping((0, 1, 1), (0.9, 0.05, 0.05), (0.01, 0.01, 0.01)).groups
    2
    """

    codes: tuple[int, ...]
    shares: tuple[float, ...]
    deviations: tuple[float, ...]
    noise: float = 0.0

    @property
    def groups(self) -> int:
        """The number of codes."""
        return max(self.codes) + 1

    @cached_property
    def is_shared(self) -> np.ndarray:
        """For every category, whether its code stands for others as well."""
        return np.asarray(np.bincount(self.codes)[list(self.codes)] > 1)

    @cached_property
    def code_of_place(self) -> np.ndarray:
        """The code of every category, and after them that of null."""
        return np.array([*self.codes, self.groups], dtype=np.int32)


def checked_grouping(column: Column, grouping: Any) -> Grouping:
    """A grouping in the one form that columns keep; a SchemaError where it does not fit."""
    prefix = f"column {column.name!r}: "
    if not isinstance(grouping, Grouping) or column.categories is None:
        raise SchemaError(f"{prefix}a grouping is a Grouping, beside categories (enum)")
    count = len(column.categories)
    codes = listed(grouping.codes, f"{prefix}the codes of a grouping are a list")
    if not all(is_number(code) and isinstance(code, int | np.integer) for code in codes):
        raise SchemaError(f"{prefix}the codes of a grouping are whole numbers")
    plain = tuple(int(code) for code in codes)
    # As many categories bound how large a code can be, before a range of them is made.
    if len(plain) != count or set(plain) != set(range(min(max(plain) + 1, count))):
        raise SchemaError(f"{prefix}a grouping has one code a category: 0, 1, and so on, all used")
    if column.kind == "ordinal" and list(plain) != sorted(plain):
        raise SchemaError(f"{prefix}the codes of ordered categories must not decrease")
    shares, deviations = (
        _parts(column, getattr(grouping, key), count) for key in ("shares", "deviations")
    )
    if sum(shares) <= 0:
        raise SchemaError(f"{prefix}the shares of a grouping must not all be zero")
    (noise,) = _parts(column, (grouping.noise,), 1)
    return Grouping(plain, shares, deviations, noise)


def group_labels(column: Column) -> tuple[str, ...]:
    """A short text for each group: its category, how many it has, or the first and the last."""
    assert column.grouping is not None and column.categories is not None
    names = [str(category) for category in column.categories]
    members: list[list[str]] = [[] for _ in range(column.grouping.groups)]
    for code, name in zip(column.grouping.codes, names, strict=True):
        members[code].append(name)
    if column.kind == "ordinal":
        return tuple(part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in members)
    return tuple(part[0] if len(part) == 1 else f"{len(part):,} others" for part in members)


def draw_places(grouping: Grouping, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For codes, none of them null's, the place of a category of each, drawn by its share."""
    order = np.argsort(grouping.codes, kind="stable")
    sizes = np.bincount(grouping.codes)
    first = np.append(0, np.cumsum(sizes)[:-1])
    shares = np.array(grouping.shares)[order]
    # A group without any share is drawn from evenly.
    empty = np.add.reduceat(shares, first) <= 0
    cumulative = np.append(0.0, np.cumsum(np.where(np.repeat(empty, sizes), 1.0, shares)))
    low, high = cumulative[first][codes], cumulative[first + sizes][codes]
    target = low + rng.random(len(codes)) * (high - low)
    found = np.searchsorted(cumulative, target, side="right") - 1
    return np.asarray(order[np.clip(found, first[codes], (first + sizes)[codes] - 1)])


def _parts(column: Column, values: Any, count: int) -> tuple[float, ...]:
    stated = listed(values, f"column {column.name!r}: the parts of a grouping are lists")
    numbers = [finite_number(value) if is_number(value) else None for value in stated]
    found = tuple(number for number in numbers if number is not None and number >= 0)
    if not len(found) == len(stated) == count:
        raise SchemaError(
            f"column {column.name!r}: a grouping has one share and one deviation a category, and "
            "one noise, none of them negative"
        )
    return found
