"""Fits of one model with every replicate weight at once, from the fit with the full weight.

Newton's method for each replicate is that of `formulas.likelihood`, step for step; only the sums
over rows are taken for all replicates together, a block of rows that fits into a cache at a time,

    slope_r = sum_i w_ir (y_i - mu_ir) x_i,    information_r = sum_i w_ir v_ir x_i x_i',

each of which is one product of matrices. The first step starts from the same coefficients for all,
so that mu and v are worked out once. A replicate that moves so far that a step has to be searched
along, and a model of categories, is fitted by itself.

Where few rows have a term, a replicate may have hardly any of them, or only some with the same
outcome: then its coefficient runs away to where there is no maximum, and one such replicate would
be all of the variance; or there is none to be found at all. Such replicates are fitted again with
a weak prior, normal around the released coefficients with a deviation of 2.5 for a step of a term
(A. Gelman and others, "A weakly informative default prior distribution for logistic and other
regression models", 2008). Its centre is drawn from the same law, so that a replicate that knows
nothing of a coefficient shows that much doubt, not none and not without end.
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

# The deviation of the prior for a step of a term, and from how many of them on a replicate has run
# away, both in units of the link.
LOOSE = 2.5
RUN_AWAY = 2 * LOOSE


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
    if isinstance(likelihood, Numeric):
        found, alone = _fit_together(likelihood, design, rows, start)
    else:
        found, alone = [None] * design.count, list(range(design.count))
    for replicate in alone:
        found[replicate] = maximise(likelihood, design.replicate(replicate)[rows], start)
    return found


def hold_back(
    found: list[np.ndarray | None],
    likelihood: Likelihood,
    design: Design,
    rows: np.ndarray,
    start: np.ndarray,
    steps: np.ndarray,
    dispersion: float,
) -> tuple[list[np.ndarray | None], int]:
    """The coefficients, those that ran away from `start` fitted again, and how many these are.

    `steps` are what a coefficient of one does to the link by a step of its term, zero where there
    is no prior, as for the intercept.
    """
    # Of replicates that go a part of the way, all of it is that part.
    precisions = dispersion * (steps / (design.part * LOOSE)) ** 2
    deviations = np.divide(design.part * LOOSE, steps, out=np.zeros(len(steps)), where=steps > 0)
    held, count = list(found), 0
    for replicate, each in enumerate(found):
        if each is not None and (np.abs(each - start) * steps).max() <= design.part * RUN_AWAY:
            continue
        # The same for a replicate every time.
        centre = start + deviations * np.random.default_rng(replicate).normal(size=len(start))
        drawn = Drawn(likelihood, centre, precisions)
        held[replicate] = maximise(drawn, design.replicate(replicate)[rows], start)
        count += held[replicate] is not None
    return held, count


def _fit_together(
    likelihood: Numeric, design: Design, rows: np.ndarray, start: np.ndarray
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
