"""The domain of a discrete table: its columns, and how many values each can take.

Everything in the graphical-model engine is a table over some of these columns; a domain says how
large such a table is before anybody builds it. Sizes are Python integers, so the number of cells
of a hopeless clique is exact rather than overflowing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from counterpoise.errors import MethodError

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """Column names and the number of codes, 0 to size - 1, that each column can take.

    >>> domain = Domain(("sex", "age"), (2, 90))
    >>> domain.cells(("sex", "age")), domain["age"], "height" in domain
    (180, 90, False)
    """

    columns: Columns
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        if len(self.columns) != len(self.sizes):
            raise MethodError("a domain needs exactly one size for every column")
        if len(set(self.columns)) != len(self.columns):
            raise MethodError("a domain names every column once")
        for column, size in zip(self.columns, self.sizes, strict=True):
            if size < 1:
                raise MethodError(f"column {column!r} needs a size of at least 1, not {size}")

    @classmethod
    def from_sizes(cls, sizes: Mapping[str, int]) -> Domain:
        """The domain of a mapping from column name to size, in the mapping's order."""
        return cls(tuple(sizes), tuple(sizes.values()))

    @cached_property
    def position(self) -> dict[str, int]:
        """Where each column stands in the domain."""
        return {column: place for place, column in enumerate(self.columns)}

    def __getitem__(self, column: str) -> int:
        return self.sizes[self.position[column]]

    def __contains__(self, column: object) -> bool:
        return column in self.position

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def shape(self, columns: Sequence[str]) -> tuple[int, ...]:
        """The shape of a table whose axes are `columns`, in that order."""
        return tuple(self[column] for column in columns)

    def cells(self, columns: Iterable[str]) -> int:
        """The number of cells of a table over `columns`; 1 for no columns at all."""
        return math.prod(self[column] for column in columns)

    def project(self, columns: Sequence[str]) -> Domain:
        """The domain of `columns` alone, in the order given."""
        return Domain(tuple(columns), self.shape(columns))

    def contains(self, columns: Iterable[str]) -> bool:
        """Whether every one of `columns` is in this domain."""
        return all(column in self for column in columns)

    def canonical(self, columns: Iterable[str]) -> Columns:
        """`columns` without repeats in the domain's order, or an error that names the stranger."""
        wanted = set(columns)
        for column in wanted:
            if column not in self:
                raise MethodError(f"column {column!r} is not in the domain {self.columns}")
        return tuple(sorted(wanted, key=self.position.__getitem__))
