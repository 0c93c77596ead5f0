"""Heaps, from a private table to its release."""

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp


def test_heaps_of_a_private_column_are_in_its_release_at_no_further_charge():
    generator = np.random.default_rng(0)
    exact = generator.lognormal(9.5, 0.6, 20_000)
    pay = np.where(generator.random(20_000) < 0.5, exact.round(-3), exact)
    table = pd.DataFrame({"pay": pay, "ill": generator.random(20_000) < 0.3})
    schema = cp.Schema([cp.Column.continuous("pay", 0, 5e6), cp.Column.boolean("ill")])
    made = cp.release(table, schema, 1.0, 1e-9, replicates=0, fine=True, seed=1)
    for heap in (8000.0, 10_000.0, 12_000.0, 15_000.0):
        share = (table["pay"] == heap).mean()
        assert share > 0.02
        assert (made.table["pay"] == heap).mean() == pytest.approx(share, rel=0.25)
    assert (made.table["pay"] % 1000 == 0).mean() > 0.25
    assert [spend.query for spend in made.ledger.spends][:3] == [
        "number of rows",
        "rough cells of pay",
        "fine cells of pay",
    ]
