"""What happened to the private rows, as values that an accountant can add up.

The events are those of `dp_accounting`, and three of our own for mechanisms it has no name for:
a mechanism of which only a pure epsilon is known, the exponential mechanism, whose bounded range
makes it cheaper, and a Markov chain that tends to the exponential mechanism. `pure_epsilon` says
what each costs a pure budget; `divergence` what it costs at a Renyi order. An event is believed
only after `checked_event`: one of these very types, not of a type derived from one, with plain,
finite numbers that make sense for it.
[PRIVACY: mechanisms; ground rule 10]
"""

import math
from collections.abc import Mapping
from typing import Any, NoReturn

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

from counterpoise.arguments import real_number, whole_number
from counterpoise.errors import BudgetError

__all__ = [
    "ComposedDpEvent",
    "DiscreteLaplaceDpEvent",
    "DpEvent",
    "ExponentialDpEvent",
    "GaussianDpEvent",
    "LaplaceDpEvent",
    "MetropolisDpEvent",
    "NoOpDpEvent",
    "PoissonSampledDpEvent",
    "PureDpEvent",
    "SelfComposedDpEvent",
    "ZCDpEvent",
    "checked_event",
    "count_as_float",
    "event_from_dict",
    "event_to_dict",
    "is_asymptotic",
    "pure_epsilon",
]


@attr.frozen
class PureDpEvent(DpEvent):
    """A mechanism that is `epsilon`-DP, of which nothing more is claimed."""

    epsilon: float


@attr.frozen
class ExponentialDpEvent(DpEvent):
    """The exponential mechanism: `epsilon`-DP, and of bounded range `epsilon`."""

    epsilon: float


@attr.frozen
class MetropolisDpEvent(DpEvent):
    """The end of a Markov chain of so many `moves` that tends to `ExponentialDpEvent(epsilon)`.

    Its charge is that of the law which it tends to: no finite chain is known to have reached it.
    """

    epsilon: float
    moves: int


# What each parameter of each known event has to be.
_PARAMETERS: dict[type[DpEvent], dict[str, str]] = {
    PureDpEvent: {"epsilon": "positive"},
    ExponentialDpEvent: {"epsilon": "positive"},
    MetropolisDpEvent: {"epsilon": "positive", "moves": "count"},
    GaussianDpEvent: {"noise_multiplier": "positive"},
    LaplaceDpEvent: {"noise_multiplier": "positive"},
    DiscreteLaplaceDpEvent: {"noise_parameter": "positive", "sensitivity": "count"},
    ZCDpEvent: {"rho": "positive", "xi": "not negative"},
    PoissonSampledDpEvent: {"sampling_probability": "rate", "event": "gaussian"},
    SelfComposedDpEvent: {"event": "event", "count": "count"},
    ComposedDpEvent: {"events": "events"},
    NoOpDpEvent: {},
}
_KNOWN = {event.__name__: event for event in _PARAMETERS}

# Events contain events no deeper than this; nothing here goes beyond two.
_DEEPEST = 8


def checked_event(event: Any, private: bool = True) -> DpEvent:
    """The same event with plain numbers, or `BudgetError`; without noise only if not `private`.

    >>> import numpy as np
    >>> checked_event(GaussianDpEvent(np.int8(16)))
    GaussianDpEvent(noise_multiplier=16.0)
    """
    return _checked(event, private, _DEEPEST)


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
        case PureDpEvent() | ExponentialDpEvent() | MetropolisDpEvent():
            return event.epsilon
        case LaplaceDpEvent():
            return 1 / event.noise_multiplier
        case DiscreteLaplaceDpEvent():
            return event.noise_parameter * count_as_float(event.sensitivity)
        case SelfComposedDpEvent():
            one = pure_epsilon(event.event)
            return None if one is None else one * count_as_float(event.count)
        case ComposedDpEvent():
            parts = [pure_epsilon(part) for part in event.events]
            return None if None in parts else sum(part or 0.0 for part in parts)
        case _:
            return None


def is_asymptotic(values: Any) -> bool:
    """Whether an event, as JSON values, is charged for a law that it only tends to.

    >>> is_asymptotic(event_to_dict(SelfComposedDpEvent(MetropolisDpEvent(1.0, 5000), 2)))
    True
    >>> is_asymptotic(event_to_dict(ExponentialDpEvent(1.0)))
    False
    """
    if isinstance(values, Mapping):
        return values.get("event") == MetropolisDpEvent.__name__ or any(
            is_asymptotic(part) for part in values.values()
        )
    return isinstance(values, list) and any(is_asymptotic(part) for part in values)


