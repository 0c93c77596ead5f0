"""One charged look as a value, and the checks that let nothing else into a ledger.

A spend is plain text and plain numbers around a known event, and comes back from JSON as it went,
or not at all. [PRIVACY: ground rule 10]
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from counterpoise.arguments import real_number
from counterpoise.errors import BudgetError
from counterpoise.vault.events import DpEvent, event_from_dict, event_to_dict


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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Spend":
        """The inverse of `to_dict`; anything else is refused."""
        require_keys("a spend", values, {"stage", "query", "mechanism", "delta"})
        return cls(
            text("stage", values["stage"]),
            text("query", values["query"]),
            event_from_dict(values["mechanism"]),
            checked_delta("delta", values["delta"]),
        )


def require_keys(what: str, values: Any, keys: set[str]) -> None:
    """Refuse what is not a mapping with exactly these keys."""
    if not isinstance(values, Mapping) or set(values) != keys:
        raise BudgetError(f"{what}: expected {', '.join(sorted(keys))}, and nothing else")


def text(name: str, value: Any) -> str:
    """A plain text, or our error."""
    if not isinstance(value, str):
        raise BudgetError(f"{name}: expected text, not a {type(value).__name__}")
    return str(value)


def truth(name: str, value: Any) -> bool:
    """True or False and nothing else, or our error."""
    if not isinstance(value, bool):
        raise BudgetError(f"{name}: expected True or False, not a {type(value).__name__}")
    return value


def checked_delta(name: str, delta: Any) -> float:
    """A plain number from 0 to below 1, or our error."""
    most = math.nextafter(1.0, 0.0)
    expected = "a number from 0 to below 1"
    return abs(real_number(name, delta, expected, BudgetError, above=0, below=most, inclusive=True))
