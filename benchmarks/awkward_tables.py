"""Tables as agencies have them, drawn from a known law: skewed, heaped, mostly zero, bimodal.

Every column belongs to a family, and many hang together through one common factor. Somebody who has
not looked states bounds and a threshold of interest for each; bounds can be made 10 or 100 times
too wide. What is true of the law is computed from one very large draw, clipped at the bounds as a
release clips it, or in closed form where no draw is large enough.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

import counterpoise as cp
from release_errors import MEAN, Questions, truths

FIRST_DAY, LAST_DAY = datetime.date(2010, 1, 1), datetime.date(2015, 12, 31)
# Days that pandas can hold in nanoseconds, with room.
EARLIEST, LATEST = datetime.date(1700, 1, 1), datetime.date(2250, 1, 1)
JOBS = 3000
CATEGORIES: dict[str, dict[Any, float]] = {
    "region": {"north": 0.4, "east": 0.3, "south": 0.2, "west": 0.1},
    "woman": {False: 0.4, True: 0.6},
    "status": {"a": 0.5, "b": 0.25, "c": 0.15, "d": 0.07, "e": 0.02, "f": 0.01},
}
LARGE_DRAW, LARGE_SEED = 2_000_000, 2**32


@dataclass(frozen=True)
class Family:
    """A column: what sort it is, what is stated of it, and the share from which on is asked."""

    family: str
    kind: str
    low: Any = None
    high: Any = None
    threshold: Any = None
    # Zero and the lower bound mean something, so that only the upper bound is too wide.
    from_zero: bool = True


FAMILIES = {
    "pay": Family("lognormal", "continuous", 0.0, 500_000.0, 30_000.0),
    "fee": Family("Pareto 1.8", "continuous", 0.0, 200_000.0, 3000.0),
    "benefit": Family("mostly zero", "continuous", 0.0, 50_000.0, 1.0),
    "hours": Family("heaped", "integer", 0, 168, 40),
    "score": Family("bimodal", "continuous", 0.0, 100.0, 50.0),
    "region": Family("few categories", "categorical"),
    "claim": Family("Pareto 3", "continuous", 0.0, 100_000.0, 1500.0),
    "height": Family("normal", "continuous", 0.0, 250.0, 180.0),
    "weeks": Family("two spikes", "integer", 0, 52, 50),
    "born": Family("years", "integer", 1920, 2020, 1980, from_zero=False),
    "price": Family("money", "continuous", 0.0, 100_000.0, 5000.0),
    "delay": Family("signed", "integer", -60, 1440, 15, from_zero=False),
    "visits": Family("counts", "integer", 0, 200, 3),
    "job": Family("many categories", "categorical"),
    "woman": Family("few categories", "categorical"),
    "status": Family("few categories", "categorical"),
    "seen": Family(
        "dates", "date", FIRST_DAY, LAST_DAY, datetime.date(2012, 7, 1), from_zero=False
    ),
    "since": Family(
        "dates", "date", FIRST_DAY, LAST_DAY, datetime.date(2015, 1, 1), from_zero=False
    ),
}
# One of each of the main families; all; and all but the one of many categories, to see what it does
# to the others.
COLUMNS = {
    6: ("pay", "fee", "benefit", "hours", "score", "region"),
    17: tuple(name for name in FAMILIES if name != "job"),
    18: tuple(FAMILIES),
}
PARETO = {"fee": (1000.0, 1.8), "claim": (500.0, 3.0)}


def draw(rows: int, seed: int, columns: int = 18) -> pd.DataFrame:
    """A table of `rows` people; with fewer columns it is a part of the same table."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=rows)

    def like(strength: float) -> np.ndarray:
        own = math.sqrt(1 - strength**2) * generator.normal(size=rows)
        return strength * common + own

    def place(strength: float) -> np.ndarray:
        return special.ndtr(like(strength))

    def chosen(name: str, strength: float) -> np.ndarray:
        law = CATEGORIES[name]
        return np.array(list(law))[_cut(place(strength), np.array(list(law.values())))]

    hours = special.gammaincinv(3, place(0.3)) * 9.5
    works = place(0.4)
    weeks = np.where(works < 0.3, 0, np.where(works < 0.85, 52, generator.integers(0, 53, rows)))
    low, high = generator.normal(20, 2, rows), generator.normal(80, 3, rows)
    price = np.round(np.exp(8 + 0.9 * like(0.5)), 2)
    heaped = (generator.random(rows) < 0.4) & (price > 500)
    recent = 600 * -np.log(np.clip(place(0.2), 1e-12, 1))
    zipf = 1 / np.arange(1, JOBS + 1)
    table = {
        "pay": np.exp(9.5 + like(0.7)),
        "fee": _pareto("fee", generator.random(rows)),
        "benefit": np.where(like(0.5) < 0.5, 0.0, np.exp(6 + 1.2 * like(0.3))),
        "hours": (np.round(hours / 5) * 5).astype(int),
        "score": np.where(place(0.3) < 0.4, low, high),
        "region": chosen("region", 0.4),
        "claim": _pareto("claim", np.clip(1 - place(0.4), 1e-12, 1)),
        "height": 170 + 10 * common,
        "weeks": weeks,
        "born": np.clip(np.round(1975 + 22 * like(-0.4)), 1920, 2020).astype(int),
        "price": np.where(heaped, np.round(price, -3), price),
        "delay": np.round(np.exp(2.2 + 1.1 * like(0.3)) - 13).astype(int),
        "visits": generator.poisson(special.gammaincinv(0.7, place(-0.3)) * 2),
        "job": np.array(job_names())[_cut(place(0.2), zipf / zipf.sum())],
        "woman": chosen("woman", -0.3),
        "status": chosen("status", 0.2),
        "seen": _days(750 + 250 * np.clip(like(0.6), -3, 3)),
        "since": _days(np.clip(2190 - recent, 0, 2190)),
    }
    return pd.DataFrame({name: table[name] for name in COLUMNS[columns]})


