"""Fit a maximum-entropy model to noisy marginals.

The measurements y_i = M_i p + noise of standard deviation s_i leave many tables p possible; the fit
is the one that minimises

    1/2 sum_i ||M_i p - y_i||^2 / s_i^2  +  tau * sum_x p(x) log(p(x) / u(x)),

least squares as in Private-PGM (McKenna, Sheldon and Miklau 2019) with a little entropy, u being
the uniform table. Its solution is a graphical model p = total * exp(sum_i theta_i - log Z) whose
potentials minimise the smooth convex dual

    g(theta) = total * log Z(theta) - <theta, y> + tau/2 sum_i s_i^2 ||theta_i||^2,

which takes tens of passes where mirror descent takes hundreds or more. The potentials are tied to
the residuals by tau * s_i^2 * theta_i = y_i - M_i p: with tau = entropy / s, a cell is pulled
towards the uniform by entropy * theta noise scales. Least squares alone (entropy near 0) spends
its freedom on fitting negative noisy counts; a pull within the noise filters it, and is the more
welcome the more of a measurement is noise. With the columns as a prior, u is the product of their
likely counts, and theta_i is what is added to the logarithm of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from counterpoise.arguments import positive_or_none, real_number, whole_number
from counterpoise.errors import MethodError
from counterpoise.synthesizers.graphical.columns_prior import towards_columns
from counterpoise.synthesizers.graphical.contraction import (
    compile_contraction,
    log_partition_and_marginals,
)
from counterpoise.synthesizers.graphical.descent import minimise
from counterpoise.synthesizers.graphical.domain import Domain
from counterpoise.synthesizers.graphical.factor import Array, Factor
from counterpoise.synthesizers.graphical.inference import Schedule, Workspace, compile_schedule
from counterpoise.synthesizers.graphical.junction_tree import junction_tree
from counterpoise.synthesizers.graphical.measurements import (
    Measurement,
    combine,
    estimate_total,
    pull,
)
from counterpoise.synthesizers.graphical.model import GraphicalModel
from counterpoise.synthesizers.graphical.precondition import precondition

# What a fit is pulled towards: the uniform table, or independent columns with likely counts.
Prior = Literal["uniform", "columns"]


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and how the fit went."""

    model: GraphicalModel
    loss: float  # 1/2 sum_i ||M_i p - y_i||^2 / s_i^2 at the model
    gap: float  # the duality gap: the objective is at most this far above its minimum
    passes: int  # how often the marginals were inferred


def fit(
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    total: float | None = None,
    warm_start: GraphicalModel | None = None,
    entropy: float | None = None,
    prior: Prior = "uniform",
    tolerance: float = 1e-3,
    iterations: int = 200,
) -> GraphicalModel:
    """The maximum-entropy model of `measurements`; see `fit_report` for the parameters.

    >>> domain = Domain(("a", "b"), (2, 2))
    >>> counts = Measurement(("a",), np.array([30.0, 10.0]), scale=0.01)
    >>> fit(domain, [counts]).marginal(("a", "b")).round(2)
    array([[15., 15.],
           [ 5.,  5.]])
    """
    report = fit_report(
        domain,
        measurements,
        total=total,
        warm_start=warm_start,
        entropy=entropy,
        prior=prior,
        tolerance=tolerance,
        iterations=iterations,
    )
    return report.model


def fit_report(
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    total: float | None = None,
    warm_start: GraphicalModel | None = None,
    entropy: float | None = None,
    prior: Prior = "uniform",
    tolerance: float = 1e-3,
    iterations: int = 200,
) -> Fit:
    """Fit and say how it went.

    `total` is the number of rows; without it the measurements estimate it. `warm_start` lends its
    potentials. `entropy` is the pull towards the uniform in noise scales for each unit of
    log-potential; by default it is the noise's share of the measurements, between 0.1 and 1. With
    the columns as `prior`, single columns are taken towards their likely counts, and the pull is
    towards the product of these. The fit ends when the duality gap is below `tolerance` of the
    loss (of 1, if the loss is smaller), or after `iterations` steps.
    """
    entropy = positive_or_none("entropy", entropy)
    tolerance = real_number("tolerance", tolerance, "a positive number", above=0)
    iterations = whole_number("iterations", iterations)
    combined = combine(domain, measurements)
    if total is None:
        total = estimate_total(combined)
    if not total > 0:
        raise MethodError("total must be above 0: the model is scaled to it")
    tree = junction_tree(domain, [measurement.columns for measurement in combined])
    schedule = compile_schedule(tree, frozenset(part.columns for part in combined))
    workspace = Workspace(schedule)
    base = np.zeros(schedule.cells)
    if prior == "columns":
        combined, columns_base = towards_columns(combined, total)
        for columns, place in zip(schedule.columns, schedule.slices, strict=True):
            if columns in columns_base:
                base[place] = columns_base[columns]
    answers, scales = _flatten(schedule, combined)
    start = _starting_point(schedule, warm_start) - base
    if not len(start):
        return Fit(GraphicalModel.from_potentials(domain, (), total), 0.0, 0.0, 1)
    contraction = compile_contraction(schedule)
    variances = scales**2
    tau = pull(combined, total, entropy)

    def infer(potentials: Array) -> tuple[float, Array]:
        found = log_partition_and_marginals(contraction, schedule, base + potentials)
        log_partition, marginals = found or workspace.marginals(base + potentials)
        return total * log_partition, total * marginals

    def loss(residual: Array) -> float:
        return 0.5 * float(np.sum(residual**2 / variances))

    descent = minimise(
        infer,
        answers,
        tau * variances,
        start,
        precondition=precondition(schedule, tau * variances),
        # The duality gap at p(theta) and theta is 1/2 sum_i ||gradient_i||^2 / s_i^2.
        converged=lambda gradient, residual: loss(gradient) <= tolerance * max(1.0, loss(residual)),
        iterations=iterations,
    )
    # The sweeps build no clique tables; the model has them.
    potentials = base + descent.potentials
    workspace.marginals(potentials)
    return Fit(
        model=GraphicalModel.from_workspace(
            workspace, potentials, descent.log_partition / total, total
        ),
        loss=loss(descent.marginals - answers),
        gap=loss(descent.gradient),
        passes=descent.passes,
    )


def _flatten(schedule: Schedule, measurements: Sequence[Measurement]) -> tuple[Array, Array]:
    """The answers and their noise scales as flat vectors in the schedule's layout."""
    by_columns = {frozenset(measurement.columns): measurement for measurement in measurements}
    answers = np.empty(schedule.cells)
    scales = np.empty(schedule.cells)
    for i, columns in enumerate(schedule.columns):
        measurement = by_columns[frozenset(columns)]
        place = slice(schedule.offsets[i], schedule.offsets[i + 1])
        table = Factor(measurement.columns, measurement.values).transpose(columns)
        answers[place] = table.values.reshape(-1)
        scales[place] = measurement.scale
    return answers, scales


def _starting_point(schedule: Schedule, warm_start: GraphicalModel | None) -> Array:
    """The potentials of `warm_start` in the schedule's layout; those with no place are dropped."""
    start = np.zeros(schedule.cells)
    if warm_start is None:
        return start
    domain = schedule.tree.domain
    places = {frozenset(columns): i for i, columns in enumerate(schedule.columns)}
    for potential in warm_start.potentials:
        i = places.get(frozenset(potential.columns))
        if i is not None and potential.values.shape == domain.shape(potential.columns):
            columns = schedule.columns[i]
            place = slice(schedule.offsets[i], schedule.offsets[i + 1])
            start[place] = potential.transpose(columns).values.reshape(-1)
    return start
