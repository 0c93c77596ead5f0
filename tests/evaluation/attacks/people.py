"""People for the attacks, drawn from one law, and releases of them that copy, or do not."""

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.bundle.release import Release
from counterpoise.schema import Column, Schema

ROWS = 1200
SCHEMA = Schema(
    [
        Column.categorical("sex", ["F", "M"]),
        Column.categorical("town", [f"town {place}" for place in range(12)]),
        Column.ordinal("grade", ["low", "middle", "high"], nullable=True),
        Column.integer("age", 0, 99, bins=10),
        Column.continuous("income", 0.0, 1000.0, bins=8),
        Column.continuous("height", 100.0, 220.0, bins=8, nullable=True),
        Column.categorical("pin", list(range(50))),
        Column.boolean("ill"),
    ]
)


def people(rows, seed):
    """Ages go with incomes and illness; a pin goes with nothing."""
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 90, rows)
    height = generator.normal(165, 9, rows).round(1)
    return pd.DataFrame(
        {
            "sex": generator.choice(["F", "M"], rows, p=[0.6, 0.4]),
            "town": [f"town {place}" for place in generator.integers(0, 12, rows)],
            "grade": generator.choice(["low", "middle", "high", None], rows),
            "age": age,
            "income": np.clip(generator.gamma(4.0, 40.0, rows) + age, 0, 1000),
            "height": np.where(generator.random(rows) < 0.1, np.nan, height),
            "pin": generator.integers(0, 50, rows),
            "ill": generator.random(rows) < age / 120,
        }
    )


def released(table, weights=None, replicates=None, epsilon=1.0):
    """A release of exactly these rows, as if some method had made it."""
    budget = {
        "epsilon": epsilon,
        "delta": 1e-6,
        "neighbours": "add-remove",
        "max_rows_per_person": 1,
    }
    card = {"population": float(len(table)), "ledger": {"private": False, "budget": budget}}
    weights = np.ones(len(table)) if weights is None else weights / np.mean(weights)
    return Release(table.assign(weight=weights), SCHEMA, card, replicates)


def copied(table, seed=0):
    """A release that is the table itself, in another order."""
    return released(table.sample(frac=1, random_state=seed).reset_index(drop=True))


def private_release(table, epsilon=1.0, seed=3, **options):
    return cp.release(
        table, SCHEMA, epsilon, 1e-6, seed=seed, progress=False, replicates=10, **options
    )
