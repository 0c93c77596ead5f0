"""Releases made by hand, with known answers: integer weights stand for repeated rows."""

from datetime import date, datetime

import numpy as np
import pandas as pd

import counterpoise as cp

SCHEMA = cp.Schema(
    [
        cp.Column.categorical("ward", ["surgery", "medicine", "closed"]),
        cp.Column.boolean("ill"),
        cp.Column.ordinal("pain", ["none", "some", "much"], nullable=True),
        cp.Column.integer("age", 0, 99, bins=10),
        cp.Column.integer("children", 0, 5),
        cp.Column.continuous("dose", 0.0, 10.0, bins=5, nullable=True),
        cp.Column.date("seen", date(2020, 1, 1), date(2022, 12, 31)),
        cp.Column.datetime("left", datetime(2020, 1, 1), datetime(2023, 1, 1)),
    ]
)

EVERYTHING = {"counts": [list(SCHEMA.names)], "cells": [], "products": []}


def make_table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Every kind of column; nobody is in the closed ward, and some values are null."""
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 100, rows)
    days = generator.integers(0, 1000, rows)
    seen = np.datetime64("2020-01-01") + days.astype("timedelta64[D]")
    minutes = generator.integers(0, 1440, rows).astype("timedelta64[m]")
    dose = np.clip(age / 20 + generator.normal(2, 1, rows), 0, 10)
    table = pd.DataFrame(
        {
            "ward": np.where(generator.random(rows) < 0.4, "surgery", "medicine"),
            "ill": generator.random(rows) < 0.2 + 0.005 * age,
            "pain": generator.choice(["none", "some", "much", None], rows),
            "age": age,
            "children": generator.integers(0, 4, rows),
            "dose": np.where(generator.random(rows) < 0.1, np.nan, dose),
            "seen": seen.astype("datetime64[s]"),
            "left": seen.astype("datetime64[us]") + minutes,
        }
    )
    return SCHEMA.restore(table)


def make_release(
    rows: int = 300, seed: int = 0, replicates: int = 12, **card: object
) -> cp.Release:
    """Weights of 0, 1, 2 and 3, scaled to average to one, and positive random replicates."""
    generator = np.random.default_rng(seed + 1)
    whole = generator.integers(0, 4, rows)
    weights = whole / whole.mean()
    redrawn = (weights + 0.1)[:, None] * generator.gamma(4.0, size=(rows, replicates))
    return cp.Release(
        make_table(rows, seed).assign(weight=weights),
        SCHEMA,
        {"rows": rows, "measured": EVERYTHING, **card},
        replicates=redrawn / redrawn.mean(axis=0) if replicates else None,
    )


def repeated(release: cp.Release) -> pd.DataFrame:
    """The rows as often as their weight says: what the weighted answers must agree with."""
    smallest = release.weights[release.weights > 0].min()
    times = np.rint(release.weights / smallest).astype(int)
    return release.table.loc[release.table.index.repeat(times)].drop(columns="weight")


def brute_force(release: cp.Release, statistic) -> float:
    """sqrt((1/R) sum_r (theta_r - theta)^2), one replicate at a time."""
    full = statistic(release.table, release.weights)
    squares = [
        (statistic(release.table, release.replicates[:, place]) - full) ** 2
        for place in range(release.replicates.shape[1])
    ]
    return float(np.sqrt(np.mean(squares)))
