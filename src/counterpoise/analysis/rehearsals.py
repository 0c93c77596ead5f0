"""Rehearsals: what a release says of itself when it is run again, and answers corrected by that.

A release can be taken for the population: the whole procedure is run on samples of its weighted
rows, and the answers of those runs miss the release's own as these miss the private table's, or at
least on the same side. A part f of what shows is taken off,

    theta_corrected = theta - f b,    b = (1/R) sum_r theta_r - theta,

and the runs' own spread s joins the standard error, V + f^2 s^2 / R. Reference: B. Efron and R. J.
Tibshirani, An Introduction to the Bootstrap, 1993, chapter 10. A correction takes off bias and adds
noise: where b is small beside the standard error e of an answer, the noise is the larger of the
two. So by default f = b^2 / (b^2 + e^2), which is near one where bias rules and near zero where
noise does. All of it is post-processing: runs are made of synthetic rows, and cost nothing.
What a run cannot show, such as a relation that was lost altogether, is not corrected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from counterpoise.analysis.columns import Scale
from counterpoise.analysis.glm import Glm
from counterpoise.analysis.result import Estimate, Estimates, Symmetric, joined
from counterpoise.arguments import real_number, shown
from counterpoise.errors import AnalysisError

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

Statistic = Callable[["Release"], Any]

# A spread of fewer runs says nothing.
LEAST_RUNS = 2

NOT_CORRECTED = "not corrected: rehearsals correct numbers with symmetric intervals"


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A release beside runs of the same procedure on samples of its own synthetic rows.

    Make one with `release.rehearse()`. The runs are releases of synthetic rows, for the statistics
    that are handed to `correct` and `bias`; they have no ledger, because nothing was spent.

    >>> import counterpoise as cp
    >>> table = pd.DataFrame({"ill": [True, False, False, False] * 100})
    >>> release = cp.release(table, cp.Schema([cp.Column.boolean("ill")]), 1.0, seed=1)
    >>> rehearsal = release.rehearse(runs=4, seed=1)
    >>> rehearsal
    <Rehearsal: 4 runs on synthetic rows; nothing private was asked, nothing was spent>
    >>> bool(abs(rehearsal.correct(lambda made: made.mean("ill")).value - 0.25) < 0.1)
    True
    """

    release: Release
    runs: tuple[Release, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.runs) < LEAST_RUNS:
            raise AnalysisError(f"runs: expected {LEAST_RUNS} rehearsals or more")

    def correct(self, statistic: Statistic, part: float | None = None) -> Any:
        """The estimates of the release with bias taken off, in the form in which they come.

        `statistic` is a function of a release that gives back an estimate, several, or a glm, such
        as `lambda release: release.glm("y ~ x")`. `part` is f, from 0 to 1: how much of the bias
        is taken off of every estimate; by default more where it is large beside the standard
        error. Quantiles, dates and bounds of what was never measured are left as they are, and
        say so.
        """
        if part is not None:
            part = _checked_part(part)
        elif self.release.replicates is None:
            raise AnalysisError(
                "part: the release has no replicate weights, so nothing says how much of the bias "
                "is worth taking off; state a part, such as 0.5"
            )
        found, runs = self._asked(statistic)
        members = _members(found)
        made = {
            label: _corrected(member, values, part)
            for (label, member), values in zip(members, runs, strict=True)
        }
        if isinstance(found, Estimate):
            return made[()][0]
        corrected = Estimates(
            _table(found).columns,
            _table(found).labels,
            tuple(estimate for estimate, _ in made.values()),
            _table(found).is_wide,
        )
        if isinstance(found, Glm):
            parts = np.array([own for _, own in made.values()])
            return replace(found, coefficients=corrected, covariance=_added(found, runs, parts))
        return corrected

    def bias(self, statistic: Statistic) -> Estimate | Estimates:
        """The bias that the runs show, b, with the error of their mean; what `correct` goes by."""
        found, runs = self._asked(statistic)
        shown_bias = [
            _shown(member, values)
            for (_, member), values in zip(_members(found), runs, strict=True)
        ]
        if isinstance(found, Estimate):
            return shown_bias[0]
        whole = _table(found)
        return Estimates(whole.columns, whole.labels, tuple(shown_bias), whole.is_wide)

    def _asked(self, statistic: Statistic) -> tuple[Any, list[np.ndarray]]:
        """What the release says, and for every estimate what those runs say that have it."""
        if not callable(statistic):
            raise AnalysisError(
                "statistic: expected a function of a release, such as "
                f'lambda release: release.mean("age"), not {shown(statistic)}'
            )
        found = statistic(self.release)
        if not isinstance(found, Estimate | Estimates | Glm):
            raise AnalysisError(
                "statistic: expected one that gives back an estimate, several of them or a glm, "
                f"not a {type(found).__name__}"
            )
        again = []
        for run in self.runs:
            try:
                again.append(dict(_members(statistic(run))))
            except AnalysisError:
                again.append({})  # a fit that does not converge on these rows
        runs = [
            np.array(
                [
                    float(members[label].value)
                    for members in again
                    if label in members and _is_number(members[label].value)
                ]
            )
            for label, _ in _members(found)
        ]
        return found, runs

    def __repr__(self) -> str:
        return (
            f"<Rehearsal: {len(self.runs)} runs on synthetic rows; nothing private was asked, "
            "nothing was spent>"
        )


