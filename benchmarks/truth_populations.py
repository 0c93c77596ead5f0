"""Populations whose own answers are known, for `truth.py`: seven public tables and seven laws.

Of the public tables all rows are the population, of a law 400,000 that were drawn once. What is
stated of a column is what somebody may state who has not looked: generous bounds, code lists with
entries that nobody has. Rules are chosen on the half called `CHOOSE`; `CHECK` is looked at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import counterpoise as cp
from populations import population as known_population
from public_tables import load

POPULATION_OF_A_LAW, LAW_SEED = 400_000, 2**32
# Groups with less of the population than this are asked for no mean, and columns with more
# categories than that for no cells.
LEAST_GROUP, MOST_CATEGORIES = 0.01, 12
REGRESSIONS = 20
CHOOSE = ("adult", "dutch", "churn", "compas", "amounts", "heaped", "pair")
CHECK = ("credit", "law", "census", "california", "spending", "lists", "unrelated")


@dataclass(frozen=True)
class Population:
    """All rows of a population, what is stated of its columns, and its column of interest."""

    name: str
    rows: pd.DataFrame
    schema: cp.Schema
    target: str

    def draw(self, rows: int, seed: int) -> pd.DataFrame:
        """A sample with replacement."""
        generator = np.random.default_rng([seed, rows, 47])
        places = generator.integers(0, len(self.rows), rows)
        return self.rows.iloc[places].reset_index(drop=True)

    @property
    def numbers(self) -> list[str]:
        """Columns of numbers."""
        return [column.name for column in self.schema if column.is_numeric]

    @property
    def few(self) -> list[str]:
        """Columns of so few categories that all cells are asked."""
        return [
            column.name
            for column in self.schema
            if column.categories is not None and len(column.categories) <= MOST_CATEGORIES
        ]

    @property
    def groups(self) -> dict[str, list[Any]]:
        """The categories with enough of the population to ask for their means."""
        found = {}
        for name in [each.name for each in self.schema if each.categories is not None]:
            shares = self.rows[name].value_counts(normalize=True)
            found[name] = [label for label, share in shares.items() if share >= LEAST_GROUP]
        return found

    @property
    def regressions(self) -> list[tuple[str, str]]:
        """Kinds and formulas, drawn by a public seed: two to four terms, one in three with two
        of them interacting; a formula never has a column twice, nor one that is nearly constant.
        """
        generator = np.random.default_rng(list(self.name.encode()))
        usable = [*self.numbers, *(name for name in self.few if len(self.groups[name]) > 1)]
        truths = [name for name in self.few if self.schema[name].category_type == "boolean"]
        found: list[tuple[str, str]] = []
        while len(found) < REGRESSIONS:
            responses = truths if truths and len(found) % 2 else self.numbers or truths
            response = str(generator.choice(responses))
            left = [name for name in usable if name != response]
            terms = generator.permutation(left)[: generator.integers(2, 5)].tolist()
            joint = f" + {terms[0]}:{terms[1]}" if generator.random() < 1 / 3 else ""
            kind = "logistic" if response in truths else "linear"
            formula = f"{response} ~ {' + '.join(terms)}{joint}"
            if (kind, formula) not in found:
                found.append((kind, formula))
        return found


@lru_cache(maxsize=2)
def population(name: str, data: Path | None) -> Population:
    """A population by its name."""
    if name in LAWS:
        make, columns, target = LAWS[name]
        rows = make(POPULATION_OF_A_LAW, np.random.default_rng(LAW_SEED))
        return Population(name, rows, cp.Schema(columns), target)
    if data is None:
        raise ValueError(f"{name}: state the data directory")
    if name in ("adult", "dutch", "credit"):
        known = known_population(name, data)
        target = known.asked.logistic.partition("~")[0].strip()
        return Population(name, known.whole(), known.schema, target)
    if name in ("census", "california"):
        table, schema, _ = load(name, data)
        named = {each: each.replace("-", "_") for each in table.columns}
        target = {"census": "PINCP", "california": "MedHouseVal"}[name]
        return Population(name, table.rename(columns=named), schema, target)
    return _coded(name, data)


# Of tables that come as codes: which are numbers, between which bounds, and the yes or no.
CODED: dict[str, tuple[dict[str, tuple[int, int]], str]] = {
    "churn": ({"Tenure_Months": (0, 120), "Total_Charges": (0, 50_000)}, "Churn_Value"),
    "compas": (
        {
            "age": (0, 120),
            "priors_count": (0, 100),
            "juv_fel_count": (0, 50),
            "juv_misd_count": (0, 50),
            "juv_other_count": (0, 50),
        },
        "two_year_recid",
    ),
    "law": (
        {"lsat": (0, 200), "ugpa": (0, 200), "zfygpa": (0, 1000), "zgpa": (0, 1000)},
        "pass_bar",
    ),
}


def _coded(name: str, data: Path) -> Population:
    table = pd.read_csv(data / f"dpml_{name}.csv")
    table.columns = [str(column).replace(" ", "_") for column in table.columns]
    numbers, target = CODED[name]
    columns = []
    for column in table.columns:
        values = sorted(table[column].unique())
        if column in numbers:
            columns.append(cp.Column.integer(column, *numbers[column]))
        elif values == [0, 1]:
            table[column] = table[column] == 1
            columns.append(cp.Column.boolean(column))
        elif len(values) > 60:
            # As generous as somebody who knows only what sort of amount it is.
            columns.append(cp.Column.integer(column, 0, 10 * int(values[-1])))
        else:
            columns.append(cp.Column.categorical(column, [int(value) for value in values]))
    return Population(name, table, cp.Schema(columns), target)


def _like(generator: np.random.Generator, factor: np.ndarray, strength: float) -> np.ndarray:
    own = math.sqrt(1 - strength**2) * generator.normal(size=len(factor))
    return np.asarray(strength * factor + own)


def _amounts(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Households: grants that few have, skewed pay, bounds far off."""
    need = generator.normal(size=rows)
    old = _like(generator, need, 0.3)
    granted = _like(generator, need, 0.6) > 1.8
    return pd.DataFrame(
        {
            "age": np.clip(np.round(48 + 16 * old), 18, 99).astype(int),
            "grant": np.where(
                granted, np.clip(np.exp(8.6 + 0.9 * generator.normal(size=rows)), 1, 99_999), 0
            ).astype(int),
            "pay": np.clip(np.exp(7.8 - 0.3 * need + 0.7 * generator.normal(size=rows)), 0, 1e6),
            "bill": np.where(
                generator.random(rows) < 0.3,
                0.0,
                np.clip(np.exp(4 + 0.4 * need + 1.3 * generator.normal(size=rows)), 0, 50_000),
            ),
            "sort": np.array(["own", "rent", "other", "none"])[
                np.clip(np.round(_like(generator, need, 0.5) + 1), 0, 3).astype(int)
            ],
            "alone": _like(generator, old, 0.4) > 0.7,
            "helped": _like(generator, need, 0.5) > 1.0,
        }
    )


