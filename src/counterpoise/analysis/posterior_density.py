"""The density of an importance-weighted posterior, its mode, and its curvature there.

The weighted posterior is Bissiri, Holmes and Walker's (2016) general one with the loss
-w(x) log f(x | theta), which learns what the private rows would teach from synthetic rows alone
(Ghalebikesabi, Wilde, Jewson, Doucet, Vollmer and Holmes, "Mitigating Statistical Bias within
Differentially Private Synthetic Data", 2022, equation 3):

    log pi(theta | x) = log pi(theta) + sum_i w_i log f(x_i | theta) + constant.

All here is exact, in double precision; `posterior_surface` has the same density for a sampler,
which asks for it thousands of times. The parameters are the coefficients of the features, by
category for a multinomial model, and for a linear model the logarithm of the noise's deviation at
the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from counterpoise.errors import AnalysisError
from counterpoise.formulas import likelihood

FAMILIES = ("linear", "logistic", "multinomial")

_TOLERANCE, _MOST_STEPS = 1e-8, 100


class Task(NamedTuple):
    """All that a posterior depends on, beside its family: rows, their weights, and the prior.

    The prior of the coefficients is normal with a `centre` and a `precision`; that of a linear
    model's noise is exponential with mean `noise`.
    """

    features: Any  # rows x p
    target: Any  # a number, or the code of a category
    weights: Any
    centre: Any
    precision: Any
    noise: Any

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.centre)


class Expansion(NamedTuple):
    """A log-density at a point: its height, its gradient, and its negative Hessian."""

    height: float
    slope: np.ndarray
    curvature: np.ndarray


def log_density(family: str, theta: np.ndarray, task: Task) -> float:
    """log pi(theta | x) up to a constant.

    >>> task = Task(np.ones((4, 1)), np.array([0.0, 0, 0, 1]), np.ones(4), np.zeros(1),
    ...             np.eye(1), 1.0)
    >>> round(log_density("logistic", np.zeros(1), task), 4)  # four times log(1/2)
    -2.7726
    """
    height, _ = prior_height(family, theta, task)
    if family == "linear":
        residuals = (task.target - task.features @ theta[:-1]) * np.exp(-theta[-1])
        return float(height + task.weights @ (-theta[-1] - residuals**2 / 2))
    model = likelihood_of(family, task)
    return height + model.height(model.predictor(theta), task.weights)


def prior_height(family: str, theta: np.ndarray, task: Task) -> tuple[float, np.ndarray]:
    """log pi(theta) up to a constant, and its gradient."""
    apart = theta[: task.size] - task.centre
    pull = task.precision @ apart
    height, slope = -apart @ pull / 2, -pull
    if family == "linear":
        # sigma is exponential, and d sigma = sigma d log(sigma).
        share = np.exp(theta[-1]) / task.noise
        height, slope = height + theta[-1] - share, np.append(slope, 1 - share)
    return float(height), slope


def likelihood_of(family: str, task: Task) -> likelihood.Numeric | likelihood.Multinomial:
    """The likelihood of a logistic or a multinomial model."""
    if family == "logistic":
        binomial = likelihood.FAMILIES["binomial"]
        return likelihood.Numeric(task.features, task.target, binomial)
    categories = task.size // task.features.shape[1] + 1
    return likelihood.Multinomial(task.features, task.target.astype(int), categories)


def expand(family: str, theta: np.ndarray, task: Task) -> Expansion:
    """The log-density with its gradient and negative Hessian."""
    height, slope = prior_height(family, theta, task)
    curvature = np.zeros((len(theta), len(theta)))
    curvature[: task.size, : task.size] = task.precision
    if family == "linear":
        curvature[-1, -1] = np.exp(theta[-1]) / task.noise
        rows = _linear_rows(theta, task)
    else:
        model = likelihood_of(family, task)
        eta, weights = model.predictor(theta), task.weights
        rows = Expansion(
            model.height(eta, weights), model.slope(eta, weights), model.information(eta, weights)
        )
    return Expansion(height + rows.height, slope + rows.slope, curvature + rows.curvature)


def row_gradients(family: str, theta: np.ndarray, task: Task) -> np.ndarray:
    """The gradient of every row's loss -log f with respect to the coefficients."""
    if family == "linear":
        misses = (task.target - task.features @ theta[:-1])[:, None] * np.exp(-2 * theta[-1])
    else:
        model = likelihood_of(family, task)
        misses = model.misses(model.predictor(theta)).reshape(len(task.target), -1)
    return -np.hstack([task.features * each[:, None] for each in misses.T])


class Mode(NamedTuple):
    """The most probable parameters, and the negative Hessian of the log-density there."""

    theta: np.ndarray
    curvature: np.ndarray


def find_mode(family: str, task: Task, start: np.ndarray | None = None) -> Mode:
    """Climb to the mode by Newton's method; a proper prior gives every posterior one.

    >>> task = Task(np.ones((4, 1)), np.array([0.0, 0, 0, 1]), np.ones(4), np.zeros(1),
    ...             np.eye(1) * 1e-9, 1.0)
    >>> find_mode("logistic", task).theta.round(4)  # the logit of a quarter
    array([-1.0986])
    """
    theta = _start(family, task) if start is None else start
    here = expand(family, theta, task)
    for _ in range(_MOST_STEPS):
        step = _ascent(here.curvature, here.slope)
        # slope.step is twice what the quadratic approximation promises, and free of units.
        if here.slope @ step < _TOLERANCE:
            return Mode(theta, here.curvature)
        for _ in range(40):
            there = expand(family, theta + step, task)
            if there.height >= here.height - 1e-9 * abs(here.height):
                break
            step = step / 2
        theta, here = theta + step, there
    raise AnalysisError("formula: the posterior's mode was not found; state a narrower prior")


def _linear_rows(theta: np.ndarray, task: Task) -> Expansion:
    """Of sum_i w_i (-log s - r_i^2 / 2), with r_i = (y_i - x_i beta) / s, by beta and log s."""
    x, weights, inverse = task.features, task.weights, np.exp(-theta[-1])
    residuals = (task.target - x @ theta[:-1]) * inverse
    pull = x.T @ (weights * residuals) * inverse
    squares, total = float(weights @ residuals**2), float(weights.sum())
    corner = np.array([[2 * squares]])
    return Expansion(
        -total * theta[-1] - squares / 2,
        np.append(pull, squares - total),
        np.block(
            [
                [(x * (weights * inverse**2)[:, None]).T @ x, 2 * pull[:, None]],
                [2 * pull[None, :], corner],
            ]
        ),
    )


def _start(family: str, task: Task) -> np.ndarray:
    if family != "linear":
        return np.zeros(task.size)
    root = np.sqrt(task.weights)
    beta = np.linalg.lstsq(task.features * root[:, None], root * task.target)[0]
    total = max(float(task.weights.sum()), 1e-300)
    variance = float(task.weights @ (task.target - task.features @ beta) ** 2) / total
    # Where the features explain all, the prior decides: a small part of its mean to begin with.
    return np.append(beta, np.log(max(np.sqrt(variance), 1e-3 * float(task.noise))))


def _ascent(curvature: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The Newton step, with as much added to the curvature as makes it an ascent."""
    size = float(np.abs(np.diag(curvature)).max()) or 1.0
    for extra in (0.0, *(1e-8 * 10.0**power for power in range(9))):
        try:
            factor = linalg.cho_factor(curvature + extra * size * np.eye(len(slope)))
        except linalg.LinAlgError:
            continue
        return np.asarray(linalg.cho_solve(factor, slope))
    return slope / size
