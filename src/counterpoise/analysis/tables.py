"""Distributions and relations: histograms, crosstabs, covariances and correlations.

Shares are of the rows in which the columns concerned are not null, and covariances divide by the
sum of the weights, so that they are those of a population and not of a sample. Like means, all
are functions of a few weighted sums, computed for every replicate in one product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from counterpoise.analysis.allowed import joint_share, product, share_within
from counterpoise.analysis.columns import (
    MOST_GROUPS,
    By,
    Groups,
    check_groups,
    codes,
    groups,
    has_numbers,
    numbers,
    one_column,
    several_columns,
)
from counterpoise.analysis.estimates import ratio, share, shares
from counterpoise.analysis.replication import FULL, Design
from counterpoise.analysis.result import Estimate, Estimates, estimate, of_kept_rows
from counterpoise.analysis.support import Measured
from counterpoise.analysis.unmeasured import with_support
from counterpoise.arguments import shown
from counterpoise.errors import AnalysisError
from counterpoise.schema.bins import labels as bin_labels
from counterpoise.schema.bins import number

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# Of so many rows, bounds are as those of all.
ENOUGH_ROWS = 100_000

SHARES_OF = ("all", "rows", "columns")


@of_kept_rows
def histogram(
    release: Release, column: str, bins: Sequence[Any] | None = None, by: By = None
) -> Estimates:
    """The share of every category, or of every bin of a numeric column.

    The bins are those of the schema: within one, synthetic values are made up. `bins` may state
    other edges, which a value is at or above; what lies outside them is not counted.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"age": [5, 15, 17], "weight": [1.5, 1.0, 0.5]})
    >>> release = cp.Release(table, cp.Schema([cp.Column.integer("age", 0, 19, bins=2)]), card={})
    >>> histogram(release, "age").to_frame()["value"].to_dict()
    {'0 to 9': 0.5, '10 to 19': 0.5}
    """
    design, grouped = Design.of(release), groups(release, by)
    public = one_column(release, column)
    column = public.name
    if bins is None:
        found = codes(release, column)
        return shares(release, design, grouped, public, found.codes, found.labels)
    kind = public.kind
    if not public.is_numeric:
        raise AnalysisError(f"column {column!r} is {kind}: it has categories, and takes no bins")
    edges = _edges(column, kind, bins)
    values = numbers(release, column)
    places = np.searchsorted(edges, values.values, side="right") - 1
    # The last edge belongs to the last bin of a continuous column, as it does in numpy.
    if kind == "continuous":
        places[values.values == edges[-1]] = len(edges) - 2
    inside = values.present & (places >= 0) & (places < len(edges) - 1)
    labels = bin_labels(kind, edges)
    return shares(release, design, grouped, public, np.where(inside, places, -1), labels)


@of_kept_rows
def crosstab(release: Release, row: str, column: str, of: str = "all") -> Estimates:
    """The shares of all combinations of two columns: of "all", within "rows" or "columns".

    Numeric columns are cut into the bins of the schema; rows that are null in either are left
    out. `crosstab(...).pivot()` is the table as a frame.
    """
    if not isinstance(of, str) or of not in SHARES_OF:
        raise AnalysisError(f"of: expected one of {', '.join(SHARES_OF)}, not {shown(of)}")
    row, column = one_column(release, row, "row").name, one_column(release, column).name
    if row == column:
        raise AnalysisError(f"crosstab: expected two columns, not {row!r} twice")
    design = Design.of(release)
    down, across = codes(release, row), codes(release, column)
    present = (down.codes >= 0) & (across.codes >= 0)
    size = len(across.labels)
    check_groups(len(down.labels) * size, "crosstab", (row, column))
    labels = tuple((left, right) for left in down.labels for right in across.labels)
    members = np.where(present, down.codes * size + across.codes, -1)
    cells = Groups((row, column), labels, members)
    counts = design.sums(cells.lines(np.ones(len(members))))
    cube = counts.reshape(len(down.labels), size, -1)
    axes = {"all": (0, 1), "rows": (1,), "columns": (0,)}[of]
    results = ratio(cube, np.broadcast_to(cube.sum(axis=axes, keepdims=True), cube.shape))
    made = [share(line) for line in design.whole_way(results).reshape(len(labels), -1)]

    def bounds() -> list[tuple[float, float]]:
        parts = cube[..., FULL] / cube[..., FULL].sum()
        pairs = itertools.product(parts.sum(axis=1).tolist(), parts.sum(axis=0).tolist())
        if of == "all":
            return [joint_share(pair) for pair in pairs]
        return [share_within(*(pair[::-1] if of == "rows" else pair)) for pair in pairs]

    measured, both = Measured.of_release(release), {row, column}
    found = tuple(with_support(made, measured, both, bounds, categories=cells.categories()))
    return Estimates((row, column), labels, found, is_wide=True)


def cov(release: Release, *columns: str) -> Estimate | Estimates:
    """The covariance of two columns, or of every pair of several; of all that are numbers.

    Each pair is of the rows that are null in neither. Dates count in days.
    """
    return _pairs(release, columns, correlation=False)


def corr(release: Release, *columns: str) -> Estimate | Estimates:
    """Pearson's correlation of two columns, or of every pair of several; of all with numbers.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"x": [0.0, 1.0, 1.0], "y": [0.0, 1.0, 0.0], "weight": [1.0, 2.0, 0]})
    >>> columns = [cp.Column.continuous(name, 0, 1) for name in "xy"]
    >>> release = cp.Release(table, cp.Schema(columns), card={})
    >>> round(corr(release, "x", "y").value, 6), round(corr(release, "x", "y").unweighted, 6)
    (1.0, 0.5)
    """
    return _pairs(release, columns, correlation=True)


@of_kept_rows
def _pairs(release: Release, columns: Sequence[str], correlation: bool) -> Estimate | Estimates:
    if len(columns) == 1:
        raise AnalysisError("expected two columns or more, or none for all that are numbers")
    names = list(several_columns(release, columns, "columns")) or [
        each.name for each in release.schema if has_numbers(each)
    ]
    if not names:
        raise AnalysisError("the release has no columns with numbers")
    design, measured = Design.of(release), Measured.of_release(release)
    values = {name: _days(release, name) for name in names}
    found: dict[tuple[str, str], Estimate] = {}
    for place, left in enumerate(names):
        for right in names[place if len(columns) != 2 else place + 1 :]:
            results = _moments(design, *values[left], *values[right], correlation)
            ends = (-1.0, 1.0) if correlation else (-math.inf, math.inf)
            if correlation and left == right:
                found[left, right] = Estimate(1.0, None, 1.0, support=measured.of({left}))
                continue
            made = estimate(design.whole_way(results), None, *ends)
            bounds = partial(_allowed, release, values[left], values[right], correlation)
            pair = {left, right}
            [found[left, right]] = with_support([made], measured, pair, bounds, linear=pair)
            found[right, left] = found[left, right]
    if len(columns) == 2:
        return found[names[0], names[1]]
    labels = tuple((left, right) for left in names for right in names)
    return Estimates(
        ("column", "with"), labels, tuple(found[label] for label in labels), is_wide=True
    )


def _moments(
    design: Design,
    x: np.ndarray,
    x_present: np.ndarray,
    y: np.ndarray,
    y_present: np.ndarray,
    correlation: bool,
) -> np.ndarray:
    """cov = E[xy] - E[x] E[y], E the weighted mean; cor divides by the standard deviations."""
    both = x_present & y_present
    if not both.any():
        return np.full(2 + design.count, np.nan)
    # A covariance does not change when x and y are moved; near zero the difference is exact.
    x, y = np.where(both, x - x[both].mean(), 0.0), np.where(both, y - y[both].mean(), 0.0)
    sums = design.sums(np.stack([both.astype(float), x, y, x * y, x * x, y * y]))
    mean_x, mean_y, mean_xy, mean_xx, mean_yy = ratio(sums[1:], sums[:1])
    covariance = mean_xy - mean_x * mean_y
    if not correlation:
        return np.asarray(covariance)
    variances = (mean_xx - mean_x**2) * (mean_yy - mean_y**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variances > 0, covariance / np.sqrt(variances), np.nan)


def _allowed(
    release: Release,
    left: tuple[np.ndarray, np.ndarray],
    right: tuple[np.ndarray, np.ndarray],
    correlation: bool,
) -> list[tuple[float, float]]:
    """The bounds of a covariance or correlation, from enough of the rows."""
    rows = np.flatnonzero(left[1] & right[1] & (release.weights > 0))
    rows = rows[:: max(1, len(rows) // ENOUGH_ROWS)]
    if not len(rows):
        return [(-math.inf, math.inf)]
    return [product(left[0][rows], right[0][rows], release.weights[rows], correlation)]


def _days(release: Release, name: str) -> tuple[np.ndarray, np.ndarray]:
    found = numbers(release, name)
    size = 86_400e6 if found.scale.kind == "datetime" else 1.0
    return found.values / size, found.present


def _edge(edge: Any) -> Any:
    """An edge as Python has it: numpy's dates and numbers are dates and numbers."""
    if isinstance(edge, np.datetime64 | np.generic):
        return edge.item()
    return edge


