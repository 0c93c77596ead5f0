"""Public tables with what somebody might state of them without looking: generous bounds, no edges.

Adult, credit default, California housing and the Massachusetts excerpt of the American Community
Survey, from a data directory. Categories are those that the tables' documentation lists; for adult
and credit all of them occur, and are taken from the file. Of the census excerpt the industry code,
of which the categories are kept, and the two sampling weights are left out, as in NIST's own score.

That score is 1000 (1 - TV), where TV is the mean total variation distance of the marginals of k
columns, here 3. For scoring alone, and as a judge who has the private table does it, numbers are
cut at the deciles of the private table; nulls are a value of their own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import counterpoise as cp
from release_errors import Questions, as_numbers

FILES = {
    "adult": "adult.csv.gz",
    "credit": "credit_default.csv.gz",
    "california": "california_housing.csv.gz",
    "census": "nist_ma2019.csv",
}
CENSUS = "census"
DICTIONARY = "nist_data_dictionary.json"
LEFT_OUT = ("INDP", "PWGTP", "WGTP")
CENSUS_NULL = "N"
MILLION = 1_000_000

# Kind, bounds, and a threshold from which on a share is asked; other columns are categorical.
ADULT: dict[str, tuple[str, float, float, float]] = {
    "age": ("integer", 0, 120, 65),
    "fnlwgt": ("integer", 0, 10 * MILLION, 200_000),
    "education-num": ("integer", 1, 16, 13),
    "capital-gain": ("integer", 0, MILLION, 5000),
    "capital-loss": ("integer", 0, MILLION, 1000),
    "hours-per-week": ("integer", 0, 168, 41),
}
CREDIT: dict[str, tuple[str, float, float, float]] = {
    "LIMIT_BAL": ("integer", 0, 10 * MILLION, 200_000),
    "AGE": ("integer", 18, 120, 40),
    **{f"PAY_{month}": ("integer", -2, 9, 1) for month in (0, 2, 3, 4, 5, 6)},
    **{f"BILL_AMT{month}": ("integer", -MILLION, 10 * MILLION, 50_000) for month in range(1, 7)},
    **{f"PAY_AMT{month}": ("integer", 0, 10 * MILLION, 5000) for month in range(1, 7)},
}
CALIFORNIA: dict[str, tuple[str, float, float, float]] = {
    "MedInc": ("continuous", 0, 100, 5),
    "HouseAge": ("continuous", 0, 200, 30),
    "AveRooms": ("continuous", 0, 1000, 6),
    "AveBedrms": ("continuous", 0, 1000, 1.1),
    "Population": ("continuous", 0, MILLION, 1500),
    "AveOccup": ("continuous", 0, 10_000, 3),
    "Latitude": ("continuous", 32, 42, 36),
    "Longitude": ("continuous", -125, -114, -120),
    "MedHouseVal": ("continuous", 0, 100, 2),
}
# The rest of the census is in its dictionary.
CENSUS_THRESHOLDS = {"AGEP": 65, "PINCP": 50_000, "POVPIP": 200, "NPF": 4, "NOC": 1}
CENSUS_REAL = ("DENSITY",)
NUMBERS = {"adult": ADULT, "credit": CREDIT, "california": CALIFORNIA}
# Places, and months in arrears, of which minus one and minus two are codes.
WITHOUT_ZERO = (
    "Latitude",
    "Longitude",
    *(name for name in CREDIT if name.startswith("PAY_") and "AMT" not in name),
)
# Shares are asked of columns of at most so many categories.
MOST_SHOWN = 10


def load(name: str, folder: Path) -> tuple[pd.DataFrame, cp.Schema, Questions]:
    """A table, the schema somebody states of it, and what is asked of it."""
    if name == CENSUS:
        table, schema = _census(folder)
        thresholds: dict[str, Any] = dict(CENSUS_THRESHOLDS)
    else:
        table = pd.read_csv(folder / FILES[name])
        stated = NUMBERS[name]
        schema = cp.Schema([_column(table[each], stated.get(each)) for each in table.columns])
        thresholds = {each: threshold for each, (_, _, _, threshold) in stated.items()}
    categories = {
        column.name: column.categories
        for column in schema
        if column.categories is not None and column.cells <= MOST_SHOWN
    }
    return table, schema, Questions(thresholds, categories, WITHOUT_ZERO)


def k_marginal_score(
    synthetic: pd.DataFrame,
    weights: np.ndarray,
    private: pd.DataFrame,
    schema: cp.Schema,
    k: int = 3,
    most: int | None = None,
) -> float:
    """NIST's score, 1000 (1 - TV), over all or `most` randomly chosen sets of k columns."""
    real, made, sizes = _scored(private, synthetic, schema)
    sets = list(itertools.combinations(range(len(sizes)), k))
    if most is not None and most < len(sets):
        chosen = np.random.default_rng(0).choice(len(sets), most, replace=False)
        sets = [sets[place] for place in sorted(chosen)]
    shares = weights / weights.sum()
    even = np.full(len(real), 1 / len(real))
    distances = [
        _distance(real[:, columns], even, made[:, columns], shares, sizes[list(columns)])
        for columns in map(list, sets)
    ]
    return 1000 * (1 - float(np.mean(distances)))


