"""The noise on a minimiser: which law, how much, and what it is charged, before any look.

A regularised minimiser moves by at most D2 = slope R / (m lambda) when a row is added or removed,
where R bounds the norm of a row's features, and twice that when one is replaced; `minimise` has
the proof. A public linear map A of it moves by at most operator_norm(A) D2. Gaussian noise of
scale s is (D2/s)^2/2-zCDP; L2-Laplace noise of scale b is pure with epsilon = D2/b; independent
Laplace noise needs the L1 sensitivity, at most sqrt(q) D2 for q numbers, so it costs
sqrt(q) D2/b. A pure epsilon is charged as epsilon^2/2 where a budget has a delta.
[PRIVACY: mechanisms; importance weights]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from counterpoise.arguments import one_of, real_number
from counterpoise.errors import BudgetError, VaultError
from counterpoise.vault.budget import Budget, Share
from counterpoise.vault.events import (
    DpEvent,
    GaussianDpEvent,
    NoOpDpEvent,
    PureDpEvent,
    pure_epsilon,
)
from counterpoise.vault.noise import Grid, check_scale

NoiseLaw = Literal["gaussian", "l2-laplace", "laplace", "none"]
LAWS: tuple[NoiseLaw, ...] = ("gaussian", "l2-laplace", "laplace", "none")

# The gradient norm g to which a minimiser is solved, in parts of what one row can add to the
# gradient. Both neighbours may be off by g / lambda, which costs two such parts of D2.
INEXACTNESS = 1e-5

# A row that could move its own margin by more than this is noise alone; refusing it also keeps
# the Hessian well conditioned.
LARGEST_MOVE = 1000.0

# Nor is there any use in one that moves it by less: the grid of the noise would underflow.
LEAST_MOVE = 1e-200

# What may be asked with: what is made of these and of 2^31 rows has squares that are numbers, so
# that no norm is zero or infinite by its unit alone, and `newton` takes as many steps as it says.
RANGES = {
    "bound": (1e-100, 1e100),
    "rows": (1.0, 2.0**60),
    "regularisation": (1e-250, 1e250),
    "reach": (1e-100, 1e100),
    "slope": (1e-6, 1e6),
    "steepening": (0.0, 1e3),
}

# Clipping multiplies by a rounded quotient, which may overshoot by some units in the last place;
# so may an operator norm.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Perturbation:
    """A law of noise on a minimiser; all of it public."""

    law: NoiseLaw
    scale: float  # Gaussian: standard deviation a number; else the scale b; 0 for "none"
    sensitivity: float  # D2 of what is noised, with inexactness and rounding
    size: int  # how many numbers are noised
    step: float  # of the grid that they are rounded to
    event: DpEvent

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise along any direction of unit length."""
        match self.law:
            case "laplace":
                return math.sqrt(2) * self.scale
            case "l2-laplace":
                # E norm^2 = b^2 q (q + 1) for norm ~ Gamma(q, b), shared by q directions.
                return math.sqrt(self.size + 1) * self.scale
            case _:
                return self.scale


