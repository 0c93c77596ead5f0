"""Several features of one column: splines and polynomials, as they were when a model was fitted.

What depends on the rows (knots, bounds, means) is learnt once and kept, so that new rows get the
features of the same functions. B-splines follow the recurrence of C. de Boor and M. G. Cox;
natural and cyclic cubic splines are those of S. N. Wood (Generalized Additive Models, 2006, pages
145 to 147); orthogonal polynomials follow the recurrence of three terms. All are those of
formulaic and, but for extrapolation, of R.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy.interpolate import CubicSpline

from counterpoise.errors import AnalysisError
from counterpoise.formulas.row_by_row import row_products
from counterpoise.schema.expression_trees import (
    Call,
    Listed,
    Node,
    Number,
    Prefixed,
    Text,
    Truth,
)

MOST_FUNCTIONS = 200
_BEYOND = ("raise", "clip", "na", "zero", "extend")
_NAMES = {
    "bs": (
        *("df", "knots", "degree", "include_intercept"),
        *("lower_bound", "upper_bound", "extrapolation"),
    ),
    "cubic": ("df", "knots", "lower_bound", "upper_bound", "constraints", "extrapolation"),
    "poly": ("degree", "raw"),
    "scale": ("center", "scale", "ddof"),
    "standardize": ("center", "rescale", "ddof"),
    "center": (),
}


class Basis(Protocol):
    """Features of a column."""

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for each feature."""
        ...

    def features(self, x: np.ndarray) -> np.ndarray:
        """Rows x features."""
        ...


def learn_basis(call: Call, x: np.ndarray) -> Basis:
    """The functions that a call such as `bs(age, df=4)` asks for, learnt from numbers."""
    if call.function == "poly":
        return _learn_polynomials(Options(call, _NAMES["poly"]), x)
    if call.function == "bs":
        return _learn_b_splines(Options(call, _NAMES["bs"]), x)
    return _learn_cubic(Options(call, _NAMES["cubic"]), x, cyclic=call.function == "cc")


@dataclass(frozen=True)
class Scaling:
    """A column less its centre, over its scale."""

    centre: float
    scale: float

    @classmethod
    def learn(cls, call: Call, x: np.ndarray) -> Scaling:
        """The centre and the scale that a call such as `scale(age)` asks for."""
        options = Options(call, _NAMES[call.function])
        centre = options.get("center", True)
        default = {"center": False, "scale": True, "standardize": True}[call.function]
        scale = options.get("rescale" if call.function == "standardize" else "scale", default)
        degrees = options.number("ddof", 0.0 if call.function == "standardize" else 1.0)
        if isinstance(centre, bool):
            centre = float(x.mean()) if centre else 0.0
        if isinstance(scale, bool):
            divisor = len(x) - degrees
            squares = float(((x - centre) ** 2).sum()) if isinstance(centre, float | int) else 0.0
            scale = float(np.sqrt(squares / divisor)) if scale and divisor > 0 else 1.0 - scale
        if not all(isinstance(each, int | float) for each in (centre, scale)) or not scale:
            options.refuse("expected numbers, or True and False, and values that differ")
        return cls(float(centre), float(scale))

    def apply(self, x: np.ndarray) -> np.ndarray:
        """The column on its new scale."""
        return np.asarray((x - self.centre) / self.scale)