def schema_of(columns: int, wide: int) -> cp.Schema:
    """What somebody states of these columns: bounds `wide` times too wide, no edges."""
    return cp.Schema([_column(name, FAMILIES[name], wide) for name in COLUMNS[columns]])


def job_names() -> list[str]:
    return [f"job {number}" for number in range(1, JOBS + 1)]


def questions(columns: int) -> Questions:
    """What is asked: shares from thresholds on; of all of few, and of some of many, categories."""
    families = {name: FAMILIES[name] for name in COLUMNS[columns]}
    thresholds = {
        name: family.threshold for name, family in families.items() if family.threshold is not None
    }
    categories = {name: list(CATEGORIES[name]) for name in families if name in CATEGORIES}
    if "job" in families:
        categories["job"] = ["job 1", "job 10", "job 100"]
    located = [name for name, family in families.items() if not family.from_zero]
    return Questions(thresholds, categories, located)


def law(wide: int) -> pd.DataFrame:
    """What is true of the law, cut at bounds so wide, and the scale of its errors."""
    schema = schema_of(18, wide)
    found = truths(draw(LARGE_DRAW, LARGE_SEED), schema, questions(18))
    for name in PARETO:
        here = (found["column"] == name) & (found["statistic"] == MEAN)
        found.loc[here, ["truth", "scale"]] = exact_mean(name, schema)
    return found


def exact_mean(name: str, schema: cp.Schema) -> float:
    """The mean of a Pareto law cut at the upper bound, of which no draw is large enough.

    E min(X, h) = s + int_s^h (s/x)^a dx
    """
    scale, index = PARETO[name]
    high = schema[name].high
    return scale + scale**index * (high ** (1 - index) - scale ** (1 - index)) / (1 - index)


def _column(name: str, family: Family, wide: int) -> cp.Column:
    if name == "job":
        return cp.Column.categorical(name, job_names())
    if family.kind == "categorical":
        return cp.Column.categorical(name, list(CATEGORIES[name]))
    low, high = family.low, family.high
    if family.from_zero:
        high = high * wide
    else:
        spare = (high - low) * (wide - 1) / 2
        if family.kind == "date":
            low, high = max(low - spare, EARLIEST), min(high + spare, LATEST)
        else:
            low, high = math.floor(low - spare), math.ceil(high + spare)
    make = {"integer": cp.Column.integer, "date": cp.Column.date}
    return make.get(family.kind, cp.Column.continuous)(name, low, high)


def _pareto(name: str, uniform: np.ndarray) -> np.ndarray:
    scale, index = PARETO[name]
    return scale * uniform ** (-1 / index)


def _cut(places: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return np.minimum(np.searchsorted(np.cumsum(shares), places, side="right"), len(shares) - 1)


def _days(numbers: np.ndarray) -> pd.DatetimeIndex:
    return pd.Timestamp(FIRST_DAY) + pd.to_timedelta(np.round(numbers), "D")
