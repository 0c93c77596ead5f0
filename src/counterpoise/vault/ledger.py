"""The ledger: every look at the private rows, charged before it happens.

Spends are composed by one Renyi accountant, whatever stage they come from; a spend that would
carry the total over the budget is refused, and nothing is read. Spends may be chosen in the
light of earlier answers: an RDP filter is sound under such choices. A pure budget adds up
epsilons and takes pure mechanisms only. A query that fails with a small probability (a
threshold) also spends that much of delta, which the accountant then no longer has.
The guarantee is the Renyi figure. `tighter_epsilon` is what the privacy loss distribution of the
same events says, where dp_accounting has one; it treats the discrete Gaussian as continuous and
the queries as fixed in advance, so it is shown beside the guarantee and never instead of it.
[PRIVACY: ground rules 2 and 3]
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from dp_accounting import PrivacyAccountant, ZCDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from counterpoise.errors import BudgetError
from counterpoise.vault.budget import (
    ADD_REMOVE,
    RENYI_ORDERS,
    Budget,
    Share,
    neighbours_name,
)
from counterpoise.vault.events import (
    DpEvent,
    GaussianDpEvent,
    PureDpEvent,
    event_from_dict,
    event_to_dict,
    pure_epsilon,
    renyi_event,
)


@dataclass(frozen=True)
class Spend:
    """One charged look: its stage, what was asked, the event, and any delta spent besides."""

    stage: str
    query: str
    event: DpEvent
    delta: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The spend as JSON values."""
        return {
            "stage": self.stage,
            "query": self.query,
            "mechanism": event_to_dict(self.event),
            "delta": self.delta,
        }


