"""Bounds and categories that the schema leaves open, and what they cost."""

import datetime

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, SchemaError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault, threshold_delta
from counterpoise.vault.categories import _threshold
from counterpoise.vault.cells import WHERE_PART
from counterpoise.vault.counting import count_noise
from counterpoise.vault.noise.entropy import SeededEntropy
from counterpoise.vault.noise.integers import sample_by_table

OPEN = Schema(
    [
        Column.continuous("height"),
        Column.integer("visits"),
        Column.date("born"),
        Column.datetime("seen"),
        Column.categorical("city"),
        Column.categorical("code", category_type="integer"),
    ]
)
PAID = OPEN.pay("height").pay("visits").pay("born").pay("seen").pay("city").pay("code")


def people(rows=3000, seed=0):
    generator = np.random.default_rng(seed)
    days = pd.Timestamp("1950-03-01") + pd.to_timedelta(generator.integers(0, 18000, rows), "D")
    return pd.DataFrame(
        {
            "height": generator.normal(170, 10, rows),
            "visits": generator.poisson(5, rows),
            "born": days,
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.random(rows), "D"),
            "city": [*generator.choice(["Oslo", "Rome", "Kyiv"], rows - 1), "Hamlet"],
            "code": generator.choice([3, 7], rows),
        }
    )


@pytest.fixture(params=["memory", "duckdb"])
def vault(request, tmp_path):
    path = tmp_path / "people.parquet"
    people().to_parquet(path)
    return Vault(path, PAID, Budget(4.0, 1e-6), storage=request.param, seed=1)


def test_what_is_learnt_covers_the_bulk_of_the_data_and_hides_what_is_rare(vault):
    delta = threshold_delta(PAID, 1e-6)
    learnt = vault.learn_domain(vault.budget.whole_beside(delta).part(0.5), delta)
    assert learnt.is_complete
    assert (learnt["height"].minimum, learnt["height"].maximum) == (128.0, 256.0)
    assert (learnt["visits"].minimum, learnt["visits"].maximum) == (0, 16)
    assert learnt["born"].minimum == datetime.date(1950, 1, 1)
    assert learnt["born"].maximum == datetime.date(2000, 1, 1)
    assert learnt["seen"].minimum == datetime.datetime(2020, 1, 1)
    assert set(learnt["city"].categories) == {"Oslo", "Rome", "Kyiv", "other"}
    assert learnt["city"].other == "other"
    assert learnt["code"].categories == (3, 7)
    # Six columns, one charge each, and the thresholds' delta.
    assert len(vault.ledger.spends) == 6
    assert vault.ledger.delta_set_aside == pytest.approx(delta)
    # And the vault goes on with it.
    [answer] = vault.counts([("city",)], vault.ledger.left)
    assert answer.values.shape == (4,)


def test_counting_before_the_domain_is_paid_for_is_refused(vault):
    with pytest.raises(SchemaError, match="height"):
        vault.counts([("height",)], vault.budget.whole)
    assert vault.ledger.spends == ()


def test_it_is_too_late_for_the_domain_once_rows_are_counted():
    table = pd.DataFrame({"x": [0.5] * 50, "c": ["a"] * 50})
    schema = Schema([Column.continuous("x", 0, 1), Column.categorical("c", ["a", "b"])])
    with Vault(table, schema, Budget(1.0, 1e-6)) as vault:
        part = vault.budget.whole.part(0.1)
        vault.counts([("x",)], part)
        for ask in (
            lambda: vault.bounds("x", part),
            lambda: vault.categories("c", part, 1e-8),
            lambda: vault.choose_bins(part),
            lambda: vault.choose_cells(part, part),
        ):
            with pytest.raises(VaultError, match="before anything is counted"):
                ask()
        assert len(vault.ledger.spends) == 1


def test_bounds_of_noise_alone_are_refused_with_a_way_out():
    table = pd.DataFrame({"x": [1.0]})
    schema = Schema([Column.continuous("x")]).pay("x")
    vault = Vault(table, schema, Budget(0.1, 1e-6), seed=1)
    with vault, pytest.raises(VaultError, match="larger share"):
        vault.bounds("x", vault.budget.whole)


def test_a_pure_budget_pays_for_bounds_but_not_for_categories():
    with Vault(people(), PAID, Budget(5.0), seed=1) as vault:
        found = vault.bounds("height", vault.budget.whole.part(0.5))
        assert (found.minimum, found.maximum) == (128.0, 256.0)
        with pytest.raises(BudgetError, match="delta > 0"):
            vault.categories("city", vault.budget.whole.part(0.2), 1e-7)


def test_a_stated_bound_stays_when_the_other_is_paid_for():
    schema = Schema([Column.continuous("height", minimum=0.0)]).pay("height", "maximum")
    with Vault(people()[["height"]], schema, Budget(4.0, 1e-6), seed=1) as vault:
        learnt = vault.learn_domain(vault.budget.whole.part(0.5))
    assert (learnt["height"].minimum, learnt["height"].maximum) == (0.0, 256.0)


