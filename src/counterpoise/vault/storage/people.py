"""Persons that are bounded: at most k rows of each stay, chosen by what that person's rows hold.

A bounded person changes at most k rows of the table that all queries see, which is what their
sensitivities are times. That holds when the choice among a person's rows depends on nothing but
those rows: not on other persons, nor on the order of a file or of a scan. So every row gets a
digest of its person and of what its values are read as, the same in every storage; rows of one
digest, which no query can tell apart, are numbered; and the k rows stay whose numbered digests hash
lowest. The hash has no key: it makes the choice fair, so that nobody's first visits are preferred,
and privacy needs no secret for it. The person is part of what is hashed, or all persons would keep
the same kinds of rows.

A person is the text of a value, as categories are read (1, 1.0 and "1" are one person), without
the spaces around it. A row whose person is null is not used: it might be anybody's, and as one
more row of somebody it would be beyond what is protected. Every storage has `surplus`, or the same
two windows over what `identified` gives, and counts the persons of whom rows are left out before
they are. [PRIVACY: ground rules 11 and 13]
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from counterpoise.errors import TableError
from counterpoise.schema import Column, Schema, private_errors
from counterpoise.schema.encoding import read_texts
from counterpoise.schema.files import connect
from counterpoise.schema.sql import reading_expression

# The columns that `surplus` reads, wherever they come from.
PLACE, PERSON, DIGEST = "place", "person", "digest"
# Those that `counted` gives.
WITHIN, BEYOND = "within", "beyond"


@dataclass(frozen=True)
class People:
    """The column that says whose a row is, and how many rows of each person stay."""

    column: str
    rows: int

    def require_apart(self, schema: Schema) -> None:
        """Refuse a column that would be coded and counted."""
        if self.column in schema.names:
            raise TableError(
                f"person: the column {self.column!r} says whose a row is, and is never coded or "
                "released; drop it from the schema, or make it an identifier there, which is "
                "invented anew"
            )

    def require_in(self, names: tuple[str, ...]) -> None:
        """Refuse a table without the column, or with another that a database takes for it."""
        if self.column not in names:
            near = difflib.get_close_matches(self.column, names, 1)
            way_out = f"did you mean {near[0]!r}?" if near else "name one that it has"
            raise TableError(f"person: the table has no column {self.column!r}; {way_out}")
        if sum(name.casefold() == self.column.casefold() for name in names) > 1:
            raise TableError(
                f"person: the table has another column {self.column!r}, but for capital letters; "
                "rename one of them"
            )


def person_expression(people: People, schema: Schema) -> str:
    """SQL for the person of a row; NULL for nobody."""
    return _person(reading_expression(_column(people), missing_values=schema.missing_values))


def identified_rows(
    relation: str, place: str, condition: str, people: People, schema: Schema
) -> str:
    """SQL for the `place`, `person` and `digest` of the rows of a relation that meet a condition.

    `place` is an expression for where a row is.
    """
    readings = [
        reading_expression(column, missing_values=schema.missing_values) for column in schema
    ]
    named = ", ".join(f"{reading} AS c{i}" for i, reading in enumerate(readings, start=1))
    person = person_expression(people, schema)
    read = f"SELECT {place} AS {PLACE}, {person} AS {PERSON}, {named} FROM {relation}"
    return (
        f"SELECT {PLACE}, {PERSON}, {_digest(schema)} AS {DIGEST} FROM ({read} WHERE {condition})"
    )


def surplus(relation: str, people: People) -> str:
    """SQL for the places of the rows that do not stay.

    `relation` is the name of a relation, or a query in brackets, with a row's `place` in the
    storage, its `person` and its `digest`.
    """
    # Rows of one digest hold the same to every query, so their order is of no consequence. That of
    # their places is told here because other persons cannot change it among one person's rows.
    numbered = (
        f"SELECT {PLACE}, {PERSON}, {DIGEST}, row_number() OVER "
        f"(PARTITION BY {PERSON}, {DIGEST} ORDER BY {PLACE}) AS occurrence FROM {relation}"
    )
    ranked = (
        f"SELECT {PLACE}, {PERSON}, row_number() OVER (PARTITION BY {PERSON} "
        f"ORDER BY sha256({DIGEST} || ':' || occurrence), {DIGEST}) AS rank FROM ({numbered})"
    )
    return f"SELECT {PLACE} FROM ({ranked}) WHERE {PERSON} IS NULL OR rank > {people.rows}"


def counted(relation: str, people: People) -> str:
    """SQL for how many persons have no more rows than stay, `within`, and how many `beyond`.

    `relation` is as for `surplus`, before any row is left out.
    """
    each = f"SELECT count(*) AS n FROM {relation} WHERE {PERSON} IS NOT NULL GROUP BY {PERSON}"
    cells = (
        f"count(*) FILTER (n {where} {people.rows}) AS {name}"
        for where, name in (("<=", WITHIN), (">", BEYOND))
    )
    return f"SELECT {', '.join(cells)} FROM ({each})"


def identified(frame: pd.DataFrame, schema: Schema, people: People) -> pd.DataFrame:
    """The `person` and the `digest` of every row of a frame, in its order.

    Both are read off the row alone, so a table may be taken in parts. Null is nobody.
    """
    [found] = _asked(frame, schema, people, lambda relation: relation)
    order = np.argsort(found[PLACE])
    return pd.DataFrame({name: _with_none(found[name])[order] for name in (PERSON, DIGEST)})


def bounded(frame: pd.DataFrame, schema: Schema, people: People) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows of a frame that stay, in their order, without the column of persons.

    And how many persons there were within the bound, and beyond it.
    """
    dropped, cells = _asked(
        frame,
        schema,
        people,
        lambda relation: surplus(f"({relation})", people),
        lambda relation: counted(f"({relation})", people),
    )
    stays = np.ones(len(frame), dtype=bool)
    stays[np.asarray(dropped[PLACE], dtype=np.int64)] = False
    kept = frame.loc[stays, [name for name in frame.columns if name != people.column]]
    return kept, cells_of(cells)


