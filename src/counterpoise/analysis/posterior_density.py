"""The density of an importance-weighted posterior, its mode, and its curvature there.

The weighted posterior is Bissiri, Holmes and Walker's (2016) general one with the loss
-w(x) log f(x | theta), which learns what the private rows would teach from synthetic rows alone
(Ghalebikesabi, Wilde, Jewson, Doucet, Vollmer and Holmes, "Mitigating Statistical Bias within
Differentially Private Synthetic Data", 2022, equation 3):

    log pi(theta | x) = log pi(theta) + sum_i w_i log f(x_i | theta) + constant.

Every family is written once, as the log-likelihood of a row; JAX derives the rest. Modes are found
in double precision; the sampler has the rows in single precision, which is as fast again, and sums
them in double. The parameters are the coefficients of the features, by category for a multinomial
model, and for a linear model the logarithm of the noise's deviation at the end.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from counterpoise.errors import AnalysisError

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


def row_log_likelihoods(family: str, theta: Any, task: Task) -> Any:
    """log f(x_i | theta) of every row, for JAX; constants are left out."""
    import jax.numpy as jnp
    from jax.nn import logsumexp, softplus

    theta = jnp.asarray(theta).astype(task.features.dtype)
    if family == "linear":
        beta, log_noise = theta[:-1], theta[-1]
        residuals = (task.target - task.features @ beta) * jnp.exp(-log_noise)
        return -log_noise - residuals**2 / 2
    if family == "logistic":
        # y eta - log(1 + exp(eta))
        eta = task.features @ theta
        return task.target * eta - softplus(eta)
    # eta_y - log sum_k exp(eta_k), with eta = 0 for the first category
    others = task.features @ theta.reshape(-1, task.features.shape[1]).T
    eta = jnp.hstack([jnp.zeros_like(others[:, :1]), others])
    chosen = jnp.take_along_axis(eta, task.target.astype(int)[:, None], axis=1)[:, 0]
    return chosen - logsumexp(eta, axis=1)


def log_density(family: str, theta: Any, task: Task) -> Any:
    """log pi(theta | x) up to a constant, for JAX."""
    import jax.numpy as jnp

    apart = theta[: len(task.centre)] - task.centre
    prior = -apart @ task.precision @ apart / 2
    if family == "linear":
        # sigma is exponential, and d sigma = sigma d log(sigma).
        prior += theta[-1] - jnp.exp(theta[-1]) / task.noise
    # sum_i w_i log f(x_i | theta)
    rows = row_log_likelihoods(family, theta, task)
    return prior + task.weights @ rows.astype(task.weights.dtype)


def compressed(family: str, task: Task) -> Task:
    """The same posterior, up to rounding, for less work at every evaluation."""
    if family != "linear":
        single = np.float32
        return task._replace(
            features=task.features.astype(single), target=task.target.astype(single)
        )
    # The rows of a linear model enter by their number and sum w (y - x beta)^2 alone. With
    # sqrt(w) (X, y) = Q R, that is the sum over the rows of sqrt(m/W) R, each of weight W/m.
    root = np.sqrt(task.weights)[:, None]
    triangle = np.linalg.qr(root * np.column_stack([task.features, task.target]), mode="r")
    share = task.weights.sum() / len(triangle)
    triangle = triangle / np.sqrt(share)
    return task._replace(
        features=triangle[:, :-1], target=triangle[:, -1], weights=np.full(len(triangle), share)
    )


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
    value, slope, curvature = _expansion(family, theta, task)
    for _ in range(_MOST_STEPS):
        step = _ascent(curvature, slope)
        # slope.step is twice what the quadratic approximation promises, and free of units.
        if slope @ step < _TOLERANCE:
            return Mode(theta, curvature)
        for _ in range(40):
            higher, *rest = _expansion(family, theta + step, task)
            if higher >= value - 1e-9 * abs(value):
                break
            step = step / 2
        theta, value, (slope, curvature) = theta + step, higher, rest
    raise AnalysisError("formula: the posterior's mode was not found; state a narrower prior")


def row_gradients(family: str, theta: np.ndarray, task: Task) -> np.ndarray:
    """The gradient of every row's loss -log f with respect to the coefficients."""
    import jax

    with jax.enable_x64(True):
        made = jax.jacfwd(row_log_likelihoods, argnums=1)(family, theta, task)
        return -np.asarray(made)[:, : task.size]


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


def _expansion(family: str, theta: np.ndarray, task: Task) -> tuple[float, np.ndarray, np.ndarray]:
    """The log-density with its gradient and negative Hessian."""
    import jax

    with jax.enable_x64(True):
        value, slope, hessian = _compiled_expansion(family)(theta, task)
    return float(value), np.asarray(slope), -np.asarray(hessian)


@cache
def _compiled_expansion(family: str) -> Any:
    import jax

    def height(theta: Any, task: Task) -> Any:
        return log_density(family, theta, task)

    def expand(theta: Any, task: Task) -> tuple[Any, Any, Any]:
        value, slope = jax.value_and_grad(height)(theta, task)
        return value, slope, jax.hessian(height)(theta, task)

    return jax.jit(expand)
