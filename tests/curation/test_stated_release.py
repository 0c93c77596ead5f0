"""A stated coding, from a private table to its release."""

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp


@pytest.mark.parametrize("fine", [False, True])
def test_a_stated_coding_holds_in_the_release(fine):
    generator = np.random.default_rng(1)
    cost = np.where(generator.random(10_000) < 0.2, 1234.5, generator.lognormal(7, 1, 10_000))
    table = pd.DataFrame({"cost": cost.round(2), "ill": generator.random(10_000) < 0.3})
    stated = cp.Column.continuous("cost", 0.01, 1e6, scale="log", atoms=[1234.5], step=0.01)
    schema = cp.Schema([stated, cp.Column.boolean("ill")])
    made = cp.release(table, schema, 1.0, 1e-9, replicates=0, fine=fine, seed=1)
    column, released = made.schema["cost"], made.table["cost"]
    assert (column.scale, column.atoms, column.step) == ("log", (1234.5,), 0.01)
    assert (released == [float(f"{value:.2f}") for value in released]).all()
    assert released.median() == pytest.approx(table["cost"].median(), rel=0.1)
    assert (released == 1234.5).mean() == pytest.approx(0.2 if fine else 0, abs=0.04)
