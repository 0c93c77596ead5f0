"""The ledger: every look at the private rows, charged before it happens.

A budget with delta > 0 is added up by Renyi divergence at one order, which is fixed together with
the most that may come together when the ledger is made, before anything is read. A spend that
would carry the total over it is refused, and nothing is read. A pure budget adds up epsilons and
takes pure mechanisms only.

**Spends may be chosen in the light of earlier answers.** Given the answers so far, the next one
has a divergence of at most its charge, at the fixed order; divergences at one order add up under
such choices (Mironov 2017, proposition 1), and a total that no path of answers exceeds bounds the
divergence of the whole (Feldman and Zrnic 2021, Individual privacy accounting via a Renyi filter;
Lecuyer 2021, Practical privacy filters and odometers). To accept whenever *some* order fits would
let the answers choose the order, which is proved for linear curves alone.

A query that fails with a small probability (a threshold) also spends that much of a delta that
was set aside when the ledger was made. Whatever is chosen, such spends add up to no more than
that, so that on all paths together something fails with no more than that probability; the rest of
delta is the accountant's from the start. To trade one for the other as the answers come in is
proved nowhere.

**The ledger fails shut.** It believes events of known types with plain, finite, positive numbers;
a total that is not a number, or overflows, is an overspend; a charge is one step under a lock.

`epsilon_spent` is for reading, and so is `tighter_epsilon`, what the privacy loss distribution of
the same events says, where dp_accounting has one: it treats the discrete Gaussian as continuous.
Both treat the queries as fixed in advance. The guarantee is the budget.
[PRIVACY: ground rules 2, 3, 10 and 12]
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from dp_accounting.pld import PLDAccountant

from counterpoise.arguments import real_number
from counterpoise.errors import BudgetError
from counterpoise.vault.budget import (
    ADD_REMOVE,
    DELTA_ROUNDING,
    REPLACE,
    Budget,
    RenyiLimit,
    Share,
    epsilon_of_divergence,
    neighbours_name,
)
from counterpoise.vault.divergence import renyi_divergence
from counterpoise.vault.events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    PureDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
    checked_event,
    event_to_dict,
    is_asymptotic,
    pure_epsilon,
)
from counterpoise.vault.spends import Spend, checked_delta, require_keys, text, truth

__all__ = ["Ledger", "Spend"]

_LEDGER_KEYS = {
    "budget",
    "private",
    "accountant",
    "threshold_delta",
    "spends",
    "epsilon_spent",
    "epsilon_by_privacy_loss_distribution",
}

# The orders at which `epsilon_spent` looks for the least, in parts of the fixed order less one:
# what is small against the budget is read best at an order far above it; and whole ones, at which
# sampled events are charged.
_READING_PARTS = np.geomspace(0.05, 1e6, 400)
_READING_ORDERS = np.arange(2.0, 65.0)

# What is left is not worth a share when it is less than this part of the whole.
_LEAST_LEFT = 1e-9


class Ledger:
    """The spends against a budget, in order; any number of threads may charge it.

    `threshold_delta` is the part of the budget's delta that is set aside for queries that spend
    some, such as private lists of categories. A ledger that is not `private` never becomes so.

    >>> from dp_accounting import GaussianDpEvent
    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    >>> ledger.spend("ages", GaussianDpEvent(10.0))
    >>> round(ledger.epsilon_spent, 2)
    0.43
    >>> ledger.spend("ages again", GaussianDpEvent(0.1))
    Traceback (most recent call last):
    counterpoise.errors.BudgetError: 'ages again' would overspend the budget: ...
    >>> len(ledger.spends)
    1
    """

    def __init__(self, budget: Budget, private: bool = True, threshold_delta: float = 0.0):
        if type(budget) is not Budget:
            raise BudgetError(f"a ledger: expected a Budget, not a {type(budget).__name__}")
        self._lock = threading.RLock()
        self._budget = budget
        self._private = truth("private", private)
        self._delta_set_aside = checked_delta("threshold_delta", threshold_delta)
        self.stage = "query"
        self._spends: list[Spend] = []
        # The cost of each spend: its epsilon on a pure budget; else its divergence at the fixed
        # order, which comes first, and at those by which `epsilon_spent` is read.
        self._costs: list[np.ndarray] = []
        self._limit: RenyiLimit | None = None
        whole = budget.whole_beside(self._delta_set_aside)  # refuses what cannot be set aside
        if not whole.pure:
            self._limit = budget.renyi_limit(self._delta_set_aside)

    @property
    def budget(self) -> Budget:
        """What may be spent; fixed when the ledger is made."""
        return self._budget

    @property
    def private(self) -> bool:
        """Whether all noise came from the operating system; once False, it stays so."""
        return self._private

    @private.setter
    def private(self, private: bool) -> None:
        with self._lock:
            if truth("private", private) and not self._private:
                raise BudgetError("a ledger that is not private cannot be made so again")
            self._private = private

    @property
    def is_asymptotic(self) -> bool:
        """Whether something was charged for a law that a chain only tends to, as it gets longer."""
        return any(is_asymptotic(event_to_dict(spend.event)) for spend in self.spends)

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What was spent so far, in order."""
        with self._lock:
            return tuple(self._spends)

    @property
    def delta_set_aside(self) -> float:
        """The delta that is set aside for thresholds; the accountant works with the rest."""
        return self._delta_set_aside

    @property
    def epsilon_spent(self) -> float:
        """What the spends cost, had they been fixed in advance; the guarantee is the budget.

        A pure budget adds up epsilons. Otherwise it is the least epsilon over many Renyi orders,
        at the delta that thresholds leave.
        """
        return self._epsilon(self._snapshot()[1])

    @property
    def tighter_epsilon(self) -> float | None:
        """Epsilon by privacy loss distributions, or None where an event has none."""
        spends = self.spends
        if self._limit is None or not spends:
            return None
        # Noise multipliers are relative to the sensitivity under the budget's own relation, so a
        # neighbour is one change here. A coarse grid costs a tenth of the time, and errs upwards.
        accountant = PLDAccountant(ADD_REMOVE, value_discretization_interval=1e-3)
        events = [spend.event for spend in spends]
        if not all(accountant.supports(event) and _is_nearly_continuous(event) for event in events):
            return None
        for event in events:
            accountant.compose(event)
        return float(accountant.get_epsilon(self._limit.delta))

    def spend(self, query: str, event: DpEvent, delta: float = 0.0) -> None:
        """Charge an event, or raise `BudgetError` and leave the ledger as it was."""
        with self._lock:
            spend = self._checked(Spend(self.stage, query, event, delta))
            cost = self._cost(spend.event)
            if not self._delta_fits(spend.delta):
                raise BudgetError(
                    f"{query!r} spends a delta of {spend.delta:g}, and thresholds have "
                    f"{self._delta_set_aside:g} in all: make the ledger with a larger "
                    "`threshold_delta`, or ask with less"
                )
            if not self._fits([cost]):
                raise BudgetError(
                    f"{query!r} would overspend the budget: epsilon {self.epsilon_spent:.4g} of "
                    f"{self.budget.epsilon:g} is spent; ask with a smaller share, or start a vault "
                    "with a larger budget"
                )
            self._spends.append(spend)
            self._costs.append(cost)

    def fits(self, event: DpEvent, delta: float = 0.0, reserve: Iterable[Share] = ()) -> bool:
        """Whether `event` could be spent while keeping `reserve` for later stages."""
        with self._lock:
            spend = self._checked(Spend("", "an event", event, delta))
            later = [self._cost(self._checked_share(share)) for share in reserve]
            return self._delta_fits(spend.delta) and self._fits([self._cost(spend.event), *later])

    def calibrate(
        self,
        family: Callable[[float], DpEvent],
        low: float,
        high: float,
        reserve: Iterable[Share] = (),
    ) -> float:
        """The least noise in [low, high] for which `family(noise)` fits what is left.

        `family` makes an event from its noise parameter and gets cheaper as that grows; what is
        spent so far and the shares in `reserve` are kept. The ledger is not changed.

        >>> from dp_accounting import GaussianDpEvent
        >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
        >>> round(ledger.calibrate(GaussianDpEvent, 0.1, 100), 2)
        4.53
        """
        low = real_number("low", low, "a positive number", BudgetError, above=0)
        high = real_number(
            "high", high, "a number from low", BudgetError, above=low, inclusive=True
        )
        later = tuple(reserve)
        with self._lock:
            if not self.fits(family(high), reserve=later):
                raise BudgetError(
                    f"even the noise parameter {high:g} does not fit what is left of the budget: "
                    "reserve less for later stages, or start with a larger budget"
                )
            if self.fits(family(low), reserve=later):
                return low
            while high / low > 1 + 1e-6:
                middle = math.sqrt(low) * math.sqrt(high)
                low, high = (
                    (low, middle) if self.fits(family(middle), reserve=later) else (middle, high)
                )
            return high

    def selection_epsilon(self, share: Share) -> float:
        """The largest epsilon of an exponential mechanism that a share pays for on this ledger.

        At the fixed order a, a share of rho costs a rho, and the mechanism the lesser of epsilon
        and a epsilon^2/8: the first is the lesser of them for large shares.

        >>> ledger = Ledger(Budget(epsilon=100.0, delta=1e-6))
        >>> round(ledger.budget.whole.selection_epsilon, 1)
        19.9
        >>> round(ledger.selection_epsilon(ledger.budget.whole), 1)
        75.3
        """
        self._checked_share(share)
        if share.pure or self._limit is None:
            return share.selection_epsilon
        return max(share.selection_epsilon, share.amount * self._limit.order)

    @property
    def left(self) -> Share | None:
        """What is left, as a share; None when there is nothing."""
        whole = self.budget.whole_beside(self._delta_set_aside)
        spent = self._total(self._snapshot()[1])
        if self._limit is not None:
            # A share of rho costs rho times the order.
            spent = spent / self._limit.order
        amount = whole.amount - spent
        return Share(amount, whole.pure) if amount > _LEAST_LEFT * whole.amount else None

    def to_frame(self) -> pd.DataFrame:
        """One row a spend: stage, query, mechanism, its epsilon alone, and the running total."""
        spends, costs = self._snapshot()
        rows = []
        for index, (spend, cost) in enumerate(zip(spends, costs, strict=True)):
            alone = self._epsilon([cost])
            rows.append(
                {
                    "stage": spend.stage,
                    "query": spend.query,
                    "mechanism": _describe(spend.event),
                    "delta": spend.delta,
                    "epsilon alone": min(alone, pure_epsilon(spend.event) or alone),
                    "epsilon so far": self._epsilon(costs[: index + 1]),
                }
            )
        columns = ["stage", "query", "mechanism", "delta", "epsilon alone", "epsilon so far"]
        return pd.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """The ledger as JSON values: budget, spends and totals."""
        with self._lock:
            return {
                "budget": self.budget.to_dict(),
                "private": self.private,
                "accountant": self._accountant,
                "threshold_delta": self._delta_set_aside,
                "spends": [spend.to_dict() for spend in self._spends],
                "epsilon_spent": self.epsilon_spent,
                "epsilon_by_privacy_loss_distribution": self.tighter_epsilon,
            }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Ledger":
        """The inverse of `to_dict`; the totals are computed again, and nothing is believed."""
        require_keys("a ledger", values, _LEDGER_KEYS)
        ledger = cls(
            Budget.from_dict(values["budget"]),
            truth("private", values["private"]),
            values["threshold_delta"],
        )
        if values["accountant"] != ledger._accountant:
            raise BudgetError(f"a ledger: expected the accountant {ledger._accountant!r}")
        for total in ("epsilon_spent", "epsilon_by_privacy_loss_distribution"):
            if values[total] is not None or total == "epsilon_spent":
                real_number(
                    total, values[total], "a number from 0", BudgetError, above=0, inclusive=True
                )
        if not isinstance(values["spends"], list):
            raise BudgetError("a ledger: expected a list of spends")
        for spend in map(Spend.from_dict, values["spends"]):
            ledger.stage = spend.stage
            ledger.spend(spend.query, spend.event, spend.delta)
        return ledger

    @property
    def headline(self) -> str:
        """What is spent of the budget, and a stamp where that is not the whole story, as lines."""
        budget = self.budget
        unit = "person" if budget.max_rows_per_person > 1 else "record"
        with self._lock:
            head = (
                f"epsilon {self.epsilon_spent:.4g} of {budget.epsilon:g} spent, "
                f"delta {budget.delta:g}, {neighbours_name(budget.neighbours)} one {unit}"
            )
            stamp = [] if self.private else ["NOT PRIVATE: the noise was drawn from a seed"]
            if self.is_asymptotic:
                stamp.append("ASYMPTOTIC: the figure is that of a chain without end")
        return "\n".join([head, *stamp])

    def __str__(self) -> str:
        with self._lock:
            head, frame = self.headline, self.to_frame()
        table = frame.to_string(index=False, float_format="{:.4g}".format) if len(frame) else ""
        return f"{head}\n{table}".rstrip()

    def __repr__(self) -> str:
        return f"<Ledger: {self.headline.splitlines()[0]}>"

    def __getstate__(self) -> dict[str, Any]:
        # A lock is not copied; a copy is of one moment.
        with self._lock:
            state = {name: value for name, value in vars(self).items() if name != "_lock"}
            return state | {"_spends": list(self._spends), "_costs": list(self._costs)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    @property
    def _accountant(self) -> str:
        return "pure" if self._limit is None else "rdp"

    @property
    def _orders(self) -> np.ndarray:
        assert self._limit is not None
        order = self._limit.order
        return np.concatenate([[order], 1 + (order - 1) * _READING_PARTS, _READING_ORDERS])

    def _snapshot(self) -> tuple[list[Spend], list[np.ndarray]]:
        """Spends and their costs at one moment."""
        with self._lock:
            return list(self._spends), list(self._costs)

    def _checked(self, spend: Spend) -> Spend:
        """The spend in plain values, or an error: what cannot be charged is never charged."""
        stage, query = text("stage", spend.stage), text("query", spend.query)
        event = checked_event(spend.event, self.private)
        if self._limit is None:
            if pure_epsilon(event) is None:
                raise BudgetError(
                    f"{query!r} needs delta > 0: state a delta, such as 1e-9, or choose a pure "
                    "mechanism"
                )
        elif self.budget.neighbours is REPLACE and _is_sampled(event):
            relation = neighbours_name(self.budget.neighbours)
            raise BudgetError(
                f"{query!r}: a sampled event cannot be accounted under {relation!r} "
                f"neighbours; use {neighbours_name(ADD_REMOVE)!r}"
            )
        return Spend(stage, query, event, checked_delta("delta", spend.delta))

    def _checked_share(self, share: Share) -> DpEvent:
        if not isinstance(share, Share):
            raise BudgetError(f"reserve: expected shares, not a {type(share).__name__}")
        event = PureDpEvent(share.amount) if share.pure else ZCDpEvent(share.amount)
        return self._checked(Spend("", "reserve", event)).event

    def _cost(self, event: DpEvent) -> np.ndarray:
        # What is too large to be computed comes out as inf, and fits nowhere.
        if self._limit is None:
            return np.array([pure_epsilon(event)], dtype=float)
        return renyi_divergence(event, self._orders)

    def _total(self, costs: Sequence[np.ndarray]) -> float:
        return _sum(cost[0] for cost in costs)

    def _fits(self, more: list[np.ndarray]) -> bool:
        most = self.budget.epsilon if self._limit is None else self._limit.divergence
        # A total that is not a number is below nothing.
        return bool(self._total([*self._costs, *more]) <= most)

    def _delta_fits(self, delta: float) -> bool:
        spent = _sum([*(spend.delta for spend in self._spends), delta])
        return bool(spent <= self._delta_set_aside * (1 + DELTA_ROUNDING))

    def _epsilon(self, costs: Sequence[np.ndarray]) -> float:
        if not any(cost[0] > 0 for cost in costs):
            return 0.0
        if self._limit is None:
            return self._total(costs)
        together = np.sum(costs, axis=0)
        return float(np.min(epsilon_of_divergence(self._orders, together, self._limit.delta)))


def _sum(values: Iterable[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _is_nearly_continuous(event: DpEvent) -> bool:
    """Whether discrete Gaussian noise is as hard to see through as continuous noise.

    Both are equally good in zCDP. But a test between the integers t - 1 and t tells discrete noise
    of deviation s from its shift by one as well as continuous noise with mu = 1/s + c, where c is
    5% of 1/s at s = 1, 1% at s = 2, and falls with the square of s.
    """
    return all(
        part.noise_multiplier >= 2 for part in _parts(event) if isinstance(part, GaussianDpEvent)
    )


def _is_sampled(event: DpEvent) -> bool:
    return any(isinstance(part, PoissonSampledDpEvent) for part in _parts(event))


def _parts(event: DpEvent) -> Iterator[DpEvent]:
    """The event, and all events that it contains."""
    yield event
    for part in _contained(event):
        yield from _parts(part)


def _contained(event: DpEvent) -> Sequence[DpEvent]:
    if isinstance(event, PoissonSampledDpEvent | SelfComposedDpEvent):
        return (event.event,)
    return event.events if isinstance(event, ComposedDpEvent) else ()


def _describe(event: DpEvent) -> str:
    values = event_to_dict(event)
    name = values.pop("event").removesuffix("DpEvent")
    parts = [
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in values.items()
        if not isinstance(value, dict | list)
    ]
    parts += [_describe(part) for part in _contained(event)]
    return f"{name}({', '.join(parts)})"
