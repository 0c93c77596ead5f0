"""Independent columns with likely counts: a prior for fits in which single columns were measured.

Noisy counts y_j = c_j + noise of a column's cells also say how the counts c_j are spread: most of
them near zero and one large, or all about alike. Empirical Bayes takes a prior of the counts from
the cells themselves, by maximum likelihood (Kiefer and Wolfowitz 1956), and each cell's posterior
mean is its likely count (Robbins 1956). Columns of many cells lose most of their noise by it.

That prior knows no order. Ages and amounts have one, and neighbouring cells of theirs are alike.
The other prior is a random walk from cell to cell, with steps the larger the larger the counts.
Each of the two counts for as much as it makes the noisy answers likely; values in no particular
order are hardly ever likely as a walk.

A few cells tell nothing of how counts are spread: such a column has the counts of a fit to it
alone, pulled towards the uniform. It is arithmetic on noisy numbers, and free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax

from counterpoise.synthesizers.graphical.domain import Columns
from counterpoise.synthesizers.graphical.factor import Array
from counterpoise.synthesizers.graphical.measurements import Measurement, entropy_of

# Counts that the prior may have, in noise scales: steps up to the largest that noise could hide.
STEP, LARGEST = 0.25, 8.0
# Above so many noise scales a cell tells more of itself than others do, and its answer is one.
OWN = 6.0
# Steps of EM. The likelihood is flat at its top, where the prior would follow the noise.
STEPS = 10
# The least a cell has, as a part of the mean: no cell is ruled out.
LEAST = 1e-3
# So many cells are enough to learn from.
ENOUGH_CELLS = 5
# The least count that a walk's steps are sized by, in noise scales, and the most cells of a walk,
# which takes a step after the other.
LEAST_LEVEL, LONGEST_WALK = 0.25, 1000
# What Newton's method ends at, in potentials; how often it is tried, and how far it goes at once.
NEAR_ENOUGH, MOST_TRIES, LONGEST = 1e-9, 100, 1.0


def towards_columns(
    measurements: Sequence[Measurement], total: float
) -> tuple[list[Measurement], dict[Columns, Array]]:
    """The measurements as a fit takes them, and the potentials of the prior of single columns."""
    answers: list[Measurement] = []
    potentials: dict[Columns, Array] = {}
    for part in measurements:
        if len(part.columns) > 1:
            answers.append(part)
            continue
        likely = likely_answers(part.values, part.scale, total)
        answers.append(replace(part, values=likely.answers))
        potentials[part.columns] = np.log(likely.counts / likely.counts.mean())
    return answers, potentials


class Likely(NamedTuple):
    """What stands for a column's noisy answers in a fit, and the counts of its prior."""

    answers: Array
    counts: Array


def likely_answers(noisy: Array, scale: float, total: float) -> Likely:
    """The answers of single columns with the prior that they make, the cells on the last axis.

    The counts of a walk replace the answers. Likely counts without order are taken half way: the
    fit filters noise by itself, and of a dozen cells these can be worse. A column of few cells
    stays where a fit to it alone would have it.
    """
    if noisy.shape[-1] < ENOUGH_CELLS:
        counts = fitted_counts(noisy, scale, total)
        return Likely(counts, counts)
    counts, log_likelihood = likely_counts(noisy, scale, total)
    answers = (noisy + counts) / 2
    if noisy.shape[-1] > LONGEST_WALK:
        return Likely(answers, counts)
    walked, walked_log_likelihood = _walked(noisy, scale, total)
    chance = expit(walked_log_likelihood - log_likelihood)[..., None]
    return Likely(chance * walked + (1 - chance) * answers, chance * walked + (1 - chance) * counts)


def fitted_counts(noisy: Array, scale: float, total: float) -> Array:
    """The counts n p of a fit to one column, p ~ exp(theta):  n p - y + tau s^2 theta = 0.

    >>> fitted_counts(np.array([90.0, 10.0]), 20.0, 100.0).round()
    array([84., 16.])
    """
    cells = noisy.shape[-1]
    penalty, mean = scale * entropy_of(cells * scale / total), total / cells
    values = noisy + (mean - noisy.mean(axis=-1, keepdims=True))
    theta = np.log(np.maximum(values, scale) / mean)
    for _ in range(MOST_TRIES):
        shares = softmax(theta, axis=-1)
        gradient = total * shares - values + penalty * theta
        # The Hessian is n (diag p - p p') + tau s^2.
        diagonal = total * shares + penalty
        along, across = gradient / diagonal, shares / diagonal
        rest = penalty * across.sum(axis=-1, keepdims=True)  # 1 - n sum of p^2 / diagonal
        step = along + across * (total * (shares * along).sum(axis=-1, keepdims=True) / rest)
        theta -= np.clip(step, -LONGEST, LONGEST)
        if np.abs(step).max(initial=0) < NEAR_ENOUGH:
            break
    return np.asarray(total * softmax(theta, axis=-1))


