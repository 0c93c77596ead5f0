"""How far to believe a measured difference: its posterior, under a law whose scale is not known.

A difference d_j is the true one plus noise of known variance s_j. Of what synthesizers miss where
they did not measure, the size varies from table to table, and within a table a few relations are
many times as large as most:

    d_j = theta_j + e_j,              e_j ~ N(0, s_j)
    theta_j ~ N(0, v_j),              v_j = min(tau^2 lambda_j^2, P_j),
    log lambda_j ~ N(0, LOCAL^2),     log tau ~ N(log usual, SPREAD^2),

with lambda scaled to a mean square of one, and P_j the most that is plausible. The scale tau is one
of a block of differences, and is learnt from all of them together as far as their noise lets it be
(a hierarchical model; A. Gelman and others, Bayesian Data Analysis, 2013, chapter 5). Where noise
hides all of them, what is left is what such differences usually are, and so is the doubt: the
estimate is the posterior mean, and its error the posterior variance. Sums over a grid of tau and
lambda take the place of integrals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# The law of tau and lambda, in deviations of white coordinates. In `benchmarks/missed.py` the root
# mean square of what is missed at epsilon 1 is .04 to .08 in seven tables of 5,000 rows and .06 to
# .14 in those of 1,000, .01 where nothing is related, and the middle one is .3 to .6 of it;
# posteriors then hold 95%.
USUAL, SPREAD, LOCAL = 0.1, 0.7, 0.8
# The middle of tau for relations of two numbers, which are one coordinate each. In 28
# releases of 1,000 rows (`benchmarks/truth.py`) correlations are held in 88% with 0.1, and in 90%
# with this.
USUAL_OF_NUMBERS = 0.15
# Points of the grids, and how many deviations they reach: a cost. Grids four times as fine change
# trust by a hundredth at the most, and variances by a sixteenth.
SCALES, LOCALS, REACH = 25, 9, 2.5
# What nothing is divided by.
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """What is believed of each difference."""

    trust: np.ndarray  # the part of it that is believed, from 0 to 1
    variance: np.ndarray  # of the true difference, after all


def shrink(
    differences: np.ndarray,
    noise: np.ndarray,
    largest: float | np.ndarray = np.inf,
    usual: float = USUAL,
) -> Shrinkage:
    """How far each difference is believed, given noise of these variances.

    `largest` is the most that the variance of true differences can plausibly be, of all or of
    each: where the noise exceeds it, even noise that looks like large differences is not believed.
    `usual` is the middle of the law of tau.

    >>> noise = np.full(50, 0.01)
    >>> differences = np.concatenate([[1.0, -1.0], 0.1 * np.random.default_rng(0).normal(size=48)])
    >>> found = shrink(differences, noise).trust
    >>> bool((found[:2] > 0.9).all()), bool(np.median(found[2:]) < 0.5)
    (True, True)
    """
    if len(differences) == 0:
        return Shrinkage(np.empty(0), np.empty(0))
    noise = np.maximum(noise, TINY)
    normal = np.linspace(-REACH, REACH, SCALES)
    scales, scale_logs = usual * np.exp(SPREAD * normal), -0.5 * normal**2
    normal = np.linspace(-REACH, REACH, LOCALS)
    local = np.exp(2 * LOCAL * normal)
    chance = np.exp(-0.5 * normal**2)
    local *= chance.sum() / (chance @ local)
    # v_j, for each tau and lambda
    prior = np.minimum((scales[:, None] ** 2 * local)[:, :, None], largest)
    variances = prior + noise
    # log p(lambda) + log N(d_j; 0, v_j + s_j), up to a constant
    logs = -0.5 * (np.log(variances) + differences**2 / variances)
    logs += np.log(chance)[:, None]
    highest = logs.max(axis=1, keepdims=True)
    belief = np.exp(logs - highest)
    density = belief.sum(axis=1, keepdims=True)
    belief /= density
    # p(tau | d), of all differences together
    scale_logs = scale_logs + (highest + np.log(density)).sum(axis=(1, 2))
    posterior = np.exp(scale_logs - scale_logs.max())
    belief *= (posterior / posterior.sum())[:, None, None]
    # Under each v: E[theta | d] = d v / (v + s), and Var[theta | d] = s v / (v + s)
    parts = prior / variances
    believed = (belief * parts).sum(axis=(0, 1))
    between = differences**2 * ((belief * parts**2).sum(axis=(0, 1)) - believed**2)
    return Shrinkage(believed, noise * believed + np.maximum(between, 0))
