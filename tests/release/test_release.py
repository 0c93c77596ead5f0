import math

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import BudgetError, MethodError, SchemaError
from counterpoise.release.plan import best_synthesizer, plan_release
from counterpoise.vault import Budget
from counterpoise.weigh import Uniform


def test_a_release_spends_its_budget_and_says_so(table, schema):
    release = cp.release(table, schema, epsilon=1.0, delta=1e-6)
    assert 0.99 <= release.ledger.epsilon_spent <= 1.0
    assert release.private
    assert release.card["synthesizer"]["method"] == "aim"
    assert release.card["weights"]["effective_sample_size"] == len(release.table)


def test_a_release_looks_like_the_private_table(table, schema):
    release = cp.release(table, schema, epsilon=100.0, delta=1e-6, rows=20_000, seed=0)
    made = release.table
    assert list(made.columns) == [*schema.names, "weight"]
    assert (made["sex"] == "F").mean() == pytest.approx((table["sex"] == "F").mean(), abs=0.02)
    assert made["age"].mean() == pytest.approx(table["age"].mean(), abs=1.5)
    assert made["grade"].isna().mean() == pytest.approx(table["grade"].isna().mean(), abs=0.02)
    assert release.weights.mean() == pytest.approx(1.0)


def test_the_default_number_of_rows_is_about_that_of_the_private_table(table, schema):
    release = cp.release(table, schema, epsilon=20.0, delta=1e-6)
    assert len(release.table) == pytest.approx(len(table), abs=40)


def test_a_seed_repeats_a_release_and_stamps_it(table, schema):
    first, second = (cp.release(table, schema, 1.0, 1e-6, seed=4) for _ in range(2))
    pd.testing.assert_frame_equal(first.table, second.table)
    assert not first.private
    assert "NOT PRIVATE" in repr(first)
    assert not cp.release(table, schema, 1.0, 1e-6).table.equals(first.table)


def test_a_pure_budget_makes_a_pure_release(table, schema):
    release = cp.release(table, schema, epsilon=1.0)
    assert release.ledger.budget.is_pure
    assert 0.99 <= release.ledger.epsilon_spent <= 1.0


def test_a_draft_is_refused_until_its_values_are_accepted(table, schema, tmp_path):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    draft = cp.draft_schema(path)
    with pytest.raises(SchemaError, match=r"age\.minimum"):
        cp.release(path, draft, 1.0, 1e-6)
    for column in draft.names:
        draft = draft.accept(column)
    assert len(cp.release(path, draft, 1.0, 1e-6, rows=30).table) == 30


def test_what_is_missing_is_refused_unless_it_is_marked_as_paid(table, schema):
    open_schema = schema.replace(cp.Column.integer("age"))
    with pytest.raises(SchemaError, match="age"):
        cp.release(table, open_schema, 1.0, 1e-6)
    release = cp.release(table, open_schema.pay("age"), 8.0, 1e-6, rows=30)
    assert release.schema["age"].is_complete
    assert release.ledger.spends[0].stage == "domain"
    assert release.schema["age"].bins is not None or release.schema["age"].cells <= 64
    assert 0.99 * 8 <= release.ledger.epsilon_spent <= 8


def test_paid_categories_keep_the_whole_within_the_budget(table, schema):
    paid = schema.replace(cp.Column.categorical("sex")).pay("sex")
    release = cp.release(table, paid, 8.0, 1e-6, rows=30)
    assert set(release.schema["sex"].categories) == {"F", "M", "other"}
    ledger = release.ledger
    assert ledger.delta_set_aside == pytest.approx(1e-7)
    assert 0.99 * 8 <= ledger.epsilon_spent <= 8
    with pytest.raises(BudgetError, match="delta > 0"):
        cp.release(table, paid, 8.0)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 4])
def test_both_neighbouring_relations_and_persons(table, schema, neighbours, rows):
    release = cp.release(
        table, schema, 2.0, 1e-6, neighbours=neighbours, max_rows_per_person=rows, rows=10
    )
    budget = release.ledger.budget
    assert budget == Budget(2.0, 1e-6, neighbours, rows)


def test_schemas_are_taken_as_path_dict_or_value(table, schema, tmp_path):
    schema.write(tmp_path / "schema.json")
    for given in (schema, schema.to_dict(), str(tmp_path / "schema.json")):
        assert cp.release(table, given, 1.0, 1e-6, rows=10).schema.names == schema.names