def likely_counts(noisy: Array, scale: float, total: float) -> tuple[Array, Array]:
    """The posterior means of counts in no order, and the log-likelihood of the answers.

    They sum to `total`, under a prior that all cells share. The cells of a column are the last
    axis; those before it are of answers that are apart.

    >>> likely_counts(np.array([960.0, 25.0, -20.0, 10.0, -15.0]), 20.0, 1000.0)[0].round()
    array([968.,  12.,   6.,   9.,   6.])
    """
    mean = total / noisy.shape[-1]
    # The counts sum to the total: what the answers are beyond it is noise.
    values = noisy + (mean - noisy.mean(axis=-1, keepdims=True))
    is_large = values > OWN * scale
    atoms, prior = _atoms(values, is_large, scale, mean)
    # Cells x atoms
    exponent = -0.5 * ((values[..., None] - atoms[..., None, :]) / scale) ** 2
    largest = exponent.max(axis=-1, keepdims=True)
    likelihood = np.exp(exponent - largest)
    for _ in range(STEPS):
        chances = 1 / _product(likelihood, prior)
        prior *= _product(likelihood.swapaxes(-1, -2), chances) / noisy.shape[-1]
    chances = 1 / _product(likelihood, prior)
    means = _product(likelihood, prior * atoms) * chances
    squares = _product(likelihood, prior * atoms**2) * chances
    # What is missing from the total goes where most is unknown. A large cell has its own noise.
    spread = np.where(is_large, scale**2, squares - means**2 + 1e-6 * scale**2)
    missing = total - means.sum(axis=-1, keepdims=True)
    counts = means + missing * spread / spread.sum(axis=-1, keepdims=True)
    log_likelihood = (largest[..., 0] - np.log(chances)).sum(axis=-1)
    return _positive(counts, total), log_likelihood


def _positive(counts: Array, total: float) -> Array:
    counts = np.maximum(counts, LEAST * total / counts.shape[-1])
    return np.asarray(counts * (total / counts.sum(axis=-1, keepdims=True)))


def _atoms(values: Array, is_large: np.ndarray, scale: float, mean: float) -> tuple[Array, Array]:
    """The counts that a prior may have, and how it begins: half a belief that all are alike."""
    steps = np.concatenate([[mean], np.arange(0.0, LARGEST * scale, STEP * scale)])
    # As many atoms of large cells as any has; where there are fewer, the rest has no chance.
    most = int(is_large.sum(axis=-1).max(initial=0))
    own = np.sort(np.where(is_large, values, 0.0), axis=-1)[..., values.shape[-1] - most :]
    atoms = np.concatenate([np.broadcast_to(steps, (*own.shape[:-1], len(steps))), own], axis=-1)
    prior = np.ones_like(atoms)
    prior[..., len(steps) :] = own > 0
    prior *= 0.5 / prior.sum(axis=-1, keepdims=True)
    prior[..., 0] += 0.5
    return atoms, prior


def _product(matrices: Array, vectors: Array) -> Array:
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _walked(noisy: Array, scale: float, total: float) -> tuple[Array, Array]:
    """Likely counts under random walks from cell to cell, and the log-likelihood of the answers.

    A step's variance goes with the mean of its two counts, or with the square of it. These counts
    are taken from walks with steps that are all alike.
    """
    cells = noisy.shape[-1]
    mean = total / cells / scale
    answers = noisy / scale + (mean - noisy.mean(axis=-1, keepdims=True) / scale)
    # From a walk that stays near its mean for all its length to steps larger than all noise.
    flat = math.log(min(1.0, mean) ** 2 / cells, 4)
    variances = 4.0 ** np.arange(math.floor(flat) - 3, 3)[:, None]
    even, _ = _average(*_walks(answers, variances * np.ones_like(answers[..., None, 1:])))
    level = np.maximum(even, LEAST_LEVEL)
    sizes = np.log(level[..., 1:] + level[..., :-1])
    sizes = np.exp(sizes - sizes.mean(axis=-1, keepdims=True))[..., None, :]
    steps = np.concatenate([variances * sizes, variances * sizes**2], axis=-2)
    means, log_likelihood = _average(*_walks(answers, steps))
    return _positive(scale * means, total), log_likelihood


def _walks(answers: Array, steps: Array) -> tuple[Array, Array]:
    """Posterior means and log-likelihoods of walks, one a row of the variances of their steps.

    In noise scales: y = c + z for standard normal z, and c_j+1 - c_j ~ N(0, v_j). The posterior
    precision of c is 1 + D'WD, with D the differences and W = 1 / v: three diagonals, eliminated
    cell by cell. A pivot is own_j + w_j, with own_j+1 = 1 + w_j own_j / (own_j + w_j).
    """
    # The cells first, which the elimination goes through.
    weights = np.ascontiguousarray(np.moveaxis(1 / steps, -1, 0))
    means = np.empty((answers.shape[-1], *weights.shape[1:]))
    means[:] = np.moveaxis(answers[..., None, :], -1, 0)
    pivots, own = np.empty_like(weights), np.ones(weights.shape[1:])
    for j, weight in enumerate(weights):
        pivots[j] = own + weight
        passed = weight / pivots[j]
        means[j + 1] += passed * means[j]
        own = 1 + passed * own
    means[-1] /= own
    for j in range(len(weights) - 1, -1, -1):
        means[j] = (means[j] + weights[j] * means[j + 1]) / pivots[j]
    means = np.moveaxis(means, 0, -1)
    # log |DD'| = log(cells); the level of the walk is known from the total.
    determinants = (np.log(weights) - np.log(pivots)).sum(axis=0) - np.log(own)
    misfit = ((answers[..., None, :] - means) * answers[..., None, :]).sum(axis=-1)
    return means, 0.5 * (determinants + math.log(answers.shape[-1]) - misfit)


def _average(means: Array, log_likelihoods: Array) -> tuple[Array, Array]:
    """The means, each counted by its likelihood, and the logarithm of the average likelihood."""
    best = log_likelihoods.max(axis=-1, keepdims=True)
    chances = np.exp(log_likelihoods - best)
    average = (chances[..., None, :] @ means)[..., 0, :] / chances.sum(axis=-1, keepdims=True)
    return average, best[..., 0] + np.log(chances.mean(axis=-1))
