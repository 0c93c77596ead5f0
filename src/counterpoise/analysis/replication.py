"""Replicate weights: the one place that turns repeated estimates into a standard error.

A release has a weight and R replicate weights for every row. A statistic is computed with the
weight, with every replicate, and with no weight at all; the replicates differ from the weight as
another private sample, other privacy noise and other synthetic rows would have made it differ.
Their spread around the full estimate is the variance,

    V = 1/(R p^2) sum_r (theta_r - theta)^2,

for replicates that go a part p of the way, as in Fay's method; with c = 1/(R p^2), which the card
states, it is `svrepdesign(type = "other", scale = c, rscales = 1, mse = TRUE)` of R's package
survey. Here every result is first brought the whole way (`Design.whole_way`), so that nobody else
has to know p. The standard error is as good as the replicates are: they know the noise, not what
the synthesizer left out. Reference: K. M. Wolter, Introduction to Variance Estimation, 2007.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import stdtrit

from counterpoise.analysis.verdict import check_weights
from counterpoise.arguments import real_number, shown
from counterpoise.bundle.stored_rows import StoredRows
from counterpoise.errors import AnalysisError

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# The last axis of every array of results: the weighted result, the unweighted one, the replicates.
FULL, UNWEIGHTED, REPLICATES = 0, 1, slice(2, None)

# So many numbers in double precision stay in a processor's cache.
_NUMBERS_AT_ONCE = 50_000
# Up to here lines that are mostly zero are summed faster as if they were not.
_FEW_LINES = 16

NO_REPLICATES = "no standard error, because the release has no replicate weights"


def truth(option: str, value: Any) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool | np.bool_):
        raise AnalysisError(f"{option}: expected True or False, not {shown(value)}")
    return bool(value)


@dataclass(frozen=True, eq=False)
class Design:
    """How rows are weighted: by their weight, all alike, and by each replicate.

    >>> design = Design(np.array([0.5, 1.5]), np.array([[1.0, 0.2], [1.0, 1.8]]))
    >>> design.sums(np.array([[10.0, 20.0]]))
    array([[35., 30., 30., 38.]])
    """

    weights: np.ndarray
    # In memory, or where they are read from a block of rows at a time.
    replicates: np.ndarray | StoredRows | None = None
    part: float = 1.0  # of the way from the weight, that replicates go

    @classmethod
    def of(cls, release: Release) -> Design:
        """The design of a release whose weights may be used."""
        check_weights(release)
        stored = release.stored
        if stored is not None and stored.is_large:
            if not release.replicate_count:
                return cls(stored.weights)
            return cls(stored.weights, stored, release.replicate_part)
        replicates = release.replicates
        if replicates is not None and replicates.shape[:1] != release.weights.shape:
            raise AnalysisError("replicates: expected one row for every row of the table")
        if replicates is not None and replicates.shape[1] == 0:
            replicates = None
        return cls(release.weights, replicates, release.replicate_part)

    @property
    def count(self) -> int:
        """The number of replicates."""
        if isinstance(self.replicates, StoredRows):
            return self.replicates.replicates
        return 0 if self.replicates is None else self.replicates.shape[1]

    def replicate(self, place: int) -> np.ndarray:
        """One replicate weight of every row."""
        assert self.replicates is not None
        if isinstance(self.replicates, StoredRows):
            return self.replicates.replicate(place)
        return self.replicates[:, place]

    def sums(self, rows: Any) -> np.ndarray:
        """Weighted sums of each line of `rows` (lines x rows, dense or sparse): lines x (2 + R)."""
        return self.several_sums(rows)[0]

    def several_sums(self, *several: Any) -> list[np.ndarray]:
        """The `sums` of several sets of lines, in one pass over the replicates."""
        equal = np.ones(len(self.weights))
        lines = [rows.tocsc() if sparse.issparse(rows) else rows for rows in several]
        found = [np.zeros((rows.shape[0], 2 + self.count)) for rows in lines]
        for rows, sums in zip(lines, found, strict=True):
            sums[:, FULL], sums[:, UNWEIGHTED] = rows @ self.weights, rows @ equal
        for some, replicates in self.blocks():
            for rows, sums in zip(lines, found, strict=True):
                part = rows[:, some]
                if sparse.issparse(part) and len(sums) <= _FEW_LINES:
                    part = part.toarray()
                sums[:, REPLICATES] += part @ replicates
        return found

    def whole_way(self, results: np.ndarray) -> np.ndarray:
        """Statistics (any shape x (2 + R)) as if the replicates went the whole way.

        >>> Design(np.ones(2), np.ones((2, 2)), part=0.5).whole_way(np.array([5.0, 5.0, 4.0, 6.0]))
        array([5., 5., 3., 7.])
        """
        if self.part == 1:
            return results
        full = results[..., [FULL]]
        moved = full + (results[..., REPLICATES] - full) / self.part
        return np.concatenate([results[..., :2], moved], axis=-1)

    def blocks(
        self, rows: np.ndarray | None = None, beside: int = 0
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """The replicates in double precision, a few rows that fit into a cache at a time.

        Of all rows, or of those at some positions, in order; `beside` is how many other numbers of
        a row the cache has to hold.
        """
        if rows is not None and len(rows) == len(self.weights):
            rows = None
        step = max(_NUMBERS_AT_ONCE // max(self.count, beside, 1), 1)
        for start, part in self._parts():
            ends = start, start + len(part)
            first, last = ends if rows is None else np.searchsorted(rows, ends).tolist()
            for begin in range(first, last, step):
                some = slice(begin, min(begin + step, last))
                chosen = slice(begin - start, some.stop - start)
                block = part[chosen if rows is None else rows[some] - start]
                # In the order in which they are held: there are many of them, and few lines.
                yield some, block.astype(float, order="K")

    def _parts(self) -> Iterator[tuple[int, np.ndarray]]:
        """The replicates as they are held or read: where each part begins, and rows x R."""
        if isinstance(self.replicates, StoredRows):
            yield from self.replicates.replicate_blocks()
        elif self.replicates is not None:
            yield 0, self.replicates

    def each(self) -> Iterator[np.ndarray]:
        """The weights, equal weights, and every replicate, in the order of the last axis."""
        yield self.weights
        yield np.ones(len(self.weights))
        for place in range(self.count):
            yield self.replicate(place)


def covariance(results: np.ndarray) -> np.ndarray:
    """The covariance of several statistics (statistics x (2 + R)); those undefined are left out.

    >>> covariance(np.array([[5.0, 5.0, 4.0, 6.0], [1.0, 1.0, 1.0, 3.0]]))
    array([[1., 1.],
           [1., 2.]])
    """
    deviations = results[:, REPLICATES] - results[:, [FULL]]
    deviations = deviations[:, np.isfinite(deviations).all(axis=0)]
    if not deviations.shape[1]:
        return np.full((len(results), len(results)), np.nan)
    # V = (1/R) sum_r (theta_r - theta) (theta_r - theta)', all the way: p = 1
    return np.asarray(deviations @ deviations.T / deviations.shape[1])


def standard_errors(results: np.ndarray) -> np.ndarray:
    """The standard error of every statistic (any shape x (2 + R)); NaN where it has none.

    >>> standard_errors(np.array([5.0, 5.0, 4.0, 6.0])).item()
    1.0
    """
    squares = (results[..., REPLICATES] - results[..., [FULL]]) ** 2
    defined = np.isfinite(squares)
    count = defined.sum(axis=-1)
    # V = (1/R) sum_r (theta_r - theta)^2, all the way, over the replicates that define theta_r.
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(np.where(defined, squares, 0.0).sum(axis=-1) / count))


def multiplier(level: float, degrees: int) -> float:
    """The number of standard errors from an estimate to the end of its interval.

    Student's t with R degrees of freedom: V averages R squares around a centre that is given.

    >>> round(multiplier(0.95, 80), 2)
    1.99
    """
    return _student(checked_level(level), degrees)


def checked_level(level: Any) -> float:
    """A level as a plain number between 0 and 1."""
    return real_number("level", level, "a number between 0 and 1", AnalysisError, above=0, below=1)


@lru_cache(maxsize=256)
def _student(level: float, degrees: int) -> float:
    return float(stdtrit(degrees, 0.5 + level / 2))
