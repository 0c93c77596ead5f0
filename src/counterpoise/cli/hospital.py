"""A hospital that does not exist: a table to show what Counterpoise does, and its schema.

The patients are drawn from a simple model of a year's admissions, with relations between columns
of every kind, dates, and values that are missing. The bounds in the schema are round numbers that
anybody would state without looking at these patients.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
from scipy.special import expit

from counterpoise.schema import Column, Schema

SCHEMA = Schema(
    [
        Column.integer("age", 0, 109),
        Column.categorical("sex", ["female", "male"]),
        Column.categorical("diagnosis", ["cancer", "heart", "injury", "lung", "other"]),
        Column.date("admitted", date(2024, 1, 1), date(2024, 12, 31)),
        Column.boolean("emergency"),
        Column.integer("stay", 0, 60),
        Column.continuous("creatinine", 20, 400, nullable=True),
        Column.ordinal("pain", ["none", "some", "much"], nullable=True),
        Column.boolean("readmitted"),
    ]
)


def patients(rows: int = 12_000, seed: int = 2024) -> pd.DataFrame:
    """Invented patients, the same for the same seed.

    >>> bool(patients(1000)["readmitted"].mean() < 0.3)
    True
    """
    generator = np.random.default_rng(seed)
    age = generator.normal(58, 19, rows).clip(18, 104).round()
    years = age - 58
    is_male = generator.random(rows) < 0.47
    scores = np.column_stack(
        [years / 22 - 0.2, years / 12 + 0.3 * is_male, -years / 15, years / 25, np.zeros(rows)]
    )
    names = np.array(["cancer", "heart", "injury", "lung", "other"])
    diagnosis = names[(scores + generator.gumbel(size=scores.shape)).argmax(axis=1)]
    is_acute = np.isin(diagnosis, ["heart", "injury"])
    emergency = generator.random(rows) < expit(-0.8 + 1.2 * is_acute + 0.012 * years)
    usual = pd.Series(diagnosis).map(
        {"cancer": 2.0, "heart": 1.5, "injury": 1.0, "lung": 1.6, "other": 0.8}
    )
    stay = np.exp(usual + 0.008 * years + 0.3 * emergency + generator.normal(0, 0.6, rows))
    creatinine = np.exp(4.25 + 0.12 * is_male + 0.006 * years + generator.normal(0, 0.25, rows))
    level = generator.normal(0.8, 1, rows) + 0.7 * (diagnosis == "injury")
    pain = np.array(["none", "some", "much"], dtype=object)[level.round().clip(0, 2).astype(int)]
    odds = -2.6 + 0.022 * years + 0.05 * stay + 0.6 * (diagnosis == "heart") + 0.4 * emergency
    # Blood is not taken of everybody, and least of the young; some are not asked about pain.
    creatinine[generator.random(rows) < expit(-2 - 0.02 * years)] = np.nan
    pain[generator.random(rows) < 0.08] = None
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "sex": np.where(is_male, "male", "female"),
            "diagnosis": diagnosis,
            "admitted": np.datetime64("2024-01-01") + generator.integers(0, 366, rows),
            "emergency": emergency,
            "stay": stay.clip(0, 60).round().astype(int),
            "creatinine": creatinine.clip(20, 400).round(1),
            "pain": pain,
            "readmitted": generator.random(rows) < expit(odds),
        }
    )