def _is_usable(edge: Any) -> bool:
    """Whether an edge has a place on a scale: it is finite, and without a time zone."""
    if isinstance(edge, datetime):
        return edge.tzinfo is None and edge is not pd.NaT
    if isinstance(edge, date):
        return True
    return not isinstance(edge, bool) and abs(edge) < 2**63


def _edges(column: str, kind: str, bins: Sequence[Any]) -> np.ndarray:
    expected: type | tuple[type, ...] = {
        "date": date,
        "datetime": datetime,
    }.get(kind, (int, float))
    is_list = isinstance(bins, list | tuple | range | pd.Index | pd.Series) or (
        isinstance(bins, np.ndarray) and bins.ndim == 1
    )
    stated = [_edge(edge) for edge in bins] if is_list else []
    if len(stated) < 2 or not all(
        isinstance(edge, expected) and _is_usable(edge) for edge in stated
    ):
        raise AnalysisError(
            f"bins: expected two or more edges in the values of column {column!r}, which is {kind}"
        )
    # A moment is a date as well, which counts in other units.
    if kind == "date" and any(isinstance(edge, datetime) for edge in stated):
        raise AnalysisError(f"bins: column {column!r} has dates, and its edges have times")
    if len(stated) > MOST_GROUPS:
        raise AnalysisError(f"bins: expected at most {MOST_GROUPS:,} edges")
    edges = np.array([number(edge) for edge in stated])
    if kind == "integer" and (edges != np.floor(edges)).any():
        raise AnalysisError(f"bins: column {column!r} is integer, and so must its edges be")
    if (np.diff(edges) <= 0).any():
        raise AnalysisError("bins: expected edges that increase")
    return edges if kind == "continuous" else edges.astype(np.int64)
