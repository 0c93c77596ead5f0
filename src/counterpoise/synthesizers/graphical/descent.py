"""Limited-memory quasi-Newton descent, shaped for the dual of a maximum-entropy fit.

The objective g(theta) = A(theta) - <theta, y> + 1/2 <ridge, theta^2>, with A the scaled
log-partition function and its gradient the marginals, is smooth and convex, but its curvature
ranges over the counts: Hessian = Cov + diag(ridge), with diagonal close to the expected counts.
L-BFGS (Nocedal and Wright 2006, algorithm 7.4) therefore starts each direction from that diagonal,
through the preconditioner it is given.
The larger of the present and the wanted count stands in for it: a cell that has almost nothing and
should have much would otherwise take a step whose exponential overshoots for everybody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from counterpoise.synthesizers.graphical.factor import Array

# From about what the diagonal of a Hessian is, to its approximate inverse.
Precondition = Callable[[Array], Callable[[Array], Array]]

# Sufficient decrease (Armijo) and how often a step is shortened before it is given up.
ARMIJO = 1e-4
SHORTENINGS = 25
# The memory: this many pairs, or fewer when their vectors would hold more numbers than this.
PAIRS = 6
PAIR_NUMBERS = 20_000_000


@dataclass(frozen=True, eq=False)
class Descent:
    """Where the descent ended."""

    potentials: Array
    marginals: Array
    log_partition: float
    gradient: Array
    passes: int


class _Pair(NamedTuple):
    step: Array
    change: Array  # of the gradient over that step
    inverse: float  # 1 / <step, change>


def minimise(
    infer: Callable[[Array], tuple[float, Array]],
    answers: Array,
    ridge: Array,
    start: Array,
    *,
    precondition: Precondition,
    converged: Callable[[Array, Array], bool],
    iterations: int,
) -> Descent:
    """Minimise g from `start`; `infer` maps potentials to A and its gradient, the marginals.

    `precondition(diagonal)(vector)` applies an approximate inverse of the Hessian, given about what
    its diagonal is. `converged(gradient, residual)` is asked before each step; the residual is the
    marginals less the answers. The last call of `infer` is always at the returned potentials.
    """
    theta = start
    wanted = np.maximum(answers, 0.0)
    pairs: deque[_Pair] = deque(maxlen=int(np.clip(PAIR_NUMBERS // (2 * len(start)), 3, PAIRS)))

    def value(potentials: Array, log_partition: float) -> float:
        return float(log_partition + potentials @ (0.5 * ridge * potentials - answers))

    log_partition, marginals = infer(theta)
    passes = 1
    for _ in range(iterations):
        residual = marginals - answers
        gradient = residual + ridge * theta
        if converged(gradient, residual):
            break
        objective = value(theta, log_partition)
        diagonal = np.maximum(marginals, wanted) + ridge
        direction = _direction(gradient, precondition(diagonal), pairs)
        slope = float(gradient @ direction)
        # The first direction knows nothing of how cells act together, so it is kept short.
        length = 1.0 if pairs else min(1.0, 1.0 / float(np.abs(direction).max()))
        rounding = 1e-14 * (abs(objective) + abs(log_partition))
        for _ in range(SHORTENINGS):
            stepped = theta + length * direction
            log_partition, stepped_marginals = infer(stepped)
            passes += 1
            rise = value(stepped, log_partition) - objective
            if rise <= ARMIJO * length * slope + rounding:
                break
            # The minimum of the parabola through both values and the slope, within reason.
            parabola = -slope * length / (2.0 * (rise - slope * length))
            length *= float(np.clip(parabola, 0.1, 0.5))
        else:
            # No shorter step helps: the potentials are as good as floats can tell.
            log_partition, marginals = infer(theta)
            passes += 1
            break
        step = stepped - theta
        change = stepped_marginals - marginals + ridge * step
        curvature = float(step @ change)
        if curvature > 0.0:
            pairs.append(_Pair(step, change, 1.0 / curvature))
        theta, marginals = stepped, stepped_marginals
    return Descent(theta, marginals, log_partition, marginals - answers + ridge * theta, passes)


def _direction(gradient: Array, apply: Callable[[Array], Array], pairs: deque[_Pair]) -> Array:
    """The quasi-Newton direction -H gradient by the two-loop recursion."""
    direction = -gradient
    weights = []
    for step, change, inverse in reversed(pairs):
        weight = inverse * float(step @ direction)
        weights.append(weight)
        direction -= weight * change
    direction = apply(direction)
    if pairs:
        # Scale the preconditioner so that it has the right curvature along the latest step.
        _, change, inverse = pairs[-1]
        direction /= inverse * float(change @ apply(change))
    for (step, change, inverse), weight in zip(pairs, reversed(weights), strict=True):
        direction += (weight - inverse * float(change @ direction)) * step
    return direction
