"""Minimisers of a perturbed objective: the noise goes into what is minimised, not onto the answer.

With L = m lambda and public m, lambda and centre c, the query draws b and minimises

    F(w) = sum over private x of loss(f(x).w) + sum over synthetic z of loss(-f(z).w)
           + (L/2) norm(w - c)^2 + b.w,

the logistic loss, features clipped to norm R. The density of b is proportional to
exp(-norm(b) / s). (Chaudhuri, Monteleoni and Sarwate 2011, algorithm 2; Kifer, Smith and
Thakurta 2012.) **First part, an exact minimiser w.** The gradient of F vanishes there, so w tells
b(w) = -(gradient of the rest), a smooth one-to-one map because the rest is L-strongly convex; the
density of w is that of b at b(w) times det H(w), H the Hessian of F. A neighbour's b(w) is no
further away than the gradients of the rows that differ: D = R when a row is added or removed, 2 R
when one is replaced, k times that for a person of k rows. That is a factor of exp(D / s) at most.
Each of a person's k rows adds a matrix of rank one to H, which is at least L, and so multiplies
det H by at most 1 + R^2 / (4 L), since loss'' <= 1/4; rows that are taken away only make it
smaller, so a replaced row counts once. Together w is pure with

    epsilon_1 = D / s + k log(1 + R^2 / (4 L)).

**Second part, a computed point.** What is computed is not w: b is rounded to a grid, by r at most,
and Newton's method ends where the gradient has norm g (half of g is left for floating point, as in
`minimise`, which suffices up to some ten million rows). The point then lies within
t = (g + r) / L of w, whatever the table; given w, two tables' points differ by at most 2 t. So
L2-Laplace noise of scale 2 t / epsilon_2 is added to it (approximate minima perturbation, Iyengar
and others 2019), and the two parts add up. Nothing here needs an exact solver, and nothing
else leaves: neither how long b was, nor how many passes there were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.arguments import instance_of
from counterpoise.errors import VaultError
from counterpoise.schema import Coded
from counterpoise.vault.asked import feature_names, share_of
from counterpoise.vault.budget import Budget, Share
from counterpoise.vault.events import PureDpEvent
from counterpoise.vault.minimise import (
    ClippedRows,
    LogisticLoss,
    checked_centre,
    clipped_features,
)
from counterpoise.vault.newton import newton
from counterpoise.vault.noise import Grid, Noise, check_scale
from counterpoise.vault.perturbation import LARGEST_MOVE, LEAST_MOVE, in_range
from counterpoise.vault.storage import Storage
from counterpoise.vault.sums import FeatureMap

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# A bound on the second derivative of the logistic loss.
CURVATURE = 0.25

# The gradient norm g to which is solved, in parts of what one row can add to it.
INEXACTNESS = 1e-6

# The part of the share that hides how far the solver is from the minimiser.
SOLVER_PART = 0.01

# The most of the share that the determinant may take: with more there is no noise left to pay for.
LARGEST_BEND = 0.9

# The noise of the objective, at most, in what one row can add to its gradient. Beyond, the answer
# is noise alone, and rounding of so long a vector would not be small beside g.
LONGEST_NOISE = 1e5

# The answer's own grid, in binary places below what its noise hides.
_ANSWER_PLACES = 6

# Clipping may overshoot by some units in the last place.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PerturbedMinimiser:
    """The minimiser of a perturbed objective; the law of its error follows from the scales."""

    values: np.ndarray
    scale: float  # s: that of the L2-Laplace noise in the objective
    outer_scale: float  # that of the L2-Laplace noise on the answer, which is far less
    epsilon: float  # pure, of both parts
    private: bool = True


@dataclass(frozen=True)
class ObjectiveNoise:
    """Both noises of a perturbed objective, and what they cost; all of it public."""

    grid: Grid  # of b
    scale: float
    gradient_norm: float  # half of g
    answer_grid: Grid
    outer_scale: float
    epsilon: float


def minimise_perturbed(
    vault: Vault,
    features: FeatureMap,
    bound: float,
    synthetic: Coded,
    share: Share,
    *,
    rows: float,
    regularisation: float,
    centre: np.ndarray | None = None,
) -> PerturbedMinimiser:
    """Tell private rows from synthetic ones, each clipped to `bound`; charges one pure event.

    `rows` is m, `regularisation` lambda and `centre` c above. A penalty so small that the
    determinant would take nearly all of the share is refused.
    """
    instance_of("synthetic", synthetic, Coded, "rows that the schema has coded", VaultError)
    names, bound, share = feature_names(features), in_range("bound", bound), share_of(share)
    rows, regularisation = in_range("rows", rows), in_range("regularisation", regularisation)
    size, penalty = len(names), rows * regularisation
    start = checked_centre(centre, size, bound)
    vault.require_rows("minimise_perturbed")
    noise = objective_noise(vault.budget, share, size=size, bound=bound, penalty=penalty)
    against = clipped_features(features, synthetic, bound, size)
    loss = LogisticLoss()

    def look(storage: Storage, source: Noise) -> np.ndarray:
        private = ClippedRows(storage, features, bound, size)
        none = np.zeros(size, dtype=np.int64)
        pull = noise.grid.values(source.l2_laplace(none, noise.scale / noise.grid.step))

        # In u = w - c, as in `minimise`.
        def derivatives(moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            point = start + moved
            gradient, hessian = penalty * moved + pull, penalty * np.eye(size)
            for label, batches in ((1.0, private), (-1.0, (against,))):
                for values in batches:
                    first, second = loss.derivatives(label * (values @ point))
                    gradient += values.T @ (label * first)
                    hessian += (values * second[:, None]).T @ values
            return gradient, hessian

        steepening = loss.steepening * bound
        solved = newton(derivatives, np.zeros(size), steepening, noise.gradient_norm, penalty)
        grid = noise.answer_grid
        points = grid.round(solved)
        return grid.values(source.l2_laplace(points, noise.outer_scale / grid.step))

    asked = {
        "features": names,
        "bound": bound,
        "rows": rows,
        "regularisation": regularisation,
        "centre": start.tolist(),
    }
    what = f"minimiser of a perturbed objective of {size} features"
    values = vault._ask(what, PureDpEvent(noise.epsilon), look, asked)
    # The centre is public and comes back after the noise.
    return PerturbedMinimiser(
        values + start, noise.scale, noise.outer_scale, noise.epsilon, vault.private
    )


def objective_noise(
    budget: Budget, share: Share, *, size: int, bound: float, penalty: float
) -> ObjectiveNoise:
    """The noises that a share pays for, with `penalty` the L above. Looks at nothing.

    >>> found = objective_noise(Budget(1.0), Budget(1.0).whole, size=3, bound=2.0, penalty=50.0)
    >>> round(found.scale, 3), round(found.epsilon, 6)
    (2.061, 1.0)
    """
    row = bound * (1 + _ROUNDING)
    if not row * row <= LARGEST_MOVE * penalty:
        raise VaultError(
            f"regularisation: with a penalty of {penalty:g} on all rows one row could move the fit "
            "by far more than the fit itself; state a larger one"
        )
    if not row / penalty >= LEAST_MOVE:
        raise VaultError(
            f"regularisation: a penalty of {penalty:g} on all rows leaves nothing of them; "
            "state a smaller one"
        )
    # k log(1 + R^2 / (4 L))
    bend = budget.max_rows_per_person * math.log1p(CURVATURE * row * row / penalty)
    if not bend <= LARGEST_BEND * share.epsilon:
        raise VaultError(
            f"regularisation: a penalty of {penalty:g} on all rows takes more of the share than "
            "there is for the noise; state a larger one"
        )
    for_solver = SOLVER_PART * (share.epsilon - bend)
    for_objective = share.epsilon - bend - for_solver
    # D / s
    difference = budget.row_sensitivity(row)
    scale = difference / for_objective
    if not size * scale <= LONGEST_NOISE * row:
        raise VaultError(
            f"minimise_perturbed: noise of scale {scale:.3g} on {size} numbers would be all that "
            "is left; give it a larger share"
        )
    grid = Grid.below(row)
    check_scale(scale / grid.step, size)
    # t = (g + r) / L
    gradient_norm = INEXACTNESS * row
    apart = 2 * (gradient_norm + grid.rounding(size)) / penalty
    answer_grid = Grid(2.0 ** (math.floor(math.log2(apart)) - _ANSWER_PLACES))
    # Each neighbour's point is rounded by itself.
    hidden = apart + 2 * answer_grid.rounding(size)
    outer_scale = hidden / for_solver
    check_scale(outer_scale / answer_grid.step, size)
    epsilon = bend + difference / scale + hidden / outer_scale
    return ObjectiveNoise(grid, scale, gradient_norm / 2, answer_grid, outer_scale, epsilon)
