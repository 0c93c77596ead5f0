"""One column of a table, and what is publicly known of it.

A column has a kind, and what its kind needs: categories for categorical and ordinal columns,
bounds and bins for integer, continuous, date and datetime columns. Everything here is public
knowledge or is marked with where it came from; nothing is ever read off a private table. Bounds
and categories may be left unstated, to be paid for later, but an incomplete column codes nothing.
Two sorts of columns are never looked up in a private table: derived ones, which are computed from
others, and identifiers, which are made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date as Date
from datetime import datetime as DateTime
from typing import Any

import numpy as np

from counterpoise.arguments import settle_texts
from counterpoise.errors import SchemaError
from counterpoise.schema import bins as geometry
from counterpoise.schema import normal_form
from counterpoise.schema.grouping import Grouping, checked_grouping, group_labels
from counterpoise.schema.normal_form import Bound, refusal
from counterpoise.schema.rules import Category, check_text, sorted_sources
from counterpoise.schema.shape import Shape, checked_shape
from counterpoise.schema.spelling import PLAIN, Spelling
from counterpoise.schema.stated_coding import ratio_edges

CATEGORY_KINDS = ("categorical", "ordinal")
NUMERIC_KINDS = ("integer", "continuous", "date", "datetime")
IDENTIFIER = "identifier"
KINDS = (*CATEGORY_KINDS, *NUMERIC_KINDS, IDENTIFIER)

DEFAULT_BINS = 20
MAX_INTEGER_VALUES = 64
# Up to this many categories keep a code each, however few rows there are; and so many integers,
# which are not far from each other even where noise puts rows at values that nobody has.
MAX_SINGLE_VALUES = 32
MAX_SINGLE_NUMBERS = 8


@dataclass(frozen=True)
class Column:
    """What is publicly known of one column; make one with `Column.integer` and its siblings.

    `other` names the category that takes values which are not listed. `bins` is a number of bins
    of equal width, or a tuple of edges from `minimum` to `maximum`; unstated, it has a default.
    `shape` says how values lie within stated edges, and `grouping` which of many categories share
    a code, where a paid answer told it. `scale` ("log", "linear"), `atoms` and `step` say of
    numbers how they are spread, which values many rows have, and what all are multiples of.
    `sources` says where stated values came from ("data", "public", "paid"); what has no mark is
    public. `category_type` ("string", "integer", "boolean") follows from the categories, and is
    stated only when they are not. `spelling` says how text is read, where that is not plain;
    `expression` is what a derived column is computed by.

    >>> age = Column.integer("age", minimum=0, maximum=99, nullable=True)
    >>> age.cells, age.size, age.null_code
    (20, 21, 20)
    """

    name: str
    kind: str
    categories: tuple[Category, ...] | None = None
    other: Category | None = None
    minimum: Bound | None = None
    maximum: Bound | None = None
    bins: int | tuple[Bound, ...] | None = None
    nullable: bool = False
    unit: str | None = None
    sources: tuple[tuple[str, str], ...] = ()
    category_type: str | None = None
    spelling: Spelling = PLAIN
    expression: str | None = None
    shape: Shape | None = None
    grouping: Grouping | None = None
    scale: str | None = None
    atoms: tuple[Bound, ...] | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        settle_texts(self, "name", "kind", "unit", "category_type", "expression", "scale")
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError("a column's name must be text that is not empty")
        check_text(self.name, self.name, "its name")
        if any(character in self.name for character in "\r\n"):
            raise SchemaError(f"column {self.name!r}: a name must be on one line")
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise SchemaError(f"column {self.name!r}: kind must be one of {', '.join(KINDS)}")
        if not isinstance(self.nullable, bool | np.bool_):
            raise SchemaError(f"column {self.name!r}: nullable must be true or false")
        if self.unit is not None and not isinstance(self.unit, str):
            raise SchemaError(f"column {self.name!r}: unit must be text")
        check_text(self.name, self.unit or "", "its unit")
        self._set(nullable=bool(self.nullable), sources=sorted_sources(self.name, self.sources))
        if not isinstance(self.spelling, Spelling):
            raise refusal(self, "spelling must be a Spelling")
        if self.kind == IDENTIFIER:
            self._set(**normal_form.of_identifier(self))
        elif self.kind in CATEGORY_KINDS:
            self._set(**normal_form.of_categories(self))
            if self.grouping is not None:
                self._set(grouping=checked_grouping(self, self.grouping))
        else:
            self._set(**normal_form.of_bounds(self))
            self._set(**normal_form.checked_coding(self))
            normal_form.check_bounds(self)
            if self.shape is not None:
                self._set(shape=checked_shape(self, self.shape))
        is_boolean = self.category_type == "boolean"
        self.spelling.require_kind(self.name, "boolean" if is_boolean else self.kind)
        if not self.is_modelled:
            normal_form.check_unmodelled(self)

    @classmethod
    def categorical(
        cls,
        name: str,
        categories: Iterable[Category] | None = None,
        other: Category | None = None,
        nullable: bool = False,
        **more: Any,
    ) -> Column:
        """A column of unordered categories: all text, all whole numbers, or all true/false.

        >>> Column.categorical("city", ["Oslo", "Rome", "elsewhere"], other="elsewhere").cells
        3
        """
        # Whatever lists them becomes a tuple when the column is checked.
        stated: Any = categories
        return cls(name, "categorical", stated, other=other, nullable=nullable, **more)

    @classmethod
    def ordinal(
        cls,
        name: str,
        categories: Iterable[Category] | None = None,
        other: Category | None = None,
        nullable: bool = False,
        **more: Any,
    ) -> Column:
        """A column of categories, listed in their order."""
        stated: Any = categories
        return cls(name, "ordinal", stated, other=other, nullable=nullable, **more)

    @classmethod
    def boolean(cls, name: str, nullable: bool = False, **more: Any) -> Column:
        """A column of true and false."""
        return cls(name, "categorical", (False, True), nullable=nullable, **more)

    @classmethod
    def integer(
        cls,
        name: str,
        minimum: int | None = None,
        maximum: int | None = None,
        bins: int | Iterable[int] | None = None,
        nullable: bool = False,
        **more: Any,
    ) -> Column:
        """A column of whole numbers; a fraction found in the data is cut down to the one below.

        A range of at most 64 values has one code for each; a wider one has 20 bins.
        """
        return cls._numeric(name, "integer", minimum, maximum, bins, nullable, more)

    @classmethod
    def continuous(
        cls,
        name: str,
        minimum: float | None = None,
        maximum: float | None = None,
        bins: int | Iterable[float] | None = None,
        nullable: bool = False,
        **more: Any,
    ) -> Column:
        """A column of real numbers.

        >>> Column.continuous("weight", 0, 200, bins=(0, 50, 100, 200)).edges.tolist()
        [0.0, 50.0, 100.0, 200.0]
        """
        return cls._numeric(name, "continuous", minimum, maximum, bins, nullable, more)

    @classmethod
    def date(
        cls,
        name: str,
        minimum: Date | str | None = None,
        maximum: Date | str | None = None,
        bins: int | Iterable[Date | str] | None = None,
        nullable: bool = False,
        **more: Any,
    ) -> Column:
        """A column of days; a time of day found in the data is dropped.

        >>> Column.date("admitted", "2020-01-01", "2020-12-31").maximum
        datetime.date(2020, 12, 31)
        """
        return cls._numeric(name, "date", minimum, maximum, bins, nullable, more)

    @classmethod
    def datetime(
        cls,
        name: str,
        minimum: DateTime | str | None = None,
        maximum: DateTime | str | None = None,
        bins: int | Iterable[DateTime | str] | None = None,
        nullable: bool = False,
        **more: Any,
    ) -> Column:
        """A column of moments, to the microsecond; one with a time zone is converted to UTC."""
        return cls._numeric(name, "datetime", minimum, maximum, bins, nullable, more)

    @classmethod
    def time(
        cls,
        name: str,
        minimum: str | int = "00:00",
        maximum: str | int | None = None,
        bins: int | Iterable[int] | None = None,
        nullable: bool = False,
        *,
        format: str = "%H:%M",
        missing_values: tuple[str, ...] | None = None,
        **more: Any,
    ) -> Column:
        """A column of times of day: whole minutes since midnight, or seconds if `format` has them.

        `%H%M` is for numbers that look like times: 1530 is half past three.

        >>> Column.time("departure", maximum="12:00").maximum
        720
        """
        spelling = Spelling(clock=format, missing_values=missing_values)
        last = "23:59:59" if maximum is None else maximum
        low, high = spelling.time_number(name, minimum), spelling.time_number(name, last)
        more = {"unit": spelling.unit, **more, "spelling": spelling}
        return cls._numeric(name, "integer", low, high, bins, nullable, more)

    @classmethod
    def derived(
        cls,
        name: str,
        expression: str,
        kind: str = "continuous",
        nullable: bool = True,
        **more: Any,
    ) -> Column:
        """A column that is computed in the release, from other columns of its row.

        It is left out of the model and of all that is asked of the private table, which need not
        have it. `kind` is "continuous", "integer", "boolean", "date" or "datetime"; bounds, and
        whether it is ever null, follow from the expression.

        >>> Column.derived("total", "ancillary + accommodation").expression
        'ancillary + accommodation'
        """
        if isinstance(kind, str) and kind == "boolean":
            more = {"category_type": kind, **more}
            kind = "categorical"
        return cls(name, kind, nullable=nullable, expression=expression, **more)

    @classmethod
    def identifier(cls, name: str, type: str = "integer", **more: Any) -> Column:
        """A column of surrogates, made afresh for each release and never read.

        They are 1, 2, 3 and so on, or texts ("id-000001") where the `type` is "string".

        >>> Column.identifier("patient").kind
        'identifier'
        """
        return cls(name, IDENTIFIER, category_type=type, **more)

    @classmethod
    def _numeric(
        cls,
        name: str,
        kind: str,
        minimum: Any,
        maximum: Any,
        bins: Any,
        nullable: bool,
        more: Mapping[str, Any],
    ) -> Column:
        return cls(
            name,
            kind,
            minimum=minimum,
            maximum=maximum,
            bins=bins,
            nullable=nullable,
            **more,
        )

    @property
    def is_modelled(self) -> bool:
        """Whether the private table is asked for the column: no for derived ones, identifiers."""
        return self.expression is None and self.kind != IDENTIFIER

    @property
    def is_numeric(self) -> bool:
        """Whether the column has bounds and bins rather than categories."""
        return self.kind in NUMERIC_KINDS

    @property
    def is_bounded(self) -> bool:
        """Whether both bounds are known."""
        return self.minimum is not None and self.maximum is not None

    @property
    def has_open_bins(self) -> bool:
        """Whether a number of bins could be chosen: numeric, none stated, not a few integers."""
        if not self.is_numeric or self.bins is not None:
            return False
        return not self.has_single_values

    @property
    def has_single_values(self) -> bool:
        """Whether every value of the column has a code of its own, without any stated."""
        few = self.kind == "integer" and self.is_bounded and self.bins is None
        return few and self.high - self.low < MAX_INTEGER_VALUES

    @property
    def has_open_cells(self) -> bool:
        """Whether cells could be chosen: open bins, or many integers or categories."""
        if self.categories is not None:
            return self.grouping is None and len(self.categories) > MAX_SINGLE_VALUES
        if not self.is_numeric or self.bins is not None:
            return False
        return not (self.has_single_values and self.high - self.low < MAX_SINGLE_NUMBERS)

    @property
    def missing(self) -> tuple[str, ...]:
        """What must still be stated, or paid for, before the column can be coded."""
        if not self.is_modelled:
            return ()
        if not self.is_numeric:
            return () if self.categories is not None else ("enum",)
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        return tuple(key for key, bound in bounds.items() if bound is None)

    @property
    def is_complete(self) -> bool:
        """Whether the column can be coded."""
        return not self.missing

    def require_complete(self) -> None:
        """Raise a SchemaError, with the two ways out, unless the column can be coded."""
        if self.missing:
            keys = " and ".join(self.missing)
            raise SchemaError(
                f"column {self.name!r} does not state its {keys}: state it in the schema "
                f'(constraints.{self.missing[0]}), or mark it "source": "paid" so that a share '
                "of the budget estimates it"
            )

    @property
    def low(self) -> int | float:
        """The minimum on the numeric scale: days since 1970 for dates, microseconds for moments."""
        self._require_bounds()
        assert self.minimum is not None
        return geometry.number(self.minimum)

    @property
    def high(self) -> int | float:
        """The maximum on the numeric scale."""
        self._require_bounds()
        assert self.maximum is not None
        return geometry.number(self.maximum)

    @property
    def cells(self) -> int:
        """The number of codes, not counting the one for null."""
        self.require_complete()
        if self.kind == IDENTIFIER:
            raise refusal(self, "it is an identifier, and has no codes; leave it out")
        if self.grouping is not None:
            return self.grouping.groups
        if self.categories is not None:
            return len(self.categories)
        stated = self.stated_edges
        if stated is not None:
            return len(stated) - 1
        room = geometry.most_bins(self.kind, self.low, self.high)
        if self.bins is None and self.kind == "integer" and room <= MAX_INTEGER_VALUES:
            return room
        assert not isinstance(self.bins, tuple)
        return min(self.bins or DEFAULT_BINS, room)

    @property
    def stated_edges(self) -> tuple[int | float, ...] | None:
        """Edges on the numeric scale: as stated, or of equal ratio; None for bins of equal width.

        >>> Column.continuous("dose", 1, 1000, bins=3, scale="log").stated_edges
        (1.0, 10.0, 100.0, 1000.0)
        """
        if isinstance(self.bins, tuple):
            return geometry.numbers(self.bins)
        if self.scale != "log" or self.has_single_values:
            return None
        return ratio_edges(self.kind, self.low, self.high, self.bins or DEFAULT_BINS)

    @property
    def size(self) -> int:
        """The number of codes, counting the one for null."""
        return self.cells + self.nullable

    @property
    def null_code(self) -> int | None:
        """The code of null, which is the last; None when the column is not nullable."""
        return self.cells if self.nullable else None

    @property
    def edges(self) -> np.ndarray:
        """The lower ends of the bins and the end of the last, on the numeric scale.

        The end is the maximum of a continuous column; integers, dates and moments come in whole
        units, so theirs is one unit past the maximum: edges[i] <= x < edges[i + 1] in every bin.

        >>> Column.integer("rooms", 1, 3).edges.tolist()
        [1, 2, 3, 4]
        """
        if not self.is_numeric:
            raise SchemaError(f"column {self.name!r} is {self.kind} and has no edges")
        return geometry.edges(self.kind, self.low, self.high, self.cells, self.stated_edges)

    def code_labels(self) -> tuple[str, ...]:
        """A short text for every code but null's, for charts and tables.

        >>> Column.integer("age", 0, 99, bins=3).code_labels()
        ('0 to 33', '34 to 66', '67 to 99')
        """
        if self.grouping is not None:
            return group_labels(self)
        if self.categories is not None:
            return tuple(str(category) for category in self.categories)
        if self.spelling.clock is not None:
            return self.spelling.time_labels(self.edges.tolist())
        return geometry.labels(self.kind, self.edges)

    @property
    def ungrouped(self) -> Column:
        """The column with a code for each of its categories; itself where it is not grouped."""
        return self if self.grouping is None else replace(self, grouping=None)

    def checked_edges(self, edges: Iterable[Any]) -> tuple[Bound, ...]:
        """Edges in the column's own type, from its minimum to its maximum, or a SchemaError."""
        found = normal_form.edges(self, edges)
        normal_form.check_edges(self, found)
        return found

    def with_sources(self, marks: Mapping[str, str]) -> Column:
        """This column with some of its marks replaced."""
        more = dict(sorted_sources(self.name, marks))
        return replace(self, sources=tuple({**dict(self.sources), **more}.items()))

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _require_bounds(self) -> None:
        self.require_complete()
        if not self.is_bounded:
            raise refusal(
                self,
                "its bounds follow from its expression, in the schema that it is part of; take "
                "the column from Schema.settled",
            )