class Options:
    """The options of a call, after its first argument, by place or by name."""

    def __init__(self, call: Call, names: tuple[str, ...]):
        self.name = call.function
        given = call.arguments[1:]
        if not call.arguments:
            self.refuse("expected a column")
        if len(given) > len(names):
            self.refuse("there are more arguments than it takes")
        self.values = dict(zip(names, (self._literal(each) for each in given), strict=False))
        for name, value in call.options:
            if name not in names or name in self.values:
                takes = f"; it takes {', '.join(names)}" if names else ""
                self.refuse(f"the option {name[:40]!r} is unknown, or there twice{takes}")
            self.values[name] = self._literal(value)

    def get(self, name: str, default: Any = None) -> Any:
        """An option as it was written."""
        return self.values.get(name, default)

    def whole(self, name: str, default: int | None, least: int) -> int | None:
        """An option that is a whole number."""
        if name not in self.values:
            return default
        value = self.values[name]
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not least <= value <= MOST_FUNCTIONS:
            self.refuse(f"{name}: expected a whole number from {least} to {MOST_FUNCTIONS}")
        return int(value)

    def number(self, name: str, default: Any) -> Any:
        """An option that is a number."""
        value = self.values.get(name, default)
        if name in self.values and not (
            isinstance(value, int | float) and not isinstance(value, bool)
        ):
            self.refuse(f"{name}: expected a number")
        return value

    def numbers(self, name: str) -> list[float] | None:
        """An option that is a list of numbers, in increasing order."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(
            isinstance(each, int | float) and not isinstance(each, bool) for each in value
        ):
            self.refuse(f"{name}: expected numbers in brackets")
        if len(value) > MOST_FUNCTIONS:
            self.refuse(f"{name}: expected at most {MOST_FUNCTIONS}")
        return sorted(float(each) for each in value)

    def choice(self, name: str, default: Any, allowed: tuple[Any, ...]) -> Any:
        """An option that is one of a few values."""
        value = self.values.get(name, default)
        same = [each for each in allowed if each == value and type(each) is type(value)]
        if name in self.values and not same:
            self.refuse(f"{name}: expected {' or '.join(map(repr, allowed))}")
        return value

    def refuse(self, reason: str) -> Any:
        """Say what is wrong with the call."""
        raise AnalysisError(f"formula: {self.name}: {reason}")

    def _literal(self, node: Node) -> Any:
        if isinstance(node, Number | Text | Truth):
            return node.value
        if isinstance(node, Prefixed) and isinstance(node.operand, Number):
            return -node.operand.value
        if isinstance(node, Listed):
            return [self._literal(each) for each in node.members]
        return self.refuse("expected options that are numbers, texts, True, False or lists of them")


@dataclass(frozen=True)
class Polynomials:
    """Powers of a column, or polynomials that are orthonormal over the rows learnt from."""

    degree: int
    centres: tuple[float, ...] = ()  # alpha_k, none for plain powers
    norms: tuple[float, ...] = ()  # |P_k|^2

    @property
    def labels(self) -> tuple[str, ...]:
        """Degrees from one; of plain powers they count from zero, as formulaic does."""
        first = 1 if self.centres else 0
        return tuple(str(first + place) for place in range(self.degree))

    def features(self, x: np.ndarray) -> np.ndarray:
        """Rows x degrees."""
        if not self.centres:
            return np.stack([x**power for power in range(1, self.degree + 1)], axis=1)
        made = [np.ones(len(x))]
        for k in range(self.degree):
            # P_k+1 = (x - alpha_k) P_k - (|P_k|^2 / |P_k-1|^2) P_k-1
            following = (x - self.centres[k]) * made[k]
            if k:
                following = following - self.norms[k] / self.norms[k - 1] * made[k - 1]
            made.append(following)
        return np.stack(made[1:], axis=1) / np.sqrt(self.norms[1:])


def _learn_polynomials(options: Options, x: np.ndarray) -> Polynomials:
    degree = options.whole("degree", 1, 1)
    assert degree is not None
    if options.choice("raw", False, (True, False)):
        return Polynomials(degree)
    centres: list[float] = []
    norms = [float(len(x))]
    made = [np.ones(len(x))]
    for k in range(degree):
        centres.append(float((x * made[k] ** 2).sum() / norms[k]))
        following = (x - centres[k]) * made[k]
        if k:
            following = following - norms[k] / norms[k - 1] * made[k - 1]
        made.append(following)
        norms.append(float((following**2).sum()))
    if len(np.unique(x)) <= degree or not (np.isfinite(norms).all() and min(norms) > 0):
        options.refuse("the column has too few different values for this degree")
    return Polynomials(degree, tuple(centres), tuple(norms))


@dataclass(frozen=True)
class BSplines:
    """B-splines over knots, of which the outer ones are repeated."""

    knots: tuple[float, ...]
    degree: int
    include_intercept: bool
    beyond: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The places of the functions; without an intercept the first is left out."""
        first = 0 if self.include_intercept else 1
        return tuple(map(str, range(first, len(self.knots) - self.degree - 1)))

    def features(self, x: np.ndarray) -> np.ndarray:
        """Rows x functions."""
        knots, last = self.knots, len(self.knots) - self.degree - 2
        outside = (x < knots[0]) | (x > knots[-1])
        x = _held(x, knots[0], knots[-1], self.beyond, "bs")
        made = []
        for place, (left, right) in enumerate(pairwise(knots)):
            above, below = x >= left, (x <= right if place == last else x < right)
            if self.beyond == "extend":
                above = above | (place == self.degree)
                below = below | (place == last)
            made.append((above & below).astype(float))
        for order in range(1, self.degree + 1):
            # B_i,d = (x - t_i)/(t_i+d - t_i) B_i,d-1 + (1 - the same of i + 1) B_i+1,d-1
            made = [
                self._rise(x, place, order) * made[place]
                + (1 - self._rise(x, place + 1, order)) * made[place + 1]
                for place in range(len(made) - 1)
            ]
        found = np.stack(made if self.include_intercept else made[1:], axis=1)
        found[outside & (self.beyond == "zero")] = 0.0
        found[np.isnan(x)] = np.nan
        return found

    def _rise(self, x: np.ndarray, place: int, order: int) -> Any:
        left, right = self.knots[place], self.knots[place + order]
        return (x - left) / (right - left) if right != left else 0.0


