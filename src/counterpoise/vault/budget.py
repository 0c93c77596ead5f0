"""What may be spent: a budget, and the shares of it that the stages get.

A budget (epsilon, delta) is worth the largest rho for which rho-zCDP implies it, and shares
are parts of that rho, because zCDP adds up exactly. That rho belongs to one Renyi order, at which
the ledger adds up everything that is spent; `RenyiLimit` is that order with the most divergence
that the budget allows there. A pure budget (delta = 0) is shared by epsilon. A share says how much
noise a mechanism needs; the ledger, not the share, is what refuses an overspend.
[PRIVACY: ground rules 1 to 3]
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation
from scipy.optimize import minimize_scalar

from counterpoise.arguments import one_of, real_number, whole_number
from counterpoise.errors import BudgetError

ADD_REMOVE = NeighboringRelation.ADD_OR_REMOVE_ONE
REPLACE = NeighboringRelation.REPLACE_ONE
_NAMES = {"add-remove": ADD_REMOVE, "replace": REPLACE}

# Beyond these a budget is a mistake: at epsilon 10,000 no noise is left on anything, and a person
# of more than a million rows drowns every answer.
MOST_EPSILON = 10_000.0
MOST_ROWS_PER_PERSON = 1_000_000

# Why there is no default for how many rows of a person are kept.
WHY_ROWS_ARE_STATED = (
    "of each person so many rows are kept and counted, and no others. It has no default: one row "
    "leaves out most of a table in which people have many, and each more adds as much noise again"
)

# The least pure epsilon, or its equal in rho: with less, the noise on a single count is a billion
# times what a person can change, and nothing can be learnt from anybody's table.
LEAST_EPSILON = 1e-9

# The least share: a budget in more parts than anybody can ask for. What is worked out from it, such
# as the rate of a choice, is a number of full precision, and so above zero.
LEAST_SHARE = 1e-100

# So that any weights of parts add up to a number.
_MOST_WEIGHT = 1e300

# Shares are scaled down by this much, so that adding them up in floating point cannot overspend.
_MARGIN = 1e-9

# The part of itself by which parts of a delta may exceed it when they are added up; it is set
# aside with it.
DELTA_ROUNDING = 1e-9

# The orders among which the best is looked for, less one.
_LEAST_ORDER, _MOST_ORDER = 1e-9, 1e15

# A Renyi limit is rounded down by this much, which is more than floating point can be off.
_LIMIT_ROUNDING = 1e-12


def neighbours_from_name(neighbours: str | NeighboringRelation) -> NeighboringRelation:
    """The neighbouring relation called `add-remove` or `replace`.

    >>> neighbours_from_name("replace").name
    'REPLACE_ONE'
    """
    if isinstance(neighbours, NeighboringRelation) and neighbours in _NAMES.values():
        return neighbours
    return _NAMES[one_of("neighbours", neighbours, _NAMES, BudgetError)]


def neighbours_name(neighbours: NeighboringRelation) -> str:
    """The inverse of `neighbours_from_name`."""
    return next(name for name, value in _NAMES.items() if value is neighbours)


@dataclass(frozen=True)
class Budget:
    """The most that a release may reveal about one person.

    `max_rows_per_person` is one where nobody states it, and has to be stated where a column says
    whose a row is.

    >>> budget = Budget(epsilon=1.0, delta=1e-9)
    >>> round(budget.whole.amount, 3)
    0.015
    >>> Budget(epsilon=1.0).whole.pure
    True
    """

    epsilon: float
    delta: float = 0.0
    neighbours: NeighboringRelation | str = ADD_REMOVE
    max_rows_per_person: int = None  # type: ignore[assignment]
    states_rows: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        epsilon = real_number("epsilon", self.epsilon, "a positive number", BudgetError, above=0)
        if epsilon > MOST_EPSILON:
            raise BudgetError(
                f"epsilon: expected at most {MOST_EPSILON:,.0f}, not {epsilon:g}: far below that "
                "nothing is hidden any more"
            )
        most = math.nextafter(1.0, 0.0)
        delta = real_number(
            "delta",
            self.delta,
            "a number from 0 to below 1",
            BudgetError,
            above=0,
            below=most,
            inclusive=True,
        )
        object.__setattr__(self, "states_rows", self.max_rows_per_person is not None)
        rows = whole_number(
            "max_rows_per_person",
            self.max_rows_per_person if self.states_rows else 1,
            most=MOST_ROWS_PER_PERSON,
            error=BudgetError,
        )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", abs(delta))  # minus zero is zero
        object.__setattr__(self, "max_rows_per_person", rows)
        object.__setattr__(self, "neighbours", neighbours_from_name(self.neighbours))
        if self.whole.epsilon < LEAST_EPSILON * (1 - 2 * _MARGIN):
            raise BudgetError(
                f"epsilon {epsilon:g} with delta {delta:g} is too small a budget: no table is "
                "large enough to be seen through its noise"
            )

    @property
    def is_pure(self) -> bool:
        """Whether delta is zero, so that only pure mechanisms are accepted."""
        return self.delta == 0

    def require_stated_rows(self) -> None:
        """Refuse to bound persons by a number that nobody chose: it decides which rows count."""
        if not self.states_rows:
            raise BudgetError(
                f"max_rows_per_person: state it, as person is given: {WHY_ROWS_ARE_STATED}"
            )

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
        limit = self.renyi_limit(set_aside)
        return Share(limit.divergence / limit.order * (1 - _MARGIN), pure=False)

    def renyi_limit(self, set_aside: float = 0.0) -> "RenyiLimit":
        """The order at which a budget with delta is added up, and the most that may come together.

        `set_aside` is the delta that thresholds get.
        """
        expected = "a number from 0"
        set_aside = real_number(
            "set_aside", set_aside, expected, BudgetError, above=0, inclusive=True
        )
        if not set_aside < self.delta:
            raise BudgetError("the delta set aside has to be below the delta of the budget")
        return best_renyi_limit(self.epsilon, self.delta - set_aside * (1 + DELTA_ROUNDING))

    def count_sensitivity(self, tables: int = 1) -> tuple[float, int]:
        """(D2, D1) of `tables` contingency tables when one person's rows change.

        A row is one count in each table; a replaced row moves, which is two.
        """
        rows, tables = (
            self.max_rows_per_person,
            whole_number("tables", tables, most=2**40, error=BudgetError),
        )
        if self.neighbours is REPLACE:
            return rows * math.sqrt(2 * tables), 2 * rows * tables
        return rows * math.sqrt(tables), rows * tables

    def row_sensitivity(self, bound: float) -> float:
        """Sensitivity of a sum over rows to which each row adds at most `bound` in norm."""
        bound = real_number("bound", bound, "a number from 0", BudgetError, above=0, inclusive=True)
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
    def from_dict(cls, values: Mapping[str, Any]) -> "Budget":
        """The inverse of `to_dict`; anything else is refused."""
        expected = {"epsilon", "delta", "neighbours", "max_rows_per_person"}
        if not isinstance(values, Mapping) or set(values) != expected:
            raise BudgetError(f"a budget: expected {', '.join(sorted(expected))}, and nothing else")
        return cls(**values)


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
        amount = real_number(
            "a share", self.amount, "a positive part of the budget", BudgetError, above=0
        )
        if amount < LEAST_SHARE:
            raise BudgetError(
                f"a share of {amount:g} is too small a budget for any query: give it a larger part"
            )
        object.__setattr__(self, "amount", amount)

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
        return _sensitivity(sensitivity) / math.sqrt(2 * self.amount)

    def laplace_scale(self, sensitivity: float) -> float:
        """The scale of Laplace noise for an L1 sensitivity: epsilon = D1 / b."""
        return _sensitivity(sensitivity) / self.epsilon

    def part(self, fraction: float) -> "Share":
        """A fraction of this share."""
        fraction = real_number(
            "a part of a share", fraction, "a number above 0", BudgetError, above=0
        )
        if fraction > 1:
            raise BudgetError(f"a share can be taken in parts of 0 to 1, not {fraction!r}")
        return Share(self.amount * fraction, self.pure)

    def split(self, *weights: float) -> "tuple[Share, ...]":
        """Shares in proportion to `weights`, adding up to this one."""
        expected = f"a positive number below {_MOST_WEIGHT:g}"
        weights = tuple(
            real_number("a weight", weight, expected, BudgetError, above=0, below=_MOST_WEIGHT)
            for weight in weights
        )
        whole = math.fsum(weights)
        return tuple(Share(self.amount * weight / whole, self.pure) for weight in weights)


def _sensitivity(value: float) -> float:
    return real_number("sensitivity", value, "a positive number", BudgetError, above=0)


@dataclass(frozen=True)
class RenyiLimit:
    """A Renyi order, and the most divergence at it that implies (epsilon, `delta`)-DP."""

    order: float
    divergence: float
    delta: float


def epsilon_of_divergence(
    orders: np.ndarray | float, divergence: np.ndarray | float, delta: float
) -> np.ndarray:
    """The epsilon that a Renyi divergence at an order implies for `delta`, elementwise.

    epsilon = D + log(1 - 1/a) - (log(delta) + log(a)) / (a - 1)
    (Canonne, Kamath and Steinke 2020, proposition 12), and no less than 0.
    """
    return np.maximum(0.0, np.asarray(divergence) - _allowed(np.asarray(orders), 0.0, delta))


@lru_cache(maxsize=256)
def best_renyi_limit(epsilon: float, delta: float) -> RenyiLimit:
    """The order at which the most zCDP implies (epsilon, delta)-DP, with its limit, from below.

    Every order gives a sound limit, so that a search which stops short of the best one loses a
    little rho and no privacy.

    >>> limit = best_renyi_limit(1.0, 1e-6)
    >>> round(limit.order, 2), round(limit.divergence / limit.order, 4)
    (21.98, 0.0244)
    """

    # rho a <= D(a), so rho = D(a) / a; the best a is looked for on the scale of log(a - 1).
    def rho(place: np.ndarray | float) -> np.ndarray:
        orders = 1 + np.exp(place)
        return _allowed(orders, epsilon, delta) / orders

    places = np.linspace(math.log(_LEAST_ORDER), math.log(_MOST_ORDER), 600)
    best = int(np.argmax(rho(places)))
    around = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
    found = minimize_scalar(
        lambda place: -float(rho(place)), bounds=around, method="bounded", options={"xatol": 1e-9}
    )
    order = float(1 + np.exp(found.x))
    divergence = float(_allowed(order, epsilon, delta)) * (1 - _LIMIT_ROUNDING)
    if not divergence > 0:
        raise BudgetError(
            f"epsilon {epsilon:g} with delta {delta:g} is too small a budget: no table is large "
            "enough to be seen through its noise"
        )
    return RenyiLimit(order, divergence, delta)


def largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho for which rho-zCDP implies (epsilon, delta)-DP, from below."""
    limit = best_renyi_limit(epsilon, delta)
    return limit.divergence / limit.order


def _allowed(orders: np.ndarray | float, epsilon: float, delta: float) -> np.ndarray:
    """The most divergence at each order that implies (epsilon, delta)-DP."""
    # D = epsilon - log(1 - 1/a) + (log(delta) + log(a)) / (a - 1), by the proposition above.
    beyond = np.asarray(orders) - 1
    allowed: np.ndarray = (
        epsilon + np.log1p(1 / beyond) + (math.log(delta) + np.log1p(beyond)) / beyond
    )
    return allowed
