"""The tables, schemas and budgets on which methods are tried: generated, and hard where it counts.

Private rows are drawn here, so that nothing of anybody's is ever needed to try a method.
"""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd

from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget

USUAL = Budget(1.0, 1e-6)

BUDGETS = (
    USUAL,
    Budget(1.0),
    Budget(0.05, 1e-9, "replace"),
    Budget(1.0, 1e-6, max_rows_per_person=3),
)

SCHEMA = Schema(
    [
        Column.categorical("sex", ["F", "M"]),
        Column.ordinal("grade", ["low", "middle", "high"], nullable=True),
        Column.integer("age", 0, 99),
        Column.continuous("income", 0.0, 1000.0, bins=8),
    ]
)

HARD_SCHEMAS = {
    "one boolean": Schema([Column.boolean("a")]),
    "one value": Schema([Column.categorical("a", ["only"])]),
    "every kind": Schema(
        [
            Column.categorical("a", ["x", "y", "z"], other="z", nullable=True),
            Column.ordinal("b", [1, 2, 3]),
            Column.integer("c", -10, 1000, nullable=True),
            Column.continuous("d", -1.0, 1.0, bins=(-1.0, 0.0, 0.1, 1.0)),
            Column.date("e", datetime.date(2000, 1, 1), datetime.date(2020, 1, 1), nullable=True),
            Column.datetime("f", datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 2)),
        ]
    ),
    "many categories": Schema(
        [Column.categorical("a", [f"v{i}" for i in range(200)]), Column.boolean("b")]
    ),
}


def usual_rows(rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows of `SCHEMA`: young and old, rich and poor, some without a grade."""
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": generator.choice(["F", "M"], rows, p=[0.6, 0.4]),
            "grade": generator.choice(np.array(["low", "middle", "high", None]), rows),
            "age": generator.integers(18, 90, rows),
            "income": generator.gamma(4.0, 60.0, rows),
        }
    )


def rows_of(schema: Schema, rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows of any complete schema, every code as likely as another."""
    generator = np.random.default_rng(seed)
    codes = np.column_stack([generator.integers(0, size, rows) for size in schema.sizes])
    return schema.decode(codes, generator)
