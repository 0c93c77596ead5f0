"""Private selection: one of several public candidates, by a score that the vault computes.

The exponential mechanism picks candidate i with probability proportional to
exp(epsilon u_i / (2 D)), where D is the sensitivity of the scores. It is epsilon-DP and, having
bounded range, (epsilon^2/8)-zCDP. Scores are rounded to a grid first, and the rounding is added
to D. A score sees exact counts, so scores live in this room. [PRIVACY: mechanisms]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from counterpoise.arguments import number_array, settle
from counterpoise.errors import VaultError
from counterpoise.vault.asked import cliques_of, require_methods, share_of
from counterpoise.vault.budget import Budget, Share
from counterpoise.vault.counts import check_clique
from counterpoise.vault.events import ExponentialDpEvent
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# Scores are rounded to this part of their sensitivity.
_SCORE_PLACES = 2.0**-20

# And they are cut off at this multiple of it, where floating point no longer tells such parts.
_LARGEST_SCORE = 2.0**32

# Sums of such parts are exact up to 2^33, whatever their order: errors are cut off well below that,
# before an allowance is taken from them and what told one row from none is lost.
_LARGEST_ERROR = 2.0**31

# What a score is made of is a number whose products with all others are numbers too.
_LEAST_WEIGHT, _LARGEST_NUMBER = 1e-100, 1e100

# Scores are computed on copies of so many cells at a time, so that wide tables fit into memory.
_BATCH_CELLS = 1_000_000


_OF_A_SCORE = ("require", "sensitivity", "values")


class Score(Protocol):
    """A score of contingency tables, with the most that one person's rows can change it."""

    def require(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Refuse, before the charge, to score tables of shapes that the score is not made for."""
        ...

    def sensitivity(self, budget: Budget) -> float:
        """The largest change of any candidate's score between neighbouring tables."""
        ...

    def values(self, tables: Sequence[np.ndarray]) -> np.ndarray:
        """One score a candidate, from the exact table of each; higher is chosen more often."""
        ...


@dataclass(frozen=True)
class MarginalError:
    """How badly public estimates miss the private tables, in L1, less a public allowance.

    score_i = weight_i (norm1(table_i - estimate_i) - allowance_i). A row more or less changes a
    table by one count and so the norm by at most one; a replaced row by at most two. A norm
    beyond 2^31 counts as that: cutting brings two norms nearer to each other.
    """

    estimates: Sequence[np.ndarray]
    weights: np.ndarray
    allowances: np.ndarray

    def __post_init__(self) -> None:
        weights = number_array("weights", self.weights, error=VaultError)
        allowances = number_array("allowances", self.allowances, error=VaultError)
        settle(self, weights=weights, allowances=allowances)
        largest = np.max(np.abs(weights), initial=0.0)
        if not (largest == 0 or _LEAST_WEIGHT <= largest <= _LARGEST_NUMBER):
            raise VaultError(
                f"weights: expected the largest to be from {_LEAST_WEIGHT:g} to "
                f"{_LARGEST_NUMBER:g}; give them in another unit"
            )
        if not np.max(np.abs(allowances), initial=0.0) <= _LARGEST_NUMBER:
            raise VaultError(f"allowances: expected numbers of at most {_LARGEST_NUMBER:g}")

    def require(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """A weight, an allowance and an estimate of its size for each table."""
        count = len(shapes)
        for name, found in (("weights", self.weights), ("allowances", self.allowances)):
            if found.shape != (count,):
                raise VaultError(f"{name}: expected {count}, one for each candidate")
        if not isinstance(self.estimates, Sequence) or len(self.estimates) != count:
            raise VaultError(f"estimates: expected {count} arrays, one for each candidate")
        estimates = [np.asarray(estimate) for estimate in self.estimates]
        sizes = [math.prod(shape) for shape in shapes]
        for estimate, shape, cells in zip(estimates, shapes, sizes, strict=True):
            if estimate.dtype.kind not in "biuf" or estimate.shape not in (shape, (cells,)):
                raise VaultError(
                    f"estimates: expected numbers for the {cells} cells of a candidate, in their "
                    "shape or flat"
                )
        for batch in _batches(sizes):
            together = np.concatenate([estimate.ravel() for estimate in estimates[batch]])
            if not np.max(np.abs(together)) <= _LARGEST_NUMBER:
                raise VaultError(f"estimates: expected numbers of at most {_LARGEST_NUMBER:g}")

    def sensitivity(self, budget: Budget) -> float:
        """max |weight|, times two for a replaced row, times the rows of a person."""
        return budget.row_sensitivity(float(np.max(np.abs(self.weights))))

    def values(self, tables: Sequence[np.ndarray]) -> np.ndarray:
        """The weighted L1 errors."""
        errors = np.empty(len(tables))
        for batch in _batches([table.size for table in tables]):
            # End to end, because there may be tens of thousands of small tables.
            exact = np.concatenate([table.ravel() for table in tables[batch]])
            parts = [np.ravel(estimate) for estimate in self.estimates[batch]]
            estimated = _on_grid(np.concatenate(parts, dtype=float))
            starts = np.cumsum([0, *(table.size for table in tables[batch][:-1])])
            errors[batch] = np.add.reduceat(np.abs(exact - estimated), starts)
        over = np.minimum(errors, _LARGEST_ERROR) - _on_grid(self.allowances)
        scores: np.ndarray = self.weights * over
        return scores


@dataclass(frozen=True)
class Dependence:
    """How much the first column of a table depends on the others: n times a total variation.

    score = 1/2 norm1(table - product), with product(x, y) = table(x, .) table(., y) / n.
    Adding a row changes the table by 1, and the product by
    norm1(outer(c, d) (1/(n+1) - 1/n)) + norm1(outer(e, d) + outer(c, e) + e e) / (n+1)
    <= n/(n+1) + (2n+1)/(n+1) < 3, so the score by less than 2; a replaced row by less than 4.
    """

    def require(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Any table has a dependence."""

    def sensitivity(self, budget: Budget) -> float:
        """Two a row that is added or removed."""
        return budget.row_sensitivity(2.0)

    def values(self, tables: Sequence[np.ndarray]) -> np.ndarray:
        """The dependence in each table."""
        return np.array([_dependence(table) for table in tables])


def _dependence(table: np.ndarray) -> float:
    joint = table.reshape(table.shape[0], -1).astype(float)
    rows = joint.sum()
    if rows == 0:
        return 0.0
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / rows
    return float(np.abs(joint - product).sum() / 2)


def _on_grid(values: np.ndarray) -> np.ndarray:
    """The nearest multiples of the places of a score."""
    return np.rint(values / _SCORE_PLACES) * _SCORE_PLACES


def _batches(sizes: Sequence[int]) -> Iterator[slice]:
    """Runs of tables of at most `_BATCH_CELLS` cells together, or of one table."""
    start, cells = 0, 0
    for place, size in enumerate(sizes):
        if cells and cells + size > _BATCH_CELLS:
            yield slice(start, place)
            start, cells = place, 0
        cells += size
    yield slice(start, len(sizes))


def select(vault: Vault, candidates: Sequence[Sequence[str]], score: Score, share: Share) -> int:
    """The index of one of the candidate cliques; charges one exponential mechanism."""
    wanted, share = cliques_of("candidates", candidates), share_of(share)
    require_methods("score", score, "a score, such as Dependence()", *_OF_A_SCORE)
    if not wanted:
        raise VaultError("select: expected at least one candidate")
    for candidate in wanted:
        check_clique(vault, candidate)
    score.require([vault.schema.shape(candidate) for candidate in wanted])
    sensitivity = score.sensitivity(vault.budget)
    if not 0 < sensitivity < math.inf:
        raise VaultError("select: a score that no row can change has nothing to choose by")
    epsilon = share.selection_epsilon

    def look(storage: Storage, source: Noise) -> np.ndarray:
        scores = score.values(storage.counts(wanted))
        return np.array([exponential_choice(source, scores, sensitivity, epsilon)])

    query = f"selection among {len(wanted)} marginals"
    asked = {"candidates": wanted, "score": type(score).__name__}
    return int(vault._ask(query, ExponentialDpEvent(epsilon), look, asked)[0])


def exponential_choice(noise: Noise, scores: np.ndarray, sensitivity: float, epsilon: float) -> int:
    """Draw an index by the exponential mechanism; the caller has charged it."""
    # Rounding moves a score by at most half a step, so a difference by at most one; another step
    # covers the floating-point error of the score itself, up to a thousand million rows.
    rate = epsilon * _SCORE_PLACES / (2 * (1 + 2 * _SCORE_PLACES))
    # Beyond that a score is cut off, which brings two scores nearer to each other and never apart.
    relative = np.nan_to_num(np.asarray(scores) / sensitivity, nan=-_LARGEST_SCORE)
    cut = np.clip(relative, -_LARGEST_SCORE, _LARGEST_SCORE)
    return noise.choose(np.rint(cut / _SCORE_PLACES).astype(np.int64), rate)
