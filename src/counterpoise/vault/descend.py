"""Private gradient descent: noisy gradients of a described network over private rows.

A descent is a course of T steps that are charged together before the first look; one step more is
refused. Each step draws a Poisson sample of the private rows, sums their clipped gradients exactly
(`gradients`), rounds the sum to the grid of the noise, adds discrete Gaussian noise, also when the
lot is empty, and divides by a public number. Public rows are no concern of the vault: their
gradients are added outside, by whoever trains. The sensitivity and the charge are in
`descent_plan`.

The private rows are needed at random at every step, so an open descent holds what the network sees
of them, as the vault itself holds rows; it lets go of it when it is closed, and it is closed with
the vault. With a journal, steps are written down in blocks before they are taken: a run that is
killed has taken no more steps than the journal says, and a later one that plans the same goes on
with those that are left, from the state that was kept.
[PRIVACY: relaxed DP-SGD; ground rules 2 and 10]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from counterpoise.arguments import instance_of, number_array
from counterpoise.errors import VaultError
from counterpoise.vault.descent_plan import DescentPlan, StepNoise
from counterpoise.vault.gradients import ClippedGradients, Workspace
from counterpoise.vault.journal import Journal, Kept
from counterpoise.vault.noise import Noise
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

_BATCH_CELLS = 4_000_000

# What the network sees of the rows is held in double precision up to this many bytes, and in single
# precision above, which has room for all its places too.
_LARGE = 2**28

# Lots are drawn this many at a time.
_LOTS_AT_ONCE = 64

# A journal gets a line this often in a course: a run that is killed loses one part in so many.
_BLOCKS = 50

# Parameters beyond this could overflow on the way through a layer.
_LARGEST_PARAMETER = 1e100


def descent(vault: Vault, plan: DescentPlan) -> Descent:
    """Charge all steps of a plan, and open the course that takes them."""
    plan = instance_of("plan", plan, DescentPlan, "a DescentPlan", VaultError)
    if plan.inputs.schema != vault.schema:
        raise VaultError("plan: expected the inputs of the vault's own schema")
    if plan.noise == 0 and vault.private:
        raise VaultError(
            "noise: none is for studies on a vault with a seed, whose answers are stamped as not "
            "private; state a noise, or use DescentPlan.within"
        )
    if plan.noise > 0:
        plan.step_noise(vault.budget)  # refuses what cannot be drawn
    query = f"descent of {plan.steps:,} steps over {plan.network.size:,} parameters"
    if plan.noise == 0:
        query += ", WITHOUT NOISE"
    course = vault._pay(query, plan.event_under(vault.budget), plan.describe())
    return Descent(vault, plan, query, course)


class Descent:
    """The open course of a descent; use it in a `with` block, or close it.

    `left` is how many steps are left; `kept` is what an earlier run of the same course had kept,
    with the number of steps that it stands for, or None.
    """

    def __init__(self, vault: Vault, plan: DescentPlan, query: str, course: int | None):
        self.plan = plan
        self.kept: Kept | None = None
        self._vault, self._query = vault, query
        self._journal: Journal | None = None
        self._course = 0
        self._taken = self._begun = 0
        self._latest: Kept | None = None
        self._gradients = plan.gradients
        self._noise = plan.step_noise(vault.budget) if plan.noise > 0 else None
        self._rows: np.ndarray | None = None
        self._room = Workspace()
        self._lots: list[np.ndarray] = []
        self._is_open = True
        if course is not None:
            self._journal, self._course = vault._journal, course
            assert self._journal is not None
            self._taken = self._begun = self._journal.begun(course)
            self.kept = self._latest = self._journal.kept(course)
        vault._courses.add(self)

    @property
    def taken(self) -> int:
        """How many steps count as taken."""
        return self._taken

    @property
    def left(self) -> int:
        """How many steps are left of those that were paid for."""
        return self.plan.steps - self._taken

    def gradient(self, parameters: np.ndarray) -> np.ndarray:
        """The noisy sum of the clipped gradients of a fresh lot, divided by the plan's lot."""
        parameters = _checked(parameters, self.plan)
        plan, noise = self.plan, self._noise
        with self._vault._lock:
            self._require_open()
            if not self.left:
                raise VaultError(
                    f"all {plan.steps:,} steps of this descent are taken; plan more in advance"
                )
            if self._taken == self._begun:
                self._begin_block()
            # It counts from here on, whatever becomes of it.
            self._taken += 1

            def look(storage: Storage, source: Noise) -> np.ndarray:
                exact = self._sum(storage, source, parameters)
                if noise is None:
                    return exact
                return _noised(exact, self._gradients.unit, noise, source)

            answer = self._vault._look(self._query, look)
        step = self._gradients.unit if noise is None else noise.step
        return answer * (step / plan.lot)

    def keep(self, state: Mapping[str, np.ndarray]) -> None:
        """Keep arrays that the noisy gradients led to, such as parameters, for a later run.

        They are written to the journal, if the vault has one, when the next block of steps begins
        and when the course is closed.
        """
        self._require_open()
        self._latest = Kept(self._taken, _checked_state(state))

    def close(self) -> None:
        """Let go of the rows; steps that are left stay paid for."""
        if not self._is_open:
            return
        self._is_open, self._rows, self._lots = False, None, []
        self._room = Workspace()
        self._vault._courses.discard(self)
        if self._journal is not None:
            self._write_latest()
            if self._taken < self._begun:
                # Of the last block only these were taken: the others are left for a later run.
                self._journal.begin(self._course, self._taken)

    def __enter__(self) -> Descent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._is_open else "closed"
        return f"<Descent, {state}: {self._taken:,} of {self.plan.steps:,} steps taken>"

    def __reduce__(self) -> NoReturn:
        raise VaultError("a descent holds private rows and is never copied or pickled")

    def _require_open(self) -> None:
        self._vault._require_open()
        if not self._is_open:
            raise VaultError("the descent is closed; its steps that are left stay paid for")

    def _begin_block(self) -> None:
        """Say on disk, before they are taken, that the next few steps are."""
        block = math.ceil(self.plan.steps / _BLOCKS)
        self._begun = min(self.plan.steps, self._taken + block)
        if self._journal is not None:
            self._write_latest()
            self._journal.begin(self._course, self._begun)

    def _write_latest(self) -> None:
        assert self._journal is not None
        if self._latest is not None and self._latest is not self._journal.kept(self._course):
            self._journal.keep_course(self._course, self._latest)

    def _sum(self, storage: Storage, source: Noise, parameters: np.ndarray) -> np.ndarray:
        """The exact sum over a fresh lot; only for the other side of the boundary."""
        if self._rows is None:
            self._rows = _prepared(storage, self.plan, self._gradients)
        if not self._lots:
            self._lots = _next_lots(len(self._rows), self.plan.rate, source)
        return self._gradients.sums(parameters, self._rows, self._lots.pop(), self._room)