def test_progress_is_told_in_order(table, schema):
    told = []
    cp.release(table, schema, 1.0, 1e-6, rows=10, progress=lambda *step: told.append(step))
    assert [part for _, part in told] == sorted(part for _, part in told)
    assert told[-1] == ("done", 1.0)


@pytest.mark.parametrize("name", ["weight", "Weight", "weight_12"])
def test_a_column_called_weight_is_refused(name):
    schema = cp.Schema([cp.Column.continuous(name, 0, 1)])
    with pytest.raises(MethodError, match="rename"):
        cp.release(pd.DataFrame({name: [0.5]}), schema, 1.0)
    fine = cp.Schema([cp.Column.continuous("weight_kg", 0, 1)])
    cp.release(pd.DataFrame({"weight_kg": [0.5]}), fine, 1.0)


@pytest.mark.parametrize("rows", [0, -1, 2.5, True])
def test_an_impossible_number_of_rows_is_refused(table, schema, rows):
    with pytest.raises(MethodError, match="rows"):
        cp.release(table, schema, 1.0, rows=rows)


def test_an_unknown_method_is_refused_with_the_nearest(table, schema):
    with pytest.raises(MethodError, match="independent"):
        cp.release(table, schema, 1.0, synthesizer="independant")
    with pytest.raises(MethodError, match="uniform"):
        cp.release(table, schema, 1.0, weights="unifrom")


class Costly(Uniform):
    """Uniform weights that claim a share."""

    is_free = False


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("weighter", [Uniform(), Costly()], ids=["free", "costly"])
def test_shares_of_the_stages_add_up_to_the_whole(schema, delta, weighter):
    plan = plan_release(schema, Budget(1.0, delta), "independent", weighter)
    shares = [plan.domain_share, plan.bins_share, plan.synthesizer_share, plan.weights_share]
    spent = math.fsum(share.amount for share in shares if share is not None)
    assert spent == pytest.approx(Budget(1.0, delta).whole.amount)
    assert (plan.weights_share is None) == weighter.is_free


def test_bins_follow_the_number_of_rows_where_none_are_stated():
    schema = cp.Schema(
        [
            cp.Column.continuous("open", 0, 1),
            cp.Column.continuous("stated", 0, 1, bins=7),
            cp.Column.integer("few", 0, 9),
        ]
    )
    sizes = []
    for rows in (200, 50_000):
        table = pd.DataFrame({name: np.linspace(0, 1, rows) for name in schema.names})
        release = cp.release(table, schema, 1.0, 1e-6, rows=10)
        assert release.schema["stated"].cells == 7
        assert release.schema["few"].cells == 10
        assert release.ledger.spends[0].query == "number of rows"
        sizes.append(release.schema["open"].cells)
    assert sizes[0] < 10 < sizes[1] <= 32


def test_bins_are_free_when_the_number_of_rows_is_public():
    schema = cp.Schema([cp.Column.continuous("x", 0, 1)])
    table = pd.DataFrame({"x": np.linspace(0, 1, 5000)})
    release = cp.release(table, schema, 1.0, 1e-6, neighbours="replace", rows=10)
    assert "number of rows" not in [spend.query for spend in release.ledger.spends]
    assert release.schema["x"].cells > 10
    assert 0.99 <= release.ledger.epsilon_spent <= 1.0


def test_auto_takes_a_method_that_the_budget_allows(schema):
    assert best_synthesizer(schema, Budget(1.0, 1e-6)) == "aim"
    assert best_synthesizer(schema, Budget(1.0)) == "privbayes"
    assert best_synthesizer(schema.select(["sex", "grade"]), Budget(1.0)) == "histogram"


def test_a_method_that_needs_delta_is_refused_before_the_table_is_opened(schema):
    with pytest.raises(BudgetError, match="delta > 0"):
        cp.release("nowhere.csv", schema, 1.0, synthesizer="aim")


def test_importing_a_room_does_not_shadow_the_function():
    import counterpoise.release.bundle  # noqa: F401

    assert callable(cp.release)


def test_a_release_is_a_value(table, schema):
    release = cp.release(table, schema, 1.0, 1e-6, rows=10)
    with pytest.raises(AttributeError):
        release.table = None
    assert np.isfinite(release.weights).all()
