"""Layouts as JSON values, and back: what a model learnt of its terms outlives the rows.

The terms themselves come from the formula again; what they learnt (levels, knots, centres) is a
few small values each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from counterpoise.formulas.bases import BSplines, CubicSplines, Polynomials, Scaling
from counterpoise.formulas.contrasts import Coding
from counterpoise.formulas.layout import Layout, Learnt
from counterpoise.formulas.terms import Term

_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (BSplines, CubicSplines, Polynomials, Scaling, Coding)
}


def layout_values(layout: Layout) -> dict[str, Any]:
    """A layout as JSON values; the inverse of `layout_of`."""
    return {
        "factors": {name: _learnt_values(learnt) for name, learnt in layout.factors.items()},
        "parts": [[[list(scoped) for scoped in part], scale] for part, scale in layout.parts],
    }


def layout_of(terms: Iterable[Term], values: Mapping[str, Any]) -> Layout:
    """The layout of these terms that was written as `values`."""
    named = {factor.name: factor for term in terms for factor in term.factors}
    factors = {
        name: Learnt(
            named[name],
            _read(found["coding"]),
            _read(found["basis"]),
            {key: _read(scaling) for key, scaling in found["scales"].items()},
        )
        for name, found in values["factors"].items()
    }
    parts = tuple(
        (tuple((str(name), bool(reduced)) for name, reduced in part), float(scale))
        for part, scale in values["parts"]
    )
    return Layout(factors, parts)


def _learnt_values(learnt: Learnt) -> dict[str, Any]:
    return {
        "coding": _written(learnt.coding),
        "basis": _written(learnt.basis),
        "scales": {name: _written(scaling) for name, scaling in learnt.scales.items()},
    }


def _written(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    own = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return {"kind": type(value).__name__} | own


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _read(values: Mapping[str, Any] | None) -> Any:
    if values is None:
        return None
    own = {name: _value(value) for name, value in values.items() if name != "kind"}
    return _KINDS[values["kind"]](**own)


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return np.array(value["array"])
    return tuple(map(_value, value)) if isinstance(value, list) else value