def _prepared(storage: Storage, plan: DescentPlan, gradients: ClippedGradients) -> np.ndarray:
    """What the network sees of every row, in the order of the storage."""
    size = plan.inputs.size + 1
    is_large = storage.rows() * size * 8 > _LARGE
    parts = [
        gradients.prepare(plan.inputs(rows)).astype(np.float32 if is_large else float, copy=False)
        for rows in storage.batches(max(1, _BATCH_CELLS // size))
    ]
    return np.concatenate(parts) if parts else np.empty((0, size))


def _next_lots(rows: int, rate: float, source: Noise) -> list[np.ndarray]:
    """The lots of the next steps, drawn together: so many times the rows are one long table."""
    lots = _LOTS_AT_ONCE if rate < 1 else 1
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
    return (noised << places) >> places


def _checked(parameters: Any, plan: DescentPlan) -> np.ndarray:
    found = number_array("parameters", parameters, error=VaultError)
    size = plan.network.size
    if found.shape != (size,) or not np.abs(found).max() <= _LARGEST_PARAMETER:
        raise VaultError(f"parameters: expected {size:,} finite numbers")
    return found


def _checked_state(state: Any) -> dict[str, np.ndarray]:
    expected = "arrays of numbers by name"
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise VaultError(f"state: expected {expected}")
    found = {}
    for name, value in state.items():
        array = np.array(value)  # a copy: the caller's goes on changing
        if array.dtype.kind not in "iuf" or array.dtype == np.uint64:
            raise VaultError(f"state: expected {expected}, not {name!r}")
        found[str(name)] = array.astype(np.int64 if array.dtype.kind in "iu" else float)
    return found