def _heaped(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Workers: hours on fives, pay on hundreds, years, days off."""
    skill = generator.normal(size=rows)
    hours = np.clip(38 + 9 * _like(generator, skill, 0.3), 1, 90)
    wage = np.exp(7.6 + 0.4 * _like(generator, skill, 0.7))
    round_hours, round_wage = generator.random(rows) < 0.7, generator.random(rows) < 0.6
    return pd.DataFrame(
        {
            "hours": np.where(round_hours, 5 * np.round(hours / 5), np.round(hours)).astype(int),
            "wage": np.where(round_wage, 100 * np.round(wage / 100), np.round(wage)).astype(int),
            "years": np.clip(np.round(generator.gamma(2, 4, rows)), 0, 50).astype(int),
            "off": generator.poisson(np.exp(1.2 - 0.3 * skill)),
            "trade": np.array(["shop", "office", "site", "care", "farm"])[
                np.clip(np.round(_like(generator, skill, 0.4) * 1.1 + 1.6), 0, 4).astype(int)
            ],
            "union": _like(generator, skill, -0.3) > 0.4,
            "night": _like(generator, skill, -0.2) > 1.0,
        }
    )


def _pair(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Eighteen columns, of which a group and an age nearly determine each other."""
    age = np.clip(np.round(generator.gamma(2.4, 16, rows)), 0, 99)
    group = np.digitize(age, [12, 18, 40, 65])
    stray = generator.random(rows) < 0.02
    group = np.where(stray, generator.integers(0, 5, rows), group)
    common = generator.normal(size=rows)
    found: dict[str, Any] = {
        "age": age.astype(int),
        "group": np.array(["child", "youth", "young", "middle", "old"])[group],
    }
    for place in range(8):
        strength = 0.1 + 0.06 * place
        levels = np.clip(np.round(1.2 * _like(generator, common, strength) + 2), 0, 4).astype(int)
        found[f"list{place}"] = np.array(list("abcde"))[levels]
    for place in range(4):
        found[f"flag{place}"] = _like(generator, common, 0.2 + 0.1 * place) > 0.3 * place
    for place in range(4):
        value = np.exp(3 + 0.5 * _like(generator, common, 0.3) + 0.01 * age * (place == 1))
        found[f"size{place}"] = np.clip(value, 0, 2000)
    return pd.DataFrame(found)


def _spending(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Patients: charges that are mostly zero and two that go together, stays with a long tail."""
    frail = generator.normal(size=rows)
    stay = np.clip(np.round(generator.pareto(2.2, rows) * 3 * np.exp(0.3 * frail)), 0, 3650)
    charged = _like(generator, frail, 0.5) > 1.4
    charge = np.where(charged, np.exp(7 + 0.5 * frail + generator.normal(size=rows)), 0.0)
    return pd.DataFrame(
        {
            "stay": stay.astype(int),
            "charge": np.clip(charge, 0, 500_000),
            "paid": np.clip(charge * np.clip(generator.beta(4, 1, rows), 0, 1), 0, 500_000),
            "balance": np.clip(200 * generator.standard_t(3, rows) + 80 * frail, -20_000, 20_000),
            "visits": generator.poisson(np.exp(0.4 + 0.5 * frail)).clip(0, 100),
            "ward": np.array(["medicine", "surgery", "heart", "children", "closed"])[
                np.clip(np.round(_like(generator, frail, 0.5) + 1.2), 0, 3).astype(int)
            ],
            "woman": generator.random(rows) < 0.52,
            "again": _like(generator, frail, 0.5) > 1.2,
        }
    )


def _lists(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Wide code lists, a mostly empty column, rare categories."""
    factor = generator.normal(size=rows)
    place = np.argsort(np.argsort(_like(generator, factor, 0.4))) / rows
    many = np.floor(120 * place**2).astype(int)
    rare = np.searchsorted([0.55, 0.85, 0.95, 0.98, 0.99, 0.995], generator.random(rows))
    filled = _like(generator, factor, 0.3) > 1.2
    code = np.floor(20 * generator.random(rows) ** 2.5).astype(int)
    return pd.DataFrame(
        {
            "code": [f"c{each:03d}" for each in many],
            "kind": [f"k{each}" for each in rare],
            "extra": np.where(filled, code, -1),
            "age": np.clip(np.round(45 + 17 * _like(generator, factor, 0.4)), 0, 110).astype(int),
            "score": np.clip(50 + 15 * _like(generator, factor, 0.6), 0, 100),
            "passed": _like(generator, factor, 0.6) > 0,
            "late": _like(generator, rare.astype(float) - 0.8, 0.5) > 1.0,
        }
    ).assign(extra=lambda made: made["extra"].map(lambda each: "none" if each < 0 else f"x{each}"))


def _unrelated(rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Ten columns that have nothing to do with one another: every slope is zero."""
    return pd.DataFrame(
        {
            "age": np.clip(np.round(generator.normal(50, 18, rows)), 0, 110).astype(int),
            "score": np.clip(generator.normal(50, 15, rows), 0, 100),
            "pay": np.clip(np.exp(generator.normal(7.5, 0.8, rows)), 0, 200_000),
            "visits": generator.poisson(2.0, rows).clip(0, 60),
            **{
                name: np.array(list("abcd"))[generator.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])]
                for name in ("area", "kind", "tone")
            },
            **{name: generator.random(rows) < share for name, share in (("x", 0.5), ("y", 0.2))},
            "z": generator.random(rows) < 0.05,
        }
    )


LAWS: dict[str, tuple[Any, list[cp.Column], str]] = {
    "amounts": (
        _amounts,
        [
            cp.Column.integer("age", 0, 120),
            cp.Column.integer("grant", 0, 99_999),
            cp.Column.continuous("pay", 0, 1_000_000),
            cp.Column.continuous("bill", 0, 50_000),
            cp.Column.categorical("sort", ["own", "rent", "other", "none"]),
            cp.Column.boolean("alone"),
            cp.Column.boolean("helped"),
        ],
        "helped",
    ),
    "heaped": (
        _heaped,
        [
            cp.Column.integer("hours", 0, 168),
            cp.Column.integer("wage", 0, 1_000_000),
            cp.Column.integer("years", 0, 80),
            cp.Column.integer("off", 0, 365),
            cp.Column.categorical("trade", ["shop", "office", "site", "care", "farm"]),
            cp.Column.boolean("union"),
            cp.Column.boolean("night"),
        ],
        "union",
    ),
    "pair": (
        _pair,
        [
            cp.Column.integer("age", 0, 120),
            cp.Column.categorical("group", ["child", "youth", "young", "middle", "old"]),
            *(cp.Column.categorical(f"list{place}", list("abcde")) for place in range(8)),
            *(cp.Column.boolean(f"flag{place}") for place in range(4)),
            *(cp.Column.continuous(f"size{place}", 0, 2000) for place in range(4)),
        ],
        "flag3",
    ),
    "spending": (
        _spending,
        [
            cp.Column.integer("stay", 0, 3650),
            cp.Column.continuous("charge", 0, 500_000),
            cp.Column.continuous("paid", 0, 500_000),
            cp.Column.continuous("balance", -20_000, 20_000),
            cp.Column.integer("visits", 0, 100),
            cp.Column.categorical("ward", ["medicine", "surgery", "heart", "children", "closed"]),
            cp.Column.boolean("woman"),
            cp.Column.boolean("again"),
        ],
        "again",
    ),
    "lists": (
        _lists,
        [
            cp.Column.categorical("code", [f"c{each:03d}" for each in range(140)]),
            cp.Column.categorical("kind", [f"k{each}" for each in range(8)]),
            cp.Column.categorical("extra", ["none", *(f"x{each}" for each in range(20))]),
            cp.Column.integer("age", 0, 120),
            cp.Column.continuous("score", 0, 100),
            cp.Column.boolean("passed"),
            cp.Column.boolean("late"),
        ],
        "passed",
    ),
    "unrelated": (
        _unrelated,
        [
            cp.Column.integer("age", 0, 120),
            cp.Column.continuous("score", 0, 100),
            cp.Column.continuous("pay", 0, 200_000),
            cp.Column.integer("visits", 0, 60),
            *(cp.Column.categorical(name, list("abcd")) for name in ("area", "kind", "tone")),
            *(cp.Column.boolean(name) for name in "xyz"),
        ],
        "y",
    ),
}