def _scored(
    private: pd.DataFrame, synthetic: pd.DataFrame, schema: cp.Schema
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of both tables, and how many codes a column has; null is the last of them."""
    real, made, sizes = [], [], []
    for column in schema:
        both = (private[column.name], synthetic[column.name])
        if column.is_numeric:
            numbers = [as_numbers(each) for each in both]
            edges = np.unique(np.nanquantile(numbers[0], np.arange(1, 10) / 10))
            codes = [
                np.where(np.isnan(each), len(edges) + 1, np.searchsorted(edges, each, "right"))
                for each in numbers
            ]
            sizes.append(len(edges) + 2)
        else:
            places = {category: place for place, category in enumerate(column.categories or ())}
            codes = [each.map(places).fillna(len(places)).to_numpy(dtype=int) for each in both]
            sizes.append(len(places) + 1)
        real.append(codes[0])
        made.append(codes[1])
    return np.column_stack(real), np.column_stack(made), np.array(sizes)


def _distance(
    left: np.ndarray,
    left_shares: np.ndarray,
    right: np.ndarray,
    right_shares: np.ndarray,
    sizes: Sequence[int],
) -> float:
    cells = int(np.prod(sizes))
    counted = [
        np.bincount(np.ravel_multi_index(tuple(codes.T), tuple(sizes)), shares, cells)
        for codes, shares in ((left, left_shares), (right, right_shares))
    ]
    return 0.5 * float(np.abs(counted[0] - counted[1]).sum())


def _column(values: pd.Series, stated: tuple[str, float, float, float] | None) -> cp.Column:
    name = str(values.name)
    if stated is None:
        return cp.Column.categorical(name, sorted(values.unique().tolist()))
    kind, low, high, _ = stated
    if kind == "integer":
        return cp.Column.integer(name, int(low), int(high))
    return cp.Column.continuous(name, low, high)


def _census(folder: Path) -> tuple[pd.DataFrame, cp.Schema]:
    known = json.loads((folder / DICTIONARY).read_text())
    table = pd.read_csv(folder / FILES[CENSUS], dtype=str, keep_default_na=False)
    table = table.drop(columns=list(LEFT_OUT))
    columns = []
    for name in table.columns:
        values = known[name]["values"]
        if "min" not in values:
            columns.append(cp.Column.categorical(name, list(values)))
            continue
        # Beside the range there may be single codes: zero, and one above the highest.
        singles = [int(code) for code in values if code.lstrip("-").isdigit()]
        low, high = min([values["min"], *singles]), max([values["max"], *singles])
        make = cp.Column.continuous if name in CENSUS_REAL else cp.Column.integer
        columns.append(make(name, low, high, nullable=CENSUS_NULL in values))
        table[name] = pd.to_numeric(table[name].replace(CENSUS_NULL, None))
    return table, cp.Schema(columns)
