"""A release whose replicates go a part of the way, for the code that reads it elsewhere."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.weights import moment_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A release with every kind of column that the lines name, and nulls in `dose`."""
    generator = np.random.default_rng(7)
    age = generator.integers(20, 90, 3000)
    dose = np.clip(generator.normal(age / 20, 1), 0, 10)
    private = pd.DataFrame(
        {
            "age": age,
            "ward": np.where(age > generator.integers(40, 80, 3000), "medicine", "surgery"),
            "ill": generator.random(3000) < age / 150,
            "dose": np.where(generator.random(3000) < 0.1, np.nan, dose),
            "smoker": generator.random(3000) < 0.3,
        }
    )
    schema = cp.Schema(
        [
            cp.Column.integer("age", 0, 109, bins=11),
            cp.Column.categorical("ward", ["medicine", "surgery"]),
            cp.Column.boolean("ill"),
            cp.Column.continuous("dose", 0, 10, bins=5, nullable=True),
            cp.Column.boolean("smoker"),
        ]
    )
    with pytest.MonkeyPatch.context() as patch:
        # As if rows could follow next to nothing of what is in doubt.
        patch.setattr(moment_model, "MOST_MOVED", 1e-3)
        made = cp.release(private, schema, 3.0, 1e-6, rows=800, replicates=30, seed=1)
    assert made.replicate_part < 0.8
    folder = made.save(tmp_path_factory.mktemp("r") / "patients-release", csv=True)
    # A CSV file of a release has the digits of single precision; here they are all of them.
    weights = duckdb.sql(f"SELECT COLUMNS('^weight') FROM '{folder / 'synthetic.parquet'}'").df()
    rows = pd.read_csv(folder / "synthetic.csv", dtype=str).assign(**weights.astype(float))
    rows.to_csv(folder.parent / "exact.csv", index=False)
    return folder
