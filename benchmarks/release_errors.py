"""How far a release is from the table it was made of, an answer a row.

An analyst asks for the 10, 50 and 90% quantiles and the mean of every number and date, for the
share of rows from a public threshold on, and for the shares of categories; the private table, cut
at the public bounds as a release cuts it, is asked the same. Rank correlations of all pairs of
numbers, and the total variation distance of categorical columns, have no intervals. Errors of
quantiles are parts of the column's 10-90 range; those of means are relative, but for columns such
as dates, which have no zero to be relative to. All of it looks at exact private rows: it is for
benchmarks, and spends no privacy.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.analysis.result import Estimate

PROBABILITIES = (0.1, 0.5, 0.9)
QUANTILES = tuple(f"q{probability * 100:.0f}" for probability in PROBABILITIES)
MEAN, SHARE, RANKS, DISTANCE = "mean", "share", "rank correlation", "distance"


@dataclass(frozen=True)
class Questions:
    """What is asked beyond quantiles and means: the public statements of a benchmark.

    The zero of a column in `without_zero` says nothing: errors of its mean are parts of its range.
    """

    thresholds: Mapping[str, Any] = field(default_factory=dict)
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    without_zero: Collection[str] = ()


def truths(table: pd.DataFrame, schema: cp.Schema, asked: Questions) -> pd.DataFrame:
    """The exact answers of a table: column, statistic, truth, and the scale of its errors."""
    found: list[tuple[str, str, float, float]] = []
    for column in schema:
        name = column.name
        if column.is_numeric:
            numbers = as_numbers(table[name])
            values = np.clip(numbers[~np.isnan(numbers)], column.low, column.high)
            exact = np.quantile(values, PROBABILITIES, method="inverted_cdf")
            # A column that is nearly always the same has no 10-90 range.
            spread = float(exact[-1] - exact[0]) or float(values.std()) or 1.0
            found += [
                (name, label, float(q), spread) for label, q in zip(QUANTILES, exact, strict=True)
            ]
            mean = float(values.mean())
            has_zero = name not in asked.without_zero and mean != 0
            found.append((name, MEAN, mean, abs(mean) if has_zero else spread))
            if name in asked.thresholds:
                threshold = asked.thresholds[name]
                share = float((values >= as_number(threshold)).mean())
                found.append((name, f"{SHARE} from {threshold}", share, 1.0))
        else:
            present = table[name].dropna()
            for category in asked.categories.get(name, ()):
                found.append((name, f"{SHARE} {category}", float((present == category).mean()), 1))
    return pd.DataFrame(found, columns=["column", "statistic", "truth", "scale"])


def answers(release: cp.Release, table: pd.DataFrame, asked: Questions) -> pd.DataFrame:
    """The truths of a table beside what its release says: value, alone, low, high, note.

    `alone` is the answer of the synthetic table without weights; an answer without an interval has
    no ends.
    """
    exact = truths(table, release.schema.modelled, asked)
    said = {
        (name, statistic): answer for name, statistic, answer in _estimates(release, asked, exact)
    }
    rows = []
    for line in exact.to_dict("records"):
        answer = said[line["column"], line["statistic"]]
        low, high = answer.interval() or (math.nan, math.nan)
        rows.append(
            line
            | {
                "value": as_number(answer.value),
                "alone": as_number(answer.unweighted),
                "low": as_number(low),
                "high": as_number(high),
                "note": answer.note,
            }
        )
    return pd.DataFrame([*rows, *_relations(release, table), *_distances(release, table)])


def _estimates(
    release: cp.Release, asked: Questions, exact: pd.DataFrame
) -> Iterator[tuple[str, str, Estimate]]:
    for name, statistic in zip(exact["column"], exact["statistic"], strict=True):
        if statistic in QUANTILES:
            probability = PROBABILITIES[QUANTILES.index(statistic)]
            yield name, statistic, release.quantile(name, probability)
        elif statistic == MEAN:
            yield name, statistic, release.mean(name)
        elif " from " in statistic:
            column, threshold = release.schema[name], asked.thresholds[name]
            # The last edge of whole numbers and days is the first that is outside.
            step = {"integer": 1, "date": datetime.timedelta(days=1)}.get(column.kind, 0)
            edges = (column.minimum, threshold, column.maximum + step)
            yield name, statistic, list(release.histogram(name, bins=edges))[1]
    for name, categories in asked.categories.items():
        for category in categories:
            yield name, f"{SHARE} {category}", release.proportion(name, category)


def _relations(release: cp.Release, table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    schema = release.schema.modelled
    names = [column.name for column in schema if column.is_numeric]
    weights = release.weights
    real = np.column_stack(
        [np.clip(as_numbers(table[n]), schema[n].low, schema[n].high) for n in names]
    )
    made = np.column_stack([as_numbers(release.table[name]) for name in names])
    exact = rank_correlations(real, np.ones(len(real)))
    weighted = rank_correlations(made, weights)
    alone = rank_correlations(made, np.ones(len(made)))
    for left, right in itertools.combinations(range(len(names)), 2):
        yield {
            "column": f"{names[left]} x {names[right]}",
            "statistic": RANKS,
            "truth": exact[left, right],
            "scale": 1.0,
            "value": weighted[left, right],
            "alone": alone[left, right],
        }


def rank_correlations(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted correlations of weighted mid-ranks; nulls rank below all, constants give zero."""
    ranks = np.column_stack([_mid_ranks(column, weights) for column in columns.T])
    covariance = np.atleast_2d(np.cov(ranks, rowvar=False, aweights=weights))
    spreads = np.sqrt(np.diag(covariance))
    products = np.outer(spreads, spreads)
    return np.divide(covariance, products, out=np.zeros_like(products), where=products > 0)


def _mid_ranks(column: np.ndarray, weights: np.ndarray) -> np.ndarray:
    column = np.where(np.isnan(column), -np.inf, column)
    _, places = np.unique(column, return_inverse=True)
    mass = np.bincount(places, weights)
    middle = np.cumsum(mass) - mass / 2
    return middle[places]


def _distances(release: cp.Release, table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for column in release.schema.modelled:
        if column.is_numeric:
            continue
        exact = table[column.name].value_counts(normalize=True)
        made = release.table[column.name]
        rows = {"column": column.name, "statistic": DISTANCE, "truth": 0.0, "scale": 1.0}
        for label, weights in (("value", release.weights), ("alone", np.ones(len(made)))):
            shares = pd.Series(weights).groupby(made.to_numpy()).sum() / weights.sum()
            rows[label] = 0.5 * exact.sub(shares, fill_value=0.0).abs().sum()
        yield rows


def as_numbers(values: pd.Series) -> np.ndarray:
    """Numbers, and days since 1970, with NaN for nulls."""
    if values.dtype.kind == "M":
        days = (values - pd.Timestamp(0)) / pd.Timedelta(days=1)
        return days.to_numpy(dtype=float)
    if values.dtype == object and isinstance(values.dropna().iloc[0], datetime.date):
        return as_numbers(pd.to_datetime(values))
    return values.to_numpy(dtype=float, na_value=np.nan)


def as_number(value: Any) -> float:
    """A number, or a day as days since 1970; NaN for nothing."""
    if value is None:
        return math.nan
    if isinstance(value, datetime.date | np.datetime64 | pd.Timestamp):
        return float((pd.Timestamp(value) - pd.Timestamp(0)) / pd.Timedelta(days=1))
    return float(value)
