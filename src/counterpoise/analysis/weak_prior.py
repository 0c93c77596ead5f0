"""Coefficients that the rows do not tell, held by a weak prior: of rare and of empty categories.

Where few rows have a category, or none has any weight, their outcomes may all be the same, or all
of them may be treated: a regression then has directions u in which its likelihood has no maximum,

    u' I(b) u  ->  0    as b goes to where the likelihood is highest,    I the information.

For every such direction one coefficient is held by a normal prior around zero, of deviation 2.5
for a step of its term, from no to yes or of two standard deviations (A. Gelman and others, "A
weakly informative default prior distribution for logistic and other regression models", 2008). The
others are left to the rows. What is not known is then the prior's doubt: were its centre drawn from
its own law, the coefficients would have the covariance

    M M',    M = (I + P)^-1 P^(1/2),    P the precision of the prior,

with I taken where next to no prior is left: that is the whole width of the prior in directions of
which the rows say nothing, and nothing in the others.

A replicate that separates by itself, where the weight does not, is held around the released
coefficients. Its centre is drawn from the same law, so that a replicate that knows nothing of a
coefficient shows that much doubt, not none and not without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from counterpoise.analysis.replication import Design
from counterpoise.formulas.likelihood import Drawn, Likelihood, Numeric, maximise

# The deviation of the prior for a step of a term, and from how many of them on a replicate has run
# away, both in units of the link.
LOOSE = 2.5
RUN_AWAY = 2 * LOOSE
# So weak a prior leaves in place what has a maximum, and stops the rest far out.
FAR = 1000.0
# The rows do not tell what they have less than this part of the prior's information of. At FAR it
# is some ten steps over FAR^2, which is a thousand times less; a round number between, not studied.
LITTLE = 0.1
# Nor do they where the outcomes leave less than this part of what they could say, and not merely
# terms that are nearly alike; or could never say more than its cube. A round number, not studied.
SILENT = 0.01
# A gaussian fit without misses would leave the prior no precision; a round number, not studied.
LEAST_DISPERSION = 1e-12
# So many terms are named that the rows do not tell.
NAMED = 3


@dataclass(frozen=True, eq=False)
class Fit:
    """A maximum, the likelihood that has it, and how the coefficients may move for the prior.

    `moves` is coefficients x priors: times its transpose, the covariance that the prior lends.
    """

    likelihood: Likelihood
    beta: np.ndarray
    moves: np.ndarray

    def untold(self, steps: np.ndarray) -> np.ndarray:
        """The coefficients whose interval is the prior's: from a tenth of its deviation on."""
        return np.flatnonzero(np.linalg.norm(self.moves, axis=1) * steps > LOOSE / 10)


def fit(
    likelihood: Likelihood,
    weights: np.ndarray,
    steps: np.ndarray,
    varies: np.ndarray,
    has_full_rank: bool = True,
) -> Fit | None:
    """The maximum of a likelihood, with a weak prior on what the rows do not tell.

    `steps` are what a coefficient of one does to the link by a step of its term; `varies` is False
    for an intercept, which is held only where the target's values are all the same. None is where
    not even a prior helps.

    >>> from counterpoise.formulas.likelihood import FAMILIES, Numeric
    >>> x, y = np.repeat([[1.0, 0.0], [1.0, 1.0]], 4, axis=0), np.tile([0.0, 1.0], 4)
    >>> likelihood = Numeric(x, y * (1 - x[:, 1]), FAMILIES["binomial"])
    >>> found = fit(likelihood, np.ones(8), np.ones(2), np.array([False, True]))
    >>> found.beta[1].round(1).item(), np.linalg.norm(found.moves, axis=1).round(1).tolist()
    (-2.1, [0.0, 2.5])
    """
    start = likelihood.start(weights)
    dispersion = likelihood.dispersion(likelihood.predictor(start), weights)
    precisions = max(dispersion, LEAST_DISPERSION) * steps**2
    zero, every = np.zeros(len(steps)), np.ones(len(steps), dtype=bool)

    def informed(at: np.ndarray) -> np.ndarray:
        return likelihood.information(likelihood.predictor(at), weights)

    whole = informed(zero)
    beta = maximise(likelihood, weights, start) if has_full_rank else None
    if beta is not None and not len(_one_each(informed(beta), whole, precisions, varies)):
        return Fit(likelihood, beta, np.zeros((len(beta), 0)))
    for candidates in (varies, every):
        weak = Drawn(likelihood, zero, np.where(candidates, precisions, 0.0) / FAR**2)
        far = maximise(weak, weights, start)
        if far is None:
            continue
        information = informed(far)
        chosen = _one_each(information, whole, precisions, candidates)
        for held in (chosen, np.flatnonzero(candidates)):
            own = np.zeros(len(steps))
            own[held] = precisions[held] / LOOSE**2
            drawn = Drawn(likelihood, zero, own)
            beta = maximise(drawn, weights, far)
            if beta is not None:
                # M = (I + P)^-1 P T,  T the deviations: of one prior each a column
                pulls = np.diag(own)[:, held] * (LOOSE / steps[held])
                moves = np.linalg.lstsq(information + np.diag(own), pulls)[0]
                return Fit(drawn, beta, moves)
    return None


