"""Empirical Bayes: how far to believe a measured difference, judged by the noise alone.

A measured difference d_j is the true one plus noise of known variance s_j. The true ones are taken
to come from a mixture of centred normals, from width zero to the width of the largest difference,
whose proportions are fitted to all the d_j together, without another look at anything (Stephens,
2017, adaptive shrinkage). A difference of the size of its noise is then shrunk to nearly nothing,
while one that stands out of many small ones is left as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

WIDTHS = 12
STEPS = 300
# As many differences as these, spread over all widths, are added to what is seen: few differences
# should not decide for one width alone.
PRIOR_COUNT = 2.0


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """What is believed of each difference."""

    trust: np.ndarray  # the part of it that is believed, from 0 to 1
    variance: np.ndarray  # of the true difference, after all
    density: np.ndarray  # of what was measured, under the fitted law


def shrink(
    differences: np.ndarray, noise: np.ndarray, largest: float | np.ndarray = np.inf
) -> Shrinkage:
    """How far each difference is believed, given noise of these variances.

    `largest` is the most that the variance of true differences can plausibly be, of all or of
    each: where the noise exceeds it, even noise that looks like large differences is not believed.

    >>> noise = np.full(50, 0.01)
    >>> differences = np.concatenate([[1.0, -1.0], 0.1 * np.random.default_rng(0).normal(size=48)])
    >>> found = shrink(differences, noise).trust
    >>> bool((found[:2] > 0.95).all()), bool(np.median(found[2:]) < 0.2)
    (True, True)
    """
    if len(differences) == 0:
        return Shrinkage(np.empty(0), np.empty(0), np.empty(0))
    # What has no noise is believed; a variance too small to divide by has as good as none.
    noise = np.maximum(noise, np.finfo(float).tiny * 1e6)
    least = float(noise.min())
    most = min(max(2 * float((differences**2 - noise).max()), least), float(np.max(largest)))
    if most <= 0:
        nothing = np.zeros(len(noise))
        return Shrinkage(nothing, nothing, normal_density(differences, noise))
    widths = np.concatenate([[0.0], np.geomspace(min(least, most) / 10, most, WIDTHS)])
    prior = np.minimum(widths[:, None], largest)
    variances = prior + noise
    # N(d_j; 0, a_k + s_j), up to a factor a column
    likelihood = -0.5 * (np.log(variances) + differences**2 / variances)
    highest = likelihood.max(axis=0)
    likelihood = np.exp(likelihood - highest)
    proportions = np.full(len(prior), 1 / len(prior))
    for _ in range(STEPS):  # expectation and maximisation
        belief = proportions[:, None] * likelihood
        belief /= belief.sum(axis=0)
        counted = belief.sum(axis=1) + PRIOR_COUNT / len(prior)
        changed = np.abs(counted / counted.sum() - proportions).max()
        proportions = counted / counted.sum()
        if changed < 1e-7:
            break
    belief = proportions[:, None] * likelihood
    density = belief.sum(axis=0)
    belief /= density
    density *= np.exp(np.maximum(highest, -700.0)) / math.sqrt(2 * math.pi)
    # Under width k: E[x | d] = d a_k / (a_k + s), and Var[x | d] = s a_k / (a_k + s)
    parts = prior / variances
    believed = (belief * parts).sum(axis=0)
    between = differences**2 * ((belief * parts**2).sum(axis=0) - believed**2)
    return Shrinkage(believed, noise * believed + np.maximum(between, 0), density)


def normal_density(values: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """N(x; 0, v), never so small that it is none."""
    logs = -0.5 * (np.log(2 * math.pi * variances) + values**2 / variances)
    return np.asarray(np.exp(np.maximum(logs, -700.0)))
