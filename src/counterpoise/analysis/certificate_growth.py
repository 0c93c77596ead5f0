"""The largest excess risk that bounds on moments allow: far models are ruled out by the release.

Let w be the model of least risk L_s on the release, and w + u any other one of norm at most tau.
With a polynomial a_1 t + a_2 t^2 + const, off by e(t), and the moments' differences D1 (features
with the label) and D2 (features with each other), n / N times the excess L_r(w) - L_r(w + u) is at
most

    gap - 1/2 u'S u                                      convexity: L_s(w + u) is larger than L_s(w)
    - (a_1 D1 + 2 a_2 D2 w).u - a_2 u'D2 u               what the measured moments say
    + n/N E_r[e(w) - e(w + u)] - E_s[e(w) - e(w + u)]    what the polynomial leaves out

where S sums weights v_i x_i x_i' times the least second derivative of the loss on the way to w + u,
which is within |w.x_i| + |u| R. Each mean in the last line is at most twice the polynomial's
error, and at most its slope's error times |u| times the root mean square of the rows along u. N is
a public guess of the private number of rows n, and the constant of the polynomial, which n would
multiply, is gone. In place of the
moments stand the middles of their intervals, and half of their lengths times |u| and |u|^2. For
each length of u within a small interval what is left is a quadratic on a sphere, whose maximum a
one-dimensional dual bounds, whatever the multiplier. So a certificate is near 2 M + 4 P where the
release says nothing against a model far away, and of second order in the noise where it does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterpoise.analysis.certificate_moments import MomentBounds
from counterpoise.analysis.margin_losses import MarginLoss
from counterpoise.analysis.polynomials import LossPolynomial, minimax

# Margins are told apart in so many steps where the curvature is summed; lengths of u in so many.
_MARGIN_STEPS, _LENGTHS = 24, 96
# Multipliers that are tried, in parts of the largest that can be best; each of them bounds.
_MULTIPLIERS = np.geomspace(1e-9, 1.0, 128)


@dataclass(frozen=True, eq=False)
class Landscape:
    """What a release says of the risk around its model w: all of it public."""

    loss: MarginLoss
    norm: float  # tau
    reach: float  # R, the largest norm of a row
    coefficients: np.ndarray  # w
    gap: float
    moments: np.ndarray  # E_s[x x']
    steps: np.ndarray  # upper ends of |w.x|
    parts: np.ndarray  # E_s[x x'; |w.x| within a step], for each step

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        weights: np.ndarray,
        coefficients: np.ndarray,
        *,
        loss: MarginLoss,
        norm: float,
        reach: float,
        gap: float,
    ) -> Landscape:
        """Sums over the rows of a release; `weights` add up to one."""
        margins = np.abs(rows @ coefficients)
        steps = np.linspace(0, max(float(margins.max()), 1e-12), _MARGIN_STEPS + 1)[1:]
        step_of = np.minimum(np.searchsorted(steps, margins), _MARGIN_STEPS - 1)
        parts = np.zeros((_MARGIN_STEPS, rows.shape[1], rows.shape[1]))
        for step in range(_MARGIN_STEPS):
            some = step_of == step
            parts[step] = (rows[some] * weights[some, None]).T @ rows[some]
        return cls(loss, norm, reach, coefficients, gap, parts.sum(axis=0), steps, parts)

    def curvature(self, length: float) -> np.ndarray:
        """S for models within `length` of w."""
        margins = np.minimum(self.steps + length * self.reach, self.norm * self.reach)
        return np.einsum("s,sij->ij", self.loss.least_bend(margins), self.parts)

    @property
    def trivial(self) -> float:
        """The largest excess risk of all tables of such rows: a bound that needs no data."""
        own, other = self.reach * np.array([np.linalg.norm(self.coefficients), self.norm])
        margins = np.linspace(-1, 1, 2001)
        # The losses are convex: largest at an end, and least within a grid point of a minimum.
        worst = float(self.loss.value(own * np.array([-1.0, 1.0])).max())
        step = 2 * float(other) / (len(margins) - 1)
        return worst - float(self.loss.value(other * margins).min()) + self.loss.most_bend * step**2


def largest_excess(
    landscape: Landscape, bounds: Sequence[MomentBounds]
) -> tuple[float, LossPolynomial]:
    """The bound on the excess risk by the better one of a line and a parabola, and which it was.

    All `bounds` hold, so the best of them counts.
    """
    reach = landscape.norm * landscape.reach
    found = [
        (_by(landscape, each, polynomial), polynomial)
        for polynomial in (minimax(landscape.loss, degree, reach) for degree in (1, 2))
        for each in bounds
    ]
    bound, polynomial = min(found, key=lambda each: each[0])
    return min(bound, landscape.trivial), polynomial


def _by(landscape: Landscape, bounds: MomentBounds, polynomial: LossPolynomial) -> float:
    if math.isinf(bounds.rows[1]):
        # Nobody has counted the rows, nor anything of them.
        return math.inf
    fewest, most = (each / bounds.guess for each in bounds.rows)
    slope, bend = polynomial.coefficients[1], np.append(polynomial.coefficients, 0.0)[2]
    own = landscape.coefficients
    size = len(own)
    middle, half = bounds.middle, bounds.half
    first, first_half = middle[:size, size], half[:size, size]
    second, second_half = middle[:size, :size], half[:size, :size]
    # u.g + u'H u, with what intervals and norms add: |u| rise and |u|^2 spread
    direction = -(slope * first + 2 * bend * second @ own)
    quadratic = -bend * second
    rise = np.linalg.norm(abs(slope) * first_half + 2 * abs(bend) * second_half @ np.abs(own))
    rise += abs(slope) * bounds.whole[0] + 2 * abs(bend) * bounds.whole[1] * np.linalg.norm(own)
    second_norm = float(np.linalg.norm(second_half, 2)) + bounds.whole[1]
    spread = abs(bend) * second_norm
    # The root mean square of rows along a unit vector, in the release and in private
    seen = math.sqrt(float(np.linalg.norm(landscape.moments, 2)))
    unseen = math.sqrt(most * (float(np.linalg.norm(landscape.moments + second, 2)) + second_norm))
    along = seen + min(unseen, most * landscape.reach)
    farthest = landscape.norm + float(np.linalg.norm(own))
    lengths = np.append(0.0, np.geomspace(1e-4, 1.0, _LENGTHS)) * farthest
    worst = 0.0
    for near, far in itertools.pairwise(lengths.tolist()):
        bowl = landscape.curvature(far) / 2 - quadratic
        slope_error = polynomial.slope_error * along * far
        left_out = min(2 * (1 + most) * polynomial.error, slope_error)
        linear = float(rise) * far + spread * far**2 + left_out
        worst = max(worst, linear + _on_shell(direction, bowl, near, far))
    return float(landscape.gap + worst) / fewest


def _on_shell(direction: np.ndarray, bowl: np.ndarray, near: float, far: float) -> float:
    """An upper bound on u.g - u'A u for all u with a length within [near, far]."""
    values, vectors = np.linalg.eigh(bowl)
    # For u = r e, |e| = 1: r e.g <= far |e.g|, and -r^2 e'A e is largest at one of the ends.
    values = np.where(values > 0, near**2, far**2) * values
    squares = (far * (vectors.T @ direction)) ** 2
    floor, size = -float(values.min()), math.sqrt(float(squares.sum()))
    if size == 0:
        return floor
    # max over |e| = 1 of e.c - e'diag(values)e <= sum c_k^2 / (4 (value_k + m)) + m, for any m
    # above the floor; the best one is no further from it than |c| / 2
    tried = floor + size / 2 * _MULTIPLIERS
    duals = (squares / (4 * (values + tried[:, None]))).sum(axis=1) + tried
    return float(duals.min())