def perturbation_for(
    budget: Budget,
    share: Share,
    *,
    size: int,
    bound: float,
    rows: float,
    regularisation: float,
    noise: NoiseLaw = "gaussian",
    scale: float | None = None,
    reach: float = 1.0,
    slope: float = 1.0,
) -> Perturbation:
    """The noise for `size` numbers that depend on a minimiser with operator norm `reach`.

    `rows` is the public m and `regularisation` the lambda of the objective. A stated `scale` is
    charged for what it is, and refused when the share cannot pay for it. Looks at nothing.

    >>> share = Share(0.5, pure=False)
    >>> found = perturbation_for(
    ...     Budget(1.0, 1e-6), share, size=3, bound=2.0, rows=100, regularisation=0.1
    ... )
    >>> found.law, round(found.sensitivity, 3), round(found.scale, 3)
    ('gaussian', 0.2, 0.2)
    """
    noise = one_of("noise", noise, LAWS, VaultError)
    for name, value in (
        ("bound", bound),
        ("rows", rows),
        ("regularisation", regularisation),
        ("reach", reach),
        ("slope", slope),
    ):
        in_range(name, value)
    if not slope * bound * bound <= LARGEST_MOVE * rows * regularisation:
        raise VaultError(
            f"minimise: with a regularisation of {regularisation:g} one row could move the fit by "
            "far more than the fit itself; state a larger one"
        )
    # D2(b) = slope R / (m lambda) a row, and 2 g / lambda for solving to a gradient norm g.
    row = slope * bound * (1 + _ROUNDING) / (rows * regularisation)
    minimiser = budget.row_sensitivity(row) + 2 * INEXACTNESS * row
    moved = reach * (1 + _ROUNDING) * minimiser
    if moved < LEAST_MOVE:
        raise VaultError(
            f"minimise: a regularisation of {regularisation:g} leaves nothing of the rows; "
            "state a smaller one"
        )
    if not moved <= 1 / LEAST_MOVE:
        raise VaultError(
            "minimise: a row could move what is asked for without bound; state a larger "
            "regularisation, or ask for less far-reaching outputs"
        )
    grid = Grid.below(moved)
    # Each neighbour's answer is rounded by itself.
    sensitivity = moved + 2 * grid.rounding(size)
    # norm1 <= sqrt(q) norm2: independent Laplace noise pays for the L1 sensitivity.
    priced = sensitivity * math.sqrt(size) if noise == "laplace" else sensitivity
    event: DpEvent
    if noise == "none":
        return Perturbation("none", 0.0, sensitivity, size, grid.step, NoOpDpEvent())
    if noise == "gaussian":
        afforded = share.gaussian_scale(sensitivity)
    else:
        afforded = share.laplace_scale(priced)
    chosen = afforded
    if scale is not None:
        chosen = real_number("minimise", scale, "a positive scale", VaultError, above=0)
    check_scale(chosen / grid.step, 1 if noise == "gaussian" else size)
    event = (
        GaussianDpEvent(chosen / sensitivity)
        if noise == "gaussian"
        else PureDpEvent(priced / chosen)
    )
    if chosen < afforded * (1 - _ROUNDING):
        raise BudgetError(_too_dear(noise, event, chosen, afforded, share))
    return Perturbation(noise, chosen, sensitivity, size, grid.step, event)


def in_range(name: str, value: Any) -> float:
    """A parameter of a minimiser, within its range."""
    least, most = RANGES[name]
    expected = f"a number from {least:g} to {most:g}"
    return real_number(name, value, expected, VaultError, above=least, below=most, inclusive=True)


def operator_norm(matrix: np.ndarray) -> float:
    """The most by which a matrix lengthens a vector: its largest singular value.

    >>> operator_norm(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
    4.0
    """
    # Squares of very small and very large numbers are none: the largest entry becomes one.
    largest = float(np.max(np.abs(matrix), initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    scaled = matrix / largest
    # The Gram matrix of the shorter side has the squares of the singular values.
    tall = scaled if scaled.shape[0] >= scaled.shape[1] else scaled.T
    return largest * math.sqrt(max(0.0, float(np.linalg.eigvalsh(tall.T @ tall)[-1])))


def _too_dear(noise: NoiseLaw, event: DpEvent, chosen: float, afforded: float, share: Share) -> str:
    epsilon = pure_epsilon(event)
    cost = "" if epsilon is None else f" costs a pure epsilon of {epsilon:.4g}, and"
    return (
        f"{noise} noise of scale {chosen:.4g}{cost} is more than the share pays for, which is a "
        f"scale of {afforded:.4g} (pure epsilon {share.epsilon:.4g}): give it a larger share, "
        "or leave the scale to the share"
    )
