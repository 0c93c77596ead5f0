"""One column of a table, and what is publicly known of it.

A column has a kind, and what its kind needs: categories for categorical and ordinal columns,
bounds and bins for integer, continuous, date and datetime columns. Everything here is public
knowledge or is marked with where it came from; nothing is ever read off a private table. Bounds
and categories may be left unstated, to be paid for later, but an incomplete column codes nothing.
Two sorts of columns are never looked up in a private table: derived ones, which are computed from
others, and identifiers, which are made up.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from datetime import date as Date
from datetime import datetime as DateTime
from typing import Any

import numpy as np

from counterpoise.errors import SchemaError
from counterpoise.schema import bins as geometry
from counterpoise.schema.rules import (
    LARGEST_INTEGER,
    Category,
    check_text,
    finite_number,
    from_iso,
    is_number,
    listed,
    plain_category,
    sorted_sources,
)
from counterpoise.schema.shape import Shape, checked_shape
from counterpoise.schema.spelling import PLAIN, Spelling

Bound = int | float | Date | DateTime

CATEGORY_KINDS = ("categorical", "ordinal")
NUMERIC_KINDS = ("integer", "continuous", "date", "datetime")
IDENTIFIER = "identifier"
KINDS = (*CATEGORY_KINDS, *NUMERIC_KINDS, IDENTIFIER)

DEFAULT_BINS = 20
MAX_INTEGER_VALUES = 64
# Up to this many integers keep a code each, however few rows there are.
MAX_SINGLE_VALUES = 32
MAX_BINS = 1_000_000
# Outside these the width of a bin, or its reciprocal, is not a float64.
NARROWEST_RANGE, WIDEST_RANGE = 1e-300, 1e300

_CATEGORY_TYPES: dict[type, str] = {bool: "boolean", int: "integer", str: "string"}


@dataclass(frozen=True)
class Column:
    """What is publicly known of one column; make one with `Column.integer` and its siblings.

    `other` names the category that takes values which are not listed. `bins` is a number of bins
    of equal width, or a tuple of edges from `minimum` to `maximum`; unstated, it has a default.
    `shape` says how values lie within stated edges, where a paid answer told it.
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

    def __post_init__(self) -> None:
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
            raise self._refuse("spelling must be a Spelling")
        self.spelling.require_kind(self.name, self.kind)
        if self.kind == IDENTIFIER:
            self._normalise_identifier()
        elif self.kind in CATEGORY_KINDS:
            self._normalise_categories()
        else:
            self._normalise_bounds()
        if not self.is_modelled:
            self._check_unmodelled()

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
    def has_open_bins(self) -> bool:
        """Whether a number of bins could be chosen: numeric, none stated, not a few integers."""
        if not self.is_numeric or self.bins is not None:
            return False
        return not self.has_single_values

    @property
    def has_single_values(self) -> bool:
        """Whether every value of the column has a code of its own, without any stated."""
        few = self.kind == "integer" and self._is_bounded and self.bins is None
        return few and self.high - self.low < MAX_INTEGER_VALUES

    @property
    def has_open_cells(self) -> bool:
        """Whether cells could be chosen: open bins, or more integers than bins are useful."""
        if not self.is_numeric or self.bins is not None:
            return False
        return not (self.has_single_values and self.high - self.low < MAX_SINGLE_VALUES)

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
            raise self._refuse("it is an identifier, and has no codes; leave it out")
        if self.categories is not None:
            return len(self.categories)
        if isinstance(self.bins, tuple):
            return len(self.bins) - 1
        room = geometry.most_bins(self.kind, self.low, self.high)
        if self.bins is None and self.kind == "integer" and room <= MAX_INTEGER_VALUES:
            return room
        return min(self.bins or DEFAULT_BINS, room)

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
        return geometry.edges(
            self.kind, self.low, self.high, self.cells, geometry.numbers(self.bins)
        )

    def code_labels(self) -> tuple[str, ...]:
        """A short text for every code but null's, for charts and tables.

        >>> Column.integer("age", 0, 99, bins=3).code_labels()
        ('0 to 33', '34 to 66', '67 to 99')
        """
        if self.categories is not None:
            return tuple(str(category) for category in self.categories)
        if self.spelling.clock is not None:
            return self.spelling.time_labels(self.edges.tolist())
        return geometry.labels(self.kind, self.edges)

    def checked_edges(self, edges: Iterable[Any]) -> tuple[Bound, ...]:
        """Edges in the column's own type, from its minimum to its maximum, or a SchemaError."""
        found = tuple(self._edge(edge) for edge in edges)
        self._check_edges(found)
        return found

    def with_sources(self, marks: Mapping[str, str]) -> Column:
        """This column with some of its marks replaced."""
        more = dict(sorted_sources(self.name, marks))
        return replace(self, sources=tuple({**dict(self.sources), **more}.items()))

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _refuse(self, rule: str) -> SchemaError:
        return SchemaError(f"column {self.name!r}: {rule}")

    @property
    def _is_bounded(self) -> bool:
        return self.minimum is not None and self.maximum is not None

    def _require_bounds(self) -> None:
        self.require_complete()
        if not self._is_bounded:
            raise self._refuse(
                "its bounds follow from its expression, in the schema that it is part of; take "
                "the column from Schema.settled"
            )

    def _check_unmodelled(self) -> None:
        if any(source == "paid" for _, source in self.sources):
            raise self._refuse("it is not read from the data, so there is nothing to pay for")
        if self.expression is None:
            return
        if self.kind == IDENTIFIER:
            raise self._refuse("an identifier is made up, and cannot be derived as well")
        if not isinstance(self.expression, str):
            raise self._refuse("the expression (derived) must be text")
        if not self.is_numeric and (self.kind, self.categories) != ("categorical", (False, True)):
            raise self._refuse(
                "what is derived is a number, a date or true/false: state the type number, "
                "integer, date, datetime or boolean"
            )
        if self.other is not None:
            raise self._refuse("other belongs to columns that are read, this one is derived")

    def _normalise_identifier(self) -> None:
        for key in ("categories", "other", "minimum", "maximum", "bins", "shape"):
            if getattr(self, key) is not None:
                raise self._refuse(f"{key} belongs to columns that are read, not to an identifier")
        if self.nullable:
            raise self._refuse("an identifier is never null")
        if self.category_type is None:
            self._set(category_type="integer")
        stated = self.category_type
        if not isinstance(stated, str) or stated not in ("integer", "string"):
            raise self._refuse("the type of an identifier must be integer or string")

    def _normalise_categories(self) -> None:
        for key in ("minimum", "maximum", "bins", "shape"):
            if getattr(self, key) is not None:
                raise self._refuse(f"{key} belongs to numeric columns, this one is {self.kind}")
        categories, other = self.categories, self.other
        stated = self.category_type
        if stated is not None and (
            not isinstance(stated, str) or stated not in _CATEGORY_TYPES.values()
        ):
            raise self._refuse("category_type must be string, integer or boolean")
        if categories is None and stated == "boolean":
            categories = (False, True)
        if categories is None:
            self._set(category_type=self.category_type or "string")
        else:
            values = listed(
                categories, f"column {self.name!r}: the categories (enum) must be a list"
            )
            categories = tuple(plain_category(self.name, value) for value in values)
            types = {type(category) for category in categories}
            if not categories:
                raise self._refuse("the categories (enum) must not be empty")
            if len(types) > 1:
                raise self._refuse("the categories (enum) must all be of one type")
            if len(set(categories)) < len(categories):
                raise self._refuse("the categories (enum) must be unique")
            self._set(categories=categories, category_type=_CATEGORY_TYPES[types.pop()])
        if other is not None:
            other = plain_category(self.name, other)
            if categories is not None and not any(
                type(other) is type(category) and other == category for category in categories
            ):
                raise self._refuse("other must be one of the categories (enum)")
            self._set(other=other)

    def _normalise_bounds(self) -> None:
        for key in ("categories", "other", "category_type"):
            if getattr(self, key) is not None:
                raise self._refuse(f"{key} belongs to categories, this column is {self.kind}")
        self._set(minimum=self._bound(self.minimum), maximum=self._bound(self.maximum))
        bins = self.bins
        rule = "bins must be a whole number or a list of edges"
        if is_number(bins) and isinstance(bins, int | np.integer):
            if not 0 < bins <= MAX_BINS:
                raise self._refuse(f"bins must be between 1 and {MAX_BINS:,}")
            self._set(bins=int(bins))
        elif bins is not None:
            edges = listed(None if is_number(bins) else bins, f"column {self.name!r}: {rule}")
            bins = tuple(self._edge(edge) for edge in edges)
            self._set(bins=bins)
        if self._is_bounded:
            self._check_range()
        if isinstance(bins, tuple):
            self._check_edges(bins)
        if self.shape is not None:
            self._set(shape=checked_shape(self, self.shape))

    def _check_range(self) -> None:
        low, high = self.low, self.high
        if low > high or (low == high and self.kind == "continuous"):
            raise self._refuse("minimum must be below maximum")
        if self.kind == "continuous" and not NARROWEST_RANGE <= high - low <= WIDEST_RANGE:
            raise self._refuse("maximum - minimum must be between 1e-300 and 1e300")
        is_time = self.kind == "integer" and self.spelling.clock is not None
        if is_time and not 0 <= low <= high <= self.spelling.last_time:
            raise self._refuse("minimum and maximum must be times of one day")
        if self.kind == "integer" and (high - low + 1) * self.cells >= 2**63:
            raise self._refuse("the range is too wide for so many bins")

    def _check_edges(self, edges: tuple[Bound, ...]) -> None:
        if not self._is_bounded or len(edges) < 2:
            raise self._refuse("edges need a minimum, a maximum, and at least these two")
        if (edges[0], edges[-1]) != (self.minimum, self.maximum):
            raise self._refuse("the first and the last edge must be the minimum and the maximum")
        scaled = [geometry.number(edge) for edge in edges]
        # Whole units: a last edge that is there twice leaves the maximum a cell of its own.
        twice = self.kind != "continuous" and scaled[-2] == scaled[-1]
        distinct = scaled[:-1] if twice else scaled
        if any(left >= right for left, right in itertools.pairwise(distinct)):
            raise self._refuse("the edges must be strictly increasing")
        if len(edges) - 1 > MAX_BINS:
            raise self._refuse(f"there may be at most {MAX_BINS:,} bins")

    def _edge(self, edge: Any) -> Bound:
        bound = self._bound(edge)
        if bound is None:
            raise self._refuse("an edge must have a value")
        return bound

    def _bound(self, value: Any) -> Bound | None:
        if value is None:
            return None
        if isinstance(value, str) and self.kind in ("date", "datetime"):
            value = from_iso(self.name, self.kind, value)
        if isinstance(value, DateTime) and value != value:
            raise self._refuse("minimum, maximum and edges must be moments, not a missing one")
        if self.kind == "datetime" and isinstance(value, DateTime):
            return self._naive(value)
        if self.kind == "date" and isinstance(value, Date) and not isinstance(value, DateTime):
            return Date(value.year, value.month, value.day)
        if self.kind in ("integer", "continuous") and is_number(value):
            finite = finite_number(value)
            if finite is None:
                raise self._refuse("minimum, maximum and edges must be finite")
            if self.kind == "continuous":
                return finite
            if int(value) == value and abs(int(value)) <= LARGEST_INTEGER:
                return int(value)
            raise self._refuse("minimum, maximum and edges must be integers within 2^53")
        expected = {"integer": "integers", "continuous": "numbers", "date": "dates"}
        raise self._refuse(
            f"minimum, maximum and edges must be {expected.get(self.kind, 'datetimes')}"
        )

    def _naive(self, value: DateTime) -> DateTime:
        try:
            naive = value.astimezone(UTC) if value.tzinfo is not None else value
        except OverflowError:
            raise self._refuse("a bound lies outside the years 1 to 9999 in UTC") from None
        return DateTime(*naive.timetuple()[:6], naive.microsecond)
