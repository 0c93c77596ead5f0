"""Certificates: how much worse, at most, a model trained on a release is than on the private rows.

    L_r(w_s) - min over |w| <= tau of L_r(w)  <=  bound,  with probability 1 - failure,

where L_r is the mean loss of the linear model y w.x over the rows of the private table as coded
(`certificate_coding`), all of them and unweighted, and w_s the model of norm at most tau with the
least weighted mean loss over the release's own rows. The probability is over the privacy noise and
holds for any private table. It comes from what the release holds alone: the tables that its
synthesizer measured, the law of the noise on them, and its rows and weights; no private row is
looked at, so a certificate may be published with the release. (After Zhou et al. 2024; what differs
is in the documentation of certificates.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.certificate_coding import CodedFeatures
from counterpoise.analysis.certificate_growth import Landscape, largest_excess
from counterpoise.analysis.certificate_moments import MomentBounds, bound_moments
from counterpoise.analysis.constrained_fit import constrained_fit
from counterpoise.analysis.margin_losses import LOSSES
from counterpoise.analysis.verdict import check_weights
from counterpoise.arguments import one_of, real_number, truth_value
from counterpoise.bundle.card import RETARGETED, rows_counted
from counterpoise.errors import AnalysisError

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# Noise that would have to be less than this part of what it is, is said to be no way out.
LEAST_NOISE = 1 / 64
# The method that counts all pairs in one query.
ALL_PAIRS = "marginals"
# How many pairs that nothing measured are named before the rest is only counted.
_NAMED = 3


@dataclass(frozen=True, eq=False)
class Certificate:
    """A bound on the excess risk of the model `coefficients`, and what it rests on.

    `trivial` bounds the excess risk of any table of such rows, without data; `gain` is how much
    less than that of no model at all the risk on the release is. `raw_bound` is about the same
    model on the private numbers themselves, not on the middles of their cells. `unmeasured` are the
    pairs of columns that no measured table holds; of those only what single columns allow is known.
    `advice` says what would make the bound smaller, where it is no use. A `confidential` one was
    worked out from private rows, and must stay with them.

    >>> import numpy as np, pandas as pd, counterpoise as cp
    >>> schema = cp.Schema([cp.Column.integer("dose", 0, 3), cp.Column.boolean("ill")])
    >>> dose = np.random.default_rng(0).integers(0, 4, 20_000)
    >>> table = pd.DataFrame({"dose": dose, "ill": dose > 1})
    >>> release = cp.release(table, schema=schema, epsilon=2, delta=1e-6, seed=1, rows=5000,
    ...     synthesizer="marginals", weights="uniform", replicates=0, progress=False)
    >>> found = release.certificate("ill", norm=0.5)
    >>> found.bound < found.gain < found.trivial, found.is_vacuous, found.confidential
    (True, False, False)
    """

    target: str
    loss: str
    norm: float
    bound: float
    failure: float
    trivial: float
    gain: float
    risk: float  # of the model on the release
    raw_bound: float
    degree: int  # of the polynomial
    polynomial_error: float
    rows: tuple[float, float]  # bounds on the number of private rows
    names: tuple[str, ...]
    coefficients: np.ndarray
    weighted: bool
    unmeasured: tuple[tuple[str, str], ...] = ()
    advice: str = ""
    confidential: bool = False
    counted: str = ""  # of which private rows it is, where not of all of them
    landscape: Landscape | None = field(default=None, repr=False)

    @property
    def is_vacuous(self) -> bool:
        """Whether it says no more than can be said of any table."""
        return self.bound >= self.trivial

    def __str__(self) -> str:
        probability = f"with probability {1 - self.failure:g}" if self.failure else "for certain"
        lines = [
            f"excess {self.loss} risk of a linear model of {self.target!r} trained on the release: "
            f"at most {self.bound:.4g}, {probability}",
            f"norm {self.norm:g}; {'weighted' if self.weighted else 'unweighted'} rows; on private "
            f"rows as coded ({self.raw_bound:.4g} on their numbers themselves)",
            f"known without data: {self.trivial:.4g}; gain over no model, on the release: "
            f"{self.gain:.4g}",
        ]
        if self.counted:
            lines.append(f"({self.counted})")
        if self.advice:
            lines.append(self.advice)
        if self.confidential:
            lines.insert(0, "CONFIDENTIAL: worked out from private rows")
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """JSON values, without the rows behind them."""
        return {
            "target": self.target,
            "loss": self.loss,
            "norm": self.norm,
            "bound": self.bound,
            "probability": 1 - self.failure,
            "trivial": self.trivial,
            "is_vacuous": self.is_vacuous,
            "gain": self.gain,
            "risk": self.risk,
            "raw_bound": self.raw_bound,
            "degree": self.degree,
            "polynomial_error": self.polynomial_error,
            "rows": list(self.rows),
            "weighted": self.weighted,
            "confidential": self.confidential,
            "counted": self.counted,
            "unmeasured": [list(pair) for pair in self.unmeasured],
            "advice": self.advice,
            "coefficients": dict(zip(self.names, self.coefficients.tolist(), strict=True)),
        }


def certificate(
    release: Release,
    target: str,
    loss: str = "logistic",
    norm: float = 1.0,
    features: Sequence[str] | None = None,
    failure: float = 0.05,
    weighted: bool = True,
) -> Certificate:
    """A bound on the excess risk from the release alone, which may be published with it.

    `target` has two codes; `features` are by default all other modelled columns. `loss` is
    "logistic", "squared" or "hinge" (its corner rounded), `norm` the largest norm of the
    coefficients, that of the intercept included; the bound holds but for a chance of `failure`.
    Without `weighted` the model is trained on the rows without their weights. (A release that was
    made `unweighted()` or reweighted has let go of the tables that it was measured by.)
    """
    expected = "a number between 0 and 1"
    failure = real_number("failure", failure, expected, AnalysisError, above=0, below=1)
    trained = train(release, target, loss, norm, features, weighted)
    tables, known = _measured(release)
    bounds = bound_moments(trained.coding, trained.moments, tables, failure=failure, **known)
    return replace(certified(trained, bounds, failure), counted=rows_counted(release.card))


@dataclass(frozen=True, eq=False)
class Trained:
    """The model of least risk on a release, the rows it was trained on, and their moments."""

    coding: CodedFeatures
    landscape: Landscape
    moments: np.ndarray  # E_s[z z'] for z = (1, features, label)
    risk: float
    weighted: bool


def train(
    release: Release,
    target: str,
    loss: str,
    norm: float,
    features: Sequence[str] | None,
    weighted: bool = True,
) -> Trained:
    """Train the model that a certificate is about."""
    weighted = truth_value("weighted", weighted, AnalysisError)
    if weighted:
        check_weights(release)
    elif not len(release.table):
        raise AnalysisError("the release has no rows, so there is nothing to train on")
    if release.card.get(RETARGETED):
        raise AnalysisError(
            "certificate: the release was turned to another population, of which no row was "
            "counted; ask the release that it was made from"
        )
    chosen = LOSSES[one_of("loss", loss, LOSSES, AnalysisError)]
    norm = real_number("norm", norm, "a positive number", AnalysisError, above=0)
    schema = release.schema.modelled
    coding = CodedFeatures.of(schema, target, features)
    rows, labels = coding(schema.encode(release.table[list(schema.names)]).codes)
    own = release.weights if weighted else np.ones(len(rows))
    weights = own / own.sum()
    fitted = constrained_fit(rows, labels, weights, chosen, norm)
    landscape = Landscape.of(
        rows,
        weights,
        fitted.coefficients,
        loss=chosen,
        norm=norm,
        reach=coding.reach,
        gap=fitted.gap,
    )
    both = np.column_stack([rows, labels])
    moments = (both * weights[:, None]).T @ both
    return Trained(coding, landscape, moments, fitted.risk, bool(np.ptp(own) > 0))


def certified(trained: Trained, bounds: Sequence[MomentBounds], failure: float) -> Certificate:
    """The certificate of a trained model under bounds on the private moments, all of which hold."""
    landscape, coding = trained.landscape, trained.coding
    bound, polynomial = largest_excess(landscape, bounds)
    loss, norm = landscape.loss, landscape.norm
    # |w.x - w.x'| <= tau |half widths|, for the trained model and for the best one
    hidden = 2 * loss.lipschitz(norm * coding.reach) * norm * np.linalg.norm(coding.half_widths)
    gain = float(loss.value(np.zeros(1))[0]) - trained.risk
    unmeasured = _unmeasured(coding, bounds[0])
    return Certificate(
        target=coding.target,
        loss=loss.name,
        norm=norm,
        bound=float(bound),
        failure=failure,
        trivial=landscape.trivial,
        gain=gain,
        risk=trained.risk,
        raw_bound=min(bound + float(hidden), landscape.trivial),
        degree=polynomial.degree,
        polynomial_error=polynomial.error,
        rows=bounds[0].rows,
        names=coding.names,
        coefficients=landscape.coefficients,
        weighted=trained.weighted,
        unmeasured=unmeasured,
        advice=_advice(landscape, bounds, bound, gain, unmeasured),
        landscape=landscape,
    )


def _measured(release: Release) -> tuple[list[Any], dict[str, Any]]:
    """The tables that the synthesizer counted, and what is known of them and of their noise."""
    from counterpoise.bundle.models import SavedModels

    card, models = release.card, release.models
    if isinstance(models, SavedModels):
        models = models.open(release.schema.modelled, card)
    tables = list(getattr(getattr(models, "synthesizer", None), "measured", ()))
    budget = (card.get("ledger") or {}).get("budget") or {}
    law = "laplace" if budget.get("delta") == 0 else "gaussian"
    if law == "laplace" and tables:
        # Sums of larger tables, which a model may hold too, have noise that is no Laplace noise.
        least = min(table.scale for table in tables)
        tables = [table for table in tables if table.scale <= least * (1 + 1e-9)]
    made = card.get("synthesizer") or {}
    parameters = made.get("parameters") or {}
    every_pair = parameters.get("degree") == 2 and parameters.get("workload") is None
    pairs = [table.scale for table in tables if len(table.columns) == 2]
    at_once = made.get("method") == ALL_PAIRS and every_pair and law == "gaussian" and bool(pairs)
    repeats = None
    if made.get("method") == ALL_PAIRS:
        # What its model has no room for it holds as single columns, in an order that noise decides.
        workload, width = parameters.get("workload"), int(parameters.get("degree") or 1)
        columns = len(release.schema.modelled)
        with_a_column = sum(math.comb(columns - 1, others) for others in range(width))
        repeats = len(workload) if workload else with_a_column
    population = card.get("population")
    return tables, {
        "law": law,
        "guess": 1.0 if population is None else float(population),
        "rows": population if card.get("population_is_public") else None,
        "all_pairs": pairs[0] if at_once else None,
        "repeats": repeats,
    }


def _unmeasured(coding: CodedFeatures, bounds: MomentBounds) -> tuple[tuple[str, str], ...]:
    """Pairs of columns of which no measured table tells, those with the target first."""
    names = [coding.target, *coding.columns]
    return tuple(
        (one, two)
        for one, two in itertools.combinations(names, 2)
        if not bounds.is_measured[coding.places[one], coding.places[two]].all()
    )


def _advice(
    landscape: Landscape,
    bounds: Sequence[MomentBounds],
    bound: float,
    gain: float,
    unmeasured: Sequence[tuple[str, str]],
) -> str:
    """What would bring the bound below the gain of training; nothing where it is there already."""
    if bound < gain:
        return ""
    said = "this says nothing" if bound >= landscape.trivial else "this is more than the gain"
    parts = []
    if unmeasured:
        named = ", ".join(" x ".join(pair) for pair in unmeasured[:_NAMED])
        more = f" and {len(unmeasured) - _NAMED} pairs more" if len(unmeasured) > _NAMED else ""
        parts.append(
            f"nothing measured {named}{more}: synthesizer 'marginals' counts every pair, and fewer "
            "features need fewer"
        )
    factor = 1.0
    while factor >= LEAST_NOISE:
        factor /= 2
        if largest_excess(landscape, [each.scaled(factor) for each in bounds])[0] < gain:
            parts.append(
                f"about {1 / factor:g} times the epsilon (or the rows) would bring it there"
            )
            break
    else:
        parts.append("no budget brings it there at this norm; a smaller norm may")
    return f"{said}; " + "; ".join(parts)
