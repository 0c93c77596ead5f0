"""What the queries answer: close to the truth with a large budget, charged as stated."""

import copy
import math
import pickle
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent

from counterpoise.errors import BudgetError, SchemaError, TableError, VaultError
from counterpoise.networks import Inputs, Network
from counterpoise.schema import Coded, Column, Schema
from counterpoise.vault import Budget, MarginalError, Vault, quantiles
from counterpoise.vault.events import DiscreteLaplaceDpEvent, ExponentialDpEvent, PureDpEvent
from counterpoise.vault.noise import Grid
from counterpoise.vault.select import exponential_choice
from counterpoise.vault.storage import memory, open_storage, out_of_core
from counterpoise.vault.storage.adding import unit_counts
from counterpoise.vault.sums import _sum_of_points, clip
from tests.vault.courses import descent_plan, teacher_plan
from tests.vault.test_boundary import LOOKS

GENEROUS = Budget(1000.0, 1e-6)


class UnitFeatures:
    """The unit-box values, as features."""

    def __init__(self, schema):
        self.names = schema.names

    def __call__(self, rows):
        return rows.units


@pytest.fixture(params=["memory", "duckdb", "relation"])
def open_vault(request, table, schema, tmp_path):
    """Opens the same rows in each kind of storage."""
    path = tmp_path / "table.parquet"
    duckdb.connect().from_df(table).write_parquet(str(path))

    def opened(budget=GENEROUS, schema=schema, **options):
        if request.param == "memory":
            return Vault(table, schema, budget, **options)
        if request.param == "duckdb":
            return Vault(path, schema, budget, storage="duckdb", **options)
        return Vault(duckdb.connect().from_parquet(str(path)), schema, budget, **options)

    return opened


def test_counts_are_close_to_the_truth_and_have_the_shape_of_the_domain(open_vault, table, schema):
    with open_vault() as vault:
        answers = vault.counts([("sex", "grade"), ("age",)], vault.budget.whole)
        spends = vault.ledger.spends
    assert [answer.values.shape for answer in answers] == [(2, 4), (20,)]
    truth = pd.crosstab(table["sex"], table["grade"].fillna("null"))[
        ["low", "middle", "high", "null"]
    ]
    assert abs(answers[0].values - truth.to_numpy()).max() <= 3
    assert answers[1].values.sum() == pytest.approx(len(table), abs=10)
    [spend] = spends
    assert isinstance(spend.event, GaussianDpEvent)
    # D2 = sqrt(2) for two tables.
    assert answers[0].deviation == pytest.approx(spend.event.noise_multiplier * math.sqrt(2))


def test_empty_cells_are_noised_too(open_vault):
    with open_vault(Budget(1.0, 1e-6)) as vault:
        [answer] = vault.counts([("age", "income")], vault.budget.whole)
    assert (answer.values != 0).mean() > 0.8


def test_pure_counts_use_laplace_noise(open_vault):
    with open_vault(Budget(2.0)) as vault:
        [answer] = vault.counts([("sex",)], vault.budget.whole)
        [spend] = vault.ledger.spends
    assert answer.law == "laplace"
    assert isinstance(spend.event, DiscreteLaplaceDpEvent)
    assert vault.ledger.epsilon_spent == pytest.approx(2.0)


def test_all_storages_count_alike_whatever_the_order_of_columns(open_vault, table, schema):
    cliques = [("age", "sex"), ("sex", "age"), ("grade",), ("income", "grade", "sex")]
    coded = schema.encode(table).codes
    with open_vault() as vault:
        found = vault._storage.counts(cliques)
        again = vault._storage.counts(cliques)
    for clique, counted, repeated in zip(cliques, found, again, strict=True):
        expected = np.zeros(schema.shape(clique), dtype=int)
        np.add.at(expected, tuple(coded[:, schema.index(name)] for name in clique), 1)
        assert (counted == expected).all()
        assert (repeated == expected).all()


def test_all_storages_stream_the_same_rows(open_vault, table, schema):
    coded = schema.encode(table)
    with open_vault() as vault:
        batches = list(vault._storage.batches(64))
    assert sum(len(batch) for batch in batches) == len(table)
    codes = np.concatenate([batch.codes for batch in batches])
    units = np.concatenate([batch.units for batch in batches])
    order, expected = (
        np.lexsort(np.column_stack([c, u]).T)
        for c, u in ((codes, units), (coded.codes, coded.units))
    )
    assert (codes[order] == coded.codes[expected]).all()
    assert (units[order] == coded.units[expected]).all()


