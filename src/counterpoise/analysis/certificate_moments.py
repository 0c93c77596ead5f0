"""How far the moments of the private table may be from those of a release: bounds from noise alone.

A linear model of pairs needs sums of products f_a f_b of two features, the label among them, over
the private rows. If h is a private table of counts and y = h + noise what was measured of it, then
for any function u of its cells <h, u> = <y, u> - <noise, u>. The bounds here are on

    D_ab = <h, f_a f_b> / N - E_s[f_a f_b],

with E_s the mean over the release and N a public guess of the number n of private rows: a factor
n / N that is common to all of a risk changes no minimiser, so n has to be known only roughly. Noise
on counts is discrete Gaussian, whose moment generating function is at most that of the continuous
one (Canonne, Kamath and Steinke 2020), or discrete Laplace, likewise; so every entry has Chernoff's
bound, at any size. Tables may have been chosen in the light of earlier answers: the chance of
failure is dealt out in advance over all sets of columns that there are, and over how often each was
measured, so that the choice cannot hurt. Where all pairs were counted at once there is a second
way: the noise on many entries is seldom large in all of them, and the norm of it is bounded as a
whole (Hsu, Kakade and Zhang 2012), by a bound that stays one when some of the pairs are left out.

Pairs that nothing measured keep what single columns allow: |Cov(f_a, f_b)| <= sd(f_a) sd(f_b), and
the range of the product. Sums that weights have measured are not used: rows are cut to a norm for
them, and nobody knows how many.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterpoise.analysis.certificate_coding import CodedFeatures


@dataclass(frozen=True, eq=False)
class MomentBounds:
    """Bounds on D for z = (1, features, label), all at once.

    `whole` has bounds on the norms of what noise adds beside that to all entries of features with
    the label, and to all entries of features of two columns. `is_measured` says which entries rest
    on measured tables that hold their columns; `rows` are bounds on n, `guess` is N.
    """

    low: np.ndarray
    high: np.ndarray
    is_measured: np.ndarray
    rows: tuple[float, float]
    guess: float
    whole: tuple[float, float] = (0.0, 0.0)

    @property
    def middle(self) -> np.ndarray:
        """The middle of each interval."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> np.ndarray:
        """Half of its length."""
        return (self.high - self.low) / 2

    def scaled(self, factor: float) -> MomentBounds:
        """What they would be like with so many times the noise; a guess, and no bound."""
        factors = np.where(self.is_measured, factor, 1.0)
        low, high = (self.guess + factor * (each - self.guess) for each in self.rows)
        return replace(
            self,
            low=factors * self.low,
            high=factors * self.high,
            rows=(low, high),
            whole=(factor * self.whole[0], factor * self.whole[1]),
        )

    @classmethod
    def exactly(cls, difference: np.ndarray, rows: float) -> MomentBounds:
        """Moments that are known."""
        measured = np.ones(difference.shape, dtype=bool)
        return cls(difference, difference, measured, (rows, rows), rows)


def bound_moments(
    coding: CodedFeatures,
    moments: np.ndarray,
    tables: Sequence[Any],
    *,
    law: str,
    failure: float,
    guess: float,
    rows: float | None = None,
    all_pairs: float | None = None,
    repeats: int | None = None,
) -> list[MomentBounds]:
    """Bounds that all hold together, but for a chance of `failure`.

    `moments` is E_s[z z'], `tables` have `columns`, `values` and `scale` as measured, `law` is
    "gaussian" or "laplace", and `rows` the number of private rows where it is public. `all_pairs`
    is the scale of the noise where all pairs of columns were counted at once, with Gaussian noise.
    `repeats` is how often a set may be there at most, where their order is not that of measuring.
    """
    chance = failure if all_pairs is None else failure / 2
    answers = list(_answers(coding, tables, law, chance, repeats))
    counted = [each for each in answers if each.place == (0, 0)]
    low, high = 1.0, math.inf
    if rows is not None:
        low = high = rows
    elif counted:
        low = max(1.0, *(each.value - each.width for each in counted))
        high = max(low, min(each.value + each.width for each in counted))
    guess = min(max(guess, low), high)
    found = _trivial(coding, moments, low / guess, high / guess)
    for each in answers:
        low_end, high_end = each.value - each.width, each.value + each.width
        mean = moments[each.place]
        found.narrow(each.place, low_end / guess - mean, high_end / guess - mean)
    _narrow_by_columns(coding, moments, found, low / guess, high / guess)
    bounds = [MomentBounds(found.low, found.high, found.is_measured, (low, high), guess)]
    if all_pairs is not None:
        bounds.append(_together(coding, moments, tables, bounds[0], all_pairs, chance))
    return bounds


