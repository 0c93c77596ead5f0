"""The card of a release: what was spent, by which methods, with which software. JSON values."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

from counterpoise.bundle.persons import persons_counted
from counterpoise.registry import Registry
from counterpoise.vault.events import is_asymptotic

# What a ledger pays for, where that is not all of the release: the card's "covers".
COVERS_WEIGHTS = "weights"
# What was done to the weights so that they speak for another population: the card's field.
RETARGETED = "retargeted"
# How it is known that nobody has more rows than the ledger says: the card's "person".
BOUNDED, PROMISED = "bounded", "promised"
# Which request and which run made a release in a working folder, both as what tells them apart.
MADE_BY = "made_by"
# How many rows were drawn, where those of the release were chosen from them by weight.
# How many times wider intervals are than those of the private table, by kind of question.
PRICE = "price"
CHOSEN_FROM = "chosen_from"

_LIBRARIES = ("numpy", "scipy", "pandas", "duckdb", "opendp", "dp-accounting")


def describe(registry: Registry[Any], method: Any) -> dict[str, Any]:
    """The name of a method and its parameters.

    >>> from counterpoise.weights import WEIGHTERS, Logistic
    >>> from counterpoise.weights.features import Linear, Squares
    >>> describe(WEIGHTERS, Logistic(features=Linear() + Squares()))["parameters"]["features"]
    {'class': 'Sum', 'recipes': [{'class': 'Linear'}, {'class': 'Squares'}]}
    """
    made = {"method": registry.name_of(method), "parameters": _parameters(method)}
    # What such a method says was handed to it: no ledger can tell what that was worked out from.
    return made | ({"stated_by_caller": True} if getattr(method, "stated_by_caller", False) else {})


def vouches_for_all(card: Mapping[str, Any]) -> bool:
    """Whether the ledger of a card, if it is private, is the whole cost of the release."""
    weights = card.get("weights", {})
    stated = weights.get("stated_by_caller") or weights.get("reweighted") or card.get(RETARGETED)
    return card.get("covers") != COVERS_WEIGHTS and not stated


def guarantee(card: Mapping[str, Any]) -> str:
    """What a card promises of privacy, in a sentence, and what it does not.

    >>> guarantee({"ledger": {"private": False}})
    'not private: the noise was drawn from a seed'
    """
    ledger = card.get("ledger")
    if ledger is None:
        return "unknown: there is no ledger, so nothing says what it cost"
    if not ledger["private"]:
        return "not private: the noise was drawn from a seed"
    budget = ledger["budget"]
    spent = f"epsilon {budget['epsilon']:g}, delta {budget['delta']:g}"
    weights = card.get("weights", {})
    limits = []
    if is_asymptotic(ledger):
        limits.append(
            "in the limit of a chain without end, and how near a finite one is, nobody has proved"
        )
    if card.get("covers") == COVERS_WEIGHTS:
        limits.append("in the weights only, the synthetic table's own cost is not in the ledger")
    if weights.get("stated_by_caller"):
        limits.append(
            f"as stated by the caller, who gave the ratio of the {weights['method']} weights"
        )
    if weights.get("reweighted"):
        limits.append("as stated by the caller, who replaced the weights")
    if card.get(RETARGETED):
        limits.append("as stated by the caller, who gave the target that it was turned to")
    return f"private: {spent}" + "".join(f"; {limit}" for limit in limits)


def protection(budget: Mapping[str, Any], person: str | None) -> str:
    """Who is protected by a ledger of this budget, in a sentence; `person` is the card's.

    >>> budget = {"neighbours": "add-remove", "max_rows_per_person": 3}
    >>> protection(budget, BOUNDED)
    'one person with all their rows, of which at most 3 are used'
    >>> protection(budget, PROMISED)
    'one person with at most 3 rows, as the curator promises that nobody has more'
    """
    rows = budget["max_rows_per_person"]
    if person == BOUNDED:
        are = "is" if rows == 1 else "are"
        said = f"one person with all their rows, of which at most {rows} {are} used"
    elif rows > 1:
        said = f"one person with at most {rows} rows, as the curator promises that nobody has more"
    else:
        said = "one row, which is one person if nobody has two"
    if budget["neighbours"] == "replace" and rows > 1:
        # A person who is replaced by one with fewer rows changes a number that is public.
        said += "; not how many rows they have, because the number of all rows is public"
    return said


def rows_counted(card: Mapping[str, Any]) -> str:
    """Of which private rows every number of a release speaks, and of how many persons not of all.

    >>> budget = {"delta": 1e-6, "neighbours": "add-remove", "max_rows_per_person": 3}
    >>> persons = {"within": 530, "beyond": 1475, "deviation": 45.0}
    >>> rows_counted({"person": BOUNDED, "ledger": {"budget": budget}, "persons": persons})
    'of the rows that were kept, at most 3 of each person; 70% to 78% of persons have more'
    """
    found = persons_counted(card)
    return rows_kept(card) + ("" if found is None else f"; {found.said}")


def rows_kept(card: Mapping[str, Any]) -> str:
    """Of which private rows every number of a release speaks; empty where of all of them."""
    if card.get("person") != BOUNDED or "ledger" not in card:
        return ""
    most = card["ledger"]["budget"]["max_rows_per_person"]
    return f"of the rows that were kept, {'one' if most == 1 else f'at most {most}'} of each person"


def describe_replicates(count: int, found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What the replicate weights are, in the words of survey packages; None when there are none.

    `found` is what is known of them beside that, such as their effective sample sizes, and the part
    of the way from the weight that they go.

    >>> describe_replicates(80, {"part": 0.5})["scale"] == 4 / 80
    True
    """
    if count == 0:
        return None
    found = {"part": 1.0, **(found or {})}
    return {
        **found,
        "count": count,
        "scale": 1 / (count * found["part"] ** 2),
        "centred_on": "the full estimate",
        "variance": "scale times the sum over replicates of (estimate with the replicate's weights "
        "- estimate with the weights)^2",
    }