def count_as_float(count: int) -> float:
    """A whole number of any size as a float; inf where there is none so large."""
    try:
        return float(count)
    except OverflowError:
        return math.inf


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """The event as JSON values: its class and its parameters."""
    return {"event": type(event).__name__} | {
        _json_name(field.name): _to_json(getattr(event, field.name))
        for field in attr.fields(type(event))
    }


def event_from_dict(values: Mapping[str, Any]) -> DpEvent:
    """The inverse of `event_to_dict`; only known events are made, whatever the file says."""
    return _checked(_from_json(values, _DEEPEST), False, _DEEPEST)


def _checked(event: Any, private: bool, depth: int) -> DpEvent:
    kind = type(event)
    # `type` and not `isinstance`: what a derived type does with its parameters is its own affair.
    if kind not in _PARAMETERS:
        _refuse_unknown(kind.__name__)
    if depth == 0:
        raise BudgetError("a privacy event contains events that contain events without end")
    if private and kind is NoOpDpEvent:
        raise BudgetError(
            "an answer without noise is not private: only a ledger that is not private takes it"
        )
    parameters = {
        name: _checked_parameter(
            f"{name} of {kind.__name__}", getattr(event, name), expected, private, depth - 1
        )
        for name, expected in _PARAMETERS[kind].items()
    }
    return kind(**parameters)


def _checked_parameter(name: str, value: Any, expected: str, private: bool, depth: int) -> Any:
    match expected:
        case "positive":
            return real_number(name, value, "a positive number", BudgetError, above=0)
        case "not negative":
            return abs(
                real_number(name, value, "a number from 0", BudgetError, above=0, inclusive=True)
            )
        case "rate":
            rate = real_number(name, value, "a number above 0", BudgetError, above=0)
            if rate > 1:
                raise BudgetError(f"{name}: expected a number up to 1, not {rate!r}")
            return rate
        case "count":
            return whole_number(name, value, error=BudgetError)
        case "gaussian":
            if type(value) is not GaussianDpEvent:
                raise BudgetError(f"{name}: expected a GaussianDpEvent, not {type(value).__name__}")
            return _checked(value, private, depth)
        case "events":
            if not isinstance(value, list | tuple) or not value:
                raise BudgetError(f"{name}: expected a list of privacy events")
            return tuple(_checked(part, private, depth) for part in value)
        case _:
            return _checked(value, private, depth)


def _to_json(value: Any) -> Any:
    if isinstance(value, DpEvent):
        return event_to_dict(value)
    if isinstance(value, list | tuple):
        return [_to_json(part) for part in value]
    return value


def _from_json(values: Any, depth: int) -> DpEvent:
    """The event that a mapping names, its own parameters not yet checked."""
    if not isinstance(values, Mapping):
        raise BudgetError("a privacy event: expected its name and its parameters")
    if depth == 0:
        raise BudgetError("a privacy event contains events that contain events without end")
    name = values.get("event")
    if not isinstance(name, str) or name not in _KNOWN:
        _refuse_unknown(name)
    kind = _KNOWN[name]
    expected = {_json_name(parameter): parameter for parameter in _PARAMETERS[kind]}
    given = set(values) - {"event"}
    if given != set(expected):
        raise BudgetError(f"privacy event {name} does not take {sorted(map(str, given))}")
    parameters: dict[str, Any] = {expected[key]: values[key] for key in expected}
    for key, needed in _PARAMETERS[kind].items():
        if needed in ("event", "gaussian"):
            parameters[key] = _from_json(parameters[key], depth - 1)
        elif needed == "events" and isinstance(parameters[key], list):
            parameters[key] = [_from_json(part, depth - 1) for part in parameters[key]]
    return kind(**parameters)


def _json_name(parameter: str) -> str:
    """The name in JSON, where `event` already says what kind of event it is."""
    return "contained" if parameter == "event" else parameter


def _refuse_unknown(name: Any) -> NoReturn:
    raise BudgetError(f"unknown privacy event {name!r}; expected one of {sorted(_KNOWN)}")
