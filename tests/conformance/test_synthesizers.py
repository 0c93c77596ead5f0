"""What every registered synthesizer promises, whoever wrote it."""

import datetime

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.vault import Budget, Vault
from tests.conftest import make_schema, make_table

METHODS = sorted(SYNTHESIZERS)

DAY = datetime.date
SCHEMAS = {
    "one boolean": Schema([Column.boolean("a")]),
    "one value": Schema([Column.categorical("a", ["only"])]),
    "every kind": Schema(
        [
            Column.categorical("a", ["x", "y", "z"], other="z", nullable=True),
            Column.ordinal("b", [1, 2, 3]),
            Column.integer("c", -10, 1000, nullable=True),
            Column.continuous("d", -1.0, 1.0, bins=(-1.0, 0.0, 0.1, 1.0)),
            Column.date("e", DAY(2000, 1, 1), DAY(2020, 1, 1), nullable=True),
            Column.datetime("f", datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 2)),
        ]
    ),
    "many categories": Schema(
        [Column.categorical("a", [f"v{i}" for i in range(200)]), Column.boolean("b")]
    ),
}
BUDGETS = [
    Budget(1.0, 1e-6),
    Budget(1.0),
    Budget(0.05, 1e-9, "replace"),
    Budget(1.0, 1e-6, max_rows_per_person=3),
]


def rows_of(schema: Schema, rows: int, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    codes = np.column_stack([generator.integers(0, size, rows) for size in schema.sizes])
    return schema.decode(codes, generator)


def fitted(method, table, schema, budget, seed=None):
    with Vault(table, schema, budget, seed=seed) as vault:
        model = SYNTHESIZERS.make(method).fit(vault, vault.budget.whole)
    return model, vault.ledger


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_hard_schemas_and_tables_give_rows_of_the_schema(method, name, rows):
    schema = SCHEMAS[name]
    model, _ = fitted(method, rows_of(schema, rows), schema, Budget(1.0, 1e-6))
    made = model.sample(50, seed=1)
    assert list(made.columns) == list(schema.names)
    assert len(made) == 50
    assert model.rows >= 1
    pd.testing.assert_series_equal(made.dtypes, rows_of(schema, 3).dtypes)


def needs_delta(method) -> bool:
    return getattr(SYNTHESIZERS.get(method), "needs_delta", False)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_budget_is_respected_and_used(method, budget):
    if budget.is_pure and needs_delta(method):
        with Vault(make_table(300), make_schema(), budget) as vault:
            with pytest.raises(BudgetError, match="delta > 0"):
                SYNTHESIZERS.make(method).fit(vault, vault.budget.whole)
            assert vault.ledger.spends == ()
        return
    _, ledger = fitted(method, make_table(300), make_schema(), budget)
    assert 0.99 * budget.epsilon <= ledger.epsilon_spent <= budget.epsilon


@pytest.mark.parametrize("method", METHODS)
def test_a_second_fit_is_charged_again(method):
    with Vault(make_table(200), make_schema(), Budget(1.0, 1e-6)) as vault:
        synthesizer = SYNTHESIZERS.make(method)
        synthesizer.fit(vault, vault.budget.whole.part(0.6))
        once = vault.ledger.epsilon_spent
        with pytest.raises(BudgetError):
            synthesizer.fit(vault, vault.budget.whole.part(0.6))
        assert vault.ledger.epsilon_spent >= once


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_repeats_the_model_and_stamps_it(method):
    first, second = (
        fitted(method, make_table(200), make_schema(), Budget(1.0, 1e-6), seed=3)[0]
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(first.sample(40, seed=1), second.sample(40, seed=1))
    assert not first.private
    private, _ = fitted(method, make_table(200), make_schema(), Budget(1.0, 1e-6))
    assert private.private


@pytest.mark.parametrize("method", METHODS)
def test_sampling_is_free_and_repeatable(method):
    model, ledger = fitted(method, make_table(200), make_schema(), Budget(1.0, 1e-6))
    spent = ledger.epsilon_spent
    pd.testing.assert_frame_equal(model.sample(30, seed=2), model.sample(30, seed=2))
    assert not model.sample(30, seed=2).equals(model.sample(30, seed=3))
    assert ledger.epsilon_spent == spent


@pytest.mark.parametrize("method", METHODS)
def test_with_a_large_budget_every_column_is_close_to_the_truth(method):
    table, schema = make_table(4000), make_schema()
    model, _ = fitted(method, table, schema, Budget(500.0, 1e-6), seed=0)
    made = schema.encode(model.sample(40_000, seed=0)).codes
    truth = schema.encode(table).codes
    for place, size in enumerate(schema.sizes):
        ours, theirs = (np.bincount(c[:, place], minlength=size) / len(c) for c in (made, truth))
        assert abs(ours - theirs).sum() / 2 < 0.03


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("format", ["polars", "arrow"])
def test_rows_come_in_other_formats_on_request(method, format):
    pytest.importorskip("polars" if format == "polars" else "pyarrow")
    model, _ = fitted(method, make_table(100), make_schema(), Budget(1.0, 1e-6))
    made = model.sample(12, seed=0, format=format)
    assert made.shape == (12, 4)


@pytest.mark.parametrize("method", METHODS)
def test_the_arrays_of_a_model_are_plain_numbers(method):
    model, _ = fitted(method, make_table(100), make_schema(), Budget(1.0, 1e-6))
    arrays = model.to_arrays()
    assert arrays
    assert all(array.dtype != object for array in arrays.values())