def rank_of(triangle: np.ndarray) -> tuple[int, np.ndarray]:
    """The rank of columns, and their order: those that add nothing to others come last."""
    norms = np.linalg.norm(triangle, axis=0)
    scaled = triangle / np.where(norms > 0, norms, 1)
    found, order = linalg.qr(scaled, mode="r", pivoting=True)
    return int((np.abs(np.diag(found)) > 1e-9).sum()), order


def said_of(terms: Sequence[str]) -> str:
    """A clause that names terms that are held."""
    return f"hardly any rows tell {listed(terms)}, held by a prior of deviation {LOOSE:g} a step"


def listed(terms: Sequence[str]) -> str:
    """The first of some terms, and how many more there are; the intercept where there are none.

    >>> listed(list("abcde"))
    "'a', 'b', 'c' and 2 more"
    """
    named = ", ".join(map(repr, terms[:NAMED])) or "the intercept"
    return f"{named} and {len(terms) - NAMED} more" if len(terms) > NAMED else named


def _one_each(
    information: np.ndarray, whole: np.ndarray, precisions: np.ndarray, candidates: np.ndarray
) -> np.ndarray:
    """One candidate for each direction of which the rows say next to nothing.

    `whole` is the information where all means are in the middle, which says how much rows could
    say. Of the candidates that move along a direction it is the one that most rows have, and of
    equals the last: an interaction before the effects that it is of.
    """
    sizes = np.sqrt(precisions[candidates])
    values, directions = np.linalg.eigh(_apart(information, candidates) / np.outer(sizes, sizes))
    could = np.einsum(
        "ij,ik,jk->k", _apart(whole, candidates) / np.outer(sizes, sizes), directions, directions
    )
    is_silent = (values < SILENT * could) | (could < SILENT**3)
    untold = directions[:, (values < LITTLE / LOOSE**2) & is_silent]
    if not untold.shape[1]:
        return np.zeros(0, dtype=np.int64)
    sizes = np.sqrt(np.diag(whole)[candidates]) / sizes
    # Of equals the last: by more than rounding, and less than a difference of a row.
    scaled = untold * (sizes * (1 + 1e-9 * np.arange(len(sizes))))[:, None]
    _, order = linalg.qr(scaled.T, mode="r", pivoting=True)
    return np.sort(np.flatnonzero(candidates)[order[: untold.shape[1]]])


def _apart(information: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """What the rows say of the candidates whatever the others are: a Schur complement."""
    among = information[np.ix_(candidates, candidates)]
    if candidates.all():
        return among
    beside = information[np.ix_(~candidates, candidates)]
    others = information[np.ix_(~candidates, ~candidates)]
    return np.asarray(among - beside.T @ np.linalg.lstsq(others, beside)[0])


def hold_back(
    found: Sequence[np.ndarray | None],
    made: Fit,
    design: Design,
    rows: np.ndarray,
    steps: np.ndarray,
    varies: np.ndarray,
    dispersion: float,
) -> tuple[list[np.ndarray | None], int]:
    """The coefficients, those that ran away from `made` fitted again, and how many these are.

    `rows` are the positions of the likelihood's rows in the design.
    """
    held, count = list(found), 0
    for replicate, each in enumerate(found):
        # Of replicates that go a part of the way, all of it is that part.
        reach = design.part * RUN_AWAY if _separates(made.likelihood) else np.inf
        if each is not None and (np.abs(each - made.beta) * steps * varies).max() <= reach:
            continue
        weights = design.replicate(replicate)[rows]
        doubt = Doubt(steps, varies, dispersion, design.part, replicate)
        held[replicate] = hold(made, weights, doubt)
        count += held[replicate] is not None
    return held, count


def _separates(likelihood: Likelihood) -> bool:
    """Whether outcomes can put a maximum at infinity: not those of a linear model."""
    own = likelihood.inner if isinstance(likelihood, Drawn) else likelihood
    return not (isinstance(own, Numeric) and own.family.name == "gaussian")


@dataclass(frozen=True, eq=False)
class Doubt:
    """The prior of a replicate that separates: what it is of, how wide, and the place of it."""

    steps: np.ndarray
    varies: np.ndarray
    dispersion: float = 1.0
    part: float = 1.0  # of the way from the weight, that replicates go
    replicate: int = 0


def hold(made: Fit, weights: np.ndarray, doubt: Doubt) -> np.ndarray | None:
    """The coefficients with the weights of a replicate, held around those of `made`.

    The intercept is left to the rows, unless all of the target's values are the same in them.
    """
    deviations = doubt.part * LOOSE / doubt.steps
    # The same for a replicate every time.
    centre = np.random.default_rng(doubt.replicate).normal(size=len(made.beta)) * deviations
    for of in (doubt.varies, np.ones(len(made.beta), dtype=bool)):
        precisions = np.where(of, max(doubt.dispersion, LEAST_DISPERSION) / deviations**2, 0.0)
        drawn = Drawn(made.likelihood, made.beta + np.where(of, centre, 0.0), precisions)
        beta = maximise(drawn, weights, made.beta)
        if beta is not None:
            return beta
    return None