def cells_of(found: Mapping[str, np.ndarray]) -> np.ndarray:
    """The two numbers that `counted` gives."""
    return np.array([found[WITHIN][0], found[BEYOND][0]], dtype=np.int64)


def _asked(
    frame: pd.DataFrame, schema: Schema, people: People, *queries: Callable[[str], str]
) -> list[dict[str, np.ndarray]]:
    """What each query says of the identified rows of a frame."""
    # Positions as names, because the database does not tell "Age" from "age".
    texts = {
        f"c{place}": read_texts(column, frame[column.name], schema.missing_values)
        for place, column in enumerate((_column(people), *schema))
    }
    typed = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in texts)
    read = f"SELECT *, {_person('c0')} AS {PERSON} FROM (SELECT {PLACE}, {typed} FROM texts)"
    found = f"SELECT {PLACE}, {PERSON}, {_digest(schema)} AS {DIGEST} FROM ({read})"
    rows = pd.DataFrame(texts | {PLACE: np.arange(len(frame))}, copy=False)
    with private_errors("the private table"), connect() as connection:
        connection.register("texts", rows)
        return [connection.sql(query(found)).fetchnumpy() for query in queries]


def _column(people: People) -> Column:
    return Column.categorical(people.column)


def _person(text: str) -> str:
    return f"nullif(trim({text}), '')"


def _digest(schema: Schema) -> str:
    """SQL for the digest of a row, of its person and of its readings `c1`, `c2` and so on."""
    names = [PERSON, *(f"c{place}" for place in range(1, len(schema) + 1))]
    # Each text with its length before it, so that no two rows run together to the same.
    told = [f"coalesce(length({name}) || ':' || {name}, '-')" for name in names]
    return f"sha256(concat({', '.join(told)}))"


def _with_none(values: np.ndarray) -> np.ndarray:
    objects = np.ma.getdata(values).astype(object)
    objects[np.ma.getmaskarray(values)] = None
    return objects
