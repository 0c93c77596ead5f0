"""Draws from a posterior by the No-U-Turn sampler, and whether they can be trusted.

The sampler (M. D. Hoffman and A. Gelman, JMLR 15, 2014) is blackjax's, on JAX. It moves in the
coordinates in which the posterior is about a standard normal, by the curvature at its mode, so
that few steps take it across; it is compiled once for a shape and used again. Draws are checked as
Vehtari, Gelman, Simpson, Carpenter and Bürkner (Bayesian Analysis 16, 2021) advise: R-hat of the
ranks, and the effective number of draws in the bulk and in the tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import linalg

from counterpoise.analysis.posterior_density import Mode, Task, compressed, log_density

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
    import jax

    # theta = mode + K z, with K K' the inverse of the curvature
    lower = linalg.cholesky(mode.curvature, lower=True)
    root = linalg.solve_triangular(lower, np.eye(len(lower)), lower=True).T
    with jax.enable_x64(True):
        start_key, run_key = jax.random.split(jax.random.key(seed))
        shape = (chains, len(mode.theta))
        starts = _START_DEVIATION * jax.random.normal(start_key, shape)
        run = _compiled(family, draws, warmup)
        rows = compressed(family, task)
        found = run(jax.random.split(run_key, chains), starts, rows, mode.theta, root)
    return Sampled(*(np.asarray(part) for part in found))


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


@cache
def _compiled(family: str, draws: int, warmup: int) -> Any:
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    # Of one compiled transition, in warmup and after: compiling takes longer than sampling.
    transition = blackjax.nuts.build_kernel()
    begin, update, settle = dual_averaging_adaptation(target=0.8)

    def run_chain(key: Any, start: Any, task: Task, centre: Any, root: Any) -> Any:
        def height(z: Any) -> Any:
            return log_density(family, centre + root @ z, task)

        def move(carried: Any, step: Any) -> Any:
            (state, adapted), (key, warm) = carried, step
            step_size = jnp.where(warm, jnp.exp(adapted.log_step_size), settle(adapted))
            # In these coordinates the posterior's covariance is about the identity.
            state, info = transition(key, state, height, step_size, jnp.ones_like(start))
            learnt = update(adapted, info.acceptance_rate)
            adapted = jax.tree.map(lambda new, old: jnp.where(warm, new, old), learnt, adapted)
            told = (info.is_divergent, info.acceptance_rate, info.num_integration_steps)
            return (state, adapted), (centre + root @ state.position, *told, step_size)

        keys = jax.random.split(key, warmup + draws)
        state = blackjax.nuts.init(start, height)
        is_warmup = jnp.arange(warmup + draws) < warmup
        _, found = jax.lax.scan(move, (state, begin(0.5)), (keys, is_warmup))
        return tuple(part[warmup:] for part in found)

    return jax.jit(jax.vmap(run_chain, in_axes=(0, 0, None, None, None)))
