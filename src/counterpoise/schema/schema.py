"""A schema: the columns of a table, and which of their values are not yet public knowledge.

A schema is frozen and public. It is written as a Table Schema (the Data Package standard), codes
tables to integers and unit-box floats and back, and keeps account of the values that were read
off private data ("data") or are to be measured with a share of the budget ("paid"). It may state
rules as well (`public_rules`): derived columns, identifiers, and checks that every row obeys.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.arguments import plain_text
from counterpoise.disk import as_path, plainly, require_file, write_whole
from counterpoise.errors import SchemaError
from counterpoise.schema import table_schema
from counterpoise.schema.column import Column
from counterpoise.schema.dialect import DEFAULT, Dialect
from counterpoise.schema.public_rules import PublicRules, read_rules
from counterpoise.schema.rules import is_writable, listed, texts
from counterpoise.schema.spelling import PLAIN, Spelling

if TYPE_CHECKING:
    import pandas as pd

    from counterpoise.schema.coded import Coded

PAYABLE = ("minimum", "maximum", "enum")
FEW_MARKS = 6  # so many an error names one by one
_NAMES = "columns are asked for by a list of their names"
_KEYS = "what is accepted or paid for is named by text, such as 'minimum'"


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order; `missing_values` are the texts that stand for null.

    `dialect` says how a file of text is written; tables that are no such file have none. `checks`
    are expressions that are false in no row of a release, such as "end >= start".

    >>> schema = Schema([Column.integer("age", 0, 99), Column.boolean("member")])
    >>> schema.names, schema.sizes, schema["member"].categories
    (('age', 'member'), (20, 2), (False, True))
    """

    columns: Sequence[Column]
    missing_values: tuple[str, ...] = ("",)
    dialect: Dialect = DEFAULT
    checks: Sequence[str] = ()
    rules: PublicRules = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = listed(self.columns, "the columns of a schema must be a list of Column values")
        if not columns:
            raise SchemaError("a schema needs at least one column")
        if not all(isinstance(column, Column) for column in columns):
            raise SchemaError("the columns of a schema must be Column values")
        seen: set[str] = set()
        for column in columns:
            # Folded, because database engines do not tell "Age" from "age".
            if column.name.casefold() in seen:
                raise SchemaError(
                    f"column {column.name!r}: names must be unique, whatever the case"
                )
            seen.add(column.name.casefold())
        refusal = "missingValues must be a list of texts, in UTF-8 without NUL"
        tokens = tuple(dict.fromkeys(texts(self.missing_values, refusal)))
        if not isinstance(self.dialect, Dialect):
            raise SchemaError("the dialect of a schema must be a Dialect value")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "missing_values", tokens)
        for column in columns:
            words = self.words_for_null(column)
            if any(str(category) in words for category in column.categories or ()):
                raise SchemaError(f"column {column.name!r}: a category is also a missing value")
        checks = texts(self.checks, "checks must be a list of texts, in UTF-8 without NUL")
        object.__setattr__(self, "checks", tuple(dict.fromkeys(checks)))
        # Read now, so that a rule that cannot be kept is found before anything else happens.
        object.__setattr__(self, "rules", read_rules(columns, self.checks))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and plain_text(name) in self._positions

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.index(name)]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each column, counting the one for null."""
        return tuple(column.size for column in self.columns)

    def shape(self, columns: Iterable[str]) -> tuple[int, ...]:
        """The sizes of some columns: the shape of their contingency table."""
        return tuple(self.sizes[self.index(name)] for name in listed(columns, _NAMES))

    def index(self, name: str) -> int:
        """The position of a column."""
        if not isinstance(name, str):
            raise SchemaError(f"a column is asked for by its name, not by a {type(name).__name__}")
        name = plain_text(name)
        position = self._positions.get(name)
        if position is None:
            near = difflib.get_close_matches(name, self.names)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise SchemaError(f"the schema has no column {name!r}{hint}")
        return position

    def select(self, names: Iterable[str]) -> Schema:
        """The schema of some of the columns, in the order asked for.

        Rules stay as far as all their columns do: a check is dropped with one of its columns, and
        a derived column becomes one like others.
        """
        chosen = tuple(self.index(name) for name in listed(names, _NAMES))
        return self.rules.selected(self, [self.columns[place].name for place in chosen])

    def words_for_null(self, column: Column) -> tuple[str, ...]:
        """The texts that stand for null in a column: its own, if it states any."""
        own = column.spelling.missing_values
        return self.missing_values if own is None else own

    def as_released(self) -> Schema:
        """The schema of values that have been read: no dialect, no formats, no signs of money.

        Spellings are of the private table. What is made from it is numbers, dates and categories.
        """
        columns = tuple(
            replace(column, spelling=column.spelling.without_reading()) for column in self.columns
        )
        return replace(self, columns=columns, dialect=DEFAULT)

    def read_as(self, stated: Schema) -> Schema:
        """The schema with the dialect and the spellings of another one of the same columns."""
        columns = tuple(
            replace(column, spelling=stated[column.name].spelling) for column in self.columns
        )
        return replace(self, columns=columns, dialect=stated.dialect)

    def replace(self, column: Column) -> Schema:
        """The schema with the column of the same name replaced.

        A column that states no spelling keeps that of the one whose place it takes, as far as it
        has room for it: other bounds do not change how the table is written.
        """
        if not isinstance(column, Column):
            raise SchemaError("a column of a schema is replaced by a Column value")
        position = self.index(column.name)
        if column.spelling == PLAIN:
            column = _spelled_like(column, self.columns[position].spelling)
        columns = (*self.columns[:position], column, *self.columns[position + 1 :])
        return replace(self, columns=columns)

    def with_bins(self, count: int) -> Schema:
        """The schema with `count` bins wherever none are stated.

        Integer columns of few values keep one code for each of them, and columns whose bounds
        are still to be estimated get their bins too.

        >>> Schema([Column.continuous("x", 0, 1), Column.integer("k", 0, 9)]).with_bins(8).sizes
        (8, 10)
        """
        columns = [
            replace(column, bins=count) if column.has_open_bins else column
            for column in self.columns
        ]
        return replace(self, columns=tuple(columns))

    @cached_property
    def modelled(self) -> Schema:
        """The schema of what a vault is asked for: no derived columns, identifiers or checks.

        >>> total = Column.derived("total", "a + b")
        >>> Schema([Column.integer("a", 0, 9), Column.integer("b", 0, 9), total]).modelled.names
        ('a', 'b')
        """
        if not self.rules:
            return self
        return Schema(self.rules.modelled, self.missing_values, self.dialect)

    @cached_property
    def settled(self) -> Schema:
        """The schema with the bounds of derived columns, and whether they may be null."""
        if not self.rules.derived:
            return self
        settled = {column.name: column for column in self.rules.settled()}
        return replace(self, columns=tuple(settled.get(each.name, each) for each in self.columns))

    @cached_property
    def plain(self) -> Schema:
        """The schema of the values in a table: derived columns like others, no identifiers.

        >>> double = Column.derived("double", "2 * a")
        >>> Schema([Column.integer("a", 0, 9), double]).plain["double"].high
        18.0
        """
        if not self.rules:
            return self
        valued = (column for column in self.settled if column.kind != "identifier")
        columns = [replace(column, expression=None) for column in valued]
        return Schema(columns, self.missing_values, self.dialect)

    def with_modelled(self, modelled: Schema) -> Schema:
        """The schema with its modelled columns replaced, as when a vault has settled them."""
        columns = (modelled[each.name] if each.is_modelled else each for each in self.columns)
        return replace(self, columns=tuple(columns))

    @property
    def is_complete(self) -> bool:
        """Whether every column can be coded."""
        return all(column.is_complete for column in self.columns)

    def require_complete(self) -> None:
        """Raise a SchemaError that names the first column that cannot be coded, if there is one."""
        for column in self.columns:
            column.require_complete()

    @property
    def unconfirmed(self) -> tuple[tuple[str, str], ...]:
        """The (column, key) pairs read off private data and not yet accepted as public."""
        return self._marked("data")

    @property
    def paid(self) -> tuple[tuple[str, str], ...]:
        """The (column, key) pairs that are measured with a share of the budget."""
        return self._marked("paid")

    @property
    def unstated(self) -> tuple[tuple[str, str], ...]:
        """The (column, key) pairs that are neither stated nor to be paid for."""
        paid = set(self.paid)
        pairs = ((column.name, key) for column in self.columns for key in column.missing)
        return tuple(pair for pair in pairs if pair not in paid)

    def require_public(self) -> None:
        """Raise a SchemaError that lists what was read off private data, if anything was."""
        if self.unconfirmed:
            marks = ", ".join(f"{name}.{key}" for name, key in self.unconfirmed[:FEW_MARKS])
            if len(self.unconfirmed) > FEW_MARKS:
                marks += f" and {len(self.unconfirmed) - FEW_MARKS} more"
            raise SchemaError(
                f"these were read off private data and are not public knowledge: {marks}. For "
                "each, state a value known without looking at the data; or confirm that the value "
                "is public (Schema.accept, or remove its mark); or pay for it (Schema.pay, or "
                '"source": "paid")'
            )

    def accept(self, column: str, *keys: str) -> Schema:
        """Confirm that values drafted from data are public; no keys means all of the column's.

        >>> drafted = Column.integer("age", 0, 99, sources={"minimum": "data", "maximum": "data"})
        >>> Schema([drafted]).accept("age", "minimum").unconfirmed
        (('age', 'maximum'),)
        """
        marked = dict(self[column].sources)
        chosen = texts(keys, _KEYS) or tuple(key for key in marked if marked[key] == "data")
        return self.replace(self[column].with_sources(dict.fromkeys(chosen, "public")))

    def pay(self, column: str, *keys: str) -> Schema:
        """Drop bounds or categories, to be measured with a share of the budget.

        No keys means everything that can be paid for. Stated edges go with the bounds.
        """
        old = self[column]
        if not old.is_modelled:
            raise SchemaError(
                f"column {column!r} is not read from the data: there is nothing to pay for"
            )
        possible = PAYABLE[:2] if old.is_numeric else PAYABLE[2:]
        if old.category_type == "boolean":
            raise SchemaError(f"column {column!r} is true or false: there is nothing to pay for")
        for key in texts(keys, _KEYS):
            if key not in possible:
                payable = " and ".join(possible)
                raise SchemaError(
                    f"column {column!r}: a budget can estimate {payable}, not {key!r}"
                )
        chosen = keys or possible
        dropped: dict[str, Any] = {"categories" if key == "enum" else key: None for key in chosen}
        if isinstance(old.bins, tuple):
            dropped |= {"bins": None, "shape": None}
        if "enum" in chosen:
            dropped["grouping"] = None
        return self.replace(replace(old, **dropped).with_sources(dict.fromkeys(chosen, "paid")))

    @classmethod
    def read(cls, source: str | os.PathLike[str] | Mapping[str, Any] | Schema) -> Schema:
        """A schema from the path of a JSON file, a Table Schema as a dict, or a schema."""
        if isinstance(source, Schema):
            return source
        if isinstance(source, Mapping):
            return cls.from_dict(source)
        if not isinstance(source, str | os.PathLike):
            raise SchemaError("a schema is a path to a JSON file, a dict, or a Schema")
        path = Path(source)
        require_file(path, SchemaError)
        try:
            with plainly(path, "read", SchemaError):
                content = path.read_bytes() if is_writable(str(path)) and path.exists() else None
            if content is None:
                raise SchemaError(f"there is no schema file {str(path)!r}")
            descriptor = json.loads(content.decode("utf-8"))
        except UnicodeDecodeError:
            raise SchemaError(f"the schema file {str(path)!r} cannot be read as UTF-8") from None
        except (ValueError, RecursionError):
            raise SchemaError(f"the schema file {str(path)!r} is not valid JSON") from None
        return cls.from_dict(descriptor)

    def write(self, path: str | os.PathLike[str], table: str | None = None) -> None:
        """Write the schema as JSON; a file is there in full or not at all.

        `table` is where the table of a draft lies. The file has it, and the schema does not.
        """
        target = as_path("path", path, SchemaError)
        described = self.to_dict() | ({} if table is None else {"table": table})
        text = json.dumps(described, indent=2, ensure_ascii=False) + "\n"
        write_whole(target, lambda file: file.write(text.encode()), error=SchemaError)

    def to_dict(self) -> dict[str, Any]:
        """The schema as a Table Schema."""
        described = table_schema.describe(self.columns, self.missing_values, self.checks)
        dialect = self.dialect.to_dict()
        return {**described, "dialect": dialect} if dialect else described

    @classmethod
    def from_dict(cls, descriptor: Mapping[str, Any]) -> Schema:
        """The schema that a Table Schema describes.

        >>> Schema.from_dict({"fields": [{"name": "member", "type": "boolean"}]}).sizes
        (3,)
        """
        columns, missing_values, checks = table_schema.parse(descriptor)
        dialect = Dialect.from_dict(descriptor.get("dialect", {}))
        return cls(columns, missing_values, dialect, checks)

    def encode(self, table: Any) -> Coded:
        """Code the modelled columns of a table; no value of a row can make it fail.

        Values outside the bounds are clamped; unlisted categories go to `other`, or are null;
        what the schema gives no place to takes the first code.
        """
        from counterpoise.schema.encoding import encode

        return encode(self, table)

    def decode(self, codes: np.ndarray, rng: np.random.Generator, format: str = "pandas") -> Any:
        """A table with these codes of the modelled columns: pandas, polars or arrow.

        Numbers are drawn within their bins. Derived columns are computed, identifiers made; checks
        are not looked at.
        """
        from counterpoise.schema.decoding import decode
        from counterpoise.schema.tables import convert

        return convert(decode(self, codes, rng), format)

    def restore(self, table: Any) -> pd.DataFrame:
        """A table read back from a file, with the dtypes that `decode` gives; more columns stay."""
        from counterpoise.schema.decoding import restore

        return restore(self, table)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column.name: position for position, column in enumerate(self.columns)}

    def _marked(self, source: str) -> tuple[tuple[str, str], ...]:
        return tuple(
            (column.name, key)
            for column in self.columns
            for key, mark in column.sources
            if mark == source
        )


def _spelled_like(column: Column, spelling: Spelling) -> Column:
    if {*(spelling.missing_values or ())} & {str(each) for each in column.categories or ()}:
        return column
    try:
        return replace(column, spelling=spelling)
    except SchemaError:
        # A column of another kind, which is spelled in another way.
        return replace(column, spelling=spelling.without_reading())