def without_sums(card: Mapping[str, Any]) -> dict[str, Any]:
    """What was measured, for a release whose weights match nothing that was summed for them.

    >>> without_sums({"measured": {"counts": [["a"]], "cells": [["a"]], "products": []}})
    {'measured': {'counts': [['a']], 'cells': [], 'products': []}}
    """
    if "measured" not in card:
        return {}
    return {"measured": {"counts": card["measured"]["counts"], "cells": [], "products": []}}


def with_replaced_weights(card: Mapping[str, Any]) -> dict[str, Any]:
    """What a card says of its target once weights were replaced: that nothing is known to hold."""
    stated = card.get(RETARGETED)
    if not stated:
        return {}
    return {
        RETARGETED: {**stated, "steps": [*stated["steps"], {"kind": "replaced", "columns": []}]}
    }


def without_target(card: Mapping[str, Any]) -> dict[str, Any]:
    """A card as if its release had not been retargeted."""
    return {key: value for key, value in card.items() if key != RETARGETED}


def private_rows(card: Mapping[str, Any]) -> float | None:
    """As how many rows of the population the private ones count; None where nobody knows.

    Retargeted, rows that got a large factor speak for many, and the rows for fewer in all.

    >>> private_rows({"population": 1000.0, "retargeted": {"effective_part": 0.8}})
    800.0
    """
    stated = card.get("population")
    part = (card.get(RETARGETED) or {}).get("effective_part", 1.0)
    return None if stated is None else float(stated) * float(part)


def versions() -> dict[str, str]:
    """The versions of Python and of the libraries that a release depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in _LIBRARIES}


def _parameters(method: Any) -> dict[str, Any]:
    if not is_dataclass(method):
        return {}
    return {field.name: _plain(getattr(method, field.name)) for field in fields(method)}


def _plain(value: Any) -> Any:
    """A parameter as JSON; a dataclass among them says its class, anything else only that."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    return {"class": type(value).__name__} | _parameters(value)
