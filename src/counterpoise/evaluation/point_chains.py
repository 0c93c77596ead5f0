"""Whether chains of support points have mixed, for the curator's eyes; or for all, on public rows.

The release of a chain's points says nothing of how the chain went, because all of that is a
function of the rows that nobody paid for. This runs chains of the same law and length again, beside
the release, on rows that are handed over in plain sight, and compares them: R-hat, and the variance
of the score between and within chains. On private rows what it returns is confidential, and must
not be looked at before the number of moves is fixed: to lengthen a chain because its rows asked for
it would be a look. On a release's own rows, or others that are public, it is free, and the better
way to choose that number. [Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021 for R-hat]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.arguments import instance_of, real_number, whole_number
from counterpoise.errors import MethodError
from counterpoise.evaluation.points import checked_table
from counterpoise.schema import Coded
from counterpoise.vault import Budget, PointDistance
from counterpoise.vault.metropolis import PointSpace, limit_rate, run_chains


@dataclass(frozen=True, eq=False)
class ChainDiagnostics:
    """How chains compare in the second half of their sweeps; near one, R-hat sees no difference."""

    r_hat: float
    between: float  # variance of the chains' mean scores
    within: float  # mean of the chains' variances of scores
    accepted: float  # part of the moves
    scores: np.ndarray  # chains x sweeps, in parts of the diameter

    def __repr__(self) -> str:
        return (
            f"ChainDiagnostics(r_hat={self.r_hat:.3f}, between={self.between:.2g}, "
            f"within={self.within:.2g}, accepted={self.accepted:.2f})"
        )


def chain_diagnostics(
    rows: Coded,
    points: int,
    epsilon: float,
    budget: Budget,
    *,
    moves: int = 100_000,
    chains: int = 4,
    distance: PointDistance | None = None,
    seed: int | None = None,
) -> ChainDiagnostics:
    """Run chains of `points` over rows, as a mechanism of `epsilon` under `budget` would.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> rows = schema.encode(pd.DataFrame({"x": np.linspace(0, 1, 50) ** 2}))
    >>> chain_diagnostics(rows, 5, 10.0, Budget(10.0), moves=2000, seed=1).r_hat < 1.05
    True
    """
    rows = checked_table("rows", rows)
    if len(rows) == 0:
        raise MethodError("rows: expected some; chains over none have nothing to agree on")
    budget = instance_of("budget", budget, Budget, "a Budget")
    points = whole_number("points", points, most=100_000)
    chains = whole_number("chains", chains, 2, 1_000)
    # Fewer sweeps have no two halves to compare.
    moves = whole_number("moves", moves, 8 * points, 10**9)
    epsilon = real_number("epsilon", epsilon, "a positive number", above=0)
    distance = distance or PointDistance()
    found = run_chains(
        PointSpace(rows.schema, distance),
        distance.places(rows),
        chains=chains,
        points=points,
        weight=1 / len(rows),
        theta=limit_rate(budget, float(len(rows)), epsilon),
        sweeps=-(-moves // points),
        uniforms=np.random.default_rng(seed).random,
    )
    from arviz_stats.base.array import array_stats

    stats: Any = array_stats
    return ChainDiagnostics(
        float(stats.rhat(found.scores, chain_axis=0, draw_axis=1)),
        float(found.scores.mean(axis=1).var(ddof=1)),
        float(found.scores.var(axis=1, ddof=1).mean()),
        float(found.accepted.mean()),
        found.scores,
    )
