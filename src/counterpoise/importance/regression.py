"""Ridge regressions of labels and of factors, with how far off they may be.

True and false by logistic regression, logarithms of factors by linear regression, each with a
normal prior on the coefficients (a ridge penalty). How strong it is, and how much of the factors'
variance is noise, is chosen from a short list as that under which the labels are likeliest (D. J.
C. MacKay, "Bayesian Interpolation", 1992). The covariance is the posterior's, by Laplace's
approximation for labels and exactly for factors.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

LOGISTIC, LOG_LINEAR = "logistic", "log-linear"
# By how much the logarithm may vary, and the part of a factor's variance that is noise.
SPREADS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
NOISES = (0.001, 0.01, 0.05, 0.2, 0.5, 0.9)
# The intercept's own deviation: as good as none.
INTERCEPT_DEVIATION = 10.0


def fit_labels(
    matrix: np.ndarray, target: np.ndarray, link: str, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of features, the constant first, and a square root of their covariance.

    The target is 0 or 1, or the logarithm of a factor. The other features are in so many groups,
    each of which has a total variance of about one where it will be used.
    """
    # sum over groups of beta^2 times a variance of one is tau^2, for beta^2 = tau^2 / groups
    penalties = np.full(matrix.shape[1], float(groups))
    fit = _logistic if link == LOGISTIC else _log_linear
    coefficients, covariance = fit(matrix, target, penalties)
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return coefficients, np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _logistic(
    matrix: np.ndarray, labels: np.ndarray, penalties: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The mode and Laplace's covariance, at the spread under which the labels are likeliest."""
    best, chosen = -math.inf, None
    mode = np.zeros(matrix.shape[1])
    for spread in SPREADS:
        precision = _precision(penalties, spread)
        mode = _mode(matrix, labels, precision, mode)
        logits = matrix @ mode
        likelihood = float(np.sum(labels * logits - np.logaddexp(0, logits)))
        hessian = _curvature(matrix, logits) + np.diag(precision)
        # log p(y) = log p(y | b) - b'Pb/2 + log|P|/2 - log|H|/2, at the mode b
        evidence = likelihood - 0.5 * float(precision @ mode**2)
        evidence += 0.5 * float(np.log(precision).sum() - np.linalg.slogdet(hessian)[1])
        if evidence > best:
            best, chosen = evidence, (mode, np.linalg.inv(hessian))
    assert chosen is not None
    return chosen


def _mode(
    matrix: np.ndarray, labels: np.ndarray, precision: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """The most likely coefficients under the prior, by Newton's method with halved steps."""

    def loss(found: np.ndarray) -> float:
        logits = matrix @ found
        fit = float(np.sum(np.logaddexp(0, logits) - labels * logits))
        return fit + 0.5 * float(precision @ found**2)

    mode, value = start, loss(start)
    for _ in range(100):
        logits = matrix @ mode
        gradient = matrix.T @ (expit(logits) - labels) + precision * mode
        step = np.linalg.solve(_curvature(matrix, logits) + np.diag(precision), gradient)
        decrement = float(gradient @ step)
        length = 1.0
        while length > 1e-8 and loss(mode - length * step) > value - 0.1 * length * decrement:
            length /= 2
        if decrement < 1e-10 or length <= 1e-8:
            break
        mode = mode - length * step
        value = loss(mode)
    return mode


def _curvature(matrix: np.ndarray, logits: np.ndarray) -> np.ndarray:
    chances = expit(logits)
    return np.asarray((matrix * (chances * (1 - chances))[:, None]).T @ matrix)


def _log_linear(
    matrix: np.ndarray, logs: np.ndarray, penalties: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The posterior's mean and covariance, at the spread and noise that are likeliest."""
    size, variance = len(logs), max(float(logs.var()), 1e-6)
    best, chosen = -math.inf, None
    for spread in SPREADS:
        prior = 1 / _precision(penalties, spread * math.sqrt(variance))
        gram = (matrix * prior) @ matrix.T
        for noise in NOISES:
            # y ~ N(0, X P^-1 X' + s^2 I)
            covariance = gram + noise * variance * np.eye(size)
            solved = np.linalg.solve(covariance, logs)
            evidence = -0.5 * float(logs @ solved + np.linalg.slogdet(covariance)[1])
            if evidence > best:
                best, chosen = evidence, (prior, covariance, solved)
    assert chosen is not None
    prior, covariance, solved = chosen
    reach = matrix * prior
    mean = reach.T @ solved
    return mean, np.diag(prior) - reach.T @ np.linalg.solve(covariance, reach)


def _precision(penalties: np.ndarray, spread: float) -> np.ndarray:
    """The precision of the prior: that of the constant first."""
    found = penalties / spread**2
    found[0] = INTERCEPT_DEVIATION**-2
    return found
