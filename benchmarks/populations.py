"""Populations of which samples are released: two known laws, and three public tables.

Borrowers and patients are the laws of `bias.py` and `coverage.py`. Of the public tables (a census
of the Netherlands, one of the United States, and card holders of a Taiwanese bank) all rows are
the population, and private tables are drawn from them with replacement; "small" ones have six of
their columns. What an analyst asks of each was written down before any release was made of it: one
logistic model, one linear one, correlations, means and shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bias
import counterpoise as cp
import coverage

ROWS_OF_A_LAW = 1_000_000
PUBLIC = ("dutch", "adult", "credit")
NAMES = ("borrowers", "patients", *PUBLIC, *(f"{name} small" for name in PUBLIC))


@dataclass(frozen=True)
class Asked:
    """What an analyst asks: two models, pairs of columns, numbers and categories."""

    logistic: str
    linear: str
    pairs: Sequence[tuple[str, str]]
    means: Sequence[str]
    shares: Sequence[str]

    def of(self, release: cp.Release, kinds: Sequence[str] = ()) -> Iterator[tuple[str, str, Any]]:
        """The kind, a name and the estimate of every answer, or of those of some kinds."""
        wanted = kinds or ("logistic", "linear", "correlation", "mean", "share")
        for kind, formula in (("logistic", self.logistic), ("linear", self.linear)):
            if kind in wanted:
                for term, found in release.glm(formula).items():
                    if term != "Intercept":
                        yield kind, f"{formula}: {term}", found
        if "correlation" in wanted:
            for one, other in self.pairs:
                yield "correlation", f"{one}, {other}", release.corr(one, other)
        if "mean" in wanted:
            for column in self.means:
                yield "mean", column, release.mean(column)
        if "share" in wanted:
            for column in self.shares:
                for label in release.schema[column].categories or ():
                    yield "share", f"{column}={label}", release.proportion(column, label)


@dataclass(frozen=True)
class Population:
    """A schema, a way to draw private tables, and what is asked."""

    name: str
    schema: cp.Schema
    draw: Callable[[int, np.random.Generator], pd.DataFrame]
    whole: Callable[[], pd.DataFrame]
    asked: Asked

    def truths(self, kinds: Sequence[str] = ()) -> dict[str, float]:
        """The answers of the whole population."""
        table = self.whole()
        known = cp.Release(table.assign(weight=1.0), self.schema, card={})
        return {name: float(found.value) for _, name, found in self.asked.of(known, kinds)}


@lru_cache(maxsize=4)
def population(name: str, directory: Path | None = None) -> Population:
    """A population by its name; public tables are read from a directory."""
    if name == "borrowers":
        pairs = (("age", "debt"), ("income", "owner"), ("late", "failed"))
        means, shares = ("age", "income", "late"), ("area", "owner", "failed")
        asked = Asked(bias.LOGISTIC, bias.LINEAR, pairs, means, shares)
        return _law(name, bias.SCHEMA, bias.borrowers, asked)
    if name == "patients":
        pairs = (("age", "stay"), ("stay", "man"), ("age", "ill"))
        asked = Asked(coverage.RISK, coverage.LENGTH, pairs, ("age", "stay"), ("ward", "ill"))
        return _law(name, coverage.SCHEMA, coverage.patients, asked)
    if directory is None:
        raise ValueError(f"{name}: state the data directory")
    base, _, small = name.partition(" ")
    table, schema, asked, few = {"dutch": _dutch, "adult": _adult, "credit": _credit}[base](
        Path(directory)
    )
    if small:
        schema = schema.select(few)
    table = table[list(schema.names)]

    def draw(rows: int, generator: np.random.Generator) -> pd.DataFrame:
        return table.iloc[generator.integers(0, len(table), rows)].reset_index(drop=True)

    return Population(name, schema, draw, lambda: table, asked)


def _law(
    name: str,
    schema: cp.Schema,
    draw: Callable[[int, np.random.Generator], pd.DataFrame],
    asked: Asked,
) -> Population:
    return Population(
        name, schema, draw, lambda: draw(ROWS_OF_A_LAW, np.random.default_rng(2**32)), asked
    )


Public = tuple[pd.DataFrame, cp.Schema, Asked, list[str]]


def _dutch(directory: Path) -> Public:
    table = pd.read_csv(directory / "dpml_dutch.csv")
    for column in ("sex", "occupation"):
        table[column] = table[column] == 1
    numbers = {"age": 11, "edu_level": 5, "household_size": 5}
    columns = [
        cp.Column.integer(name, 0, numbers[name])
        if name in numbers
        else cp.Column.boolean(name)
        if table[name].dtype == bool
        else cp.Column.categorical(name, [int(code) for code in sorted(table[name].unique())])
        for name in table
    ]
    asked = Asked(
        "occupation ~ age + sex + edu_level + household_size",
        "edu_level ~ age + sex + household_size",
        (("age", "edu_level"), ("edu_level", "occupation"), ("age", "household_size")),
        ("age", "edu_level", "household_size"),
        ("sex", "occupation", "marital_status"),
    )
    few = ["sex", "age", "household_size", "edu_level", "marital_status", "occupation"]
    return table, cp.Schema(columns), asked, few


def _adult(directory: Path) -> Public:
    table = pd.read_csv(directory / "adult.csv.gz", skipinitialspace=True).fillna("?")
    table.columns = [name.replace("-", "_") for name in table]
    table["male"], table["rich"] = table["sex"] == "Male", table["income"].str.startswith(">50K")
    table["married"] = table["marital_status"].str.startswith("Married-civ")
    numbers = {"age": 90, "education_num": 16, "hours_per_week": 99, "capital_gain": 100_000}
    others = ["workclass", "occupation", "relationship", "race", "capital_loss"]
    numbers["capital_loss"] = 5_000
    columns = [
        *(cp.Column.integer(name, 0, high) for name, high in numbers.items()),
        *(
            cp.Column.categorical(name, sorted(map(str, table[name].unique())))
            for name in others
            if name not in numbers
        ),
        *(cp.Column.boolean(name) for name in ("male", "married", "rich")),
    ]
    asked = Asked(
        "rich ~ age + education_num + hours_per_week + male + married",
        "hours_per_week ~ age + education_num + male + married",
        (("age", "married"), ("education_num", "rich"), ("hours_per_week", "male")),
        ("age", "education_num", "hours_per_week"),
        ("male", "married", "rich"),
    )
    few = ["age", "education_num", "hours_per_week", "male", "married", "rich"]
    return table, cp.Schema(columns), asked, few


def _credit(directory: Path) -> Public:
    table = pd.read_csv(directory / "credit_default.csv.gz")
    table = table.rename(columns={"default_payment_next_month": "failed"})
    table["failed"], table["woman"] = table["failed"] == 1, table["SEX"] == 2
    table["LIMIT_BAL"] = table["LIMIT_BAL"] / 100_000
    columns = [
        cp.Column.continuous("LIMIT_BAL", 0, 10),
        cp.Column.boolean("woman"),
        cp.Column.categorical("EDUCATION", list(range(7))),
        cp.Column.categorical("MARRIAGE", list(range(4))),
        cp.Column.integer("AGE", 18, 90),
        *(cp.Column.integer(name, -2, 8) for name in ("PAY_0", "PAY_2", "PAY_3")),
        cp.Column.integer("BILL_AMT1", -200_000, 1_000_000),
        *(cp.Column.integer(name, 0, 2_000_000) for name in ("PAY_AMT1", "PAY_AMT2")),
        cp.Column.boolean("failed"),
    ]
    asked = Asked(
        "failed ~ LIMIT_BAL + AGE + PAY_0 + woman",
        "LIMIT_BAL ~ AGE + PAY_0 + woman",
        (("LIMIT_BAL", "PAY_0"), ("PAY_0", "failed"), ("AGE", "LIMIT_BAL")),
        ("LIMIT_BAL", "AGE", "PAY_0"),
        ("woman", "MARRIAGE", "failed"),
    )
    few = ["LIMIT_BAL", "AGE", "PAY_0", "woman", "MARRIAGE", "failed"]
    return table, cp.Schema(columns), asked, few
