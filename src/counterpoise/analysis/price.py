"""The price of privacy: how many times wider a release's intervals are than the private table's.

The replicates give the variance V of an estimate with all that is random in it. A table of n rows
that anybody may look at would give, to first order,

    mean: s^2 / n,  share: p (1 - p) / n,  mean in a group of the share p: s^2 / (p n),
    correlation: (1 - r^2)^2 / n,

and the price is the root of V over that. It is worked out from the release alone: n is its noisy
number of private rows. The price of a kind of question is the median over its questions, of the
whole the geometric mean over kinds.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.columns import codes, has_numbers, numbers
from counterpoise.analysis.replication import FULL, Design, standard_errors
from counterpoise.bundle.card import PRICE

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# So many questions of a kind, and rows of a release whose rows stay in their file, tell as much as
# all of them: a cost, of less than half a second for 50,000 rows.
MOST_QUESTIONS, MOST_ROWS = 25, 200_000
# Categories with fewer private rows than this are not asked for a mean; a round number.
LEAST_ROWS = 50
# From these prices on intervals are called wide, and worth little; round numbers, not studied.
WIDE, WORTH_LITTLE = 2.0, 4.0
WAY_OUT = "a larger epsilon, more rows, fewer columns or questions stated in advance narrow them"
KINDS = {"columns": "means and shares", "groups": "means of groups", "relations": "correlations"}


def price_of_privacy(release: Release) -> dict[str, Any] | None:
    """The price by kind of question and of the whole, as the card has it; None where unknown.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "weight": 1.0})
    >>> replicates = np.array([[1.9, 0.1], [1.0, 1.0], [1.0, 1.0], [0.1, 1.9]])
    >>> schema = cp.Schema([cp.Column.continuous("x", 0, 9)])
    >>> price_of_privacy(cp.Release(table, schema, {"population": 4.0}, replicates))
    {'columns': 1.21, 'overall': 1.21, 'level': 'fine'}
    """
    population = release.card.get("population")
    if not release.replicate_count or not population:
        return None
    if release.stored is not None and release.stored.is_large:
        release = release.part(MOST_ROWS)
    design = Design.of(release.changed(accepted=True))
    found = {name: _median(values) for name, values in _prices(release, design, population).items()}
    known = {name: price for name, price in found.items() if price is not None}
    if not known:
        return None
    overall = round(float(np.exp(np.mean(np.log(list(known.values()))))), 2)
    level = "fine" if overall < WIDE else "wide" if overall < WORTH_LITTLE else "worth little"
    rounded = {name: round(price, 2) for name, price in known.items()}
    return rounded | {"overall": overall, "level": level}


def with_price(release: Release) -> Release:
    """The release with its price on the card."""
    return release.changed(card=release.card | {PRICE: price_of_privacy(release)})


def said(card: Mapping[str, Any]) -> str:
    """The price that a card states, in a sentence; empty where it states none."""
    price = card.get(PRICE)
    if not isinstance(price, dict):
        return ""
    parts = [f"{KINDS[name]} {price[name]:.2g}" for name in KINDS if name in price]
    times = f"about {price['overall']:.2g} times as wide as those of the private table"
    found = f"{price['level']}, {times} ({', '.join(parts)})"
    return found if price["level"] == "fine" else f"{found}; {WAY_OUT}"


def _prices(release: Release, design: Design, n: float) -> dict[str, list[float]]:
    names = [column.name for column in release.schema.settled if column.kind != "identifier"]
    numeric = [name for name in names if has_numbers(release.schema[name])]
    shares = {name: _shares(release, design, name) for name in names}
    found: dict[str, list[float]] = {name: [] for name in KINDS}
    for number in _some(numeric):
        found["columns"].append(_of_mean(design, *_values(release, number), n))
    listed = [(name, code) for name in names for code in shares[name]]
    for name, code in _some(listed):
        own = codes(release, name).codes
        found["columns"].append(_of_mean(design, (own == code).astype(float), own >= 0, n))
    grouped = [
        (number, name, code)
        for name in names
        for code, share in shares[name].items()
        for number in numeric
        if share * n >= LEAST_ROWS and number != name
    ]
    for number, name, code in _some(grouped):
        x, present = _values(release, number)
        found["groups"].append(
            _of_mean(design, x, present & (codes(release, name).codes == code), n)
        )
    for pair in _some(list(itertools.combinations(numeric, 2))):
        one, other = (_values(release, name) for name in pair)
        found["relations"].append(_of_correlation(design, *one, *other, n))
    return found


def _some(questions: list[Any]) -> list[Any]:
    """At most so many of them, evenly."""
    return questions[:: max(1, -(-len(questions) // MOST_QUESTIONS))]


def _shares(release: Release, design: Design, name: str) -> dict[int, float]:
    """The share of each category of a column; of a number none."""
    if release.schema.settled[name].categories is None:
        return {}
    own = codes(release, name).codes
    weights = np.bincount(own[own >= 0], design.weights[own >= 0])
    return {int(code): float(weights[code] / weights.sum()) for code in np.flatnonzero(weights)}


def _values(release: Release, name: str) -> tuple[np.ndarray, np.ndarray]:
    found = numbers(release, name)
    x = np.where(found.present, found.values, 0.0)
    deviation = float(x.std())
    # On a scale of its own, so that squares of any amounts can be added up.
    return (x - x.mean()) / deviation if deviation > 0 else 0.0 * x, found.present


def _of_mean(design: Design, x: np.ndarray, present: np.ndarray, n: float) -> float:
    sums = design.sums(np.stack([present * x, present * x * x, present.astype(float)]))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, square = sums[:2] / sums[2]
        share = sums[2, FULL] / design.weights.sum()
        own = np.sqrt((square[FULL] - mean[FULL] ** 2) / (share * n))
        return float(standard_errors(design.whole_way(mean)) / own)


def _of_correlation(
    design: Design, x: np.ndarray, one: np.ndarray, y: np.ndarray, other: np.ndarray, n: float
) -> float:
    both = (one & other).astype(float)
    sums = design.sums(np.stack([both, both * x, both * y, both * x * y, both * x**2, both * y**2]))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y, xy, xx, yy = sums[1:] / sums[0]
        r = (xy - mean_x * mean_y) / np.sqrt((xx - mean_x**2) * (yy - mean_y**2))
        own = (1 - r[FULL] ** 2) / np.sqrt(n)
        return float(standard_errors(design.whole_way(r)) / own)


def _median(values: list[float]) -> float | None:
    finite = [value for value in values if np.isfinite(value) and value > 0]
    return float(np.median(finite)) if finite else None
