"""What may be spent: a budget, and the shares of it that the stages get.

A budget (epsilon, delta) is worth the largest rho for which rho-zCDP implies it, and shares
are parts of that rho, because zCDP adds up exactly. A pure budget (delta = 0) is shared by
epsilon. A share says how much noise a mechanism needs; the ledger, not the share, is what
refuses an overspend. [PRIVACY: ground rules 1 to 3]
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real

import numpy as np
from dp_accounting import NeighboringRelation, ZCDpEvent
from dp_accounting.rdp import RdpAccountant

from counterpoise.errors import BudgetError

ADD_REMOVE = NeighboringRelation.ADD_OR_REMOVE_ONE
REPLACE = NeighboringRelation.REPLACE_ONE
_NAMES = {"add-remove": ADD_REMOVE, "replace": REPLACE}

# dp_accounting's own orders are coarse above 64, where the best order of a small budget lies.
RENYI_ORDERS = np.concatenate(
    [1 + np.geomspace(0.02, 62, 200), np.unique(np.geomspace(64, 4096, 90).astype(int))]
)

# Shares are scaled down by this much, so that adding them up in floating point cannot overspend.
_MARGIN = 1e-9


def neighbours_from_name(neighbours: str | NeighboringRelation) -> NeighboringRelation:
    """The neighbouring relation called `add-remove` or `replace`.

    >>> neighbours_from_name("replace").name
    'REPLACE_ONE'
    """
    if isinstance(neighbours, NeighboringRelation) and neighbours in _NAMES.values():
        return neighbours
    if neighbours in _NAMES:
        return _NAMES[str(neighbours)]
    raise BudgetError(f"neighbours: expected 'add-remove' or 'replace', not {neighbours!r}")


def neighbours_name(neighbours: NeighboringRelation) -> str:
    """The inverse of `neighbours_from_name`."""
    return next(name for name, value in _NAMES.items() if value is neighbours)


@dataclass(frozen=True)
class Budget:
    """The most that a release may reveal about one person.

    >>> budget = Budget(epsilon=1.0, delta=1e-9)
    >>> round(budget.whole.amount, 3)
    0.015
    >>> Budget(epsilon=1.0).whole.pure
    True
    """

    epsilon: float
    delta: float = 0.0
    neighbours: NeighboringRelation | str = ADD_REMOVE
    max_rows_per_person: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", neighbours_from_name(self.neighbours))
        if not (_is_number(self.epsilon) and math.isfinite(self.epsilon) and self.epsilon > 0):
            raise BudgetError(f"epsilon: expected a positive number, not {self.epsilon!r}")
        if not (_is_number(self.delta) and 0 <= self.delta < 1):
            raise BudgetError(f"delta: expected a number from 0 to below 1, not {self.delta!r}")
        rows = self.max_rows_per_person
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise BudgetError(f"max_rows_per_person: expected a whole number from 1, not {rows!r}")

    @property
    def is_pure(self) -> bool:
        """Whether delta is zero, so that only pure mechanisms are accepted."""
        return self.delta == 0

    @property
    def whole(self) -> "Share":
        """All of the budget as one share."""
        return self.whole_beside(0.0)

    def whole_beside(self, set_aside: float) -> "Share":
        """All of the budget as one share, when `set_aside` of its delta goes to a threshold."""
        if self.is_pure:
            if set_aside > 0:
                raise BudgetError(
                    "this query sets part of delta aside: state a budget with delta > 0"
                )
            return Share(self.epsilon * (1 - _MARGIN), pure=True)
        if not 0 <= set_aside < self.delta:
            raise BudgetError("the delta set aside has to be below the delta of the budget")
        return Share(largest_rho(self.epsilon, self.delta - set_aside) * (1 - _MARGIN), pure=False)

    def count_sensitivity(self, tables: int = 1) -> tuple[float, int]:
        """(D2, D1) of `tables` contingency tables when one person's rows change.

        A row is one count in each table; a replaced row moves, which is two.
        """
        rows = self.max_rows_per_person
        if self.neighbours is REPLACE:
            return rows * math.sqrt(2 * tables), 2 * rows * tables
        return rows * math.sqrt(tables), rows * tables

    def row_sensitivity(self, bound: float) -> float:
        """Sensitivity of a sum over rows to which each row adds at most `bound` in norm."""
        return bound * self.max_rows_per_person * (2 if self.neighbours is REPLACE else 1)

    def to_dict(self) -> dict[str, object]:
        """The budget as JSON values."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": neighbours_name(self.neighbours),
            "max_rows_per_person": self.max_rows_per_person,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "Budget":
        """The inverse of `to_dict`."""
        return cls(**values)  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class Share:
    """A part of a budget: `amount` is zCDP's rho, or epsilon when `pure`.

    >>> share = Share(0.02, pure=False)
    >>> share.gaussian_scale(sensitivity=1.0)
    5.0
    >>> [part.amount for part in share.split(3, 1)]
    [0.015, 0.005]
    """

    amount: float
    pure: bool

    def __post_init__(self) -> None:
        if not (math.isfinite(self.amount) and self.amount > 0):
            raise BudgetError("a share has to be a positive part of the budget")

    @property
    def epsilon(self) -> float:
        """The largest pure epsilon that the share pays for."""
        return self.amount if self.pure else math.sqrt(2 * self.amount)

    @property
    def selection_epsilon(self) -> float:
        """The largest epsilon of an exponential mechanism that the share pays for."""
        return self.amount if self.pure else math.sqrt(8 * self.amount)

    def gaussian_scale(self, sensitivity: float) -> float:
        """The standard deviation of Gaussian noise: rho = D2^2 / (2 s^2)."""
        if self.pure:
            raise BudgetError("Gaussian noise needs delta > 0: state a delta, such as 1e-9")
        return sensitivity / math.sqrt(2 * self.amount)

    def laplace_scale(self, sensitivity: float) -> float:
        """The scale of Laplace noise for an L1 sensitivity: epsilon = D1 / b."""
        return sensitivity / self.epsilon

    def part(self, fraction: float) -> "Share":
        """A fraction of this share."""
        if not 0 < fraction <= 1:
            raise BudgetError(f"a share can be taken in parts of 0 to 1, not {fraction!r}")
        return Share(self.amount * fraction, self.pure)

    def split(self, *weights: float) -> "tuple[Share, ...]":
        """Shares in proportion to `weights`, adding up to this one."""
        whole = math.fsum(weights)
        return tuple(Share(self.amount * weight / whole, self.pure) for weight in weights)


@lru_cache(maxsize=256)
def largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho for which rho-zCDP implies (epsilon, delta)-DP, from below."""

    def fits(rho: float) -> bool:
        accountant = RdpAccountant(RENYI_ORDERS).compose(ZCDpEvent(rho))
        return accountant.get_epsilon(delta) <= epsilon

    # rho-zCDP implies epsilon = rho + 2 sqrt(rho log(1/delta)), so this much always fits,
    low = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2 / 2
    high = epsilon + 1.0
    while fits(high):
        high *= 2
    while not fits(low):
        low /= 2
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
