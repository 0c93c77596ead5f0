"""Averages, U-statistics and V-statistics of weighted rows, by four estimators (table 3.1).

With w_i = 1 / M(x_i), of n rows:

- "iw", importance weights: sum_i w_i f(x_i) / n. Right on average; the scale of w counts.
- "miw", the median of means: the median of "iw" over groups of rows, drawn at random. Few very
  large weights decide a group, and not the result.
- "sniw", self-normalised: sum_i w_i f(x_i) / sum_i w_i. The scale of w is of no account, so that
  weights may be known up to a scale; biased by about 1/n.
- "id", importance duplication: the plain average over ceil(w_i) copies of each row. Rounding up
  favours light rows, and a U-statistic counts pairs of copies.

Statistics of pairs have w_i w_j in the place of w_i; U-statistics leave a row's pair with itself
out, V-statistics do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.arguments import (
    number_array,
    one_of,
    real_number,
    seed_or_none,
    whole_number,
)
from counterpoise.errors import MethodError

IW, MIW, SNIW, ID = ESTIMATORS = ("iw", "miw", "sniw", "id")
GROUPS = 5
# More copies than this are a slip in the scale of the weights.
MOST_COPIES = 10**15


def average(
    values: Any,
    weights: Any = None,
    estimator: str = SNIW,
    groups: int = GROUPS,
    seed: int | None = None,
) -> float:
    """The average of values under the law that the weights lead to.

    `groups` and `seed` are those of "miw".

    >>> average([1.0, 3.0], weights=[1.0, 3.0]), average([1.0, 3.0], [1.0, 3.0], "iw")
    (2.5, 5.0)
    """
    found = number_array("values", values)
    return float(single_coefficients(found, weights, estimator, groups, seed) @ found)


def u_statistic(
    pairs: Any,
    weights: Any = None,
    estimator: str = SNIW,
    groups: int = GROUPS,
    seed: int | None = None,
) -> float:
    """The average of a matrix of g(x_i, x_j) over pairs of two different rows.

    >>> u_statistic([[9.0, 1.0], [3.0, 9.0]])
    2.0
    """
    return _of_pairs(pairs, weights, estimator, groups, seed, with_itself=False)


def v_statistic(
    pairs: Any,
    weights: Any = None,
    estimator: str = SNIW,
    groups: int = GROUPS,
    seed: int | None = None,
) -> float:
    """The same over all pairs, a row's with itself among them.

    >>> v_statistic([[9.0, 1.0], [3.0, 9.0]])
    5.5
    """
    return _of_pairs(pairs, weights, estimator, groups, seed, with_itself=True)


def copies(weights: Any, factor: float = 1.0) -> np.ndarray:
    """How often each row is repeated for "id": ceil(factor w_i).

    The larger the factor, the nearer the copies are to the weights.

    >>> copies([0.5, 1.0, 2.1]).tolist()
    [1, 1, 3]
    """
    factor = real_number("factor", factor, "a number above 0", above=0)
    found = number_array("weights", weights)
    _check(found)
    # A weight of exactly 3 must not become 4 by rounding.
    with np.errstate(over="ignore"):
        times = np.ceil(factor * found - 1e-9)
    if not times.sum() <= MOST_COPIES:
        raise MethodError(f"weights: they make more than {MOST_COPIES:,} copies; scale them down")
    return times.astype(np.int64)


@dataclass(frozen=True, eq=False)
class PairCoefficients:
    """A statistic of pairs is sum_{i != j} scale f_i f_j g_ij + sum_i same_i g_ii."""

    factors: np.ndarray
    scale: float
    same: np.ndarray


def pair_coefficients(weights: np.ndarray, estimator: str, with_itself: bool) -> PairCoefficients:
    """The coefficients of "iw", "sniw" or "id"; a statistic of a single row has no other pairs."""
    factors = copies(weights).astype(float) if estimator == ID else weights
    size = len(weights) if estimator == IW else float(factors.sum())
    if with_itself:
        scale = 1 / size**2
        return PairCoefficients(factors, scale, scale * factors**2)
    # The pairs of two rows, weighted: n (n - 1); (sum w)^2 - sum w^2; N (N - 1) of N copies
    whole = {IW: size * (size - 1), ID: size * (size - 1)}.get(
        estimator, size**2 - float(factors @ factors)
    )
    if not whole > 0:
        raise MethodError("weights: expected two rows or more with some weight, to make a pair")
    same = factors * (factors - 1) / whole if estimator == ID else np.zeros(len(factors))
    return PairCoefficients(factors, 1 / whole, same)


def single_coefficients(
    values: np.ndarray, weights: Any, estimator: str, groups: int, seed: int | None
) -> np.ndarray:
    """The a_i for which the average is sum_i a_i f(x_i): its gradient with respect to the values.

    The median of means is that of one group, or of two, whose rows alone have coefficients.
    """
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise MethodError("values: expected a list of finite numbers, one a row")
    own = checked_weights(weights, len(values))
    if one_of("estimator", estimator, ESTIMATORS) == MIW:
        found = np.zeros(len(values))
        parts = random_groups(len(values), groups, seed)
        for place, part in middle_groups([own[part] @ values[part] / len(part) for part in parts]):
            found[parts[place]] = part * own[parts[place]] / len(parts[place])
        return found
    if estimator == ID:
        own = copies(own).astype(float)
    return np.asarray(own / (len(own) if estimator == IW else own.sum()))


def checked_weights(weights: Any, rows: int) -> np.ndarray:
    """Weights as an array of finite numbers from zero, some above; None is one for each row."""
    found = np.ones(rows) if weights is None else number_array("weights", weights)
    if found.shape != (rows,):
        raise MethodError(f"weights: expected a number for each of the {rows:,} rows")
    _check(found)
    return found


def random_groups(rows: int, groups: int, seed: int | None) -> list[np.ndarray]:
    """The rows in so many groups of about equal size, at random."""
    groups = whole_number("groups", groups, 1, rows)
    order = np.random.default_rng(seed_or_none(seed)).permutation(rows)
    return np.array_split(order, groups)


def middle_groups(values: list[Any]) -> list[tuple[int, float]]:
    """The places of the values that make the median, with the part that each has in it.

    >>> middle_groups([3.0, 1.0, 2.0]), middle_groups([4.0, 1.0, 2.0, 3.0])
    ([(2, 1.0)], [(2, 0.5), (3, 0.5)])
    """
    order = np.argsort(values, kind="stable")
    half = len(order) // 2
    if len(order) % 2:
        return [(int(order[half]), 1.0)]
    return [(int(order[half - 1]), 0.5), (int(order[half]), 0.5)]


def _of_pairs(
    pairs: Any,
    weights: Any,
    estimator: str,
    groups: int,
    seed: int | None,
    with_itself: bool,
) -> float:
    matrix = number_array("pairs", pairs)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise MethodError("pairs: expected a square matrix, a row and a column for each row")
    own = checked_weights(weights, len(matrix))

    def one(rows: np.ndarray, by: str) -> float:
        found = pair_coefficients(own[rows], by, with_itself)
        inner = matrix[np.ix_(rows, rows)]
        diagonal = np.diag(inner)
        all_pairs = float(found.factors @ inner @ found.factors)
        others = all_pairs - float(found.factors**2 @ diagonal)
        return found.scale * others + float(found.same @ diagonal)

    return by_estimator(one, len(matrix), estimator, groups, seed)


def by_estimator(
    one: Callable[[np.ndarray, str], float],
    rows: int,
    estimator: str,
    groups: int,
    seed: int | None,
) -> float:
    """A statistic of some rows by an estimator, or the median of it over groups."""
    if one_of("estimator", estimator, ESTIMATORS) != MIW:
        return one(np.arange(rows), estimator)
    return float(np.median([one(part, IW) for part in random_groups(rows, groups, seed)]))


def _check(weights: np.ndarray) -> None:
    if weights.ndim != 1 or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise MethodError("weights: expected finite numbers from zero, one a row")
    if not weights.sum() > 0:
        raise MethodError("weights: expected some above zero")
