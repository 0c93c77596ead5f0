"""Chains that have mixed and chains that have not are told apart."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import MethodError
from counterpoise.evaluation import chain_diagnostics
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget

SCHEMA = Schema([Column.continuous("x", 0, 1), Column.continuous("y", 0, 1)])
ROWS = SCHEMA.encode(
    pd.DataFrame(np.random.default_rng(0).beta(2, 5, (200, 2)), columns=["x", "y"])
)
BUDGET = Budget(50.0, 0.0, "replace")


def test_long_chains_agree_and_short_ones_do_not():
    long = chain_diagnostics(ROWS, 10, 50.0, BUDGET, moves=8_000, seed=1)
    assert long.r_hat < 1.05
    assert long.between < 0.1 * long.within
    # They have just begun to come down from where they were drawn.
    short = chain_diagnostics(ROWS, 10, 5000.0, BUDGET, moves=200, seed=1)
    assert short.r_hat > 1.2
    assert 0.05 < long.accepted < 0.9


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(MethodError, match="moves"):
        chain_diagnostics(ROWS, 10, 1.0, BUDGET, moves=20)
    with pytest.raises(MethodError, match="chains"):
        chain_diagnostics(ROWS, 10, 1.0, BUDGET, chains=1)
    with pytest.raises(MethodError, match="rows"):
        chain_diagnostics(ROWS.take(np.arange(0)), 10, 1.0, BUDGET)
