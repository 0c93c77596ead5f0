"""A small release, private rows and a hold-out, and their evaluation, which tests share."""

from functools import cache

import numpy as np
import pandas as pd

import counterpoise as cp

SCHEMA = cp.Schema(
    [
        cp.Column.integer("age", 0, 99),
        cp.Column.categorical("ward", ["surgery", "medicine", "closed"]),
        cp.Column.continuous("dose", 0, 10, nullable=True),
        cp.Column.date("seen", "2020-01-01", "2020-12-31"),
        cp.Column.boolean("ill"),
    ]
)


def people(rows, seed):
    generator = np.random.default_rng(seed)
    age = generator.integers(20, 80, rows)
    dose = np.clip(age / 20 + generator.normal(2, 1, rows), 0, 10)
    return pd.DataFrame(
        {
            "age": age,
            "ward": generator.choice(["surgery", "medicine"], rows, p=[0.7, 0.3]),
            "dose": np.where(generator.random(rows) < 0.2, np.nan, dose),
            "seen": np.datetime64("2020-01-01") + generator.integers(0, 365, rows),
            "ill": generator.random(rows) < age / 100,
        }
    )


@cache
def made():
    options = {"synthesizer": "independent", "rows": 300, "replicates": 10}
    release = cp.release(people(300, 0), SCHEMA, 1.0, 1e-6, seed=1, **options)
    # Rows that were chosen by weight have nearly equal ones; tests need such as make a difference.
    generator = np.random.default_rng(3)
    weights = np.exp(release.table["age"].to_numpy(dtype=float) / 40)
    redrawn = weights[:, None] * generator.gamma(20.0, size=(len(weights), 10))
    return release.reweighted(weights, redrawn)


@cache
def evaluated():
    return cp.evaluate(
        made(), people(300, 0), people(120, 1), attacks=False, workers=1, progress=False
    )