def marginal(table: Any, columns: Sequence[str]) -> tuple[np.ndarray, float]:
    """The counts of some columns of a measured table, in their order, and the noise on each."""
    others = tuple(axis for axis, name in enumerate(table.columns) if name not in columns)
    kept = [name for name in table.columns if name in columns]
    values = table.values.sum(axis=others).transpose([kept.index(name) for name in columns])
    return values, table.scale * math.sqrt(table.values.size / values.size)


@dataclass(frozen=True, eq=False)
class _Function:
    """A product of two features as a function of the cells of none, one or two columns."""

    place: tuple[int, int]
    columns: tuple[str, ...]
    factors: tuple[np.ndarray, ...]  # one a column

    @property
    def values(self) -> np.ndarray:
        return np.multiply.outer(*self.factors) if len(self.factors) > 1 else self.factors[0]

    @property
    def square(self) -> float:
        """The squared norm."""
        return math.prod(float(factor @ factor) for factor in self.factors)


@dataclass(frozen=True)
class _Answer:
    """<y, u> of one table, with a bound on its noise."""

    place: tuple[int, int]
    value: float
    width: float


@dataclass(frozen=True, eq=False)
class _Intervals:
    low: np.ndarray
    high: np.ndarray
    is_measured: np.ndarray

    def narrow(
        self, place: tuple[int, int], low: float, high: float, measured: bool = True
    ) -> None:
        for a, b in {place, place[::-1]}:
            self.low[a, b] = max(self.low[a, b], low)
            # Bounds that hold but for a small chance may, by that chance, exclude each other.
            self.high[a, b] = max(min(self.high[a, b], high), self.low[a, b])
            self.is_measured[a, b] |= measured


def _answers(
    coding: CodedFeatures, tables: Sequence[Any], law: str, failure: float, repeats: int | None
) -> Iterator[_Answer]:
    """What each measured table says of every function of its columns."""
    by_columns: dict[tuple[str, ...], list[_Function]] = {}
    for function in _functions(coding):
        by_columns.setdefault(function.columns, []).append(function)
    for table, chance in _dealt(tables, len(coding.schema), failure, repeats):
        there = [names for names in by_columns if set(names) <= set(table.columns)]
        tail = math.log(2 * (1 + sum(len(by_columns[names]) for names in there)) / chance)
        every = _Function((0, 0), (), (np.ones(1),))
        width = _most(every, table.scale * math.sqrt(table.values.size), law, tail)
        yield _Answer((0, 0), float(table.values.sum()), width)
        for names in there:
            counts, scale = marginal(table, names)
            for function in by_columns[names]:
                value = float(np.sum(counts * function.values))
                yield _Answer(function.place, value, _most(function, scale, law, tail))


def _functions(coding: CodedFeatures) -> Iterator[_Function]:
    """Every entry of z z' above the diagonal or on it, but that of the intercept by itself."""
    for name, place in coding.places.items():
        values = coding.values[name]
        each = range(place.start, place.stop)
        for a in each:
            yield _Function((0, a), (name,), (values[:, a - place.start],))
        for a, b in itertools.combinations_with_replacement(each, 2):
            product = values[:, a - place.start] * values[:, b - place.start]
            yield _Function((a, b), (name,), (product,))
    for one, two in itertools.combinations(coding.places, 2):
        yield from _products(coding, one, two)


def _products(coding: CodedFeatures, one: str, two: str) -> Iterator[_Function]:
    """The products of the features of two columns."""
    first, second = coding.places[one], coding.places[two]
    for a, left in enumerate(coding.values[one].T, first.start):
        for b, right in enumerate(coding.values[two].T, second.start):
            yield _Function((a, b), (one, two), (left, right))


def _dealt(
    tables: Sequence[Any], columns: int, failure: float, repeats: int | None
) -> Iterator[tuple[Any, float]]:
    """Each table with its part of the chance of failure, which no order or choice can exceed."""
    seen: Counter[frozenset[str]] = Counter()
    for table in tables:
        key = frozenset(table.columns)
        seen[key] += 1
        # sum over sizes of 2^-size, over the sets of a size, over repetitions of 1 / (r (r + 1))
        often = seen[key] * (seen[key] + 1) if repeats is None else repeats
        yield table, failure * 2.0 ** -len(key) / math.comb(columns, len(key)) / often


def _most(function: _Function, scale: float, law: str, tail: float) -> float:
    """How large |<noise, u>| is but for a chance of 2 exp(-tail)."""
    norm = math.sqrt(function.square)
    if law == "gaussian":
        # P(<noise, u> > s |u| t) <= exp(-t^2 / 2)
        return scale * norm * math.sqrt(2 * tail)
    # b^2 <= deviation^2 / 2 + 1/4 for each of the cells; log E exp(t <noise, u>) is at most
    # sum -log(1 - (t b u_i)^2) <= -log(1 - (t b max u)^2) |u|^2 / max u^2, as -log(1 - x) / x rises
    largest = math.prod(float(np.abs(factor).max()) for factor in function.factors)
    if largest == 0:
        return 0.0
    tilts = np.linspace(0.01, 0.99, 99)
    heights = (tail - np.log1p(-(tilts**2)) * (norm / largest) ** 2) / tilts
    return math.sqrt(scale**2 / 2 + 0.25) * largest * float(heights.min())


