"""Private gradient descent: noisy gradients of a described network over private rows.

A descent is a course of T steps that are charged together before the first look; one step more is
refused. Each step draws a Poisson sample of the private rows, sums their clipped gradients exactly
(`gradients`), rounds the sum to the grid of the noise, adds discrete Gaussian noise, also when the
lot is empty, and divides by a public number. Public rows are no concern of the vault: their
gradients are added outside, by whoever trains. The sensitivity and the charge are in
`descent_plan`. [PRIVACY: relaxed DP-SGD]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.arguments import number_array
from counterpoise.errors import VaultError
from counterpoise.vault.asked import exactly
from counterpoise.vault.course import Course
from counterpoise.vault.descent_plan import DescentPlan, StepNoise
from counterpoise.vault.gradients import Workspace
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

_BATCH_CELLS = 4_000_000

# What the network sees of the rows is held in double precision up to this many bytes, and in single
# precision above, which has room for all its places too.
_LARGE = 2**28

# Lots are drawn this many at a time, or as many as have about a million rows.
_LOTS_AT_ONCE, _ROWS_IN_LOTS = 64, 1_000_000

# Parameters beyond this could overflow on the way through a layer.
_LARGEST_PARAMETER = 1e100


def descent(vault: Vault, plan: DescentPlan) -> Descent:
    """Charge all steps of a plan, and open the course that takes them."""
    plan = exactly("plan", plan, DescentPlan, "a DescentPlan")
    if plan.inputs.schema != vault.schema:
        raise VaultError("plan: expected the inputs of the vault's own schema")
    if plan.noise == 0 and vault.private:
        raise VaultError(
            "noise: none is for studies on a vault with a seed, whose answers are stamped as not "
            "private; state a noise, or use DescentPlan.within"
        )
    vault.require_rows("descent")
    noise = plan.step_noise(vault.budget) if plan.noise > 0 else None
    query = f"descent of {plan.steps:,} steps over {plan.network.size:,} parameters"
    if noise is None:
        query += ", WITHOUT NOISE"
    number = vault._pay(query, plan.event_under(vault.budget), plan.describe())
    return Descent(vault, plan, query, noise, number)


class Descent(Course):
    """The open course of a descent: `left` steps are still to be had."""

    def __init__(
        self,
        vault: Vault,
        plan: DescentPlan,
        query: str,
        noise: StepNoise | None,
        number: int | None,
    ):
        super().__init__(vault, query, plan.steps, "steps", number)
        self.plan = plan
        self._gradients, self._noise = plan.gradients, noise
        self._rows: np.ndarray | None = None
        self._lots: list[np.ndarray] = []
        self._room = Workspace()

    def gradient(self, parameters: np.ndarray) -> np.ndarray:
        """The noisy sum of the clipped gradients of a fresh lot, divided by the plan's lot.

        The label of the private rows is one.
        """
        parameters = self._checked(parameters)

        def look(storage: Storage, source: Noise) -> np.ndarray:
            exact = self._sum(storage, source, parameters)
            if self._noise is None:
                return exact
            return _noised(exact, self._gradients.unit, self._noise, source)

        with self._vault._lock:
            self._take(1)
            answer = self._vault._look(self._query, look)
        step = self._gradients.unit if self._noise is None else self._noise.step
        return answer * (step / self.plan.lot)

    def _let_go(self) -> None:
        self._rows, self._lots, self._room = None, [], Workspace()

    def _checked(self, parameters: Any) -> np.ndarray:
        found = number_array("parameters", parameters, error=VaultError)
        size = self.plan.network.size
        if found.shape != (size,) or not max(found.max(), -found.min()) <= _LARGEST_PARAMETER:
            raise VaultError(f"parameters: expected {size:,} finite numbers")
        return found

    def _sum(self, storage: Storage, source: Noise, parameters: np.ndarray) -> np.ndarray:
        """The exact sum over a fresh lot; for the other side of the boundary only."""
        if self._rows is None:
            self._rows = self._prepared(storage)
        if not self._lots:
            self._lots = _next_lots(len(self._rows), self.plan.rate, source)
        return self._gradients.sums(parameters, self._rows, self._lots.pop(), self._room)

    def _prepared(self, storage: Storage) -> np.ndarray:
        """What the network sees of every row, in the order of the storage."""
        size = self.plan.inputs.size + 1
        kind = np.float32 if storage.rows() * size * 8 > _LARGE else np.float64
        parts = [
            self._gradients.prepare(self.plan.inputs(rows)).astype(kind, copy=False)
            for rows in storage.batches(max(1, _BATCH_CELLS // size))
        ]
        return np.concatenate(parts) if parts else np.empty((0, size))


def _next_lots(rows: int, rate: float, source: Noise) -> list[np.ndarray]:
    """The lots of the next steps, drawn together: so many times the rows are one long table."""
    lots = max(1, min(_LOTS_AT_ONCE, int(_ROWS_IN_LOTS / (rows * rate + 1))))
    places = source.sample(rows * lots, rate)
    bounds = np.searchsorted(places, rows * np.arange(lots + 1))
    return [places[bounds[lot] : bounds[lot + 1]] - rows * lot for lot in range(lots)]


def _noised(exact: np.ndarray, unit: float, noise: StepNoise, source: Noise) -> np.ndarray:
    """Whole units rounded to the grid of the noise, and noised, in whole steps."""
    # Both are powers of two: rounding to the nearest step, upwards when in doubt.
    places = round(math.log2(noise.step / unit))
    half = 1 << (places - 1) if places else 0
    noised = source.repeated_gaussian((exact + half) >> places, noise.scale)
    # The sum is known up to multiples of 2^64 units, and so is the answer.
    noised <<= places
    noised >>= places
    return noised
