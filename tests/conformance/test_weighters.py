"""What every registered weighter promises, whoever wrote it."""

import numpy as np
import pytest

from counterpoise.errors import MethodError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault
from counterpoise.weigh import WEIGHTERS
from tests.conftest import make_table

METHODS = sorted(WEIGHTERS)

# Some methods know one synthetic table, row by row, and have to say so when shown another.
KNOW_ONE_TABLE = [m for m in METHODS if not getattr(WEIGHTERS.get(m), "weighs_new_rows", True)]
WEIGH_ANY_ROWS = [m for m in METHODS if m not in KNOW_ONE_TABLE]


@pytest.fixture
def vault(schema):
    with Vault(make_table(300), schema, Budget(1.0, 1e-6), seed=2) as opened:
        yield opened


def fitted(method, vault, synthetic):
    weighter = WEIGHTERS.make(method)
    share = None if weighter.is_free else vault.budget.whole
    return weighter.fit(vault, synthetic, share)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_positive_finite_and_average_to_one(method, vault):
    synthetic = make_table(500, seed=9)
    weights = fitted(method, vault, synthetic).weigh(synthetic)
    assert len(weights) == 500
    assert np.isfinite(weights.normalised).all()
    assert (weights.normalised >= 0).all()
    assert weights.normalised.mean() == pytest.approx(1.0)
    assert 1 <= weights.effective_sample_size <= 500 * (1 + 1e-9)
    assert 0 < weights.largest_share <= 1


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_respected_and_a_free_method_asks_nothing(method, vault):
    fitted(method, vault, make_table(100, seed=9))
    spent = vault.ledger.epsilon_spent
    if WEIGHTERS.make(method).is_free:
        assert spent == 0
    else:
        assert 0.99 <= spent <= 1.0


@pytest.mark.parametrize("method", WEIGH_ANY_ROWS)
def test_new_rows_are_weighed_later_for_free(method, vault):
    model = fitted(method, vault, make_table(200, seed=9))
    spent = vault.ledger.epsilon_spent
    vault.close()
    assert len(model.weigh(make_table(30, seed=4))) == 30
    assert vault.ledger.epsilon_spent == spent


@pytest.mark.parametrize("method", KNOW_ONE_TABLE)
def test_a_method_that_knows_one_table_refuses_other_rows(method, vault):
    synthetic = make_table(200, seed=9)
    model = fitted(method, vault, synthetic)
    for other in (make_table(30, seed=4), synthetic.iloc[::-1]):
        with pytest.raises(MethodError, match="no other rows"):
            model.weigh(other)


@pytest.mark.parametrize("method", WEIGH_ANY_ROWS)
def test_the_order_of_rows_does_not_matter(method, vault):
    synthetic = make_table(200, seed=9)
    model = fitted(method, vault, synthetic)
    order = np.random.default_rng(0).permutation(200)
    shuffled = model.weigh(synthetic.iloc[order]).normalised
    assert shuffled == pytest.approx(model.weigh(synthetic).normalised[order])


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_synthetic_table_has_no_weights(method):
    schema = Schema([Column.boolean("a")])
    import pandas as pd

    rows = pd.DataFrame({"a": [True, False] * 200})
    with Vault(rows, schema, Budget(1.0, 1e-6)) as vault:
        weights = fitted(method, vault, rows).weigh(rows.iloc[:0])
    assert len(weights) == 0
    assert len(weights.normalised) == 0
