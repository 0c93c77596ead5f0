"""Tables and schemas that many tests share; all of them are generated."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, settings

from counterpoise.schema import Column, Schema

# Timings are not tests: a busy machine must not fail one. Shrinking a failure can take minutes;
# `--hypothesis-profile=default` brings it back.
settings.register_profile(
    "counterpoise", deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.load_profile("counterpoise")


@pytest.fixture
def schema() -> Schema:
    return make_schema()


def make_schema() -> Schema:
    return Schema(
        [
            Column.categorical("sex", ["F", "M"]),
            Column.ordinal("grade", ["low", "middle", "high"], nullable=True),
            Column.integer("age", 0, 99),
            Column.continuous("income", 0.0, 1000.0, bins=8),
        ]
    )


@pytest.fixture
def table() -> pd.DataFrame:
    return make_table(400)


def make_table(rows: int, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": generator.choice(["F", "M"], rows, p=[0.6, 0.4]),
            "grade": generator.choice(["low", "middle", "high", None], rows),
            "age": generator.integers(18, 90, rows),
            "income": generator.gamma(4.0, 60.0, rows),
        }
    )