class Ledger:
    """The spends against a budget, in order.

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

    def __init__(self, budget: Budget, private: bool = True):
        self.budget = budget
        self.private = private
        self.stage = "query"
        self._spends: list[Spend] = []
        self._accountant = self._empty_accountant()

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What was spent so far, in order."""
        return tuple(self._spends)

    @property
    def delta_set_aside(self) -> float:
        """The delta that thresholds have used; the accountant works with the rest."""
        return math.fsum(spend.delta for spend in self._spends)

    @property
    def epsilon_spent(self) -> float:
        """Epsilon spent so far, at the budget's delta."""
        return self._epsilon(self._accountant, self._spends)

    @property
    def tighter_epsilon(self) -> float | None:
        """Epsilon by privacy loss distributions, or None where an event has none."""
        if self.budget.is_pure or not self._spends:
            return None
        # Noise multipliers are relative to the sensitivity under the budget's own relation, so a
        # neighbour is one change here. A coarse grid costs a tenth of the time, and errs upwards.
        accountant = PLDAccountant(ADD_REMOVE, value_discretization_interval=1e-3)
        events = [spend.event for spend in self._spends]
        if not all(accountant.supports(event) and _is_nearly_continuous(event) for event in events):
            return None
        for event in events:
            accountant.compose(event)
        return float(accountant.get_epsilon(self.budget.delta - self.delta_set_aside))

    def spend(self, query: str, event: DpEvent, delta: float = 0.0) -> None:
        """Charge an event, or raise `BudgetError` and leave the ledger as it was."""
        self._refuse_unsupported(query, event)
        spend = Spend(self.stage, query, event, delta)
        if not self._fits([spend]):
            raise BudgetError(
                f"{query!r} would overspend the budget: epsilon {self.epsilon_spent:.4g} of "
                f"{self.budget.epsilon:g} is spent; ask with a smaller share, or start a vault "
                "with a larger budget"
            )
        self._compose(self._accountant, event)
        self._spends.append(spend)

    def fits(self, event: DpEvent, delta: float = 0.0, reserve: Iterable[Share] = ()) -> bool:
        """Whether `event` could be spent while keeping `reserve` for later stages."""
        later = [Spend("", "", self._share_event(share)) for share in reserve]
        return self._fits([Spend("", "", event, delta), *later])

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
        later = tuple(reserve)
        self._refuse_unsupported("calibrate", family(high))
        if not self.fits(family(high), reserve=later):
            raise BudgetError(
                f"even the noise parameter {high:g} does not fit what is left of the budget: "
                "reserve less for later stages, or start with a larger budget"
            )
        if self.fits(family(low), reserve=later):
            return low
        while high / low > 1 + 1e-6:
            middle = math.sqrt(low * high)
            low, high = (
                (low, middle) if self.fits(family(middle), reserve=later) else (middle, high)
            )
        return high

    @property
    def left(self) -> Share | None:
        """What is left, as a share; None when there is nothing."""
        if self.budget.is_pure:
            amount = self.budget.whole.amount - self.epsilon_spent
            return Share(amount, pure=True) if amount > 0 else None
        if not self.delta_set_aside < self.budget.delta:
            return None
        high = self.budget.whole_beside(self.delta_set_aside).amount
        if self.fits(ZCDpEvent(high)):
            return Share(high, pure=False)
        low = high * 1e-9
        if not self.fits(ZCDpEvent(low)):
            return None
        while high / low > 1 + 1e-9:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.fits(ZCDpEvent(middle)) else (low, middle)
        return Share(low, pure=False)

    def to_frame(self) -> pd.DataFrame:
        """One row a spend: stage, query, mechanism, its epsilon alone, and the running total."""
        rows = []
        running = self._empty_accountant()
        for index, spend in enumerate(self._spends):
            self._compose(running, spend.event)
            alone = self._epsilon(self._compose(self._empty_accountant(), spend.event), [spend])
            rows.append(
                {
                    "stage": spend.stage,
                    "query": spend.query,
                    "mechanism": _describe(spend.event),
                    "delta": spend.delta,
                    "epsilon alone": min(alone, pure_epsilon(spend.event) or alone),
                    "epsilon so far": self._epsilon(running, self._spends[: index + 1]),
                }
            )
        columns = ["stage", "query", "mechanism", "delta", "epsilon alone", "epsilon so far"]
        return pd.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """The ledger as JSON values: budget, spends and totals."""
        return {
            "budget": self.budget.to_dict(),
            "private": self.private,
            "accountant": "pure" if self.budget.is_pure else "rdp",
            "spends": [spend.to_dict() for spend in self._spends],
            "epsilon_spent": self.epsilon_spent,
            "epsilon_by_privacy_loss_distribution": self.tighter_epsilon,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Ledger":
        """The inverse of `to_dict`; the totals are computed again, not believed."""
        ledger = cls(Budget.from_dict(values["budget"]), private=bool(values["private"]))
        for spend in values["spends"]:
            ledger.stage = spend["stage"]
            ledger.spend(spend["query"], event_from_dict(spend["mechanism"]), spend["delta"])
        return ledger

    def __str__(self) -> str:
        budget = self.budget
        unit = "person" if budget.max_rows_per_person > 1 else "record"
        head = (
            f"epsilon {self.epsilon_spent:.4g} of {budget.epsilon:g} spent, "
            f"delta {budget.delta:g}, {neighbours_name(budget.neighbours)} one {unit}"
        )
        stamp = [] if self.private else ["NOT PRIVATE: the noise was drawn from a seed"]
        frame = self.to_frame()
        table = frame.to_string(index=False, float_format="{:.4g}".format) if len(frame) else ""
        return "\n".join([head, *stamp, table]).rstrip()

    def __repr__(self) -> str:
        return f"<Ledger: {str(self).splitlines()[0]}>"

    def _empty_accountant(self) -> PrivacyAccountant:
        return RdpAccountant(RENYI_ORDERS, self.budget.neighbours)

    def _compose(self, accountant: PrivacyAccountant, event: DpEvent) -> PrivacyAccountant:
        return accountant if self.budget.is_pure else accountant.compose(renyi_event(event))

    def _refuse_unsupported(self, query: str, event: DpEvent) -> None:
        if self.budget.is_pure:
            if pure_epsilon(event) is None:
                raise BudgetError(
                    f"{query!r} needs delta > 0: state a delta, such as 1e-9, or choose a pure "
                    "mechanism"
                )
        elif not self._accountant.supports(renyi_event(event)):
            relation = neighbours_name(self.budget.neighbours)
            raise BudgetError(
                f"{query!r}: {type(event).__name__} cannot be accounted under {relation!r} "
                f"neighbours; use {neighbours_name(ADD_REMOVE)!r}"
            )

    def _fits(self, more: list[Spend]) -> bool:
        accountant = copy.deepcopy(self._accountant)
        for spend in more:
            self._compose(accountant, spend.event)
        return self._epsilon(accountant, self._spends + more) <= self.budget.epsilon

    def _epsilon(self, accountant: PrivacyAccountant, spends: list[Spend]) -> float:
        if not spends:
            return 0.0
        if self.budget.is_pure:
            if any(spend.delta > 0 for spend in spends):
                return math.inf
            return math.fsum(pure_epsilon(spend.event) or 0.0 for spend in spends)
        left = self.budget.delta - math.fsum(spend.delta for spend in spends)
        return float(accountant.get_epsilon(left)) if left > 0 else math.inf

    @staticmethod
    def _share_event(share: Share) -> DpEvent:
        return PureDpEvent(share.amount) if share.pure else ZCDpEvent(share.amount)


def _is_nearly_continuous(event: DpEvent) -> bool:
    """Whether discrete Gaussian noise is as hard to see through as continuous noise.

    Both are equally good in zCDP. But a test between the integers t - 1 and t tells discrete noise
    of deviation s from its shift by one as well as continuous noise with mu = 1/s + c, where c is
    5% of 1/s at s = 1, 1% at s = 2, and falls with the square of s.
    """
    return not isinstance(event, GaussianDpEvent) or event.noise_multiplier >= 2


def _describe(event: DpEvent) -> str:
    values = event_to_dict(event)
    name = values.pop("event").removesuffix("DpEvent")
    parts = [
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in values.items()
        if not isinstance(value, dict | list)
    ]
    inner = getattr(event, "event", None)
    if isinstance(inner, DpEvent):
        parts.append(_describe(inner))
    return f"{name}({', '.join(parts)})"