def _together(
    coding: CodedFeatures,
    moments: np.ndarray,
    tables: Sequence[Any],
    alone: MomentBounds,
    scale: float,
    failure: float,
) -> MomentBounds:
    """Bounds with the norm of the noise as a whole, for all pairs counted once with one scale."""
    low, high = alone.low.copy(), alone.high.copy()
    for table in tables:
        names = tuple(name for name in coding.places if name in table.columns)
        if len(table.columns) != 2 or len(names) != 2:
            continue
        counts, _ = marginal(table, names)
        for function in _products(coding, *names):
            value = float(np.sum(counts * function.values)) / alone.guess
            for a, b in (function.place, function.place[::-1]):
                low[a, b] = high[a, b] = value - moments[a, b]
    # Of all pairs there are, whether or not a model has kept them: to leave some out is shorter.
    with_label = [(name, coding.target) for name in coding.columns]
    others = list(itertools.combinations(coding.columns, 2))
    tail = math.log(2 / failure)
    # An entry of two features is in the matrix twice.
    norms = _norm(coding, with_label, tail), math.sqrt(2) * _norm(coding, others, tail)
    whole = scale / alone.guess * norms[0], scale / alone.guess * norms[1]
    return replace(alone, low=low, high=high, whole=whole)


def _norm(coding: CodedFeatures, pairs: Sequence[tuple[str, str]], tail: float) -> float:
    """|A noise| for unit noise, but for a chance of exp(-tail): tables are independent blocks.

    |A noise|^2 <= tr(C) + 2 sqrt(tr(C^2) t) + 2 |C| t with C = A A'.
    """
    grams = {name: values.T @ values for name, values in coding.values.items()}
    spectra = {name: np.linalg.eigvalsh(gram) for name, gram in grams.items()}
    each = [np.outer(spectra[one], spectra[two]).ravel() for one, two in pairs]
    spectrum = np.maximum(np.concatenate([np.zeros(1), *each]), 0.0)
    squared = spectrum.sum() + 2 * math.sqrt(float(spectrum @ spectrum) * tail)
    return math.sqrt(float(squared + 2 * spectrum.max() * tail))


def _trivial(coding: CodedFeatures, moments: np.ndarray, least: float, most: float) -> _Intervals:
    """What the ranges of the features allow, for a number of rows n / N within its bounds."""
    low, high = np.ones(len(moments)), np.ones(len(moments))
    for name, place in coding.places.items():
        low[place], high[place] = coding.values[name].min(axis=0), coding.values[name].max(axis=0)
    ends = np.stack([np.outer(a, b) for a in (low, high) for b in (low, high)])
    lowest, highest = ends.min(axis=0), ends.max(axis=0)
    np.fill_diagonal(lowest, np.where(low * high <= 0, 0.0, np.minimum(low**2, high**2)))
    for name, place in coding.places.items():
        # Values of two codes that are -1 and 1 have a square of one.
        squares = np.square(coding.values[name])
        lowest[place, place][np.diag_indices(squares.shape[1])] = squares.min(axis=0)
    lowest, highest = _times(lowest, highest, least, most)
    known = np.zeros(moments.shape, dtype=bool)
    known[0, 0] = True
    return _Intervals(lowest - moments, highest - moments, known)


def _narrow_by_columns(
    coding: CodedFeatures, moments: np.ndarray, found: _Intervals, least: float, most: float
) -> None:
    """What the means and variances of single columns allow of their products."""
    if math.isinf(most):
        return
    # Means over the private rows themselves
    low, high = _times(moments[0] + found.low[0], moments[0] + found.high[0], 1 / most, 1 / least)
    squares = (np.diag(moments) + np.diag(found.high)) / least
    least_square = np.where(low * high <= 0, 0.0, np.minimum(low**2, high**2))
    deviation = np.sqrt(np.maximum(squares - least_square, 0.0))
    for one, two in itertools.combinations(coding.places.values(), 2):
        for a, b in itertools.product(*(range(p.start, p.stop) for p in (one, two))):
            products = [x * y for x in (low[a], high[a]) for y in (low[b], high[b])]
            spread = float(deviation[a] * deviation[b])
            ends = np.array([min(products) - spread]), np.array([max(products) + spread])
            lowest, highest = _times(*ends, least, most)
            mean = moments[a, b]
            found.narrow((a, b), lowest[0] - mean, highest[0] - mean, measured=False)


def _times(
    low: np.ndarray, high: np.ndarray, least: float, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals times a factor above zero that lies within an interval."""
    with np.errstate(invalid="ignore"):
        return (
            np.where(low < 0, low * most, low * least),
            np.where(high > 0, high * most, high * least),
        )