def test_exact_answers_are_those_of_pandas_in_whatever_blocks_and_without_nulls(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(memory, "ROWS_A_BLOCK", 64)
    monkeypatch.setattr(out_of_core, "ROWS_A_BLOCK", 64)
    generator = np.random.default_rng(0)
    x = generator.choice([0.0, 2.5, 4.99, 5.0, 10.0], 300)
    text = generator.choice(["a", "b"], 300).astype(object)
    x[::7], text[::5] = np.nan, None
    table = pd.DataFrame({"x": x, "text": text})
    table.to_parquet(tmp_path / "table.parquet")
    listed = Schema(
        [
            Column.continuous("x", 0, 10, bins=2, nullable=True),
            Column.categorical("text", ["a", "b"], nullable=True),
        ]
    )
    kept = table.dropna(subset="text")["text"].value_counts()
    cells = np.where(np.isnan(x), 2, x >= 5)
    codes = table["text"].map({"a": 0, "b": 1}).fillna(2)
    for source, kind in ((table, "memory"), (tmp_path / "table.parquet", "duckdb")):
        stored = open_storage(source, listed, kind)
        texts, counts = stored.distinct("text")
        assert dict(zip(texts, counts.tolist(), strict=True)) == kept.to_dict()
        # The nulls are in no part, and the maximum is in the last one.
        parts = np.minimum(x[~np.isnan(x)] / 2.5, 3).astype(int)
        assert stored.unit_counts("x", 4).tolist() == np.bincount(parts, minlength=4).tolist()
        [found] = stored.counts([("x", "text")])
        assert np.array_equal(found, pd.crosstab(cells, codes).to_numpy())
        stored.close()


class CodeSums:
    """The codes of every column, to be added up."""

    def __init__(self, size):
        self.size = size

    def __call__(self, rows):
        return rows.codes.sum(axis=0)


def test_all_storages_sum_the_same_rows(open_vault, table, schema):
    expected = schema.encode(table).codes.sum(axis=0)
    with open_vault() as vault:
        found = vault._storage.add_up(CodeSums(len(schema)), 64)
    assert found.tolist() == expected.tolist()


def test_all_storages_count_several_columns_in_other_codings_at_once(open_vault, table, schema):
    columns = [replace(schema["income"], bins=3), replace(schema["age"], bins=50), schema["sex"]]
    with open_vault() as vault:
        found = vault._storage.provisional_counts(columns)
    for column, counts in zip(columns, found, strict=True):
        codes = Schema([column]).encode(table[[column.name]]).codes[:, 0]
        assert counts.tolist() == np.bincount(codes, minlength=column.size).tolist()


def test_the_total_is_noised_under_add_remove_and_exact_under_replace(open_vault, table):
    with open_vault() as vault:
        assert vault.total(vault.budget.whole).value == pytest.approx(len(table), abs=3)
        assert len(vault.ledger.spends) == 1
    with open_vault(Budget(1.0, 1e-6, "replace")) as vault:
        assert vault.total().value == len(table)
        assert vault.ledger.spends == ()


def test_sums_are_close_to_the_truth(open_vault, table, schema):
    truth = schema.encode(table).units.sum(axis=0)
    with open_vault() as vault:
        answer = vault.sums(UnitFeatures(schema), math.sqrt(4), vault.budget.whole)
        [spend] = vault.ledger.spends
    assert answer.values == pytest.approx(truth, abs=1.0)
    assert isinstance(spend.event, GaussianDpEvent)
    assert answer.scale == pytest.approx(2 * spend.event.noise_multiplier, rel=1e-6)


def test_pure_sums_use_l2_laplace_noise(open_vault, table, schema):
    truth = schema.encode(table).units.sum(axis=0)
    with open_vault(Budget(200.0)) as vault:
        answer = vault.sums(UnitFeatures(schema), math.sqrt(4), vault.budget.whole)
        [spend] = vault.ledger.spends
    assert isinstance(spend.event, PureDpEvent)
    assert answer.values == pytest.approx(truth, abs=2.0)


def test_one_row_moves_a_sum_by_no_more_than_the_bound(schema):
    class Wild:
        names = ("a", "b")

        def __call__(self, rows):
            return np.tile([[1e300, -1e300], [np.nan, np.inf], [3.0, 4.0]], (len(rows) // 3, 1))

    table = pd.DataFrame(
        {"sex": ["F"] * 3, "grade": ["low"] * 3, "age": [1, 2, 3], "income": [1.0, 2.0, 3.0]}
    )
    with Vault(table, schema, Budget(1e4, 1e-6)) as vault:
        answer = vault.sums(Wild(), 1.0, vault.budget.whole)
    assert np.linalg.norm(answer.values) < 2.01
    assert np.isfinite(answer.values).all()


@pytest.mark.parametrize("shape", ["one column", "many rows a row", "a list of sums"])
def test_features_of_another_shape_than_announced_are_refused(table, schema, shape):
    class Misshapen:
        names = ("a", "b", "c")

        def __call__(self, rows):
            if shape == "one column":
                return np.ones((len(rows), 1))
            return np.ones((100 * len(rows), 3)) if shape == "many rows a row" else np.ones(3)

    with Vault(table, schema, GENEROUS) as vault, pytest.raises(VaultError, match="a row"):
        vault.sums(Misshapen(), 1.0, vault.budget.whole)


def test_a_score_without_sensitivity_is_refused_and_costs_nothing(table, schema):
    with Vault(table, schema, GENEROUS) as vault:
        with pytest.raises(VaultError, match="nothing to choose by"):
            score = MarginalError([np.zeros(2)], np.zeros(1), np.zeros(1))
            vault.select([("sex",)], score, vault.budget.whole)
        assert vault.ledger.spends == ()


@pytest.mark.parametrize(
    ("estimates", "weights", "allowances", "said"),
    [
        ([np.zeros(2)], np.ones(2), np.zeros(2), "estimates: expected 2"),
        ([np.zeros(2), np.zeros(4)], np.ones(2), np.zeros(2), "estimates: .*2 cells"),
        ([np.zeros(2), np.zeros((2, 1))], np.ones(2), np.zeros(2), "estimates: .*2 cells"),
        ([np.zeros(2), np.array(["a", "b"])], np.ones(2), np.zeros(2), "estimates"),
        ([np.zeros(2), np.array([0, math.nan])], np.ones(2), np.zeros(2), "estimates"),
        ([np.zeros(2), np.zeros(2)], np.ones(1), np.zeros(2), "weights: expected 2"),
        ([np.zeros(2), np.zeros(2)], np.ones((2, 1)), np.zeros(2), "weights: expected 2"),
        ([np.zeros(2), np.zeros(2)], np.ones(2), 0.0, "allowances: expected 2"),
        ([np.zeros(2), np.zeros(2)], ["a", "b"], np.zeros(2), "weights"),
        (None, np.ones(2), np.zeros(2), "estimates"),
    ],
)
def test_a_score_that_does_not_fit_its_tables_costs_nothing(
    table, schema, estimates, weights, allowances, said
):
    with Vault(table, schema, GENEROUS) as vault:
        with pytest.raises(VaultError, match=said):
            score = MarginalError(estimates, weights, allowances)
            vault.select([("sex",), ("sex",)], score, vault.budget.whole)
        assert vault.ledger.spends == ()


def test_errors_of_marginals_add_up_exactly_in_any_order():
    generator = np.random.default_rng(0)
    table, estimate = generator.integers(0, 10**5, 9999), generator.uniform(0, 10**5, 9999)
    found = {
        MarginalError([estimate[order]], np.ones(1), np.zeros(1)).values([table[order]])[0]
        for order in (generator.permutation(9999) for _ in range(20))
    }
    assert len(found) == 1


@pytest.mark.parametrize("far", [2.0**31, 2.0**40, 2.0**60, 1e99])
def test_what_is_far_off_is_cut_before_it_can_cancel(far):
    tables = [np.array([5, 7]), np.array([6, 7]), np.array([5000, 7])]
    score = MarginalError([np.full(2, far)] * 3, np.ones(3), np.full(3, 2 * far))
    assert np.ptp(score.values(tables)) == 0


def test_the_order_of_rows_leaves_no_trace_in_a_sum(table, schema):
    answers = []
    for rows in (table, table.iloc[::-1], table.sample(frac=1, random_state=1)):
        with Vault(rows, schema, GENEROUS, seed=3) as vault:
            answers.append(vault.sums(UnitFeatures(schema), 2.0, vault.budget.whole).values)
    assert (answers[0] == answers[1]).all()
    assert (answers[0] == answers[2]).all()


def test_selection_prefers_the_worst_estimate(open_vault, table, schema):
    candidates = [("sex",), ("grade",), ("age",)]
    with open_vault() as vault:
        exact = vault._storage.counts(candidates)
        estimates = [exact[0], exact[1] + 40.0, exact[2]]
        score = MarginalError(estimates, np.ones(3), np.zeros(3))
        assert vault.select(candidates, score, vault.budget.whole.part(0.5)) == 1
        # A weight of zero, or a large allowance, takes it out again.
        score = MarginalError(
            [exact[0] + 5.0, exact[1] + 40.0, exact[2]], np.array([1, 0, 1]), np.array([0, 0, 50])
        )
        assert vault.select(candidates, score, vault.budget.whole.part(0.4)) == 0
        assert all(isinstance(spend.event, ExponentialDpEvent) for spend in vault.ledger.spends)


def test_quantiles_are_close_to_the_truth(open_vault, table, schema):
    probabilities = [0.1, 0.25, 0.5, 0.75, 0.9]
    with open_vault() as vault:
        answer = vault.quantiles("income", probabilities, vault.budget.whole)
        [spend] = vault.ledger.spends
        assert spend.event.count == 3  # ceil(log2(6)) levels
    assert answer.units * 1000 == pytest.approx(table["income"].quantile(probabilities), rel=0.05)
    assert (np.diff(answer.units) >= 0).all()


def test_a_place_that_is_no_number_is_counted_within_the_range(schema, table):
    rows = schema.encode(table[:4])
    units = np.full(rows.units.shape, [[math.nan], [-1e300], [math.inf], [0.5]])
    place = schema.index("income")
    assert unit_counts(Coded(schema, rows.codes, units), place, 4).tolist() == [2, 0, 1, 1]


def test_every_level_of_quantiles_halves_what_the_level_before_it_left(open_vault, monkeypatch):
    """Those of one level look at rows apart, or a level would cost more than one mechanism."""
    sizes = []

    def best(source, scores, sensitivity, epsilon):
        sizes.append(len(scores))
        return int(np.argmax(scores))

    with open_vault() as vault, monkeypatch.context() as patched:
        even = np.full(quantiles.GRID_CELLS, 3)
        patched.setattr(vault._storage, "unit_counts", lambda column, cells: even)
        patched.setattr(quantiles, "exponential_choice", best)
        found = vault.quantiles("income", np.arange(1, 8) / 8, vault.budget.whole).units
    assert found.tolist() == (np.arange(1, 8) / 8).tolist()
    # The half first, then what is left of it, level after level; then what is right of it.
    whole, half, quarter = (quantiles.GRID_CELLS // parts + 1 for parts in (1, 2, 4))
    assert sizes == [whole, half, quarter, quarter, half, quarter, quarter]


def test_quantiles_of_a_category_are_refused(open_vault):
    with open_vault() as vault, pytest.raises(VaultError, match="'sex'"):
        vault.quantiles("sex", [0.5], vault.budget.whole)
    with open_vault() as vault, pytest.raises(VaultError, match="probabilities"):
        vault.quantiles("age", [0.5, 0.2], vault.budget.whole)


def test_overspending_is_refused_before_the_rows_are_read(table, schema, monkeypatch):
    with Vault(table, schema, Budget(1.0, 1e-6)) as vault:
        vault.total(vault.budget.whole)

        def read(*arguments):
            raise AssertionError("the rows were read")

        for name in LOOKS:
            monkeypatch.setattr(vault._storage, name, read)
        part = vault.budget.whole.part(0.1)
        score = MarginalError([np.zeros(2)], np.ones(1), np.zeros(1))
        for ask in (
            lambda: vault.counts([("sex",)], part),
            lambda: vault.total(part),
            lambda: vault.sums(UnitFeatures(schema), 2.0, part),
            lambda: vault.select([("sex",)], score, part),
            lambda: vault.quantiles("age", [0.5], part),
            lambda: vault.bounds("age", part),
            lambda: vault.categories("sex", part, 1e-7),
        ):
            with pytest.raises(BudgetError):
                ask()
        assert len(vault.ledger.spends) == 1


def test_a_query_that_fails_has_been_charged(schema, tmp_path):
    """A look that ends in an error is a look: the charge stays."""

    class Broken(UnitFeatures):
        def __call__(self, rows):
            raise RuntimeError("broken features")

    table = pd.DataFrame({"sex": ["F"], "grade": ["low"], "age": [1], "income": [1.0]})
    with Vault(table, schema, Budget(1.0, 1e-6)) as vault:
        with pytest.raises(VaultError, match="RuntimeError behind the boundary"):
            vault.sums(Broken(schema), 2.0, vault.budget.whole)
        assert len(vault.ledger.spends) == 1


def test_group_privacy_multiplies_the_noise_by_the_rows_of_a_person(table, schema):
    deviations = []
    for rows in (1, 5):
        with Vault(table, schema, Budget(1.0, 1e-6, max_rows_per_person=rows)) as vault:
            deviations.append(vault.counts([("sex",)], vault.budget.whole)[0].deviation)
    assert deviations[1] == pytest.approx(5 * deviations[0])


@pytest.mark.parametrize("clique", [(), ("sex", "sex")])
def test_an_impossible_clique_is_refused(open_vault, clique):
    with open_vault() as vault, pytest.raises(VaultError, match="different columns"):
        vault.counts([clique], vault.budget.whole)


def test_a_table_too_large_to_noise_is_refused_and_costs_nothing(table):
    wide = Schema([Column.continuous(f"x{i}", 0, 1, bins=1000) for i in range(4)])
    rows = pd.DataFrame({name: [0.5] for name in wide.names})
    with Vault(rows, wide, GENEROUS) as vault:
        with pytest.raises(VaultError, match="too many"):
            vault.counts([wide.names], vault.budget.whole)
        assert vault.ledger.spends == ()


def test_an_unknown_column_is_refused_by_name(open_vault):
    with open_vault() as vault, pytest.raises(SchemaError, match="sexx"):
        vault.counts([("sexx",)], vault.budget.whole)


def test_a_closed_vault_answers_nothing(open_vault):
    vault = open_vault()
    vault.close()
    vault.close()
    with pytest.raises(VaultError, match="closed"):
        vault.counts([("sex",)], vault.budget.whole)
    assert "closed" in repr(vault)


def test_what_holds_private_rows_is_neither_pickled_nor_copied(open_vault, schema):
    def held():
        yield from (vault, storage, storage._cache, teachers, teachers._classes)
        yield from (descent, descent._room)
        for rows in storage.batches(50):
            yield from (rows, rows.take(np.arange(3)), next(rows.parts(3)), rows.spread())

    inputs = Inputs(schema)
    plans = {"inputs": inputs, "network": Network((inputs.size, 1))}
    with open_vault() as vault:
        vault.counts([("sex",)], vault.budget.whole.part(0.1))
        storage, teachers = vault._storage, vault.teachers(teacher_plan(**plans))
        teachers.train(np.zeros((1, inputs.size)), 1)
        descent = vault.descent(descent_plan(**plans))
        for holder in held():
            for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(VaultError, match="never copied or pickled"):
                    attempt(holder)


def test_a_vault_shows_schema_and_ledger_only(open_vault, table):
    with open_vault() as vault:
        shown = repr(vault)
    assert "sex, grade, age, income" in shown
    assert "epsilon 0 of 1000" in shown
    assert str(len(table)) not in shown


def test_a_seed_repeats_everything_and_is_stamped(open_vault):
    answers = []
    for _ in range(2):
        with open_vault(Budget(1.0, 1e-6), seed=11) as vault:
            [answer] = vault.counts([("age",)], vault.budget.whole)
            answers.append(answer)
            assert not vault.private
            assert not vault.ledger.private
    assert (answers[0].values == answers[1].values).all()
    assert not answers[0].private


def test_an_unreviewed_schema_is_refused_by_the_vault(table, schema):
    drafted = schema.replace(
        Column.integer("age", 18, 89, sources={"minimum": "data", "maximum": "data"})
    )
    with pytest.raises(SchemaError, match=r"age\.maximum"):
        Vault(table, drafted, GENEROUS)


def test_duckdb_storage_is_for_files_and_relations(table, schema):
    with pytest.raises(VaultError, match="file or a DuckDB relation"):
        Vault(table, schema, GENEROUS, storage="duckdb")
    with pytest.raises(VaultError, match="storage"):
        Vault(table, schema, GENEROUS, storage="spark")


def test_scores_are_the_same_in_batches_of_any_size(monkeypatch):
    generator = np.random.default_rng(0)
    tables = [generator.integers(0, 9, shape) for shape in ((3,), (2, 4), (5, 5), (1,), (2, 2, 2))]
    estimates = [generator.uniform(0, 9, table.shape) for table in tables]
    weights, allowances = generator.uniform(1, 2, 5), generator.uniform(0, 3, 5)
    wanted = [
        weight * (np.abs(table - estimate).sum() - allowance)
        for weight, table, estimate, allowance in zip(
            weights, tables, estimates, allowances, strict=True
        )
    ]
    for cells in (1, 8, 11, 1000):
        monkeypatch.setattr("counterpoise.vault.select._BATCH_CELLS", cells)
        score = MarginalError(estimates, weights, allowances)
        assert score.values(tables) == pytest.approx(wanted)


def test_a_relation_is_run_once_and_leaves_nothing_behind():
    """Run again, a relation with chance in it would count a row any number of times."""
    connection = duckdb.connect()
    relation = connection.sql("SELECT (random() * 9)::INTEGER AS age FROM range(3000)")
    ages = Schema([Column.integer("age", 0, 9)])
    with Vault(relation, ages, GENEROUS) as vault:
        first = vault._storage.counts([("age",)])[0]
        vault._storage._cache.clear()
        np.testing.assert_array_equal(vault._storage.counts([("age",)])[0], first)
        batches = np.concatenate([rows.codes[:, 0] for rows in vault._storage.batches(500)])
        np.testing.assert_array_equal(np.bincount(batches, minlength=10), first)
    assert connection.sql("SHOW TABLES").fetchall() == []


def test_a_relation_that_spills_to_disk_is_refused(tmp_path):
    connection = duckdb.connect(config={"memory_limit": "20MB", "temp_directory": str(tmp_path)})
    relation = connection.sql("SELECT hash(range) AS age FROM range(6000000)")
    ages = Schema([Column.integer("age", 0, 9)])
    with pytest.raises(TableError, match="does not fit into memory"):
        Vault(relation, ages, GENEROUS)
    assert connection.sql("SHOW TABLES").fetchall() == []


@pytest.mark.parametrize("large", [1e13, 1e25, 1e300, np.inf])
def test_scores_beyond_all_measure_do_not_wrap_around(large):
    """A score that became the least integer would move by far more than its sensitivity."""
    heard = []

    class Scripted:
        def choose(self, scores, rate):
            heard.append(scores)
            return 0

    exponential_choice(Scripted(), np.array([large, 0.0, -large, np.nan]), 1.0, 1.0)
    [(best, middle, worst, none)] = heard
    assert best > middle > worst
    assert best == -worst
    assert none == worst


def test_a_row_is_clipped_to_the_same_last_bit_in_every_company():
    values = np.random.default_rng(0).normal(size=(60, 19))
    for given in (values, np.asfortranarray(values)):
        whole = clip(given, 3.0)
        for size in (1, 2, 7, 30):
            parts = np.split(given, range(size, 60, size))
            assert np.array_equal(np.concatenate([clip(part, 3.0) for part in parts]), whole)


@pytest.mark.parametrize("bound", [1e-250, 0.7, 3.0, 1e250])
def test_sums_of_points_are_those_of_clipped_and_rounded_rows(bound):
    generator = np.random.default_rng(0)
    values = bound * generator.normal(size=(500, 9)) * generator.uniform(0, 1, (500, 1))
    values[0, 0], values[1, 1], values[2] = np.nan, np.inf, -np.inf
    values[3], values[4] = np.finfo(float).max, 0.0
    values[5] = bound / 3  # exactly as long as the bound
    shorter = values[6:300] / bound
    values[6:300] = bound * (1 + 3e-7) * shorter / np.linalg.norm(shorter, axis=1)[:, None]
    grid = Grid.below(bound)
    for given in (values, np.asfortranarray(values)):
        expected = grid.round(clip(given, bound)).sum(axis=0)
        assert _sum_of_points(given, bound, grid).tolist() == expected.tolist()
    # One row moves the sum by no more than the bound and the rounding.
    longest = max(np.linalg.norm(_sum_of_points(row[None], bound, grid)) for row in values)
    assert longest * grid.step <= bound * (1 + 1e-12) + grid.rounding(9)
