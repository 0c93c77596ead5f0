"""What happened to the private rows, as values that an accountant can add up.

The events are those of `dp_accounting`, and two of our own for mechanisms it has no name for:
a mechanism of which only a pure epsilon is known, and the exponential mechanism, whose bounded
range makes it cheaper. `renyi_event` and `pure_epsilon` say what each costs an RDP accountant
and a pure budget. [PRIVACY: mechanisms]
"""

from collections.abc import Mapping
from typing import Any

import attr
from dp_accounting.dp_event import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)

from counterpoise.errors import BudgetError

__all__ = [
    "ComposedDpEvent",
    "DiscreteLaplaceDpEvent",
    "DpEvent",
    "ExponentialDpEvent",
    "GaussianDpEvent",
    "LaplaceDpEvent",
    "NoOpDpEvent",
    "PoissonSampledDpEvent",
    "PureDpEvent",
    "SelfComposedDpEvent",
    "ZCDpEvent",
    "event_from_dict",
    "event_to_dict",
    "pure_epsilon",
    "renyi_event",
]


@attr.frozen
class PureDpEvent(DpEvent):
    """A mechanism that is `epsilon`-DP, of which nothing more is claimed."""

    epsilon: float


@attr.frozen
class ExponentialDpEvent(DpEvent):
    """The exponential mechanism: `epsilon`-DP, and of bounded range `epsilon`."""

    epsilon: float


_KNOWN = {
    event.__name__: event
    for event in (
        PureDpEvent,
        ExponentialDpEvent,
        GaussianDpEvent,
        LaplaceDpEvent,
        DiscreteLaplaceDpEvent,
        ZCDpEvent,
        PoissonSampledDpEvent,
        SelfComposedDpEvent,
        ComposedDpEvent,
        NoOpDpEvent,
    )
}


def pure_epsilon(event: DpEvent) -> float | None:
    """The pure epsilon of an event, or None when it needs delta > 0.

    >>> pure_epsilon(LaplaceDpEvent(4.0))
    0.25
    >>> pure_epsilon(GaussianDpEvent(4.0)) is None
    True
    """
    match event:
        case NoOpDpEvent():
            return 0.0
        case PureDpEvent() | ExponentialDpEvent():
            return event.epsilon
        case LaplaceDpEvent():
            return 1 / event.noise_multiplier
        case DiscreteLaplaceDpEvent():
            return event.noise_parameter * event.sensitivity
        case SelfComposedDpEvent():
            one = pure_epsilon(event.event)
            return None if one is None else one * event.count
        case ComposedDpEvent():
            parts = [pure_epsilon(part) for part in event.events]
            return None if None in parts else sum(part or 0.0 for part in parts)
        case _:
            return None


def renyi_event(event: DpEvent) -> DpEvent:
    """The event in terms that `RdpAccountant` knows, at a cost no lower than the true one."""
    match event:
        case ExponentialDpEvent():
            # Bounded range eps implies (eps^2/8)-zCDP (Cesar and Rogers 2021, lemma 3.2).
            return ZCDpEvent(event.epsilon**2 / 8)
        case PureDpEvent() | DiscreteLaplaceDpEvent():
            # eps-DP implies (eps^2/2)-zCDP (Bun and Steinke 2016, proposition 1.4). The Renyi
            # divergence of the discrete Laplace exceeds the continuous one's, so the latter,
            # which dp_accounting would use for a LaplaceDpEvent, is not a bound for it.
            epsilon = pure_epsilon(event)
            assert epsilon is not None
            return ZCDpEvent(epsilon**2 / 2)
        case SelfComposedDpEvent():
            return SelfComposedDpEvent(renyi_event(event.event), event.count)
        case ComposedDpEvent():
            return ComposedDpEvent([renyi_event(part) for part in event.events])
        case _:
            return event


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """The event as JSON values: its class and its parameters."""
    return {"event": type(event).__name__} | {
        field.name: _to_json(getattr(event, field.name)) for field in attr.fields(type(event))
    }


def event_from_dict(values: Mapping[str, Any]) -> DpEvent:
    """The inverse of `event_to_dict`; only known events are made, whatever the file says."""
    parameters = dict(values)
    name = parameters.pop("event", None)
    if name not in _KNOWN:
        raise BudgetError(f"unknown privacy event {name!r}; expected one of {sorted(_KNOWN)}")
    try:
        return _KNOWN[name](**{key: _from_json(value) for key, value in parameters.items()})
    except TypeError:
        raise BudgetError(f"privacy event {name} does not take {sorted(parameters)}") from None


def _to_json(value: Any) -> Any:
    if isinstance(value, DpEvent):
        return event_to_dict(value)
    if isinstance(value, list | tuple):
        return [_to_json(part) for part in value]
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return event_from_dict(value)
    if isinstance(value, list):
        return [_from_json(part) for part in value]
    return value
