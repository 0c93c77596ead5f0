"""Each column and each pair by itself: means, quantiles, nulls, categories and correlations.

What the private rows say stands beside what the release says, without its weights and with them.
Numbers are on the column's own scale (days since 1970 for dates, microseconds for moments), those
of ordered categories are places in their order. Quantiles are the smallest value that so much of
the weight does not exceed.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from counterpoise.evaluation.compared import Compared, numbers_of
from counterpoise.evaluation.marginals import column_sets_of, total_variation
from counterpoise.report.relations import cramers_v
from counterpoise.schema import Coded, Column

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# A category of a smaller share than this is rare.
RARE = 0.01
PRIVATE, UNWEIGHTED, WEIGHTED, FLOOR = SIDES = ("private", "unweighted", "weighted", "floor")

Side = tuple[Coded, np.ndarray]


def column_statistics(compared: Compared) -> pd.DataFrame:
    """Means, deviations, quantiles and nulls: a line a column and measure.

    >>> import pandas as pd, counterpoise as cp
    >>> from counterpoise.evaluation.compared import compare
    >>> rows = pd.DataFrame({"age": range(100)})
    >>> made = cp.release(rows, cp.Schema([cp.Column.integer("age", 0, 99)]), 1.0, seed=1)
    >>> column_statistics(compare(made, rows))["private"].tolist()[:3]
    [49.5, 28.86607004772212, 4.0]
    """
    lines = []
    for column in compared.schema:
        found = [_of_column(column, *side) for side in _sides(compared)]
        for measure, value in found[0].items():
            others = (each[measure] for each in found[1:])
            lines.append((column.name, column.kind, measure, value, *others))
        strange = compared.unplaced[column.name]
        lines.append((column.name, column.kind, "without a place", strange, 0.0, 0.0))
    return pd.DataFrame(lines, columns=["column", "kind", "measure", *SIDES[:3]])


def cell_shares(compared: Compared) -> pd.DataFrame:
    """The share of every category, group of numbers and null, a line each.

    `rare` says which categories less than a hundredth of the private rows have.
    """
    lines = []
    for place, column in enumerate(compared.schema):
        shares = [_shares(column, place, *side) for side in _sides(compared)]
        labels = [*column.code_labels(), *["null"] * column.nullable]
        for code, label in enumerate(labels):
            own = [float(each[code]) for each in shares]
            is_rare = not column.is_numeric and code < column.cells and own[0] < RARE
            lines.append((column.name, column.kind, label, *own, is_rare))
    return pd.DataFrame(lines, columns=["column", "kind", "cell", *SIDES[:3], "rare"])


def marginal_distances(compared: Compared, triples: int, seed: int) -> pd.DataFrame:
    """The total variation of all single columns and pairs, and of some sets of three."""
    names, lines = compared.schema.names, []
    for degree in range(1, min(3, len(names)) + 1):
        most = triples if degree == 3 else None
        for columns in column_sets_of(names, degree, most, seed):
            found = [
                total_variation(compared.synthetic, compared.private, columns, weights)
                for weights in (None, compared.weights)
            ]
            floor = total_variation(*compared.floor, columns)
            lines.append((" × ".join(columns), degree, *found, floor))
    return pd.DataFrame(lines, columns=["columns", "degree", *SIDES[1:]])


def correlations(compared: Compared) -> pd.DataFrame:
    """How every two columns go together: correlation of numbers, Cramer's V where categories are.

    Columns of two categories, and of ordered ones, count as numbers.
    """
    sides, lines = _sides(compared), []
    for left, right in combinations(range(len(compared.schema)), 2):
        pair = compared.schema.columns[left], compared.schema.columns[right]
        is_linear = all(map(_is_like_numbers, pair))
        measure = "correlation" if is_linear else "Cramér's V"
        found = [
            _correlation(*pair, *side) if is_linear else _association(left, right, *side)
            for side in sides
        ]
        lines.append((pair[0].name, pair[1].name, measure, *found))
    return pd.DataFrame(lines, columns=["left", "right", "measure", *SIDES[:3]])


def weighted_quantile(values: np.ndarray, weights: np.ndarray, part: float) -> float:
    """The smallest value that at least this part of the weight does not exceed.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    place = np.searchsorted(reached, part * reached[-1] * (1 - 1e-12))
    return float(values[order[min(int(place), len(order) - 1)]])


def _sides(compared: Compared) -> list[Side]:
    return [
        (compared.private, np.ones(len(compared.private))),
        (compared.synthetic, np.ones(len(compared.synthetic))),
        (compared.synthetic, compared.weights),
    ]


def _of_column(column: Column, table: Coded, weights: np.ndarray) -> dict[str, float]:
    found: dict[str, float] = {}
    nulls = table.codes[:, table.schema.index(column.name)] == column.null_code
    if column.is_numeric or column.kind == "ordinal":
        values, own = numbers_of(table, column)[~nulls], weights[~nulls]
        has_some = len(values) > 0 and own.sum() > 0
        mean = float(np.average(values, weights=own)) if has_some else np.nan
        found["mean"] = mean
        found["standard deviation"] = (
            float(np.sqrt(np.average((values - mean) ** 2, weights=own))) if has_some else np.nan
        )
        for part in QUANTILES:
            found[f"{part:.0%} quantile"] = (
                weighted_quantile(values, own, part) if has_some else np.nan
            )
    found["null"] = float(weights @ nulls / weights.sum())
    return found


def _shares(column: Column, place: int, table: Coded, weights: np.ndarray) -> np.ndarray:
    return np.bincount(table.codes[:, place], weights, column.size) / weights.sum()


def _is_like_numbers(column: Column) -> bool:
    return column.is_numeric or column.kind == "ordinal" or column.cells == 2


def _correlation(left: Column, right: Column, table: Coded, weights: np.ndarray) -> float:
    x, y = numbers_of(table, left), numbers_of(table, right)
    kept = ~(np.isnan(x) | np.isnan(y)) & (weights > 0)
    if not kept.any():
        return 0.0
    x, y, own = x[kept], y[kept], weights[kept] / weights[kept].sum()
    x, y = x - own @ x, y - own @ y
    spread = np.sqrt((own @ x**2) * (own @ y**2))
    return float(own @ (x * y) / spread) if spread > 0 else 0.0


def _association(left: int, right: int, table: Coded, weights: np.ndarray) -> float:
    height, width = table.schema.sizes[left], table.schema.sizes[right]
    cells = table.codes[:, left].astype(np.int64) * width + table.codes[:, right]
    counts = np.bincount(cells, weights, height * width).reshape(height, width)
    size = float(weights.sum() ** 2 / (weights**2).sum())
    return cramers_v(counts, size)