def _checked_part(part: Any) -> float:
    found = real_number(
        "part", part, "a number from 0 to 1", AnalysisError, above=0, inclusive=True
    )
    if found > 1:
        raise AnalysisError(f"part: expected a number from 0 to 1, not {shown(part)}")
    return found


def _table(found: Estimates | Glm) -> Estimates:
    return found.coefficients if isinstance(found, Glm) else found


def _members(found: Any) -> list[tuple[tuple[Any, ...], Estimate]]:
    """Estimates with their labels; one alone has none."""
    if isinstance(found, Estimate):
        return [((), found)]
    whole = _table(found)
    return list(zip(whole.labels, whole.members, strict=True))


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, int | float | np.integer | np.floating)
    return is_real and not isinstance(value, bool) and math.isfinite(value)


def _can_be_corrected(member: Estimate, values: np.ndarray) -> bool:
    is_plain = member.span is None or (
        isinstance(member.span, Symmetric) and member.span.scale == Scale()
    )
    return is_plain and _is_number(member.value) and len(values) >= LEAST_RUNS


def _own_part(bias: float, error: float) -> float:
    """The part to take off: f = b^2 / (b^2 + e^2)."""
    return bias**2 / (bias**2 + error**2) if bias else 0.0


def _corrected(member: Estimate, values: np.ndarray, part: float | None) -> tuple[Estimate, float]:
    """The estimate with a part of its bias taken off, and that part."""
    is_weighed = part is not None or member.standard_error is not None
    if not is_weighed or not _can_be_corrected(member, values):
        return replace(member, note=joined(member.note, NOT_CORRECTED)), 0.0
    bias = float(values.mean()) - float(member.value)
    if part is None:
        part = _own_part(bias, float(member.standard_error))
    # theta_corrected = theta - f b
    value = float(member.value) - part * bias
    note = joined(member.note, f"corrected by the bias that {len(values)} rehearsals show")
    if not isinstance(member.span, Symmetric):
        return replace(member, value=value, note=note), part
    span = member.span
    value = min(max(value, span.lowest), span.highest)
    own = part * float(values.std(ddof=1)) / math.sqrt(len(values))
    # V + f^2 s^2 / R
    error = math.hypot(span.standard_error, own)
    degrees = _degrees((span.standard_error, span.degrees), (own, len(values) - 1))
    moved = replace(span, centre=value, standard_error=error, degrees=degrees)
    return replace(member, value=value, standard_error=error, note=note, span=moved), part


def _degrees(*errors: tuple[float, int]) -> int:
    """Degrees of freedom of a sum of variances (Satterthwaite 1946)."""
    whole = math.fsum(error**2 for error, _ in errors) ** 2
    return max(1, int(whole / math.fsum(error**4 / degrees for error, degrees in errors)))


def _shown(member: Estimate, values: np.ndarray) -> Estimate:
    """The mean of the runs less the estimate, with the error of that mean."""
    if not _can_be_corrected(member, values):
        return Estimate(math.nan, None, None, NOT_CORRECTED, support=member.support)
    bias = float(values.mean()) - float(member.value)
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    span = Symmetric(bias, error, len(values) - 1)
    # A bias is that of the weighted answer; there is none of the unweighted one to show.
    return Estimate(bias, error, None, "", span, member.support)


def _added(found: Glm, runs: Sequence[np.ndarray], parts: np.ndarray) -> pd.DataFrame | None:
    """The covariance of corrected coefficients: their own, and that of the runs' mean."""
    if found.covariance is None:
        return None
    spreads = np.array([run.std(ddof=1) if len(run) >= LEAST_RUNS else 0.0 for run in runs])
    counts = np.array([max(1, len(run)) for run in runs])
    together = np.diag(spreads**2 / counts)
    if len(set(map(len, runs))) == 1 and len(runs[0]) >= LEAST_RUNS:
        together = np.atleast_2d(np.cov(np.array(runs))) / len(runs[0])
    return found.covariance + together * np.outer(parts, parts)