@pytest.mark.parametrize(
    ("rows", "neighbours"), [(1, "add-remove"), (3, "add-remove"), (1, "replace")]
)
def test_a_value_of_one_person_passes_the_threshold_with_probability_at_most_delta(
    rows, neighbours
):
    # Exact: the tail of the discrete Gaussian, summed.
    budget = Budget(1.0, 1e-6, neighbours, rows)
    for scale in (0.7, 4.0, 31.0):
        for delta in (1e-2, 1e-7):
            threshold = _threshold(scale, delta, rows, budget.neighbours)
            support = np.arange(-int(50 * scale) - 5, int(50 * scale) + 6)
            chances = np.exp(-(support**2) / (2 * scale**2))
            chances /= chances.sum()
            assert rows * chances[support + rows >= threshold].sum() <= delta


def test_rare_values_pass_as_often_as_delta_allows_when_delta_is_large():
    scale, delta = 5.0, 0.05
    threshold = _threshold(scale, delta, 1, Budget(1.0).neighbours)
    passed = (1 + sample_by_table("gaussian", scale, 100_000, SeededEntropy(1)) >= threshold).mean()
    assert 0.02 < passed <= delta


def test_paid_categories_of_numbers_are_whole_numbers_once_each():
    codes = ["1"] * 400 + ["01"] * 400 + ["2.0"] * 400 + ["²"] * 400 + ["x"] * 400 + ["-7"] * 400
    schema = Schema([Column.categorical("code", category_type="integer")]).pay("code")
    with Vault(pd.DataFrame({"code": codes}), schema, Budget(8.0, 1e-6), seed=1) as vault:
        learnt = vault.learn_domain(vault.budget.whole_beside(1e-7).part(0.5), 1e-7)
    assert learnt["code"].categories == (-7, 1, 2)


def test_paid_categories_are_the_frequent_ones_in_whatever_order_they_come():
    counts = {"d": 500, "a": 2, "b": 400, "c": 2, "?": 500, "\ud800": 500}
    schema = Schema([Column.categorical("city")], missing_values=("", "?")).pay("city")
    for names in (list(counts), sorted(counts)):
        rows = [name for name in names for _ in range(counts[name])]
        table = pd.DataFrame({"city": pd.Series(rows, dtype=object)})
        with Vault(table, schema, Budget(8.0, 1e-6), seed=1) as vault:
            found = vault.categories("city", vault.budget.whole.part(0.5), 1e-7)
        assert found.values == ("b", "d")


def test_a_value_that_is_called_other_is_what_others_are():
    table = pd.DataFrame({"city": ["Oslo"] * 400 + ["other"] * 400})
    schema = Schema([Column.categorical("city")]).pay("city")
    with Vault(table, schema, Budget(10.0, 1e-6), seed=1) as vault:
        learnt = vault.learn_domain(vault.budget.whole.part(0.5), delta=1e-7)
    assert learnt["city"].categories == ("Oslo", "other")


def test_a_number_whose_text_stands_for_null_is_no_category():
    """Words for null are looked for among texts, and a category may not be one of them."""
    schema = Schema([Column.categorical("code")], missing_values=("", "99")).pay("code")
    table = pd.DataFrame({"code": [99] * 500 + [7] * 500})
    with Vault(table, schema, Budget(8.0, 1e-6), seed=1) as vault:
        found = vault.categories("code", vault.budget.whole.part(0.5), 1e-7)
    assert found.values == ("7",)


def test_other_takes_a_name_that_is_free():
    schema = Schema([Column.categorical("city")], missing_values=("", "other")).pay("city")
    table = pd.DataFrame({"city": ["Oslo"] * 500})
    with Vault(table, schema, Budget(8.0, 1e-6), seed=1) as vault:
        learnt = vault.learn_domain(vault.budget.whole_beside(1e-7).part(0.5), 1e-7)
    assert learnt["city"].categories == ("Oslo", "other_2")


def test_fine_cells_are_counted_where_all_rows_together_stand_out_of_the_noise():
    budget = Budget(0.5, 1e-9, neighbours="replace")
    deviation = count_noise(budget, budget.whole.part(1 - WHERE_PART), 2).deviation
    shapes = {}
    for deviations in (4.0, 7.0):
        pay = np.random.default_rng(0).lognormal(10, 1, round(deviations * deviation))
        schema = Schema([Column.continuous("pay", 0, 1e7)])
        with Vault(pd.DataFrame({"pay": pay}), schema, budget, seed=0) as vault:
            shapes[deviations] = vault.choose_cells(vault.budget.whole)["pay"].shape
    assert shapes[4.0] is None
    assert len(shapes[7.0].edges) > 5
