"""Draws from a posterior by the No-U-Turn sampler, and whether they can be trusted.

The sampler moves in the coordinates in which the posterior is about a standard normal, by the
curvature at its mode, so that few steps take it across. Draws are checked as Vehtari, Gelman,
Simpson, Carpenter and Bürkner (Bayesian Analysis 16, 2021) advise: R-hat of the ranks, and the
effective number of draws in the bulk and in the tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits

from counterpoise.analysis.no_u_turn import run_chain
from counterpoise.analysis.posterior_density import Mode, Task
from counterpoise.analysis.posterior_surface import surface_of

# Above this R-hat, or below so many effective draws a chain, draws are not to be trusted.
MOST_R_HAT, LEAST_EFFECTIVE = 1.01, 100
# Chains start further apart than the posterior is wide, so that R-hat can tell.
_START_DEVIATION = 2.0


@dataclass(frozen=True, eq=False)
class Sampled:
    """Draws (chains x draws x parameters), and what the sampler says of each (chains x draws)."""

    draws: np.ndarray
    diverging: np.ndarray
    acceptance_rate: np.ndarray
    steps: np.ndarray
    step_size: np.ndarray


def sample(
    family: str, task: Task, mode: Mode, chains: int, draws: int, warmup: int, seed: int
) -> Sampled:
    """Draw from the posterior; the same seed gives the same draws on the same machine."""
    # theta = mode + K z, with K K' the inverse of the curvature
    lower = linalg.cholesky(mode.curvature, lower=True)
    root = linalg.solve_triangular(lower, np.eye(len(lower)), lower=True).T
    density = surface_of(family, task)

    def surface(z: np.ndarray) -> tuple[float, np.ndarray]:
        height, slope = density(mode.theta + root @ z)
        return height, root.T @ slope

    found = []
    # Many small products: threads would wait for each other longer than they work. And where a
    # step leads out of all numbers the sampler turns back by itself.
    with threadpool_limits(1, "blas"), np.errstate(over="ignore", invalid="ignore"):
        for each in np.random.default_rng(seed).spawn(chains):
            start = _START_DEVIATION * each.standard_normal(len(root))
            found.append(run_chain(surface, start, draws, warmup, each))
    positions = np.stack([chain.draws for chain in found])
    return Sampled(
        mode.theta + positions @ root.T,
        *(
            np.stack([getattr(chain, part) for chain in found])
            for part in ("diverging", "acceptance_rate", "steps", "step_size")
        ),
    )


@dataclass(frozen=True, eq=False)
class Convergence:
    """R-hat and the effective number of draws of every parameter, and how many diverged."""

    r_hat: np.ndarray
    bulk: np.ndarray
    tail: np.ndarray
    diverging: int
    chains: int

    @property
    def complaint(self) -> str:
        """What is wrong with the draws, or nothing."""
        wrong = []
        # A parameter whose draws are all alike has no R-hat.
        if not (self.r_hat <= MOST_R_HAT).all():
            wrong.append(f"R-hat is {self.r_hat.max():.3f} (at most {MOST_R_HAT} is fine)")
        fewest, least = min(self.bulk.min(), self.tail.min()), LEAST_EFFECTIVE * self.chains
        if not fewest >= least:
            wrong.append(f"the draws count as {fewest:,.0f} ({least} or more is fine)")
        if self.diverging:
            wrong.append(f"{self.diverging} transitions diverged")
        return "; ".join(wrong)


def check_convergence(sampled: Sampled) -> Convergence:
    """The diagnostics of draws, as arviz computes them."""
    from arviz_stats.base.array import array_stats

    stats: Any = array_stats
    axes = {"chain_axis": 0, "draw_axis": 1}
    return Convergence(
        r_hat=np.atleast_1d(stats.rhat(sampled.draws, **axes)),
        bulk=np.atleast_1d(stats.ess(sampled.draws, method="bulk", **axes)),
        tail=np.atleast_1d(stats.ess(sampled.draws, method="tail", prob=0.05, **axes)),
        diverging=int(sampled.diverging.sum()),
        chains=len(sampled.draws),
    )
