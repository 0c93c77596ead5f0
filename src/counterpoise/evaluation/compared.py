"""A release and private rows, side by side: coded alike, with two real samples as a floor.

Private rows are read as a vault reads them: by the schema's spelling, clamped to its bounds, what
has no place in it null or the first code. Numbers are then cut where the private rows have equal
shares, single values that many rows have apart, so that what a release gets wrong within the bins
it was made by is seen as well. The floor is how much two samples of the population differ: the
hold-out and the private rows, or two random halves of these. Everything here is confidential.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.arguments import instance_of
from counterpoise.bundle.card import RETARGETED
from counterpoise.bundle.release import Release
from counterpoise.bundle.weight_columns import WEIGHT
from counterpoise.errors import MethodError, TableError
from counterpoise.schema import Coded, Column, Schema, check_columns, read_table, table_columns
from counterpoise.schema.bins import bin_codes
from counterpoise.schema.grids import stated as stated_edges
from counterpoise.schema.reading import distinct_texts

# Groups that numbers are cut into, and the categories up to which each has a code of its own.
GROUPS, MOST_CATEGORIES = 10, 100
# Two halves of fewer rows than this say nothing.
LEAST_ROWS = 20

HALVES = "two random halves of the private rows"
HOLDOUT = "the hold-out and the private rows"


@dataclass(frozen=True, eq=False, repr=False)
class Compared:
    """Tables of one schema; `floor` are two real samples, and `unplaced` shares of strange values.

    `unplaced` says, for each column, what share of the private values that are not null the schema
    of the release has no place for: they are clamped, or taken for another value or for null.
    """

    synthetic: Coded
    weights: np.ndarray
    replicates: np.ndarray | None
    part: float  # of the way from the weights, that replicates go
    private: Coded
    holdout: Coded | None
    floor: tuple[Coded, Coded]
    unplaced: dict[str, float]

    @property
    def schema(self) -> Schema:
        """The columns that are compared."""
        return self.private.schema

    @property
    def floor_is(self) -> str:
        """What the floor is made of, in words."""
        return HALVES if self.holdout is None else HOLDOUT

    def __repr__(self) -> str:
        return f"Compared(columns={self.schema.names!r})"


def compare(
    release: Release,
    private: Any,
    holdout: Any = None,
    schema: Any = None,
    seed: int = 0,
) -> Compared:
    """Code a release and private rows alike; `schema` says how these are spelled, if not plainly.

    >>> import pandas as pd, counterpoise as cp
    >>> rows = pd.DataFrame({"age": range(100)})
    >>> made = cp.release(rows, cp.Schema([cp.Column.integer("age", 0, 99)]), 1.0, seed=1)
    >>> compared = compare(made, rows)
    >>> compared.schema["age"].cells, len(compared.floor[0])
    (10, 50)
    """
    release = instance_of("release", release, Release, "a Release; write cp.load(folder)")
    if release.card.get(RETARGETED):
        raise MethodError(
            "the release was turned to another population, which the private rows are not a "
            "sample of; evaluate the one that it was made from"
        )
    base = _comparable(release.schema.modelled.as_released())
    spelled = base if schema is None else base.read_as(Schema.read(schema))
    real, frame = _read("the private table", private, base, spelled)
    if len(real) < LEAST_ROWS:
        raise TableError(f"the private table: expected {LEAST_ROWS} rows or more to compare with")
    if not len(release.table):
        raise MethodError("the release has no rows to compare")
    other = None if holdout is None else _read("the hold-out", holdout, base, spelled)[0]
    if other is not None and len(other) < LEAST_ROWS:
        raise TableError(f"the hold-out: expected {LEAST_ROWS} rows or more")
    cut = Schema([_cut(column, real) for column in base])
    synthetic = recoded(base.encode(release.table.drop(columns=WEIGHT)), cut)
    real = recoded(real, cut)
    other = None if other is None else recoded(other, cut)
    order = np.random.default_rng(seed).permutation(len(real))
    halves = real.take(order[::2]), real.take(order[1::2])
    return Compared(
        synthetic=synthetic,
        weights=release.weights.astype(float),
        replicates=release.replicates,
        part=release.replicate_part,
        private=real,
        holdout=other,
        floor=halves if other is None else (other, real),
        unplaced={column.name: _unplaced(column, frame, spelled) for column in spelled},
    )


def numbers_of(table: Coded, column: Column) -> np.ndarray:
    """The values of a numeric column on its scale, of an ordinal one by places; NaN for null.

    >>> schema = Schema([Column.integer("age", 0, 99, nullable=True)])
    >>> numbers_of(schema.encode(pd.DataFrame({"age": [41, None]})), schema["age"])
    array([41., nan])
    """
    place = table.schema.index(column.name)
    if column.is_numeric:
        values = column.low + table.units[:, place] * float(column.high - column.low)
        values = values if column.kind == "continuous" else np.rint(values)
    else:
        values = table.codes[:, place].astype(float)
    return np.where(table.codes[:, place] == column.null_code, np.nan, values)


def plain_frame(table: Coded) -> pd.DataFrame:
    """The rows as a plain table, in the spelling of a release.

    >>> schema = Schema([Column.date("seen", "2020-01-01", "2020-12-31"), Column.boolean("ill")])
    >>> rows = pd.DataFrame({"seen": ["2020-03-01"], "ill": [True]})
    >>> plain_frame(schema.encode(rows)).astype(str).values.tolist()
    [['2020-03-01', 'True']]
    """
    units = {"date": "datetime64[D]", "datetime": "datetime64[us]"}
    found: dict[str, Any] = {}
    for place, column in enumerate(table.schema):
        nulls = table.codes[:, place] == column.null_code
        if column.is_numeric:
            values = numbers_of(table, column)
            if column.kind in units:
                values = np.where(nulls, 0, values).astype(np.int64).astype(units[column.kind])
            found[column.name] = pd.Series(values).mask(nulls)
            continue
        listed = column.ungrouped.categories or ()
        places = np.rint(table.units[:, place] * max(len(listed) - 1, 1)).astype(int)
        found[column.name] = pd.Series(np.array(listed, dtype=object)[places]).mask(nulls, None)
    return pd.DataFrame(found)


def recoded(table: Coded, schema: Schema) -> Coded:
    """The same rows with the codes that another schema of the same columns gives to numbers."""
    codes = table.codes.copy(order="F")
    for place, (old, column) in enumerate(zip(table.schema, schema, strict=True)):
        if column.is_numeric and column != old:
            numbers = numbers_of(table, old)
            nulls = np.isnan(numbers)
            numbers = np.where(nulls, old.low, numbers)
            if column.kind != "continuous":
                numbers = numbers.astype(np.int64)
            codes[:, place] = np.where(nulls, column.cells, bin_codes(column, numbers))
    return Coded(schema, codes, table.units)


def _comparable(schema: Schema) -> Schema:
    """Every category for itself, unless there are very many."""
    columns = [
        column.ungrouped if len(column.categories or ()) <= MOST_CATEGORIES else column
        for column in schema
    ]
    return replace(schema, columns=tuple(columns))


def _read(name: str, source: Any, base: Schema, spelled: Schema) -> tuple[Coded, pd.DataFrame]:
    check_columns(table_columns(source, spelled.dialect), spelled, name)
    frame = read_table(source, spelled.names, spelled.dialect)
    read = spelled.encode(frame)
    return Coded(base, read.codes, read.units), frame


def _cut(column: Column, table: Coded) -> Column:
    """A numeric column cut where the rows have equal shares, frequent values apart."""
    if not column.is_numeric:
        return column
    numbers = numbers_of(table, column)
    numbers = numbers[~np.isnan(numbers)]
    inner: set[float] = set()
    if len(numbers):
        values, counts = np.unique(numbers, return_counts=True)
        # A value that many rows have is a group of its own, and the others are cut without it.
        frequent = values[counts >= len(numbers) / GROUPS]
        step = np.nextafter if column.kind == "continuous" else np.add
        beyond = step(frequent, np.inf if column.kind == "continuous" else 1)
        inner |= {*frequent.tolist(), *beyond.tolist()}
        others = numbers[~np.isin(numbers, frequent)]
        if len(others):
            parts = np.arange(1, GROUPS) / GROUPS
            inner |= {*np.quantile(others, parts, method="lower").tolist()}
    kept = sorted(edge for edge in inner if column.low < edge < column.high)
    dtype = np.float64 if column.kind == "continuous" else np.int64
    bins = stated_edges(column, np.array([column.low, *kept, column.high], dtype=dtype))
    return replace(
        column, bins=bins if kept else 1, shape=None, scale=None, atoms=None, step=None, sources=()
    )


def _unplaced(column: Column, frame: pd.DataFrame, schema: Schema) -> float:
    """The share of the values of a column, null aside, that the schema has no place for."""
    values = frame[column.name].reset_index(drop=True)
    words = schema.words_for_null(column)
    nulls = distinct_texts(values, words)[0] < 0
    if nulls.all():
        return 0.0
    if column.is_numeric:
        from counterpoise.schema.encoding import read_values

        numbers, unread = read_values(column, values, schema.missing_values)
        strange = unread | (numbers < column.low) | (numbers > column.high)
    elif column.other is not None:
        return 0.0
    else:
        # Coded as if it might be null, a value without a place shows as null.
        lenient = Schema((replace(column, nullable=True),), schema.missing_values)
        strange = lenient.encode(values.to_frame()).codes[:, 0] == lenient[column.name].cells
    return float(np.mean(strange[~nulls]))
