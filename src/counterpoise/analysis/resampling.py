"""From weights to plain rows, for whatever takes no weights; and any statistic with an interval.

Resampling draws rows in proportion to their weights, systematically: with one random start, every
row comes out its expected number of times, rounded up or down (J. Carpenter et al., 1999).
Importance duplication repeats every row its weight's number of times, rounded up, and draws
nothing (M. Diesendruck, 2019, section 3.2.5): rounding favours light rows, and the larger the
factor, the less so. Neither table carries standard errors; `bootstrap` does, by computing a
statistic with every replicate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from counterpoise.analysis.replication import Design, truth
from counterpoise.analysis.result import Estimate, Estimates, estimate, of_kept_rows
from counterpoise.analysis.verdict import check_weights
from counterpoise.arguments import real_number, seed_or_none, shown, whole_number
from counterpoise.errors import AnalysisError
from counterpoise.schema.row_rules import surrogates

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# A table of more copies than this is refused rather than left to fill the memory.
MOST_COPIES = 50_000_000


def resample(release: Release, rows: int | None = None, seed: int | None = None) -> pd.DataFrame:
    """Rows drawn in proportion to their weights, in random order; as many as there are.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"ill": [True, False], "weight": [1.5, 0.5]})
    >>> release = cp.Release(table, cp.Schema([cp.Column.boolean("ill")]), card={})
    >>> resample(release, 100, seed=0)["ill"].mean()
    np.float64(0.75)
    """
    check_weights(release)
    count = release.rows if rows is None else rows
    count = whole_number("rows", count, 1, MOST_COPIES, AnalysisError)
    generator = np.random.default_rng(seed_or_none(seed))
    chosen = generator.permutation(drawn_rows(release.weights, count, generator))
    return _rows(release, chosen)


def duplicate(release: Release, factor: float = 10.0) -> pd.DataFrame:
    """Every row repeated factor x weight times, rounded up.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"ill": [True, False], "weight": [1.5, 0.5]})
    >>> release = cp.Release(table, cp.Schema([cp.Column.boolean("ill")]), card={})
    >>> duplicate(release, factor=2)["ill"].tolist()
    [True, True, True, False]
    """
    check_weights(release)
    factor = real_number("factor", factor, "a number above 0", AnalysisError, above=0)
    # Copies of row i: ceil(factor w_i); a weight of exactly 3 must not become 4 by rounding.
    with np.errstate(over="ignore"):
        copies = np.ceil(factor * release.weights - 1e-9)
    if not copies.sum() <= MOST_COPIES:
        raise AnalysisError(
            f"factor: {factor:g} makes more than {MOST_COPIES:,} rows; take a smaller one"
        )
    chosen = np.repeat(np.arange(len(copies)), np.maximum(copies, 0).astype(np.int64))
    return _rows(release, chosen)


@of_kept_rows
def bootstrap(
    release: Release,
    statistic: Callable[..., Any],
    takes_weights: bool = True,
    seed: int | None = None,
) -> Estimate | Estimates:
    """A statistic with the weights, without, and with every replicate, for its standard error.

    `statistic(table, weights)` returns a number, or several as a list, an array, a dict or a
    Series. With `takes_weights=False` it is `statistic(table)`, of a table resampled with each of
    the weights from the same random start.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"ill": [True, False], "weight": [1.5, 0.5]})
    >>> schema = cp.Schema([cp.Column.boolean("ill")])
    >>> release = cp.Release(table, schema, card={}, replicates=np.array([[1.4, 1.6], [0.6, 0.4]]))
    >>> bootstrap(release, lambda table, weights: np.average(table["ill"], weights=weights))
    0.75 ± 0.22 (95%)
    """
    if not callable(statistic):
        raise AnalysisError(
            f"statistic: expected a function of a table and its weights, not {shown(statistic)}"
        )
    takes_weights = truth("takes_weights", takes_weights)
    design, table = Design.of(release), _plain(release)
    start = np.random.default_rng(seed_or_none(seed)).random()
    found = []
    for weights in design.each():
        if takes_weights:
            found.append(statistic(table, weights))
        else:
            chosen = _systematic(weights, len(table), start)
            found.append(statistic(table.iloc[chosen].reset_index(drop=True)))
    results = [_numbers(each) for each in found]
    if len({len(each) for each in results}) > 1:
        raise AnalysisError("statistic: expected it to return as many numbers for all weights")
    labels = _labels(found[0])
    lines = design.whole_way(np.array(results).T)
    members = [estimate(line) for line in lines]
    if labels is None:
        return members[0]
    return Estimates(("statistic",), tuple((label,) for label in labels), tuple(members))


def drawn_rows(weights: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """The positions of `count` rows drawn in proportion to their weights, in order."""
    return _systematic(weights, count, generator.random())


def _systematic(weights: np.ndarray, count: int, start: float) -> np.ndarray:
    shares = np.cumsum(weights)
    # Row i is drawn once for each k with sum_{j<i} w_j <= (start + k)/count sum w < sum_{j<=i} w_j
    points = (start + np.arange(count)) / count * shares[-1]
    return np.minimum(np.searchsorted(shares, points, side="right"), len(weights) - 1)


def _plain(release: Release) -> pd.DataFrame:
    return release.table[list(release.schema.names)]


def _rows(release: Release, chosen: np.ndarray) -> pd.DataFrame:
    """Some rows, perhaps several times; identifiers are made anew, so that each is there once."""
    different, places = np.unique(chosen, return_inverse=True)
    names = list(release.schema.names)
    found = release.take(different)[names].iloc[places].reset_index(drop=True)
    made = {
        name: surrogates(release.schema[name], len(found))
        for name in release.schema.rules.identifiers
    }
    return found.assign(**made)


def _labels(result: Any) -> list[Any] | None:
    if isinstance(result, Mapping):
        return list(result)
    if isinstance(result, pd.Series):
        return list(result.index)
    if np.ndim(result) == 0:
        return None
    return list(range(len(result)))


def _numbers(result: Any) -> np.ndarray:
    values = list(result.values()) if isinstance(result, Mapping) else result
    try:
        numbers = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1:
        raise AnalysisError("statistic: expected it to return a number, or a flat list of numbers")
    return numbers
