"""What every registered weighter promises, whoever wrote it."""

from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault
from counterpoise.weights import WEIGHTERS
from counterpoise.weights.replicates import replicate_weights
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
    rows = pd.DataFrame({"a": [True, False] * 200})
    with Vault(rows, schema, Budget(1.0, 1e-6)) as vault:
        weights = fitted(method, vault, rows).weigh(rows.iloc[:0])
    assert len(weights) == 0
    assert len(weights.normalised) == 0


PAID = [m for m in METHODS if not WEIGHTERS.make(m).is_free]
SYNTHETIC = make_table(500, seed=9)


def model_type(method):
    """What `fit` says that it returns, which is what a bundle reads a model back by."""
    return get_type_hints(WEIGHTERS.get(method).fit)["return"]


@pytest.mark.parametrize("method", METHODS)
def test_replicates_are_one_a_column_and_average_to_one(method, vault):
    model = fitted(method, vault, SYNTHETIC)
    columns = replicate_weights(model, SYNTHETIC, 5, population=300, seed=1)
    assert columns.shape == (500, 5)
    assert np.isfinite(columns).all()
    assert (columns >= 0).all()
    assert columns.mean(axis=0) == pytest.approx(np.ones(5), rel=1e-5)
    assert np.std(columns, axis=1).max() > 0
    assert replicate_weights(model, SYNTHETIC[:0], 5, population=300).shape == (0, 5)


@pytest.mark.parametrize("method", METHODS)
def test_replicates_vary_around_the_weights(method, vault):
    """The mean of many replicates is the weight itself, as far as 200 of them show it."""
    model = fitted(method, vault, SYNTHETIC)
    weights = model.weigh(SYNTHETIC).normalised
    columns = replicate_weights(model, SYNTHETIC, 200, population=300, seed=1)
    ages = SYNTHETIC["age"].to_numpy()
    full = np.average(ages, weights=weights)
    replicated = ages @ columns / columns.sum(axis=0)
    assert abs(replicated.mean() - full) < replicated.std()


@pytest.mark.parametrize("method", METHODS)
def test_a_model_is_the_same_after_saving_without_pickle(method, vault, tmp_path):
    model = fitted(method, vault, SYNTHETIC)
    if method == "oracle":
        with pytest.raises(MethodError, match="cannot be saved"):
            model.to_arrays()
        return
    np.savez(tmp_path / "model.npz", **model.to_arrays())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        again = model_type(method).from_arrays(vault.schema, dict(arrays))
    assert (again.weigh(SYNTHETIC).log_weights == model.weigh(SYNTHETIC).log_weights).all()
    assert getattr(again, "private", True) == getattr(model, "private", True)
    replicates = [
        replicate_weights(m, SYNTHETIC, 3, population=300, seed=1) for m in (model, again)
    ]
    assert (replicates[0] == replicates[1]).all()


@pytest.mark.parametrize("method", PAID)
def test_a_second_fit_is_charged_again(method, schema):
    with Vault(make_table(300), schema, Budget(1.0, 1e-6), seed=2) as vault:
        half = vault.budget.whole.part(0.5)
        WEIGHTERS.make(method).fit(vault, SYNTHETIC, half)
        once = vault.ledger.epsilon_spent
        WEIGHTERS.make(method).fit(vault, SYNTHETIC, half)
        assert vault.ledger.epsilon_spent > 1.3 * once
        with pytest.raises(BudgetError):
            WEIGHTERS.make(method).fit(vault, SYNTHETIC, half)
        assert vault.ledger.epsilon_spent <= 1.0


@pytest.mark.parametrize("method", PAID)
def test_a_paid_method_asks_for_its_share_before_it_looks(method, vault):
    with pytest.raises(BudgetError, match="share"):
        WEIGHTERS.make(method).fit(vault, SYNTHETIC, None)
    assert vault.ledger.spends == ()


@pytest.mark.parametrize("method", PAID)
def test_no_synthetic_row_to_compare_with_is_refused_before_the_look(method, vault):
    with pytest.raises(MethodError, match="at least one synthetic row"):
        fitted(method, vault, SYNTHETIC[:0])
    assert vault.ledger.spends == ()


@pytest.mark.parametrize("seed", [None, 2])
@pytest.mark.parametrize("method", PAID)
def test_a_model_from_a_vault_with_a_seed_is_stamped(method, schema, seed):
    with Vault(make_table(300), schema, Budget(1.0, 1e-6), seed=seed) as vault:
        assert fitted(method, vault, SYNTHETIC).private == (seed is None)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("method", PAID)
def test_both_neighbouring_relations_are_within_the_budget(method, schema, neighbours):
    budget = Budget(1.0, 1e-6, neighbours, max_rows_per_person=2)
    with Vault(make_table(3000), schema, budget, seed=2) as vault:
        weights = fitted(method, vault, SYNTHETIC).weigh(SYNTHETIC).normalised
        assert np.isfinite(weights).all()
        assert 0.99 <= vault.ledger.epsilon_spent <= 1.0