def _learn_b_splines(options: Options, x: np.ndarray) -> BSplines:
    degree = options.whole("degree", 3, 0)
    assert degree is not None
    intercept = options.choice("include_intercept", False, (True, False))
    beyond = options.choice("extrapolation", "raise", _BEYOND)
    low, high = _bounds(options, x)
    count, inner = options.whole("df", None, 1), options.numbers("knots")
    if count is not None and inner is not None:
        options.refuse("expected df or knots, not both")
    if count is not None:
        wanted = count - degree - intercept
        if wanted < 0:
            options.refuse(f"df: expected at least {degree + intercept}")
        within = x if beyond in ("raise", "extend") else x[(x >= low) & (x <= high)]
        if not len(within):
            options.refuse("no value lies within its bounds")
        inner = np.quantile(within, np.linspace(0, 1, wanted + 2))[1:-1].tolist()
    if inner and (inner[0] < low or inner[-1] > high):
        options.refuse("knots: expected them within the bounds")
    knots = [low] * (degree + 1) + (inner or []) + [high] * (degree + 1)
    made = BSplines(tuple(knots), degree, intercept, beyond)
    if not made.labels:
        options.refuse("there is no function left; take a higher degree, or df")
    return made


@dataclass(frozen=True, eq=False)
class CubicSplines:
    """Natural or cyclic cubic splines, each one at its own knot and zero at the others."""

    knots: np.ndarray
    cyclic: bool
    beyond: str
    kept: np.ndarray | None = None  # the directions that a constraint leaves

    @property
    def labels(self) -> tuple[str, ...]:
        """The functions, from one."""
        count = len(self.knots) - self.cyclic if self.kept is None else self.kept.shape[1]
        return tuple(str(place + 1) for place in range(count))

    def features(self, x: np.ndarray) -> np.ndarray:
        """Rows x functions."""
        low, high = self.knots[0], self.knots[-1]
        outside = (x < low) | (x > high)
        x = _held(x, low, high, self.beyond, "cc" if self.cyclic else "cr")
        heights = np.eye(len(self.knots))
        if self.cyclic:
            heights[-1] = heights[0]
            curve = CubicSpline(self.knots, heights[:, :-1], bc_type="periodic")
            inside = np.where(x > high, low + (x - high) % (high - low), x)
            found = curve(np.where(x < low, high - (low - x) % (high - low), inside))
        else:
            curve = CubicSpline(self.knots, heights, bc_type="natural")
            inside = np.clip(x, low, high)
            # A natural spline goes on in a straight line.
            found = curve(inside) + (x - inside)[:, None] * curve(inside, 1)
        if self.kept is not None:
            found = row_products(found, self.kept)
        found[outside & (self.beyond == "zero")] = 0.0
        return np.asarray(found)


def _learn_cubic(options: Options, x: np.ndarray, cyclic: bool) -> CubicSplines:
    low, high = _bounds(options, x)
    beyond = options.choice("extrapolation", "extend", _BEYOND)
    centred = options.choice("constraints", None, ("center",)) is not None
    count, inner = (
        options.whole("df", None, 1 if cyclic or centred else 2),
        options.numbers("knots"),
    )
    if (count is None) == (inner is None):
        options.refuse("expected df, or knots")
    if count is not None:
        within = np.unique(x[(x >= low) & (x <= high)])
        wanted = count - 2 + centred + cyclic
        if wanted < 0 or not len(within):
            options.refuse("df: expected more, and values within the bounds")
        places = np.linspace(0, 100, wanted + 2)[1:-1]
        inner = np.percentile(within, places).tolist() if wanted else []
    assert inner is not None
    knots = np.unique([low, high, *inner])
    least = 3 if cyclic else 2
    if (
        len(knots) != len(set(inner)) + 2
        or len(knots) < least
        or knots[0] < low
        or knots[-1] > high
    ):
        options.refuse("the knots fall together or lie outside of the bounds; take fewer")
    made = CubicSplines(knots, cyclic, beyond)
    if not centred:
        return made
    # The features are made to have mean zero: c'b = 0, c their means.
    means = made.features(x).mean(axis=0)
    rotated, _ = np.linalg.qr(means[:, None], mode="complete")
    return CubicSplines(knots, cyclic, beyond, rotated[:, 1:])


def _bounds(options: Options, x: np.ndarray) -> tuple[float, float]:
    low = float(options.number("lower_bound", x.min()))
    high = float(options.number("upper_bound", x.max()))
    if not low < high:
        options.refuse("expected values that differ, between bounds that do")
    return low, high


def _held(x: np.ndarray, low: float, high: float, beyond: str, name: str) -> np.ndarray:
    """Values as the choice for those outside of the bounds has them."""
    outside = (x < low) | (x > high)
    if beyond == "raise" and outside.any():
        raise AnalysisError(
            f"formula: {name}: some values lie outside of those it was fitted to; say what to do "
            "with them by extrapolation='clip', 'na', 'zero' or 'extend'"
        )
    if beyond == "clip":
        return np.clip(x, low, high)
    return np.where(outside, np.nan, x) if beyond == "na" else x
