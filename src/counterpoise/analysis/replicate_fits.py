"""Fits of one model with every replicate weight at once, from the fit with the full weight.

Newton's method for each replicate is that of `formulas.likelihood`, step for step; only the sums
over rows are taken for all replicates together, a block of rows that fits into a cache at a time,

    slope_r = sum_i w_ir (y_i - mu_ir) x_i,    information_r = sum_i w_ir v_ir x_i x_i',

each of which is one product of matrices. The first step starts from the same coefficients for all,
so that mu and v are worked out once. A replicate that moves so far that a step has to be searched
along, and a model of categories, is fitted by itself.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from counterpoise.analysis.replication import Design
from counterpoise.formulas.likelihood import (
    FARTHEST,
    MOST_STEPS,
    Drawn,
    Likelihood,
    Numeric,
    is_close,
    maximise,
)


def fit_replicates(
    likelihood: Likelihood, design: Design, rows: np.ndarray, start: np.ndarray
) -> list[np.ndarray | None]:
    """The coefficients with each replicate, or None where there are none.

    `rows` are the positions of the likelihood's rows in the design.

    >>> from counterpoise.formulas.likelihood import FAMILIES
    >>> likelihood = Numeric(np.ones((2, 1)), np.array([0.0, 3.0]), FAMILIES["gaussian"])
    >>> design = Design(np.ones(2), np.array([[1.0, 2.0], [1.0, 1.0]]))
    >>> [float(each[0]) for each in fit_replicates(likelihood, design, np.arange(2), np.zeros(1))]
    [1.5, 1.0]
    """
    inner = likelihood.inner if isinstance(likelihood, Drawn) else likelihood
    if isinstance(inner, Numeric):
        prior = likelihood if isinstance(likelihood, Drawn) else None
        found, alone = _fit_together(inner, prior, design, rows, start)
    else:
        found, alone = [None] * design.count, list(range(design.count))
    for replicate in alone:
        found[replicate] = maximise(likelihood, design.replicate(replicate)[rows], start)
    return found


def _fit_together(
    likelihood: Numeric,
    prior: Drawn | None,
    design: Design,
    rows: np.ndarray,
    start: np.ndarray,
) -> tuple[list[np.ndarray | None], list[int]]:
    """The coefficients that were found, and which replicates are to be fitted by themselves."""
    found: list[np.ndarray | None] = [None] * design.count
    alone: list[int] = []
    # Those under way, and where they are.
    moving, betas = np.arange(design.count), start[None, :]
    for _ in range(MOST_STEPS):
        if not len(moving):
            break
        slopes, informations = _derivatives(likelihood, design, rows, moving, betas)
        if prior is not None:
            slopes -= prior.precisions * (betas - prior.centre)
            informations += np.diag(prior.precisions)
        steps = np.full(slopes.shape, np.nan)
        for place, (slope, information) in enumerate(zip(slopes, informations, strict=True)):
            try:
                steps[place] = linalg.cho_solve(linalg.cho_factor(information), slope)
            except (linalg.LinAlgError, ValueError):  # singular, or no longer finite
                continue
        is_found, betas = is_close(steps, betas), betas + steps
        goes_far = _farthest(likelihood.x, steps) > FARTHEST
        for place in np.flatnonzero(is_found).tolist():
            found[int(moving[place])] = betas[place]
        alone += moving[~is_found & goes_far].tolist()
        going_on = np.isfinite(steps).all(axis=1) & ~is_found & ~goes_far
        moving, betas = moving[going_on], betas[going_on]
    return found, alone


def _derivatives(
    likelihood: Numeric, design: Design, rows: np.ndarray, moving: np.ndarray, betas: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and informations of some replicates at their coefficients, or at those of all."""
    terms = likelihood.x.shape[1]
    left, right = np.triu_indices(terms)
    slopes = np.zeros((len(moving), terms))
    halves = np.zeros((len(moving), len(left)))
    every = len(moving) == design.count
    for some, block in design.blocks(rows, beside=len(left)):
        weights = (block if every else block[:, moving]).T
        x, y = likelihood.x[some], likelihood.y[some]
        with np.errstate(over="ignore"):
            means = likelihood.family.mean(betas @ x.T)
            variances = likelihood.family.variance(means)
        products = x[:, left] * x[:, right]
        if len(betas) == 1:
            slopes += weights @ (x * (y - means[0])[:, None])
            halves += weights @ (products * variances[0][:, None])
        else:
            slopes += (weights * (y - means)) @ x
            halves += (weights * variances) @ products
    informations = np.empty((len(moving), terms, terms))
    informations[:, left, right] = informations[:, right, left] = halves
    return slopes, informations


def _farthest(x: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The most that the predictor of a row moves by each of some steps."""
    # Not more than if every term of a row were its largest, which is mostly enough to know.
    found = np.abs(steps) @ np.abs(x).max(axis=0)
    for place in np.flatnonzero(found > FARTHEST):
        found[place] = np.abs(x @ steps[place]).max()
    return np.asarray(found)
