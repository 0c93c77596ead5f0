"""The public tables of the study of weights, their schemas, and a probe that is not private.

Bounds and categories are read off the very rows that they describe, and rounded: they are no
public knowledge, so the epsilon of a result describes the mechanisms alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata

from counterpoise import Column, Schema
from counterpoise.schema import Coded

EVALUATION_BINS = 8


@dataclass(frozen=True)
class Source:
    """A file, the column to predict, and the columns of numbers that stand for categories."""

    file: str
    target: str
    categories: tuple[str, ...] = ()


SOURCES = {
    "breast": Source("breast_cancer.csv", "diagnosis", ("diagnosis",)),
    "banknote": Source("banknote.csv", "class", ("class",)),
    "iris": Source("iris.csv", "species", ("species",)),
    "boston": Source("boston_housing.csv", "MEDV", ("CHAS",)),
    "spambase": Source("spambase.csv", "is_spam", ("is_spam",)),
    "credit": Source(
        "credit_default.csv.gz",
        "default_payment_next_month",
        ("SEX", "EDUCATION", "MARRIAGE", "default_payment_next_month"),
    ),
    "adult": Source("adult.csv.gz", "income"),
    "compas": Source(
        "dpml_compas.csv", "two_year_recid", ("race", "sex", "c_charge_degree", "two_year_recid")
    ),
    "heart": Source(
        "dpml_heart.csv",
        "output",
        ("sex", "cp", "fbs", "restecg", "exng", "slp", "thall", "output"),
    ),
}


@dataclass(frozen=True)
class Table:
    """Rows, their schema without stated bins, and the column to predict."""

    rows: pd.DataFrame
    schema: Schema
    target: str

    def split(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """80% of the rows, chosen by `seed`, to release; the rest to test on."""
        order = np.random.default_rng(seed).permutation(len(self.rows))
        cut = round(0.8 * len(order))
        return (
            self.rows.iloc[order[:cut]].reset_index(drop=True),
            self.rows.iloc[order[cut:]].reset_index(drop=True),
        )

    @property
    def evaluation_schema(self) -> Schema:
        """The schema by which results are measured: few bins, the same for every method."""
        columns = [
            replace(column, bins=EVALUATION_BINS)
            if column.is_numeric and (column.kind == "continuous" or _values(column) > 8)
            else column
            for column in self.schema
        ]
        return Schema(columns)


def load(name: str, directory: Path) -> Table:
    """Read a table, and state its schema."""
    source = SOURCES[name]
    rows = pd.read_csv(Path(directory) / source.file)
    columns = []
    for column, values in rows.items():
        label = str(column)
        if values.dtype.kind not in "iuf" or label in source.categories:
            columns.append(Column.categorical(label, sorted(values.unique().tolist())))
        elif values.dtype.kind == "f":
            columns.append(Column.continuous(label, *round_bounds(values)))
        else:
            # Few values are listed as they are; wide ranges are rounded.
            low, high = int(values.min()), int(values.max())
            wide = (int(bound) for bound in round_bounds(values))
            columns.append(Column.integer(label, *((low, high) if high - low < 64 else wide)))
    return Table(rows, Schema(columns), source.target)


def round_bounds(values: pd.Series) -> tuple[float, float]:
    """Bounds that somebody might state: the range, widened to half a leading digit."""
    low, high = float(values.min()), float(values.max())
    step = 10 ** math.floor(math.log10(high - low)) / 2
    return math.floor(low / step) * step, math.ceil(high / step) * step


def _values(column: Column) -> float:
    return column.high - column.low + 1


@dataclass(frozen=True)
class ShrunkenGaussian:
    """A latent Gaussian of the rows, biased on purpose in known ways; NOT private.

    Every number's mean is drawn a fifth of the way to the middle of its bounds, and every
    correlation is halved. Categories are cuts of a latent normal, at their exact shares. It probes
    what weights can mend when the generator has no noise at all.
    """

    towards_the_middle: float = 0.2
    correlation_kept: float = 0.5

    def sample(self, rows: pd.DataFrame, schema: Schema, count: int, seed: int) -> pd.DataFrame:
        """Draw `count` rows like `rows`."""
        table, generator = schema.encode(rows), np.random.default_rng(seed)
        scores = np.column_stack([_normal_scores(table, i) for i in range(len(schema))])
        correlation = np.nan_to_num(np.corrcoef(scores, rowvar=False))
        correlation = self.correlation_kept * correlation
        np.fill_diagonal(correlation, 1.0)
        drawn = generator.multivariate_normal(np.zeros(len(schema)), correlation, count)
        made = {
            column.name: self._column(column, table, i, drawn[:, i])
            for i, column in enumerate(schema)
        }
        return pd.DataFrame(made)

    def _column(self, column: Column, table: Coded, place: int, z: np.ndarray) -> np.ndarray:
        if not column.is_numeric:
            shares = np.bincount(table.codes[:, place], minlength=column.cells) / len(table)
            codes = np.searchsorted(np.cumsum(shares)[:-1], norm.cdf(z))
            return np.array(column.categories)[codes]
        units = table.units[:, place]
        mean = (1 - self.towards_the_middle) * units.mean() + self.towards_the_middle * 0.5
        values = column.low + np.clip(mean + units.std() * z, 0, 1) * (column.high - column.low)
        return values if column.kind == "continuous" else np.rint(values).astype(int)


def _normal_scores(table: Coded, place: int) -> np.ndarray:
    """Numbers as they are, categories by the normal quantile of their middle rank."""
    if table.schema.columns[place].is_numeric:
        return table.units[:, place]
    return norm.ppf((rankdata(table.codes[:, place]) - 0.5) / len(table))
